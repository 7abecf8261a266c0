//! Recursive functions that need nothing of the way there on the way back, so that both are one.
//!
//! A function may do no more with what it gets from itself than to add it up, each time a factor that is known before, as in a sum over a tree or the expansion of
//! a determinant along a row. Then the adjoints of these results are known when it calls itself, and one function takes what it took and the adjoints
//! of its results, and gives its results and the adjoints of its parameters:
//!
//! ```text
//! f (Node (l, x, r)) = g x + f l + 2 f r    =>    f_at_once (Node (l, x, r)) f_adj =
//!                                                   let (a, l_adj) = f_at_once l f_adj in
//!                                                   let (b, r_adj) = f_at_once r (2 f_adj) in
//!                                                   (g x + a + 2 b, Node (l_adj, g' x f_adj, r_adj))
//! ```
//!
//! There is no trace, so that it needs no more memory than the function. Its two sweeps are written as for any other block, but that a statement in which the
//! function calls itself is put off until the adjoints of what it binds are known; then the statements are put in order.

use super::control::outer_accumulators;
use super::traced::Key;
use super::*;
use crate::simplify::can_fail;
use gradus_core::traverse::with_stack;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What is known of the functions that call themselves.
#[derive(Default)]
pub(super) struct AtOnce {
    /// Whether they are of this kind.
    found: RefCell<FxHashMap<Key, bool>>,
    made: FxHashMap<Key, FunctionId>,
    /// For the functions that were made, what they are both halves of.
    of: FxHashMap<FunctionId, FunctionId>,
}

