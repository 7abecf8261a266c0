//! Unification with a direction: a value of type `actual` is used where `expected` is wanted.
//!
//! Without arrays this is plain first-order unification. The direction matters for sizes only, which are gradual:
//!
//! - two known sizes (literals, size variables of the enclosing function) must be the same;
//! - an unknown size agrees with all; where an array of unknown size is used at a size that is or becomes
//!   known, the caller is told by a [`Checked`] dimension, and puts a run-time check there;
//! - a size variable that belongs to the application being typed (`born` since `mark`) takes the size that it is given; an unknown
//!   one only if no argument has a known one (`pending`). So `dot a b` relates its two arguments in either order;
//! - an older size variable that is *given* another size stands for a place where values meet (an argument of
//!   a recursive call): it becomes unknown, since nothing says that all values there have one size;
//! - a type variable that takes in values from several places gets *soft* copies of their sizes, which become unknown when a
//!   second, different size comes in: the branches of `if`, the elements of a list, the state of a fold.
//!
//! Sizes never change what a program computes, only what is refused or checked, so a size that is lost costs a message, not soundness.

use crate::declared::Declared;
use crate::store::{Kind, Node, Size, SizeNode, Store, Ty};
use gradus_core::traverse::with_stack;
use gradus_source::Span;
use rustc_hash::{FxHashMap, FxHashSet};

/// Why two types do not fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Clash {
    /// These two parts differ, of the actual and of the expected type.
    Shape(Ty, Ty),
    /// The variable would have to contain itself.
    Infinite(Ty, Ty),
    /// A function where only data may be.
    Function(Ty),
    /// Neither `int` nor `real`.
    NotNumber(Ty),
    Sizes(Size, Size),
}

/// The array at `path` inside a value must have this size.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    pub path: Vec<Step>,
    pub size: Size,
}

/// A step from a value to a part of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// To the rows of an array, which are all alike.
    Row,
    /// To a component of a tuple.
    Part(usize),
}

/// Where the parts that are being compared stand in the whole, from the inside out.
#[derive(Clone, Copy)]
enum Path<'a> {
    Whole,
    Step(&'a Path<'a>, Step),
    /// Inside a function or a declared type, where no check can be put.
    Beyond,
}

impl Path<'_> {
    fn steps(&self) -> Option<Vec<Step>> {
        let mut steps = Vec::new();
        let mut path = self;
        loop {
            match path {
                Path::Whole => break,
                Path::Beyond => return None,
                Path::Step(outer, step) => {
                    steps.push(*step);
                    path = outer;
                }
            }
        }
        steps.reverse();
        Some(steps)
    }
}

pub struct Relate<'a> {
    pub store: &'a mut Store,
    pub declared: &'a Declared,
    pub mark: u32,
    /// Size variables of this application that were given an unknown size.
    pub pending: &'a mut Vec<Size>,
    pub place: Span,
    pub checks: Vec<Checked>,
    seen: FxHashSet<(Ty, Ty)>,
    softened: FxHashMap<Ty, Ty>,
    steps: usize,
}

impl<'a> Relate<'a> {
    pub fn new(
        store: &'a mut Store,
        declared: &'a Declared,
        mark: u32,
        pending: &'a mut Vec<Size>,
        place: Span,
    ) -> Self {
        Relate {
            store,
            declared,
            mark,
            pending,
            place,
            checks: Vec::new(),
            seen: FxHashSet::default(),
            softened: FxHashMap::default(),
            steps: 0,
        }
    }

    pub fn types(&mut self, actual: Ty, expected: Ty) -> Result<(), Clash> {
        self.at(actual, expected, &Path::Whole)
    }

    fn at(&mut self, actual: Ty, expected: Ty, path: &Path) -> Result<(), Clash> {
        with_stack(|| self.step(actual, expected, path))
    }

    fn step(&mut self, actual: Ty, expected: Ty, path: &Path) -> Result<(), Clash> {
        let (actual, expected) = (self.store.find(actual), self.store.find(expected));
        if actual == expected {
            return Ok(());
        }
        // Types are shared graphs; without this a pair of large ones would be compared once for each path.
        self.steps += 1;
        if self.steps > 64 && !self.seen.insert((actual, expected)) {
            return Ok(());
        }
        match (self.store.node(actual).clone(), self.store.node(expected).clone()) {
            (Node::Error, _) | (_, Node::Error) => Ok(()),
            (Node::Unbound(a), Node::Unbound(b)) => {
                let merged = Kind {
                    data: a.data || b.data,
                    number: a.number || b.number,
                    param: a.param || b.param,
                    single: a.single && b.single,
                };
                let level = self.store.level_of(actual).min(self.store.level_of(expected));
                self.store.set(expected, Node::Unbound(merged));
                self.store.set_level(expected, level);
                self.store.link(actual, expected, Span::default());
                Ok(())
            }
            (_, Node::Unbound(kind)) => {
                let given = if kind.single { actual } else { self.soften(actual) };
                self.bind(expected, kind, given)
            }
            (Node::Unbound(kind), _) => self.bind(actual, kind, expected),
            (Node::Tuple(xs), Node::Tuple(ys)) if xs.len() == ys.len() => {
                let mut parts = xs.iter().zip(ys.iter()).enumerate();
                parts.try_for_each(|(i, (x, y))| self.at(*x, *y, &Path::Step(path, Step::Part(i))))
            }
            (Node::Named(n, xs), Node::Named(m, ys)) if n == m => {
                xs.iter().zip(ys.iter()).try_for_each(|(x, y)| self.at(*x, *y, &Path::Beyond))
            }
            (Node::Fun(a, b), Node::Fun(c, d)) => {
                self.at(c, a, &Path::Beyond)?;
                self.at(b, d, &Path::Beyond)
            }
            (Node::Array(x, n), Node::Array(y, m)) => {
                self.sizes(n, m, path)?;
                self.at(x, y, &Path::Step(path, Step::Row))
            }
            (a, b) if a == b => Ok(()),
            _ => Err(Clash::Shape(actual, expected)),
        }
    }

