//! The directed pass: what needs no search. Each round walks over the term once and uses rules wherever they apply.
//!
//! Every step keeps the value (bit for bit, if the rules are exact), takes no more evaluator steps, and leaves alone what can fail: that
//! is neither dropped nor moved, so that a program stops with the same error as before.

use crate::facts::Facts;
use crate::lets::{self, Decision};
use crate::matching::{self, head, head_of, Head};
use crate::occurrences::Occurrences;
use crate::steps::Trail;
use crate::table::{rules, Class, Rule, Use};
use crate::unfold::Unfolder;
use crate::{arrays, known};
use gradus_core::build::At;
use gradus_core::traverse::{map_children, with_stack};
use gradus_core::{Term, TermKind, Type, Var};
use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// Rules tried again at the place where one was used.
const MOST_IN_PLACE: usize = 8;

pub struct Pass<'a, 'f> {
    pub facts: &'a mut Facts<'f>,
    pub occurrences: Occurrences,
    pub trail: &'a mut Trail,
    pub unfolder: &'a mut Unfolder,
    /// Substitutions that are done when the variable is met.
    pending: FxHashMap<Var, Pending>,
}

enum Pending {
    Term(Term),
    Parts(Vec<(Var, Type, Term)>),
}

/// The rules that patterns describe, by the head of their left side.
fn by_head() -> &'static FxHashMap<Head, Vec<&'static Rule>> {
    static INDEX: LazyLock<FxHashMap<Head, Vec<&'static Rule>>> = LazyLock::new(|| {
        let mut index: FxHashMap<Head, Vec<&'static Rule>> = FxHashMap::default();
        for rule in rules().iter().filter(|rule| rule.usage == Use::Simplify) {
            index.entry(head(&rule.left_pattern)).or_default().push(rule);
        }
        index
    });
    &INDEX
}

/// The first rule that applies to a term as it stands, and what it makes of it.
pub fn reduce(facts: &Facts, occurrences: &Occurrences, term: &Term) -> known::Outcome {
    let class = facts.settings.class;
    let candidates = by_head().get(&head_of(term)).map_or(&[][..], |rules| rules);
    let by_pattern = candidates
        .iter()
        .filter(|rule| rule.class <= class)
        .find_map(|rule| matching::apply(rule, facts, term).map(|after| (rule.name, after)));
    by_pattern
        .or_else(|| known::reduce(facts, term))
        .or_else(|| arrays::reduce(facts, occurrences, class == Class::Reassociates, term))
        .or_else(|| lets::out(facts, term))
}

impl<'a, 'f> Pass<'a, 'f> {
    pub fn new(facts: &'a mut Facts<'f>, trail: &'a mut Trail, unfolder: &'a mut Unfolder, term: &Term) -> Self {
        let occurrences = Occurrences::of(term, facts.settings.origins);
        Pass { facts, occurrences, trail, unfolder, pending: FxHashMap::default() }
    }

    pub fn term(&mut self, term: &Term) -> Term {
        with_stack(|| self.node(term))
    }

    fn child(&mut self, position: usize, child: &Term) -> Term {
        self.trail.path.push(position);
        let result = self.term(child);
        self.trail.path.pop();
        result
    }

    fn node(&mut self, term: &Term) -> Term {
        self.facts.enter(term);
        if let Some((var, index)) = lets::component(term) {
            if let Some(Pending::Parts(parts)) = self.pending.get(var) {
                return parts.get(index).map_or_else(|| term.clone(), |(part, _, _)| At(term.span).var(part));
            }
        }
        match &*term.kind {
            TermKind::Var(var, _) => match self.pending.get(var) {
                Some(Pending::Term(value)) => value.clone(),
                Some(Pending::Parts(_)) | None => term.clone(),
            },
            // The image of a function must keep the variables that its original captures.
            TermKind::Lambda(lambda) if lambda.origin.is_some() && self.facts.settings.origins => term.clone(),
            TermKind::Let { var, scheme, bound, body } if scheme.vars.is_empty() => {
                self.definition(At(term.span), var, &scheme.ty, bound, body)
            }
            TermKind::LetRec { bindings, body } => {
                let unused = |var: &Var| self.occurrences.uses(var).count == 0 && !self.occurrences.uses(var).pinned;
                if bindings.iter().all(|(var, _, _)| unused(var)) {
                    self.trail.fire("let_dead", || term.clone(), || body.clone());
                    return self.term(body);
                }
                self.children(term)
            }
            _ => self.children(term),
        }
    }

