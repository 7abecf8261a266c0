//! Loops whose branches only compute numbers, with both sides computed and chosen from, so that they can run in vector lanes. Arithmetic cannot fail,
//! and a sum does not notice a zero; what is checked on one side holds on the other. An array may have no such place there, so it is neither read nor added to: such a
//! statement stays under its condition, by itself ([`guarded`]).

use crate::flow::*;
use gradus_core::Prim;
use gradus_source::Span;

/// The loop without branches but those around one read or addition; nothing if it has none, or others.
pub fn straightened(l: &For) -> Option<For> {
    if !l.body.stmts.iter().any(|s| matches!(s.op, Op::If { .. })) {
        return None;
    }
    let mut stmts = Vec::new();
    flatten(&l.body.stmts, None, &mut stmts)?;
    let body = Block { stmts, results: l.body.results.clone() };
    Some(For { index: l.index, count: l.count, carried: l.carried.clone(), body, replayed: l.replayed })
}

/// The one statement under a condition, as [`straightened`] leaves it.
pub fn guarded(stmt: &Stmt) -> Option<(Guard, &Stmt)> {
    let Op::If { cond, then, otherwise, .. } = &stmt.op else { return None };
    let (side, empty, taken) =
        if otherwise.stmts.is_empty() { (then, otherwise, true) } else { (otherwise, then, false) };
    let [only] = &side.stmts[..] else { return None };
    let numbers = empty.results.iter().all(|result| result.var().is_none());
    let is_one = matches!(only.op, Op::Get { .. } | Op::Add { .. }) && side.results.len() == only.binds.len();
    (is_one && numbers && empty.stmts.is_empty()).then_some((Guard { cond: *cond, taken }, only))
}

/// When a statement is reached: if the condition is as said.
#[derive(Clone, Copy)]
pub struct Guard {
    pub cond: Atom,
    pub taken: bool,
}

impl Guard {
    /// A statement under this condition; what it binds is zero elsewhere.
    pub fn around(self, stmt: Stmt) -> Stmt {
        let inner: Vec<Var> = stmt.binds.iter().map(|v| v.refresh()).collect();
        let results = inner.iter().map(|v| Atom::Var(*v)).collect();
        let zeros = stmt.binds.iter().map(|v| zero(v.ty)).collect();
        let side = Block { stmts: vec![Stmt { binds: inner, ..stmt.clone() }], results };
        let empty = Block { stmts: Vec::new(), results: zeros };
        let (then, otherwise) = if self.taken { (side, empty) } else { (empty, side) };
        Stmt { op: Op::branch(self.cond, then, otherwise, false), ..stmt }
    }

    /// What is chosen: a value under this condition, another elsewhere.
    fn choice(self, value: Atom, elsewhere: Atom) -> Op {
        let (then, otherwise) = if self.taken { (value, elsewhere) } else { (elsewhere, value) };
        Op::Select { cond: self.cond, then, otherwise }
    }

    /// This inside another.
    fn inside(self, outer: Option<Guard>, span: Span, out: &mut Vec<Stmt>) -> Guard {
        let Some(outer) = outer else { return self };
        let mut chosen = |op: Op| {
            let var = Var::fresh("t", Type::BOOL);
            out.push(Stmt { binds: vec![var], op, span });
            Atom::Var(var)
        };
        let holds = match outer.taken {
            true => outer.cond,
            false => chosen(outer.choice(Atom::Bool(true), Atom::Bool(false))),
        };
        Guard { cond: chosen(self.choice(holds, Atom::Bool(false))), taken: true }
    }
}

fn zero(ty: Type) -> Atom {
    match ty.scalar {
        Scalar::Int => Atom::Int(0),
        Scalar::Bool => Atom::Bool(false),
        _ => Atom::Real(0.0),
    }
}

fn flatten(stmts: &[Stmt], under: Option<Guard>, out: &mut Vec<Stmt>) -> Option<()> {
    for stmt in stmts {
        let span = stmt.span;
        match (&stmt.op, under) {
            (Op::If { cond, then, otherwise, .. }, _) => {
                for (side, taken) in [(then, true), (otherwise, false)] {
                    let asks =
                        |s: &Stmt| matches!(s.op, Op::Add { .. } | Op::Get { .. } | Op::Check { .. } | Op::If { .. });
                    let mut guard = Guard { cond: *cond, taken };
                    if side.stmts.iter().any(asks) {
                        guard = guard.inside(under, span, out);
                    }
                    flatten(&side.stmts, Some(guard), out)?;
                }
                for (i, bind) in stmt.binds.iter().enumerate() {
                    let op = Op::Select { cond: *cond, then: then.results[i], otherwise: otherwise.results[i] };
                    out.push(Stmt { binds: vec![*bind], op, span });
                }
            }
            (Op::Add { acc, value, .. }, Some(guard)) if acc.ty.rank == 0 => {
                let chosen = Var::fresh("t", Type::REAL);
                out.push(Stmt { binds: vec![chosen], op: guard.choice(*value, Atom::Real(0.0)), span });
                let op = Op::Add { acc: *acc, index: Vec::new(), value: chosen.into() };
                out.push(Stmt { binds: Vec::new(), op, span });
            }
            (Op::Add { .. } | Op::Get { .. }, Some(guard)) if stmt.binds.iter().all(|v| !v.ty.is_counted()) => {
                out.push(guard.around(stmt.clone()));
            }
            (Op::Check { cond, failure }, Some(guard)) => {
                let chosen = Var::fresh("t", Type::BOOL);
                out.push(Stmt { binds: vec![chosen], op: guard.choice(*cond, Atom::Bool(true)), span });
                out.push(Stmt { binds: Vec::new(), op: Op::Check { cond: chosen.into(), failure: *failure }, span });
            }
            // Arrays are counted, and a division is only known to be right on its own side.
            (Op::Add { .. } | Op::Get { .. }, Some(_)) => return None,
            (Op::Scalar { prim: Prim::DivInt | Prim::ModInt, .. }, Some(_)) => return None,
            _ => out.push(stmt.clone()),
        }
    }
    Some(())
}
