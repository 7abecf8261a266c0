//! Normal forms of terms of the proved language, so that two translations can be compared that spell the same thing in different words.
//!
//! What is done, and nothing else:
//! - bound names go, `let`s go, equal computations are shared: a term becomes a graph of operations;
//! - a function that is known where it is applied is applied; `fst (a, b)` is `a`; a pair of the parts of a pair is that pair; a `case` of a known side is that
//!   branch; a branch under a condition that gives the same on both sides is that value, component by component; an application to a choice of
//!   functions is the choice of the applications;
//! - a product with the literal 1 is the other factor, also where a Delta is scaled by it (exact for floating-point numbers too): the code writes no
//!   coefficient that is the literal 1;
//! - `-a < -b` is `b < a`, and the same for `<=`: so a comparison the other way round keeps its order of evaluation (`translate.rs`);
//! - an array that is built by a computation that leaves the state alone is built by `build`.
//!
//! Why this keeps the meaning: effects of the semantics are failure and two counters (`M` of `proofs/Language.v`), which commute and
//! of which failure is idempotent. A graph keeps, for each block, the set of the operations that it runs and that can fail, so that none
//! is lost or invented. The counters are compared by running (`compare.rs`).

mod failing;
mod inspect;
mod sequence;

use crate::wire::{Ty, Wire};
use gradus_core::traverse::with_stack;
use inspect::element;
use rustc_hash::FxHashMap;
use std::rc::Rc;

pub type Id = u32;

/// A node of a graph; equal nodes have equal numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Node {
    /// A variable that is free in the whole graph.
    Free(usize, Ty),
    /// A variable whose binder is being made.
    Open(usize, Ty),
    /// A bound variable, by the height of its binder: how deep binders nest inside it. So a graph does not depend on where it stands.
    Var(usize, Ty),
    Op(&'static str, Vec<Id>),
    Int(i64),
    Lit(i64, i32),
    Nil(Ty),
    Inl(Ty, Id),
    Inr(Ty, Id),
    Lam(Ty, Block),
    Fix(Ty, Ty, Block),
    Loop(Id, Id, Block),
    Build(Id, Block),
    Map(Block, Id),
    Fold(Block, Id, Id),
    /// Size, what makes an element and the next state, the first state.
    Sequence(Id, Block, Id),
    /// What can fail in the left branch of a choice, or in the right one.
    Left(Id, Id),
    Right(Id, Id),
}

/// What is under a binder: its result and the operations that it runs and that can fail.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    pub result: Id,
    pub partial: Vec<Id>,
}

/// A value as far as it is known.
#[derive(Clone)]
enum Sym<'a> {
    Node(Id),
    Pair(Rc<(Sym<'a>, Sym<'a>)>),
    Side(bool, Ty, Rc<Sym<'a>>),
    Closure(Ty, &'a Wire, Env<'a>),
    /// One of two functions.
    Choice(Id, Rc<(Sym<'a>, Sym<'a>)>),
}

#[derive(Clone, Default)]
struct Env<'a>(Option<Rc<(Sym<'a>, Env<'a>)>>);

impl<'a> Env<'a> {
    fn with(&self, sym: Sym<'a>) -> Env<'a> {
        Env(Some(Rc::new((sym, self.clone()))))
    }

    fn get(&self, mut index: usize) -> Option<Sym<'a>> {
        let mut here = self;
        loop {
            let entry = here.0.as_ref()?;
            if index == 0 {
                return Some(entry.0.clone());
            }
            index -= 1;
            here = &entry.1;
        }
    }
}

/// Nodes of any number of graphs, shared.
pub struct Graphs {
    nodes: Vec<Node>,
    /// How deep binders nest inside each node.
    heights: Vec<usize>,
    types: Vec<Ty>,
    numbers: FxHashMap<Node, Id>,
    opened: usize,
    /// The type of the state of computations.
    state: Ty,
    partial: Vec<Id>,
    work: usize,
}

/// A graph that would be too large, or a term that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

type Result<T> = std::result::Result<T, TooLarge>;

