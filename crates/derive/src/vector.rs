//! Vector mode: a real becomes the pair of its value and its partial derivatives by all n inputs. K Fig. 5 and 6 ("reverse mode #1"), C Fig. 15; N
//! with `vect = real^n`.
//!
//! Where we differ: K and C index the translation by the input, because a constant needs a zero of n elements. Our zero is the
//! empty array, which stands for zeros of any number; so the translation of a function does not mention the input of the program and can be made apart.
//! And K's wrapper scales the seeds by the cotangent beforehand; ours weighs the outputs afterwards, so that one run serves many cotangents.

use crate::custom::{self, CustomRule};
use crate::dual::{dual_rules, Vect};
use crate::forms;
use crate::mode::{Capabilities, ModeRules};
use crate::wrappers::{call, unit_vector, UNFLATTEN};
use crate::write::{add, build, compare_int, get, lambda, length, mul};
use crate::{Linker, Made};
use gradus_core::build::At;
use gradus_core::{Global, Mode, Prim, Term, TermKind, Type};

pub struct Vector;

const VECTOR_ADD: &str = "tangents_add";
const VECTOR_SCALE: &str = "tangents_scale";

pub fn array() -> Type {
    Type::array(Type::Real)
}

fn helper(at: At, name: &'static str) -> Term {
    at.global(Global::Wrapper { name, modes: vec![Mode::Vector], types: [].into() })
}

/// C Fig. 15: `vector_add`
pub fn vector_add(at: At, a: Term, b: Term) -> Term {
    at.apps(helper(at, VECTOR_ADD), [a, b])
}

/// C Fig. 15: `vector_scale`
pub fn vector_scale(at: At, factor: Term, a: Term) -> Term {
    at.apps(helper(at, VECTOR_SCALE), [factor, a])
}

/// The zero of any number of inputs.
pub fn empty(at: At) -> Term {
    at.term(TermKind::ArrayLiteral { element: Type::Real, items: vec![] })
}

pub fn zeros(at: At, size: Term) -> Term {
    build(at, &Type::Real, size, |_| at.real(0.0))
}

impl Vect for Vector {
    fn vect(&self) -> Type {
        array()
    }

    fn zero(&self, at: At) -> Term {
        empty(at)
    }

    fn combine(&self, at: At, summands: Vec<(Option<Term>, Term)>) -> Term {
        let scaled = summands.into_iter().map(|(coefficient, v)| match coefficient {
            Some(coefficient) => vector_scale(at, coefficient, v),
            None => v,
        });
        scaled.reduce(|sum, next| vector_add(at, sum, next)).unwrap_or_else(|| self.zero(at))
    }
}

impl ModeRules for Vector {
    fn mode(&self) -> Mode {
        Mode::Vector
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { vjp: true, jvp: false }
    }

    dual_rules!();

    fn custom(&self, linker: &Linker, rule: &CustomRule) -> Made<Term> {
        custom::dual(self, linker, rule)
    }

    /// K Fig. 6: `onehot i`
    fn variable(&self, at: At, x: Term, index: Term, count: Term) -> Term {
        at.tuple([x, unit_vector(at, count, index, at.real(1.0))])
    }

    fn accumulator(&self) -> Type {
        array()
    }

    fn seed(&self, at: At, dual: Term, cotangent: Term, sum: Term) -> Term {
        vector_add(at, sum, vector_scale(at, cotangent, at.proj(dual, 1)))
    }

    /// K Fig. 6
    fn pullback(&self, linker: &Linker, from: &Type, to: &Type) -> Made<Term> {
        let at = At::default();
        let finish = |sum, x, _| call(at, UNFLATTEN, &[], from, [x, sum]);
        Ok(forms::reverse_wrapper(self, linker, from, to, |count| zeros(at, count), finish))
    }

    fn helper(&self, name: &str) -> Option<(Type, Term)> {
        let at = At::default();
        let size = |a: &Term| length(at, &Type::Real, a.clone());
        let is_zero = |a: &Term| compare_int(at, Prim::Equal, size(a), at.int(0));
        match name {
            VECTOR_ADD => {
                let text = lambda(at, "a", &array(), |a| {
                    lambda(at, "b", &array(), |b| {
                        let item = |v: &Term, i: Term| get(at, &Type::Real, v.clone(), i);
                        let sum = build(at, &Type::Real, size(&a), |i| add(at, item(&a, i.clone()), item(&b, i)));
                        at.if_(is_zero(&a), b.clone(), at.if_(is_zero(&b), a.clone(), sum))
                    })
                });
                Some((Type::funs([array(), array()], array()), text))
            }
            VECTOR_SCALE => {
                let text = lambda(at, "factor", &Type::Real, |factor| {
                    lambda(at, "a", &array(), |a| {
                        build(at, &Type::Real, size(&a), |i| mul(at, factor, get(at, &Type::Real, a.clone(), i)))
                    })
                });
                Some((Type::funs([Type::Real, array()], array()), text))
            }
            _ => None,
        }
    }
}
