//! The table of declared types, records and variants, of all modules.

use crate::scheme::Closed;
use crate::store::{Node, Size, Ty, TypeId};
use gradus_core::{Symbol, Type, TypeBody, TypeDecl, TypeName, TypeVar};
use gradus_source::Span;
use rustc_hash::FxHashMap;

#[derive(Clone, Debug)]
pub struct DeclaredType {
    /// `tree`, `Geometry.point`
    pub name: Symbol,
    pub params: Vec<TypeVar>,
    pub body: DeclaredBody,
    /// A function occurs in it, so it is no data type.
    pub has_function: bool,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum DeclaredBody {
    /// Field names; the types are the roots.
    Record(Vec<Symbol>, Closed),
    Variant(Vec<Constructor>),
}

#[derive(Clone, Debug)]
pub struct Constructor {
    pub name: Symbol,
    /// The argument types are the roots.
    pub args: Closed,
}

#[derive(Clone, Debug, Default)]
pub struct Declared {
    types: Vec<DeclaredType>,
    by_name: FxHashMap<Symbol, TypeId>,
}

impl Declared {
    pub const LIST: TypeId = TypeId(0);

    pub fn add(&mut self, declared: DeclaredType) -> TypeId {
        let id = TypeId(self.types.len() as u32);
        self.by_name.insert(declared.name.clone(), id);
        self.types.push(declared);
        id
    }

    pub fn get(&self, id: TypeId) -> &DeclaredType {
        &self.types[id.0 as usize]
    }

    pub fn get_mut(&mut self, id: TypeId) -> &mut DeclaredType {
        &mut self.types[id.0 as usize]
    }

    /// The type of a qualified name.
    pub fn find(&self, name: &str) -> Option<TypeId> {
        self.by_name.get(name).copied()
    }

    /// The core argument types of a constructor (or fields of a record) at type arguments.
    pub fn argument_types(&self, id: TypeId, tag: usize, args: &[Type]) -> Vec<Type> {
        let map: Vec<(TypeVar, Type)> = self.get(id).params.iter().cloned().zip(args.iter().cloned()).collect();
        match self.arguments(id, tag) {
            Some(closed) => closed.roots.iter().map(|t| self.core_type(closed, *t).substitute(&map)).collect(),
            None => Vec::new(),
        }
    }

    pub fn has_function(&self, id: TypeId) -> bool {
        self.get(id).has_function
    }

    pub fn ids(&self) -> impl Iterator<Item = TypeId> {
        (0..self.types.len() as u32).map(TypeId)
    }

    /// How many arguments each constructor has; one constructor for a record.
    pub fn arities(&self, id: TypeId) -> Vec<usize> {
        match &self.get(id).body {
            DeclaredBody::Record(fields, _) => vec![fields.len()],
            DeclaredBody::Variant(constructors) => constructors.iter().map(|c| c.args.roots.len()).collect(),
        }
    }

    /// The argument types of a constructor, or the field types of a record.
    pub fn arguments(&self, id: TypeId, tag: usize) -> Option<&Closed> {
        match &self.get(id).body {
            DeclaredBody::Record(_, types) => Some(types),
            DeclaredBody::Variant(constructors) => constructors.get(tag).map(|c| &c.args),
        }
    }

    pub fn constructor_name(&self, id: TypeId, tag: usize) -> Symbol {
        match &self.get(id).body {
            DeclaredBody::Record(..) => self.get(id).name.clone(),
            DeclaredBody::Variant(constructors) => constructors.get(tag).map_or("?".into(), |c| c.name.clone()),
        }
    }

