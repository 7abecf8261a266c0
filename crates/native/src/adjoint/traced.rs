//! What is kept instead of run again: the two halves of recursive functions, and the traces of branches and loops that call these.
//!
//! A trace is a cell with the variables of a block's forward sweep that its backward sweep uses. Which these are is known only when the
//! backward sweep has been written, so the forward sweep gives nothing at first ([`Atom::Nil`]), and [`keep_traces`] puts the cells in.

use super::emitted::Emitted;
use super::undo::{changes_between_loops, Change, Changed};
use super::*;
use gradus_core::traverse::with_stack;

/// The halves of a function are made for the parameters that are active.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) function: FunctionId,
    pub(super) active: Vec<bool>,
}

/// The first takes what the function takes and gives what it gives, then the trace. The second takes the trace, the adjoints of sums for the
/// function's accumulators, the adjoints of its results, the given arrays, and accumulators for the adjoints of active array parameters; it
/// gives the adjoints of the other active parameters.
#[derive(Clone)]
pub(super) struct Halves {
    forward: FunctionId,
    back: FunctionId,
    trace: ShapeId,
    /// The array parameters that the second half is given again, so that their elements need not be kept: see [`handed_down`].
    given: Vec<usize>,
}

/// A branch or a loop that keeps a trace.
pub(super) struct Traced {
    /// The box; for a loop, that of its last iteration.
    trace: Var,
    /// For a loop: the box of the iteration before, which each iteration keeps in its own, and the number of iterations.
    before: Option<(Var, Atom)>,
    shape: ShapeId,
    /// The forward sweeps of the nested blocks.
    records: Vec<Vec<(Stmt, Record)>>,
    results: Vec<Vec<Atom>>,
    emitted: Vec<Emitted>,
    /// State of a loop whose changes can be undone.
    changed: Vec<Changed>,
    /// The changes of state that loops inside change, too.
    between: Vec<Change>,
}

/// What a block keeps in its trace.
pub(super) struct Kept {
    shape: ShapeId,
    tag: usize,
    vars: Vec<Var>,
}

/// Puts the cells that were found to be needed at the ends of the blocks that give traces.
pub(super) fn keep_traces(stmts: &mut [Stmt], traces: &FxHashMap<(Var, usize), Kept>) {
    if traces.is_empty() {
        return;
    }
    with_stack(|| {
        for stmt in stmts {
            let binds = stmt.binds.clone();
            let span = stmt.span;
            let skip = usize::from(matches!(stmt.op, Op::While(_)));
            for (number, block) in stmt.op.blocks_mut().enumerate() {
                for (at, bind) in binds.iter().enumerate() {
                    let Some(kept) = traces.get(&(*bind, number)) else { continue };
                    if !matches!(block.results[at + skip], Atom::Nil(_)) {
                        continue; // It is there already.
                    }
                    let cell = Var::fresh("trace", Type::boxed(kept.shape));
                    let fields = kept.vars.iter().map(|v| Atom::Var(*v)).collect();
                    let op = Op::Cell { shape: kept.shape, tag: kept.tag, fields };
                    block.stmts.push(Stmt { binds: vec![cell], op, span });
                    block.results[at + skip] = cell.into();
                }
                keep_traces(&mut block.stmts, traces);
            }
        }
    })
}

