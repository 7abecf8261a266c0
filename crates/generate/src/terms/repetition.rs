//! Recursion, iteration and folds, all with an end.

use super::*;

impl Generator<'_> {
    /// `let rec go n acc = if n <= 0 then e else (let r = go (n - 1) e in e) in go k e`
    pub(super) fn recurse_on_number(&mut self, ty: &Type, size: usize) -> Term {
        let at = self.at;
        let acc_ty = self.any_type();
        let (go, n, acc, r) = (Var::fresh("go"), Var::fresh("n"), Var::fresh("acc"), Var::fresh("r"));
        let go_ty = Type::funs([Type::Int, acc_ty.clone()], ty.clone());
        let init = self.term(&acc_ty, size / 4);
        self.loop_depth += 1;
        let inside = [(n.clone(), Type::Int), (acc.clone(), acc_ty.clone())];
        let stop = self.within(&inside, |g| g.term(ty, size / 4));
        let step = self.within(&inside, |g| g.term(&acc_ty, size / 4));
        let smaller = at.prim(Prim::SubInt, [at.var(&n), at.int(1)]);
        let call = at.apps(at.var(&go), [smaller, step]);
        let again = if self.rng.chance(1, 2) {
            call
        } else {
            let after = self.within(&inside, |g| g.within(&[(r.clone(), ty.clone())], |g| g.term(ty, size / 4)));
            at.bind(&r, ty.clone(), call, after)
        };
        self.loop_depth -= 1;
        let done = at.prim_at(Prim::LessEqual, [Type::Int], [at.var(&n), at.int(0)]);
        let body = at.lambdas(&inside, at.if_(done, stop, again));
        let rounds = at.int(self.rng.below(MAX_ROUNDS + 1) as i64);
        let start = at.apps(at.var(&go), [rounds, init]);
        at.letrec(vec![(go, go_ty, body)], start)
    }

    /// `let rec go d = match d with ...` over a list or a tree, with the results of the parts.
    pub(super) fn recurse_on_data(&mut self, ty: &Type, size: usize) -> Term {
        let at = self.at;
        let data_ty = if self.rng.chance(1, 2) { Type::list(Type::Real) } else { Type::named("tree", [Type::Real]) };
        let (go, d) = (Var::fresh("go"), Var::fresh("d"));
        let start = self.term(&data_ty, size / 3);
        self.loop_depth += 1;
        let arms = self.arms(&data_ty, |g, _, vars| {
            let mut inside: Vec<(Var, Type)> = vars.iter().filter(|(_, t)| *t == Type::Real).cloned().collect();
            let parts: Vec<(Var, Var)> =
                vars.iter().filter(|(_, t)| *t == data_ty).map(|(part, _)| (Var::fresh("r"), part.clone())).collect();
            inside.extend(parts.iter().map(|(r, _)| (r.clone(), ty.clone())));
            let body = g.within(&inside, |g| g.term(ty, size / 3));
            parts
                .into_iter()
                .rev()
                .fold(body, |body, (r, part)| at.bind(&r, ty.clone(), at.app(at.var(&go), at.var(&part)), body))
        });
        self.loop_depth -= 1;
        let body = at.lambda(&d, data_ty.clone(), at.case(at.var(&d), arms, None));
        at.letrec(vec![(go.clone(), Type::fun(data_ty, ty.clone()), body)], at.app(at.var(&go), start))
    }

    /// `iterate (fun (n, s) -> if n <= 0 then Inr e else Inl (n - 1, e)) (k, e)`
    pub(super) fn iterate(&mut self, ty: &Type, size: usize) -> Term {
        let at = self.at;
        let state_ty = self.data_type(1);
        let pair_ty = Type::tuple([Type::Int, state_ty.clone()]);
        let (pair, n, s) = (Var::fresh("p"), Var::fresh("n"), Var::fresh("s"));
        let init = self.term(&state_ty, size / 3);
        self.loop_depth += 1;
        let inside = [(n.clone(), Type::Int), (s.clone(), state_ty.clone())];
        let (stop, step) = self.within(&inside, |g| (g.term(ty, size / 3), g.term(&state_ty, size / 3)));
        self.loop_depth -= 1;
        let either = TypeName::new("either");
        let types: Arc<[Type]> = Arc::from([pair_ty.clone(), ty.clone()]);
        let smaller = at.prim(Prim::SubInt, [at.var(&n), at.int(1)]);
        let again = at.construct(either.clone(), types.clone(), 0, [at.tuple([smaller, step])]);
        let done = at.prim_at(Prim::LessEqual, [Type::Int], [at.var(&n), at.int(0)]);
        let body = at.if_(done, at.construct(either, types.clone(), 1, [stop]), again);
        let body = at.bind(&s, state_ty, at.proj(at.var(&pair), 1), body);
        let body = at.bind(&n, Type::Int, at.proj(at.var(&pair), 0), body);
        let rounds = at.int(self.rng.below(MAX_ROUNDS + 1) as i64);
        at.prim_at(Prim::Iterate, types, [at.lambda(&pair, pair_ty, body), at.tuple([rounds, init])])
    }

    pub(super) fn fold(&mut self, ty: &Type, size: usize) -> Term {
        let at = self.at;
        let init = self.term(ty, size / 3);
        self.loop_depth += 1;
        let function = self.lambda(&Type::funs([Type::Int, ty.clone()], ty.clone()), size / 2);
        self.loop_depth -= 1;
        let rounds = at.int(self.rng.below(MAX_ROUNDS + 1) as i64);
        at.prim_at(Prim::Ifold, [ty.clone()], [rounds, function, init])
    }
}