const MAX_WORK: usize = 400_000;

impl Default for Graphs {
    fn default() -> Self {
        let (nodes, heights, types, numbers) = Default::default();
        Graphs { nodes, heights, types, numbers, opened: 0, state: Ty::state(), partial: Vec::new(), work: 0 }
    }
}

impl Graphs {
    /// The graph of a term with one free variable, applied to `extra` more variables.
    pub fn of(&mut self, wire: &Wire, free: &[Ty], extra: &[Ty]) -> Result<Block> {
        self.work = 0;
        self.partial = Vec::new();
        let mut env = Env::default();
        let types: Vec<Ty> = free.iter().chain(extra).cloned().collect();
        let variables: Vec<Id> = types.into_iter().enumerate().map(|(n, ty)| self.node(Node::Free(n, ty))).collect();
        for variable in &variables[..free.len()] {
            env = env.with(Sym::Node(*variable));
        }
        let mut result = self.eval(wire, &env)?;
        for variable in &variables[free.len()..] {
            result = self.apply(result, Sym::Node(*variable))?;
        }
        let result = self.reify(&result)?;
        let partial = std::mem::take(&mut self.partial);
        Ok(Block { result, partial: self.tidy(partial) })
    }

    fn open(&mut self, ty: Ty) -> Id {
        self.opened += 1;
        self.node(Node::Open(self.opened, ty))
    }

    fn node(&mut self, node: Node) -> Id {
        if let Some(id) = self.numbers.get(&node) {
            return *id;
        }
        let id = self.nodes.len() as Id;
        let binders = match &node {
            Node::Lam(..) | Node::Build(..) | Node::Map(..) => 1,
            Node::Fix(..) | Node::Loop(..) | Node::Fold(..) | Node::Sequence(..) => 2,
            _ => 0,
        };
        self.nodes.push(node.clone());
        let mut inside = 0;
        self.for_each_part(id, &mut |part| inside = inside.max(self.heights[part as usize]));
        self.heights.push(inside + binders);
        let ty = self.type_of(id);
        self.types.push(ty);
        self.numbers.insert(node, id);
        id
    }

    fn ty(&self, id: Id) -> Ty {
        self.types[id as usize].clone()
    }

    /// How deep binders nest in a block.
    fn height(&self, result: Id, partial: &[Id]) -> usize {
        partial.iter().chain([&result]).map(|id| self.heights[*id as usize]).max().unwrap_or(0)
    }

    /// A block whose binders, the innermost first, get their names.
    fn close(&mut self, opened: &[Id], result: Id, partial: Vec<Id>) -> Block {
        let (result, partial) = self.moved_inside(result, partial);
        let height = self.height(result, &partial);
        let mut renamed = FxHashMap::default();
        for (number, id) in opened.iter().enumerate() {
            let ty = self.ty(*id);
            renamed.insert(*id, self.node(Node::Var(height + number, ty)));
        }
        let result = self.rename(result, &mut renamed);
        let partial = partial.into_iter().map(|id| self.rename(id, &mut renamed)).collect();
        Block { result, partial: self.tidy(partial) }
    }

    /// What a computation does before it is given the state counts as done when it is run: nobody does anything else with it.
    fn moved_inside(&mut self, result: Id, partial: Vec<Id>) -> (Id, Vec<Id>) {
        let partial = self.tidy(partial);
        let Node::Lam(state, inner) = &self.nodes[result as usize] else { return (result, partial) };
        if *state != self.state || partial.is_empty() {
            return (result, partial);
        }
        let (state, inner) = (state.clone(), inner.clone());
        // The name of a variable is the height of its block, which may grow.
        let named = self.node(Node::Var(self.height(inner.result, &inner.partial), state.clone()));
        let open = self.open(state.clone());
        let mut renamed = FxHashMap::from_iter([(named, open)]);
        let result = self.rename(inner.result, &mut renamed);
        let mut all: Vec<Id> = inner.partial.into_iter().map(|id| self.rename(id, &mut renamed)).collect();
        all.extend(partial);
        let block = self.close(&[open], result, all);
        (self.node(Node::Lam(state, block)), Vec::new())
    }

