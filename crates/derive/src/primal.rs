//! Computing without derivatives (N appendix B): what decides a branch, an index or a comparison is computed from primal values.
//!
//! N evaluates the undifferentiated term with the primal parts of its variables. So do we wherever the term is scalar
//! arithmetic over variables, projections and array elements. Below a call with reals we differentiate and then
//! drop the derivative instead, for two reasons: taking the primal part of a whole list or array to look at one element would
//! cost more than the program itself; and a comparison decided at equality inside the call must be seen as a kink.

use crate::activity::Activity;
use crate::mode::ModeRules;
use crate::prims::treatment;
use crate::write::watched_prim;
use crate::{wrappers, Linker, Made};
use gradus_core::build::At;
use gradus_core::{Arm, Prim, Term, TermKind, Type};
use std::sync::Arc;

/// A translation of terms under way.
pub trait Translator {
    fn linker(&self) -> &Linker;
    fn rules(&self) -> &dyn ModeRules;
    fn activity(&self) -> &Activity;
    /// D(term)
    fn image(&mut self, term: &Term) -> Made<Term>;
}

/// The value of `term : ty`, a data type, without derivatives.
pub fn primal(translator: &mut dyn Translator, term: &Term, ty: &Type) -> Made<Term> {
    if translator.activity().is_constant(term) {
        return Ok(term.clone());
    }
    if let TermKind::Prim { prim, types, args, .. } = &*term.kind {
        if treatment(*prim).is_arithmetic() {
            return of_primals(translator, At(term.span), *prim, types, args);
        }
    }
    let image = translator.image(term)?;
    wrappers::primal(translator.linker(), At(term.span), translator.rules(), ty, image)
}

/// A primitive applied to the primal parts of its arguments.
pub fn of_primals(
    translator: &mut dyn Translator,
    at: At,
    prim: Prim,
    types: &Arc<[Type]>,
    args: &[Term],
) -> Made<Term> {
    if let Some((other, tag, equal)) = constructor_test(prim, args) {
        let image = translator.image(other)?;
        let arm = Arm { tag, vars: vec![], body: at.bool(equal) };
        return Ok(at.case(image, vec![arm], Some(at.bool(!equal))));
    }
    let mut primals = Vec::new();
    for (arg, param) in args.iter().zip(&prim.info().params_at(types)) {
        primals.push(primal(translator, arg, param)?);
    }
    Ok(watched_prim(at, prim, types.clone(), primals))
}

/// `xs = []` looks at one constructor, and must not cost a walk over `xs` to take its primal part: `xs`, the constructor, and what holds if it is that.
pub fn constructor_test(prim: Prim, args: &[Term]) -> Option<(&Term, usize, bool)> {
    let equal = match prim {
        Prim::Equal => true,
        Prim::NotEqual => false,
        _ => return None,
    };
    let without_arguments = |term: &Term| match &*term.kind {
        TermKind::Construct { tag, args, .. } if args.is_empty() => Some(*tag),
        _ => None,
    };
    match args {
        [a, b] => match (without_arguments(a), without_arguments(b)) {
            (_, Some(tag)) => Some((a, tag, equal)),
            (Some(tag), None) => Some((b, tag, equal)),
            (None, None) => None,
        },
        _ => None,
    }
}
