//! Loops that look for the best of several things, such as the nearest that a ray hits: an iteration replaces the state by what does not depend on it, or
//! keeps it. Only one iteration has a slope, the last that replaced the state. So the loop notes which that was and what it began with, and the way back runs it
//! again, instead of keeping the state of every iteration and running all of them again. Of the list that such a loop walks through it is enough to know how far that was
//! (see `walks`).

use super::control::count_iterations;
use super::extremes::is_pure;
use super::walks::Walk;
use super::*;
use crate::exits;
use gradus_core::traverse::with_stack;

/// More decisions than this are no choice that people write.
const MANY: usize = 64;

/// What becomes of a part of the state in an iteration.
#[derive(Clone, PartialEq)]
enum Fate {
    Kept,
    Replaced,
    Depends(Atom, Box<[Fate; 2]>),
}

/// A loop that chooses.
struct Choice {
    /// The first part of the state that is chosen.
    first: usize,
    /// The variables through which it passes.
    passed: FxHashSet<Var>,
    /// What walks through the cells among which it chooses.
    walks: Vec<Walk>,
}

/// What a loop has noted: the number of the iteration that counts, and the state at its start.
pub(super) struct Chosen {
    last: Var,
    before: Vec<Atom>,
    walks: Vec<Walk>,
    /// How many iterations a loop has that ends by a condition.
    count: Option<Var>,
}

/// The parts of a loop.
struct Parts<'a> {
    carried: &'a [(Var, Atom)],
    body: &'a Block,
    /// What the body gives the state.
    next: &'a [Atom],
}

fn parts(op: &Op) -> Option<Parts<'_>> {
    let (carried, body, next) = match op {
        Op::For(l) => (&l.carried, &l.body, &l.body.results[..]),
        Op::While(l) => (&l.carried, &l.body, &l.body.results[1..]),
        _ => return None,
    };
    (next.len() == carried.len()).then_some(Parts { carried, body, next })
}

/// The body of a loop as it is when the loop goes on, and its index.
fn going_on(op: &Op) -> Option<(Block, Option<Var>)> {
    match op {
        Op::For(l) => Some((l.body.clone(), Some(l.index))),
        Op::While(l) => {
            let mut body = exits::going_on(l)?;
            body.results.remove(0);
            Some((body, None))
        }
        _ => None,
    }
}

/// Follows a part of the state back to where it is kept or replaced.
struct Follow<'a> {
    state: Var,
    bound: &'a FxHashMap<Var, &'a Stmt>,
    /// The variables on the way.
    passed: FxHashSet<Var>,
    /// How many decisions there were.
    decisions: usize,
    /// What depends on the state, and so cannot replace it.
    depends_on: &'a FxHashSet<Var>,
}

impl Follow<'_> {
    fn fate(&mut self, atom: Atom) -> Option<Fate> {
        let Some(var) = atom.var() else { return Some(Fate::Replaced) };
        if var == self.state {
            return Some(Fate::Kept);
        }
        let decision = self.bound.get(&var).and_then(|stmt| match &stmt.op {
            Op::Select { cond, then, otherwise } => Some((*cond, [*then, *otherwise])),
            Op::If { cond, then, otherwise, .. } => {
                let at = stmt.binds.iter().position(|v| *v == var)?;
                Some((*cond, [then.results[at], otherwise.results[at]]))
            }
            _ => None,
        });
        let Some((cond, [then, otherwise])) = decision else {
            return (!self.depends_on.contains(&var)).then_some(Fate::Replaced);
        };
        self.passed.insert(var);
        self.decisions += 1;
        if self.decisions > MANY {
            return None;
        }
        let (then, otherwise) = (self.fate(then)?, self.fate(otherwise)?);
        Some(if then == otherwise { then } else { Fate::Depends(cond, Box::new([then, otherwise])) })
    }
}

/// Lets a block say whether a part of the state was replaced, for each variable that it passes through.
struct Tell<'a> {
    state: Var,
    passed: &'a FxHashSet<Var>,
    told: FxHashMap<Var, Atom>,
}

