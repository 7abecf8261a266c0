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

/// `after = set before index := ..`, or a branch that does so on one side or both.
pub(super) struct Change {
    before: Var,
    after: Var,
    /// In the forward sweep.
    index: Vec<Atom>,
    /// What was there before, in the forward sweep.
    old: Var,
    /// For a branch: whether there was a change, in the forward sweep.
    happened: Option<Var>,
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
            let Some(at) = body.stmts.iter().position(|s| s.binds.contains(&change.after)) else { continue };
            match change.happened {
                Some(happened) => change.read_old_of_branch(&mut body.stmts[at], happened),
                None => {
                    let new = read(body.stmts[at].span, change.before, &change.index, change.old);
                    body.stmts.splice(at..at, new);
                }
            }
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

impl Change {
    fn new(before: Var, after: Var, index: Vec<Atom>) -> Change {
        let old = Var::fresh(before.name.with("_old"), before.ty.at(index.len()));
        Change { before, after, index, old, happened: None }
    }

    /// Makes a branch give whether it changes the array, where, and what was there.
    fn read_old_of_branch(&self, branch: &mut Stmt, happened: Var) {
        let Some(at) = branch.binds.iter().position(|v| *v == self.after) else { return };
        for side in branch.op.blocks_mut() {
            let made = side.results[at].var().and_then(|v| side.stmts.iter().position(|s| s.binds == [v]));
            let place = made.and_then(|at| match &side.stmts[at].op {
                Op::Set { index, .. } => Some((at, index.clone())),
                _ => None,
            });
            side.results.push(Atom::Bool(place.is_some()));
            match place {
                Some((at, index)) => {
                    let old = self.old.refresh();
                    side.stmts.splice(at..at, read(branch.span, self.before, &index, old));
                    side.results.extend(index);
                    side.results.push(old.into());
                }
                None => {
                    side.results.extend(self.index.iter().map(|_| Atom::Int(0)));
                    side.results.push(Builder::zero(self.old.ty.scalar));
                }
            }
        }
        branch.binds.push(happened);
        branch.binds.extend(self.index.iter().filter_map(|a| a.var()));
        branch.binds.push(self.old);
    }

