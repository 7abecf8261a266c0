//! Recursive functions that are not loops: flow functions, specialised to the functions among their arguments. What a function
//! captures from around it becomes further parameters, found when its body is complete.

use super::calls::Parts;
use super::heap::SplitConstants;
use super::value::{Env, Function as Known, Group, Recursive, Value};
use super::{Lowered, Lowering};
use crate::flow::walk::{callees, for_each_binder, free_vars, Renaming};
use crate::flow::{self, Atom, Block, FunctionId, Name, Op, Var};
use crate::recursion::cycles;
use crate::refusal::Reason;
use gradus_core::traverse::with_stack;
use gradus_core::{Body, Global, Program, Symbol, Term, TermKind, Type};
use gradus_source::Span;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// How many functions of one text may wait for each other before we say that specialisation does not end.
const PENDING: usize = 16;

/// The flow functions of an entry.
#[derive(Default)]
pub(super) struct Functions {
    table: FxHashMap<Identity, Vec<Instance>>,
    /// Functions whose bodies are being lowered, outermost first.
    active: Vec<(FunctionId, Identity)>,
    /// How many of them there are of each text.
    texts: FxHashMap<*const TermKind, usize>,
    /// Functions whose bodies are complete but for the captured variables.
    waiting: Vec<FunctionId>,
    /// For those that are active or wait, the number of the first such function that they are known to lead to.
    leads_to: FxHashMap<FunctionId, usize>,
    /// Functions that may take more than their arguments: which, is known when they are finished.
    capturing: FxHashSet<FunctionId>,
    /// What finished functions take besides their arguments.
    captured: FxHashMap<FunctionId, Vec<Var>>,
    /// See [`Lowering::constants_of`].
    pub(super) constants: FxHashMap<Global, Rc<[Global]>>,
    /// Definitions of functions that `prepare` has been through.
    pub(super) seen: FxHashSet<Global>,
    /// The terms of functions that were given to others, by the addresses of these functions, which are kept.
    given: FxHashMap<*const Known, (Rc<Known>, Rc<[Term]>)>,
}

/// Which recursive function. A local one is known by the address of its group, which its instances keep.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Identity {
    Global(Global),
    Local(*const Group, usize),
}

/// A recursive function with the functions among its arguments, by identity.
struct Instance {
    args: Vec<Option<Rc<Known>>>,
    id: FunctionId,
    _function: Recursive,
}

impl Functions {
    /// The terms that a known function consists of.
    fn text(&mut self, function: &Rc<Known>) -> Rc<[Term]> {
        let (_, terms) = self.given.entry(Rc::as_ptr(function)).or_insert_with(|| {
            let mut terms = Vec::new();
            add_terms(&Value::Function(function.clone()), &mut FxHashSet::default(), &mut terms);
            (function.clone(), terms.into())
        });
        terms.clone()
    }

    fn is_active(&self, id: FunctionId) -> bool {
        self.active.binary_search_by_key(&id.0, |(active, _)| active.0).is_ok()
    }
}

fn same_arg((a, b): (&Option<Rc<Known>>, &Option<Rc<Known>>)) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => Rc::ptr_eq(a, b),
        (None, None) => true,
        (Some(_) | None, _) => false,
    }
}

