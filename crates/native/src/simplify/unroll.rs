//! Loops of a few iterations, their number known, are written out; what they collect becomes a list of items. Together with reads that
//! are seen through, vectors of two or three numbers live in registers and are never made.

use super::fuse::Users;
use crate::flow::walk::Renaming;
use crate::flow::*;
use gradus_core::traverse::with_stack;
use rustc_hash::FxHashMap;

/// More iterations than this stay a loop.
pub const FEW: usize = 16;
/// A loop may not become longer than this many statements; with more iterations than [`VERY_FEW`], not even this many.
const LONG: usize = 400;
const LONG_OF_MANY: usize = 160;
const VERY_FEW: usize = 8;
/// Nor may it become more than this many loops: they would cost the C compiler much, and gain nothing.
const LOOPS: usize = 4;

/// Says whether anything was written out.
pub fn run(block: &mut Block) -> bool {
    with_stack(|| {
        let mut any = super::inside(block, run);
        let few = of_few_iterations(block);
        let mut out = Vec::with_capacity(block.stmts.len());
        for (at, stmt) in std::mem::take(&mut block.stmts).into_iter().enumerate() {
            match (&stmt.op, few.get(&at)) {
                (Op::For(l), Some(count)) => {
                    any = true;
                    write_out(l, &stmt.binds, *count, stmt.span, &mut out);
                }
                _ => out.push(stmt),
            }
        }
        block.stmts = out;
        any
    })
}

/// The loops of a block that are to be written out, by number, and how often each runs. A loop that alone reads what one that stays a
/// loop makes becomes part of that one, and stays, too.
fn of_few_iterations(block: &Block) -> FxHashMap<usize, usize> {
    let loops = || {
        block.stmts.iter().enumerate().filter_map(|(at, stmt)| match &stmt.op {
            Op::For(l) => Some((at, l)),
            _ => None,
        })
    };
    let mut few: FxHashMap<usize, usize> = loops().filter_map(|(at, l)| Some((at, iterations(l)?))).collect();
    if !few.is_empty() && few.len() < loops().count() {
        let users = Users::of(block);
        for (at, _) in loops() {
            if !few.contains_key(&at) {
                users.consumer_of(block, at).map(|consumer| few.remove(&consumer));
            }
        }
    }
    few
}

/// How often a loop runs that is to be written out.
fn iterations(l: &For) -> Option<usize> {
    let Atom::Int(count) = l.count else { return None };
    let count = usize::try_from(count.max(0)).ok()?;
    let (statements, loops) = size(&l.body);
    // Of one that is run again, whoever does so might not be written out.
    let stays = l.replayed && loops > 0;
    let long = if count <= VERY_FEW { LONG } else { LONG_OF_MANY };
    let fits =
        !stays && count <= FEW && count.saturating_mul(statements) <= long && count.saturating_mul(loops) <= LOOPS;
    fits.then_some(count)
}

/// How many statements and loops there are.
fn size(block: &Block) -> (usize, usize) {
    let add = |a: (usize, usize), b: (usize, usize)| (a.0 + b.0, a.1 + b.1);
    let own = |s: &Stmt| (1, usize::from(matches!(s.op, Op::For(_) | Op::While(_))));
    let nested = |s: &Stmt| s.op.blocks().map(|b| with_stack(|| size(b))).fold(own(s), add);
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
        check_rows(&items, span, out);
        out.push(Stmt { binds: vec![*array], op: Op::Literal { items, ty: array.ty }, span });
    }
}

/// Rows differ in size, or they do not: whoever looks at them one by one would not see it.
fn check_rows(items: &[Atom], span: gradus_source::Span, out: &mut Vec<Stmt>) {
    let [Atom::Var(first), others @ ..] = items else { return };
    let mut b = Builder::new();
    b.span = span;
    for axis in 0..first.ty.rank {
        others.iter().filter_map(|item| item.var()).for_each(|o| b.check_same_length(*first, o, axis, Failure::Rows));
    }
    out.append(&mut b.pop(Vec::new()).stmts);
}
