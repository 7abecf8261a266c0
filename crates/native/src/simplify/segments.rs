//! Long loops by segments.
//!
//! The way back through a loop with state wants what the way there has kept of each step. Of many steps that is more than the caches hold, and where the state is
//! an array, whose elements are computed in vector lanes, to write and to read it takes longer than to compute it. So such a loop goes by *segments*. The way
//! there keeps the state with which each segment begins, and of its steps only those of the last segment; the way back takes a segment's steps again before it
//! goes through them:
//!
//! ```text
//! y, all = for i < n with s = x {        y, some, starts = for j < segments with s = x, .. {
//!   .. yield t collect s                   t, some = for i < size with s { .. }
//! }                                        yield t some collect s
//! for k < n with d = .. {          =>    }
//!   e = get all (n - 1 - k)              for back < segments with d = .., some {
//!   .. yield c                             for k < size with d { e = get some (size - 1 - k) .. }
//! }                                        some = for i < size with s = get starts (j - 1) { .. }
//!                                          yield c some
//!                                        }
//! ```
//!
//! A loop that is not long is one segment, and nothing is computed again.

use super::strips::{is_over_strips, WIDEST};
use crate::flow::walk::{count_uses, for_each_binder, Renaming};
use crate::flow::*;
use crate::steady::{Length, Lengths};
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use gradus_source::Span;
use rustc_hash::{FxHashMap, FxHashSet};

/// How much is kept of loops.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// What is kept of a loop's steps stays whole up to so many numbers.
    pub whole: i64,
    /// Of a segment there are to be about so many ..
    pub near: i64,
    /// .. but at least so many steps, not to keep as many states as before.
    pub least: i64,
}

impl Default for Room {
    /// Eight megabytes, and a quarter of one, which the caches nearest to a core hold.
    fn default() -> Room {
        Room { whole: 1 << 20, near: 1 << 15, least: 16 }
    }
}

/// Steps that keep more numbers each are not taken again: a segment would not be near either.
const WIDE: i64 = 1 << 14;

/// What the index of a loop over segments is called.
const SEGMENT: &str = "segment";

pub fn is_over_segments(l: &For) -> bool {
    l.index.name == Name::new(SEGMENT)
}

/// Says whether there were such loops. What takes steps again may compute more than is wanted.
pub fn run(block: &mut Block, room: &Room) -> bool {
    Long { lasts: &lasts(block), lengths: Lengths::of(block) }.block(block, room, false)
}

/// Whether the loops with state inside the loops of a block will go by segments, as far as they keep anything of their steps. `lasts`: of the function.
pub fn take_all_inside(block: &Block, lasts: &FxHashMap<Var, Atom>) -> bool {
    let long = Long { lasts, lengths: Lengths::of(block) };
    let keeps = |stmt: &Stmt| matches!(&stmt.op, Op::For(l) if (1..stmt.binds.len()).contains(&l.carried.len()));
    let takes_all = |inner: &Block| {
        (0..inner.stmts.len()).all(|at| !keeps(&inner.stmts[at]) || long.there_and_back(inner, at).is_some())
    };
    block.stmts.iter().flat_map(|stmt| stmt.op.blocks()).all(takes_all)
}

/// The variables that are one less than something else, and what that is.
pub fn lasts(block: &Block) -> FxHashMap<Var, Atom> {
    fn find(block: &Block, found: &mut FxHashMap<Var, Atom>) {
        with_stack(|| {
            for stmt in &block.stmts {
                match (&stmt.op, &stmt.binds[..]) {
                    (Op::Scalar { prim: Prim::SubInt, args }, [last]) if args[1] == Atom::Int(1) => {
                        found.insert(*last, args[0]);
                    }
                    (op, _) => op.blocks().for_each(|inner| find(inner, found)),
                }
            }
        })
    }
    let mut found = FxHashMap::default();
    find(block, &mut found);
    found
}

/// What is known of a function, to find its long loops.
struct Long<'a> {
    lasts: &'a FxHashMap<Var, Atom>,
    lengths: Lengths,
}

