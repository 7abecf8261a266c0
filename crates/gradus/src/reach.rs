//! What a definition refers to, directly or not.

use crate::error::DriverError;
use gradus_core::traverse::{for_each_child, with_stack};
use gradus_core::{Definition, Definitions, Global, Term, TermKind};
use gradus_source::Diagnostic;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// A function defined through its own derivative has no last definition.
const MOST_DEFINITIONS: usize = 10_000;
/// How far to look for a function that is only known when the program runs; beyond, there may be one.
const MOST_LOOKED_AT: usize = 150;
/// The instances of one definition under polymorphic recursion, and the derivatives of a function that is defined through its own, grow
/// with each step, so that they must be given up long before there are many.
const MOST_INSTANCES: usize = 4;
const MOST_DERIVATIVES: usize = 2;

/// A definition and all that it refers to. A function that is differentiated but only known when the program runs is an error.
pub fn reachable(definitions: &dyn Definitions, root: Global) -> Result<Vec<Arc<Definition>>, Box<Diagnostic>> {
    let found = follow(definitions, vec![root], MOST_DEFINITIONS, &mut |_| false)?;
    found.ok_or_else(|| Box::new(DriverError::EndlessDerivative.diagnostic()))
}

/// Whether every function that the term differentiates, directly or not, is known from its text.
pub fn is_known(definitions: &dyn Definitions, term: &Term) -> bool {
    let mut roots = Vec::new();
    let all = for_each_global(term, &mut |global| roots.push(global.clone()));
    let mut instances: HashMap<String, usize> = HashMap::new();
    let mut grows = |global: &Global| {
        let (source, derivatives) = origin(global);
        // Wrappers are written from types of the program, so that only definitions need be counted.
        let many = source.is_some_and(|name| {
            let count = instances.entry(name).or_insert(0);
            *count += 1;
            *count > MOST_INSTANCES
        });
        many || derivatives > MOST_DERIVATIVES
    };
    all.is_ok() && matches!(follow(definitions, roots, MOST_LOOKED_AT, &mut grows), Ok(Some(_)))
}

/// The definition that a global is an instance or a derivative of, and how many derivatives were taken.
fn origin(global: &Global) -> (Option<String>, usize) {
    let (mut at, mut path, mut derivatives) = (global, String::new(), 0);
    loop {
        match at {
            Global::Source { name, .. } => return (Some(path + name), derivatives),
            Global::Wrapper { modes, .. } => return (None, derivatives + modes.len()),
            Global::Derived { mode, of } => {
                path += mode.key();
                derivatives += 1;
                at = of;
            }
        }
    }
}

/// Nothing if there are more than so many, or one is met that there may be no end of.
fn follow(
    definitions: &dyn Definitions,
    roots: Vec<Global>,
    most: usize,
    endless: &mut dyn FnMut(&Global) -> bool,
) -> Result<Option<Vec<Arc<Definition>>>, Box<Diagnostic>> {
    let mut known: HashSet<Global> = roots.iter().cloned().collect();
    let mut queue = VecDeque::from(roots);
    let mut found = Vec::new();
    while let Some(global) = queue.pop_front() {
        if endless(&global) {
            return Ok(None);
        }
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
