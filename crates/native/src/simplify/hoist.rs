//! Moves arithmetic that does not change from one iteration to the next in front of the loop. Arithmetic cannot fail, so it may
//! be done even if the loop turns out to have no iterations. Reads stay: they are only known to be in bounds where they stand.
//! Loops of which nothing is left but what each iteration checks alike make way for the checks.

use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use rustc_hash::{FxHashMap, FxHashSet};

/// So few iterations may not take a branch once.
const FEW: i64 = 8;

pub fn run(block: &mut Block) {
    with_stack(|| {
        let mut out = Vec::with_capacity(block.stmts.len());
        for mut stmt in std::mem::take(&mut block.stmts) {
            stmt.op.blocks_mut().for_each(run);
            match &mut stmt.op {
                Op::For(l) => {
                    let params = std::iter::once(l.index).chain(l.carried.iter().map(|(v, _)| *v)).collect();
                    out.extend(take_invariant(&mut l.body, params));
                    if let Some(checks) = only_checks(l) {
                        let runs = Var::fresh("t", Type::BOOL);
                        let args = vec![Atom::Int(0), l.count];
                        let op = Op::Scalar { prim: Prim::Less, args };
                        out.push(Stmt { binds: vec![runs], op, span: stmt.span });
                        stmt.op = Op::branch(runs.into(), checks, Block::default(), false);
                    }
                }
                Op::While(l) => {
                    let params = l.carried.iter().map(|(v, _)| *v).collect();
                    out.extend(take_invariant(&mut l.body, params));
                }
                _ => {}
            }
            out.push(stmt);
        }
        block.stmts = out;
    })
}

/// The same for arithmetic in branches of loops, so that these have less to decide; whether there was any. Not for what is differentiated later: where a
/// branch is not taken, its derivative may be infinite.
pub fn out_of_branches(block: &mut Block) -> bool {
    with_stack(|| {
        let mut moved = false;
        let mut out = Vec::with_capacity(block.stmts.len());
        for mut stmt in std::mem::take(&mut block.stmts) {
            for inner in stmt.op.blocks_mut() {
                moved |= out_of_branches(inner);
            }
            if let Op::For(l) = &mut stmt.op {
                if !matches!(l.count, Atom::Int(..FEW)) {
                    let mut inside = l.carried.iter().map(|(v, _)| *v).chain([l.index]).collect();
                    let before = out.len();
                    l.body.stmts.iter_mut().for_each(|stmt| take_from_branch(stmt, &mut inside, &mut out, true));
                    moved |= out.len() > before;
                }
            }
            out.push(stmt);
        }
        block.stmts = out;
        moved
    })
}

/// Moves arrays that each iteration of a loop would make alike in front of it, where the loop that makes one cannot fail and reads others from end to end, so
/// that it may run even if the loop around it does not. Done when loops have been fused: what is only read once is no array any more.
pub fn arrays(block: &mut Block) {
    let mut lengths = Lengths::default();
    lengths.find(block);
    lengths.move_arrays(block);
}

/// What is known of counts.
#[derive(Default)]
struct Lengths {
    /// Lengths, with the array and the axis.
    of: FxHashMap<Var, (Var, u8)>,
    /// Those that are 0 or another one.
    at_most: FxHashMap<Var, Var>,
}

impl Lengths {
    fn find(&mut self, block: &Block) {
        with_stack(|| {
            for stmt in &block.stmts {
                match &stmt.op {
                    Op::Dim { array, axis } => {
                        self.of.insert(stmt.binds[0], (*array, *axis));
                    }
                    Op::Select { then: Atom::Int(0), otherwise: Atom::Var(n), .. }
                    | Op::Select { then: Atom::Var(n), otherwise: Atom::Int(0), .. } => {
                        self.at_most.insert(stmt.binds[0], *n);
                    }
                    op => op.blocks().for_each(|inner| self.find(inner)),
                }
            }
        })
    }

    fn move_arrays(&self, block: &mut Block) {
        with_stack(|| {
            let mut out = Vec::with_capacity(block.stmts.len());
            for mut stmt in std::mem::take(&mut block.stmts) {
                stmt.op.blocks_mut().for_each(|inner| self.move_arrays(inner));
                if let Op::For(l) = &mut stmt.op {
                    let For { body, index, carried, .. } = &mut **l;
                    let mut inside = FxHashSet::from_iter([*index]);
                    inside.extend(carried.iter().map(|(state, _)| *state));
                    let mut kept = Vec::with_capacity(body.stmts.len());
                    for stmt in std::mem::take(&mut body.stmts) {
                        if self.makes_array_alike(&stmt, &inside) {
                            out.push(stmt);
                        } else {
                            inside.extend(stmt.binds.iter().copied());
                            kept.push(stmt);
                        }
                    }
                    body.stmts = kept;
                }
                out.push(stmt);
            }
            block.stmts = out;
        })
    }

