//! Lambda terms to combinators: C section 6.1, code snippets 9 and 10 in one step.
//!
//! A term in a context becomes a combinator from the context, as a nested product, to the type of the term. What a function, a branch or
//! a loop does not mention is dropped from its context first, so that the sums of cotangents stay small.
//!
//! A definition is a constant function value. A call with all the arguments that the definition's text takes goes to a copy of it that takes them as one
//! tuple: a curried function would be run again for each argument, since its cotangent is a bag of arguments to come back to.

use super::language::{product, Comb, Op, Write};
use super::types::cotangents;
use crate::prims::{treatment, Treatment};
use crate::typing::result_type;
use crate::{Linker, Made, Refusal};
use gradus_core::build::At;
use gradus_core::traverse::{add_binder_types, free_vars, with_stack};
use gradus_core::{Arm, Global, Lambda, Mode, Prim, Symbol, Term, TermKind, Type, Var};
use gradus_source::{bug, Span};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::sync::Arc;

/// The variables in scope, and the nested product that has their values: `((unit * a) * b) * c`.
#[derive(Clone)]
pub struct Context {
    pub vars: Vec<Var>,
    pub ty: Type,
}

impl Context {
    pub fn empty() -> Self {
        Context { vars: Vec::new(), ty: Type::Unit }
    }

    pub fn with(&self, var: &Var, ty: &Type) -> Self {
        let mut vars = self.vars.clone();
        vars.push(var.clone());
        Context { vars, ty: Type::tuple([self.ty.clone(), ty.clone()]) }
    }
}

pub struct Compiler<'a> {
    pub linker: &'a Linker,
    /// Of all variables, those inside the term included. What is inlined brings its own.
    types: RefCell<FxHashMap<Var, Type>>,
}

type Lets = Vec<(Var, Type, Term)>;

/// The bindings before a value; functions that are not used are left out.
fn needed(at: At, lets: Lets, value: Term) -> Term {
    lets.into_iter().rev().fold(value, |body, (var, ty, bound)| {
        if matches!(&*bound.kind, TermKind::Lambda(_)) && !free_vars(&body).contains(&var) {
            return body;
        }
        at.bind(&var, ty, bound, body)
    })
}

fn refuse<T>(construct: &'static str, span: Span) -> Made<T> {
    Err(Box::new(Refusal::Construct { mode: Mode::Combinator, construct, span }))
}

impl<'a> Compiler<'a> {
    pub fn new(linker: &'a Linker, types: &FxHashMap<Var, Type>) -> Self {
        Compiler { linker, types: RefCell::new(types.clone()) }
    }

    fn type_of(&self, term: &Term) -> Made<Type> {
        self.linker.type_of(&self.types.borrow(), term)
    }

    pub fn type_of_variable(&self, var: &Var) -> Type {
        match self.types.borrow().get(var) {
            Some(ty) => ty.clone(),
            None => bug!("the type of the variable {var:?} is not known"),
        }
    }

    /// If G |- e : A, then comb G A.
    pub fn term(&self, context: &Context, term: &Term) -> Made<Comb> {
        with_stack(|| {
            let comb = self.rule(context, term)?;
            // Every type that a value can have must have cotangents.
            cotangents(self.linker, &comb.to, term.span)?;
            Ok(comb)
        })
    }

