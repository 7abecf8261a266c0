//! The types of the variables around a function: one flat map per definition.

use gradus_core::traverse::{for_each_child, with_stack};
use gradus_core::{Lambda, Term, TermKind, Type, Var};
use rustc_hash::FxHashMap;
use std::sync::Arc;

pub type Scope = Arc<FxHashMap<Var, Type>>;

/// Calls `f` on every function in a term.
pub fn for_each_lambda(term: &Term, f: &mut dyn FnMut(&Arc<Lambda>)) {
    with_stack(|| {
        if let TermKind::Lambda(l) = &*term.kind {
            f(l);
        }
        for_each_child(term, &mut |child| for_each_lambda(child, f));
    })
}
