//! Reverse mode on flow, by structure: no tape, no identifiers.
//!
//! A block is run forwards, then its statements are taken backwards; both sweeps stand in the same block, so the second sees what
//! the first computed. For a statement with a block inside, the second sweep runs that block again (forwards and backwards) where it
//! needs its variables. So
//!
//! - straight-line code: partial derivatives stay in registers;
//! - a branch of plain arithmetic gives its intermediate values along with its results, so that nothing is computed twice;
//! - a loop without state: its adjoint is again such a loop, and nothing is stored but sums that loops inside add up (`kept`), as in
//!   loops with state;
//! - a loop with state: the forward sweep also collects the state at the start of each iteration; the adjoint loop goes from the last
//!   to the first and carries the state's adjoint. Of an array that is changed place by place it collects what is overwritten, and the adjoint loop
//!   undoes the changes (`undo`). A `while` does the same and counts;
//! - what a nested block reads from outside: an accumulator, one number or an array in the shape of what is read;
//! - accumulators themselves: after `y = freeze acc` has been passed backwards, the adjoint of every `add` into `acc` is a read
//!   of `y`'s adjoint;
//! - calls: the adjoint of a function takes what the function took and the adjoints of its results, adds to the adjoints of
//!   array parameters in place, and returns those of numbers. For a recursive function that would cost its depth times the function, so it has
//!   two halves: one runs it and keeps what the other needs in a cell, the *trace*, which contains the traces of the calls inside; and
//!   a branch or a loop with such a call inside keeps a trace instead of being run again. See `traced`;
//! - boxes: the adjoint of a box is a box of its linear shape, nothing if it is zero. Taking a cell apart makes a cell of adjoints, making
//!   a cell takes its adjoint apart, and adjoints that meet are merged: each merge uses up a cell, so all of them together cost no more
//!   than the cells that were taken apart.
//!
//! Adjoints that are zero are absent, and so is all code that would compute with them. Only active variables (see `activity`) have any.

mod at_once;
mod branches;
mod calls;
mod chosen;
mod control;
mod dear;
mod emitted;
mod extremes;
mod kept;
mod merge;
mod restored;
mod sums;
mod traced;
mod undo;
mod walks;

use crate::flow::walk::{free_vars, Renaming};
use crate::flow::*;
use crate::partials::{partial, times, Applied};
use crate::tangent::Tangents;
use control::outer_accumulators;
use gradus_core::Prim;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use sums::{seen, sum_all, Adj};

/// What counts the iterations of a loop that goes backwards, so that people can tell it from others.
pub const BACKWARD_INDEX: &str = "k";

/// The adjoints of functions that were made so far.
#[derive(Default)]
pub struct Adjoints {
    table: FxHashMap<calls::Key, FunctionId>,
    traced: FxHashMap<traced::Key, traced::Halves>,
    /// Halves whose bodies are still to be written.
    pending: Vec<traced::Key>,
    /// Those that are both sweeps in one.
    at_once: at_once::AtOnce,
    /// Whether functions can come to call themselves, as far as this was found.
    may_recurse: RefCell<FxHashMap<FunctionId, bool>>,
}

impl Adjoints {
    /// Writes the bodies that were put off, as far as the functions that they come from are complete. Whether anything was done.
    fn finish(&mut self, module: &mut Module) -> bool {
        let ready = |key: &traced::Key, module: &Module| !module.function(key.function).is_unfinished();
        let (now, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.pending).into_iter().partition(|key| ready(key, module));
        self.pending = later;
        for key in &now {
            traced::write_halves(module, self, key);
        }
        !now.is_empty()
    }
}

/// The function that adds boxes of a linear shape.
pub fn ensure_merge(module: &mut Module, shape: ShapeId) -> FunctionId {
    merge::ensure(module, shape)
}

/// Writes all that was put off: the derivatives of functions that were not complete, or recursive, and the functions that add boxes.
pub fn finish(module: &mut Module, adjoints: &mut Adjoints, tangents: &mut Tangents) {
    while adjoints.finish(module) | tangents.finish(module) {}
    if !adjoints.pending.is_empty() || !tangents.is_finished() {
        gradus_source::bug!("the derivative of a function that is not there");
    }
    merge::finish(module);
}

