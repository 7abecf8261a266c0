//! The rules of the table that need more than a pattern, on known data: constants, components, cases, functions.

use crate::facts::{is_atom, Facts};
use crate::size::is_small;
use gradus_core::build::At;
use gradus_core::prim::Eval;
use gradus_core::traverse::Copy;
use gradus_core::{Arm, Literal, Prim, Term, TermKind, Var};

/// A rule and what it makes of a term.
pub type Outcome = Option<(&'static str, Term)>;

/// A function of at most so many nodes is copied to where it is called.
const SMALL_FUNCTION: usize = 150;

/// The rules of known data at a term whose parts have been simplified.
pub fn reduce(facts: &Facts, term: &Term) -> Outcome {
    let at = At(term.span);
    match &*term.kind {
        TermKind::Prim { prim, args, .. } => {
            let literal = fold_constant(*prim, args)?;
            Some((constant_rule(*prim), at.term(TermKind::Literal(literal))))
        }
        TermKind::Proj { index, term: inner } => projection(facts, at, *index, inner),
        TermKind::Case { scrutinee, arms, default } => case_known(facts, at, scrutinee, arms, default.as_ref()),
        TermKind::App(function, argument) => match (&*function.kind, &*facts.value(function).kind) {
            (TermKind::Var(..), TermKind::Lambda(lambda)) if lambda.origin.is_none() => {
                let copy = Copy::default().term(facts.value(function));
                is_small(&lambda.body, SMALL_FUNCTION).then(|| ("call_known", at.app(copy, argument.clone())))
            }
            _ => None,
        },
        _ => None,
    }
}

fn projection(facts: &Facts, at: At, index: usize, inner: &Term) -> Outcome {
    let others_are_total = |items: &[Term]| items.iter().enumerate().all(|(i, t)| i == index || facts.is_total(t));
    match &*inner.kind {
        TermKind::Tuple(items) | TermKind::Construct { args: items, .. } if others_are_total(items) => {
            return Some(("projection", items.get(index)?.clone()));
        }
        TermKind::Tuple(items) if index + 1 == items.len() => return component_last(facts, at, items),
        TermKind::If { condition, then, otherwise } => match (&*then.kind, &*otherwise.kind) {
            (
                TermKind::Tuple(first) | TermKind::Construct { args: first, .. },
                TermKind::Tuple(second) | TermKind::Construct { args: second, .. },
            ) if others_are_total(first) && others_are_total(second) => {
                let (then, otherwise) = (first.get(index)?.clone(), second.get(index)?.clone());
                return Some(("if_component", at.if_(condition.clone(), then, otherwise)));
            }
            _ => {}
        },
        _ => {}
    }
    match &*facts.value(inner).kind {
        TermKind::Tuple(items) | TermKind::Construct { args: items, .. } => {
            let item = items.get(index)?;
            is_atom(item).then(|| ("projection", item.clone()))
        }
        _ => None,
    }
}

/// `(x, y).1` where `x` can fail: it is still evaluated, before `y`. More than two such components would take more steps than the tuple.
fn component_last(facts: &Facts, at: At, items: &[Term]) -> Outcome {
    let (last, others) = items.split_last()?;
    let kept: Vec<&Term> = others.iter().filter(|item| !facts.is_total(item)).collect();
    if kept.len() > 2 {
        return None;
    }
    let bind =
        |body: Term, item: &&Term| Some(at.bind(&Var::fresh("kept"), facts.synthesize(item)?, (*item).clone(), body));
    Some(("component_last", kept.iter().rev().try_fold(last.clone(), bind)?))
}

fn case_known(facts: &Facts, at: At, scrutinee: &Term, arms: &[Arm], default: Option<&Term>) -> Outcome {
    let TermKind::Construct { tag, args, .. } = &*facts.value(scrutinee).kind else { return None };
    let here = matches!(&*scrutinee.kind, TermKind::Construct { .. });
    match arms.iter().find(|arm| arm.tag == *tag) {
        Some(arm) if here || args.iter().all(is_atom) => {
            let bindings = arm.vars.iter().zip(args).rev();
            let bind = |body, ((var, ty), arg): (&(gradus_core::Var, gradus_core::Type), &Term)| {
                at.bind(var, ty.clone(), arg.clone(), body)
            };
            Some(("case_known", bindings.fold(arm.body.clone(), bind)))
        }
        Some(_) => None,
        None if !here || args.iter().all(|arg| facts.is_total(arg)) => Some(("case_known", default?.clone())),
        None => None,
    }
}

fn constant_rule(prim: Prim) -> &'static str {
    match prim {
        Prim::AddReal => "fold_add",
        Prim::MulReal => "fold_mul",
        Prim::SubReal => "fold_sub",
        Prim::RealOfInt => "fold_real",
        Prim::AddInt | Prim::SubInt | Prim::MulInt | Prim::DivInt | Prim::ModInt | Prim::NegInt | Prim::PowInt => {
            "fold_int"
        }
        Prim::Equal | Prim::NotEqual | Prim::Less | Prim::LessEqual | Prim::Greater | Prim::GreaterEqual => {
            "fold_compare"
        }
        _ => "constant",
    }
}

