//! Polymorphic types: generalisation, closed schemes that outlive a store, and instances.

use crate::store::{Kind, Node, Size, SizeNode, Store, Ty};
use gradus_core::traverse::with_stack;
use gradus_core::{Symbol, TypeVar};
use gradus_source::Span;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// A type that is larger or deeper than this is refused: the passes that follow see types as trees.
pub const MAX_TYPE_SIZE: u64 = 10_000;
pub const MAX_TYPE_DEPTH: u64 = 500;

/// Types without unification variables, independent of any store: the type of a top-level definition, or the argument types of
/// a constructor. Nodes refer to each other by position, after the constants of every store; `Quantified(i)` and `Size::Rigid(i)`
/// are the i-th of `vars` and `sizes`.
#[derive(Clone, Debug, Default)]
pub struct Closed {
    nodes: Vec<Node>,
    pub roots: Vec<Ty>,
    pub vars: Vec<ClosedVar>,
    pub sizes: Vec<Symbol>,
    /// The size variable that is the value of an integer parameter: `build n f` has size `n`.
    pub size_param: Option<(usize, u32)>,
}

#[derive(Clone, Debug)]
pub struct ClosedVar {
    pub var: TypeVar,
    pub data: bool,
    /// See [`Kind::single`].
    pub single: bool,
}

/// The variables over which a local definition was generalised.
#[derive(Clone, Debug, Default)]
pub struct LocalScheme {
    pub vars: Vec<u32>,
    pub sizes: Vec<u32>,
}

/// An instance, with what was put for the type variables.
pub struct Instance {
    pub ty: Ty,
    pub types: Arc<[Ty]>,
    pub sizes: Vec<Size>,
}

impl Closed {
    pub fn root(&self) -> Ty {
        self.roots.first().copied().unwrap_or(Ty::ERROR)
    }

    /// The node at a position, constants included.
    pub fn node(&self, ty: Ty) -> Node {
        match ty {
            Ty::REAL => Node::Real,
            Ty::INT => Node::Int,
            Ty::BOOL => Node::Bool,
            Ty::STRING => Node::String,
            Ty::UNIT => Node::Unit,
            Ty::ERROR => Node::Error,
            _ => self.nodes.get((ty.0 - Ty::CONSTANTS.min(ty.0)) as usize).cloned().unwrap_or(Node::Error),
        }
    }

    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub fn push(&mut self, node: Node) -> Ty {
        self.nodes.push(node);
        Ty(Ty::CONSTANTS + self.nodes.len() as u32 - 1)
    }

    pub fn add_var(&mut self, var: TypeVar, data: bool) -> Ty {
        self.vars.push(ClosedVar { var, data, single: false });
        self.push(Node::Quantified(self.vars.len() as u32 - 1))
    }

    pub fn fun(&mut self, params: &[Ty], result: Ty) -> Ty {
        params.iter().rev().fold(result, |to, from| self.push(Node::Fun(*from, to)))
    }

    /// Notes which variables take in values from one place only. To be called when the type is complete.
    pub fn finish(mut self) -> Self {
        let mut supplies = vec![0; self.vars.len()];
        count_supplies(&self, self.root(), false, &mut supplies);
        for (var, count) in self.vars.iter_mut().zip(supplies) {
            var.single = count <= 1;
        }
        self
    }

