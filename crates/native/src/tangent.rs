//! Forward mode on flow: each statement is followed by that of its tangent. Tangents that are zero are absent.

use crate::flow::walk::Renaming;
use crate::flow::*;
use crate::partials::{partial, times};
use gradus_core::traverse::with_stack;
use rustc_hash::{FxHashMap, FxHashSet};

/// The tangents of functions that were made so far, for the parameters that are active.
#[derive(Default)]
pub struct Tangents {
    table: FxHashMap<(FunctionId, Vec<bool>), FunctionId>,
    /// Those whose bodies are still to be written.
    pending: Vec<(FunctionId, Vec<bool>)>,
}

impl Tangents {
    /// Writes the bodies that were put off, as far as the functions that they come from are complete. Whether anything was done.
    pub fn finish(&mut self, module: &mut Module) -> bool {
        let ready = |key: &(FunctionId, Vec<bool>), module: &Module| !module.function(key.0).is_unfinished();
        let (now, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.pending).into_iter().partition(|key| ready(key, module));
        self.pending = later;
        for (function, active) in &now {
            write_tangent(module, self, *function, active);
        }
        !now.is_empty()
    }

    pub fn is_finished(&self) -> bool {
        self.pending.is_empty()
    }
}

/// Writes to `b` the block together with its tangents. `inputs` are variables with their tangents. The result is the block's
/// results and their tangents (`None`: zero).
pub fn forward(
    b: &mut Builder,
    module: &mut Module,
    tangents: &mut Tangents,
    block: Block,
    inputs: &[(Var, Atom)],
) -> (Vec<Atom>, Vec<Option<Atom>>) {
    let mut active: FxHashSet<Var> = inputs.iter().map(|(v, _)| *v).filter(|v| v.ty.may_be_active()).collect();
    crate::activity::propagate(&block, &mut active);
    let mut push = Push { b, module, tangents, active, tan: FxHashMap::default(), sums: FxHashMap::default() };
    for (var, tan) in inputs.iter().filter(|(v, _)| v.ty.may_be_active()) {
        push.tan.insert(*var, *tan);
    }
    push.stmts(block.stmts);
    let tans = block.results.iter().map(|a| push.tangent(*a)).collect();
    (block.results, tans)
}

/// The function that takes what `function` takes, then tangents for its real parameters, and gives what it gives, then the
/// tangents of its real results.
pub fn of_function(module: &mut Module, tangents: &mut Tangents, function: FunctionId) -> FunctionId {
    let active: Vec<bool> = module.function(function).params.iter().map(|p| p.ty.may_be_active()).collect();
    tangent_of(module, tangents, function, &active)
}

struct Push<'a> {
    b: &'a mut Builder,
    module: &'a mut Module,
    tangents: &'a mut Tangents,
    active: FxHashSet<Var>,
    tan: FxHashMap<Var, Atom>,
    /// The accumulators of tangents.
    sums: FxHashMap<Var, Var>,
}

