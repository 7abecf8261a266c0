//! The monadic translation of the constructs that repeat something: the state goes from one turn to the next.

use super::image::{bind, bind_all, Image, Part};
use super::stateful::with_state;
use super::translate::Translation;
use crate::write::build_with_state;
use crate::Made;
use gradus_core::build::At;
use gradus_core::{Arm, Prim, Term, TermKind, Type, Var};
use gradus_source::bug;

impl<'a> Translation<'a> {
    /// K section 10.2: D(build) = fun x -> sequence (build x)
    pub(super) fn build(&mut self, at: At, element: &Type, args: &[Term]) -> Made<Image<'a>> {
        let image = self.ty(element);
        let size = self.image(&args[0])?;
        let TermKind::Lambda(l) = &*args[1].kind else { bug!("a function of `build` that is not written as one") };
        let param = l.param.clone();
        let item = match self.image(&l.body)? {
            Image::Value(body) => {
                let item = at.lambda(&param, Type::Int, body);
                let write = move |mut sizes: Vec<Term>| match sizes.pop() {
                    Some(size) => at.prim_at(Prim::Build, [image], [size, item]),
                    None => bug!("`build` without a size"),
                };
                return self.of_images(at, vec![size], |_| Ok(Type::Int), write);
            }
            item => item,
        };
        let mode = self.mode;
        let parts = vec![Part { image: size, var: Var::fresh("n"), ty: Type::Int }];
        Ok(Image::Computation(bind_all(mode, at, parts, move |mut sizes, state| {
            let Some(size) = sizes.pop() else { bug!("`build` without a size") };
            let (f, s) = (Var::fresh("f"), Var::fresh("s"));
            let item = at.lambda(&s, mode.state(), item.at_state(at, at.var(&s)));
            let item = at.lambda(&param, Type::Int, item);
            let call = |i, s| at.apps(at.var(&f), [i, s]);
            let built = build_with_state(at, &image, &mode.state(), size, state, call);
            at.bind(&f, mode.arrow(Type::Int, image), item, built)
        })))
    }

    /// C Fig. 8, `nrec`, with the state beside the accumulator.
    pub(super) fn ifold(&mut self, at: At, accumulator: &Type, args: &[Term]) -> Made<Image<'a>> {
        let two = match &*args[1].kind {
            TermKind::Lambda(index) => match &*index.body.kind {
                TermKind::Lambda(step) => Some((index, step)),
                _ => None,
            },
            _ => None,
        };
        let Some((index, step)) = two else { bug!("a step of `ifold` that is not written as a function of two") };
        let (index, so_far) = (index.param.clone(), step.param.clone());
        let images = vec![self.image(&args[0])?, self.image(&args[2])?];
        let body = self.image(&step.body)?;
        let ty = self.ty(accumulator);
        let types = [Type::Int, ty.clone()];
        let parts = self.parts(images, |i| Ok(types[i].clone()))?;
        let mode = self.mode;
        Ok(Image::Computation(bind_all(mode, at, parts, move |vars, state| {
            let mut vars = vars.into_iter();
            let (Some(count), Some(initial)) = (vars.next(), vars.next()) else { bug!("`ifold` without its parts") };
            let (pair, s) = (Var::fresh("p"), Var::fresh("s"));
            let pair_type = with_state(mode, ty.clone());
            let body = at.bind(&s, mode.state(), at.proj(at.var(&pair), 1), body.at_state(at, at.var(&s)));
            let body = at.bind(&so_far, ty, at.proj(at.var(&pair), 0), body);
            let step = at.lambdas(&[(index, Type::Int), (pair, pair_type.clone())], body);
            at.prim_at(Prim::Ifold, [pair_type], [count, step, at.tuple([initial, state])])
        })))
    }

    /// N Fig. 4.9: D(iterate t from x = r) = iterate D(t) from x = D(r), as the recursion that it stands for, which hands on the state.
    pub(super) fn iterate(&mut self, at: At, types: &[Type], args: &[Term]) -> Made<Image<'a>> {
        let [from, to] = types else { bug!("`iterate` at {types:?}") };
        let ty = Type::fun(from.clone(), to.clone());
        let (from, to) = (self.ty(from), self.ty(to));
        let either = Type::either(from.clone(), to.clone());
        let mode = self.mode;
        let step =
            Part { image: self.image(&args[0])?, var: Var::fresh("f"), ty: mode.arrow(from.clone(), either.clone()) };
        let f = at.var(&step.var);
        let again = Var::fresh("again");
        let images = vec![Image::Value(at.var(&again)), self.image(&args[1])?];
        let start = self.application(at, images, &ty);
        let result = with_state(mode, to.clone());
        let rest = Box::new(move |state| {
            let (x, s, next, done) = (Var::fresh("x"), Var::fresh("s"), Var::fresh("x"), Var::fresh("y"));
            let (r, v, after) = (Var::fresh("r"), Var::fresh("v"), Var::fresh("s"));
            let arms = vec![
                Arm {
                    tag: 0,
                    body: at.apps(at.var(&again), [at.var(&next), at.var(&after)]),
                    vars: vec![(next, from.clone())],
                },
                Arm { tag: 1, body: at.tuple([at.var(&done), at.var(&after)]), vars: vec![(done, to)] },
            ];
            let turn = at.bind(&after, mode.state(), at.proj(at.var(&r), 1), at.case(at.var(&v), arms, None));
            let turn = at.bind(&v, either.clone(), at.proj(at.var(&r), 0), turn);
            let turn = at.bind(&r, with_state(mode, either), at.apps(f, [at.var(&x), at.var(&s)]), turn);
            let params = [(x, from.clone()), (s, mode.state())];
            let ty = Type::funs([from, mode.state()], result);
            at.letrec(vec![(again, ty, at.lambdas(&params, turn))], start.at_state(at, state))
        });
        Ok(Image::Computation(bind(mode, at, step, rest)))
    }
}
