//! The monadic translation of terms: K Fig. 9, with arrays (section 10.2), arbitrary primitives (Fig. 14), recursion and iteration (N Fig. 4.9) and
//! recursive types (N Fig. 8.15).
//!
//! Invariant: if G |- e : A, then D(G) |- D(e) : M D(A). We write a `do` block as the bindings that come before its
//! result, in order of evaluation: [`Translation::value`] adds the bindings of a term to the block at hand and gives a term for
//! its result, which computes nothing that matters; [`Translation::computation`] gives a term of type `D(A) * DeltaState` and is used where
//! the block ends, so that a call there stays a tail call. The state is only threaded through what can bind: a block
//! that leaves it as it was is an ordinary term.

use super::stateful::{with_state, Recorded, Stateful};
use crate::activity::Activity;
use crate::dual::{constant_image, image_of_global, lifted_again, one_type};
use crate::mode::ModeRules;
use crate::primal::{of_primals, primal, Translator};
use crate::prims::{treatment, Treatment};
use crate::scope::Scope;
use crate::stopped::stopped;
use crate::typing::result_type;
use crate::write::{bind, build_with_state, ifold, letrec, watched_prim, Lets};
use crate::{wrappers, Linker, Made};
use gradus_core::build::At;
use gradus_core::traverse::with_stack;
use gradus_core::{Arm, Global, Lambda, Literal, Prim, Term, TermKind, Type, Var};
use gradus_source::bug;
use std::sync::Arc;

pub fn lambda(mode: &dyn Stateful, linker: &Linker, scope: &Scope, lambda: &Arc<Lambda>) -> Made<Arc<Lambda>> {
    let activity = Activity::of(linker, scope, &lambda.body);
    let at = At(lambda.body.span);
    let state = mode.initial_state(at, at.int(0));
    Translation { mode, linker, scope, activity, lets: Lets::default(), state }.lambda(lambda)
}

/// D of a term that binds nothing.
pub fn value(mode: &dyn Stateful, linker: &Linker, scope: &Scope, term: &Term) -> Made<Term> {
    let at = At(term.span);
    let activity = Activity::of(linker, scope, term);
    let state = Var::fresh("s");
    let mut translation = Translation { mode, linker, scope, activity, lets: Lets::default(), state: at.var(&state) };
    let value = translation.value(term)?;
    if !is_variable(&translation.state, &state) {
        bug!("a term that was said to do no arithmetic does");
    }
    Ok(translation.lets.wrap(at, value))
}

fn is_variable(term: &Term, var: &Var) -> bool {
    matches!(&*term.kind, TermKind::Var(v, _) if v == var)
}

struct Translation<'a> {
    mode: &'a dyn Stateful,
    linker: &'a Linker,
    scope: &'a Scope,
    activity: Activity,
    /// The bindings of the block at hand.
    lets: Lets,
    /// The state after them: a variable.
    state: Term,
}

/// A finished block: its bindings, its result and the state after it.
struct Block {
    lets: Lets,
    value: Term,
    state: Term,
}

impl Block {
    fn leaves(&self, state: &Var) -> bool {
        is_variable(&self.state, state)
    }

    fn pure(self, at: At) -> Term {
        self.lets.wrap(at, self.value)
    }

    fn computation(self, at: At) -> Term {
        self.lets.wrap(at, at.tuple([self.value, self.state]))
    }
}

/// The end of a block: its result, with the state as it is then, or a term of type `D(A) * DeltaState`.
enum Tail {
    Value(Term),
    Pair(Term),
}

struct TailBlock {
    lets: Lets,
    tail: Tail,
    state: Term,
}

impl TailBlock {
    fn computation(self, at: At) -> Term {
        let pair = match self.tail {
            Tail::Value(value) => at.tuple([value, self.state]),
            Tail::Pair(pair) => pair,
        };
        self.lets.wrap(at, pair)
    }
}