/// Writes to `b` the block and then its reverse sweep. `seed` gives, for the values of the block's results, their adjoints (`None`: zero).
/// The result is the block's results and the adjoints of the variables `wrt`.
pub fn reverse(
    b: &mut Builder,
    module: &mut Module,
    adjoints: &mut Adjoints,
    block: Block,
    wrt: &[Var],
    seed: impl FnOnce(&mut Builder, &[Atom]) -> Vec<Option<Atom>>,
) -> (Vec<Atom>, Vec<Atom>) {
    let mut active: FxHashSet<Var> = wrt.iter().copied().filter(|v| v.ty.may_be_active()).collect();
    crate::activity::propagate(&block, &mut active);
    let start = b.len();
    let mut sweep = Sweep::new(b, module, adjoints, &block, active);
    let results = block.results.clone();
    let records = sweep.forward(block.stmts);
    let seeds = seed(sweep.b, &results);
    sweep.seed(&results, &seeds);
    sweep.backward(records);
    let found: Vec<Atom> = wrt.iter().map(|v| sweep.take_or_zero(*v)).collect();
    let found = found.into_iter().map(|adj| seen(sweep.b, adj)).collect();
    let (replayed, traces) = (sweep.replayed, sweep.traces);
    let mut stmts = b.split_off(start);
    control::mark_replayed(&mut stmts, &replayed);
    traced::keep_traces(&mut stmts, &traces);
    at_once::join(&mut stmts, &adjoints.at_once);
    b.stmts(stmts);
    (results, found)
}

/// The function that takes what `function` takes, then adjoints for its real results, and gives what it gives, then the adjoints
/// of its real parameters.
pub fn of_function(module: &mut Module, adjoints: &mut Adjoints, function: FunctionId) -> FunctionId {
    let primal = module.function(function).clone();
    let mut renaming = Renaming::default();
    let mut params = Vec::new();
    for param in &primal.params {
        let new = param.refresh();
        renaming.map.insert(*param, new.into());
        params.push(new);
    }
    let wrt: Vec<Var> = params.iter().copied().filter(|p| p.ty.may_be_active()).collect();
    let seeds: Vec<Option<Var>> = primal
        .results
        .iter()
        .map(|ty| ty.may_be_active().then(|| Var::fresh("result_adj", module.linear_type(*ty))))
        .collect();
    params.extend(seeds.iter().flatten());
    let body = renaming.block(&primal.body);
    let mut b = Builder::new();
    let seed = |_: &mut Builder, _: &[Atom]| seeds.iter().map(|s| s.map(Atom::Var)).collect();
    let (values, adjs) = reverse(&mut b, module, adjoints, body, &wrt, seed);
    let body = b.pop([values, adjs].concat());
    let results = [primal.results, wrt.iter().map(|v| module.linear_type(v.ty)).collect()].concat();
    module.functions.push(Function { name: primal.name.with("_vjp"), params, results, body, rule: None });
    FunctionId(module.functions.len() - 1)
}

/// What the forward sweep leaves for the backward sweep of a statement.
enum Record {
    Plain,
    /// A loop with state: how the state at the start of each iteration is known, how many there were, and what counts them.
    Loop {
        saved: Vec<undo::Saved>,
        count: Atom,
        index: Var,
    },
    /// A loop that looks for extremes, with the numbers that it has kept.
    Extremes(Vec<Var>),
    /// A loop that chooses, with what it has noted.
    Chosen(chosen::Chosen),
    /// A loop that walks through cells.
    Walked(walks::Walked),
    /// A branch of plain arithmetic.
    Branch(branches::Computed),
    /// A call of a function in two halves.
    Call {
        back: FunctionId,
        trace: Var,
        key: traced::Key,
    },
    /// A branch or loop that keeps a trace.
    Traced(traced::Traced),
    /// What is written on the way back: see [`at_once`].
    PutOff,
}

