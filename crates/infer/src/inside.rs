//! Where the function stands that keeps a declared type from being data.

use crate::declared::{Declared, DeclaredBody};
use crate::display::Printer;
use crate::scheme::Closed;
use crate::store::{Node, Ty, TypeId};
use gradus_core::Symbol;
use std::collections::{HashSet, VecDeque};

/// A field of a record, or an argument of a constructor, with a function inside.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionInside {
    pub owner: Symbol,
    pub part: Part,
    pub function: String,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    Field(Symbol),
    Constructor(Symbol),
}

impl Declared {
    /// The function in a declared type, or in the nearest of the types that it is made of.
    pub fn function_inside(&self, id: TypeId) -> Option<FunctionInside> {
        let mut seen = HashSet::from([id]);
        let mut queue = VecDeque::from([id]);
        while let Some(id) = queue.pop_front() {
            let parts: Vec<(Part, &Closed, Ty)> = self.parts(id);
            for (part, closed, ty) in parts {
                let mut others = Vec::new();
                if let Some(function) = function_in(closed, ty, &mut others) {
                    let function = Printer::of_closed(closed, self).print(function);
                    return Some(FunctionInside { owner: self.get(id).name.clone(), part, function });
                }
                queue.extend(others.into_iter().filter(|other| self.has_function(*other) && seen.insert(*other)));
            }
        }
        None
    }

    /// What values of a declared type are made of.
    fn parts(&self, id: TypeId) -> Vec<(Part, &Closed, Ty)> {
        match &self.get(id).body {
            DeclaredBody::Record(fields, types) => {
                fields.iter().zip(&types.roots).map(|(name, ty)| (Part::Field(name.clone()), types, *ty)).collect()
            }
            DeclaredBody::Variant(constructors) => constructors
                .iter()
                .flat_map(|c| c.args.roots.iter().map(|ty| (Part::Constructor(c.name.clone()), &c.args, *ty)))
                .collect(),
        }
    }
}

/// A function inside a type; the declared types on the way are collected.
fn function_in(closed: &Closed, ty: Ty, declared: &mut Vec<TypeId>) -> Option<Ty> {
    match closed.node(ty) {
        Node::Fun(..) => Some(ty),
        Node::Tuple(parts) => parts.iter().find_map(|part| function_in(closed, *part, declared)),
        Node::Named(id, parts) => {
            declared.push(id);
            parts.iter().find_map(|part| function_in(closed, *part, declared))
        }
        Node::Array(element, _) => function_in(closed, element, declared),
        Node::Link(to) => function_in(closed, to, declared),
        Node::Unbound(_)
        | Node::Quantified(_)
        | Node::Real
        | Node::Int
        | Node::Bool
        | Node::String
        | Node::Unit
        | Node::Error => None,
    }
}
