//! From core terms to terms of the proved language: the same text, with n-ary constructs spelt out (`types.rs`), `letrec` and `iterate` as
//! `fix`, `ifold` as `loop`, top-level functions in place of their names, and other top-level values as text, as `let` around the program or as variables.

use crate::types::{is_bindings, is_delta, layout, outside, payloads, sum, ty, Layout, Outside, Within};
use crate::wire::{decompose, Ty, Wire};
use gradus_core::traverse::{for_each_child, with_stack};
use gradus_core::{Arm, Definitions, Global, Lambda, Literal, Prim, Term, TermKind, Type, TypeName, Var};
use rustc_hash::FxHashSet;
use std::sync::Arc;

mod primitives;

pub struct Translator<'a> {
    definitions: &'a dyn Definitions,
    /// The variables in scope, the innermost last; a binder of ours has no variable.
    scope: Vec<Option<(Var, Type)>>,
    /// The globals that we are inside of, with the variable that stands for a recursive one.
    around: Vec<(Global, Option<Var>)>,
    /// Top-level values that are bound around the program.
    values: Vec<(Global, Var)>,
    /// Terms inside of which top-level values are text nevertheless, by address.
    kept: FxHashSet<usize>,
    /// Whether the function of `iterate`, and of a loop that is a function of the index alone, stays inside, where it is computed at each turn.
    /// This is the same program with other steps.
    in_place: bool,
}

impl<'a> Translator<'a> {
    pub fn new(definitions: &'a dyn Definitions) -> Self {
        Translator {
            definitions,
            scope: Vec::new(),
            around: Vec::new(),
            values: Vec::new(),
            kept: FxHashSet::default(),
            in_place: false,
        }
    }

    pub fn closed(definitions: &'a dyn Definitions, term: &Term) -> Within<Wire> {
        Translator::new(definitions).wire(term)
    }

    /// A closed term, with as few `let`s as possible, so that steps of an optimiser are few steps of the proofs.
    pub fn plain(definitions: &'a dyn Definitions, term: &Term) -> Within<Wire> {
        Translator { in_place: true, ..Translator::new(definitions) }.wire(term)
    }

    /// The body of a function whose parameter is variable 0, with these top-level values bound around it: none comes before one that it needs.
    pub fn body(definitions: &'a dyn Definitions, lambda: &Lambda, values: &[Global]) -> Within<Wire> {
        let mut translator = Translator::new(definitions);
        translator.scope.push(Some((lambda.param.clone(), lambda.ty.clone())));
        let mut bound = Vec::new();
        for value in values {
            let (wire, ty) = translator.global(value)?;
            bound.push(wire);
            let var = Var::fresh("value");
            translator.scope.push(Some((var.clone(), ty)));
            translator.values.push((value.clone(), var));
        }
        let body = translator.wire(&lambda.body)?;
        Ok(bound.into_iter().rev().fold(body, |body, wire| Wire::bind(wire, body)))
    }

    /// A term with one variable 0 more than it has, followed by these top-level values, of the given types; `kept`: terms inside of which they are text.
    pub fn open(
        definitions: &'a dyn Definitions,
        variable: Option<(Var, Type)>,
        values: &[(Global, Type)],
        kept: FxHashSet<usize>,
        term: &Term,
    ) -> Within<Wire> {
        let mut translator = Translator { kept, ..Translator::new(definitions) };
        for (value, ty) in values.iter().rev() {
            let var = Var::fresh("value");
            translator.scope.push(Some((var.clone(), ty.clone())));
            translator.values.push((value.clone(), var));
        }
        translator.scope.push(variable);
        translator.wire(term)
    }

    fn ty(&self, of: &Type) -> Within<Ty> {
        ty(self.definitions, of)
    }

    /// Translates under more binders, the innermost last.
    fn under<R, const N: usize>(
        &mut self,
        binders: [Option<(Var, Type)>; N],
        work: impl FnOnce(&mut Self) -> Within<R>,
    ) -> Within<R> {
        self.scope.extend(binders);
        let result = work(self);
        self.scope.truncate(self.scope.len() - N);
        result
    }

    /// The index now of the binder that was at this height of the scope.
    fn index(&self, height: usize) -> Wire {
        Wire::Var(self.scope.len() - 1 - height)
    }

    fn variable(&self, var: &Var) -> Within<(Wire, Type)> {
        let found = self.scope.iter().enumerate().rev().find_map(|(height, entry)| match entry {
            Some((v, ty)) if v == var => Some((height, ty.clone())),
            _ => None,
        });
        match found {
            Some((height, ty)) => Ok((self.index(height), ty)),
            None => outside(format!("the free variable {var:?}")),
        }
    }

