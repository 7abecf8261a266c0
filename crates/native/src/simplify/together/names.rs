//! Whether two loops compute the same, and what the variables of one are called in the other.

use crate::flow::walk::{self, Renaming};
use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_source::Span;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// What a sum starts from, and in how many loops.
pub(super) type Start = (Atom, usize);

/// What the variables of one loop are called in another that computes the same.
#[derive(Clone, Default)]
pub(super) struct Names {
    pub(super) of: Renaming,
    /// The sums that each of the two opens, as far as they are looked at.
    pub(super) opened: FxHashMap<Var, Start>,
    pub(super) known: FxHashMap<Var, Start>,
    /// In how many loops of each.
    pub(super) depth: usize,
    /// Those of the first that are new to the second.
    pub(super) started: FxHashSet<Var>,
    /// How many statements that can fail the two have in common.
    pub(super) failures: usize,
    /// For lengths, the numbers of which they are the greater of these and zero.
    pub(super) counts: Rc<FxHashMap<Var, Atom>>,
}

impl Names {
    /// The sums that a block opens and to which there is one addition before they are taken.
    pub(super) fn sums_of_one_addition(&self, block: &Block) -> FxHashMap<Var, Start> {
        let opened = block.stmts.iter().filter_map(|stmt| match stmt.op {
            Op::Open { init } if stmt.binds[0].ty.rank == 0 => Some((stmt.binds[0], (init, self.depth))),
            _ => None,
        });
        let mut opened: FxHashMap<Var, Start> = opened.collect();
        if !opened.is_empty() {
            // The addition, and the end.
            let uses = walk::count_uses(block);
            opened.retain(|acc, _| uses.get(acc) == Some(&2));
        }
        opened
    }

    pub(super) fn is(&self, a: Atom, b: Atom) -> bool {
        self.of.atom(a) == b
    }

    /// Whether loops take as many steps: one of which nothing else is known may say that it takes none by a negative number.
    pub(super) fn is_count(&self, a: Atom, b: Atom) -> bool {
        let count = |atom: Atom| atom.var().and_then(|v| self.counts.get(&v).copied()).unwrap_or(atom);
        self.is(a, b) || count(self.of.atom(a)) == count(b)
    }

