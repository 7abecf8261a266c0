//! Branches of a loop that are decided before it: the loop stands on both sides of the branch instead. Without branches it runs in vector lanes, and does not
//! compute what it throws away. Such loops come of steps that differ in kind, such as the layers of a network, taken for many points side by side.

use super::{forward, hoist};
use crate::flow::walk::{for_each_binder, Renaming};
use crate::flow::*;
use gradus_core::traverse::with_stack;
use rustc_hash::FxHashSet;

/// A loop with more statements stays as it is, for it is written twice.
const SIMPLE: usize = 48;
/// So many branches of a loop are taken out.
const BRANCHES: usize = 3;

pub fn run(block: &mut Block) {
    with_stack(|| {
        super::each_inside(block, run);
        take_out(block, BRANCHES);
    })
}

fn take_out(block: &mut Block, left: usize) {
    for stmt in &mut block.stmts {
        let Op::For(l) = &stmt.op else { continue };
        let Some(at) = decided(l).filter(|_| left > 0) else { continue };
        let Op::If { cond, .. } = l.body.stmts[at].op else { continue };
        let [then, otherwise] = [true, false].map(|taken| {
            let mut side = side(stmt, l, at, taken);
            hoist::run(&mut side);
            forward::run(&mut side);
            take_out(&mut side, left - 1);
            side
        });
        stmt.op = Op::If { cond, then, otherwise, replayed: false };
    }
}

/// The first branch of a simple loop whose condition comes from outside.
fn decided(l: &For) -> Option<usize> {
    let branches = || l.body.stmts.iter().enumerate().filter(|(_, s)| matches!(s.op, Op::If { .. }));
    branches().next()?;
    let mut size = 0;
    if !l.carried.is_empty() || !is_simple(&l.body, &mut size) {
        return None;
    }
    let mut bound = FxHashSet::default();
    for_each_binder(&l.body, &mut |v| {
        bound.insert(v);
    });
    let is_decided = |s: &Stmt| match &s.op {
        Op::If { cond: Atom::Var(cond), .. } => !bound.contains(cond),
        _ => false,
    };
    branches().find(|(_, s)| is_decided(s)).map(|(at, _)| at)
}

/// Whether a block is short and has no loops inside.
fn is_simple(block: &Block, size: &mut usize) -> bool {
    *size += block.stmts.len();
    let inner = |stmt: &Stmt, size: &mut usize| match &stmt.op {
        Op::If { then, otherwise, .. } => [then, otherwise].iter().all(|side| is_simple(side, size)),
        op => !op.has_blocks(),
    };
    *size <= SIMPLE && with_stack(|| block.stmts.iter().all(|stmt| inner(stmt, size)))
}

/// The loop if the branch goes one way, as a side of that branch.
fn side(stmt: &Stmt, l: &For, at: usize, taken: bool) -> Block {
    let mut l = l.clone();
    let branch = l.body.stmts.remove(at);
    if let Op::If { then, otherwise, .. } = branch.op {
        let Block { stmts, results } = if taken { then } else { otherwise };
        let copies = branch.binds.into_iter().zip(results);
        let copies = copies.map(|(bind, value)| Stmt { binds: vec![bind], op: Op::Copy { value }, span: branch.span });
        l.body.stmts.splice(at..at, stmts.into_iter().chain(copies).collect::<Vec<_>>());
    }
    let stmt = Renaming::default().stmt(&Stmt { binds: stmt.binds.clone(), op: Op::For(l), span: stmt.span });
    let results = stmt.binds.iter().map(|v| Atom::Var(*v)).collect();
    Block { stmts: vec![stmt], results }
}
