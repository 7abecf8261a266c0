//! The forward sweep, and loops in both sweeps.

use super::branches::is_arithmetic;
use super::undo::{Changed, Overwritten, Saved};
use super::*;
use crate::exits;

impl Sweep<'_> {
    /// Writes a statement of the forward sweep, which keeps what the backward sweep will need.
    pub(super) fn forward_stmt(&mut self, stmt: &mut Stmt) -> Record {
        let dear = self.collect_dear(stmt);
        let stmt = &*stmt;
        let wanted = self.may_have_adjoint(stmt);
        match &stmt.op {
            Op::Add { acc, .. } if self.settled.contains(acc) => Record::Plain,
            _ if wanted && self.is_put_off(stmt) => Record::PutOff,
            Op::Call { function, args } if wanted && self.is_traced_call(*function, args) => {
                self.forward_traced_call(*function, args, &stmt.binds)
            }
            Op::While(_) if wanted && self.is_walk(&stmt.op) => self.forward_walks(stmt),
            Op::For(l) if wanted && extremes::are_all(l) => self.forward_extremes(stmt, l),
            Op::For(_) | Op::While(_) if wanted && self.is_choice(&stmt.op) => self.forward_choice(stmt),
            Op::If { .. } | Op::For(_) | Op::While(_) if wanted && self.is_kept_in_trace(&stmt.op) => {
                self.forward_traced(stmt)
            }
            Op::Call { function, args } => {
                let again = Again { settled: &self.settled, frozen: &self.frozen };
                again.call(self.b, *function, args, stmt.binds.clone());
                Record::Plain
            }
            Op::If { cond, then, otherwise, .. } if wanted && self.is_given(then, otherwise) => {
                self.forward_arithmetic_if(*cond, then, otherwise, &stmt.binds)
            }
            Op::If { .. } => {
                let stmt = self.without_settled(stmt);
                self.b.stmt(stmt);
                Record::Plain
            }
            Op::For(whole) => {
                let mut stmt = self.without_settled(stmt);
                stmt.op.blocks_mut().for_each(|body| self.read_kept(body));
                let mut record = Record::Plain;
                let mut keeping = Vec::new();
                if let (Op::For(l), true) = (&mut stmt.op, wanted) {
                    self.collect_terms(l, &mut stmt.binds);
                    if !l.carried.is_empty() {
                        l.count = self.as_length(l.count);
                        self.keep_functions(l, &mut stmt.binds);
                        self.keep_of_steps(l, &mut stmt.binds);
                        self.keep_dear(l, dear, &mut stmt.binds);
                        self.keep_arrays(l, &mut stmt.binds);
                    }
                    // A loop that only adds to something may not be run at all on the way there.
                    if !stmt.binds.is_empty() {
                        let arrays = stmt.binds[l.carried.len()..].iter().map(|all| (*all, Vec::new()));
                        self.note_collected(l, &arrays.collect::<Vec<_>>());
                        keeping = self.keep_sums(l, whole, &mut stmt.binds);
                    }
                    if !l.carried.is_empty() {
                        let changed = Changed::find(&l.carried, &l.body, 0);
                        let index = Some(l.index);
                        let saved = self.collect_state(&mut stmt.binds, &l.carried, changed, index, &mut l.body);
                        self.know_conditions(&saved, l.index);
                        record = Record::Loop { saved, count: l.count, index: l.index };
                    }
                }
                self.b.stmt(stmt);
                self.has_kept(keeping);
                record
            }
            Op::While(whole) => {
                let mut stmt = self.without_settled(stmt);
                let mut record = Record::Plain;
                if let (Op::While(l), true) = (&mut stmt.op, wanted) {
                    let index = Var::fresh("steps", Type::INT);
                    self.keep_of_while(l, &repeated(whole, index).body, index, &mut stmt.binds);
                    let count = count_iterations(&mut stmt.binds, &mut l.carried, &mut l.body, index, &mut *self.b);
                    let state = l.carried[..l.carried.len() - 1].to_vec();
                    let changed = Changed::find(&state, &l.body, 1);
                    let saved = self.collect_state(&mut stmt.binds, &state, changed, None, &mut l.body);
                    record = Record::Loop { saved, count: count.into(), index };
                }
                self.b.stmt(stmt);
                record
            }
            Op::Scalar { .. }
            | Op::Copy { .. }
            | Op::Stop { .. }
            | Op::Select { .. }
            | Op::Dim { .. }
            | Op::Get { .. }
            | Op::Set { .. }
            | Op::Extend { .. }
            | Op::Fill { .. }
            | Op::Literal { .. }
            | Op::Cell { .. }
            | Op::Tag { .. }
            | Op::Unpack { .. }
            | Op::Hole { .. }
            | Op::Plug { .. }
            | Op::Push { .. }
            | Op::Pop { .. }
            | Op::Digits { .. }
            | Op::Check { .. }
            | Op::Open { .. }
            | Op::Add { .. }
            | Op::Product(_)
            | Op::Freeze { .. } => {
                if let (Op::Freeze { acc }, [y]) = (&stmt.op, &stmt.binds[..]) {
                    self.frozen.insert(*acc, (*y).into());
                }
                self.b.stmt(stmt.clone());
                Record::Plain
            }
        }
    }

    /// Whether a branch gives what it computes to the way back. What is put off may wait for that, and it for what is put off.
    fn is_given(&self, then: &Block, otherwise: &Block) -> bool {
        !self.tracing && self.own.is_none() && is_arithmetic(then, otherwise)
    }

    /// Whether this is a loop of which only one iteration has a slope.
    pub(super) fn is_search(&self, op: &Op) -> bool {
        matches!(op, Op::For(l) if extremes::are_all(l)) || self.is_choice(op)
    }

    pub(super) fn is_kept_in_trace(&self, op: &Op) -> bool {
        self.has_traced_call(op) || self.has_loops_in_turn(op)
    }

    /// Whether this is a loop with state that runs loops with state, one after another, or a branch of such a loop that does. To run it again
    /// would be to run these again to save their states, once more at each level of nesting; so it keeps them in a trace.
    fn has_loops_in_turn(&self, op: &Op) -> bool {
        fn has_state(s: &Sweep<'_>, op: &Op) -> bool {
            match op {
                Op::For(l) => !l.carried.is_empty() && !s.is_search(op),
                op => matches!(op, Op::While(_)),
            }
        }
        fn runs_loops(s: &Sweep<'_>, op: &Op) -> bool {
            let mut inner = op.blocks().flat_map(|block| &block.stmts);
            inner.any(|stmt| {
                (has_state(s, &stmt.op) && s.may_have_adjoint(stmt))
                    || gradus_core::traverse::with_stack(|| runs_loops(s, &stmt.op))
            })
        }
        let is_branch = self.tracing && matches!(op, Op::If { .. });
        (is_branch || has_state(self, op)) && runs_loops(self, op)
    }

    /// Whether the backward sweep may have to do with a statement: it binds something active, or adds to it.
    pub(super) fn may_have_adjoint(&self, stmt: &Stmt) -> bool {
        stmt.binds.iter().any(|v| self.active.contains(v))
            || outer_accumulators(&stmt.op).iter().any(|acc| self.active.contains(acc))
    }

    /// A statement whose nested blocks no longer add to what is settled.
    pub(super) fn without_settled(&self, stmt: &Stmt) -> Stmt {
        let mut stmt = stmt.clone();
        if !self.settled.is_empty() {
            for block in stmt.op.blocks_mut() {
                Again { settled: &self.settled, frozen: &self.frozen }.block(block);
            }
        }
        stmt
    }

    /// Makes a loop collect its state at the start of each iteration, or what it changes of it; gives the arrays, one for each state variable. Arrays
    /// that may change their lengths are kept in cells.
    fn collect_state(
        &mut self,
        binds: &mut Vec<Var>,
        carried: &[(Var, Atom)],
        mut changed: Vec<Changed>,
        index: Option<Var>,
        body: &mut Block,
    ) -> Vec<Saved> {
        let mut saved = Vec::new();
        for (at, (var, _)) in carried.iter().enumerate() {
            if let Some(found) = changed.iter().position(|changed| changed.at == at) {
                let changed = changed.swap_remove(found);
                saved.push(Saved::Old(Overwritten::collect(changed, carried, index, binds, body)));
                continue;
            }
            let now = self.as_element(*var, body);
            let all = Var::fresh(var.name.with("_saved"), now.ty.in_array());
            body.results.push(now.into());
            binds.push(all);
            saved.push(Saved::States(all.into()));
        }
        saved
    }

    /// What an iteration collects to keep a variable: an array that may have other lengths in another iteration is kept in a cell.
    pub(super) fn as_element(&mut self, var: Var, body: &mut Block) -> Var {
        match !var.ty.is_array() || (self.steady.contains(&var) && var.ty.rank < Type::MAX_RANK) {
            true => var,
            false => self.in_cell(var, body),
        }
    }

    /// A cell at the end of a block, which has an array in it.
    fn in_cell(&mut self, array: Var, body: &mut Block) -> Var {
        let shape = self.module.new_shape("state");
        let tag = self.module.add_cell(shape, vec![array.ty]);
        let cell = Var::fresh(array.name, Type::boxed(shape));
        let op = Op::Cell { shape, tag, fields: vec![array.into()] };
        body.stmts.push(Stmt { binds: vec![cell], op, span: self.b.span });
        cell
    }

    /// Whether a statement with nested blocks has anything to be taken backwards.
    pub(super) fn is_wanted(&self, stmt: &Stmt, adjs: &[Option<Atom>]) -> bool {
        let has_adj = |acc: &Var| self.sums.contains_key(acc) && self.active.contains(acc);
        adjs.iter().any(|a| a.is_some()) || outer_accumulators(&stmt.op).iter().any(has_adj)
    }

    /// The adjoints of a loop's active state after its last iteration, each with its position and a variable for the way back. All
    /// of the active state has one from the start, if only zero, since an earlier iteration may give it one.
    pub(super) fn adjoint_state(
        &mut self,
        stmt: &Stmt,
        carried: &[(Var, Atom)],
        adjs: &[Option<Atom>],
    ) -> Vec<(usize, Var, Atom)> {
        let mut state = Vec::new();
        for (i, (var, _)) in carried.iter().enumerate() {
            if self.active.contains(var) {
                let last = adjs.get(i).copied().flatten();
                let last = last.unwrap_or_else(|| self.zeros_like(stmt.binds[i].into()));
                state.push((i, Var::fresh(var.name.with("_adj"), last.ty()), last));
            }
        }
        state
    }

    pub(super) fn backward_loop(&mut self, stmt: Stmt, record: Record) {
        let adjs: Vec<Option<Atom>> = stmt.binds.iter().map(|v| self.take(*v)).collect();
        if !self.is_wanted(&stmt, &adjs) {
            return;
        }
        self.settled.extend(outer_accumulators(&stmt.op));
        if let Op::For(l) = &stmt.op {
            self.replayed.insert(l.index);
        }
        let (saved, mut count, index) = match (record, &stmt.op) {
            (Record::Loop { saved, count, index }, _) => (saved, count, index),
            (Record::Plain, Op::For(l)) => (Vec::new(), l.count, l.index),
            (
                Record::Plain
                | Record::Extremes(_)
                | Record::Chosen(_)
                | Record::Walked(_)
                | Record::Branch(_)
                | Record::Call { .. }
                | Record::Traced(_)
                | Record::PutOff,
                _,
            ) => gradus_source::bug!("a loop was not recorded in the forward sweep"),
        };
        let k = Var::fresh(BACKWARD_INDEX, Type::INT);
        // A while has its condition before the state.
        let (carried, body, skip) = match &stmt.op {
            Op::For(l) => (&l.carried, l.body.clone(), 0),
            Op::While(l) => {
                let Repeated { body, all } = repeated(l, k);
                if !all {
                    count = self.b.scalar(Prim::SubInt, &[count, Atom::Int(1)]);
                }
                (&l.carried, body, 1)
            }
            _ => return,
        };
        let state = self.adjoint_state(&stmt, carried, &adjs);
        let params: Vec<Var> = [k, index].into_iter().chain(carried.iter().map(|(v, _)| *v)).collect();
        let free = outer_vars(&body, &params);
        self.around(&free, |s| {
            s.b.push();
            let i = if saved.is_empty() {
                Atom::Var(k)
            } else {
                let last = s.b.scalar(Prim::SubInt, &[count, Atom::Int(1)]);
                s.b.scalar(Prim::SubInt, &[last, k.into()])
            };
            let mut renaming = Renaming::default();
            renaming.map.insert(index, i);
            // State that is carried back, undone: what it is called in the loop, its last value, and what it was before an iteration.
            let mut undone: Vec<(Var, Var, Atom)> = Vec::new();
            for (at, ((var, _), saved)) in carried.iter().zip(&saved).enumerate() {
                let at_start = match saved {
                    Saved::States(states) => {
                        let state = s.b.get(*states, vec![i]);
                        if state.ty() == var.ty {
                            state
                        } else {
                            s.b.unpack(&[var.ty], state, 0)[0]
                        }
                    }
                    Saved::Old(overwritten) => {
                        let last = last_undone(*var);
                        let start: Atom = overwritten.undo(s.b, last, i).into();
                        undone.push((last, stmt.binds[at], start));
                        start
                    }
                };
                renaming.map.insert(*var, at_start);
            }
            let mut seeds: Vec<Option<Atom>> = vec![None; body.results.len()];
            for (at, adj, _) in &state {
                seeds[*at + skip] = Some((*adj).into());
            }
            for at in carried.len()..stmt.binds.len() {
                if let Some(all) = adjs[at] {
                    seeds[at + skip] = Some(s.b.get(all, vec![i]));
                }
            }
            let starts: Vec<Option<Var>> =
                carried.iter().map(|(v, _)| renaming.map.get(v).and_then(|a| a.var())).collect();
            s.loops_around += 1;
            s.replay(&body, renaming, &seeds);
            s.loops_around -= 1;
            let mut before = Vec::new();
            for (at, _, _) in &state {
                match starts[*at] {
                    Some(start) => before.push(s.take_or_zero(start)),
                    None => gradus_source::bug!("the state of a loop was not saved"),
                }
            }
            before.extend(undone.iter().map(|(_, _, start)| *start));
            let block = s.b.pop(before);
            s.b.span = stmt.span;
            let adjs = state.iter().map(|(_, var, last)| (*var, *last));
            let back = undone.iter().map(|(var, last, _)| (*var, Atom::Var(*last)));
            let carried_adj: Vec<(Var, Atom)> = adjs.chain(back).collect();
            let mut firsts = s.b.for_loop(k, count, carried_adj, block).into_iter();
            for ((at, _, _), first) in state.iter().zip(firsts.by_ref()) {
                s.add(carried[*at].1, first);
            }
            s.restored
                .extend(undone.iter().zip(firsts).filter_map(|((_, last, _), first)| Some((*last, first.var()?))));
        });
    }
}

