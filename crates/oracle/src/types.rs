//! How types of core become types of the proved language: tuples and records as nested pairs, variants as nested sums, a recursive
//! variant as a tree whose labels are its constructors and whose subtrees are the recursive arguments in order.

use crate::wire::Ty;
pub use gradus_core::proved::Layout;
use gradus_core::traverse::with_stack;
use gradus_core::{Definitions, Type, TypeName};
use gradus_source::Diagnostic;
use std::sync::Arc;

/// What the proved language does not have.
#[derive(Clone, Debug, PartialEq)]
pub struct Outside(pub String);

impl From<Box<Diagnostic>> for Outside {
    fn from(refused: Box<Diagnostic>) -> Self {
        Outside(refused.message.clone())
    }
}

pub type Within<T> = Result<T, Outside>;

pub fn outside<T>(what: impl Into<String>) -> Within<T> {
    Err(Outside(what.into()))
}

/// The constructor of `Delta` with custom rules has no counterpart, so this type is known by name.
pub fn is_delta(name: &TypeName) -> bool {
    &*name.base == "Delta" && name.modes.is_empty()
}

/// `(DeltaId * Delta) list`, the bindings of the monadic translation: an array in the proofs.
pub fn is_bindings(name: &TypeName, args: &[Type]) -> bool {
    let is_binding = |ty: &Type| match ty {
        Type::Tuple(parts) => {
            matches!(&parts[..], [Type::Int, Type::Named(delta, _)] if is_delta(delta))
        }
        _ => false,
    };
    &*name.base == "list" && matches!(args, [element] if is_binding(element))
}

pub fn layout(definitions: &dyn Definitions, name: &TypeName, args: &Arc<[Type]>) -> Within<Layout> {
    Layout::of(definitions, name, args).map_err(Outside)
}

pub fn ty(definitions: &dyn Definitions, of: &Type) -> Within<Ty> {
    with_stack(|| match of {
        Type::Real => Ok(Ty::Real),
        Type::Int => Ok(Ty::Int),
        Type::Bool => Ok(Ty::bool()),
        Type::Unit => Ok(Ty::Unit),
        Type::Var(_) => outside("a type variable"),
        Type::String => outside("strings"),
        Type::Tuple(parts) => product(definitions, parts),
        Type::Fun(ends) => Ok(Ty::fun(ty(definitions, &ends.0)?, ty(definitions, &ends.1)?)),
        Type::Array(element) => Ok(Ty::array(ty(definitions, element)?)),
        Type::Named(name, _) if is_delta(name) => Ok(Ty::delta()),
        Type::Named(name, args) if is_bindings(name, args) => Ok(Ty::array(ty(definitions, &args[0])?)),
        Type::Named(name, args) => {
            let layout = layout(definitions, name, args)?;
            let label = sum(&payloads(definitions, &layout)?);
            Ok(if layout.recursive() { Ty::tree(label) } else { label })
        }
    })
}

/// The type of what each constructor has besides the recursive arguments.
pub fn payloads(definitions: &dyn Definitions, layout: &Layout) -> Within<Vec<Ty>> {
    let payload = |types: &Vec<Option<Type>>| {
        let own: Vec<Type> = types.iter().flatten().cloned().collect();
        product(definitions, &own)
    };
    layout.constructors.iter().map(payload).collect()
}

pub fn product(definitions: &dyn Definitions, types: &[Type]) -> Within<Ty> {
    match types {
        [] => Ok(Ty::Unit),
        [one] => ty(definitions, one),
        [first, rest @ ..] => Ok(Ty::prod(ty(definitions, first)?, product(definitions, rest)?)),
    }
}

/// A type without constructors is outside of everything; it becomes the unit.
pub fn sum(types: &[Ty]) -> Ty {
    match types {
        [] => Ty::Unit,
        [one] => one.clone(),
        [first, rest @ ..] => Ty::sum(first.clone(), sum(rest)),
    }
}
