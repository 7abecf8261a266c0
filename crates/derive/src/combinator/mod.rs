//! Combinator mode: the program becomes a combinator of a cartesian closed category, without variables; the combinator becomes a pair of combinators,
//! the primal and the transposed derivative; and these become core again. C section 6, Fig. 16 to 20.
//!
//! - [`language`]: Fig. 16 and 19, the combinators.
//! - [`compile`]: section 6.1, from lambda terms to combinators.
//! - [`types`], [`recursive`]: the macro on types, zero and plus.
//! - [`reverse`]: Fig. 20, the macro.
//! - [`lower`]: back to core, with the bindings that [`scopes`] keeps.
//! - [`print`]: each step as text, see [`steps`].
//!
//! Here D(real) = real, and D(A -> B) = D1(A) -> D1(B) * (D2(B) -> D2(A)): a function gives its value together with the linear map from cotangents of
//! the value to cotangents of the argument. Data are the same before and after.
//!
//! The paper's language has no recursion. We add it where it is free of charge: definitions may be recursive, since a definition is a constant;
//! `let rec` and `iterate` inside a function become definitions ([`recursion`]); and recursive types have recursive types of cotangents ([`recursive`]).
//!
//! What the mode cannot take it refuses by name and place: the derivative of a function that is only known when the program runs, and functions and types that
//! need themselves at ever higher orders or ever larger types.

mod compile;
mod language;
mod lower;
mod print;
mod recursion;
mod recursive;
mod reverse;
mod scopes;
mod types;

use crate::custom::CustomRule;
use crate::mode::{Capabilities, ModeRules};
use crate::scope::Scope;
use crate::write::{bind, lambda};
use crate::{Linker, Made, Refusal};
use compile::{Compiler, Context};
use gradus_core::build::At;
use gradus_core::traverse::{add_binder_types, free_vars};
use gradus_core::{Global, Lambda, Mode, Term, TermKind, Type, TypeDecl, Var};
use gradus_source::{bug, Span};
use language::{product, Comb, Op, Write};
use print::Named;
use reverse::Macro;
use scopes::{Lowerer, Value};
use std::sync::Arc;

pub struct Combinator;

impl ModeRules for Combinator {
    fn mode(&self) -> Mode {
        Mode::Combinator
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { vjp: true, jvp: false }
    }

    fn real(&self) -> Type {
        Type::Real
    }

    /// C equation (6), with a linear function.
    fn function(&self, linker: &Linker, from: &Type, to: &Type) -> Option<Type> {
        // A function at a type without cotangents is refused where it is met; until then its type has to be something.
        let d2 = |ty| types::cotangents(linker, ty, Span::default()).unwrap_or(Type::Unit);
        let map = Type::fun(d2(to), d2(from));
        Some(Type::fun(linker.image(self, from), Type::tuple([linker.image(self, to), map])))
    }

    fn declarations(&self) -> Vec<TypeDecl> {
        types::declarations()
    }

    fn constant(&self, _at: At, x: Term) -> Term {
        x
    }

    fn primal(&self, _at: At, dual: Term) -> Term {
        dual
    }

    fn lambda(&self, linker: &Linker, scope: &Scope, lambda: &Arc<Lambda>) -> Made<Arc<Lambda>> {
        let term = Term::new(TermKind::Lambda(lambda.clone()), lambda.body.span);
        let free = Free::of(scope, &term);
        let comb = Compiler::new(linker, scope).lambda(&free.context, lambda)?;
        let image = function(linker, &comb, free)?;
        let origin = Some((Mode::Combinator, lambda.clone()));
        Ok(Arc::new(Lambda { param: image.param.clone(), ty: image.ty.clone(), body: image.body.clone(), origin }))
    }

    fn value(&self, linker: &Linker, scope: &Scope, term: &Term) -> Made<Term> {
        let free = Free::of(scope, term);
        let comb = Compiler::new(linker, scope).term(&free.context, term)?;
        let image = Macro::new(linker).reverse(&comb)?;
        let mut lowerer = Lowerer::new(linker);
        let context = free.value(linker, &mut lowerer);
        let value = lowerer.apply(&image.primal, &context);
        let value = lowerer.term(&value);
        Ok(lowerer.close(value))
    }

    fn helper_at(&self, linker: &Linker, name: &str, ty: &Type) -> Made<Option<(Type, Term)>> {
        recursive::helper(linker, name, ty)
    }

    fn partial_application(&self, at: At, function: Term, argument: Term) -> Term {
        at.proj(at.app(function, argument), 0)
    }

