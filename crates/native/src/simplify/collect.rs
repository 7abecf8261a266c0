//! An accumulator of zeros that a loop is the first to add to, once in each place, starts as what that loop collects: no zeros are written, and none
//! are read back.

use crate::flow::walk::free_vars;
use crate::flow::*;
use gradus_core::traverse::with_stack;

pub fn run(block: &mut Block) {
    with_stack(|| {
        for stmt in &mut block.stmts {
            stmt.op.blocks_mut().into_iter().for_each(run);
        }
        let mut at = 0;
        while at < block.stmts.len() {
            match first_additions(block, at) {
                Some(adding) => start_after(block, at, adding),
                None => at += 1,
            }
        }
    })
}

fn mentions(stmt: &Stmt, acc: Var) -> bool {
    let mut found = false;
    stmt.op.for_each_operand(&mut |a| found |= a.var() == Some(acc));
    found || stmt.op.blocks().iter().any(|(inner, _)| free_vars(inner).contains(&acc))
}

/// The loop that fills the accumulator opened at `at`, if nobody has added to it before.
fn first_additions(block: &Block, at: usize) -> Option<usize> {
    let Stmt { binds, op: Op::Open { init: Atom::Var(zeros) }, .. } = &block.stmts[at] else { return None };
    let acc = binds[0];
    let made = block.stmts[..at].iter().find(|s| s.binds.contains(zeros))?;
    let Op::Fill { dims, value } = &made.op else { return None };
    if !value.is_real(0.0) {
        return None;
    }
    let later = at + 1 + block.stmts[at + 1..].iter().position(|s| mentions(s, acc))?;
    let Op::For(l) = &block.stmts[later].op else { return None };
    let own =
        |s: &&Stmt| matches!(&s.op, Op::Add { acc: to, index, .. } if *to == acc && index[..] == [l.index.into()]);
    let everywhere = l.carried.is_empty() && dims[..] == [l.count];
    let once = l.body.stmts.iter().filter(own).count() == 1;
    let nothing_else = l.body.stmts.iter().filter(|s| !own(s)).all(|s| !mentions(s, acc));
    (everywhere && once && nothing_else).then_some(later)
}

/// Makes the loop collect what it adds, and opens the accumulator after it.
fn start_after(block: &mut Block, open: usize, adding: usize) {
    let mut opened = block.stmts.remove(open);
    let acc = opened.binds[0];
    let adding = adding - 1;
    let stmt = &mut block.stmts[adding];
    let Op::For(l) = &mut stmt.op else { return };
    let collected = Var::fresh(acc.name, acc.ty.frozen());
    let mut value = Atom::Real(0.0);
    l.body.stmts.retain(|s| match &s.op {
        Op::Add { acc: to, value: added, .. } if *to == acc => {
            value = *added;
            false
        }
        _ => true,
    });
    l.body.results.push(value);
    stmt.binds.push(collected);
    // With nothing added later it is all there is.
    let next = block.stmts[adding + 1..].iter().position(|s| mentions(s, acc)).map(|distance| adding + 1 + distance);
    match next.map(|next| &mut block.stmts[next]) {
        Some(Stmt { op, .. }) if matches!(op, Op::Freeze { .. }) => *op = Op::Copy { value: collected.into() },
        _ => {
            opened.op = Op::Open { init: collected.into() };
            block.stmts.insert(adding + 1, opened);
        }
    }
}
