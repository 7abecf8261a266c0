//! Loops taken apart where a product of matrices begins.
//!
//! An iteration that multiplies a matrix with a vector of its own making, as a second layer does, is one row of a product of matrices once all these vectors
//! are there. So the loop becomes two: the first makes the vectors and collects them as the rows of a matrix, and the second does the rest.

use super::failures::{can_fail, fails_alike};
use super::products::{is_among, is_long};
use crate::flow::walk::{for_each_binder, Renaming};
use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use gradus_source::Span;
use rustc_hash::{FxHashMap, FxHashSet};

/// The places of a loop before which it may be taken apart.
pub(super) fn places(outer: &For) -> Vec<usize> {
    let may_begin = outer.body.stmts.iter().enumerate().filter(|(at, _)| *at > 0 && is_long(outer));
    let may_begin = may_begin.filter(|(at, stmt)| match &stmt.op {
        Op::For(middle) if is_long(middle) => multiplies_own(middle, &outer.body.stmts[..*at]),
        _ => false,
    });
    may_begin.map(|(at, _)| at).collect()
}

/// Whether a loop in the loop adds up products with elements of a vector that one of the statements makes.
fn multiplies_own(middle: &For, before: &[Stmt]) -> bool {
    let inner = middle.body.stmts.iter().filter_map(|stmt| match &stmt.op {
        Op::For(inner) if is_long(inner) => Some(inner),
        _ => None,
    });
    inner.into_iter().any(|inner| {
        let made = |atom: Atom| {
            let stmts = inner.body.stmts.iter().chain(&middle.body.stmts);
            atom.var().and_then(|v| stmts.into_iter().find(|stmt| stmt.binds == [v]))
        };
        let is_own = |atom: Atom| match made(atom).map(|stmt| &stmt.op) {
            Some(Op::Get { array, index }) => index.len() == 1 && before.iter().any(|stmt| stmt.binds.contains(array)),
            _ => false,
        };
        inner.body.stmts.iter().any(|stmt| match &stmt.op {
            Op::Add { value, .. } => match made(*value).map(|stmt| &stmt.op) {
                Some(Op::Scalar { prim: Prim::MulReal, args }) => args.iter().any(|a| is_own(*a)),
                _ => false,
            },
            _ => false,
        })
    })
}

/// The loop with those in it taken apart that first compute a number and then add products with it to a vector of this iteration, as on the way back through a
/// layer and what follows: the numbers are a vector then. Nothing if there are none.
pub(super) fn with_vectors(outer: &For) -> Option<For> {
    let mut apart = outer.clone();
    apart.body.stmts.clear();
    for stmt in &outer.body.stmts {
        let parts = match &stmt.op {
            Op::For(middle) if is_long(outer) && is_long(middle) => {
                adding_products(middle, &outer.body).and_then(|at| split(middle, &stmt.binds, stmt.span, at, true))
            }
            _ => None,
        };
        apart.body.stmts.extend(parts.map_or_else(|| vec![stmt.clone()], |parts| parts.to_vec()));
    }
    (apart.body.stmts.len() > outer.body.stmts.len()).then_some(apart)
}

/// The loop in a loop, after another, that adds products with a number which the loop around it computes, to what was opened around that.
fn adding_products(middle: &For, around: &Block) -> Option<usize> {
    let mut loops = middle.body.stmts.iter().enumerate().filter(|(_, s)| matches!(&s.op, Op::For(l) if is_long(l)));
    let (first, _) = loops.next()?;
    let computed = |atom: Atom| {
        let is_maker = |s: &Stmt| atom.var().is_some_and(|v| s.binds.contains(&v)) && !matches!(s.op, Op::Get { .. });
        middle.body.stmts[first..].iter().any(is_maker)
    };
    let adds = |inner: &For| {
        let made = |v: Var| inner.body.stmts.iter().find(|s| s.binds == [v]).map(|s| &s.op);
        inner.body.stmts.iter().any(|stmt| match &stmt.op {
            Op::Add { acc, value: Atom::Var(value), .. } => match made(*value) {
                Some(Op::Scalar { prim: Prim::MulReal, args }) => {
                    around.stmts.iter().any(|s| s.binds.contains(acc)) && args.iter().any(|a| computed(*a))
                }
                _ => false,
            },
            _ => false,
        })
    };
    loops.find(|(_, stmt)| matches!(&stmt.op, Op::For(inner) if adds(inner))).map(|(at, _)| at)
}

