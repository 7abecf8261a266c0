//! A loop of sums, and a later one that computes the same again, as the value of a function and its derivative do: the sums join the later one. Arrays that a
//! loop makes again join the earlier one.

mod names;

use super::failures::{can_fail, fail_later};
use crate::flow::walk::{self, for_each_operand, Renaming};
use crate::flow::*;
use gradus_core::traverse::with_stack;
use names::Names;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// How many statements behind a loop are looked at, besides those that only open sums.
const NEAR: usize = 32;
/// Statements that are looked for in vain, beyond which it would take too long.
const STRANGE: usize = 100;
/// Statements of a body, beyond which looking for one takes too long.
const LONG: usize = 3000;

pub fn run(block: &mut Block) {
    join_all(block, &Rc::new(walk::clamped(block)), &|_| true);
}

/// The same for loops that run loops with state only. These must still be as they were written: what the derivative does not want of the state is soon gone.
pub fn run_loops_in_turn(block: &mut Block) {
    fn has_state(block: &Block) -> bool {
        let mut found = false;
        walk::for_each_stmt(block, &mut |stmt| {
            found |= match &stmt.op {
                Op::For(l) => !l.carried.is_empty(),
                op => matches!(op, Op::While(_)),
            }
        });
        found
    }
    join_all(block, &Rc::new(walk::clamped(block)), &|l| has_state(&l.body));
}

/// `counts`: for lengths, the numbers of which they are the greater of these and zero.
fn join_all(block: &mut Block, counts: &Rc<FxHashMap<Var, Atom>>, may_join: &dyn Fn(&For) -> bool) {
    with_stack(|| {
        let inside = block.stmts.iter_mut().flat_map(|stmt| stmt.op.blocks_mut());
        inside.for_each(|inner| join_all(inner, counts, may_join));
        let mut at = 0;
        while at < block.stmts.len() {
            // After a loop has gone, another statement is in its place.
            let joins = matches!(&block.stmts[at].op, Op::For(l) if may_join(l));
            if !joins || !loops_near(block, at).into_iter().any(|later| join(block, at, later, counts)) {
                at += 1;
            }
        }
    })
}

/// Where the loops behind a loop are, as far as they are near.
fn loops_near(block: &Block, at: usize) -> Vec<usize> {
    if !matches!(block.stmts[at].op, Op::For(_)) {
        return Vec::new();
    }
    let mut others = 0;
    let mut is_near = |stmt: &Stmt| {
        others += usize::from(!matches!(stmt.op, Op::Open { .. }));
        others < NEAR
    };
    let behind = block.stmts.iter().enumerate().skip(at + 1).take_while(|(_, stmt)| is_near(stmt));
    behind.filter(|(_, stmt)| matches!(stmt.op, Op::For(_))).map(|(at, _)| at).collect()
}

/// Moves the sums of the loop at `first` into the loop at `later`, if it computes most of what they need. If something between them could then fail too early,
/// the later loop, which fails as the first does, comes to the place of that.
fn join(block: &mut Block, first: usize, later: usize, counts: &Rc<FxHashMap<Var, Atom>>) -> bool {
    let (Op::For(sums), Op::For(l)) = (&block.stmts[first].op, &block.stmts[later].op) else { return false };
    if sums.count != l.count || !block.stmts[first].binds.is_empty() || !l.carried.is_empty() {
        return false;
    }
    let Some(Joined { body, fails_alike }) = joined(sums, l, counts) else { return false };
    let between = &block.stmts[first + 1..later];
    let Some(dependent) = dependent(sums, between, &block.stmts[later]) else { return false };
    // Failures come in the order in which they came.
    let in_order = fail_later(between, &block.stmts[..=first]);
    let needed = match in_order || !fails_alike {
        true => None,
        false => needed(between, &block.stmts[later]),
    };
    if !in_order && needed.is_none() {
        return false;
    }
    let Stmt { op: Op::For(l), .. } = &mut block.stmts[later] else { return false };
    l.body = body;
    if let Some(needed) = needed {
        let whole = block.stmts.remove(later);
        let moved: Vec<Stmt> = needed.iter().rev().map(|at| block.stmts.remove(first + 1 + at)).collect();
        block.stmts.splice(first..=first, moved.into_iter().rev().chain([whole]));
        return true;
    }
    // Behind the loop goes what waits for the sums.
    let moved: Vec<Stmt> = dependent.iter().rev().map(|at| block.stmts.remove(first + 1 + at)).collect();
    let behind = later + 1 - moved.len();
    for stmt in moved {
        block.stmts.insert(behind, stmt);
    }
    block.stmts.remove(first);
    true
}

