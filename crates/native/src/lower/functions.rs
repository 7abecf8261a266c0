//! Recursive functions that are not loops: flow functions, specialised to the functions among their arguments. What a function
//! captures from around it becomes further parameters, found when its body is complete.

use super::calls::Parts;
use super::heap::SplitConstants;
use super::value::{Function as Known, Group, Recursive, Value};
use super::{Lowered, Lowering};
use crate::flow::walk::{callees, for_each_binder, free_vars, Renaming};
use crate::flow::{self, Atom, Block, FunctionId, Name, Op, Var};
use crate::recursion::cycles;
use crate::refusal::Reason;
use gradus_core::traverse::with_stack;
use gradus_core::{Body, Global, Program, Symbol, Term, TermKind, Type};
use gradus_source::Span;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// How many functions may wait for each other before we say that specialisation does not end.
const PENDING: usize = 64;

/// The flow functions of an entry.
#[derive(Default)]
pub(super) struct Functions {
    table: Vec<(Key, FunctionId)>,
    /// Functions whose bodies are being lowered, outermost first.
    active: Vec<FunctionId>,
    /// Functions whose bodies are complete but for the captured variables.
    waiting: Vec<FunctionId>,
    /// Functions that may take more than their arguments: which, is known when they are finished.
    capturing: FxHashSet<FunctionId>,
    /// What finished functions take besides their arguments.
    captured: FxHashMap<FunctionId, Vec<Var>>,
    /// Definitions of functions that `prepare` has been through.
    pub(super) seen: FxHashSet<Global>,
}

impl Functions {
    /// Whether few functions wait for each other, so that one more need not be refused.
    pub(super) fn is_shallow(&self) -> bool {
        self.active.len() < PENDING / 2
    }
}

/// A recursive function with the functions among its arguments, all by identity.
struct Key {
    function: Identity,
    args: Vec<Option<Rc<Known>>>,
}

enum Identity {
    Global(Global),
    Local(Rc<Group>, usize),
}

impl Key {
    fn same(&self, other: &Key) -> bool {
        self.same_function(other) && self.args.iter().zip(&other.args).all(same_arg)
    }

    fn same_function(&self, other: &Key) -> bool {
        match (&self.function, &other.function) {
            (Identity::Global(a), Identity::Global(b)) => a == b,
            (Identity::Local(a, i), Identity::Local(b, j)) => Rc::ptr_eq(a, b) && i == j,
            (Identity::Global(_) | Identity::Local(..), _) => false,
        }
    }
}

fn same_arg((a, b): (&Option<Rc<Known>>, &Option<Rc<Known>>)) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => Rc::ptr_eq(a, b),
        (None, None) => true,
        (Some(_) | None, _) => false,
    }
}

