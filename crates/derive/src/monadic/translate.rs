//! The monadic translation of terms: K Fig. 9, with arrays (section 10.2), arbitrary primitives (Fig. 14), recursion and iteration (N Fig. 4.9) and
//! recursive types (N Fig. 8.15).
//!
//! Invariant: if G |- e : A, then D(G) |- D(e) : M D(A). The translation starts from the text of `named`, and what it makes of a term is an
//! [`Image`]: a value of type D(A) where nothing is bound on the way to it, else a computation. It is `BT` of `proofs/Monadic.v`, arm by arm, and
//! `cargo xtask oracle` compares the two texts.

use super::image::{bind, bind_all, returning, Image, Part};
use super::stateful::{Recorded, Stateful};
use crate::activity::Activity;
use crate::dual::{image_of_global, lifted_again, one_type};
use crate::primal::constructor_test;
use crate::prims::{treatment, Treatment};
use crate::scope::Scope;
use crate::stopped::stopped;
use crate::typing::{parameter_type, result_type};
use crate::write::watched_prim;
use crate::{wrappers, Linker, Made};
use gradus_core::build::At;
use gradus_core::traverse::with_stack;
use gradus_core::{Arm, Global, Lambda, Literal, Prim, Scheme, Term, TermKind, Type, Var};
use gradus_source::bug;
use std::sync::Arc;

pub fn lambda(mode: &dyn Stateful, linker: &Linker, lambda: &Arc<Lambda>) -> Made<Arc<Lambda>> {
    let named = linker.named(lambda)?;
    let scope = linker.scope(&named);
    let activity = Activity::of(linker, &scope, &named.body);
    let image = Translation { mode, linker, scope: &scope, activity }.lambda(&named)?;
    let origin = Some((mode.mode(), lambda.clone()));
    Ok(Arc::new(Lambda { param: image.param.clone(), ty: image.ty.clone(), body: image.body.clone(), origin }))
}

/// D of a term that binds nothing.
pub fn value(mode: &dyn Stateful, linker: &Linker, scope: &Scope, term: &Term) -> Made<Term> {
    let (scope, term) = linker.named_term(scope, term)?;
    let activity = Activity::of(linker, &scope, &term);
    let image = Translation { mode, linker, scope: &scope, activity }.image(&term)?;
    match image {
        Image::Value(value) => Ok(value),
        Image::Computation(_) => bug!("a term that was said to do no arithmetic does"),
    }
}

pub(super) struct Translation<'a> {
    pub(super) mode: &'a dyn Stateful,
    linker: &'a Linker,
    scope: &'a Scope,
    activity: Activity,
}

impl<'a> Translation<'a> {
    pub(super) fn ty(&self, ty: &Type) -> Type {
        self.linker.image(self.mode, ty)
    }

    fn tys(&self, types: &Arc<[Type]>) -> Arc<[Type]> {
        types.iter().map(|t| self.ty(t)).collect()
    }

    fn type_of(&self, term: &Term) -> Made<Type> {
        self.linker.type_of(self.scope, term)
    }

    /// D(fun x -> e) = fun x -> D(e)
    fn lambda(&mut self, l: &Arc<Lambda>) -> Made<Arc<Lambda>> {
        let at = At(l.body.span);
        let body = self.with_state(at, &l.body)?;
        let origin = Some((self.mode.mode(), l.clone()));
        Ok(Arc::new(Lambda { param: l.param.clone(), ty: self.ty(&l.ty), body, origin }))
    }

    /// `fun s -> D(e) s`
    fn with_state(&mut self, at: At, term: &Term) -> Made<Term> {
        let image = self.image(term)?;
        let state = Var::fresh("s");
        let body = image.at_state(at, at.var(&state));
        Ok(at.lambda(&state, self.mode.state(), body))
    }