/// Lets an earlier loop collect what a loop collects that makes nothing else, if it computes it anyway; and what the arrays are called there. What the loop checks
/// is left to it.
pub(super) fn made_before(before: &mut [Stmt], later: &Stmt) -> Option<Renaming> {
    let Op::For(l) = &later.op else { return None };
    if !l.carried.is_empty() || adds_outside(&later.op) {
        return None;
    }
    let mut only_values = l.clone();
    without_checks(&mut only_values.body);
    let wanted = walk::free_vars(&l.body);
    for stmt in before.iter_mut().rev().take(NEAR) {
        if stmt.binds.iter().any(|v| wanted.contains(v)) {
            return None;
        }
        let Stmt { op: Op::For(first), binds, .. } = stmt else { continue };
        if first.count != l.count || !first.carried.is_empty() || !read_alike(&l.body, &first.body) {
            continue;
        }
        let (mut names, mut body) = (Names::default(), first.body.clone());
        let is_most = |shared: Shared| shared.same > 0 && shared.other <= shared.same;
        // What else is read is not known to be in bounds before it is checked.
        if names.join(&only_values, first.index, &mut body).is_some_and(is_most) && reads(&body) == reads(&first.body) {
            first.body = body;
            names.collect((&l.body.results, &later.binds), 0, &mut first.body.results, binds);
            return Some(names.of);
        }
    }
    None
}

fn without_checks(block: &mut Block) {
    fn is_check(stmt: &Stmt) -> bool {
        match &stmt.op {
            Op::Check { .. } => true,
            Op::If { then, otherwise, .. } if stmt.binds.is_empty() => {
                let mut inside = then.stmts.iter().chain(&otherwise.stmts);
                inside.all(|stmt| matches!(stmt.op, Op::Scalar { .. }) || with_stack(|| is_check(stmt)))
            }
            _ => false,
        }
    }
    with_stack(|| {
        block.stmts.retain(|stmt| !is_check(stmt));
        super::each_inside(block, without_checks);
    })
}

/// How many reads a block has.
fn reads(block: &Block) -> usize {
    let mut count = 0;
    walk::for_each_stmt(block, &mut |stmt| count += usize::from(array_read(stmt).is_some()));
    count
}

/// Whether two blocks read an array that is the same, or the first makes some or reads none: others have too little in common.
fn read_alike(one: &Block, other: &Block) -> bool {
    let mut read = FxHashSet::default();
    let mut makes_some = false;
    walk::for_each_stmt(one, &mut |stmt| {
        makes_some |= stmt.binds.iter().any(|v| v.ty.is_array());
        read.extend(array_read(stmt));
    });
    let mut alike = makes_some || read.is_empty();
    walk::for_each_stmt(other, &mut |stmt| alike |= array_read(stmt).is_some_and(|array| read.contains(&array)));
    alike
}

fn array_read(stmt: &Stmt) -> Option<Var> {
    match &stmt.op {
        Op::Get { array, .. } => Some(*array),
        _ => None,
    }
}

/// A loop that does what another does, too.
struct Joined {
    body: Block,
    /// Whether it checks nothing that the other does not check.
    fails_alike: bool,
}

/// The body of a loop with the sums of another, if it computes at least half of what they are computed from.
fn joined(sums: &For, l: &For, counts: &Rc<FxHashMap<Var, Atom>>) -> Option<Joined> {
    if !read_alike(&sums.body, &l.body) {
        return None;
    }
    let mut body = l.body.clone();
    let mut names = Names { counts: counts.clone(), ..Names::default() };
    let Shared { same, other } = names.join(sums, l.index, &mut body)?;
    (same > 0 && other <= same).then(|| Joined { fails_alike: names.failures == failures(&l.body.stmts), body })
}