    pub fn term(&mut self, term: &Term) -> Within<(Wire, Type)> {
        if self.values.is_empty() || !self.kept.contains(&(Arc::as_ptr(&term.kind) as usize)) {
            return self.spelt(term);
        }
        let values = std::mem::take(&mut self.values);
        let result = self.spelt(term);
        self.values = values;
        result
    }

    fn spelt(&mut self, term: &Term) -> Within<(Wire, Type)> {
        with_stack(|| match &*term.kind {
            TermKind::Var(var, _) => self.variable(var),
            TermKind::Global(global) => self.global(global),
            TermKind::Literal(literal) => self.literal(literal),
            TermKind::Lambda(l) => {
                let (body, to) = self.lambda_body(l)?;
                Ok((Wire::lam(self.ty(&l.ty)?, body), Type::fun(l.ty.clone(), to)))
            }
            TermKind::App(function, argument) => {
                let (function, ty) = self.term(function)?;
                let argument = self.wire(argument)?;
                match ty {
                    Type::Fun(ends) => Ok((Wire::op("app", [function, argument]), ends.1.clone())),
                    _ => outside("the application of what is no function"),
                }
            }
            TermKind::Let { var, scheme, bound, body } => {
                let bound = self.wire(bound)?;
                let (body, ty) = self.under([Some((var.clone(), scheme.ty.clone()))], |t| t.term(body))?;
                Ok((Wire::bind(bound, body), ty))
            }
            TermKind::LetRec { bindings, body } => self.recursive(bindings, body),
            TermKind::Prim { prim, types, args, .. } => {
                Ok((self.prim(*prim, types, args)?, prim.info().result_at(types)))
            }
            TermKind::Tuple(items) => {
                let mut wires = Vec::new();
                let mut types = Vec::new();
                for item in items {
                    let (wire, ty) = self.term(item)?;
                    wires.push(wire);
                    types.push(ty);
                }
                Ok((tuple(wires), Type::tuple(types)))
            }
            TermKind::Proj { index, term } => {
                let (wire, ty) = self.term(term)?;
                let types = match &ty {
                    Type::Tuple(types) => types.to_vec(),
                    Type::Named(name, args) => layout(self.definitions, name, args)?
                        .constructors
                        .first()
                        .map(|types| types.iter().flatten().cloned().collect())
                        .unwrap_or_default(),
                    _ => return outside("a projection of what is no tuple"),
                };
                Ok((component(wire, *index, types.len()), types[*index].clone()))
            }
            TermKind::Construct { name, types, tag, args } => {
                let wires = args.iter().map(|arg| self.wire(arg)).collect::<Within<Vec<_>>>()?;
                Ok((self.construct(name, types, *tag, wires)?, Type::Named(name.clone(), types.clone())))
            }
            TermKind::Case { scrutinee, arms, default } => self.case(scrutinee, arms, default.as_ref()),
            TermKind::If { condition, then, otherwise } => {
                let condition = self.wire(condition)?;
                let (then, ty) = self.under([None], |t| t.term(then))?;
                let otherwise = self.under([None], |t| t.wire(otherwise))?;
                Ok((Wire::case(condition, then, otherwise), ty))
            }
            TermKind::ArrayLiteral { element, items } => {
                let items = items.iter().map(|item| self.wire(item)).collect::<Within<Vec<_>>>()?;
                Ok((self.array(element, items)?, Type::array(element.clone())))
            }
            TermKind::Derive { op, .. } => outside(format!("the derivative form {}", op.name())),
            TermKind::Lift { .. } => outside("a function that is differentiated when it is known"),
        })
    }

    fn wire(&mut self, term: &Term) -> Within<Wire> {
        self.term(term).map(|(wire, _)| wire)
    }

    fn lambda_body(&mut self, l: &Lambda) -> Within<(Wire, Type)> {
        self.under([Some((l.param.clone(), l.ty.clone()))], |t| t.term(&l.body))
    }

    fn array(&self, element: &Type, items: Vec<Wire>) -> Within<Wire> {
        let nil = Wire::Nil(self.ty(element)?);
        Ok(items.into_iter().rev().fold(nil, |rest, item| Wire::op("cons", [item, rest])))
    }

