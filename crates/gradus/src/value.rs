//! Values as plain data: what goes into a program and what comes out of it.
//!
//! A [`Value`] holds no code and no reference into an evaluator, so it can be kept, sent to another thread, compared and
//! printed. [`std::fmt::Display`] writes it as a Gradus expression; [`crate::json`] writes and reads JSON.

mod text;

pub(crate) use text::{quoted, real as real_text};

use gradus_core::traverse::with_stack;
use gradus_core::Symbol;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A Gradus value. An array whose elements are reals, or arrays of reals, is always [`Value::Reals`].
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Unit,
    Bool(bool),
    Int(i64),
    Real(f64),
    String(Arc<str>),
    /// Two or more components.
    Tuple(Parts),
    /// The names of the fields in the order of their declaration, and their values.
    Record {
        fields: Arc<[Symbol]>,
        parts: Parts,
    },
    /// A constructor of a declared type with its arguments: `Leaf`, `Node (l, r)`.
    Variant {
        constructor: Symbol,
        parts: Parts,
    },
    List(Parts),
    /// An array of anything but reals.
    Array(Parts),
    /// `real[n]`, `real[n][m]`, ...
    Reals(Reals),
    /// A function, which cannot leave the program: only that there was one.
    Function,
}

/// A block of reals in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Reals {
    pub(crate) shape: Vec<usize>,
    pub(crate) data: Vec<f64>,
}

impl Reals {
    /// A block of the given shape; `None` if the number of reals is not the product of the shape, or the shape is empty.
    pub fn new(shape: impl Into<Vec<usize>>, data: impl Into<Vec<f64>>) -> Option<Self> {
        let (shape, data) = (shape.into(), data.into());
        let count = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d))?;
        (!shape.is_empty() && count == data.len()).then_some(Reals { shape, data })
    }

    /// A block of one dimension.
    pub fn vector(data: impl Into<Vec<f64>>) -> Self {
        let data = data.into();
        Reals { shape: vec![data.len()], data }
    }

    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub fn data(&self) -> &[f64] {
        &self.data
    }

    pub fn into_data(self) -> Vec<f64> {
        self.data
    }

    /// The number of elements of the outermost dimension.
    pub fn len(&self) -> usize {
        self.shape.first().copied().unwrap_or(0)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements as values: reals, or blocks of one dimension less.
    pub fn items(&self) -> impl Iterator<Item = Value> + '_ {
        let inner = self.shape.get(1..).unwrap_or_default();
        let step: usize = inner.iter().product();
        (0..self.len()).map(move |i| {
            let data = self.data.get(i * step..(i + 1) * step).unwrap_or_default();
            match (inner, data) {
                ([], [x]) => Value::Real(*x),
                _ => Value::Reals(Reals { shape: inner.to_vec(), data: data.to_vec() }),
            }
        })
    }
}

/// The parts of a composite value. A deep value is taken apart with a list of what is left to do, not by recursion,
/// so that dropping a tree of a million levels does not need a million stack frames; the other traversals grow the stack.
#[derive(Default)]
pub struct Parts(Vec<Value>);

impl Clone for Parts {
    fn clone(&self) -> Self {
        with_stack(|| Parts(self.0.clone()))
    }
}

impl PartialEq for Parts {
    fn eq(&self, other: &Self) -> bool {
        with_stack(|| self.0 == other.0)
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        with_stack(|| self.0.fmt(f))
    }
}

impl Parts {
    pub fn into_vec(mut self) -> Vec<Value> {
        std::mem::take(&mut self.0)
    }
}

impl Deref for Parts {
    type Target = [Value];
    fn deref(&self) -> &[Value] {
        &self.0
    }
}

impl DerefMut for Parts {
    fn deref_mut(&mut self) -> &mut [Value] {
        &mut self.0
    }
}

impl From<Vec<Value>> for Parts {
    fn from(values: Vec<Value>) -> Self {
        Parts(values)
    }
}

impl<const N: usize> From<[Value; N]> for Parts {
    fn from(values: [Value; N]) -> Self {
        Parts(values.into())
    }
}

impl FromIterator<Value> for Parts {
    fn from_iter<I: IntoIterator<Item = Value>>(values: I) -> Self {
        Parts(values.into_iter().collect())
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        let mut pending = std::mem::take(&mut self.0);
        while let Some(mut value) = pending.pop() {
            if let Some(parts) = value.parts_mut() {
                pending.append(&mut parts.0);
            }
        }
    }
}

impl Value {
    fn parts_mut(&mut self) -> Option<&mut Parts> {
        match self {
            Value::Tuple(parts)
            | Value::Record { parts, .. }
            | Value::Variant { parts, .. }
            | Value::List(parts)
            | Value::Array(parts) => Some(parts),
            Value::Unit
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Real(_)
            | Value::String(_)
            | Value::Reals(_)
            | Value::Function => None,
        }
    }