impl Lowering<'_> {
    /// A call of a recursive function, which is lowered on first use.
    pub(super) fn call_function(
        &mut self,
        recursive: &Recursive,
        parts: &Parts,
        args: Vec<Value>,
        span: Span,
    ) -> Lowered<Value> {
        let known = |value: &Value| match value {
            Value::Function(f) => Some(f.clone()),
            _ => None,
        };
        let function = match recursive {
            Recursive::Global { global, .. } => Identity::Global(global.clone()),
            Recursive::Local { group, member } => Identity::Local(group.clone(), *member),
        };
        let mut key = Key { function, args: args.iter().map(known).collect() };
        // A function that leads back to itself with other functions than before would make ever new copies: these become closures.
        let again = |(k, id): &&(Key, FunctionId)| self.functions.active.contains(id) && k.same_function(&key);
        if let Some((before, _)) = self.functions.table.iter().rev().find(again) {
            let same: Vec<bool> = before.args.iter().zip(&key.args).map(same_arg).collect();
            if same.contains(&false) {
                key.args.iter_mut().zip(same).filter(|(_, same)| !same).for_each(|(arg, _)| *arg = None);
            }
        }
        let mut leaves = Vec::new();
        for ((value, (_, ty)), known) in args.iter().zip(&parts.params).zip(&key.args) {
            if known.is_none() {
                leaves.extend(self.flatten(value, ty, span)?);
            }
        }
        let constants = match &key.function {
            Identity::Global(_) => self.split_constants(std::slice::from_ref(&parts.body), span)?,
            Identity::Local(..) => Default::default(),
        };
        for (global, ty) in &constants.0 {
            let value = self.global(global, span)?;
            leaves.extend(self.flatten(&value, ty, span)?);
        }
        let found = self.functions.table.iter().find(|(k, _)| k.same(&key)).map(|(_, id)| *id);
        let id = match found {
            Some(id) => id,
            None => self.lower_function(recursive, key, parts, &args, constants, span)?,
        };
        self.b.span = span;
        let results: Vec<Var> = self.module.function(id).results.iter().map(|ty| Var::fresh("r", *ty)).collect();
        leaves.extend(self.functions.captured.get(&id).into_iter().flatten().map(|v| Atom::Var(*v)));
        self.b.bind(results.clone(), Op::Call { function: id, args: leaves });
        self.unflatten(&parts.result, &mut results.into_iter().map(Atom::Var), span)
    }

    fn lower_function(
        &mut self,
        recursive: &Recursive,
        key: Key,
        parts: &Parts,
        args: &[Value],
        constants: SplitConstants,
        span: Span,
    ) -> Lowered<FunctionId> {
        let instances = |global: &Global| {
            let waits = |(key, id): &&(Key, FunctionId)| {
                self.functions.active.contains(id)
                    && matches!(&key.function, Identity::Global(g) if g != global && super::same_name(g, global))
            };
            self.functions.table.iter().filter(waits).count()
        };
        let unbounded = matches!(&key.function, Identity::Global(g) if instances(g) > super::INSTANCES);
        if unbounded || self.functions.active.len() > PENDING {
            return self.refuse(Reason::Unbounded, span);
        }
        let name = match recursive {
            Recursive::Global { global: Global::Source { name, .. }, .. } => Name::new(name),
            Recursive::Global { .. } => Name::new("f"),
            Recursive::Local { group, member } => Name::new(&group.members[*member].0.name),
        };
        let mut params = Vec::new();
        let mut env = parts.env.clone();
        for ((value, (var, ty)), known) in args.iter().zip(&parts.params).zip(&key.args) {
            let inner = match known {
                Some(_) => value.clone(),
                None => self.parameter(&var.name, ty, &mut params, span)?,
            };
            env = env.with(var, ty, inner);
        }
        let mut inside = constants.1;
        let own_constants = matches!(key.function, Identity::Global(_));
        for (global, ty) in &constants.0 {
            let value = self.parameter("c", ty, &mut params, span)?;
            inside.insert(global.clone(), Ok(value));
        }
        let results = self.leaves(&parts.result, span)?;
        let id = FunctionId(self.module.functions.len());
        self.module.functions.push(flow::Function { name, params, results, body: Block::unfinished(), rule: None });
        let closed = |f: &Rc<Known>| super::heap::is_closed(&Value::Function(f.clone()));
        if !own_constants || !key.args.iter().flatten().all(closed) {
            self.functions.capturing.insert(id);
        }
        self.functions.table.push((key, id));
        self.functions.active.push(id);
        let inner = self.b.another();
        let outer = std::mem::replace(&mut self.b, inner);
        let outer_constants = self.constants.clone();
        if own_constants {
            self.constants = inside;
        }
        let applying = std::mem::take(&mut self.applying);
        let body = self.eval(&parts.body, &env).and_then(|value| {
            let results = self.flatten(&value, &parts.result, span)?;
            Ok(self.b.pop(results))
        });
        self.applying = applying;
        self.constants = outer_constants;
        self.b = outer;
        self.functions.active.pop();
        self.module.functions[id.0].body = body?;
        self.functions.waiting.push(id);
        self.finish_functions();
        Ok(id)
    }

    /// New parameters for a value of a type.
    fn parameter(&mut self, name: &str, ty: &Type, params: &mut Vec<Var>, span: Span) -> Lowered<Value> {
        let vars: Vec<Var> = self.leaves(ty, span)?.into_iter().map(|l| Var::fresh(name, l)).collect();
        params.extend(vars.clone());
        self.unflatten(ty, &mut vars.into_iter().map(Atom::Var), span)
    }

    /// Finishes the waiting functions that do not lead to one that is still being lowered.
    fn finish_functions(&mut self) {
        let ready: Vec<FunctionId> = self
            .functions
            .waiting
            .iter()
            .copied()
            .filter(|id| {
                !self.reachable(&self.module.function(*id).body).iter().any(|f| self.functions.active.contains(f))
            })
            .collect();
        if ready.is_empty() {
            return;
        }
        // What each takes from outside, and what those need that it calls.
        let mut captured: FxHashMap<FunctionId, Vec<Var>> = FxHashMap::default();
        let mut own: FxHashMap<FunctionId, FxHashSet<Var>> = FxHashMap::default();
        for id in &ready {
            let function = self.module.function(*id);
            let mut bound: FxHashSet<Var> = function.params.iter().copied().collect();
            for_each_binder(&function.body, &mut |v| {
                bound.insert(v);
            });
            captured.insert(*id, free_vars(&function.body).into_iter().filter(|v| !bound.contains(v)).collect());
            own.insert(*id, bound);
        }
        loop {
            let mut grown = false;
            for id in &ready {
                let mut called = Vec::new();
                callees(&self.module.function(*id).body, &mut called);
                for callee in called {
                    for var in captured.get(&callee).cloned().unwrap_or_default() {
                        let list = captured.entry(*id).or_default();
                        if !own[id].contains(&var) && !list.contains(&var) {
                            list.push(var);
                            grown = true;
                        }
                    }
                }
            }
            if !grown {
                break;
            }
        }
        for id in &ready {
            let mut function = self.module.functions[id.0].clone();
            pass_captured(&mut function.body, &captured);
            let mut renaming = Renaming::default();
            for var in &captured[id] {
                let param = var.refresh();
                renaming.map.insert(*var, param.into());
                function.params.push(param);
            }
            function.body = renaming.block(&function.body);
            crate::simplify::block(&mut function.body, &self.module);
            self.module.functions[id.0] = function;
        }
        self.functions.waiting.retain(|id| !ready.contains(id));
        self.functions.captured.extend(captured);
    }

    /// All functions that a block calls, directly or not.
    fn reachable(&self, block: &Block) -> FxHashSet<FunctionId> {
        let mut found = FxHashSet::default();
        let mut next = Vec::new();
        callees(block, &mut next);
        while let Some(id) = next.pop() {
            if found.insert(id) {
                callees(&self.module.function(id).body, &mut next);
            }
        }
        found
    }

    /// Whether a block calls a function of which it is not yet known what it takes, so that it has no derivative yet.
    pub(super) fn calls_unfinished(&self, block: &Block) -> bool {
        let unfinished = |id: &FunctionId| {
            let open = self.functions.active.contains(id) || self.functions.waiting.contains(id);
            open && self.functions.capturing.contains(id)
        };
        self.reachable(block).iter().any(unfinished)
    }

    /// `checkpoint f x`: a function of its own, since the adjoint of a call runs the function again.
    pub(super) fn checkpoint(
        &mut self,
        function: Value,
        argument: &Value,
        types: (&Type, &Type),
        span: Span,
    ) -> Lowered<Value> {
        let inits = self.flatten(argument, types.0, span)?;
        let params: Vec<Var> = inits.iter().map(|a| Var::fresh("x", a.ty())).collect();
        let inner = self.unflatten(types.0, &mut params.iter().map(|v| Atom::Var(*v)), span)?;
        self.b.push();
        let value = self.apply(function, inner, span)?;
        let results = self.flatten(&value, types.1, span)?;
        let body = self.b.pop(results);
        let mut renaming = Renaming::default();
        let free: Vec<Var> = free_vars(&body).into_iter().filter(|v| !params.contains(v)).collect();
        let more: Vec<Var> = free.iter().map(|v| v.refresh()).collect();
        renaming.map.extend(free.iter().copied().zip(more.iter().map(|v| Atom::Var(*v))));
        let body = renaming.block(&body);
        let result_types = body.results.iter().map(|a| a.ty()).collect::<Vec<_>>();
        let id = FunctionId(self.module.functions.len());
        let params = [params, more].concat();
        self.module.functions.push(flow::Function {
            name: "checkpoint".into(),
            params,
            results: result_types.clone(),
            body,
            rule: None,
        });
        let args = inits.into_iter().chain(free.into_iter().map(Atom::Var)).collect();
        let results: Vec<Var> = result_types.into_iter().map(|ty| Var::fresh("r", ty)).collect();
        self.b.bind(results.clone(), Op::Call { function: id, args });
        self.unflatten(types.1, &mut results.into_iter().map(Atom::Var), span)
    }
}

