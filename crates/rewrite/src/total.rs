//! Which terms always have a value.

use gradus_core::prim::Eval;
use gradus_core::traverse::{for_each_child, with_stack};
use gradus_core::{Prim, Term, TermKind};

/// Whether evaluating the term ends with a value, whatever the values of its variables: no calls, which may run for ever, and no
/// operation that can stop the program. Arithmetic on reals always has a value (under `--domain=error` an unused one may go unreported).
pub fn is_total(term: &Term) -> bool {
    let here = match &*term.kind {
        TermKind::Lambda(_) => return true,
        TermKind::App(..) | TermKind::Derive { .. } | TermKind::Lift { .. } | TermKind::Global(_) => false,
        // Rows of an array can differ in length.
        TermKind::ArrayLiteral { .. } => false,
        TermKind::Prim { prim, .. } => prim_is_total(*prim),
        TermKind::Var(..)
        | TermKind::Literal(_)
        | TermKind::Let { .. }
        | TermKind::LetRec { .. }
        | TermKind::Tuple(_)
        | TermKind::Proj { .. }
        | TermKind::Construct { .. }
        | TermKind::Case { .. }
        | TermKind::If { .. } => true,
    };
    let mut all = here;
    with_stack(|| for_each_child(term, &mut |child| all = all && is_total(child)));
    all
}

fn prim_is_total(prim: Prim) -> bool {
    match prim.info().eval {
        Eval::Real(_) | Eval::RealReal(_) | Eval::RealInt(_) | Eval::IntReal(_) | Eval::IntToReal(_) | Eval::Int(_) => {
            true
        }
        // Out of range, division by zero.
        Eval::RealToInt(_) => false,
        Eval::IntInt(_) => matches!(prim, Prim::AddInt | Prim::SubInt | Prim::MulInt),
        Eval::Structural => {
            matches!(prim, Prim::Length | Prim::Not | Prim::ZeroLike | Prim::Scale | Prim::StopGradient)
        }
    }
}
