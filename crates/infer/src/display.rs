//! Types as the user writes them, with sizes: `real[n] -> real[n] -> real`.

use crate::declared::Declared;
use crate::scheme::{letter, Closed};
use crate::store::{Node, Size, Store, Ty};
use gradus_core::traverse::with_stack;
use rustc_hash::FxHashMap;

/// Messages show no more of a type than this.
const MAX_LENGTH: usize = 2_000;

/// Where the nodes of a type are.
trait Source {
    fn node(&self, ty: Ty) -> (Ty, Node);
    fn size(&self, size: Size) -> Option<String>;
    /// What the user calls a variable, if it has a name.
    fn name(&self, quantified: u32) -> Option<String>;
}

impl Source for Store {
    fn node(&self, ty: Ty) -> (Ty, Node) {
        let root = self.root(ty);
        (root, Store::node(self, root).clone())
    }

    fn size(&self, size: Size) -> Option<String> {
        match self.settled_size(size) {
            Size::Literal(n) => Some(n.to_string()),
            Size::Rigid(r) => Some(self.rigid_sizes[r as usize].name.to_string()),
            Size::Unknown | Size::Var(_) => None,
        }
    }

    fn name(&self, quantified: u32) -> Option<String> {
        let name = &self.quantified[quantified as usize].var.name;
        Some(format!("'{}", name.trim_start_matches('\'')))
    }
}

impl Source for Closed {
    fn node(&self, ty: Ty) -> (Ty, Node) {
        (ty, Closed::node(self, ty))
    }

    fn size(&self, size: Size) -> Option<String> {
        match size {
            Size::Literal(n) => Some(n.to_string()),
            Size::Rigid(i) => self.sizes.get(i as usize).map(|name| name.to_string()),
            Size::Unknown | Size::Var(_) => None,
        }
    }

    /// Definitions show `'a`, `'b`, ... in order.
    fn name(&self, _: u32) -> Option<String> {
        None
    }
}

/// Prints several types with the same names for the same variables.
pub struct Printer<'a> {
    source: &'a dyn Source,
    declared: &'a Declared,
    variables: FxHashMap<Key, String>,
    out: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Unbound(Ty),
    Quantified(u32),
}

/// How tightly the surroundings bind.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Place {
    Top,
    Parameter,
    Part,
    Argument,
}

impl<'a> Printer<'a> {
    pub fn of_store(store: &'a Store, declared: &'a Declared) -> Self {
        Printer { source: store, declared, variables: FxHashMap::default(), out: String::new() }
    }

    pub fn of_closed(closed: &'a Closed, declared: &'a Declared) -> Self {
        Printer { source: closed, declared, variables: FxHashMap::default(), out: String::new() }
    }

    pub fn print(&mut self, ty: Ty) -> String {
        self.out.clear();
        self.write(ty, Place::Top);
        if self.out.len() >= MAX_LENGTH {
            self.out.push_str("...");
        }
        std::mem::take(&mut self.out)
    }

    fn name(&mut self, key: Key) -> String {
        if let Some(name) = self.variables.get(&key) {
            return name.clone();
        }
        let own = match key {
            Key::Quantified(q) => self.source.name(q),
            Key::Unbound(_) => None,
        };
        let letters = (0..).map(|i| format!("'{}", letter(i)));
        let taken = |name: &String| self.variables.values().any(|other| other == name);
        let name = own.into_iter().chain(letters).find(|name| !taken(name)).unwrap_or_default();
        self.variables.insert(key, name.clone());
        name
    }

    fn write(&mut self, ty: Ty, place: Place) {
        if self.out.len() < MAX_LENGTH {
            with_stack(|| self.write_node(ty, place))
        }
    }

    fn write_node(&mut self, ty: Ty, place: Place) {
        let (root, node) = self.source.node(ty);
        match node {
            Node::Real => self.out.push_str("real"),
            Node::Int => self.out.push_str("int"),
            Node::Bool => self.out.push_str("bool"),
            Node::String => self.out.push_str("string"),
            Node::Unit => self.out.push_str("unit"),
            Node::Error | Node::Link(_) => self.out.push('_'),
            // A number that is still open: shown as what it would become.
            Node::Unbound(kind) if kind.number => self.out.push_str(if kind.param { "real" } else { "int" }),
            Node::Unbound(_) => {
                let name = self.name(Key::Unbound(root));
                self.out.push_str(&name);
            }
            Node::Quantified(q) => {
                let name = self.name(Key::Quantified(q));
                self.out.push_str(&name);
            }
            Node::Fun(from, to) => self.bracketed(place >= Place::Parameter, |p| {
                p.write(from, Place::Parameter);
                p.out.push_str(" -> ");
                p.write(to, Place::Top);
            }),
            Node::Tuple(parts) => self.bracketed(place >= Place::Part, |p| {
                for (i, part) in parts.iter().enumerate() {
                    if i > 0 {
                        p.out.push_str(" * ");
                    }
                    p.write(*part, Place::Part);
                }
            }),
            Node::Named(id, args) => {
                match &args[..] {
                    [] => {}
                    [one] => {
                        self.write(*one, Place::Argument);
                        self.out.push(' ');
                    }
                    many => {
                        self.out.push('(');
                        for (i, arg) in many.iter().enumerate() {
                            if i > 0 {
                                self.out.push_str(", ");
                            }
                            self.write(*arg, Place::Top);
                        }
                        self.out.push_str(") ");
                    }
                }
                self.out.push_str(&self.declared.get(id).name.clone());
            }
            Node::Array(..) => {
                // `real[n][m]` has n rows: the outermost size comes first.
                let mut sizes = String::new();
                let mut at = ty;
                while let (_, Node::Array(element, size)) = self.source.node(at) {
                    sizes.push_str(&format!("[{}]", self.source.size(size).unwrap_or_default()));
                    at = element;
                }
                self.write(at, Place::Argument);
                self.out.push_str(&sizes);
            }
        }
    }

    fn bracketed(&mut self, brackets: bool, write: impl FnOnce(&mut Self)) {
        if brackets {
            self.out.push('(');
        }
        write(self);
        if brackets {
            self.out.push(')');
        }
    }
}

/// A size in a message: `3`, `n`, or nothing.
pub fn show_size(store: &Store, size: Size) -> String {
    Source::size(store, size).unwrap_or_else(|| "unknown".to_string())
}