impl Sweep<'_> {
    /// Whether a call is one of a function of this kind.
    pub(super) fn is_at_once(&self, function: FunctionId, args: &[Atom]) -> bool {
        let key = self.key(function, args);
        let known = self.adjoints.at_once.found.borrow().get(&key).copied();
        known.unwrap_or_else(|| {
            if self.module.function(function).is_unfinished() {
                return false;
            }
            let adds_up = AddsUp::is_all(self.module, &key, &mut self.adjoints.may_recurse.borrow_mut());
            self.adjoints.at_once.found.borrow_mut().insert(key, adds_up);
            adds_up
        })
    }

    fn key(&self, function: FunctionId, args: &[Atom]) -> Key {
        Key { function, active: args.iter().map(|a| self.is_active(*a) && !a.ty().accumulator).collect() }
    }

    /// The way back through such a call, of which [`join`] makes the call itself, where it can.
    pub(super) fn backward_at_once(&mut self, function: FunctionId, args: &[Atom], binds: &[Var]) {
        let adjs: Vec<Option<Atom>> = binds.iter().map(|v| self.take(*v)).collect();
        if adjs.iter().any(|a| a.is_some()) {
            let values: Vec<Var> = binds.iter().map(|v| v.refresh()).collect();
            self.call_both(function, args, values, &adjs);
        }
    }

    /// Calls the function that gives values and adjoints.
    fn call_both(&mut self, function: FunctionId, args: &[Atom], values: Vec<Var>, adjs: &[Option<Atom>]) {
        let key = self.key(function, args);
        let mut call = args.to_vec();
        for (value, adj) in values.iter().zip(adjs).filter(|(v, _)| v.ty.may_be_active()) {
            call.push(match adj {
                Some(adj) => *adj,
                None => self.zeros_like((*value).into()),
            });
        }
        let both = both_of(self.module, self.adjoints, &key);
        let active: Vec<Atom> = args.iter().zip(&key.active).filter(|(_, active)| **active).map(|(a, _)| *a).collect();
        for array in active.iter().filter(|a| a.ty().is_array()).filter_map(|a| a.var()) {
            call.push(self.open(array).into());
        }
        let numbers: Vec<Atom> = active.into_iter().filter(|a| !a.ty().is_array()).collect();
        let results: Vec<Var> = numbers.iter().map(|a| Var::fresh("t_adj", self.module.linear_type(a.ty()))).collect();
        self.b.bind([values, results.clone()].concat(), Op::Call { function: both, args: call });
        for (number, adj) in numbers.into_iter().zip(results) {
            self.add(number, adj.into());
        }
    }

    /// In such a function, whether a statement is put off.
    pub(super) fn is_put_off(&self, stmt: &Stmt) -> bool {
        self.own.is_some_and(|(own, _)| calls_in(&stmt.op, own, &|args| args.iter().any(|a| self.is_active(*a))))
    }

    /// What was put off: its own two sweeps, now that the adjoints of what it binds are known.
    pub(super) fn backward_put_off(&mut self, stmt: Stmt) {
        let adjs: Vec<Option<Atom>> = stmt.binds.iter().map(|v| self.take(*v)).collect();
        let Stmt { binds, op, span } = stmt;
        let free: Vec<Var> =
            op.blocks().flat_map(|block| outer_vars(block, &op.params().collect::<Vec<_>>())).collect();
        match op {
            Op::Call { function, args } => {
                self.call_both(function, &args, binds, &adjs);
            }
            Op::If { cond, then, otherwise, replayed } => self.around(&free, |s| {
                let [then, otherwise] = [then, otherwise].map(|side| s.both_sweeps(*side, |_| adjs.clone(), &[]));
                s.b.span = span;
                s.b.bind(binds, Op::branch(cond, then, otherwise, replayed));
            }),
            Op::For(mut l) => self.around(&free, |s| {
                let (index, state) = (l.index, l.carried.len());
                let seeds = |s: &mut Self| {
                    let collected = adjs.iter().skip(state).map(|adj| adj.map(|all| s.b.get(all, vec![index.into()])));
                    std::iter::repeat_n(None, state).chain(collected).collect()
                };
                l.body = s.both_sweeps(std::mem::take(&mut l.body), seeds, &[]);
                s.b.span = span;
                s.b.bind(binds, Op::For(l));
            }),
            _ => gradus_source::bug!("a statement was put off that calls nothing"),
        }
    }

    /// Both sweeps of a block, given the adjoints of its results; gives what it gives, and then the adjoints of some variables.
    fn both_sweeps(&mut self, block: Block, seeds: impl FnOnce(&mut Self) -> Vec<Option<Atom>>, wrt: &[Var]) -> Block {
        // What other statements, whose two sweeps are done, add to is not done here.
        let settled = std::mem::take(&mut self.settled);
        self.b.push();
        let records = self.forward(block.stmts);
        let seeds = seeds(self);
        self.seed(&block.results, &seeds);
        self.backward(records);
        self.settled = settled;
        let adjs: Vec<Atom> = wrt.iter().map(|v| self.take_or_zero(*v)).collect();
        let mut whole = self.b.pop([block.results, adjs].concat());
        crate::simplify::dead_code(&mut whole, self.module);
        if let Some((_, both)) = self.own {
            in_order(&mut whole.stmts, both);
        }
        whole
    }
}

/// Whether a statement has a call of a function in it whose arguments are as said.
fn calls_in(op: &Op, function: FunctionId, wanted: &dyn Fn(&[Atom]) -> bool) -> bool {
    match op {
        Op::Call { function: called, args } => *called == function && wanted(args),
        op => {
            with_stack(|| op.blocks().flat_map(|block| &block.stmts).any(|stmt| calls_in(&stmt.op, function, wanted)))
        }
    }
}