    /// Finds out which types of a new group contain functions, through each other.
    pub fn find_functions(&mut self, group: &[TypeId]) {
        loop {
            let mut changed = false;
            for id in group {
                let closeds: Vec<&Closed> = match &self.get(*id).body {
                    DeclaredBody::Record(_, types) => vec![types],
                    DeclaredBody::Variant(constructors) => constructors.iter().map(|c| &c.args).collect(),
                };
                let found = closeds.iter().any(|closed| {
                    closed.nodes().iter().any(|node| match node {
                        Node::Fun(..) => true,
                        Node::Named(other, _) => self.has_function(*other),
                        Node::Unbound(_)
                        | Node::Link(_)
                        | Node::Quantified(_)
                        | Node::Real
                        | Node::Int
                        | Node::Bool
                        | Node::String
                        | Node::Unit
                        | Node::Error
                        | Node::Tuple(_)
                        | Node::Array(..) => false,
                    })
                });
                if found && !self.has_function(*id) {
                    self.get_mut(*id).has_function = true;
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// The declaration in core form.
    pub fn core_decl(&self, id: TypeId) -> TypeDecl {
        let declared = self.get(id);
        let types = |closed: &Closed| closed.roots.iter().map(|t| self.core_type(closed, *t)).collect::<Vec<_>>();
        let body = match &declared.body {
            DeclaredBody::Record(fields, closed) => {
                TypeBody::Record(fields.iter().cloned().zip(types(closed)).collect())
            }
            DeclaredBody::Variant(constructors) => {
                TypeBody::Variant(constructors.iter().map(|c| (c.name.clone(), types(&c.args))).collect())
            }
        };
        TypeDecl {
            name: TypeName::new(declared.name.clone()),
            params: declared.params.clone(),
            body,
            span: declared.span,
        }
    }

    /// A closed type in core form: without sizes. Closed types are small; see [`crate::scheme::MAX_TYPE_DEPTH`].
    pub fn core_type(&self, closed: &Closed, ty: Ty) -> Type {
        let all = |parts: &[Ty]| parts.iter().map(|t| self.core_type(closed, *t)).collect::<Vec<_>>();
        match closed.node(ty) {
            Node::Real => Type::Real,
            Node::Int => Type::Int,
            Node::Bool => Type::Bool,
            Node::String => Type::String,
            Node::Unit | Node::Unbound(_) | Node::Error => Type::Unit,
            Node::Link(to) => self.core_type(closed, to),
            Node::Quantified(i) => closed.vars.get(i as usize).map_or(Type::Unit, |v| Type::Var(v.var.clone())),
            Node::Tuple(parts) => Type::tuple(all(&parts)),
            Node::Named(id, parts) => Type::Named(TypeName::new(self.get(id).name.clone()), all(&parts).into()),
            Node::Fun(a, b) => Type::fun(self.core_type(closed, a), self.core_type(closed, b)),
            Node::Array(element, _) => Type::array(self.core_type(closed, element)),
        }
    }

    /// A core type as nodes of a closed one: for primitives and builtin types, whose sizes are unknown.
    pub fn import(&self, closed: &mut Closed, vars: &[TypeVar], ty: &Type) -> Ty {
        match ty {
            Type::Real => Ty::REAL,
            Type::Int => Ty::INT,
            Type::Bool => Ty::BOOL,
            Type::String => Ty::STRING,
            Type::Unit => Ty::UNIT,
            Type::Var(v) => {
                let index = vars.iter().position(|w| w == v).unwrap_or(0) as u32;
                closed.push(Node::Quantified(index))
            }
            Type::Tuple(parts) => {
                let parts = parts.iter().map(|t| self.import(closed, vars, t)).collect();
                closed.push(Node::Tuple(parts))
            }
            Type::Named(name, args) => {
                let args = args.iter().map(|t| self.import(closed, vars, t)).collect();
                match self.find(&name.base) {
                    Some(id) => closed.push(Node::Named(id, args)),
                    None => Ty::ERROR,
                }
            }
            Type::Fun(ft) => {
                let from = self.import(closed, vars, &ft.0);
                let to = self.import(closed, vars, &ft.1);
                closed.push(Node::Fun(from, to))
            }
            Type::Array(element) => {
                let element = self.import(closed, vars, element);
                closed.push(Node::Array(element, Size::Unknown))
            }
        }
    }

    /// `list`, `option` and `either`.
    pub fn builtin() -> Self {
        let mut declared = Declared::default();
        let decls = TypeDecl::builtin();
        // All names first, since the types mention themselves.
        for decl in &decls {
            declared.add(DeclaredType {
                name: decl.name.base.clone(),
                params: decl.params.clone(),
                body: DeclaredBody::Variant(Vec::new()),
                has_function: false,
                span: decl.span,
            });
        }
        for (index, decl) in decls.iter().enumerate() {
            if let TypeBody::Variant(constructors) = &decl.body {
                let constructors = constructors
                    .iter()
                    .map(|(name, args)| {
                        let mut closed = Closed::default();
                        for param in &decl.params {
                            closed.add_var(param.clone(), false);
                        }
                        closed.roots = args.iter().map(|t| declared.import(&mut closed, &decl.params, t)).collect();
                        Constructor { name: name.clone(), args: closed }
                    })
                    .collect();
                declared.get_mut(TypeId(index as u32)).body = DeclaredBody::Variant(constructors);
            }
        }
        declared
    }
}
