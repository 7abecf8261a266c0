//! The sizes in the declared type of `data`: core types do not mention them, so they are checked here, against the text.

use crate::place::{elements, Misfit, Place};
use crate::Value;
use gradus_core::traverse::with_stack;
use gradus_syntax::ast::{SizeExpr, TypeExpr, TypeExprKind};
use std::collections::HashMap;

/// The first array whose length is not what the type says. A size that is a variable means whatever it meets first.
pub fn check(value: &Value, ty: &TypeExpr) -> Result<(), Misfit> {
    let mut sizes = HashMap::new();
    walk(value, ty, &mut sizes, &Place::Root)
}

fn walk<'a>(value: &Value, ty: &'a TypeExpr, sizes: &mut HashMap<&'a str, usize>, place: &Place) -> Result<(), Misfit> {
    with_stack(|| match (&ty.kind, value) {
        (TypeExprKind::Array(element, size), Value::Array(_) | Value::Reals(_)) => {
            let (length, items): (usize, Vec<Value>) = match value {
                Value::Reals(block) => {
                    // Rows are alike, so the first stands for all.
                    (block.len(), block.items().take(1).collect())
                }
                Value::Array(parts) => (parts.len(), parts.to_vec()),
                _ => (0, Vec::new()),
            };
            let wanted = match size {
                SizeExpr::Literal(n, _) => Some(*n as usize),
                SizeExpr::Var(name) => Some(*sizes.entry(&*name.name).or_insert(length)),
                SizeExpr::Unknown => None,
            };
            if let Some(wanted) = wanted.filter(|wanted| *wanted != length) {
                let expected = format!("an array of {}", elements(wanted));
                return Err(Misfit { place: place.to_string(), expected, found: elements(length) });
            }
            let numbered = items.iter().enumerate();
            numbered.into_iter().try_for_each(|(i, item)| walk(item, element, sizes, &Place::Index(place, i)))
        }
        (TypeExprKind::Tuple(types), Value::Tuple(parts)) => {
            let mut both = parts.iter().zip(types).enumerate();
            both.try_for_each(|(i, (part, ty))| walk(part, ty, sizes, &Place::Index(place, i)))
        }
        (TypeExprKind::Named(_, arguments), Value::List(parts)) => match &arguments[..] {
            [element] => {
                let mut numbered = parts.iter().enumerate();
                numbered.try_for_each(|(i, part)| walk(part, element, sizes, &Place::Index(place, i)))
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    })
}