impl Sweep<'_> {
    /// Whether a call would cost too much to run again: recursion, and what may turn out to be.
    pub(super) fn is_traced_call(&self, function: FunctionId, args: &[Atom]) -> bool {
        let active = args.iter().any(|a| self.is_active(*a));
        let ruled = self.module.function(function).rule.is_some_and(|r| r.reverse.is_some());
        active
            && !ruled
            && !self.module.is_merge(function)
            && !self.is_at_once(function, args)
            && self.module.may_recurse(function, &mut self.adjoints.may_recurse.borrow_mut())
    }

    pub(super) fn has_traced_call(&self, op: &Op) -> bool {
        let inside = |block: &Block| {
            block.stmts.iter().any(|stmt| match &stmt.op {
                Op::Call { function, args } => self.is_traced_call(*function, args),
                op => self.has_traced_call(op),
            })
        };
        self.has_calls && with_stack(|| op.blocks().any(inside))
    }

    pub(super) fn forward_traced_call(&mut self, function: FunctionId, args: &[Atom], binds: &[Var]) -> Record {
        let active = args.iter().map(|a| self.is_active(*a) && !a.ty().accumulator).collect();
        let key = Key { function, active };
        let halves = halves_of(self.module, self.adjoints, &key);
        let trace = Var::fresh("trace", Type::boxed(halves.trace));
        let mut all = binds.to_vec();
        all.push(trace);
        let again = control::Again { settled: &self.settled, frozen: &self.frozen };
        again.call(self.b, halves.forward, args, all);
        Record::Call { back: halves.back, trace, key }
    }

    pub(super) fn backward_traced_call(
        &mut self,
        back: FunctionId,
        trace: Var,
        key: &Key,
        args: &[Atom],
        binds: &[Var],
    ) {
        let adjs: Vec<Option<Atom>> = binds.iter().map(|v| self.take(*v)).collect();
        let accumulators: Vec<Var> = args.iter().filter_map(|a| a.var()).filter(|v| v.ty.accumulator).collect();
        let summed = accumulators.iter().any(|acc| self.sums.contains_key(acc));
        if adjs.iter().all(|a| a.is_none()) && !summed {
            return;
        }
        let mut call = vec![Atom::Var(trace)];
        for acc in accumulators {
            let sum = match (self.sums.get(&acc).copied(), self.frozen.get(&acc).copied()) {
                (Some(sum), _) => sum,
                (None, Some(like)) => self.zeros_like(like),
                (None, None) => gradus_source::bug!("the accumulator {} is used in a call and never frozen", acc.name),
            };
            call.push(sum);
        }
        for (bind, adj) in binds.iter().zip(adjs).filter(|(v, _)| v.ty.may_be_active()) {
            call.push(match adj {
                Some(adj) => adj,
                None => self.zeros_like((*bind).into()),
            });
        }
        if let Some(halves) = self.adjoints.traced.get(key) {
            call.extend(halves.given.iter().map(|i| args[*i]));
        }
        self.call_backward(back, call, args, &key.active);
    }

    /// Writes a branch or loop of the forward sweep so that it gives a trace.
    pub(super) fn forward_traced(&mut self, stmt: &Stmt) -> Record {
        let shape = self.module.new_trace();
        let nil = Atom::Nil(shape);
        // With what it adds to settled accumulators: the sweep leaves these additions out, but their adjoints are wanted.
        let Stmt { mut binds, op, span } = stmt.clone();
        let (mut records, mut results, mut emitted) = (Vec::new(), Vec::new(), Vec::new());
        let repeated = !matches!(op, Op::If { .. });
        let mut sweep = |s: &mut Self, block: Block, params: &[Var]| {
            s.b.push();
            let outside = std::mem::replace(&mut s.tracing, true);
            records.push(s.forward(block.stmts));
            s.tracing = outside;
            results.push(block.results.clone());
            let written = s.b.pop([block.results, vec![nil]].concat());
            emitted.push(Emitted::new(&written.stmts, params, repeated, &s.given));
            written
        };
        let trace = Var::fresh("trace", Type::boxed(shape));
        let (mut before, mut changed, mut between) = (None, Vec::new(), Vec::new());
        let op = match op {
            Op::If { cond, then, otherwise, .. } => {
                let (then, otherwise) = (sweep(self, *then, &[]), sweep(self, *otherwise, &[]));
                binds.push(trace);
                Op::branch(cond, then, otherwise, false)
            }
            Op::For(mut l) => {
                changed = Changed::find(&l.carried, &l.body, 0);
                changed.iter_mut().for_each(|changed| changed.read_old(&mut l.body));
                between = between_loops(&l.carried, &mut l.body, 0);
                before = Some((carry_trace(&mut l.carried, &mut binds, trace, nil), l.count));
                // The backward sweep counts, too, so that the index need not be kept.
                let params: Vec<Var> = l.carried.iter().map(|(v, _)| *v).collect();
                let mut body = sweep(self, l.body, &params);
                last_to(&mut body.results, l.carried.len() - 1);
                Op::For(Box::new(For { body, ..*l }))
            }
            Op::While(mut l) => {
                changed = Changed::find(&l.carried, &l.body, 1);
                changed.iter_mut().for_each(|changed| changed.read_old(&mut l.body));
                between = between_loops(&l.carried, &mut l.body, 1);
                let iteration = carry_trace(&mut l.carried, &mut binds, trace, nil);
                let params: Vec<Var> = l.carried.iter().map(|(v, _)| *v).collect();
                let mut body = sweep(self, l.body, &params);
                last_to(&mut body.results, l.carried.len());
                let counter = Var::fresh("steps", Type::INT);
                let count = control::count_iterations(&mut binds, &mut l.carried, &mut body, counter, self.b);
                before = Some((iteration, count.into()));
                Op::While(Box::new(While { body, ..*l }))
            }
            _ => gradus_source::bug!("a trace of something without blocks"),
        };
        self.b.stmt(Stmt { binds, op, span });
        Record::Traced(Traced { trace, before, shape, records, results, emitted, changed, between })
    }

    pub(super) fn backward_traced_if(&mut self, stmt: Stmt, traced: Traced) {
        let adjs: Vec<Option<Atom>> = stmt.binds.iter().map(|v| self.take(*v)).collect();
        let Op::If { then, otherwise, .. } = &stmt.op else { return };
        let mut free = outer_vars(then, &[]);
        free.extend(outer_vars(otherwise, &[]));
        let trace = traced.trace;
        self.around(&free, |s| {
            let mut blocks = Vec::new();
            let sides = traced.records.into_iter().zip(traced.results).zip(&traced.emitted);
            for ((records, results), emitted) in sides {
                s.b.push();
                s.seed(&results, &adjs);
                s.backward(records);
                let backward = s.b.pop(Vec::new());
                blocks.push(s.with_trace(trace, trace.into(), traced.shape, emitted, backward));
            }
            let otherwise = blocks.pop().unwrap_or_default();
            let then = blocks.pop().unwrap_or_default();
            // The trace knows which side was taken.
            let tag = s.b.tag(trace.into());
            let first = s.b.scalar(Prim::Equal, &[tag, Atom::Int(0)]);
            s.b.branch(first, then, otherwise);
        });
    }

    /// From the last iteration to the first, each of which is kept in the trace of the one after it.
    pub(super) fn backward_traced_loop(&mut self, stmt: Stmt, traced: Traced) {
        let adjs: Vec<Option<Atom>> = stmt.binds.iter().map(|v| self.take(*v)).collect();
        let (carried, body, index, skip) = match &stmt.op {
            Op::For(l) => (&l.carried, &l.body, l.index, 0),
            Op::While(l) => (&l.carried, &l.body, Var::fresh("i", Type::INT), 1),
            _ => return,
        };
        let state = self.adjoint_state(&stmt, carried, &adjs);
        let params: Vec<Var> = std::iter::once(index).chain(carried.iter().map(|(v, _)| *v)).collect();
        let free = outer_vars(body, &params);
        let Traced { trace, before, shape, mut records, mut results, mut emitted, changed, between } = traced;
        let Some((before, count)) = before else { gradus_source::bug!("the trace of a loop was not carried") };
        let emitted = emitted.pop().unwrap_or_default();
        let (records, results) = (records.pop().unwrap_or_default(), results.pop().unwrap_or_default());
        self.around(&free, |s| {
            let now = Var::fresh("trace", trace.ty);
            let mut carried_adj: Vec<(Var, Atom)> = vec![(now, trace.into())];
            carried_adj.extend(state.iter().map(|(_, var, last)| (*var, *last)));
            s.b.push();
            let mut seeds: Vec<Option<Atom>> = vec![None; results.len()];
            for (at, adj, _) in &state {
                seeds[*at + skip] = Some((*adj).into());
            }
            for at in carried.len()..stmt.binds.len() {
                seeds[at + skip] = adjs[at].map(|all| s.b.get(all, vec![index.into()]));
            }
            s.seed(&results, &seeds);
            s.backward(records);
            let mut next = vec![before.into()];
            next.extend(state.iter().map(|(at, _, _)| s.take_or_zero(carried[*at].0)).collect::<Vec<_>>());
            let mut backward = s.b.pop(next);
            let mut restored = Vec::new();
            for (at, (state, _)) in carried.iter().enumerate() {
                let is_other = !changed.iter().any(|changed| changed.at == at) && state.ty.shape().is_none();
                if is_other && state.ty.is_array() {
                    let handed = s.hand_back(body, (*state, results[at + skip]), &between, &mut backward);
                    restored.extend(handed.map(|var| (var, stmt.binds[at])));
                }
            }
            for changed in &changed {
                let (state, last) = (carried[changed.at].0, stmt.binds[changed.at]);
                restored.extend(s.undo(changed, state, &mut backward).map(|var| (var, last)));
            }
            carried_adj.extend(restored.iter().map(|(var, last)| (*var, Atom::Var(*last))));
            let backward = s.with_trace(trace, now.into(), shape, &emitted, backward);
            let k = Var::fresh(BACKWARD_INDEX, Type::INT);
            s.b.push();
            let last = s.b.scalar(Prim::SubInt, &[count, Atom::Int(1)]);
            let number = s.b.scalar(Prim::SubInt, &[last, k.into()]);
            let mut renaming = Renaming::default();
            renaming.map.insert(index, number);
            let renamed = renaming.block(&backward);
            s.b.stmts(renamed.stmts);
            let backward = s.b.pop(renamed.results);
            let mut firsts = s.b.for_loop(k, count, carried_adj, backward).into_iter().skip(1);
            for ((at, _, _), first) in state.iter().zip(firsts.by_ref()) {
                s.add(carried[*at].1, first);
            }
            s.restored.extend(restored.iter().zip(firsts).filter_map(|((_, last), first)| Some((*last, first.var()?))));
        });
    }

    /// A backward block that gets the variables of its forward block from a cell. Notes what the cell must keep.
    fn with_trace(&mut self, trace: Var, cell: Atom, shape: ShapeId, emitted: &Emitted, mut backward: Block) -> Block {
        // Its own traces are known by variables that are about to be renewed.
        keep_traces(&mut backward.stmts, &self.traces);
        crate::simplify::undo_nothing(&mut backward);
        crate::simplify::dead_code(&mut backward, self.module);
        let free = free_vars(&backward).into_iter().filter(|v| emitted.bound.contains(v)).collect();
        let (vars, again) = emitted.cheapest(free);
        let tag = self.module.add_cell(shape, vars.iter().map(|v| v.ty).collect());
        self.traces.insert((trace, tag), Kept { shape, tag, vars: vars.clone() });
        unpacked(cell, tag, &vars, again, backward)
    }
}

