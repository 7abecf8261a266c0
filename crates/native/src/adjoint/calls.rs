//! Calls in both sweeps, and the adjoints of functions.

use super::*;

/// An adjoint of a function is made for the parameters that are active, the results that have an adjoint, and the
/// accumulators among the parameters for which the adjoint of the final sum is known.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    function: FunctionId,
    active: Vec<bool>,
    seeded: Vec<bool>,
    sums: Vec<bool>,
}

impl Sweep<'_> {
    pub(super) fn backward_call(&mut self, function: FunctionId, args: &[Atom], binds: &[Var]) {
        if self.module.is_merge(function) {
            // The sum of boxes is linear in both.
            if let Some(adj) = binds.first().and_then(|v| self.take(*v)) {
                args.iter().for_each(|a| self.add(*a, adj));
            }
            return;
        }
        if let Some(rule) = self.module.function(function).rule.and_then(|r| r.reverse) {
            return self.backward_rule(rule, args, binds);
        }
        if self.is_at_once(function, args) {
            return self.backward_at_once(function, args, binds);
        }
        let adjs: Vec<Option<Atom>> = binds.iter().map(|v| self.take(*v)).collect();
        let is_acc = |a: &Atom| a.ty().accumulator;
        let sums: Vec<Option<Atom>> = args
            .iter()
            .map(|a| a.var().filter(|v| v.ty.accumulator).and_then(|v| self.sums.get(&v).copied()))
            .collect();
        let key = Key {
            function,
            active: args.iter().map(|a| self.is_active(*a) && !is_acc(a)).collect(),
            seeded: adjs.iter().map(|a| a.is_some()).collect(),
            sums: sums.iter().map(|s| s.is_some()).collect(),
        };
        if !key.active.contains(&true) || !(key.seeded.contains(&true) || key.sums.contains(&true)) {
            return;
        }
        let adjoint = adjoint_of(self.module, self.adjoints, &key);
        // As in `signature`: the arguments, sums, adjoints of results, accumulators for the arrays.
        let mut call: Vec<Atom> = args.iter().copied().filter(|a| !is_acc(a)).collect();
        for (arg, sum) in args.iter().zip(sums) {
            if let Some(acc) = arg.var().filter(|v| v.ty.accumulator) {
                // Without a sum the function still wants to know the shape.
                match sum.or_else(|| self.frozen.get(&acc).copied()) {
                    Some(sum) => call.push(sum),
                    None => gradus_source::bug!("the accumulator {} is used in a call and never frozen", acc.name),
                }
            }
        }
        call.extend(adjs.into_iter().flatten());
        self.call_backward(adjoint, call, args, &key.active);
    }

    /// Calls code that runs backwards: after what it takes come accumulators for the arrays among the active arguments, and what it gives
    /// are the adjoints of the numbers among them.
    pub(super) fn call_backward(&mut self, function: FunctionId, mut call: Vec<Atom>, args: &[Atom], active: &[bool]) {
        let active: Vec<Atom> = args.iter().zip(active).filter(|(_, active)| **active).map(|(a, _)| *a).collect();
        for array in active.iter().filter(|a| a.ty().is_array()).filter_map(|a| a.var()) {
            call.push(self.open(array).into());
        }
        let numbers: Vec<Atom> = active.into_iter().filter(|a| !a.ty().is_array()).collect();
        let results: Vec<Var> = numbers.iter().map(|a| Var::fresh("t_adj", self.module.linear_type(a.ty()))).collect();
        self.b.bind(results.clone(), Op::Call { function, args: call });
        for (number, adj) in numbers.into_iter().zip(results) {
            self.add(number, adj.into());
        }
    }
}

impl Sweep<'_> {
    /// A custom rule: it takes what the function took and gave, and the adjoints of the latter.
    fn backward_rule(&mut self, rule: FunctionId, args: &[Atom], binds: &[Var]) {
        let adjs: Vec<Option<Atom>> = binds.iter().map(|v| self.take(*v)).collect();
        if adjs.iter().all(|a| a.is_none()) {
            return;
        }
        let mut call = args.to_vec();
        call.extend(binds.iter().map(|v| Atom::Var(*v)));
        for (bind, adj) in binds.iter().zip(adjs).filter(|(v, _)| v.ty.may_be_active()) {
            call.push(match adj {
                Some(adj) => adj,
                None => self.zeros_like((*bind).into()),
            });
        }
        let active: Vec<Atom> = args.iter().copied().filter(|a| a.ty().may_be_active()).collect();
        let results: Vec<Var> = active.iter().map(|a| Var::fresh("t_adj", self.module.linear_type(a.ty()))).collect();
        self.b.bind(results.clone(), Op::Call { function: rule, args: call });
        for (arg, adj) in active.into_iter().zip(results) {
            self.add(arg, adj.into());
        }
    }
}

