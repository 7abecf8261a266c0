//! Matching a pattern against a term, and writing the other side.

use crate::condition::Condition;
use crate::equal::same;
use crate::facts::{is_atom, Facts};
use crate::pattern::{Name, Pattern};
use crate::table::Rule;
use gradus_core::build::At;
use gradus_core::traverse::{for_each_child, with_stack, Copy};
use gradus_core::{Arm, Literal, Prim, Term, TermKind, Type, TypeName, Var};

/// What stands for the names of a pattern.
#[derive(Default)]
pub struct Bindings {
    metas: Vec<(Name, Term)>,
    binders: Vec<(Name, Var, Type)>,
}

impl Bindings {
    pub fn meta(&self, name: Name) -> Option<&Term> {
        self.metas.iter().find(|(known, _)| *known == name).map(|(_, term)| term)
    }

    pub fn binder(&self, name: Name) -> Option<(&Var, &Type)> {
        self.binders.iter().find(|(known, _, _)| *known == name).map(|(_, var, ty)| (var, ty))
    }
}

/// The right side of a rule at a term that its left side matches and that meets its conditions.
pub fn apply(rule: &Rule, facts: &Facts, term: &Term) -> Option<Term> {
    let mut bindings = Bindings::default();
    if !matches(&rule.left_pattern, term, &mut bindings) {
        return None;
    }
    if !rule.conditions.iter().all(|condition| holds(condition, facts, &bindings)) {
        return None;
    }
    let mut writer = Writer { at: At(term.span), facts, bindings: &bindings, used: Vec::new() };
    writer.write(&rule.right_pattern)
}

pub fn matches(pattern: &Pattern, term: &Term, bindings: &mut Bindings) -> bool {
    match (pattern, &*term.kind) {
        (Pattern::Meta(name), _) => match bindings.meta(name) {
            Some(known) => same(known, term),
            None => {
                bindings.metas.push((name, term.clone()));
                true
            }
        },
        (Pattern::Bound(name), TermKind::Var(var, _)) => bindings.binder(name).is_some_and(|(known, _)| known == var),
        (Pattern::Real(x), TermKind::Literal(Literal::Real(y))) => x.to_bits() == y.to_bits(),
        (Pattern::Int(k), TermKind::Literal(Literal::Int(l))) => k == l,
        (Pattern::Bool(p), TermKind::Literal(Literal::Bool(q))) => p == q,
        (Pattern::Prim(wanted, ty, patterns), TermKind::Prim { prim, types, args, site }) => {
            let watched = site.differentiated && prim.info().kinks.is_some();
            let right_type = ty.as_ref().is_none_or(|ty| types.first() == Some(ty));
            wanted == prim && right_type && !watched && all_match(patterns, args, bindings)
        }
        (Pattern::Lambda(name, body), TermKind::Lambda(lambda)) if lambda.origin.is_none() => {
            bindings.binders.push((name, lambda.param.clone(), lambda.ty.clone()));
            matches(body, &lambda.body, bindings)
        }
        (Pattern::App(f, x), TermKind::App(function, argument)) => {
            matches(f, function, bindings) && matches(x, argument, bindings)
        }
        (Pattern::Let(name, first, second), TermKind::Let { var, scheme, bound, body }) if scheme.vars.is_empty() => {
            bindings.binders.push((name, var.clone(), scheme.ty.clone()));
            matches(first, bound, bindings) && matches(second, body, bindings)
        }
        (Pattern::If(parts), TermKind::If { condition, then, otherwise }) => {
            matches(&parts[0], condition, bindings)
                && matches(&parts[1], then, bindings)
                && matches(&parts[2], otherwise, bindings)
        }
        (Pattern::Tuple(patterns), TermKind::Tuple(items)) => all_match(patterns, items, bindings),
        (Pattern::Proj(wanted, inner), TermKind::Proj { index, term }) => {
            wanted == index && matches(inner, term, bindings)
        }
        (Pattern::Inject(wanted, inner), TermKind::Construct { name, tag, args, .. }) => match &args[..] {
            [arg] => is_either(name) && wanted == tag && matches(inner, arg, bindings),
            _ => false,
        },
        (Pattern::Match(inner, cases), TermKind::Case { scrutinee, arms, default: None }) => {
            let [(left, first), (right, second)] = cases;
            let both = [(0, left, first), (1, right, second)];
            arms.len() == 2
                && matches(inner, scrutinee, bindings)
                && both.into_iter().all(|(tag, name, body)| match arms.iter().find(|arm| arm.tag == tag) {
                    Some(Arm { vars, body: found, .. }) if vars.len() == 1 => {
                        bindings.binders.push((name, vars[0].0.clone(), vars[0].1.clone()));
                        matches(body, found, bindings)
                    }
                    _ => false,
                })
        }
        (Pattern::Array(patterns), TermKind::ArrayLiteral { items, .. }) => all_match(patterns, items, bindings),
        _ => false,
    }
}

fn is_either(name: &TypeName) -> bool {
    &*name.base == "either"
}

fn all_match(patterns: &[Pattern], terms: &[Term], bindings: &mut Bindings) -> bool {
    patterns.len() == terms.len() && patterns.iter().zip(terms).all(|(p, t)| matches(p, t, bindings))
}