/// What a body changes of arrays that loops inside it change, too. It then reads what it overwrites. `skip`: how many of its results come before the state.
fn between_loops(carried: &[(Var, Atom)], body: &mut Block, skip: usize) -> Vec<Change> {
    let mut found = Vec::new();
    for (at, (state, _)) in carried.iter().enumerate() {
        if state.ty.is_array() && state.ty.shape().is_none() {
            found.extend(changes_between_loops(body, *state, body.results[at + skip]).unwrap_or_default());
        }
    }
    found.iter_mut().for_each(|change| change.read_old(body));
    found
}

/// Makes the trace of an iteration, nothing at first, state of the loop: the last, after which what is collected comes. Gives the
/// variable for the iteration before.
fn carry_trace(carried: &mut Vec<(Var, Atom)>, binds: &mut Vec<Var>, trace: Var, nil: Atom) -> Var {
    let before = Var::fresh("before", trace.ty);
    binds.insert(carried.len(), trace);
    carried.push((before, nil));
    before
}

/// Moves the last item to another place.
fn last_to(items: &mut Vec<Atom>, place: usize) {
    if let Some(last) = items.pop() {
        items.insert(place, last);
    }
}

/// A block with variables taken from a cell, and others computed from these.
fn unpacked(cell: Atom, tag: usize, vars: &[Var], again: Vec<Stmt>, block: Block) -> Block {
    let mut renaming = Renaming::default();
    let fresh: Vec<Var> = vars.iter().map(|v| v.refresh()).collect();
    renaming.map.extend(vars.iter().copied().zip(fresh.iter().map(|v| Atom::Var(*v))));
    let all = Block { stmts: [again, block.stmts].concat(), results: block.results };
    let mut renamed = renaming.block(&all);
    if !fresh.is_empty() {
        renamed.stmts.insert(0, Stmt { binds: fresh, op: Op::Unpack { cell, tag }, span: Default::default() });
    }
    renamed
}

