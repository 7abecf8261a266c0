//! Which arrays that loops carry have the same lengths in every iteration, so that all of them together are again a flat array.

use crate::flow::*;
use gradus_core::traverse::with_stack;
use rustc_hash::{FxHashMap, FxHashSet};

/// The arrays carried by the loops of a block that are known to keep their lengths.
pub fn find(block: &Block) -> FxHashSet<Var> {
    Lengths::of(block).steady
}

/// A length: a number, or that of an array of which no more is known. Equal ones are equal numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    Number(Atom),
    Of(Var, u8),
}

/// For each value that a loop collects the lengths of its rows, if its body names them, and they are known before it and whatever it does.
pub fn rows(l: &For) -> Vec<Option<Vec<Length>>> {
    let lengths = Lengths::of(&l.body);
    let mut outside: FxHashSet<Var> = walk::free_vars(&l.body).into_iter().collect();
    l.carried.iter().map(|(v, _)| v).chain([&l.index]).for_each(|v| {
        outside.remove(v);
    });
    let known = |length: &Length| match length {
        Length::Number(atom) => atom.var().is_none_or(|v| outside.contains(&v)),
        Length::Of(array, _) => outside.contains(array),
    };
    let of_row = |row: &Atom| Some(lengths.of_array(*row)).filter(|row| row.iter().all(known));
    l.body.results[l.carried.len()..].iter().map(of_row).collect()
}

/// What is known of the lengths of arrays in a block.
#[derive(Default)]
pub struct Lengths {
    /// What would be so if no length were zero: an array without rows does not know how long they would have been.
    full: bool,
    arrays: FxHashMap<Var, Vec<Length>>,
    /// Integers that are lengths of arrays.
    numbers: FxHashMap<Var, Length>,
    steady: FxHashSet<Var>,
}

impl Lengths {
    /// The lengths in a block in which no array is empty.
    pub fn of_full(block: &Block) -> Lengths {
        let mut lengths = Lengths { full: true, ..Lengths::default() };
        lengths.block(block);
        lengths
    }

    /// The lengths in a block.
    pub fn of(block: &Block) -> Lengths {
        let mut lengths = Lengths::default();
        lengths.block(block);
        lengths
    }

    pub fn of_array(&self, array: Atom) -> Vec<Length> {
        let Some(var) = array.var() else { return Vec::new() };
        match self.arrays.get(&var) {
            Some(known) => known.clone(),
            None => (0..var.ty.rank).map(|axis| Length::Of(var, axis)).collect(),
        }
    }

    /// Whether an array that a loop carries has the same lengths in every iteration.
    pub fn is_steady(&self, array: &Var) -> bool {
        self.steady.contains(array)
    }

    pub fn number(&self, atom: Atom) -> Length {
        let known = atom.var().and_then(|v| self.numbers.get(&v).copied());
        known.unwrap_or(Length::Number(atom))
    }

    fn block(&mut self, block: &Block) {
        with_stack(|| block.stmts.iter().for_each(|stmt| self.stmt(stmt)))
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match (&stmt.op, &stmt.binds[..]) {
            (Op::Dim { array, axis }, [n]) => {
                if let Some(length) = self.of_array((*array).into()).get(*axis as usize) {
                    self.numbers.insert(*n, *length);
                }
            }
            (Op::Copy { value } | Op::Stop { value } | Op::Open { init: value }, [y]) => self.same(*y, *value),
            (Op::Set { array, .. }, [y]) => self.same(*y, (*array).into()),
            (Op::Freeze { acc }, [y]) => self.same(*y, (*acc).into()),
            (Op::Get { array, index }, [y]) if y.ty.is_array() => {
                let row = self.of_array((*array).into()).split_off(index.len());
                self.arrays.insert(*y, row);
            }
            (Op::Fill { dims, .. }, [y]) => {
                let lengths = dims.iter().map(|d| self.number(*d)).collect();
                self.arrays.insert(*y, lengths);
            }
            (Op::Literal { items, .. }, [y]) => {
                let row = items.first().map(|first| self.of_array(*first)).unwrap_or_default();
                if row.len() + 1 == y.ty.rank as usize {
                    let count = Length::Number(Atom::Int(items.len() as i64));
                    self.arrays.insert(*y, [vec![count], row].concat());
                }
            }
            (Op::If { then, otherwise, .. }, binds) => {
                self.block(then);
                self.block(otherwise);
                for (at, y) in binds.iter().enumerate().filter(|(_, y)| y.ty.is_array()) {
                    let side = |block: &Block| block.results.get(at).map(|a| self.of_array(*a));
                    let (one, other) = (side(then), side(otherwise));
                    match one.filter(|lengths| Some(lengths) == other.as_ref()) {
                        Some(lengths) => self.arrays.insert(*y, lengths),
                        None => self.arrays.remove(y),
                    };
                }
            }
            (Op::For(l), binds) => {
                self.state(&l.carried, &l.body, 0, binds);
                // One that never ran does not know how long its rows would have been.
                let runs = self.full || matches!(l.count, Atom::Int(1..));
                let collected = binds[l.carried.len()..].iter().zip(&l.body.results[l.carried.len()..]);
                for (y, row) in collected.filter(|(y, _)| y.ty.rank == 1 || runs) {
                    let lengths = [vec![self.number(l.count)], self.of_array(*row)].concat();
                    self.arrays.insert(*y, lengths);
                }
            }
            (Op::While(l), binds) => self.state(&l.carried, &l.body, 1, binds),
            _ => {}
        }
    }

    fn same(&mut self, y: Var, value: Atom) {
        if y.ty.is_array() {
            let lengths = self.of_array(value);
            self.arrays.insert(y, lengths);
        }
    }

    /// Takes the state to keep its lengths, and gives up what does not until all is consistent. `skip`: how many of the body's results come
    /// before the state.
    fn state(&mut self, carried: &[(Var, Atom)], body: &Block, skip: usize, binds: &[Var]) {
        let mut kept: Vec<usize> = (0..carried.len()).filter(|at| carried[*at].0.ty.is_array()).collect();
        for at in &kept {
            let (var, init) = carried[*at];
            self.same(var, init);
        }
        loop {
            self.block(body);
            let keeps = |at: &usize| {
                let next = body.results.get(at + skip).map(|a| self.of_array(*a)).unwrap_or_default();
                next == self.of_array(carried[*at].1)
            };
            let (good, bad): (Vec<usize>, Vec<usize>) = kept.iter().partition(|at| keeps(at));
            if bad.is_empty() {
                break;
            }
            bad.iter().for_each(|at| {
                self.arrays.remove(&carried[*at].0);
            });
            kept = good;
        }
        for (at, (var, init)) in carried.iter().enumerate().filter(|(_, (v, _))| v.ty.is_array()) {
            if kept.contains(&at) {
                self.steady.insert(*var);
                self.same(binds[at], *init);
            } else {
                self.steady.remove(var);
                self.arrays.remove(&binds[at]);
            }
        }
    }
}
