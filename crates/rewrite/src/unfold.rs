//! Calls of global functions that are replaced by their text, within a budget.

use crate::facts::Facts;
use crate::known::Outcome;
use crate::size::{is_small, size};
use gradus_core::build::At;
use gradus_core::traverse::{for_each_child, with_stack, Copy};
use gradus_core::{Definition, Definitions, Global, Term, TermKind, Type};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Nodes that unfolding may add to one definition.
const MOST_ADDED: usize = 20_000;
/// A larger function is not copied.
const LARGEST: usize = 300;
/// Globals looked at to see whether a function calls itself; beyond these it counts as if.
const MOST_REACHED: usize = 60;

/// Nodes of the types of an instance.
const LARGEST_TYPE: usize = 60;

#[derive(Default)]
pub struct Unfolder {
    added: usize,
    known: FxHashMap<Global, Option<Arc<Definition>>>,
}

impl Unfolder {
    /// `f x => (fun x -> e) x` for a global function `f` that does not call itself.
    pub fn call(&mut self, facts: &Facts, term: &Term) -> Outcome {
        let TermKind::App(function, argument) = &*term.kind else { return None };
        let TermKind::Global(global) = &*function.kind else { return None };
        if facts.settings.origins || self.added > MOST_ADDED {
            return None;
        }
        let definitions = facts.definitions?;
        let known = self.known.entry(global.clone()).or_insert_with(|| unfoldable(definitions, global));
        let text = known.as_ref()?.term.as_ref()?;
        self.added += size(text);
        let copy = Copy::default().term(text);
        Some(("call_known", At(term.span).app(copy, argument.clone())))
    }
}

fn unfoldable(definitions: &dyn Definitions, global: &Global) -> Option<Arc<Definition>> {
    let definition = definitions.definition(global).ok()?;
    let text = definition.term.as_ref()?;
    let function = matches!(&*text.kind, TermKind::Lambda(_));
    (function && is_small(text, LARGEST) && !reaches_itself(definitions, global)).then_some(definition)
}

fn reaches_itself(definitions: &dyn Definitions, global: &Global) -> bool {
    let (mut known, mut queue) = (FxHashSet::default(), vec![global.clone()]);
    while let Some(next) = queue.pop() {
        let Ok(definition) = definitions.definition(&next) else { return true };
        let mut again = false;
        if let Some(text) = &definition.term {
            for_each_global(text, &mut |found| {
                again |= found == global;
                if known.insert(found.clone()) {
                    queue.push(found.clone());
                }
            });
        }
        if again || known.len() > MOST_REACHED || is_far(&next) {
            return true;
        }
    }
    false
}

/// Whether a global is the image of an image of an image ..., or an instance at a large type: by polymorphic recursion, and by functions that
/// are defined through their own derivative, there is no end of such.
fn is_far(global: &Global) -> bool {
    let types = match global {
        Global::Source { types, .. } | Global::Wrapper { types, .. } => types,
        Global::Derived { of, .. } => match &**of {
            Global::Derived { of: inner, .. } => return matches!(&**inner, Global::Derived { .. }) || is_far(inner),
            of => return is_far(of),
        },
    };
    let mut left = LARGEST_TYPE;
    !types.iter().all(|ty| fits(ty, &mut left))
}

fn fits(ty: &Type, left: &mut usize) -> bool {
    if *left == 0 {
        return false;
    }
    *left -= 1;
    match ty {
        Type::Var(_) | Type::Real | Type::Int | Type::Bool | Type::String | Type::Unit => true,
        Type::Tuple(parts) | Type::Named(_, parts) => parts.iter().all(|part| fits(part, left)),
        Type::Fun(parts) => fits(&parts.0, left) && fits(&parts.1, left),
        Type::Array(element) => fits(element, left),
    }
}

fn for_each_global(term: &Term, visit: &mut dyn FnMut(&Global)) {
    with_stack(|| {
        if let TermKind::Global(global) = &*term.kind {
            visit(global);
        }
        for_each_child(term, &mut |child| for_each_global(child, visit));
    })
}
