//! Functions indexed by a type (K section 2, "polytypic primitives"): what they do at a real is given, at every other type
//! they follow its structure. Each is an infinite family of ordinary core functions; this file writes the members.
//!
//! A member at a declared type or an array type is a global of its own, so that recursive, mutually recursive and nested types
//! come out as recursive functions. Leaf types, and whole types without reals, are passed over.

use crate::write::{add_int, bind, build, build_with_state, compare_int, get, ifold, length};
use crate::{Linker, Made};
use gradus_core::build::At;
use gradus_core::{Arm, Global, Mode, Prim, Term, Type, TypeBody, TypeName, Var};
use gradus_source::bug;

/// What a function does at a real: from the structures, the parameters and the accumulator (if it has one).
pub type AtReal = Box<dyn Fn(&Linker, At, &[Term], &[Term], Option<Term>) -> Made<Term>>;

/// What to do with two structures of different shape: from their types, the structures and the accumulator.
pub type Mismatch = fn(&Polytypic, At, &Type, &[Term], Option<Term>) -> Term;

pub struct Polytypic {
    pub name: &'static str,
    /// The modes of the key.
    pub modes: Vec<Mode>,
    /// For each structure that is walked over (one or two), the modes under which it comes.
    pub inputs: Vec<Vec<Mode>>,
    /// Parameters that are handed down unchanged.
    pub parameters: Vec<(&'static str, Type)>,
    pub result: ResultKind,
    pub at_real: AtReal,
    pub mismatch: Mismatch,
}

#[derive(Clone, Debug)]
pub enum ResultKind {
    /// A structure of the same shape, under modes.
    Structure(Vec<Mode>),
    /// An accumulator, from the left.
    Fold(Type),
    /// Both: a pair. The accumulator is the number of the next real.
    Both(Vec<Mode>, Type),
}

impl Polytypic {
    /// `input1 -> input2 -> parameters -> accumulator -> result` at a type.
    pub fn type_at(&self, linker: &Linker, ty: &Type) -> Made<Type> {
        let mut params = Vec::new();
        for modes in &self.inputs {
            params.push(linker.image_under(modes, ty)?);
        }
        params.extend(self.parameters.iter().map(|(_, t)| t.clone()));
        params.extend(self.accumulator());
        Ok(Type::funs(params, self.result_at(linker, ty)?))
    }

    fn accumulator(&self) -> Option<Type> {
        match &self.result {
            ResultKind::Structure(_) => None,
            ResultKind::Fold(acc) | ResultKind::Both(_, acc) => Some(acc.clone()),
        }
    }

    fn result_at(&self, linker: &Linker, ty: &Type) -> Made<Type> {
        Ok(match &self.result {
            ResultKind::Structure(modes) => linker.image_under(modes, ty)?,
            ResultKind::Fold(acc) => acc.clone(),
            ResultKind::Both(modes, acc) => Type::tuple([linker.image_under(modes, ty)?, acc.clone()]),
        })
    }

    /// The member at a type, as a function.
    pub fn make(&self, linker: &Linker, ty: &Type) -> Made<Term> {
        let at = At::default();
        let mut params = Vec::new();
        for modes in &self.inputs {
            params.push((Var::fresh("x"), linker.image_under(modes, ty)?));
        }
        for (name, t) in &self.parameters {
            params.push((Var::fresh(*name), t.clone()));
        }
        if let Some(acc) = self.accumulator() {
            params.push((Var::fresh("acc"), acc));
        }
        let vars: Vec<Term> = params.iter().map(|(v, _)| at.var(v)).collect();
        let (structures, rest) = vars.split_at(self.inputs.len());
        let (extra, acc) = rest.split_at(self.parameters.len());
        let writer = Writer { polytypic: self, linker, at, extra };
        let body = writer.body(ty, structures, acc.first().cloned())?;
        Ok(at.lambdas(&params, body))
    }
}

struct Writer<'a> {
    polytypic: &'a Polytypic,
    linker: &'a Linker,
    at: At,
    extra: &'a [Term],
}