    /// Copies the nodes into a store. Sharing is kept, so the cost is that of the graph.
    pub fn instantiate_with(&self, store: &mut Store, types: &[Ty], sizes: &[Size]) -> Vec<Ty> {
        let mut made: Vec<Ty> = Vec::with_capacity(self.nodes.len());
        let at = |made: &[Ty], ty: Ty| {
            if ty.0 < Ty::CONSTANTS {
                ty
            } else {
                made.get((ty.0 - Ty::CONSTANTS) as usize).copied().unwrap_or(Ty::ERROR)
            }
        };
        for node in &self.nodes {
            let copy = match node {
                Node::Quantified(i) => types.get(*i as usize).copied().unwrap_or(Ty::ERROR),
                Node::Tuple(parts) => store.tuple(parts.iter().map(|t| at(&made, *t)).collect()),
                Node::Named(id, parts) => {
                    let parts = parts.iter().map(|t| at(&made, *t)).collect();
                    store.add(Node::Named(*id, parts))
                }
                Node::Fun(a, b) => store.fun(at(&made, *a), at(&made, *b)),
                Node::Array(element, size) => {
                    let size = match size {
                        Size::Rigid(i) => sizes.get(*i as usize).copied().unwrap_or(Size::Unknown),
                        Size::Unknown | Size::Literal(_) | Size::Var(_) => *size,
                    };
                    store.array(at(&made, *element), size)
                }
                Node::Link(to) => at(&made, *to),
                Node::Real => Ty::REAL,
                Node::Int => Ty::INT,
                Node::Bool => Ty::BOOL,
                Node::String => Ty::STRING,
                Node::Unit => Ty::UNIT,
                Node::Unbound(_) | Node::Error => Ty::ERROR,
            };
            made.push(copy);
        }
        self.roots.iter().map(|root| at(&made, *root)).collect()
    }

    /// A use of a polymorphic definition.
    pub fn instantiate(&self, store: &mut Store) -> Instance {
        let types: Arc<[Ty]> = self
            .vars
            .iter()
            .map(|var| store.fresh_of(Kind { data: var.data, single: var.single, ..Kind::default() }))
            .collect();
        let sizes: Vec<Size> = self.sizes.iter().map(|_| store.fresh_size()).collect();
        let ty = self.instantiate_with(store, &types, &sizes).first().copied().unwrap_or(Ty::ERROR);
        Instance { ty, types, sizes }
    }
}

pub fn constraint(data: bool) -> gradus_core::Constraint {
    if data {
        gradus_core::Constraint::Data
    } else {
        gradus_core::Constraint::Any
    }
}

/// Counts where the user of a type supplies values of each variable: in parameters, and in the results of functions that are parameters.
fn count_supplies(closed: &Closed, ty: Ty, supplied: bool, counts: &mut [u32]) {
    with_stack(|| match closed.node(ty) {
        Node::Quantified(i) => {
            if let (true, Some(count)) = (supplied, counts.get_mut(i as usize)) {
                *count += 1;
            }
        }
        Node::Tuple(parts) | Node::Named(_, parts) => {
            parts.iter().for_each(|part| count_supplies(closed, *part, supplied, counts))
        }
        Node::Fun(a, b) => {
            count_supplies(closed, a, !supplied, counts);
            count_supplies(closed, b, supplied, counts);
        }
        Node::Array(element, _) => count_supplies(closed, element, supplied, counts),
        Node::Link(to) => count_supplies(closed, to, supplied, counts),
        Node::Unbound(_) | Node::Real | Node::Int | Node::Bool | Node::String | Node::Unit | Node::Error => {}
    })
}

impl Store {
    /// Makes the variables of these types that belong to the current `let` stand for themselves. Numbers are not generalised:
    /// at the top level they are decided, elsewhere they wait.
    pub fn generalise(&mut self, types: &[Ty], top: bool) -> LocalScheme {
        let mut scheme = LocalScheme::default();
        let mut seen = FxHashSet::default();
        for ty in types {
            self.generalise_types(*ty, top, &mut scheme, &mut seen);
        }
        let mut seen = FxHashSet::default();
        for ty in types {
            self.generalise_sizes(*ty, false, &mut scheme, &mut seen);
        }
        let mut seen = FxHashSet::default();
        for ty in types {
            self.settle_sizes(*ty, false, &mut seen);
        }
        scheme
    }

    fn generalise_types(&mut self, ty: Ty, top: bool, scheme: &mut LocalScheme, seen: &mut FxHashSet<Ty>) {
        with_stack(|| {
            let ty = self.find(ty);
            if self.level_of(ty) <= self.level || !seen.insert(ty) {
                return;
            }
            match self.node(ty).clone() {
                Node::Unbound(kind) if kind.number && top => self.default_number(ty, kind),
                Node::Unbound(kind) if kind.number => self.set_level(ty, self.level),
                Node::Unbound(kind) => {
                    let name = letter(scheme.vars.len());
                    let q = self.quantify(name, kind.data);
                    self.set(ty, Node::Quantified(q));
                    self.set_level(ty, 0);
                    scheme.vars.push(q);
                }
                node => children(&node, &mut |child, _| self.generalise_types(child, top, scheme, seen)),
            }
        })
    }

