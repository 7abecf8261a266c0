//! What is known of the lengths of arrays from how they were made.

use super::forward::{Forward, Key, Made};
use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;

/// An array that is state of a loop, and its lengths in the beginning, as far as they are known.
#[derive(Clone, Copy)]
struct State<'a> {
    var: Var,
    first: &'a [Option<Atom>],
    /// In what statement of the loop each variable is bound.
    bound: &'a FxHashMap<Var, &'a Stmt>,
    /// The lengths of arrays in the loop that were asked for.
    found: &'a RefCell<FxHashMap<Var, Option<Vec<Atom>>>>,
}

impl State<'_> {
    fn is_known(&self) -> bool {
        self.first.iter().all(Option::is_some)
    }
}

impl Forward {
    pub(super) fn knowing(lengths: &KnownLengths) -> Forward {
        let known = |lengths: &Vec<usize>| Made::Measured(lengths.iter().map(|n| Atom::Int(*n as i64)).collect());
        let mut forward = Forward::default();
        forward.made.extend(lengths.iter().map(|(array, lengths)| (*array, known(lengths))));
        forward
    }

    /// An array that is state of a loop keeps its shape if each iteration hands on one of the shape that it got, or of the shape that it had
    /// in the beginning.
    pub(super) fn state_shapes(&mut self, carried: &[(Var, Atom)], body: &Block, skip: usize, binds: &[Var]) {
        let mut left: Vec<usize> = (0..carried.len()).filter(|i| carried[*i].0.ty.is_array()).collect();
        if left.is_empty() {
            return;
        }
        let mut bound = FxHashMap::default();
        walk::for_each_stmt(body, &mut |stmt| bound.extend(stmt.binds.iter().map(|v| (*v, stmt))));
        // State may be handed on to other state, of which it has to be known first.
        loop {
            let before = left.len();
            left.retain(|i| {
                let (var, init) = carried[*i];
                let first = self.lengths_of(init);
                let mut kept = FxHashMap::default();
                let state = State { var, first: &first, bound: &bound, found: &RefCell::default() };
                let keeps = |next: &Atom| self.keeps_shape(&[body], *next, state, &mut kept);
                let keeps = body.results.get(i + skip).is_some_and(keeps);
                if keeps {
                    self.made.insert(var, Made::Like(init));
                    self.made.insert(binds[*i], Made::Like(init));
                }
                !keeps
            });
            if left.len() == before || left.is_empty() {
                return;
            }
        }
    }

    /// An array that a branch gives has the shape of another one, if it has on both sides, or the lengths that both sides give it.
    pub(super) fn branch_shapes(&mut self, binds: &[Var], sides: [&mut Block; 2]) {
        for (i, bind) in binds.iter().enumerate().filter(|(_, v)| v.ty.is_array()) {
            let [one, other] = [0, 1].map(|side| sides[side].results[i]);
            if let (Some(first), true) = (self.shaped_like(one), self.shaped_like(one) == self.shaped_like(other)) {
                self.made.insert(*bind, Made::Like(first.into()));
                continue;
            }
            // What both sides know was there before them.
            let both = |(n, m): (Option<Atom>, Option<Atom>)| n.filter(|_| n == m);
            let lengths = self.lengths_of(one).into_iter().zip(self.lengths_of(other)).map(both);
            if let Some(lengths) = lengths.collect() {
                self.made.insert(*bind, Made::Measured(lengths));
            }
        }
    }

    /// A length that follows from how the array was made is replaced by that; what is known of others is noted.
    pub(super) fn length_stmt(&mut self, mut stmt: Stmt, out: &mut Vec<Stmt>) {
        let Op::Dim { array, axis } = &mut stmt.op else { return };
        self.var(array);
        // A row that is there has a length that the rows of a matrix need not have.
        let known = self.dim(*array, *axis);
        (*array, *axis) = self.measured(*array, *axis);
        let (array, axis, n) = (*array, *axis, stmt.binds[0]);
        if let Some(known) = known.or_else(|| self.dim(array, axis)) {
            return self.replace(n, self.replaced.atom(known));
        }
        let number = self.lengths.len();
        self.lengths.insert(n, number);
        if let Some(length) = self.length_of_rows(array, axis) {
            self.row_lengths.insert(n, length);
            if let (Some(rows), 1) = (self.dim(array, 0), axis) {
                self.columns.entry(rows).or_default().push((n, length));
            }
        }
        self.keep(Key::Dim(array, axis), stmt, out);
    }

