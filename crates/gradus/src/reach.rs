//! What a definition refers to, directly or not.

use crate::error::DriverError;
use gradus_core::traverse::{for_each_child, with_stack};
use gradus_core::{Definition, Definitions, Global, Term, TermKind};
use gradus_source::Diagnostic;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

/// A function defined through its own derivative has no last definition.
const MOST_DEFINITIONS: usize = 10_000;

/// A definition and all that it refers to. A function that is differentiated but only known when the program runs is an error.
pub fn reachable(definitions: &dyn Definitions, root: Global) -> Result<Vec<Arc<Definition>>, Box<Diagnostic>> {
    let mut known = HashSet::from([root.clone()]);
    let mut queue = VecDeque::from([root]);
    let mut found = Vec::new();
    while let Some(global) = queue.pop_front() {
        let definition = definitions.definition(&global)?;
        if let Some(term) = &definition.term {
            for_each_global(term, &mut |global| {
                if known.insert(global.clone()) {
                    queue.push_back(global.clone());
                }
            })?;
        }
        found.push(definition);
        if found.len() > MOST_DEFINITIONS {
            return Err(Box::new(DriverError::EndlessDerivative.diagnostic()));
        }
    }
    Ok(found)
}

fn for_each_global(term: &Term, visit: &mut dyn FnMut(&Global)) -> Result<(), Box<Diagnostic>> {
    with_stack(|| {
        match &*term.kind {
            TermKind::Global(global) => visit(global),
            TermKind::Lift { .. } => {
                return Err(Box::new(DriverError::UnknownFunction { span: term.span }.diagnostic()));
            }
            _ => {}
        }
        let mut result = Ok(());
        for_each_child(term, &mut |child| {
            if result.is_ok() {
                result = for_each_global(child, visit);
            }
        });
        result
    })
}
