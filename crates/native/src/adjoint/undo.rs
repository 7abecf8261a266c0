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
    pub(super) fn read_old(&mut self, body: &mut Block) {
        self.changes.iter_mut().for_each(|change| change.read_old(body));
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

/// The places that a body changes of a state which loops inside it change, too: from the last change to the first.
pub(super) fn changes_between_loops(body: &Block, state: Var, next: Atom) -> Option<Vec<Change>> {
    let mut after = next.var()?;
    let (mut changes, mut loops, mut places) = (Vec::new(), 0, 0);
    while after != state {
        let made = body.stmts.iter().find(|s| s.binds.contains(&after))?;
        if let Some(before) = before_loop(made, after) {
            loops += 1;
            after = before;
            continue;
        }
        let change = change_by(made, after)?;
        after = change.before;
        places += change.places.len();
        changes.push(change);
    }
    (loops > 0 && (1..=FEW).contains(&places)).then_some(changes)
}

/// What a loop begins with that gives an array as its last state.
pub(super) fn before_loop(stmt: &Stmt, after: Var) -> Option<Var> {
    let at = stmt.binds.iter().position(|v| *v == after)?;
    let carried = match &stmt.op {
        Op::For(l) => &l.carried,
        Op::While(l) => &l.carried,
        _ => return None,
    };
    carried.get(at)?.1.var()
}

impl Change {
    /// The arrays before it and after it.
    pub(super) fn versions(&self) -> (Var, Var) {
        (self.before, self.after)
    }

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

    /// Makes the block of the change read what it overwrites.
    pub(super) fn read_old(&mut self, block: &mut Block) {
        let Some(at) = block.stmts.iter().position(|s| s.binds.contains(&self.after)) else { return };
        match (&block.stmts[at].op, &self.places[..]) {
            (Op::Set { .. }, [place]) => {
                let new = read(block.stmts[at].span, self.before, &place.index, place.old);
                block.stmts.splice(at..at, new);
            }
            _ => give_places(block, at, self),
        }
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

/// Makes a branch give the places that it overwrites, where its sides do not agree.
fn give_places(block: &mut Block, at: usize, change: &mut Change) {
    let (before, rest) = block.stmts.split_at_mut(at);
    let Some(Stmt { binds, op: Op::If { cond, then, otherwise, .. }, span }) = rest.first_mut() else { return };
    let Some(result) = binds.iter().position(|v| *v == change.after) else { return };
    let give = |side: &mut Block| {
        let result = side.results[result];
        let mut given = with_stack(|| places_of_side(side, result, &change.places));
        let missing = &change.places[given.len()..];
        given.extend(missing.iter().map(|place| nothing(*span, change.before, place, side)));
        given
    };
    let sides = give(then).into_iter().zip(give(otherwise));
    let equal = if_equal(before, *cond);
    let inner = [bound(then), bound(otherwise)].concat();
    let is_outside = |atom: Atom| atom.var().is_none_or(|v| !inner.contains(&v));
    let mut agree = |bind: Var, on_then: Atom, on_otherwise: Atom| {
        let same =
            on_then == on_otherwise || equal.is_some_and(|[x, y]| [[x, y], [y, x]].contains(&[on_then, on_otherwise]));
        if same && is_outside(on_otherwise) {
            return on_otherwise;
        }
        binds.push(bind);
        then.results.push(on_then);
        otherwise.results.push(on_otherwise);
        bind.into()
    };
    let mut olds = Vec::new();
    for (place, (on_then, on_otherwise)) in change.places.iter_mut().zip(sides) {
        let happened = place.happened.map(|v| match (on_then.happened, on_otherwise.happened) {
            (Atom::Bool(true), Atom::Bool(false)) if cond.var().is_some() => *cond,
            (on_then, on_otherwise) => agree(v, on_then, on_otherwise),
        });
        place.happened = happened.and_then(|a| a.var());
        // A side that overwrites nothing agrees to any place.
        let place_of = |side: &Given, other: &Given, at: usize| match side.happened {
            Atom::Bool(false) if is_outside(other.index[at]) => other.index[at],
            _ => side.index[at],
        };
        for (at, index) in place.index.iter_mut().enumerate() {
            if let Atom::Var(v) = *index {
                *index = agree(v, place_of(&on_then, &on_otherwise, at), place_of(&on_otherwise, &on_then, at));
            }
        }
        olds.push((place.old, on_then.old, on_otherwise.old));
    }
    // Each side has read its own.
    for (old, on_then, on_otherwise) in olds {
        binds.push(old);
        then.results.push(on_then);
        otherwise.results.push(on_otherwise);
    }
}

/// The integers that are equal if a condition holds.
fn if_equal(before: &[Stmt], cond: Atom) -> Option<[Atom; 2]> {
    let made = before.iter().find(|s| s.binds.first().is_some_and(|v| cond == (*v).into()))?;
    match &made.op {
        Op::Scalar { prim: Prim::Equal, args } if args.iter().all(|a| a.ty() == Type::INT) => args[..].try_into().ok(),
        _ => None,
    }
}

/// The variables that a block binds, but for those of blocks inside.
fn bound(block: &Block) -> Vec<Var> {
    block.stmts.iter().flat_map(|s| s.binds.iter().copied()).collect()
}

/// Whether a place is overwritten, where, and what was there.
struct Given {
    happened: Atom,
    index: Vec<Atom>,
    old: Atom,
}

/// The places that one side of a branch overwrites of the array that it gives, or those around them that the branch gives.
fn places_of_side(side: &mut Block, result: Atom, wanted: &[Place]) -> Vec<Given> {
    let mut changes = changes_before(side, result).map_or(Vec::new(), |(_, changes)| changes);
    for (place, wanted) in changes.iter_mut().flat_map(|change| &mut change.places).zip(wanted) {
        place.index.truncate(wanted.index.len());
        place.old = wanted.old.refresh();
    }
    let mut given = Vec::new();
    for mut change in changes.into_iter().rev() {
        change.read_old(side);
        given.extend(change.places.into_iter().rev().map(|place| {
            let happened = place.happened.map_or(Atom::Bool(true), Atom::Var);
            Given { happened, index: place.index, old: place.old.into() }
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
    Given { happened: Atom::Bool(false), index: vec![Atom::Int(0); depth], old }
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
        let change = change_by(made, after)?;
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

/// The change by a statement that gives an array.
fn change_by(stmt: &Stmt, after: Var) -> Option<Change> {
    match &stmt.op {
        Op::Set { array, index, .. } => Some(Change::set(*array, after, index.clone())),
        Op::If { then, otherwise, .. } => with_stack(|| branch_change(stmt, [then, otherwise], after)),
        _ => None,
    }
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

enum Known {
    /// It follows from the number of the iteration, which takes the place of the variable.
    Computed(Var, Vec<Stmt>),
    /// Over all iterations.
    Kept(Atom),
}

/// What follows from the number of an iteration in more steps than these is kept.
const STEPS: usize = 4;

impl Overwritten {
    /// Makes a loop with this state collect what changes overwrite, and where.
    pub(super) fn collect(
        mut changed: Changed,
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
            let computed = index.and_then(|index| Some((index, steps_to(var, index, carried, body)?)));
            if let Some((index, steps)) = computed {
                known.insert(var, Known::Computed(index, steps));
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

    /// Whether places are overwritten, as far as that is kept over all iterations.
    pub(super) fn conditions(&self) -> impl Iterator<Item = (Var, Atom)> + '_ {
        let happened = self.changes.iter().flat_map(|change| &change.places).filter_map(|place| place.happened);
        happened.filter_map(|happened| match self.known.get(&happened)? {
            Known::Kept(all) => Some((happened, *all)),
            Known::Computed(..) => None,
        })
    }

    /// The array before iteration `i`, given the array after it.
    pub(super) fn undo(&self, b: &mut Builder, last: Var, i: Atom) -> Var {
        self.changes.iter().rev().fold(last, |after, change| {
            change.undo(b, after, |b, atom| match atom.var().and_then(|v| self.known.get(&v)) {
                Some(Known::Computed(index, steps)) => {
                    let mut here = Renaming::default();
                    here.map.insert(*index, i);
                    steps.iter().for_each(|step| b.stmt(here.stmt(step)));
                    here.atom(atom)
                }
                Some(Known::Kept(all)) => b.get(*all, vec![i]),
                // The same in all iterations.
                None => atom,
            })
        })
    }
}

/// How an integer follows from the index of a loop and what is known outside.
fn steps_to(var: Var, index: Var, carried: &[(Var, Atom)], body: &Block) -> Option<Vec<Stmt>> {
    let mut wanted = vec![var];
    let mut steps = Vec::new();
    for stmt in body.stmts.iter().rev() {
        if !stmt.binds.iter().any(|v| wanted.contains(v)) {
            continue;
        }
        let Op::Scalar { prim: Prim::AddInt | Prim::SubInt | Prim::MulInt | Prim::NegInt, args } = &stmt.op else {
            return None;
        };
        wanted.extend(args.iter().filter_map(|a| a.var()));
        steps.push(stmt.clone());
    }
    steps.reverse();
    let varies = carried.iter().any(|(state, _)| wanted.contains(state));
    (wanted.contains(&index) && !varies && steps.len() <= STEPS).then_some(steps)
}