/// The adjoint of a function, made on first use. It is entered in the table before its body is made, so that recursion finds it.
fn adjoint_of(module: &mut Module, adjoints: &mut Adjoints, key: &Key) -> FunctionId {
    if let Some(known) = adjoints.table.get(key) {
        return *known;
    }
    let primal = module.function(key.function).clone();
    let name = primal.name.with("_adj");
    let mut renaming = Renaming::default();
    let params: Vec<Var> = primal
        .params
        .iter()
        .map(|p| {
            let new = p.refresh();
            renaming.map.insert(*p, new.into());
            new
        })
        .collect();
    let body = renaming.block(&primal.body);
    let chosen = |flags: &[bool], i: usize| flags.get(i).copied().unwrap_or(false);

    let sums: Vec<(Var, Var, bool)> = params
        .iter()
        .enumerate()
        .filter(|(_, p)| p.ty.accumulator)
        .map(|(i, p)| (*p, Var::fresh(p.name.with("_adj"), module.linear_type(p.ty.frozen())), chosen(&key.sums, i)))
        .collect();
    let seeds: Vec<Option<Var>> = primal
        .results
        .iter()
        .enumerate()
        .map(|(i, ty)| chosen(&key.seeded, i).then(|| Var::fresh("result_adj", module.linear_type(*ty))))
        .collect();
    let wrt: Vec<Var> = params.iter().enumerate().filter(|(i, _)| key.active[*i]).map(|(_, p)| *p).collect();
    let arrays: Vec<(Var, Var)> = wrt
        .iter()
        .filter(|p| p.ty.is_array())
        .map(|p| (*p, Var::fresh(p.name.with("_adj"), module.linear_type(p.ty).accumulator())))
        .collect();
    let numbers: Vec<Var> = wrt.iter().copied().filter(|p| !p.ty.is_array()).collect();

    let mut all: Vec<Var> = params.iter().copied().filter(|p| !p.ty.accumulator).collect();
    all.extend(sums.iter().map(|(_, adj, _)| *adj));
    all.extend(seeds.iter().flatten().copied());
    all.extend(arrays.iter().map(|(_, acc)| *acc));
    let results: Vec<Type> = numbers.iter().map(|p| module.linear_type(p.ty)).collect();
    for shape in arrays.iter().filter_map(|(_, acc)| acc.ty.shape()) {
        merge::ensure(module, shape);
    }
    let id = FunctionId(module.functions.len());
    adjoints.table.insert(key.clone(), id);
    module.functions.push(Function { name, params: all, results, body: Block::default(), rule: None });

    let mut active: FxHashSet<Var> = wrt.iter().copied().collect();
    crate::activity::propagate(&body, &mut active);
    let mut b = Builder::new();
    let mut sweep = Sweep::new(&mut b, module, adjoints, &body, active);
    for (array, acc) in arrays {
        sweep.adj.insert(array, Adj::Open(acc));
    }
    for (acc, adj, known) in sums {
        sweep.frozen.insert(acc, adj.into());
        if known {
            sweep.sums.insert(acc, adj.into());
        }
    }
    sweep.settled.extend(params.iter().copied().filter(|p| p.ty.accumulator));
    let records = sweep.forward(body.stmts);
    let seeds: Vec<Option<Atom>> = seeds.into_iter().map(|s| s.map(Atom::Var)).collect();
    sweep.seed(&body.results, &seeds);
    sweep.backward(records);
    let results = numbers.iter().map(|p| sweep.take_or_zero(*p)).collect();
    let (replayed, traces) = (sweep.replayed, sweep.traces);
    let mut body = b.pop(results);
    control::mark_replayed(&mut body.stmts, &replayed);
    traced::keep_traces(&mut body.stmts, &traces);
    at_once::join(&mut body.stmts, &adjoints.at_once);
    module.functions[id.0].body = body;
    id
}
