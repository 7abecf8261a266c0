//! The functions that compiled code calls, by symbol: the runtime's and the mathematics.
//!
//! Elementary functions are those of the C library, as in the C backend; what it lacks comes from the primitive table's own mathematics.

use cranelift_codegen::ir::types::{Type, F64, I32, I64, I8};
use gradus_core::prim::math;
use gradus_core::Prim;
use gradus_runtime::math::{map, map2, BINARY, UNARY};
use gradus_runtime::{boxes, cells, chunks, elements, memory, products, tape};

extern "C" fn powi(x: f64, k: i64) -> f64 {
    math::powi(x, k)
}

/// A negative exponent is checked before.
extern "C" fn power_of_int(x: i64, k: i64) -> i64 {
    math::power_of_int(x, k).unwrap_or(0)
}

extern "C" fn polygamma(k: i64, x: f64) -> f64 {
    math::polygamma(k, x)
}

extern "C" fn lgamma(x: f64) -> f64 {
    match Prim::Lgamma.info().eval {
        gradus_core::prim::Eval::Real(f) => f(x),
        _ => gradus_source::bug!("lgamma is a function from real to real"),
    }
}

struct Symbol {
    name: &'static str,
    address: *const u8,
    params: &'static [Type],
    result: Option<Type>,
}

macro_rules! symbols {
    ($($name:literal = $function:expr, ($($param:ident),*) -> $result:expr;)*) => {
        [$(Symbol { name: $name, address: $function as *const u8, params: &[$($param),*], result: $result }),*]
    };
}

fn symbols() -> impl Iterator<Item = Symbol> {
    let unary =
        UNARY.iter().map(|(name, f)| Symbol { name, address: *f as *const u8, params: &[F64], result: Some(F64) });
    let binary = BINARY.iter().map(|(name, f)| Symbol {
        name,
        address: *f as *const u8,
        params: &[F64, F64],
        result: Some(F64),
    });
    let others = symbols! {
        "gradus_powi" = powi, (F64, I64) -> Some(F64);
        "gradus_power_of_int" = power_of_int, (I64, I64) -> Some(I64);
        "gradus_polygamma" = polygamma, (I64, F64) -> Some(F64);
        "gradus_lgamma" = lgamma, (F64) -> Some(F64);
        "gradus_enter" = memory::enter, () -> Some(I64);
        "gradus_abandon" = memory::abandon, (I64) -> None;
        "gradus_count_steps" = memory::count_steps, (I64, I64) -> Some(I32);
        "gradus_look" = memory::look, (I64) -> Some(I32);
        "gradus_allocate" = memory::allocate, (I64, I64) -> Some(I64);
        "gradus_allocate_several" = memory::allocate_several, (I64, I64, I64, I64) -> Some(I64);
        "gradus_free" = memory::free, (I64, I64) -> None;
        "gradus_copy" = memory::copy, (I64, I64, I64) -> Some(I64);
        "gradus_extend" = memory::extend, (I64, I64, I64, I64, I64, I64) -> Some(I64);
        "gradus_grow" = memory::grow, (I64, I64, I64, I64) -> Some(I64);
        "gradus_settle" = memory::settle, (I64, I64, I64, I64) -> Some(I64);
        "gradus_hand_over" = memory::hand_over, (I64, I64, I64) -> None;
        "gradus_fill" = elements::fill, (I64, I64, I64) -> None;
        "gradus_fill_bools" = elements::fill_bools, (I64, I64, I8) -> None;
        "gradus_move" = elements::move_bytes, (I64, I64, I64) -> None;
        "gradus_add" = elements::add, (I64, I64, I64) -> None;
        "gradus_leave" = memory::leave, (I64) -> None;
        "gradus_new_cell" = cells::new, (I64, I64) -> Some(I64);
        "gradus_free_cell" = cells::free_last, (I64, I64) -> None;
        "gradus_more_tape" = tape::more, (I64, I64) -> Some(I64);
        "gradus_allocate_boxes" = cells::allocate, (I64, I64) -> Some(I64);
        "gradus_put_all" = cells::put_all, (I64, I64, I64, I64) -> None;
        "gradus_copy_boxes" = cells::copy, (I64, I64, I64) -> Some(I64);
        "gradus_grow_boxes" = cells::grow, (I64, I64, I64, I64) -> Some(I64);
        "gradus_fill_boxes" = cells::fill, (I64, I64, I64) -> None;
        "gradus_digits" = cells::digits, (F64, I64) -> Some(I64);
        "gradus_input_boxes" = boxes::input, (I64, I64, I64, I64, I64, I64) -> Some(I32);
        "gradus_output_boxes" = boxes::output, (I64, I64, I64, I64, I64, I64) -> Some(I32);
        "gradus_run_loop" = chunks::run, (I64, I64, I64, I64, I64) -> Some(I32);
        "gradus_add_product" = products::add, (I64, I64) -> Some(I32);
        "gradus_map" = map, (I64, I64, I64) -> None;
        "gradus_map2" = map2, (I64, I64, I64, I64) -> None;
    };
    unary.chain(binary).chain(others)
}

/// The names and addresses of all of them.
pub(super) fn addresses() -> impl Iterator<Item = (&'static str, *const u8)> {
    symbols().map(|s| (s.name, s.address))
}

pub(super) fn signature(name: &str) -> (&'static [Type], Option<Type>) {
    match symbols().find(|s| s.name == name) {
        Some(symbol) => (symbol.params, symbol.result),
        None => gradus_source::bug!("compiled code calls {name}, which is not there"),
    }
}

/// The function that computes a primitive, of those that are not a few instructions.
pub(super) fn function_of(prim: Prim) -> Option<&'static str> {
    Some(match prim {
        Prim::Exp => "exp",
        Prim::Log => "log",
        Prim::Sin => "sin",
        Prim::Cos => "cos",
        Prim::Tan => "tan",
        Prim::Asin => "asin",
        Prim::Acos => "acos",
        Prim::Atan => "atan",
        Prim::Sinh => "sinh",
        Prim::Cosh => "cosh",
        Prim::Tanh => "tanh",
        Prim::Log1p => "log1p",
        Prim::Expm1 => "expm1",
        Prim::Erf => "erf",
        Prim::PowReal => "pow",
        Prim::Atan2 => "atan2",
        Prim::PowRealInt => "gradus_powi",
        Prim::PowInt => "gradus_power_of_int",
        Prim::Polygamma => "gradus_polygamma",
        Prim::Lgamma => "gradus_lgamma",
        _ => return None,
    })
}

/// The number of the function that computes a primitive for many numbers at once.
pub(super) fn kernel_of(prim: Prim) -> Option<usize> {
    let name = function_of(prim)?;
    let unary = UNARY.iter().position(|(n, _)| *n == name);
    unary.or_else(|| BINARY.iter().position(|(n, _)| *n == name))
}