impl Translator for Translation<'_> {
    fn linker(&self) -> &Linker {
        self.linker
    }

    fn rules(&self) -> &dyn ModeRules {
        self.mode
    }

    fn activity(&self) -> &Activity {
        &self.activity
    }

    fn image(&mut self, term: &Term) -> Made<Term> {
        self.value(term)
    }
}

impl Translation<'_> {
    fn ty(&self, ty: &Type) -> Type {
        self.linker.image(self.mode, ty)
    }

    fn tys(&self, types: &Arc<[Type]>) -> Arc<[Type]> {
        types.iter().map(|t| self.ty(t)).collect()
    }

    fn values(&mut self, terms: &[Term]) -> Made<Vec<Term>> {
        terms.iter().map(|t| self.value(t)).collect()
    }

    fn bind(&mut self, at: At, name: &str, ty: &Type, term: Term) -> Term {
        self.lets.bind(at, name, ty, term)
    }

    /// Runs `work` on a block of its own, which starts with the given state.
    fn inside<R>(&mut self, state: Term, work: impl FnOnce(&mut Self) -> Made<R>) -> Made<(Lets, Term, R)> {
        let lets = std::mem::take(&mut self.lets);
        let state = std::mem::replace(&mut self.state, state);
        let result = work(self);
        let lets = std::mem::replace(&mut self.lets, lets);
        let state = std::mem::replace(&mut self.state, state);
        Ok((lets, state, result?))
    }

    fn block(&mut self, state: Term, term: &Term) -> Made<Block> {
        let (lets, state, value) = self.inside(state, |inner| inner.value(term))?;
        Ok(Block { lets, value, state })
    }

    /// The block of a term as a term of type `D(A) * DeltaState`.
    fn computation_block(&mut self, state: Term, term: &Term) -> Made<Term> {
        Ok(self.tail_block(state, term)?.computation(At(term.span)))
    }

    fn tail_block(&mut self, state: Term, term: &Term) -> Made<TailBlock> {
        let (lets, state, tail) = self.inside(state, |inner| inner.computation(term))?;
        Ok(TailBlock { lets, tail, state })
    }

    /// `x <- pair`: takes the result and the state out of a computation.
    fn run(&mut self, at: At, ty: &Type, pair: Term) -> Term {
        let pair = self.bind(at, "r", &with_state(self.mode, ty.clone()), pair);
        let value = self.bind(at, "v", ty, at.proj(pair.clone(), 0));
        self.state = self.bind(at, "s", &self.mode.state(), at.proj(pair, 1));
        value
    }

    fn type_of(&self, term: &Term) -> Made<Type> {
        self.linker.type_of(self.scope, term)
    }

    /// D(fun x -> e) = fun x -> D(e)
    fn lambda(&mut self, l: &Arc<Lambda>) -> Made<Arc<Lambda>> {
        let at = At(l.body.span);
        let state = Var::fresh("s");
        let body = self.computation_block(at.var(&state), &l.body)?;
        let body = at.lambda(&state, self.mode.state(), body);
        let origin = Some((self.mode.mode(), l.clone()));
        Ok(Arc::new(Lambda { param: l.param.clone(), ty: self.ty(&l.ty), body, origin }))
    }

    /// The result of a term, after its bindings. One arm per rule, in the order of K Fig. 9.
    fn value(&mut self, term: &Term) -> Made<Term> {
        with_stack(|| {
            let at = At(term.span);
            if let Some(image) = constant_image(self, self.scope, term)? {
                return Ok(image);
            }
            let kind = match &*term.kind {
                // D(x) = pure x
                TermKind::Var(..) => return Ok(term.clone()),
                // D(fun x -> e) = pure (fun x -> D(e))
                TermKind::Lambda(l) => TermKind::Lambda(self.lambda(l)?),
                // D(let x = e1 in e2) = do { x <- D(e1); D(e2) }
                TermKind::Let { var, scheme, bound, body } => {
                    let bound = self.value(bound)?;
                    let ty = self.ty(&scheme.ty);
                    self.lets.bind_var(var.clone(), ty, bound);
                    return self.value(body);
                }
                // D(e1 e2) = do { f <- D(e1); x <- D(e2); f x }
                TermKind::App(function, argument) => match lifted_again(self.mode, function) {
                    Some(lift) => TermKind::App(at.global(lift), self.value(argument)?),
                    None => {
                        let ty = self.ty(&self.type_of(term)?);
                        let pair = self.call(at, function, argument)?;
                        return Ok(self.run(at, &ty, pair));
                    }
                },
                // D(inl e) = do { x <- D(e); pure (inl x) }
                TermKind::Construct { name, types, tag, args } => TermKind::Construct {
                    name: self.linker.image_name(self.mode.mode(), name),
                    types: self.tys(types),
                    tag: *tag,
                    args: self.values(args)?,
                },
                // D(case e0 of inl x1 -> e1, inr x2 -> e2) = do { x <- D(e0); case x of inl x1 -> D(e1), inr x2 -> D(e2) }
                TermKind::Case { scrutinee, arms, default } => {
                    let scrutinee = self.value(scrutinee)?;
                    let bodies: Vec<&Term> = arms.iter().map(|a| &a.body).chain(default).collect();
                    return self.branches(at, term, &bodies, |translation, mut images| {
                        let default = default.as_ref().and_then(|_| images.pop());
                        let arms = arms.iter().zip(images).map(|(arm, body)| translation.arm(arm, body)).collect();
                        at.case(scrutinee, arms, default)
                    });
                }
                TermKind::If { condition, then, otherwise } => {
                    let condition = primal(self, condition, &Type::Bool)?;
                    return self.branches(at, term, &[then, otherwise], |_, mut images| {
                        let (otherwise, then) = (images.pop(), images.pop());
                        match (then, otherwise) {
                            (Some(then), Some(otherwise)) => at.if_(condition, then, otherwise),
                            _ => bug!("two branches became fewer"),
                        }
                    });
                }
                // D((e1, e2)) = do { x <- D(e1); y <- D(e2); pure (x, y) }
                TermKind::Tuple(items) => TermKind::Tuple(self.values(items)?),
                // D(fst e) = do { x <- D(e); pure (fst x) }
                TermKind::Proj { index, term } => TermKind::Proj { index: *index, term: self.value(term)? },
                // D(k) = pure k and D(r) = pure (r, Zero)
                TermKind::Literal(literal) => match literal {
                    Literal::Real(_) => return Ok(self.mode.constant(at, term.clone())),
                    Literal::Int(_) | Literal::Bool(_) | Literal::String(_) | Literal::Unit => return Ok(term.clone()),
                },
                TermKind::Prim { prim, types, args, .. } => return self.prim(at, *prim, types, args),
                // K section 7.5
                TermKind::Global(global) => TermKind::Global(image_of_global(self.mode, self.linker, global)?),
                TermKind::LetRec { bindings, body } => {
                    self.recursive(bindings)?;
                    return self.value(body);
                }
                TermKind::ArrayLiteral { element, items } => {
                    TermKind::ArrayLiteral { element: self.ty(element), items: self.values(items)? }
                }
                TermKind::Lift { under, mode, ty, term } => {
                    let under = std::iter::once(self.mode.mode()).chain(under.iter().copied()).collect();
                    TermKind::Lift { under, mode: *mode, ty: ty.clone(), term: self.value(term)? }
                }
                TermKind::Derive { op, .. } => bug!("{op:?} was not expanded before differentiation"),
            };
            Ok(at.term(kind))
        })
    }

    /// A term at the end of a block, where a call stays a tail call.
    fn computation(&mut self, term: &Term) -> Made<Tail> {
        with_stack(|| {
            let at = At(term.span);
            if let Some(image) = constant_image(self, self.scope, term)? {
                return Ok(Tail::Value(image));
            }
            match &*term.kind {
                TermKind::App(function, argument) if lifted_again(self.mode, function).is_none() => {
                    Ok(Tail::Pair(self.call(at, function, argument)?))
                }
                TermKind::Let { var, scheme, bound, body } => {
                    let bound = self.value(bound)?;
                    let ty = self.ty(&scheme.ty);
                    self.lets.bind_var(var.clone(), ty, bound);
                    self.computation(body)
                }
                TermKind::LetRec { bindings, body } => {
                    self.recursive(bindings)?;
                    self.computation(body)
                }
                TermKind::If { condition, then, otherwise } => {
                    let condition = primal(self, condition, &Type::Bool)?;
                    self.tails(at, &[then, otherwise], |_, mut images| {
                        let (otherwise, then) = (images.pop(), images.pop());
                        match (then, otherwise) {
                            (Some(then), Some(otherwise)) => at.if_(condition, then, otherwise),
                            _ => bug!("two branches became fewer"),
                        }
                    })
                }
                TermKind::Case { scrutinee, arms, default } => {
                    let scrutinee = self.value(scrutinee)?;
                    let bodies: Vec<&Term> = arms.iter().map(|a| &a.body).chain(default).collect();
                    self.tails(at, &bodies, |translation, mut images| {
                        let default = default.as_ref().and_then(|_| images.pop());
                        let arms = arms.iter().zip(images).map(|(arm, body)| translation.arm(arm, body)).collect();
                        at.case(scrutinee, arms, default)
                    })
                }
                _ => Ok(Tail::Value(self.value(term)?)),
            }
        })
    }

    /// An application, as a term of type `D(A) * DeltaState`.
    fn call(&mut self, at: At, function: &Term, argument: &Term) -> Made<Term> {
        let function = self.value(function)?;
        let argument = self.value(argument)?;
        Ok(at.apps(function, [argument, self.state.clone()]))
    }

    /// Branches at the end of a block: values if none of them binds anything, else computations.
    fn tails(&mut self, at: At, bodies: &[&Term], join: impl FnOnce(&Self, Vec<Term>) -> Term) -> Made<Tail> {
        let before = self.state.clone();
        let mut blocks = Vec::new();
        for body in bodies {
            blocks.push(self.tail_block(before.clone(), body)?);
        }
        let pure = |block: &TailBlock| match (&block.tail, &*before.kind) {
            (Tail::Value(_), TermKind::Var(state, _)) => is_variable(&block.state, state),
            _ => false,
        };
        if !blocks.iter().all(pure) {
            let images = blocks.into_iter().map(|block| block.computation(at)).collect();
            return Ok(Tail::Pair(join(self, images)));
        }
        let values = blocks.into_iter().map(|block| match block.tail {
            Tail::Value(value) | Tail::Pair(value) => block.lets.wrap(at, value),
        });
        Ok(Tail::Value(join(self, values.collect())))
    }

    fn recursive(&mut self, bindings: &[(Var, gradus_core::Scheme, Term)]) -> Made<()> {
        let mut images = Vec::new();
        for (var, scheme, bound) in bindings {
            let ty = self.ty(&scheme.ty);
            images.push((var.clone(), ty, self.value(bound)?));
        }
        self.lets.bind_recursive(images);
        Ok(())
    }

    fn arm(&self, arm: &Arm, body: Term) -> Arm {
        let vars = arm.vars.iter().map(|(v, t)| (v.clone(), self.ty(t))).collect();
        Arm { tag: arm.tag, vars, body }
    }

    /// Branches in the middle of a block: values if none of them binds anything, else computations.
    fn branches(
        &mut self,
        at: At,
        whole: &Term,
        bodies: &[&Term],
        join: impl FnOnce(&Self, Vec<Term>) -> Term,
    ) -> Made<Term> {
        let before = self.state.clone();
        let mut blocks = Vec::new();
        for body in bodies {
            blocks.push(self.block(before.clone(), body)?);
        }
        let pure = match &*before.kind {
            TermKind::Var(state, _) => blocks.iter().all(|block| block.leaves(state)),
            _ => false,
        };
        if pure {
            let images = blocks.into_iter().map(|block| block.pure(at)).collect();
            return Ok(join(self, images));
        }
        let images = blocks.into_iter().map(|block| block.computation(at)).collect();
        let pair = join(self, images);
        let ty = self.ty(&self.type_of(whole)?);
        Ok(self.run(at, &ty, pair))
    }

    fn prim(&mut self, at: At, prim: Prim, types: &Arc<[Type]>, args: &[Term]) -> Made<Term> {
        match treatment(prim) {
            Treatment::Smooth => self.smooth(at, prim, args),
            // D(+_Z) = pure (fun (x, y) -> pure (x + y)), and N Fig. 4.9: D(sign r) = sign (fst D(r))
            Treatment::Primal => of_primals(self, at, prim, types, args),
            // K section 10.2: D(index) = pure (fun x -> pure (index x))
            Treatment::Structural => Ok(at.prim_at(prim, self.tys(types), self.values(args)?)),
            Treatment::Build => self.build(at, &one_type(types), args),
            Treatment::Ifold => self.ifold(at, &one_type(types), args),
            Treatment::Iterate => self.iterate(at, types, args),
            Treatment::Polytypic(name) => {
                let family = Global::Wrapper { name, modes: vec![], types: types.clone() };
                let mut ty = self.linker.global_type(&family)?;
                let mut function = at.global(image_of_global(self.mode, self.linker, &family)?);
                for arg in self.values(args)? {
                    ty = result_type(&ty);
                    let pair = at.apps(function, [arg, self.state.clone()]);
                    function = self.run(at, &self.ty(&ty), pair);
                }
                Ok(function)
            }
            Treatment::StopGradient => {
                let ty = one_type(types);
                let scope = self.scope;
                let value = stopped(self, scope, &args[0], &ty)?;
                // Still cut off from the modes outside.
                let value = at.prim_at(prim, types.clone(), [value]);
                wrappers::lift(self.linker, at, self.mode.mode(), &ty, value)
            }
            Treatment::Checkpoint => {
                let [from, to] = &types[..] else { bug!("`checkpoint` at {types:?}") };
                let function = self.value(&args[0])?;
                let function = self.bind(at, "f", &self.ty(&Type::fun(from.clone(), to.clone())), function);
                let argument = self.value(&args[1])?;
                let argument = self.bind(at, "x", &self.ty(from), argument);
                let pair = self.mode.checkpoint(self.linker, at, to, function, argument, self.state.clone());
                Ok(self.run(at, &self.ty(to), pair))
            }
        }
    }

    /// K Fig. 14: D(f) = fun (x1, u1) .. (xn, un) -> do { u <- record f; pure (f x1 .. xn, u) }
    fn smooth(&mut self, at: At, prim: Prim, args: &[Term]) -> Made<Term> {
        let info = prim.info();
        let mut recorded = Vec::new();
        for (arg, ty) in args.iter().zip(&info.params) {
            if *ty != Type::Real || self.activity.is_constant(arg) {
                let value = primal(self, arg, ty)?;
                recorded.push(Recorded::Constant { primal: self.bind(at, "x", ty, value), ty: ty.clone() });
            } else {
                let (x, beside) = match self.value(arg)? {
                    // The pair that an operation just made need not be made.
                    dual if matches!(&*dual.kind, TermKind::Tuple(_)) => match &*dual.kind {
                        TermKind::Tuple(parts) => (parts[0].clone(), parts[1].clone()),
                        _ => bug!("a tuple is no tuple"),
                    },
                    dual => {
                        let dual = self.bind(at, "d", &self.mode.real(), dual);
                        (at.proj(dual.clone(), 0), at.proj(dual, 1))
                    }
                };
                recorded.push(Recorded::Active { primal: self.bind(at, "x", &Type::Real, x), beside });
            }
        }
        let primals = recorded.iter().map(|arg| arg.primal().clone()).collect();
        let value = self.bind(at, "y", &Type::Real, watched_prim(at, prim, [], primals));
        if !recorded.iter().any(|arg| matches!(arg, Recorded::Active { .. })) {
            return Ok(self.mode.constant(at, value));
        }
        let id = self.bind(at, "id", &Type::Int, at.proj(self.state.clone(), 0));
        let (beside, state) = self.mode.record(at, prim, &recorded, id, self.state.clone());
        self.state = self.bind(at, "s", &self.mode.state(), state);
        Ok(at.tuple([value, beside]))
    }

    /// K section 10.2: D(build) = fun x -> sequence (build x)
    fn build(&mut self, at: At, element: &Type, args: &[Term]) -> Made<Term> {
        let size = self.value(&args[0])?;
        let size = self.bind(at, "n", &Type::Int, size);
        let image = self.ty(element);
        let item = match &*args[1].kind {
            TermKind::Lambda(l) => {
                let state = Var::fresh("s");
                let block = self.block(at.var(&state), &l.body)?;
                let pure = block.leaves(&state);
                let body = match pure {
                    true => block.pure(at),
                    false => at.lambda(&state, self.mode.state(), block.computation(at)),
                };
                let item = at.lambda(&l.param, Type::Int, body);
                if pure {
                    return Ok(at.prim_at(Prim::Build, [image], [size, item]));
                }
                item
            }
            _ => self.value(&args[1])?,
        };
        let item = self.bind(at, "f", &self.mode.arrow(Type::Int, image.clone()), item);
        let state = self.state.clone();
        let pair = build_with_state(at, &image, &self.mode.state(), size, state, |i, s| at.apps(item.clone(), [i, s]));
        Ok(self.run(at, &Type::array(image), pair))
    }

    /// C Fig. 8, `nrec`, with the state beside the accumulator.
    fn ifold(&mut self, at: At, state: &Type, args: &[Term]) -> Made<Term> {
        let count = self.value(&args[0])?;
        let image = self.ty(state);
        let step_type = self.ty(&Type::fun(state.clone(), state.clone()));
        let step = self.value(&args[1])?;
        let step = self.bind(at, "f", &self.mode.arrow(Type::Int, step_type.clone()), step);
        let initial = self.value(&args[2])?;
        let pair_type = with_state(self.mode, image.clone());
        let start = at.tuple([initial, self.state.clone()]);
        let pair = ifold(at, &pair_type, count, start, |i, pair| {
            let first = at.apps(step, [i, at.proj(pair.clone(), 1)]);
            bind(at, "r", &with_state(self.mode, step_type), first, |r| {
                at.apps(at.proj(r.clone(), 0), [at.proj(pair, 0), at.proj(r, 1)])
            })
        });
        Ok(self.run(at, &image, pair))
    }

    /// N Fig. 4.9: D(iterate t from x = r) = iterate D(t) from x = D(r), as the recursion that it stands for, which hands on the state.
    fn iterate(&mut self, at: At, types: &[Type], args: &[Term]) -> Made<Term> {
        let [from, to] = types else { bug!("`iterate` at {types:?}") };
        let (from, to) = (self.ty(from), self.ty(to));
        let either = Type::either(from.clone(), to.clone());
        let step = self.value(&args[0])?;
        let step = self.bind(at, "f", &self.mode.arrow(from.clone(), either.clone()), step);
        let initial = self.value(&args[1])?;
        let params = [("x", from.clone()), ("s", self.mode.state())];
        let turn = |again: Term, params: &[Term]| {
            bind(at, "r", &with_state(self.mode, either), at.apps(step, params.to_vec()), |r| {
                let state = at.proj(r.clone(), 1);
                let (next, done) = (Var::fresh("x"), Var::fresh("y"));
                let arms = vec![
                    Arm { tag: 0, body: at.apps(again, [at.var(&next), state.clone()]), vars: vec![(next, from)] },
                    Arm { tag: 1, body: at.tuple([at.var(&done), state]), vars: vec![(done, to.clone())] },
                ];
                at.case(at.proj(r, 0), arms, None)
            })
        };
        let start = [initial, self.state.clone()];
        let pair =
            letrec(at, "again", &params, &with_state(self.mode, to.clone()), turn, |again| at.apps(again, start));
        Ok(self.run(at, &to, pair))
    }
}
