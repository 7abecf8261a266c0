//! What a definition refers to, directly or not.

use crate::error::DriverError;
use gradus_core::traverse::{for_each_child, with_stack};
use gradus_core::{Definition, Definitions, Global, Term, TermKind};
use gradus_source::Diagnostic;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

/// A function defined through its own derivative has no last definition.
const MOST_DEFINITIONS: usize = 10_000;
/// How far to look for a function that is only known when the program runs; beyond, there may be one.
const MOST_LOOKED_AT: usize = 400;

/// A definition and all that it refers to. A function that is differentiated but only known when the program runs is an error.
pub fn reachable(definitions: &dyn Definitions, root: Global) -> Result<Vec<Arc<Definition>>, Box<Diagnostic>> {
    let found = follow(definitions, vec![root], MOST_DEFINITIONS)?;
    found.ok_or_else(|| Box::new(DriverError::EndlessDerivative.diagnostic()))
}

/// Whether every function that the term differentiates, directly or not, is known from its text.
pub fn is_known(definitions: &dyn Definitions, term: &Term) -> bool {
    let mut roots = Vec::new();
    let all = for_each_global(term, &mut |global| roots.push(global.clone()));
    all.is_ok() && matches!(follow(definitions, roots, MOST_LOOKED_AT), Ok(Some(_)))
}

/// Nothing if there are more than so many.
fn follow(
    definitions: &dyn Definitions,
    roots: Vec<Global>,
    most: usize,
) -> Result<Option<Vec<Arc<Definition>>>, Box<Diagnostic>> {
    let mut known: HashSet<Global> = roots.iter().cloned().collect();
    let mut queue = VecDeque::from(roots);
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
        if found.len() > most {
            return Ok(None);
        }
    }
    Ok(Some(found))
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
