//! Loops whose first iteration is different, as in `if i = 0 then .. else ..`: the others by themselves can run in vector lanes.

use crate::flow::walk::Renaming;
use crate::flow::*;
use crate::simplify;
use gradus_core::Prim;

/// A loop whose first iteration is different: that one, and the loop for the others.
pub struct Peeled {
    pub first: For,
    pub others: For,
}

/// Takes a loop apart that asks whether it is in its first iteration.
pub fn peeled(l: &For) -> Option<Peeled> {
    let asks = |stmt: &&Stmt| match &stmt.op {
        Op::Scalar { prim: Prim::Equal, args } => args[..] == [l.index.into(), Atom::Int(0)],
        _ => false,
    };
    let is_first = *l.body.stmts.iter().find(asks)?.binds.first()?;
    let decides = |stmt: &Stmt| matches!(&stmt.op, Op::If { cond, .. } if cond.var() == Some(is_first));
    if !l.carried.is_empty() || !l.body.stmts.iter().any(decides) {
        return None;
    }
    let mut first = l.clone();
    first.body = Renaming { map: [(l.index, Atom::Int(0))].into_iter().collect() }.block(&l.body);
    simplify::known(&mut first.body);
    let mut others = l.clone();
    others.body.stmts.retain(|stmt| stmt.binds != [is_first]);
    others.body = Renaming { map: [(is_first, Atom::Bool(false))].into_iter().collect() }.block(&others.body);
    simplify::known(&mut others.body);
    Some(Peeled { first, others })
}
