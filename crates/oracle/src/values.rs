//! Values on both sides: points of the generator as input of the oracle, and its answers against values of our evaluator.

use crate::types::{is_bindings, is_delta, layout, Layout};
use crate::wire::{decompose, Sexp};
use gradus_core::traverse::with_stack;
use gradus_core::{Definitions, Type};
use gradus_generate::Data;
use gradus_reference::Value;
use gradus_source::bug;
use std::fmt::Write;

/// A point, as the oracle reads it.
pub fn write(definitions: &dyn Definitions, ty: &Type, data: &Data, out: &mut String) {
    with_stack(|| match (ty, data) {
        (_, Data::Real(x)) => {
            let (m, e) = decompose(*x).unwrap_or_default();
            let sign = if x.is_sign_negative() { "-" } else { "" };
            let _ = write!(out, "{sign}0x{:x}p{e}", m.abs());
        }
        (_, Data::Int(z)) => {
            let _ = write!(out, "{z}");
        }
        (_, Data::Bool(b)) => out.push_str(if *b { "(inl ())" } else { "(inr ())" }),
        (Type::Tuple(types), Data::Tuple(items)) => {
            write_tuple(definitions, &types.iter().zip(items).collect::<Vec<_>>(), out)
        }
        (Type::Array(element), Data::Array(items)) => {
            out.push_str("(arr");
            for item in items {
                out.push(' ');
                write(definitions, element, item, out);
            }
            out.push(')');
        }
        (Type::Named(name, types), Data::Construct { tag, args }) => {
            let layout = layout(definitions, name, types).unwrap_or_else(|_| bug!("a point of type {ty:?}"));
            let own: Vec<(&Type, &Data)> = layout.constructors[*tag]
                .iter()
                .zip(args)
                .filter_map(|(t, arg)| t.as_ref().map(|t| (t, arg)))
                .collect();
            if layout.recursive() {
                out.push_str("(node ");
            }
            let count = layout.constructors.len();
            (0..*tag).for_each(|_| out.push_str("(inr "));
            if tag + 1 < count {
                out.push_str("(inl ");
            }
            write_tuple(definitions, &own, out);
            if tag + 1 < count {
                out.push(')');
            }
            (0..*tag).for_each(|_| out.push(')'));
            if layout.recursive() {
                for (_, subtree) in layout.constructors[*tag].iter().zip(args).filter(|(t, _)| t.is_none()) {
                    out.push(' ');
                    write(definitions, ty, subtree, out);
                }
                out.push(')');
            }
        }
        _ => bug!("a point does not have its type {ty:?}"),
    })
}

fn write_tuple(definitions: &dyn Definitions, items: &[(&Type, &Data)], out: &mut String) {
    match items {
        [] => out.push_str("()"),
        [(ty, item)] => write(definitions, ty, item, out),
        [(ty, first), rest @ ..] => {
            out.push_str("(pair ");
            write(definitions, ty, first, out);
            out.push(' ');
            write_tuple(definitions, rest, out);
            out.push(')');
        }
    }
}

/// Whether an answer is the value, bit for bit. `dual`: each real of the type stands for itself and its Delta.
pub fn same(definitions: &dyn Definitions, ty: &Type, value: &Value, answer: &Sexp, dual: bool) -> bool {
    with_stack(|| match (ty, value) {
        (Type::Real, Value::Node(0, parts)) if dual => match (answer.list(), &parts[..]) {
            (Some([name, x, delta]), [value, beside]) if name.atom() == Some("dual") => {
                same(definitions, ty, value, x, false) && same_delta(beside, delta)
            }
            _ => false,
        },
        (Type::Real, Value::Real(x)) => answer.atom().and_then(read_real).is_some_and(|y| same_real(*x, y)),
        (Type::Int, Value::Int(z)) => answer.atom().is_some_and(|a| a.parse() == Ok(*z)),
        (Type::Bool, Value::Bool(b)) => {
            matches!(answer.list(), Some([side, _]) if side.atom() == Some(if *b { "inl" } else { "inr" }))
        }
        (Type::Unit, Value::Unit) => answer.list().is_some_and(<[Sexp]>::is_empty),
        (Type::Fun(_), Value::Fun(..)) => answer.atom() == Some("function"),
        (Type::Tuple(types), Value::Node(0, items)) => {
            let items: Vec<_> = types.iter().zip(items.iter()).collect();
            same_tuple(definitions, &items, answer, dual)
        }
        (Type::Array(element), Value::Reals(xs)) => {
            let values: Vec<Value> = xs.iter().map(|x| Value::Real(*x)).collect();
            same_array(definitions, element, &values, answer, dual)
        }
        (Type::Array(element), Value::Ints(xs)) => {
            let values: Vec<Value> = xs.iter().map(|x| Value::Int(*x)).collect();
            same_array(definitions, element, &values, answer, dual)
        }
        (Type::Array(element), Value::Array(items)) => same_array(definitions, element, items, answer, dual),
        (Type::Named(name, types), Value::Node(tag, args)) => {
            if is_delta(name) || is_bindings(name, types) {
                return false;
            }
            match layout(definitions, name, types) {
                Ok(layout) => same_variant(definitions, ty, &layout, *tag as usize, args, answer, dual),
                Err(_) => false,
            }
        }
        _ => false,
    })
}

