//! Continuation mode: a real becomes the pair of its value and a function from its sensitivity to the partial derivatives by all n inputs.
//! C Fig. 14. Nothing is shared between the calls of such a function, so the cost can be exponential.
//!
//! Where we differ: C indexes the translation by n; as in `vector`, the empty array stands for zeros of any number.

use crate::custom::{self, CustomRule};
use crate::dual::{dual_rules, Vect};
use crate::forms;
use crate::mode::{Capabilities, ModeRules};
use crate::vector::{array, empty, vector_add, zeros};
use crate::wrappers::{call, unit_vector, UNFLATTEN};
use crate::write::{lambda, mul, Lets};
use crate::{Linker, Made};
use gradus_core::build::At;
use gradus_core::{Mode, Term, Type};

pub struct Continuation;

impl Vect for Continuation {
    fn vect(&self) -> Type {
        Type::fun(Type::Real, array())
    }

    fn zero(&self, at: At) -> Term {
        lambda(at, "z", &Type::Real, |_| empty(at))
    }

    /// D(mul r1 r2) = (.., fun z -> vector_add (k1 (r2 * z)) (k2 (r1 * z)))
    fn combine(&self, at: At, summands: Vec<(Option<Term>, Term)>) -> Term {
        let mut lets = Lets::default();
        let mut parts = Vec::new();
        for (coefficient, k) in summands {
            let coefficient = coefficient.map(|coefficient| lets.bind(at, "p", &Type::Real, coefficient));
            parts.push((coefficient, lets.bind(at, "k", &self.vect(), k)));
        }
        let sum = lambda(at, "z", &Type::Real, |z| {
            let applied = parts.into_iter().map(|(coefficient, k)| match coefficient {
                Some(coefficient) => at.app(k, mul(at, coefficient, z.clone())),
                None => at.app(k, z.clone()),
            });
            applied.reduce(|sum, next| vector_add(at, sum, next)).unwrap_or_else(|| empty(at))
        });
        lets.wrap(at, sum)
    }
}

impl ModeRules for Continuation {
    fn mode(&self) -> Mode {
        Mode::Continuation
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { vjp: true, jvp: false }
    }

    dual_rules!();

    fn custom(&self, linker: &Linker, rule: &CustomRule) -> Made<Term> {
        custom::dual(self, linker, rule)
    }

    /// C section 5: input i comes with `fun z -> [0, .., z, .., 0]`.
    fn variable(&self, at: At, x: Term, index: Term, count: Term) -> Term {
        at.tuple([x, lambda(at, "z", &Type::Real, |z| unit_vector(at, count, index, z))])
    }

    fn accumulator(&self) -> Type {
        array()
    }

    fn seed(&self, at: At, dual: Term, cotangent: Term, sum: Term) -> Term {
        vector_add(at, sum, at.app(at.proj(dual, 1), cotangent))
    }

    fn pullback(&self, linker: &Linker, from: &Type, to: &Type) -> Made<Term> {
        let at = At::default();
        let finish = |sum, x, _| call(at, UNFLATTEN, &[], from, [x, sum]);
        Ok(forms::reverse_wrapper(self, linker, from, to, |count| zeros(at, count), finish))
    }
}