struct Sweep<'a> {
    b: &'a mut Builder,
    module: &'a mut Module,
    adjoints: &'a mut Adjoints,
    active: FxHashSet<Var>,
    /// The arrays that loops with state carry or make, as far as they have the same lengths in every iteration.
    steady: FxHashSet<Var>,
    adj: FxHashMap<Var, Adj>,
    /// For accumulators of the program: the adjoint of what they are frozen to.
    sums: FxHashMap<Var, Atom>,
    /// Accumulators whose additions have already been made: a block that is run again must not repeat them.
    settled: FxHashSet<Var>,
    /// What accumulators were frozen to, or something of the same shape.
    frozen: FxHashMap<Var, Atom>,
    /// The loops, by their index variables, and the branches that the backward sweep runs again.
    replayed: FxHashSet<Var>,
    /// What is kept in traces, for each block that ends in one, by the variable that gets it and the number of the block.
    traces: FxHashMap<(Var, usize), traced::Kept>,
    /// Whether the forward sweep is kept in a trace, where it pays to compute again rather than to keep.
    tracing: bool,
    /// Whether there are calls at all.
    has_calls: bool,
    /// Arrays that the backward sweep has without keeping them.
    given: FxHashSet<Var>,
    /// Lengths of arrays, which are not negative.
    lengths: FxHashSet<Var>,
    /// How many loops are being run again around here.
    loops_around: usize,
    /// What the forward sweep has kept.
    kept: FxHashMap<Var, kept::Kept>,
    /// For arrays that loops have changed, what they were before, which the way back through these has restored.
    restored: FxHashMap<Var, Var>,
    /// The function whose two sweeps are made at once, if this is one, and what is made of it.
    own: Option<(FunctionId, FunctionId)>,
}

impl<'a> Sweep<'a> {
    fn new(
        b: &'a mut Builder,
        module: &'a mut Module,
        adjoints: &'a mut Adjoints,
        block: &Block,
        active: FxHashSet<Var>,
    ) -> Self {
        Sweep {
            b,
            module,
            adjoints,
            active,
            steady: crate::steady::find(block),
            adj: FxHashMap::default(),
            sums: FxHashMap::default(),
            settled: FxHashSet::default(),
            frozen: FxHashMap::default(),
            replayed: FxHashSet::default(),
            traces: FxHashMap::default(),
            tracing: false,
            has_calls: walk::has_calls(block),
            given: FxHashSet::default(),
            lengths: walk::lengths(block),
            loops_around: 0,
            kept: FxHashMap::default(),
            restored: FxHashMap::default(),
            own: None,
        }
    }

    fn is_active(&self, atom: Atom) -> bool {
        atom.var().is_some_and(|v| self.active.contains(&v))
    }

    /// The forward sweep over a list of statements.
    fn forward(&mut self, stmts: Vec<Stmt>) -> Vec<(Stmt, Record)> {
        let left = self.left_to_kept(&stmts);
        let mut left_out: Vec<Stmt> = Vec::new();
        let mut records = Vec::with_capacity(stmts.len());
        for (at, mut stmt) in stmts.into_iter().enumerate() {
            self.b.span = stmt.span;
            let record = if left.contains(&at) {
                left_out.push(self.without_settled(&stmt));
                Record::Plain
            } else if self.is_kept(&stmt) {
                self.forward_kept(&stmt, &mut left_out);
                Record::Plain
            } else {
                self.forward_stmt(&mut stmt)
            };
            records.push((stmt, record));
        }
        records
    }

    fn backward(&mut self, records: Vec<(Stmt, Record)>) {
        for (stmt, record) in records.into_iter().rev() {
            self.b.span = stmt.span;
            self.backward_stmt(stmt, record);
        }
    }

    fn seed(&mut self, results: &[Atom], seeds: &[Option<Atom>]) {
        for (result, seed) in results.iter().zip(seeds) {
            if let Some(seed) = seed {
                self.add(*result, *seed);
            }
        }
    }

    /// A nested block, run again with the variables of `renaming` replaced, and then backwards.
    fn replay(&mut self, block: &Block, mut renaming: Renaming, seeds: &[Option<Atom>]) {
        let mut params: Vec<Var> = renaming.map.keys().copied().collect();
        params.sort_by_key(|v| v.id);
        self.know_as(&params, &renaming);
        self.replay_as(block, &params, &mut renaming, seeds);
    }