    /// The array before the change, given the array after it and how to have what the forward sweep knew.
    pub(super) fn undo(&self, b: &mut Builder, after: Var, mut known: impl FnMut(&mut Builder, Atom) -> Atom) -> Var {
        let happened = self.happened.map(|happened| known(b, happened.into()));
        let mut restored = |b: &mut Builder| {
            let index = self.index.iter().map(|atom| known(b, *atom)).collect();
            let old = known(b, self.old.into());
            b.set(after, index, old)
        };
        let Some(happened) = happened else { return restored(b) };
        b.push();
        let before = restored(b);
        let undone = b.pop(vec![before.into()]);
        let same = Block { stmts: Vec::new(), results: vec![after.into()] };
        b.branch(happened, undone, same)[0].var().unwrap_or(after)
    }
}

/// Reads what is about to be overwritten.
fn read(span: gradus_source::Span, array: Var, index: &[Atom], old: Var) -> Vec<Stmt> {
    let mut b = Builder::new();
    b.span = span;
    if old.ty.is_array() {
        // A row of its own: with a view of the row, nobody could change the array in place.
        let (j, count) = (Var::fresh("j", Type::INT), b.dim(array, index.len() as u8));
        b.push();
        let item = b.get(array.into(), [index, &[j.into()]].concat());
        let body = b.pop(vec![item]);
        b.bind(vec![old], Op::For(For { index: j, count, carried: Vec::new(), body, replayed: false }));
    } else {
        b.bind(vec![old], Op::Get { array, index: index.to_vec() });
    }
    b.pop(Vec::new()).stmts
}

/// The changes that lead from the state to the next one.
fn changes(body: &Block, state: Var, next: Atom) -> Option<Vec<Change>> {
    let mut after = next.var()?;
    let mut found = Vec::new();
    while after != state {
        let made = body.stmts.iter().find(|s| s.binds.contains(&after))?;
        let change = match &made.op {
            Op::Set { array, index, .. } => Change::new(*array, after, index.clone()),
            Op::If { then, otherwise, .. } => branch_change(made, [then, otherwise], after)?,
            _ => return None,
        };
        if change.old.ty.rank > 1 || found.len() == FEW {
            return None;
        }
        after = change.before;
        found.push(change);
    }
    found.reverse();
    Some(found)
}

/// A branch of which each side gives an array with one number changed, or the array.
fn branch_change(branch: &Stmt, sides: [&Block; 2], after: Var) -> Option<Change> {
    let at = branch.binds.iter().position(|v| *v == after)?;
    let mut change: Option<(Var, usize)> = None;
    let mut arrays = Vec::new();
    for side in sides {
        let result = side.results[at].var()?;
        match side.stmts.iter().find(|s| s.binds.contains(&result)).map(|s| &s.op) {
            Some(Op::Set { array, index, .. }) => {
                if side.stmts.iter().any(|s| s.binds.contains(array)) || index.len() != array.ty.rank as usize {
                    return None;
                }
                arrays.push(*array);
                change = Some((*array, index.len()));
            }
            Some(_) => return None,
            None => arrays.push(result),
        }
    }
    let (array, indices) = change.filter(|_| arrays[0] == arrays[1])?;
    let index = (0..indices).map(|_| Var::fresh("place", Type::INT).into()).collect();
    let happened = Some(Var::fresh("changed", Type::BOOL));
    Some(Change { happened, ..Change::new(array, after, index) })
}

/// What the forward sweep keeps of a state variable of a loop.
pub(super) enum Saved {
    /// All of it, for each iteration.
    States(Atom),
    /// What its changes overwrite, and where, for each iteration.
    Old(Overwritten),
}

pub(super) struct Overwritten {
    changes: Vec<Change>,
    /// How the backward sweep knows what the forward sweep knew.
    known: FxHashMap<Var, Known>,
}

#[derive(Clone, Copy)]
enum Known {
    /// The number of the iteration and so many more.
    Ahead(i64),
    /// Over all iterations.
    Kept(Atom),
}

impl Overwritten {
    /// Makes a loop collect what changes overwrite, and where.
    pub(super) fn collect(changed: Changed, index: Option<Var>, binds: &mut Vec<Var>, body: &mut Block) -> Self {
        changed.read_old(body);
        let changes = changed.changes;
        let mut known = FxHashMap::default();
        let wanted =
            |c: &Change| c.index.iter().filter_map(|a| a.var()).chain([c.old]).chain(c.happened).collect::<Vec<_>>();
        for var in changes.iter().flat_map(wanted) {
            if let Some(by) = ahead(var, index, body) {
                known.insert(var, Known::Ahead(by));
            } else if body.stmts.iter().any(|s| s.binds.contains(&var)) {
                let all = Var::fresh(var.name.with("_saved"), var.ty.in_array());
                body.results.push(var.into());
                binds.push(all);
                known.insert(var, Known::Kept(all.into()));
            }
        }
        Overwritten { changes, known }
    }

    /// The array before iteration `i`, given the array after it.
    pub(super) fn undo(&self, b: &mut Builder, last: Var, i: Atom) -> Var {
        self.changes.iter().rev().fold(last, |after, change| {
            change.undo(b, after, |b, atom| match atom.var().and_then(|v| self.known.get(&v)) {
                Some(Known::Ahead(by)) => b.scalar(Prim::AddInt, &[i, Atom::Int(*by)]),
                Some(Known::Kept(all)) => b.get(*all, vec![i]),
                // The same in all iterations.
                None => atom,
            })
        })
    }
}

/// How far an integer is ahead of the index of the loop.
fn ahead(var: Var, index: Option<Var>, body: &Block) -> Option<i64> {
    let index = index?;
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
