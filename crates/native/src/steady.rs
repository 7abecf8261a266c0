//! Which arrays that loops with state carry or make have the same lengths in every iteration, so that all of them together are again a flat array.

use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use rustc_hash::{FxHashMap, FxHashSet};

/// The arrays that the loops of a block with state carry or make, and that are known to keep their lengths.
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
    /// What says whether two lengths are equal.
    equations: FxHashMap<Var, [Length; 2]>,
    /// Lengths that are equal to others, as a check before the statement that is looked at has found.
    equal: FxHashMap<(Var, u8), Length>,
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

    /// What an array's lengths are known to be where it is looked at.
    fn here(&self, array: Atom) -> Vec<Length> {
        self.of_array(array).into_iter().map(|length| self.first_equal(length)).collect()
    }

    fn number_here(&self, atom: Atom) -> Length {
        self.first_equal(self.number(atom))
    }

    fn first_equal(&self, mut length: Length) -> Length {
        while let Length::Of(array, axis) = length {
            match self.equal.get(&(array, axis)) {
                Some(other) => length = *other,
                None => break,
            }
        }
        length
    }

    /// Notes that two lengths are equal; which of them is known as the other.
    fn equate(&mut self, [one, other]: [Length; 2]) -> Option<(Var, u8)> {
        let [one, other] = [one, other].map(|length| self.first_equal(length));
        let (key, known) = match (one, other) {
            _ if one == other => return None,
            (known, Length::Of(array, axis)) | (Length::Of(array, axis), known) => ((array, axis), known),
            _ => return None,
        };
        self.equal.insert(key, known);
        Some(key)
    }

    /// Gives what its checks have found.
    fn block(&mut self, block: &Block) -> Vec<(Var, u8)> {
        let mut found = Vec::new();
        with_stack(|| {
            for stmt in &block.stmts {
                match (&stmt.op, &stmt.binds[..]) {
                    (Op::Scalar { prim: Prim::Equal, args }, [holds]) if args[0].ty() == Type::INT => {
                        let sides = [args[0], args[1]].map(|side| self.number_here(side));
                        self.equations.insert(*holds, sides);
                    }
                    (Op::Check { cond: Atom::Var(cond), .. }, _) => {
                        let equation = self.equations.get(cond).copied();
                        found.extend(equation.and_then(|sides| self.equate(sides)));
                    }
                    _ => self.stmt(stmt),
                }
            }
        });
        found
    }

    /// What is checked in a loop or a branch is known there only.
    fn inside(&mut self, block: &Block) {
        let found = self.block(block);
        self.forget(found);
    }

    fn forget(&mut self, found: Vec<(Var, u8)>) {
        for key in found {
            self.equal.remove(&key);
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match (&stmt.op, &stmt.binds[..]) {
            (Op::Dim { array, axis }, [n]) => {
                if let Some(length) = self.here((*array).into()).get(*axis as usize) {
                    self.numbers.insert(*n, *length);
                }
            }
            (Op::Copy { value } | Op::Stop { value } | Op::Open { init: value }, [y]) => self.same(*y, *value),
            (Op::Set { array, .. }, [y]) => self.same(*y, (*array).into()),
            (Op::Freeze { acc }, [y]) => self.same(*y, (*acc).into()),
            (Op::Get { array, index }, [y]) if y.ty.is_array() => {
                let row = self.here((*array).into()).split_off(index.len());
                self.arrays.insert(*y, row);
            }
            (Op::Fill { dims, .. }, [y]) => {
                let lengths = dims.iter().map(|d| self.number_here(*d)).collect();
                self.arrays.insert(*y, lengths);
            }
            (Op::Literal { items, .. }, [y]) => {
                let row = items.first().map(|first| self.here(*first)).unwrap_or_default();
                if row.len() + 1 == y.ty.rank as usize {
                    let count = Length::Number(Atom::Int(items.len() as i64));
                    self.arrays.insert(*y, [vec![count], row].concat());
                }
            }
            (Op::If { then, otherwise, .. }, binds) => {
                self.inside(then);
                let sides = |block: &Block, s: &Self| -> Vec<Vec<Length>> {
                    let array = |(result, y): (&Atom, &Var)| if y.ty.is_array() { s.here(*result) } else { Vec::new() };
                    block.results.iter().zip(binds).map(array).collect()
                };
                let one = sides(then, self);
                let found = self.block(otherwise);
                let other = sides(otherwise, self);
                for ((y, one), other) in binds.iter().zip(one).zip(other).filter(|((y, _), _)| y.ty.is_array()) {
                    // What is checked on the other side holds if it is taken.
                    let is_same = one.iter().map(|length| self.first_equal(*length)).eq(other);
                    match is_same {
                        true => self.arrays.insert(*y, one),
                        false => self.arrays.remove(y),
                    };
                }
                self.forget(found);
            }
            (Op::For(l), binds) => {
                self.state(&l.carried, &l.body, 0, binds);
                if !l.carried.is_empty() {
                    self.note_made(&stmt.op, &l.body);
                }
                // One that never ran does not know how long its rows would have been.
                let runs = self.full || matches!(l.count, Atom::Int(1..));
                let collected = binds[l.carried.len()..].iter().zip(&l.body.results[l.carried.len()..]);
                for (y, row) in collected.filter(|(y, _)| y.ty.rank == 1 || runs) {
                    let lengths = [vec![self.number_here(l.count)], self.here(*row)].concat();
                    self.arrays.insert(*y, lengths);
                }
            }
            (Op::While(l), binds) => {
                self.state(&l.carried, &l.body, 1, binds);
                self.note_made(&stmt.op, &l.body);
            }
            _ => {}
        }
    }

    fn same(&mut self, y: Var, value: Atom) {
        if y.ty.is_array() {
            let lengths = self.here(value);
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
            let found = self.block(body);
            // What is checked in the body holds if it gives anything.
            let keeps = |at: &usize| {
                let next = body.results.get(at + skip).map(|a| self.here(*a)).unwrap_or_default();
                next == self.here(carried[*at].1)
            };
            let (good, bad): (Vec<usize>, Vec<usize>) = kept.iter().partition(|at| keeps(at));
            self.forget(found);
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

    /// Notes the arrays that the body of a loop makes whose lengths are known before it.
    fn note_made(&mut self, op: &Op, body: &Block) {
        let mut inside: FxHashSet<Var> = op.params().collect();
        walk::for_each_binder(body, &mut |v| {
            inside.insert(v);
        });
        let is_outside = |length: &Length| match length {
            Length::Number(atom) => atom.var().is_none_or(|v| !inside.contains(&v)),
            Length::Of(array, _) => !inside.contains(array),
        };
        for array in body.stmts.iter().flat_map(|stmt| &stmt.binds).filter(|v| v.ty.is_array()) {
            // What a loop around this one takes for granted may turn out not to be so.
            match self.of_array((*array).into()).iter().all(is_outside) {
                true => self.steady.insert(*array),
                false => self.steady.remove(array),
            };
        }
    }
}