    /// The same for a block with parameters; `renaming` gets the new names of what it binds.
    fn replay_as(&mut self, block: &Block, params: &[Var], renaming: &mut Renaming, seeds: &[Option<Atom>]) {
        // A branch at the end, which only gives results, has nothing to say on the way there.
        let (stmts, last) = match block.stmts.split_last() {
            Some((last, others)) if self.is_plain_branch(&last.op) => (others, Some(last)),
            _ => (&block.stmts[..], None),
        };
        let mut copy = Vec::with_capacity(stmts.len());
        let mut bound = Vec::new();
        for stmt in stmts {
            copy.push(renaming.stmt(stmt));
            bound.extend(stmt.binds.iter().copied());
            bound.extend(stmt.op.params());
            stmt.op.blocks().for_each(|inner| walk::for_each_binder(inner, &mut |v| bound.push(v)));
        }
        self.know_as(&bound, renaming);
        let tracing = std::mem::replace(&mut self.tracing, false);
        let records = self.forward(copy);
        self.tracing = tracing;
        if let Some(last) = last {
            last.binds.iter().for_each(|v| {
                renaming.map.insert(*v, v.refresh().into());
            });
            self.know_as(&last.binds, renaming);
        }
        let results: Vec<Atom> = block.results.iter().map(|a| renaming.atom(*a)).collect();
        self.seed(&results, seeds);
        if let Some(last) = last {
            let made = stmts.iter().flat_map(|s| &s.binds);
            let own: Vec<Var> = params.iter().chain(made).copied().collect();
            self.backward_last_if(last, &own, renaming);
        }
        self.backward(records);
    }

    /// New names are known for what the old ones were.
    fn know_as(&mut self, old: &[Var], renaming: &Renaming) {
        for old in old {
            let Some(Atom::Var(new)) = renaming.map.get(old) else { continue };
            for known in [&mut self.active, &mut self.steady, &mut self.lengths] {
                if known.contains(old) {
                    known.insert(*new);
                }
            }
            self.know_kept_as(*old, *new, renaming);
        }
    }

