//! The types of inference: an arena of nodes with unification variables, levels and sizes.
//!
//! Types are handles into a [`Store`]. Variables are bound by links (union-find). Every node has a level, an upper
//! bound of the levels of the variables inside, so that the occurs check, the adjustment of levels and
//! generalisation only walk where there is something to find (Rémy). The store is emptied after every top-level definition,
//! which keeps checking linear in the size of a program.

use gradus_core::{Symbol, TypeVar};
use gradus_source::Span;
use std::sync::Arc;

/// A type: a position in a [`Store`], or in the nodes of a closed [`crate::scheme::Closed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ty(pub u32);

impl Ty {
    pub const REAL: Ty = Ty(0);
    pub const INT: Ty = Ty(1);
    pub const BOOL: Ty = Ty(2);
    pub const STRING: Ty = Ty(3);
    pub const UNIT: Ty = Ty(4);
    /// The type of what is already known to be wrong: agrees with everything, so that one mistake is told once.
    pub const ERROR: Ty = Ty(5);
    /// How many nodes every store starts with.
    pub const CONSTANTS: u32 = 6;
}

/// A declared record or variant: a position in the table of declared types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TypeId(pub u32);

/// The size of an array type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Size {
    /// Agrees with any; checked at run time where it meets a known one.
    Unknown,
    Literal(u64),
    /// A size variable of an enclosing function, or one that was generalised.
    Rigid(u32),
    /// To be found out.
    Var(u32),
}

/// What is known of a type that is still to be found out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kind {
    /// No function may be inside.
    pub data: bool,
    /// It is `int` or `real`: a numeral or an operand of overloaded arithmetic.
    pub number: bool,
    /// It is part of a function's parameter; an undecided number is then a `real`, and otherwise an `int`.
    pub param: bool,
    /// Values flow in from a single place, so that the sizes inside are exactly those of that place.
    pub single: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    Unbound(Kind),
    Link(Ty),
    /// A type variable that stands for itself: generalised, or quantified by an annotation.
    Quantified(u32),
    Real,
    Int,
    Bool,
    String,
    Unit,
    Error,
    Tuple(Arc<[Ty]>),
    Named(TypeId, Arc<[Ty]>),
    Fun(Ty, Ty),
    Array(Ty, Size),
}

/// A generalised or quantified type variable.
#[derive(Clone, Debug)]
pub struct Quantified {
    pub var: TypeVar,
    pub data: bool,
}

#[derive(Clone, Copy, Debug)]
pub enum SizeNode {
    /// `born` is the clock when it was made or last took part in an instantiation; see `relate`.
    Unbound {
        level: u32,
        born: u32,
    },
    Link(Size),
    /// A size that was seen where several values meet: a second, different one makes it unknown.
    Soft {
        hint: Size,
        level: u32,
    },
}

/// A size that stands for itself.
#[derive(Clone, Debug)]
pub struct RigidSize {
    pub name: Symbol,
    /// The variable that holds it when the program runs.
    pub value: Option<crate::tree::LocalId>,
}

#[derive(Debug)]
pub struct Store {
    nodes: Vec<Node>,
    levels: Vec<u32>,
    /// Where a variable was bound, for messages.
    origins: Vec<Span>,
    pub quantified: Vec<Quantified>,
    pub sizes: Vec<SizeNode>,
    pub rigid_sizes: Vec<RigidSize>,
    /// The depth of `let` in which we are.
    pub level: u32,
    pub clock: u32,
}

impl Store {
    pub fn new() -> Self {
        let nodes = vec![Node::Real, Node::Int, Node::Bool, Node::String, Node::Unit, Node::Error];
        let count = nodes.len();
        Store {
            nodes,
            levels: vec![0; count],
            origins: vec![Span::default(); count],
            quantified: Vec::new(),
            sizes: Vec::new(),
            rigid_sizes: Vec::new(),
            level: 0,
            clock: 0,
        }
    }

    pub fn add(&mut self, node: Node) -> Ty {
        let level = match &node {
            Node::Unbound(_) => self.level,
            Node::Link(t) => self.level_of(*t),
            Node::Tuple(parts) | Node::Named(_, parts) => parts.iter().map(|t| self.level_of(*t)).max().unwrap_or(0),
            Node::Fun(a, b) => self.level_of(*a).max(self.level_of(*b)),
            Node::Array(t, size) => self.level_of(*t).max(self.size_level(*size)),
            Node::Quantified(_) | Node::Real | Node::Int | Node::Bool | Node::String | Node::Unit | Node::Error => 0,
        };
        self.nodes.push(node);
        self.levels.push(level);
        self.origins.push(Span::default());
        Ty(self.nodes.len() as u32 - 1)
    }

    pub fn fresh(&mut self) -> Ty {
        self.fresh_of(Kind::default())
    }

    pub fn fresh_of(&mut self, kind: Kind) -> Ty {
        self.add(Node::Unbound(kind))
    }

