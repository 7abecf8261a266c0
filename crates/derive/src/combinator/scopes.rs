//! What lowering keeps while it writes: values as far as they are known, and the bindings of each body with what has been computed in it.

use super::types::{self, is_trivial, item_of};
use crate::Linker;
use gradus_core::build::At;
use gradus_core::traverse::free_vars;
use gradus_core::{Term, TermKind, Type, Var};
use gradus_source::{bug, Span};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// A value that is known as far as this: a variable or constant, a product, a zero.
#[derive(Clone)]
pub struct Value {
    /// Equal values mostly have equal numbers; different ones never have.
    pub id: u32,
    pub kind: Rc<Kind>,
    pub ty: Type,
}

pub enum Kind {
    Atom(Term),
    Tuple(Vec<Value>),
    /// The zero of a type of cotangents, or the only value of a trivial type.
    Zero,
}

#[derive(PartialEq, Eq, Hash)]
enum Key {
    Var(u32),
    Tuple(Vec<u32>),
    Zero(Type),
}

#[derive(PartialEq, Eq, Hash)]
pub enum Done {
    /// A combinator, by address, applied to a value
    Apply(usize, u32),
    Project(u32, usize),
}

/// The bindings of one body.
pub struct Scope {
    lets: Vec<(Var, Type, Term)>,
    pub done: FxHashMap<Done, Value>,
    /// Whether cotangents are computed here.
    pub linear: bool,
}

pub struct Lowerer<'a> {
    pub linker: &'a Linker,
    pub span: Span,
    scopes: Vec<Scope>,
    numbers: FxHashMap<Key, u32>,
    next: u32,
}

impl<'a> Lowerer<'a> {
    pub fn new(linker: &'a Linker) -> Self {
        let root = Scope { lets: Vec::new(), done: FxHashMap::default(), linear: false };
        Lowerer { linker, span: Span::default(), scopes: vec![root], numbers: FxHashMap::default(), next: 0 }
    }

    pub fn at(&self) -> At {
        At(self.span)
    }

