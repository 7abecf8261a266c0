//! Primitives whose derivatives never close into a finite system: powers, by multiplication or through `exp` and `log`; the gamma
//! functions, by composition with their own Taylor series, whose coefficients the table knows at every order.

use super::{primitive, tower};
use crate::vector::empty;
use crate::write::{add_int, bind, compare_int, ifold, lambda, length};
use gradus_core::build::At;
use gradus_core::{Prim, Term, Type};

fn call(at: At, prim: Prim, args: impl IntoIterator<Item = Term>) -> Term {
    at.apps(primitive(at, prim), args)
}

fn constant(at: At, x: Term) -> Term {
    at.tuple([x, empty(at)])
}

/// `fun x k -> x * ... * x`, or one over it
pub fn integer_power() -> Term {
    let at = At::default();
    lambda(at, "x", &tower(), |x| {
        lambda(at, "k", &Type::Int, |k| {
            let is_negative = compare_int(at, Prim::Less, k.clone(), at.int(0));
            let count = at.if_(is_negative.clone(), at.prim(Prim::NegInt, [k.clone()]), k);
            let one = || constant(at, at.real(1.0));
            let product = ifold(at, &tower(), count, one(), |_, y| call(at, Prim::MulReal, [y, x]));
            bind(at, "y", &tower(), product, |y| at.if_(is_negative, call(at, Prim::DivReal, [one(), y.clone()]), y))
        })
    })
}

/// `fun x y -> exp (y * log x)` where the base is positive; elsewhere a power exists only for whole exponents.
pub fn real_power() -> Term {
    let at = At::default();
    lambda(at, "x", &tower(), |x| {
        lambda(at, "y", &tower(), |y| {
            let base = at.proj(x.clone(), 0);
            let is_positive = at.prim_at(Prim::Greater, [Type::Real], [base, at.real(0.0)]);
            let exponent = call(at, Prim::MulReal, [y.clone(), call(at, Prim::Log, [x.clone()])]);
            let rounded = at.prim(Prim::Round, [at.proj(y, 0)]);
            at.if_(is_positive, call(at, Prim::Exp, [exponent]), call(at, Prim::PowRealInt, [x, rounded]))
        })
    })
}

/// `fun x -> lgamma x`, with the derivatives digamma, trigamma and so on
pub fn lgamma() -> Term {
    let at = At::default();
    lambda(at, "x", &tower(), |x| {
        let x0 = at.proj(x.clone(), 0);
        by_taylor_series(at, x, |j| {
            let order = at.prim(Prim::SubInt, [j.clone(), at.int(1)]);
            let higher = at.prim(Prim::Polygamma, [order, x0.clone()]);
            at.if_(compare_int(at, Prim::Equal, j, at.int(0)), at.prim(Prim::Lgamma, [x0]), higher)
        })
    })
}

/// `fun k x -> polygamma k x`
pub fn polygamma() -> Term {
    let at = At::default();
    lambda(at, "k", &Type::Int, |k| {
        lambda(at, "x", &tower(), |x| {
            let x0 = at.proj(x.clone(), 0);
            by_taylor_series(at, x, |j| at.prim(Prim::Polygamma, [add_int(at, k, j), x0]))
        })
    })
}

/// The function with the given j-th derivatives at x0, of the tower x: the sum of derivative(j) / j! * (x - x0)^j, by Horner's
/// scheme written as `derivative(0) + (x - x0) / 1 * (derivative(1) + (x - x0) / 2 * ...)`.
fn by_taylor_series(at: At, x: Term, derivative: impl FnOnce(Term) -> Term) -> Term {
    let order = length(at, &Type::Real, at.proj(x.clone(), 1));
    bind(at, "order", &Type::Int, order, |order| {
        let step = at.tuple([at.real(0.0), at.proj(x, 1)]);
        let rounds = add_int(at, order.clone(), at.int(1));
        ifold(at, &tower(), rounds, constant(at, at.real(0.0)), |i, sum| {
            bind(at, "j", &Type::Int, at.prim(Prim::SubInt, [order, i]), |j| {
                let next = at.prim(Prim::RealOfInt, [add_int(at, j.clone(), at.int(1))]);
                let rest = call(at, Prim::DivReal, [call(at, Prim::MulReal, [step, sum]), constant(at, next)]);
                call(at, Prim::AddReal, [constant(at, derivative(j)), rest])
            })
        })
    })
}
