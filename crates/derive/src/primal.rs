//! Computing without derivatives (N appendix B): what decides a branch, an index or a comparison is computed from primal values.
//!
//! N evaluates the undifferentiated term with the primal parts of its variables. So do we wherever the term is scalar
//! arithmetic over variables, projections and array elements. Below a call with reals we differentiate and then
//! drop the derivative instead, for two reasons: taking the primal part of a whole list or array to look at one element would
//! cost more than the program itself; and a comparison decided at equality inside the call must be seen as a kink.

use crate::activity::Activity;
use crate::mode::ModeRules;
use crate::prims::{treatment, Treatment};
use crate::write::watched_prim;
use crate::{wrappers, Linker, Made};
use gradus_core::build::At;
use gradus_core::{Term, TermKind, Type};

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
        match treatment(*prim) {
            // The vector-space operations walk over their arguments anyway.
            Treatment::Smooth | Treatment::Primal | Treatment::Polytypic(_) => {
                let params = prim.info().params_at(types);
                let mut primals = Vec::new();
                for (arg, param) in args.iter().zip(&params) {
                    primals.push(primal(translator, arg, param)?);
                }
                return Ok(watched_prim(At(term.span), *prim, types.clone(), primals));
            }
            Treatment::Structural
            | Treatment::Build
            | Treatment::Ifold
            | Treatment::Iterate
            | Treatment::StopGradient
            | Treatment::Checkpoint => {}
        }
    }
    let image = translator.image(term)?;
    wrappers::primal(translator.linker(), At(term.span), translator.rules(), ty, image)
}
