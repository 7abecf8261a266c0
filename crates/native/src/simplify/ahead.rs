//! Reads in the branches of loops, of places that are there whichever side is taken, move in front of the branch, and out of loops in which they do not change.
//! What is left of such a branch is arithmetic, which can be computed on both sides: the loop waits for no decision, and can run in vector lanes. When all
//! derivatives have been taken.
//!
//! What each pair of different things adds to places of both, where `i <> j`, is added by every pair: what a thing does not do to itself is zero.

use super::failures::can_fail;
use super::inside::Inside;
use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use rustc_hash::FxHashSet;

/// With more reads than this, what is read for nothing takes longer than to decide.
const READS: usize = 16;

/// More numbers than this do not stay in registers while a loop runs.
const ALIKE: usize = 8;

/// Says whether anything was moved.
pub fn run(block: &mut Block) -> bool {
    let mut ahead = Ahead {
        known: Inside::of(block),
        around: FxHashSet::default(),
        equalities: FxHashSet::default(),
        moved: false,
    };
    ahead.block(block);
    ahead.moved
}

struct Ahead {
    known: Inside,
    /// What the loop around has bound so far.
    around: FxHashSet<Var>,
    /// Whether two integers are equal.
    equalities: FxHashSet<Var>,
    moved: bool,
}

impl Ahead {
    fn block(&mut self, block: &mut Block) {
        with_stack(|| {
            let mut out = Vec::with_capacity(block.stmts.len());
            let mut stmts = std::mem::take(&mut block.stmts).into_iter();
            let mut foreseen = 0;
            while let Some(first) = stmts.as_slice().first() {
                if foreseen == 0 && !can_fail(first) {
                    foreseen = self.foresee(stmts.as_slice());
                }
                foreseen = foreseen.saturating_sub(1);
                let Some(mut stmt) = stmts.next() else { break };
                let from = out.len();
                self.stmt(&mut stmt, &mut out);
                self.known.after(&stmt);
                let additions = self.for_all(&mut stmt);
                out.push(stmt);
                out.extend(additions);
                self.around.extend(out[from..].iter().flat_map(|stmt| &stmt.binds));
            }
            block.stmts = out;
        })
    }

    /// Learns what is read before anything can fail, and so wherever the first of these statements is reached; how many there are.
    fn foresee(&mut self, stmts: &[Stmt]) -> usize {
        let safe = stmts.iter().position(can_fail).unwrap_or(stmts.len());
        for stmt in stmts[..safe].iter().filter(|stmt| matches!(stmt.op, Op::Get { .. })) {
            self.known.after(stmt);
        }
        safe
    }

    /// Looks into a statement, and takes reads out of it.
    fn stmt(&mut self, stmt: &mut Stmt, out: &mut Vec<Stmt>) {
        let mark = self.known.begin();
        match &mut stmt.op {
            Op::For(l) => {
                let params = l.carried.iter().map(|(state, _)| *state).chain([l.index]).collect();
                let around = std::mem::replace(&mut self.around, params);
                self.known.enter_loop(l);
                self.known.foresee(l);
                self.block(&mut l.body);
                self.known.leave_loop();
                self.known.end(&mark);
                let bound = std::mem::replace(&mut self.around, around);
                let alike = self.ahead_of(&l.body, bound);
                if alike.len() <= ALIKE {
                    self.take(&mut l.body, alike, out);
                }
            }
            Op::While(l) => {
                let params = l.carried.iter().map(|(state, _)| *state).collect();
                let around = std::mem::replace(&mut self.around, params);
                self.block(&mut l.body);
                self.known.end(&mark);
                self.around = around;
            }
            Op::If { cond, then, otherwise, .. } => {
                self.known.suppose(*cond);
                self.block(then);
                self.known.end(&mark);
                self.block(otherwise);
                self.known.end(&mark);
                // What is decided before the loop is decided once.
                let varies = cond.var().is_some_and(|cond| self.around.contains(&cond));
                let reads = [&**then, &**otherwise].into_iter().map(reads_of_arithmetic).sum::<Option<usize>>();
                if varies && reads.is_some_and(|reads| (1..=READS).contains(&reads)) {
                    for side in [then, otherwise] {
                        let all = self.ahead_of(side, FxHashSet::default());
                        self.take(side, all, out);
                    }
                }
            }
            Op::Scalar { prim: Prim::Equal, args } if args[0].ty() == Type::INT => {
                self.equalities.extend(&stmt.binds);
            }
            _ => {}
        }
    }

