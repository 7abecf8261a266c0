//! What the modes share that thread a state through the program: `monadic` collects Delta bindings in it, `trace` the lines of a
//! trace term. The monad is `M a = state -> a * state`, and D(a -> b) = D(a) -> M D(b).

use super::translate;
use crate::forms::with_variables;
use crate::mode::ModeRules;
use crate::scope::Scope;
use crate::wrappers::{call, PRIMAL};
use crate::write::{bind, lambda as function};
use crate::{Linker, Made};
use gradus_core::build::At;
use gradus_core::{Lambda, Prim, Term, Type};
use std::sync::Arc;

/// The answers of [`ModeRules`] that every such mode gives alike: a real is paired with what refers to the state.
macro_rules! stateful_rules {
    () => {
        /// D(A -> B) = D(A) -> M D(B)
        fn arrow(&self, from: gradus_core::Type, to: gradus_core::Type) -> gradus_core::Type {
            crate::monadic::stateful::arrow(self, from, to)
        }

        fn primal(&self, at: gradus_core::build::At, dual: gradus_core::Term) -> gradus_core::Term {
            at.proj(dual, 0)
        }

        fn lambda(
            &self,
            linker: &crate::Linker,
            _scope: &crate::scope::Scope,
            lambda: &std::sync::Arc<gradus_core::Lambda>,
        ) -> crate::Made<std::sync::Arc<gradus_core::Lambda>> {
            crate::monadic::stateful::lambda(self, linker, lambda)
        }

        fn value(
            &self,
            linker: &crate::Linker,
            scope: &crate::scope::Scope,
            term: &gradus_core::Term,
        ) -> crate::Made<gradus_core::Term> {
            crate::monadic::stateful::value(self, linker, scope, term)
        }

        fn partial_application(
            &self,
            at: gradus_core::build::At,
            function: gradus_core::Term,
            argument: gradus_core::Term,
        ) -> gradus_core::Term {
            crate::monadic::stateful::partial_application(self, at, function, argument)
        }
    };
}
pub(crate) use stateful_rules;

/// A mode that pairs a real with something that refers to the state. The first component of the state is the next identifier.
pub trait Stateful: ModeRules {
    fn state(&self) -> Type;

    /// A state in which nothing is recorded, whose next identifier is given.
    fn initial_state(&self, at: At, next: Term) -> Term;

    /// What stands beside the result of an operation, and the state in which the operation is recorded under the identifier `id`, the
    /// next one. At least one argument carries a derivative; primals and identifier are variables or parts of them.
    fn record(&self, at: At, prim: Prim, args: &[Recorded], id: Term, state: Term) -> (Term, Term);

    /// `checkpoint f x` as a pair of the result and the new state: the application, unless the mode can record less for it. The translated function and
    /// argument are variables; `to` is the type of the result before translation.
    fn checkpoint(&self, _linker: &Linker, at: At, _to: &Type, function: Term, argument: Term, state: Term) -> Term {
        at.apps(function, [argument, state])
    }
}

/// An argument of a recorded operation.
pub enum Recorded {
    /// A real that may carry a derivative, with what stands beside it.
    Active { primal: Term, beside: Term },
    /// A real that cannot.
    Constant { primal: Term, beside: Term },
    /// An integer.
    Whole { primal: Term },
}

impl Recorded {
    pub fn primal(&self) -> &Term {
        match self {
            Recorded::Active { primal, .. } | Recorded::Constant { primal, .. } | Recorded::Whole { primal } => primal,
        }
    }
}

/// `a * state`, the result of an `M a`
pub fn with_state(mode: &dyn Stateful, ty: Type) -> Type {
    Type::tuple([ty, mode.state()])
}

/// D(a -> b) = D(a) -> M D(b)
pub fn arrow(mode: &dyn Stateful, from: Type, to: Type) -> Type {
    Type::funs([from, mode.state()], with_state(mode, to))
}

pub fn lambda(mode: &dyn Stateful, linker: &Linker, lambda: &Arc<Lambda>) -> Made<Arc<Lambda>> {
    translate::lambda(mode, linker, lambda)
}

pub fn value(mode: &dyn Stateful, linker: &Linker, scope: &Scope, term: &Term) -> Made<Term> {
    translate::value(mode, linker, scope, term)
}

/// The application records nothing, so the state that it is given does not matter.
pub fn partial_application(mode: &dyn Stateful, at: At, function: Term, argument: Term) -> Term {
    at.proj(at.apps(function, [argument, mode.initial_state(at, at.int(0))]), 0)
}

/// One run of a translated function, as variables: the point, its image with an identifier for each real, how many these are, the translated result, and
/// the state after the run.
#[derive(Clone)]
pub struct Run {
    pub x: Term,
    pub s0: Term,
    pub count: Term,
    pub t: Term,
    pub state: Term,
}

/// `fun f x -> let s0 = initVars x in let (t, state) = f s0 (count x, []) in after`: K Fig. 11 and 15; steps 1 of A's evaluation of `rd`.
pub fn run(mode: &dyn Stateful, linker: &Linker, from: &Type, to: &Type, after: impl FnOnce(Run) -> Term) -> Term {
    let at = At::default();
    let translated = linker.image(mode, &Type::fun(from.clone(), to.clone()));
    let result = linker.image(mode, to);
    function(at, "f", &translated, |f| {
        function(at, "x", from, |x| {
            with_variables(at, mode, linker, from, x.clone(), |s0, count| {
                let pair = at.apps(f, [s0.clone(), mode.initial_state(at, count.clone())]);
                bind(at, "run", &with_state(mode, result.clone()), pair, |pair| {
                    bind(at, "t", &result, at.proj(pair.clone(), 0), |t| {
                        bind(at, "state", &mode.state(), at.proj(pair, 1), |state| {
                            after(Run { x, s0, count, t, state })
                        })
                    })
                })
            })
        })
    })
}

/// The wrapper of K Fig. 15 (and 11): the value, and the function from a cotangent to what `back` makes of it. We start the sweep with the cotangent
/// instead of differentiating the inner product with it, so that one run serves many cotangents.
pub fn pullback(
    mode: &dyn Stateful,
    linker: &Linker,
    from: &Type,
    to: &Type,
    back: impl FnOnce(Run, Term) -> Term,
) -> Term {
    let at = At::default();
    run(mode, linker, from, to, |run| {
        let value = call(at, PRIMAL, &[mode.mode()], to, [run.t.clone()]);
        at.tuple([value, function(at, "dt", to, |dt| back(run, dt))])
    })
}

/// `fun x1 s -> ((fun x2 s -> .. body), s)`: a curried function of several translated parameters.
pub fn curried(
    mode: &dyn Stateful,
    at: At,
    params: &[Type],
    before: Vec<Term>,
    body: &mut dyn FnMut(&[Term], Term) -> Term,
) -> Term {
    let Some((first, rest)) = params.split_first() else { gradus_source::bug!("a function without parameters") };
    function(at, "x", first, |x| {
        function(at, "s", &mode.state(), |state| {
            let so_far: Vec<Term> = before.into_iter().chain([x]).collect();
            if rest.is_empty() {
                body(&so_far, state)
            } else {
                at.tuple([curried(mode, at, rest, so_far, body), state])
            }
        })
    })
}
