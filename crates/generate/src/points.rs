//! Input points of random programs: plain data of a given type, free of any evaluator.

use crate::Rng;
use gradus_core::build::At;
use gradus_core::{Term, Type, TypeName};
use std::sync::Arc;

/// A value without functions.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    Real(f64),
    Int(i64),
    Bool(bool),
    Tuple(Vec<Data>),
    Array(Vec<Data>),
    Construct { tag: usize, args: Vec<Data> },
}

/// An input for a program, with its type.
#[derive(Clone, Debug)]
pub struct Point {
    pub ty: Type,
    pub data: Data,
}

impl Point {
    /// The point as a core term.
    pub fn term(&self) -> Term {
        term(&self.ty, &self.data)
    }
}

fn term(ty: &Type, data: &Data) -> Term {
    let at = At::default();
    match (ty, data) {
        (_, Data::Real(x)) => at.real(*x),
        (_, Data::Int(i)) => at.int(*i),
        (_, Data::Bool(b)) => at.bool(*b),
        (Type::Tuple(types), Data::Tuple(items)) => {
            at.tuple(types.iter().zip(items).map(|(t, d)| term(t, d)).collect::<Vec<_>>())
        }
        (Type::Array(element), Data::Array(items)) => at.term(gradus_core::TermKind::ArrayLiteral {
            element: (**element).clone(),
            items: items.iter().map(|d| term(element, d)).collect(),
        }),
        (Type::Named(name, types), Data::Construct { tag, args }) => {
            let arg_types = constructor_args(name, types, *tag);
            let args = arg_types.iter().zip(args).map(|(t, d)| term(t, d)).collect::<Vec<_>>();
            at.construct(name.clone(), types.clone(), *tag, args)
        }
        _ => gradus_source::bug!("a random point does not have its type {ty:?}"),
    }
}

/// The argument types of a constructor of the types that random programs use.
pub(crate) fn constructor_args(name: &TypeName, types: &Arc<[Type]>, tag: usize) -> Vec<Type> {
    let this = Type::Named(name.clone(), types.clone());
    match (&*name.base, tag) {
        ("list", 0) | ("option", 0) => vec![],
        ("list", 1) => vec![types[0].clone(), this],
        ("option", 1) | ("either", 0) => vec![types[0].clone()],
        ("either", 1) => vec![types[1].clone()],
        ("tree", 0) => vec![types[0].clone()],
        ("tree", 1) => vec![this.clone(), this],
        _ => gradus_source::bug!("random programs have no constructor {tag} of {}", name.base),
    }
}

/// Reals at which something happens.
pub(crate) const EDGES: [f64; 8] = [0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 2.5, -3.0];

/// A random value of a data type; `depth` bounds lists and trees.
pub(crate) fn random(rng: &mut Rng, ty: &Type, depth: usize, rough: bool) -> Data {
    match ty {
        Type::Real if rough && rng.chance(1, 2) => Data::Real(*rng.pick(&EDGES)),
        Type::Real => Data::Real((rng.unit() * 1.9 * 1e4).round() / 1e4 + 0.00037),
        Type::Int => Data::Int(rng.below(5) as i64),
        Type::Bool => Data::Bool(rng.chance(1, 2)),
        Type::Tuple(types) => Data::Tuple(types.iter().map(|t| random(rng, t, depth, rough)).collect()),
        Type::Array(element) => {
            let n = 1 + rng.below(4);
            Data::Array((0..n).map(|_| random(rng, element, depth, rough)).collect())
        }
        Type::Named(name, types) => {
            let tag = match &*name.base {
                "list" | "tree" => usize::from(depth > 0 && rng.chance(3, 4)),
                _ => rng.below(2),
            };
            let args = constructor_args(name, types, tag);
            Data::Construct { tag, args: args.iter().map(|t| random(rng, t, depth.saturating_sub(1), rough)).collect() }
        }
        Type::Var(_) | Type::Unit | Type::String | Type::Fun(_) => {
            gradus_source::bug!("random points have no values of type {ty:?}")
        }
    }
}
