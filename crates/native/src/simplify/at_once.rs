//! Additions of several loops to one array, each once in each place, are made at once after the last of them. The adjoint of an array that several loops
//! read would be read and written by each of theirs; so it is read and written once, and what is added is computed from arrays that are there anyway.

use super::collect::in_place_of_additions;
use super::gathers::{cost, own_additions, without_additions, Given};
use crate::flow::walk::{for_each_operand, free_vars, Renaming};
use crate::flow::*;
use gradus_core::traverse::with_stack;
use rustc_hash::{FxHashMap, FxHashSet};

/// How much computing an addition may take, in additions, products and reads, if its loop has nothing else to do.
const CHEAP: usize = 8;
/// The same if it has, so that what is added may be computed twice.
const CHEAP_AGAIN: usize = 3;
/// How many additions are made at once: beyond that, a loop reads too many arrays.
const MOST: usize = 6;

/// Says whether any additions were put together. Only when all derivatives have been taken, which know how to save what a loop computes once.
pub fn run(function: &mut Block, module: &Module) -> bool {
    let mut done = FxHashSet::default();
    put_together(function, module, &mut done);
    if !done.is_empty() {
        in_place_of_additions(function, &done);
    }
    !done.is_empty()
}

/// A loop that adds to an array, once in each place, and what it adds.
struct Adding {
    at: usize,
    count: Atom,
    given: Given,
}

fn put_together(block: &mut Block, module: &Module, done: &mut FxHashSet<Var>) {
    with_stack(|| {
        for inner in block.stmts.iter_mut().flat_map(|stmt| stmt.op.blocks_mut()) {
            put_together(inner, module, done);
        }
        // Where there are no loops, nothing is looked for: blocks may be deep inside each other.
        if block.stmts.iter().filter(|stmt| matches!(stmt.op, Op::For(_))).count() < 2 {
            return;
        }
        let mut new: FxHashMap<usize, Vec<Stmt>> = FxHashMap::default();
        for (acc, places) in accumulators(block) {
            for group in groups(block, acc, &places, module) {
                let last = group[group.len() - 1].at;
                new.entry(last).or_default().push(at_once(block, acc, group));
                done.insert(acc);
            }
        }
        if new.is_empty() {
            return;
        }
        for (at, stmt) in std::mem::take(&mut block.stmts).into_iter().enumerate() {
            block.stmts.push(stmt);
            block.stmts.extend(new.remove(&at).into_iter().flatten());
        }
    })
}

/// The accumulators that are arrays of numbers, with the statements that mention them, in order.
fn accumulators(block: &Block) -> Vec<(Var, Vec<usize>)> {
    let mut found: Vec<(Var, Vec<usize>)> = Vec::new();
    let mut places: FxHashMap<Var, usize> = FxHashMap::default();
    for (at, stmt) in block.stmts.iter().enumerate() {
        let mut note = |atom: Atom| {
            let Some(acc) = atom.var().filter(|v| v.ty.accumulator && v.ty.rank == 1 && v.ty.is_real()) else { return };
            let place = *places.entry(acc).or_insert(found.len());
            if place == found.len() {
                found.push((acc, Vec::new()));
            }
            let places = &mut found[place].1;
            if places.last() != Some(&at) {
                places.push(at);
            }
        };
        stmt.op.for_each_operand(&mut note);
        stmt.op.blocks().for_each(|inner| for_each_operand(inner, &mut note));
    }
    found
}

/// Loops that add to an accumulator one after the other, some at a time.
fn groups(block: &Block, acc: Var, places: &[usize], module: &Module) -> Vec<Vec<Adding>> {
    let mut groups: Vec<Vec<Adding>> = Vec::new();
    let mut group: Vec<Adding> = Vec::new();
    for at in places {
        let adding = adding(block, *at, acc, module);
        let joins = match (&adding, group.first()) {
            (Some(adding), Some(first)) => {
                group.len() < MOST
                    && adding.count == first.count
                    && group.iter().all(|a| stays(block, &a.given.block, a.at, *at))
            }
            _ => false,
        };
        if !joins {
            groups.push(std::mem::take(&mut group));
        }
        group.extend(adding);
    }
    groups.push(group);
    groups.retain(|group| group.len() > 1);
    groups
}

/// The loop at a place, if all that it does to an accumulator is to add once in each place.
fn adding(block: &Block, at: usize, acc: Var, module: &Module) -> Option<Adding> {
    let Stmt { op: Op::For(l), binds, .. } = &block.stmts[at] else { return None };
    let given = own_additions(l, acc, module)?;
    let alone = binds.is_empty() && free_vars(&l.body).iter().all(|v| !v.ty.accumulator || *v == acc);
    let most = if alone { CHEAP } else { CHEAP_AGAIN };
    (cost(&given.block)? <= most).then_some(Adding { at, count: l.count, given })
}

/// Whether the arrays that a part of one statement reads are only read until a later statement, or read later anyway: nothing wants to change them in place.
pub(super) fn stays(block: &Block, part: &Block, from: usize, until: usize) -> bool {
    let arrays = free_vars(part).into_iter().filter(|v| v.ty.is_counted());
    arrays.into_iter().all(|array| {
        let taken = (from..=until).find(|at| !only_reads(&block.stmts[*at], array));
        taken.is_none_or(|at| block.stmts[at + 1..].iter().any(|stmt| stmt.mentions(array)))
    })
}

fn only_reads(stmt: &Stmt, array: Var) -> bool {
    with_stack(|| {
        let mut only = true;
        match &stmt.op {
            Op::Get { .. } | Op::Dim { .. } => {}
            op => op.for_each_operand(&mut |a| only &= a != array.into()),
        }
        let inside = |inner: &Block| {
            !inner.results.contains(&array.into()) && inner.stmts.iter().all(|stmt| only_reads(stmt, array))
        };
        only && stmt.op.blocks().all(inside)
    })
}

/// Takes their additions out of loops; gives the loop that makes them.
fn at_once(block: &mut Block, acc: Var, group: Vec<Adding>) -> Stmt {
    let (last, count, index) =
        (&block.stmts[group[group.len() - 1].at], group[0].count, group[0].given.index.refresh());
    let mut b = Builder::new();
    b.span = last.span;
    b.push();
    let mut total: Option<Atom> = None;
    for Adding { at, given, .. } in group {
        let Op::For(l) = &mut block.stmts[at].op else { continue };
        without_additions(&mut l.body, acc);
        let here = Renaming { map: [(given.index, index.into())].into_iter().collect() }.block(&given.block);
        b.stmts(here.stmts);
        total = Some(total.map_or(here.results[0], |total| b.add(total, here.results[0])));
    }
    b.accumulate(acc, vec![index.into()], total.unwrap_or(Atom::Real(0.0)));
    let body = b.pop(Vec::new());
    Stmt {
        binds: Vec::new(),
        op: Op::For(Box::new(For { index, count, carried: Vec::new(), body, replayed: false })),
        span: b.span,
    }
}