    /// Binds a variable to a type that is not a variable.
    fn bind(&mut self, var: Ty, kind: Kind, ty: Ty) -> Result<(), Clash> {
        let level = self.store.level_of(var);
        let mut seen = FxHashSet::default();
        if self.occurs(var, level, ty, &mut seen) {
            return Err(Clash::Infinite(var, ty));
        }
        if kind.number && !matches!(self.store.shape(ty), Node::Int | Node::Real | Node::Error) {
            return Err(Clash::NotNumber(ty));
        }
        if kind.data {
            self.require_data(ty)?;
        }
        if kind.param {
            self.mark_param(ty, &mut FxHashSet::default());
        }
        self.store.link(var, ty, self.place);
        Ok(())
    }

    /// Whether `var` occurs in `ty`; also lowers the levels inside to that of `var`.
    fn occurs(&mut self, var: Ty, level: u32, ty: Ty, seen: &mut FxHashSet<Ty>) -> bool {
        with_stack(|| {
            let ty = self.store.find(ty);
            if ty == var {
                return true;
            }
            // A node below this level cannot contain the variable.
            if self.store.level_of(ty) < level || !seen.insert(ty) {
                return false;
            }
            let found = match self.store.node(ty).clone() {
                Node::Unbound(_)
                | Node::Link(_)
                | Node::Quantified(_)
                | Node::Real
                | Node::Int
                | Node::Bool
                | Node::String
                | Node::Unit
                | Node::Error => false,
                Node::Tuple(parts) | Node::Named(_, parts) => {
                    parts.iter().any(|part| self.occurs(var, level, *part, seen))
                }
                Node::Fun(a, b) => self.occurs(var, level, a, seen) || self.occurs(var, level, b, seen),
                Node::Array(element, size) => {
                    self.lower_size(size, level);
                    self.occurs(var, level, element, seen)
                }
            };
            if self.store.level_of(ty) > level {
                self.store.set_level(ty, level);
            }
            found
        })
    }

    fn lower_size(&mut self, size: Size, to: u32) {
        if let Size::Var(v) = self.store.size(size) {
            match &mut self.store.sizes[v as usize] {
                SizeNode::Unbound { level, .. } | SizeNode::Soft { level, .. } => *level = (*level).min(to),
                SizeNode::Link(_) => {}
            }
        }
    }

    /// No function inside; variables inside are constrained.
    pub fn require_data(&mut self, ty: Ty) -> Result<(), Clash> {
        self.require(ty, &mut FxHashSet::default())
    }

    fn require(&mut self, ty: Ty, seen: &mut FxHashSet<Ty>) -> Result<(), Clash> {
        with_stack(|| {
            let ty = self.store.find(ty);
            match self.store.node(ty).clone() {
                Node::Unbound(kind) => {
                    self.store.set(ty, Node::Unbound(Kind { data: true, ..kind }));
                    Ok(())
                }
                Node::Quantified(q) => {
                    self.store.quantified[q as usize].data = true;
                    Ok(())
                }
                Node::Fun(..) => Err(Clash::Function(ty)),
                Node::Named(id, _) if self.declared.has_function(id) => Err(Clash::Function(ty)),
                Node::Tuple(parts) | Node::Named(_, parts) => {
                    if seen.insert(ty) {
                        parts.iter().try_for_each(|part| self.require(*part, seen))?;
                    }
                    Ok(())
                }
                Node::Array(element, _) => self.require(element, seen),
                Node::Link(_) | Node::Real | Node::Int | Node::Bool | Node::String | Node::Unit | Node::Error => Ok(()),
            }
        })
    }