    fn children(&mut self, term: &Term) -> Term {
        let mut position = 0;
        let mut current = map_children(term, &mut |child| {
            position += 1;
            self.child(position - 1, child)
        });
        // Counts may have changed under loops with simplified sizes.
        self.facts.enter(&current);
        for _ in 0..MOST_IN_PLACE {
            let outcome = reduce(self.facts, &self.occurrences, &current);
            let outcome = outcome.or_else(|| self.unfolder.call(self.facts, &current));
            let Some((rule, after)) = outcome else { break };
            self.trail.fire(rule, || current.clone(), || after.clone());
            current = after;
        }
        current
    }

    fn definition(&mut self, at: At, var: &Var, ty: &Type, bound: &Term, body: &Term) -> Term {
        let bound = self.child(0, bound);
        let before = || at.bind(var, ty.clone(), bound.clone(), body.clone());
        if let Some((rule, after)) = lets::check_source(self.facts, &self.occurrences, &before()) {
            self.trail.fire(rule, before, || after.clone());
            if let TermKind::Let { scheme, bound, body, .. } = &*after.kind {
                return self.keep(at, var, &scheme.ty, bound.clone(), body);
            }
        }
        match lets::decide(self.facts, &self.occurrences, var, &bound, body) {
            Decision::Drop(rule) => {
                self.trail.fire(rule, before, || body.clone());
                self.term(body)
            }
            Decision::Inline(rule) => {
                // A derivation shows each step; otherwise the substitution waits until the variable is met.
                if self.trail.recording {
                    let after = matching::replace_variable(body, var, &bound);
                    self.trail.fire(rule, before, || after.clone());
                    return self.term(&after);
                }
                self.trail.fired += 1;
                self.pending.insert(var.clone(), Pending::Term(bound));
                self.term(body)
            }
            Decision::Split(rule) => match lets::parts(self.facts, var, &bound) {
                Some(parts) => self.split(rule, &before(), parts, var, body),
                None => self.keep(at, var, ty, bound, body),
            },
            Decision::Keep => match lets::rotate(at, var, ty, &bound, body) {
                Some(after) => {
                    self.trail.fire("let_let", before, || after.clone());
                    self.rotated(&after, body)
                }
                None => self.keep(at, var, ty, bound, body),
            },
        }
    }

    fn keep(&mut self, at: At, var: &Var, ty: &Type, bound: Term, body: &Term) -> Term {
        self.facts.note_value(var, &bound);
        let checked = self.facts.learn_check(&bound);
        let body = self.child(1, body);
        if checked {
            self.facts.forget_check();
        }
        at.bind(var, ty.clone(), bound, body)
    }

    /// After `let_let`, only the innermost body is left to walk over.
    fn rotated(&mut self, term: &Term, rest: &Term) -> Term {
        self.facts.enter(term);
        let TermKind::Let { body, .. } = &*term.kind else { return self.term(rest) };
        self.facts.enter(body);
        self.trail.path.extend([1, 1]);
        let rest = self.term(rest);
        self.trail.path.truncate(self.trail.path.len() - 2);
        let inner_bound = |term: &Term| match &*term.kind {
            TermKind::Let { bound, .. } => bound.clone(),
            _ => term.clone(),
        };
        let inner = rebuild(body, [inner_bound(body), rest]);
        rebuild(term, [inner_bound(term), inner])
    }

    fn split(
        &mut self,
        rule: &'static str,
        before: &Term,
        parts: Vec<(Var, Type, Term)>,
        var: &Var,
        body: &Term,
    ) -> Term {
        let at = At(before.span);
        parts.iter().for_each(|(part, ty, _)| self.facts.note_type(part, ty));
        let depth = self.trail.path.len();
        let body = match self.trail.recording {
            true => {
                let after = lets::replace_components(body, var, &parts);
                self.trail.fire(rule, || before.clone(), || lets::wrap(at, &parts, after.clone()));
                after
            }
            false => {
                self.trail.fired += 1;
                self.pending.insert(var.clone(), Pending::Parts(parts.clone()));
                body.clone()
            }
        };
        self.trail.path.extend(parts.iter().map(|_| 1));
        let body = self.term(&body);
        self.trail.path.truncate(depth);
        lets::wrap(at, &parts, body)
    }
}

fn rebuild(term: &Term, parts: [Term; 2]) -> Term {
    let mut parts = parts.into_iter();
    map_children(term, &mut |child| parts.next().unwrap_or_else(|| child.clone()))
}