    /// The rule as a combinator, whose transposed derivative is the rule's.
    fn custom(&self, linker: &Linker, rule: &CustomRule) -> Made<Term> {
        let write = Write(rule.span);
        for ty in rule.params.iter().chain([&rule.result]) {
            types::cotangents(linker, ty, rule.span)?;
        }
        let rule = Arc::new(rule.clone());
        let mut contexts = vec![Context::empty()];
        for ty in &rule.params {
            let Some(last) = contexts.last() else { bug!("no context") };
            contexts.push(last.with(&Var::fresh("x"), ty));
        }
        let (count, Some(whole)) = (rule.params.len(), contexts.pop()) else { bug!("no context") };
        let fetch = |i: usize| {
            let path: Vec<usize> = std::iter::repeat_n(0, count - 1 - i).chain([1]).collect();
            write.path(&whole.ty, &path)
        };
        let args = write.fork(&whole.ty, (0..count).map(fetch).collect());
        let call = write.node(Op::Rule(rule.clone()), product(rule.params.clone()), rule.result.clone());
        let mut comb = write.seq(args, call);
        for (context, ty) in contexts.iter().zip(&rule.params).rev() {
            let to = Type::fun(ty.clone(), comb.to.clone());
            comb = write.node(Op::Curry(comb), context.ty.clone(), to);
        }
        let image = function(linker, &comb, Free::none())?;
        Ok(At(rule.span).term(TermKind::Lambda(image)))
    }

    /// `fun f x -> let r = f x in (fst r, fun dy -> the cotangent (snd r) dy as a value of the type of x)`
    fn pullback(&self, linker: &Linker, from: &Type, to: &Type) -> Made<Term> {
        let at = At::default();
        let (from2, to2) = (types::cotangents(linker, from, at.0)?, types::cotangents(linker, to, at.0)?);
        let (x, dy, x_adj) = (Var::fresh("x"), Var::fresh("dy"), Var::fresh("x_adj"));
        let seed = types::to_cotangent(linker, at, to, at.var(&dy))?;
        let result = types::from_cotangent(linker, at, from, at.var(&x), at.var(&x_adj))?;
        let ty = linker.image(self, &Type::fun(from.clone(), to.clone()));
        let pair = Type::tuple([to.clone(), Type::fun(to2, from2.clone())]);
        Ok(lambda(at, "f", &ty, |f| {
            let run = bind(at, "r", &pair, at.app(f, at.var(&x)), |r| {
                let swept = at.bind(&x_adj, from2, at.app(at.proj(r.clone(), 1), seed), result);
                at.tuple([at.proj(r, 0), at.lambda(&dy, to.clone(), swept)])
            });
            at.lambda(&x, from.clone(), run)
        }))
    }
}

/// The free variables of a term, as a context.
struct Free {
    context: Context,
    vars: Vec<(Var, Type)>,
}

impl Free {
    fn none() -> Self {
        Free { context: Context::empty(), vars: Vec::new() }
    }

    fn of(scope: &Scope, term: &Term) -> Self {
        let mut free = Free::none();
        for var in free_vars(term) {
            let Some(ty) = scope.get(&var) else { bug!("the type of the variable {var:?} is not known") };
            free.context = free.context.with(&var, ty);
            free.vars.push((var, ty.clone()));
        }
        free
    }

    /// The nested product of the variables, which have translated types now.
    fn value(&self, linker: &Linker, lowerer: &mut Lowerer) -> Value {
        let mut value = lowerer.tuple(vec![]);
        for (var, ty) in &self.vars {
            let next = lowerer.variable(var, &types::values(linker, ty));
            value = lowerer.tuple(vec![value, next]);
        }
        value
    }
}

/// The image of `curry t` at the free variables, as a function.
fn function(linker: &Linker, comb: &Comb, free: Free) -> Made<Arc<Lambda>> {
    let image = Macro::new(linker).reverse(comb)?;
    let Op::Curry(body) = &image.primal.op else { bug!("the image of a function is no function") };
    let mut lowerer = Lowerer::new(linker);
    let context = free.value(linker, &mut lowerer);
    let text = lowerer.function(body, &context, false, "x");
    match &*text.kind {
        TermKind::Lambda(l) => Ok(l.clone()),
        _ => bug!("the image of a function is no function"),
    }
}

/// A function on its way through the mode, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steps {
    /// The function as a combinator.
    pub combinators: String,
    /// The primal and the transposed derivative.
    pub reversed: String,
}

/// The steps of the definition behind a key, which must be a function. The last step is the definition of `Derived { Combinator, of }`.
pub fn steps(linker: &Linker, global: &Global) -> Made<Steps> {
    let definition = linker.make(global)?;
    let Some(TermKind::Lambda(lambda)) = definition.term.as_ref().map(|t| &*t.kind) else {
        let span = definition.term.as_ref().map_or(Span::default(), |t| t.span);
        let construct = "a definition that is not written as a function";
        return Err(Box::new(Refusal::Construct { mode: Mode::Combinator, construct, span }));
    };
    let mut scope = Default::default();
    if let Some(term) = &definition.term {
        add_binder_types(term, &mut scope);
    }
    let comb = Compiler::new(linker, &scope).lambda(&Context::empty(), lambda)?;
    // The body, from the pair of nothing and the argument: the derivative of the function by its argument.
    let Op::Curry(body) = &comb.op else { bug!("a function is no function") };
    let image = Macro::new(linker).reverse(body)?;
    Ok(Steps {
        combinators: print::print(&[Named { name: "f", comb: &comb, linear: false }]),
        reversed: print::print(&[
            Named { name: "primal", comb: &image.primal, linear: false },
            Named { name: "linear", comb: &image.linear, linear: true },
        ]),
    })
}
