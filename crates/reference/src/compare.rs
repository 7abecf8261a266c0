//! Comparison of data, structural and without recursion.

use crate::machine::{Machine, Outcome};
use crate::value::Value;
use gradus_core::Prim;
use gradus_source::Span;
use std::cmp::Ordering;

/// How two values compare, and whether two equal reals were met on the way.
struct Comparison {
    /// `None`: a NaN decides, so that they are neither equal nor ordered.
    order: Option<Ordering>,
    equal_reals: bool,
}

impl Machine<'_> {
    pub(crate) fn compare(&mut self, prim: Prim, kink: bool, left: Value, right: Value, span: Span) -> Outcome<bool> {
        let found = match (&left, &right) {
            (Value::Real(x), Value::Real(y)) => Comparison { order: x.partial_cmp(y), equal_reals: x == y },
            (Value::Int(x), Value::Int(y)) => Comparison { order: Some(x.cmp(y)), equal_reals: false },
            _ => deep(&left, &right),
        };
        if kink {
            // Equality of data that differ elsewhere stays false nearby; an order decided after equal reals does not.
            let equality = matches!(prim, Prim::Equal | Prim::NotEqual);
            if found.equal_reals && (!equality || found.order == Some(Ordering::Equal)) {
                self.kink(prim, span)?;
            }
        }
        Ok(match prim {
            Prim::Equal => found.order == Some(Ordering::Equal),
            Prim::NotEqual => found.order != Some(Ordering::Equal),
            Prim::Less => found.order == Some(Ordering::Less),
            Prim::LessEqual => matches!(found.order, Some(Ordering::Less | Ordering::Equal)),
            Prim::Greater => found.order == Some(Ordering::Greater),
            Prim::GreaterEqual => matches!(found.order, Some(Ordering::Greater | Ordering::Equal)),
            other => gradus_source::bug!("{other:?} is no comparison"),
        })
    }
}

fn deep(left: &Value, right: &Value) -> Comparison {
    let mut pending = vec![(left, right)];
    let mut equal_reals = false;
    while let Some((x, y)) = pending.pop() {
        let order = match (x, y) {
            (Value::Real(x), Value::Real(y)) => {
                equal_reals |= x == y;
                x.partial_cmp(y)
            }
            (Value::Int(x), Value::Int(y)) => Some(x.cmp(y)),
            (Value::Bool(x), Value::Bool(y)) => Some(x.cmp(y)),
            (Value::String(x), Value::String(y)) => Some(x.as_bytes().cmp(y.as_bytes())),
            (Value::Unit, Value::Unit) => Some(Ordering::Equal),
            (Value::Node(s, xs), Value::Node(t, ys)) => {
                if s == t {
                    pending.extend(xs.iter().zip(ys.iter()).rev());
                }
                Some(s.cmp(t))
            }
            (Value::Array(xs), Value::Array(ys)) => {
                let order = xs.len().cmp(&ys.len());
                if order == Ordering::Equal {
                    pending.extend(xs.iter().zip(ys.iter()).rev());
                }
                Some(order)
            }
            (Value::Ints(xs), Value::Ints(ys)) => Some(xs.len().cmp(&ys.len()).then_with(|| xs.cmp(ys))),
            (Value::Reals(xs), Value::Reals(ys)) => match xs.len().cmp(&ys.len()) {
                Ordering::Equal => {
                    let different = xs.iter().zip(ys.iter()).find(|(x, y)| x != y);
                    equal_reals |= match (xs.first(), ys.first()) {
                        (Some(x), Some(y)) => x == y,
                        _ => false,
                    };
                    different.map_or(Some(Ordering::Equal), |(x, y)| x.partial_cmp(y))
                }
                order => Some(order),
            },
            (x, y) => gradus_source::bug!("a {} is compared with a {}", x.sort(), y.sort()),
        };
        if order != Some(Ordering::Equal) {
            return Comparison { order, equal_reals };
        }
    }
    Comparison { order: Some(Ordering::Equal), equal_reals }
}
