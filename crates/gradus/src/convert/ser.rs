//! Rust to Gradus, guided by the type that the program expects.

use super::ConvertError;
use crate::json::{array_at, irregularity};
use crate::place::{elements, Misfit, Place};
use crate::schema::{Schema, Shape};
use crate::value::{quoted, real_text, Parts};
use crate::Value;
use gradus_core::traverse::with_stack;
use gradus_core::Type;
use serde::ser::{self, Serialize};
use std::sync::Arc;

type Result<T> = std::result::Result<T, ConvertError>;

/// The Gradus value of the given type that a Rust value describes.
pub fn to_value<T: Serialize + ?Sized>(rust: &T, ty: &Type, schema: &Schema) -> Result<Value> {
    rust.serialize(Node { schema, ty, place: Place::Root })
}

/// A value still to be made: its type and where it stands.
#[derive(Clone, Copy)]
struct Node<'a> {
    schema: &'a Schema<'a>,
    ty: &'a Type,
    place: Place<'a>,
}

impl<'a> Node<'a> {
    fn found<T>(&self, found: impl Into<String>) -> Result<T> {
        Err(ConvertError(Misfit::new(self.place, &self.schema.shape(self.ty), found).to_string()))
    }

    fn int(self, i: i128) -> Result<Value> {
        match (self.ty, i64::try_from(i)) {
            (Type::Int, Ok(i)) => Ok(Value::Int(i)),
            (Type::Real, _) => Ok(Value::Real(i as f64)),
            _ => self.found(i.to_string()),
        }
    }

    /// Elements to come: of an array, a list or a tuple.
    fn elements(self) -> Result<Elements<'a>> {
        let shape = self.schema.shape(self.ty);
        match &*shape {
            Shape::Tuple(_) | Shape::Array(_) | Shape::List(_) => Ok(Elements { node: self, shape, items: Vec::new() }),
            _ => self.found("an array"),
        }
    }

    /// Fields to come.
    fn fields(self) -> Result<Fields<'a>> {
        let shape = self.schema.shape(self.ty);
        match &*shape {
            Shape::Record { fields, .. } => {
                let parts = fields.iter().map(|_| None).collect();
                Ok(Fields { node: self, shape, parts, key: String::new() })
            }
            _ => self.found("an object"),
        }
    }

    /// Arguments of a constructor to come.
    fn arguments(self, constructor: &'static str, count: usize) -> Result<Arguments<'a>> {
        let shape = self.schema.shape(self.ty);
        let Shape::Variant { constructors, .. } = &*shape else { return self.found(quoted(constructor)) };
        match constructors.iter().find(|(name, types)| &**name == constructor && types.len() == count) {
            Some((_, types)) => Ok(Arguments { node: self, constructor, types: types.clone(), items: Vec::new() }),
            None => self.found(format!("{} with {}", quoted(constructor), elements(count))),
        }
    }
}

impl<'a> ser::Serializer for Node<'a> {
    type Ok = Value;
    type Error = ConvertError;
    type SerializeSeq = Elements<'a>;
    type SerializeTuple = Elements<'a>;
    type SerializeTupleStruct = Elements<'a>;
    type SerializeTupleVariant = Arguments<'a>;
    type SerializeMap = Fields<'a>;
    type SerializeStruct = Fields<'a>;
    type SerializeStructVariant = Arguments<'a>;

    fn serialize_bool(self, b: bool) -> Result<Value> {
        if *self.ty == Type::Bool {
            Ok(Value::Bool(b))
        } else {
            self.found(b.to_string())
        }
    }