impl Long<'_> {
    /// `strip`: a block of a loop over strips, whose arrays are no longer than these.
    fn block(&self, block: &mut Block, room: &Room, strip: bool) -> bool {
        with_stack(|| {
            let mut changed = false;
            for stmt in &mut block.stmts {
                let strip = match &stmt.op {
                    // A step of a loop with state is not to have more to do than it has.
                    Op::For(l) if !l.carried.is_empty() => continue,
                    Op::For(l) => is_over_strips(l),
                    _ => strip,
                };
                stmt.op.blocks_mut().for_each(|inner| changed |= self.block(inner, room, strip));
            }
            let mut at = 0;
            while at < block.stmts.len() {
                let found =
                    self.there_and_back(block, at).filter(|(_, loops)| !(strip && loops.is_short_in_strip(room)));
                if let Some((back, [there, after])) =
                    found.and_then(|(at, loops)| Some((at, loops.by_segments(room, &self.lengths)?)))
                {
                    changed = true;
                    block.stmts.splice(back..=back, after);
                    block.stmts.splice(at..=at, there);
                }
                at += 1;
            }
            changed
        })
    }

    /// The loop at a place, if nobody wants what it keeps of its steps but a later one that goes the same steps back; and where that is.
    fn there_and_back<'b>(&self, block: &'b Block, at: usize) -> Option<(usize, Loops<'b>)> {
        let Stmt { op: Op::For(there), binds, span } = &block.stmts[at] else { return None };
        let (ends, kept) = binds.split_at(there.carried.len());
        if ends.is_empty() || !kept.iter().any(|all| all.ty.rank > 1) || !self.can_run_again(there) {
            return None;
        }
        let wants = |stmt: &Stmt| kept.iter().any(|all| stmt.mentions(*all));
        let mut others = block.stmts.iter().enumerate().skip(at + 1).filter(|(_, stmt)| wants(stmt));
        let (place, found) = others.next()?;
        let Op::For(back) = &found.op else { return None };
        let leaves = block.results.iter().any(|result| result.var().is_some_and(|v| kept.contains(&v)));
        let collects_numbers = back.body.results[back.carried.len()..].iter().all(|a| a.ty() == Type::REAL);
        let plain = back.carried.iter().all(|(v, _)| v.ty.shape().is_none());
        if others.next().is_some() || leaves || back.count != there.count || !collects_numbers || !plain {
            return None;
        }
        let back_body = self.reads_backwards(back, kept)?;
        Some((
            place,
            Loops { there, ends, kept, span: *span, back, back_binds: &found.binds, back_span: found.span, back_body },
        ))
    }

    /// Whether a loop can begin with any of its steps, once the state is known, gives the same again, and takes little time for each number.
    fn can_run_again(&self, l: &For) -> bool {
        // Loops inside, as many as an array has dimensions, go over its elements; a loop inside these would add something up for each.
        fn is_quick(block: &Block, loops: u8) -> bool {
            with_stack(|| {
                block.stmts.iter().all(|stmt| {
                    let boxes = stmt.binds.iter().any(|v| v.ty.shape().is_some());
                    let inside = match &stmt.op {
                        Op::For(_) => loops.checked_sub(1),
                        Op::While(_)
                        | Op::Call { .. }
                        | Op::Plug { .. }
                        | Op::Push { .. }
                        | Op::Pop { .. }
                        | Op::Product(_) => None,
                        _ => Some(loops),
                    };
                    let is_quick = |loops| stmt.op.blocks().all(|inner| is_quick(inner, loops));
                    !boxes && inside.is_some_and(is_quick)
                })
            })
        }
        let keeps = |v: &Var| v.ty.shape().is_none() && v.ty.rank < Type::MAX_RANK;
        let rank = l.carried.iter().map(|(v, _)| v.ty.rank).max().unwrap_or(0);
        let steady = |v: &Var| !v.ty.is_array() || self.lengths.is_steady(v);
        l.carried.iter().all(|(v, _)| keeps(v) && steady(v)) && is_quick(&l.body, rank)
    }

    /// The body of a loop that reads arrays only where it is, from the last element to the first; the place in them that it reads
    /// is then the variable given with it.
    fn reads_backwards(&self, l: &For, arrays: &[Var]) -> Option<(Block, Var)> {
        let is_last = |atom: Atom| match (atom, l.count) {
            (Atom::Var(v), count) => self.lasts.get(&v) == Some(&count),
            (Atom::Int(last), Atom::Int(count)) => last + 1 == count,
            _ => false,
        };
        let places = l.body.stmts.iter().filter_map(|stmt| match (&stmt.op, &stmt.binds[..]) {
            (Op::Scalar { prim: Prim::SubInt, args }, [place]) if is_last(args[0]) && args[1] == l.index.into() => {
                Some(Atom::Var(*place))
            }
            _ => None,
        });
        let places: Vec<Atom> = places.collect();
        let mut body = l.body.clone();
        let here = Var::fresh("at", Type::INT);
        let reads = read_at(&mut body, arrays, &places, here);
        let uses = count_uses(&l.body);
        let all: usize = arrays.iter().filter_map(|array| uses.get(array)).sum();
        (reads == all).then_some((body, here))
    }
}