    /// Whether a statement makes an array of others and of nothing that changes, and may do so at any time.
    fn makes_array_alike(&self, stmt: &Stmt, changing: &FxHashSet<Var>) -> bool {
        let (Op::For(l), [array]) = (&stmt.op, &stmt.binds[..]) else { return false };
        let whole = Block { stmts: vec![stmt.clone()], results: Vec::new() };
        let outer = walk::free_vars(&whole);
        l.carried.is_empty()
            && array.ty.is_real()
            && outer.iter().any(|v| v.ty.is_array())
            && !outer.iter().any(|v| changing.contains(v) || v.ty.accumulator)
            && !super::failures::can_fail(stmt)
            && self.reads_to_the_end(&whole, &mut Vec::new())
    }

    /// Whether every read in a block is at indices of loops, each of which goes along that axis of the array.
    fn reads_to_the_end(&self, block: &Block, loops: &mut Vec<(Var, Atom)>) -> bool {
        with_stack(|| {
            block.stmts.iter().all(|stmt| match &stmt.op {
                Op::Get { array, index } => index.iter().enumerate().all(|(axis, at)| {
                    let along = loops.iter().find(|(index, _)| *at == (*index).into());
                    along.is_some_and(|(_, count)| self.length(*count) == Some((*array, axis as u8)))
                }),
                Op::For(l) => {
                    loops.push((l.index, l.count));
                    let all = self.reads_to_the_end(&l.body, loops);
                    loops.pop();
                    all
                }
                op => !op.has_blocks(),
            })
        })
    }

    fn length(&self, count: Atom) -> Option<(Var, u8)> {
        let count = count.var()?;
        match self.at_most.get(&count) {
            Some(n) => with_stack(|| self.length((*n).into())),
            None => self.of.get(&count).copied(),
        }
    }
}

/// The body of a loop that only checks what has nothing to do with it, if need be under conditions of that kind.
fn only_checks(l: &mut For) -> Option<Block> {
    fn are_all(block: &Block, index: Var) -> bool {
        let is_other = |atom: &Atom| *atom != index.into();
        with_stack(|| {
            block.stmts.iter().all(|stmt| match &stmt.op {
                Op::Check { cond, .. } => is_other(cond),
                Op::If { cond, then, otherwise, .. } => {
                    is_other(cond) && stmt.binds.is_empty() && [then, otherwise].iter().all(|side| are_all(side, index))
                }
                _ => false,
            })
        })
    }
    let alone = l.carried.is_empty() && l.body.results.is_empty() && !l.body.stmts.is_empty();
    (alone && are_all(&l.body, l.index)).then(|| std::mem::take(&mut l.body))
}

/// Takes the statements out of a loop body that depend on nothing bound in it.
fn take_invariant(body: &mut Block, mut inside: FxHashSet<Var>) -> Vec<Stmt> {
    let (mut invariant, mut rest) = (Vec::new(), Vec::new());
    for mut stmt in std::mem::take(&mut body.stmts) {
        let movable = matches!(stmt.op, Op::Scalar { .. } | Op::Select { .. } | Op::Dim { .. });
        if movable && !depends(&stmt, &inside) {
            invariant.push(stmt);
        } else {
            take_from_branch(&mut stmt, &mut inside, &mut invariant, false);
            rest.push(stmt);
        }
    }
    body.stmts = rest;
    invariant
}

fn depends(stmt: &Stmt, inside: &FxHashSet<Var>) -> bool {
    let mut depends = false;
    stmt.op.for_each_operand(&mut |a| depends |= a.var().is_some_and(|v| inside.contains(&v)));
    depends
}

/// Takes lengths, and what is computed from them, out of a branch; `reals`: arithmetic of all kinds.
fn take_from_branch(stmt: &mut Stmt, inside: &mut FxHashSet<Var>, invariant: &mut Vec<Stmt>, reals: bool) {
    inside.extend(stmt.binds.iter().copied());
    let Op::If { then, otherwise, .. } = &mut stmt.op else { return };
    for side in [then, otherwise] {
        for mut stmt in std::mem::take(&mut side.stmts) {
            let movable = match &stmt.op {
                Op::Dim { .. } => true,
                Op::Scalar { args, .. } => {
                    reals || args.iter().all(|a| a.ty() == Type::INT) && stmt.binds[0].ty != Type::REAL
                }
                Op::Select { .. } => reals,
                _ => false,
            };
            if movable && !depends(&stmt, inside) {
                invariant.push(stmt);
            } else {
                with_stack(|| take_from_branch(&mut stmt, inside, invariant, reals));
                side.stmts.push(stmt);
            }
        }
    }
}