/// The function that gives values and adjoints, made on first use.
fn both_of(module: &mut Module, adjoints: &mut Adjoints, key: &Key) -> FunctionId {
    if let Some(known) = adjoints.at_once.made.get(key) {
        return *known;
    }
    let primal = module.function(key.function).clone();
    let mut renaming = Renaming::default();
    let params: Vec<Var> = primal.params.iter().map(|p| p.refresh()).collect();
    renaming.map.extend(primal.params.iter().copied().zip(params.iter().map(|p| Atom::Var(*p))));
    let body = renaming.block(&primal.body);
    let mut seeds = Vec::new();
    for ty in &primal.results {
        seeds.push(ty.may_be_active().then(|| Var::fresh("result_adj", module.linear_type(*ty))));
    }
    let wrt: Vec<Var> = params.iter().zip(&key.active).filter(|(_, active)| **active).map(|(p, _)| *p).collect();
    let mut arrays = Vec::new();
    for array in wrt.iter().filter(|p| p.ty.is_array()) {
        let ty = module.linear_type(array.ty);
        if let Some(shape) = ty.shape() {
            merge::ensure(module, shape);
        }
        arrays.push((*array, Var::fresh(array.name.with("_adj"), ty.accumulator())));
    }
    let numbers: Vec<Var> = wrt.iter().copied().filter(|p| !p.ty.is_array()).collect();
    let mut results = primal.results.clone();
    for number in &numbers {
        results.push(module.linear_type(number.ty));
    }
    let all: Vec<Var> =
        params.into_iter().chain(seeds.iter().flatten().copied()).chain(arrays.iter().map(|(_, acc)| *acc)).collect();
    let id = module.derived(key.function, primal.name.with("_at_once"), all, results);
    adjoints.at_once.made.insert(key.clone(), id);
    adjoints.at_once.of.insert(id, key.function);
    if !module.function(id).is_unfinished() {
        return id; // A derivative of too high an order.
    }
    let mut active: FxHashSet<Var> = wrt.iter().copied().collect();
    crate::activity::propagate(&body, &mut active);
    let mut b = Builder::new();
    let mut sweep = Sweep::new(&mut b, module, adjoints, &body, active);
    sweep.own = Some((key.function, id));
    sweep.adj.extend(arrays.into_iter().map(|(array, acc)| (array, Adj::Open(acc))));
    let mut whole = sweep.both_sweeps(body, |_| seeds.iter().map(|s| s.map(Atom::Var)).collect(), &numbers);
    let replayed = sweep.replayed;
    control::mark_replayed(&mut whole.stmts, &replayed);
    module.functions[id.0].body = whole;
    id
}

/// Puts statements in order: what is used comes before its use, what is added before the sum is wanted. Those that were put off, which call `both`, come in the
/// order that they had on the way there.
fn in_order(stmts: &mut Vec<Stmt>, both: FunctionId) {
    let is_put_off = |at: &usize| calls_in(&stmts[*at].op, both, &|_| true);
    let last_first: Vec<usize> = (0..stmts.len()).filter(is_put_off).collect();
    let mut before: Vec<usize> = vec![0; stmts.len()];
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); stmts.len()];
    let mut comes = |first: usize, second: usize| {
        if first != second {
            before[second] += 1;
            after[first].push(second);
        }
    };
    let mut bound: FxHashMap<Var, usize> = FxHashMap::default();
    let mut frozen: FxHashMap<Var, usize> = FxHashMap::default();
    for (at, stmt) in stmts.iter().enumerate() {
        bound.extend(stmt.binds.iter().map(|v| (*v, at)));
        if let Op::Freeze { acc } = stmt.op {
            frozen.insert(acc, at);
        }
    }
    for (at, stmt) in stmts.iter().enumerate() {
        stmt.for_each_use(&mut |var| {
            if let Some(maker) = bound.get(&var) {
                comes(*maker, at);
            }
            if let Some(end) = frozen.get(&var) {
                comes(at, *end);
            }
        });
    }
    last_first.windows(2).for_each(|pair| comes(pair[1], pair[0]));
    let mut ready: BinaryHeap<Reverse<usize>> = (0..stmts.len()).filter(|at| before[*at] == 0).map(Reverse).collect();
    let mut rest: Vec<Option<Stmt>> = std::mem::take(stmts).into_iter().map(Some).collect();
    while let Some(Reverse(at)) = ready.pop() {
        stmts.extend(rest[at].take());
        for next in &after[at] {
            before[*next] -= 1;
            if before[*next] == 0 {
                ready.push(Reverse(*next));
            }
        }
    }
    if rest.iter().any(|stmt| stmt.is_some()) {
        gradus_source::bug!("an adjoint that was to be known before a call depends on it");
    }
}

