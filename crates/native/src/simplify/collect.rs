//! An accumulator of zeros that a loop is the first to add to, once in each place, starts as what that loop collects: no zeros are written, and none
//! are read back.

use crate::flow::walk::for_each_operand;
use crate::flow::*;
use gradus_core::traverse::with_stack;
use rustc_hash::FxHashMap;

pub fn run(block: &mut Block) {
    with_stack(|| {
        for stmt in &mut block.stmts {
            stmt.op.blocks_mut().into_iter().for_each(run);
        }
        let mentions = mentions(block);
        if mentions.is_empty() {
            return;
        }
        let mut later: FxHashMap<usize, Vec<Stmt>> = FxHashMap::default();
        let mut gone = vec![false; block.stmts.len()];
        for (open, is_gone) in gone.iter_mut().enumerate() {
            if let Some(adding) = first_additions(block, &mentions, open) {
                *is_gone = true;
                later.entry(adding).or_default().extend(start_after(block, &mentions, open, adding));
            }
        }
        let stmts = std::mem::take(&mut block.stmts);
        for (at, (stmt, gone)) in stmts.into_iter().zip(gone).enumerate() {
            if !gone {
                block.stmts.push(stmt);
            }
            block.stmts.extend(later.remove(&at).into_iter().flatten());
        }
    })
}

/// For each accumulator that this block opens and each array of zeros that it makes, where its statements mention it, in order: first the one that
/// makes it.
fn mentions(block: &Block) -> FxHashMap<Var, Vec<usize>> {
    let mut found: FxHashMap<Var, Vec<usize>> = FxHashMap::default();
    for (at, stmt) in block.stmts.iter().enumerate() {
        let mut note = |atom: Atom| {
            if let Some(places) = atom.var().filter(|v| v.ty.accumulator).and_then(|v| found.get_mut(&v)) {
                if places.last() != Some(&at) {
                    places.push(at);
                }
            }
        };
        stmt.op.for_each_operand(&mut note);
        stmt.op.blocks().iter().for_each(|(inner, _)| for_each_operand(inner, &mut note));
        let is_zeros = matches!(&stmt.op, Op::Fill { value, .. } if value.is_real(0.0));
        if is_zeros || matches!(stmt.op, Op::Open { .. }) {
            found.insert(stmt.binds[0], vec![at]);
        }
    }
    found
}

fn adds_to(stmt: &Stmt, acc: Var) -> bool {
    matches!(&stmt.op, Op::Add { acc: to, .. } if *to == acc)
}

/// The loop that fills the accumulator opened at `at`, if nobody has added to it before.
fn first_additions(block: &Block, mentions: &FxHashMap<Var, Vec<usize>>, at: usize) -> Option<usize> {
    let Stmt { binds, op: Op::Open { init: Atom::Var(zeros) }, .. } = &block.stmts[at] else { return None };
    let acc = binds[0];
    let Op::Fill { dims, .. } = &block.stmts[*mentions.get(zeros)?.first()?].op else { return None };
    let later = *mentions.get(&acc)?.get(1)?;
    let Op::For(l) = &block.stmts[later].op else { return None };
    let own = |s: &Stmt| matches!(&s.op, Op::Add { index, .. } if adds_to(s, acc) && index[..] == [l.index.into()]);
    let everywhere = l.carried.is_empty() && dims[..] == [l.count];
    let mut uses = 0;
    for_each_operand(&l.body, &mut |a| uses += usize::from(a == acc.into()));
    (everywhere && uses == 1 && l.body.stmts.iter().any(own)).then_some(later)
}

/// Makes the loop collect what it adds; gives what opens the accumulator after it, if it is still wanted.
fn start_after(block: &mut Block, mentions: &FxHashMap<Var, Vec<usize>>, open: usize, adding: usize) -> Option<Stmt> {
    let mut opened = block.stmts[open].clone();
    let acc = opened.binds[0];
    let stmt = &mut block.stmts[adding];
    let Op::For(l) = &mut stmt.op else { return None };
    let collected = Var::fresh(acc.name, acc.ty.frozen());
    let at = l.body.stmts.iter().position(|s| adds_to(s, acc))?;
    let Op::Add { value, .. } = l.body.stmts.remove(at).op else { return None };
    l.body.results.push(value);
    stmt.binds.push(collected);
    // With nothing added later it is all there is.
    let next = mentions.get(&acc).and_then(|places| places.get(2)).copied();
    match next.map(|next| &mut block.stmts[next].op) {
        Some(op) if matches!(op, Op::Freeze { .. }) => {
            *op = Op::Copy { value: collected.into() };
            None
        }
        _ => {
            opened.op = Op::Open { init: collected.into() };
            Some(opened)
        }
    }
}