    fn number(&mut self, key: Key) -> u32 {
        let next = self.next;
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.next += 1;
        }
        number
    }

    pub fn zero(&mut self, ty: &Type) -> Value {
        Value { id: self.number(Key::Zero(ty.clone())), kind: Rc::new(Kind::Zero), ty: ty.clone() }
    }

    pub fn variable(&mut self, var: &Var, ty: &Type) -> Value {
        if is_trivial(ty) {
            return self.zero(ty);
        }
        let atom = Kind::Atom(self.at().var(var));
        Value { id: self.number(Key::Var(var.id)), kind: Rc::new(atom), ty: ty.clone() }
    }

    /// A closed term that may be written more than once.
    pub fn constant(&mut self, term: Term, ty: &Type) -> Value {
        let id = self.next;
        self.next += 1;
        Value { id, kind: Rc::new(Kind::Atom(term)), ty: ty.clone() }
    }

    /// A product; none is unit, one is itself.
    pub fn tuple(&mut self, mut parts: Vec<Value>) -> Value {
        if parts.len() == 1 {
            return parts.remove(0);
        }
        let ty = super::language::product(parts.iter().map(|v| v.ty.clone()).collect());
        if parts.iter().all(|v| matches!(*v.kind, Kind::Zero)) {
            return self.zero(&ty);
        }
        let id = self.number(Key::Tuple(parts.iter().map(|v| v.id).collect()));
        Value { id, kind: Rc::new(Kind::Tuple(parts)), ty }
    }

    pub fn scope(&mut self) -> &mut Scope {
        match self.scopes.last_mut() {
            Some(scope) => scope,
            None => bug!("no scope"),
        }
    }

    pub fn known(&self, key: &Done) -> Option<Value> {
        self.scopes.iter().rev().find_map(|scope| scope.done.get(key).cloned())
    }

    pub fn bind(&mut self, name: &str, ty: &Type, term: Term) -> Value {
        if crate::write::is_atom(&term) {
            return match &*term.kind {
                TermKind::Var(var, _) => self.variable(var, ty),
                _ => self.constant(term, ty),
            };
        }
        let var = Var::fresh(name);
        self.scope().lets.push((var.clone(), ty.clone(), term));
        self.variable(&var, ty)
    }

    pub fn term(&self, value: &Value) -> Term {
        match &*value.kind {
            Kind::Atom(term) => term.clone(),
            Kind::Tuple(parts) => self.at().tuple(parts.iter().map(|v| self.term(v)).collect::<Vec<_>>()),
            Kind::Zero => types::zero(self.at(), &value.ty),
        }
    }

    /// As a term that may be written more than once.
    pub fn atom(&mut self, value: &Value) -> Term {
        match &*value.kind {
            Kind::Atom(term) => term.clone(),
            Kind::Zero if matches!(value.ty, Type::Unit | Type::Real) => self.term(value),
            Kind::Tuple(_) | Kind::Zero => {
                let var = Var::fresh("v");
                let term = self.term(value);
                self.scope().lets.push((var.clone(), value.ty.clone(), term));
                self.at().var(&var)
            }
        }
    }

    /// A body of its own: what `write` computes in it, after its bindings.
    pub fn body(&mut self, linear: bool, write: impl FnOnce(&mut Self) -> Value) -> Term {
        let linear = linear || self.scope().linear;
        self.scopes.push(Scope { lets: Vec::new(), done: FxHashMap::default(), linear });
        let result = write(self);
        let result = self.term(&result);
        self.close(result)
    }

    /// The bindings of the innermost scope before a result, as far as they are needed.
    pub fn close(&mut self, result: Term) -> Term {
        let Some(scope) = self.scopes.pop() else { bug!("no scope") };
        let mut needed: FxHashSet<Var> = free_vars(&result).into_iter().collect();
        let at = self.at();
        scope.lets.into_iter().rev().fold(result, |body, (var, ty, term)| {
            let cannot_fail = matches!(
                &*term.kind,
                TermKind::Proj { .. } | TermKind::Lambda(_) | TermKind::Tuple(_) | TermKind::Construct { .. }
            );
            if !needed.contains(&var) && (scope.linear || cannot_fail) {
                return body;
            }
            needed.extend(free_vars(&term));
            at.bind(&var, ty, term, body)
        })
    }

    pub fn component(&mut self, value: &Value, index: usize, ty: &Type) -> Value {
        match &*value.kind {
            Kind::Tuple(parts) => match parts.get(index) {
                Some(part) => part.clone(),
                None => bug!("no component {index}"),
            },
            Kind::Zero => self.zero(ty),
            Kind::Atom(_) if is_trivial(ty) => self.zero(ty),
            Kind::Atom(term) => {
                let key = Done::Project(value.id, index);
                if let Some(known) = self.known(&key) {
                    return known;
                }
                let term = self.at().proj(term.clone(), index);
                let part = self.bind("p", ty, term);
                self.scope().done.insert(key, part.clone());
                part
            }
        }
    }

    pub fn part(&mut self, value: &Value, index: usize) -> Value {
        match &value.ty.clone() {
            Type::Tuple(parts) if index < parts.len() => self.component(value, index, &parts[index]),
            other => bug!("no component {index} in {other:?}"),
        }
    }

    /// The components of a product of `count`.
    pub fn parts(&mut self, value: &Value, count: usize) -> Vec<Value> {
        match count {
            0 => vec![],
            1 => vec![value.clone()],
            _ => (0..count).map(|i| self.part(value, i)).collect(),
        }
    }

    pub fn is_zero(&self, value: &Value) -> bool {
        matches!(*value.kind, Kind::Zero)
    }

    /// The sum of two cotangents (C section 6.2), where it is no zero that is added.
    pub fn plus(&mut self, a: &Value, b: &Value) -> Value {
        if self.is_zero(a) {
            return b.clone();
        }
        if self.is_zero(b) {
            return a.clone();
        }
        let at = self.at();
        match &a.ty.clone() {
            ty @ Type::Real => {
                let sum = crate::write::add(at, self.term(a), self.term(b));
                self.bind("sum", ty, sum)
            }
            Type::Tuple(types) => {
                let mut parts = Vec::new();
                for (i, ty) in types.iter().enumerate() {
                    let (a, b) = (self.component(a, i, ty), self.component(b, i, ty));
                    parts.push(self.plus(&a, &b));
                }
                self.tuple(parts)
            }
            ty @ Type::Named(..) if !types::is_bag(ty) => {
                let sum = types::plus(at, ty, self.term(a), self.term(b));
                self.bind("sum", ty, sum)
            }
            ty @ Type::Named(..) => {
                let both = types::both(at, &item_of(ty), self.term(a), self.term(b));
                self.bind("sum", ty, both)
            }
            ty
            @ (Type::Unit | Type::Int | Type::Bool | Type::String | Type::Var(_) | Type::Fun(_) | Type::Array(_)) => {
                bug!("a sum at {ty:?}")
            }
        }
    }
}