    /// The lengths of an array, as far as they are known.
    fn lengths_of(&self, array: Atom) -> Vec<Option<Atom>> {
        let known = |array: Var, axis: u8| self.dim(array, axis).or_else(|| self.find(&Key::Dim(array, axis)));
        array.var().map_or(Vec::new(), |array| (0..array.ty.rank).map(|axis| known(array, axis)).collect())
    }

    /// The first array whose shape an array is known to have.
    fn shaped_like(&self, array: Atom) -> Option<Var> {
        let mut var = array.var()?;
        while let Some(Made::Like(Atom::Var(other))) = self.made.get(&var) {
            var = *other;
        }
        Some(var)
    }

    /// Whether a result of the last of some blocks, each in the one before it, has the shape of the loop's state if that has kept it so far; `kept`: of which it
    /// is known.
    fn keeps_shape(&self, blocks: &[&Block], result: Atom, state: State, kept: &mut FxHashMap<Var, bool>) -> bool {
        let Some(var) = result.var() else { return false };
        if var == state.var {
            return true;
        }
        if let Some(known) = kept.get(&var) {
            return *known;
        }
        let Some(made) = state.bound.get(&var) else {
            return state.is_known() && self.are_equal(&self.lengths_of(self.replaced.atom(result)), blocks, state);
        };
        // Of a matrix without rows, nobody knows how long they would be.
        let has_length = |n: Atom| {
            let stmt = n.var().and_then(|n| state.bound.get(&n));
            let is_now = stmt.is_some_and(|s| matches!(s.op, Op::Dim { array, axis: 0 } if array == state.var));
            var.ty.rank == 1 && (is_now || self.are_equal(&[Some(self.number_in(n, state))], blocks, state))
        };
        let has_lengths = || {
            let lengths = self.lengths_in(var, state);
            let lengths = lengths.map(|lengths| lengths.into_iter().map(Some).collect::<Vec<_>>());
            lengths.is_some_and(|lengths| self.are_equal(&lengths, blocks, state))
        };
        let place = made.binds.iter().position(|v| *v == var).unwrap_or(0);
        let inner = match &made.op {
            Op::For(l) if place < l.carried.len() => Some((l.carried[place], &l.body, l.body.results[place])),
            Op::While(l) if place < l.carried.len() => Some((l.carried[place], &l.body, l.body.results[place + 1])),
            _ => None,
        };
        let mut keeps = |blocks: &[&Block], before: Atom| with_stack(|| self.keeps_shape(blocks, before, state, kept));
        if let Some(((inner, init), body, next)) = inner {
            if !keeps(blocks, init) {
                return false;
            }
            // It is taken to do so; if it does not, what was found meanwhile is not true.
            let before = kept.clone();
            kept.insert(inner, true);
            let stays = with_stack(|| self.keeps_shape(&[blocks, &[body]].concat(), next, state, kept));
            if !stays {
                *kept = before;
            }
            kept.insert(var, stays);
            return stays;
        }
        let keeps = match &made.op {
            Op::Set { array, .. } => keeps(blocks, (*array).into()),
            Op::Stop { value } | Op::Copy { value } | Op::Open { init: value } => keeps(blocks, *value),
            Op::Freeze { acc } => keeps(blocks, (*acc).into()),
            Op::Fill { dims, .. } => dims.first().is_some_and(|n| has_length(*n)) || has_lengths(),
            Op::For(l) => has_length(l.count) || has_lengths(),
            Op::Literal { .. } => has_lengths(),
            Op::If { then, otherwise, .. } => {
                [then, otherwise].iter().all(|side| keeps(&[blocks, &[side]].concat(), side.results[place]))
            }
            _ => false,
        };
        kept.insert(var, keeps);
        keeps
    }

