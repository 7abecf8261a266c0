//! Forward mode on flow: each statement is followed by that of its tangent. Tangents that are zero are absent.
//!
//! Several directions can be taken at once: then each variable has as many tangents, and what they share, the function itself and
//! the slopes of its steps, is computed once.

use crate::flow::walk::Renaming;
use crate::flow::*;
use crate::partials::{partial, times, Applied};
use gradus_core::traverse::with_stack;
use rustc_hash::{FxHashMap, FxHashSet};

/// The tangents of functions that were made so far.
#[derive(Default)]
pub struct Tangents {
    table: FxHashMap<Key, FunctionId>,
    /// Those whose bodies are still to be written.
    pending: Vec<Key>,
}

/// The tangent of a function is made for the parameters that are active, and for a number of directions.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    function: FunctionId,
    active: Vec<bool>,
    width: usize,
}

impl Tangents {
    /// Writes the bodies that were put off, as far as the functions that they come from are complete. Whether anything was done.
    pub fn finish(&mut self, module: &mut Module) -> bool {
        let ready = |key: &Key, module: &Module| !module.function(key.function).is_unfinished();
        let (now, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.pending).into_iter().partition(|key| ready(key, module));
        self.pending = later;
        for key in &now {
            write_tangent(module, self, key);
        }
        !now.is_empty()
    }

    pub fn is_finished(&self) -> bool {
        self.pending.is_empty()
    }
}

/// Writes to `b` the block together with its tangents in `width` directions. `inputs` are variables with their tangents. The result is
/// the block's results and their tangents (`None`: zero in all directions).
pub fn forward(
    b: &mut Builder,
    module: &mut Module,
    tangents: &mut Tangents,
    block: Block,
    inputs: &[(Var, Vec<Atom>)],
    width: usize,
) -> (Vec<Atom>, Vec<Option<Vec<Atom>>>) {
    let mut active: FxHashSet<Var> = inputs.iter().map(|(v, _)| *v).filter(|v| v.ty.may_be_active()).collect();
    crate::activity::propagate(&block, &mut active);
    let mut push = Push::new(b, module, tangents, active, width);
    for (var, tans) in inputs.iter().filter(|(v, _)| v.ty.may_be_active()) {
        push.tan.insert(*var, tans.clone());
    }
    push.stmts(block.stmts);
    let tans = block.results.iter().map(|a| push.tangents_of(*a)).collect();
    (block.results, tans)
}

/// The function that takes what `function` takes, then tangents for its real parameters, and gives what it gives, then the
/// tangents of its real results.
pub fn of_function(module: &mut Module, tangents: &mut Tangents, function: FunctionId) -> FunctionId {
    let active: Vec<bool> = module.function(function).params.iter().map(|p| p.ty.may_be_active()).collect();
    tangent_of(module, tangents, Key { function, active, width: 1 })
}

struct Push<'a> {
    b: &'a mut Builder,
    module: &'a mut Module,
    tangents: &'a mut Tangents,
    active: FxHashSet<Var>,
    /// The number of directions.
    width: usize,
    /// The tangents of a variable, one for each direction.
    tan: FxHashMap<Var, Vec<Atom>>,
    /// The accumulators of tangents.
    sums: FxHashMap<Var, Vec<Var>>,
}

impl<'a> Push<'a> {
    fn new(
        b: &'a mut Builder,
        module: &'a mut Module,
        tangents: &'a mut Tangents,
        active: FxHashSet<Var>,
        width: usize,
    ) -> Self {
        Push { b, module, tangents, active, width, tan: FxHashMap::default(), sums: FxHashMap::default() }
    }

    fn tangents_of(&self, atom: Atom) -> Option<Vec<Atom>> {
        atom.var().and_then(|v| self.tan.get(&v).cloned())
    }

    fn tangents_or_zero(&mut self, atom: Atom) -> Vec<Atom> {
        match self.tangents_of(atom) {
            Some(tans) => tans,
            None => vec![self.b.linear_zeros_like(self.module, atom); self.width],
        }
    }