    /// A size variable is generalised if the caller chooses it: if it stands in a parameter.
    fn generalise_sizes(&mut self, ty: Ty, supplied: bool, scheme: &mut LocalScheme, seen: &mut FxHashSet<(Ty, bool)>) {
        with_stack(|| {
            let ty = self.find(ty);
            if self.level_of(ty) <= self.level || !seen.insert((ty, supplied)) {
                return;
            }
            let node = self.node(ty).clone();
            if let (true, Node::Array(_, size)) = (supplied, &node) {
                if let Size::Var(v) = self.size(*size) {
                    if let SizeNode::Unbound { level, .. } = self.sizes[v as usize] {
                        if level > self.level {
                            let name = size_name(scheme.sizes.len());
                            let rigid = self.rigid_size(name);
                            self.sizes[v as usize] = SizeNode::Link(rigid);
                            if let Size::Rigid(r) = rigid {
                                scheme.sizes.push(r);
                            }
                        }
                    }
                }
            }
            children(&node, &mut |child, flip| self.generalise_sizes(child, supplied != flip, scheme, seen));
        })
    }

    /// Sizes that nobody chooses are unknown; soft ones are what was seen, or unknown where they would restrict a caller.
    fn settle_sizes(&mut self, ty: Ty, supplied: bool, seen: &mut FxHashSet<(Ty, bool)>) {
        with_stack(|| {
            let ty = self.find(ty);
            if self.level_of(ty) <= self.level || !seen.insert((ty, supplied)) {
                return;
            }
            let node = self.node(ty).clone();
            if let Node::Array(_, size) = &node {
                if let Size::Var(v) = self.size(*size) {
                    let settled = match self.sizes[v as usize] {
                        SizeNode::Unbound { level, .. } if level > self.level => Some(Size::Unknown),
                        SizeNode::Soft { level, .. } if level > self.level && supplied => Some(Size::Unknown),
                        SizeNode::Soft { hint, level } if level > self.level => match self.settled_size(hint) {
                            Size::Var(_) => Some(Size::Unknown),
                            known @ (Size::Unknown | Size::Literal(_) | Size::Rigid(_)) => Some(known),
                        },
                        SizeNode::Unbound { .. } | SizeNode::Soft { .. } | SizeNode::Link(_) => None,
                    };
                    if let Some(known) = settled {
                        self.sizes[v as usize] = SizeNode::Link(known);
                    }
                }
            }
            children(&node, &mut |child, flip| self.settle_sizes(child, supplied != flip, seen));
        })
    }

    /// No more values come in: soft sizes are what was seen.
    pub fn settle_soft(&mut self, ty: Ty) {
        let ty = self.find(ty);
        if self.level_of(ty) == 0 {
            return;
        }
        with_stack(|| match self.node(ty).clone() {
            Node::Array(element, size) => {
                if let Size::Var(v) = self.size(size) {
                    if let SizeNode::Soft { hint, .. } = self.sizes[v as usize] {
                        self.sizes[v as usize] = SizeNode::Link(hint);
                    }
                }
                self.settle_soft(element);
            }
            Node::Tuple(parts) => parts.iter().for_each(|part| self.settle_soft(*part)),
            Node::Unbound(_)
            | Node::Link(_)
            | Node::Quantified(_)
            | Node::Named(..)
            | Node::Fun(..)
            | Node::Real
            | Node::Int
            | Node::Bool
            | Node::String
            | Node::Unit
            | Node::Error => {}
        })
    }

    /// Gives the variables of a type that is not generalised to the enclosing `let`.
    pub fn keep_monomorphic(&mut self, ty: Ty) {
        let mut seen = FxHashSet::default();
        self.settle_sizes(ty, false, &mut FxHashSet::default());
        self.lower_levels(ty, &mut seen);
    }

