//! Which places are known to be inside an array, where a pass stands: it has been read or checked there, or is an index of a loop over its length.

use super::failures::can_fail;
use crate::flow::*;
use crate::steady;
use gradus_core::Prim;
use rustc_hash::{FxHashMap, FxHashSet};

/// A length as it was first known.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Length {
    /// Of an array, along an axis.
    Of(Var, usize),
    Number(Atom),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Fact {
    NotNegative(Atom),
    Below(Atom, Length),
    /// The first is no more than the second.
    AtMost(Length, Length),
}

/// What is known at a statement. Whoever walks through blocks says where they begin and end.
#[derive(Default)]
pub(super) struct Inside {
    /// How arrays were made: with these lengths, or with those of another.
    made: FxHashMap<Var, Made>,
    lengths: FxHashMap<Var, Length>,
    comparisons: FxHashMap<Var, (Prim, Atom, Atom)>,
    /// Differences of two integers.
    differences: FxHashMap<Var, (Atom, Atom)>,
    /// Arrays that keep their lengths from one iteration to the next.
    steady: FxHashSet<Var>,
    facts: FxHashSet<Fact>,
    /// The facts in the order in which they came.
    order: Vec<Fact>,
    /// Lengths that others are known to reach.
    reached: FxHashMap<Length, Vec<Length>>,
    /// How often the loops around run.
    counts: Vec<Atom>,
}

enum Made {
    With(Vec<Atom>),
    Like(Var),
}

/// Where a block began.
pub(super) struct Mark(usize);

impl Inside {
    /// Nothing yet, but which state keeps its lengths.
    pub(super) fn of(block: &Block) -> Inside {
        Inside { steady: steady::find(block), ..Inside::default() }
    }

    pub(super) fn begin(&self) -> Mark {
        Mark(self.order.len())
    }

    pub(super) fn end(&mut self, mark: &Mark) {
        for fact in self.order.drain(mark.0..) {
            self.facts.remove(&fact);
            if let Fact::AtMost(_, long) = fact {
                self.reached.entry(long).or_default().pop();
            }
        }
    }

    /// Into the body of a loop, until it is left.
    pub(super) fn enter_loop(&mut self, l: &For) {
        self.counts.push(l.count);
        self.learn(Fact::NotNegative(l.index.into()));
        self.learn(Fact::Below(l.index.into(), self.length(l.count)));
        for (state, init) in &l.carried {
            self.same_lengths(*state, *state, *init);
        }
    }

    /// An array from outside that a loop, which was entered, reads at its index in each iteration is at least as long as the loop runs, unless it fails on its
    /// way.
    pub(super) fn foresee(&mut self, l: &For) {
        if l.body.stmts.iter().any(can_fail) {
            return;
        }
        let state = l.carried.iter().map(|(state, _)| state);
        let own: FxHashSet<&Var> = l.body.stmts.iter().flat_map(|stmt| &stmt.binds).chain(state).collect();
        for stmt in &l.body.stmts {
            let Op::Get { array, index } = &stmt.op else { continue };
            if own.contains(array) {
                continue;
            }
            for axis in (0..index.len()).filter(|axis| index[*axis] == l.index.into()) {
                self.learn(Fact::AtMost(self.length(l.count), self.length_of(*array, axis)));
            }
        }
    }

    /// Notes that an array has the lengths of another, if this state keeps its lengths.
    fn same_lengths(&mut self, array: Var, state: Var, init: Atom) {
        if let Some(init) = init.var().filter(|_| self.steady.contains(&state)) {
            self.made.insert(array, Made::Like(init));
        }
    }

    pub(super) fn leave_loop(&mut self) {
        self.counts.pop();
    }

    /// Into a side of a branch.
    pub(super) fn suppose(&mut self, cond: Atom) {
        let Some((prim, a, b)) = cond.var().and_then(|v| self.comparisons.get(&v)).copied() else { return };
        match (prim, b) {
            (Prim::Less, _) => self.learn(Fact::Below(a, self.length(b))),
            (Prim::Greater, _) => self.learn(Fact::Below(b, self.length(a))),
            (Prim::GreaterEqual, Atom::Int(0)) => self.learn(Fact::NotNegative(a)),
            _ => {}
        }
    }