    pub fn number(&mut self) -> Ty {
        self.fresh_of(Kind { number: true, data: true, ..Kind::default() })
    }

    pub fn param(&mut self) -> Ty {
        self.fresh_of(Kind { param: true, ..Kind::default() })
    }

    pub fn fun(&mut self, from: Ty, to: Ty) -> Ty {
        self.add(Node::Fun(from, to))
    }

    pub fn funs(&mut self, params: &[Ty], result: Ty) -> Ty {
        params.iter().rev().fold(result, |to, from| self.fun(*from, to))
    }

    pub fn tuple(&mut self, parts: Vec<Ty>) -> Ty {
        self.add(Node::Tuple(parts.into()))
    }

    pub fn array(&mut self, element: Ty, size: Size) -> Ty {
        self.add(Node::Array(element, size))
    }

    pub fn fresh_size(&mut self) -> Size {
        self.clock += 1;
        self.push_size(SizeNode::Unbound { level: self.level, born: self.clock })
    }

    pub fn push_size(&mut self, node: SizeNode) -> Size {
        self.sizes.push(node);
        Size::Var(self.sizes.len() as u32 - 1)
    }

    pub fn rigid_size(&mut self, name: Symbol) -> Size {
        self.rigid_sizes.push(RigidSize { name, value: None });
        Size::Rigid(self.rigid_sizes.len() as u32 - 1)
    }

    pub fn quantify(&mut self, name: impl Into<Symbol>, data: bool) -> u32 {
        self.quantified.push(Quantified { var: TypeVar::fresh(name), data });
        self.quantified.len() as u32 - 1
    }

    /// Follows links, shortening them.
    pub fn find(&mut self, ty: Ty) -> Ty {
        let mut root = ty;
        while let Node::Link(next) = self.node(root) {
            root = *next;
        }
        let mut at = ty;
        while let Node::Link(next) = self.node(at) {
            let next = *next;
            if next != root {
                self.set(at, Node::Link(root));
            }
            at = next;
        }
        root
    }

    /// Follows links without changing them.
    pub fn root(&self, mut ty: Ty) -> Ty {
        while let Node::Link(next) = self.node(ty) {
            ty = *next;
        }
        ty
    }

    pub fn node(&self, ty: Ty) -> &Node {
        &self.nodes[ty.0 as usize]
    }

    /// The node behind all links.
    pub fn shape(&mut self, ty: Ty) -> Node {
        let root = self.find(ty);
        self.node(root).clone()
    }

    pub fn set(&mut self, ty: Ty, node: Node) {
        self.nodes[ty.0 as usize] = node;
    }

    pub fn level_of(&self, ty: Ty) -> u32 {
        self.levels[ty.0 as usize]
    }

    pub fn set_level(&mut self, ty: Ty, level: u32) {
        self.levels[ty.0 as usize] = level;
    }

    pub fn link(&mut self, var: Ty, to: Ty, place: Span) {
        self.set(var, Node::Link(to));
        self.origins[var.0 as usize] = place;
    }

    /// Where a variable on the way of this type was bound, if anywhere.
    pub fn origin(&self, ty: Ty) -> Option<Span> {
        let mut at = ty;
        while let Node::Link(next) = self.node(at) {
            let place = self.origins[at.0 as usize];
            if place != Span::default() {
                return Some(place);
            }
            at = *next;
        }
        None
    }

    /// The size behind all links; `Var` if it is unbound or soft.
    pub fn size(&self, mut size: Size) -> Size {
        while let Size::Var(v) = size {
            match self.sizes[v as usize] {
                SizeNode::Link(next) => size = next,
                SizeNode::Unbound { .. } | SizeNode::Soft { .. } => break,
            }
        }
        size
    }

    /// What a size is taken for in messages and at the end: a soft size is the one that was seen.
    pub fn settled_size(&self, size: Size) -> Size {
        match self.size(size) {
            Size::Var(v) => match self.sizes[v as usize] {
                SizeNode::Soft { hint, .. } => self.settled_size(hint),
                SizeNode::Unbound { .. } | SizeNode::Link(_) => Size::Var(v),
            },
            known @ (Size::Unknown | Size::Literal(_) | Size::Rigid(_)) => known,
        }
    }

    pub fn size_level(&self, size: Size) -> u32 {
        match self.size(size) {
            Size::Var(v) => match self.sizes[v as usize] {
                SizeNode::Unbound { level, .. } | SizeNode::Soft { level, .. } => level,
                SizeNode::Link(_) => 0,
            },
            Size::Unknown | Size::Literal(_) | Size::Rigid(_) => 0,
        }
    }

    pub fn kind(&mut self, ty: Ty) -> Option<Kind> {
        match self.shape(ty) {
            Node::Unbound(kind) => Some(kind),
            _ => None,
        }
    }
}
