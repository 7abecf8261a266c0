//! Tower mode: a real becomes the pair of its value and its Taylor coefficients of order 1 to n (K section 10.4).
//!
//! Everything but arithmetic is as in the other dual-number modes ([`crate::dual`]). A primitive becomes a call of a function of the
//! mode's own, named after the primitive, that computes all coefficients of the result from those of the arguments in order n squared
//! steps; [`series`] writes it from the partial derivatives in the primitive table. The empty array stands for a constant.

mod compose;
mod rule;
mod series;

use crate::custom::CustomRule;
use crate::dual::{dual_rules, Vect};
use crate::mode::{Capabilities, ModeRules};
use crate::vector::{array, empty};
use crate::wrappers::{call, FLATTEN, PRIMAL, UNFLATTEN};
use crate::write::{add, add_int, bind, build, compare_int, get, ifold, lambda, length, mul, watched_prim};
use crate::{Linker, Made};
use gradus_core::build::At;
use gradus_core::{Global, Mode, Prim, Term, TermKind, Type, Var};
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
        if duals.iter().all(Option::is_none) {
            return Some(at.tuple([watched_prim(at, prim, [], primals.to_vec()), empty(at)]));
        }
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

    /// A tower is of one variable, so a gradient takes one run for each real of the input; first coefficients are all that is used of them. `taylor` asks
    /// for this mode by name.
    fn capabilities(&self) -> Capabilities {
        Capabilities { vjp: true, jvp: false }
    }

    dual_rules!();

    fn custom(&self, linker: &Linker, rule: &CustomRule) -> Made<Term> {
        rule::custom(linker, rule)
    }

    /// As in K section 3.2, the "forward plan": the coefficients of order 1, with one run for each real of the input.
    fn pullback(&self, linker: &Linker, from: &Type, to: &Type) -> Made<Term> {
        let at = At::default();
        let function = linker.image(self, &Type::fun(from.clone(), to.clone()));
        let modes = [Mode::Tower];
        let constant = Var::fresh("x");
        let lifted = crate::wrappers::lift(linker, at, Mode::Tower, from, at.var(&constant))?;
        let text = lambda(at, "f", &function, |f| {
            let x = at.var(&constant);
            let value = call(at, PRIMAL, &modes, to, [at.app(f.clone(), lifted)]);
            let back = lambda(at, "dy", to, |dy| {
                bind(at, "inputs", &array(), call(at, FLATTEN, &[], from, [x.clone()]), |inputs| {
                    bind(at, "weights", &array(), call(at, FLATTEN, &[], to, [dy]), |weights| {
                        let size = || length(at, &Type::Real, inputs.clone());
                        let partials = build(at, &Type::Real, size(), |i| {
                            let seeds = build(at, &tower(), size(), |j| {
                                let here = compare_int(at, Prim::Equal, i, j.clone());
                                let one =
                                    at.term(TermKind::ArrayLiteral { element: Type::Real, items: vec![at.real(1.0)] });
                                at.tuple([get(at, &Type::Real, inputs.clone(), j), at.if_(here, one, empty(at))])
                            });
                            let run = at.app(f, call(at, UNFLATTEN, &modes, from, [x.clone(), seeds]));
                            let outputs = call(at, FLATTEN, &modes, to, [run]);
                            bind(at, "outputs", &Type::array(tower()), outputs, |outputs| {
                                weighted(at, outputs, weights)
                            })
                        });
                        call(at, UNFLATTEN, &[], from, [x.clone(), partials])
                    })
                })
            });
            at.lambda(&constant, from.clone(), at.tuple([value, back]))
        });
        Ok(text)
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

/// The sum of the coefficients of order 1, each times its weight. A constant has none, and no part in the sum.
fn weighted(at: At, outputs: Term, weights: Term) -> Term {
    let count = length(at, &tower(), outputs.clone());
    ifold(at, &Type::Real, count, at.real(0.0), |j, sum| {
        bind(at, "higher", &array(), at.proj(get(at, &tower(), outputs, j.clone()), 1), |higher| {
            let is_constant = compare_int(at, Prim::Equal, length(at, &Type::Real, higher.clone()), at.int(0));
            let product = mul(at, get(at, &Type::Real, higher, at.int(0)), get(at, &Type::Real, weights, j));
            at.if_(is_constant, sum.clone(), add(at, sum, product))
        })
    })
}

/// `D(real -> real) -> real[] -> real -> real[]`: from the coefficients of x of order 1 to n, which are 1 and zeros, the coefficients f^(k)(x) / k! for k
/// from 0 to n
pub fn taylor(linker: &Linker) -> Term {
    let at = At::default();
    let function = linker.image(&Tower, &Type::fun(Type::Real, Type::Real));
    lambda(at, "f", &function, |f| {
        lambda(at, "seed", &array(), |seed| {
            lambda(at, "x", &Type::Real, |x| {
                let is_zero = |k: Term| compare_int(at, Prim::Equal, k, at.int(0));
                bind(at, "y", &tower(), at.app(f, at.tuple([x, seed.clone()])), |y| {
                    let is_constant = is_zero(length(at, &Type::Real, at.proj(y.clone(), 1)));
                    let count = add_int(at, length(at, &Type::Real, seed), at.int(1));
                    build(at, &Type::Real, count, |k| {
                        let before = at.prim(Prim::SubInt, [k.clone(), at.int(1)]);
                        let higher = get(at, &Type::Real, at.proj(y.clone(), 1), before);
                        at.if_(is_zero(k), at.proj(y.clone(), 0), at.if_(is_constant, at.real(0.0), higher))
                    })
                })
            })
        })
    })
}
