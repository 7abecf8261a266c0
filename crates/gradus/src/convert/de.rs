//! Gradus to Rust. Values describe themselves, so the Rust type decides what it accepts.

use super::ConvertError;
use crate::Value;
use gradus_core::traverse::with_stack;
use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, VariantAccess, Visitor,
};

type Result<T> = std::result::Result<T, ConvertError>;

/// The Rust value that a Gradus value describes.
pub fn from_value<T: DeserializeOwned>(value: &Value) -> Result<T> {
    T::deserialize(Node::Value(value))
}

/// A value, or a piece of a block of reals, which holds no values.
#[derive(Clone, Copy)]
enum Node<'a> {
    Value(&'a Value),
    Block(&'a [usize], &'a [f64]),
}

impl<'de> IntoDeserializer<'de, ConvertError> for Node<'_> {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}

fn block<'de, V: Visitor<'de>>(shape: &[usize], data: &[f64], visitor: V) -> Result<V::Value> {
    match (shape, data) {
        ([], [x]) => visitor.visit_f64(*x),
        ([_, inner @ ..], _) => {
            let step = inner.iter().product::<usize>().max(1);
            let rows = data.chunks(step).map(|row| Node::Block(inner, row));
            visitor.visit_seq(SeqDeserializer::new(rows))
        }
        ([], _) => visitor.visit_seq(SeqDeserializer::new(data.iter().copied())),
    }
}

impl<'de> Deserializer<'de> for Node<'_> {
    type Error = ConvertError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let value = match self {
            Node::Value(value) => value,
            Node::Block(shape, data) => return block(shape, data, visitor),
        };
        with_stack(|| match value {
            Value::Unit => visitor.visit_unit(),
            Value::Bool(b) => visitor.visit_bool(*b),
            Value::Int(i) => visitor.visit_i64(*i),
            Value::Real(x) => visitor.visit_f64(*x),
            Value::String(s) => visitor.visit_str(s),
            Value::Tuple(parts) | Value::List(parts) | Value::Array(parts) => {
                visitor.visit_seq(SeqDeserializer::new(parts.iter().map(Node::Value)))
            }
            Value::Reals(reals) => block(reals.shape(), reals.data(), visitor),
            Value::Record { fields, parts } => {
                let entries = fields.iter().zip(parts.iter()).map(|(name, part)| (&**name, Node::Value(part)));
                visitor.visit_map(MapDeserializer::new(entries))
            }
            Value::Variant { constructor, parts } => visitor.visit_enum(Constructor { constructor, parts }),
            Value::Function => Err(ConvertError("a function cannot leave the program".into())),
        })
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self {
            Node::Value(Value::Variant { constructor, parts }) => match (&**constructor, &**parts) {
                ("None", []) => visitor.visit_none(),
                ("Some", [part]) => with_stack(|| visitor.visit_some(Node::Value(part))),
                _ => self.deserialize_any(visitor),
            },
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    /// A Rust integer may be read from a real that is one.
    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self {
            Node::Value(Value::Real(x)) if x.fract() == 0.0 && x.abs() < 9e15 => visitor.visit_i64(*x as i64),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_i64(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

struct Constructor<'a> {
    constructor: &'a str,
    parts: &'a [Value],
}

impl<'de, 'a> EnumAccess<'de> for Constructor<'a> {
    type Error = ConvertError;
    type Variant = Constructor<'a>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Constructor<'a>)> {
        let name: de::value::StrDeserializer<ConvertError> = self.constructor.into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> VariantAccess<'de> for Constructor<'_> {
    type Error = ConvertError;

    fn unit_variant(self) -> Result<()> {
        if self.parts.is_empty() {
            Ok(())
        } else {
            Err(ConvertError(format!("the constructor {} has arguments", self.constructor)))
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value> {
        match self.parts {
            [part] => with_stack(|| seed.deserialize(Node::Value(part))),
            _ => Err(ConvertError(format!("the constructor {} has {} arguments", self.constructor, self.parts.len()))),
        }
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value> {
        with_stack(|| visitor.visit_seq(SeqDeserializer::new(self.parts.iter().map(Node::Value))))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value> {
        self.tuple_variant(0, visitor)
    }
}
