//! Loops whose branches only compute numbers, with both sides computed and chosen from, so that they can run in vector lanes. Arithmetic cannot fail,
//! and an accumulator does not notice a zero.

use crate::flow::*;
use gradus_core::Prim;

/// The loop without branches; nothing if it has none, or others.
pub fn straightened(l: &For) -> Option<For> {
    if !l.body.stmts.iter().any(|s| matches!(s.op, Op::If { .. })) {
        return None;
    }
    let mut stmts = Vec::new();
    flatten(l.body.stmts.clone(), None, &mut stmts)?;
    Some(For { body: Block { stmts, results: l.body.results.clone() }, ..l.clone() })
}

fn flatten(stmts: Vec<Stmt>, under: Option<(Atom, bool)>, out: &mut Vec<Stmt>) -> Option<()> {
    for stmt in stmts {
        let span = stmt.span;
        match stmt.op {
            Op::If { cond, then, otherwise, .. } => {
                for (side, taken) in [(&then, true), (&otherwise, false)] {
                    // A side inside a side may be neither: its additions would need both conditions.
                    let adds = side.stmts.iter().any(|s| matches!(s.op, Op::Add { .. } | Op::If { .. }));
                    if adds && under.is_some() {
                        return None;
                    }
                    flatten(side.stmts.clone(), Some((cond, taken)), out)?;
                }
                for (i, bind) in stmt.binds.iter().enumerate() {
                    let op = Op::Select { cond, then: then.results[i], otherwise: otherwise.results[i] };
                    out.push(Stmt { binds: vec![*bind], op, span });
                }
            }
            Op::Add { acc, index, value } => match under {
                Some((cond, taken)) => {
                    let zero = Atom::Real(0.0);
                    let (then, otherwise) = if taken { (value, zero) } else { (zero, value) };
                    let chosen = Var::fresh("t", Type::REAL);
                    out.push(Stmt { binds: vec![chosen], op: Op::Select { cond, then, otherwise }, span });
                    let op = Op::Add { acc, index, value: chosen.into() };
                    out.push(Stmt { binds: Vec::new(), op, span });
                }
                None => out.push(Stmt { binds: stmt.binds, op: Op::Add { acc, index, value }, span }),
            },
            // A read, a check or a division is only known to be right on its own side.
            Op::Get { .. } | Op::Check { .. } | Op::Scalar { prim: Prim::DivInt | Prim::ModInt, .. }
                if under.is_some() =>
            {
                return None;
            }
            op => out.push(Stmt { binds: stmt.binds, op, span }),
        }
    }
    Some(())
}
