//! Value to JSON text, on one line and complete.

use crate::value::real_text;
use crate::Value;
use gradus_core::traverse::with_stack;
use std::fmt;

/// A function inside the value: JSON has no functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotData;

impl fmt::Display for NotData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a function cannot be written as JSON")
    }
}

pub fn write(value: &Value) -> Result<String, NotData> {
    let mut out = String::new();
    put(value, &mut out)?;
    Ok(out)
}

fn put(value: &Value, out: &mut String) -> Result<(), NotData> {
    with_stack(|| {
        match value {
            Value::Unit => out.push_str("null"),
            Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
            Value::Int(i) => out.push_str(&i.to_string()),
            Value::Real(x) => put_real(*x, out),
            Value::String(s) => put_string(s, out),
            Value::Tuple(parts) | Value::List(parts) | Value::Array(parts) => put_sequence(parts, out)?,
            Value::Reals(block) => put_reals(block.shape(), block.data(), out),
            Value::Record { fields, parts } => {
                for (i, (name, part)) in fields.iter().zip(parts.iter()).enumerate() {
                    out.push(if i == 0 { '{' } else { ',' });
                    put_string(name, out);
                    out.push(':');
                    put(part, out)?;
                }
                out.push_str(if fields.is_empty() { "{}" } else { "}" });
            }
            Value::Variant { constructor, parts } if parts.is_empty() => put_string(constructor, out),
            Value::Variant { constructor, parts } => {
                out.push('{');
                put_string(constructor, out);
                out.push(':');
                put_sequence(parts, out)?;
                out.push('}');
            }
            Value::Function => return Err(NotData),
        }
        Ok(())
    })
}

fn put_sequence(parts: &[Value], out: &mut String) -> Result<(), NotData> {
    out.push('[');
    for (i, part) in parts.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        put(part, out)?;
    }
    out.push(']');
    Ok(())
}

fn put_reals(shape: &[usize], data: &[f64], out: &mut String) {
    let Some((&len, inner)) = shape.split_first() else {
        data.iter().for_each(|x| put_real(*x, out));
        return;
    };
    let step: usize = inner.iter().product();
    out.push('[');
    for i in 0..len {
        if i > 0 {
            out.push(',');
        }
        put_reals(inner, data.get(i * step..(i + 1) * step).unwrap_or_default(), out);
    }
    out.push(']');
}

fn put_real(x: f64, out: &mut String) {
    let text = real_text(x);
    if x.is_finite() {
        out.push_str(&text);
    } else {
        put_string(&text, out);
    }
}

/// Strings as `serde_json` writes them.
pub fn put_string(text: &str, out: &mut String) {
    out.push_str(&serde_json::Value::from(text).to_string());
}
