//! What a graph looks like: the types of nodes, their parts, and text.

use super::*;

impl Graphs {
    /// The type of the newest node.
    pub(super) fn type_of(&self, id: Id) -> Ty {
        let ty = |id: &Id| self.types[*id as usize].clone();
        match &self.nodes[id as usize] {
            Node::Free(_, t) | Node::Open(_, t) | Node::Var(_, t) => t.clone(),
            Node::Int(_) => Ty::Int,
            Node::Lit(..) => Ty::Real,
            Node::Nil(t) => Ty::array(t.clone()),
            Node::Inl(other, x) => Ty::sum(ty(x), other.clone()),
            Node::Inr(other, x) => Ty::sum(other.clone(), ty(x)),
            Node::Lam(t, b) => Ty::fun(t.clone(), ty(&b.result)),
            Node::Fix(a, b, _) => Ty::fun(a.clone(), b.clone()),
            Node::Loop(_, z, _) | Node::Fold(_, z, _) => ty(z),
            Node::Build(_, b) | Node::Map(b, _) => Ty::array(ty(&b.result)),
            Node::Sequence(_, b, s) => Ty::prod(Ty::array(first(&ty(&b.result))), ty(s)),
            Node::Left(..) | Node::Right(..) => Ty::Unit,
            Node::Op(name, args) => match (*name, &args[..]) {
                ("unit", _) => Ty::Unit,
                ("pair", [a, b]) => Ty::prod(ty(a), ty(b)),
                ("fst" | "outl", [x]) => first(&ty(x)),
                ("snd" | "outr" | "app", [x, ..]) => second(&ty(x)),
                ("choose", [_, x, _]) | ("set" | "snoc", [x, ..]) | ("cons", [_, x]) => ty(x),
                ("get", [x, _]) => element(&ty(x)),
                ("gather", [x, _]) => ty(x),
                ("zip", [x, y]) => Ty::array(Ty::prod(element(&ty(x)), element(&ty(y)))),
                ("node", [x, _]) => Ty::tree(ty(x)),
                ("unnode", [x]) => match ty(x) {
                    Ty::Tree(label) => Ty::prod((*label).clone(), Ty::array(Ty::Tree(label))),
                    _ => Ty::Unit,
                },
                ("lt" | "le" | "eq" | "ilt" | "ile" | "ieq", _) => Ty::bool(),
                ("len" | "floor" | "round" | "truncate", _) => Ty::Int,
                ("iadd" | "isub" | "imul" | "idiv" | "imod" | "imax" | "imin" | "ipow", _) => Ty::Int,
                _ => Ty::Real,
            },
        }
    }

    pub(super) fn mentions(&self, id: Id, wanted: Id) -> bool {
        let mut seen = rustc_hash::FxHashSet::default();
        let mut pending = vec![id];
        while let Some(id) = pending.pop() {
            if id == wanted {
                return true;
            }
            if seen.insert(id) {
                self.for_each_part(id, &mut |part| pending.push(part));
            }
        }
        false
    }

    pub(super) fn for_each_part(&self, id: Id, f: &mut dyn FnMut(Id)) {
        let block = |b: &Block, f: &mut dyn FnMut(Id)| {
            f(b.result);
            b.partial.iter().for_each(|id| f(*id));
        };
        match &self.nodes[id as usize] {
            Node::Free(..) | Node::Open(..) | Node::Var(..) | Node::Int(_) | Node::Lit(..) | Node::Nil(_) => {}
            Node::Op(_, args) => args.iter().for_each(|id| f(*id)),
            Node::Inl(_, x) | Node::Inr(_, x) => f(*x),
            Node::Lam(_, b) | Node::Fix(_, _, b) => block(b, f),
            Node::Loop(n, z, b) | Node::Sequence(n, b, z) | Node::Fold(b, z, n) => {
                f(*n);
                f(*z);
                block(b, f);
            }
            Node::Build(n, b) | Node::Map(b, n) => {
                f(*n);
                block(b, f);
            }
            Node::Left(c, x) | Node::Right(c, x) => {
                f(*c);
                f(*x);
            }
        }
    }

    /// A block in words, for reports; each shared part is named where it is met first.
    pub fn show(&self, block: &Block) -> String {
        let mut out = String::new();
        let mut known = FxHashMap::default();
        self.show_block(block, &mut known, &mut out);
        out
    }

    pub(super) fn show_block(&self, block: &Block, known: &mut FxHashMap<Id, usize>, out: &mut String) {
        self.show_node(block.result, known, out);
        for id in &block.partial {
            out.push_str(" ; ");
            self.show_node(*id, known, out);
        }
    }

    pub(super) fn show_node(&self, id: Id, known: &mut FxHashMap<Id, usize>, out: &mut String) {
        let node = &self.nodes[id as usize];
        if let Some(number) = known.get(&id) {
            out.push_str(&format!("#{number}"));
            return;
        }
        match node {
            Node::Free(n, _) => out.push_str(&format!("free{n}")),
            Node::Open(n, _) => out.push_str(&format!("open{n}")),
            Node::Var(n, _) => out.push_str(&format!("x{n}")),
            Node::Int(z) => out.push_str(&z.to_string()),
            Node::Lit(m, e) => out.push_str(&format!("{m}p{e}")),
            _ => {
                known.insert(id, known.len());
                let name = match node {
                    Node::Op(name, _) => name,
                    Node::Nil(_) => "nil",
                    Node::Inl(..) => "inl",
                    Node::Inr(..) => "inr",
                    Node::Lam(..) => "lam",
                    Node::Fix(..) => "fix",
                    Node::Loop(..) => "loop",
                    Node::Build(..) => "build",
                    Node::Map(..) => "map",
                    Node::Fold(..) => "fold",
                    Node::Sequence(..) => "sequence",
                    Node::Left(..) => "left",
                    Node::Right(..) => "right",
                    Node::Free(..) | Node::Open(..) | Node::Var(..) | Node::Int(_) | Node::Lit(..) => "",
                };
                out.push_str(&format!("({name}@{}", known.len() - 1));
                let mut parts = Vec::new();
                self.for_each_part(id, &mut |part| parts.push(part));
                for part in parts {
                    out.push(' ');
                    self.show_node(part, known, out);
                }
                out.push(')');
            }
        }
    }
}

pub(super) fn first(ty: &Ty) -> Ty {
    match ty {
        Ty::Prod(p) | Ty::Sum(p) => p.0.clone(),
        _ => Ty::Unit,
    }
}

pub(super) fn second(ty: &Ty) -> Ty {
    match ty {
        Ty::Prod(p) | Ty::Sum(p) | Ty::Fun(p) => p.1.clone(),
        _ => Ty::Unit,
    }
}

pub(super) fn element(ty: &Ty) -> Ty {
    match ty {
        Ty::Array(t) => (**t).clone(),
        _ => Ty::Unit,
    }
}
