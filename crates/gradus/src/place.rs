//! Where in a piece of data something is, and what does not fit there: `$.points[3].x: expected a number, found "abc"`.

use crate::schema::Shape;
use gradus_core::Symbol;
use std::fmt;

/// A place inside a value, as a chain of steps that lives on the stack of the traversal.
#[derive(Clone, Copy)]
pub enum Place<'a> {
    Root,
    Field(&'a Place<'a>, &'a str),
    Index(&'a Place<'a>, usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const OUTER: usize = 10;
        const INNER: usize = 5;
        let mut steps = Vec::new();
        let mut place = self;
        loop {
            place = match place {
                Place::Root => break,
                Place::Field(outer, name) => {
                    steps.push(format!(".{name}"));
                    outer
                }
                Place::Index(outer, index) => {
                    steps.push(format!("[{index}]"));
                    outer
                }
            };
        }
        steps.reverse();
        if steps.len() > OUTER + INNER {
            steps.splice(OUTER..steps.len() - INNER, ["...".to_string()]);
        }
        write!(f, "${}", steps.concat())
    }
}

/// A piece of data that does not have the type that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    pub place: String,
    pub expected: String,
    pub found: String,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, found {}", self.place, self.expected, self.found)
    }
}

impl Misfit {
    pub fn new(place: impl fmt::Display, shape: &Shape, found: impl Into<String>) -> Self {
        Misfit { place: place.to_string(), expected: expected(shape), found: found.into() }
    }
}

/// What a reader of data looks for, in words.
fn expected(shape: &Shape) -> String {
    match shape {
        Shape::Real => "a number".into(),
        Shape::Int => "an integer".into(),
        Shape::Bool => "true or false".into(),
        Shape::String => "a string".into(),
        Shape::Unit => "null".into(),
        Shape::Tuple(parts) => format!("an array of {}", elements(parts.len())),
        Shape::Record { fields, .. } => format!("an object with {}", field_names(fields)),
        Shape::Variant { constructors, .. } => {
            let forms = constructors.iter().map(|(name, args)| constructor_form(name, args.len()));
            format!("one of {}", forms.collect::<Vec<_>>().join(", "))
        }
        Shape::List(_) | Shape::Array(_) => "an array".into(),
        Shape::Opaque => "data (a function cannot be read from outside)".into(),
    }
}

pub fn elements(count: usize) -> String {
    if count == 1 {
        "1 element".into()
    } else {
        format!("{count} elements")
    }
}

fn field_names(fields: &[Symbol]) -> String {
    match fields {
        [one] => format!("the field {one}"),
        _ => format!("the fields {}", fields.join(", ")),
    }
}

fn constructor_form(name: &str, args: usize) -> String {
    if args == 0 {
        format!("\"{name}\"")
    } else {
        format!("{{\"{name}\": [{}]}}", vec![".."; args].join(", "))
    }
}
