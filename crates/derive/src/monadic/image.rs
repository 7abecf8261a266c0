//! What the monadic translation makes of a term: a value, or a computation that waits for the state. The monad is K Fig. 10's, written out:
//! `pure x = fun s -> (x, s)` and `m >>= k = fun s -> let r = m s in let x = fst r in let s = snd r in k x s`, with every function of the state applied
//! where it is written, so that the state is handed on by `let` alone. What binds nothing stays a value.
//!
//! `proofs/Monadic.v` has the same functions under the names `giving`, `vbind`, `mbind` and `ibind`, and `cargo xtask oracle` compares the texts.

use super::stateful::{with_state, Stateful};
use gradus_core::build::At;
use gradus_core::traverse::with_stack;
use gradus_core::{Arm, Term, TermKind, Type, Var};

/// From the state to the pair of a result and the state after it.
pub type Computation<'a> = Box<dyn FnOnce(Term) -> Term + 'a>;

pub enum Image<'a> {
    Value(Term),
    Computation(Computation<'a>),
}

impl Image<'_> {
    /// The term of type `D(A) * state` for a state, which is a variable.
    pub fn at_state(self, at: At, state: Term) -> Term {
        match self {
            Image::Value(value) => returning(at, value, &state),
            Image::Computation(run) => with_stack(|| run(state)),
        }
    }
}

/// An image with the variable that its result is bound to, and the type of the result.
pub struct Part<'a> {
    pub image: Image<'a>,
    pub var: Var,
    pub ty: Type,
}

/// `pure`: the pair of a value and the state, at the end of each branch.
pub fn returning(at: At, value: Term, state: &Term) -> Term {
    with_stack(|| {
        let here = At(value.span);
        let end = |term: &Term| returning(at, term.clone(), state);
        let kind = match &*value.kind {
            TermKind::Let { var, scheme, bound, body } => {
                TermKind::Let { var: var.clone(), scheme: scheme.clone(), bound: bound.clone(), body: end(body) }
            }
            TermKind::LetRec { bindings, body } => TermKind::LetRec { bindings: bindings.clone(), body: end(body) },
            TermKind::If { condition, then, otherwise } => {
                TermKind::If { condition: condition.clone(), then: end(then), otherwise: end(otherwise) }
            }
            TermKind::Case { scrutinee, arms, default } => TermKind::Case {
                scrutinee: scrutinee.clone(),
                arms: arms
                    .iter()
                    .map(|arm| Arm { tag: arm.tag, vars: arm.vars.clone(), body: end(&arm.body) })
                    .collect(),
                default: default.as_ref().map(end),
            },
            TermKind::Var(..)
            | TermKind::Global(_)
            | TermKind::Literal(_)
            | TermKind::Lambda(_)
            | TermKind::App(..)
            | TermKind::Prim { .. }
            | TermKind::Tuple(_)
            | TermKind::Proj { .. }
            | TermKind::Construct { .. }
            | TermKind::ArrayLiteral { .. }
            | TermKind::Derive { .. }
            | TermKind::Lift { .. } => return at.tuple([value, state.clone()]),
        };
        here.term(kind)
    })
}

/// `x <- part; rest`
pub fn bind<'a>(mode: &'a dyn Stateful, at: At, part: Part<'a>, rest: Computation<'a>) -> Computation<'a> {
    let Part { image, var, ty } = part;
    match image {
        Image::Value(value) => Box::new(move |state| at.bind(&var, ty, value, with_stack(|| rest(state)))),
        Image::Computation(run) => Box::new(move |state| {
            let (pair, after) = (Var::fresh("r"), Var::fresh("s"));
            let bound = with_stack(|| run(state));
            let rest = with_stack(|| rest(at.var(&after)));
            let rest = at.bind(&after, mode.state(), at.proj(at.var(&pair), 1), rest);
            let rest = at.bind(&var, ty.clone(), at.proj(at.var(&pair), 0), rest);
            at.bind(&pair, with_state(mode, ty), bound, rest)
        }),
    }
}

/// Binds the parts in order; `rest` gets their variables and the state after them.
pub fn bind_all<'a>(
    mode: &'a dyn Stateful,
    at: At,
    parts: Vec<Part<'a>>,
    rest: impl FnOnce(Vec<Term>, Term) -> Term + 'a,
) -> Computation<'a> {
    let vars: Vec<Term> = parts.iter().map(|part| at.var(&part.var)).collect();
    let rest: Computation<'a> = Box::new(move |state| rest(vars, state));
    parts.into_iter().rev().fold(rest, |rest, part| bind(mode, at, part, rest))
}