/// Makes a block read arrays `here` where it reads them at one of some places; how often it does.
fn read_at(block: &mut Block, arrays: &[Var], places: &[Atom], here: Var) -> usize {
    with_stack(|| {
        let mut reads = 0;
        for stmt in &mut block.stmts {
            match &mut stmt.op {
                Op::Get { array, index } if arrays.contains(array) && places.contains(&index[0]) => {
                    index[0] = here.into();
                    reads += 1;
                }
                op => reads += op.blocks_mut().map(|b| read_at(b, arrays, places, here)).sum::<usize>(),
            }
        }
        reads
    })
}

/// A loop and the way back through it.
struct Loops<'a> {
    there: &'a For,
    /// Its last state, and what it keeps of its steps.
    ends: &'a [Var],
    kept: &'a [Var],
    span: Span,
    back: &'a For,
    back_binds: &'a [Var],
    back_span: Span,
    /// What a step back does, and where it reads what was kept.
    back_body: (Block, Var),
}

/// How the steps are cut: all segments have as many, but for the last, which may have less.
struct Cut {
    size: Atom,
    segments: Atom,
}

impl Loops<'_> {
    /// The statements in place of the two loops; nothing if it is known that there are not so many steps.
    fn by_segments(&self, room: &Room, lengths: &Lengths) -> Option<[Vec<Stmt>; 2]> {
        let mut b = Builder::new();
        b.span = self.span;
        let cut = self.cut(&mut b, room, lengths)?;
        let state = self.there.carried.iter().map(|(v, init)| (v.refresh(), *init));
        let some: Vec<Var> = self.kept.iter().map(|all| all.refresh()).collect();
        let nothing: Vec<Atom> = some.iter().map(|v| b.dummy(v.ty)).collect();
        let state: Vec<(Var, Atom)> = state.collect();
        let starts: Vec<Var> = state.iter().map(|(v, _)| Var::fresh(v.name.with("_starts"), v.ty.in_array())).collect();
        b.push();
        let segment = Var::fresh(SEGMENT, Type::INT);
        let from: Vec<Atom> = state.iter().map(|(v, _)| (*v).into()).collect();
        let (base, size) = cut.part(&mut b, segment.into(), self.there.count);
        let mut results = self.steps(&mut b, &self.there.body, &from, base, size);
        results.extend(&from);
        let body = b.pop(results);
        let carried = state.into_iter().chain(some.iter().map(|v| v.refresh()).zip(nothing)).collect();
        let there = For { index: segment, count: cut.segments, carried, body, replayed: self.there.replayed };
        b.bind([self.ends, &some, &starts].concat(), Op::For(Box::new(there)));
        let there = b.pop(Vec::new()).stmts;
        Some([there, self.back(&cut, &some, &starts)])
    }

    /// Whether it is known that what the loop keeps stays whole, if what it keeps of a step are arrays of a strip.
    fn is_short_in_strip(&self, room: &Room) -> bool {
        matches!(self.there.count, Atom::Int(count) if count.saturating_mul(self.kept.len() as i64 * WIDEST) <= room.whole)
    }

    /// How the steps are cut, by how much is kept of each of them.
    fn cut(&self, b: &mut Builder, room: &Room, lengths: &Lengths) -> Option<Cut> {
        let count = self.there.count;
        let width = self.width(b, lengths)?;
        let near = b.scalar(Prim::DivInt, &[Atom::Int(room.near), width]);
        let size = greater(b, near, Atom::Int(room.least));
        let most = b.scalar(Prim::DivInt, &[Atom::Int(room.whole), width]);
        let is_short = b.scalar(Prim::LessEqual, &[count, most]);
        let is_wide = b.scalar(Prim::Greater, &[width, Atom::Int(WIDE)]);
        let is_whole = b.select(is_wide, Atom::Bool(true), is_short);
        // A loop that changes a few elements of a large array in each step keeps those; to keep the array at times would be more.
        let state = self.state(b, lengths);
        let as_much = b.scalar(Prim::MulInt, &[width, Atom::Int(room.least / 2)]);
        let is_large = b.scalar(Prim::Greater, &[state, as_much]);
        let is_whole = b.select(is_large, Atom::Bool(true), is_whole);
        if is_whole == Atom::Bool(true) {
            return None;
        }
        let size = b.select(is_whole, count, size);
        let size = greater(b, size, Atom::Int(1));
        let less = b.scalar(Prim::SubInt, &[size, Atom::Int(1)]);
        let sum = b.scalar(Prim::AddInt, &[count, less]);
        Some(Cut { size, segments: b.scalar(Prim::DivInt, &[sum, size]) })
    }

    /// How many numbers are kept of a step; at least one. Of arrays that are not state it is not known, and taken to be as many as of one that is.
    fn width(&self, b: &mut Builder, lengths: &Lengths) -> Option<Atom> {
        let carried = &self.there.carried;
        let array = carried.iter().find_map(|(v, init)| v.ty.is_array().then(|| init.var()).flatten());
        let mut width = Atom::Int(0);
        for result in &self.there.body.results[carried.len()..] {
            let numbers = if result.ty().is_array() {
                let own = carried.iter().find_map(|(v, init)| (*result == (*v).into()).then(|| init.var()).flatten());
                numbers(b, own.or(array)?, lengths)
            } else {
                Atom::Int(1)
            };
            width = b.scalar(Prim::AddInt, &[width, numbers]);
        }
        Some(greater(b, width, Atom::Int(1)))
    }

    /// How many numbers of the state are in arrays.
    fn state(&self, b: &mut Builder, lengths: &Lengths) -> Atom {
        let arrays = self.there.carried.iter().filter_map(|(v, init)| init.var().filter(|_| v.ty.is_array()));
        arrays.fold(Atom::Int(0), |all, array| {
            let more = numbers(b, array, lengths);
            b.scalar(Prim::AddInt, &[all, more])
        })
    }

    /// Some steps with a body like that of the loop: the state after them, and what is kept of them.
    fn steps(&self, b: &mut Builder, body: &Block, from: &[Atom], base: Atom, size: Atom) -> Vec<Atom> {
        let mut renaming = Renaming::default();
        let carried: Vec<(Var, Atom)> =
            self.there.carried.iter().zip(from).map(|((v, _), from)| (renaming.renew(*v), *from)).collect();
        b.push();
        let index = self.there.index.refresh();
        let i = b.scalar(Prim::AddInt, &[base, index.into()]);
        renaming.map.insert(self.there.index, i);
        let body = renaming.block(body);
        b.stmts(body.stmts);
        let body = b.pop(body.results);
        let binds: Vec<Var> = self.ends.iter().chain(self.kept).map(|v| v.refresh()).collect();
        let l = For { index, count: size, carried, body, replayed: self.there.replayed };
        b.bind(binds.clone(), Op::For(Box::new(l)));
        binds.into_iter().map(Atom::Var).collect()
    }

    /// The way back, from the last segment, of which all is kept, to the first.
    fn back(&self, cut: &Cut, some: &[Var], starts: &[Var]) -> Vec<Stmt> {
        let mut b = Builder::new();
        b.span = self.back_span;
        let count = self.there.count;
        let (states, collected) = self.back_binds.split_at(self.back.carried.len());
        let collected = Collected::open(&mut b, collected, count);
        let carried: Vec<(Var, Atom)> = self.back.carried.iter().map(|(v, init)| (v.refresh(), *init)).collect();
        let here: Vec<Var> = some.iter().map(|v| v.refresh()).collect();
        let back = Var::fresh(SEGMENT, Type::INT);
        b.push();
        let last = b.scalar(Prim::SubInt, &[cut.segments, Atom::Int(1)]);
        let segment = b.scalar(Prim::SubInt, &[last, back.into()]);
        let (base, size) = cut.part(&mut b, segment, count);
        let from: Vec<Atom> = carried.iter().map(|(v, _)| (*v).into()).collect();
        let mut results = self.steps_back(&mut b, &from, &here, &collected, base, size);
        let has_more = b.scalar(Prim::Less, &[Atom::Int(0), segment]);
        b.push();
        let before = b.scalar(Prim::SubInt, &[segment, Atom::Int(1)]);
        let base = b.scalar(Prim::MulInt, &[before, cut.size]);
        let from: Vec<Atom> = starts.iter().map(|all| b.get((*all).into(), vec![before])).collect();
        let mut again = self.steps(&mut b, &only_values(&self.there.body), &from, base, cut.size);
        let again = again.split_off(self.ends.len());
        let then = b.pop(again);
        b.push();
        let nothing = here.iter().map(|v| b.dummy(v.ty)).collect();
        let otherwise = b.pop(nothing);
        results.extend(b.branch(has_more, then, otherwise));
        let body = b.pop(results);
        let carried = carried.into_iter().chain(here.into_iter().zip(some.iter().map(|v| (*v).into()))).collect();
        let l = For { index: back, count: cut.segments, carried, body, replayed: self.back.replayed };
        let binds = states.iter().copied().chain(some.iter().map(|v| v.refresh())).collect();
        b.bind(binds, Op::For(Box::new(l)));
        collected.freeze(&mut b);
        b.pop(Vec::new()).stmts
    }

    /// The steps of a segment backwards: the state after them.
    fn steps_back(
        &self,
        b: &mut Builder,
        from: &[Atom],
        some: &[Var],
        into: &Collected<'_>,
        base: Atom,
        size: Atom,
    ) -> Vec<Atom> {
        let (body, here) = &self.back_body;
        let mut renaming = Renaming::default();
        let carried: Vec<(Var, Atom)> =
            self.back.carried.iter().zip(from).map(|((v, _), from)| (renaming.renew(*v), *from)).collect();
        let done = b.scalar(Prim::SubInt, &[self.there.count, base]);
        let done = b.scalar(Prim::SubInt, &[done, size]);
        let last = b.scalar(Prim::SubInt, &[size, Atom::Int(1)]);
        b.push();
        let index = self.back.index.refresh();
        let k = b.scalar(Prim::AddInt, &[done, index.into()]);
        renaming.map.insert(self.back.index, k);
        let at = b.scalar(Prim::SubInt, &[last, index.into()]);
        renaming.map.insert(*here, at);
        renaming.map.extend(self.kept.iter().zip(some).map(|(all, some)| (*all, Atom::Var(*some))));
        let mut body = renaming.block(body);
        b.stmts(body.stmts);
        into.add(b, k, body.results.split_off(carried.len()));
        let body = b.pop(body.results);
        let binds: Vec<Var> = self.back_binds[..carried.len()].iter().map(|v| v.refresh()).collect();
        let l = For { index, count: size, carried, body, replayed: self.back.replayed };
        b.bind(binds.clone(), Op::For(Box::new(l)));
        binds.into_iter().map(Atom::Var).collect()
    }
}

