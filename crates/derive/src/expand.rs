//! Derivative forms to core: `grad f x` becomes a wrapper applied to the image of `f` ([`crate::forms`]).
//!
//! The image of `f` under a mode is pushed into its text as far as that allows ([`Expander::lift`]): a global becomes its derived
//! global, an explicit function becomes a hidden definition whose derived global is applied to what it captures, data get zero
//! derivatives. What is left, a function that is only known when the program runs, becomes the term `Lift`.

use crate::forms::{JACOBIAN, JACOBIAN_COLUMNS, PULLBACK, PUSHFORWARD, TAYLOR};
use crate::mode::{rules, ModeRules};
use crate::typing::parameter_type;
use crate::wrappers::{self, global};
use crate::write::{checking_prim, compare_int, is_atom, try_map_children, Lets};
use crate::{Linker, Made, Refusal};
use gradus_core::build::At;
use gradus_core::traverse::{add_binder_types, free_vars, with_stack};
use gradus_core::{Arm, Body, Checked, DeriveOp, Global, Lambda, Mode, Prim, Symbol, Term, TermKind, Type, Var};
use gradus_source::bug;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Expands the forms of one definition.
pub struct Expander<'a> {
    linker: &'a Linker,
    /// Of all variables of the definition.
    types: FxHashMap<Var, Type>,
    /// The definition, for the names of hidden ones.
    name: Symbol,
    arguments: Arc<[Type]>,
    hidden: usize,
}

impl<'a> Expander<'a> {
    pub fn new(linker: &'a Linker, name: Symbol, arguments: Arc<[Type]>, term: &Term) -> Self {
        let mut types = FxHashMap::default();
        add_binder_types(term, &mut types);
        Expander { linker, types, name, arguments, hidden: 0 }
    }

    pub fn term(&mut self, term: &Term) -> Made<Term> {
        with_stack(|| {
            let inner = try_map_children(term, |child| self.term(child))?;
            match &*inner.kind {
                TermKind::Derive { op, types, args } => self.form(At(term.span), *op, types, args),
                _ => Ok(inner),
            }
        })
    }

    /// One arm per derivative form. Arguments are evaluated in order, the image of the function first.
    fn form(&mut self, at: At, op: DeriveOp, types: &[Type], args: &[Term]) -> Made<Term> {
        let reverse = self.linker.settings().reverse;
        match (op, types, args) {
            (DeriveOp::Grad, [a], [f, x]) => {
                let result = self.pullback(at, "grad", reverse, a, &Type::Real, f, x)?;
                Ok(at.app(at.proj(result, 1), at.real(1.0)))
            }
            (DeriveOp::ValueAndGrad, [a], [f, x]) => {
                let mut lets = Lets::default();
                let result = self.pullback(at, "value_and_grad", reverse, a, &Type::Real, f, x)?;
                let result = lets.bind(at, "result", &pullback_type(a, &Type::Real), result);
                let gradient = at.app(at.proj(result.clone(), 1), at.real(1.0));
                Ok(lets.wrap(at, at.tuple([at.proj(result, 0), gradient])))
            }
            (DeriveOp::Vjp, [a, b], [f, x, dy]) => {
                let mut lets = Lets::default();
                let result = self.pullback(at, "vjp", reverse, a, b, f, x)?;
                let result = lets.bind(at, "result", &pullback_type(a, b), result);
                let dy = self.of_shape(at, Checked::Cotangent, b, || at.proj(result.clone(), 0), dy.clone());
                Ok(lets.wrap(at, at.app(at.proj(result.clone(), 1), dy)))
            }
            (DeriveOp::Jvp, [a, b], [f, x, dx]) => Ok(at.proj(self.pushforward(at, "jvp", a, b, f, x, dx)?, 1)),
            (DeriveOp::Pullback, [a, b], [f, x]) => {
                let mut lets = Lets::default();
                let result = self.pullback(at, "pullback", reverse, a, b, f, x)?;
                let result = lets.bind(at, "result", &pullback_type(a, b), result);
                let value = || at.proj(result.clone(), 0);
                let back = crate::write::lambda(at, "dy", b, |dy| {
                    at.app(at.proj(result.clone(), 1), self.of_shape(at, Checked::Cotangent, b, value, dy))
                });
                Ok(lets.wrap(at, at.tuple([value(), back])))
            }
            (DeriveOp::Linearize, [a, b], [f, x]) => self.linearize(at, a, b, f, x),
            (DeriveOp::Jacobian, [a, b], [f, x]) => self.jacobian(at, reverse, a, b, f, x),
            (DeriveOp::Hessian, [a], [f, x]) => {
                // Forward over reverse, one column for each input.
                let mut lets = Lets::default();
                let gradient = self.gradient_function(at, &mut lets, a, f)?;
                let lifted = self.lift(Mode::Forward, &gradient, &Type::fun(a.clone(), a.clone()))?;
                let wrapper = global(at, JACOBIAN_COLUMNS, &[Mode::Forward], [a.clone(), a.clone()]);
                Ok(lets.wrap(at, at.apps(wrapper, [lifted, x.clone()])))
            }
            (DeriveOp::Hvp, [a], [f, x, v]) => {
                let mut lets = Lets::default();
                let gradient = self.gradient_function(at, &mut lets, a, f)?;
                let result = self.pushforward(at, "hvp", a, a, &gradient, x, v)?;
                Ok(lets.wrap(at, at.proj(result, 1)))
            }
            (DeriveOp::Diff, _, [f, x]) => {
                let real = Type::Real;
                Ok(at.proj(self.pushforward(at, "diff", &real, &real, f, x, &at.real(1.0))?, 1))
            }
            (DeriveOp::Taylor, _, [order, f, x]) => {
                let lifted = self.lift(Mode::Tower, f, &Type::fun(Type::Real, Type::Real))?;
                // The coefficients of x itself, 1 and zeros: as many as are asked for.
                let item = crate::write::lambda(at, "i", &Type::Int, |i| {
                    let is_first = compare_int(at, Prim::Equal, i, at.int(0));
                    at.if_(is_first, at.real(1.0), at.real(0.0))
                });
                let seed = checking_prim(at, Checked::Order, Prim::Build, &Type::Real, vec![order.clone(), item]);
                Ok(at.apps(global(at, TAYLOR, &[Mode::Tower], []), [lifted, seed, x.clone()]))
            }
            (
                DeriveOp::Grad
                | DeriveOp::ValueAndGrad
                | DeriveOp::Vjp
                | DeriveOp::Jvp
                | DeriveOp::Pullback
                | DeriveOp::Linearize
                | DeriveOp::Jacobian
                | DeriveOp::Hessian
                | DeriveOp::Hvp,
                _,
                _,
            )
            | (DeriveOp::Diff | DeriveOp::Taylor, _, _) => bug!("{op:?} with {} arguments", args.len()),
        }
    }