impl Tell<'_> {
    fn is_replaced(&self, atom: Atom) -> Atom {
        match atom.var() {
            Some(var) if var == self.state => Atom::Bool(false),
            Some(var) => self.told.get(&var).copied().unwrap_or(Atom::Bool(true)),
            None => Atom::Bool(true),
        }
    }

    fn block(&mut self, block: &mut Block) {
        let mut out = Vec::with_capacity(block.stmts.len() + 1);
        for mut stmt in std::mem::take(&mut block.stmts) {
            stmt.op.blocks_mut().for_each(|inner| with_stack(|| self.block(inner)));
            let passed: Vec<usize> =
                (0..stmt.binds.len()).filter(|at| self.passed.contains(&stmt.binds[*at])).collect();
            let mut select = None;
            for at in passed {
                let replaced = Var::fresh("replaced", Type::BOOL);
                let told = self.told_by(&mut stmt.op, at);
                match told {
                    Some(op) => select = Some(Stmt { binds: vec![replaced], op, span: stmt.span }),
                    None => stmt.binds.push(replaced),
                }
                self.told.insert(stmt.binds[at], replaced.into());
            }
            out.push(stmt);
            out.extend(select);
        }
        block.stmts = out;
    }

    /// What tells it beside a choice between numbers; a branch tells it itself.
    fn told_by(&self, op: &mut Op, at: usize) -> Option<Op> {
        match op {
            Op::Select { cond, then, otherwise } => {
                let [then, otherwise] = [*then, *otherwise].map(|side| self.is_replaced(side));
                Some(Op::Select { cond: *cond, then, otherwise })
            }
            op => {
                for side in op.blocks_mut() {
                    let replaced = self.is_replaced(side.results[at]);
                    side.results.push(replaced);
                }
                None
            }
        }
    }
}

