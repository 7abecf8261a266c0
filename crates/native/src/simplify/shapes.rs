//! What is known of the lengths of arrays from how they were made.

use super::forward::{Forward, Key, Made};
use crate::flow::*;
use gradus_core::traverse::with_stack;
use rustc_hash::FxHashSet;

impl Forward {
    /// An array that is state of a loop keeps its shape if each iteration hands on one of the shape that it got, or of the shape that it had
    /// in the beginning.
    pub(super) fn state_shapes(&mut self, carried: &[(Var, Atom)], body: &Block, skip: usize, binds: &[Var]) {
        for (i, (var, init)) in carried.iter().enumerate().filter(|(_, (v, _))| v.ty.is_array()) {
            let first = init.var().and_then(|v| self.dim(v, 0).or_else(|| self.find(&Key::Dim(v, 0))));
            let keeps = |next: &Atom| self.keeps_shape(&[body], *next, *var, first);
            if body.results.get(i + skip).is_some_and(keeps) {
                self.made.insert(*var, Made::Like(*init));
                self.made.insert(binds[i], Made::Like(*init));
            }
        }
    }

    /// Whether a result of the last of some blocks, each in the one before it, has the shape of the loop's state, whose length was `first`.
    fn keeps_shape(&self, blocks: &[&Block], result: Atom, state: Var, first: Option<Atom>) -> bool {
        let Some(var) = result.var() else { return false };
        if var == state {
            return true;
        }
        let stmts = || blocks.iter().rev().flat_map(|b| &b.stmts);
        let Some(made) = stmts().find(|s| s.binds.contains(&var)) else { return false };
        // Of a matrix without rows, nobody knows how long they would be.
        let has_length = |n: Atom| {
            let now =
                |s: &Stmt| matches!(s.op, Op::Dim { array, axis: 0 } if array == state) && Some(s.binds[0]) == n.var();
            var.ty.rank == 1 && (Some(self.replaced.atom(n)) == first || stmts().any(now))
        };
        match &made.op {
            Op::Set { array, .. } => with_stack(|| self.keeps_shape(blocks, (*array).into(), state, first)),
            Op::Stop { value } | Op::Copy { value } => with_stack(|| self.keeps_shape(blocks, *value, state, first)),
            Op::Fill { dims, .. } => dims.first().is_some_and(|n| has_length(*n)),
            Op::For(l) => made.binds[l.carried.len()..].contains(&var) && has_length(l.count),
            Op::If { then, otherwise, .. } => {
                let Some(at) = made.binds.iter().position(|v| *v == var) else { return false };
                [then, otherwise].iter().all(|branch| {
                    let inside = [blocks, &[branch]].concat();
                    branch.results.get(at).is_some_and(|r| self.keeps_shape(&inside, *r, state, first))
                })
            }
            _ => false,
        }
    }

    /// The array that a loop copies, collecting its elements one after the other.
    pub(super) fn copied(&self, element: Atom, l: &For) -> Option<Var> {
        let read = l.body.stmts.iter().find(|s| s.binds.first().copied().map(Atom::Var) == Some(element))?;
        let Op::Get { array, index } = &read.op else { return None };
        let inside = l.carried.iter().any(|(v, _)| v == array) || l.body.stmts.iter().any(|s| s.binds.contains(array));
        if index[..] != [l.index.into()] || inside {
            return None;
        }
        let length = self.dim(*array, 0).or_else(|| self.find(&Key::Dim(*array, 0)))?;
        (length == l.count).then_some(*array)
    }

    /// The lengths of a row that a loop collects, as far as they are the same in every iteration and known outside.
    pub(super) fn outer_lengths(&self, row: Atom, l: &For) -> Vec<Option<Atom>> {
        let Some(row) = row.var().filter(|v| v.ty.is_array()) else { return Vec::new() };
        let mut inside = FxHashSet::default();
        walk::for_each_binder(&l.body, &mut |v| {
            inside.insert(v);
        });
        inside.extend(l.carried.iter().map(|(v, _)| *v).chain([l.index]));
        let known = |axis| self.length_of_rows(row, axis).or_else(|| self.find(&Key::Dim(row, axis)));
        (0..row.ty.rank).map(|axis| known(axis).filter(|n| n.var().is_none_or(|v| !inside.contains(&v)))).collect()
    }

    /// The length of an array, if how it was made tells it.
    pub(super) fn dim(&self, array: Var, axis: u8) -> Option<Atom> {
        self.length(array, axis, false)
    }

    /// The same, or what it is if the array has any rows: enough where a row is about to be read.
    pub(super) fn length_of_rows(&self, array: Var, axis: u8) -> Option<Atom> {
        self.length(array, axis, true)
    }

    /// `any_rows`: arrays are taken to have rows. One without does not know how long they would have been.
    fn length(&self, array: Var, axis: u8, any_rows: bool) -> Option<Atom> {
        let dim =
            |array: Var, axis: u8| self.length(array, axis, any_rows).or_else(|| self.find(&Key::Dim(array, axis)));
        match self.made.get(&array)? {
            Made::Fill(dims, _) => dims.get(axis as usize).copied(),
            Made::Literal(items) if axis == 0 => Some(Atom::Int(items.len() as i64)),
            Made::Literal(items) => {
                let first = items.first()?.var()?;
                dim(first, axis - 1)
            }
            Made::Collected(count, _) if axis == 0 => Some(*count),
            Made::Collected(count, row) => {
                let some = any_rows || matches!(count, Atom::Int(count) if *count > 0);
                row.get(axis as usize - 1).copied().flatten().filter(|_| some)
            }
            Made::Like(Atom::Var(other)) => dim(*other, axis),
            Made::Row(whole, index) => {
                // A row that is at hand is one of some.
                let (any_rows, axis) = (any_rows || axis == 0, axis + index.len() as u8);
                self.length(*whole, axis, any_rows).or_else(|| self.find(&Key::Dim(*whole, axis)))
            }
            Made::Scalar(..) | Made::Choice(..) | Made::Cell(..) | Made::Like(_) => None,
        }
    }
}