/// How many statements of some, and inside them, can fail.
fn failures(stmts: &[Stmt]) -> usize {
    let own = |stmt: &Stmt| usize::from(matches!(stmt.op, Op::Check { .. } | Op::Call { .. } | Op::While(_)));
    let inside = |stmt: &Stmt| stmt.op.blocks().map(|block| failures(&block.stmts)).sum::<usize>();
    with_stack(|| stmts.iter().map(|stmt| own(stmt) + inside(stmt)).sum())
}

/// How many statements two loops have in common, and how many the first has besides.
struct Shared {
    same: usize,
    other: usize,
}

impl Shared {
    fn add(&mut self, more: Shared) {
        self.same += more.same;
        self.other += more.other;
    }
}

impl Names {
    /// Lets a body with this index do what the body of a loop does. It may have more loops inside, each of which joins one there.
    fn join(&mut self, sums: &For, index: Var, body: &mut Block) -> Option<Shared> {
        self.of.map.insert(sums.index, index.into());
        self.join_block(&sums.body, body)
    }

    /// Lets a block do what another does.
    fn join_block(&mut self, sums: &Block, body: &mut Block) -> Option<Shared> {
        if body.stmts.len() > LONG {
            return None;
        }
        self.opened.extend(self.sums_of_one_addition(sums));
        self.known.extend(self.sums_of_one_addition(body));
        let own = || sums.stmts.iter().flat_map(|stmt| &stmt.binds).copied().collect();
        let mut shared = Shared { same: 0, other: 0 };
        let (mut first, mut rest, mut next) = (Vec::new(), Vec::new(), 0);
        let mut met: FxHashSet<usize> = FxHashSet::default();
        for stmt in &sums.stmts {
            if rest.len() > STRANGE {
                return None;
            }
            // Which one it is will be known by the loop that adds to it.
            if matches!(stmt.op, Op::Open { .. }) && self.opened.contains_key(&stmt.binds[0]) {
                first.push(stmt);
                continue;
            }
            let at = self.find(stmt, &body.stmts, &mut next);
            // What can fail there is counted once.
            let is_new = at.is_some_and(|at| met.insert(at));
            let known = at.map(|at| &mut body.stmts[at]);
            self.failures +=
                known.iter().filter(|_| is_new).map(|known| failures(std::slice::from_ref(known))).sum::<usize>();
            match (&stmt.op, &stmt.binds[..], known) {
                (
                    Op::Scalar { .. }
                    | Op::Select { .. }
                    | Op::Stop { .. }
                    | Op::Get { .. }
                    | Op::Dim { .. }
                    | Op::Literal { .. }
                    | Op::Fill { .. },
                    [bind],
                    known,
                ) if bind.ty.shape().is_none() => match known {
                    Some(_) => shared.same += 1,
                    None => {
                        shared.other += 1;
                        rest.push(stmt.clone());
                    }
                },
                (Op::Freeze { .. } | Op::Add { .. }, _, Some(_)) => {}
                (Op::Set { .. }, _, Some(_)) => shared.same += 1,
                (Op::Freeze { acc }, _, None) if self.started.contains(acc) => rest.push(stmt.clone()),
                (Op::Add { acc, index, .. }, [], None) if acc.ty.rank == 0 && index.is_empty() => {
                    self.start(*acc)?;
                    rest.push(stmt.clone());
                }
                // It would have failed here.
                (Op::Check { .. }, [], Some(known)) => known.span = stmt.span,
                (Op::If { .. }, _, Some(known)) => {
                    shared.same += 1;
                    known.op = self.of.op(&stmt.op);
                    known.span = stmt.span;
                }
                (Op::While(_) | Op::For(_), binds, Some(known)) => {
                    shared.same += stmt.op.blocks().map(|inner| inner.stmts.len()).sum::<usize>();
                    if known.binds.len() == binds.len() {
                        known.op = self.of.op(&stmt.op);
                        known.span = stmt.span;
                    }
                }
                (Op::If { .. } | Op::For(_), binds, None) => {
                    let own = own();
                    let places = body.stmts.len();
                    let failures = self.failures;
                    let mut join = |at| match &stmt.op {
                        Op::For(inner) => Some((at, self.join_inside(inner, binds, body, at, &own)?)),
                        _ => Some((at, self.join_sides(stmt, body, at, &own)?)),
                    };
                    match (0..places).find_map(&mut join) {
                        Some((at, more)) => {
                            shared.add(more);
                            if !met.insert(at) {
                                self.failures = failures;
                            }
                        }
                        None if can_fail(stmt) || adds_outside(&stmt.op) => return None,
                        None => {
                            shared.other += stmt.op.blocks().map(|inner| inner.stmts.len()).sum::<usize>();
                            rest.push(stmt.clone());
                        }
                    }
                }
                _ => return None,
            }
        }
        body.stmts.extend(self.of.block(&Block { stmts: rest, results: Vec::new() }).stmts);
        let started = first.into_iter().filter(|stmt| self.started.contains(&stmt.binds[0]));
        let opens: Vec<Stmt> = started.map(|stmt| self.opening(stmt)).collect::<Option<_>>()?;
        body.stmts.splice(0..0, opens);
        Some(shared)
    }

