//! C expressions for the primitives on numbers.

use crate::flow::{Atom, Scalar};
use gradus_core::Prim;

/// The C type of a scalar.
pub fn c_type(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Real => "double",
        Scalar::Int => "int64_t",
        Scalar::Bool => "uint8_t",
        Scalar::Box(_) => "gr_cell *",
    }
}

pub fn real(value: f64) -> String {
    if value.is_nan() {
        "(0.0 / 0.0)".into()
    } else if value.is_infinite() {
        if value > 0.0 { "(1.0 / 0.0)" } else { "(-1.0 / 0.0)" }.into()
    } else if value.is_sign_negative() {
        format!("({value:?})")
    } else {
        format!("{value:?}")
    }
}

pub fn int(value: i64) -> String {
    match value {
        i64::MIN => "INT64_MIN".into(),
        _ if value < 0 => format!("({value}L)"),
        _ => format!("{value}L"),
    }
}

/// The larger or smaller of the number so far and another one.
pub fn so_far(prim: Prim, args: &[String]) -> String {
    let name = if prim == Prim::Maximum { "gr_maximum_so_far" } else { "gr_minimum_so_far" };
    format!("{name}({})", args.join(", "))
}

/// The expression of a primitive on numbers; `args` are C expressions without side effects.
pub fn expression(prim: Prim, args: &[String], atoms: &[Atom]) -> String {
    let function = |name: &str| format!("{name}({})", args.join(", "));
    let infix = |operator: &str| args.join(&format!(" {operator} "));
    match prim {
        Prim::AddReal => infix("+"),
        Prim::SubReal => infix("-"),
        Prim::MulReal => infix("*"),
        Prim::DivReal => infix("/"),
        Prim::NegReal => format!("-{}", args.join("")),
        Prim::PowRealInt => match atoms {
            [_, Atom::Int(2)] => format!("{0} * {0}", args[0]),
            [_, Atom::Int(3)] => format!("{0} * ({0} * {0})", args[0]),
            _ => function("gr_powi"),
        },
        Prim::PowReal => function("pow"),
        Prim::Exp => function("exp"),
        Prim::Log => function("log"),
        Prim::Sqrt => function("sqrt"),
        Prim::Sin => function("sin"),
        Prim::Cos => function("cos"),
        Prim::Tan => function("tan"),
        Prim::Asin => function("asin"),
        Prim::Acos => function("acos"),
        Prim::Atan => function("atan"),
        Prim::Atan2 => function("atan2"),
        Prim::Sinh => function("sinh"),
        Prim::Cosh => function("cosh"),
        Prim::Tanh => function("tanh"),
        Prim::Log1p => function("log1p"),
        Prim::Expm1 => function("expm1"),
        Prim::Erf => function("erf"),
        Prim::Lgamma => function("gr_lgamma"),
        Prim::Polygamma => function("gr_polygamma"),
        Prim::Abs => function("fabs"),
        Prim::Maximum => function("gr_maximum"),
        Prim::Minimum => function("gr_minimum"),
        Prim::RealOfInt => format!("(double){}", args.join("")),
        Prim::Floor => format!("gr_to_int({})", function("floor")),
        Prim::Round => format!("gr_to_int({})", function("round")),
        Prim::Truncate => format!("gr_to_int({})", function("trunc")),
        Prim::AddInt => function("gr_iadd"),
        Prim::SubInt => function("gr_isub"),
        Prim::MulInt => function("gr_imul"),
        Prim::DivInt => function("gr_idiv"),
        Prim::ModInt => function("gr_imod"),
        Prim::NegInt => format!("gr_isub(0, {})", args.join("")),
        Prim::PowInt => function("gr_power_of_int"),
        Prim::Equal => infix("=="),
        Prim::NotEqual => infix("!="),
        Prim::Less => infix("<"),
        Prim::LessEqual => infix("<="),
        Prim::Greater => infix(">"),
        Prim::GreaterEqual => infix(">="),
        Prim::Not => format!("!{}", args.join("")),
        Prim::Sign
        | Prim::StringAppend
        | Prim::StringLength
        | Prim::StringOfInt
        | Prim::StringOfReal
        | Prim::Build
        | Prim::Get
        | Prim::Length
        | Prim::Set
        | Prim::Ifold
        | Prim::Iterate
        | Prim::CheckSize
        | Prim::VectorAdd
        | Prim::VectorSub
        | Prim::Scale
        | Prim::Inner
        | Prim::ZeroLike
        | Prim::StopGradient
        | Prim::Checkpoint => gradus_source::bug!("{prim:?} is no operation on numbers"),
    }
}