/// The arrays of numbers that a loop collects whose steps become those of several loops: they are put where they belong.
pub(super) struct Collected<'a> {
    arrays: &'a [Var],
    sums: Vec<Var>,
}

impl<'a> Collected<'a> {
    pub(super) fn open(b: &mut Builder, arrays: &'a [Var], count: Atom) -> Collected<'a> {
        // What is added to negative zero stays what it is.
        let mut open = |all: &Var| {
            let start = b.fill(vec![count], Atom::Real(-0.0));
            b.open(all.name, start)
        };
        Collected { arrays, sums: arrays.iter().map(&mut open).collect() }
    }

    /// What a step has collected.
    pub(super) fn add(&self, b: &mut Builder, step: Atom, values: Vec<Atom>) {
        self.sums.iter().zip(values).for_each(|(acc, value)| b.accumulate(*acc, vec![step], value));
    }

    pub(super) fn freeze(self, b: &mut Builder) {
        self.sums.iter().zip(self.arrays).for_each(|(acc, all)| b.bind(vec![*all], Op::Freeze { acc: *acc }));
    }
}

impl Cut {
    /// Where a segment begins, and how many steps it has.
    fn part(&self, b: &mut Builder, segment: Atom, count: Atom) -> (Atom, Atom) {
        let base = b.scalar(Prim::MulInt, &[segment, self.size]);
        let rest = b.scalar(Prim::SubInt, &[count, base]);
        let is_full = b.scalar(Prim::Less, &[self.size, rest]);
        (base, b.select(is_full, self.size, rest))
    }
}

/// How many numbers an array has.
fn numbers(b: &mut Builder, array: Var, lengths: &Lengths) -> Atom {
    let lengths = lengths.of_array(array.into());
    (0..array.ty.rank).zip(lengths).fold(Atom::Int(1), |all, (axis, length)| {
        let dim = match length {
            Length::Number(known @ Atom::Int(_)) => known,
            _ => b.dim(array, axis),
        };
        b.scalar(Prim::MulInt, &[all, dim])
    })
}

fn greater(b: &mut Builder, one: Atom, other: Atom) -> Atom {
    let cond = b.scalar(Prim::Less, &[one, other]);
    b.select(cond, other, one)
}

/// A block that has been run before, without what it checked and added to sums from outside.
fn only_values(block: &Block) -> Block {
    fn strip(block: &mut Block, own: &FxHashSet<Var>) {
        with_stack(|| {
            block.stmts.retain_mut(|stmt| match &mut stmt.op {
                Op::Check { .. } => false,
                Op::Add { acc, .. } => own.contains(acc),
                op => {
                    op.blocks_mut().for_each(|inner| strip(inner, own));
                    true
                }
            });
        })
    }
    let mut own = FxHashSet::default();
    for_each_binder(block, &mut |v| {
        own.insert(v);
    });
    let mut values = block.clone();
    strip(&mut values, &own);
    values
}