/// The loop as two, the second of which begins with a statement of the first one's body; nothing if that could be noticed, or would need much memory.
/// `numbers`: it may not make vectors for the second.
pub(super) fn split(outer: &For, binds: &[Var], span: Span, at: usize, numbers: bool) -> Option<[Stmt; 2]> {
    let (first, rest) = outer.body.stmts.split_at(at);
    let mut inside = FxHashSet::from_iter([outer.index]);
    for_each_binder(&outer.body, &mut |v| {
        inside.insert(v);
    });
    // A failure of the first part comes before all of the second, in the first iteration if it comes at all.
    let in_order = fails_alike(first, &mut FxHashSet::from_iter([outer.index])) || !rest.iter().any(can_fail);
    let has_room = numbers || outer.body.stmts.iter().any(|stmt| reads_row(stmt, outer.index, &inside));
    if !in_order || !has_room {
        return None;
    }
    let rest = Block { stmts: rest.to_vec(), results: outer.body.results.clone() };
    let mut split = Split { outer, inside, again: Vec::new(), kept: Vec::new(), collected: Vec::new() };
    let mut wanted = FxHashSet::default();
    walk::for_each_operand(&rest, &mut |a| wanted.extend(a.var()));
    split.share(first, wanted)?;
    let fits = !numbers || split.collected.iter().all(|(var, _)| var.ty.rank == 0);
    fits.then(|| split.finish(rest, binds, span))
}

/// A loop that is being taken apart.
struct Split<'a> {
    outer: &'a For,
    inside: FxHashSet<Var>,
    /// What the second loop does for itself, though it stands before its place.
    again: Vec<Stmt>,
    /// What is left for the first.
    kept: Vec<Stmt>,
    /// What the first loop makes for the second, with the array of it over all iterations.
    collected: Vec<(Var, Var)>,
}

