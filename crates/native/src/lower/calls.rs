//! Application: known functions are written out where they are called; tail recursion becomes a loop.

use super::value::{Env, Function, Recursive, Value};
use super::{Lowered, Lowering};
use crate::flow::{Atom, Var};
use gradus_core::traverse::{for_each_child, with_stack};
use gradus_core::{Body, Global, Symbol, Term, TermKind, Type};
use gradus_source::Span;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;
use std::sync::Arc;

/// How often the body of a function may be written inside itself before it is called as a closure instead.
const INSIDE_ITSELF: usize = 12;

/// Definitions of more than [`LARGE`] terms that have been written out [`OFTEN`] are called, when all that is written out of them would be [`MUCH`], or the
/// entry has become [`LONG`].
const LARGE: usize = 60;
const OFTEN: usize = 4;
const MUCH: usize = 3_000;
const LONG: usize = 20_000;

/// What has been found out about the texts of definitions, which may be called often.
#[derive(Default)]
pub(super) struct Facts {
    /// See [`Lowering::written_size`].
    sizes: FxHashMap<Symbol, usize>,
    /// Those that mention neither themselves nor what could lead back to them.
    without_recursion: FxHashSet<Global>,
    /// The definitions that terms mention, by the addresses of the terms, which are kept.
    mentioned: FxHashMap<*const TermKind, (Term, Mentioned)>,
}

/// Definitions, each with a place where it is mentioned.
type Mentioned = Rc<[(Global, Span)]>;

impl Facts {
    /// The definitions that a term mentions.
    pub(super) fn mentioned_in(&mut self, term: &Term) -> Mentioned {
        let (_, found) = self.mentioned.entry(Arc::as_ptr(&term.kind)).or_insert_with(|| {
            let mut found = Vec::new();
            super::collect_globals(term, &mut found);
            (term.clone(), found.into())
        });
        found.clone()
    }
}

/// A recursive function taken apart.
pub(super) struct Parts {
    pub params: Vec<(gradus_core::Var, Type)>,
    pub body: Term,
    pub result: Type,
    pub env: Env,
}

impl Recursive {
    pub(super) fn parts(&self) -> Parts {
        let (term, ty, env) = match self {
            Recursive::Global { term, ty, .. } => (term.clone(), ty.clone(), Env::default()),
            Recursive::Local { group, member } => {
                let (_, ty, term) = &group.members[*member];
                (term.clone(), ty.clone(), Env::with_group(group))
            }
        };
        let (mut params, mut body, mut result) = (Vec::new(), term, ty);
        while let (TermKind::Lambda(lambda), Type::Fun(ft)) = (&*body.kind.clone(), result.clone()) {
            params.push((lambda.param.clone(), lambda.ty.clone()));
            body = lambda.body.clone();
            result = ft.1.clone();
        }
        Parts { params, body, result, env }
    }

    /// Whether a term is this function itself.
    fn is(&self, term: &Term) -> bool {
        match (self, &*term.kind) {
            (Recursive::Global { global, .. }, TermKind::Global(other)) => global == other,
            (Recursive::Local { group, member }, TermKind::Var(v, _)) => group.members[*member].0 == *v,
            _ => false,
        }
    }

    /// Whether a term mentions this function, or one that could lead back to it.
    fn occurs_in(&self, term: &Term, recursive: &dyn Fn(&Global) -> bool) -> bool {
        with_stack(|| {
            let here = match (self, &*term.kind) {
                (Recursive::Global { .. }, TermKind::Global(other)) => self.is(term) || recursive(other),
                (Recursive::Local { group, .. }, TermKind::Var(v, _)) => group.members.iter().any(|(w, _, _)| w == v),
                _ => false,
            };
            let mut found = here;
            for_each_child(term, &mut |child| found = found || self.occurs_in(child, recursive));
            found
        })
    }
}

/// `f a b c`: the head and the arguments.
fn spine(term: &Term) -> (Term, Vec<Term>) {
    let (mut head, mut args) = (term.clone(), Vec::new());
    while let TermKind::App(function, argument) = &*head.kind.clone() {
        args.push(argument.clone());
        head = function.clone();
    }
    args.reverse();
    (head, args)
}

/// A loop that is being lowered.
struct Loop<'a> {
    recursive: &'a Recursive,
    parts: &'a Parts,
    /// The parameters that every call passes on unchanged.
    fixed: Vec<bool>,
    /// The state on entry of an iteration, which is also what is left of it when the loop ends.
    state: Vec<Atom>,
}