    fn rule(&self, context: &Context, term: &Term) -> Made<Comb> {
        let write = Write(term.span);
        Ok(match &*term.kind {
            TermKind::Var(var, _) => self.fetch(write, context, var),
            TermKind::App(function, argument) => return self.application(context, term, function, argument),
            TermKind::Lambda(l) => {
                let (narrow, inner) = self.restrict(write, context, term);
                write.seq(narrow, self.lambda(&inner, l)?)
            }
            TermKind::Tuple(items) => write.fork(&context.ty, self.terms(context, items)?),
            TermKind::Proj { index, term: whole } => {
                if let Some(inlined) = self.waiting(term)?.map(|(lets, value)| needed(At(term.span), lets, value)) {
                    return self.term(context, &inlined);
                }
                let whole = self.term(context, whole)?;
                let to = self.linker.component(&whole.to, *index)?;
                let field = write.node(Op::Proj(*index), whole.to.clone(), to);
                write.seq(whole, field)
            }
            TermKind::Literal(_) => write.constant(&context.ty, term.clone(), &self.type_of(term)?),
            TermKind::Global(_) => write.constant(&context.ty, term.clone(), &self.type_of(term)?),
            // let x = e1 in e2 is <id, e1> ;; e2
            TermKind::Let { var, scheme, bound, body } => {
                let bound = self.term(context, bound)?;
                let with = write.fork(&context.ty, vec![write.id(&context.ty), bound]);
                write.seq(with, self.term(&context.with(var, &scheme.ty), body)?)
            }
            TermKind::Prim { prim, types, args, .. } => return self.prim(context, write, *prim, types, args),
            TermKind::Construct { name, types, tag, args } => {
                let args = write.fork(&context.ty, self.terms(context, args)?);
                let to = Type::Named(name.clone(), types.clone());
                let construct = Op::Construct { name: name.clone(), types: types.clone(), tag: *tag };
                let construct = write.node(construct, args.to.clone(), to);
                write.seq(args, construct)
            }
            TermKind::Case { scrutinee, arms, default } => {
                return self.case(context, term, scrutinee, arms, default.as_ref());
            }
            TermKind::If { condition, then, otherwise } => {
                let condition = self.term(context, condition)?;
                let branches = At(term.span).tuple([then.clone(), otherwise.clone()]);
                let (narrow, inner) = self.restrict(write, context, &branches);
                let (then, otherwise) = (self.term(&inner, then)?, self.term(&inner, otherwise)?);
                let both = write.fork(&context.ty, vec![narrow, condition]);
                let to = then.to.clone();
                let choice = write.node(Op::If(then, otherwise), both.to.clone(), to);
                write.seq(both, choice)
            }
            TermKind::ArrayLiteral { element, items } => {
                let count = items.len();
                let items = write.fork(&context.ty, self.terms(context, items)?);
                let array = write.node(Op::ArrayLiteral(count), items.to.clone(), Type::array(element.clone()));
                write.seq(items, array)
            }
            TermKind::LetRec { bindings, body } => {
                let body = self.without_recursion(At(term.span), bindings, body)?;
                return self.term(context, &body);
            }
            TermKind::Lift { .. } => {
                return refuse("the derivative of a function that is only known when the program runs", term.span)
            }
            TermKind::Derive { op, .. } => bug!("{op:?} was not expanded before differentiation"),
        })
    }

    fn terms(&self, context: &Context, terms: &[Term]) -> Made<Vec<Comb>> {
        terms.iter().map(|t| self.term(context, t)).collect()
    }

    /// `fetch`: the projections that lead to a variable. The latest is on the right.
    fn fetch(&self, write: Write, context: &Context, var: &Var) -> Comb {
        let Some(depth) = context.vars.iter().rev().position(|v| v == var) else {
            bug!("the variable {var:?} is not in the context")
        };
        let path: Vec<usize> = std::iter::repeat_n(0, depth).chain([1]).collect();
        write.path(&context.ty, &path)
    }

    /// Weakening: the part of the context that a term mentions.
    fn restrict(&self, write: Write, context: &Context, term: &Term) -> (Comb, Context) {
        let free = free_vars(term);
        if context.vars.iter().all(|v| free.contains(v)) {
            return (write.id(&context.ty), context.clone());
        }
        let mut inner = Context::empty();
        let mut comb = write.fork(&context.ty, vec![]);
        for var in context.vars.iter().filter(|v| free.contains(v)) {
            let value = self.fetch(write, context, var);
            inner = inner.with(var, &value.to);
            comb = write.fork(&context.ty, vec![comb, value]);
        }
        (comb, inner)
    }

    /// `fun x -> e` is curry(e).
    pub fn lambda(&self, context: &Context, lambda: &Lambda) -> Made<Comb> {
        let write = Write(lambda.body.span);
        let body = self.term(&context.with(&lambda.param, &lambda.ty), &lambda.body)?;
        cotangents(self.linker, &lambda.ty, lambda.body.span)?;
        let to = Type::fun(lambda.ty.clone(), body.to.clone());
        Ok(write.node(Op::Curry(body), context.ty.clone(), to))
    }

