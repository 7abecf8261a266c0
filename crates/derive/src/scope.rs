//! The types of the variables around a function. Binders are unique within a definition, so one flat map per definition will do.

use gradus_core::traverse::{for_each_child, with_stack};
use gradus_core::{Lambda, Term, TermKind, Type, Var};
use rustc_hash::FxHashMap;
use std::sync::Arc;

pub type Scope = Arc<FxHashMap<Var, Type>>;

/// Adds the type of every binder in a term.
pub fn add_binders(term: &Term, types: &mut FxHashMap<Var, Type>) {
    with_stack(|| {
        match &*term.kind {
            TermKind::Lambda(l) => {
                types.insert(l.param.clone(), l.ty.clone());
            }
            TermKind::Let { var, scheme, .. } => {
                types.insert(var.clone(), scheme.ty.clone());
            }
            TermKind::LetRec { bindings, .. } => {
                types.extend(bindings.iter().map(|(v, s, _)| (v.clone(), s.ty.clone())));
            }
            TermKind::Case { arms, .. } => {
                types.extend(arms.iter().flat_map(|arm| arm.vars.iter().cloned()));
            }
            TermKind::Var(..)
            | TermKind::Global(_)
            | TermKind::Literal(_)
            | TermKind::App(..)
            | TermKind::Prim { .. }
            | TermKind::Tuple(_)
            | TermKind::Proj { .. }
            | TermKind::Construct { .. }
            | TermKind::If { .. }
            | TermKind::ArrayLiteral { .. }
            | TermKind::Derive { .. }
            | TermKind::Lift { .. } => {}
        }
        for_each_child(term, &mut |child| add_binders(child, types));
    })
}

/// Calls `f` on every function in a term.
pub fn for_each_lambda(term: &Term, f: &mut dyn FnMut(&Arc<Lambda>)) {
    with_stack(|| {
        if let TermKind::Lambda(l) = &*term.kind {
            f(l);
        }
        for_each_child(term, &mut |child| for_each_lambda(child, f));
    })
}