    /// `pullback (lift f) x : b * (b -> a)`
    #[allow(clippy::too_many_arguments)]
    fn pullback(
        &mut self,
        at: At,
        form: &'static str,
        mode: Mode,
        a: &Type,
        b: &Type,
        f: &Term,
        x: &Term,
    ) -> Made<Term> {
        if !rules(mode, at.0)?.capabilities().vjp {
            return Err(Box::new(Refusal::Form { mode, form, span: at.0 }));
        }
        let lifted = self.lift(mode, f, &Type::fun(a.clone(), b.clone()))?;
        Ok(at.apps(global(at, PULLBACK, &[mode], [a.clone(), b.clone()]), [lifted, x.clone()]))
    }

    /// The mode of `jvp`, `linearize` and `diff`: forward, whatever serves the reverse forms.
    fn forward_mode(&self, at: At, form: &'static str) -> Made<Mode> {
        let mode = Mode::Forward;
        match rules(mode, at.0)?.capabilities().jvp {
            true => Ok(mode),
            false => Err(Box::new(Refusal::Form { mode, form, span: at.0 })),
        }
    }

    /// `pushforward (lift f) x dx : b * b`
    #[allow(clippy::too_many_arguments)]
    fn pushforward(
        &mut self,
        at: At,
        form: &'static str,
        a: &Type,
        b: &Type,
        f: &Term,
        x: &Term,
        dx: &Term,
    ) -> Made<Term> {
        let mode = self.forward_mode(at, form)?;
        let mut lets = Lets::default();
        let lifted = self.lift(mode, f, &Type::fun(a.clone(), b.clone()))?;
        let function = rules(mode, at.0)?;
        let lifted = lets.bind(at, "f", &self.linker.image(function, &Type::fun(a.clone(), b.clone())), lifted);
        let x = lets.bind(at, "x", a, x.clone());
        let dx = self.of_shape(at, Checked::Tangent, a, || x.clone(), dx.clone());
        Ok(lets.wrap(at, at.apps(global(at, PUSHFORWARD, &[mode], [a.clone(), b.clone()]), [lifted, x, dx])))
    }

