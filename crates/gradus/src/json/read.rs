//! JSON text to a value of a given type.

use crate::place::{elements, Misfit, Place};
use crate::schema::{Schema, Shape};
use crate::value::{quoted, Parts, Reals};
use crate::Value;
use gradus_core::traverse::with_stack;
use gradus_core::Type;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::cell::RefCell;
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonError {
    /// Not JSON at all: what is wrong with it, with line and column.
    Syntax(String),
    /// JSON of another shape.
    Misfit(Misfit),
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JsonError::Syntax(message) => write!(f, "not valid JSON: {message}"),
            JsonError::Misfit(misfit) => misfit.fmt(f),
        }
    }
}

pub fn read(text: &[u8], ty: &Type, schema: &Schema) -> Result<Value, JsonError> {
    read_with(text, ty, schema, false)
}

/// The same, but fields that a record does not have are passed over.
pub fn read_loosely(text: &[u8], ty: &Type, schema: &Schema) -> Result<Value, JsonError> {
    read_with(text, ty, schema, true)
}

fn read_with(text: &[u8], ty: &Type, schema: &Schema, loosely: bool) -> Result<Value, JsonError> {
    let reader = Reader { schema, loosely, misfit: RefCell::new(None) };
    let mut json = serde_json::Deserializer::from_slice(text);
    json.disable_recursion_limit(); // every level goes through `Node`, which grows the stack
    let value = Node { reader: &reader, ty, place: Place::Root }.deserialize(&mut json);
    let value = value.and_then(|value| json.end().map(|()| value));
    value.map_err(|error| match reader.misfit.take() {
        Some(misfit) => JsonError::Misfit(misfit),
        None => JsonError::Syntax(error.to_string()),
    })
}

struct Reader<'a> {
    schema: &'a Schema<'a>,
    /// Whether objects may have more fields than records.
    loosely: bool,
    /// Why we stopped, if it was not the JSON's fault: serde's errors carry only text.
    misfit: RefCell<Option<Misfit>>,
}

/// A value still to be read: its type and where it stands.
#[derive(Clone, Copy)]
struct Node<'a> {
    reader: &'a Reader<'a>,
    ty: &'a Type,
    place: Place<'a>,
}

impl Node<'_> {
    fn stop<E: serde::de::Error>(&self, misfit: Misfit) -> E {
        let error = E::custom(&misfit);
        self.reader.misfit.borrow_mut().get_or_insert(misfit);
        error
    }

    fn found<E: serde::de::Error>(&self, found: impl Into<String>) -> E {
        self.stop(Misfit::new(self.place, &self.reader.schema.shape(self.ty), found))
    }

    /// The next elements of a JSON array, at these types; `len` tells how many are wanted if that is fixed.
    fn exactly<'de, A: SeqAccess<'de>>(&self, types: &[Type], mut seq: A) -> Result<Parts, A::Error> {
        let mut parts = Vec::with_capacity(types.len());
        for (i, ty) in types.iter().enumerate() {
            let item = Node { reader: self.reader, ty, place: Place::Index(&self.place, i) };
            match seq.next_element_seed(item)? {
                Some(part) => parts.push(part),
                None => return Err(self.wrong_count(types.len(), elements(i))),
            }
        }
        match seq.next_element_seed(Anything)? {
            None => Ok(parts.into()),
            Some(()) => Err(self.wrong_count(types.len(), "more".into())),
        }
    }

    fn wrong_count<E: serde::de::Error>(&self, wanted: usize, found: String) -> E {
        let expected = format!("an array of {}", elements(wanted));
        self.stop(Misfit { place: self.place.to_string(), expected, found })
    }

    fn all<'de, A: SeqAccess<'de>>(&self, element: &Type, mut seq: A) -> Result<Vec<Value>, A::Error> {
        let mut items = Vec::new();
        loop {
            let place = Place::Index(&self.place, items.len());
            match seq.next_element_seed(Node { reader: self.reader, ty: element, place })? {
                Some(item) => items.push(item),
                None => return Ok(items),
            }
        }
    }

    /// Arrays are regular: every row has the shape of the first.
    fn regular<E: serde::de::Error>(&self, element: &Type, items: Vec<Value>) -> Result<Value, E> {
        match irregularity(&items, &self.place) {
            Some(misfit) => Err(self.stop(misfit)),
            None => Ok(array_at(element, items)),
        }
    }
}

/// What is wrong with an array whose rows differ in shape.
pub fn irregularity(items: &[Value], place: &Place) -> Option<Misfit> {
    let irregular = first_irregular(items)?;
    Some(Misfit {
        place: Place::Index(place, irregular).to_string(),
        expected: format!("a row of {} like the first", elements(items.first().map_or(0, row_length))),
        found: elements(items.get(irregular).map_or(0, row_length)),
    })
}

