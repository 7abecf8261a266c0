//! Values of the machine.

use crate::memory::Shared;
use std::ops::Deref;

/// A value. It belongs to the machine that made it, whose code functions refer to by number.
#[derive(Clone, Default)]
pub enum Value {
    #[default]
    Unit,
    Bool(bool),
    Int(i64),
    Real(f64),
    String(Shared<str>),
    /// A constructor with its tag; a tuple or a record (tag 0).
    Node(u32, Fields),
    /// The number of its code; the values of the captured variables, then the arguments that it has already got.
    Fun(u32, Fields),
    /// `real[]`
    Reals(Shared<Vec<f64>>),
    /// `int[]`
    Ints(Shared<Vec<i64>>),
    /// An array of anything else.
    Array(Fields),
}

/// Values side by side; none need no memory.
#[derive(Clone, Default)]
pub struct Fields(Option<Shared<[Value]>>);

impl Fields {
    pub fn new(values: Vec<Value>) -> Self {
        Fields((!values.is_empty()).then(|| Shared::new(values)))
    }

    /// The last `count` values of a stack.
    pub(crate) fn pop(stack: &mut Vec<Value>, count: usize) -> Self {
        if count == 0 {
            return Fields(None);
        }
        let start = stack.len() - count;
        Fields(Some(Shared::new(stack.drain(start..).collect::<std::rc::Rc<[Value]>>())))
    }

    /// The fields, if nobody else holds them.
    pub(crate) fn unique(&mut self) -> Option<&mut [Value]> {
        self.0.as_mut()?.unique()
    }

    /// Takes out one field: moves it if nobody else holds the rest.
    pub(crate) fn take(mut self, index: usize) -> Value {
        match self.unique() {
            Some(fields) => std::mem::take(&mut fields[index]),
            None => self[index].clone(),
        }
    }

    pub(crate) fn address(&self) -> usize {
        self.0.as_ref().map_or(0, Shared::address)
    }
}

impl Deref for Fields {
    type Target = [Value];
    fn deref(&self) -> &[Value] {
        match &self.0 {
            Some(values) => values,
            None => &[],
        }
    }
}

impl From<Vec<Value>> for Fields {
    fn from(values: Vec<Value>) -> Self {
        Fields::new(values)
    }
}

impl Value {
    pub fn tuple(parts: impl Into<Fields>) -> Value {
        Value::Node(0, parts.into())
    }

    pub fn construct(tag: usize, args: impl Into<Fields>) -> Value {
        Value::Node(tag as u32, args.into())
    }

    pub fn string(text: &str) -> Value {
        Value::String(Shared::new(text))
    }

    pub fn reals(values: Vec<f64>) -> Value {
        Value::Reals(Shared::new(values))
    }

    /// The numbers of a `real[]`, without a copy if nobody else holds them.
    pub fn into_reals(self) -> Option<Vec<f64>> {
        match self {
            Value::Reals(numbers) => Some(numbers.into_vec()),
            Value::Unit
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Real(_)
            | Value::String(_)
            | Value::Node(..)
            | Value::Fun(..)
            | Value::Ints(_)
            | Value::Array(_) => None,
        }
    }

    pub fn ints(values: Vec<i64>) -> Value {
        Value::Ints(Shared::new(values))
    }

    /// Whether freeing it can free other values.
    pub(crate) fn has_parts(&self) -> bool {
        match self {
            Value::Node(_, fields) | Value::Fun(_, fields) | Value::Array(fields) => fields.0.is_some(),
            Value::Unit
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Real(_)
            | Value::String(_)
            | Value::Reals(_)
            | Value::Ints(_) => false,
        }
    }

    /// What it is, for messages about our own mistakes.
    pub(crate) fn sort(&self) -> &'static str {
        match self {
            Value::Unit => "unit",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Real(_) => "real",
            Value::String(_) => "string",
            Value::Node(..) => "tuple or constructor",
            Value::Fun(..) => "function",
            Value::Reals(_) | Value::Ints(_) | Value::Array(_) => "array",
        }
    }
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Unit => write!(f, "()"),
            Value::Bool(b) => write!(f, "{b}"),
            Value::Int(i) => write!(f, "{i}"),
            Value::Real(x) => write!(f, "{x:?}"),
            Value::String(s) => write!(f, "{:?}", &**s),
            // Parts are left out: they may be deep.
            Value::Node(tag, fields) => write!(f, "<constructor {tag} of {}>", fields.len()),
            Value::Fun(..) => write!(f, "<function>"),
            Value::Reals(xs) => write!(f, "{:?}", &**xs),
            Value::Ints(xs) => write!(f, "{:?}", &**xs),
            Value::Array(items) => write!(f, "<array of {}>", items.len()),
        }
    }
}