    /// Whether lengths are those of the state, or a check in the blocks says so: if it fails, nobody sees them.
    fn are_equal(&self, lengths: &[Option<Atom>], blocks: &[&Block], state: State) -> bool {
        if lengths == state.first {
            return true;
        }
        let sides = |cond: Var| match state.bound.get(&cond).map(|s| &s.op) {
            Some(Op::Scalar { prim: Prim::Equal, args }) => Some([args[0], args[1]]),
            Some(_) => None,
            None => match self.made.get(&cond)? {
                Made::Scalar(Prim::Equal, args) => Some([args[0], args[1]]),
                _ => None,
            },
        };
        let checked = blocks.iter().flat_map(|b| &b.stmts).filter_map(|stmt| match stmt.op {
            Op::Check { cond: Atom::Var(cond), .. } => sides(cond),
            _ => None,
        });
        let equations: Vec<[Atom; 2]> = checked.map(|sides| sides.map(|side| self.number_in(side, state))).collect();
        let is = |a: Option<Atom>, b: Option<Atom>| match (a, b) {
            (Some(a), Some(b)) => a == b || equations.iter().any(|sides| *sides == [a, b] || *sides == [b, a]),
            _ => false,
        };
        lengths.len() == state.first.len() && lengths.iter().zip(state.first).all(|(a, b)| is(*a, *b))
    }

    /// The lengths of an array that is made in the loop, which is not simplified yet; whatever the program does: rows have a length only if there are any.
    fn lengths_in(&self, array: Var, state: State) -> Option<Vec<Atom>> {
        if array == state.var {
            return state.first.iter().copied().collect();
        }
        let Some(made) = state.bound.get(&array) else {
            return self.lengths_of(self.replaced.atom(array.into())).into_iter().collect();
        };
        if let Some(found) = state.found.borrow().get(&array) {
            return found.clone();
        }
        let lengths = self.lengths_made(array, made, state);
        state.found.borrow_mut().insert(array, lengths.clone());
        lengths
    }

    fn lengths_made(&self, array: Var, made: &Stmt, state: State) -> Option<Vec<Atom>> {
        // The lengths of so many rows, if there are any, or none would have that length.
        let of_rows = |count: Atom, row: Option<Var>| {
            let inside = row.map_or(Some(Vec::new()), |row| with_stack(|| self.lengths_in(row, state)))?;
            let is_some = matches!(count, Atom::Int(1..)) || inside.iter().all(|n| *n == count);
            is_some.then(|| [&[count], &inside[..]].concat())
        };
        match &made.op {
            Op::Set { array, .. } | Op::Freeze { acc: array } => with_stack(|| self.lengths_in(*array, state)),
            Op::Stop { value } | Op::Copy { value } | Op::Open { init: value } => {
                with_stack(|| self.lengths_in(value.var()?, state))
            }
            Op::Fill { dims, .. } => Some(dims.iter().map(|n| self.number_in(*n, state)).collect()),
            // Rows that differ in length are no array.
            Op::Literal { items, .. } => {
                let row = items.first().and_then(|row| row.var()).filter(|v| v.ty.is_array());
                of_rows(Atom::Int(items.len() as i64), row)
            }
            Op::For(l) => {
                let at = made.binds[l.carried.len()..].iter().position(|v| *v == array)?;
                let row = l.body.results[l.carried.len() + at].var().filter(|v| v.ty.is_array());
                of_rows(self.number_in(l.count, state), row)
            }
            Op::If { then, otherwise, .. } => {
                let at = made.binds.iter().position(|v| *v == array)?;
                let [one, other] =
                    [then, otherwise].map(|side| with_stack(|| self.lengths_in(side.results[at].var()?, state)));
                one.filter(|one| Some(one) == other.as_ref())
            }
            _ => None,
        }
    }

