//! The reverse macro: C Fig. 20. A combinator `comb A B` becomes a pair of combinators, the primal d : D1(A) -> D1(B) and the
//! transposed derivative d' : D1(A) * D2(B) -> D2(A), which is linear in D2(B).
//!
//! Both halves refer to the same sub-combinators, and lowering computes each of them once at each argument. Where the primal runs code that depends on
//! data (a call, a branch, a loop), it hands back the linear map of that run, as the figure's rule for `ev` does; so nothing is run
//! again on the way back, except the body of a function whose own cotangent is asked for.

use super::language::{component, pair, product, Comb, Op, Write};
use super::types::{bag, cotangents, is_trivial, values};
use crate::prims::{treatment, Treatment};
use crate::{Linker, Made};
use gradus_core::build::At;
use gradus_core::traverse::with_stack;
use gradus_core::{Global, Prim, TermKind, Type, TypeName};
use gradus_source::{bug, Span};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// d and d'
#[derive(Clone)]
pub struct Reversed {
    pub primal: Comb,
    pub linear: Comb,
}

pub struct Macro<'a> {
    linker: &'a Linker,
    /// By address: a combinator that is used twice has one image.
    done: FxHashMap<usize, Reversed>,
    /// D1 and D2 of products, by address. A context is a product of a product of .., each part of which is a context too: without this, every
    /// combinator would be translated together with all that is in scope. The product is kept, so that no other can get its address.
    products: FxHashMap<usize, (Type, Types)>,
}

/// D1 and D2 of a type.
#[derive(Clone)]
struct Types {
    d1: Type,
    d2: Type,
    /// Whether D2 has nothing in it.
    trivial: bool,
}

impl<'a> Macro<'a> {
    pub fn new(linker: &'a Linker) -> Self {
        Macro { linker, done: FxHashMap::default(), products: FxHashMap::default() }
    }

    fn types(&mut self, ty: &Type, span: Span) -> Made<Types> {
        let Type::Tuple(parts) = ty else {
            let (d1, d2) = (values(self.linker, ty), cotangents(self.linker, ty, span)?);
            let trivial = is_trivial(&d2);
            return Ok(Types { d1, d2, trivial });
        };
        let key = parts.as_ptr() as usize;
        if let Some((_, known)) = self.products.get(&key) {
            return Ok(known.clone());
        }
        let parts: Vec<Types> = with_stack(|| parts.iter().map(|part| self.types(part, span)).collect::<Made<_>>())?;
        let types = Types {
            d1: Type::tuple(parts.iter().map(|part| part.d1.clone()).collect::<Vec<_>>()),
            d2: Type::tuple(parts.iter().map(|part| part.d2.clone()).collect::<Vec<_>>()),
            trivial: parts.iter().all(|part| part.trivial),
        };
        self.products.insert(key, (ty.clone(), types.clone()));
        Ok(types)
    }

    fn d1(&self, ty: &Type) -> Type {
        values(self.linker, ty)
    }

    pub fn reverse(&mut self, comb: &Comb) -> Made<Reversed> {
        if let Some(known) = self.done.get(&(Arc::as_ptr(comb) as usize)) {
            return Ok(known.clone());
        }
        let reversed = with_stack(|| self.rule(comb))?;
        self.done.insert(Arc::as_ptr(comb) as usize, reversed.clone());
        Ok(reversed)
    }

    fn all(&mut self, combs: &[Comb]) -> Made<Vec<Reversed>> {
        combs.iter().map(|c| self.reverse(c)).collect()
    }