    fn mark_param(&mut self, ty: Ty, seen: &mut FxHashSet<Ty>) {
        with_stack(|| {
            let ty = self.store.find(ty);
            if self.store.level_of(ty) == 0 && !matches!(self.store.node(ty), Node::Unbound(_)) {
                return;
            }
            match self.store.node(ty).clone() {
                Node::Unbound(kind) => self.store.set(ty, Node::Unbound(Kind { param: true, ..kind })),
                Node::Tuple(parts) | Node::Named(_, parts) => {
                    if seen.insert(ty) {
                        parts.iter().for_each(|part| self.mark_param(*part, seen));
                    }
                }
                Node::Fun(a, b) => {
                    if seen.insert(ty) {
                        self.mark_param(a, seen);
                        self.mark_param(b, seen);
                    }
                }
                Node::Array(element, _) => self.mark_param(element, seen),
                Node::Link(_)
                | Node::Quantified(_)
                | Node::Real
                | Node::Int
                | Node::Bool
                | Node::String
                | Node::Unit
                | Node::Error => {}
            }
        })
    }

    /// A copy whose sizes give way to others, where values of several places meet.
    fn soften(&mut self, ty: Ty) -> Ty {
        let ty = self.store.find(ty);
        if let Some(done) = self.softened.get(&ty) {
            return *done;
        }
        let soft = with_stack(|| self.softened_copy(ty));
        if !matches!(self.store.node(ty), Node::Unbound(_)) {
            self.softened.insert(ty, soft);
        }
        soft
    }

    fn softened_copy(&mut self, ty: Ty) -> Ty {
        match self.store.node(ty).clone() {
            Node::Array(element, size) => {
                let soft_element = self.soften(element);
                let known = self.store.size(size);
                let soft = match known {
                    Size::Unknown => Size::Unknown,
                    _ if self.is_soft(known) => known,
                    Size::Literal(_) | Size::Rigid(_) | Size::Var(_) => {
                        let level = self.store.level;
                        self.store.push_size(SizeNode::Soft { hint: known, level })
                    }
                };
                if soft == known && soft_element == element {
                    return ty;
                }
                self.store.array(soft_element, soft)
            }
            Node::Tuple(parts) => match self.soften_all(&parts) {
                Some(soft) => self.store.tuple(soft),
                None => ty,
            },
            Node::Named(id, parts) => match self.soften_all(&parts) {
                Some(soft) => self.store.add(Node::Named(id, soft.into())),
                None => ty,
            },
            Node::Unbound(_)
            | Node::Link(_)
            | Node::Quantified(_)
            | Node::Fun(..)
            | Node::Real
            | Node::Int
            | Node::Bool
            | Node::String
            | Node::Unit
            | Node::Error => ty,
        }
    }

    /// `None` if nothing changed.
    fn soften_all(&mut self, parts: &[Ty]) -> Option<Vec<Ty>> {
        let roots: Vec<Ty> = parts.iter().map(|part| self.store.find(*part)).collect();
        let soft: Vec<Ty> = roots.iter().map(|part| self.soften(*part)).collect();
        (soft != roots).then_some(soft)
    }

    fn is_soft(&self, size: Size) -> bool {
        matches!(size, Size::Var(v) if matches!(self.store.sizes[v as usize], SizeNode::Soft { .. }))
    }

    fn check(&mut self, path: &Path, size: Size) {
        if let Some(path) = path.steps() {
            self.checks.push(Checked { path, size });
        }
    }

    /// The rules at the head of this file.
    fn sizes(&mut self, actual: Size, expected: Size, path: &Path) -> Result<(), Clash> {
        let (actual, expected) = (self.store.size(actual), self.store.size(expected));
        if actual == expected || expected == Size::Unknown {
            return Ok(());
        }
        let vague = actual == Size::Unknown || self.is_soft(actual);
        if let Size::Var(v) = expected {
            let node = self.store.sizes[v as usize];
            match node {
                SizeNode::Soft { hint, .. } => {
                    if self.store.settled_size(hint) != self.store.settled_size(actual) {
                        self.set_size(v, Size::Unknown);
                    }
                }
                SizeNode::Unbound { born, .. } if born < self.mark => self.set_size(v, Size::Unknown),
                SizeNode::Unbound { .. } if vague => {
                    self.pending.push(expected);
                    self.check(path, expected);
                }
                SizeNode::Unbound { level, born } => {
                    if let Size::Var(w) = actual {
                        if let SizeNode::Unbound { level: other, born: since } = self.store.sizes[w as usize] {
                            let merged = SizeNode::Unbound { level: level.min(other), born: born.max(since) };
                            self.store.sizes[w as usize] = merged;
                        }
                    }
                    self.set_size(v, actual);
                }
                SizeNode::Link(_) => {}
            }
            return Ok(());
        }
        match actual {
            _ if vague => {
                self.check(path, expected);
                Ok(())
            }
            Size::Var(v) => {
                self.set_size(v, expected);
                Ok(())
            }
            Size::Literal(_) | Size::Rigid(_) | Size::Unknown => Err(Clash::Sizes(actual, expected)),
        }
    }

    fn set_size(&mut self, var: u32, to: Size) {
        self.store.sizes[var as usize] = SizeNode::Link(to);
    }
}