    fn apply(&self, write: Write, context: &Context, function: Comb, argument: Comb) -> Comb {
        let to = result_type(&function.to);
        let both = write.fork(&context.ty, vec![function, argument]);
        let ev = write.node(Op::Ev, both.to.clone(), to);
        write.seq(both, ev)
    }

    /// e1 e2 is <e1, e2> ;; ev
    fn application(&self, context: &Context, term: &Term, function: &Term, argument: &Term) -> Made<Comb> {
        let write = Write(term.span);
        let (mut head, mut arguments) = (function, vec![argument]);
        while let TermKind::App(function, argument) = &*head.kind {
            head = function;
            arguments.push(argument);
        }
        arguments.reverse();
        if let TermKind::Global(global) = &*head.kind {
            if let Some((uncurried, count, ty)) = self.uncurried(global, term.span)? {
                if arguments.len() >= count {
                    let (now, later) = arguments.split_at(count);
                    let parts = now.iter().map(|t| self.term(context, t)).collect::<Made<Vec<_>>>()?;
                    let tuple = write.fork(&context.ty, parts);
                    let function = write.constant(&context.ty, At(term.span).global(uncurried), &ty);
                    let mut result = self.apply(write, context, function, tuple);
                    for argument in later {
                        result = self.apply(write, context, result, self.term(context, argument)?);
                    }
                    return Ok(result);
                }
            }
        }
        // (fun x -> b) a is let x = a in b.
        if let TermKind::Lambda(l) = &*function.kind {
            let argument = self.term(context, argument)?;
            let with = write.fork(&context.ty, vec![write.id(&context.ty), argument]);
            return Ok(write.seq(with, self.term(&context.with(&l.param, &l.ty), &l.body)?));
        }
        Ok(self.apply(write, context, self.term(context, function)?, self.term(context, argument)?))
    }

    /// The copy of a definition that takes its arguments as one tuple, how many there are, and its type.
    fn uncurried(&self, global: &Global, span: Span) -> Made<Option<(Global, usize, Type)>> {
        let (name, types): (Symbol, _) = match global {
            // The hidden text of a function with a custom derivative is reached through that derivative.
            Global::Source { name, .. } if name.ends_with("#primal") => return Ok(None),
            Global::Source { name, types } => (format!("{name}#uncurried").into(), types.clone()),
            Global::Wrapper { name, modes, types } if modes.is_empty() => {
                (format!("#{name}#uncurried").into(), types.clone())
            }
            Global::Wrapper { .. } | Global::Derived { .. } => return Ok(None),
        };
        let definition = self.linker.make_beforehand(global, Mode::Combinator, span)?;
        let mut params = Vec::new();
        let mut rest = definition.term.as_ref();
        while let Some(TermKind::Lambda(l)) = rest.map(|t| &*t.kind) {
            params.push((l.param.clone(), l.ty.clone()));
            rest = Some(&l.body);
        }
        let (count, Some(body)) = (params.len(), rest) else { return Ok(None) };
        if count < 2 {
            return Ok(None);
        }
        let from = Type::tuple(params.iter().map(|(_, t)| t.clone()).collect::<Vec<_>>());
        let to = params.iter().fold(definition.ty.clone(), |ty, _| result_type(&ty));
        let ty = Type::fun(from.clone(), to);
        let copy = Global::Source { name: name.clone(), types: types.clone() };
        if self.linker.hidden(&copy).is_none() {
            let at = At(body.span);
            let all = Var::fresh("args");
            let lets =
                params.iter().enumerate().rev().fold(body.clone(), |body, (i, (var, ty))| {
                    at.bind(var, ty.clone(), at.proj(at.var(&all), i), body)
                });
            self.linker.hide(name, types, ty.clone(), at.lambda(&all, from, lets))?;
        }
        Ok(Some((copy, count, ty)))
    }

