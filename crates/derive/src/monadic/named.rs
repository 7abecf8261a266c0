//! The text that the monadic translation starts from: that of the program, in which the parts of tuples, constructors and arrays, what is
//! projected from, and what a `match` looks at have names, unless they are values as they stand.
//!
//! So a computation is bound where it has a name, and the bindings of a construct of several parts do not depend on how such a construct is spelt out in
//! the proved language, where there are only pairs and binary choices. For the same reason some primitives are replaced by those
//! that they stand for there. What is evaluated, and in which order, stays as it was.

use crate::prims::{treatment, Treatment};
use crate::scope::Scope;
use crate::typing::{parameter_type, result_type};
use crate::write::try_map_children;
use crate::{Linker, Made};
use gradus_core::build::At;
use gradus_core::traverse::with_stack;
use gradus_core::{Lambda, Prim, Term, TermKind, Type, Var};
use gradus_source::{bug, Diagnostic};
use std::sync::Arc;

impl Linker {
    /// The text of a function that its derivative in a mode with a state is made from.
    pub fn named_parts(&self, lambda: &Arc<Lambda>) -> Result<Arc<Lambda>, Box<Diagnostic>> {
        Ok(self.named(lambda)?)
    }

    /// A function with names as above; its scope is noted.
    pub(crate) fn named(&self, lambda: &Arc<Lambda>) -> Made<Arc<Lambda>> {
        let scope = self.scope(lambda);
        let term = Term::new(TermKind::Lambda(lambda.clone()), lambda.body.span);
        let named = Naming { linker: self, scope: &scope }.term(&term)?;
        match &*named.kind {
            TermKind::Lambda(named) => {
                self.note_scopes(&Term::new(TermKind::Lambda(named.clone()), lambda.body.span), &scope);
                Ok(named.clone())
            }
            _ => bug!("a function was renamed to what is no function"),
        }
    }

    /// The same for any term, with the types of its variables.
    pub(crate) fn named_term(&self, scope: &Scope, term: &Term) -> Made<(Scope, Term)> {
        let named = Naming { linker: self, scope }.term(term)?;
        let mut types = (**scope).clone();
        gradus_core::traverse::add_binder_types(&named, &mut types);
        Ok((Arc::new(types), named))
    }
}

struct Naming<'a> {
    linker: &'a Linker,
    /// The types of the variables of the original.
    scope: &'a Scope,
}

/// What is a value in every mode.
fn is_value(term: &Term) -> bool {
    matches!(&*term.kind, TermKind::Var(..) | TermKind::Literal(_) | TermKind::Global(_) | TermKind::Lambda(_))
}

/// Whether a term is arithmetic over variables, so that a decision about it binds nothing.
fn is_arithmetic(term: &Term) -> bool {
    match &*term.kind {
        TermKind::Var(..) | TermKind::Literal(_) => true,
        TermKind::Proj { term, .. } => is_arithmetic(term),
        TermKind::Prim { prim, args, .. } => {
            let scalar = matches!(treatment(*prim), Treatment::Smooth | Treatment::Primal | Treatment::Structural);
            scalar && with_stack(|| args.iter().all(is_arithmetic))
        }
        _ => false,
    }
}

/// A binding that comes before a term.
struct Named {
    var: Var,
    ty: Type,
    bound: Term,
}

fn wrap(at: At, named: Vec<Named>, body: Term) -> Term {
    named.into_iter().rev().fold(body, |body, name| at.bind(&name.var, name.ty, name.bound, body))
}