    fn literal(&self, literal: &Literal) -> Within<(Wire, Type)> {
        Ok(match literal {
            // The reals have one zero.
            Literal::Real(x) if x.to_bits() == (-0.0f64).to_bits() => return outside("the literal -0.0"),
            Literal::Real(x) => match decompose(*x) {
                Some((m, e)) => (Wire::Lit(m, e), Type::Real),
                None => return outside("a literal that is no number"),
            },
            // Integers have no end there; the oracle reads those of OCaml.
            Literal::Int(z) if z.unsigned_abs() >= 1 << 62 => return outside("an integer of more than 62 bits"),
            Literal::Int(z) => (Wire::Int(*z), Type::Int),
            Literal::Bool(b) => (bool(*b), Type::Bool),
            Literal::Unit => (Wire::op("unit", []), Type::Unit),
            Literal::String(_) => return outside("strings"),
        })
    }

    /// The definition in place of the name; a recursive function refers to itself by a variable.
    fn global(&mut self, global: &Global) -> Within<(Wire, Type)> {
        if let Some((_, var)) = self.values.iter().find(|(value, _)| value == global) {
            return self.variable(&var.clone());
        }
        if let Some(place) = self.around.iter().position(|(other, _)| other == global) {
            return match (&self.around[place].1, place + 1 == self.around.len()) {
                (Some(var), true) => self.variable(&var.clone()),
                _ => outside("mutual recursion of top-level functions"),
            };
        }
        let Ok(definition) = self.definitions.definition(global) else { return outside(format!("{global:?}")) };
        let Some(term) = &definition.term else { return outside("data from a file") };
        let itself = mentions(term, global).then(|| Var::fresh("itself"));
        self.around.push((global.clone(), itself.clone()));
        let result = match itself {
            Some(var) => self.fix(&var, &definition.ty, term),
            None => self.wire(term),
        };
        self.around.pop();
        Ok((result?, definition.ty.clone()))
    }

    fn recursive(&mut self, bindings: &[(Var, gradus_core::Scheme, Term)], body: &Term) -> Within<(Wire, Type)> {
        let [(var, scheme, bound)] = bindings else { return outside("mutual recursion") };
        let fix = self.fix(var, &scheme.ty, bound)?;
        let (body, ty) = self.under([Some((var.clone(), scheme.ty.clone()))], |t| t.term(body))?;
        Ok((Wire::bind(fix, body), ty))
    }

    /// A function that refers to itself by a variable.
    fn fix(&mut self, itself: &Var, ty: &Type, function: &Term) -> Within<Wire> {
        let (TermKind::Lambda(l), Type::Fun(ends)) = (&*function.kind, ty) else {
            return outside("recursion of what is no function");
        };
        let binders = [Some((itself.clone(), ty.clone())), Some((l.param.clone(), l.ty.clone()))];
        let inner = self.under(binders, |t| t.wire(&l.body))?;
        Ok(Wire::Fix(self.ty(&ends.0)?, self.ty(&ends.1)?, Box::new(inner)))
    }

    fn construct(&self, name: &TypeName, types: &Arc<[Type]>, tag: usize, args: Vec<Wire>) -> Within<Wire> {
        if is_delta(name) {
            return delta(tag, args);
        }
        if is_bindings(name, types) {
            return match tag {
                0 => self.array(&types[0], vec![]),
                _ => Ok(Wire::op("cons", args)),
            };
        }
        let layout = layout(self.definitions, name, types)?;
        let payloads = payloads(self.definitions, &layout)?;
        let (mut own, mut subtrees) = (Vec::new(), Vec::new());
        for (arg, ty) in args.into_iter().zip(&layout.constructors[tag]) {
            match ty {
                Some(_) => own.push(arg),
                None => subtrees.push(arg),
            }
        }
        let label = inject(&payloads, tag, tuple(own));
        if !layout.recursive() {
            return Ok(label);
        }
        let subtrees = self.array(&Type::Named(name.clone(), types.clone()), subtrees)?;
        Ok(Wire::op("node", [label, subtrees]))
    }

    fn case(&mut self, scrutinee: &Term, arms: &[Arm], default: Option<&Term>) -> Within<(Wire, Type)> {
        let (scrutinee, ty) = self.term(scrutinee)?;
        let Type::Named(name, args) = &ty else { return outside("a match on what is no variant") };
        if is_delta(name) || is_bindings(name, args) {
            return outside("a match on a Delta");
        }
        let layout = layout(self.definitions, name, args)?;
        if !layout.recursive() {
            return self.choose(&layout, 0, scrutinee, None, arms, default, &ty);
        }
        let node = self.scope.len();
        let (inner, result) = self.under([None], |t| {
            let label = Wire::op("fst", [t.index(node)]);
            t.choose(&layout, 0, label, Some(node), arms, default, &ty)
        })?;
        Ok((Wire::bind(Wire::op("unnode", [scrutinee]), inner), result))
    }