    /// A number in the loop; what it is, if it follows from the lengths of arrays of which these are known.
    fn number_in(&self, n: Atom, state: State) -> Atom {
        let n = self.replaced.atom(n);
        let made = |v: Var| state.bound.get(&v).filter(|s| s.binds.len() == 1);
        let number = |n: Atom| with_stack(|| self.number_in(n, state));
        let known = match n.var().and_then(made).map(|stmt| &stmt.op) {
            Some(Op::Dim { array, axis }) => {
                let lengths = with_stack(|| self.lengths_in(*array, state));
                lengths.and_then(|lengths| lengths.get(*axis as usize).copied())
            }
            Some(Op::Scalar { prim, args }) if args.iter().all(|arg| !arg.ty().is_real()) => {
                fold::scalar(*prim, &args.iter().map(|arg| number(*arg)).collect::<Vec<_>>())
            }
            Some(Op::Select { cond, then, otherwise }) => match number(*cond) {
                Atom::Bool(true) => Some(number(*then)),
                Atom::Bool(false) => Some(number(*otherwise)),
                _ => None,
            },
            Some(Op::If { cond, then, otherwise, .. }) => {
                let side = match number(*cond) {
                    Atom::Bool(true) => Some(then),
                    Atom::Bool(false) => Some(otherwise),
                    _ => None,
                };
                side.map(|side| with_stack(|| self.number_in(side.results[0], state)))
            }
            _ => None,
        };
        known.unwrap_or(n)
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
    pub(super) fn outer_lengths(
        &self,
        row: Atom,
        carried: &[(Var, Atom)],
        index: Option<Var>,
        body: &Block,
    ) -> Vec<Option<Atom>> {
        let Some(row) = row.var().filter(|v| v.ty.is_array()) else { return Vec::new() };
        let mut inside = FxHashSet::default();
        walk::for_each_binder(body, &mut |v| {
            inside.insert(v);
        });
        inside.extend(carried.iter().map(|(v, _)| *v).chain(index));
        let known = |axis| self.length_of_rows(row, axis).or_else(|| self.find(&Key::Dim(row, axis)));
        (0..row.ty.rank).map(|axis| known(axis).filter(|n| n.var().is_none_or(|v| !inside.contains(&v)))).collect()
    }

    /// The length of an array, if how it was made tells it.
    pub(super) fn dim(&self, array: Var, axis: u8) -> Option<Atom> {
        self.length(array, axis, 0)
    }

    /// The same, or what it is if the array has any rows, and these have: enough where one is about to be read.
    pub(super) fn length_of_rows(&self, array: Var, axis: u8) -> Option<Atom> {
        self.length(array, axis, Type::MAX_RANK)
    }

    /// `some`: along how many of the first axes the array is known to have anything. One without rows does not know how long they would have been.
    fn length(&self, array: Var, axis: u8, some: u8) -> Option<Atom> {
        let dim = |array: Var, axis: u8, some: u8| {
            self.length(array, axis, some).or_else(|| self.find(&Key::Dim(array, axis)))
        };
        match self.made.get(&array)? {
            Made::Fill(dims, _) => dims.get(axis as usize).copied(),
            Made::Literal(items) if axis == 0 => Some(Atom::Int(items.len() as i64)),
            Made::Literal(items) => {
                let first = items.first()?.var()?;
                dim(first, axis - 1, some.saturating_sub(1))
            }
            Made::Measured(lengths) => lengths.get(axis as usize).copied(),
            Made::Collected(count, _) if axis == 0 => *count,
            Made::Collected(count, row) => {
                let length = row.get(axis as usize - 1).copied().flatten()?;
                let mut around = [*count].into_iter().chain(row.iter().copied()).take(axis as usize);
                // If it is the number of rows, it is none if there are none.
                let is_some = |n: Option<Atom>| matches!(n, Some(Atom::Int(1..))) || n == Some(length);
                around.by_ref().take(some as usize).for_each(drop);
                around.all(is_some).then_some(length)
            }
            Made::Like(Atom::Var(other)) => dim(*other, axis, some),
            Made::Row(whole, index) => {
                // A row that is at hand is one of some.
                let rows = index.len() as u8;
                dim(*whole, axis + rows, some.saturating_add(rows))
            }
            Made::Scalar(..) | Made::Choice(..) | Made::Cell(..) | Made::Like(_) => None,
        }
    }

    /// An array made before another one, and which of its axes is as long as the other's.
    pub(super) fn measured(&self, mut array: Var, mut axis: u8) -> (Var, u8) {
        loop {
            (array, axis) = match self.made.get(&array) {
                Some(Made::Like(Atom::Var(other))) => (*other, axis),
                Some(Made::Row(whole, index)) => (*whole, axis + index.len() as u8),
                _ => return (array, axis),
            };
        }
    }
}