impl Push<'_> {
    fn tangent(&self, atom: Atom) -> Option<Atom> {
        atom.var().and_then(|v| self.tan.get(&v).copied())
    }

    fn tangent_or_zero(&mut self, atom: Atom) -> Atom {
        match self.tangent(atom) {
            Some(tan) => tan,
            None => self.b.linear_zeros_like(self.module, atom),
        }
    }

    /// A variable for the tangent of a bound one.
    fn tangent_var(&mut self, var: Var) -> Var {
        let tan = Var::fresh(var.name.with("_tan"), self.module.linear_type(var.ty));
        self.tan.insert(var, tan.into());
        tan
    }

    fn stmts(&mut self, stmts: Vec<Stmt>) {
        with_stack(|| stmts.into_iter().for_each(|stmt| self.stmt(stmt)))
    }

    /// A nested block; its results are followed by the tangents of those chosen (zero where there is none).
    fn block(&mut self, block: Block, chosen: &[bool]) -> (Block, Vec<Atom>) {
        self.b.push();
        self.stmts(block.stmts);
        let mut tans = Vec::new();
        for (result, chosen) in block.results.iter().zip(chosen) {
            if *chosen {
                tans.push(self.tangent_or_zero(*result));
            }
        }
        (self.b.pop(block.results), tans)
    }

    fn stmt(&mut self, stmt: Stmt) {
        self.b.span = stmt.span;
        let Stmt { mut binds, op, span } = stmt;
        match op {
            Op::If { cond, then, otherwise, replayed } => {
                let (then, otherwise) = self.branch(then, otherwise, &mut binds);
                self.b.bind(binds, Op::If { cond, then, otherwise, replayed });
            }
            Op::For(l) => {
                let For { index, count, carried, body, replayed } = l;
                let (carried, body, binds) = self.repeated(carried, body, 0, binds);
                self.b.bind(binds, Op::For(For { index, count, carried, body, replayed }));
            }
            Op::While(l) => {
                let (carried, body, binds) = self.repeated(l.carried, l.body, 1, binds);
                self.b.bind(binds, Op::While(While { carried, body }));
            }
            Op::Call { function, args } => self.call(function, args, binds),
            op => {
                self.b.stmt(Stmt { binds: binds.clone(), op: op.clone(), span });
                self.simple(&op, &binds);
            }
        }
    }

    /// The tangent of a statement without nested blocks.
    fn simple(&mut self, op: &Op, binds: &[Var]) {
        if let Op::Unpack { cell, tag } = op {
            let Some(tan) = self.tangent(*cell) else { return };
            let Some(shape) = tan.ty().shape() else { return };
            let fields: Vec<Atom> = binds.iter().map(|v| Atom::Var(*v)).collect();
            let tans = crate::lower::linear_fields(self.b, self.module, tan, shape, *tag, &fields);
            for (bind, tan) in binds.iter().filter(|v| v.ty.may_be_active()).zip(tans) {
                self.tan.insert(*bind, tan);
            }
            return;
        }
        let y = match binds {
            [y] if self.active.contains(y) => Some(*y),
            _ => None,
        };
        match (op, y) {
            (Op::Scalar { prim, args }, Some(y)) => {
                let mut sum: Option<Atom> = None;
                for (i, arg) in args.iter().enumerate() {
                    let Some(arg_tan) = self.tangent(*arg) else { continue };
                    let Some(slope) = partial(self.b, *prim, args, i) else { continue };
                    let term = times(self.b, slope, arg_tan);
                    sum = Some(match sum {
                        Some(sum) => self.b.add(sum, term),
                        None => term,
                    });
                }
                self.define(y, sum);
            }
            (Op::Copy { value }, Some(y)) => {
                let tan = self.tangent(*value);
                self.define(y, tan);
            }
            (Op::Select { cond, then, otherwise }, Some(y)) => {
                let (then, otherwise) = (self.tangent_or_zero(*then), self.tangent_or_zero(*otherwise));
                let tan = self.b.select(*cond, then, otherwise);
                self.define(y, Some(tan));
            }
            (Op::Get { array, index }, Some(y)) => {
                if let Some(array_tan) = self.tangent((*array).into()) {
                    let tan = self.b.get(array_tan, index.clone());
                    self.define(y, Some(tan));
                }
            }
            (Op::Set { array, index, value }, Some(y)) => {
                let array_tan = self.tangent_or_zero((*array).into());
                let value_tan = self.tangent_or_zero(*value);
                if let Some(array_tan) = array_tan.var() {
                    let tan = self.b.set(array_tan, index.clone(), value_tan);
                    self.define(y, Some(tan.into()));
                }
            }
            (Op::Fill { dims, value }, Some(y)) => {
                let value_tan = self.tangent_or_zero(*value);
                let tan = self.b.fill(dims.clone(), value_tan);
                self.define(y, Some(tan));
            }
            (Op::Literal { items, ty }, Some(y)) => {
                let items = items.iter().map(|item| self.tangent_or_zero(*item)).collect();
                let tan = self.tangent_var(y);
                let ty = self.module.linear_type(*ty);
                self.b.bind(vec![tan], Op::Literal { items, ty });
            }
            (Op::Cell { shape, tag, fields }, Some(y)) => {
                let active: Vec<Atom> = fields.iter().copied().filter(|a| a.ty().may_be_active()).collect();
                let tans = active.into_iter().map(|a| self.tangent_or_zero(a)).collect();
                let linear = self.module.linear(*shape);
                let tan = self.b.cell(linear, *tag, tans);
                self.define(y, Some(tan));
            }
            (Op::Open { init }, Some(acc)) => {
                let init_tan = self.tangent_or_zero(*init);
                if let Some(shape) = init_tan.ty().shape() {
                    crate::adjoint::ensure_merge(self.module, shape);
                }
                let acc_tan = self.b.open(acc.name.with("_tan"), init_tan);
                self.sums.insert(acc, acc_tan);
            }
            (Op::Freeze { acc }, Some(y)) => {
                if let Some(acc_tan) = self.sums.get(acc).copied() {
                    let tan = self.b.freeze(acc_tan);
                    self.define(y, Some(tan));
                }
            }
            (Op::Add { acc, index, value }, None) => {
                if let (Some(acc_tan), Some(value_tan)) = (self.sums.get(acc).copied(), self.tangent(*value)) {
                    self.b.accumulate(acc_tan, index.clone(), value_tan);
                }
            }
            _ => {}
        }
    }

    fn define(&mut self, var: Var, tan: Option<Atom>) {
        if let Some(tan) = tan {
            self.tan.insert(var, tan);
        }
    }

    /// Both sides with the tangents of their results, and variables for these.
    fn branch(&mut self, then: Block, otherwise: Block, binds: &mut Vec<Var>) -> (Block, Block) {
        let chosen: Vec<bool> = binds.iter().map(|v| self.active.contains(v)).collect();
        let (mut then, then_tans) = self.block(then, &chosen);
        let (mut otherwise, otherwise_tans) = self.block(otherwise, &chosen);
        then.results.extend(then_tans);
        otherwise.results.extend(otherwise_tans);
        for (bind, _) in binds.clone().into_iter().zip(chosen).filter(|(_, chosen)| *chosen) {
            let tan = self.tangent_var(bind);
            binds.push(tan);
        }
        (then, otherwise)
    }

    /// A loop: the tangents of the state follow the state, those of what is collected follow what is collected.
    fn repeated(
        &mut self,
        carried: Vec<(Var, Atom)>,
        body: Block,
        skip: usize,
        binds: Vec<Var>,
    ) -> (Vec<(Var, Atom)>, Block, Vec<Var>) {
        let state = carried.len();
        let mut all = carried.clone();
        for (var, init) in carried.iter().filter(|(v, _)| self.active.contains(v)).cloned().collect::<Vec<_>>() {
            let init_tan = self.tangent_or_zero(init);
            let tan = self.tangent_var(var);
            all.push((tan, init_tan));
        }
        let mut chosen = vec![false; skip];
        chosen.extend(carried.iter().map(|(v, _)| self.active.contains(v)));
        chosen.extend(binds[state..].iter().map(|v| self.active.contains(v)));
        let (mut body, tans) = self.block(body, &chosen);
        let state_tans = all.len() - state;
        let (next_tans, collected_tans) = tans.split_at(state_tans);
        let collected = body.results.split_off(skip + state);
        body.results.extend(next_tans);
        body.results.extend(collected);
        body.results.extend(collected_tans);
        let (last, arrays) = binds.split_at(state);
        let mut new_binds = last.to_vec();
        for (bind, (var, _)) in last.iter().zip(&carried) {
            if self.active.contains(var) {
                let tan = self.tangent_var(*bind);
                new_binds.push(tan);
            }
        }
        new_binds.extend(arrays);
        for bind in arrays.iter().filter(|v| self.active.contains(v)).copied().collect::<Vec<_>>() {
            let tan = self.tangent_var(bind);
            new_binds.push(tan);
        }
        (all, body, new_binds)
    }

    fn call(&mut self, function: FunctionId, args: Vec<Atom>, mut binds: Vec<Var>) {
        let active: Vec<bool> = args.iter().map(|a| a.var().is_some_and(|v| self.active.contains(&v))).collect();
        if !active.contains(&true) {
            self.b.bind(binds, Op::Call { function, args });
            return;
        }
        if let (true, [y]) = (self.module.is_merge(function), &binds[..]) {
            let y = *y;
            let tans: Vec<Atom> = args.iter().map(|a| self.tangent_or_zero(*a)).collect();
            self.b.bind(binds, Op::Call { function, args });
            let tan = self.tangent_var(y);
            self.b.bind(vec![tan], Op::Call { function, args: tans });
            return;
        }
        if let Some(rule) = self.module.function(function).rule.and_then(|r| r.forward) {
            return self.rule(function, rule, args, binds);
        }
        let tangent = tangent_of(self.module, self.tangents, function, &active);
        let mut all = args.clone();
        for (arg, _) in args.iter().zip(&active).filter(|(_, active)| **active) {
            match arg.var().and_then(|v| self.sums.get(&v).copied()) {
                Some(acc_tan) => all.push(acc_tan.into()),
                None => {
                    let tan = self.tangent_or_zero(*arg);
                    all.push(tan);
                }
            }
        }
        for bind in binds.clone().into_iter().filter(|v| v.ty.may_be_active()) {
            let tan = self.tangent_var(bind);
            binds.push(tan);
        }
        self.b.bind(binds, Op::Call { function: tangent, args: all });
    }

    /// A custom rule: it takes what the function took and gave, and the tangents of the former.
    fn rule(&mut self, function: FunctionId, rule: FunctionId, args: Vec<Atom>, binds: Vec<Var>) {
        self.b.bind(binds.clone(), Op::Call { function, args: args.clone() });
        let mut all = args.clone();
        all.extend(binds.iter().map(|v| Atom::Var(*v)));
        for arg in args.into_iter().filter(|a| a.ty().may_be_active()) {
            let tan = self.tangent_or_zero(arg);
            all.push(tan);
        }
        let tans = binds.into_iter().filter(|v| v.ty.may_be_active()).map(|v| self.tangent_var(v)).collect();
        self.b.bind(tans, Op::Call { function: rule, args: all });
    }
}

