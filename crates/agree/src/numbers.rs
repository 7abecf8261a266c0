//! The reals of a value, in order, beside everything else that it consists of.

use gradus_core::build::At;
use gradus_core::{Prim, Term, Type};
use gradus_reference::Value;

/// The reals of a value of data type from left to right, and a description of its shape with the other leaves.
pub fn flatten(value: &Value) -> (Vec<f64>, String) {
    let (mut reals, mut shape) = (Vec::new(), String::new());
    walk(value, &mut reals, &mut shape);
    (reals, shape)
}

fn walk(value: &Value, reals: &mut Vec<f64>, shape: &mut String) {
    match value {
        Value::Unit => shape.push('u'),
        Value::Bool(b) => shape.push_str(if *b { "t" } else { "f" }),
        Value::Int(i) => shape.push_str(&format!("i{i}")),
        Value::Real(x) => {
            reals.push(*x);
            shape.push('r');
        }
        Value::String(text) => shape.push_str(&format!("{:?}", &**text)),
        Value::Node(tag, fields) => {
            shape.push_str(&format!("{tag}("));
            fields.iter().for_each(|field| walk(field, reals, shape));
            shape.push(')');
        }
        Value::Fun(..) => shape.push('F'),
        Value::Reals(items) => {
            reals.extend(items.iter());
            shape.push_str(&format!("R{}", items.len()));
        }
        Value::Ints(items) => shape.push_str(&format!("I{:?}", items.as_slice())),
        Value::Array(fields) => {
            shape.push_str(&format!("A{}[", fields.len()));
            fields.iter().for_each(|field| walk(field, reals, shape));
            shape.push(']');
        }
    }
}

/// Equal to within rounding, relative to the largest number around; two that are no numbers count as equal.
pub fn close(a: f64, b: f64, tolerance: f64, scale: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * scale.max(1.0)
}

pub fn largest(numbers: &[f64]) -> f64 {
    numbers.iter().filter(|x| x.is_finite()).fold(0.0, |m, x| x.abs().max(m))
}

pub fn inner(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// `point <+> step *> direction`
pub fn along(ty: &Type, point: &Term, step: f64, direction: &Term) -> Term {
    let at = At::default();
    let scaled = at.prim_at(Prim::Scale, [ty.clone()], [at.real(step), direction.clone()]);
    at.prim_at(Prim::VectorAdd, [ty.clone()], [point.clone(), scaled])
}