    /// The tangents of several operands, direction by direction.
    fn by_direction(&mut self, atoms: &[Atom]) -> Vec<Vec<Atom>> {
        let tans: Vec<Vec<Atom>> = atoms.iter().map(|a| self.tangents_or_zero(*a)).collect();
        (0..self.width).map(|k| tans.iter().map(|t| t[k]).collect()).collect()
    }

    /// Variables for the tangents of a bound one.
    fn tangent_vars(&mut self, var: Var) -> Vec<Var> {
        let ty = self.module.linear_type(var.ty);
        let tans: Vec<Var> = (0..self.width).map(|_| Var::fresh(var.name.with("_tan"), ty)).collect();
        self.tan.insert(var, tans.iter().map(|t| Atom::Var(*t)).collect());
        tans
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
                tans.extend(self.tangents_or_zero(*result));
            }
        }
        (self.b.pop(block.results), tans)
    }

    fn stmt(&mut self, stmt: Stmt) {
        self.b.span = stmt.span;
        let Stmt { mut binds, op, span } = stmt;
        match op {
            Op::If { cond, then, otherwise, replayed } => {
                let (then, otherwise) = self.branch(*then, *otherwise, &mut binds);
                self.b.bind(binds, Op::branch(cond, then, otherwise, replayed));
            }
            Op::For(l) => {
                let For { index, count, carried, body, replayed } = *l;
                let (carried, body, binds) = self.repeated(carried, body, 0, binds);
                self.b.bind(binds, Op::For(Box::new(For { index, count, carried, body, replayed })));
            }
            Op::While(l) => {
                let (carried, body, binds) = self.repeated(l.carried, l.body, 1, binds);
                self.b.bind(binds, Op::While(Box::new(While { carried, body })));
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
            let Some(tans) = self.tangents_of(*cell) else { return };
            let fields: Vec<Atom> = binds.iter().map(|v| Atom::Var(*v)).collect();
            for tan in tans {
                let Some(shape) = tan.ty().shape() else { return };
                let tans = crate::lower::linear_fields(self.b, self.module, tan, shape, *tag, &fields);
                for (bind, tan) in binds.iter().filter(|v| v.ty.may_be_active()).zip(tans) {
                    self.tan.entry(*bind).or_default().push(tan);
                }
            }
            return;
        }
        let y = match binds {
            [y] if self.active.contains(y) => Some(*y),
            _ => None,
        };
        match (op, y) {
            (Op::Scalar { prim, args }, Some(y)) => {
                let mut sums: Option<Vec<Atom>> = None;
                let applied = Applied { prim: *prim, args, value: y.into() };
                for (i, arg) in args.iter().enumerate() {
                    let Some(arg_tans) = self.tangents_of(*arg) else { continue };
                    let Some(slope) = partial(self.b, applied, i) else { continue };
                    let terms = arg_tans.into_iter().map(|tan| times(self.b, slope, tan));
                    let terms: Vec<Atom> = terms.collect();
                    sums = Some(match sums {
                        Some(sums) => sums.into_iter().zip(terms).map(|(sum, term)| self.b.add(sum, term)).collect(),
                        None => terms,
                    });
                }
                self.define(y, sums);
            }
            (Op::Copy { value }, Some(y)) => {
                let tans = self.tangents_of(*value);
                self.define(y, tans);
            }
            (Op::Select { cond, then, otherwise }, Some(y)) => {
                let sides = self.by_direction(&[*then, *otherwise]);
                let tans = sides.into_iter().map(|t| self.b.select(*cond, t[0], t[1])).collect();
                self.define(y, Some(tans));
            }
            (Op::Get { array, index }, Some(y)) => {
                if let Some(tans) = self.tangents_of((*array).into()) {
                    let tans = tans.into_iter().map(|tan| self.b.get(tan, index.clone())).collect();
                    self.define(y, Some(tans));
                }
            }
            (Op::Set { array, index, value }, Some(y)) => {
                let mut tans = Vec::new();
                for tan in self.by_direction(&[(*array).into(), *value]) {
                    let Some(array_tan) = tan[0].var() else { return };
                    tans.push(self.b.set(array_tan, index.clone(), tan[1]).into());
                }
                self.define(y, Some(tans));
            }
            (Op::Fill { dims, value }, Some(y)) => {
                let value_tans = self.tangents_or_zero(*value);
                let tans = value_tans.into_iter().map(|tan| self.b.fill(dims.clone(), tan)).collect();
                self.define(y, Some(tans));
            }
            (Op::Literal { items, ty }, Some(y)) => {
                let ty = self.module.linear_type(*ty);
                let tans = self.by_direction(items).into_iter().map(|items| self.b.literal_of(items, ty)).collect();
                self.define(y, Some(tans));
            }
            (Op::Cell { shape, tag, fields }, Some(y)) => {
                let active: Vec<Atom> = fields.iter().copied().filter(|a| a.ty().may_be_active()).collect();
                let fields = self.by_direction(&active);
                let linear = self.module.linear(*shape);
                let tans = fields.into_iter().map(|fields| self.b.cell(linear, *tag, fields)).collect();
                self.define(y, Some(tans));
            }
            (Op::Open { init }, Some(acc)) => {
                let inits = self.tangents_or_zero(*init);
                if let Some(shape) = inits.first().and_then(|a| a.ty().shape()) {
                    crate::adjoint::ensure_merge(self.module, shape);
                }
                let acc_tans = inits.into_iter().map(|init| self.b.open(acc.name.with("_tan"), init)).collect();
                self.sums.insert(acc, acc_tans);
            }
            (Op::Freeze { acc }, Some(y)) => {
                if let Some(acc_tans) = self.sums.get(acc).cloned() {
                    let tans = acc_tans.into_iter().map(|acc_tan| self.b.freeze(acc_tan)).collect();
                    self.define(y, Some(tans));
                }
            }
            (Op::Add { acc, index, value }, None) => {
                if let (Some(acc_tans), Some(tans)) = (self.sums.get(acc).cloned(), self.tangents_of(*value)) {
                    for (acc_tan, tan) in acc_tans.into_iter().zip(tans) {
                        self.b.accumulate(acc_tan, index.clone(), tan);
                    }
                }
            }
            _ => {}
        }
    }

    fn define(&mut self, var: Var, tans: Option<Vec<Atom>>) {
        if let Some(tans) = tans {
            self.tan.insert(var, tans);
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
            binds.extend(self.tangent_vars(bind));
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
            let init_tans = self.tangents_or_zero(init);
            all.extend(self.tangent_vars(var).into_iter().zip(init_tans));
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
                new_binds.extend(self.tangent_vars(*bind));
            }
        }
        new_binds.extend(arrays);
        for bind in arrays.iter().filter(|v| self.active.contains(v)).copied().collect::<Vec<_>>() {
            new_binds.extend(self.tangent_vars(bind));
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
            let directions = self.by_direction(&args);
            self.b.bind(binds, Op::Call { function, args });
            for (tan, args) in self.tangent_vars(y).into_iter().zip(directions) {
                self.b.bind(vec![tan], Op::Call { function, args });
            }
            return;
        }
        if let Some(rule) = self.module.function(function).rule.and_then(|r| r.forward) {
            return self.rule(function, rule, args, binds);
        }
        let key = Key { function, active: active.clone(), width: self.width };
        let tangent = tangent_of(self.module, self.tangents, key);
        let mut all = args.clone();
        for (arg, _) in args.iter().zip(&active).filter(|(_, active)| **active) {
            match arg.var().and_then(|v| self.sums.get(&v)) {
                Some(acc_tans) => all.extend(acc_tans.iter().map(|acc_tan| Atom::Var(*acc_tan))),
                None => all.extend(self.tangents_or_zero(*arg)),
            }
        }
        for bind in binds.clone().into_iter().filter(|v| v.ty.may_be_active()) {
            binds.extend(self.tangent_vars(bind));
        }
        self.b.bind(binds, Op::Call { function: tangent, args: all });
    }

    /// A custom rule: it takes what the function took and gave, and the tangents of the former.
    fn rule(&mut self, function: FunctionId, rule: FunctionId, args: Vec<Atom>, binds: Vec<Var>) {
        self.b.bind(binds.clone(), Op::Call { function, args: args.clone() });
        let active: Vec<Atom> = args.iter().copied().filter(|a| a.ty().may_be_active()).collect();
        let directions = self.by_direction(&active);
        let known: Vec<Atom> = args.into_iter().chain(binds.iter().map(|v| Atom::Var(*v))).collect();
        let found: Vec<Vec<Var>> =
            binds.into_iter().filter(|v| v.ty.may_be_active()).map(|v| self.tangent_vars(v)).collect();
        for (k, direction) in directions.into_iter().enumerate() {
            let tans = found.iter().map(|tans| tans[k]).collect();
            self.b.bind(tans, Op::Call { function: rule, args: [known.clone(), direction].concat() });
        }
    }
}