fn holds(condition: &Condition, facts: &Facts, bindings: &Bindings) -> bool {
    let on = |name: &Name, ask: &dyn Fn(&Term) -> bool| bindings.meta(name).is_some_and(ask);
    match condition {
        Condition::Total(a) => on(a, &|a| facts.is_total(a)),
        Condition::OneTotal(a, b) => on(a, &|a| facts.is_total(a)) || on(b, &|b| facts.is_total(b)),
        Condition::Atom(a) => on(a, &is_atom),
        Condition::Below(k, Pattern::Meta(n)) => on(k, &|k| on(n, &|n| facts.is_below(k, n))),
        Condition::Below(..) => false,
        Condition::NonNegative(n) => on(n, &|n| facts.is_nonnegative(n)),
        Condition::Absent(x, e) => bindings.binder(x).is_some_and(|(var, _)| on(e, &|e| !mentions(e, var))),
        Condition::Size(u, n) => on(u, &|u| on(n, &|n| facts.has_size(u, n))),
        Condition::Same(m, n) => on(m, &|m| on(n, &|n| facts.is_same_count(m, n))),
        // Asked of variables, whose uses the directed pass has counted.
        Condition::Once(..) | Condition::Next(..) => false,
    }
}

/// Whether a variable occurs.
pub fn mentions(term: &Term, var: &Var) -> bool {
    with_stack(|| match &*term.kind {
        TermKind::Var(found, _) => found == var,
        _ => {
            let mut any = false;
            for_each_child(term, &mut |child| any = any || mentions(child, var));
            any
        }
    })
}

/// A term with another in place of a variable, with binders of its own.
pub fn substitute(term: &Term, var: &Var, by: &Term) -> Term {
    let mut copy = Copy::default();
    copy.terms.insert(var.clone(), by.clone());
    copy.term(term)
}

struct Writer<'a, 'f> {
    at: At,
    facts: &'a Facts<'f>,
    bindings: &'a Bindings,
    /// What has been written once; binders must not be written twice.
    used: Vec<Name>,
}

impl Writer<'_, '_> {
    fn take(&mut self, name: Name) -> Option<Term> {
        let term = self.bindings.meta(name)?;
        if self.used.contains(&name) {
            return Some(Copy::default().term(term));
        }
        self.used.push(name);
        Some(term.clone())
    }

    fn write_all(&mut self, patterns: &[Pattern]) -> Option<Vec<Term>> {
        patterns.iter().map(|pattern| self.write(pattern)).collect()
    }

    fn write(&mut self, pattern: &Pattern) -> Option<Term> {
        let at = self.at;
        Some(match pattern {
            Pattern::Meta(name) => self.take(name)?,
            Pattern::Bound(name) => at.var(self.bindings.binder(name)?.0),
            Pattern::Real(x) => at.real(*x),
            Pattern::Int(k) => at.int(*k),
            Pattern::Bool(p) => at.bool(*p),
            Pattern::Prim(prim, _, patterns) => {
                let args = self.write_all(patterns)?;
                let types = self.facts.type_arguments(*prim, &args)?;
                at.prim_at(*prim, types, args)
            }
            Pattern::Lambda(name, body) => {
                let (var, ty) = self.bindings.binder(name)?;
                at.lambda(var, ty.clone(), self.write(body)?)
            }
            Pattern::App(f, x) => at.app(self.write(f)?, self.write(x)?),
            Pattern::Let(name, bound, body) => {
                let (var, ty) = self.bindings.binder(name)?;
                at.bind(var, ty.clone(), self.write(bound)?, self.write(body)?)
            }
            Pattern::If(parts) => at.if_(self.write(&parts[0])?, self.write(&parts[1])?, self.write(&parts[2])?),
            Pattern::Tuple(patterns) => at.tuple(self.write_all(patterns)?),
            Pattern::Proj(index, inner) => at.proj(self.write(inner)?, *index),
            Pattern::Substitute { body, var, by } => {
                let by = self.write(by)?;
                let (var, _) = self.bindings.binder(var)?;
                substitute(self.bindings.meta(body)?, var, &by)
            }
            // No right side makes one.
            Pattern::Inject(..) | Pattern::Match(..) | Pattern::Array(_) => return None,
        })
    }
}

/// The primitives that a rule can be tried at, to find the rules of a term quickly.
pub fn head(pattern: &Pattern) -> Head {
    match pattern {
        Pattern::Prim(prim, _, _) => Head::Prim(*prim),
        Pattern::Lambda(..) => Head::Lambda,
        Pattern::App(..) => Head::App,
        Pattern::If(_) => Head::If,
        Pattern::Proj(..) => Head::Proj,
        Pattern::Match(..) => Head::Case,
        Pattern::Real(_) => Head::Literal,
        _ => Head::Other,
    }
}

pub fn head_of(term: &Term) -> Head {
    match &*term.kind {
        TermKind::Prim { prim, .. } => Head::Prim(*prim),
        TermKind::Lambda(_) => Head::Lambda,
        TermKind::App(..) => Head::App,
        TermKind::If { .. } => Head::If,
        TermKind::Proj { .. } => Head::Proj,
        TermKind::Case { .. } => Head::Case,
        TermKind::Literal(_) => Head::Literal,
        TermKind::Var(..)
        | TermKind::Global(_)
        | TermKind::Let { .. }
        | TermKind::LetRec { .. }
        | TermKind::Tuple(_)
        | TermKind::Construct { .. }
        | TermKind::ArrayLiteral { .. }
        | TermKind::Derive { .. }
        | TermKind::Lift { .. } => Head::Other,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Head {
    Prim(Prim),
    Lambda,
    App,
    If,
    Proj,
    Case,
    Literal,
    Other,
}

/// A term with another in place of a variable that occurs where it keeps its meaning. Binders stay as they are, so that the other term
/// must have none, or the variable must occur once.
pub fn replace_variable(term: &Term, var: &Var, by: &Term) -> Term {
    with_stack(|| match &*term.kind {
        TermKind::Var(found, _) if found == var => by.clone(),
        _ => gradus_core::traverse::map_children(term, &mut |child| replace_variable(child, var, by)),
    })
}
