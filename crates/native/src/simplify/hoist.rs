//! Moves arithmetic that does not change from one iteration to the next in front of the loop. Arithmetic cannot fail, so it may
//! be done even if the loop turns out to have no iterations. Reads stay: they are only known to be in bounds where they stand.
//! Loops of which nothing is left but what each iteration checks alike make way for the checks.

use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use rustc_hash::FxHashSet;

pub fn run(block: &mut Block) {
    with_stack(|| {
        let mut out = Vec::with_capacity(block.stmts.len());
        for mut stmt in std::mem::take(&mut block.stmts) {
            stmt.op.blocks_mut().into_iter().for_each(run);
            match &mut stmt.op {
                Op::For(l) => {
                    let params = std::iter::once(l.index).chain(l.carried.iter().map(|(v, _)| *v)).collect();
                    out.extend(take_invariant(&mut l.body, params));
                    if let Some(checks) = only_checks(l) {
                        let runs = Var::fresh("t", Type::BOOL);
                        let args = vec![Atom::Int(0), l.count];
                        let op = Op::Scalar { prim: Prim::Less, args };
                        out.push(Stmt { binds: vec![runs], op, span: stmt.span });
                        stmt.op =
                            Op::If { cond: runs.into(), then: checks, otherwise: Block::default(), replayed: false };
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
    for stmt in std::mem::take(&mut body.stmts) {
        let movable = matches!(stmt.op, Op::Scalar { .. } | Op::Select { .. } | Op::Dim { .. });
        let mut depends = false;
        stmt.op.for_each_operand(&mut |a| depends |= a.var().is_some_and(|v| inside.contains(&v)));
        if movable && !depends {
            invariant.push(stmt);
        } else {
            inside.extend(stmt.binds.iter().copied());
            rest.push(stmt);
        }
    }
    body.stmts = rest;
    invariant
}
