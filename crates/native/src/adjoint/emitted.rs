//! What a trace keeps of a forward sweep: as little as the rest can be computed from cheaply.

use super::*;
use crate::flow::scalar::is_cheap;

/// What a forward sweep wrote: its variables, and how to have the cheap ones again.
#[derive(Default)]
pub(super) struct Emitted {
    pub(super) bound: FxHashSet<Var>,
    cheap: Vec<Stmt>,
    /// Whether it is the body of a loop, so that what it keeps counts more than what is kept outside.
    repeated: bool,
    /// Arrays that the backward sweep has anyway.
    given: FxHashSet<Var>,
}

impl Emitted {
    pub(super) fn new(stmts: &[Stmt], params: &[Var], repeated: bool, given: &FxHashSet<Var>) -> Emitted {
        let params = params.iter().copied().filter(|v| !given.contains(v));
        let mut bound: FxHashSet<Var> = params.filter(|v| !v.ty.accumulator).collect();
        bound.extend(stmts.iter().flat_map(|s| s.binds.iter().copied()).filter(|v| !v.ty.accumulator));
        let is_cheap_again = |stmt: &&Stmt| match &stmt.op {
            Op::Scalar { prim, .. } => is_cheap(*prim),
            Op::Select { .. } | Op::Dim { .. } | Op::Tag { .. } | Op::Copy { .. } => true,
            Op::Get { array, .. } => given.contains(array) && stmt.binds.iter().all(|v| !v.ty.is_counted()),
            _ => false,
        };
        Emitted { bound, cheap: stmts.iter().filter(is_cheap_again).cloned().collect(), repeated, given: given.clone() }
    }

    /// The variables to keep, and statements that compute the others from these.
    pub(super) fn cheapest(&self, mut kept: Vec<Var>) -> (Vec<Var>, Vec<Stmt>) {
        let mut again = self.known_from_outside(&mut kept);
        let mut others = Vec::new();
        for stmt in self.cheap.iter().rev() {
            let [y] = stmt.binds[..] else { continue };
            if !kept.contains(&y) {
                continue;
            }
            let mut at_hand = true;
            stmt.op.for_each_operand(&mut |a| {
                if let Some(v) = a.var() {
                    // What is outside may have to be kept there: worth it for many iterations.
                    let outside = self.repeated && !self.bound.contains(&v) && !v.ty.accumulator;
                    at_hand &= kept.contains(&v) || self.given.contains(&v) || outside;
                }
            });
            if at_hand {
                kept.retain(|v| *v != y);
                others.push(stmt.clone());
            }
        }
        again.extend(others.into_iter().rev());
        (kept, again)
    }

    /// Takes out of `kept` the integers and booleans of an iteration that follow from its number and what is outside; gives the statements
    /// that compute them.
    fn known_from_outside(&self, kept: &mut Vec<Var>) -> Vec<Stmt> {
        let mut known: FxHashSet<Var> = FxHashSet::default();
        let mut all = Vec::new();
        for stmt in self.cheap.iter().filter(|_| self.repeated) {
            let mut follows = stmt.binds.iter().all(|v| v.ty == Type::INT || v.ty == Type::BOOL);
            stmt.op.for_each_operand(&mut |a| {
                let at_hand = |v: Var| known.contains(&v) || (!self.bound.contains(&v) && !v.ty.accumulator);
                follows &= !a.ty().is_counted() && a.var().is_none_or(at_hand);
            });
            if follows {
                known.extend(stmt.binds.iter().copied());
                all.push(stmt);
            }
        }
        let mut wanted: FxHashSet<Var> = kept.iter().copied().filter(|v| known.contains(v)).collect();
        kept.retain(|v| !known.contains(v));
        let mut again = Vec::new();
        for stmt in all.into_iter().rev() {
            if stmt.binds.iter().any(|v| wanted.contains(v)) {
                stmt.op.for_each_operand(&mut |a| wanted.extend(a.var()));
                again.push(stmt.clone());
            }
        }
        again.reverse();
        again
    }
}