/// Where a function of this kind is called and then called for its adjoints, the second call takes the place of the first, if what it takes is known there.
pub(super) fn join(stmts: &mut Vec<Stmt>, at_once: &AtOnce) {
    if at_once.of.is_empty() {
        return;
    }
    with_stack(|| {
        for stmt in stmts.iter_mut() {
            stmt.op.blocks_mut().for_each(|inner| join(&mut inner.stmts, at_once));
        }
        let mut at = 0;
        while at < stmts.len() {
            if let Some(second) = second_call(stmts, at, at_once) {
                join_calls(stmts, at, second);
            }
            at += 1;
        }
    })
}

/// Where the function that is called at a place is called again for its adjoints.
fn second_call(stmts: &[Stmt], first: usize, at_once: &AtOnce) -> Option<usize> {
    let Op::Call { function, args } = &stmts[first].op else { return None };
    let is_second = |stmt: &Stmt| match &stmt.op {
        Op::Call { function: both, args: all } => at_once.of.get(both) == Some(function) && all.starts_with(args),
        _ => false,
    };
    stmts[first + 1..].iter().position(is_second).map(|distance| first + 1 + distance)
}

fn join_calls(stmts: &mut Vec<Stmt>, first: usize, second: usize) {
    let mut wanted: FxHashSet<Var> = FxHashSet::default();
    stmts[second].for_each_use(&mut |v| {
        wanted.insert(v);
    });
    let checks = stmts[first + 1..second].iter().any(can_fail);
    let mut moved = vec![second];
    for at in (first + 1..second).rev() {
        let stmt = &stmts[at];
        if !stmt.binds.iter().any(|v| wanted.contains(v)) {
            continue;
        }
        let is_safe = match &stmt.op {
            Op::Scalar { prim: Prim::DivInt | Prim::ModInt, .. } | Op::Get { .. } | Op::Unpack { .. } => !checks,
            op => !can_fail(stmt) && !op.has_blocks() && !matches!(op, Op::Freeze { .. }),
        };
        if !is_safe {
            return;
        }
        stmt.for_each_use(&mut |v| {
            wanted.insert(v);
        });
        moved.push(at);
    }
    if stmts[first].binds.iter().any(|v| wanted.contains(v)) {
        return;
    }
    let mut before: Vec<Stmt> = Vec::new();
    for at in moved {
        before.push(stmts.remove(at));
    }
    before.reverse();
    let values = std::mem::take(&mut stmts[first].binds);
    if let Some(both) = before.last_mut() {
        both.binds.splice(..values.len(), values);
    }
    stmts.splice(first..=first, before);
}

/// Finds out whether a function does no more with what it gets from itself than to add it up.
struct AddsUp<'a> {
    key: &'a Key,
    active: FxHashSet<Var>,
    /// What depends on results of calls, or is put off with them.
    parts: FxHashSet<Var>,
    /// Whether what is looked at is in a branch without calls. Its way back is one statement: the adjoints of calls come out of it, so that their results
    /// cannot go in.
    in_branch: bool,
}

impl<'a> AddsUp<'a> {
    fn is_all(module: &Module, key: &'a Key, recursive: &mut FxHashMap<FunctionId, bool>) -> bool {
        let function = module.function(key.function);
        let params = function.params.iter().zip(&key.active);
        let mut active: FxHashSet<Var> = params.filter(|(_, active)| **active).map(|(p, _)| *p).collect();
        crate::activity::propagate(&function.body, &mut active);
        let accumulates = function.params.iter().any(|p| p.ty.accumulator);
        let arrays = function.results.iter().any(|ty| ty.is_array());
        let mut callees = Vec::new();
        walk::callees(&function.body, &mut callees);
        let mut others = callees.iter().filter(|called| **called != key.function);
        callees.contains(&key.function)
            && !accumulates
            && !arrays
            && !others.any(|called| module.may_recurse(*called, recursive))
            && AddsUp { key, active, parts: FxHashSet::default(), in_branch: false }.block(&function.body)
    }

