//! How declared types of core become types of the proved language: variants as nested sums, a recursive variant as a tree whose labels are its
//! constructors and whose subtrees are the recursive arguments in order.

use crate::traverse::with_stack;
use crate::{Definitions, Type, TypeDecl, TypeName};
use std::sync::Arc;

/// A variant or record as data of the proved language.
pub struct Layout {
    /// The arguments of each constructor; `None` stands for the type itself.
    pub constructors: Vec<Vec<Option<Type>>>,
}

impl Layout {
    /// The layout of a declared type at arguments, or what about it the proved language does not have.
    pub fn of(definitions: &dyn Definitions, name: &TypeName, args: &Arc<[Type]>) -> Result<Self, String> {
        let Ok(decl) = definitions.type_decl(name) else { return Err(format!("the type {}", name.base)) };
        if !is_tree(definitions, &decl) {
            return Err(format!("the type {}, which is recursive through another type", name.base));
        }
        let parameters: Vec<Type> = decl.params.iter().cloned().map(Type::Var).collect();
        let this = Type::Named(name.clone(), parameters.clone().into());
        let declared = decl.constructors(&parameters);
        let constructors = declared.iter().zip(decl.constructors(args)).map(|((_, declared), (_, types))| {
            declared.iter().zip(types).map(|(declared, ty)| (*declared != this).then_some(ty)).collect()
        });
        Ok(Layout { constructors: constructors.collect() })
    }

    pub fn recursive(&self) -> bool {
        self.constructors.iter().flatten().any(Option::is_none)
    }
}

/// Whether a declared type leads back to itself only as an argument of its constructors: then its values are trees whose labels are constructors.
pub(super) fn is_tree(definitions: &dyn Definitions, decl: &TypeDecl) -> bool {
    let parameters: Vec<Type> = decl.params.iter().cloned().map(Type::Var).collect();
    let this = Type::Named(decl.name.clone(), parameters.clone().into());
    let constructors = decl.constructors(&parameters);
    let mut others = constructors.iter().flat_map(|(_, types)| types).filter(|ty| **ty != this);
    others.all(|ty| !mentions(definitions, &decl.name, ty, &mut Vec::new()))
}

/// Whether a type of a declaration leads back to the declared type.
fn mentions(definitions: &dyn Definitions, around: &TypeName, ty: &Type, seen: &mut Vec<TypeName>) -> bool {
    with_stack(|| match ty {
        Type::Var(_) | Type::Real | Type::Int | Type::Bool | Type::String | Type::Unit => false,
        Type::Tuple(parts) => parts.iter().any(|t| mentions(definitions, around, t, seen)),
        Type::Fun(ends) => mentions(definitions, around, &ends.0, seen) || mentions(definitions, around, &ends.1, seen),
        Type::Array(element) => mentions(definitions, around, element, seen),
        Type::Named(name, args) => {
            if name == around || args.iter().any(|t| mentions(definitions, around, t, seen)) {
                return true;
            }
            if seen.contains(name) {
                return false;
            }
            seen.push(name.clone());
            let Ok(decl) = definitions.type_decl(name) else { return false };
            let parameters: Vec<Type> = decl.params.iter().cloned().map(Type::Var).collect();
            let constructors = decl.constructors(&parameters);
            let mut types = constructors.iter().flat_map(|(_, types)| types);
            types.any(|t| mentions(definitions, around, t, seen))
        }
    })
}
