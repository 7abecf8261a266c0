//! Which variables depend on given ones through reals. Everything else has no derivative and costs nothing.

use crate::flow::*;
use gradus_core::traverse::with_stack;
use rustc_hash::FxHashSet;

/// The variables of a block that depend on those already in `active`, accumulators included. Adds them to `active`.
pub fn propagate(block: &Block, active: &mut FxHashSet<Var>) {
    Activity { active }.block(block);
}

struct Activity<'a> {
    active: &'a mut FxHashSet<Var>,
}

impl Activity<'_> {
    fn has(&self, atom: Atom) -> bool {
        atom.var().is_some_and(|v| self.active.contains(&v))
    }

    /// Marks `var` if `when`; only reals, and boxes with reals inside, have derivatives.
    fn mark(&mut self, var: Var, when: bool) {
        if when && var.ty.may_be_active() {
            self.active.insert(var);
        }
    }

    fn block(&mut self, block: &Block) {
        with_stack(|| block.stmts.iter().for_each(|stmt| self.stmt(stmt)))
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.op {
            Op::Stop { .. } => {}
            Op::Scalar { .. }
            | Op::Copy { .. }
            | Op::Select { .. }
            | Op::Dim { .. }
            | Op::Get { .. }
            | Op::Set { .. }
            | Op::Extend { .. }
            | Op::Fill { .. }
            | Op::Literal { .. }
            | Op::Cell { .. }
            | Op::Tag { .. }
            | Op::Unpack { .. }
            | Op::Hole { .. }
            | Op::Plug { .. }
            | Op::Push { .. }
            | Op::Pop { .. }
            | Op::Digits { .. }
            | Op::Check { .. }
            | Op::Open { .. }
            | Op::Product(_)
            | Op::Freeze { .. } => {
                let any = self.any_operand(&stmt.op);
                stmt.binds.iter().for_each(|v| self.mark(*v, any));
            }
            Op::Add { acc, value, .. } => {
                let when = self.has(*value);
                self.mark(*acc, when);
            }
            Op::Call { args, .. } => {
                let any = self.any_operand(&stmt.op);
                stmt.binds.iter().for_each(|v| self.mark(*v, any));
                for arg in args.iter().filter_map(|a| a.var()).filter(|v| v.ty.accumulator) {
                    self.mark(arg, any);
                }
            }
            Op::If { then, otherwise, .. } => {
                self.block(then);
                self.block(otherwise);
                for (i, bind) in stmt.binds.iter().enumerate() {
                    let any = [then, otherwise].iter().any(|b| b.results.get(i).is_some_and(|a| self.has(*a)));
                    self.mark(*bind, any);
                }
            }
            Op::For(l) => self.repeated(&l.carried, &l.body, 0, &stmt.binds),
            Op::While(l) => self.repeated(&l.carried, &l.body, 1, &stmt.binds),
        }
    }

    fn any_operand(&self, op: &Op) -> bool {
        let mut any = false;
        op.for_each_operand(&mut |a| any |= self.has(a));
        any
    }

    /// A loop, until nothing is added. `skip`: how many of the body's results come before the state.
    fn repeated(&mut self, carried: &[(Var, Atom)], body: &Block, skip: usize, binds: &[Var]) {
        for (var, init) in carried {
            let when = self.has(*init);
            self.mark(*var, when);
        }
        loop {
            let before = self.active.len();
            self.block(body);
            for ((var, _), next) in carried.iter().zip(body.results.iter().skip(skip)) {
                let when = self.has(*next);
                self.mark(*var, when);
            }
            if self.active.len() == before {
                break;
            }
        }
        for (i, bind) in binds.iter().enumerate() {
            let state = carried.get(i).is_some_and(|(v, _)| self.active.contains(v));
            let result = body.results.get(i + skip).is_some_and(|a| self.has(*a));
            self.mark(*bind, state || result);
        }
    }
}