fn pass_captured(block: &mut Block, captured: &FxHashMap<FunctionId, Vec<Var>>) {
    with_stack(|| {
        for stmt in &mut block.stmts {
            if let Op::Call { function, args } = &mut stmt.op {
                args.extend(captured.get(function).into_iter().flatten().map(|v| Atom::Var(*v)));
            }
            stmt.op.blocks_mut().into_iter().for_each(|b| pass_captured(b, captured));
        }
    })
}

/// The definitions that a definition mentions.
fn mentions(program: &Program, name: &Symbol) -> Vec<Symbol> {
    fn walk(term: &Term, seen: &mut FxHashSet<Symbol>, found: &mut Vec<Symbol>) {
        with_stack(|| {
            if let TermKind::Global(Global::Source { name, .. }) = &*term.kind {
                if seen.insert(name.clone()) {
                    found.push(name.clone());
                }
            }
            gradus_core::traverse::for_each_child(term, &mut |child| walk(child, seen, found));
        })
    }
    let mut found = Vec::new();
    if let Some(Body::Term(term)) = program.defs.get(name).map(|d| &d.body) {
        walk(term, &mut FxHashSet::default(), &mut found);
    }
    found
}

/// The definitions that call themselves, directly or through others, each with the number of those that lead to each other.
pub(super) fn recursive_definitions(program: &Program) -> FxHashMap<Symbol, usize> {
    let numbers: FxHashMap<&Symbol, usize> = program.defs.keys().enumerate().map(|(at, name)| (name, at)).collect();
    let mentioned = |name: &Symbol| mentions(program, name).iter().filter_map(|m| numbers.get(m).copied()).collect();
    let graph: Vec<Vec<usize>> = program.defs.keys().map(mentioned).collect();
    let named = program.defs.keys().zip(cycles(&graph));
    named.filter_map(|(name, cycle)| Some((name.clone(), cycle?))).collect()
}