impl Naming<'_> {
    /// The original tells the type, `image` is what is bound.
    fn name(&self, names: &mut Vec<Named>, original: &Term, image: Term) -> Made<Term> {
        if is_value(&image) {
            return Ok(image);
        }
        let var = Var::fresh("part");
        let at = At(image.span);
        names.push(Named { var: var.clone(), ty: self.linker.type_of(self.scope, original)?, bound: image });
        Ok(at.var(&var))
    }

    fn all(&self, names: &mut Vec<Named>, originals: &[Term], images: &[Term]) -> Made<Vec<Term>> {
        originals.iter().zip(images).map(|(original, image)| self.name(names, original, image.clone())).collect()
    }

    fn term(&self, term: &Term) -> Made<Term> {
        with_stack(|| {
            let image = try_map_children(term, |child| self.term(child))?;
            self.construct(term, image)
        })
    }

    /// The names for one construct, whose parts have been seen to.
    fn construct(&self, original: &Term, image: Term) -> Made<Term> {
        let at = At(image.span);
        let mut names = Vec::new();
        let kind = match (&*original.kind, &*image.kind) {
            (TermKind::Tuple(originals), TermKind::Tuple(items)) if items.len() > 2 => {
                TermKind::Tuple(self.all(&mut names, originals, items)?)
            }
            (TermKind::Construct { args: originals, .. }, TermKind::Construct { name, types, tag, args }) => {
                let args = self.all(&mut names, originals, args)?;
                TermKind::Construct { name: name.clone(), types: types.clone(), tag: *tag, args }
            }
            (TermKind::ArrayLiteral { items: originals, .. }, TermKind::ArrayLiteral { element, items }) => {
                let items = self.all(&mut names, originals, items)?;
                TermKind::ArrayLiteral { element: element.clone(), items }
            }
            (TermKind::Proj { term: original, .. }, TermKind::Proj { index, term }) if *index > 0 => {
                TermKind::Proj { index: *index, term: self.name(&mut names, original, term.clone())? }
            }
            (TermKind::Case { scrutinee: original, .. }, TermKind::Case { scrutinee, arms, default }) => {
                let scrutinee = self.name(&mut names, original, scrutinee.clone())?;
                TermKind::Case { scrutinee, arms: arms.clone(), default: default.clone() }
            }
            (TermKind::Prim { args: originals, .. }, TermKind::Prim { prim, types, args, .. }) => {
                match self.primitive(at, &mut names, *prim, types, originals, args)? {
                    Some(term) => return Ok(wrap(at, names, term)),
                    None => return Ok(image),
                }
            }
            _ => return Ok(image),
        };
        Ok(wrap(at, names, at.term(kind)))
    }

    /// A primitive in other words, if there are any.
    fn primitive(
        &self,
        at: At,
        names: &mut Vec<Named>,
        prim: Prim,
        types: &Arc<[Type]>,
        originals: &[Term],
        args: &[Term],
    ) -> Made<Option<Term>> {
        let arithmetic = || args.iter().all(is_arithmetic);
        let integers = matches!(&types[..], [Type::Int]);
        let not = |term: Term| at.if_(term, at.bool(false), at.bool(true));
        let compare = |prim| at.prim_at(prim, types.clone(), args.to_vec());
        Ok(Some(match (prim, args) {
            (Prim::Not, [condition]) => not(condition.clone()),
            (Prim::NotEqual, _) if matches!(&types[..], [Type::Int | Type::Real]) => not(compare(Prim::Equal)),
            (Prim::Greater, _) if integers => not(compare(Prim::LessEqual)),
            (Prim::GreaterEqual, _) if integers => not(compare(Prim::Less)),
            (Prim::Greater | Prim::GreaterEqual, [a, b]) if matches!(&types[..], [Type::Real]) && !arithmetic() => {
                let less = if prim == Prim::Greater { Prim::Less } else { Prim::LessEqual };
                let negated = |term: &Term| at.prim(Prim::NegReal, [term.clone()]);
                at.prim_at(less, types.clone(), [negated(a), negated(b)])
            }
            (Prim::Sign, [x]) if !arithmetic() => at.prim_at(Prim::Less, [Type::Real], [x.clone(), at.real(0.0)]),
            (Prim::NegInt, [n]) if !arithmetic() => at.prim(Prim::SubInt, [at.int(0), n.clone()]),
            (Prim::VectorAdd, _) if matches!(&types[..], [Type::Real]) => at.prim(Prim::AddReal, args.to_vec()),
            (Prim::VectorSub, _) if matches!(&types[..], [Type::Real]) => at.prim(Prim::SubReal, args.to_vec()),
            // The proved language has more than one construct for these: their results have names too.
            (Prim::CheckSize | Prim::Iterate, _) => {
                let args = match prim {
                    Prim::CheckSize => self.all(names, originals, args)?,
                    _ => args.to_vec(),
                };
                let var = Var::fresh("result");
                let bound = at.prim_at(prim, types.clone(), args);
                names.push(Named { var: var.clone(), ty: prim.info().result_at(types), bound });
                at.var(&var)
            }
            (Prim::Build, [size, function]) if !matches!(&*function.kind, TermKind::Lambda(_)) => {
                let size = self.name(names, &originals[0], size.clone())?;
                let item = self.function(names, &originals[1], function, 1)?;
                at.prim_at(prim, types.clone(), [size, item])
            }
            (Prim::Ifold, [count, step, initial]) if !is_of_two(step) => {
                let count = self.name(names, &originals[0], count.clone())?;
                let step = self.function(names, &originals[1], step, 2)?;
                at.prim_at(prim, types.clone(), [count, step, initial.clone()])
            }
            _ => return Ok(None),
        }))
    }

    /// A function of some parameters, written as one, that calls what is computed beforehand.
    fn function(&self, names: &mut Vec<Named>, original: &Term, function: &Term, params: usize) -> Made<Term> {
        let at = At(function.span);
        let mut ty = self.linker.type_of(self.scope, original)?;
        let var = Var::fresh("f");
        names.push(Named { var: var.clone(), ty: ty.clone(), bound: function.clone() });
        let mut vars = Vec::new();
        for _ in 0..params {
            vars.push((Var::fresh("x"), parameter_type(&ty)));
            ty = result_type(&ty);
        }
        let args: Vec<Term> = vars.iter().map(|(v, _)| at.var(v)).collect();
        Ok(at.lambdas(&vars, at.apps(at.var(&var), args)))
    }
}

fn is_of_two(term: &Term) -> bool {
    matches!(&*term.kind, TermKind::Lambda(l) if matches!(&*l.body.kind, TermKind::Lambda(_)))
}
