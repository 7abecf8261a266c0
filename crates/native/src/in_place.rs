//! Arrays in the place of others. A loop that looks at an array for the last time, at each element only in the iteration of its number, can leave there what it
//! collects, if it turns out that nobody else holds the array. Loops whose state is an array, and the way back through them, then need no memory for their steps.

use crate::flow::walk::count_uses;
use crate::flow::*;
use crate::ownership::Ownership;
use gradus_core::traverse::with_stack;

/// For each array that a loop collects, one in whose place it may be.
pub fn of(l: &For, arrays: &[Var], ownership: &Ownership) -> Vec<Option<Var>> {
    let mut free: Vec<Var> = match l.carried.is_empty() && collects_in_order(&l.body, l.index) {
        true => ownership.ending().collect(),
        false => Vec::new(),
    };
    free.retain(|var| var.ty.rank == 1);
    if free.is_empty() {
        return vec![None; arrays.len()];
    }
    let uses = count_uses(&l.body);
    free.retain(|var| uses.get(var) == Some(&own_reads(&l.body, *var, l.index)));
    let mut taken = |array: &Var| free.iter().position(|var| var.ty == array.ty).map(|at| free.remove(at));
    arrays.iter().map(&mut taken).collect()
}

/// Whether an iteration has read all that it needs before it leaves anything: backends may put additions to arrays off, but not those to the place of the
/// iteration's number, if an array gets no others.
fn collects_in_order(block: &Block, number: Var) -> bool {
    with_stack(|| {
        block.stmts.iter().all(|stmt| {
            let puts_off = match &stmt.op {
                Op::Add { acc, index, .. } => acc.ty.rank > 0 && index[..] != [number.into()],
                _ => false,
            };
            !puts_off && stmt.op.blocks().all(|inner| collects_in_order(inner, number))
        })
    })
}

/// How often a block reads the element of an array that has this number.
fn own_reads(block: &Block, array: Var, number: Var) -> usize {
    with_stack(|| {
        let reads = |stmt: &Stmt| match &stmt.op {
            Op::Get { array: read, index } => usize::from(*read == array && index[..] == [number.into()]),
            op => op.blocks().map(|inner| own_reads(inner, array, number)).sum(),
        };
        block.stmts.iter().map(reads).sum()
    })
}