    /// The adjoint statements of one statement.
    fn backward_stmt(&mut self, stmt: Stmt, record: Record) {
        if matches!(record, Record::PutOff) {
            return self.backward_put_off(stmt);
        }
        match (&stmt.op, &stmt.binds[..]) {
            (Op::Scalar { prim, args }, [y]) => {
                let Some(y_adj) = self.take(*y) else { return };
                let applied = Applied { prim: *prim, args, value: (*y).into() };
                for (i, arg) in args.iter().enumerate().filter(|(_, a)| self.is_active(**a)).collect::<Vec<_>>() {
                    if let Some(slope) = partial(self.b, applied, i) {
                        let contribution = times(self.b, slope, y_adj);
                        self.add(*arg, contribution);
                    }
                }
            }
            (Op::Copy { value }, [y]) => {
                if let Some(y_adj) = self.take(*y) {
                    self.add(*value, y_adj);
                }
            }
            (Op::Select { cond, then, otherwise }, [y]) => {
                let Some(y_adj) = self.take(*y) else { return };
                if self.is_active(*then) {
                    let taken = self.b.select(*cond, y_adj, Atom::Real(0.0));
                    self.add(*then, taken);
                }
                if self.is_active(*otherwise) {
                    let taken = self.b.select(*cond, Atom::Real(0.0), y_adj);
                    self.add(*otherwise, taken);
                }
            }
            (Op::Get { array, index }, [y]) => {
                if let Some(y_adj) = self.take(*y) {
                    self.add_at(*array, index, y_adj);
                }
            }
            (Op::Set { array, index, value }, [y]) => {
                let Some(y_adj) = self.take(*y) else { return };
                if self.is_active(*value) {
                    let value_adj = self.b.get(y_adj, index.clone());
                    self.add(*value, value_adj);
                }
                if let (true, Some(y_adj)) = (self.active.contains(array), y_adj.var()) {
                    let zero = self.zeros_like(*value);
                    let rest = self.b.set(y_adj, index.clone(), zero);
                    self.add((*array).into(), rest.into());
                }
            }
            (Op::Fill { value, .. }, [y]) => {
                if let Some(Atom::Var(y_adj)) = self.take(*y) {
                    if self.is_active(*value) {
                        if let Some(shape) = y_adj.ty.shape() {
                            merge::ensure(self.module, shape);
                        }
                        let total = sum_all(self.b, y_adj);
                        self.add(*value, total);
                    }
                }
            }
            (Op::Literal { items, .. }, [y]) => {
                let Some(y_adj) = self.take(*y) else { return };
                for (i, item) in items.iter().enumerate() {
                    if self.is_active(*item) {
                        let item_adj = self.b.get(y_adj, vec![Atom::Int(i as i64)]);
                        self.add(*item, item_adj);
                    }
                }
            }
            (Op::Cell { tag, fields, .. }, [y]) => {
                let Some(y_adj) = self.take(*y) else { return };
                let Some(shape) = y_adj.ty().shape() else { return };
                let adjs = crate::lower::linear_fields(self.b, self.module, y_adj, shape, *tag, fields);
                for (field, adj) in fields.iter().filter(|a| a.ty().may_be_active()).zip(adjs) {
                    self.add(*field, adj);
                }
            }
            (Op::Unpack { cell, tag }, binds) => {
                let adjs: Vec<Option<Atom>> = binds.iter().map(|v| self.take(*v)).collect();
                if adjs.iter().all(|a| a.is_none()) || !self.is_active(*cell) {
                    return;
                }
                let mut fields = Vec::new();
                for (bind, adj) in binds.iter().zip(adjs).filter(|(v, _)| v.ty.may_be_active()) {
                    fields.push(match adj {
                        Some(adj) => seen(self.b, adj),
                        None => self.zeros_like((*bind).into()),
                    });
                }
                let Some(shape) = cell.ty().shape() else { return };
                let linear = self.module.linear(shape);
                let cell_adj = self.b.cell(linear, *tag, fields);
                self.add(*cell, cell_adj);
            }
            (Op::Dim { .. } | Op::Check { .. } | Op::Stop { .. } | Op::Tag { .. } | Op::Digits { .. }, _) => {}
            (Op::If { .. }, _) => match record {
                Record::Traced(traced) => self.backward_traced_if(stmt, traced),
                Record::Branch(computed) => self.backward_arithmetic_if(stmt, computed),
                Record::Plain
                | Record::Loop { .. }
                | Record::Extremes(_)
                | Record::Chosen(_)
                | Record::Walked(_)
                | Record::Call { .. }
                | Record::PutOff => self.backward_if(stmt),
            },
            (Op::For(_) | Op::While(_), _) => match (record, &stmt.op) {
                (Record::Traced(traced), _) => self.backward_traced_loop(stmt, traced),
                (Record::Extremes(kept), Op::For(l)) => self.backward_extremes(&stmt, l, &kept),
                (Record::Chosen(chosen), _) => self.backward_choice(&stmt, chosen),
                (Record::Walked(walked), Op::While(l)) => self.backward_walks(&stmt.binds, &l.carried, walked),
                (record, _) => self.backward_loop(stmt, record),
            },
            (Op::Call { function, args }, binds) => match record {
                Record::Call { back, trace, key } => self.backward_traced_call(back, trace, &key, args, binds),
                Record::Plain
                | Record::Loop { .. }
                | Record::Extremes(_)
                | Record::Chosen(_)
                | Record::Walked(_)
                | Record::Branch(_)
                | Record::Traced(_)
                | Record::PutOff => self.backward_call(*function, args, binds),
            },
            (Op::Freeze { acc }, [y]) => {
                if let Some(y_adj) = self.take(*y) {
                    self.sums.insert(*acc, y_adj);
                }
            }
            (Op::Add { acc, index, value }, _) => {
                if let (Some(sum), true) = (self.sums.get(acc).copied(), self.is_active(*value)) {
                    let value_adj = self.b.get(sum, index.clone());
                    self.add(*value, value_adj);
                }
            }
            (Op::Open { init }, [acc]) => {
                if let Some(sum) = self.sums.remove(acc) {
                    self.add(*init, sum);
                }
            }
            (op, _) => gradus_source::bug!("a flow statement binds the wrong number of variables: {op:?}"),
        }
    }
}

/// The state of a loop backwards in which that of the loop itself is undone. Whatever it is called, this is not the name of an adjoint.
fn last_undone(state: Var) -> Var {
    Var::fresh(state.name.with("_undone"), state.ty)
}

/// The variables that a nested block takes from outside, without those that its statement binds for it.
fn outer_vars(block: &Block, params: &[Var]) -> Vec<Var> {
    free_vars(block).into_iter().filter(|v| !params.contains(v)).collect()
}