impl Lowering<'_> {
    pub(super) fn apply(&mut self, function: Value, argument: Value, span: Span) -> Lowered<Value> {
        let function = match function {
            Value::Function(function) => function,
            Value::Closure { cell, ty } => return self.apply_closure(cell, &ty, &argument, span),
            _ => gradus_source::bug!("an application of something that is no function"),
        };
        match &*function {
            Function::Lambda { lambda, env } => {
                let inside = self.applying.entry(Arc::as_ptr(lambda)).or_insert(0);
                if *inside >= INSIDE_ITSELF {
                    let ty = self.function_type(&function);
                    let closure = self.reify(&function, span)?;
                    return self.apply_closure(closure, &ty, &argument, span);
                }
                *inside += 1;
                let outer = self.b.seen_from.enter(span);
                let result = self.eval(&lambda.body, &env.with(&lambda.param, &lambda.ty, argument));
                self.b.seen_from = outer;
                if let Some(inside) = self.applying.get_mut(&Arc::as_ptr(lambda)) {
                    *inside -= 1;
                }
                self.b.span = span;
                result
            }
            Function::Recursive { recursive, args } => {
                let args = [args.clone(), vec![argument]].concat();
                let parts = recursive.parts();
                let ruled = match recursive {
                    Recursive::Global { global, .. } => self.rule_arity(global).map(|arity| (global, arity)),
                    Recursive::Local { .. } => None,
                };
                if args.len() < ruled.map_or(parts.params.len(), |(_, arity)| arity) {
                    let function = Function::Recursive { recursive: recursive.clone(), args };
                    return Ok(Value::Function(Rc::new(function)));
                }
                let outer = self.b.seen_from.enter(span);
                let result = match ruled {
                    Some((global, _)) => self.call_ruled(&global.clone(), args, span),
                    None => self.call_recursive(recursive, &parts, args, span),
                };
                self.b.seen_from = outer;
                result
            }
            Function::Derivative { op, types, args } => {
                let args = [args.clone(), vec![argument]].concat();
                if args.len() < op.signature(types).0.len() {
                    let function = Function::Derivative { op: *op, types: types.clone(), args };
                    return Ok(Value::Function(Rc::new(function)));
                }
                self.derivative(*op, types, args, span)
            }
        }
    }

    /// Whether a definition that is mentioned once more is called instead of being written out: if it is no small one, has been written out several
    /// times, much of the code or a long program comes of that, and it takes and gives data only. So the length of the code does not grow faster than
    /// that of the program.
    pub(super) fn is_called(&mut self, global: &Global, term: &Term, ty: &Type) -> bool {
        if !matches!(&*term.kind, TermKind::Lambda(_)) {
            return false;
        }
        let times = self.written_out.entry(global.clone()).or_insert(0);
        *times += 1;
        let times = *times;
        if times <= OFTEN {
            return false;
        }
        let size = match global {
            Global::Source { name, .. } => self.written_size(name),
            Global::Derived { .. } | Global::Wrapper { .. } => 0,
        };
        if size < LARGE || times * size < MUCH && self.lowered < LONG {
            return false;
        }
        let parts = Recursive::Global { global: global.clone(), term: term.clone(), ty: ty.clone() }.parts();
        let mut types = parts.params.iter().map(|(_, ty)| ty).chain([&parts.result]);
        types.all(|ty| self.is_data(ty, term.span).is_ok())
    }

    /// How many terms a definition is when it is written out, with those that it mentions; it is not counted beyond [`MUCH`].
    fn written_size(&mut self, name: &Symbol) -> usize {
        if let Some(size) = self.facts.sizes.get(name) {
            return *size;
        }
        let program = self.program;
        let mut left = MUCH;
        if let Some(Body::Term(term)) = program.defs.get(name).map(|d| &d.body) {
            self.count_terms(term, &mut left);
        }
        self.facts.sizes.insert(name.clone(), MUCH - left);
        MUCH - left
    }

    fn count_terms(&mut self, term: &Term, left: &mut usize) {
        with_stack(|| {
            let own = match &*term.kind {
                TermKind::Global(Global::Source { name, .. }) if !self.recursive.has(name) => self.written_size(name),
                _ => 1,
            };
            *left = left.saturating_sub(own);
            if *left > 0 {
                for_each_child(term, &mut |child| self.count_terms(child, left));
            }
        })
    }

    /// The number of the definitions that a recursive one leads to and that lead back to it.
    pub(super) fn cycle(&self, global: &Global) -> Option<usize> {
        match global {
            Global::Source { name, .. } => self.recursive.number(name),
            Global::Derived { .. } | Global::Wrapper { .. } => None,
        }
    }

    fn is_written_out_often(&self, global: &Global) -> bool {
        let Global::Source { name, .. } = global else { return false };
        !self.recursive.has(name) && self.written_out.get(global).is_some_and(|times| *times > OFTEN)
    }

    fn call_recursive(&mut self, recursive: &Recursive, parts: &Parts, args: Vec<Value>, span: Span) -> Lowered<Value> {
        let own: Option<&Global> = match recursive {
            Recursive::Global { global, .. } => Some(global),
            Recursive::Local { .. } => None,
        };
        let own_cycle = own.and_then(|own| self.cycle(own));
        let leads_back =
            |global: &Global| Some(global) != own && own_cycle.is_some() && self.cycle(global) == own_cycle;
        let known = own.is_some_and(|global| self.facts.without_recursion.contains(global));
        if known || !recursive.occurs_in(&parts.body, &leads_back) {
            self.facts.without_recursion.extend(own.cloned());
            if own.is_some_and(|global| self.is_written_out_often(global)) {
                return self.call_function(recursive, parts, args, span);
            }
            // Not recursive after all.
            let params = parts.params.iter().zip(args);
            let env = params.fold(parts.env.clone(), |env, ((var, ty), value)| env.with(var, ty, value));
            return self.eval(&parts.body, &env);
        }
        let mut calls = Vec::new();
        if is_tail(recursive, &parts.body, parts.params.len(), true, &leads_back, &mut calls) {
            self.tail_loop(recursive, parts, &calls, args, span)
        } else {
            self.call_function(recursive, parts, args, span)
        }
    }

    /// A function that only calls itself last is a loop over its arguments.
    fn tail_loop(
        &mut self,
        recursive: &Recursive,
        parts: &Parts,
        calls: &[Vec<Term>],
        args: Vec<Value>,
        span: Span,
    ) -> Lowered<Value> {
        let passes_on = |i: usize| {
            let same = |call: &Vec<Term>| matches!(&*call[i].kind, TermKind::Var(v, _) if *v == parts.params[i].0);
            calls.iter().all(same)
        };
        let fixed: Vec<bool> = (0..parts.params.len()).map(passes_on).collect();
        let mut carried = Vec::new();
        let mut env = parts.env.clone();
        for ((var, ty), (value, fixed)) in parts.params.iter().zip(args.into_iter().zip(&fixed)) {
            if *fixed {
                env = env.with(var, ty, value);
                continue;
            }
            let inits = self.flatten(&value, ty, span)?;
            let vars: Vec<Var> = inits.iter().map(|a| Var::fresh(&*var.name, a.ty())).collect();
            let state = self.unflatten(ty, &mut vars.iter().map(|v| Atom::Var(*v)), span)?;
            env = env.with(var, ty, state);
            carried.extend(vars.into_iter().zip(inits));
        }
        let state: Vec<Atom> = carried.iter().map(|(v, _)| Atom::Var(*v)).collect();
        for leaf in self.leaves(&parts.result, span)? {
            let nothing = self.b.dummy(leaf);
            carried.push((Var::fresh("result", leaf), nothing));
        }
        let context = Loop { recursive, parts, fixed, state };
        self.b.push();
        let results = self.tail(&parts.body.clone(), &env, &context)?;
        let body = self.b.pop(results);
        self.b.span = span;
        let last = self.b.while_loop(carried, body);
        let mut results = last.into_iter().skip(context.state.len());
        self.unflatten(&parts.result, &mut results, span)
    }

    /// A term in tail position of a loop: whether to go on, the next state, and the result if not.
    fn tail(&mut self, term: &Term, env: &Env, context: &Loop<'_>) -> Lowered<Vec<Atom>> {
        with_stack(|| {
            let span = term.span;
            match &*term.kind {
                TermKind::Let { var, scheme, bound, body } => {
                    let value = self.eval(bound, env)?;
                    self.tail(body, &env.with(var, &scheme.ty, value), context)
                }
                TermKind::LetRec { bindings, body } => {
                    let members = bindings.iter().map(|(v, s, t)| (v.clone(), s.ty.clone(), t.clone())).collect();
                    let group = Rc::new(super::value::Group { members, outer: env.clone() });
                    self.tail(body, &Env::with_group(&group), context)
                }
                TermKind::If { condition, then, otherwise } => {
                    let condition = self.eval(condition, env)?;
                    let condition = self.leaf(&condition);
                    let all =
                        self.choose(condition, span, &mut |s| s.tail(then, env, context).map(as_value), &mut |s| {
                            s.tail(otherwise, env, context).map(as_value)
                        })?;
                    Ok(as_atoms(self, all))
                }
                TermKind::Case { scrutinee, arms, default } => {
                    let value = self.eval(scrutinee, env)?;
                    let all = self.case(value, arms, default.as_ref(), span, &mut |s, body, bound| {
                        let env = bound.into_iter().fold(env.clone(), |env, (v, t, x)| env.with(&v, &t, x));
                        s.tail(body, &env, context).map(as_value)
                    })?;
                    Ok(as_atoms(self, all))
                }
                TermKind::App(..) if context.recursive.is(&spine(term).0) => {
                    let mut atoms = vec![Atom::Bool(true)];
                    let (_, args) = spine(term);
                    for ((arg, (_, ty)), fixed) in args.iter().zip(&context.parts.params).zip(&context.fixed) {
                        if !fixed {
                            let value = self.eval(arg, env)?;
                            atoms.extend(self.flatten(&value, ty, span)?);
                        }
                    }
                    for leaf in self.leaves(&context.parts.result, span)? {
                        let nothing = self.b.dummy(leaf);
                        atoms.push(nothing);
                    }
                    Ok(atoms)
                }
                _ => {
                    let value = self.eval(term, env)?;
                    let mut atoms = vec![Atom::Bool(false)];
                    atoms.extend(&context.state);
                    atoms.extend(self.flatten(&value, &context.parts.result, span)?);
                    Ok(atoms)
                }
            }
        })
    }
}