    fn is_part(&self, atom: Atom) -> bool {
        atom.var().is_some_and(|v| self.parts.contains(&v))
    }

    /// Whether the adjoint of a result may be multiplied by a number, whose own adjoint is multiplied by the result.
    fn may_scale(&self, factor: Atom) -> bool {
        let has_slope = factor.var().is_some_and(|v| self.active.contains(&v));
        !(self.is_part(factor) || has_slope && self.in_branch)
    }

    /// What is put off as a whole cannot wait for a result whose adjoint it gives.
    fn waits(&self, stmt: &Stmt) -> bool {
        let mut waits = false;
        stmt.for_each_use(&mut |v| waits |= !v.ty.accumulator && self.parts.contains(&v));
        waits
    }

    fn block(&mut self, block: &Block) -> bool {
        with_stack(|| {
            let mut has_called = false;
            block.stmts.iter().all(|stmt| {
                let is_active = |args: &[Atom]| args.iter().any(|a| a.var().is_some_and(|v| self.active.contains(&v)));
                let calls = calls_in(&stmt.op, self.key.function, &is_active);
                has_called |= calls;
                // What comes after a call may have to come before it.
                (calls || !has_called || !can_fail(stmt)) && self.stmt(stmt, calls)
            })
        })
    }

    fn stmt(&mut self, stmt: &Stmt, calls: bool) -> bool {
        let mut mentions = calls;
        stmt.for_each_use(&mut |v| mentions |= self.parts.contains(&v));
        if !mentions {
            return true;
        }
        // How long the adjoint of an array is, only the array can tell.
        if stmt.binds.iter().any(|v| v.ty.is_array()) {
            return false;
        }
        let adds_up = match &stmt.op {
            Op::Call { args, .. } if calls => {
                let is_active = |a: &Atom| a.var().is_some_and(|v| self.active.contains(&v));
                args.iter().map(is_active).eq(self.key.active.iter().copied()) && !args.iter().any(|a| self.is_part(*a))
            }
            Op::If { .. } | Op::For(_) if calls && self.waits(stmt) => false,
            Op::If { cond, then, otherwise, .. } => {
                let around = self.in_branch;
                self.in_branch = !calls;
                let adds_up = !self.is_part(*cond) && self.block(then) && self.block(otherwise);
                self.in_branch = around;
                adds_up
            }
            Op::For(l) if calls => {
                let mut atoms = l.carried.iter().map(|(_, init)| *init).chain([l.count]);
                let passive = l.carried.iter().all(|(state, _)| !self.active.contains(state));
                let adds_up = passive && !atoms.any(|a| self.is_part(a)) && self.block(&l.body);
                adds_up && !l.body.results[..l.carried.len()].iter().any(|a| self.is_part(*a))
            }
            // Without a slope; what it decides or multiplies depends on the call.
            Op::Scalar { .. } if !stmt.binds.iter().any(|v| self.active.contains(v)) => true,
            Op::Scalar { prim, args } => match (prim, &args[..]) {
                (Prim::AddReal | Prim::SubReal | Prim::NegReal, _) => true,
                (Prim::MulReal, [a, b]) => self.may_scale(if self.is_part(*a) { *b } else { *a }),
                (Prim::DivReal, [_, by]) => self.may_scale(*by),
                _ => false,
            },
            Op::Copy { .. } | Op::Stop { .. } | Op::Freeze { .. } | Op::Open { .. } => true,
            Op::Select { cond, .. } => !self.is_part(*cond),
            Op::Add { acc, index, value } => {
                if self.is_part(*value) {
                    self.parts.insert(*acc);
                }
                !index.iter().any(|i| self.is_part(*i))
            }
            _ => false,
        };
        self.parts.extend(stmt.binds.iter().copied());
        if calls {
            self.parts.extend(outer_accumulators(&stmt.op));
        }
        adds_up
    }
}
