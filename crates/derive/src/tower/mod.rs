//! Tower mode: a real becomes the pair of its value and its Taylor coefficients of order 1 to n (K section 10.4).
//!
//! Everything but arithmetic is as in the other dual-number modes ([`crate::dual`]). A primitive becomes a call of a function of the
//! mode's own, named after the primitive, that computes all coefficients of the result from those of the arguments in order n squared
//! steps; [`series`] writes it from the partial derivatives in the primitive table. The empty array stands for a constant.

mod compose;
mod series;

use crate::custom::CustomRule;
use crate::dual::{dual_rules, Vect};
use crate::mode::{Capabilities, ModeRules};
use crate::vector::{array, empty};
use crate::write::{add_int, bind, build, compare_int, get, lambda, length};
use crate::{Linker, Made, Refusal};
use gradus_core::build::At;
use gradus_core::{Global, Mode, Prim, Term, Type};
use gradus_source::bug;

pub struct Tower;

/// `real * real[]`
pub fn tower() -> Type {
    Type::tuple([Type::Real, array()])
}

/// The function that computes a primitive on towers.
fn primitive(at: At, prim: Prim) -> Term {
    at.global(Global::Wrapper { name: prim.info().name, modes: vec![Mode::Tower], types: [].into() })
}

impl Vect for Tower {
    fn vect(&self) -> Type {
        array()
    }

    fn zero(&self, at: At) -> Term {
        empty(at)
    }

    fn combine(&self, _at: At, _summands: Vec<(Option<Term>, Term)>) -> Term {
        bug!("a tower is no linear combination of towers with real coefficients")
    }

    fn primitive(&self, at: At, prim: Prim, primals: &[Term], duals: &[Option<Term>]) -> Option<Term> {
        let args = primals.iter().zip(duals).zip(&prim.info().params).map(|((x, dual), ty)| match (dual, ty) {
            (Some(dual), _) => dual.clone(),
            (None, Type::Real) => at.tuple([x.clone(), empty(at)]),
            (None, _) => x.clone(),
        });
        Some(at.apps(primitive(at, prim), args))
    }
}

impl ModeRules for Tower {
    fn mode(&self) -> Mode {
        Mode::Tower
    }

    /// Towers are of one variable; `taylor` asks for them by name.
    fn capabilities(&self) -> Capabilities {
        Capabilities { vjp: false, jvp: false }
    }

    dual_rules!();

    fn custom(&self, _linker: &Linker, rule: &CustomRule) -> Made<Term> {
        let construct = "a function with a custom derivative, which says nothing of higher orders,";
        Err(Box::new(Refusal::Construct { mode: Mode::Tower, construct, span: rule.span }))
    }

    fn helper(&self, name: &str) -> Option<(Type, Term)> {
        let prim = Prim::from_name(name)?;
        let info = prim.info();
        info.partials?;
        let params = info.params.iter().map(|ty| if *ty == Type::Real { tower() } else { ty.clone() });
        let text = match prim {
            Prim::PowRealInt => compose::integer_power(),
            Prim::PowReal => compose::real_power(),
            Prim::Lgamma => compose::lgamma(),
            Prim::Polygamma => compose::polygamma(),
            _ => series::function(prim),
        };
        Some((Type::funs(params.collect::<Vec<_>>(), tower()), text))
    }
}

/// `D(real -> real) -> int -> real -> real[]`: the coefficients f^(k)(x) / k! for k from 0 to the order
pub fn taylor(linker: &Linker) -> Term {
    let at = At::default();
    let function = linker.image(&Tower, &Type::fun(Type::Real, Type::Real));
    lambda(at, "f", &function, |f| {
        lambda(at, "order", &Type::Int, |order| {
            lambda(at, "x", &Type::Real, |x| {
                let is_first = |k: Term| compare_int(at, Prim::Equal, k, at.int(0));
                let seed = build(at, &Type::Real, order.clone(), |i| at.if_(is_first(i), at.real(1.0), at.real(0.0)));
                bind(at, "y", &tower(), at.app(f, at.tuple([x, seed])), |y| {
                    let is_constant = is_first(length(at, &Type::Real, at.proj(y.clone(), 1)));
                    build(at, &Type::Real, add_int(at, order, at.int(1)), |k| {
                        let before = at.prim(Prim::SubInt, [k.clone(), at.int(1)]);
                        let higher = get(at, &Type::Real, at.proj(y.clone(), 1), before);
                        at.if_(is_first(k), at.proj(y.clone(), 0), at.if_(is_constant, at.real(0.0), higher))
                    })
                })
            })
        })
    })
}
