//! Whether a value has a type: what must be known before it is given to an evaluator.

use crate::json::first_irregular;
use crate::place::{elements, Misfit, Place};
use crate::schema::{Schema, Shape};
use crate::value::{quoted, real_text};
use crate::Value;
use gradus_core::traverse::with_stack;
use gradus_core::Type;

pub fn check(value: &Value, ty: &Type, schema: &Schema) -> Result<(), Misfit> {
    at(value, ty, schema, &Place::Root)
}

fn at(value: &Value, ty: &Type, schema: &Schema, place: &Place) -> Result<(), Misfit> {
    with_stack(|| {
        let shape = schema.shape(ty);
        let all = |parts: &[Value], types: &[Type]| -> Result<(), Misfit> {
            if parts.len() != types.len() {
                return Err(Misfit::new(place, &shape, elements(parts.len())));
            }
            for (i, (part, ty)) in parts.iter().zip(types).enumerate() {
                at(part, ty, schema, &Place::Index(place, i))?;
            }
            Ok(())
        };
        match (&*shape, value) {
            (Shape::Real, Value::Real(_))
            | (Shape::Int, Value::Int(_))
            | (Shape::Bool, Value::Bool(_))
            | (Shape::String, Value::String(_))
            | (Shape::Unit, Value::Unit) => Ok(()),
            (Shape::Tuple(types), Value::Tuple(parts)) => all(parts, types),
            (Shape::Record { fields, types }, Value::Record { fields: given, parts }) if fields == given => {
                for ((name, ty), part) in fields.iter().zip(types).zip(parts.iter()) {
                    at(part, ty, schema, &Place::Field(place, name))?;
                }
                Ok(())
            }
            (Shape::Variant { constructors, .. }, Value::Variant { constructor, parts }) => {
                match constructors.iter().find(|(name, _)| name == constructor) {
                    Some((_, types)) => all(parts, types),
                    None => Err(Misfit::new(place, &shape, quoted(constructor))),
                }
            }
            (Shape::Array(_), Value::Reals(block)) if Schema::rank_of_reals(ty) == Some(block.shape().len()) => Ok(()),
            (Shape::Array(element) | Shape::List(element), Value::Array(parts) | Value::List(parts))
                if matches!(&*shape, Shape::List(_)) == matches!(value, Value::List(_)) =>
            {
                for (i, part) in parts.iter().enumerate() {
                    at(part, element, schema, &Place::Index(place, i))?;
                }
                match first_irregular(parts).filter(|_| matches!(value, Value::Array(_))) {
                    Some(i) => {
                        let expected = "a row of the same size as the first".into();
                        let place = Place::Index(place, i).to_string();
                        Err(Misfit { place, expected, found: "another size".into() })
                    }
                    None => Ok(()),
                }
            }
            _ => Err(Misfit::new(place, &shape, sort(value))),
        }
    })
}

fn sort(value: &Value) -> String {
    match value {
        Value::Unit => "null".into(),
        Value::Bool(b) => b.to_string(),
        Value::Int(i) => i.to_string(),
        Value::Real(x) => real_text(*x),
        Value::String(s) => quoted(s),
        Value::Tuple(parts) => format!("a tuple of {}", elements(parts.len())),
        Value::Record { fields, .. } => format!("an object with the fields {}", fields.join(", ")),
        Value::Variant { constructor, .. } => quoted(constructor),
        Value::List(_) => "a list".into(),
        Value::Array(_) | Value::Reals(_) => "an array".into(),
        Value::Function => "a function".into(),
    }
}
