//! Values on their way into compiled code and out of it.

use crate::json::array_at;
use crate::schema::{Schema, Shape};
use crate::value::{Parts, Reals};
use crate::Value;
use gradus_core::traverse::with_stack;
use gradus_core::Type;
use gradus_native::{Argument, Data, Layout, Leaf, Mismatch};

/// The flat form of a value that fits the type, if elements of arrays in it do not differ in shape. Blocks of reals stay where they are.
pub fn flatten<'a>(
    value: &'a Value,
    ty: &Type,
    layout: &Layout,
    schema: &Schema,
    leaves: &mut Vec<Argument<'a>>,
) -> Result<(), Mismatch> {
    with_stack(|| match (layout.parts(), value, &*schema.shape(ty)) {
        (_, Value::Reals(block), _) if layout.is_dense() => {
            leaves.push(Argument::Reals { dims: block.shape(), data: block.data() });
            Ok(())
        }
        (Some(layouts), Value::Tuple(parts), Shape::Tuple(types)) => {
            let mut parts = parts.iter().zip(types.iter()).zip(&layouts);
            parts.try_for_each(|((part, ty), layout)| flatten(part, ty, layout, schema, leaves))
        }
        (Some(layouts), Value::Record { parts, .. }, Shape::Record { types, .. }) => {
            let mut parts = parts.iter().zip(types.iter()).zip(&layouts);
            parts.try_for_each(|((part, ty), layout)| flatten(part, ty, layout, schema, leaves))
        }
        (_, value, _) => {
            let flat = layout.flatten(&to_data(value, ty, schema))?;
            leaves.extend(flat.into_iter().map(Argument::Owned));
            Ok(())
        }
    })
}

fn to_data(value: &Value, ty: &Type, schema: &Schema) -> Data {
    let all = |parts: &[Value], types: &[Type]| -> gradus_native::Parts {
        parts.iter().zip(types).map(|(part, ty)| to_data(part, ty, schema)).collect()
    };
    with_stack(|| match (value, &*schema.shape(ty)) {
        (Value::Unit, _) => Data::Unit,
        (Value::Bool(b), _) => Data::Bool(*b),
        (Value::Int(i), _) => Data::Int(*i),
        (Value::Real(x), _) => Data::Real(*x),
        (Value::String(text), _) => Data::String(text.to_string()),
        (Value::Reals(block), _) => Data::Reals { dims: block.shape().to_vec(), data: block.data().to_vec() },
        (Value::Tuple(parts), Shape::Tuple(types)) => Data::Tuple(all(parts, types)),
        (Value::Record { parts, .. }, Shape::Record { types, .. }) => Data::Tuple(all(parts, types)),
        (Value::Variant { constructor, parts }, Shape::Variant { constructors, .. }) => {
            match constructors.iter().enumerate().find(|(_, (name, _))| name == constructor) {
                Some((tag, (_, types))) => Data::Variant { tag, args: all(parts, types) },
                None => gradus_source::bug!("a constructor that the type does not have"),
            }
        }
        (Value::List(parts), Shape::List(element)) => {
            Data::List(parts.iter().map(|part| to_data(part, element, schema)).collect())
        }
        (Value::Array(parts), Shape::Array(element)) => {
            Data::Array(parts.iter().map(|part| to_data(part, element, schema)).collect())
        }
        _ => gradus_source::bug!("a value that does not fit its type"),
    })
}

/// The value of a type with this flat form.
pub fn unflatten(leaves: Vec<Leaf>, ty: &Type, layout: &Layout, schema: &Schema) -> Value {
    match layout.unflatten(&mut leaves.into_iter()) {
        Ok(data) => from_data(data, ty, schema),
        Err(_) => gradus_source::bug!("a result that does not have its type"),
    }
}

fn from_data(data: Data, ty: &Type, schema: &Schema) -> Value {
    let all = |items: gradus_native::Parts, types: &[Type]| -> Parts {
        items.into_vec().into_iter().zip(types).map(|(item, ty)| from_data(item, ty, schema)).collect()
    };
    with_stack(|| match (data, &*schema.shape(ty)) {
        (Data::Unit, _) => Value::Unit,
        (Data::Bool(b), _) => Value::Bool(b),
        (Data::Int(i), _) => Value::Int(i),
        (Data::Real(x), _) => Value::Real(x),
        (Data::String(text), _) => Value::String(text.into()),
        (Data::Reals { dims, data }, _) => match Reals::new(dims, data) {
            Some(block) => Value::Reals(block),
            None => gradus_source::bug!("an array that does not fill its shape"),
        },
        (Data::Tuple(items), Shape::Tuple(types)) => Value::Tuple(all(items, types)),
        (Data::Tuple(items), Shape::Record { fields, types }) => {
            Value::Record { fields: fields.clone(), parts: all(items, types) }
        }
        (Data::Variant { tag, args }, Shape::Variant { constructors, .. }) => match constructors.get(tag) {
            Some((constructor, types)) => Value::Variant { constructor: constructor.clone(), parts: all(args, types) },
            None => gradus_source::bug!("a tag that the type does not have"),
        },
        (Data::List(items), Shape::List(element)) => {
            Value::List(items.into_vec().into_iter().map(|item| from_data(item, element, schema)).collect())
        }
        (Data::Array(items), Shape::Array(element)) => {
            array_at(element, items.into_vec().into_iter().map(|item| from_data(item, element, schema)).collect())
        }
        _ => gradus_source::bug!("a result that does not have its type"),
    })
}