/// The tangent of a function: its parameters, then the tangents of the active ones; its results, then the tangents of the real ones.
fn tangent_of(module: &mut Module, tangents: &mut Tangents, key: Key) -> FunctionId {
    if let Some(known) = tangents.table.get(&key) {
        return *known;
    }
    let primal = module.function(key.function).clone();
    let mut all: Vec<Var> = primal.params.iter().map(|p| p.refresh()).collect();
    for (param, _) in primal.params.iter().zip(&key.active).filter(|(_, active)| **active) {
        let ty = module.linear_type(param.ty);
        if let Some(shape) = ty.shape().filter(|_| ty.accumulator) {
            crate::adjoint::ensure_merge(module, shape);
        }
        all.extend((0..key.width).map(|_| Var::fresh(param.name.with("_tan"), ty)));
    }
    let mut results = primal.results.clone();
    for result in primal.results.iter().filter(|t| t.may_be_active()) {
        let ty = module.linear_type(*result);
        results.extend(vec![ty; key.width]);
    }
    let id = module.derived(key.function, primal.name.with("_tan"), all, results);
    tangents.table.insert(key.clone(), id);
    if !module.function(id).is_unfinished() {
        return id;
    }
    if primal.is_unfinished() {
        tangents.pending.push(key);
    } else {
        write_tangent(module, tangents, &key);
    }
    id
}