    /// Where among some statements the same is done. They mostly are in the same order: what is behind the one that was found before comes first.
    fn find(&mut self, stmt: &Stmt, stmts: &[Stmt], next: &mut usize) -> Option<usize> {
        let at = (*next..stmts.len()).chain(0..*next).find(|at| self.is_same(stmt, &stmts[*at]))?;
        *next = at + 1;
        Some(at)
    }

    /// Lets the loop at a place of the later body do what one of the first body does, if everything that it needs for that is there in time; `own` is what the
    /// first body binds.
    fn join_inside(
        &mut self,
        inner: &For,
        binds: &[Var],
        later: &mut Block,
        at: usize,
        own: &FxHashSet<Var>,
    ) -> Option<Shared> {
        let (_, there) = later.stmts.split_at_mut(at);
        let (Stmt { op: Op::For(l), binds: arrays, .. }, behind) = there.split_first_mut()? else { return None };
        // What is noted for the way back is state, too, behind the other.
        let (states, more) = (inner.carried.len(), l.carried.len());
        let mut starts = inner.carried.iter().zip(&l.carried);
        if states > more || !self.is_count(inner.count, l.count) || !starts.all(|((_, a), (_, b))| self.is(*a, *b)) {
            return None;
        }
        let before = self.clone();
        let mut body = l.body.clone();
        self.of.map.extend(inner.carried.iter().zip(&l.carried).map(|((a, _), (b, _))| (*a, (*b).into())));
        self.depth += 1;
        let shared = with_stack(|| self.join(inner, l.index, &mut body)).filter(|shared| shared.same > 0);
        self.depth -= 1;
        let shared = shared.filter(|_| self.are(&inner.body.results[..states], &body.results[..states]));
        let is_late =
            |v: &Var| own.contains(v) || arrays.contains(v) || behind.iter().any(|stmt| stmt.binds.contains(v));
        if shared.is_none() || walk::free_vars(&body).iter().any(is_late) {
            *self = before;
            return None;
        }
        l.body = body;
        self.of.map.extend(binds[..states].iter().zip(&*arrays).map(|(a, b)| (*a, (*b).into())));
        self.collect((&inner.body.results[states..], &binds[states..]), more, &mut l.body.results, arrays);
        shared
    }

    /// Lets the branch at a place of the later block do what one of the first does, on the same condition and if everything is there in time.
    fn join_sides(&mut self, stmt: &Stmt, later: &mut Block, at: usize, own: &FxHashSet<Var>) -> Option<Shared> {
        let Op::If { cond, then, otherwise, .. } = &stmt.op else { return None };
        let (known, behind) = later.stmts[at..].split_first_mut()?;
        let binds = &mut known.binds;
        let Op::If { cond: known_cond, then: known_then, otherwise: known_otherwise, .. } = &mut known.op else {
            return None;
        };
        if !self.is(*cond, *known_cond) {
            return None;
        }
        let before = self.clone();
        let mut sides = [known_then.clone(), known_otherwise.clone()];
        let mut shared = Some(Shared { same: 0, other: 0 });
        for (side, joined) in [then, otherwise].into_iter().zip(&mut sides) {
            let more = with_stack(|| self.join_block(side, joined));
            shared = shared.zip(more).map(|(mut shared, more)| {
                shared.add(more);
                shared
            });
            joined.results.extend(side.results.iter().map(|result| self.of.atom(*result)));
        }
        let is_late =
            |v: &Var| own.contains(v) || binds.contains(v) || behind.iter().any(|stmt| stmt.binds.contains(v));
        if shared.is_none() || sides.iter().any(|side| walk::free_vars(side).iter().any(is_late)) {
            *self = before;
            return None;
        }
        let [then, otherwise] = sides;
        (*known_then, *known_otherwise) = (then, otherwise);
        for bind in &stmt.binds {
            binds.push(bind.refresh());
            self.of.map.insert(*bind, binds[binds.len() - 1].into());
        }
        shared
    }

