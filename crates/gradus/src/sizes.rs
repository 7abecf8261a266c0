//! The lengths of arrays that types promise: core types do not mention them, so values from outside are checked here.

use crate::place::{elements, Misfit, Place};
use crate::Value;
use gradus_core::traverse::with_stack;
use gradus_infer::{Inferred, Length, Sized};
use std::collections::HashMap;

/// Checks the value of `data` against its declaration: the first array whose length is not what the type says.
pub fn check_data(value: &Value, definition: &str, inferred: &Inferred) -> Result<(), Misfit> {
    match inferred.sized(definition) {
        Some(sized) => {
            let promise = Promise { sized: &sized, args: &[] };
            walk(value, &promise, inferred, &mut Some(HashMap::new()), &Place::Root)
        }
        None => Ok(()),
    }
}

/// Checks an argument against the lengths that its parameter's type names by number. What its size variables mean is for the
/// program to say when it is called.
pub fn check_argument(value: &Value, param: &Sized, inferred: &Inferred) -> Result<(), Misfit> {
    walk(value, &Promise { sized: param, args: &[] }, inferred, &mut None, &Place::Root)
}

/// The length that stands for each size variable: whatever it met first. None where variables mean nothing.
type Variables = Option<HashMap<u32, usize>>;

/// What a type says, with the arguments of the declared type around it.
#[derive(Clone, Copy)]
struct Promise<'a> {
    sized: &'a Sized,
    args: &'a [Promise<'a>],
}

fn walk(
    value: &Value,
    promise: &Promise,
    inferred: &Inferred,
    same: &mut Variables,
    place: &Place,
) -> Result<(), Misfit> {
    with_stack(|| match (promise.sized, value) {
        (Sized::Param(i), _) => match promise.args.get(*i) {
            Some(argument) => walk(value, argument, inferred, same, place),
            None => Ok(()),
        },
        (Sized::Array(element, length), Value::Array(_) | Value::Reals(_)) => {
            let count = match value {
                Value::Reals(block) => block.len(),
                Value::Array(parts) => parts.len(),
                _ => 0,
            };
            let wanted = match length {
                Length::Any => count,
                Length::Exactly(n) => usize::try_from(*n).unwrap_or(usize::MAX),
                Length::Same(variable) => same.as_mut().map_or(count, |met| *met.entry(*variable).or_insert(count)),
            };
            if wanted != count {
                let expected = format!("an array of {}", elements(wanted));
                return Err(Misfit { place: place.to_string(), expected, found: elements(count) });
            }
            let element = Promise { sized: element, args: promise.args };
            match value {
                // Rows are alike, so the first stands for all.
                Value::Reals(block) => {
                    let mut first = block.items().take(1);
                    first.try_for_each(|item| walk(&item, &element, inferred, same, &Place::Index(place, 0)))
                }
                Value::Array(parts) => numbered(parts, &element, inferred, same, place),
                _ => Ok(()),
            }
        }
        (Sized::Tuple(types), Value::Tuple(parts)) => {
            let mut both = parts.iter().zip(types).enumerate();
            both.try_for_each(|(i, (part, sized))| {
                let promise = Promise { sized, args: promise.args };
                walk(part, &promise, inferred, same, &Place::Index(place, i))
            })
        }
        (Sized::Named(_, args), Value::List(parts)) => match &args[..] {
            [sized] => numbered(parts, &Promise { sized, args: promise.args }, inferred, same, place),
            _ => Ok(()),
        },
        (Sized::Named(name, args), Value::Record { .. } | Value::Variant { .. }) => {
            let args: Vec<Promise> = args.iter().map(|sized| Promise { sized, args: promise.args }).collect();
            let constructors = inferred.sized_constructors(name);
            match value {
                Value::Record { fields, parts } => {
                    let types = constructors.first().map(|(_, types)| &types[..]).unwrap_or_default();
                    let mut all = fields.iter().zip(parts.iter()).zip(types);
                    all.try_for_each(|((field, part), sized)| {
                        let promise = Promise { sized, args: &args };
                        // A size variable of a declaration is the declaration's own.
                        walk(part, &promise, inferred, &mut Some(HashMap::new()), &Place::Field(place, field))
                    })
                }
                Value::Variant { constructor, parts } => {
                    let found = constructors.iter().find(|(name, _)| name == constructor);
                    let types = found.map(|(_, types)| &types[..]).unwrap_or_default();
                    let place = Place::Field(place, constructor);
                    let mut all = parts.iter().zip(types).enumerate();
                    all.try_for_each(|(i, (part, sized))| {
                        let promise = Promise { sized, args: &args };
                        walk(part, &promise, inferred, &mut Some(HashMap::new()), &Place::Index(&place, i))
                    })
                }
                _ => Ok(()),
            }
        }
        (Sized::Plain | Sized::Fun(..) | Sized::Array(..) | Sized::Tuple(_) | Sized::Named(..), _) => Ok(()),
    })
}

fn numbered(
    parts: &[Value],
    element: &Promise,
    inferred: &Inferred,
    same: &mut Variables,
    place: &Place,
) -> Result<(), Misfit> {
    let mut parts = parts.iter().enumerate();
    parts.try_for_each(|(i, part)| walk(part, element, inferred, same, &Place::Index(place, i)))
}
