//! Types with their declarations at hand: what the conversions of values (JSON, data files, Rust values) are guided by.

use gradus_core::{Symbol, Type, TypeBody, TypeDecl};
use indexmap::IndexMap;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::sync::Arc;

/// One level of a type; its parts are types again, so that recursive types need no cycle here.
#[derive(Debug)]
pub enum Shape {
    Real,
    Int,
    Bool,
    String,
    Unit,
    Tuple(Arc<[Type]>),
    Record {
        fields: Arc<[Symbol]>,
        types: Vec<Type>,
    },
    Variant {
        name: Symbol,
        constructors: Vec<(Symbol, Vec<Type>)>,
    },
    List(Type),
    Array(Type),
    /// A function or a type that is not known: no value of it can be read or written.
    Opaque,
}

/// The declarations of a program, with the shapes that have been asked for.
pub struct Schema<'a> {
    declarations: &'a IndexMap<Symbol, TypeDecl>,
    named: RefCell<FxHashMap<Type, Arc<Shape>>>,
}

impl<'a> Schema<'a> {
    pub fn new(declarations: &'a IndexMap<Symbol, TypeDecl>) -> Self {
        Schema { declarations, named: RefCell::default() }
    }

    pub fn shape(&self, ty: &Type) -> Arc<Shape> {
        if let Some(shape) = self.named.borrow().get(ty) {
            return shape.clone();
        }
        let shape = Arc::new(self.make(ty));
        self.named.borrow_mut().insert(ty.clone(), shape.clone());
        shape
    }

    fn make(&self, ty: &Type) -> Shape {
        match ty {
            Type::Real => Shape::Real,
            Type::Int => Shape::Int,
            Type::Bool => Shape::Bool,
            Type::String => Shape::String,
            Type::Unit => Shape::Unit,
            Type::Tuple(parts) => Shape::Tuple(parts.clone()),
            Type::Array(element) => Shape::Array((**element).clone()),
            Type::Var(_) | Type::Fun(_) => Shape::Opaque,
            Type::Named(name, args) => match (&*name.base, &**args) {
                ("list", [element]) if name.modes.is_empty() => Shape::List(element.clone()),
                _ => self.declared(&name.base, args),
            },
        }
    }

    fn declared(&self, name: &Symbol, args: &[Type]) -> Shape {
        let Some(declaration) = self.declarations.get(name) else { return Shape::Opaque };
        let mut constructors = declaration.constructors(args);
        match &declaration.body {
            TypeBody::Record(fields) => Shape::Record {
                fields: fields.iter().map(|(field, _)| field.clone()).collect(),
                types: constructors.pop().map_or_else(Vec::new, |(_, types)| types),
            },
            TypeBody::Variant(_) => Shape::Variant { name: name.clone(), constructors },
        }
    }

    /// Whether a type holds no function.
    pub fn is_data(&self, ty: &Type) -> bool {
        self.is_data_beyond(ty, &mut FxHashSet::default())
    }

    /// Types that are being looked at count as data: a recursive type is data if nothing else in it says otherwise.
    fn is_data_beyond(&self, ty: &Type, seen: &mut FxHashSet<Type>) -> bool {
        if !seen.insert(ty.clone()) || seen.len() > 1000 {
            return true;
        }
        match &*self.shape(ty) {
            Shape::Real | Shape::Int | Shape::Bool | Shape::String | Shape::Unit => true,
            Shape::Tuple(types) => types.iter().all(|ty| self.is_data_beyond(ty, seen)),
            Shape::Record { types, .. } => types.iter().all(|ty| self.is_data_beyond(ty, seen)),
            Shape::Variant { constructors, .. } => {
                constructors.iter().all(|(_, types)| types.iter().all(|ty| self.is_data_beyond(ty, seen)))
            }
            Shape::List(element) | Shape::Array(element) => self.is_data_beyond(element, seen),
            Shape::Opaque => false,
        }
    }

    /// How many array brackets a type of reals has: 2 for `real[][]`; none if it is not an array of reals.
    pub fn rank_of_reals(ty: &Type) -> Option<usize> {
        let mut rank = 0;
        let mut ty = ty;
        while let Type::Array(element) = ty {
            rank += 1;
            ty = element;
        }
        (rank > 0 && *ty == Type::Real).then_some(rank)
    }
}
