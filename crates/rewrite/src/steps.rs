//! The derivation that an optimised term comes with: which rule was used where, in order.

use gradus_core::traverse::map_children;
use gradus_core::Term;

/// One use of a rule. Replacing the part at `path`, which is `before`, by `after` gives the next term of the derivation.
#[derive(Clone, Debug)]
pub struct Step {
    pub rule: &'static str,
    /// Used from right to left: `after => before` is the instance.
    pub reversed: bool,
    /// From the root: which child, counted in order of evaluation, at each node.
    pub path: Vec<usize>,
    pub before: Term,
    pub after: Term,
}

/// Where a pass is, and what it has done.
#[derive(Default)]
pub struct Trail {
    /// Whether to keep the steps and not only to count them.
    pub recording: bool,
    pub steps: Vec<Step>,
    pub path: Vec<usize>,
    /// How many rules were used.
    pub fired: usize,
}

impl Trail {
    pub fn fire(&mut self, rule: &'static str, before: impl FnOnce() -> Term, after: impl FnOnce() -> Term) {
        self.fired += 1;
        if self.recording {
            let path = self.path.clone();
            self.steps.push(Step { rule, reversed: false, path, before: before(), after: after() });
        }
    }
}

/// The term with the part at a path replaced; `None` if there is no such part.
pub fn replace(term: &Term, path: &[usize], by: &Term) -> Option<Term> {
    let Some((first, rest)) = path.split_first() else { return Some(by.clone()) };
    let (mut position, mut done) = (0, None);
    let changed = map_children(term, &mut |child| {
        let here = position == *first;
        position += 1;
        if !here {
            return child.clone();
        }
        let inner = replace(child, rest, by);
        done = Some(inner.is_some());
        inner.unwrap_or_else(|| child.clone())
    });
    (done == Some(true)).then_some(changed)
}

/// The part at a path.
pub fn part(term: &Term, path: &[usize]) -> Option<Term> {
    let Some((first, rest)) = path.split_first() else { return Some(term.clone()) };
    let (mut position, mut found) = (0, None);
    gradus_core::traverse::for_each_child(term, &mut |child| {
        if position == *first {
            found = Some(child.clone());
        }
        position += 1;
    });
    part(&found?, rest)
}