    fn lower_levels(&mut self, ty: Ty, seen: &mut FxHashSet<Ty>) {
        with_stack(|| {
            let ty = self.find(ty);
            if self.level_of(ty) <= self.level || !seen.insert(ty) {
                return;
            }
            self.set_level(ty, self.level);
            let node = self.node(ty).clone();
            if let Node::Array(_, size) = &node {
                if let Size::Var(v) = self.size(*size) {
                    let now = self.level;
                    if let SizeNode::Unbound { level, .. } | SizeNode::Soft { level, .. } = &mut self.sizes[v as usize]
                    {
                        *level = (*level).min(now);
                    }
                }
            }
            children(&node, &mut |child, _| self.lower_levels(child, seen));
        })
    }

    /// An undecided number: `real` if a function's parameter is involved (`let square x = x * x`), and otherwise, if there
    /// are only numerals, `int` (`show 2 + 3`).
    pub fn default_number(&mut self, ty: Ty, kind: Kind) {
        let to = if kind.param { Ty::REAL } else { Ty::INT };
        self.link(ty, to, Span::default());
    }

    /// An instance of a local polymorphic definition.
    pub fn instantiate_local(&mut self, ty: Ty, scheme: &LocalScheme) -> Instance {
        let types: Arc<[Ty]> = scheme
            .vars
            .iter()
            .map(|q| {
                let data = self.quantified[*q as usize].data;
                self.fresh_of(Kind { data, ..Kind::default() })
            })
            .collect();
        let sizes: Vec<Size> = scheme.sizes.iter().map(|_| self.fresh_size()).collect();
        let type_map: FxHashMap<u32, Ty> = scheme.vars.iter().copied().zip(types.iter().copied()).collect();
        let size_map: FxHashMap<u32, Size> = scheme.sizes.iter().copied().zip(sizes.iter().copied()).collect();
        let ty = self.copy(ty, &type_map, &size_map, &mut FxHashMap::default());
        Instance { ty, types, sizes }
    }

    pub fn copy(
        &mut self,
        ty: Ty,
        types: &FxHashMap<u32, Ty>,
        sizes: &FxHashMap<u32, Size>,
        done: &mut FxHashMap<Ty, Ty>,
    ) -> Ty {
        let ty = self.find(ty);
        if let Some(copy) = done.get(&ty) {
            return *copy;
        }
        let copy = with_stack(|| match self.node(ty).clone() {
            Node::Quantified(q) => types.get(&q).copied().unwrap_or(ty),
            Node::Tuple(parts) => {
                let parts = parts.iter().map(|t| self.copy(*t, types, sizes, done)).collect();
                self.tuple(parts)
            }
            Node::Named(id, parts) => {
                let parts = parts.iter().map(|t| self.copy(*t, types, sizes, done)).collect();
                self.add(Node::Named(id, parts))
            }
            Node::Fun(a, b) => {
                let (a, b) = (self.copy(a, types, sizes, done), self.copy(b, types, sizes, done));
                self.fun(a, b)
            }
            Node::Array(element, size) => {
                let element = self.copy(element, types, sizes, done);
                let size = match self.size(size) {
                    Size::Rigid(r) => sizes.get(&r).copied().unwrap_or(Size::Rigid(r)),
                    other @ (Size::Unknown | Size::Literal(_) | Size::Var(_)) => other,
                };
                self.array(element, size)
            }
            Node::Unbound(_)
            | Node::Link(_)
            | Node::Real
            | Node::Int
            | Node::Bool
            | Node::String
            | Node::Unit
            | Node::Error => ty,
        });
        done.insert(ty, copy);
        copy
    }

    /// A closed copy of types whose variables are exactly those of the scheme.
    pub fn close(&mut self, types: &[Ty], scheme: &LocalScheme) -> Closed {
        let mut closed = Closed::default();
        for q in &scheme.vars {
            let q = self.quantified[*q as usize].clone();
            closed.vars.push(ClosedVar { var: q.var, data: q.data, single: false });
        }
        closed.sizes = scheme.sizes.iter().map(|r| self.rigid_sizes[*r as usize].name.clone()).collect();
        let mut done = FxHashMap::default();
        closed.roots = types.iter().map(|ty| self.close_type(*ty, scheme, &mut closed, &mut done)).collect();
        closed.finish()
    }