    /// A derivative inside the program, in this mode too, of a function that captures variables is `fst (D(f) x)`, where `f` takes what is captured.
    /// We write it out and leave the linear map of the captured variables away: it is not asked for, and goes over a bag, which we could not take.
    fn waiting(&self, term: &Term) -> Made<Option<(Lets, Term)>> {
        match &*term.kind {
            TermKind::Global(global @ Global::Derived { mode: Mode::Combinator, .. }) => {
                let definition = self.linker.make_beforehand(global, Mode::Combinator, term.span)?;
                if let Some(text) = &definition.term {
                    add_binder_types(text, &mut self.types.borrow_mut());
                }
                Ok(definition.term.clone().map(|text| (Vec::new(), text)))
            }
            TermKind::Proj { index: 0, term: call } => {
                let TermKind::App(function, argument) = &*call.kind else { return Ok(None) };
                let Some((mut lets, value)) = self.waiting(function)? else { return Ok(None) };
                let TermKind::Lambda(l) = &*value.kind else { return Ok(None) };
                lets.push((l.param.clone(), l.ty.clone(), argument.clone()));
                let mut body = &l.body;
                while let TermKind::Let { var, scheme, bound, body: rest } = &*body.kind {
                    lets.push((var.clone(), scheme.ty.clone(), bound.clone()));
                    body = rest;
                }
                let TermKind::Tuple(parts) = &*body.kind else { return Ok(None) };
                let Some(first) = parts.first() else { return Ok(None) };
                let bound = match &*first.kind {
                    TermKind::Var(var, _) => lets.iter().find(|(v, _, _)| v == var).map(|(_, _, bound)| bound),
                    _ => None,
                };
                let value = match bound {
                    Some(bound) if matches!(&*bound.kind, TermKind::Lambda(_)) => bound.clone(),
                    _ => first.clone(),
                };
                Ok(Some((lets, value)))
            }
            _ => Ok(None),
        }
    }

    /// Over one constructor after the other; `default` stands for those that have no arm.
    fn case(
        &self,
        context: &Context,
        term: &Term,
        scrutinee: &Term,
        arms: &[Arm],
        default: Option<&Term>,
    ) -> Made<Comb> {
        let (write, at) = (Write(term.span), At(term.span));
        let scrutinee = self.term(context, scrutinee)?;
        let Type::Named(name, args) = &scrutinee.to else { bug!("a case over {:?}", scrutinee.to) };
        // What the arms mention together; their own variables are not in the context.
        let bodies = arms.iter().map(|arm| arm.body.clone()).chain(default.cloned());
        let (narrow, inner) = self.restrict(write, context, &at.tuple(bodies.collect::<Vec<_>>()));
        let default = default.map(|d| self.term(&inner, d)).transpose()?;
        let mut combs = Vec::new();
        for (tag, (_, types)) in self.linker.declaration(name)?.constructors(args).into_iter().enumerate() {
            let from = Type::tuple([inner.ty.clone(), product(types.clone())]);
            combs.push(match (arms.iter().find(|arm| arm.tag == tag), &default) {
                (Some(arm), _) => {
                    let mut with = inner.clone();
                    let mut spread = write.proj(&from, 0);
                    for (i, (var, ty)) in arm.vars.iter().enumerate() {
                        with = with.with(var, ty);
                        let all = write.proj(&from, 1);
                        let part = write.part(&all.to, i, types.len());
                        spread = write.fork(&from, vec![spread, write.seq(all, part)]);
                    }
                    write.seq(spread, self.term(&with, &arm.body)?)
                }
                (None, Some(default)) => write.seq(write.proj(&from, 0), default.clone()),
                (None, None) => bug!("no arm for constructor {tag}"),
            });
        }
        let Some(to) = combs.first().map(|c| c.to.clone()) else { bug!("a case without arms") };
        let both = write.fork(&context.ty, vec![narrow, scrutinee]);
        let case = write.node(Op::Case(combs), both.to.clone(), to);
        Ok(write.seq(both, case))
    }