impl Writer<'_> {
    /// The result for a part of type `ty`.
    fn at(&self, ty: &Type, structures: &[Term], acc: Option<Term>) -> Made<Term> {
        let at = self.at;
        if !self.linker.contents(ty).reals {
            let kept = || structures[0].clone();
            return Ok(match (&self.polytypic.result, acc) {
                (ResultKind::Structure(_), _) => kept(),
                (ResultKind::Fold(_), Some(acc)) => acc,
                (ResultKind::Both(..), Some(acc)) => at.tuple([kept(), acc]),
                (ResultKind::Fold(_) | ResultKind::Both(..), None) => bug!("no accumulator"),
            });
        }
        match ty {
            Type::Real => (self.polytypic.at_real)(self.linker, at, structures, self.extra, acc),
            Type::Tuple(parts) => self.parts(ty, parts, structures, acc, |at, items| at.tuple(items)),
            Type::Named(..) | Type::Array(_) => {
                let member = Global::Wrapper {
                    name: self.polytypic.name,
                    modes: self.polytypic.modes.clone(),
                    types: [ty.clone()].into(),
                };
                let args = structures.iter().chain(self.extra).cloned().chain(acc);
                Ok(at.apps(at.global(member), args))
            }
            Type::Int | Type::Bool | Type::String | Type::Unit | Type::Var(_) | Type::Fun(_) => {
                bug!("`{}` at the type {ty:?}", self.polytypic.name)
            }
        }
    }

    /// The body of the member at `ty`; the structures are variables.
    fn body(&self, ty: &Type, structures: &[Term], acc: Option<Term>) -> Made<Term> {
        match ty {
            Type::Named(name, args) => {
                let decl = self.linker.declaration(name)?;
                let constructors = decl.constructors(args);
                match &decl.body {
                    TypeBody::Record(_) => {
                        let (name, args) = self.result_name(ty)?;
                        self.parts(ty, &constructors[0].1, structures, acc, move |at, items| {
                            at.construct(name.clone(), args.clone(), 0, items)
                        })
                    }
                    TypeBody::Variant(_) => self.variant(ty, &constructors, structures, acc),
                }
            }
            Type::Array(element) => self.array(element, structures, acc),
            Type::Real
            | Type::Tuple(_)
            | Type::Int
            | Type::Bool
            | Type::String
            | Type::Unit
            | Type::Var(_)
            | Type::Fun(_) => self.at(ty, structures, acc),
        }
    }

    /// The declared type of the result; of no interest to a fold.
    fn result_name(&self, ty: &Type) -> Made<(TypeName, std::sync::Arc<[Type]>)> {
        let modes = match &self.polytypic.result {
            ResultKind::Structure(modes) | ResultKind::Both(modes, _) => modes.as_slice(),
            ResultKind::Fold(_) => &[],
        };
        match self.linker.image_under(modes, ty)? {
            Type::Named(name, args) => Ok((name, args)),
            other => bug!("not a declared type: {other:?}"),
        }
    }

    /// A tuple or record: its components, by position.
    fn parts(
        &self,
        ty: &Type,
        parts: &[Type],
        structures: &[Term],
        acc: Option<Term>,
        rebuild: impl FnOnce(At, Vec<Term>) -> Term,
    ) -> Made<Term> {
        let at = self.at;
        let mut lets = crate::write::Lets::default();
        let mut whole = Vec::new();
        for (structure, modes) in structures.iter().zip(&self.polytypic.inputs) {
            let image = self.linker.image_under(modes, ty)?;
            whole.push(lets.bind(at, "x", &image, structure.clone()));
        }
        let fields = parts
            .iter()
            .enumerate()
            .map(|(i, part)| (part.clone(), whole.iter().map(|w| at.proj(w.clone(), i)).collect()))
            .collect();
        let body = self.sequence(fields, acc, rebuild)?;
        Ok(lets.wrap(at, body))
    }

    /// Components one after the other, the accumulator handed from each to the next.
    fn sequence(
        &self,
        fields: Vec<(Type, Vec<Term>)>,
        acc: Option<Term>,
        rebuild: impl FnOnce(At, Vec<Term>) -> Term,
    ) -> Made<Term> {
        let at = self.at;
        match (&self.polytypic.result, acc) {
            (ResultKind::Structure(_), _) => {
                let items: Made<Vec<_>> = fields.iter().map(|(t, parts)| self.at(t, parts, None)).collect();
                Ok(rebuild(at, items?))
            }
            (ResultKind::Fold(_), Some(acc)) => {
                fields.iter().try_fold(acc, |acc, (t, parts)| self.at(t, parts, Some(acc)))
            }
            (ResultKind::Both(..), Some(mut acc)) => {
                let mut lets = crate::write::Lets::default();
                let mut items = Vec::new();
                for (t, parts) in &fields {
                    if !self.linker.contents(t).reals {
                        items.push(parts[0].clone());
                        continue;
                    }
                    let result = self.polytypic.result_at(self.linker, t)?;
                    let pair = lets.bind(at, "r", &result, self.at(t, parts, Some(acc))?);
                    items.push(at.proj(pair.clone(), 0));
                    acc = at.proj(pair, 1);
                }
                Ok(lets.wrap(at, at.tuple([rebuild(at, items), acc])))
            }
            (ResultKind::Fold(_) | ResultKind::Both(..), None) => bug!("no accumulator"),
        }
    }

    fn arm_vars(&self, types: &[Type], modes: &[Mode]) -> Made<Vec<(Var, Type)>> {
        types.iter().map(|t| Ok((Var::fresh("x"), self.linker.image_under(modes, t)?))).collect()
    }

    /// A variant: the constructor of the first structure; the second must have the same.
    fn variant(
        &self,
        ty: &Type,
        constructors: &[(gradus_core::Symbol, Vec<Type>)],
        structures: &[Term],
        acc: Option<Term>,
    ) -> Made<Term> {
        let at = self.at;
        let (name, args) = self.result_name(ty)?;
        let mut arms = Vec::new();
        for (tag, (_, types)) in constructors.iter().enumerate() {
            let rebuild = |at: At, items| at.construct(name.clone(), args.clone(), tag, items);
            let first = self.arm_vars(types, &self.polytypic.inputs[0])?;
            let body = match structures {
                [_] => {
                    let fields = types.iter().zip(&first).map(|(t, (v, _))| (t.clone(), vec![at.var(v)])).collect();
                    self.sequence(fields, acc.clone(), rebuild)?
                }
                [_, other] => {
                    let second = self.arm_vars(types, &self.polytypic.inputs[1])?;
                    let pairs = first.iter().zip(&second);
                    let fields = types
                        .iter()
                        .zip(pairs)
                        .map(|(t, ((v, _), (w, _)))| (t.clone(), vec![at.var(v), at.var(w)]))
                        .collect();
                    let same = Arm { tag, vars: second, body: self.sequence(fields, acc.clone(), rebuild)? };
                    let default = (constructors.len() > 1)
                        .then(|| (self.polytypic.mismatch)(self.polytypic, at, ty, structures, acc.clone()));
                    at.case(other.clone(), vec![same], default)
                }
                _ => bug!("`{}` walks over {} structures", self.polytypic.name, structures.len()),
            };
            arms.push(Arm { tag, vars: first, body });
        }
        Ok(at.case(structures[0].clone(), arms, None))
    }

    fn array(&self, element: &Type, structures: &[Term], acc: Option<Term>) -> Made<Term> {
        let at = self.at;
        let mut elements = Vec::new();
        for modes in &self.polytypic.inputs {
            elements.push(self.linker.image_under(modes, element)?);
        }
        let size = length(at, &elements[0], structures[0].clone());
        bind_size(at, size, |size| {
            let differ = match structures {
                [_, other] => {
                    let size_of_other = length(at, &elements[1], other.clone());
                    Some(compare_int(at, Prim::NotEqual, size_of_other, size.clone()))
                }
                _ => None,
            };
            let mismatch = || {
                (self.polytypic.mismatch)(self.polytypic, at, &Type::array(element.clone()), structures, acc.clone())
            };
            let differ = differ.map(|differ| (differ, mismatch()));
            let items = |i: &Term| -> Vec<Term> {
                structures.iter().zip(&elements).map(|(a, t)| get(at, t, a.clone(), i.clone())).collect()
            };
            let body = match (&self.polytypic.result, acc) {
                (ResultKind::Structure(modes), _) => {
                    let result = self.linker.image_under(modes, element)?;
                    let mut item = Ok(at.unit());
                    let array = build(at, &result, size, |i| {
                        item = self.at(element, &items(&i), None);
                        item.clone().unwrap_or_else(|_| at.unit())
                    });
                    item.map(|_| array)?
                }
                (ResultKind::Fold(state), Some(acc)) => {
                    let mut item = Ok(at.unit());
                    let folded = ifold(at, state, size, acc, |i, state| {
                        item = self.at(element, &items(&i), Some(state));
                        item.clone().unwrap_or_else(|_| at.unit())
                    });
                    item.map(|_| folded)?
                }
                (ResultKind::Both(modes, _), Some(acc)) if reals_in(element).is_some() => {
                    // The numbers of the reals follow from the index.
                    let reals = reals_in(element).unwrap_or_default();
                    let result = self.linker.image_under(modes, element)?;
                    let times = |count: Term| match reals {
                        1 => count,
                        _ => at.prim(Prim::MulInt, [at.int(reals), count]),
                    };
                    let mut item = Ok(at.unit());
                    let array = build(at, &result, size.clone(), |i| {
                        let first = add_int(at, acc.clone(), times(i.clone()));
                        item = self.at(element, &items(&i), Some(first));
                        at.proj(item.clone().unwrap_or_else(|_| at.unit()), 0)
                    });
                    item.map(|_| at.tuple([array, add_int(at, acc, times(size))]))?
                }
                (ResultKind::Both(modes, state), Some(acc)) => {
                    let result = self.linker.image_under(modes, element)?;
                    let pair = Type::tuple([result.clone(), state.clone()]);
                    // The function that makes an item is bound, because it is used twice.
                    let (index, so_far) = (Var::fresh("i"), Var::fresh("acc"));
                    let item = self.at(element, &items(&at.var(&index)), Some(at.var(&so_far)))?;
                    let item = at.lambdas(&[(index, Type::Int), (so_far, state.clone())], item);
                    let item_type = Type::funs([Type::Int, state.clone()], pair);
                    bind(at, "item", &item_type, item, |item| {
                        build_with_state(at, &result, state, size, acc, |i, s| at.apps(item.clone(), [i, s]))
                    })
                }
                (ResultKind::Fold(_) | ResultKind::Both(..), None) => bug!("no accumulator"),
            };
            Ok(match differ {
                Some((differ, mismatch)) => at.if_(differ, mismatch, body),
                None => body,
            })
        })
    }
}

/// The number of reals in every value of a type of numbers.
fn reals_in(ty: &Type) -> Option<i64> {
    match ty {
        Type::Real => Some(1),
        Type::Tuple(parts) => parts.iter().map(reals_in).sum(),
        _ => None,
    }
}

fn bind_size(at: At, size: Term, body: impl FnOnce(Term) -> Made<Term>) -> Made<Term> {
    let var = Var::fresh("size");
    let body = body(at.var(&var))?;
    Ok(at.bind(&var, Type::Int, size, body))
}
