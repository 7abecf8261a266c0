//! What terms become while they are lowered: numbers, arrays and boxes are flow operands, everything else is known at compile time.

use crate::flow::{Atom, Var};
use gradus_core::{DeriveOp, Global, Lambda, Term, Type};
use std::rc::Rc;
use std::sync::Arc;

/// A value whose structure is known.
#[derive(Clone)]
pub enum Value {
    /// A number.
    Leaf(Atom),
    Unit,
    /// A tuple or a record.
    Tuple(Rc<[Value]>),
    /// The tag and, for each constructor, its fields; `None` where they are never looked at.
    Variant {
        tag: Atom,
        fields: Rc<[Option<Vec<Value>>]>,
    },
    /// An array: its elements' structure, with an array at each leaf.
    Array(Rc<Part>),
    Function(Rc<Function>),
    /// The characters of a string, as integers.
    Text(Atom),
    /// A value of a recursive type, on the heap; its constructor and fields if it was made here.
    Boxed {
        cell: Atom,
        ty: Type,
        known: Option<(usize, Rc<[Value]>)>,
    },
    /// A function that is only known when the program runs, on the heap.
    Closure {
        cell: Atom,
        ty: Type,
    },
}

/// The structure of an array's elements.
#[derive(Clone)]
pub enum Part {
    Leaf(View),
    Unit,
    Tuple(Vec<Part>),
    Variant {
        tag: View,
        fields: Vec<Vec<Part>>,
    },
    Array(Box<Part>),
    /// A value of a recursive type, or a function.
    Boxed {
        view: View,
        ty: Type,
    },
    /// Elements that may differ in shape, each in a cell of its own.
    Wrapped {
        view: View,
        ty: Type,
    },
    /// Elements without content: an array that only has a length.
    Counted(View),
}

/// An array, or a part of one, without copying: the array at the first few indices.
#[derive(Clone)]
pub struct View {
    pub array: Var,
    pub index: Vec<Atom>,
}

/// A function that is known; its captured values are in its environment.
pub enum Function {
    Lambda {
        lambda: Arc<Lambda>,
        env: Env,
    },
    /// A recursive function with the arguments that it has got so far.
    Recursive {
        recursive: Recursive,
        args: Vec<Value>,
    },
    /// The linear map of `pullback` or `linearize`: the form `op` still wants its last argument.
    Derivative {
        op: DeriveOp,
        types: Arc<[Type]>,
        args: Vec<Value>,
    },
}

/// What a recursive function is: a definition, or a member of a local group.
#[derive(Clone)]
pub enum Recursive {
    Global { global: Global, term: Term, ty: Type },
    Local { group: Rc<Group>, member: usize },
}

/// The functions of one `let rec`, and what they see.
pub struct Group {
    pub members: Vec<(gradus_core::Var, Type, Term)>,
    pub outer: Env,
}

/// Bindings, innermost first.
#[derive(Clone, Default)]
pub struct Env(Option<Rc<Scope>>);

struct Scope {
    bound: Bound,
    outer: Env,
}

enum Bound {
    One(gradus_core::Var, Type, Value),
    Group(Rc<Group>),
}

impl Env {
    pub fn with(&self, var: &gradus_core::Var, ty: &Type, value: Value) -> Env {
        Env(Some(Rc::new(Scope { bound: Bound::One(var.clone(), ty.clone(), value), outer: self.clone() })))
    }

    pub fn with_group(group: &Rc<Group>) -> Env {
        Env(Some(Rc::new(Scope { bound: Bound::Group(group.clone()), outer: group.outer.clone() })))
    }

    pub fn get(&self, var: &gradus_core::Var) -> Option<Value> {
        self.lookup(var).map(|(_, value)| value)
    }

    /// The type and value of a variable.
    pub fn lookup(&self, var: &gradus_core::Var) -> Option<(Type, Value)> {
        let mut env = self;
        while let Some(scope) = &env.0 {
            match &scope.bound {
                Bound::One(v, ty, value) if v == var => return Some((ty.clone(), value.clone())),
                Bound::Group(group) => {
                    if let Some(member) = group.members.iter().position(|(v, _, _)| v == var) {
                        let recursive = Recursive::Local { group: group.clone(), member };
                        let function = Function::Recursive { recursive, args: Vec::new() };
                        return Some((group.members[member].1.clone(), Value::Function(Rc::new(function))));
                    }
                }
                Bound::One(..) => {}
            }
            env = &scope.outer;
        }
        None
    }
}

impl Drop for Env {
    /// Long chains of bindings are let go one by one, not by recursion.
    fn drop(&mut self) {
        let mut next = self.0.take();
        while let Some(scope) = next {
            next = match Rc::try_unwrap(scope) {
                Ok(mut scope) => scope.outer.0.take(),
                Err(_) => None,
            };
        }
    }
}

impl Value {
    pub fn tuple(items: Vec<Value>) -> Value {
        Value::Tuple(items.into())
    }

    pub fn real(value: f64) -> Value {
        Value::Leaf(Atom::Real(value))
    }
}
