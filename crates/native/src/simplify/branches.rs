//! Two branches on one condition, the first of which only prepares for the second, or only adds to sums, are one: what the way back wants from the
//! way there is then at hand where it is used.

use super::fuse::can_fail;
use crate::flow::walk::{count_uses, free_vars, Renaming};
use crate::flow::*;
use gradus_core::traverse::with_stack;
use rustc_hash::FxHashMap;

pub fn run(block: &mut Block) {
    with_stack(|| {
        for stmt in &mut block.stmts {
            stmt.op.blocks_mut().into_iter().for_each(run);
        }
        // Counted once: a join changes only how often earlier variables are used, which are not asked for again.
        let mut uses = None;
        let mut at = 0;
        while at < block.stmts.len() {
            match second(block, at, &mut uses) {
                Some(later) => join(block, at, later),
                None => at += 1,
            }
        }
    })
}

/// The branch that alone uses what the branch at `at` gives.
fn second(block: &Block, at: usize, uses: &mut Option<FxHashMap<Var, usize>>) -> Option<usize> {
    let Stmt { binds, op: Op::If { cond, then, otherwise, .. }, .. } = &block.stmts[at] else { return None };
    let same = |s: &Stmt| matches!(&s.op, Op::If { cond: other, .. } if other == cond);
    let later = at + 1 + block.stmts[at + 1..].iter().position(same)?;
    if [then, otherwise].into_iter().any(can_fail) {
        return None;
    }
    // It can wait, if nobody looks at what it adds before.
    let adds: Vec<Var> = [then, otherwise].into_iter().flat_map(free_vars).filter(|v| v.ty.accumulator).collect();
    let looks = |s: &Stmt| !matches!(s.op, Op::Add { .. }) && s.op.blocks().is_empty();
    if block.stmts[at..later].iter().any(|s| looks(s) && adds.iter().any(|acc| s.mentions(*acc))) {
        return None;
    }
    let all = uses.get_or_insert_with(|| count_uses(block));
    let there: Vec<_> = block.stmts[later].op.blocks().iter().map(|(side, _)| count_uses(side)).collect();
    let only_there =
        |v: &Var| all.get(v).copied().unwrap_or(0) == there.iter().filter_map(|uses| uses.get(v)).sum::<usize>();
    binds.iter().all(only_there).then_some(later)
}

fn join(block: &mut Block, at: usize, later: usize) {
    let first = block.stmts.remove(at);
    let Op::If { then, otherwise, .. } = first.op else { return };
    let second = &mut block.stmts[later - 1];
    for (before, after) in [then, otherwise].into_iter().zip(second.op.blocks_mut()) {
        let map = first.binds.iter().copied().zip(before.results).collect();
        let mut renamed = Renaming { map }.block(after);
        after.stmts = before.stmts;
        after.stmts.append(&mut renamed.stmts);
        after.results = renamed.results;
    }
}