    pub fn tuple(parts: impl Into<Parts>) -> Value {
        Value::Tuple(parts.into())
    }

    pub fn record<'a>(fields: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
        let (names, parts): (Vec<Symbol>, Vec<Value>) = fields.into_iter().map(|(n, v)| (n.into(), v)).unzip();
        Value::Record { fields: names.into(), parts: parts.into() }
    }

    pub fn variant(constructor: &str, parts: impl Into<Parts>) -> Value {
        Value::Variant { constructor: constructor.into(), parts: parts.into() }
    }

    pub fn list(parts: impl Into<Parts>) -> Value {
        Value::List(parts.into())
    }

    /// An array. Elements that are reals, or blocks of reals of one shape, are stored flat. An empty array made here
    /// has boxed elements; [`Reals::vector`] makes an empty block of reals.
    pub fn array(items: Vec<Value>) -> Value {
        flat(&items).map_or_else(|| Value::Array(items.into()), Value::Reals)
    }

    pub fn as_real(&self) -> Option<f64> {
        match self {
            Value::Real(x) => Some(*x),
            _ => None,
        }
    }

    pub fn as_reals(&self) -> Option<&Reals> {
        match self {
            Value::Reals(block) => Some(block),
            _ => None,
        }
    }

    /// Whether no real in it is NaN or infinite.
    pub fn is_finite(&self) -> bool {
        with_stack(|| match self {
            Value::Real(x) => x.is_finite(),
            Value::Reals(block) => block.data.iter().all(|x| x.is_finite()),
            Value::Tuple(parts)
            | Value::Record { parts, .. }
            | Value::Variant { parts, .. }
            | Value::List(parts)
            | Value::Array(parts) => parts.iter().all(Value::is_finite),
            Value::Unit | Value::Bool(_) | Value::Int(_) | Value::String(_) | Value::Function => true,
        })
    }

    /// The field of a record.
    pub fn field(&self, name: &str) -> Option<&Value> {
        match self {
            Value::Record { fields, parts } => parts.get(fields.iter().position(|f| &**f == name)?),
            _ => None,
        }
    }
}

fn flat(items: &[Value]) -> Option<Reals> {
    match items.first()? {
        Value::Real(_) => {
            let data: Option<Vec<f64>> = items.iter().map(Value::as_real).collect();
            Some(Reals::vector(data?))
        }
        Value::Reals(first) => {
            let mut data = Vec::with_capacity(first.data.len() * items.len());
            for item in items {
                let row = item.as_reals().filter(|row| row.shape == first.shape)?;
                data.extend_from_slice(&row.data);
            }
            let shape = std::iter::once(items.len()).chain(first.shape.iter().copied()).collect();
            Some(Reals { shape, data })
        }
        _ => None,
    }
}

impl From<f64> for Value {
    fn from(x: f64) -> Self {
        Value::Real(x)
    }
}

impl From<i64> for Value {
    fn from(x: i64) -> Self {
        Value::Int(x)
    }
}

impl From<bool> for Value {
    fn from(x: bool) -> Self {
        Value::Bool(x)
    }
}

impl From<&str> for Value {
    fn from(x: &str) -> Self {
        Value::String(x.into())
    }
}

impl From<&[f64]> for Value {
    fn from(data: &[f64]) -> Self {
        Value::Reals(Reals::vector(data))
    }
}

impl From<Vec<f64>> for Value {
    fn from(data: Vec<f64>) -> Self {
        Value::Reals(Reals::vector(data))
    }
}

impl From<Reals> for Value {
    fn from(block: Reals) -> Self {
        Value::Reals(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_of_reals_are_flat() {
        let row = |a: f64, b: f64| Value::array(vec![a.into(), b.into()]);
        let matrix = Value::array(vec![row(1.0, 2.0), row(3.0, 4.0), row(5.0, 6.0)]);
        let block = matrix.as_reals().expect("flat");
        assert_eq!((block.shape(), block.data()), (&[3, 2][..], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0][..]));
        assert_eq!(block.items().nth(1), Some(row(3.0, 4.0)));
        assert!(matches!(Value::array(vec![Value::Int(1)]), Value::Array(_)));
    }

    #[test]
    fn a_block_must_fit_its_shape() {
        assert!(Reals::new([2, 3], [0.0; 6]).is_some());
        assert!(Reals::new([2, 3], [0.0; 5]).is_none());
        assert!(Reals::new([usize::MAX, 2], [0.0; 2]).is_none());
        assert!(Reals::new([], [0.0]).is_none());
    }

    #[test]
    fn a_deep_value_is_dropped_without_recursion() {
        let mut tree = Value::variant("Leaf", []);
        for _ in 0..1_000_000 {
            tree = Value::variant("Node", [tree]);
        }
        assert!(tree == tree.clone());
        drop(tree);
    }
}
