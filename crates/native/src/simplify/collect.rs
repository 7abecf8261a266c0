//! An accumulator of zeros that a loop is the first to add to, once in each place, starts as what that loop collects: no zeros are written, and none
//! are read back.

use crate::flow::walk::for_each_operand;
use crate::flow::*;
use crate::steady::Lengths;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use rustc_hash::{FxHashMap, FxHashSet};

pub(super) type Mentions = FxHashMap<Var, Vec<usize>>;

/// The loop that is the first to add to the accumulator opened at a place, once everywhere, and the array to whose elements it adds, if they are not zero.
type FindAdditions<'a> = &'a dyn Fn(&Block, &Mentions, usize) -> Option<(usize, Option<Var>)>;

pub fn run(block: &mut Block) {
    start_later(block, &|block, mentions, at| Some((first_additions(block, mentions, at)?, None)));
}

/// The same for an accumulator that starts from an array which is wanted later too, and would be copied. When all derivatives have been taken: they
/// know that an accumulator is not read.
pub fn instead_of_copies(function: &mut Block) {
    start_from_arrays(function, &|block, _, at, array| block.stmts[at + 1..].iter().any(|s| s.mentions(array)));
}

/// The same for some accumulators, if one loop adds to them, or one and then another, and nobody else.
pub(super) fn in_place_of_additions(function: &mut Block, some: &FxHashSet<Var>) {
    for _ in 0..2 {
        start_from_arrays(function, &|block, mentions, at, _| {
            let acc = block.stmts[at].binds[0];
            let mut ends = mentions.get(&acc).into_iter().flatten().skip(2).take(2).map(|at| &block.stmts[*at].op);
            some.contains(&acc) && ends.any(|op| matches!(op, Op::Freeze { .. }))
        });
    }
}

/// Whether to do so for the accumulator that is opened at a place and starts from an array.
type IsWanted<'a> = &'a dyn Fn(&Block, &Mentions, usize, Var) -> bool;

fn start_from_arrays(function: &mut Block, is_wanted: IsWanted<'_>) {
    let lengths = Lengths::of(function);
    start_later(function, &|block, mentions, at| {
        let Op::Open { init: Atom::Var(array) } = block.stmts[at].op else { return None };
        let is_length = |count| lengths.of_array(array.into())[..] == [lengths.number(count)];
        let adding = additions_everywhere(block, mentions, at, is_length)?;
        is_wanted(block, mentions, at, array).then_some((adding, Some(array)))
    });
}

/// The same for the accumulator that starts from an array of this length, if it is added to by one loop only. Says whether there was one.
pub(super) fn instead_of_start(block: &mut Block, array: Var, length: Atom) -> bool {
    let mentions = mentions(block);
    let Some(open) = block.stmts.iter().position(|s| matches!(s.op, Op::Open { init } if init == array.into())) else {
        return false;
    };
    let Some(adding) = additions_everywhere(block, &mentions, open, |count| count == length) else { return false };
    let acc = block.stmts[open].binds[0];
    let last = mentions.get(&acc).and_then(|places| places.get(2)).map(|at| &block.stmts[*at].op);
    if !matches!(last, Some(Op::Freeze { .. })) {
        return false;
    }
    start_after(block, &mentions, open, adding, Some(array));
    block.stmts.remove(open);
    true
}