    /// What is known after a statement.
    pub(super) fn after(&mut self, stmt: &Stmt) {
        let Some(bind) = stmt.binds.first().copied() else {
            match &stmt.op {
                Op::Check { cond, .. } => self.suppose(*cond),
                Op::Add { acc, index, .. } => self.is_there(*acc, index),
                _ => {}
            }
            return;
        };
        match &stmt.op {
            Op::Dim { array, axis } => {
                let length = self.length_of(*array, *axis as usize);
                self.lengths.insert(bind, length);
            }
            Op::Scalar { prim: prim @ (Prim::Less | Prim::Greater | Prim::GreaterEqual), args }
                if args[0].ty() == Type::INT =>
            {
                self.comparisons.insert(bind, (*prim, args[0], args[1]));
            }
            Op::Scalar { prim: Prim::SubInt, args } => self.subtracted(bind, args[0], args[1]),
            Op::Fill { dims, .. } => {
                self.made.insert(bind, Made::With(dims.clone()));
            }
            Op::Literal { items, .. } if bind.ty.rank == 1 => {
                self.made.insert(bind, Made::With(vec![Atom::Int(items.len() as i64)]));
            }
            Op::For(l) => {
                for (last, (state, init)) in stmt.binds.iter().zip(&l.carried) {
                    self.same_lengths(*last, *state, *init);
                }
                for array in &stmt.binds[l.carried.len()..] {
                    self.made.insert(*array, Made::With(vec![l.count]));
                }
            }
            Op::Set { array: from, .. } | Op::Freeze { acc: from } if bind.ty.is_array() => {
                self.made.insert(bind, Made::Like(*from));
            }
            Op::Open { init: Atom::Var(from) } | Op::Copy { value: Atom::Var(from) } if bind.ty.rank > 0 => {
                self.made.insert(bind, Made::Like(*from));
            }
            Op::Get { array, index } => self.is_there(*array, index),
            _ => {}
        }
    }

    /// What is read or added to is there.
    fn is_there(&mut self, array: Var, place: &[Atom]) {
        for (axis, at) in place.iter().enumerate() {
            self.learn(Fact::NotNegative(*at));
            self.learn(Fact::Below(*at, self.length_of(array, axis)));
        }
    }

    /// Whether the place is known to be in the array.
    pub(super) fn is_inside(&self, array: Var, place: &[Atom]) -> bool {
        place.iter().enumerate().all(|(axis, at)| match (*at, self.length_of(array, axis)) {
            (Atom::Int(at), Length::Number(Atom::Int(length))) => 0 <= at && at < length,
            (at, length) => self.is_not_negative(at) && self.is_below(at, length),
        })
    }

    fn is_below(&self, at: Atom, length: Length) -> bool {
        let below = |length: &Length| self.facts.contains(&Fact::Below(at, *length));
        below(&length) || self.reached.get(&length).is_some_and(|shorter| shorter.iter().any(below))
    }

    /// Counting down from the last place of a length.
    fn subtracted(&mut self, bind: Var, from: Atom, by: Atom) {
        self.differences.insert(bind, (from, by));
        let Some((count, Atom::Int(1))) = from.var().and_then(|v| self.differences.get(&v)) else { return };
        let length = self.length(*count);
        if self.is_not_negative(by) && self.is_below(by, length) {
            self.learn(Fact::NotNegative(bind.into()));
            self.learn(Fact::Below(bind.into(), length));
        }
    }

    pub(super) fn is_not_negative(&self, number: Atom) -> bool {
        matches!(number, Atom::Int(n) if n >= 0) || self.facts.contains(&Fact::NotNegative(number))
    }

    /// The lengths that an array was made with, as far as all of them are known.
    pub(super) fn lengths(&self, mut array: Var) -> Option<Vec<Atom>> {
        loop {
            match self.made.get(&array)? {
                Made::Like(from) => array = *from,
                Made::With(dims) => return (dims.len() == array.ty.rank as usize).then(|| dims.clone()),
            }
        }
    }

    /// Whether a loop is known to run at least once.
    pub(super) fn runs(&self, l: &For) -> bool {
        matches!(l.count, Atom::Int(n) if n > 0) || self.counts.contains(&l.count)
    }

    fn learn(&mut self, fact: Fact) {
        if self.facts.insert(fact) {
            self.order.push(fact);
            if let Fact::AtMost(short, long) = fact {
                self.reached.entry(long).or_default().push(short);
            }
        }
    }

    fn length(&self, atom: Atom) -> Length {
        atom.var().and_then(|v| self.lengths.get(&v)).copied().unwrap_or(Length::Number(atom))
    }

    fn length_of(&self, mut array: Var, axis: usize) -> Length {
        loop {
            match self.made.get(&array) {
                Some(Made::Like(from)) => array = *from,
                Some(Made::With(dims)) if axis < dims.len() => return self.length(dims[axis]),
                _ => return Length::Of(array, axis),
            }
        }
    }
}
