//! What the modes share that thread a state through the program: `monadic` collects Delta bindings in it, `trace` the lines of a
//! trace term. The monad is `M a = state -> a * state`, and D(a -> b) = D(a) -> M D(b).

use super::translate;
use crate::mode::ModeRules;
use crate::scope::Scope;
use crate::{Linker, Made};
use gradus_core::build::At;
use gradus_core::{Lambda, Prim, Term, Type};
use std::sync::Arc;

/// A mode that pairs a real with something that refers to the state. The first component of the state is the next identifier.
pub trait Stateful: ModeRules {
    fn state(&self) -> Type;

    /// A state in which nothing is recorded, whose next identifier is given.
    fn initial_state(&self, at: At, next: Term) -> Term;

    /// What stands beside the result of an operation, and the state in which the operation is recorded under the identifier `id`, the
    /// next one. At least one argument carries a derivative; primals and identifier are atoms.
    fn record(&self, at: At, prim: Prim, args: &[Recorded], id: Term, state: Term) -> (Term, Term);
}

/// An argument of a recorded operation.
pub enum Recorded {
    /// A real that may carry a derivative, with what stands beside it.
    Active { primal: Term, beside: Term },
    /// A real that cannot, or an integer.
    Constant { primal: Term, ty: Type },
}

impl Recorded {
    pub fn primal(&self) -> &Term {
        match self {
            Recorded::Active { primal, .. } | Recorded::Constant { primal, .. } => primal,
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

pub fn lambda(mode: &dyn Stateful, linker: &Linker, scope: &Scope, lambda: &Arc<Lambda>) -> Made<Arc<Lambda>> {
    translate::lambda(mode, linker, scope, lambda)
}

pub fn value(mode: &dyn Stateful, linker: &Linker, scope: &Scope, term: &Term) -> Made<Term> {
    translate::value(mode, linker, scope, term)
}

/// The application records nothing, so the state that it is given does not matter.
pub fn partial_application(mode: &dyn Stateful, at: At, function: Term, argument: Term) -> Term {
    at.proj(at.apps(function, [argument, mode.initial_state(at, at.int(0))]), 0)
}