/// The halves of a function; their bodies come later.
fn halves_of(module: &mut Module, adjoints: &mut Adjoints, key: &Key) -> Halves {
    if let Some(known) = adjoints.traced.get(key) {
        return known.clone();
    }
    let primal = module.function(key.function).clone();
    let trace = module.new_trace();
    let params: Vec<Var> = primal.params.iter().map(|p| p.refresh()).collect();
    let mut back_params = vec![Var::fresh("trace", Type::boxed(trace))];
    for param in params.iter().filter(|p| p.ty.accumulator) {
        back_params.push(Var::fresh(param.name.with("_adj"), module.linear_type(param.ty.frozen())));
    }
    for result in primal.results.iter().filter(|t| t.may_be_active()) {
        back_params.push(Var::fresh("result_adj", module.linear_type(*result)));
    }
    let given = handed_down(&primal, key.function);
    back_params.extend(given.iter().map(|i| params[*i].refresh()));
    let active: Vec<Var> = params.iter().zip(&key.active).filter(|(_, a)| **a).map(|(p, _)| *p).collect();
    for param in active.iter().filter(|p| p.ty.is_array()) {
        let ty = module.linear_type(param.ty);
        if let Some(shape) = ty.shape() {
            merge::ensure(module, shape);
        }
        back_params.push(Var::fresh(param.name.with("_adj"), ty.accumulator()));
    }
    let back_results = active.iter().filter(|p| !p.ty.is_array()).map(|p| module.linear_type(p.ty)).collect::<Vec<_>>();
    let mut results = primal.results.clone();
    results.push(Type::boxed(trace));
    let forward = module.derived(key.function, primal.name.with("_fwd"), params, results);
    let back = module.derived(key.function, primal.name.with("_back"), back_params, back_results);
    let halves = Halves { forward, back, trace, given };
    adjoints.traced.insert(key.clone(), halves.clone());
    if module.function(forward).is_unfinished() {
        adjoints.pending.push(key.clone());
    }
    halves
}