/// Writes the body of a function's tangent.
fn write_tangent(module: &mut Module, tangents: &mut Tangents, key: &Key) {
    let Some(id) = tangents.table.get(key).copied() else { return };
    let primal = module.function(key.function).clone();
    let (params, tans): (Vec<Var>, Vec<Var>) = {
        let all = &module.function(id).params;
        (all[..primal.params.len()].to_vec(), all[primal.params.len()..].to_vec())
    };
    let mut renaming = Renaming::default();
    renaming.map.extend(primal.params.iter().copied().zip(params.iter().map(|p| Atom::Var(*p))));
    let body = renaming.block(&primal.body);
    let chosen = params.iter().zip(&key.active).filter(|(_, active)| **active).map(|(p, _)| *p);
    let pairs: Vec<(Var, &[Var])> = chosen.zip(tans.chunks(key.width)).collect();
    let mut active: FxHashSet<Var> = pairs.iter().map(|(p, _)| *p).collect();
    crate::activity::propagate(&body, &mut active);
    let mut b = Builder::new();
    let mut push = Push::new(&mut b, module, tangents, active, key.width);
    for (param, tans) in pairs {
        if param.ty.accumulator {
            push.sums.insert(param, tans.to_vec());
        } else {
            push.tan.insert(param, tans.iter().map(|t| Atom::Var(*t)).collect());
        }
    }
    let mut results = body.results.clone();
    push.stmts(body.stmts);
    for result in body.results.iter().filter(|a| a.ty().may_be_active()) {
        results.extend(push.tangents_or_zero(*result));
    }
    let body = b.pop(results);
    module.functions[id.0].body = body;
}