/// The tangent of a function: its parameters, then the tangents of the active ones; its results, then the tangents of the real ones.
fn tangent_of(module: &mut Module, tangents: &mut Tangents, function: FunctionId, active: &[bool]) -> FunctionId {
    let key = (function, active.to_vec());
    if let Some(known) = tangents.table.get(&key) {
        return *known;
    }
    let primal = module.function(function).clone();
    let mut all: Vec<Var> = primal.params.iter().map(|p| p.refresh()).collect();
    for (param, _) in primal.params.iter().zip(active).filter(|(_, active)| **active) {
        let ty = module.linear_type(param.ty);
        if let Some(shape) = ty.shape().filter(|_| ty.accumulator) {
            crate::adjoint::ensure_merge(module, shape);
        }
        all.push(Var::fresh(param.name.with("_tan"), ty));
    }
    let mut results = primal.results.clone();
    for result in primal.results.iter().filter(|t| t.may_be_active()) {
        results.push(module.linear_type(*result));
    }
    let id = module.derived(function, primal.name.with("_tan"), all, results);
    tangents.table.insert(key.clone(), id);
    if !module.function(id).is_unfinished() {
        return id;
    }
    if primal.is_unfinished() {
        tangents.pending.push(key);
    } else {
        write_tangent(module, tangents, function, active);
    }
    id
}