/// The parameters that are arrays of numbers, read by the function and handed to itself as they are: whoever calls its second half has them.
fn handed_down(function: &Function, id: FunctionId) -> Vec<usize> {
    fn visit(block: &Block, id: FunctionId, params: &[Var], down: &mut [bool], read: &mut FxHashSet<Var>) {
        with_stack(|| {
            for stmt in &block.stmts {
                match &stmt.op {
                    Op::Call { function, args } if *function == id => {
                        down.iter_mut().zip(args).zip(params).for_each(|((d, a), p)| *d &= a.var() == Some(*p));
                    }
                    Op::Get { array, .. } if stmt.binds.iter().all(|v| !v.ty.is_counted()) => {
                        read.insert(*array);
                    }
                    op => op.blocks().for_each(|inner| visit(inner, id, params, down, read)),
                }
            }
        })
    }
    let is_numbers = |v: &Var| v.ty.is_array() && v.ty.shape().is_none() && !v.ty.accumulator;
    let mut down: Vec<bool> = function.params.iter().map(is_numbers).collect();
    let (mut read, mut callees) = (FxHashSet::default(), Vec::new());
    walk::callees(&function.body, &mut callees);
    if !callees.contains(&id) {
        return Vec::new();
    }
    visit(&function.body, id, &function.params, &mut down, &mut read);
    (0..down.len()).filter(|i| down[*i] && read.contains(&function.params[*i])).collect()
}

