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
        self.is_data_beyond(ty, false, &mut FxHashSet::default())
    }

    /// Declarations that are being looked at count as data: a recursive type is data if nothing else in it says otherwise. They are looked at by name,
    /// once, with `variables` that may stand for any data: a type may contain itself at ever larger arguments.
    fn is_data_beyond(&self, ty: &Type, variables: bool, seen: &mut FxHashSet<Symbol>) -> bool {
        match ty {
            Type::Real | Type::Int | Type::Bool | Type::String | Type::Unit => true,
            Type::Var(_) => variables,
            Type::Fun(_) => false,
            Type::Array(element) => self.is_data_beyond(element, variables, seen),
            Type::Tuple(types) => types.iter().all(|ty| self.is_data_beyond(ty, variables, seen)),
            Type::Named(name, args) => {
                args.iter().all(|ty| self.is_data_beyond(ty, variables, seen)) && self.declares_data(&name.base, seen)
            }
        }
    }

    fn declares_data(&self, name: &Symbol, seen: &mut FxHashSet<Symbol>) -> bool {
        if !seen.insert(name.clone()) {
            return true;
        }
        match self.declarations.get(name).map(|declaration| &declaration.body) {
            Some(TypeBody::Record(fields)) => fields.iter().all(|(_, ty)| self.is_data_beyond(ty, true, seen)),
            Some(TypeBody::Variant(constructors)) => {
                constructors.iter().flat_map(|(_, types)| types).all(|ty| self.is_data_beyond(ty, true, seen))
            }
            None => false,
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
