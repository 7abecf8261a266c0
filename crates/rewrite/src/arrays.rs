//! The rules of the table that need more than a pattern, on arrays and loops: fusion, fission, unrolling, sums of one-hot terms.

use crate::facts::{is_atom, Facts};
use crate::known::Outcome;
use crate::matching::{mentions, substitute};
use crate::occurrences::Occurrences;
use crate::size::is_small;
use gradus_core::build::At;
use gradus_core::traverse::{map_children, with_stack, Copy};
use gradus_core::{Lambda, Literal, Prim, Term, TermKind, Type, Var};

/// Loops of at most so many known iterations, with bodies of at most so many nodes, are unrolled.
const MOST_UNROLLED: i64 = 4;
const SMALL_BODY: usize = 200;
/// An element that is no dearer to make than to read.
const CHEAP: usize = 3;
/// Definitions at the start of a loop's body that fission looks through.
const MOST_LETS: usize = 64;

/// The rules of arrays and loops at a term whose parts have been simplified.
pub fn reduce(facts: &Facts, occurrences: &Occurrences, reassociates: bool, term: &Term) -> Outcome {
    let at = At(term.span);
    match &*term.kind {
        TermKind::Prim { prim: Prim::Get, args, .. } => match &args[..] {
            [array, index] => get(facts, occurrences, array, index),
            _ => None,
        },
        TermKind::Prim { prim: Prim::Length, args, .. } => length(facts, at, args.first()?),
        TermKind::Prim { prim: Prim::Build, types, args, .. } => match (&types[..], &args[..]) {
            ([element], [count, function]) => build_literal(at, element, count, function),
            _ => None,
        },
        TermKind::Prim { prim: Prim::Ifold, types, args, .. } => match (&types[..], &args[..]) {
            ([state], [count, function, init]) => {
                let (index, so_far) = loop_functions(function)?;
                unroll(at, state, count, index, so_far, init)
                    .or_else(|| reassociates.then(|| one_hot(facts, at, count, index, so_far, init)).flatten())
            }
            _ => None,
        },
        TermKind::Proj { index, term: inner } => match &*inner.kind {
            TermKind::Prim { prim: Prim::Get, args, .. } if reassociates => match &args[..] {
                [array, place] => hot_component(facts, *index, array, place),
                _ => None,
            },
            TermKind::Prim { prim: Prim::Ifold, types, args, .. } => match (&types[..], &args[..]) {
                ([Type::Tuple(states)], [count, function, init]) => {
                    fission(facts, at, *index, states, count, function, init)
                }
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// The functions of index and state of a loop.
fn loop_functions(function: &Term) -> Option<(&Lambda, &Lambda)> {
    let TermKind::Lambda(index) = &*function.kind else { return None };
    let TermKind::Lambda(state) = &*index.body.kind else { return None };
    (index.origin.is_none() && state.origin.is_none()).then_some((index, state))
}

/// The length of an array that a variable is bound to, or of a literal.
fn length(facts: &Facts, at: At, array: &Term) -> Outcome {
    let bound = matches!(&*array.kind, TermKind::Var(..));
    let value = facts.value(array);
    let source = if matches!(&*value.kind, TermKind::If { .. }) { facts.elements(array) } else { value };
    let count = match &*source.kind {
        TermKind::Prim { prim: Prim::Build, args, .. } if bound => args.first()?.clone(),
        TermKind::Prim { prim: Prim::CheckSize, args, .. } if bound => args.get(1)?.clone(),
        TermKind::ArrayLiteral { items, .. } if bound || items.iter().all(|item| facts.is_total(item)) => {
            at.int(items.len() as i64)
        }
        _ => return None,
    };
    // As cheap as the length that it replaces.
    let cheap = match &*count.kind {
        TermKind::Prim { prim: Prim::Length, args, .. } => args.iter().all(is_atom),
        _ => is_atom(&count),
    };
    cheap.then_some(("length_known", count))
}

/// `(build n (fun i -> e)).(k)`, the array written there or bound to a variable: `e` at `k`. An array that is kept must be
/// cheaper to read than its element to make, or be read once at each index.
fn get(facts: &Facts, occurrences: &Occurrences, array: &Term, index: &Term) -> Outcome {
    let value = facts.elements(array);
    match &*value.kind {
        TermKind::Prim { prim: Prim::Build, args, .. } => {
            let [count, function] = &args[..] else { return None };
            let TermKind::Lambda(lambda) = &*function.kind else { return None };
            if lambda.origin.is_some() || !is_atom(index) {
                return None;
            }
            let fuses = match &*array.kind {
                TermKind::Var(var, _) => is_small(&lambda.body, CHEAP) || occurrences.is_read_once_each(var),
                _ => true,
            };
            if !fuses || !facts.is_total(&lambda.body) || !facts.is_below(index, count) {
                return None;
            }
            let rule = if matches!(&*array.kind, TermKind::Var(..)) { "fuse_build" } else { "get_build" };
            Some((rule, substitute(&lambda.body, &lambda.param, index)))
        }
        TermKind::ArrayLiteral { items, .. } => {
            let TermKind::Literal(Literal::Int(k)) = &*index.kind else { return None };
            let item = items.get(usize::try_from(*k).ok()?)?;
            let here = matches!(&*array.kind, TermKind::ArrayLiteral { .. });
            let free = if here { items.iter().all(|item| facts.is_total(item)) } else { is_atom(item) };
            free.then(|| ("get_literal", item.clone()))
        }
        _ => None,
    }
}

/// The components of `u.(k)`, where the elements of `u` are known to be tuples, and all but one component is free.
pub fn components(facts: &Facts, term: &Term) -> Option<Vec<Term>> {
    let TermKind::Prim { prim: Prim::Get, args, .. } = &*term.kind else { return None };
    let [array, index] = &args[..] else { return None };
    let TermKind::Prim { prim: Prim::Build, args: built, .. } = &*facts.elements(array).kind else { return None };
    let [count, function] = &built[..] else { return None };
    let TermKind::Lambda(lambda) = &*function.kind else { return None };
    let TermKind::Tuple(items) = &*lambda.body.kind else { return None };
    let made: Vec<&Term> = items.iter().filter(|item| !is_atom(item)).collect();
    let cheap = made.len() <= 1 && made.iter().all(|item| is_small(item, CHEAP));
    let known = cheap && lambda.origin.is_none() && is_atom(index) && facts.is_below(index, count);
    (known && facts.is_total(&lambda.body))
        .then(|| items.iter().map(|item| substitute(item, &lambda.param, index)).collect())
}

/// The component of an element that is a one-hot direction: writing it out costs a step or two, which the sum over it wins back.
fn hot_component(facts: &Facts, component: usize, array: &Term, index: &Term) -> Outcome {
    let TermKind::Prim { prim: Prim::Build, args, .. } = &*facts.elements(array).kind else { return None };
    let [count, function] = &args[..] else { return None };
    let TermKind::Lambda(lambda) = &*function.kind else { return None };
    let TermKind::Tuple(items) = &*lambda.body.kind else { return None };
    let item = items.get(component)?;
    let (_, value) = hot_at(item, &lambda.param)?;
    let known = lambda.origin.is_none() && is_atom(&value) && is_atom(index) && facts.is_below(index, count);
    (known && facts.is_total(&lambda.body)).then(|| ("hot_component", substitute(item, &lambda.param, index)))
}

/// `build 2 (fun i -> e)`: the elements one by one.
fn build_literal(at: At, element: &Type, count: &Term, function: &Term) -> Outcome {
    let (TermKind::Literal(Literal::Int(n)), TermKind::Lambda(lambda)) = (&*count.kind, &*function.kind) else {
        return None;
    };
    if !(0..=MOST_UNROLLED).contains(n) || lambda.origin.is_some() || !is_small(&lambda.body, SMALL_BODY) {
        return None;
    }
    let items = (0..*n).map(|i| substitute(&lambda.body, &lambda.param, &at.int(i))).collect();
    Some(("build_literal", at.term(TermKind::ArrayLiteral { element: element.clone(), items })))
}

/// C Fig. 13, EvNrecS: `ifold 2 (fun i s -> e) z`, one iteration after the other.
fn unroll(at: At, state: &Type, count: &Term, index: &Lambda, so_far: &Lambda, init: &Term) -> Outcome {
    let TermKind::Literal(Literal::Int(n)) = &*count.kind else { return None };
    if !(1..=MOST_UNROLLED).contains(n) || !is_small(&so_far.body, SMALL_BODY) {
        return None;
    }
    let step = |before: Term, i: i64| {
        let mut copy = Copy::default();
        let var = so_far.param.refresh();
        copy.terms.insert(index.param.clone(), at.int(i));
        copy.terms.insert(so_far.param.clone(), at.var(&var));
        at.bind(&var, state.clone(), before, copy.term(&so_far.body))
    };
    Some(("ifold_succ", (0..*n).fold(init.clone(), step)))
}

/// The definitions at the start of a term, and what follows them.
fn definitions(body: &Term) -> (Vec<(&Term, &Var, &Term)>, &Term) {
    let (mut lets, mut rest) = (Vec::new(), body);
    while let TermKind::Let { var, bound, body, .. } = &*rest.kind {
        lets.push((rest, var, bound));
        rest = body;
    }
    (lets, rest)
}

/// C Fig. 12 (e), one component at a time: the component of a loop's result that depends only on that component of the state.
fn fission(
    facts: &Facts,
    at: At,
    component: usize,
    states: &[Type],
    count: &Term,
    function: &Term,
    init: &Term,
) -> Outcome {
    let (index, so_far) = loop_functions(function)?;
    let TermKind::Tuple(starts) = &*init.kind else { return None };
    let (lets, result) = definitions(&so_far.body);
    let TermKind::Tuple(items) = &*result.kind else { return None };
    let others_are_total =
        |terms: &[Term]| terms.iter().enumerate().all(|(i, term)| i == component || facts.is_total(term));
    if lets.len() > MOST_LETS || !others_are_total(items) || !others_are_total(starts) {
        return None;
    }
    let mut body = items.get(component)?.clone();
    for (whole, var, bound) in lets.into_iter().rev() {
        if mentions(&body, var) {
            body = map_children_of_let(whole, bound, &body);
        } else if !facts.is_total(bound) {
            return None;
        }
    }
    let (start, state) = (starts.get(component)?, states.get(component)?);
    let var = so_far.param.refresh();
    let body = replace_component(&body, &so_far.param, component, &at.var(&var))?;
    let function = at.lambda(&index.param, index.ty.clone(), at.lambda(&var, state.clone(), body));
    let args = [count.clone(), function, start.clone()];
    Some(("fission", at.prim_at(Prim::Ifold, [state.clone()], args)))
}

fn map_children_of_let(whole: &Term, bound: &Term, body: &Term) -> Term {
    let mut parts = [bound.clone(), body.clone()].into_iter();
    map_children(whole, &mut |child| parts.next().unwrap_or_else(|| child.clone()))
}

/// The term with another for `var.component`; nothing if the variable is used otherwise.
fn replace_component(term: &Term, var: &Var, component: usize, by: &Term) -> Option<Term> {
    with_stack(|| match &*term.kind {
        TermKind::Proj { index, term: inner } if matches!(&*inner.kind, TermKind::Var(found, _) if found == var) => {
            (*index == component).then(|| by.clone())
        }
        TermKind::Var(found, _) if found == var => None,
        _ => {
            let mut whole = true;
            let changed = map_children(term, &mut |child| {
                let changed = replace_component(child, var, component, by);
                whole &= changed.is_some();
                changed.unwrap_or_else(|| child.clone())
            });
            whole.then_some(changed)
        }
    })
}

/// `ifold n (fun i s -> s + (if i = j then e else 0.0) + rest) z`: the one term that is not zero, and the sum of the rest.
fn one_hot(facts: &Facts, at: At, count: &Term, index: &Lambda, so_far: &Lambda, init: &Term) -> Outcome {
    let mut summands = Vec::new();
    split_sum(&so_far.body, &mut summands);
    let is_state = |term: &Term| matches!(&*term.kind, TermKind::Var(var, _) if *var == so_far.param);
    let states = summands.iter().filter(|term| is_state(term)).count();
    if states != 1 || summands.len() < 2 || summands.len() > MOST_LETS {
        return None;
    }
    let hot = summands.iter().position(|summand| {
        hot_at(summand, &index.param).is_some_and(|(hot, value)| {
            facts.is_below(&hot, count) && facts.is_total(&value) && !mentions(&value, &so_far.param)
        })
    })?;
    let summand = summands.remove(hot);
    let (hot, value) = hot_at(&summand, &index.param)?;
    let apart = |term: &Term| is_state(term) || !mentions(term, &so_far.param);
    let rest_is_total = summands.iter().all(|term| facts.is_total(term) && apart(term));
    if !facts.is_total(count) || !facts.is_total(init) || !rest_is_total {
        return None;
    }
    let value = substitute(&value, &index.param, &hot);
    let rest = match summands.len() {
        1 => init.clone(),
        _ => {
            let body = summands.into_iter().reduce(|sum, next| at.prim(Prim::AddReal, [sum, next]))?;
            let state = at.lambda(&so_far.param, so_far.ty.clone(), body);
            let function = at.lambda(&index.param, index.ty.clone(), state);
            at.prim_at(Prim::Ifold, [Type::Real], [count.clone(), function, init.clone()])
        }
    };
    Some(("sum_one_hot", at.prim(Prim::AddReal, [rest, value])))
}

fn split_sum(term: &Term, summands: &mut Vec<Term>) {
    with_stack(|| match &*term.kind {
        TermKind::Prim { prim: Prim::AddReal, args, .. } => args.iter().for_each(|arg| split_sum(arg, summands)),
        _ => summands.push(term.clone()),
    })
}

/// `if i = j then e else 0.0`, either way round: `j` and `e`.
fn hot_at(summand: &Term, index: &Var) -> Option<(Term, Term)> {
    let TermKind::If { condition, then, otherwise } = &*summand.kind else { return None };
    let TermKind::Prim { prim: Prim::Equal, types, args, .. } = &*condition.kind else { return None };
    let is_index = |term: &Term| matches!(&*term.kind, TermKind::Var(var, _) if var == index);
    let hot = match &args[..] {
        [i, j] if is_index(i) && !is_index(j) => j,
        [j, i] if is_index(i) && !is_index(j) => j,
        _ => return None,
    };
    let is_zero = matches!(&*otherwise.kind, TermKind::Literal(Literal::Real(x)) if *x == 0.0);
    (is_zero && is_atom(hot) && types.first() == Some(&Type::Int)).then(|| (hot.clone(), then.clone()))
}