    fn rename(&mut self, id: Id, renamed: &mut FxHashMap<Id, Id>) -> Id {
        if let Some(new) = renamed.get(&id) {
            return *new;
        }
        let new = with_stack(|| {
            let node = self.nodes[id as usize].clone();
            let mut go = |id: Id| self.rename(id, renamed);
            let mut all = |ids: Vec<Id>| -> Vec<Id> { ids.into_iter().map(&mut go).collect() };
            let sorted = |mut ids: Vec<Id>| {
                ids.sort_unstable();
                ids
            };
            let mut block = |b: Block| {
                let result = all(vec![b.result])[0];
                Block { result, partial: sorted(all(b.partial)) }
            };
            let node = match node {
                Node::Free(..) | Node::Open(..) | Node::Var(..) | Node::Int(_) | Node::Lit(..) | Node::Nil(_) => {
                    return id
                }
                Node::Op(name, args) => {
                    let args = all(args);
                    return self.op(name, args);
                }
                Node::Inl(t, x) => Node::Inl(t, all(vec![x])[0]),
                Node::Inr(t, x) => Node::Inr(t, all(vec![x])[0]),
                Node::Lam(t, b) => Node::Lam(t, block(b)),
                Node::Fix(s, t, b) => Node::Fix(s, t, block(b)),
                Node::Loop(n, z, b) => {
                    let b = block(b);
                    let parts = all(vec![n, z]);
                    Node::Loop(parts[0], parts[1], b)
                }
                Node::Build(n, b) => {
                    let b = block(b);
                    Node::Build(all(vec![n])[0], b)
                }
                Node::Map(b, a) => {
                    let b = block(b);
                    Node::Map(b, all(vec![a])[0])
                }
                Node::Fold(b, z, a) => {
                    let b = block(b);
                    let parts = all(vec![z, a]);
                    Node::Fold(b, parts[0], parts[1])
                }
                Node::Sequence(n, b, s) => {
                    let b = block(b);
                    let parts = all(vec![n, s]);
                    Node::Sequence(parts[0], b, parts[1])
                }
                Node::Left(c, x) => {
                    let parts = all(vec![c, x]);
                    Node::Left(parts[0], parts[1])
                }
                Node::Right(c, x) => {
                    let parts = all(vec![c, x]);
                    Node::Right(parts[0], parts[1])
                }
            };
            self.node(node)
        });
        renamed.insert(id, new);
        new
    }

    fn op(&mut self, name: &'static str, args: Vec<Id>) -> Id {
        match (name, &args[..]) {
            ("fst" | "snd", [pair]) => {
                if let Node::Op("pair", parts) = &self.nodes[*pair as usize] {
                    return parts[usize::from(name == "snd")];
                }
            }
            ("pair", [a, b]) => match (&self.nodes[*a as usize], &self.nodes[*b as usize]) {
                (Node::Op("fst", x), Node::Op("snd", y)) if x == y => return x[0],
                _ => {}
            },
            ("choose", [_, x, y]) if x == y => return *x,
            ("lt" | "le", [x, y]) => {
                if let (Node::Op("neg", a), Node::Op("neg", b)) = (&self.nodes[*x as usize], &self.nodes[*y as usize]) {
                    let swapped = vec![b[0], a[0]];
                    return self.op(name, swapped);
                }
            }
            ("mul", [x, y]) => {
                let is_one = |id: Id| matches!(self.nodes[id as usize], Node::Lit(1, 0));
                if is_one(*x) || is_one(*y) {
                    return if is_one(*x) { *y } else { *x };
                }
            }
            ("node", [label, subtrees]) => {
                if let Some(unscaled) = self.scaled_by_one(*label, *subtrees) {
                    return unscaled;
                }
            }
            ("choose", [c, x, y]) => {
                // A choice of pairs is a pair of choices.
                let is_pair = |id: Id| matches!(&self.nodes[id as usize], Node::Op("pair", _));
                if is_pair(*x) || is_pair(*y) {
                    let (c, x, y) = (*c, *x, *y);
                    let parts = ["fst", "snd"].map(|part| {
                        let (x, y) = (self.op(part, vec![x]), self.op(part, vec![y]));
                        self.op("choose", vec![c, x, y])
                    });
                    return self.op("pair", parts.to_vec());
                }
            }
            ("unnode", [node]) => {
                if let Node::Op("node", parts) = &self.nodes[*node as usize] {
                    let parts = parts.clone();
                    return self.op("pair", parts);
                }
            }
            _ => {}
        }
        self.node(Node::Op(name, args))
    }