/// Writes the body of a function's tangent.
fn write_tangent(module: &mut Module, tangents: &mut Tangents, function: FunctionId, active: &[bool]) {
    let Some(id) = tangents.table.get(&(function, active.to_vec())).copied() else { return };
    let primal = module.function(function).clone();
    let (params, tans): (Vec<Var>, Vec<Var>) = {
        let all = &module.function(id).params;
        (all[..primal.params.len()].to_vec(), all[primal.params.len()..].to_vec())
    };
    let mut renaming = Renaming::default();
    renaming.map.extend(primal.params.iter().copied().zip(params.iter().map(|p| Atom::Var(*p))));
    let body = renaming.block(&primal.body);
    let chosen = params.iter().zip(active).filter(|(_, active)| **active).map(|(p, _)| *p);
    let pairs: Vec<(Var, Var)> = chosen.zip(tans).collect();
    let mut active: FxHashSet<Var> = pairs.iter().map(|(p, _)| *p).collect();
    crate::activity::propagate(&body, &mut active);
    let mut b = Builder::new();
    let mut push = Push { b: &mut b, module, tangents, active, tan: FxHashMap::default(), sums: FxHashMap::default() };
    for (param, tan) in pairs {
        if param.ty.accumulator {
            push.sums.insert(param, tan);
        } else {
            push.tan.insert(param, tan.into());
        }
    }
    let mut results = body.results.clone();
    push.stmts(body.stmts);
    for result in body.results.iter().filter(|a| a.ty().may_be_active()) {
        let tan = push.tangent_or_zero(*result);
        results.push(tan);
    }
    let body = b.pop(results);
    module.functions[id.0].body = body;
}