    /// One arm per rule, in the order of the figure; then what we add.
    fn rule(&mut self, comb: &Comb) -> Made<Reversed> {
        let w = Write(comb.span);
        let at = At(comb.span);
        let (from, to) = (self.types(&comb.from, comb.span)?, self.types(&comb.to, comb.span)?);
        let (a1, b1, a2, b2) = (from.d1, to.d1, from.d2, to.d2);
        // The domain of d', and its two halves.
        let both = pair(&a1, &b2);
        let (x, dy) = (|| w.proj(&both, 0), || w.proj(&both, 1));
        let nothing = || w.zero(&both, &a2);
        // f at x, where f : D1(A) -> ..
        let at_x = |f: Comb| w.seq(x(), f);
        // Whoever cannot be told anything, or has nothing to say, says zero, and keeps nothing for the way back.
        let passive = from.trivial || to.trivial;
        let (primal, linear) = match &comb.op {
            // D(id) = (id, exr)
            Op::Id => (w.id(&a1), dy()),
            // D(f ;; g) = (f ;; g, <exl, <exl ;; f, exr> ;; g'> ;; f')
            Op::Seq(f, g) => {
                let (f, g) = (self.reverse(f)?, self.reverse(g)?);
                let back = w.seq(w.fork(&both, vec![at_x(f.primal.clone()), dy()]), g.linear);
                (w.seq(f.primal, g.primal), w.seq(w.fork(&both, vec![x(), back]), f.linear))
            }
            // D(<f, g>) = (<f, g>, <exl, exr ;; exl> ;; f' + <exl, exr ;; exr> ;; g'): `cross` and `dupl` in one.
            // D(neg) = (neg, 0)
            Op::Fork(parts) => {
                let parts = self.all(parts)?;
                let primal = w.fork(&a1, parts.iter().map(|p| p.primal.clone()).collect());
                let count = parts.len();
                let summands = parts.into_iter().enumerate().map(|(i, part)| {
                    let dy = w.seq(dy(), w.part(&b2, i, count));
                    w.seq(w.fork(&both, vec![x(), dy]), part.linear)
                });
                let sum = summands.reduce(|sum, next| {
                    let two = w.fork(&both, vec![sum, next]);
                    let plus = w.node(Op::Plus, two.to.clone(), a2.clone());
                    w.seq(two, plus)
                });
                (primal, sum.unwrap_or_else(nothing))
            }
            // D(exl) = (exl, <exr, 0>), D(exr) = (exr, <0, exr>)
            Op::Proj(index) => {
                let field = w.node(Op::Proj(*index), a1.clone(), b1.clone());
                let back = match (&a2, &comb.from) {
                    // A record of a recursive type.
                    (Type::Named(..), Type::Named(name, args)) if !passive => {
                        let constructors = self.linker.declaration(name)?.constructors(args);
                        let Some((_, fields)) = constructors.first() else { bug!("a record without fields") };
                        let parts: Made<Vec<Type>> =
                            fields.iter().map(|ty| cotangents(self.linker, ty, comb.span)).collect();
                        let parts = product(parts?);
                        let all = self.inject(w, &both, dy(), &parts, *index);
                        w.seq(all, w.node(Op::Roll(0), parts, a2.clone()))
                    }
                    _ => self.inject(w, &both, dy(), &a2, *index),
                };
                (field, back)
            }
            // What is run again is another `ev`, which lowering does not find among what has been computed.
            Op::CheckpointEv => {
                let result = pair(&b1, &Type::fun(b2.clone(), component(&a2, 1)));
                let ev = || w.node(Op::Ev, a1.clone(), result.clone());
                let (first, again) = (ev(), ev());
                (w.seq(first, w.proj(&result, 0)), self.through_call(w, &both, again, &result))
            }
            // D(ev) = (ev ;; exl, <<exl ;; exr, exr> ;; msingleton, <exl ;; ev ;; exr, exr> ;; ev_l>)
            Op::Ev => {
                let result = pair(&b1, &Type::fun(b2.clone(), component(&a2, 1)));
                let ev = w.node(Op::Ev, a1.clone(), result.clone());
                (w.seq(ev.clone(), w.proj(&result, 0)), self.through_call(w, &both, ev, &result))
            }
            // D(curry t) = (curry <t, curry_l (t' ;; exr)>, mfold (<<exl, exr ;; exl>, exr ;; exr> ;; t' ;; exl))
            Op::Curry(body) => {
                let body = self.reverse(body)?;
                let argument = body.linear.to.clone();
                let function = self.with_map(w, &body, |linear| w.seq(linear, w.proj(&argument, 1)));
                let primal = w.node(Op::Curry(function), a1.clone(), b1);
                let item = super::types::item_of(&b2);
                let inside = pair(&a1, &item);
                let arguments = w.fork(&inside, vec![w.path(&inside, &[0]), w.path(&inside, &[1, 0])]);
                let call = w.fork(&inside, vec![arguments, w.path(&inside, &[1, 1])]);
                let back = w.seq(w.seq(call, body.linear), w.proj(&argument, 0));
                (primal, w.node(Op::Fold(back), both.clone(), a2.clone()))
            }
            // D(c) = (c, 0); the value of a definition of the program is the definition's image.
            Op::Const(value) => {
                let value = match &*value.kind {
                    TermKind::Global(global) if !self.linker.contents(&comb.to).is_data() => {
                        let mode = gradus_core::Mode::Combinator;
                        at.global(Global::Derived { mode, of: Arc::new(global.clone()) })
                    }
                    _ => value.clone(),
                };
                (w.constant(&a1, value, &b1), nothing())
            }
            Op::Prim { prim, types } => {
                let images: Arc<[Type]> = types.iter().map(|t| self.d1(t)).collect();
                let primal = w.node(Op::Prim { prim: *prim, types: images }, a1.clone(), b1);
                let back = if passive { nothing() } else { self.prim(w, *prim, &both, &a2)? };
                (primal, back)
            }
            // D(inl) = (inl, exr ;; exl)
            Op::Construct { name, types, tag } => {
                let types = types.iter().map(|t| self.d1(t)).collect();
                let count = match &comb.to {
                    Type::Named(name, args) => self.linker.declaration(name)?.constructors(args).len(),
                    _ => bug!("a constructor of {:?}", comb.to),
                };
                let name = self.linker.image_name(gradus_core::Mode::Combinator, name);
                let construct = Op::Construct { name, types, tag: *tag };
                let back = match &b2 {
                    _ if passive => nothing(),
                    Type::Named(..) => w.seq(dy(), w.node(Op::Unroll(*tag), b2.clone(), a2.clone())),
                    _ => w.seq(dy(), w.part(&b2, *tag, count)),
                };
                (w.node(construct, a1.clone(), b1), back)
            }
            // C = case <t1, curry_l (t1' ;; <exl, <exr, 0>>)> ..; D(case t1 t2) = (C ;; exl, <exl ;; C ;; exr, exr> ;; ev_l)
            Op::Case(arms) => {
                let arms = self.all(arms)?;
                if passive {
                    let arms = arms.into_iter().map(|arm| arm.primal).collect();
                    return Ok(Reversed { primal: w.node(Op::Case(arms), a1.clone(), b1), linear: nothing() });
                }
                let sums = component(&a2, 1);
                let count = arms.len();
                let mut images = Vec::new();
                for (tag, arm) in arms.into_iter().enumerate() {
                    images.push(self.with_map(w, &arm, |linear| {
                        let result = linear.to.clone();
                        let one = w.path(&result, &[1]);
                        let sum = match count {
                            // A sum without reals has no cotangents, whatever its constructors have.
                            _ if is_trivial(&sums) => w.zero(&result, &sums),
                            _ if matches!(sums, Type::Named(..)) => {
                                let roll = w.node(Op::Roll(tag), one.to.clone(), sums.clone());
                                w.seq(one, roll)
                            }
                            1 => one,
                            _ => self.inject(w, &result, one, &sums, tag),
                        };
                        w.seq(linear, w.fork(&result, vec![w.path(&result, &[0]), sum]))
                    }));
                }
                self.by_map(
                    w,
                    &both,
                    w.node(Op::Case(images), a1.clone(), pair(&b1, &Type::fun(b2.clone(), a2.clone()))),
                )
            }
            Op::If(then, otherwise) => {
                let (then, otherwise) = (self.reverse(then)?, self.reverse(otherwise)?);
                if passive {
                    let choice = w.node(Op::If(then.primal, otherwise.primal), a1.clone(), b1);
                    return Ok(Reversed { primal: choice, linear: nothing() });
                }
                let with_zero = |linear: Comb| {
                    let result = linear.to.clone();
                    w.seq(linear, w.fork(&result, vec![w.id(&result), w.zero(&result, &Type::Unit)]))
                };
                let then = self.with_map(w, &then, with_zero);
                let otherwise = self.with_map(w, &otherwise, with_zero);
                let to = pair(&b1, &Type::fun(b2.clone(), a2.clone()));
                self.by_map(w, &both, w.node(Op::If(then, otherwise), a1.clone(), to))
            }
            // C = build <t, curry_l t'>: each element with its linear map
            Op::Build(body) => {
                let body = self.reverse(body)?;
                if passive {
                    return Ok(Reversed { primal: w.node(Op::Build(body.primal), a1.clone(), b1), linear: nothing() });
                }
                let element = self.with_map(w, &body, |linear| linear);
                let elements = Type::array(element.to.clone());
                let with_maps = w.node(Op::Build(element.clone()), a1.clone(), elements.clone());
                let index = pair(&elements, &Type::Int);
                let get = w.node(
                    Op::Prim { prim: Prim::Get, types: [element.to.clone()].into() },
                    index.clone(),
                    element.to.clone(),
                );
                let value = w.seq(get, w.proj(&element.to, 0));
                let size = w.node(
                    Op::Prim { prim: Prim::Length, types: [element.to.clone()].into() },
                    elements.clone(),
                    Type::Int,
                );
                let again = w.fork(&elements, vec![w.id(&elements), size]);
                let primal = w.seq(w.seq(with_maps.clone(), again), w.node(Op::Build(value), index, b1));
                let context = component(&a2, 0);
                let uses = w.fork(&both, vec![at_x(with_maps), dy()]);
                let pull = w.node(Op::PullBuild, uses.to.clone(), context);
                let back = w.fork(&both, vec![w.seq(uses, pull), w.zero(&both, &Type::Unit)]);
                (primal, back)
            }
            // C = ifold <t, curry_l t'>, the linear maps in a list, the latest first
            Op::Ifold(body) => {
                let body = self.reverse(body)?;
                if passive {
                    return Ok(Reversed { primal: w.node(Op::Ifold(body.primal), a1.clone(), b1), linear: nothing() });
                }
                let step = self.with_map(w, &body, |linear| linear);
                let map = component(&step.to, 1);
                let maps = Type::list(map.clone());
                let state = pair(&b1, &maps);
                let inside = pair(&component(&step.from, 0), &state);
                let run = w.fork(&inside, vec![w.path(&inside, &[0]), w.path(&inside, &[1, 0])]);
                let run = w.seq(run, step);
                let lists = w.fork(&inside, vec![w.seq(run.clone(), w.proj(&run.to, 1)), w.path(&inside, &[1, 1])]);
                let list = |tag, from: &Type| {
                    let construct = Op::Construct { name: TypeName::new("list"), types: [map.clone()].into(), tag };
                    w.node(construct, from.clone(), maps.clone())
                };
                let lists = w.seq(lists.clone(), list(1, &lists.to));
                let recorded = w.fork(&inside, vec![w.seq(run.clone(), w.proj(&run.to, 0)), lists]);
                let empty = w.seq(w.fork(&a1, vec![]), list(0, &Type::Unit));
                let start = w.fork(&a1, vec![w.path(&a1, &[1, 1]), empty]);
                let start = w.fork(&a1, vec![w.path(&a1, &[1, 0]), start]);
                let start = w.fork(&a1, vec![w.path(&a1, &[0]), start]);
                let looped = w.seq(start.clone(), w.node(Op::Ifold(recorded), start.to.clone(), state.clone()));
                let uses = w.fork(&both, vec![at_x(w.seq(looped.clone(), w.proj(&state, 1))), dy()]);
                let context = component(&a2, 0);
                let swept = pair(&context, &b2);
                let pull = w.seq(uses.clone(), w.node(Op::PullIfold, uses.to.clone(), swept.clone()));
                let start = w.fork(&swept, vec![w.zero(&swept, &Type::Unit), w.proj(&swept, 1)]);
                let back = w.seq(pull, w.fork(&swept, vec![w.proj(&swept, 0), start]));
                (w.seq(looped, w.proj(&state, 0)), back)
            }
            Op::ArrayLiteral(count) => {
                let count = *count;
                let primal = w.node(Op::ArrayLiteral(count), a1.clone(), b1);
                if passive {
                    return Ok(Reversed { primal, linear: nothing() });
                }
                let element = component(&super::types::item_of(&b2), 1);
                let sums = Type::array(element.clone());
                let size = w.constant(&both, at.int(count as i64), &Type::Int);
                let uses = w.fork(&both, vec![size, dy()]);
                let collected = w.seq(uses.clone(), w.node(Op::Collect, uses.to.clone(), sums.clone()));
                let get = w.prim(Prim::Get, [element].into());
                let item = |i| {
                    let index = w.constant(&sums, at.int(i), &Type::Int);
                    w.seq(w.fork(&sums, vec![w.id(&sums), index]), get.clone())
                };
                (primal, w.seq(collected, w.fork(&sums, (0..count as i64).map(item).collect())))
            }
            Op::Rule(rule) => {
                let primal = w.node(Op::Rule(rule.clone()), a1.clone(), b1);
                (primal, w.node(Op::RuleAdjoint(rule.clone()), both.clone(), a2.clone()))
            }
            Op::Plain { vars, term } => {
                let plain = Op::Plain { vars: vars.clone(), term: term.clone() };
                (w.node(plain, a1.clone(), b1), nothing())
            }
            Op::LinearEv
            | Op::LinearCurry(_)
            | Op::Zero
            | Op::Plus
            | Op::Single
            | Op::Fold(_)
            | Op::Adjoint(_)
            | Op::Collect
            | Op::PullBuild
            | Op::PullIfold
            | Op::Roll(_)
            | Op::Unroll(_)
            | Op::RuleAdjoint(_) => bug!("the macro is applied to its own result"),
        };
        let linear = if passive { nothing() } else { linear };
        Ok(Reversed { primal, linear })
    }