    fn prim(&self, context: &Context, write: Write, prim: Prim, types: &Arc<[Type]>, args: &[Term]) -> Made<Comb> {
        let at = At(write.0);
        match (treatment(prim), args) {
            (Treatment::StopGradient, [term]) if self.is_data_only(term) => {
                let (narrow, inner) = self.restrict(write, context, term);
                let plain = Op::Plain { vars: inner.vars.clone(), term: term.clone() };
                Ok(write.seq(narrow, write.node(plain, inner.ty, self.type_of(term)?)))
            }
            (Treatment::Smooth | Treatment::Primal | Treatment::Structural | Treatment::StopGradient, _) => {
                let args = write.fork(&context.ty, self.terms(context, args)?);
                Ok(write.seq(args, write.prim(prim, types.clone())))
            }
            (Treatment::Build, [size, function]) => {
                let start = self.term(context, size)?;
                self.looped(context, write, function, &[Type::Int], start, |body| {
                    let to = Type::array(body.to.clone());
                    (Op::Build(body), to)
                })
            }
            (Treatment::Ifold, [size, function, initial]) => {
                let start = vec![self.term(context, size)?, self.term(context, initial)?];
                let start = write.fork(&context.ty, start);
                let params = [Type::Int, crate::dual::one_type(types)];
                self.looped(context, write, function, &params, start, |body| {
                    let to = body.to.clone();
                    (Op::Ifold(body), to)
                })
            }
            (Treatment::Iterate, [function, start]) => {
                self.term(context, &self.without_iteration(at, types, function, start)?)
            }
            (Treatment::Polytypic(name), _) => {
                let family = at.global(Global::Wrapper { name, modes: vec![], types: types.clone() });
                self.term(context, &at.apps(family, args.to_vec()))
            }
            (Treatment::Checkpoint, [function, argument]) => {
                let function = self.term(context, function)?;
                let to = result_type(&function.to);
                let both = write.fork(&context.ty, vec![function, self.term(context, argument)?]);
                let ev = write.node(Op::CheckpointEv, both.to.clone(), to);
                Ok(write.seq(both, ev))
            }
            (Treatment::Build | Treatment::Ifold | Treatment::Iterate | Treatment::Checkpoint, _) => {
                bug!("{prim:?} is not saturated")
            }
        }
    }

    /// Whether all that a term mentions are data, whose values are what they were before translation.
    fn is_data_only(&self, term: &Term) -> bool {
        free_vars(term).iter().all(|var| self.linker.contents(&self.type_of_variable(var)).is_data())
    }

    /// A loop whose body is `function` applied to the parameters. `start` is what the loop needs beside the context.
    fn looped(
        &self,
        context: &Context,
        write: Write,
        function: &Term,
        params: &[Type],
        start: Comb,
        make: impl FnOnce(Comb) -> (Op, Type),
    ) -> Made<Comb> {
        let (mut body, mut own, mut missing) = (function, Vec::new(), params);
        while let (TermKind::Lambda(l), Some((_, rest))) = (&*body.kind, missing.split_first()) {
            own.push((l.param.clone(), l.ty.clone()));
            body = &l.body;
            missing = rest;
        }
        let (narrow, mut inner, mut comb);
        if own.is_empty() {
            // A function that has to be computed is computed once, before the loop.
            let value = self.term(context, function)?;
            inner = Context::empty().with(&Var::fresh("f"), &value.to);
            narrow = write.fork(&context.ty, vec![write.fork(&context.ty, vec![]), value]);
            comb = write.proj(&inner.ty, 1);
        } else {
            (narrow, inner) = self.restrict(write, context, function);
            inner = own.iter().fold(inner, |so_far, (var, ty)| so_far.with(var, ty));
            comb = self.term(&inner, body)?;
        }
        for ty in missing {
            // Weaken the function to the larger context, then apply it.
            inner = inner.with(&Var::fresh("x"), ty);
            let weakened = write.seq(write.proj(&inner.ty, 0), comb);
            comb = self.apply(write, &inner, weakened, write.proj(&inner.ty, 1));
        }
        let both = write.fork(&context.ty, vec![narrow, start]);
        let (op, to) = make(comb);
        let whole = write.node(op, both.to.clone(), to);
        Ok(write.seq(both, whole))
    }
}