/// Adds the terms of the functions that a value consists of, and of those that they capture.
fn add_terms(value: &Value, seen: &mut FxHashSet<*const TermKind>, terms: &mut Vec<Term>) {
    let mut add_captured = |term: &Term, env: &Env, terms: &mut Vec<Term>| {
        if seen.insert(Arc::as_ptr(&term.kind)) {
            terms.push(term.clone());
            for captured in gradus_core::traverse::free_vars(term).iter().filter_map(|v| env.get(v)) {
                with_stack(|| add_terms(&captured, seen, terms));
            }
        }
    };
    match value {
        Value::Tuple(items) => items.iter().for_each(|item| add_terms(item, seen, terms)),
        Value::Variant { fields, .. } => {
            fields.iter().flatten().flatten().for_each(|field| add_terms(field, seen, terms));
        }
        Value::Function(function) => match &**function {
            Known::Lambda { lambda, env } => add_captured(&lambda.body, env, terms),
            Known::Recursive { recursive, args } => {
                match recursive {
                    Recursive::Global { term, .. } => add_captured(term, &Env::default(), terms),
                    Recursive::Local { group, .. } => {
                        group.members.iter().for_each(|(_, _, term)| add_captured(term, &group.outer, terms));
                    }
                }
                args.iter().for_each(|arg| add_terms(arg, seen, terms));
            }
            Known::Derivative { args, .. } => args.iter().for_each(|arg| add_terms(arg, seen, terms)),
        },
        Value::Leaf(_)
        | Value::Text(_)
        | Value::Unit
        | Value::Array(_)
        | Value::Boxed { .. }
        | Value::Closure { .. } => {}
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
            Recursive::Local { group, member } => Identity::Local(Rc::as_ptr(group), *member),
        };
        let mut known_args: Vec<_> = args.iter().map(known).collect();
        // A function that leads back to itself with other functions than before would make ever new copies: these become closures.
        let instances = self.functions.table.get(&function).map_or(&[][..], |instances| instances);
        let again = |instance: &&Instance| self.functions.is_active(instance.id);
        if let Some(before) = instances.iter().rev().find(again) {
            for (arg, before) in known_args.iter_mut().zip(&before.args) {
                if !same_arg((arg, before)) {
                    *arg = None;
                }
            }
        }
        let same = |instance: &&Instance| instance.args.iter().zip(&known_args).all(same_arg);
        let found = instances.iter().find(same).map(|instance| instance.id);
        let mut leaves = Vec::new();
        for ((value, (_, ty)), known) in args.iter().zip(&parts.params).zip(&known_args) {
            if known.is_none() {
                leaves.extend(self.flatten(value, ty, span)?);
            }
        }
        let constants = match &function {
            Identity::Global(_) => {
                // What it calls may be written here, as well as what it is given to call.
                let mut terms = vec![parts.body.clone()];
                for known in known_args.iter().flatten() {
                    terms.extend(self.functions.text(known).iter().cloned());
                }
                self.split_constants(&terms, span)?
            }
            Identity::Local(..) => Default::default(),
        };
        for (global, ty) in &constants.0 {
            let value = self.global(global, span)?;
            leaves.extend(self.flatten(&value, ty, span)?);
        }
        let id = match found {
            Some(id) => id,
            None => self.lower_function(recursive, (function, known_args), parts, &args, constants, span)?,
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
        (function, known_args): (Identity, Vec<Option<Rc<Known>>>),
        parts: &Parts,
        args: &[Value],
        constants: SplitConstants,
        span: Span,
    ) -> Lowered<FunctionId> {
        let instances = |global: &Global| {
            let waits = |(_, f): &&(FunctionId, Identity)| matches!(f, Identity::Global(g) if g != global && super::same_name(g, global));
            self.functions.active.iter().filter(waits).count()
        };
        let has_others = |global: &&Global| super::is_instance(global);
        let unbounded = match &function {
            Identity::Global(g) => Some(g).filter(has_others).is_some_and(|g| instances(g) > super::INSTANCES),
            Identity::Local(..) => false,
        };
        let text = Arc::as_ptr(&parts.body.kind);
        let pending = self.functions.texts.entry(text).or_insert(0);
        if unbounded || *pending > PENDING {
            return self.refuse(Reason::Unbounded, span);
        }
        *pending += 1;
        let name = match recursive {
            Recursive::Global { global: Global::Source { name, .. }, .. } => Name::new(name),
            Recursive::Global { .. } => Name::new("f"),
            Recursive::Local { group, member } => Name::new(&group.members[*member].0.name),
        };
        let mut params = Vec::new();
        let mut env = parts.env.clone();
        for ((value, (var, ty)), known) in args.iter().zip(&parts.params).zip(&known_args) {
            let inner = match known {
                Some(_) => value.clone(),
                None => self.parameter(&var.name, ty, &mut params, span)?,
            };
            env = env.with(var, ty, inner);
        }
        let mut inside = constants.1;
        let own_constants = matches!(function, Identity::Global(_));
        for (global, ty) in &constants.0 {
            let value = self.parameter("c", ty, &mut params, span)?;
            inside.insert(global.clone(), Ok(value));
        }
        let results = self.leaves(&parts.result, span)?;
        let id = FunctionId(self.module.functions.len());
        self.module.functions.push(flow::Function { name, params, results, body: Block::unfinished(), rule: None });
        let closed = |f: &Rc<Known>| super::heap::is_closed(&Value::Function(f.clone()));
        if !own_constants || !known_args.iter().flatten().all(closed) {
            self.functions.capturing.insert(id);
        }
        let instance = Instance { args: known_args, id, _function: recursive.clone() };
        self.functions.table.entry(function.clone()).or_default().push(instance);
        self.functions.leads_to.insert(id, id.0);
        self.functions.active.push((id, function));
        let inner = self.b.another();
        let outer = std::mem::replace(&mut self.b, inner);
        let outer_constants = own_constants.then(|| std::mem::replace(&mut self.constants, inside));
        let applying = std::mem::take(&mut self.applying);
        let body = self.eval(&parts.body, &env).and_then(|value| {
            let results = self.flatten(&value, &parts.result, span)?;
            Ok(self.b.pop(results))
        });
        self.applying = applying;
        if let Some(outer) = outer_constants {
            self.constants = outer;
        }
        self.b = outer;
        self.functions.active.pop();
        if let Some(pending) = self.functions.texts.get_mut(&text) {
            *pending -= 1;
        }
        if body.is_err() {
            self.functions.leads_to.remove(&id);
        }
        self.module.functions[id.0].body = body?;
        self.functions.waiting.push(id);
        self.finish_functions(id);
        Ok(id)
    }

    /// New parameters for a value of a type.
    fn parameter(&mut self, name: &str, ty: &Type, params: &mut Vec<Var>, span: Span) -> Lowered<Value> {
        let vars: Vec<Var> = self.leaves(ty, span)?.into_iter().map(|l| Var::fresh(name, l)).collect();
        params.extend(vars.clone());
        self.unflatten(ty, &mut vars.into_iter().map(Atom::Var), span)
    }

    /// The body of a function is complete. If it leads to no unfinished function that was there before it, then it and those that came up in it are
    /// finished: the components of Tarjan's algorithm.
    fn finish_functions(&mut self, id: FunctionId) {
        let first = self.first_unfinished(&self.module.function(id).body).map_or(id.0, |first| first.min(id.0));
        self.functions.leads_to.insert(id, first);
        if first < id.0 {
            return;
        }
        let Functions { waiting, leads_to, .. } = &mut self.functions;
        let start = waiting.iter().rposition(|w| w.0 < id.0).map_or(0, |before| before + 1);
        let (ready, others): (Vec<_>, Vec<_>) = waiting.split_off(start).into_iter().partition(|w| leads_to[w] >= id.0);
        waiting.extend(others);
        ready.iter().for_each(|id| {
            leads_to.remove(id);
        });
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
        self.functions.captured.extend(captured);
    }

    /// The number of the first unfinished function that a block leads to.
    fn first_unfinished(&self, block: &Block) -> Option<usize> {
        let mut seen = FxHashSet::default();
        let mut first: Option<usize> = None;
        let mut next = Vec::new();
        callees(block, &mut next);
        while let Some(id) = next.pop() {
            if !seen.insert(id) || self.functions.captured.contains_key(&id) {
                continue;
            }
            match self.functions.leads_to.get(&id) {
                Some(number) => first = Some(first.map_or(*number, |first| first.min(*number))),
                None => callees(&self.module.function(id).body, &mut next),
            }
        }
        first
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
        let unfinished =
            |id: &FunctionId| self.functions.leads_to.contains_key(id) && self.functions.capturing.contains(id);
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
            stmt.op.blocks_mut().for_each(|b| pass_captured(b, captured));
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

/// The definitions that call themselves, directly or through others, found as they are asked for: most of a library is never used.
pub(super) struct Cycles<'a> {
    program: &'a Program,
    /// Of a definition, and all that it leads to, the number of those that lead to each other, if it is one of them.
    known: RefCell<FxHashMap<Symbol, Option<usize>>>,
}

impl<'a> Cycles<'a> {
    pub(super) fn new(program: &'a Program) -> Cycles<'a> {
        Cycles { program, known: RefCell::default() }
    }

    pub(super) fn has(&self, name: &Symbol) -> bool {
        self.number(name).is_some()
    }

    /// The number of the definitions that this one leads to and that lead back to it.
    pub(super) fn number(&self, name: &Symbol) -> Option<usize> {
        if let Some(known) = self.known.borrow().get(name) {
            return *known;
        }
        let mut known = self.known.borrow_mut();
        let mut names = vec![name.clone()];
        let mut numbers: FxHashMap<Symbol, usize> = [(name.clone(), 0)].into_iter().collect();
        let mut graph: Vec<Vec<usize>> = Vec::new();
        while let Some(next) = names.get(graph.len()) {
            let mut mentioned = mentions(self.program, next);
            // What is known leads to what is known only, and so not back.
            mentioned.retain(|name| !known.contains_key(name));
            let number = |name: Symbol| {
                *numbers.entry(name).or_insert_with_key(|name| {
                    names.push(name.clone());
                    names.len() - 1
                })
            };
            graph.push(mentioned.into_iter().map(number).collect());
        }
        let before = known.len();
        let found = names.into_iter().zip(cycles(&graph));
        known.extend(found.map(|(name, cycle)| (name, cycle.map(|number| before + number))));
        known.get(name).copied().flatten()
    }
}