    /// u of `Scale 1 u`
    fn scaled_by_one(&self, label: Id, subtrees: Id) -> Option<Id> {
        let node = |id: Id| &self.nodes[id as usize];
        let (Node::Inr(_, side), Node::Op("cons", parts)) = (node(label), node(subtrees)) else { return None };
        let (Node::Inl(_, coefficient), [u, rest]) = (node(*side), &parts[..]) else { return None };
        let is_one = matches!((node(*coefficient), node(*rest)), (Node::Lit(1, 0), Node::Nil(_)));
        (is_one && self.types[*u as usize] == Ty::delta()).then_some(*u)
    }

    /// Runs `work` in a block of its own.
    fn block<R>(&mut self, work: impl FnOnce(&mut Self) -> Result<R>) -> Result<(R, Vec<Id>)> {
        let outside = std::mem::take(&mut self.partial);
        let result = work(self);
        let partial = std::mem::replace(&mut self.partial, outside);
        Ok((result?, self.tidy(partial)))
    }

    /// A block under binders.
    fn under<'a>(&mut self, types: &[Ty], wire: &'a Wire, env: &Env<'a>) -> Result<Block> {
        let opened: Vec<Id> = types.iter().map(|ty| self.open(ty.clone())).collect();
        let inside = opened.iter().rev().fold(env.clone(), |env, v| env.with(Sym::Node(*v)));
        let (result, partial) = self.block(|g| {
            let value = g.eval(wire, &inside)?;
            g.reify(&value)
        })?;
        Ok(self.close(&opened, result, partial))
    }

    fn reify<'a>(&mut self, sym: &Sym<'a>) -> Result<Id> {
        with_stack(|| match sym {
            Sym::Node(id) => Ok(*id),
            Sym::Pair(parts) => {
                let parts = vec![self.reify(&parts.0)?, self.reify(&parts.1)?];
                Ok(self.op("pair", parts))
            }
            Sym::Side(left, ty, content) => {
                let content = self.reify(content)?;
                Ok(self.node(if *left { Node::Inl(ty.clone(), content) } else { Node::Inr(ty.clone(), content) }))
            }
            Sym::Closure(ty, body, env) => {
                let block = self.under(std::slice::from_ref(ty), body, env)?;
                Ok(self.node(Node::Lam(ty.clone(), block)))
            }
            Sym::Choice(c, sides) => {
                let (x, y) = (self.reify(&sides.0)?, self.reify(&sides.1)?);
                Ok(self.op("choose", vec![*c, x, y]))
            }
        })
    }

    fn part<'a>(&mut self, sym: &Sym<'a>, second: bool) -> Result<Sym<'a>> {
        Ok(match sym {
            Sym::Pair(parts) => {
                if second {
                    parts.1.clone()
                } else {
                    parts.0.clone()
                }
            }
            _ => {
                let id = self.reify(sym)?;
                Sym::Node(self.op(if second { "snd" } else { "fst" }, vec![id]))
            }
        })
    }

    fn apply<'a>(&mut self, function: Sym<'a>, argument: Sym<'a>) -> Result<Sym<'a>> {
        with_stack(|| match function {
            Sym::Closure(_, body, env) => self.eval(body, &env.with(argument)),
            Sym::Choice(c, sides) => {
                let (x, left) = self.block(|g| g.apply(sides.0.clone(), argument.clone()))?;
                let (y, right) = self.block(|g| g.apply(sides.1.clone(), argument))?;
                self.merge(c, x, left, y, right)
            }
            Sym::Node(_) | Sym::Pair(_) | Sym::Side(..) => {
                let args = vec![self.reify(&function)?, self.reify(&argument)?];
                let id = self.op("app", args);
                self.partial.push(id);
                Ok(Sym::Node(id))
            }
        })
    }

    fn merge<'a>(&mut self, c: Id, x: Sym<'a>, left: Vec<Id>, y: Sym<'a>, right: Vec<Id>) -> Result<Sym<'a>> {
        // What both sides run is run.
        let both: Vec<Id> = left.iter().copied().filter(|id| right.contains(id)).collect();
        let only = |side: Vec<Id>| side.into_iter().filter(|id| !both.contains(id)).collect::<Vec<_>>();
        let (left, right) = (only(left), only(right));
        self.partial.extend(&both);
        let nodes = left.into_iter().map(|id| Node::Left(c, id)).chain(right.into_iter().map(|id| Node::Right(c, id)));
        for node in nodes {
            let id = self.node(node);
            self.partial.push(id);
        }
        self.join(c, x, y)
    }

    /// A pair of the parts of something is that thing.
    fn settle<'a>(&mut self, sym: Sym<'a>) -> Result<Sym<'a>> {
        fn has_function(sym: &Sym) -> bool {
            match sym {
                Sym::Node(_) => false,
                Sym::Pair(parts) => has_function(&parts.0) || has_function(&parts.1),
                Sym::Side(_, _, content) => has_function(content),
                Sym::Closure(..) | Sym::Choice(..) => true,
            }
        }
        if !matches!(sym, Sym::Pair(_)) || has_function(&sym) {
            return Ok(sym);
        }
        let id = self.reify(&sym)?;
        Ok(if matches!(&self.nodes[id as usize], Node::Op("pair", _)) { sym } else { Sym::Node(id) })
    }

    fn join<'a>(&mut self, c: Id, x: Sym<'a>, y: Sym<'a>) -> Result<Sym<'a>> {
        with_stack(|| {
            let is_function = |s: &Sym<'a>| matches!(s, Sym::Closure(..) | Sym::Choice(..));
            let (x, y) = (self.settle(x)?, self.settle(y)?);
            if matches!(x, Sym::Pair(_)) || matches!(y, Sym::Pair(_)) {
                let (x0, y0) = (self.part(&x, false)?, self.part(&y, false)?);
                let (x1, y1) = (self.part(&x, true)?, self.part(&y, true)?);
                return Ok(Sym::Pair(Rc::new((self.join(c, x0, y0)?, self.join(c, x1, y1)?))));
            }
            if is_function(&x) || is_function(&y) {
                return Ok(Sym::Choice(c, Rc::new((x, y))));
            }
            let (x, y) = (self.reify(&x)?, self.reify(&y)?);
            Ok(Sym::Node(self.op("choose", vec![c, x, y])))
        })
    }

    fn eval<'a>(&mut self, wire: &'a Wire, env: &Env<'a>) -> Result<Sym<'a>> {
        self.work += 1;
        if self.work > MAX_WORK {
            return Err(TooLarge);
        }
        with_stack(|| match wire {
            Wire::Var(i) => env.get(*i).ok_or(TooLarge),
            Wire::Lam(ty, body) => Ok(Sym::Closure(ty.clone(), body, env.clone())),
            Wire::Let(a, b) => {
                let a = self.eval(a, env)?;
                self.eval(b, &env.with(a))
            }
            Wire::Fix(a, b, body) => {
                let block = self.under(&[a.clone(), Ty::fun(a.clone(), b.clone())], body, env)?;
                Ok(Sym::Node(self.node(Node::Fix(a.clone(), b.clone(), block))))
            }
            Wire::Case(s, l, r) => {
                let s = self.eval(s, env)?;
                if let Sym::Side(left, _, content) = &s {
                    return self.eval(if *left { l } else { r }, &env.with((**content).clone()));
                }
                let c = self.reify(&s)?;
                let (outl, outr) = (self.content("outl", c), self.content("outr", c));
                let (x, left) = self.block(|g| g.eval(l, &env.with(Sym::Node(outl))))?;
                let (y, right) = self.block(|g| g.eval(r, &env.with(Sym::Node(outr))))?;
                self.merge(c, x, left, y, right)
            }
            Wire::Int(z) => Ok(Sym::Node(self.node(Node::Int(*z)))),
            Wire::Lit(m, e) => Ok(Sym::Node(self.node(Node::Lit(*m, *e)))),
            Wire::Nil(ty) => Ok(Sym::Node(self.node(Node::Nil(ty.clone())))),
            Wire::Inl(ty, e) => Ok(Sym::Side(true, ty.clone(), Rc::new(self.eval(e, env)?))),
            Wire::Inr(ty, e) => Ok(Sym::Side(false, ty.clone(), Rc::new(self.eval(e, env)?))),
            Wire::Loop(n, z, b) => {
                let n = self.value(n, env)?;
                let z = self.value(z, env)?;
                let block = self.under(&[self.ty(z), Ty::Int], b, env)?;
                self.iteration(|block| Node::Loop(n, z, block), block)
            }
            Wire::Build(n, b) => {
                let n = self.value(n, env)?;
                let block = self.under(&[Ty::Int], b, env)?;
                self.iteration(|block| Node::Build(n, block), block)
            }
            Wire::Map(b, a) => {
                let a = self.value(a, env)?;
                let block = self.under(&[element(&self.ty(a))], b, env)?;
                self.iteration(|block| Node::Map(block, a), block)
            }
            Wire::Fold(b, z, a) => {
                let start = self.eval(z, env)?;
                let a = self.value(a, env)?;
                if let Some(done) = self.sequence(b, &start, a, env)? {
                    return Ok(done);
                }
                let z = self.reify(&start)?;
                let block = self.under(&[element(&self.ty(a)), self.ty(z)], b, env)?;
                self.iteration(|block| Node::Fold(block, z, a), block)
            }
            Wire::Op(name, args) => {
                let mut syms = Vec::with_capacity(args.len());
                for arg in args {
                    syms.push(self.eval(arg, env)?);
                }
                self.operation(name, syms)
            }
        })
    }

    /// What is inside a side that was found; there is only one unit.
    fn content(&mut self, side: &'static str, of: Id) -> Id {
        let unit = match self.ty(of) {
            Ty::Sum(sides) => *(if side == "outl" { &sides.0 } else { &sides.1 }) == Ty::Unit,
            _ => false,
        };
        match unit {
            true => self.op("unit", vec![]),
            false => self.op(side, vec![of]),
        }
    }

    fn value<'a>(&mut self, wire: &'a Wire, env: &Env<'a>) -> Result<Id> {
        let sym = self.eval(wire, env)?;
        self.reify(&sym)
    }

    fn iteration<'a>(&mut self, node: impl FnOnce(Block) -> Node, block: Block) -> Result<Sym<'a>> {
        let can_fail = !block.partial.is_empty();
        let id = self.node(node(block));
        if can_fail {
            self.partial.push(id);
        }
        Ok(Sym::Node(id))
    }

    fn operation<'a>(&mut self, name: &'static str, syms: Vec<Sym<'a>>) -> Result<Sym<'a>> {
        match (name, &syms[..]) {
            ("pair", [a, b]) => return Ok(Sym::Pair(Rc::new((a.clone(), b.clone())))),
            ("fst", [pair]) => return self.part(pair, false),
            ("snd", [pair]) => return self.part(pair, true),
            ("app", [f, x]) => return self.apply(f.clone(), x.clone()),
            _ => {}
        }
        let mut args = Vec::with_capacity(syms.len());
        for sym in &syms {
            args.push(self.reify(sym)?);
        }
        let id = self.op(name, args);
        if matches!(name, "get" | "set" | "idiv" | "imod" | "ipow" | "zip" | "gather" | "dot") {
            self.partial.push(id);
        }
        Ok(Sym::Node(id))
    }
}
