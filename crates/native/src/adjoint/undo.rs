//! Arrays that a loop changes place by place, as with `set`: the way back undoes each change, so that what is kept for an iteration is what it
//! overwrites and not a copy of the array.

use super::*;
use gradus_core::traverse::with_stack;

/// State of a loop that an iteration hands on with a few places changed.
pub(super) struct Changed {
    /// Which state.
    pub(super) at: usize,
    /// In order; none, if the state stays as it is.
    pub(super) changes: Vec<Change>,
}

/// `after = set before index := ..`, or a branch whose sides do so, perhaps several times and in branches of their own.
pub(super) struct Change {
    before: Var,
    after: Var,
    /// The places that are overwritten, one after another; those of a branch stand for what one or the other side does.
    places: Vec<Place>,
}

/// A place that is overwritten, in the forward sweep.
struct Place {
    index: Vec<Atom>,
    /// What was there before.
    old: Var,
    /// In a branch: whether it is.
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
            match (&body.stmts[at].op, &change.places[..]) {
                (Op::Set { .. }, [place]) => {
                    let new = read(body.stmts[at].span, change.before, &place.index, place.old);
                    body.stmts.splice(at..at, new);
                }
                _ => give_places(&mut body.stmts[at], change),
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
    fn set(before: Var, after: Var, index: Vec<Atom>) -> Change {
        let old = Var::fresh(before.name.with("_old"), before.ty.at(index.len()));
        Change { before, after, places: vec![Place { index, old, happened: None }] }
    }

    /// Of a branch, which overwrites places that so many indices lead to.
    fn branch(before: Var, after: Var, depths: &[usize]) -> Change {
        let place = |depth: &usize| Place {
            index: (0..*depth).map(|_| Var::fresh("place", Type::INT).into()).collect(),
            old: Var::fresh(before.name.with("_old"), before.ty.at(*depth)),
            happened: Some(Var::fresh("changed", Type::BOOL)),
        };
        Change { before, after, places: depths.iter().map(place).collect() }
    }

    /// The array before the change, given the array after it and how to have what the forward sweep knew.
    pub(super) fn undo(&self, b: &mut Builder, after: Var, mut known: impl FnMut(&mut Builder, Atom) -> Atom) -> Var {
        self.places.iter().rev().fold(after, |after, place| {
            let happened = place.happened.map(|happened| known(b, happened.into()));
            let mut restored = |b: &mut Builder| {
                let index = place.index.iter().map(|atom| known(b, *atom)).collect();
                let old = known(b, place.old.into());
                b.set(after, index, old)
            };
            let Some(happened) = happened else { return restored(b) };
            b.push();
            let before = restored(b);
            let undone = b.pop(vec![before.into()]);
            let same = Block { stmts: Vec::new(), results: vec![after.into()] };
            b.branch(happened, undone, same)[0].var().unwrap_or(after)
        })
    }
}

/// Makes a branch give the places that it overwrites.
fn give_places(branch: &mut Stmt, change: &Change) {
    let Some(at) = branch.binds.iter().position(|v| *v == change.after) else { return };
    for side in branch.op.blocks_mut() {
        let result = side.results[at];
        let given = with_stack(|| places_of_side(side, result, &change.places));
        let missing = change.places[given.len()..].iter().map(|place| nothing(branch.span, change.before, place, side));
        let missing: Vec<_> = missing.collect();
        for (happened, index, old) in given.into_iter().chain(missing) {
            side.results.push(happened);
            side.results.extend(index);
            side.results.push(old);
        }
    }
    for place in &change.places {
        branch.binds.extend(place.happened);
        branch.binds.extend(place.index.iter().filter_map(|a| a.var()));
        branch.binds.push(place.old);
    }
}

/// Whether a place is overwritten, where, and what was there.
type Given = (Atom, Vec<Atom>, Atom);

/// The places that one side of a branch overwrites of the array that it gives, or those around them that the branch gives.
fn places_of_side(side: &mut Block, result: Atom, wanted: &[Place]) -> Vec<Given> {
    let mut changes = changes_before(side, result).map_or(Vec::new(), |(_, changes)| changes);
    for (place, wanted) in changes.iter_mut().flat_map(|change| &mut change.places).zip(wanted) {
        place.index.truncate(wanted.index.len());
        place.old = wanted.old.refresh();
    }
    let mut given = Vec::new();
    for change in changes.into_iter().rev() {
        let Some(at) = side.stmts.iter().position(|s| s.binds.contains(&change.after)) else { continue };
        match side.stmts[at].op {
            Op::Set { .. } => {
                let new = read(side.stmts[at].span, change.before, &change.places[0].index, change.places[0].old);
                side.stmts.splice(at..at, new);
            }
            _ => give_places(&mut side.stmts[at], &change),
        }
        given.extend(change.places.into_iter().rev().map(|place| {
            let happened = place.happened.map_or(Atom::Bool(true), Atom::Var);
            (happened, place.index, place.old.into())
        }));
    }
    given.reverse();
    given
}

/// What stands for a place where none is overwritten. Old values are of the same lengths, since they are kept together.
fn nothing(span: gradus_source::Span, before: Var, place: &Place, side: &mut Block) -> Given {
    let mut b = Builder::new();
    b.span = span;
    let depth = place.index.len();
    let dims = (depth..before.ty.rank as usize).map(|axis| b.dim(before, axis as u8)).collect();
    let old = b.fill(dims, Builder::zero(place.old.ty.scalar));
    // Before the array is changed, which would otherwise have to be copied.
    side.stmts.splice(0..0, b.pop(Vec::new()).stmts);
    (Atom::Bool(false), vec![Atom::Int(0); depth], old)
}

/// Reads what is about to be overwritten.
fn read(span: gradus_source::Span, array: Var, index: &[Atom], old: Var) -> Vec<Stmt> {
    let mut b = Builder::new();
    b.span = span;
    b.copy_out(old, array, index.to_vec());
    b.pop(Vec::new()).stmts
}

/// The changes that lead from the state to the next one.
fn changes(body: &Block, state: Var, next: Atom) -> Option<Vec<Change>> {
    let (before, changes) = changes_before(body, next)?;
    (before == state).then_some(changes)
}

/// The changes of a block that lead to an array, from one that comes from outside the block.
fn changes_before(block: &Block, array: Atom) -> Option<(Var, Vec<Change>)> {
    let mut after = array.var()?;
    let (mut found, mut places) = (Vec::new(), 0);
    while let Some(made) = block.stmts.iter().find(|s| s.binds.contains(&after)) {
        let change = match &made.op {
            Op::Set { array, index, .. } => Change::set(*array, after, index.clone()),
            Op::If { then, otherwise, .. } => with_stack(|| branch_change(made, [then, otherwise], after))?,
            _ => return None,
        };
        places += change.places.len();
        if places > FEW {
            return None;
        }
        after = change.before;
        found.push(change);
    }
    found.reverse();
    Some((after, found))
}

/// A branch of which each side gives an array with some places changed, or the array.
fn branch_change(branch: &Stmt, sides: [&Block; 2], after: Var) -> Option<Change> {
    let at = branch.binds.iter().position(|v| *v == after)?;
    let [(before, then), (other, otherwise)] =
        [changes_before(sides[0], sides[0].results[at])?, changes_before(sides[1], sides[1].results[at])?];
    let depths = |changes: Vec<Change>| -> Vec<usize> {
        changes.iter().flat_map(|change| &change.places).map(|place| place.index.len()).collect()
    };
    let (then, otherwise) = (depths(then), depths(otherwise));
    // The sides share the places, since only one of them runs; of a row and an element, the row.
    let depth = |at: usize| then.get(at).into_iter().chain(otherwise.get(at)).min().copied();
    let depths: Vec<usize> = (0..then.len().max(otherwise.len())).filter_map(depth).collect();
    (before == other).then(|| Change::branch(before, after, &depths))
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
    /// Makes a loop with this state collect what changes overwrite, and where.
    pub(super) fn collect(
        changed: Changed,
        carried: &[(Var, Atom)],
        index: Option<Var>,
        binds: &mut Vec<Var>,
        body: &mut Block,
    ) -> Self {
        changed.read_old(body);
        let changes = changed.changes;
        let mut known = FxHashMap::default();
        let wanted = |p: &Place| -> Vec<Var> {
            p.index.iter().filter_map(|a| a.var()).chain([p.old]).chain(p.happened).collect()
        };
        for var in changes.iter().flat_map(|change| &change.places).flat_map(wanted) {
            if let Some(by) = ahead(var, index, body) {
                known.insert(var, Known::Ahead(by));
            } else if carried.iter().any(|(state, _)| *state == var)
                || body.stmts.iter().any(|s| s.binds.contains(&var))
            {
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
