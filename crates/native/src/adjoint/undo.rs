//! Arrays that a loop changes place by place, as with `set`: the way back undoes each change, so that what is kept for an iteration is what it
//! overwrites and not a copy of the array.

use super::*;

/// State of a loop that an iteration hands on with a few places changed.
pub(super) struct Changed {
    /// Which state.
    pub(super) at: usize,
    /// In order; none, if the state stays as it is.
    pub(super) changes: Vec<Change>,
}

/// `after = set before index := ..`
pub(super) struct Change {
    before: Var,
    after: Var,
    pub(super) index: Vec<Atom>,
    /// What was there before, in the forward sweep.
    pub(super) old: Var,
}

/// More changes than this in an iteration are not followed.
const FEW: usize = 8;

impl Changed {
    /// The state of a loop that is changed place by place. `skip`: how many of the body's results come before the state.
    pub(super) fn find(carried: &[(Var, Atom)], body: &Block, skip: usize) -> Vec<Changed> {
        let arrays = carried.iter().enumerate().filter(|(_, (v, _))| v.ty.is_array() && v.ty.shape().is_none());
        let found = arrays.filter_map(|(at, (state, _))| {
            let changes = changes(body, *state, *body.results.get(at + skip)?)?;
            Some(Changed { at, changes })
        });
        found.collect()
    }

    /// Makes the body of the forward sweep read what it overwrites.
    pub(super) fn read_old(&self, body: &mut Block) {
        for change in &self.changes {
            let Some(at) = body.stmts.iter().position(|s| s.binds == [change.after]) else { continue };
            let mut b = Builder::new();
            b.span = body.stmts[at].span;
            if change.old.ty.is_array() {
                // A row of its own: with a view of the row, nobody could change the array in place.
                let (j, count) = (Var::fresh("j", Type::INT), b.dim(change.before, change.index.len() as u8));
                b.push();
                let place = [&change.index[..], &[j.into()]].concat();
                let item = b.get(change.before.into(), place);
                let copy = b.pop(vec![item]);
                b.bind(
                    vec![change.old],
                    Op::For(For { index: j, count, carried: Vec::new(), body: copy, replayed: false }),
                );
            } else {
                b.bind(vec![change.old], Op::Get { array: change.before, index: change.index.clone() });
            }
            let new = b.pop(Vec::new()).stmts;
            body.stmts.splice(at..at, new);
        }
    }

    /// The arrays before each change and after the last, in the backward sweep, which begins with what the iteration handed on.
    pub(super) fn undone(&self, state: Var, last: Var, mut undo: impl FnMut(Var, &Change) -> Var) -> Vec<(Var, Var)> {
        let mut now = last;
        let mut found = Vec::new();
        for change in self.changes.iter().rev() {
            found.push((change.after, now));
            now = undo(now, change);
        }
        found.push((state, now));
        found
    }
}

/// The changes that lead from the state to the next one.
fn changes(body: &Block, state: Var, next: Atom) -> Option<Vec<Change>> {
    let mut after = next.var()?;
    let mut found = Vec::new();
    while after != state {
        let made = body.stmts.iter().find(|s| s.binds == [after])?;
        let Op::Set { array, index, .. } = &made.op else { return None };
        let ty = array.ty.at(index.len());
        if ty.rank > 1 || found.len() == FEW {
            return None;
        }
        found.push(Change {
            before: *array,
            after,
            index: index.clone(),
            old: Var::fresh(state.name.with("_old"), ty),
        });
        after = *array;
    }
    found.reverse();
    Some(found)
}

/// What the forward sweep keeps of a state variable of a loop.
pub(super) enum Saved {
    /// All of it, for each iteration.
    States(Atom),
    /// For each change what it overwrites, in each iteration.
    Old(Vec<Overwritten>),
}

pub(super) struct Overwritten {
    index: Vec<Index>,
    /// Over all iterations.
    old: Atom,
}

/// How the backward sweep knows an index.
enum Index {
    /// The same in all iterations.
    Fixed(Atom),
    /// The number of the iteration and so many more.
    Ahead(i64),
    /// Over all iterations.
    Kept(Atom),
}

impl Overwritten {
    /// Makes a loop collect what a change overwrites, and where.
    pub(super) fn collect(change: &Change, loop_index: Option<Var>, binds: &mut Vec<Var>, body: &mut Block) -> Self {
        let mut keep = |atom: Atom, name: Name, body: &mut Block| {
            let all = Var::fresh(name.with("_saved"), atom.ty().in_array());
            body.results.push(atom);
            binds.push(all);
            Atom::from(all)
        };
        let old = keep(change.old.into(), change.old.name, body);
        let index = change.index.iter().map(|atom| match (atom, ahead(*atom, loop_index, body)) {
            (_, Some(by)) => Index::Ahead(by),
            (Atom::Var(v), None) if body.stmts.iter().any(|s| s.binds.contains(v)) => {
                Index::Kept(keep(*atom, v.name, body))
            }
            (fixed, None) => Index::Fixed(*fixed),
        });
        Overwritten { index: index.collect(), old }
    }

    /// The array before the change, given the array after it, in iteration `i`.
    pub(super) fn undo(&self, b: &mut Builder, after: Var, i: Atom) -> Var {
        let index = self.index.iter().map(|index| match index {
            Index::Fixed(atom) => *atom,
            Index::Ahead(by) => b.scalar(Prim::AddInt, &[i, Atom::Int(*by)]),
            Index::Kept(all) => b.get(*all, vec![i]),
        });
        let index = index.collect();
        let old = b.get(self.old, vec![i]);
        b.set(after, index, old)
    }
}

/// How far an integer is ahead of the index of the loop.
fn ahead(atom: Atom, index: Option<Var>, body: &Block) -> Option<i64> {
    let (var, index) = (atom.var()?, index?);
    if var == index {
        return Some(0);
    }
    let made = body.stmts.iter().find(|s| s.binds == [var])?;
    match &made.op {
        Op::Scalar { prim: Prim::AddInt, args } => match args[..] {
            [i, Atom::Int(k)] | [Atom::Int(k), i] if i == index.into() => Some(k),
            _ => None,
        },
        Op::Scalar { prim: Prim::SubInt, args } => match args[..] {
            [i, Atom::Int(k)] if i == index.into() => k.checked_neg(),
            _ => None,
        },
        _ => None,
    }
}
