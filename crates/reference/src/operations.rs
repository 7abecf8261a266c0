//! Arrays and strings: the operations of the machine that need more than a line.

use crate::code::{Elements, Op};
use crate::error::{Problem, RuntimeError};
use crate::machine::{internal, Machine, Outcome};
use crate::memory::Shared;
use crate::value::{Fields, Value};
use gradus_source::Span;

/// The elements of an array that is being made.
pub(crate) enum Collected {
    Reals(Vec<f64>),
    Ints(Vec<i64>),
    Values(Vec<Value>),
}

impl Collected {
    pub fn new(elements: Elements, count: usize) -> Self {
        // Whoever asks for a huge array has been checked against the limit; the memory itself comes as it is needed.
        let room = count.min(1 << 16);
        match elements {
            Elements::Reals => Collected::Reals(Vec::with_capacity(room)),
            Elements::Ints => Collected::Ints(Vec::with_capacity(room)),
            Elements::Values => Collected::Values(Vec::with_capacity(room)),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Collected::Reals(xs) => xs.len(),
            Collected::Ints(xs) => xs.len(),
            Collected::Values(xs) => xs.len(),
        }
    }

    /// Adds an element; an array among arrays must have the size of the first one.
    pub fn push(&mut self, value: Value) -> Result<(), Problem> {
        match (self, value) {
            (Collected::Reals(xs), Value::Real(x)) => xs.push(x),
            (Collected::Ints(xs), Value::Int(x)) => xs.push(x),
            (Collected::Values(xs), value) => {
                if let Some(first) = xs.first() {
                    regular(xs.len(), first, &value)?;
                }
                xs.push(value);
            }
            (Collected::Reals(_) | Collected::Ints(_), value) => {
                return Err(Problem::Internal(format!("a {} in an array of numbers", value.sort())));
            }
        }
        Ok(())
    }

    pub fn finish(self) -> Value {
        match self {
            Collected::Reals(xs) => Value::reals(xs),
            Collected::Ints(xs) => Value::ints(xs),
            Collected::Values(xs) => Value::Array(Fields::new(xs)),
        }
    }
}

/// Arrays are regular: elements that are arrays have one size.
fn regular(index: usize, first: &Value, other: &Value) -> Result<(), Problem> {
    let (Some(one), Some(two)) = (length(first), length(other)) else { return Ok(()) };
    let same = one == two
        && match (first, other) {
            (Value::Array(xs), Value::Array(ys)) => match (xs.first(), ys.first()) {
                (Some(x), Some(y)) => length(x).is_none() || sizes(x) == sizes(y),
                _ => true,
            },
            _ => true,
        };
    if same {
        return Ok(());
    }
    Err(Problem::Ragged { index, expected: sizes(first), found: sizes(other) })
}

/// The sizes of an array of arrays, from outside in.
fn sizes(value: &Value) -> Vec<usize> {
    let (mut sizes, mut value) = (Vec::new(), value);
    while let Some(length) = length(value) {
        sizes.push(length);
        match value {
            Value::Array(items) if length > 0 => value = &items[0],
            _ => break,
        }
    }
    sizes
}

/// The length of an array.
pub(crate) fn length(value: &Value) -> Option<usize> {
    match value {
        Value::Reals(xs) => Some(xs.len()),
        Value::Ints(xs) => Some(xs.len()),
        Value::Array(xs) => Some(xs.len()),
        Value::Unit
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Real(_)
        | Value::String(_)
        | Value::Node(..)
        | Value::Fun(..) => None,
    }
}

