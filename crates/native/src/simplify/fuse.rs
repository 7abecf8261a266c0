//! Fusion: a loop that only builds arrays which one later loop of the same length reads, each element in its own iteration, is
//! run inside that loop, and the arrays are never made.

use crate::flow::walk::{for_each_operand, Renaming};
use crate::flow::*;
use gradus_core::traverse::with_stack;
use rustc_hash::FxHashMap;

pub fn run(block: &mut Block) {
    with_stack(|| {
        for stmt in &mut block.stmts {
            stmt.op.blocks_mut().for_each(run);
        }
        let mut users = Users::of(block);
        // From the last producer to the first, so that chains of maps become one loop.
        for at in (0..block.stmts.len()).rev() {
            if let Some(consumer) = users.consumer_of(block, at) {
                fuse(block, at, consumer);
                users.moved.insert(at, consumer);
            }
        }
    })
}

/// Where the results of loops are used, found once for all loops of a block.
pub(super) struct Users {
    /// For each result of a loop the statements, by number, with as many entries as there are uses.
    of: FxHashMap<Var, Vec<usize>>,
    /// The statements that became part of another one.
    pub(super) moved: FxHashMap<usize, usize>,
}

impl Users {
    pub(super) fn of(block: &Block) -> Users {
        let loops = block.stmts.iter().filter(|s| matches!(s.op, Op::For(_)));
        let mut of: FxHashMap<Var, Vec<usize>> = loops.flat_map(|s| s.binds.iter().map(|v| (*v, Vec::new()))).collect();
        let has_loops = !of.is_empty();
        let mut note = |at: usize, atom: Atom| {
            if let Some(uses) = atom.var().and_then(|v| of.get_mut(&v)) {
                uses.push(at);
            }
        };
        if !has_loops {
            return Users { of, moved: FxHashMap::default() };
        }
        for (at, stmt) in block.stmts.iter().enumerate() {
            stmt.op.for_each_operand(&mut |a| note(at, a));
            for inner in stmt.op.blocks() {
                for_each_operand(inner, &mut |a| note(at, a));
            }
        }
        block.results.iter().for_each(|a| note(block.stmts.len(), *a));
        Users { of, moved: FxHashMap::default() }
    }

    /// The loop that alone reads what the loop at `at` builds.
    pub(super) fn consumer_of(&self, block: &Block, at: usize) -> Option<usize> {
        let Stmt { binds, op: Op::For(producer), .. } = &block.stmts[at] else { return None };
        if !producer.carried.is_empty() || binds.is_empty() || adds_outside(&producer.body) {
            return None;
        }
        let uses = || binds.iter().filter_map(|v| self.of.get(v)).flatten().map(|user| self.now(*user));
        let user = uses().next()?;
        let Op::For(consumer) = &block.stmts.get(user)?.op else { return None };
        let alone = uses().all(|other| other == user) && consumer.count == producer.count;
        (alone && reads(&consumer.body, binds, consumer.index) == uses().count()).then_some(user)
    }

    /// The statement that alone mentions an array, once.
    pub(super) fn only_use(&self, array: Var) -> Option<usize> {
        match self.of.get(&array)?[..] {
            [user] => Some(self.now(user)),
            _ => None,
        }
    }

    /// Where a statement is by now.
    fn now(&self, mut at: usize) -> usize {
        while let Some(there) = self.moved.get(&at) {
            at = *there;
        }
        at
    }
}

pub(super) fn adds_outside(block: &Block) -> bool {
    walk::free_vars(block).iter().any(|v| v.ty.accumulator)
}

/// How many reads of the arrays at the loop's own index are in a block.
fn reads(block: &Block, arrays: &[Var], index: Var) -> usize {
    with_stack(|| {
        let own = |stmt: &Stmt| match &stmt.op {
            Op::Get { array, index: i } => usize::from(arrays.contains(array) && i.first() == Some(&Atom::Var(index))),
            op => op.blocks().map(|b| reads(b, arrays, index)).sum(),
        };
        block.stmts.iter().map(own).sum()
    })
}

fn fuse(block: &mut Block, at: usize, consumer: usize) {
    let stmt = block.stmts[at].clone();
    let Op::For(producer) = &stmt.op else { return };
    let Op::For(target) = &mut block.stmts[consumer].op else { return };
    let mut renaming = Renaming::default();
    renaming.map.insert(producer.index, target.index.into());
    let mut front = renaming.block(&producer.body);
    let elements: Vec<(Var, Atom)> = stmt.binds.iter().copied().zip(front.results.iter().copied()).collect();
    let mut replaced = Renaming::default();
    see_through(&mut target.body, &elements, &mut replaced);
    front.stmts.append(&mut target.body.stmts);
    target.body.stmts = front.stmts;
    target.replayed &= producer.replayed || !can_fail(&producer.body);
    block.stmts[at] = Stmt { binds: Vec::new(), op: nothing(), span: stmt.span };
}

pub(super) fn can_fail(block: &Block) -> bool {
    block.stmts.iter().any(|s| matches!(s.op, Op::Check { .. } | Op::Call { .. }) || s.op.blocks().any(can_fail))
}

/// A statement without effect, which the next cleaning takes out.
pub(super) fn nothing() -> Op {
    Op::Check { cond: Atom::Bool(true), failure: Failure::Index }
}

/// Replaces reads of the arrays by the elements that are now at hand.
fn see_through(block: &mut Block, elements: &[(Var, Atom)], replaced: &mut Renaming) {
    with_stack(|| {
        let mut out = Vec::with_capacity(block.stmts.len());
        for mut stmt in std::mem::take(&mut block.stmts) {
            let found = match &stmt.op {
                Op::Get { array, index } => {
                    elements.iter().find(|(a, _)| a == array).map(|(_, element)| (*element, index[1..].to_vec()))
                }
                _ => None,
            };
            match found {
                Some((element, rest)) if rest.is_empty() => {
                    replaced.map.insert(stmt.binds[0], element);
                }
                Some((Atom::Var(row), rest)) => {
                    let index = rest.iter().map(|a| replaced.atom(*a)).collect();
                    out.push(Stmt { op: Op::Get { array: row, index }, ..stmt });
                }
                _ => {
                    // Operands may be numbers that were read: replaced through a copy that keeps every binder.
                    for inner in stmt.op.blocks_mut() {
                        see_through(inner, elements, replaced);
                    }
                    stmt.op.for_each_operand_mut(&mut |a| *a = replaced.atom(*a));
                    out.push(stmt);
                }
            }
        }
        for result in &mut block.results {
            *result = replaced.atom(*result);
        }
        block.stmts = out;
    })
}
