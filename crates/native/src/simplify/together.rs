//! A loop of sums, and a later one that computes the same again, as the value of a function and its derivative do: the sums join the later one.

use crate::flow::walk::Renaming;
use crate::flow::*;
use gradus_core::traverse::with_stack;
use rustc_hash::FxHashSet;

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
    let mut names = Renaming { map: [(sums.index, l.index.into())].into_iter().collect() };
    let (mut same, mut rest) = (0, Vec::new());
    for stmt in &sums.body.stmts {
        let known = body.stmts.iter_mut().find(|known| is_same(&stmt.op, &known.op, &names));
        match (&stmt.op, &stmt.binds[..], known) {
            (Op::Add { acc, index, .. }, [], _) if acc.ty.rank == 0 && index.is_empty() => rest.push(stmt.clone()),
            (Op::Scalar { .. } | Op::Select { .. } | Op::Get { .. } | Op::Dim { .. }, [bind], known)
                if !bind.ty.is_counted() =>
            {
                match known {
                    Some(known) => {
                        names.map.insert(*bind, known.binds[0].into());
                        same += 1;
                    }
                    None => rest.push(stmt.clone()),
                }
            }
            // It would have failed here.
            (Op::Check { .. }, [], Some(known)) => known.span = stmt.span,
            _ => return None,
        }
    }
    let other = rest.iter().filter(|stmt| !stmt.binds.is_empty()).count();
    if same == 0 || other > same {
        return None;
    }
    body.stmts.extend(names.block(&Block { stmts: rest, results: Vec::new() }).stmts);
    Some(body)
}

/// Whether an operation, with its operands named otherwise, is another.
fn is_same(a: &Op, b: &Op, names: &Renaming) -> bool {
    let all = |a: &[Atom], b: &[Atom]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| names.atom(*a) == *b);
    match (a, b) {
        (Op::Scalar { prim: p, args: a }, Op::Scalar { prim: q, args: b }) => p == q && all(a, b),
        (Op::Get { array: x, index: a }, Op::Get { array: y, index: b }) => x == y && all(a, b),
        (Op::Dim { array: x, axis: i }, Op::Dim { array: y, axis: j }) => x == y && i == j,
        (Op::Select { cond: c, then: t, otherwise: o }, Op::Select { cond: d, then: u, otherwise: p }) => {
            all(&[*c, *t, *o], &[*d, *u, *p])
        }
        (Op::Check { cond: c, failure: f }, Op::Check { cond: d, failure: g }) => all(&[*c], &[*d]) && f == g,
        _ => false,
    }
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