    /// The value, and the linear map that runs the translated function again for each tangent.
    fn linearize(&mut self, at: At, a: &Type, b: &Type, f: &Term, x: &Term) -> Made<Term> {
        let mode = self.forward_mode(at, "linearize")?;
        let mut lets = Lets::default();
        let ty = Type::fun(a.clone(), b.clone());
        let lifted = self.lift(mode, f, &ty)?;
        let lifted = lets.bind(at, "f", &self.linker.image(rules(mode, at.0)?, &ty), lifted);
        let x = lets.bind(at, "x", a, x.clone());
        let wrapper = || global(at, PUSHFORWARD, &[mode], [a.clone(), b.clone()]);
        let zero = at.prim_at(Prim::ZeroLike, [a.clone()], [x.clone()]);
        let value = at.proj(at.apps(wrapper(), [lifted.clone(), x.clone(), zero]), 0);
        let map = crate::write::lambda(at, "dx", a, |dx| {
            let dx = self.of_shape(at, Checked::Tangent, a, || x.clone(), dx);
            at.proj(at.apps(wrapper(), [lifted, x.clone(), dx]), 1)
        });
        Ok(lets.wrap(at, at.tuple([value, map])))
    }

    fn jacobian(&mut self, at: At, reverse: Mode, a: &Type, b: &Type, f: &Term, x: &Term) -> Made<Term> {
        let forward = self.forward_mode(at, "jacobian")?;
        let mut lets = Lets::default();
        let ty = Type::fun(a.clone(), b.clone());
        let f = self.known_or_bound(at, &mut lets, &ty, f)?;
        let columns = self.lift(forward, &f, &ty)?;
        let types = [a.clone(), b.clone()];
        let result = if reverse == forward {
            at.apps(global(at, JACOBIAN_COLUMNS, &[forward], types), [columns, x.clone()])
        } else {
            let rows = self.lift(reverse, &f, &ty)?;
            at.apps(global(at, JACOBIAN, &[forward, reverse], types), [columns, rows, x.clone()])
        };
        Ok(lets.wrap(at, result))
    }

    /// `fun x -> grad f x`
    fn gradient_function(&mut self, at: At, lets: &mut Lets, a: &Type, f: &Term) -> Made<Term> {
        let f = self.known_or_bound(at, lets, &Type::fun(a.clone(), Type::Real), f)?;
        let x = Var::fresh("x");
        self.types.insert(x.clone(), a.clone());
        let gradient = self.form(at, DeriveOp::Grad, std::slice::from_ref(a), &[f, at.var(&x)])?;
        Ok(at.lambda(&x, a.clone(), gradient))
    }

    /// A function that can be written twice: an explicit one becomes a hidden definition, others are bound to a variable.
    fn known_or_bound(&mut self, at: At, lets: &mut Lets, ty: &Type, f: &Term) -> Made<Term> {
        match &*f.kind {
            TermKind::Global(_) => Ok(f.clone()),
            TermKind::Lambda(_) => {
                let (hidden, captured) = self.hide(f, ty)?;
                Ok(at.apps(at.global(hidden), captured.iter().map(|(v, _)| at.var(v))))
            }
            _ if is_atom(f) => Ok(f.clone()),
            _ => {
                let var = Var::fresh("f");
                self.types.insert(var.clone(), ty.clone());
                lets.bind_var(var.clone(), ty.clone(), f.clone());
                Ok(at.var(&var))
            }
        }
    }

    /// `dx`, checked to have the shape of `x` where the user can see it: `zero_like x <+> dx`.
    fn of_shape(&self, at: At, what: Checked, ty: &Type, x: impl FnOnce() -> Term, dx: Term) -> Term {
        let contents = self.linker.contents(ty);
        if !(contents.shapes && contents.reals) {
            return dx;
        }
        let zero = at.prim_at(Prim::ZeroLike, [ty.clone()], [x()]);
        checking_prim(at, what, Prim::VectorAdd, ty, vec![zero, dx])
    }

