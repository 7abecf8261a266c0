//! Types of the core calculus. Sizes of arrays are the business of inference and of run-time checks;
//! core types do not mention them.

use crate::{term::Symbol, Mode};
use gradus_source::Span;
use std::sync::Arc;

/// A type variable: bound by a [`Scheme`] or by a [`TypeDecl`].
#[derive(Clone, Debug)]
pub struct TypeVar {
    pub id: u32,
    /// For messages only.
    pub name: Symbol,
}

impl PartialEq for TypeVar {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}
impl Eq for TypeVar {}
impl std::hash::Hash for TypeVar {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.id.hash(state)
    }
}

impl TypeVar {
    pub fn fresh(name: impl Into<Symbol>) -> Self {
        TypeVar { id: crate::term::fresh_id(), name: name.into() }
    }
}

/// The name of a declared type: as declared, or the image of that declaration under modes
/// (the innermost, first applied, mode first). Inference produces only names without modes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TypeName {
    pub base: Symbol,
    pub modes: Vec<Mode>,
}

impl TypeName {
    pub fn new(base: impl Into<Symbol>) -> Self {
        TypeName { base: base.into(), modes: Vec::new() }
    }
}

/// Cheap to clone: every composite type shares its parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    Var(TypeVar),
    Real,
    Int,
    Bool,
    String,
    Unit,
    /// Two or more components.
    Tuple(Arc<[Type]>),
    /// A declared record or variant applied to its arguments.
    Named(TypeName, Arc<[Type]>),
    Fun(Arc<(Type, Type)>),
    Array(Arc<Type>),
}

impl Type {
    pub fn fun(from: Type, to: Type) -> Type {
        Type::Fun(Arc::new((from, to)))
    }

    /// `a -> b -> c -> result`
    pub fn funs(params: impl IntoIterator<Item = Type, IntoIter: DoubleEndedIterator>, result: Type) -> Type {
        params.into_iter().rev().fold(result, |to, from| Type::fun(from, to))
    }

    pub fn array(element: Type) -> Type {
        Type::Array(Arc::new(element))
    }

    pub fn tuple(parts: impl Into<Arc<[Type]>>) -> Type {
        Type::Tuple(parts.into())
    }

    pub fn named(name: &str, args: impl Into<Arc<[Type]>>) -> Type {
        Type::Named(TypeName::new(name), args.into())
    }

    pub fn list(element: Type) -> Type {
        Type::named("list", [element])
    }

    pub fn option(element: Type) -> Type {
        Type::named("option", [element])
    }

    pub fn either(left: Type, right: Type) -> Type {
        Type::named("either", [left, right])
    }

    /// Whether a type variable occurs.
    pub fn has_vars(&self) -> bool {
        match self {
            Type::Var(_) => true,
            Type::Real | Type::Int | Type::Bool | Type::String | Type::Unit => false,
            Type::Tuple(parts) | Type::Named(_, parts) => parts.iter().any(Type::has_vars),
            Type::Fun(parts) => parts.0.has_vars() || parts.1.has_vars(),
            Type::Array(element) => element.has_vars(),
        }
    }

    /// Replaces variables by types, all at once. Unlisted variables stay.
    pub fn substitute(&self, map: &[(TypeVar, Type)]) -> Type {
        match self {
            Type::Var(v) => map.iter().find(|(w, _)| w == v).map_or_else(|| self.clone(), |(_, t)| t.clone()),
            Type::Real | Type::Int | Type::Bool | Type::String | Type::Unit => self.clone(),
            Type::Tuple(parts) => Type::Tuple(parts.iter().map(|t| t.substitute(map)).collect()),
            Type::Named(name, args) => Type::Named(name.clone(), args.iter().map(|t| t.substitute(map)).collect()),
            Type::Fun(ft) => Type::fun(ft.0.substitute(map), ft.1.substitute(map)),
            Type::Array(t) => Type::array(t.substitute(map)),
        }
    }
}

/// What a type variable may stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Constraint {
    Any,
    /// A data type: no function inside.
    Data,
}

/// `forall 'a 'b. type`
#[derive(Clone, Debug, PartialEq)]
pub struct Scheme {
    pub vars: Vec<(TypeVar, Constraint)>,
    pub ty: Type,
}

impl Scheme {
    pub fn mono(ty: Type) -> Self {
        Scheme { vars: Vec::new(), ty }
    }

    /// The type at the given arguments, one for each variable.
    pub fn instantiate(&self, args: &[Type]) -> Type {
        self.ty.substitute(&self.bindings(args))
    }

    pub fn bindings(&self, args: &[Type]) -> Vec<(TypeVar, Type)> {
        debug_assert_eq!(self.vars.len(), args.len());
        self.vars.iter().map(|(v, _)| v.clone()).zip(args.iter().cloned()).collect()
    }
}

/// A declared record or variant. Aliases are gone: inference expands them.
#[derive(Clone, Debug)]
pub struct TypeDecl {
    pub name: TypeName,
    pub params: Vec<TypeVar>,
    pub body: TypeBody,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum TypeBody {
    /// Fields in the order of declaration; a record value is built by [`crate::TermKind::Construct`] with tag 0.
    Record(Vec<(Symbol, Type)>),
    /// Constructors in the order of declaration, each with its argument types; the tag is the position.
    Variant(Vec<(Symbol, Vec<Type>)>),
}

impl TypeDecl {
    /// The argument types of each constructor (one for a record) at the given type arguments.
    pub fn constructors(&self, args: &[Type]) -> Vec<(Symbol, Vec<Type>)> {
        let map: Vec<_> = self.params.iter().cloned().zip(args.iter().cloned()).collect();
        let at = |ts: &[Type]| ts.iter().map(|t| t.substitute(&map)).collect::<Vec<_>>();
        match &self.body {
            TypeBody::Record(fields) => {
                let types: Vec<Type> = fields.iter().map(|(_, t)| t.clone()).collect();
                vec![(self.name.base.clone(), at(&types))]
            }
            TypeBody::Variant(constructors) => constructors.iter().map(|(name, ts)| (name.clone(), at(ts))).collect(),
        }
    }

    /// The types that every program has: `list` (constructors `[]` and `::`), `option`, `either`.
    pub fn builtin() -> Vec<TypeDecl> {
        let variant = |name: &str, params: &[&TypeVar], constructors: Vec<(&str, Vec<Type>)>| TypeDecl {
            name: TypeName::new(name),
            params: params.iter().map(|v| (*v).clone()).collect(),
            body: TypeBody::Variant(constructors.into_iter().map(|(c, ts)| (c.into(), ts)).collect()),
            span: Span::default(),
        };
        let (a, b) = (TypeVar::fresh("a"), TypeVar::fresh("b"));
        let (ta, tb) = (Type::Var(a.clone()), Type::Var(b.clone()));
        vec![
            variant("list", &[&a], vec![("[]", vec![]), ("::", vec![ta.clone(), Type::list(ta.clone())])]),
            variant("option", &[&a], vec![("None", vec![]), ("Some", vec![ta.clone()])]),
            variant("either", &[&a, &b], vec![("Inl", vec![ta]), ("Inr", vec![tb])]),
        ]
    }
}
