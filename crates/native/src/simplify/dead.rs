//! Takes out what nobody looks at: statements, loop results, state, accumulators. Checks stay, and so does what they need.

use crate::flow::*;
use gradus_core::traverse::with_stack;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;

pub fn run(block: &mut Block, module: &Module) {
    let mut own = FxHashSet::default();
    walk::for_each_binder(block, &mut |v| {
        if v.ty.accumulator {
            own.insert(v);
        }
    });
    let mut passed = FxHashSet::default();
    accumulators_in_calls(block, &mut passed);
    let dead = Dead { module, own, passed, failing: RefCell::default() };
    dead.block(block, &mut Live::default(), true);
}

struct Dead<'a> {
    module: &'a Module,
    /// The accumulators opened here; others are somebody else's and always wanted.
    own: FxHashSet<Var>,
    /// The accumulators that calls add to: a call may be kept for its results, and then needs them from open to freeze.
    passed: FxHashSet<Var>,
    /// Whether functions can fail, as far as it was asked.
    failing: RefCell<FxHashMap<FunctionId, bool>>,
}

fn accumulators_in_calls(block: &Block, found: &mut FxHashSet<Var>) {
    walk::for_each_stmt(block, &mut |stmt| {
        if let Op::Call { args, .. } = &stmt.op {
            found.extend(args.iter().filter_map(|a| a.var()).filter(|v| v.ty.accumulator));
        }
    });
}

/// The variables that are needed from some place on.
#[derive(Default)]
struct Live<'a> {
    own: FxHashSet<Var>,
    /// Those found before a trial began.
    before: Option<&'a Live<'a>>,
}

impl<'a> Live<'a> {
    /// The same with room for more, for a trial.
    fn on_trial(&'a self) -> Live<'a> {
        Live { own: FxHashSet::default(), before: Some(self) }
    }

    fn contains(&self, var: &Var) -> bool {
        self.own.contains(var) || self.before.is_some_and(|before| before.contains(var))
    }

    fn extend(&mut self, vars: impl IntoIterator<Item = Var>) {
        self.own.extend(vars);
    }
}

impl Dead<'_> {
    /// Takes dead statements out; `live` gets the variables that the block needs. `checks`: whether failing counts; in a loop that is
    /// run again it does not, since the other run makes the same checks.
    fn block(&self, block: &mut Block, live: &mut Live<'_>, checks: bool) {
        with_stack(|| {
            live.extend(block.results.iter().filter_map(|a| a.var()));
            let mut kept = Vec::with_capacity(block.stmts.len());
            for mut stmt in std::mem::take(&mut block.stmts).into_iter().rev() {
                if self.stmt(&mut stmt, live, checks) {
                    kept.push(stmt);
                }
            }
            kept.reverse();
            block.stmts = kept;
        })
    }

    /// Whether to keep a statement; if so, its nested blocks are cleaned and its operands become live.
    fn stmt(&self, stmt: &mut Stmt, live: &mut Live<'_>, checks: bool) -> bool {
        let wanted = stmt.binds.iter().any(|v| live.contains(v));
        let replayed = match &stmt.op {
            Op::For(l) => l.replayed,
            Op::If { replayed, .. } => *replayed,
            _ => false,
        };
        let checks = checks && !replayed;
        // A check protects the reads after it, so it stays wherever its block stays.
        let is_check = matches!(&stmt.op, Op::Check { .. });
        if !wanted && !is_check && !self.has_effect(&stmt.op, live, checks) {
            return false;
        }
        match &mut stmt.op {
            Op::For(l) => {
                let keep = self.trim(&l.carried, &l.body, 0, &stmt.binds, live, checks);
                retain(&mut stmt.binds, &keep);
                retain(&mut l.body.results, &keep);
                retain(&mut l.carried, &keep);
                self.block(&mut l.body, live, checks);
            }
            Op::While(l) => {
                let keep = self.trim(&l.carried, &l.body, 1, &stmt.binds, live, checks);
                retain(&mut stmt.binds, &keep);
                retain(&mut l.body.results, &[vec![true], keep.clone()].concat());
                retain(&mut l.carried, &keep);
                self.block(&mut l.body, live, checks);
            }
            Op::If { then, otherwise, .. } => {
                let keep: Vec<bool> = stmt.binds.iter().map(|v| live.contains(v)).collect();
                retain(&mut stmt.binds, &keep);
                retain(&mut then.results, &keep);
                retain(&mut otherwise.results, &keep);
                self.block(then, live, checks);
                self.block(otherwise, live, checks);
            }
            _ => {}
        }
        stmt.op.for_each_operand(&mut |a| live.extend(a.var()));
        true
    }