    /// The image of `term : ty` under a mode, its variables having no derivatives.
    fn lift(&mut self, mode: Mode, term: &Term, ty: &Type) -> Made<Term> {
        with_stack(|| {
            let at = At(term.span);
            if self.linker.contents(ty).is_data() {
                return wrappers::lift(self.linker, at, mode, ty, term.clone());
            }
            let rules = rules(mode, term.span)?;
            let kind = match &*term.kind {
                TermKind::Global(of) => TermKind::Global(Global::Derived { mode, of: Arc::new(of.clone()) }),
                TermKind::Lambda(_) => return self.lift_function(at, rules, term, ty),
                TermKind::Let { var, scheme, bound, body } => TermKind::Let {
                    var: var.clone(),
                    scheme: scheme.clone(),
                    bound: bound.clone(),
                    body: self.lift(mode, body, ty)?,
                },
                TermKind::LetRec { bindings, body } => {
                    TermKind::LetRec { bindings: bindings.clone(), body: self.lift(mode, body, ty)? }
                }
                TermKind::If { condition, then, otherwise } => TermKind::If {
                    condition: condition.clone(),
                    then: self.lift(mode, then, ty)?,
                    otherwise: self.lift(mode, otherwise, ty)?,
                },
                TermKind::Case { scrutinee, arms, default } => {
                    let mut lifted = Vec::new();
                    for arm in arms {
                        let body = self.lift(mode, &arm.body, ty)?;
                        lifted.push(Arm { tag: arm.tag, vars: arm.vars.clone(), body });
                    }
                    let default = default.as_ref().map(|d| self.lift(mode, d, ty)).transpose()?;
                    TermKind::Case { scrutinee: scrutinee.clone(), arms: lifted, default }
                }
                TermKind::App(function, argument) if self.only_waits(term) => {
                    let function_type = self.linker.type_of(&self.types, function)?;
                    let argument = self.lift(mode, argument, &parameter_type(&function_type))?;
                    let function = self.lift(mode, function, &function_type)?;
                    return Ok(rules.partial_application(at, function, argument));
                }
                TermKind::Var(..)
                | TermKind::App(..)
                | TermKind::Prim { .. }
                | TermKind::Tuple(_)
                | TermKind::Proj { .. }
                | TermKind::Construct { .. }
                | TermKind::ArrayLiteral { .. }
                | TermKind::Lift { .. } => TermKind::Lift { under: vec![], mode, ty: ty.clone(), term: term.clone() },
                TermKind::Literal(_) => bug!("a literal of function type"),
                TermKind::Derive { op, .. } => bug!("{op:?} inside was not expanded"),
            };
            Ok(at.term(kind))
        })
    }

    /// `fun x -> b` with captured variables v: the derived hidden definition, applied to the images of the variables.
    fn lift_function(&mut self, at: At, mode: &dyn ModeRules, term: &Term, ty: &Type) -> Made<Term> {
        let (hidden, captured) = self.hide(term, ty)?;
        let mut image = at.global(Global::Derived { mode: mode.mode(), of: Arc::new(hidden) });
        for (var, ty) in captured {
            let lifted = self.lift(mode.mode(), &at.var(&var), &ty)?;
            image = mode.partial_application(at, image, lifted);
        }
        Ok(image)
    }

    /// Moves an explicit function to a definition of its own, with what it captures as parameters.
    fn hide(&mut self, function: &Term, ty: &Type) -> Made<(Global, Vec<(Var, Type)>)> {
        // Functions that this pass wrote have binders that are new to it.
        add_binder_types(function, &mut self.types);
        let captured: Vec<(Var, Type)> = free_vars(function)
            .into_iter()
            .map(|v| match self.types.get(&v) {
                Some(ty) => (v, ty.clone()),
                None => bug!("the type of the variable {v:?} is not known"),
            })
            .collect();
        let term = At(function.span).lambdas(&captured, function.clone());
        let ty = Type::funs(captured.iter().map(|(_, t)| t.clone()).collect::<Vec<_>>(), ty.clone());
        self.hidden += 1;
        let name: Symbol = format!("{}#{}", self.name, self.hidden).into();
        let global = self.linker.hide(name, self.arguments.clone(), ty, term)?;
        Ok((global, captured))
    }

    /// Whether a term is a definition applied to fewer arguments than its text takes, so that applying it computes nothing.
    fn only_waits(&self, term: &Term) -> bool {
        let (mut head, mut arguments) = (term, 0);
        while let TermKind::App(function, _) = &*head.kind {
            head = function;
            arguments += 1;
        }
        let TermKind::Global(Global::Source { name, .. }) = &*head.kind else { return false };
        let parameters = |text: &Term| {
            let (mut text, mut count) = (text, 0);
            while let TermKind::Lambda(l) = &*text.kind {
                let lambda: &Lambda = l;
                text = &lambda.body;
                count += 1;
            }
            count
        };
        if let TermKind::Global(global) = &*head.kind {
            if let Some(hidden) = self.linker.hidden(global) {
                return hidden.term.as_ref().is_some_and(|text| parameters(text) > arguments);
            }
        }
        match self.linker.program().defs.get(name) {
            Some(def) if def.rules.arity > 0 => def.rules.arity > arguments,
            Some(def) => matches!(&def.body, Body::Term(text) if parameters(text) > arguments),
            None => false,
        }
    }
}

fn pullback_type(a: &Type, b: &Type) -> Type {
    Type::tuple([b.clone(), Type::fun(b.clone(), a.clone())])
}
