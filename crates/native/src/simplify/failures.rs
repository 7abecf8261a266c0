//! What can fail, and what would fail first: passes that move statements keep the order of failures.

use super::products::is_among;
use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use rustc_hash::{FxHashMap, FxHashSet};

pub fn can_fail(stmt: &Stmt) -> bool {
    with_stack(|| match &stmt.op {
        Op::Check { .. } | Op::Call { .. } | Op::While(_) => true,
        op => op.blocks().any(|inner| inner.stmts.iter().any(can_fail)),
    })
}

/// Whether statements of a loop fail in the first iteration if they fail at all: nothing that they check changes from one iteration to the next. `varying`
/// is what does, so far.
pub(super) fn fails_alike(stmts: &[Stmt], varying: &mut FxHashSet<Var>) -> bool {
    with_stack(|| {
        stmts.iter().all(|stmt| {
            let mut varies = false;
            stmt.op.for_each_operand(&mut |a| varies |= is_among(varying, a));
            let is_computed =
                matches!(stmt.op, Op::Scalar { .. } | Op::Select { .. } | Op::Dim { .. } | Op::Get { .. });
            if varies || !is_computed {
                varying.extend(stmt.binds.iter().copied());
            }
            match &stmt.op {
                Op::Check { .. } => !varies,
                Op::For(l) if !is_among(varying, l.count) => {
                    varying.extend(l.carried.iter().map(|(state, _)| *state));
                    fails_alike(&l.body.stmts, varying)
                }
                Op::If { then, otherwise, .. } if !varies => {
                    [then, otherwise].into_iter().all(|side| fails_alike(&side.stmts, varying))
                }
                _ => !can_fail(stmt),
            }
        })
    })
}

/// Whether statements fail only where the last of others before them, a loop, does not fail in another way: they check what has been checked before it, or
/// what it checks first.
pub(super) fn fail_later(stmts: &[Stmt], before: &[Stmt]) -> bool {
    let Some((last, others)) = before.split_last() else { return true };
    if !can_fail(last) || !stmts.iter().any(can_fail) {
        return true;
    }
    let mut checks = Checks::default();
    // Whatever else can fail there has not.
    checks.find(others, &mut Vec::new());
    let mut known = std::mem::take(&mut checks.found);
    checks.find(std::slice::from_ref(last), &mut Vec::new());
    let mut first = std::mem::take(&mut checks.found).into_iter().peekable();
    let are_all = checks.find(stmts, &mut Vec::new());
    are_all
        && checks.found.iter().all(|wanted| {
            known.extend(first.next_if(|check| check.is_made_with(wanted)));
            known.iter().any(|check| check.is_made_with(wanted))
        })
}

/// What is checked, and under which conditions.
#[derive(Default)]
struct Checks {
    /// Booleans that say that a number is positive.
    positive: FxHashMap<Var, Atom>,
    found: Vec<Check>,
}

struct Check {
    cond: Atom,
    /// Under all of these.
    under: Vec<Guard>,
}

impl Check {
    /// Whether it is made wherever another one of the same is.
    fn is_made_with(&self, other: &Check) -> bool {
        self.cond == other.cond && self.under.iter().all(|guard| other.under.contains(guard))
    }
}

/// A condition under which statements run.
#[derive(Clone, Copy, PartialEq)]
enum Guard {
    Positive(Atom),
    Is(Atom, bool),
}

impl Checks {
    /// Looks for checks; whether these are all that can fail.
    fn find(&mut self, stmts: &[Stmt], under: &mut Vec<Guard>) -> bool {
        with_stack(|| {
            let mut all = true;
            for stmt in stmts {
                let blocks = match &stmt.op {
                    Op::Check { cond, .. } => {
                        self.found.push(Check { cond: *cond, under: under.clone() });
                        continue;
                    }
                    Op::For(l) => vec![(Guard::Positive(l.count), &l.body)],
                    Op::If { cond, then, otherwise, .. } => {
                        let holds = match cond.var().and_then(|v| self.positive.get(&v)) {
                            Some(count) => Guard::Positive(*count),
                            None => Guard::Is(*cond, true),
                        };
                        vec![(holds, &**then), (Guard::Is(*cond, false), &**otherwise)]
                    }
                    Op::Scalar { prim: Prim::Less, args } if args[0] == Atom::Int(0) => {
                        self.positive.insert(stmt.binds[0], args[1]);
                        continue;
                    }
                    _ => {
                        all &= !can_fail(stmt);
                        continue;
                    }
                };
                for (guard, block) in blocks {
                    under.push(guard);
                    all &= self.find(&block.stmts, under);
                    under.pop();
                }
            }
            all
        })
    }
}
