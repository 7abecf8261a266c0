//! Which loops run in vector lanes, and how: in how many phases, and what is kept between them.
//!
//! Cranelift has vectors of two reals. A loop whose iterations are independent and whose body is straight-line code runs on pairs of
//! iterations. An elementary function is computed for many iterations at once by the runtime, which knows wider vectors: the
//! loop is cut into *phases* before and after it, and what a later phase needs is kept in buffers on the stack. Additions to neighbouring places of one
//! array, as derivatives of windows make them, are in phases of their own, too: a pair that was just stored in part cannot be loaded before the store
//! is through. Maxima and minima may be carried, too: lanes have one each, and where the order matters, all is done again one by one.

use super::math;
use super::scalars::SMALL_POWER;
use crate::checks::checks_of;
use crate::cores::{self, Join};
use crate::flow::*;
use gradus_core::Prim;
use rustc_hash::FxHashMap;

/// More buffers than this, and the loop runs without lanes.
const MOST_BUFFERS: usize = 96;

/// What it costs, in operations, to add in a phase of its own.
const LATE_PAIR: i32 = 1;

/// A loop in lanes.
pub(super) struct Plan<'a> {
    /// What must hold before, for all iterations: checks, and what they are computed from.
    pub(super) checks: Vec<Stmt>,
    /// Statements with their phases, in order.
    pub(super) stmts: Vec<(usize, &'a Stmt)>,
    pub(super) phases: usize,
    /// Statements that are written again wherever their result is needed.
    pub(super) cheap: FxHashMap<Var, &'a Stmt>,
    /// Variables that a later phase needs, with the phase from which they can be read.
    pub(super) kept: FxHashMap<Var, usize>,
    /// Places that every iteration adds to.
    pub(super) sums: Vec<(Var, &'a [Atom])>,
    /// For each state that is carried the variable of the next one, and how that is joined with a value of the iteration.
    pub(super) joins: Vec<(Var, Join)>,
    /// Pairs for each step of the loop.
    pub(super) pairs: usize,
}

/// What becomes of a statement.
enum Role {
    Check,
    /// Can be written again at little cost: addresses and loads.
    Cheap,
    /// A pair of reals or of conditions.
    Lanes,
    /// The elementary functions.
    Function,
    Add,
}

fn role(stmt: &Stmt) -> Option<Role> {
    let real = stmt.binds.iter().all(|v| v.ty == Type::REAL);
    Some(match &stmt.op {
        Op::Check { .. } => Role::Check,
        Op::Dim { .. } => Role::Cheap,
        Op::Get { .. } if stmt.binds.iter().all(|v| !v.ty.is_counted()) => Role::Cheap,
        Op::Scalar { prim, args } => match prim {
            _ if math::kernel_of(*prim).is_some() => Role::Function,
            Prim::PowRealInt if !matches!(args[..], [_, Atom::Int(k)] if k.unsigned_abs() <= SMALL_POWER) => {
                return None
            }
            _ if math::function_of(*prim).is_some() && *prim != Prim::PowRealInt => return None,
            Prim::Not => Role::Lanes,
            _ if args.iter().any(|a| a.ty().is_real()) => Role::Lanes,
            _ => Role::Cheap,
        },
        Op::Select { .. } if real => Role::Lanes,
        Op::Select { .. } => Role::Cheap,
        Op::Copy { value } | Op::Stop { value } if !value.ty().is_counted() => {
            if real {
                Role::Lanes
            } else {
                Role::Cheap
            }
        }
        Op::Add { acc, index, .. } if acc.ty.is_real() && index.len() == acc.ty.rank as usize => Role::Add,
        _ => return None,
    })
}

/// The plan of a loop, if it can run in lanes and gains by it.
pub(super) fn plan(l: &For) -> Option<Plan<'_>> {
    if matches!(l.count, Atom::Int(n) if n < 8) {
        return None;
    }
    let plain = |a: &Atom| matches!(a.ty().scalar, Scalar::Real | Scalar::Int) && !a.ty().is_array();
    if !l.body.results.iter().all(plain) {
        return None;
    }
    let mut plan = Plan {
        checks: checks_of(l)?,
        stmts: Vec::new(),
        phases: 1,
        cheap: FxHashMap::default(),
        kept: FxHashMap::default(),
        sums: Vec::new(),
        joins: extremes(l)?,
        pairs: 1,
    };
    let mut phase: FxHashMap<Var, usize> = FxHashMap::default();
    phase.insert(l.index, 0);
    let (mut gain, mut cost) = (0, 0);
    // Where pairs are added to, and in which phase.
    let mut pairs: Vec<(Var, &Vec<Atom>, usize)> = Vec::new();
    for stmt in &l.body.stmts {
        let mut at = 0;
        let mut simple = true;
        stmt.op.for_each_operand(&mut |a| {
            if let Some(p) = a.var().and_then(|v| phase.get(&v)) {
                at = at.max(*p);
                simple &= a.var().is_some_and(|v| v == l.index || plan.cheap.contains_key(&v));
            }
        });
        let mut after = at;
        if stmt.binds.iter().any(|v| plan.join_of(*v).is_some()) {
            gain += 2;
            plan.stmts.push((at, stmt));
            continue;
        }
        match role(stmt)? {
            Role::Check => continue,
            Role::Cheap if simple => {
                plan.cheap.extend(stmt.binds.iter().map(|v| (*v, stmt)));
                // What all iterations read alike is read before them.
                let varies = |index: &[Atom]| index.iter().any(|a| a.var().is_some_and(|v| phase.contains_key(&v)));
                if matches!(&stmt.op, Op::Get { index, .. } if varies(index)) && !consecutive(stmt, l, &plan.cheap) {
                    cost += 2;
                }
                phase.extend(stmt.binds.iter().map(|v| (*v, 0)));
                continue;
            }
            Role::Cheap if matches!(stmt.op, Op::Select { .. }) && stmt.binds.iter().all(|v| v.ty == Type::BOOL) => {
                gain += 1;
            }
            // An element whose place depends on reals.
            Role::Cheap => return None,
            Role::Lanes => gain += 1,
            Role::Function => {
                gain += 8;
                after = at + 1;
            }
            // Iterations of a loop with state may be done twice.
            Role::Add if !l.carried.is_empty() => return None,
            Role::Add => {
                if let Op::Add { acc, index, .. } = &stmt.op {
                    let inside = |a: &Atom| a.var().is_some_and(|v| phase.contains_key(&v));
                    if !index.iter().any(inside) {
                        gain += 2;
                        if !plan.sums.iter().any(|(other, place)| other == acc && *place == &index[..]) {
                            plan.sums.push((*acc, index));
                        }
                    } else if consecutive(stmt, l, &plan.cheap) {
                        let others = pairs.iter().filter(|(other, place, _)| other == acc && *place != index);
                        match others.map(|(_, _, phase)| phase + 1).max() {
                            Some(free) => {
                                at = at.max(free);
                                after = at;
                                cost += LATE_PAIR;
                            }
                            None => gain += 1,
                        }
                        pairs.push((*acc, index, at));
                    } else {
                        cost += 2;
                    }
                }
            }
        }
        plan.phases = plan.phases.max(after + 1);
        phase.extend(stmt.binds.iter().map(|v| (*v, after)));
        plan.stmts.push((at, stmt));
    }
    if gain <= cost {
        return None;
    }
    plan.keep(l, &phase)?;
    let gets = plan.cheap.values().filter(|stmt| matches!(stmt.op, Op::Get { .. })).count();
    plan.pairs = match (plan.stmts.len() + gets).div_ceil(plan.phases) {
        0..=5 => 4,
        6..=12 => 2,
        _ => 1,
    };
    Some(plan)
}

