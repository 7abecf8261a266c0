//! What both sides of a branch add is added before it.
//!
//! Two branches on one condition, the first of which only prepares for the second, or only adds to sums, are one: what the way back wants from the
//! way there is then at hand where it is used.

use super::failures;
use super::fuse::can_fail;
use crate::flow::walk::{count_uses, free_vars, Renaming};
use crate::flow::*;
use gradus_core::traverse::with_stack;
use rustc_hash::FxHashMap;

/// No more statements than this are looked at between two branches that can fail, or in the sides of one.
const NEAR: usize = 64;

pub fn run(block: &mut Block) {
    with_stack(|| {
        for stmt in &mut block.stmts {
            stmt.op.blocks_mut().for_each(run);
        }
        let mut pairs = Pairs { next: next_on_same(block), uses: None, looks: None };
        for at in 0..block.stmts.len() {
            if let Some(later) = pairs.second(block, at) {
                join(block, at, later);
            }
        }
        add_first(block);
        block.stmts.retain(|stmt| !does_nothing(stmt));
    })
}

/// What both sides of a short branch add to the same place is added before it.
fn add_first(block: &mut Block) {
    let mut out = Vec::with_capacity(block.stmts.len());
    for mut stmt in std::mem::take(&mut block.stmts) {
        if let Op::If { then, otherwise, .. } = &mut stmt.op {
            if then.stmts.len() <= NEAR && otherwise.stmts.len() <= NEAR {
                take_common_additions(then, otherwise, &mut out);
            }
        }
        out.push(stmt);
    }
    block.stmts = out;
}

fn take_common_additions(then: &mut Block, otherwise: &mut Block, out: &mut Vec<Stmt>) {
    let inner: Vec<Var> = then.stmts.iter().flat_map(|s| s.binds.iter().copied()).collect();
    then.stmts.retain(|stmt| {
        let Op::Add { acc, index, value } = &stmt.op else { return true };
        if index.iter().chain([value]).any(|a| a.var().is_some_and(|v| inner.contains(&v))) || inner.contains(acc) {
            return true;
        }
        let is_same = |other: &Stmt| matches!(&other.op, Op::Add { acc: a, index: i, value: v } if (a, i, v) == (acc, index, value));
        let Some(other) = otherwise.stmts.iter().position(is_same) else { return true };
        otherwise.stmts.remove(other);
        out.push(stmt.clone());
        false
    });
}

/// Such as a branch that has been put into another.
fn does_nothing(stmt: &Stmt) -> bool {
    let empty = |side: &Block| side.stmts.is_empty() && side.results.is_empty();
    matches!(&stmt.op, Op::If { then, otherwise, .. } if empty(then) && empty(otherwise))
}

/// What is known of a block, found once: a join changes only branches, and how often earlier variables are used, which are not asked for again.
struct Pairs {
    /// For each statement the next branch on its condition.
    next: Vec<Option<usize>>,
    uses: Option<FxHashMap<Var, usize>>,
    /// The statements that look at sums.
    looks: Option<FxHashMap<Var, Vec<usize>>>,
}

fn next_on_same(block: &Block) -> Vec<Option<usize>> {
    let mut last: FxHashMap<Var, usize> = FxHashMap::default();
    let mut next: Vec<Option<usize>> = vec![None; block.stmts.len()];
    for (at, stmt) in block.stmts.iter().enumerate().rev() {
        if let Op::If { cond: Atom::Var(cond), .. } = &stmt.op {
            next[at] = last.insert(*cond, at);
        }
    }
    next
}

/// The statements that mention each accumulator without adding to it.
fn looks_at_sums(block: &Block) -> FxHashMap<Var, Vec<usize>> {
    let mut found: FxHashMap<Var, Vec<usize>> = FxHashMap::default();
    for (at, stmt) in block.stmts.iter().enumerate() {
        if !matches!(stmt.op, Op::Add { .. }) && !stmt.op.has_blocks() {
            stmt.op.for_each_operand(&mut |a| {
                if let Some(acc) = a.var().filter(|v| v.ty.accumulator) {
                    found.entry(acc).or_default().push(at);
                }
            });
        }
    }
    found
}

impl Pairs {
    /// The branch that alone uses what the branch at `at` gives.
    fn second(&mut self, block: &Block, at: usize) -> Option<usize> {
        let later = self.next[at]?;
        let Stmt { binds, op: Op::If { then, otherwise, .. }, .. } = &block.stmts[at] else { return None };
        // What fails first still does.
        let between = &block.stmts[at + 1..later];
        if [then, otherwise].into_iter().any(|side| can_fail(side))
            && (between.len() > NEAR || between.iter().any(failures::can_fail))
        {
            return None;
        }
        // It can wait, if nobody looks at what it adds before.
        let looks = self.looks.get_or_insert_with(|| looks_at_sums(block));
        let mut adds = [then, otherwise].into_iter().flat_map(|side| free_vars(side)).filter(|v| v.ty.accumulator);
        let looked_at =
            |places: &Vec<usize>| places.get(places.partition_point(|p| *p < at)).is_some_and(|p| *p < later);
        if adds.any(|acc| looks.get(&acc).is_some_and(looked_at)) {
            return None;
        }
        let all = self.uses.get_or_insert_with(|| count_uses(block));
        let there: Vec<_> = block.stmts[later].op.blocks().map(count_uses).collect();
        let only_there =
            |v: &Var| all.get(v).copied().unwrap_or(0) == there.iter().filter_map(|uses| uses.get(v)).sum::<usize>();
        binds.iter().all(only_there).then_some(later)
    }
}

/// Puts the first branch into the second.
fn join(block: &mut Block, at: usize, later: usize) {
    let first = std::mem::take(&mut block.stmts[at].binds);
    let sides = block.stmts[at].op.blocks_mut().map(std::mem::take).collect::<Vec<_>>();
    for (before, after) in sides.into_iter().zip(block.stmts[later].op.blocks_mut()) {
        let map = first.iter().copied().zip(before.results).collect();
        let mut renamed = Renaming { map }.block(after);
        after.stmts = before.stmts;
        after.stmts.append(&mut renamed.stmts);
        after.results = renamed.results;
    }
}