/// A list of operands as a value, so that branches can join it.
fn as_value(atoms: Vec<Atom>) -> Value {
    use super::value::{Part, View};
    let leaf = |atom: Atom| match atom {
        Atom::Var(array) if array.ty.is_array() => Value::Array(Rc::new(Part::Leaf(View { array, index: Vec::new() }))),
        _ => Value::Leaf(atom),
    };
    Value::tuple(atoms.into_iter().map(leaf).collect())
}

fn as_atoms(lowering: &mut Lowering<'_>, value: Value) -> Vec<Atom> {
    let Value::Tuple(items) = value else { gradus_source::bug!("a loop's state is no list") };
    items
        .iter()
        .map(|item| match item {
            Value::Leaf(atom) => *atom,
            Value::Array(part) => match super::layout::views(part).first() {
                Some(view) => lowering.whole(view),
                None => gradus_source::bug!("an array without leaves"),
            },
            _ => gradus_source::bug!("a loop's state is no list of leaves"),
        })
        .collect()
}

/// Whether every mention of the function in a term is a call with all arguments in tail position; collects the arguments.
fn is_tail(
    recursive: &Recursive,
    term: &Term,
    arity: usize,
    tail: bool,
    leads_back: &dyn Fn(&Global) -> bool,
    calls: &mut Vec<Vec<Term>>,
) -> bool {
    with_stack(|| {
        let free = |t: &Term| !recursive.occurs_in(t, leads_back);
        match &*term.kind {
            TermKind::App(..) => {
                let (head, args) = spine(term);
                if recursive.is(&head) {
                    let fine = tail && args.len() == arity && args.iter().all(free);
                    calls.push(args);
                    fine
                } else {
                    free(term)
                }
            }
            TermKind::Let { bound, body, .. } => {
                free(bound) && is_tail(recursive, body, arity, tail, leads_back, calls)
            }
            TermKind::LetRec { bindings, body } => {
                bindings.iter().all(|(_, _, t)| free(t)) && is_tail(recursive, body, arity, tail, leads_back, calls)
            }
            TermKind::If { condition, then, otherwise } => {
                free(condition)
                    && is_tail(recursive, then, arity, tail, leads_back, calls)
                    && is_tail(recursive, otherwise, arity, tail, leads_back, calls)
            }
            TermKind::Case { scrutinee, arms, default } => {
                free(scrutinee)
                    && arms.iter().all(|a| is_tail(recursive, &a.body, arity, tail, leads_back, calls))
                    && default.iter().all(|d| is_tail(recursive, d, arity, tail, leads_back, calls))
            }
            _ => free(term),
        }
    })
}
