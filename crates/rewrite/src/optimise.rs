//! The whole optimiser: rounds of the directed pass, then the search, until nothing changes; then sharing.

use crate::directed::Pass;
use crate::facts::Facts;
use crate::search::Search;
use crate::settings::Settings;
use crate::share::share;
use crate::steps::{Step, Trail};
use crate::unfold::Unfolder;
use gradus_core::traverse::{map_children, with_stack};
use gradus_core::{Definitions, Lambda, Term, TermKind};

/// Rounds of the directed pass, each linear in the size of the term, and of search with such rounds after it.
const MOST_ROUNDS: usize = 60;
const MOST_SEARCHES: usize = 3;

/// What to optimise with.
#[derive(Clone, Copy, Default)]
pub struct Optimiser<'a> {
    pub settings: Settings,
    /// Where calls of global functions find their text; without it they stay.
    pub definitions: Option<&'a dyn Definitions>,
    /// Whether to keep the derivation.
    pub explain: bool,
}

/// A term that is as good as another, and why.
pub struct Optimised {
    pub term: Term,
    /// How many rules were used.
    pub fired: usize,
    /// The derivation, if it was asked for: from [`Optimised::start`], each step gives the next term; the last is `term`.
    pub steps: Vec<Step>,
    pub start: Term,
}

impl Optimiser<'_> {
    pub fn run(&self, term: &Term) -> Optimised {
        let mut trail = Trail { recording: self.explain, ..Trail::default() };
        let mut unfolder = Unfolder::default();
        let start = if self.settings.origins { term.clone() } else { forget_origins(term) };
        let mut current = start.clone();
        for _ in 0..MOST_SEARCHES {
            current = self.simplify(current, &mut trail, &mut unfolder);
            let before = trail.fired;
            let mut facts = Facts::new(self.settings, self.definitions);
            current = Search { facts: &mut facts, trail: &mut trail }.term(&current);
            if trail.fired == before {
                break;
            }
        }
        current = self.simplify(current, &mut trail, &mut unfolder);
        let before = trail.fired;
        current = share(&current, self.settings, &mut trail);
        if trail.fired > before {
            // What turned out to be used once goes back to its place.
            current = self.simplify(current, &mut trail, &mut unfolder);
        }
        Optimised { term: current, fired: trail.fired, steps: trail.steps, start }
    }

    fn simplify(&self, mut current: Term, trail: &mut Trail, unfolder: &mut Unfolder) -> Term {
        for _ in 0..MOST_ROUNDS {
            let before = trail.fired;
            let mut facts = Facts::new(self.settings, self.definitions);
            let mut pass = Pass::new(&mut facts, trail, unfolder, &current);
            current = pass.term(&current);
            if trail.fired == before {
                break;
            }
        }
        current
    }
}

/// The same code without the memory of what it was made from: where no function is differentiated any more.
pub fn forget_origins(term: &Term) -> Term {
    with_stack(|| {
        let inner = map_children(term, &mut forget_origins);
        match &*inner.kind {
            TermKind::Lambda(lambda) if lambda.origin.is_some() => {
                let lambda = Lambda { origin: None, ..(**lambda).clone() };
                Term::new(TermKind::Lambda(std::sync::Arc::new(lambda)), inner.span)
            }
            _ => inner,
        }
    })
}
