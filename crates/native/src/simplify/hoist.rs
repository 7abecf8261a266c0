//! Moves arithmetic that does not change from one iteration to the next in front of the loop. Arithmetic cannot fail, so it may
//! be done even if the loop turns out to have no iterations. Reads stay: they are only known to be in bounds where they stand.

use crate::flow::*;
use gradus_core::traverse::with_stack;
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
