//! Which terms always have a value.

use crate::facts::Facts;
use gradus_core::prim::Eval;
use gradus_core::traverse::{for_each_child, with_stack};
use gradus_core::{Prim, Term, TermKind, Type};

/// Whether evaluating the term ends with a value, whatever the values of its variables: no calls, which may run for ever, no
/// operation that can stop the program, and nothing else that the settings ask to keep.
pub fn is_total(facts: &Facts, term: &Term) -> bool {
    let here = match &*term.kind {
        TermKind::Lambda(_) => return true,
        TermKind::App(..) | TermKind::Derive { .. } | TermKind::Lift { .. } | TermKind::Global(_) => false,
        // Rows of an array can differ in length.
        TermKind::ArrayLiteral { element, .. } => !has_arrays(element),
        TermKind::Prim { prim, types, args, site } => {
            let info = prim.info();
            let watched = (facts.settings.kinks && site.differentiated && info.kinks.is_some())
                || (facts.settings.domain && info.domain.is_some());
            !watched && (is_total_prim(*prim) || is_safe(facts, *prim, types, args))
        }
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
    with_stack(|| for_each_child(term, &mut |child| all = all && facts.is_total(child)));
    all
}

pub fn is_total_prim(prim: Prim) -> bool {
    match prim.info().eval {
        Eval::Real(_) | Eval::RealReal(_) | Eval::RealInt(_) | Eval::IntReal(_) | Eval::IntToReal(_) | Eval::Int(_) => {
            true
        }
        // Out of range, division by zero.
        Eval::RealToInt(_) => false,
        Eval::IntInt(_) => matches!(prim, Prim::AddInt | Prim::SubInt | Prim::MulInt),
        Eval::Structural => {
            let compares = matches!(
                prim,
                Prim::Equal | Prim::NotEqual | Prim::Less | Prim::LessEqual | Prim::Greater | Prim::GreaterEqual
            );
            compares || matches!(prim, Prim::Length | Prim::Not | Prim::ZeroLike | Prim::Scale | Prim::StopGradient)
        }
    }
}

/// Whether a primitive that can fail cannot fail at these arguments.
fn is_safe(facts: &Facts, prim: Prim, types: &[Type], args: &[Term]) -> bool {
    match (prim, types, args) {
        (Prim::Get, _, [array, index]) => facts.is_inside(index, array),
        (Prim::Build, [element], [count, function]) => {
            let regular = !has_arrays(element) || has_regular_rows(facts, element, function);
            regular && facts.is_nonnegative(count) && is_total_function(facts, function)
        }
        (Prim::Ifold, _, [_, function, _]) => match &*function.kind {
            TermKind::Lambda(lambda) => is_total_function(facts, &lambda.body),
            _ => false,
        },
        (Prim::CheckSize, _, [array, count]) => facts.has_size(array, count),
        (Prim::VectorAdd | Prim::VectorSub | Prim::Inner, [Type::Real], _) => true,
        _ => false,
    }
}

fn is_total_function(facts: &Facts, function: &Term) -> bool {
    match &*function.kind {
        TermKind::Lambda(lambda) => facts.is_total(&lambda.body),
        _ => false,
    }
}

/// Whether all elements are arrays of one length that does not depend on the index.
fn has_regular_rows(facts: &Facts, element: &Type, function: &Term) -> bool {
    let (Type::Array(inner), TermKind::Lambda(lambda)) = (element, &*function.kind) else { return false };
    let mut row = &lambda.body;
    let mut inside = vec![lambda.param.clone()];
    while let TermKind::Let { var, body, .. } = &*row.kind {
        inside.push(var.clone());
        row = body;
    }
    let flat = match &*row.kind {
        // The rows of the rows are looked at when the row is.
        TermKind::Prim { prim: Prim::Build, .. } => true,
        _ => !has_arrays(inner),
    };
    flat && facts.size(row).is_some_and(|size| !inside.iter().any(|var| size.mentions(var)))
}

fn has_arrays(ty: &Type) -> bool {
    match ty {
        Type::Real | Type::Int | Type::Bool | Type::String | Type::Unit => false,
        Type::Tuple(parts) => parts.iter().any(has_arrays),
        Type::Var(_) | Type::Named(..) | Type::Fun(_) | Type::Array(_) => true,
    }
}