    /// What is computed from the results of several terms: a value if they are values.
    pub(super) fn of_images(
        &mut self,
        at: At,
        images: Vec<Image<'a>>,
        types: impl Fn(usize) -> Made<Type>,
        write: impl FnOnce(Vec<Term>) -> Term + 'a,
    ) -> Made<Image<'a>> {
        if images.iter().all(|image| matches!(image, Image::Value(_))) {
            return Ok(Image::Value(write(values(images))));
        }
        let parts = self.parts(images, types)?;
        Ok(Image::Computation(bind_all(self.mode, at, parts, move |vars, state| returning(at, write(vars), &state))))
    }

    pub(super) fn parts(&self, images: Vec<Image<'a>>, types: impl Fn(usize) -> Made<Type>) -> Made<Vec<Part<'a>>> {
        let part = |(i, image)| Ok(Part { image, var: Var::fresh("x"), ty: types(i)? });
        images.into_iter().enumerate().map(part).collect()
    }

    fn images(&mut self, terms: &[Term]) -> Made<Vec<Image<'a>>> {
        terms.iter().map(|t| self.image(t)).collect()
    }

    /// A construct of the images of several terms.
    fn of_terms(&mut self, at: At, terms: &[Term], write: impl FnOnce(Vec<Term>) -> Term + 'a) -> Made<Image<'a>> {
        let images = self.images(terms)?;
        let (linker, scope, mode) = (self.linker, self.scope, self.mode);
        let ty = |i: usize| Ok(linker.image(mode, &linker.type_of(scope, &terms[i])?));
        self.of_images(at, images, ty, write)
    }

    /// One arm per rule, in the order of K Fig. 9.
    pub(super) fn image(&mut self, term: &Term) -> Made<Image<'a>> {
        with_stack(|| {
            let at = At(term.span);
            if let Some(ty) = self.activity.kept(self.linker, self.scope, term)? {
                let kept = wrappers::lift(self.linker, at, self.mode.mode(), &ty, term.clone())?;
                return Ok(Image::Value(kept));
            }
            match &*term.kind {
                // D(x) = pure x
                TermKind::Var(..) => Ok(Image::Value(term.clone())),
                // D(fun x -> e) = pure (fun x -> D(e))
                TermKind::Lambda(l) => Ok(Image::Value(at.term(TermKind::Lambda(self.lambda(l)?)))),
                // D(let x = e1 in e2) = do { x <- D(e1); D(e2) }
                TermKind::Let { var, scheme, bound, body } => {
                    let (bound, body) = (self.image(bound)?, self.image(body)?);
                    let (var, ty) = (var.clone(), self.ty(&scheme.ty));
                    Ok(match (bound, body) {
                        (Image::Value(bound), Image::Value(body)) => Image::Value(at.bind(&var, ty, bound, body)),
                        (image, body) => {
                            let rest = Box::new(move |state| body.at_state(at, state));
                            Image::Computation(bind(self.mode, at, Part { image, var, ty }, rest))
                        }
                    })
                }
                // D(e1 e2) = do { f <- D(e1); x <- D(e2); f x }
                TermKind::App(function, argument) => match lifted_again(self.mode, function) {
                    Some(lift) => {
                        let function = at.global(lift);
                        self.of_terms(at, std::slice::from_ref(argument), move |mut args| {
                            at.apps(function, args.drain(..))
                        })
                    }
                    None => {
                        let ty = self.type_of(function)?;
                        let images = vec![self.image(function)?, self.image(argument)?];
                        Ok(self.application(at, images, &ty))
                    }
                },
                // D(inl e) = do { x <- D(e); pure (inl x) }
                TermKind::Construct { name, types, tag, args } => {
                    let (name, types, tag) = (self.linker.image_name(self.mode.mode(), name), self.tys(types), *tag);
                    self.of_terms(at, args, move |args| at.term(TermKind::Construct { name, types, tag, args }))
                }
                // D(case e0 of inl x1 -> e1, inr x2 -> e2) = do { x <- D(e0); case x of inl x1 -> D(e1), inr x2 -> D(e2) }
                TermKind::Case { scrutinee, arms, default } => {
                    let ty = self.type_of(scrutinee)?;
                    let scrutinee = self.image(scrutinee)?;
                    let bodies: Vec<&Term> = arms.iter().map(|a| &a.body).chain(default).collect();
                    let heads: Vec<_> = arms.iter().map(|arm| self.head(arm)).collect();
                    let has_default = default.is_some();
                    self.choice(at, scrutinee, &ty, &bodies, move |scrutinee, mut bodies| {
                        let default = if has_default { bodies.pop() } else { None };
                        let arm = |((tag, vars), body)| Arm { tag, vars, body };
                        at.case(scrutinee, heads.into_iter().zip(bodies).map(arm).collect(), default)
                    })
                }
                TermKind::If { condition, then, otherwise } => {
                    let condition = self.primal(condition, &Type::Bool)?;
                    self.choice(at, condition, &Type::Bool, &[then, otherwise], move |condition, mut bodies| {
                        let (otherwise, then) = (bodies.pop(), bodies.pop());
                        match (then, otherwise) {
                            (Some(then), Some(otherwise)) => at.if_(condition, then, otherwise),
                            _ => bug!("two branches became fewer"),
                        }
                    })
                }
                // D((e1, e2)) = do { x <- D(e1); y <- D(e2); pure (x, y) }
                TermKind::Tuple(items) => self.of_terms(at, items, move |items| at.tuple(items)),
                // D(fst e) = do { x <- D(e); pure (fst x) }
                TermKind::Proj { index, term } => {
                    let index = *index;
                    self.of_terms(at, std::slice::from_ref(term), move |mut terms| match terms.pop() {
                        Some(term) => at.proj(term, index),
                        None => bug!("a projection of nothing"),
                    })
                }
                // D(k) = pure k and D(r) = pure (r, Zero)
                TermKind::Literal(literal) => Ok(Image::Value(match literal {
                    Literal::Real(_) => self.mode.constant(at, term.clone()),
                    Literal::Int(_) | Literal::Bool(_) | Literal::String(_) | Literal::Unit => term.clone(),
                })),
                TermKind::Prim { prim, types, args, .. } => self.prim(at, *prim, types, args),
                // K section 7.5
                TermKind::Global(global) => {
                    Ok(Image::Value(at.global(image_of_global(self.mode, self.linker, global)?)))
                }
                TermKind::LetRec { bindings, body } => self.recursive(at, bindings, body),
                TermKind::ArrayLiteral { element, items } => {
                    let element = self.ty(element);
                    self.of_terms(at, items, move |items| at.term(TermKind::ArrayLiteral { element, items }))
                }
                TermKind::Lift { under, mode, ty, term } => {
                    let under = std::iter::once(self.mode.mode()).chain(under.iter().copied()).collect();
                    let (mode, ty) = (*mode, ty.clone());
                    self.of_terms(at, std::slice::from_ref(term), move |mut terms| match terms.pop() {
                        Some(term) => at.term(TermKind::Lift { under, mode, ty, term }),
                        None => bug!("nothing to be lifted"),
                    })
                }
                TermKind::Derive { op, .. } => bug!("{op:?} was not expanded before differentiation"),
            }
        })
    }

    /// The application of the first image, a function of the given type, to the second.
    pub(super) fn application(&self, at: At, images: Vec<Image<'a>>, ty: &Type) -> Image<'a> {
        let call = move |terms: Vec<Term>, state: Term| match &terms[..] {
            [function, argument] => at.apps(function.clone(), [argument.clone(), state]),
            _ => bug!("an application of {} terms", terms.len()),
        };
        if images.iter().all(|image| matches!(image, Image::Value(_))) {
            let terms = values(images);
            return Image::Computation(Box::new(move |state| call(terms, state)));
        }
        let types = [self.ty(ty), self.ty(&parameter_type(ty))];
        let part = |(image, ty)| Part { image, var: Var::fresh("x"), ty };
        let parts = images.into_iter().zip(types).map(part).collect();
        Image::Computation(bind_all(self.mode, at, parts, call))
    }

    /// The tag and the translated variables of an arm.
    fn head(&self, arm: &Arm) -> (usize, Vec<(Var, Type)>) {
        (arm.tag, arm.vars.iter().map(|(v, t)| (v.clone(), self.ty(t))).collect())
    }

    /// A choice between branches: of values if none of them binds anything, else of computations.
    fn choice(
        &mut self,
        at: At,
        scrutinee: Image<'a>,
        ty: &Type,
        bodies: &[&Term],
        write: impl FnOnce(Term, Vec<Term>) -> Term + 'a,
    ) -> Made<Image<'a>> {
        let images = bodies.iter().map(|body| self.image(body)).collect::<Made<Vec<_>>>()?;
        let scrutinee = match scrutinee {
            Image::Value(scrutinee) if images.iter().all(|image| matches!(image, Image::Value(_))) => {
                return Ok(Image::Value(write(scrutinee, values(images))));
            }
            scrutinee => scrutinee,
        };
        let at_state = move |scrutinee, state: Term| {
            write(scrutinee, images.into_iter().map(|image| image.at_state(at, state.clone())).collect())
        };
        Ok(Image::Computation(match scrutinee {
            Image::Value(scrutinee) => Box::new(move |state| at_state(scrutinee, state)),
            image => {
                let var = Var::fresh("x");
                let scrutinee = at.var(&var);
                let rest = Box::new(move |state| at_state(scrutinee, state));
                bind(self.mode, at, Part { image, var, ty: self.ty(ty) }, rest)
            }
        }))
    }

    fn recursive(&mut self, at: At, bindings: &[(Var, Scheme, Term)], body: &Term) -> Made<Image<'a>> {
        let mut images = Vec::new();
        for (var, scheme, bound) in bindings {
            match self.image(bound)? {
                Image::Value(bound) => images.push((var.clone(), self.ty(&scheme.ty), bound)),
                Image::Computation(_) => bug!("a recursive definition of what is no function"),
            }
        }
        Ok(match self.image(body)? {
            Image::Value(body) => Image::Value(at.letrec(images, body)),
            body => Image::Computation(Box::new(move |state| at.letrec(images, body.at_state(at, state)))),
        })
    }

    /// The value of `term : ty`, a data type, without derivatives; see [`crate::primal`].
    fn primal(&mut self, term: &Term, ty: &Type) -> Made<Image<'a>> {
        let at = At(term.span);
        if self.activity.is_constant(term) {
            return Ok(Image::Value(term.clone()));
        }
        if let TermKind::Prim { prim, types, args, .. } = &*term.kind {
            if treatment(*prim).is_arithmetic() {
                return self.of_primals(at, *prim, types, args);
            }
        }
        let image = self.image(term)?;
        if self.linker.contents(ty).is_leaf() {
            return Ok(image);
        }
        let var = Var::fresh("x");
        let of_var = wrappers::primal(self.linker, at, self.mode, ty, at.var(&var))?;
        Ok(match image {
            Image::Value(value) => Image::Value(wrappers::primal(self.linker, at, self.mode, ty, value)?),
            image => {
                let part = Part { image, var, ty: self.ty(ty) };
                Image::Computation(bind(self.mode, at, part, Box::new(move |state| returning(at, of_var, &state))))
            }
        })
    }

    /// A primitive applied to the primal parts of its arguments.
    fn of_primals(&mut self, at: At, prim: Prim, types: &Arc<[Type]>, args: &[Term]) -> Made<Image<'a>> {
        if let Some((other, tag, equal)) = constructor_test(prim, args) {
            let ty = self.type_of(other)?;
            let image = self.image(other)?;
            let arm = Arm { tag, vars: vec![], body: at.bool(equal) };
            let write = move |mut terms: Vec<Term>| match terms.pop() {
                Some(other) => at.case(other, vec![arm], Some(at.bool(!equal))),
                None => bug!("a test of nothing"),
            };
            let ty = self.ty(&ty);
            return self.of_images(at, vec![image], move |_| Ok(ty.clone()), write);
        }
        let params = prim.info().params_at(types);
        let mut images = Vec::new();
        for i in order(prim, args.len()) {
            images.push(self.primal(&args[i], &params[i])?);
        }
        let (types, count) = (types.clone(), args.len());
        let ty = move |i: usize| Ok(params[order(prim, count)[i]].clone());
        self.of_images(at, images, ty, move |primals| watched_prim(at, prim, types, in_order(prim, primals)))
    }

    fn prim(&mut self, at: At, prim: Prim, types: &Arc<[Type]>, args: &[Term]) -> Made<Image<'a>> {
        match treatment(prim) {
            Treatment::Smooth => self.smooth(at, prim, args),
            // D(+_Z) = pure (fun (x, y) -> pure (x + y)), and N Fig. 4.9: D(sign r) = sign (fst D(r))
            Treatment::Primal => self.of_primals(at, prim, types, args),
            // K section 10.2: D(index) = pure (fun x -> pure (index x))
            Treatment::Structural => {
                let types = self.tys(types);
                self.of_terms(at, args, move |args| at.prim_at(prim, types, args))
            }
            Treatment::Build => self.build(at, &one_type(types), args),
            Treatment::Ifold => self.ifold(at, &one_type(types), args),
            Treatment::Iterate => self.iterate(at, types, args),
            Treatment::Polytypic(name) => self.polytypic(at, name, types, args),
            Treatment::StopGradient => {
                let ty = one_type(types);
                let (linker, mode, types) = (self.linker, self.mode.mode(), types.clone());
                let image = match stopped(linker, self.mode, self.scope, &args[0])? {
                    Some(value) => Image::Value(value),
                    None => self.primal(&args[0], &ty)?,
                };
                // Still cut off from the modes outside.
                let cut = move |value| at.prim_at(prim, types, [value]);
                let var = Var::fresh("x");
                Ok(match image {
                    Image::Value(value) => Image::Value(wrappers::lift(linker, at, mode, &ty, cut(value))?),
                    image => {
                        let lifted = wrappers::lift(linker, at, mode, &ty, cut(at.var(&var)))?;
                        let rest = Box::new(move |state| returning(at, lifted, &state));
                        Image::Computation(bind(self.mode, at, Part { image, var, ty }, rest))
                    }
                })
            }
            Treatment::Checkpoint => {
                let [from, to] = &types[..] else { bug!("`checkpoint` at {types:?}") };
                let images = self.images(args)?;
                let tys = [self.ty(&Type::fun(from.clone(), to.clone())), self.ty(from)];
                let parts = self.parts(images, |i| Ok(tys[i].clone()))?;
                let (linker, mode, to) = (self.linker, self.mode, to.clone());
                Ok(Image::Computation(bind_all(mode, at, parts, move |vars, state| {
                    let mut vars = vars.into_iter();
                    match (vars.next(), vars.next()) {
                        (Some(f), Some(x)) => mode.checkpoint(linker, at, &to, f, x, state),
                        _ => bug!("`checkpoint` without its parts"),
                    }
                })))
            }
        }
    }

    /// K Fig. 14: D(f) = fun (x1, u1) .. (xn, un) -> do { u <- record f; pure (f x1 .. xn, u) }
    fn smooth(&mut self, at: At, prim: Prim, args: &[Term]) -> Made<Image<'a>> {
        let params = &prim.info().params;
        let is_real = |i: usize| params[i] == Type::Real;
        let constant: Vec<bool> = args.iter().map(|arg| self.activity.is_constant(arg)).collect();
        let order = order(prim, args.len());
        let mode = self.mode;
        if !order.iter().any(|&i| is_real(i) && !constant[i]) {
            let mut images = Vec::new();
            for &i in &order {
                images.push(self.primal(&args[i], &params[i])?);
            }
            let ty = |i: usize| Ok(params[order[i]].clone());
            return self.of_images(at, images, ty, move |primals| {
                mode.constant(at, watched_prim(at, prim, [], in_order(prim, primals)))
            });
        }
        let mut parts = Vec::new();
        for &i in &order {
            let (image, ty) = match is_real(i) {
                true => (self.image(&args[i])?, mode.real()),
                false => (self.primal(&args[i], &params[i])?, params[i].clone()),
            };
            parts.push(Part { image, var: Var::fresh("d"), ty });
        }
        let kinds: Vec<(bool, bool)> = order.iter().map(|&i| (is_real(i), constant[i])).collect();
        Ok(Image::Computation(bind_all(mode, at, parts, move |vars, state| {
            let recorded = vars.into_iter().zip(kinds).map(|(var, (is_real, constant))| match (is_real, constant) {
                (false, _) => Recorded::Whole { primal: var },
                (true, true) => Recorded::Constant { primal: at.proj(var.clone(), 0), beside: at.proj(var, 1) },
                (true, false) => Recorded::Active { primal: at.proj(var.clone(), 0), beside: at.proj(var, 1) },
            });
            let recorded = in_order(prim, recorded.collect());
            let primals = recorded.iter().map(|arg| arg.primal().clone()).collect();
            let y = Var::fresh("y");
            let (beside, after) = mode.record(at, prim, &recorded, at.proj(state.clone(), 0), state);
            let pair = at.tuple([at.tuple([at.var(&y), beside]), after]);
            at.bind(&y, Type::Real, watched_prim(at, prim, [], primals), pair)
        })))
    }

    /// A function of the family, applied to one argument after the other.
    fn polytypic(&mut self, at: At, name: &'static str, types: &Arc<[Type]>, args: &[Term]) -> Made<Image<'a>> {
        let family = Global::Wrapper { name, modes: vec![], types: types.clone() };
        let mut ty = self.linker.global_type(&family)?;
        let mut image = Image::Value(at.global(image_of_global(self.mode, self.linker, &family)?));
        for arg in args {
            let images = vec![image, self.image(arg)?];
            image = self.application(at, images, &ty);
            ty = result_type(&ty);
        }
        Ok(image)
    }
}

fn values(images: Vec<Image>) -> Vec<Term> {
    let value = |image| match image {
        Image::Value(value) => value,
        Image::Computation(_) => bug!("a computation among values"),
    };
    images.into_iter().map(value).collect()
}

/// In which order the arguments of a primitive are evaluated: `polygamma` has its integer first, and no integer binds anything there.
fn order(prim: Prim, count: usize) -> Vec<usize> {
    match prim {
        Prim::Polygamma => (0..count).rev().collect(),
        _ => (0..count).collect(),
    }
}

/// The arguments as the primitive takes them.
fn in_order<T>(prim: Prim, mut args: Vec<T>) -> Vec<T> {
    if prim == Prim::Polygamma {
        args.reverse();
    }
    args
}