    /// Lets a loop that has joined another collect what that one collects, behind its own state, unless it does.
    fn collect(
        &mut self,
        (results, binds): (&[Atom], &[Var]),
        states: usize,
        there: &mut Vec<Atom>,
        arrays: &mut Vec<Var>,
    ) {
        for (result, bind) in results.iter().zip(binds) {
            let result = self.of.atom(*result);
            let known = there.iter().skip(states).position(|r| *r == result);
            let at = known.map(|at| states + at).unwrap_or_else(|| {
                there.push(result);
                arrays.push(bind.refresh());
                arrays.len() - 1
            });
            self.of.map.insert(*bind, arrays[at].into());
        }
    }

    /// A sum that the later body has not is started there, unless it comes from outside. One that it has is not for adding more.
    fn start(&mut self, acc: Var) -> Option<()> {
        if self.opened.contains_key(&acc) && !self.started.contains(&acc) {
            if self.of.map.contains_key(&acc) {
                return None;
            }
            self.started.insert(acc);
            self.of.map.insert(acc, acc.refresh().into());
        }
        Some(())
    }

    /// How the later body opens such a sum, before all else.
    fn opening(&self, stmt: &Stmt) -> Option<Stmt> {
        let Op::Open { init } = stmt.op else { return None };
        let acc = self.of.atom(stmt.binds[0].into()).var()?;
        init.var().is_none().then(|| Stmt { binds: vec![acc], op: Op::Open { init }, span: stmt.span })
    }
}

fn adds_outside(op: &Op) -> bool {
    op.blocks().flat_map(walk::free_vars).any(|v| v.ty.accumulator)
}

/// Those of the statements between two loops that the second needs, if they can all be done before the first.
fn needed(between: &[Stmt], later: &Stmt) -> Option<Vec<usize>> {
    let mut wanted: FxHashSet<Var> = FxHashSet::default();
    later.for_each_use(&mut |v| {
        wanted.insert(v);
    });
    let mut found = Vec::new();
    for (at, stmt) in between.iter().enumerate().rev() {
        if !stmt.binds.iter().any(|v| wanted.contains(v)) {
            continue;
        }
        match stmt.op {
            Op::Scalar { .. }
            | Op::Select { .. }
            | Op::Copy { .. }
            | Op::Dim { .. }
            | Op::Fill { .. }
            | Op::Open { .. } => {}
            _ => return None,
        }
        stmt.op.for_each_operand(&mut |a| wanted.extend(a.var()));
        found.push(at);
    }
    found.reverse();
    Some(found)
}

/// Those of the statements between two loops that wait for the sums of the first; `None` if the second is among them, or one that must stay.
fn dependent(sums: &For, between: &[Stmt], later: &Stmt) -> Option<Vec<usize>> {
    let mut waited: FxHashSet<Var> = FxHashSet::default();
    for_each_operand(&sums.body, &mut |a| waited.extend(a.var().filter(|v| v.ty.accumulator)));
    let mut found = Vec::new();
    for (at, stmt) in between.iter().enumerate() {
        if waited.iter().any(|v| stmt.mentions(*v)) {
            if !matches!(stmt.op, Op::Freeze { .. } | Op::Scalar { .. } | Op::Select { .. } | Op::Copy { .. }) {
                return None;
            }
            waited.extend(&stmt.binds);
            found.push(at);
        }
    }
    waited.iter().all(|v| !later.mentions(*v)).then_some(found)
}