    /// The transposed derivative of a call that gives a value and its linear map: the call for the function, and the cotangent of the argument.
    fn through_call(&self, w: Write, both: &Type, ev: Comb, result: &Type) -> Comb {
        let use_of_it = w.fork(both, vec![w.path(both, &[0, 1]), w.proj(both, 1)]);
        let single = w.node(Op::Single, use_of_it.to.clone(), bag(use_of_it.to.clone()));
        let map = w.seq(w.proj(both, 0), w.seq(ev, w.proj(result, 1)));
        w.fork(both, vec![w.seq(use_of_it, single), self.linear_ev(w, both, map, w.proj(both, 1))])
    }

    /// `<0, .., f, .., 0>`, the component of a product of type `to`.
    fn inject(&self, w: Write, from: &Type, f: Comb, to: &Type, index: usize) -> Comb {
        match to {
            Type::Tuple(parts) if parts.get(index).is_some_and(|part| *part == f.to) => {
                let part = |(i, ty): (usize, &Type)| if i == index { f.clone() } else { w.zero(from, ty) };
                w.fork(from, parts.iter().enumerate().map(part).collect())
            }
            // A record with one field has the cotangent of that field.
            _ => f,
        }
    }

    /// `<d, curry_l (d' ;; ..)>`: the result of one run together with its linear map
    fn with_map(&self, w: Write, image: &Reversed, then: impl FnOnce(Comb) -> Comb) -> Comb {
        let from = image.primal.from.clone();
        let linear = then(image.linear.clone());
        let Type::Tuple(ends) = &linear.from else { bug!("no domain of a transposed derivative: {:?}", linear.from) };
        let map = Type::fun(ends[1].clone(), linear.to.clone());
        let map = w.node(Op::LinearCurry(linear), from.clone(), map);
        w.fork(&from, vec![image.primal.clone(), map])
    }