    /// Decides between the constructors from `tag` on. `node`: where the node with its subtrees is bound.
    #[allow(clippy::too_many_arguments)]
    fn choose(
        &mut self,
        layout: &Layout,
        tag: usize,
        label: Wire,
        node: Option<usize>,
        arms: &[Arm],
        default: Option<&Term>,
        this: &Type,
    ) -> Within<(Wire, Type)> {
        let last = tag + 1 >= layout.constructors.len();
        let payload = self.scope.len();
        let (here, ty) = self.under([None], |t| t.arm(layout, tag, payload, node, arms, default, this))?;
        if last {
            return Ok((Wire::bind(label, here), ty));
        }
        let rest = self.under([None], |t| {
            let label = t.index(payload);
            t.choose(layout, tag + 1, label, node, arms, default, this)
        })?;
        Ok((Wire::case(label, here, rest.0), ty))
    }

    #[allow(clippy::too_many_arguments)]
    fn arm(
        &mut self,
        layout: &Layout,
        tag: usize,
        payload: usize,
        node: Option<usize>,
        arms: &[Arm],
        default: Option<&Term>,
        this: &Type,
    ) -> Within<(Wire, Type)> {
        let Some(arm) = arms.iter().find(|arm| arm.tag == tag) else {
            return match default {
                Some(default) => self.term(default),
                None => outside("a match that leaves out a constructor"),
            };
        };
        let types = &layout.constructors[tag];
        let own = types.iter().flatten().count();
        let (mut owned, mut subtree) = (0, 0);
        let mut bound = Vec::new();
        for ((var, _), ty) in arm.vars.iter().zip(types) {
            let wire = match (ty, node) {
                (Some(_), _) => {
                    owned += 1;
                    component(self.index(payload), owned - 1, own)
                }
                (None, Some(node)) => {
                    subtree += 1;
                    Wire::op("get", [Wire::op("snd", [self.index(node)]), Wire::Int(subtree - 1)])
                }
                (None, None) => return outside("a recursive argument without a tree"),
            };
            bound.push(wire);
            self.scope.push(Some((var.clone(), ty.clone().unwrap_or_else(|| this.clone()))));
        }
        let body = self.term(&arm.body);
        self.scope.truncate(self.scope.len() - bound.len());
        let (body, ty) = body?;
        Ok((bound.into_iter().rev().fold(body, |body, wire| Wire::bind(wire, body)), ty))
    }
}

fn mentions(term: &Term, global: &Global) -> bool {
    let mut found = matches!(&*term.kind, TermKind::Global(other) if other == global);
    with_stack(|| for_each_child(term, &mut |child| found = found || mentions(child, global)));
    found
}

pub fn bool(b: bool) -> Wire {
    let unit = Box::new(Wire::op("unit", []));
    if b {
        Wire::Inl(Ty::Unit, unit)
    } else {
        Wire::Inr(Ty::Unit, unit)
    }
}

pub fn tuple(mut items: Vec<Wire>) -> Wire {
    let Some(last) = items.pop() else { return Wire::op("unit", []) };
    items.into_iter().rev().fold(last, |rest, item| Wire::op("pair", [item, rest]))
}

/// Component `index` of a tuple of `count`.
fn component(wire: Wire, index: usize, count: usize) -> Wire {
    let rest = (0..index).fold(wire, |wire, _| Wire::op("snd", [wire]));
    if index + 1 < count {
        Wire::op("fst", [rest])
    } else {
        rest
    }
}

pub fn inject(payloads: &[Ty], tag: usize, payload: Wire) -> Wire {
    match (payloads, tag) {
        ([] | [_], _) => payload,
        ([_, rest @ ..], 0) => Wire::Inl(sum(rest), Box::new(payload)),
        ([first, rest @ ..], _) => Wire::Inr(first.clone(), Box::new(inject(rest, tag - 1, payload))),
    }
}

/// The constructors of `Delta`, as `proofs/Delta.v` writes them.
fn delta(tag: usize, mut args: Vec<Wire>) -> Within<Wire> {
    let Ty::Tree(label) = Ty::delta() else { return outside("Delta") };
    let mut sides = vec![];
    let mut rest = (*label).clone();
    while let Ty::Sum(parts) = rest {
        sides.push(parts.0.clone());
        rest = parts.1.clone();
    }
    sides.push(rest);
    let payload = match (tag, args.len()) {
        (0, 0) | (2, 2) => Wire::op("unit", []),
        (1, 2) | (3, 1) => args.remove(0),
        _ => return Err(Outside("a custom derivative".into())),
    };
    let subtrees = args.into_iter().rev().fold(Wire::Nil(Ty::delta()), |rest, item| Wire::op("cons", [item, rest]));
    Ok(Wire::op("node", [inject(&sides, tag, payload), subtrees]))
}