impl Split<'_> {
    /// Decides of each statement before the place who has it, where so many variables are wanted after it.
    fn share(&mut self, stmts: &[Stmt], mut wanted: FxHashSet<Var>) -> Option<()> {
        let first = Block { stmts: stmts.to_vec(), results: Vec::new() };
        // What can be had without the first loop.
        let mut at_hand = FxHashSet::from_iter([self.outer.index]);
        let mut again = Vec::new();
        for stmt in stmts {
            let mut depends = false;
            stmt.op.for_each_operand(&mut |a| {
                depends |= a.var().is_some_and(|v| self.inside.contains(&v) && !at_hand.contains(&v))
            });
            let is_simple = match &stmt.op {
                Op::Scalar { prim, .. } => scalar::is_cheap(*prim),
                Op::Select { .. } | Op::Dim { .. } | Op::Get { .. } | Op::Fill { .. } => true,
                _ => false,
            };
            // An accumulator belongs to one of the two.
            let moves = matches!(stmt.op, Op::Open { .. }) && !walk::mentions(&first, stmt.binds[0]);
            if moves || is_simple && !depends {
                at_hand.extend(stmt.binds.iter().copied());
                again.push(stmt);
            }
        }
        for stmt in again.into_iter().rev().filter(|stmt| !stmt.op.has_blocks()) {
            if wanted.contains(&stmt.binds[0]) {
                stmt.op.for_each_operand(&mut |a| wanted.extend(a.var()));
                self.again.push(stmt.clone());
            }
        }
        self.again.reverse();
        let is_again = |var: &Var| self.again.iter().any(|stmt| stmt.binds.contains(var));
        for stmt in stmts {
            for var in stmt.binds.iter().filter(|var| wanted.contains(var) && !is_again(var)) {
                let is_number = matches!(var.ty, Type::REAL | Type::INT | Type::BOOL);
                if !is_number && (var.ty.rank != 1 || var.ty.accumulator || !self.is_steady(*var, stmts)) {
                    return None;
                }
                self.collected.push((*var, Var::fresh(var.name, var.ty.in_array())));
            }
            let moves = matches!(stmt.op, Op::Open { .. }) && is_again(&stmt.binds[0]);
            if !moves {
                self.kept.push(stmt.clone());
            }
        }
        Some(())
    }

    /// Whether a vector that one of the statements makes has the same length in each iteration.
    fn is_steady(&self, vector: Var, stmts: &[Stmt]) -> bool {
        let maker = |var: Var| stmts.iter().find(|stmt| stmt.binds.contains(&var)).map(|stmt| &stmt.op);
        match maker(vector) {
            Some(Op::For(l)) => l.carried.is_empty() && !is_among(&self.inside, l.count),
            Some(Op::Fill { dims, .. }) => !is_among(&self.inside, dims[0]),
            Some(Op::Freeze { acc }) => match maker(*acc) {
                Some(Op::Open { init: Atom::Var(init) }) => with_stack(|| self.is_steady(*init, stmts)),
                _ => false,
            },
            _ => false,
        }
    }

    fn finish(mut self, mut rest: Block, binds: &[Var], span: Span) -> [Stmt; 2] {
        // What the whole loop collects of the first part stays there.
        let mut rest_binds = Vec::new();
        let results = std::mem::take(&mut rest.results);
        let mut taken: FxHashMap<Var, Var> = FxHashMap::default();
        for (result, bind) in results.into_iter().zip(binds) {
            let own = result.var().filter(|v| !taken.contains_key(v));
            match own.and_then(|v| self.collected.iter_mut().find(|(var, _)| *var == v)) {
                Some((var, array)) => {
                    taken.insert(*var, *bind);
                    *array = *bind;
                }
                None => {
                    rest.results.push(result);
                    rest_binds.push(*bind);
                }
            }
        }
        read_collected(&mut rest, &self.collected, self.outer.index);
        let rows = self.collected.iter().map(|(var, array)| {
            let op = Op::Get { array: *array, index: vec![self.outer.index.into()] };
            Stmt { binds: vec![*var], op, span }
        });
        rest.stmts = rows.chain(self.again).chain(rest.stmts).collect();
        let (results, arrays) = self.collected.iter().map(|(var, array)| (Atom::Var(*var), *array)).unzip();
        let loop_of = |body: Block| Op::For(Box::new(For { body, carried: Vec::new(), ..self.outer.clone() }));
        let first = loop_of(Block { stmts: self.kept, results });
        let second = Renaming::default().op(&loop_of(rest));
        [Stmt { binds: arrays, op: first, span }, Stmt { binds: rest_binds, op: second, span }]
    }
}

/// Reads elements of the vectors where they were collected.
fn read_collected(block: &mut Block, collected: &[(Var, Var)], row: Var) {
    with_stack(|| {
        for stmt in &mut block.stmts {
            if let Op::Get { array, index } = &mut stmt.op {
                if let Some((_, matrix)) = collected.iter().find(|(var, _)| var == array) {
                    *array = *matrix;
                    index.insert(0, row.into());
                }
            }
            stmt.op.blocks_mut().for_each(|inner| read_collected(inner, collected, row));
        }
    })
}

/// Whether each iteration reads a row of a matrix that is there: then others with as many rows have room too.
fn reads_row(stmt: &Stmt, index: Var, inside: &FxHashSet<Var>) -> bool {
    with_stack(|| match &stmt.op {
        Op::Get { array, index: at } => array.ty.rank > 1 && at[0] == index.into() && !inside.contains(array),
        op => op.blocks().any(|inner| inner.stmts.iter().any(|stmt| reads_row(stmt, index, inside))),
    })
}
