//! A loop that looks in each iteration whether its index is less than a length looks once, before the first, whether there are more iterations. Later loops of
//! as many then need not look at all.

use super::failures::can_fail;
use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use gradus_source::Span;
use rustc_hash::FxHashSet;

/// With more lengths, finding out which is exceeded first would take too long.
const FEW: usize = 4;

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
            stmt.op.blocks_mut().into_iter().for_each(|inner| before_loops(inner, lengths));
            if let Op::For(l) = &mut stmt.op {
                let limits = limits(l, lengths);
                if !limits.is_empty() {
                    let is_limit = |stmt: &Stmt| limits.iter().any(|limit| limit.is_checked_by(stmt));
                    l.body.stmts.retain(|stmt| !is_limit(stmt));
                    check(&limits, l.count, &mut out);
                }
            }
            out.push(stmt);
        }
        block.stmts = out;
    })
}

/// A length that the index of a loop must be less than.
struct Limit {
    cond: Var,
    length: Atom,
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
        let made = |other: &&Stmt| cond.var().is_some_and(|cond| other.binds.contains(&cond));
        let args = match l.body.stmts.iter().find(made).map(|made| &made.op) {
            Some(Op::Scalar { prim: Prim::Less, args }) if args[0] == l.index.into() => args,
            _ => return Vec::new(),
        };
        let is_inside = |v: Var| l.body.stmts.iter().any(|stmt| stmt.binds.contains(&v));
        match (cond, args[1]) {
            (Atom::Var(cond), Atom::Var(n)) if lengths.contains(&n) && !is_inside(n) => {
                limits.push(Limit { cond: *cond, length: n.into(), failure: *failure, span: stmt.span });
            }
            _ => return Vec::new(),
        }
    }
    limits.truncate(if limits.len() > FEW { 0 } else { FEW });
    limits
}

/// Checks that there are not more iterations than each length. A length is not negative, so without iterations there are not. The first to be exceeded is the
/// least, and of equal ones the first that an iteration looks at.
fn check(limits: &[Limit], count: Atom, out: &mut Vec<Stmt>) {
    let mut enough = Vec::new();
    for limit in limits {
        enough.push(scalar(Prim::LessEqual, [count, limit.length], limit.span, out));
    }
    for (at, limit) in limits.iter().enumerate() {
        let mut cond = enough[at];
        // Fails only if no later one is exceeded before.
        for later in &limits[at + 1..] {
            let is_less = scalar(Prim::Less, [later.length, limit.length], limit.span, out);
            let either = Var::fresh("t", Type::BOOL);
            let op = Op::Select { cond: is_less, then: Atom::Bool(true), otherwise: cond };
            out.push(Stmt { binds: vec![either], op, span: limit.span });
            cond = either.into();
        }
        out.push(Stmt { binds: Vec::new(), op: Op::Check { cond, failure: limit.failure }, span: limit.span });
    }
    // By now all of them hold.
    for (limit, cond) in limits.iter().zip(enough).take(limits.len() - 1) {
        out.push(Stmt { binds: Vec::new(), op: Op::Check { cond, failure: limit.failure }, span: limit.span });
    }
}

fn scalar(prim: Prim, args: [Atom; 2], span: Span, out: &mut Vec<Stmt>) -> Atom {
    let result = Var::fresh("t", Type::BOOL);
    out.push(Stmt { binds: vec![result], op: Op::Scalar { prim, args: args.to_vec() }, span });
    result.into()
}
