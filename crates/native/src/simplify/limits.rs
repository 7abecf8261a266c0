//! A loop that looks in each iteration whether its index, or a number that is by a constant larger, is less than a length looks once, before the first, whether
//! there are more iterations. Later loops of as many then need not look at all.

use super::failures::can_fail;
use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use gradus_source::Span;
use rustc_hash::FxHashSet;

/// With more lengths, finding out which is exceeded first would take too long.
const FEW: usize = 4;
/// What is added to an index is less, so that no sum is too large.
const FAR: i64 = 1 << 32;

pub fn run(block: &mut Block) {
    let lengths = walk::lengths(block);
    if !lengths.is_empty() {
        before_loops(block, &lengths);
    }
}

fn before_loops(block: &mut Block, lengths: &FxHashSet<Var>) {
    with_stack(|| {
        let mut out = Vec::with_capacity(block.stmts.len());
        for mut stmt in std::mem::take(&mut block.stmts) {
            stmt.op.blocks_mut().for_each(|inner| before_loops(inner, lengths));
            if let Op::For(l) = &mut stmt.op {
                let limits = limits(l, lengths);
                if !limits.is_empty() {
                    let is_limit = |stmt: &Stmt| limits.iter().any(|limit| limit.is_checked_by(stmt));
                    l.body.stmts.retain(|stmt| !is_limit(stmt));
                    check(limits, l.count, &mut out);
                }
            }
            out.push(stmt);
        }
        block.stmts = out;
    })
}

/// A length that the index of a loop must be less than, by more than `past`.
struct Limit {
    cond: Var,
    length: Atom,
    past: i64,
    failure: Failure,
    span: Span,
}

impl Limit {
    fn is_checked_by(&self, stmt: &Stmt) -> bool {
        matches!(&stmt.op, Op::Check { cond, .. } if *cond == self.cond.into())
    }
}

/// The limits of a loop's index in the order in which they are looked at, if nothing else can fail in the loop.
fn limits(l: &For, lengths: &FxHashSet<Var>) -> Vec<Limit> {
    let mut limits: Vec<Limit> = Vec::new();
    for stmt in l.body.stmts.iter().filter(|stmt| can_fail(stmt)) {
        let Op::Check { cond, failure } = &stmt.op else { return Vec::new() };
        let made = |v: Var| l.body.stmts.iter().find(|other| other.binds.contains(&v)).map(|made| &made.op);
        let args = match cond.var().and_then(made) {
            Some(Op::Scalar { prim: Prim::Less, args }) => args,
            _ => return Vec::new(),
        };
        let past = match args[0] {
            Atom::Var(place) if place == l.index => Some(0),
            Atom::Var(place) => made(place).and_then(|op| more_than(l.index, op)),
            _ => None,
        };
        match (cond, args[1], past) {
            (Atom::Var(cond), Atom::Var(n), Some(past @ 0..FAR)) if lengths.contains(&n) && made(n).is_none() => {
                limits.push(Limit { cond: *cond, length: n.into(), past, failure: *failure, span: stmt.span });
            }
            _ => return Vec::new(),
        }
    }
    limits.truncate(if limits.len() > FEW { 0 } else { FEW });
    limits
}

/// By how much the result of an operation is more than a variable, if that is known.
fn more_than(var: Var, op: &Op) -> Option<i64> {
    let Op::Scalar { prim: Prim::AddInt, args } = op else { return None };
    match args[..] {
        [Atom::Var(v), Atom::Int(k)] | [Atom::Int(k), Atom::Var(v)] if v == var => Some(k),
        _ => None,
    }
}

/// Checks that there are not more iterations than each length allows. That is not negative, so without iterations there are not. The first to be exceeded is
/// the least, and of equal ones the first that an iteration looks at.
fn check(mut limits: Vec<Limit>, count: Atom, out: &mut Vec<Stmt>) {
    for limit in limits.iter_mut().filter(|limit| limit.past > 0) {
        let left = scalar(Prim::SubInt, [limit.length, Atom::Int(limit.past)], limit.span, out);
        let too_short = scalar(Prim::Less, [left, Atom::Int(0)], limit.span, out);
        limit.length = select(too_short, Atom::Int(0), left, limit.span, out);
    }
    let mut enough = Vec::new();
    for limit in &limits {
        enough.push(scalar(Prim::LessEqual, [count, limit.length], limit.span, out));
    }
    for (at, limit) in limits.iter().enumerate() {
        let mut cond = enough[at];
        // Fails only if no later one is exceeded before.
        for later in &limits[at + 1..] {
            let is_less = scalar(Prim::Less, [later.length, limit.length], limit.span, out);
            cond = select(is_less, Atom::Bool(true), cond, limit.span, out);
        }
        out.push(Stmt { binds: Vec::new(), op: Op::Check { cond, failure: limit.failure }, span: limit.span });
    }
    // By now all of them hold.
    for (limit, cond) in limits.iter().zip(enough).take(limits.len() - 1) {
        out.push(Stmt { binds: Vec::new(), op: Op::Check { cond, failure: limit.failure }, span: limit.span });
    }
}

fn scalar(prim: Prim, args: [Atom; 2], span: Span, out: &mut Vec<Stmt>) -> Atom {
    let ty = if prim == Prim::SubInt { Type::INT } else { Type::BOOL };
    let result = Var::fresh("t", ty);
    out.push(Stmt { binds: vec![result], op: Op::Scalar { prim, args: args.to_vec() }, span });
    result.into()
}

fn select(cond: Atom, then: Atom, otherwise: Atom, span: Span, out: &mut Vec<Stmt>) -> Atom {
    let result = Var::fresh("t", then.ty());
    out.push(Stmt { binds: vec![result], op: Op::Select { cond, then, otherwise }, span });
    result.into()
}
