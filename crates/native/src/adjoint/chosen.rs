//! Loops that look for the best of several things, such as the nearest that a ray hits: an iteration replaces the state by what does not depend on it, or
//! keeps it. Only one iteration has a slope, the last that replaced the state. So the loop notes which that was and what it began with, and the way back runs it
//! again, instead of keeping the state of every iteration and running all of them again.

use super::extremes::is_pure;
use super::*;
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

/// What a loop has noted: the number of the iteration that counts, and the state at its start.
pub(super) struct Chosen {
    last: Var,
    before: Vec<Atom>,
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
    /// If a loop only chooses, the first part of the state that has a slope, and the variables through which it passes.
    fn choice(&self, l: &For) -> Option<(usize, FxHashSet<Var>)> {
        let parts: Vec<usize> = (0..l.carried.len()).filter(|at| self.active.contains(&l.carried[*at].0)).collect();
        let first = *parts.first()?;
        let is_decided = |stmt: &&Stmt| matches!(stmt.op, Op::If { .. } | Op::Select { .. });
        let decided = l.body.stmts.iter().filter(is_decided).flat_map(|stmt| &stmt.binds);
        let decided: FxHashSet<Atom> = decided.map(|v| Atom::Var(*v)).collect();
        let may_be = l.body.results.len() == l.carried.len()
            && parts.iter().all(|at| decided.contains(&l.body.results[*at]))
            && l.carried.iter().all(|(v, _)| v.ty.shape().is_none())
            && is_pure(&l.body, &mut Vec::new());
        if !may_be {
            return None;
        }
        let mut bound = FxHashMap::default();
        walk::for_each_stmt(&l.body, &mut |stmt| bound.extend(stmt.binds.iter().map(|v| (*v, stmt))));
        let mut depends_on: FxHashSet<Var> = parts.iter().map(|at| l.carried[*at].0).collect();
        crate::activity::propagate(&l.body, &mut depends_on);
        let follow = |at: usize| {
            let state = l.carried[at].0;
            let mut follow =
                Follow { state, bound: &bound, passed: FxHashSet::default(), decisions: 0, depends_on: &depends_on };
            follow.fate(l.body.results[at]).map(|fate| (fate, follow.passed))
        };
        let (fate, passed) = follow(first)?;
        let is_choice = matches!(fate, Fate::Depends(..))
            && parts[1..].iter().all(|at| follow(*at).is_some_and(|(other, _)| other == fate))
            && l.carried.iter().all(|(v, _)| !v.ty.is_array() || is_only_handed_on(&l.body, *v));
        is_choice.then_some((first, passed))
    }

    pub(super) fn is_choice(&self, l: &For) -> bool {
        self.choice(l).is_some()
    }

    pub(super) fn forward_choice(&mut self, stmt: &Stmt, l: &For) -> Record {
        let Some((first, passed)) = self.choice(l) else { gradus_source::bug!("a loop that does not choose") };
        let mut noting = l.clone();
        let mut tell = Tell { state: l.carried[first].0, passed: &passed, told: FxHashMap::default() };
        tell.block(&mut noting.body);
        let replaced = tell.is_replaced(l.body.results[first]);
        let mut binds = stmt.binds.clone();
        let mut note = |name: Name, now: Atom, init: Atom| {
            let [so_far, next, found] = [(); 3].map(|()| Var::fresh(name, now.ty()));
            noting.carried.push((so_far, init));
            let op = Op::Select { cond: replaced, then: now, otherwise: so_far.into() };
            noting.body.stmts.push(Stmt { binds: vec![next], op, span: stmt.span });
            noting.body.results.push(next.into());
            binds.push(found);
            found
        };
        let last = note("last".into(), l.index.into(), Atom::Int(-1));
        let before = l.carried.iter().map(|(state, init)| match state.ty.is_array() {
            // Nobody looks at it.
            true => *init,
            false => note(state.name.with("_before"), (*state).into(), *init).into(),
        });
        let before = before.collect();
        self.b.stmt(Stmt { binds, op: Op::For(noting), span: stmt.span });
        Record::Chosen(Chosen { last, before })
    }

    pub(super) fn backward_choice(&mut self, stmt: &Stmt, l: &For, chosen: Chosen) {
        let adjs: Vec<Option<Atom>> = stmt.binds.iter().map(|v| self.take(*v)).collect();
        if adjs.iter().all(Option::is_none) {
            return;
        }
        let some = self.b.scalar(Prim::GreaterEqual, &[chosen.last.into(), Atom::Int(0)]);
        let own: Vec<Var> = l.carried.iter().map(|(v, _)| *v).chain([l.index]).collect();
        let starts = l.carried.iter().filter_map(|(_, init)| init.var());
        let free: Vec<Var> = outer_vars(&l.body, &own).into_iter().chain(starts).collect();
        self.around(&free, |s| {
            s.b.push();
            let mut renaming = Renaming { map: [(l.index, chosen.last.into())].into_iter().collect() };
            // The state at the start decides what is done, and nothing else depends on it.
            let starts: Vec<Var> = l.carried.iter().map(|(state, _)| state.refresh()).collect();
            for ((state, start), before) in own.iter().zip(&starts).zip(&chosen.before) {
                s.b.bind(vec![*start], Op::Stop { value: *before });
                renaming.map.insert(*state, (*start).into());
            }
            s.replay(&l.body, renaming, &adjs);
            starts.iter().for_each(|start| {
                s.take(*start);
            });
            let then = s.b.pop(Vec::new());
            s.b.push();
            for ((_, init), adj) in l.carried.iter().zip(&adjs) {
                if let Some(adj) = adj {
                    s.add(*init, *adj);
                }
            }
            let otherwise = s.b.pop(Vec::new());
            s.branch_unless_empty(some, then, otherwise);
        });
    }
}

/// Whether all that is done with a variable is to hand it on as a result.
fn is_only_handed_on(block: &Block, var: Var) -> bool {
    let mut is_used = false;
    walk::for_each_stmt(block, &mut |stmt| stmt.op.for_each_operand(&mut |a| is_used |= a.var() == Some(var)));
    !is_used
}
