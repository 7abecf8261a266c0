//! A loop of sums, and a later one that computes the same again, as the value of a function and its derivative do: the sums join the later one.

use crate::flow::walk::{for_each_operand, Renaming};
use crate::flow::*;
use gradus_core::traverse::with_stack;
use rustc_hash::{FxHashMap, FxHashSet};

/// How many statements behind a loop are looked at.
const NEAR: usize = 32;
/// Statements of a body, beyond which looking for each of them would take too long.
const LONG: usize = 300;

pub fn run(block: &mut Block) {
    with_stack(|| {
        super::each_inside(block, run);
        let mut at = 0;
        while at < block.stmts.len() {
            let last = (at + NEAR).min(block.stmts.len());
            // After a loop has gone, another statement is in its place.
            if !(at + 1..last).any(|later| join(block, at, later)) {
                at += 1;
            }
        }
    })
}

/// Moves the sums of the loop at `first` into the loop at `later`, if it computes most of what they need.
fn join(block: &mut Block, first: usize, later: usize) -> bool {
    let (Op::For(sums), Op::For(l)) = (&block.stmts[first].op, &block.stmts[later].op) else { return false };
    if sums.count != l.count || !block.stmts[first].binds.is_empty() || !l.carried.is_empty() {
        return false;
    }
    let Some(body) = joined(sums, l) else { return false };
    let Some(dependent) = dependent(sums, &block.stmts[first + 1..later], &block.stmts[later]) else { return false };
    let Stmt { op: Op::For(l), .. } = &mut block.stmts[later] else { return false };
    l.body = body;
    // Behind the loop goes what waits for the sums.
    let moved: Vec<Stmt> = dependent.iter().rev().map(|at| block.stmts.remove(first + 1 + at)).collect();
    let behind = later + 1 - moved.len();
    for stmt in moved {
        block.stmts.insert(behind, stmt);
    }
    block.stmts.remove(first);
    true
}

/// The body of a loop with the sums of another, if it computes at least half of what they are computed from.
fn joined(sums: &For, l: &For) -> Option<Block> {
    if sums.body.stmts.len() > LONG || l.body.stmts.len() > 4 * LONG {
        return None;
    }
    let mut body = l.body.clone();
    let mut names = Names::of(sums, l);
    let (mut same, mut rest) = (0, Vec::new());
    for stmt in &sums.body.stmts {
        if let (Op::Add { acc, index, .. }, []) = (&stmt.op, &stmt.binds[..]) {
            if acc.ty.rank > 0 || !index.is_empty() {
                return None;
            }
            rest.push(stmt.clone());
            continue;
        }
        // Which one it is will be known by the loop that adds to it.
        if matches!(stmt.op, Op::Open { .. }) && names.opened.contains_key(&stmt.binds[0]) {
            continue;
        }
        let known = body.stmts.iter_mut().find(|known| names.is_same(stmt, known));
        match (&stmt.op, &stmt.binds[..], known) {
            (Op::Scalar { .. } | Op::Select { .. } | Op::Get { .. } | Op::Dim { .. }, [bind], known)
                if !bind.ty.is_counted() =>
            {
                match known {
                    Some(_) => same += 1,
                    None => rest.push(stmt.clone()),
                }
            }
            (Op::Freeze { .. }, _, Some(_)) => {}
            // It would have failed here.
            (Op::Check { .. }, [], Some(known)) => known.span = stmt.span,
            (Op::For(inner), [], Some(known)) => {
                same += inner.body.stmts.len();
                *known = Stmt { binds: Vec::new(), op: names.of.op(&stmt.op), span: stmt.span };
            }
            _ => return None,
        }
    }
    let other = rest.iter().filter(|stmt| !stmt.binds.is_empty()).count();
    if same == 0 || other > same {
        return None;
    }
    body.stmts.extend(names.of.block(&Block { stmts: rest, results: Vec::new() }).stmts);
    Some(body)
}

/// What the variables of one loop are called in another that computes the same.
struct Names {
    of: Renaming,
    /// The sums that each of the two opens in its body, for one loop to add to, with where they start.
    opened: FxHashMap<Var, Atom>,
    known: FxHashMap<Var, Atom>,
}

impl Names {
    fn of(sums: &For, l: &For) -> Names {
        let of = Renaming { map: [(sums.index, l.index.into())].into_iter().collect() };
        Names { of, opened: sums_of_one_loop(&sums.body), known: sums_of_one_loop(&l.body) }
    }

    fn is(&self, a: Atom, b: Atom) -> bool {
        self.of.atom(a) == b
    }