impl Machine<'_> {
    pub(crate) fn operation(&mut self, op: Op, span: Span) -> Outcome<()> {
        let result = match op {
            Op::Sign => match self.pop() {
                Value::Real(x) if x < 0.0 => Value::construct(0, vec![Value::Unit]),
                Value::Real(x) if x > 0.0 => Value::construct(1, vec![Value::Unit]),
                Value::Real(_) => return Err(RuntimeError::new(Problem::SignOfZero, span)),
                other => return Err(wrong("real", &other, span)),
            },
            Op::StringAppend => match (self.pop(), self.pop()) {
                (Value::String(right), Value::String(left)) => {
                    self.need_memory(left.len() + right.len(), span)?;
                    Value::string(&format!("{}{}", &*left, &*right))
                }
                (right, _) => return Err(wrong("string", &right, span)),
            },
            Op::StringLength => match self.pop() {
                Value::String(text) => Value::Int(text.chars().count() as i64),
                other => return Err(wrong("string", &other, span)),
            },
            Op::StringOfInt => match self.pop() {
                Value::Int(k) => Value::string(&k.to_string()),
                other => return Err(wrong("int", &other, span)),
            },
            Op::StringOfReal => match self.pop() {
                Value::Real(x) => Value::string(&real_text(x)),
                other => return Err(wrong("real", &other, span)),
            },
            Op::Get(array_on_top) => {
                let (mut index, mut array) = (self.pop(), self.pop());
                if array_on_top {
                    std::mem::swap(&mut index, &mut array);
                }
                self.element(&array, &index, span)?
            }
            Op::Length => {
                let array = self.pop();
                match length(&array) {
                    Some(length) => Value::Int(length as i64),
                    None => return Err(wrong("array", &array, span)),
                }
            }
            Op::Set => {
                let (value, index, array) = (self.pop(), self.pop(), self.pop());
                self.set(array, index, value, span)?
            }
            Op::CheckSize => {
                let (expected, array) = (self.pop(), self.pop());
                match (length(&array), expected) {
                    (Some(found), Value::Int(expected)) if found as i64 == expected => array,
                    (Some(found), Value::Int(expected)) => {
                        return Err(RuntimeError::new(Problem::SizeMismatch { expected, found }, span));
                    }
                    _ => return Err(wrong("array", &array, span)),
                }
            }
            _ => return Err(internal("an operation on arrays or strings is not known".into(), span)),
        };
        self.push(result);
        Ok(())
    }

    pub(crate) fn element(&self, array: &Value, index: &Value, span: Span) -> Outcome<Value> {
        let position = position(array, index, span)?;
        Ok(match array {
            Value::Reals(xs) => Value::Real(xs[position]),
            Value::Ints(xs) => Value::Int(xs[position]),
            Value::Array(xs) => xs[position].clone(),
            other => return Err(wrong("array", other, span)),
        })
    }

    /// Replaces an element: in place if nobody else holds the array.
    fn set(&mut self, array: Value, index: Value, value: Value, span: Span) -> Outcome<Value> {
        let at = position(&array, &index, span)?;
        match (array, value) {
            (Value::Reals(mut xs), Value::Real(x)) => Ok(Value::Reals(match xs.unique() {
                Some(own) => {
                    own[at] = x;
                    xs
                }
                None => {
                    self.copying(xs.len(), 8, span)?;
                    let mut copy = xs.to_vec();
                    copy[at] = x;
                    Shared::new(copy)
                }
            })),
            (Value::Ints(mut xs), Value::Int(x)) => Ok(Value::Ints(match xs.unique() {
                Some(own) => {
                    own[at] = x;
                    xs
                }
                None => {
                    self.copying(xs.len(), 8, span)?;
                    let mut copy = xs.to_vec();
                    copy[at] = x;
                    Shared::new(copy)
                }
            })),
            (Value::Array(mut xs), x) => {
                if xs.len() > 1 {
                    let other = &xs[usize::from(at == 0)];
                    regular(at, other, &x).map_err(|problem| RuntimeError::new(problem, span))?;
                }
                if let Some(own) = xs.unique() {
                    own[at] = x;
                    return Ok(Value::Array(xs));
                }
                self.copying(xs.len(), size_of::<Value>(), span)?;
                let mut copy = xs.to_vec();
                copy[at] = x;
                Ok(Value::Array(Fields::new(copy)))
            }
            (array, _) => Err(wrong("array", &array, span)),
        }
    }

    /// Copying a shared array takes time and memory.
    fn copying(&mut self, count: usize, width: usize, span: Span) -> Outcome<()> {
        self.steps += count as u64;
        self.need_memory(count * width, span)
    }
}

/// The index, if it lies inside the array.
fn position(array: &Value, index: &Value, span: Span) -> Outcome<usize> {
    let Some(length) = length(array) else { return Err(wrong("array", array, span)) };
    let Value::Int(index) = index else { return Err(wrong("int", index, span)) };
    match usize::try_from(*index) {
        Ok(position) if position < length => Ok(position),
        _ => Err(RuntimeError::new(Problem::IndexOutOfBounds { index: *index, length }, span)),
    }
}

#[cold]
fn wrong(expected: &str, found: &Value, span: Span) -> Box<RuntimeError> {
    internal(format!("a {} where a {expected} is needed", found.sort()), span)
}

/// The shortest decimal that reads back as the same real.
pub(crate) fn real_text(x: f64) -> String {
    if x.is_nan() {
        "nan".into()
    } else if x.is_infinite() {
        if x > 0.0 {
            "inf".into()
        } else {
            "-inf".into()
        }
    } else {
        format!("{x:?}")
    }
}
