//! What terms become while they are lowered: numbers, arrays and boxes are flow operands, everything else is known at compile time.

use crate::flow::{Atom, Var};
use gradus_core::traverse::with_stack;
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

/// Bindings. Making one more costs little even if there are many, and the old environment stays as it is, since functions keep theirs.
///
/// A tree over the bits of the variables' numbers, in which a branch stands for the highest bit in which those below it differ.
#[derive(Clone, Default)]
pub struct Env(Option<Rc<Node>>);

enum Node {
    Leaf(u32, Bound),
    /// Those without the bit, those with it.
    Branch(u32, Rc<Node>, Rc<Node>),
}

enum Bound {
    One(Type, Value),
    Member(Rc<Group>, usize),
}

impl Env {
    pub fn with(&self, var: &gradus_core::Var, ty: &Type, value: Value) -> Env {
        self.insert(var.id, Bound::One(ty.clone(), value))
    }

    pub fn with_group(group: &Rc<Group>) -> Env {
        let members = group.members.iter().enumerate();
        members.fold(group.outer.clone(), |env, (i, (v, _, _))| env.insert(v.id, Bound::Member(group.clone(), i)))
    }

    pub fn get(&self, var: &gradus_core::Var) -> Option<Value> {
        self.lookup(var).map(|(_, value)| value)
    }

    /// The type and value of a variable.
    pub fn lookup(&self, var: &gradus_core::Var) -> Option<(Type, Value)> {
        match self.0.as_ref()?.nearest(var.id) {
            (id, _) if id != var.id => None,
            (_, Bound::One(ty, value)) => Some((ty.clone(), value.clone())),
            (_, Bound::Member(group, member)) => {
                let recursive = Recursive::Local { group: group.clone(), member: *member };
                let function = Function::Recursive { recursive, args: Vec::new() };
                Some((group.members[*member].1.clone(), Value::Function(Rc::new(function))))
            }
        }
    }

    fn insert(&self, id: u32, bound: Bound) -> Env {
        let leaf = Rc::new(Node::Leaf(id, bound));
        Env(Some(match &self.0 {
            None => leaf,
            Some(root) => root.insert(id, highest_bit(root.nearest(id).0 ^ id), leaf),
        }))
    }
}

/// The highest bit alone, or zero.
fn highest_bit(bits: u32) -> u32 {
    bits.checked_ilog2().map_or(0, |place| 1 << place)
}

impl Node {
    /// The leaf with this number if there is one, and else another one, which agrees with it as far as any does.
    fn nearest(&self, id: u32) -> (u32, &Bound) {
        let mut node = self;
        loop {
            node = match node {
                Node::Leaf(found, bound) => return (*found, bound),
                Node::Branch(bit, without, with) => {
                    if id & bit == 0 {
                        without
                    } else {
                        with
                    }
                }
            }
        }
    }

    /// With one more leaf, whose number differs from the nearest in `differs` and perhaps lower bits; if in none, it takes its place.
    fn insert(self: &Rc<Node>, id: u32, differs: u32, leaf: Rc<Node>) -> Rc<Node> {
        Rc::new(match &**self {
            Node::Branch(bit, without, with) if *bit > differs => {
                if id & bit == 0 {
                    Node::Branch(*bit, without.insert(id, differs, leaf), with.clone())
                } else {
                    Node::Branch(*bit, without.clone(), with.insert(id, differs, leaf))
                }
            }
            _ if differs == 0 => return leaf,
            _ if id & differs == 0 => Node::Branch(differs, leaf, self.clone()),
            _ => Node::Branch(differs, self.clone(), leaf),
        })
    }
}

impl Drop for Env {
    /// Functions may hold the environments of others, in long chains.
    fn drop(&mut self) {
        if let Some(root) = self.0.take() {
            with_stack(|| drop(root));
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
