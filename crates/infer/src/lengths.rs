//! Types with the lengths of their arrays, for whoever brings values from outside the program: core types leave lengths out.

use crate::declared::{Declared, DeclaredBody};
use crate::module::Inferred;
use crate::scheme::Closed;
use crate::store::{Node, Size, Ty};
use gradus_core::Symbol;

/// As much of a type as says something about lengths.
#[derive(Clone, Debug, PartialEq)]
pub enum Sized {
    /// Nothing inside has a length that the type could know.
    Plain,
    /// The parameter of a declared type with this number.
    Param(usize),
    Array(Box<Sized>, Length),
    Tuple(Vec<Sized>),
    /// A declared type at arguments; see [`Inferred::sized_constructors`].
    Named(Symbol, Vec<Sized>),
    Fun(Box<Sized>, Box<Sized>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    Any,
    Exactly(u64),
    /// All lengths of this number within one type are the same.
    Same(u32),
}

impl Sized {
    /// The parameters of a curried function.
    pub fn params(&self) -> Vec<&Sized> {
        let mut params = Vec::new();
        let mut rest = self;
        while let Sized::Fun(from, to) = rest {
            params.push(&**from);
            rest = to;
        }
        params
    }

    fn of_closed(closed: &Closed, ty: Ty, declared: &Declared) -> Sized {
        let all = |parts: &[Ty]| parts.iter().map(|t| Sized::of_closed(closed, *t, declared)).collect();
        match closed.node(ty) {
            Node::Real | Node::Int | Node::Bool | Node::String | Node::Unit | Node::Unbound(_) | Node::Error => {
                Sized::Plain
            }
            Node::Fun(from, to) => {
                let [from, to] = [from, to].map(|t| Box::new(Sized::of_closed(closed, t, declared)));
                Sized::Fun(from, to)
            }
            Node::Link(to) => Sized::of_closed(closed, to, declared),
            Node::Quantified(i) => Sized::Param(i as usize),
            Node::Tuple(parts) => Sized::Tuple(all(&parts)),
            Node::Named(id, args) => Sized::Named(declared.get(id).name.clone(), all(&args)),
            Node::Array(element, size) => {
                let length = match size {
                    Size::Literal(n) => Length::Exactly(n),
                    Size::Rigid(i) => Length::Same(i),
                    Size::Unknown | Size::Var(_) => Length::Any,
                };
                Sized::Array(Box::new(Sized::of_closed(closed, element, declared)), length)
            }
        }
    }
}

impl Inferred {
    /// The type of a definition, by its name in `Program::defs`.
    pub fn sized(&self, definition: &str) -> Option<Sized> {
        let global = self.tables.globals.iter().find(|global| &*global.name == definition)?;
        let closed = global.scheme.as_ref()?;
        Some(Sized::of_closed(closed, closed.root(), &self.tables.declared))
    }

    /// The arguments of each constructor of a declared type; of a record, its fields as those of one constructor.
    pub fn sized_constructors(&self, name: &str) -> Vec<(Symbol, Vec<Sized>)> {
        let declared = &self.tables.declared;
        let arguments = |closed: &Closed| closed.roots.iter().map(|t| Sized::of_closed(closed, *t, declared)).collect();
        match declared.find(name).map(|id| declared.get(id)) {
            Some(found) => match &found.body {
                DeclaredBody::Record(_, fields) => vec![(found.name.clone(), arguments(fields))],
                DeclaredBody::Variant(constructors) => {
                    constructors.iter().map(|c| (c.name.clone(), arguments(&c.args))).collect()
                }
            },
            None => Vec::new(),
        }
    }
}
