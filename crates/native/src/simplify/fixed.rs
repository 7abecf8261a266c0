//! Additions to an element of an array that is the same element in every iteration of a loop: the loop adds up a number, which is added to the array after it.

use super::inside::Inside;
use crate::flow::walk::for_each_binder;
use crate::flow::*;
use crate::straight::{straightened, Guard};
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use gradus_source::Span;
use rustc_hash::FxHashSet;

/// An addition to one element of an accumulator that is the same element in every iteration becomes a sum of its own, added once. Where the loop may not
/// run at all, and there may be no such element, it is added if the loop runs.
pub fn out_of_loops(block: &mut Block) {
    sums_apart(block, &mut Inside::default(), false);
}

/// The same for additions in branches, where these are all that keeps a loop from running in vector lanes: the sum is added if there is such an element, since if
/// there is none, no such branch was taken. Only when neighbours have been looked for (see `gathers`).
pub fn out_of_branches(block: &mut Block) {
    sums_apart(block, &mut Inside::default(), true);
}

fn sums_apart(block: &mut Block, known: &mut Inside, branches: bool) {
    with_stack(|| {
        let mut out = Vec::with_capacity(block.stmts.len());
        for mut stmt in std::mem::take(&mut block.stmts) {
            let mark = known.begin();
            match &mut stmt.op {
                Op::For(l) => {
                    known.enter_loop(l);
                    sums_apart(&mut l.body, known, branches);
                    known.leave_loop();
                }
                Op::If { cond, then, otherwise, .. } => {
                    known.suppose(*cond);
                    sums_apart(then, known, branches);
                    known.end(&mark);
                    sums_apart(otherwise, known, branches);
                }
                op => op.blocks_mut().for_each(|inner| sums_apart(inner, known, branches)),
            }
            known.end(&mark);
            let (mut before, mut after) = (Vec::new(), Vec::new());
            if let Op::For(l) = &mut stmt.op {
                let span = stmt.span;
                for Fixed { acc, index, when, sum } in take_fixed(l, known, branches) {
                    let init = sum.ty.shape().map_or(Atom::Real(0.0), Atom::Nil);
                    before.push(Stmt { binds: vec![sum], op: Op::Open { init }, span });
                    let total = Var::fresh(acc.name, sum.ty.frozen());
                    after.push(Stmt { binds: vec![total], op: Op::Freeze { acc: sum }, span });
                    let conditions = match when {
                        _ if known.is_inside(acc, &index) => Vec::new(),
                        When::LoopsRun(mut counts) => {
                            if !known.runs(l) && !counts.contains(&l.count) {
                                counts.push(l.count);
                            }
                            counts.into_iter().map(|count| [Atom::Int(0), count]).collect()
                        }
                        When::IsThere(lengths) => {
                            let below = index.iter().copied().zip(lengths).map(|(at, length)| [at, length]);
                            let not_negative = index.iter().filter(|at| !known.is_not_negative(**at));
                            not_negative.map(|at| [Atom::Int(-1), *at]).chain(below).collect()
                        }
                    };
                    let add = Stmt { binds: Vec::new(), op: Op::Add { acc, index, value: total.into() }, span };
                    after.extend(if_less(conditions, add, span));
                }
            }
            known.after(&stmt);
            out.extend(before);
            out.push(stmt);
            out.extend(after);
        }
        block.stmts = out;
    })
}

/// A statement under the conditions that the first of two integers is less than the second.
fn if_less(pairs: Vec<[Atom; 2]>, mut stmt: Stmt, span: Span) -> Vec<Stmt> {
    let mut stmts = Vec::new();
    for pair in pairs {
        let holds = Var::fresh("t", Type::BOOL);
        let op = Op::Scalar { prim: Prim::Less, args: pair.to_vec() };
        stmts.push(Stmt { binds: vec![holds], op, span });
        stmt = Guard { cond: holds.into(), taken: true }.around(stmt);
    }
    stmts.push(stmt);
    stmts
}

/// A place of an accumulator to which a loop adds, and the sum that it adds up instead.
struct Fixed {
    acc: Var,
    index: Vec<Atom>,
    when: When,
    sum: Var,
}

/// When something is added to a place, so that there is one.
#[derive(PartialEq)]
enum When {
    /// Once this loop and others, which run so often, have run.
    LoopsRun(Vec<Atom>),
    /// In a branch. The accumulator has these lengths: there is such a place, or no such branch was taken.
    IsThere(Vec<Atom>),
}

