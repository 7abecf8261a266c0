//! Loops of a few iterations, their number known, are written out; what they collect becomes a list of items. Together with reads that
//! are seen through, vectors of two or three numbers live in registers and are never made.

use crate::flow::walk::Renaming;
use crate::flow::*;
use gradus_core::traverse::with_stack;

/// More iterations than this stay a loop.
pub const FEW: usize = 16;
/// A loop may not become longer than this many statements.
const LONG: usize = 400;
/// Nor may it become more than this many loops: they would cost the C compiler much, and gain nothing.
const LOOPS: usize = 4;

/// Says whether anything was written out.
pub fn run(block: &mut Block) -> bool {
    with_stack(|| {
        let mut any = false;
        let mut out = Vec::with_capacity(block.stmts.len());
        for mut stmt in std::mem::take(&mut block.stmts) {
            for inner in stmt.op.blocks_mut() {
                any |= run(inner);
            }
            match &stmt.op {
                Op::For(l) => match iterations(l) {
                    Some(count) => {
                        any = true;
                        write_out(l, &stmt.binds, count, stmt.span, &mut out);
                    }
                    None => out.push(stmt),
                },
                _ => out.push(stmt),
            }
        }
        block.stmts = out;
        any
    })
}

/// How often a loop runs that is to be written out.
fn iterations(l: &For) -> Option<usize> {
    let Atom::Int(count) = l.count else { return None };
    let count = usize::try_from(count.max(0)).ok()?;
    let (statements, loops) = size(&l.body);
    let fits = count <= FEW && count.saturating_mul(statements) <= LONG && count.saturating_mul(loops) <= LOOPS;
    fits.then_some(count)
}

/// How many statements and loops there are.
fn size(block: &Block) -> (usize, usize) {
    let add = |a: (usize, usize), b: (usize, usize)| (a.0 + b.0, a.1 + b.1);
    let own = |s: &Stmt| (1, usize::from(matches!(s.op, Op::For(_) | Op::While(_))));
    let nested = |s: &Stmt| s.op.blocks().iter().map(|(b, _)| with_stack(|| size(b))).fold(own(s), add);
    block.stmts.iter().map(nested).fold((0, 0), add)
}

fn write_out(l: &For, binds: &[Var], count: usize, span: gradus_source::Span, out: &mut Vec<Stmt>) {
    let (last, arrays) = binds.split_at(l.carried.len());
    let mut state: Vec<Atom> = l.carried.iter().map(|(_, init)| *init).collect();
    let mut collected: Vec<Vec<Atom>> = vec![Vec::with_capacity(count); arrays.len()];
    for k in 0..count {
        let mut renaming = Renaming::default();
        renaming.map.insert(l.index, Atom::Int(k as i64));
        for ((var, _), now) in l.carried.iter().zip(&state) {
            renaming.map.insert(*var, *now);
        }
        let mut body = renaming.block(&l.body);
        out.append(&mut body.stmts);
        let items = body.results.split_off(state.len());
        state = body.results;
        for (all, item) in collected.iter_mut().zip(items) {
            all.push(item);
        }
    }
    for (var, value) in last.iter().zip(state) {
        out.push(Stmt { binds: vec![*var], op: Op::Copy { value }, span });
    }
    for (array, items) in arrays.iter().zip(collected) {
        out.push(Stmt { binds: vec![*array], op: Op::Literal { items, ty: array.ty }, span });
    }
}