fn same_array(definitions: &dyn Definitions, element: &Type, items: &[Value], answer: &Sexp, dual: bool) -> bool {
    match answer.list() {
        Some([name, answers @ ..]) if name.atom() == Some("arr") => {
            answers.len() == items.len()
                && items.iter().zip(answers).all(|(v, a)| same(definitions, element, v, a, dual))
        }
        _ => false,
    }
}

fn same_tuple(definitions: &dyn Definitions, items: &[(&Type, &Value)], answer: &Sexp, dual: bool) -> bool {
    match items {
        [] => answer.list().is_some_and(<[Sexp]>::is_empty),
        [(ty, value)] => same(definitions, ty, value, answer, dual),
        [(ty, value), rest @ ..] => match answer.list() {
            Some([name, first, others]) if name.atom() == Some("pair") => {
                same(definitions, ty, value, first, dual) && same_tuple(definitions, rest, others, dual)
            }
            _ => false,
        },
    }
}

fn same_variant(
    definitions: &dyn Definitions,
    ty: &Type,
    layout: &Layout,
    tag: usize,
    args: &[Value],
    answer: &Sexp,
    dual: bool,
) -> bool {
    let (mut label, subtrees) = match answer.list() {
        Some([name, label, subtrees @ ..]) if layout.recursive() && name.atom() == Some("node") => (label, subtrees),
        _ if layout.recursive() => return false,
        _ => (answer, &[][..]),
    };
    let sides = (0..tag).map(|_| "inr").chain((tag + 1 < layout.constructors.len()).then_some("inl"));
    for side in sides {
        label = match label.list() {
            Some([name, content]) if name.atom() == Some(side) => content,
            _ => return false,
        };
    }
    let types = &layout.constructors[tag];
    let own: Vec<_> = types.iter().zip(args).filter_map(|(t, v)| t.as_ref().map(|t| (t, v))).collect();
    let below: Vec<_> = types.iter().zip(args).filter(|(t, _)| t.is_none()).map(|(_, v)| v).collect();
    same_tuple(definitions, &own, label, dual)
        && below.len() == subtrees.len()
        && below.iter().zip(subtrees).all(|(v, a)| same(definitions, ty, v, a, dual))
}

/// A value of the type `Delta` of `derive`: Zero, Scale, Add, Var.
pub fn same_delta(value: &Value, answer: &Sexp) -> bool {
    with_stack(|| match (value, answer) {
        (Value::Node(0, parts), Sexp::Atom(name)) => parts.is_empty() && name == "zero",
        (Value::Node(tag, parts), Sexp::List(answers)) => match (tag, &parts[..], &answers[..]) {
            (1, [Value::Real(x), u], [name, y, v]) if name.atom() == Some("scale") => {
                y.atom().and_then(read_real).is_some_and(|y| same_real(*x, y)) && same_delta(u, v)
            }
            (2, [u1, u2], [name, v1, v2]) if name.atom() == Some("add") => same_delta(u1, v1) && same_delta(u2, v2),
            (3, [Value::Int(i)], [name, j]) if name.atom() == Some("var") => {
                j.atom().is_some_and(|j| j.parse() == Ok(*i))
            }
            _ => false,
        },
        _ => false,
    })
}

fn same_real(x: f64, y: f64) -> bool {
    x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan())
}

/// `-0x1.8p+3`, as OCaml writes it.
pub fn read_real(text: &str) -> Option<f64> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text),
    };
    match text {
        "infinity" | "inf" => return Some(sign * f64::INFINITY),
        "nan" => return Some(f64::NAN),
        _ => {}
    }
    let (digits, exponent) = text.strip_prefix("0x")?.split_once('p')?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mantissa = u64::from_str_radix(&format!("{whole}{fraction}"), 16).ok()?;
    let exponent = exponent.parse::<i32>().ok()? - 4 * fraction.len() as i32;
    // Exact: the number is a float, and the two powers of two are.
    let half = exponent / 2;
    Some(sign * (mantissa as f64 * 2f64.powi(half)) * 2f64.powi(exponent - half))
}