    fn serialize_i8(self, i: i8) -> Result<Value> {
        self.int(i.into())
    }
    fn serialize_i16(self, i: i16) -> Result<Value> {
        self.int(i.into())
    }
    fn serialize_i32(self, i: i32) -> Result<Value> {
        self.int(i.into())
    }
    fn serialize_i64(self, i: i64) -> Result<Value> {
        self.int(i.into())
    }
    fn serialize_i128(self, i: i128) -> Result<Value> {
        self.int(i)
    }
    fn serialize_u8(self, i: u8) -> Result<Value> {
        self.int(i.into())
    }
    fn serialize_u16(self, i: u16) -> Result<Value> {
        self.int(i.into())
    }
    fn serialize_u32(self, i: u32) -> Result<Value> {
        self.int(i.into())
    }
    fn serialize_u64(self, i: u64) -> Result<Value> {
        self.int(i.into())
    }

    fn serialize_f32(self, x: f32) -> Result<Value> {
        self.serialize_f64(x.into())
    }

    fn serialize_f64(self, x: f64) -> Result<Value> {
        if *self.ty == Type::Real {
            Ok(Value::Real(x))
        } else {
            self.found(real_text(x))
        }
    }

    fn serialize_char(self, c: char) -> Result<Value> {
        self.serialize_str(c.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, s: &str) -> Result<Value> {
        if *self.ty == Type::String {
            Ok(s.into())
        } else {
            self.found(quoted(s))
        }
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<Value> {
        bytes.serialize(self)
    }

    fn serialize_none(self) -> Result<Value> {
        Ok(self.arguments("None", 0)?.done())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, rust: &T) -> Result<Value> {
        let mut arguments = self.arguments("Some", 1)?;
        arguments.push(rust)?;
        Ok(arguments.done())
    }

    fn serialize_unit(self) -> Result<Value> {
        if *self.ty == Type::Unit {
            Ok(Value::Unit)
        } else {
            self.found("null")
        }
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Value> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<Value> {
        Ok(self.arguments(variant, 0)?.done())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, rust: &T) -> Result<Value> {
        rust.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        rust: &T,
    ) -> Result<Value> {
        let mut arguments = self.arguments(variant, 1)?;
        arguments.push(rust)?;
        Ok(arguments.done())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Elements<'a>> {
        self.elements()
    }

    fn serialize_tuple(self, _: usize) -> Result<Elements<'a>> {
        self.elements()
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Elements<'a>> {
        self.elements()
    }

    fn serialize_tuple_variant(self, _: &str, _: u32, variant: &'static str, count: usize) -> Result<Arguments<'a>> {
        self.arguments(variant, count)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Fields<'a>> {
        self.fields()
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Fields<'a>> {
        self.fields()
    }

    fn serialize_struct_variant(self, _: &str, _: u32, variant: &'static str, count: usize) -> Result<Arguments<'a>> {
        self.arguments(variant, count)
    }
}

struct Elements<'a> {
    node: Node<'a>,
    shape: Arc<Shape>,
    items: Vec<Value>,
}

impl Elements<'_> {
    fn push<T: Serialize + ?Sized>(&mut self, rust: &T) -> Result<()> {
        let ty = match &*self.shape {
            Shape::Tuple(types) => types.get(self.items.len()),
            Shape::Array(element) | Shape::List(element) => Some(element),
            _ => None,
        };
        let Some(ty) = ty else { return self.node.found("more") };
        let place = Place::Index(&self.node.place, self.items.len());
        let node = Node { schema: self.node.schema, ty, place };
        let item = with_stack(|| rust.serialize(node))?;
        self.items.push(item);
        Ok(())
    }

    fn done(self) -> Result<Value> {
        match &*self.shape {
            Shape::Tuple(types) if types.len() == self.items.len() => Ok(Value::Tuple(self.items.into())),
            Shape::List(_) => Ok(Value::List(self.items.into())),
            Shape::Array(element) => match irregularity(&self.items, &self.node.place) {
                Some(misfit) => Err(ConvertError(misfit.to_string())),
                None => Ok(array_at(element, self.items)),
            },
            _ => self.node.found(elements(self.items.len())),
        }
    }
}

struct Arguments<'a> {
    node: Node<'a>,
    constructor: &'static str,
    types: Vec<Type>,
    items: Vec<Value>,
}

impl Arguments<'_> {
    fn push<T: Serialize + ?Sized>(&mut self, rust: &T) -> Result<()> {
        let Some(ty) = self.types.get(self.items.len()) else { return self.node.found("more") };
        let constructor = Place::Field(&self.node.place, self.constructor);
        let place = Place::Index(&constructor, self.items.len());
        let node = Node { schema: self.node.schema, ty, place };
        let item = with_stack(|| rust.serialize(node))?;
        self.items.push(item);
        Ok(())
    }