    fn linear_ev(&self, w: Write, from: &Type, map: Comb, argument: Comb) -> Comb {
        let to = crate::typing::result_type(&map.to);
        let both = w.fork(from, vec![map, argument]);
        let ev = w.node(Op::LinearEv, both.to.clone(), to);
        w.seq(both, ev)
    }

    /// (C ;; exl, <exl ;; C ;; exr, exr> ;; ev_l)
    fn by_map(&self, w: Write, both: &Type, run: Comb) -> (Comb, Comb) {
        let map = w.seq(w.proj(both, 0), w.seq(run.clone(), w.proj(&run.to, 1)));
        let back = self.linear_ev(w, both, map, w.proj(both, 1));
        (w.seq(run.clone(), w.proj(&run.to, 0)), back)
    }

    /// The transposed derivative of a primitive.
    fn prim(&self, w: Write, prim: Prim, both: &Type, a2: &Type) -> Made<Comb> {
        let dy = || w.proj(both, 1);
        let nothing = || w.zero(both, a2);
        Ok(match (treatment(prim), prim) {
            (Treatment::Smooth, _) => w.node(Op::Adjoint(prim), both.clone(), a2.clone()),
            (Treatment::Primal | Treatment::StopGradient, _) | (Treatment::Structural, Prim::Length) => nothing(),
            // An array is a function from its indices, and so is its cotangent: one use, at one index.
            (Treatment::Structural, Prim::Get) => {
                let use_of_it = w.fork(both, vec![w.path(both, &[0, 1]), dy()]);
                let single = w.node(Op::Single, use_of_it.to.clone(), bag(use_of_it.to.clone()));
                w.fork(both, vec![w.seq(use_of_it, single), w.zero(both, &Type::Unit)])
            }
            (Treatment::Structural, Prim::CheckSize) => w.fork(both, vec![dy(), w.zero(both, &Type::Unit)]),
            // The uses at the index are those of the new element, all others are those of the array.
            (Treatment::Structural, Prim::Set) => {
                let (uses, element) = (component(a2, 0), component(a2, 2));
                let item = super::types::item_of(&uses);
                let inside = pair(&Type::Int, &item);
                let here = w.fork(&inside, vec![w.path(&inside, &[0]), w.path(&inside, &[1, 0])]);
                let here = w.seq(here, w.prim(Prim::Equal, [Type::Int].into()));
                let which = w.fork(&inside, vec![w.path(&inside, &[1]), here]);
                let single = w.node(Op::Single, item.clone(), uses.clone());
                let choose = |yes: Comb, no: Comb, to: &Type| {
                    let choice = w.node(Op::If(yes, no), which.to.clone(), to.clone());
                    w.seq(which.clone(), choice)
                };
                let others = choose(w.zero(&item, &uses), single, &uses);
                let own = choose(w.path(&item, &[1]), w.zero(&item, &element), &element);
                let start = w.fork(both, vec![w.path(both, &[0, 1]), dy()]);
                let fold =
                    |body: Comb, to: &Type| w.seq(start.clone(), w.node(Op::Fold(body), start.to.clone(), to.clone()));
                let (others, own) = (fold(others, &uses), fold(own, &element));
                w.fork(both, vec![others, w.zero(both, &Type::Unit), own])
            }
            (
                Treatment::Structural
                | Treatment::Build
                | Treatment::Ifold
                | Treatment::Iterate
                | Treatment::Polytypic(_)
                | Treatment::Checkpoint,
                _,
            ) => bug!("{prim:?} is no combinator"),
        })
    }
}
