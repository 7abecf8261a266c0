//! The primitives on numbers.

use super::info::{Eval, Fixity, IntError, PrimInfo};
use super::{math, Prim};
use crate::build::At;
use crate::{Term, Type};
use Fixity::{Function, Infix, Prefix};
use Type::{Int, Real, Unit};

/// The smallest real above zero: `x >= TINY` says `x > 0` and is not decided at equality when `x` is 0.
const TINY: f64 = 5e-324;

/// The rows in the order of the enum, from `AddReal` to `PowInt`.
pub(super) fn rows() -> Vec<PrimInfo> {
    let mut rows = arithmetic();
    rows.extend(functions());
    rows.extend(kinked());
    rows.extend(integers());
    rows
}

fn unary(prim: Prim, name: &'static str, eval: fn(f64) -> f64, doc: &'static str) -> PrimInfo {
    PrimInfo::new(prim, (name, Function), vec![], vec![Real], Real, Eval::Real(eval), doc)
}

fn binary(prim: Prim, name: (&'static str, Fixity), eval: fn(f64, f64) -> f64, doc: &'static str) -> PrimInfo {
    PrimInfo::new(prim, name, vec![], vec![Real, Real], Real, Eval::RealReal(eval), doc)
}

fn arithmetic() -> Vec<PrimInfo> {
    vec![
        binary(Prim::AddReal, ("+", Infix), |x, y| x + y, "sum")
            .partials(|at, _| vec![Some(at.real(1.0)), Some(at.real(1.0))]),
        binary(Prim::SubReal, ("-", Infix), |x, y| x - y, "difference")
            .partials(|at, _| vec![Some(at.real(1.0)), Some(at.real(-1.0))]),
        binary(Prim::MulReal, ("*", Infix), |x, y| x * y, "product")
            .partials(|_, args| vec![Some(args[1].clone()), Some(args[0].clone())]),
        binary(Prim::DivReal, ("/", Infix), |x, y| x / y, "quotient")
            .partials(|at, args| {
                let (x, y) = (&args[0], &args[1]);
                let by_y = neg(at, div(at, div(at, x.clone(), y.clone()), y.clone()));
                vec![Some(div(at, at.real(1.0), y.clone())), Some(by_y)]
            })
            .domain("y <> 0", |a| a[1] != 0.0)
            .differences("|y| > 0.1", |a| a[1].abs() > 0.1),
        PrimInfo::new(Prim::NegReal, ("~-", Prefix), vec![], vec![Real], Real, Eval::Real(|x| -x), "negation")
            .partials(|at, _| vec![Some(at.real(-1.0))]),
        PrimInfo::new(
            Prim::PowRealInt,
            ("^", Infix),
            vec![],
            vec![Real, Int],
            Real,
            Eval::RealInt(math::powi),
            "power with an integer exponent, by repeated multiplication; 0 ^ 0 is 1",
        )
        .partials(|at, args| {
            // The guard keeps 0 * infinity away from the constant function x ^ 0 at x = 0.
            let (x, k) = (&args[0], &args[1]);
            let lower = at.prim(Prim::SubInt, [k.clone(), at.int(1)]);
            let power = at.prim(Prim::PowRealInt, [x.clone(), lower]);
            let slope = mul(at, at.prim(Prim::RealOfInt, [k.clone()]), power);
            let constant = at.prim_at(Prim::Equal, [Int], [k.clone(), at.int(0)]);
            vec![Some(at.if_(constant, at.real(0.0), slope)), None]
        })
        .domain("x <> 0 or k >= 0", |a| a[0] != 0.0 || a[1] >= 0.0)
        .differences("k >= 0 or |x| > 0.1", |a| a[1] >= 0.0 || a[0].abs() > 0.1),
        binary(
            Prim::PowReal,
            ("**", Infix),
            libm::pow,
            "power with a real exponent. The partial derivative in the exponent is 0 where the base is not positive",
        )
        .partials(|at, args| {
            let (x, y) = (&args[0], &args[1]);
            let power = |e: Term| at.prim(Prim::PowReal, [x.clone(), e]);
            // The guard keeps 0 * infinity away from the constant function x ** 0 at x = 0. Where x > 0 it does not look at y, in which the slope is smooth.
            let not_positive = at.prim_at(Prim::Less, [Real], [x.clone(), at.real(TINY)]);
            let zero = at.prim_at(Prim::Equal, [Real], [y.clone(), at.real(0.0)]);
            let constant = at.if_(not_positive, zero, at.bool(false));
            let by_x = mul(at, y.clone(), power(sub(at, y.clone(), at.real(1.0))));
            let by_x = at.if_(constant, at.real(0.0), by_x);
            // For x <= 0 the logarithm is no number, and would spoil the derivative in x when y is a constant.
            let positive = at.prim_at(Prim::LessEqual, [Real], [at.real(TINY), x.clone()]);
            let slope = mul(at, at.prim(Prim::Log, [x.clone()]), power(y.clone()));
            vec![Some(by_x), Some(at.if_(positive, slope, at.real(0.0)))]
        })
        .domain("x > 0, or x = 0 and y >= 0, or y whole", |a| {
            a[0] > 0.0 || (a[0] == 0.0 && a[1] >= 0.0) || (a[0] < 0.0 && a[1] == a[1].trunc())
        })
        .kinks("x = 0 and 0 < y < 1", |a| a[0] == 0.0 && a[1] > 0.0 && a[1] < 1.0)
        .proved("x > 5e-324", |a| a[0] > TINY)
        .differences("x > 0.1", |a| a[0] > 0.1),
    ]
}

fn functions() -> Vec<PrimInfo> {
    vec![
        unary(Prim::Exp, "exp", libm::exp, "exponential").partials(|at, args| vec![Some(call(at, Prim::Exp, args))]),
        unary(Prim::Log, "log", libm::log, "natural logarithm")
            .partials(|at, args| vec![Some(div(at, at.real(1.0), args[0].clone()))])
            .domain("x > 0", |a| a[0] > 0.0)
            .differences("x > 0.1", |a| a[0] > 0.1),
        unary(Prim::Sqrt, "sqrt", f64::sqrt, "square root")
            .partials(|at, args| vec![Some(div(at, at.real(0.5), call(at, Prim::Sqrt, args)))])
            .domain("x >= 0", |a| a[0] >= 0.0)
            .kinks("x = 0", |a| a[0] == 0.0)
            .differences("x > 0.1", |a| a[0] > 0.1),
        unary(Prim::Sin, "sin", libm::sin, "sine").partials(|at, args| vec![Some(call(at, Prim::Cos, args))]),
        unary(Prim::Cos, "cos", libm::cos, "cosine")
            .partials(|at, args| vec![Some(neg(at, call(at, Prim::Sin, args)))]),
        unary(Prim::Tan, "tan", libm::tan, "tangent")
            .partials(|at, args| {
                let tan = || call(at, Prim::Tan, args);
                vec![Some(add(at, at.real(1.0), mul(at, tan(), tan())))]
            })
            .differences("|cos x| > 0.3", |a| libm::cos(a[0]).abs() > 0.3),
        unary(Prim::Asin, "asin", libm::asin, "inverse sine")
            .partials(|at, args| vec![Some(div(at, at.real(1.0), root_of_one_minus_square(at, &args[0])))])
            .domain("-1 <= x <= 1", |a| a[0].abs() <= 1.0)
            .kinks("|x| = 1", |a| a[0].abs() == 1.0)
            .differences("|x| < 0.9", |a| a[0].abs() < 0.9),
        unary(Prim::Acos, "acos", libm::acos, "inverse cosine")
            .partials(|at, args| vec![Some(div(at, at.real(-1.0), root_of_one_minus_square(at, &args[0])))])
            .domain("-1 <= x <= 1", |a| a[0].abs() <= 1.0)
            .kinks("|x| = 1", |a| a[0].abs() == 1.0)
            .differences("|x| < 0.9", |a| a[0].abs() < 0.9),
        unary(Prim::Atan, "atan", libm::atan, "inverse tangent").partials(|at, args| {
            let square = mul(at, args[0].clone(), args[0].clone());
            vec![Some(div(at, at.real(1.0), add(at, at.real(1.0), square)))]
        }),
        binary(
            Prim::Atan2,
            ("atan2", Function),
            libm::atan2,
            "`atan2 x y`: the angle of the point (y, x), in C's order",
        )
        .partials(|at, args| {
            let (x, y) = (&args[0], &args[1]);
            let square = |z: &Term| mul(at, z.clone(), z.clone());
            let radius = || add(at, square(x), square(y));
            vec![Some(div(at, y.clone(), radius())), Some(neg(at, div(at, x.clone(), radius())))]
        })
        .domain("x, y not both 0", |a| a[0] != 0.0 || a[1] != 0.0)
        .kinks("x = 0 and y < 0", |a| a[0] == 0.0 && a[1] < 0.0)
        .differences("x * x + y * y > 0.1 and not near the cut y < 0, x = 0", |a| {
            a[0] * a[0] + a[1] * a[1] > 0.1 && (a[1] > 0.0 || a[0].abs() > 0.01)
        }),
        unary(Prim::Sinh, "sinh", libm::sinh, "hyperbolic sine")
            .partials(|at, args| vec![Some(call(at, Prim::Cosh, args))]),
        unary(Prim::Cosh, "cosh", libm::cosh, "hyperbolic cosine")
            .partials(|at, args| vec![Some(call(at, Prim::Sinh, args))]),
        unary(Prim::Tanh, "tanh", libm::tanh, "hyperbolic tangent").partials(|at, args| {
            let tanh = || call(at, Prim::Tanh, args);
            vec![Some(sub(at, at.real(1.0), mul(at, tanh(), tanh())))]
        }),
        unary(Prim::Log1p, "log1p", libm::log1p, "log (1 + x), accurate near 0")
            .partials(|at, args| vec![Some(div(at, at.real(1.0), add(at, at.real(1.0), args[0].clone())))])
            .domain("x > -1", |a| a[0] > -1.0)
            .differences("x > -0.9", |a| a[0] > -0.9),
        unary(Prim::Expm1, "expm1", libm::expm1, "exp x - 1, accurate near 0")
            .partials(|at, args| vec![Some(call(at, Prim::Exp, args))]),
        unary(Prim::Erf, "erf", libm::erf, "error function").partials(|at, args| {
            let square = mul(at, args[0].clone(), args[0].clone());
            let bell = at.prim(Prim::Exp, [neg(at, square)]);
            vec![Some(mul(at, at.real(std::f64::consts::FRAC_2_SQRT_PI), bell))]
        }),
        unary(Prim::Lgamma, "lgamma", libm::lgamma, "logarithm of the absolute value of the gamma function")
            .partials(|at, args| vec![Some(at.prim(Prim::Polygamma, [at.int(0), args[0].clone()]))])
            .domain("x not 0, -1, -2, ...", |a| !math::is_pole_of_gamma(a[0]))
            .differences("x > 0.3", |a| a[0] > 0.3),
        PrimInfo::new(
            Prim::Polygamma,
            ("polygamma", Function),
            vec![],
            vec![Int, Real],
            Real,
            Eval::IntReal(math::polygamma),
            "`polygamma k x`: the k-th derivative of digamma, which is `polygamma 0`",
        )
        .partials(|at, args| {
            let next = at.prim(Prim::AddInt, [args[0].clone(), at.int(1)]);
            vec![None, Some(at.prim(Prim::Polygamma, [next, args[1].clone()]))]
        })
        .domain("k >= 0 and x not 0, -1, -2, ...", |a| a[0] >= 0.0 && !math::is_pole_of_gamma(a[1]))
        .differences("x > 0.5", |a| a[1] > 0.5),
    ]
}

/// What is not smooth: each decides by comparing its argument.
fn kinked() -> Vec<PrimInfo> {
    let rounding = |prim, name, eval, doc| {
        PrimInfo::new(prim, (name, Function), vec![], vec![Real], Int, Eval::RealToInt(eval), doc)
            .domain("x finite and within the integers", |a| math::fits_int(a[0]))
    };
    vec![
        unary(Prim::Abs, "abs", f64::abs, "absolute value; the derivative at 0 is taken as 0")
            .partials(|at, args| {
                let x = &args[0];
                let less = |a: Term, b: Term| at.prim_at(Prim::Less, [Real], [a, b]);
                let not_below = at.if_(less(at.real(0.0), x.clone()), at.real(1.0), at.real(0.0));
                vec![Some(at.if_(less(x.clone(), at.real(0.0)), at.real(-1.0), not_below))]
            })
            .kinks("x = 0", |a| a[0] == 0.0)
            .differences("|x| > 0.01", |a| a[0].abs() > 0.01),
        binary(Prim::Maximum, ("maximum", Function), math::maximum, "`if x > y then x else y`, NaN if either is")
            .partials(|at, args| choice(at, &args[1], &args[0]))
            .kinks("x = y", |a| a[0] == a[1])
            .differences("|x - y| > 0.01", |a| (a[0] - a[1]).abs() > 0.01),
        binary(Prim::Minimum, ("minimum", Function), math::minimum, "`if x < y then x else y`, NaN if either is")
            .partials(|at, args| choice(at, &args[0], &args[1]))
            .kinks("x = y", |a| a[0] == a[1])
            .differences("|x - y| > 0.01", |a| (a[0] - a[1]).abs() > 0.01),
        PrimInfo::new(
            Prim::Sign,
            ("sign", Function),
            vec![],
            vec![Real],
            Type::either(Unit, Unit),
            Eval::Structural,
            "`Inl ()` below zero, `Inr ()` above; an error at zero, in every setting",
        )
        .domain("x <> 0", |a| a[0] != 0.0)
        .kinks("x = 0", |a| a[0] == 0.0)
        .differences("|x| > 0.01", |a| a[0].abs() > 0.01),
        PrimInfo::new(
            Prim::RealOfInt,
            ("real", Function),
            vec![],
            vec![Int],
            Real,
            Eval::IntToReal(|k| k as f64),
            "the integer as a real",
        )
        .partials(|_, _| vec![None]),
        rounding(Prim::Floor, "floor", |x| x.floor() as i64, "the largest integer not above x")
            .kinks("x whole", |a| a[0] == a[0].trunc())
            .differences("x at least 0.01 away from the integers", |a| (a[0] - a[0].round()).abs() > 0.01),
        rounding(Prim::Round, "round", |x| x.round() as i64, "the nearest integer, halves away from zero")
            .kinks("x halfway between integers", |a| (a[0] - a[0].trunc()).abs() == 0.5)
            .differences("x at least 0.01 away from halves", |a| ((a[0] - a[0].trunc()).abs() - 0.5).abs() > 0.01),
        rounding(Prim::Truncate, "truncate", |x| x.trunc() as i64, "the integer part, towards zero")
            .kinks("x whole, not 0", |a| a[0] != 0.0 && a[0] == a[0].trunc())
            .proved("x not whole", |a| a[0] != a[0].trunc())
            .differences("x at least 0.01 away from the integers", |a| (a[0] - a[0].round()).abs() > 0.01),
    ]
}

fn integers() -> Vec<PrimInfo> {
    let infix = |prim, name, eval, doc| {
        PrimInfo::new(prim, (name, Infix), vec![], vec![Int, Int], Int, Eval::IntInt(eval), doc)
    };
    vec![
        infix(Prim::AddInt, "+", |x, y| Ok(x.wrapping_add(y)), "sum; 64 bits, wrapping around"),
        infix(Prim::SubInt, "-", |x, y| Ok(x.wrapping_sub(y)), "difference; 64 bits, wrapping around"),
        infix(Prim::MulInt, "*", |x, y| Ok(x.wrapping_mul(y)), "product; 64 bits, wrapping around"),
        infix(
            Prim::DivInt,
            "/",
            |x, y| if y == 0 { Err(IntError::DivisionByZero) } else { Ok(x.wrapping_div(y)) },
            "quotient, towards zero; an error if y = 0",
        ),
        infix(
            Prim::ModInt,
            "mod",
            |x, y| if y == 0 { Err(IntError::DivisionByZero) } else { Ok(x.wrapping_rem(y)) },
            "remainder of `/`, with the sign of x; an error if y = 0",
        ),
        PrimInfo::new(
            Prim::NegInt,
            ("~-", Prefix),
            vec![],
            vec![Int],
            Int,
            Eval::Int(i64::wrapping_neg),
            "negation; 64 bits, wrapping around",
        ),
        infix(Prim::PowInt, "^", math::power_of_int, "power; an error if the exponent is negative"),
    ]
}

fn add(at: At, x: Term, y: Term) -> Term {
    at.prim(Prim::AddReal, [x, y])
}

fn sub(at: At, x: Term, y: Term) -> Term {
    at.prim(Prim::SubReal, [x, y])
}

fn mul(at: At, x: Term, y: Term) -> Term {
    at.prim(Prim::MulReal, [x, y])
}

fn div(at: At, x: Term, y: Term) -> Term {
    at.prim(Prim::DivReal, [x, y])
}

fn neg(at: At, x: Term) -> Term {
    at.prim(Prim::NegReal, [x])
}

/// Another primitive at the same arguments.
fn call(at: At, prim: Prim, args: &[Term]) -> Term {
    at.prim(prim, args)
}

/// `sqrt ((1 - x) * (1 + x))`, which loses nothing near 1.
fn root_of_one_minus_square(at: At, x: &Term) -> Term {
    let product = mul(at, sub(at, at.real(1.0), x.clone()), add(at, at.real(1.0), x.clone()));
    at.prim(Prim::Sqrt, [product])
}

/// The partials of a choice between two arguments, the first of which is taken where `lesser < greater`.
fn choice(at: At, lesser: &Term, greater: &Term) -> Vec<Option<Term>> {
    let first = || at.prim_at(Prim::Less, [Real], [lesser.clone(), greater.clone()]);
    vec![Some(at.if_(first(), at.real(1.0), at.real(0.0))), Some(at.if_(first(), at.real(0.0), at.real(1.0)))]
}
