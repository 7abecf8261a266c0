//! Recursion that ends where it would call itself. Of a recursion that branches most calls are its last ones, which often only read a number: where a function
//! calls itself, it asks first whether that call would be such an end, and if so does there what it would do. A pass of the end: derivatives have been taken, and
//! loops made of recursion.

use crate::flow::walk::Renaming;
use crate::flow::*;
use crate::recursion;
use gradus_core::traverse::with_stack;

/// What is computed before a function knows whether it ends.
const ASKING: usize = 8;
/// What it does then.
const SHORT: usize = 16;

pub fn run(module: &mut Module) {
    let recursive = recursion::recursive(module);
    let ends: Vec<Option<Ending>> = module
        .functions
        .iter()
        .zip(&recursive)
        .map(|(function, recursive)| Ending::of(function).filter(|_| *recursive))
        .collect();
    if ends.iter().any(|end| end.is_some()) {
        let callers = module.functions.iter_mut().zip(&recursive).filter(|(_, recursive)| **recursive);
        callers.for_each(|(function, _)| write_out(&mut function.body, &ends));
    }
}

/// How a function ends that does nothing but to ask whether it does, and else something longer.
struct Ending {
    params: Vec<Var>,
    asking: Vec<Stmt>,
    cond: Atom,
    /// Whether it ends if the condition holds, or if it does not.
    when: bool,
    side: Block,
}

impl Ending {
    fn of(function: &Function) -> Option<Ending> {
        let (last, asking) = function.body.stmts.split_last()?;
        let Op::If { cond, then, otherwise, .. } = &last.op else { return None };
        let gives = function.body.results == last.binds.iter().map(|v| Atom::Var(*v)).collect::<Vec<_>>();
        if !gives || asking.len() > ASKING || !asking.iter().all(only_asks) {
            return None;
        }
        let (when, side) = [(true, then), (false, otherwise)].into_iter().find(|(_, side)| is_short(side))?;
        let (params, asking) = (function.params.clone(), asking.to_vec());
        Some(Ending { params, asking, cond: *cond, when, side: Block::clone(side) })
    }

    /// The call, unless it would end at once.
    fn before_call(&self, call: Stmt, out: &mut Vec<Stmt>) {
        let Op::Call { args, .. } = &call.op else { return };
        let map = self.params.iter().copied().zip(args.iter().copied()).collect();
        let mut here = Renaming { map };
        out.extend(self.asking.iter().map(|stmt| here.stmt(stmt)));
        let (cond, end) = (here.atom(self.cond), here.block(&self.side));
        let given: Vec<Var> = call.binds.iter().map(|v| v.refresh()).collect();
        let results = given.iter().map(|v| Atom::Var(*v)).collect();
        let longer = Block { stmts: vec![Stmt { binds: given, ..call.clone() }], results };
        let (then, otherwise) = if self.when { (end, longer) } else { (longer, end) };
        out.push(Stmt { op: Op::branch(cond, then, otherwise, false), ..call });
    }
}

/// Whether a statement computes one number of others, and cannot fail.
fn only_asks(stmt: &Stmt) -> bool {
    let computes =
        matches!(stmt.op, Op::Scalar { .. } | Op::Select { .. } | Op::Dim { .. } | Op::Get { .. } | Op::Tag { .. });
    computes && stmt.binds.iter().all(|v| !v.ty.is_counted())
}

/// Whether a side of a branch does nothing that takes long: it computes numbers, may check them, and may add them to something.
fn is_short(side: &Block) -> bool {
    let adds = |stmt: &Stmt| match &stmt.op {
        Op::Check { .. } => true,
        Op::Add { acc, value, .. } => acc.ty.shape().is_none() && !value.ty().is_counted(),
        _ => false,
    };
    let numbers = side.results.iter().all(|result| !result.ty().is_counted());
    numbers && side.stmts.len() <= SHORT && side.stmts.iter().all(|stmt| only_asks(stmt) || adds(stmt))
}

fn write_out(block: &mut Block, ends: &[Option<Ending>]) {
    with_stack(|| {
        let mut out = Vec::with_capacity(block.stmts.len());
        for mut stmt in std::mem::take(&mut block.stmts) {
            stmt.op.blocks_mut().for_each(|inner| write_out(inner, ends));
            let ending = match &stmt.op {
                Op::Call { function, .. } => ends[function.0].as_ref(),
                _ => None,
            };
            match ending {
                Some(ending) => ending.before_call(stmt, &mut out),
                None => out.push(stmt),
            }
        }
        block.stmts = out;
    })
}