    /// Whether running the operation matters beyond its results. `checks`: whether failing counts.
    fn has_effect(&self, op: &Op, live: &Live<'_>, checks: bool) -> bool {
        let wanted = |acc: &Var| live.contains(acc) || !self.own.contains(acc);
        match op {
            Op::Check { .. } => checks,
            Op::Plug { .. } | Op::Push { .. } | Op::Pop { .. } => true,
            Op::Add { acc, .. } => wanted(acc),
            Op::Product(product) => wanted(&product.acc),
            Op::Freeze { acc } => self.passed.contains(acc),
            Op::Call { function, args } => {
                let adds = args.iter().filter_map(|a| a.var()).any(|v| v.ty.accumulator && wanted(&v));
                adds || (checks && self.is_failing(*function))
            }
            Op::If { .. } | Op::For(_) | Op::While(_) => {
                op.blocks().any(|block| block.stmts.iter().any(|s| with_stack(|| self.has_effect(&s.op, live, checks))))
            }
            Op::Scalar { .. }
            | Op::Copy { .. }
            | Op::Stop { .. }
            | Op::Select { .. }
            | Op::Dim { .. }
            | Op::Get { .. }
            | Op::Set { .. }
            | Op::Fill { .. }
            | Op::Literal { .. }
            | Op::Cell { .. }
            | Op::Tag { .. }
            | Op::Hole { .. }
            | Op::Unpack { .. }
            | Op::Digits { .. }
            | Op::Open { .. } => false,
        }
    }

    fn is_failing(&self, function: FunctionId) -> bool {
        let known = self.failing.borrow().get(&function).copied();
        known.unwrap_or_else(|| {
            let failing = self.can_fail(function, &mut FxHashSet::default());
            self.failing.borrow_mut().insert(function, failing);
            failing
        })
    }

    fn can_fail(&self, function: FunctionId, seen: &mut FxHashSet<FunctionId>) -> bool {
        fn block_can_fail(dead: &Dead<'_>, block: &Block, seen: &mut FxHashSet<FunctionId>) -> bool {
            block.stmts.iter().any(|stmt| match &stmt.op {
                Op::Check { .. } => true,
                Op::Call { function, .. } => dead.can_fail(*function, seen),
                op => op.blocks().any(|b| with_stack(|| block_can_fail(dead, b, seen))),
            })
        }
        seen.insert(function) && block_can_fail(self, &self.module.function(function).body, seen)
    }

    /// Which results of a loop to keep: those wanted, and the state that these depend on.
    fn trim(
        &self,
        carried: &[(Var, Atom)],
        body: &Block,
        skip: usize,
        binds: &[Var],
        live: &Live<'_>,
        checks: bool,
    ) -> Vec<bool> {
        let mut keep: Vec<bool> = binds.iter().map(|v| live.contains(v)).collect();
        // State that is wanted anyway asks for no trial.
        while keep.iter().take(carried.len()).any(|keep| !keep) {
            let mut trial = body.clone();
            trial.results.truncate(skip);
            let wanted = body.results.iter().skip(skip).zip(&keep).filter(|(_, keep)| **keep);
            trial.results.extend(wanted.map(|(a, _)| *a));
            let mut needed = live.on_trial();
            self.block(&mut trial, &mut needed, checks);
            let before = keep.clone();
            for (i, (var, _)) in carried.iter().enumerate() {
                keep[i] |= needed.contains(var);
            }
            if keep == before {
                break;
            }
        }
        keep
    }
}

fn retain<T>(items: &mut Vec<T>, keep: &[bool]) {
    let mut flags = keep.iter().copied().chain(std::iter::repeat(true));
    items.retain(|_| flags.next().unwrap_or(true));
}