impl Sweep<'_> {
    /// What a loop chooses, if it does no more than that.
    fn choice(&self, op: &Op) -> Option<Choice> {
        let Parts { carried, body, next } = parts(op)?;
        let active = (0..carried.len()).filter(|at| self.active.contains(&carried[*at].0));
        let (walking, chosen): (Vec<usize>, Vec<usize>) = active.partition(|at| carried[*at].0.ty.shape().is_some());
        let first = *chosen.first()?;
        let is_decided = |stmt: &&Stmt| matches!(stmt.op, Op::If { .. } | Op::Select { .. });
        let decided = body.stmts.iter().filter(is_decided).flat_map(|stmt| &stmt.binds);
        let decided: FxHashSet<Atom> = decided.map(|v| Atom::Var(*v)).collect();
        if !chosen.iter().all(|at| decided.contains(&next[*at])) || !is_pure(body, &mut Vec::new()) {
            return None;
        }
        let mut bound = FxHashMap::default();
        walk::for_each_stmt(body, &mut |stmt| bound.extend(stmt.binds.iter().map(|v| (*v, stmt))));
        let mut depends_on: FxHashSet<Var> = chosen.iter().map(|at| carried[*at].0).collect();
        crate::activity::propagate(body, &mut depends_on);
        let follow = |at: usize| {
            let state = carried[at].0;
            let mut follow =
                Follow { state, bound: &bound, passed: FxHashSet::default(), decisions: 0, depends_on: &depends_on };
            follow.fate(next[at]).map(|fate| (fate, follow.passed))
        };
        let (fate, passed) = follow(first)?;
        let is_choice = matches!(fate, Fate::Depends(..))
            && chosen[1..].iter().all(|at| follow(*at).is_some_and(|(other, _)| other == fate))
            && carried.iter().all(|(v, _)| !v.ty.is_array() || is_only_handed_on(body, *v));
        if !is_choice {
            return None;
        }
        let (body, _) = going_on(op)?;
        let walk = |at: &usize| Walk::of(*at, carried[*at].0, body.results[*at], &body);
        Some(Choice { first, passed, walks: walking.iter().map(walk).collect::<Option<_>>()? })
    }

    pub(super) fn is_choice(&self, op: &Op) -> bool {
        self.choice(op).is_some()
    }

    pub(super) fn forward_choice(&mut self, stmt: &Stmt) -> Record {
        let Some((Choice { first, passed, walks }, Parts { carried: states, next, .. })) =
            self.choice(&stmt.op).zip(parts(&stmt.op))
        else {
            gradus_source::bug!("a loop that does not choose")
        };
        let mut binds = stmt.binds.clone();
        let mut op = stmt.op.clone();
        let (carried, body, index, count) = match &mut op {
            Op::For(l) => (&mut l.carried, &mut l.body, l.index, None),
            Op::While(l) => {
                let index = Var::fresh("steps", Type::INT);
                let count = count_iterations(&mut binds, &mut l.carried, &mut l.body, index, self.b);
                (&mut l.carried, &mut l.body, index, Some(count))
            }
            _ => gradus_source::bug!("a choice of something that is no loop"),
        };
        let mut tell = Tell { state: states[first].0, passed: &passed, told: FxHashMap::default() };
        tell.block(body);
        let replaced = tell.is_replaced(next[first]);
        let mut note = |name: Name, now: Atom, init: Atom| {
            let [so_far, found] = [(); 2].map(|()| Var::fresh(name, now.ty()));
            carried.push((so_far, init));
            self.b.push();
            let next = self.b.select(replaced, now, so_far.into());
            body.stmts.extend(self.b.pop(Vec::new()).stmts);
            body.results.push(next);
            binds.push(found);
            found
        };
        let last = note("last".into(), index.into(), Atom::Int(-1));
        let before = states.iter().map(|(state, init)| match state.ty.is_array() {
            // Nobody looks at it.
            true => *init,
            false => note(state.name.with("_before"), (*state).into(), *init).into(),
        });
        let before = before.collect();
        self.b.stmt(Stmt { binds, op, span: stmt.span });
        Record::Chosen(Chosen { last, before, walks, count })
    }

    pub(super) fn backward_choice(&mut self, stmt: &Stmt, chosen: Chosen) {
        let adjs: Vec<Option<Atom>> = stmt.binds.iter().map(|v| self.take(*v)).collect();
        if adjs.iter().all(Option::is_none) {
            return;
        }
        let Some((Parts { carried, .. }, (body, index))) = parts(&stmt.op).zip(going_on(&stmt.op)) else { return };
        let Chosen { last, before, walks, count } = chosen;
        let steps = match (count, &stmt.op) {
            // The last iteration only stops.
            (Some(count), _) => self.b.scalar(Prim::SubInt, &[count.into(), Atom::Int(1)]),
            (None, Op::For(l)) => l.count,
            _ => return,
        };
        let some = self.b.scalar(Prim::GreaterEqual, &[last.into(), Atom::Int(0)]);
        // The adjoints behind the iteration that counts: what is chosen stays as it is from there on.
        let mut behind = adjs.clone();
        for walk in &walks {
            if let Some(adj) = adjs[walk.at] {
                let from = self.b.scalar(Prim::AddInt, &[last.into(), Atom::Int(1)]);
                let steps = self.b.scalar(Prim::SubInt, &[steps, from]);
                behind[walk.at] = Some(self.walk_back(walk, steps, adj));
            }
        }
        let is_walked = |at: usize| walks.iter().any(|walk| walk.at == at);
        let own: Vec<Var> = carried.iter().map(|(v, _)| *v).chain(index).collect();
        let starts = carried.iter().filter_map(|(_, init)| init.var());
        let free: Vec<Var> = outer_vars(&body, &own).into_iter().chain(starts).collect();
        let mut walked = Vec::new();
        self.around(&free, |s| {
            s.b.push();
            let mut renaming = Renaming { map: index.map(|index| (index, last.into())).into_iter().collect() };
            // The state at the start decides what is done, and nothing else depends on it but what it walks through.
            let starts: Vec<Var> = carried.iter().map(|(state, _)| state.refresh()).collect();
            for (((state, _), start), before) in carried.iter().zip(&starts).zip(&before) {
                s.b.bind(vec![*start], Op::Stop { value: *before });
                renaming.map.insert(*state, (*start).into());
            }
            s.replay(&body, renaming, &behind);
            let before: Vec<Atom> = walks.iter().map(|walk| s.take_or_zero(starts[walk.at])).collect();
            starts.iter().for_each(|start| {
                s.take(*start);
            });
            let then = s.b.pop(before);
            s.b.push();
            for (at, ((_, init), adj)) in carried.iter().zip(&adjs).enumerate() {
                if let Some(adj) = adj.filter(|_| !is_walked(at)) {
                    s.add(*init, adj);
                }
            }
            let mut unchanged = Vec::new();
            for walk in &walks {
                unchanged.push(behind[walk.at].unwrap_or_else(|| s.zeros_like(carried[walk.at].1)));
            }
            let otherwise = s.b.pop(unchanged);
            match walks.is_empty() {
                true => s.branch_unless_empty(some, then, otherwise),
                false => walked = s.b.branch(some, then, otherwise),
            }
        });
        let ahead = self.b.select(some, last.into(), Atom::Int(0));
        for (walk, adj) in walks.iter().zip(walked) {
            let first = self.walk_back(walk, ahead, adj);
            self.add(carried[walk.at].1, first);
        }
    }
}

/// Whether all that is done with a variable is to hand it on as a result.
fn is_only_handed_on(block: &Block, var: Var) -> bool {
    let mut is_used = false;
    walk::for_each_stmt(block, &mut |stmt| stmt.op.for_each_operand(&mut |a| is_used |= a.var() == Some(var)));
    !is_used
}