/// The accumulators that nested blocks add to and that come from outside.
pub(super) fn outer_accumulators(op: &Op) -> Vec<Var> {
    let nested = op.blocks().flat_map(free_vars).filter(|v| v.ty.accumulator);
    let mut found: Vec<Var> = nested.collect();
    match op {
        Op::Add { acc, .. } => found.push(*acc),
        Op::Call { args, .. } => found.extend(args.iter().filter_map(|a| a.var()).filter(|v| v.ty.accumulator)),
        _ => {}
    }
    found
}

/// Makes a block one that can be run again: takes out what it adds to settled accumulators.
pub(super) struct Again<'a> {
    pub(super) settled: &'a FxHashSet<Var>,
    pub(super) frozen: &'a FxHashMap<Var, Atom>,
}

impl Again<'_> {
    fn block(&self, block: &mut Block) {
        gradus_core::traverse::with_stack(|| {
            let mut b = Builder::new();
            for mut stmt in std::mem::take(&mut block.stmts) {
                b.span = stmt.span;
                stmt.op.blocks_mut().for_each(|inner| self.block(inner));
                match stmt.op {
                    Op::Add { acc, .. } if self.settled.contains(&acc) => {}
                    Op::Call { function, args } => self.call(&mut b, function, &args, stmt.binds),
                    op => b.stmt(Stmt { op, ..stmt }),
                }
            }
            block.stmts = b.pop(Vec::new()).stmts;
        })
    }

    /// A call that would add to something settled adds to a stand-in.
    pub(super) fn call(&self, b: &mut Builder, function: FunctionId, args: &[Atom], binds: Vec<Var>) {
        let mut args = args.to_vec();
        let mut stand_ins = Vec::new();
        for arg in &mut args {
            if let Some(acc) = arg.var().filter(|v| v.ty.accumulator && self.settled.contains(v)) {
                let Some(shape) = self.frozen.get(&acc) else {
                    gradus_source::bug!("the accumulator {} is settled but not frozen", acc.name);
                };
                let zero = b.zeros_like(*shape);
                let stand_in = b.open(acc.name, zero);
                *arg = stand_in.into();
                stand_ins.push(stand_in);
            }
        }
        b.bind(binds, Op::Call { function, args });
        for stand_in in stand_ins {
            b.freeze(stand_in);
        }
    }
}