/// The value of a scalar primitive at literals; nothing if it lies outside the domain, so that the error stays where it is.
pub fn fold_constant(prim: Prim, args: &[Term]) -> Option<Literal> {
    let literals: Vec<Literal> = args
        .iter()
        .map(|arg| match &*arg.kind {
            TermKind::Literal(literal) => Some(literal.clone()),
            _ => None,
        })
        .collect::<Option<_>>()?;
    fold_literals(prim, &literals)
}

pub fn fold_literals(prim: Prim, literals: &[Literal]) -> Option<Literal> {
    match (prim, literals) {
        (_, [Literal::Int(i), Literal::Int(j)]) => {
            if let Some(holds) = compare(prim, *i, *j) {
                return Some(Literal::Bool(holds));
            }
        }
        (Prim::Not, [Literal::Bool(p)]) => return Some(Literal::Bool(!p)),
        _ => {}
    }
    let info = prim.info();
    let numbers: Vec<f64> = literals
        .iter()
        .map(|literal| match literal {
            Literal::Real(x) => Some(*x),
            Literal::Int(i) => Some(*i as f64),
            Literal::Bool(_) | Literal::String(_) | Literal::Unit => None,
        })
        .collect::<Option<_>>()?;
    if info.outside_domain(&numbers) || info.at_kink(&numbers) {
        return None;
    }
    let result = match (info.eval, literals) {
        (Eval::Real(f), [Literal::Real(x)]) => Some(Literal::Real(f(*x))),
        (Eval::RealReal(f), [Literal::Real(x), Literal::Real(y)]) => Some(Literal::Real(f(*x, *y))),
        (Eval::RealInt(f), [Literal::Real(x), Literal::Int(k)]) => Some(Literal::Real(f(*x, *k))),
        (Eval::IntReal(f), [Literal::Int(k), Literal::Real(x)]) => Some(Literal::Real(f(*k, *x))),
        (Eval::IntToReal(f), [Literal::Int(i)]) => Some(Literal::Real(f(*i))),
        (Eval::RealToInt(f), [Literal::Real(x)]) => Some(Literal::Int(f(*x))),
        (Eval::Int(f), [Literal::Int(i)]) => Some(Literal::Int(f(*i))),
        (Eval::IntInt(f), [Literal::Int(i), Literal::Int(j)]) => f(*i, *j).ok().map(Literal::Int),
        _ => None,
    };
    // Infinities and NaN have no literals.
    result.filter(|literal| !matches!(literal, Literal::Real(x) if !x.is_finite()))
}

/// A comparison of integers. One of reals is left alone, because deciding it can be a kink.
fn compare(prim: Prim, i: i64, j: i64) -> Option<bool> {
    match prim {
        Prim::Equal => Some(i == j),
        Prim::NotEqual => Some(i != j),
        Prim::Less => Some(i < j),
        Prim::LessEqual => Some(i <= j),
        Prim::Greater => Some(i > j),
        Prim::GreaterEqual => Some(i >= j),
        _ => None,
    }
}