    fn are(&self, a: &[Atom], b: &[Atom]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.is(*a, *b))
    }

    /// Whether a statement does what another does; then what it binds has the name that it has there.
    fn is_same(&mut self, a: &Stmt, b: &Stmt) -> bool {
        if a.binds.len() != b.binds.len() || std::mem::discriminant(&a.op) != std::mem::discriminant(&b.op) {
            return false;
        }
        let before = matches!(a.op, Op::For(_)).then(|| self.of.map.clone());
        let same = self.is_same_op(&a.op, &b.op);
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
            (Op::Get { array: x, index: a }, Op::Get { array: y, index: b }) => x == y && self.are(a, b),
            (Op::Dim { array: x, axis: i }, Op::Dim { array: y, axis: j }) => x == y && i == j,
            (Op::Select { cond: c, then: t, otherwise: o }, Op::Select { cond: d, then: u, otherwise: p }) => {
                self.are(&[*c, *t, *o], &[*d, *u, *p])
            }
            (Op::Check { cond: c, failure: f }, Op::Check { cond: d, failure: g }) => self.is(*c, *d) && f == g,
            (Op::Open { init: a }, Op::Open { init: b }) => self.is(*a, *b),
            (Op::Freeze { acc: x }, Op::Freeze { acc: y }) => self.is((*x).into(), (*y).into()),
            (Op::Add { acc: x, index: a, value: v }, Op::Add { acc: y, index: b, value: w }) => {
                self.is_same_sum(*x, *y) && self.are(a, b) && self.is(*v, *w)
            }
            (Op::For(a), Op::For(b)) if a.carried.is_empty() && b.carried.is_empty() => {
                self.of.map.insert(a.index, b.index.into());
                let (stmts, others) = (&a.body.stmts, &b.body.stmts);
                self.is(a.count, b.count)
                    && stmts.len() == others.len()
                    && with_stack(|| stmts.iter().zip(others).all(|(a, b)| self.is_same(a, b)))
                    && self.are(&a.body.results, &b.body.results)
            }
            _ => false,
        }
    }

    /// Whether a sum is another one, or may be taken to be: it starts there, and nothing else has been taken to be that.
    fn is_same_sum(&mut self, x: Var, y: Var) -> bool {
        if let Some(name) = self.of.map.get(&x) {
            return *name == y.into();
        }
        let starts = match (self.opened.get(&x), self.known.get(&y)) {
            (Some(start), Some(known)) => self.is(*start, *known),
            _ => false,
        };
        if starts && !self.of.map.values().any(|name| *name == y.into()) {
            self.of.map.insert(x, y.into());
            return true;
        }
        false
    }
}

/// The sums that a block opens and that one statement adds to before they are taken, with where they start.
fn sums_of_one_loop(block: &Block) -> FxHashMap<Var, Atom> {
    let opened = block.stmts.iter().filter_map(|stmt| match stmt.op {
        Op::Open { init } if stmt.binds[0].ty.rank == 0 => Some((stmt.binds[0], init)),
        _ => None,
    });
    let mut uses = count_uses_of_accumulators(block);
    opened.filter(|(acc, _)| uses.remove(acc) == Some(2)).collect()
}

/// How many statements of a block use each accumulator.
fn count_uses_of_accumulators(block: &Block) -> FxHashMap<Var, usize> {
    let mut uses: FxHashMap<Var, usize> = FxHashMap::default();
    for stmt in &block.stmts {
        let mut here: FxHashSet<Var> = FxHashSet::default();
        let mut note = |a: Atom| here.extend(a.var().filter(|v| v.ty.accumulator));
        stmt.op.for_each_operand(&mut note);
        stmt.op.blocks().iter().for_each(|(inner, _)| for_each_operand(inner, &mut note));
        here.into_iter().for_each(|acc| *uses.entry(acc).or_default() += 1);
    }
    uses
}

/// Those of the statements between two loops that wait for the sums of the first; `None` if the second is among them, or one that must stay.
fn dependent(sums: &For, between: &[Stmt], later: &Stmt) -> Option<Vec<usize>> {
    let mut waited: FxHashSet<Var> = FxHashSet::default();
    for stmt in &sums.body.stmts {
        if let Op::Add { acc, .. } = &stmt.op {
            waited.insert(*acc);
        }
    }
    let mut found = Vec::new();
    for (at, stmt) in between.iter().enumerate() {
        if waited.iter().any(|v| stmt.mentions(*v)) {
            if !matches!(stmt.op, Op::Freeze { .. } | Op::Scalar { .. } | Op::Select { .. } | Op::Copy { .. }) {
                return None;
            }
            waited.extend(&stmt.binds);
            found.push(at);
        }
    }
    waited.iter().all(|v| !later.mentions(*v)).then_some(found)
}