/// An array with elements of a type, flat if they are reals, also when there are none.
pub fn array_at(element: &Type, items: Vec<Value>) -> Value {
    let rank = 1 + Schema::rank_of_reals(element).unwrap_or(0);
    match element {
        Type::Real | Type::Array(_) if items.is_empty() && (rank > 1 || *element == Type::Real) => {
            Reals::new(vec![0; rank], []).map_or(Value::Array(Parts::default()), Value::Reals)
        }
        _ => Value::array(items),
    }
}

fn row_length(row: &Value) -> usize {
    match row {
        Value::Reals(block) => block.len(),
        Value::Array(parts) => parts.len(),
        _ => 0,
    }
}

/// The first element that is an array of another shape than the first element.
pub fn first_irregular(items: &[Value]) -> Option<usize> {
    fn shape(value: &Value, out: &mut Vec<usize>) {
        match value {
            Value::Reals(block) => out.extend_from_slice(block.shape()),
            Value::Array(parts) => {
                out.push(parts.len());
                if let Some(first) = parts.first() {
                    shape(first, out);
                }
            }
            _ => {}
        }
    }
    let of = |value: &Value| {
        let mut dims = Vec::new();
        shape(value, &mut dims);
        dims
    };
    if !matches!(items.first()?, Value::Reals(_) | Value::Array(_)) {
        return None;
    }
    let first = of(items.first()?);
    items.iter().position(|item| of(item) != first)
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Value, D::Error> {
        with_stack(|| json.deserialize_any(self))
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: serde::de::Error>(self, b: bool) -> Result<Value, E> {
        match self.ty {
            Type::Bool => Ok(Value::Bool(b)),
            _ => Err(self.found(b.to_string())),
        }
    }

    fn visit_i64<E: serde::de::Error>(self, i: i64) -> Result<Value, E> {
        match self.ty {
            Type::Int => Ok(Value::Int(i)),
            Type::Real => Ok(Value::Real(i as f64)),
            _ => Err(self.found(i.to_string())),
        }
    }

    fn visit_u64<E: serde::de::Error>(self, u: u64) -> Result<Value, E> {
        match (self.ty, i64::try_from(u)) {
            (Type::Int, Ok(i)) => Ok(Value::Int(i)),
            (Type::Real, _) => Ok(Value::Real(u as f64)),
            _ => Err(self.found(u.to_string())),
        }
    }

    fn visit_f64<E: serde::de::Error>(self, x: f64) -> Result<Value, E> {
        match self.ty {
            Type::Real => Ok(Value::Real(x)),
            _ => Err(self.found(crate::value::real_text(x))),
        }
    }

    fn visit_str<E: serde::de::Error>(self, s: &str) -> Result<Value, E> {
        match (self.ty, s) {
            (Type::String, _) => return Ok(s.into()),
            (Type::Real, "nan") => return Ok(f64::NAN.into()),
            (Type::Real, "inf") => return Ok(f64::INFINITY.into()),
            (Type::Real, "-inf") => return Ok(f64::NEG_INFINITY.into()),
            _ => {}
        }
        if let Shape::Variant { constructors, .. } = &*self.reader.schema.shape(self.ty) {
            if let Some((name, _)) = constructors.iter().find(|(name, args)| &**name == s && args.is_empty()) {
                return Ok(Value::Variant { constructor: name.clone(), parts: Parts::default() });
            }
        }
        Err(self.found(quoted(s)))
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Value, E> {
        match self.ty {
            Type::Unit => Ok(Value::Unit),
            _ => Err(self.found("null")),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        match &*self.reader.schema.shape(self.ty) {
            Shape::Tuple(types) => Ok(Value::Tuple(self.exactly(types, seq)?)),
            Shape::List(element) => Ok(Value::List(self.all(element, seq)?.into())),
            Shape::Array(Type::Real) => {
                let mut data = Vec::new();
                loop {
                    let place = Place::Index(&self.place, data.len());
                    match seq.next_element_seed(Node { reader: self.reader, ty: &Type::Real, place })? {
                        Some(Value::Real(x)) => data.push(x),
                        Some(_) => return Err(A::Error::custom("a real was read")),
                        None => return Ok(data.into()),
                    }
                }
            }
            Shape::Array(element) => {
                let items = self.all(element, seq)?;
                self.regular(element, items)
            }
            _ => Err(self.found("an array")),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        match &*self.reader.schema.shape(self.ty) {
            Shape::Record { fields, types } => {
                let mut parts: Vec<Option<Value>> = fields.iter().map(|_| None).collect();
                while let Some(key) = map.next_key::<String>()? {
                    let at = fields.iter().position(|field| fits(field, &key));
                    let Some((ty, part)) = at.and_then(|i| Some((types.get(i)?, parts.get_mut(i)?))) else {
                        if self.reader.loosely {
                            map.next_value::<IgnoredAny>()?;
                            continue;
                        }
                        return Err(self.found(format!("a field {key}")));
                    };
                    if part.is_some() {
                        return Err(self.found(format!("{key} twice")));
                    }
                    let place = Place::Field(&self.place, &key);
                    *part = Some(map.next_value_seed(Node { reader: self.reader, ty, place })?);
                }
                let missing = fields.iter().zip(&parts).find(|(_, part)| part.is_none());
                if let Some((name, _)) = missing {
                    return Err(self.found(format!("no field {name}")));
                }
                Ok(Value::Record { fields: fields.clone(), parts: parts.into_iter().flatten().collect() })
            }
            Shape::Variant { constructors, .. } => {
                let Some(key) = map.next_key::<String>()? else { return Err(self.found("an empty object")) };
                let Some((name, types)) = constructors.iter().find(|(name, _)| **name == *key) else {
                    return Err(self.found(format!("an object with the key {key}")));
                };
                let place = Place::Field(&self.place, &key);
                let parts = map.next_value_seed(Arguments { node: Node { place, ..self }, types })?;
                match map.next_key::<String>()? {
                    None => Ok(Value::Variant { constructor: name.clone(), parts }),
                    Some(second) => Err(self.found(format!("an object with the keys {key} and {second}"))),
                }
            }
            _ => Err(self.found("an object")),
        }
    }
}

/// The arguments of a constructor: a JSON array, whatever their number. A single argument that is not itself
/// an array in JSON may also stand alone: `{"Leaf": 1.5}`.
struct Arguments<'a> {
    node: Node<'a>,
    types: &'a [Type],
}

impl<'a> Arguments<'a> {
    /// Reads the argument that stands alone.
    fn alone<E: serde::de::Error>(
        &self,
        read: impl FnOnce(Node<'a>) -> Result<Value, E>,
        found: String,
    ) -> Result<Parts, E> {
        match self.types {
            [ty] => Ok([read(Node { ty, ..self.node })?].into()),
            types => Err(self.node.wrong_count(types.len(), found)),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Arguments<'_> {
    type Value = Parts;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Parts, D::Error> {
        with_stack(|| json.deserialize_any(self))
    }
}

impl<'de> Visitor<'de> for Arguments<'_> {
    type Value = Parts;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("the arguments of a constructor")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Parts, A::Error> {
        self.node.exactly(self.types, seq)
    }

    fn visit_f64<E: serde::de::Error>(self, x: f64) -> Result<Parts, E> {
        self.alone(|node| node.visit_f64(x), crate::value::real_text(x))
    }

    fn visit_i64<E: serde::de::Error>(self, i: i64) -> Result<Parts, E> {
        self.alone(|node| node.visit_i64(i), i.to_string())
    }

    fn visit_u64<E: serde::de::Error>(self, u: u64) -> Result<Parts, E> {
        self.alone(|node| node.visit_u64(u), u.to_string())
    }

    fn visit_bool<E: serde::de::Error>(self, b: bool) -> Result<Parts, E> {
        self.alone(|node| node.visit_bool(b), b.to_string())
    }

    fn visit_str<E: serde::de::Error>(self, s: &str) -> Result<Parts, E> {
        self.alone(|node| node.visit_str(s), quoted(s))
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Parts, E> {
        self.alone(|node| node.visit_unit(), "null".into())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Parts, A::Error> {
        self.alone(|node| node.visit_map(map), "an object".into())
    }
}

/// Accepts the beginning of any value: enough to know that there is one more.
struct Anything;

impl<'de> DeserializeSeed<'de> for Anything {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        // A deep value would be skipped by recursion inside serde_json, so it is not skipped but left where it is; the
        // caller stops with an error anyway.
        let _ = json;
        Ok(())
    }
}

/// Whether an object's key names a field. A Gradus field begins with a small letter, so `"A"` and `"Name"` fit `a` and `name` too.
fn fits(field: &str, key: &str) -> bool {
    let (mut letters, mut keys) = (field.chars(), key.chars());
    match (letters.next(), keys.next()) {
        (Some(letter), Some(first)) => {
            (letter == first || first.to_lowercase().eq([letter])) && letters.as_str() == keys.as_str()
        }
        (_, first) => first.is_none() && field.is_empty(),
    }
}
