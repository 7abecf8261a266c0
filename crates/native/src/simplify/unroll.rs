//! Loops of a few iterations, their number known, are written out; what they collect becomes a list of items. Together with reads that
//! are seen through, vectors of two or three numbers live in registers and are never made.

use super::fuse::Users;
use crate::flow::walk::Renaming;
use crate::flow::*;
use gradus_core::traverse::with_stack;
use rustc_hash::{FxHashMap, FxHashSet};

/// More iterations than this stay a loop.
pub const FEW: usize = 16;
/// A loop may not become longer than this many statements; with more iterations than [`VERY_FEW`], not even this many.
const LONG: usize = 400;
const LONG_OF_MANY: usize = 160;
const VERY_FEW: usize = 8;
/// And this many if there are loops in it that come to run a known number of times: about half as often as it does, and less inside each other.
const LONG_OF_KNOWN: usize = 500;
/// Nor may it become more than this many loops: they would cost the C compiler much, and gain nothing. Those do not count that come to run a
/// known number of times.
const LOOPS: usize = 4;

/// Says whether anything was written out.
pub fn run(block: &mut Block) -> bool {
    write_out_in(block, &mut FxHashSet::default())
}

/// `lists`: the arrays that are written out around the block.
fn write_out_in(block: &mut Block, lists: &mut FxHashSet<Var>) -> bool {
    with_stack(|| {
        lists.extend(block.stmts.iter().filter(|s| matches!(s.op, Op::Literal { .. })).flat_map(|s| &s.binds));
        let mut any = super::inside(block, |inner| write_out_in(inner, lists));
        let few = of_few_iterations(block, lists);
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
fn of_few_iterations(block: &Block, lists: &FxHashSet<Var>) -> FxHashMap<usize, usize> {
    let loops = || {
        block.stmts.iter().enumerate().filter_map(|(at, stmt)| match &stmt.op {
            Op::For(l) => Some((at, l)),
            _ => None,
        })
    };
    let mut few: FxHashMap<usize, usize> = loops().filter_map(|(at, l)| Some((at, iterations(l, lists)?))).collect();
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
fn iterations(l: &For, lists: &FxHashSet<Var>) -> Option<usize> {
    let Atom::Int(count) = l.count else { return None };
    let count = usize::try_from(count.max(0)).ok().filter(|count| *count <= FEW)?;
    let mut size = Size {
        statements: 0,
        loops: 0,
        known_loops: false,
        known: FxHashSet::from_iter([l.index]),
        usual: count.div_ceil(2),
    };
    let is_list = |init: &Atom| init.var().is_some_and(|init| lists.contains(&init));
    size.known.extend(l.carried.iter().filter(|(_, init)| is_list(init)).map(|(var, _)| *var));
    size.add(&l.body, 1);
    // Of one that is run again, whoever does so might not be written out.
    let stays = l.replayed && l.body.stmts.iter().any(|s| matches!(s.op, Op::For(_) | Op::While(_)));
    let long = match count {
        _ if size.known_loops => LONG_OF_KNOWN,
        ..=VERY_FEW => LONG,
        _ => LONG_OF_MANY,
    };
    let fits = count.saturating_mul(size.statements) <= long && count.saturating_mul(size.loops) <= LOOPS;
    (fits && !stays).then_some(count)
}

/// What an iteration becomes when it is written out.
struct Size {
    /// But those that are known then, and checks, most of which are made only once, of lengths, or hold where a place is known.
    statements: usize,
    loops: usize,
    /// Whether there are loops that run a known number of times then.
    known_loops: bool,
    /// The numbers that are known then, and the arrays whose lengths are.
    known: FxHashSet<Var>,
    /// How often a loop runs, about, whose count is known then.
    usual: usize,
}

impl Size {
    /// Adds a block that is written so often.
    fn add(&mut self, block: &Block, times: usize) {
        for stmt in &block.stmts {
            let is_known = |a: Atom| a.var().is_none_or(|v| self.known.contains(&v));
            match &stmt.op {
                Op::Scalar { args, .. } if !stmt.binds[0].ty.is_real() && args.iter().all(|a| is_known(*a)) => {
                    self.known.insert(stmt.binds[0]);
                    continue;
                }
                Op::Dim { array, .. } if self.known.contains(array) => {
                    self.known.insert(stmt.binds[0]);
                    continue;
                }
                Op::Check { .. } => continue,
                _ => self.statements = self.statements.saturating_add(times),
            }
            match &stmt.op {
                Op::For(l) if l.count.var().is_some() && is_known(l.count) => {
                    self.known_loops = true;
                    self.known.insert(l.index);
                    with_stack(|| self.add(&l.body, times.saturating_mul(self.usual)));
                }
                op => {
                    self.loops += usize::from(matches!(op, Op::For(_) | Op::While(_)));
                    op.blocks().for_each(|inner| with_stack(|| self.add(inner, times)));
                }
            }
        }
    }
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