/// The variables of the next states, if each state is the largest or the least of the values of all iterations.
fn extremes(l: &For) -> Option<Vec<(Var, Join)>> {
    if l.body.results.len() != l.carried.len() && !l.carried.is_empty() {
        return None;
    }
    let named = |(join, next): (Join, &Atom)| match join {
        Join::Maximum | Join::Minimum => next.var().map(|v| (v, join)),
        Join::Sum | Join::Product => None,
    };
    cores::joins(l)?.into_iter().zip(&l.body.results).map(named).collect()
}

impl Plan<'_> {
    /// Iterations between phases: what a buffer has room for.
    pub(super) fn strip(&self) -> i64 {
        match self.kept.len() {
            0..=32 => 128,
            33..=64 => 64,
            _ => 32,
        }
    }

    /// Whole steps are multiples of so many iterations; what is left is done one by one. That is dear for elementary functions, so they have steps of
    /// single pairs, too.
    pub(super) fn granule(&self) -> i64 {
        let functions = self.stmts.iter().any(|(_, stmt)| matches!(role(stmt), Some(Role::Function)));
        if functions {
            2
        } else {
            2 * self.pairs as i64
        }
    }

    /// The number of the state that a variable is the next of, and how it is joined.
    pub(super) fn join_of(&self, next: Var) -> Option<(usize, Join)> {
        let number = self.joins.iter().position(|(v, _)| *v == next)?;
        Some((number, self.joins[number].1))
    }

    /// Finds what must be kept between phases.
    fn keep(&mut self, l: &For, phase: &FxHashMap<Var, usize>) -> Option<()> {
        let mut kept: FxHashMap<Var, usize> = FxHashMap::default();
        let mut possible = true;
        for (at, stmt) in &self.stmts {
            // The results of functions are always read from their buffers.
            if matches!(role(stmt), Some(Role::Function)) {
                kept.extend(stmt.binds.iter().map(|v| (*v, at + 1)));
            }
            stmt.op.for_each_operand(&mut |a| {
                let Some(var) = a.var().filter(|v| !self.cheap.contains_key(v)) else { return };
                if let Some(from) = phase.get(&var).filter(|from| *from < at && var != l.index) {
                    possible &= var.ty.scalar != Scalar::Int;
                    kept.insert(var, *from);
                }
            });
        }
        for result in &l.body.results {
            possible &= result.ty().scalar != Scalar::Int
                || result.var().is_none_or(|v| v == l.index || !phase.contains_key(&v) || self.cheap.contains_key(&v));
        }
        self.kept = kept;
        (possible && self.kept.len() <= MOST_BUFFERS).then_some(())
    }
}

