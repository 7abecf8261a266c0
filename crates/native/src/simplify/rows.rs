//! Before an array is changed: what is still wanted of the old one is read first, and rows that outlive it are copied. Otherwise the whole would have
//! to be copied, since somebody still looks at it.

use super::failures::can_fail;
use super::products::is_among;
use crate::flow::*;
use gradus_core::traverse::with_stack;
use rustc_hash::FxHashSet;

/// How many statements before and after a change are looked at.
const NEAR: usize = 64;

pub fn run(block: &mut Block) {
    with_stack(|| {
        super::each_inside(block, run);
        let mut at = 0;
        while at < block.stmts.len() {
            if let Op::Set { array, index, .. } = &block.stmts[at].op {
                let (array, place) = (*array, index.clone());
                at += look_first(block, at, array, &place, true);
                if array.ty.rank > 1 {
                    at += copy_rows(block, at, array);
                }
            }
            at += 1;
        }
    })
}

/// What can be done without copies, and should be before derivatives are taken: they begin with what was done last, and that should be the change.
pub fn without_copies(block: &mut Block) {
    with_stack(|| {
        super::each_inside(block, without_copies);
        let mut at = 0;
        while at < block.stmts.len() {
            element_of_row(block, at);
            if let Op::Set { array, index, .. } = &block.stmts[at].op {
                let (array, place) = (*array, index.clone());
                at += look_first(block, at, array, &place, false);
            }
            at += 1;
        }
    })
}

/// A row of which one element is changed, put where it was, is a change of one element.
fn element_of_row(block: &mut Block, at: usize) {
    let Op::Set { array, index, value: Atom::Var(row) } = &block.stmts[at].op else { return };
    let near = &block.stmts[at.saturating_sub(NEAR)..at];
    let made = |v: Var| near.iter().find(|s| s.binds.contains(&v)).map(|s| &s.op);
    let Some(Op::Set { array: before, index: inner, value }) = made(*row) else { return };
    if matches!(made(*before), Some(Op::Get { array: whole, index: outer }) if whole == array && outer == index) {
        let index = [&index[..], &inner[..]].concat();
        block.stmts[at].op = Op::Set { array: *array, index, value: *value };
    }
}

/// Of the statements after `at`, which changes a place of an array, those that look at the array come before it, or if they want to know what was at that
/// place and it `may_copy`, look at a copy of it. Says how many statements there are now that were not before `at`; none if somebody wants more.
fn look_first(block: &mut Block, at: usize, array: Var, place: &[Atom], may_copy: bool) -> usize {
    let (mut moved, mut looking) = (Vec::new(), Vec::new());
    let mut made_since: FxHashSet<Var> = block.stmts[at].binds.iter().copied().collect();
    let mut failed_since = false;
    for (later, stmt) in block.stmts.iter().enumerate().skip(at + 1).take(NEAR) {
        if stmt.mentions(array) {
            // What can fail before it may be a check that it is a good read, or tell of another failure.
            let may_move = may_copy || !adds_outside(stmt);
            if may_move && !failed_since && reads(stmt, array, &[]) && !mentions_any(stmt, &made_since) {
                moved.push(later);
                continue;
            }
            let has_rows = place.len() < array.ty.rank as usize && array.ty.shape().is_none();
            if !may_copy || !has_rows || !reads(stmt, array, place) {
                return 0;
            }
            looking.push(later);
        }
        made_since.extend(stmt.binds.iter().copied());
        failed_since |= can_fail(stmt);
    }
    if block.results.contains(&array.into()) {
        return 0;
    }
    let mut first = Vec::new();
    if !looking.is_empty() {
        let copy = Var::fresh(array.name, array.ty.at(place.len()));
        looking.iter().for_each(|later| look_at_copy(&mut block.stmts[*later], array, place.len(), copy));
        let mut b = Builder::new();
        b.span = block.stmts[at].span;
        b.copy_out(copy, array, place.to_vec());
        first = b.pop(Vec::new()).stmts;
    }
    for later in moved.into_iter().rev() {
        first.insert(0, block.stmts.remove(later));
    }
    let count = first.len();
    block.stmts.splice(at..at, first);
    count
}

/// Whether a statement, which looks at an array, does nothing but read its elements, and these at a place if it is given.
fn reads(stmt: &Stmt, array: Var, place: &[Atom]) -> bool {
    with_stack(|| {
        let mut others = false;
        match &stmt.op {
            Op::Get { array: read, index } if *read == array => {
                return index.starts_with(place) && (place.is_empty() || index.len() == array.ty.rank as usize);
            }
            Op::Get { .. } | Op::For(_) | Op::If { .. } => {
                stmt.op.for_each_operand(&mut |a| others |= a == array.into())
            }
            _ if stmt.mentions(array) => return false,
            _ => {}
        }
        !others
            && stmt
                .op
                .blocks()
                .all(|b| !b.results.contains(&array.into()) && b.stmts.iter().all(|s| reads(s, array, place)))
    })
}

/// Whether a statement adds to accumulators that others opened. Derivatives have them stand in the order in which they start best.
fn adds_outside(stmt: &Stmt) -> bool {
    let mut inside = FxHashSet::default();
    stmt.op.blocks().for_each(|inner| {
        walk::for_each_binder(inner, &mut |v| {
            inside.insert(v);
        });
    });
    let mut found = false;
    let mut look = |a: Atom| found |= a.var().is_some_and(|v| v.ty.accumulator && !inside.contains(&v));
    stmt.op.blocks().for_each(|inner| walk::for_each_operand(inner, &mut look));
    found
}

fn mentions_any(stmt: &Stmt, some: &FxHashSet<Var>) -> bool {
    let mut found = false;
    let mut look = |a: Atom| found |= is_among(some, a);
    stmt.op.for_each_operand(&mut look);
    stmt.op.blocks().for_each(|inner| walk::for_each_operand(inner, &mut look));
    found
}

/// Reads a copy of a place of an array, which so many indices lead to, instead of the array.
fn look_at_copy(stmt: &mut Stmt, array: Var, indices: usize, copy: Var) {
    with_stack(|| {
        if let Op::Get { array: read, index } = &mut stmt.op {
            if *read == array {
                *read = copy;
                index.drain(..indices);
            }
        }
        for inner in stmt.op.blocks_mut() {
            inner.stmts.iter_mut().for_each(|s| look_at_copy(s, array, indices, copy));
        }
    })
}

/// Copies the rows of an array that are looked at after statement `at`, which changes it; says how many statements it takes before that.
fn copy_rows(block: &mut Block, at: usize, array: Var) -> usize {
    let rows: Vec<usize> = (at.saturating_sub(NEAR)..at)
        .filter(|i| {
            let Stmt { op: Op::Get { array: read, .. }, binds, .. } = &block.stmts[*i] else { return false };
            let wanted = |row: Var| {
                block.stmts[at..].iter().take(NEAR).any(|s| s.mentions(row)) || block.results.contains(&row.into())
            };
            *read == array && binds.iter().any(|row| row.ty.is_array() && row.ty.shape().is_none() && wanted(*row))
        })
        .collect();
    let before = block.stmts.len();
    for row in rows.into_iter().rev() {
        let Stmt { binds, op: Op::Get { array, index }, span } = block.stmts.remove(row) else { continue };
        let mut b = Builder::new();
        b.span = span;
        b.copy_out(binds[0], array, index);
        block.stmts.splice(row..row, b.pop(Vec::new()).stmts);
    }
    block.stmts.len() - before
}