fn start_later(block: &mut Block, find: FindAdditions<'_>) {
    with_stack(|| {
        for stmt in &mut block.stmts {
            stmt.op.blocks_mut().for_each(|inner| start_later(inner, find));
        }
        let mentions = mentions(block);
        if mentions.is_empty() {
            return;
        }
        let mut later: FxHashMap<usize, Vec<Stmt>> = FxHashMap::default();
        let mut gone = vec![false; block.stmts.len()];
        for (open, is_gone) in gone.iter_mut().enumerate() {
            if let Some((adding, to)) = find(block, &mentions, open) {
                *is_gone = true;
                later.entry(adding).or_default().extend(start_after(block, &mentions, open, adding, to));
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
pub(super) fn mentions(block: &Block) -> Mentions {
    let mut found: Mentions = FxHashMap::default();
    for (at, stmt) in block.stmts.iter().enumerate() {
        let is_empty = found.is_empty();
        let mut note = |atom: Atom| {
            if let Some(places) = atom.var().filter(|v| v.ty.accumulator).and_then(|v| found.get_mut(&v)) {
                if places.last() != Some(&at) {
                    places.push(at);
                }
            }
        };
        stmt.op.for_each_operand(&mut note);
        if !is_empty {
            stmt.op.blocks().for_each(|inner| for_each_operand(inner, &mut note));
        }
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

/// The loop that fills the accumulator of zeros opened at `at`, if nobody has added to it before.
fn first_additions(block: &Block, mentions: &Mentions, at: usize) -> Option<usize> {
    let Stmt { op: Op::Open { init: Atom::Var(zeros) }, .. } = &block.stmts[at] else { return None };
    let Op::Fill { dims, .. } = &block.stmts[*mentions.get(zeros)?.first()?].op else { return None };
    additions_everywhere(block, mentions, at, |count| dims[..] == [count])
}

/// The loop that is the first to add to the accumulator opened at `at`, if it does so once in each place. `is_length`: whether a number is its length.
fn additions_everywhere(
    block: &Block,
    mentions: &Mentions,
    at: usize,
    is_length: impl Fn(Atom) -> bool,
) -> Option<usize> {
    let acc = *block.stmts[at].binds.first()?;
    let later = *mentions.get(&acc)?.get(1)?;
    let Op::For(l) = &block.stmts[later].op else { return None };
    let own = |s: &Stmt| matches!(&s.op, Op::Add { index, .. } if adds_to(s, acc) && index[..] == [l.index.into()]);
    let mut uses = 0;
    for_each_operand(&l.body, &mut |a| uses += usize::from(a == acc.into()));
    let once = uses == 1 && l.body.stmts.iter().any(own);
    (once && acc.ty.rank == 1 && l.carried.is_empty() && is_length(l.count)).then_some(later)
}

/// Makes the loop collect what it adds, to the elements of an array if one is given; gives what opens the accumulator after it, if it is still wanted.
fn start_after(block: &mut Block, mentions: &Mentions, open: usize, adding: usize, to: Option<Var>) -> Option<Stmt> {
    let mut opened = block.stmts[open].clone();
    let acc = opened.binds[0];
    let stmt = &mut block.stmts[adding];
    let Op::For(l) = &mut stmt.op else { return None };
    let collected = Var::fresh(acc.name, acc.ty.frozen());
    let at = l.body.stmts.iter().position(|s| adds_to(s, acc))?;
    let Op::Add { mut value, .. } = l.body.stmts.remove(at).op else { return None };
    if let Some(array) = to {
        let mut b = Builder::new();
        b.span = stmt.span;
        let before = b.get(array.into(), vec![l.index.into()]);
        value = b.add(before, value);
        l.body.stmts.extend(b.pop(Vec::new()).stmts);
    }
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

/// The same for matrices of zeros, which one loop adds to: it collects rows, which a loop inside of it collects. When all derivatives have been taken.
/// Says whether there was one.
pub fn rows(block: &mut Block) -> bool {
    with_stack(|| {
        let mut changed = super::inside(block, rows);
        let mentions = mentions(block);
        if mentions.is_empty() {
            return changed;
        }
        for open in 0..block.stmts.len() {
            if let Some((adding, inner)) = additions_to_rows(block, &mentions, open) {
                collect_rows(block, &mentions, open, adding, inner);
                changed = true;
            }
        }
        changed
    })
}

/// The loop that alone adds to the matrix of zeros opened at `open`, once in each place, and which of its statements does so for a row.
fn additions_to_rows(block: &Block, mentions: &Mentions, open: usize) -> Option<(usize, usize)> {
    let Stmt { binds, op: Op::Open { init: Atom::Var(zeros) }, .. } = &block.stmts[open] else { return None };
    let Op::Fill { dims, .. } = &block.stmts[*mentions.get(zeros)?.first()?].op else { return None };
    let (acc, &[rows, columns]) = (binds[0], &dims[..]) else { return None };
    let [_, adding, taken] = mentions.get(&acc)?[..] else { return None };
    let (Op::For(l), Op::Freeze { .. }) = (&block.stmts[adding].op, &block.stmts[taken].op) else { return None };
    let inner = l.body.stmts.iter().position(|s| s.mentions(acc))?;
    let Op::For(row) = &l.body.stmts[inner].op else { return None };
    let place = [l.index.into(), row.index.into()];
    let own = |s: &Stmt| matches!(&s.op, Op::Add { index, .. } if adds_to(s, acc) && index[..] == place);
    let mut uses = 0;
    for_each_operand(&l.body, &mut |a| uses += usize::from(a == acc.into()));
    let once = uses == 1 && row.body.stmts.iter().any(own) && l.carried.is_empty() && row.carried.is_empty();
    let before = block.stmts[..adding].iter().chain(&l.body.stmts[..inner]);
    let whole = l.count == rows && (row.count == columns || is_checked(before, row.count, columns));
    (once && whole).then_some((adding, inner))
}

/// Whether statements make sure that two numbers are the same.
fn is_checked<'a>(stmts: impl Iterator<Item = &'a Stmt>, a: Atom, b: Atom) -> bool {
    let mut equal = Vec::new();
    for stmt in stmts {
        match &stmt.op {
            Op::Scalar { prim: Prim::Equal, args } if args[..] == [a, b] || args[..] == [b, a] => {
                equal.push(Atom::Var(stmt.binds[0]));
            }
            Op::Check { cond, .. } if equal.contains(cond) => return true,
            _ => {}
        }
    }
    false
}

/// Makes the loop collect the rows of what it adds.
fn collect_rows(block: &mut Block, mentions: &Mentions, open: usize, adding: usize, inner: usize) {
    let acc = block.stmts[open].binds[0];
    let (row, matrix) = (Var::fresh(acc.name, Type::REAL.in_array()), Var::fresh(acc.name, acc.ty.frozen()));
    let Stmt { binds, op: Op::For(l), .. } = &mut block.stmts[adding] else { return };
    let Stmt { binds: made, op: Op::For(one), .. } = &mut l.body.stmts[inner] else { return };
    let Some(at) = one.body.stmts.iter().position(|s| adds_to(s, acc)) else { return };
    let Op::Add { value, .. } = one.body.stmts.remove(at).op else { return };
    one.body.results.push(value);
    made.push(row);
    l.body.results.push(row.into());
    binds.push(matrix);
    if let Some(taken) = mentions.get(&acc).and_then(|places| places.get(2)) {
        block.stmts[*taken].op = Op::Copy { value: matrix.into() };
    }
}