/// Redirects the additions to fixed places, at the top of a loop's body and in branches there, to sums of their own.
fn take_fixed(l: &mut For, known: &Inside, branches: bool) -> Vec<Fixed> {
    let mut inside: FxHashSet<Var> = l.carried.iter().map(|(v, _)| *v).chain([l.index]).collect();
    for_each_binder(&l.body, &mut |v| {
        inside.insert(v);
    });
    let mut fixed = Vec::new();
    let is_fixed = |a: &Atom| a.var().is_none_or(|v| !inside.contains(&v));
    for at in 0..l.body.stmts.len() {
        let (before, rest) = l.body.stmts.split_at_mut(at);
        if let Some((add, counts)) = added_if(&mut rest[0], before) {
            if counts.iter().all(is_fixed) {
                take(add, &is_fixed, &mut fixed, &mut |_| Some(When::LoopsRun(counts.clone())));
            }
        }
    }
    if branches && l.carried.is_empty() && !checks_in_branches(&l.body) && straightened(l).is_some() {
        let mut when = |acc| known.lengths(acc).map(When::IsThere);
        take_from_branches(&mut l.body.stmts, &mut |stmt| take(stmt, &is_fixed, &mut fixed, &mut when));
    }
    fixed
}

/// Loops that check in branches do not always run in lanes, and a sum for each branch would not pay.
fn checks_in_branches(block: &Block) -> bool {
    let checks = |stmt: &Stmt| matches!(stmt.op, Op::Check { .. });
    let within = |side: &Block| side.stmts.iter().any(checks) || with_stack(|| checks_in_branches(side));
    block.stmts.iter().any(|stmt| stmt.op.blocks().any(within))
}

/// Looks at the statements of branches, but for those that are reached where two numbers are equal, as only one iteration may be.
fn take_from_branches(stmts: &mut [Stmt], look_at: &mut dyn FnMut(&mut Stmt)) {
    let mut equalities = Vec::new();
    for stmt in stmts {
        if matches!(stmt.op, Op::Scalar { prim: Prim::Equal, .. }) {
            equalities.extend(stmt.binds.iter().map(|v| Atom::Var(*v)));
        }
        let Op::If { cond, then, otherwise, .. } = &mut stmt.op else { continue };
        let sides = if equalities.contains(cond) { [None, Some(otherwise)] } else { [Some(then), Some(otherwise)] };
        for side in sides.into_iter().flatten() {
            side.stmts.iter_mut().for_each(&mut *look_at);
            with_stack(|| take_from_branches(&mut side.stmts, look_at));
        }
    }
}

/// Redirects an addition, if its place is fixed.
fn take(
    add: &mut Stmt,
    is_fixed: &dyn Fn(&Atom) -> bool,
    fixed: &mut Vec<Fixed>,
    when: &mut dyn FnMut(Var) -> Option<When>,
) {
    let Op::Add { acc, index, .. } = &mut add.op else { return };
    let full = !index.is_empty() && index.len() == acc.ty.rank as usize;
    if !full || !is_fixed(&(*acc).into()) || !index.iter().all(is_fixed) {
        return;
    }
    let Some(when) = when(*acc) else { return };
    let always = When::LoopsRun(Vec::new());
    let is_same = |f: &Fixed| f.acc == *acc && f.index == *index && (f.when == when || f.when == always);
    let sum = match fixed.iter().find(|f| is_same(f)) {
        Some(known) => known.sum,
        None => {
            let sum = Var::fresh(acc.name, acc.ty.at(acc.ty.rank as usize));
            fixed.push(Fixed { acc: *acc, index: index.clone(), when, sum });
            sum
        }
    };
    *acc = sum;
    index.clear();
}

/// The one statement that is run if loops that run so often run at all.
fn added_if<'a>(stmt: &'a mut Stmt, before: &[Stmt]) -> Option<(&'a mut Stmt, Vec<Atom>)> {
    if !matches!(stmt.op, Op::If { .. }) {
        return Some((stmt, Vec::new()));
    }
    let Op::If { cond, then, otherwise, .. } = &mut stmt.op else { return None };
    let ([only], true) = (&mut then.stmts[..], otherwise.stmts.is_empty()) else { return None };
    let known = before.iter().rfind(|s| cond.var().is_some_and(|v| s.binds.contains(&v)))?;
    let Op::Scalar { prim: Prim::Less, args } = &known.op else { return None };
    let [Atom::Int(0), count] = args[..] else { return None };
    let (only, mut counts) = added_if(only, before)?;
    counts.push(count);
    Some((only, counts))
}