/// Whether a statement's element is that of the next place in the next iteration.
fn consecutive(stmt: &Stmt, l: &For, cheap: &FxHashMap<Var, &Stmt>) -> bool {
    let index = match &stmt.op {
        Op::Get { index, .. } | Op::Add { index, .. } => index,
        _ => return false,
    };
    let outside = |a: &Atom| a.var().is_none_or(|v| v != l.index && !cheap.contains_key(&v));
    let Some((last, others)) = index.split_last() else { return false };
    others.iter().all(outside) && last.var().is_some_and(|v| follows_index(v, l, cheap))
}

/// Whether a variable is one more in the next iteration.
fn follows_index(var: Var, l: &For, cheap: &FxHashMap<Var, &Stmt>) -> bool {
    if var == l.index {
        return true;
    }
    let outside = |a: &Atom| a.var().is_none_or(|v| v != l.index && !cheap.contains_key(&v));
    let follows = |a: &Atom| a.var().is_some_and(|v| follows_index(v, l, cheap));
    match cheap.get(&var).map(|s| &s.op) {
        Some(Op::Scalar { prim: Prim::AddInt, args }) => {
            matches!(&args[..], [a, b] if follows(a) && outside(b) || outside(a) && follows(b))
        }
        Some(Op::Scalar { prim: Prim::SubInt, args }) => matches!(&args[..], [a, b] if follows(a) && outside(b)),
        _ => false,
    }
}