    fn close_type(&mut self, ty: Ty, scheme: &LocalScheme, closed: &mut Closed, done: &mut FxHashMap<Ty, Ty>) -> Ty {
        let ty = self.find(ty);
        if ty.0 < Ty::CONSTANTS {
            return ty;
        }
        if let Some(copy) = done.get(&ty) {
            return *copy;
        }
        let node = with_stack(|| match self.node(ty).clone() {
            Node::Quantified(q) => {
                scheme.vars.iter().position(|v| *v == q).map_or(Node::Unit, |i| Node::Quantified(i as u32))
            }
            Node::Tuple(parts) => {
                Node::Tuple(parts.iter().map(|t| self.close_type(*t, scheme, closed, done)).collect())
            }
            Node::Named(id, parts) => {
                Node::Named(id, parts.iter().map(|t| self.close_type(*t, scheme, closed, done)).collect())
            }
            Node::Fun(a, b) => {
                let a = self.close_type(a, scheme, closed, done);
                Node::Fun(a, self.close_type(b, scheme, closed, done))
            }
            Node::Array(element, size) => {
                let element = self.close_type(element, scheme, closed, done);
                let size = match self.settled_size(size) {
                    Size::Rigid(r) => {
                        scheme.sizes.iter().position(|s| *s == r).map_or(Size::Unknown, |i| Size::Rigid(i as u32))
                    }
                    Size::Literal(n) => Size::Literal(n),
                    Size::Unknown | Size::Var(_) => Size::Unknown,
                };
                Node::Array(element, size)
            }
            // What nothing depends on; a number has been decided before.
            Node::Unbound(kind) if kind.number && kind.param => Node::Real,
            Node::Unbound(kind) if kind.number => Node::Int,
            Node::Unbound(_) | Node::Link(_) | Node::Unit => Node::Unit,
            Node::Real => Node::Real,
            Node::Int => Node::Int,
            Node::Bool => Node::Bool,
            Node::String => Node::String,
            Node::Error => Node::Error,
        });
        let copy = closed.push(node);
        done.insert(ty, copy);
        copy
    }

    /// Size and depth of a type as a tree, for types that are shared graphs. Saturates.
    pub fn extent(&mut self, ty: Ty, done: &mut FxHashMap<Ty, (u64, u64)>) -> (u64, u64) {
        let ty = self.find(ty);
        if let Some(known) = done.get(&ty) {
            return *known;
        }
        let node = self.node(ty).clone();
        let (mut size, mut depth) = (1u64, 0u64);
        with_stack(|| {
            children(&node, &mut |child, _| {
                let (s, d) = self.extent(child, done);
                size = size.saturating_add(s);
                depth = depth.max(d);
            })
        });
        done.insert(ty, (size, depth + 1));
        (size, depth + 1)
    }
}

/// The parts of a node; the flag tells whether values flow the other way there.
fn children(node: &Node, f: &mut dyn FnMut(Ty, bool)) {
    match node {
        Node::Tuple(parts) | Node::Named(_, parts) => parts.iter().for_each(|part| f(*part, false)),
        Node::Fun(a, b) => {
            f(*a, true);
            f(*b, false);
        }
        Node::Array(element, _) => f(*element, false),
        Node::Unbound(_)
        | Node::Link(_)
        | Node::Quantified(_)
        | Node::Real
        | Node::Int
        | Node::Bool
        | Node::String
        | Node::Unit
        | Node::Error => {}
    }
}

/// `a`, `b`, ..., `z`, `a1`, ...
pub fn letter(index: usize) -> String {
    let letter = (b'a' + (index % 26) as u8) as char;
    match index / 26 {
        0 => letter.to_string(),
        round => format!("{letter}{round}"),
    }
}

fn size_name(index: usize) -> Symbol {
    const NAMES: [&str; 6] = ["n", "m", "k", "l", "p", "q"];
    match NAMES.get(index) {
        Some(name) => (*name).into(),
        None => format!("n{index}").into(),
    }
}
