//! A loop that only builds an array of which a later loop of the same length reads one element in each iteration, a fixed distance from its own, is run inside
//! that loop, and the array is never made: `a.(i) = y.(i) + h * k.(i)` and then `x.(i) * a.(i - 1)` becomes `x.(i) * (y.(i - 1) + h * k.(i - 1))`.
//!
//! Fusion does so where each element is read in its own iteration. Here it waits until all derivatives have been taken: the adjoint of the one loop would add
//! to several neighbours where that of two adds to one.

use super::at_once::stays;
use super::fuse::{adds_outside, nothing, Users};
use super::gathers::cost;
use super::recompute::{replace_in, Element};
use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use rustc_hash::FxHashSet;

/// How much an element may take, in additions, products and reads: beyond that, a loop has too many arrays and numbers at hand.
const CHEAP: usize = 8;

/// Says whether any loop was moved. Copies and statements without effect are left to be taken out.
pub fn run(block: &mut Block) -> bool {
    with_stack(|| {
        let mut changed = super::inside(block, run);
        let mut users = Users::of(block);
        // From the last to the first, so that one may follow another.
        for at in (0..block.stmts.len()).rev() {
            let Some((array, element, reader)) = moves(block, at, &users) else { continue };
            let Op::For(l) = &mut block.stmts[reader].op else { continue };
            replace_in(&mut l.body, array, &element);
            let stmt = &mut block.stmts[at];
            (stmt.binds, stmt.op) = (Vec::new(), nothing());
            users.moved.insert(at, reader);
            changed = true;
        }
        changed
    })
}

/// The array that the loop at `at` builds, if the loop may be run inside another: its element, and where the other is.
fn moves(block: &Block, at: usize, users: &Users) -> Option<(Var, Element, usize)> {
    let Stmt { binds, op: Op::For(l), .. } = &block.stmts[at] else { return None };
    let [array] = binds[..] else { return None };
    let reader = users.only_use(array)?;
    let Op::For(other) = &block.stmts.get(reader)?.op else { return None };
    let fits = array.ty.rank == 1 && l.carried.is_empty() && other.carried.is_empty() && l.count == other.count;
    if !fits || !reads_neighbour(&other.body, array, &mut [other.index].into_iter().collect()) {
        return None;
    }
    let simple = l.body.stmts.iter().all(is_simple) && !adds_outside(&l.body);
    if !simple || cost(&l.body)? > CHEAP || !stays(block, &l.body, at, reader) {
        return None;
    }
    Some((array, Element { index: l.index, count: l.count, block: l.body.clone() }, reader))
}

/// What is in vector lanes wherever it is done: nothing fails, branches, or finds its way in arrays by more than additions.
fn is_simple(stmt: &Stmt) -> bool {
    match &stmt.op {
        Op::Scalar { prim: Prim::AddInt | Prim::SubInt, .. } | Op::Get { .. } => true,
        Op::Scalar { .. } => stmt.binds.iter().all(|v| v.ty.is_real()),
        _ => false,
    }
}

/// Whether a body reads an array, not in loops inside, at the index or what is by a constant more or less; `near` is what is, so far.
fn reads_neighbour(block: &Block, array: Var, near: &mut FxHashSet<Var>) -> bool {
    let is_near = |near: &FxHashSet<Var>, a: Atom| a.var().is_some_and(|v| near.contains(&v));
    block.stmts.iter().any(|stmt| match &stmt.op {
        Op::Get { array: read, index } if *read == array => is_near(near, index[0]),
        Op::Scalar { prim: Prim::AddInt | Prim::SubInt, args } => {
            if is_near(near, args[0]) && matches!(args[1], Atom::Int(_)) {
                near.insert(stmt.binds[0]);
            }
            false
        }
        Op::If { then, otherwise, .. } => {
            [then, otherwise].into_iter().any(|side| with_stack(|| reads_neighbour(side, array, near)))
        }
        _ => false,
    })
}
