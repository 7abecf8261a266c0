//! The elementary functions as Gradus computes them, for the extracted evaluator to call: what is compared is how programs are
//! evaluated and differentiated, not whose sine is more accurate. The extracted evaluator decides by itself where a
//! function has a kink.

#![allow(unsafe_code)] // the attribute that gives a function a name for the linker

use gradus_core::prim::Eval;
use gradus_core::Prim;

/// In the order of `prim1` of `proofs/Language.v`.
const UNARY: [Prim; 18] = [
    Prim::NegReal,
    Prim::Exp,
    Prim::Log,
    Prim::Sqrt,
    Prim::Sin,
    Prim::Cos,
    Prim::Tan,
    Prim::Asin,
    Prim::Acos,
    Prim::Atan,
    Prim::Sinh,
    Prim::Cosh,
    Prim::Tanh,
    Prim::Log1p,
    Prim::Expm1,
    Prim::Abs,
    Prim::Erf,
    Prim::Lgamma,
];

/// In the order of `prim2`.
const BINARY: [Prim; 8] = [
    Prim::AddReal,
    Prim::SubReal,
    Prim::MulReal,
    Prim::DivReal,
    Prim::PowReal,
    Prim::Atan2,
    Prim::Maximum,
    Prim::Minimum,
];

fn at(table: &[Prim], index: i64) -> Option<Prim> {
    usize::try_from(index).ok().and_then(|index| table.get(index)).copied()
}

#[no_mangle]
pub extern "C" fn gradus_real1(index: i64, x: f64) -> f64 {
    match at(&UNARY, index).map(|prim| prim.info().eval) {
        Some(Eval::Real(f)) => f(x),
        _ => f64::NAN,
    }
}

#[no_mangle]
pub extern "C" fn gradus_real2(index: i64, x: f64, y: f64) -> f64 {
    match at(&BINARY, index).map(|prim| prim.info().eval) {
        Some(Eval::RealReal(f)) => f(x, y),
        _ => f64::NAN,
    }
}

#[no_mangle]
pub extern "C" fn gradus_reali(index: i64, x: f64, k: i64) -> f64 {
    match at(&[Prim::PowRealInt, Prim::Polygamma], index).map(|prim| prim.info().eval) {
        Some(Eval::RealInt(f)) => f(x, k),
        Some(Eval::IntReal(f)) => f(k, x),
        _ => f64::NAN,
    }
}

/// `floor`, `round`, `truncate`.
#[no_mangle]
pub extern "C" fn gradus_round(index: i64, x: f64) -> i64 {
    match at(&[Prim::Floor, Prim::Round, Prim::Truncate], index).map(|prim| prim.info().eval) {
        Some(Eval::RealToInt(f)) => f(x),
        _ => 0,
    }
}
