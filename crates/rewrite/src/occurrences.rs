//! How often each variable is used, and whether under a function: what decides inlining.

use gradus_core::traverse::{for_each_child, with_stack};
use gradus_core::{Term, TermKind, Var};
use rustc_hash::FxHashMap;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    pub count: usize,
    /// Whether some use stands inside a function that does not bind the variable itself: such a use may run many times, or never.
    pub under_lambda: bool,
}

#[derive(Default)]
pub struct Occurrences {
    uses: FxHashMap<Var, Uses>,
}

impl Occurrences {
    pub fn of(term: &Term) -> Self {
        let mut found = Occurrences::default();
        found.walk(term, 0, &mut FxHashMap::default());
        found
    }

    pub fn uses(&self, var: &Var) -> Uses {
        self.uses.get(var).copied().unwrap_or_default()
    }

    /// `binding_depth` maps a variable to the number of functions around its binder.
    fn walk(&mut self, term: &Term, depth: usize, binding_depth: &mut FxHashMap<Var, usize>) {
        with_stack(|| {
            gradus_core::traverse::for_each_binder(term, &mut |var| {
                let inside = usize::from(matches!(&*term.kind, TermKind::Lambda(_)));
                binding_depth.insert(var.clone(), depth + inside);
            });
            match &*term.kind {
                TermKind::Var(var, _) => {
                    let bound_at = binding_depth.get(var).copied().unwrap_or(0);
                    let uses = self.uses.entry(var.clone()).or_default();
                    uses.count += 1;
                    uses.under_lambda |= depth > bound_at;
                }
                TermKind::Lambda(lambda) => self.walk(&lambda.body, depth + 1, binding_depth),
                _ => for_each_child(term, &mut |child| self.walk(child, depth, binding_depth)),
            }
        })
    }
}