    fn done(self) -> Value {
        Value::Variant { constructor: self.constructor.into(), parts: self.items.into() }
    }
}

struct Fields<'a> {
    node: Node<'a>,
    shape: Arc<Shape>,
    parts: Vec<Option<Value>>,
    /// Of a map, between key and value.
    key: String,
}

impl Fields<'_> {
    fn set<T: Serialize + ?Sized>(&mut self, name: &str, rust: &T) -> Result<()> {
        let Shape::Record { fields, types } = &*self.shape else { return self.node.found("an object") };
        let at = fields.iter().position(|field| &**field == name);
        let Some((ty, part)) = at.and_then(|i| Some((types.get(i)?, self.parts.get_mut(i)?))) else {
            return self.node.found(format!("a field {name}"));
        };
        let node = Node { schema: self.node.schema, ty, place: Place::Field(&self.node.place, name) };
        *part = Some(with_stack(|| rust.serialize(node))?);
        Ok(())
    }

    fn done(self) -> Result<Value> {
        let Shape::Record { fields, .. } = &*self.shape else { return self.node.found("an object") };
        if let Some((name, _)) = fields.iter().zip(&self.parts).find(|(_, part)| part.is_none()) {
            return self.node.found(format!("no field {name}"));
        }
        let parts: Parts = self.parts.into_iter().flatten().collect();
        Ok(Value::Record { fields: fields.clone(), parts })
    }
}

impl ser::SerializeSeq for Elements<'_> {
    type Ok = Value;
    type Error = ConvertError;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, rust: &T) -> Result<()> {
        self.push(rust)
    }
    fn end(self) -> Result<Value> {
        self.done()
    }
}

impl ser::SerializeTuple for Elements<'_> {
    type Ok = Value;
    type Error = ConvertError;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, rust: &T) -> Result<()> {
        self.push(rust)
    }
    fn end(self) -> Result<Value> {
        self.done()
    }
}

impl ser::SerializeTupleStruct for Elements<'_> {
    type Ok = Value;
    type Error = ConvertError;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, rust: &T) -> Result<()> {
        self.push(rust)
    }
    fn end(self) -> Result<Value> {
        self.done()
    }
}

impl ser::SerializeTupleVariant for Arguments<'_> {
    type Ok = Value;
    type Error = ConvertError;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, rust: &T) -> Result<()> {
        self.push(rust)
    }
    fn end(self) -> Result<Value> {
        Ok(self.done())
    }
}

impl ser::SerializeStructVariant for Arguments<'_> {
    type Ok = Value;
    type Error = ConvertError;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, _: &'static str, rust: &T) -> Result<()> {
        self.push(rust)
    }
    fn end(self) -> Result<Value> {
        Ok(self.done())
    }
}

impl ser::SerializeStruct for Fields<'_> {
    type Ok = Value;
    type Error = ConvertError;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, rust: &T) -> Result<()> {
        self.set(name, rust)
    }
    fn end(self) -> Result<Value> {
        self.done()
    }
}

impl ser::SerializeMap for Fields<'_> {
    type Ok = Value;
    type Error = ConvertError;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        let node = Node { ty: &Type::String, ..self.node };
        match key.serialize(node)? {
            Value::String(key) => {
                self.key = key.to_string();
                Ok(())
            }
            _ => self.node.found("a key that is not a string"),
        }
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, rust: &T) -> Result<()> {
        let key = std::mem::take(&mut self.key);
        self.set(&key, rust)
    }
    fn end(self) -> Result<Value> {
        self.done()
    }
}
