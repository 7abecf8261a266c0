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

pub fn run(block: &mut Block, lengths: &KnownLengths) {
    with_stack(|| {
        block.stmts.iter_mut().flat_map(|stmt| stmt.op.blocks_mut()).for_each(|inner| run(inner, lengths));
        take_out(block, lengths, BRANCHES);
    })
}

fn take_out(block: &mut Block, lengths: &KnownLengths, left: usize) {
    for stmt in &mut block.stmts {
        let Op::For(l) = &stmt.op else { continue };
        let Some(cond) = decided(l).filter(|_| left > 0) else { continue };
        let [then, otherwise] = [(); 2].map(|()| {
            let copy = Renaming::default().stmt(stmt);
            Block { results: copy.binds.iter().map(|v| Atom::Var(*v)).collect(), stmts: vec![copy] }
        });
        let op = Op::branch(cond.into(), then, otherwise, false);
        let mut whole = Block { stmts: vec![Stmt { op, ..stmt.clone() }], results: Vec::new() };
        forward::run(&mut whole, lengths);
        if let [Stmt { op: op @ Op::If { .. }, .. }] = &mut whole.stmts[..] {
            for side in op.blocks_mut() {
                hoist::run(side);
                take_out(side, lengths, left - 1);
            }
            stmt.op = std::mem::replace(op, Op::Copy { value: cond.into() });
        }
    }
}

/// What the first branch of a simple loop, at any depth, asks that comes from outside.
fn decided(l: &For) -> Option<Var> {
    let has_branches = l.body.stmts.iter().any(|s| matches!(s.op, Op::If { .. }));
    if !has_branches || !l.carried.is_empty() || !is_simple(&l.body, &mut 0) {
        return None;
    }
    let mut bound = FxHashSet::from_iter([l.index]);
    for_each_binder(&l.body, &mut |v| {
        bound.insert(v);
    });
    let mut found = None;
    walk::for_each_stmt(&l.body, &mut |stmt| {
        if let Op::If { cond: Atom::Var(cond), .. } = &stmt.op {
            found = found.or(Some(*cond).filter(|cond| !bound.contains(cond)));
        }
    });
    found
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