    pub(super) fn are(&self, a: &[Atom], b: &[Atom]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.is(*a, *b))
    }

    /// Whether a statement does what another does; then what it binds has the name that it has there.
    pub(super) fn is_same(&mut self, a: &Stmt, b: &Stmt) -> bool {
        // A loop that ends with the same state may collect more on its way.
        let only_ends = match &a.op {
            Op::For(l) => l.body.results.len() == l.carried.len(),
            Op::While(l) => l.body.results.len() == 1 + l.carried.len(),
            _ => false,
        };
        let collects_more = a.binds.len() < b.binds.len() && only_ends;
        let as_many = a.binds.len() == b.binds.len() || collects_more;
        if !as_many || std::mem::discriminant(&a.op) != std::mem::discriminant(&b.op) {
            return false;
        }
        // Names are only learnt from what begins alike.
        let begins_alike = match (&a.op, &b.op) {
            (Op::For(a), Op::For(b)) => Some(self.is_count(a.count, b.count)),
            (Op::While(a), Op::While(b)) => {
                Some(a.carried.iter().zip(&b.carried).all(|((_, a), (_, b))| self.is(*a, *b)))
            }
            (Op::If { cond: a, .. }, Op::If { cond: b, .. }) => Some(self.is(*a, *b)),
            _ => None,
        };
        if begins_alike == Some(false) {
            return false;
        }
        let before = begins_alike.map(|_| self.of.map.clone());
        let same = self.is_same_op(&a.op, &b.op) && (!collects_more || fail_alike(a, b));
        match (same, before) {
            (true, _) => self.of.map.extend(a.binds.iter().zip(&b.binds).map(|(a, b)| (*a, (*b).into()))),
            (false, Some(before)) => self.of.map = before,
            (false, None) => {}
        }
        same
    }

    fn is_same_op(&mut self, a: &Op, b: &Op) -> bool {
        match (a, b) {
            (Op::Scalar { prim: p, args: a }, Op::Scalar { prim: q, args: b }) => p == q && self.are(a, b),
            (Op::Get { array: x, index: a }, Op::Get { array: y, index: b }) => {
                self.is((*x).into(), (*y).into()) && self.are(a, b)
            }
            (Op::Set { array: x, index: a, value: v }, Op::Set { array: y, index: b, value: w }) => {
                self.is((*x).into(), (*y).into()) && self.are(a, b) && self.is(*v, *w)
            }
            (Op::Dim { array: x, axis: i }, Op::Dim { array: y, axis: j }) => {
                self.is((*x).into(), (*y).into()) && i == j
            }
            (Op::Select { cond: c, then: t, otherwise: o }, Op::Select { cond: d, then: u, otherwise: p }) => {
                self.are(&[*c, *t, *o], &[*d, *u, *p])
            }
            (Op::Check { cond: c, failure: f }, Op::Check { cond: d, failure: g }) => self.is(*c, *d) && f == g,
            (Op::Open { init: a }, Op::Open { init: b }) => self.is(*a, *b),
            (Op::Freeze { acc: x }, Op::Freeze { acc: y }) => self.is((*x).into(), (*y).into()),
            (Op::Add { acc: x, index: a, value: v }, Op::Add { acc: y, index: b, value: w }) => {
                self.are(a, b) && self.is(*v, *w) && self.is_same_sum(*x, *y)
            }
            (Op::Stop { value: a }, Op::Stop { value: b }) => self.is(*a, *b),
            (Op::Literal { items: a, ty }, Op::Literal { items: b, ty: other }) => self.are(a, b) && ty == other,
            (Op::Fill { dims: a, value: x }, Op::Fill { dims: b, value: y }) => self.are(a, b) && self.is(*x, *y),
            (
                Op::If { cond: c, then: t, otherwise: o, .. },
                Op::If { cond: d, then: known_then, otherwise: known_otherwise, .. },
            ) => {
                self.is(*c, *d) && [(t, known_then), (o, known_otherwise)].iter().all(|(a, b)| self.is_same_block(a, b))
            }
            // Besides, it may count.
            (Op::While(a), Op::While(b))
                if a.body.results.len() == 1 + a.carried.len() && a.carried.len() <= b.carried.len() =>
            {
                let states = || a.carried.iter().zip(&b.carried);
                let start_alike = states().all(|((_, a), (_, b))| self.is(*a, *b));
                self.of.map.extend(states().map(|((a, _), (b, _))| (*a, (*b).into())));
                let mut others = b.body.stmts.iter();
                let results = a.body.results.len();
                start_alike
                    && with_stack(|| a.body.stmts.iter().all(|a| others.any(|b| self.is_same(a, b))))
                    && self.are(&a.body.results, &b.body.results[..results])
            }
            (Op::For(a), Op::For(b)) if a.carried.len() == b.carried.len() => {
                let states = || a.carried.iter().zip(&b.carried);
                let start_alike = states().all(|((_, a), (_, b))| self.is(*a, *b));
                self.of.map.insert(a.index, b.index.into());
                self.of.map.extend(states().map(|((a, _), (b, _))| (*a, (*b).into())));
                let (stmts, others) = (&a.body.stmts, &b.body.stmts);
                start_alike
                    && self.is_count(a.count, b.count)
                    && stmts.len() == others.len()
                    && with_stack(|| stmts.iter().zip(others).all(|(a, b)| self.is_same(a, b)))
                    && self.are(&a.body.results, &b.body.results[..a.body.results.len()])
            }
            _ => false,
        }
    }

    fn is_same_block(&mut self, a: &Block, b: &Block) -> bool {
        let all = |s: &mut Self| a.stmts.iter().zip(&b.stmts).all(|(a, b)| s.is_same(a, b));
        a.stmts.len() == b.stmts.len() && with_stack(|| all(self)) && self.are(&a.results, &b.results)
    }

    /// Whether a sum is another one, or may be taken to be: it starts there, and nothing else has been taken to be that.
    fn is_same_sum(&mut self, x: Var, y: Var) -> bool {
        if let Some(name) = self.of.map.get(&x) {
            return *name == y.into();
        }
        let starts = match (self.opened.get(&x), self.known.get(&y)) {
            (Some((start, depth)), Some((known, known_depth))) => depth == known_depth && self.is(*start, *known),
            _ => false,
        };
        if starts && !self.of.map.values().any(|name| *name == y.into()) {
            self.of.map.insert(x, y.into());
            return true;
        }
        false
    }
}

/// Whether what two loops that do the same check is checked for the same places of the program.
fn fail_alike(a: &Stmt, b: &Stmt) -> bool {
    fn checks(stmt: &Stmt, found: &mut Vec<Span>) {
        match stmt.op {
            Op::Check { .. } | Op::Call { .. } | Op::While(_) => found.push(stmt.span),
            _ => {}
        }
        let inside = stmt.op.blocks().flat_map(|inner| &inner.stmts);
        inside.for_each(|stmt| with_stack(|| checks(stmt, found)));
    }
    let [mut of_a, mut of_b] = [Vec::new(), Vec::new()];
    checks(a, &mut of_a);
    checks(b, &mut of_b);
    of_a == of_b
}
