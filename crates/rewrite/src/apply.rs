//! One rule, once: for tests, and for those who check derivations.

use crate::facts::Facts;
use crate::occurrences::Occurrences;
use crate::settings::Settings;
use crate::steps::Trail;
use crate::table::{Class, Rule, Use};
use crate::{arrays, known, lets, matching, share};
use gradus_core::traverse::{for_each_child, map_children, with_stack};
use gradus_core::{Term, TermKind};

/// The term after one use of the rule, at the first place where it applies.
pub fn apply_rule(rule: &Rule, settings: Settings, term: &Term) -> Option<Term> {
    let mut facts = Facts::new(settings, None);
    learn(&mut facts, term);
    let occurrences = Occurrences::of(term, settings.origins);
    anywhere(rule, &facts, &occurrences, term)
}

fn learn(facts: &mut Facts, term: &Term) {
    with_stack(|| {
        facts.enter(term);
        if let TermKind::Let { var, bound, .. } = &*term.kind {
            facts.note_value(var, bound);
        }
        for_each_child(term, &mut |child| learn(facts, child));
    })
}

fn anywhere(rule: &Rule, facts: &Facts, occurrences: &Occurrences, term: &Term) -> Option<Term> {
    if let Some(after) = here(rule, facts, occurrences, term) {
        return Some(after);
    }
    let mut done = false;
    let changed = map_children(term, &mut |child| match done {
        true => child.clone(),
        false => match anywhere(rule, facts, occurrences, child) {
            Some(after) => {
                done = true;
                after
            }
            None => child.clone(),
        },
    });
    done.then_some(changed)
}

fn here(rule: &Rule, facts: &Facts, occurrences: &Occurrences, term: &Term) -> Option<Term> {
    match rule.usage {
        Use::Simplify | Use::Search => matching::apply(rule, facts, term),
        Use::Code if rule.name == "share" => {
            let mut trail = Trail::default();
            let shared = share::share(term, facts.settings, &mut trail);
            (trail.fired > 0).then_some(shared)
        }
        Use::Code => {
            let outcomes = [
                known::reduce(facts, term),
                arrays::reduce(facts, occurrences, rule.class == Class::Reassociates, term),
                lets::reduce(facts, occurrences, term),
                lets::rotation(term),
                lets::out(facts, term),
            ];
            let found = outcomes.into_iter().flatten().find(|(name, _)| *name == rule.name);
            found.map(|(_, after)| after)
        }
    }
}
