//! Arithmetic that can be done at compile time. Only laws that hold for every IEEE number, NaN, infinities and the sign of zero
//! included; `x + 0.0` is not `x` when `x` is -0.0, and `x * 0.0` is not 0.0.

use super::Atom;
use gradus_core::prim::Eval;
use gradus_core::Prim;

/// The result of a primitive if it is known.
pub fn scalar(prim: Prim, args: &[Atom]) -> Option<Atom> {
    identity(prim, args).or_else(|| constant(prim, args))
}

fn identity(prim: Prim, args: &[Atom]) -> Option<Atom> {
    match (prim, args) {
        (Prim::MulReal | Prim::DivReal, [x, one]) if one.is_real(1.0) => Some(*x),
        (Prim::MulReal, [one, x]) if one.is_real(1.0) => Some(*x),
        (Prim::SubReal, [x, zero]) if zero.is_real(0.0) => Some(*x),
        (Prim::AddReal, [x, zero]) | (Prim::AddReal, [zero, x]) if zero.is_real(-0.0) => Some(*x),
        (Prim::AddInt | Prim::SubInt, [x, Atom::Int(0)]) | (Prim::AddInt, [Atom::Int(0), x]) => Some(*x),
        (Prim::MulInt | Prim::DivInt, [x, Atom::Int(1)]) | (Prim::MulInt, [Atom::Int(1), x]) => Some(*x),
        (Prim::MulInt, [_, Atom::Int(0)] | [Atom::Int(0), _]) => Some(Atom::Int(0)),
        (Prim::PowRealInt, [x, Atom::Int(1)]) => Some(*x),
        (Prim::PowRealInt, [_, Atom::Int(0)]) => Some(Atom::Real(1.0)),
        (Prim::Equal | Prim::LessEqual | Prim::GreaterEqual, [Atom::Var(x), Atom::Var(y)])
            if x == y && !x.ty.is_real() =>
        {
            Some(Atom::Bool(true))
        }
        (Prim::NotEqual | Prim::Less | Prim::Greater, [Atom::Var(x), Atom::Var(y)]) if x == y && !x.ty.is_real() => {
            Some(Atom::Bool(false))
        }
        (Prim::Equal, [x, Atom::Bool(true)]) | (Prim::Equal, [Atom::Bool(true), x]) => Some(*x),
        _ => None,
    }
}

fn constant(prim: Prim, args: &[Atom]) -> Option<Atom> {
    match (prim.info().eval, args) {
        (Eval::Real(f), [Atom::Real(x)]) => Some(Atom::Real(f(*x))),
        (Eval::RealReal(f), [Atom::Real(x), Atom::Real(y)]) => Some(Atom::Real(f(*x, *y))),
        (Eval::RealInt(f), [Atom::Real(x), Atom::Int(k)]) => Some(Atom::Real(f(*x, *k))),
        (Eval::IntReal(f), [Atom::Int(k), Atom::Real(x)]) => Some(Atom::Real(f(*k, *x))),
        (Eval::IntToReal(f), [Atom::Int(k)]) => Some(Atom::Real(f(*k))),
        (Eval::RealToInt(f), [Atom::Real(x)]) => Some(Atom::Int(f(*x))),
        (Eval::Int(f), [Atom::Int(k)]) => Some(Atom::Int(f(*k))),
        (Eval::IntInt(f), [Atom::Int(x), Atom::Int(y)]) => f(*x, *y).ok().map(Atom::Int),
        (Eval::Structural, [x, y]) => compare(prim, *x, *y),
        (Eval::Structural, [Atom::Bool(b)]) if prim == Prim::Not => Some(Atom::Bool(!b)),
        _ => None,
    }
}

fn compare(prim: Prim, x: Atom, y: Atom) -> Option<Atom> {
    let order = match (x, y) {
        (Atom::Real(x), Atom::Real(y)) => x.partial_cmp(&y),
        (Atom::Int(x), Atom::Int(y)) => Some(x.cmp(&y)),
        (Atom::Bool(x), Atom::Bool(y)) => Some(x.cmp(&y)),
        _ => return None,
    };
    let holds = match prim {
        Prim::Equal => order.is_some_and(|o| o.is_eq()),
        Prim::NotEqual => !order.is_some_and(|o| o.is_eq()),
        Prim::Less => order.is_some_and(|o| o.is_lt()),
        Prim::LessEqual => order.is_some_and(|o| o.is_le()),
        Prim::Greater => order.is_some_and(|o| o.is_gt()),
        Prim::GreaterEqual => order.is_some_and(|o| o.is_ge()),
        _ => return None,
    };
    Some(Atom::Bool(holds))
}