    /// Takes out of a branch in a loop what is added where two integers differ, to places that are there anyway.
    fn for_all(&mut self, stmt: &mut Stmt) -> Vec<Stmt> {
        let Op::If { cond: Atom::Var(cond), then, otherwise, .. } = &mut stmt.op else { return Vec::new() };
        let varies = self.around.contains(cond) && self.equalities.contains(cond);
        if !varies || [&*then, &*otherwise].into_iter().any(|side| reads_of_arithmetic(side) != Some(0)) {
            return Vec::new();
        }
        let (mut additions, mut rest) = (Vec::new(), Vec::new());
        let bound: FxHashSet<Var> = otherwise.stmts.iter().flat_map(|stmt| &stmt.binds).copied().collect();
        for mut add in std::mem::take(&mut otherwise.stmts) {
            match &mut add.op {
                Op::Add { acc, index, value }
                    if value.ty() == Type::REAL
                        && index.len() == acc.ty.rank as usize
                        && !index.iter().any(|at| at.var().is_some_and(|v| bound.contains(&v)))
                        && self.known.is_inside(*acc, index) =>
                {
                    let chosen = Var::fresh("t", Type::REAL);
                    otherwise.results.push(std::mem::replace(value, chosen.into()));
                    // A sum that is negative zero stays so.
                    then.results.push(Atom::Real(-0.0));
                    stmt.binds.push(chosen);
                    additions.push(add);
                }
                _ => rest.push(add),
            }
        }
        otherwise.stmts = rest;
        self.moved |= !additions.is_empty();
        additions
    }

    /// What a block reads of places that are known, and there, before it. `bound`: what is only known inside.
    fn ahead_of(&self, block: &Block, mut bound: FxHashSet<Var>) -> FxHashSet<Var> {
        block.stmts.iter().for_each(|stmt| bound.extend(&stmt.binds));
        let is_known = |a: &Atom| a.var().is_none_or(|v| !bound.contains(&v));
        let found = block.stmts.iter().filter_map(|stmt| match (&stmt.op, &stmt.binds[..]) {
            (Op::Get { array, index }, [element]) if !element.ty.is_counted() => {
                let known = is_known(&(*array).into()) && index.iter().all(is_known);
                (known && self.known.is_inside(*array, index)).then_some(*element)
            }
            _ => None,
        });
        found.collect()
    }

    /// Takes these reads out of a block.
    fn take(&mut self, block: &mut Block, reads: FxHashSet<Var>, out: &mut Vec<Stmt>) {
        if reads.is_empty() {
            return;
        }
        self.moved = true;
        let stmts = std::mem::take(&mut block.stmts).into_iter();
        let (moved, rest) = stmts.partition::<Vec<_>, _>(|stmt| stmt.binds.iter().any(|v| reads.contains(v)));
        block.stmts = rest;
        out.extend(moved);
    }
}

/// How often a block reads, if it does nothing else but arithmetic and additions.
fn reads_of_arithmetic(block: &Block) -> Option<usize> {
    let reads = |stmt: &Stmt| match &stmt.op {
        Op::Get { .. } => Some(1),
        Op::Scalar { prim: Prim::DivInt | Prim::ModInt, .. } => None,
        Op::Scalar { .. } | Op::Select { .. } | Op::Copy { .. } | Op::Stop { .. } | Op::Dim { .. } => Some(0),
        Op::Add { .. } => Some(0),
        Op::If { then, otherwise, .. } => [then, otherwise].iter().map(|side| reads_of_arithmetic(side)).sum(),
        _ => None,
    };
    with_stack(|| block.stmts.iter().map(reads).sum())
}