/// Notes in the loops and branches of the forward sweep that they are run again.
pub(super) fn mark_replayed(stmts: &mut [Stmt], replayed: &FxHashSet<Var>) {
    gradus_core::traverse::with_stack(|| {
        for stmt in stmts {
            match &mut stmt.op {
                Op::For(l) => l.replayed |= replayed.contains(&l.index),
                Op::If { replayed: again, .. } => *again |= stmt.binds.first().is_some_and(|v| replayed.contains(v)),
                _ => {}
            }
            for block in stmt.op.blocks_mut() {
                mark_replayed(&mut block.stmts, replayed);
            }
        }
    })
}

/// What the way back runs again of a `while`.
pub(super) struct Repeated {
    pub(super) body: Block,
    /// Of all iterations, or of all but the last, which only stops.
    all: bool,
}

/// `k` counts from the last iteration on, which is the one that does not go on.
fn repeated(l: &While, k: Var) -> Repeated {
    let adds = l.body.stmts.iter().any(|stmt| !outer_accumulators(&stmt.op).is_empty());
    match exits::going_on(l).filter(|_| !adds) {
        Some(body) => Repeated { body, all: false },
        None => Repeated { body: exits::unless_zero(l, k), all: true },
    }
}

/// Makes a `while` count its iterations in a last state variable, which is given; gives the count.
pub(super) fn count_iterations(
    binds: &mut Vec<Var>,
    carried: &mut Vec<(Var, Atom)>,
    body: &mut Block,
    counter: Var,
    b: &mut Builder,
) -> Var {
    let count = Var::fresh("steps", Type::INT);
    b.push();
    let next = b.scalar(Prim::AddInt, &[counter.into(), Atom::Int(1)]);
    body.stmts.extend(b.pop(Vec::new()).stmts);
    body.results.insert(carried.len() + 1, next);
    binds.insert(carried.len(), count);
    carried.push((counter, Atom::Int(0)));
    count
}
