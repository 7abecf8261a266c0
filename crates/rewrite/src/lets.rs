//! What to do with a definition: drop it, put it in its place, take it apart, or leave it.

use crate::arrays::components;
use crate::facts::{is_atom, Facts};
use crate::matching::substitute;
use crate::occurrences::{is_used_next, Occurrences};
use gradus_core::build::At;
use gradus_core::traverse::{map_children, with_stack};
use gradus_core::{Literal, Prim, Term, TermKind, Type, Var};

pub enum Decision {
    Keep,
    /// `let x = y in e => e`
    Drop(&'static str),
    /// `let x = y in e => e[x := y]`
    Inline(&'static str),
    /// `let x = (y, z) in e`, where `e` has only `x.0` and `x.1`; and the same for `[| y; z |]`, `x.(0)` and `x.(1)`
    Split(&'static str),
}

pub fn decide(facts: &Facts, occurrences: &Occurrences, var: &Var, bound: &Term, body: &Term) -> Decision {
    let uses = occurrences.uses(var);
    if uses.pinned || !occurrences.knows(var) {
        return Decision::Keep;
    }
    if uses.count == 0 {
        return if facts.is_total(bound) { Decision::Drop("let_dead") } else { Decision::Keep };
    }
    // A global is evaluated where it stands, and may fail there.
    if is_atom(bound) && (!matches!(&*bound.kind, TermKind::Global(_)) || is_function(facts, bound)) {
        return Decision::Inline("let_atom");
    }
    if uses.count == 1 {
        let function =
            matches!(&*bound.kind, TermKind::Lambda(lambda) if lambda.origin.is_none() || !facts.settings.origins);
        if (!uses.under_lambda || function) && facts.is_total(bound) {
            return Decision::Inline("let_once");
        }
        if !uses.under_lambda && is_used_next(body, var, &|term| facts.is_total(term)) {
            return Decision::Inline("let_next");
        }
    }
    match &*bound.kind {
        TermKind::Tuple(_) | TermKind::Construct { .. } if uses.projected == uses.count => Decision::Split("let_tuple"),
        TermKind::Prim { .. } if uses.projected == uses.count && components(facts, bound).is_some() => {
            Decision::Split("let_element")
        }
        TermKind::ArrayLiteral { items, element } => {
            // The elements of an array of arrays must have one length, which is checked when it is made.
            let scalar = matches!(element, Type::Real | Type::Int | Type::Bool);
            let inside = uses.picked == uses.count && uses.highest < items.len() as u64;
            if scalar && inside {
                Decision::Split("let_array")
            } else {
                Decision::Keep
            }
        }
        _ => Decision::Keep,
    }
}

/// Whether a global is a function, whose evaluation does nothing.
fn is_function(facts: &Facts, global: &Term) -> bool {
    let TermKind::Global(global) = &*global.kind else { return false };
    let definition = facts.definitions.and_then(|definitions| definitions.definition(global).ok());
    definition.and_then(|found| found.term.clone()).is_some_and(|term| matches!(&*term.kind, TermKind::Lambda(_)))
}

/// The parts of a tuple, a record or a known element of an array, with a variable for each.
pub fn parts(facts: &Facts, var: &Var, bound: &Term) -> Option<Vec<(Var, Type, Term)>> {
    let items = match &*bound.kind {
        TermKind::Tuple(items) | TermKind::Construct { args: items, .. } | TermKind::ArrayLiteral { items, .. } => {
            items.clone()
        }
        _ => components(facts, bound)?,
    };
    let part = |item: &Term| Some((Var::fresh(var.name.clone()), facts.synthesize(item)?, item.clone()));
    items.iter().map(part).collect()
}

/// Definitions around a term, the first outermost.
pub fn wrap(at: At, parts: &[(Var, Type, Term)], body: Term) -> Term {
    parts.iter().rev().fold(body, |body, (var, ty, item)| at.bind(var, ty.clone(), item.clone(), body))
}

/// The variable and the position of a component, `x.0` or `x.(0)`.
pub fn component(term: &Term) -> Option<(&Var, usize)> {
    let (whole, index) = match &*term.kind {
        TermKind::Proj { index, term: whole } => (whole, *index),
        TermKind::Prim { prim: Prim::Get, args, .. } => match &args[..] {
            [array, index] => match &*index.kind {
                TermKind::Literal(Literal::Int(k)) => (array, usize::try_from(*k).ok()?),
                _ => return None,
            },
            _ => return None,
        },
        _ => return None,
    };
    match &*whole.kind {
        TermKind::Var(var, _) => Some((var, index)),
        _ => None,
    }
}

/// A term with `parts` for the components of a variable.
pub fn replace_components(term: &Term, var: &Var, parts: &[(Var, Type, Term)]) -> Term {
    with_stack(|| match component(term) {
        Some((found, index)) if found == var => match parts.get(index) {
            Some((part, _, _)) => At(term.span).var(part),
            None => term.clone(),
        },
        _ => map_children(term, &mut |child| replace_components(child, var, parts)),
    })
}

/// `let w = check_size u n in e` with no `w` in `e`, where `u` was built over `v`: the size of `v` is checked, so that `u` may be dropped.
pub fn check_source(facts: &Facts, occurrences: &Occurrences, term: &Term) -> crate::known::Outcome {
    let TermKind::Let { var, scheme, bound, body } = &*term.kind else { return None };
    let TermKind::Prim { prim: Prim::CheckSize, args, .. } = &*bound.kind else { return None };
    let [array, count] = &args[..] else { return None };
    let unused = occurrences.knows(var) && occurrences.uses(var).count == 0 && !occurrences.uses(var).pinned;
    if !unused || !scheme.vars.is_empty() || !matches!(&*array.kind, TermKind::Var(..)) {
        return None;
    }
    let TermKind::Prim { prim: Prim::Build, args: built, .. } = &*facts.value(array).kind else { return None };
    let TermKind::Prim { prim: Prim::Length, args: over, .. } = &*built.first()?.kind else { return None };
    let over = over.first().filter(|over| matches!(&*over.kind, TermKind::Var(..)))?;
    let ty = facts.synthesize(over)?;
    let Type::Array(element) = &ty else { return None };
    let at = At(term.span);
    let check = At(bound.span).prim_at(Prim::CheckSize, [(**element).clone()], [over.clone(), count.clone()]);
    Some(("check_source", at.bind(var, ty.clone(), check, body.clone())))
}

/// The rules of definitions at one `let`, for those who have no pass.
pub fn reduce(facts: &Facts, occurrences: &Occurrences, term: &Term) -> crate::known::Outcome {
    let TermKind::Let { var, bound, body, .. } = &*term.kind else { return None };
    let at = At(term.span);
    if let Some(checked) = check_source(facts, occurrences, term) {
        return Some(checked);
    }
    match decide(facts, occurrences, var, bound, body) {
        Decision::Keep => None,
        Decision::Drop(rule) => Some((rule, body.clone())),
        Decision::Inline(rule) => Some((rule, substitute(body, var, bound))),
        Decision::Split(rule) => {
            let parts = parts(facts, var, bound)?;
            Some((rule, wrap(at, &parts, replace_components(body, var, &parts))))
        }
    }
}

pub fn rotation(term: &Term) -> crate::known::Outcome {
    let TermKind::Let { var, scheme, bound, body } = &*term.kind else { return None };
    rotate(At(term.span), var, &scheme.ty, bound, body).map(|after| ("let_let", after))
}

/// `let x = (let y = e in f) in b => let y = e in let x = f in b`
pub fn rotate(at: At, var: &Var, ty: &Type, bound: &Term, body: &Term) -> Option<Term> {
    let TermKind::Let { var: inner, scheme, bound: first, body: second } = &*bound.kind else { return None };
    let rest = at.bind(var, ty.clone(), second.clone(), body.clone());
    let (var, scheme, bound) = (inner.clone(), scheme.clone(), first.clone());
    Some(at.term(TermKind::Let { var, scheme, bound, body: rest }))
}

/// `f a (let x = e in b) => let x = e in f a b`: a definition among the operands comes out, if what is evaluated before it is total.
pub fn out(facts: &Facts, term: &Term) -> crate::known::Outcome {
    let operands = match &*term.kind {
        TermKind::Prim { .. } | TermKind::Tuple(_) | TermKind::Proj { .. } | TermKind::Construct { .. } => usize::MAX,
        TermKind::App(..) => usize::MAX,
        TermKind::Case { .. } | TermKind::If { .. } => 1,
        TermKind::Var(..)
        | TermKind::Global(_)
        | TermKind::Literal(_)
        | TermKind::Lambda(_)
        | TermKind::Let { .. }
        | TermKind::LetRec { .. }
        | TermKind::ArrayLiteral { .. }
        | TermKind::Derive { .. }
        | TermKind::Lift { .. } => return None,
    };
    let (mut position, mut found, mut blocked) = (0, None, false);
    gradus_core::traverse::for_each_child(term, &mut |child| {
        if position < operands && found.is_none() && !blocked {
            match &*child.kind {
                TermKind::Let { scheme, .. } if scheme.vars.is_empty() => found = Some((position, child.clone())),
                _ => blocked = !facts.is_total(child),
            }
        }
        position += 1;
    });
    let (place, inner) = found?;
    let TermKind::Let { var, scheme, bound, body } = &*inner.kind else { return None };
    let mut position = 0;
    let rest = map_children(term, &mut |child| {
        position += 1;
        if position - 1 == place {
            body.clone()
        } else {
            child.clone()
        }
    });
    let (var, scheme, bound) = (var.clone(), scheme.clone(), bound.clone());
    Some(("let_out", At(term.span).term(TermKind::Let { var, scheme, bound, body: rest })))
}
