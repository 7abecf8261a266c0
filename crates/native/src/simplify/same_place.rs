//! What several statements in the body of a loop add to one element of an array is added to it at once, also what both sides of a branch add there, or what one of them
//! adds to an element to which each iteration adds. So each iteration reads and writes the element once. When all derivatives have been taken.

use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use rustc_hash::{FxHashMap, FxHashSet};

/// Says whether there was anything to put together.
pub fn run(block: &mut Block) -> bool {
    with_stack(|| {
        let mut changed = false;
        for stmt in &mut block.stmts {
            let is_loop = matches!(stmt.op, Op::For(_) | Op::While(_));
            for inner in stmt.op.blocks_mut() {
                changed |= if is_loop { in_body(inner) } else { run(inner) };
            }
        }
        changed
    })
}

/// An element of an accumulator.
type Place = (Var, Vec<Atom>);

/// What a statement adds to a place.
fn added(stmt: &Stmt) -> Option<(Place, Atom)> {
    let Op::Add { acc, index, value } = &stmt.op else { return None };
    let is_element = !index.is_empty() && index.len() == acc.ty.rank as usize;
    (acc.ty.is_real() && is_element).then(|| ((*acc, index.clone()), *value))
}

fn place(stmt: &Stmt) -> Option<Place> {
    added(stmt).map(|(place, _)| place)
}

fn in_body(block: &mut Block) -> bool {
    with_stack(|| {
        let mut changed = false;
        for inner in block.stmts.iter_mut().flat_map(|stmt| stmt.op.blocks_mut()) {
            changed |= in_body(inner);
        }
        let nowhere = FxHashSet::default();
        changed |= out_of_branches(block, &nowhere);
        let always: FxHashSet<Place> = block.stmts.iter().filter_map(place).collect();
        if !always.is_empty() {
            changed |= out_of_branches(block, &always);
            changed |= join(block);
        }
        changed
    })
}

/// Puts the additions to each place together, where the last of them is.
fn join(block: &mut Block) -> bool {
    // What is still to be added to each place, and by which statement.
    let mut waiting: FxHashMap<Place, (usize, Atom)> = FxHashMap::default();
    let mut earlier: FxHashSet<usize> = FxHashSet::default();
    let mut sums: FxHashMap<usize, Stmt> = FxHashMap::default();
    for (at, stmt) in block.stmts.iter_mut().enumerate() {
        if let Op::Freeze { acc } = stmt.op {
            waiting.retain(|(known, _), _| *known != acc);
        }
        let Some(place) = place(stmt) else { continue };
        let Op::Add { value, .. } = &mut stmt.op else { continue };
        if let Some((before, known)) = waiting.get(&place) {
            let sum = Var::fresh("t", Type::REAL);
            let op = Op::Scalar { prim: Prim::AddReal, args: vec![*known, *value] };
            sums.insert(at, Stmt { binds: vec![sum], op, span: stmt.span });
            earlier.insert(*before);
            *value = sum.into();
        }
        waiting.insert(place, (at, *value));
    }
    if sums.is_empty() {
        return false;
    }
    for (at, stmt) in std::mem::take(&mut block.stmts).into_iter().enumerate() {
        block.stmts.extend(sums.remove(&at));
        if !earlier.contains(&at) {
            block.stmts.push(stmt);
        }
    }
    true
}

/// Adds after each branch what both its sides add to one place, or one of them to a place that is there in any case.
fn out_of_branches(block: &mut Block, always: &FxHashSet<Place>) -> bool {
    let mut changed = false;
    for stmt in std::mem::take(&mut block.stmts) {
        let (stmt, after) = out_of_branch(stmt, always);
        changed |= !after.is_empty();
        block.stmts.push(stmt);
        block.stmts.extend(after);
    }
    changed
}

fn out_of_branch(mut stmt: Stmt, always: &FxHashSet<Place>) -> (Stmt, Vec<Stmt>) {
    let (mut after, span) = (Vec::new(), stmt.span);
    let Op::If { then, otherwise, .. } = &mut stmt.op else { return (stmt, after) };
    // By now a side adds once to each place.
    let [first, second] = [&**then, &**otherwise].map(|side| side.stmts.iter().filter_map(added).collect::<Vec<_>>());
    let [here, there] = [&first, &second].map(|added| added.iter().cloned().collect::<FxHashMap<Place, Atom>>());
    let statements = || then.stmts.iter().chain(&otherwise.stmts);
    let bound: FxHashSet<Var> = statements().flat_map(|stmt| stmt.binds.iter().copied()).collect();
    let is_bound = |a: &Atom| a.var().is_some_and(|v| bound.contains(&v));
    let mut moved: FxHashSet<Place> = FxHashSet::default();
    for (place, _) in first.into_iter().chain(second) {
        let values = [here.get(&place), there.get(&place)];
        let is_there = values.iter().all(|value| value.is_some()) || always.contains(&place);
        if !is_there || moved.contains(&place) || is_bound(&place.0.into()) || place.1.iter().any(is_bound) {
            continue;
        }
        let sum = Var::fresh("t", Type::REAL);
        let [here, there] = values.map(|value| value.copied().unwrap_or(Atom::Real(0.0)));
        then.results.push(here);
        otherwise.results.push(there);
        stmt.binds.push(sum);
        let op = Op::Add { acc: place.0, index: place.1.clone(), value: sum.into() };
        after.push(Stmt { binds: Vec::new(), op, span });
        moved.insert(place);
    }
    if !moved.is_empty() {
        let stays = |stmt: &Stmt| place(stmt).is_none_or(|place| !moved.contains(&place));
        then.stmts.retain(stays);
        otherwise.stmts.retain(stays);
    }
    (stmt, after)
}