/// Writes both halves of a function: its two sweeps in one block, which is then cut between them.
pub(super) fn write_halves(module: &mut Module, adjoints: &mut Adjoints, key: &Key) {
    let Some(halves) = adjoints.traced.get(key).cloned() else { return };
    let primal = module.function(key.function).clone();
    let params = module.function(halves.forward).params.clone();
    let mut renaming = Renaming::default();
    renaming.map.extend(primal.params.iter().copied().zip(params.iter().map(|p| Atom::Var(*p))));
    let body = renaming.block(&primal.body);
    let wrt: Vec<Var> = params.iter().zip(&key.active).filter(|(_, a)| **a).map(|(p, _)| *p).collect();

    let mut given = module.function(halves.back).params.clone().into_iter().skip(1);
    let mut next = || match given.next() {
        Some(var) => var,
        None => gradus_source::bug!("half of a function has too few parameters"),
    };
    let sums: Vec<(Var, Var)> = params.iter().filter(|p| p.ty.accumulator).map(|p| (*p, next())).collect();
    let seeds: Vec<Option<Atom>> = primal.results.iter().map(|t| t.may_be_active().then(|| next().into())).collect();
    let given: Vec<(Var, Var)> = halves.given.iter().map(|i| (params[*i], next())).collect();
    let arrays: Vec<(Var, Var)> = wrt.iter().filter(|p| p.ty.is_array()).map(|p| (*p, next())).collect();

    let mut active: FxHashSet<Var> = wrt.iter().copied().collect();
    crate::activity::propagate(&body, &mut active);
    let mut b = Builder::new();
    let mut sweep = Sweep::new(&mut b, module, adjoints, &body, active);
    sweep.given = given.iter().map(|(p, _)| *p).collect();
    let given_here = sweep.given.clone();
    for (array, acc) in &arrays {
        sweep.adj.insert(*array, Adj::Open(*acc));
    }
    for (acc, adj) in &sums {
        sweep.frozen.insert(*acc, (*adj).into());
        sweep.sums.insert(*acc, (*adj).into());
    }
    sweep.tracing = true;
    let records = sweep.forward(body.stmts);
    let cut = sweep.b.len();
    sweep.seed(&body.results, &seeds);
    sweep.settled.extend(sums.iter().map(|(acc, _)| *acc));
    sweep.backward(records);
    let numbers: Vec<Atom> = wrt.iter().filter(|p| !p.ty.is_array()).map(|p| sweep.take_or_zero(*p)).collect();
    let (replayed, traces) = (sweep.replayed, sweep.traces);
    let mut backward = b.split_off(cut);
    let mut forward = b.split_off(0);
    control::mark_replayed(&mut forward, &replayed);
    keep_traces(&mut forward, &traces);
    control::mark_replayed(&mut backward, &replayed);
    keep_traces(&mut backward, &traces);
    at_once::join(&mut backward, &adjoints.at_once);

    let emitted = Emitted::new(&forward, &params, false, &given_here);
    let mut backward = Block { stmts: backward, results: numbers };
    crate::simplify::undo_nothing(&mut backward);
    crate::simplify::dead_code(&mut backward, module);
    let free = free_vars(&backward).into_iter().filter(|v| emitted.bound.contains(v)).collect();
    let (vars, again) = emitted.cheapest(free);
    let trace = module.function(halves.back).params[0];
    // The shape of an accumulator is that of its sum, and what is given has its own name here.
    let mut shapes = Renaming::default();
    shapes.map.extend(sums.iter().chain(&given).map(|(there, here)| (*there, Atom::Var(*here))));
    // A function that keeps nothing but the trace of a branch has that for its own.
    if let [only] = vars[..] {
        let of_branch = |s: &Stmt| s.binds.contains(&only) && matches!(s.op, Op::If { .. });
        if let Some(kept) = traces.get(&(only, 0)).filter(|_| forward.iter().any(of_branch)) {
            for cell in module.shape(kept.shape).cells.clone() {
                module.add_cell(halves.trace, cell);
            }
            let mine = Var { ty: Type::boxed(halves.trace), ..only };
            retype(&mut forward, mine, kept.shape, halves.trace);
            shapes.map.insert(only, trace.into());
            let back = shapes.block(&Block { stmts: [again, backward.stmts].concat(), results: backward.results });
            let results = [body.results, vec![mine.into()]].concat();
            module.functions[halves.forward.0].body = Block { stmts: forward, results };
            module.functions[halves.back.0].body = back;
            return;
        }
    }
    let backward = shapes.block(&Block { stmts: [again, backward.stmts].concat(), results: backward.results });
    let tag = module.add_cell(halves.trace, vars.iter().map(|v| v.ty).collect());
    let back = unpacked(trace.into(), tag, &vars, Vec::new(), backward);
    let cell = Var::fresh("trace", Type::boxed(halves.trace));
    let fields = vars.iter().map(|v| Atom::Var(*v)).collect();
    let op = Op::Cell { shape: halves.trace, tag, fields };
    // Memory may run out here.
    let span = forward.iter().rev().map(|stmt| stmt.span).find(|span| *span != Default::default()).unwrap_or_default();
    forward.push(Stmt { binds: vec![cell], op, span });
    let results = [body.results, vec![cell.into()]].concat();
    module.functions[halves.forward.0].body = Block { stmts: forward, results };
    module.functions[halves.back.0].body = back;
}

/// Gives the trace of a branch another shape.
fn retype(stmts: &mut [Stmt], trace: Var, from: ShapeId, to: ShapeId) {
    for stmt in stmts.iter_mut().filter(|s| s.binds.contains(&trace)) {
        stmt.binds.iter_mut().filter(|v| **v == trace).for_each(|v| *v = trace);
        for block in stmt.op.blocks_mut() {
            let mut cells = Vec::new();
            for inner in &mut block.stmts {
                if let Op::Cell { shape, .. } = &mut inner.op {
                    if *shape == from {
                        *shape = to;
                        inner.binds.iter_mut().for_each(|v| v.ty = Type::boxed(to));
                        cells.extend(inner.binds.iter().copied());
                    }
                }
            }
            for result in &mut block.results {
                match result {
                    Atom::Var(v) if cells.contains(v) => v.ty = Type::boxed(to),
                    Atom::Nil(shape) if *shape == from => *shape = to,
                    _ => {}
                }
            }
        }
    }
}
