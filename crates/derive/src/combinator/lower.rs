//! Back to core: a combinator, applied to a value, becomes bindings and a result.
//!
//! Products are taken apart while we write, so pairing and projections leave no trace; zeros are known as such and cost nothing; and a
//! combinator that has been applied to a value is not applied to it again: the transposed derivative finds the primal values that it needs among
//! the bindings around it. So first-order code comes out with a cost proportional to that of the original.
//!
//! In code that computes cotangents, bindings that nobody uses are left out. In primal code only those that cannot fail are.

use super::language::{pair, Comb, Op};
use super::recursive;
use super::scopes::{Done, Lowerer, Value};
use super::types::{self, collect, fold_bag, is_trivial, item_of};
use crate::dual;
use crate::prims::{treatment, Treatment};
use crate::write::{get, is_one, length, letrec, mul, watched_prim};
use gradus_core::traverse::{with_stack, Copy};
use gradus_core::{Arm, Prim, Term, TermKind, Type, Var};
use gradus_source::bug;

impl Lowerer<'_> {
    pub fn apply(&mut self, comb: &Comb, x: &Value) -> Value {
        match &comb.op {
            Op::Id => return x.clone(),
            Op::Proj(index) => return self.component(x, *index, &comb.to),
            Op::Zero => return self.zero(&comb.to),
            _ => {}
        }
        // A constant does not look at its argument.
        let argument = if matches!(comb.op, Op::Const(_)) { u32::MAX } else { x.id };
        let key = || Done::Apply(std::sync::Arc::as_ptr(comb) as usize, argument);
        if let Some(known) = self.known(&key()) {
            return known;
        }
        let outer = std::mem::replace(&mut self.span, comb.span);
        let result = with_stack(|| self.rule(comb, x));
        self.span = outer;
        self.scope().done.insert(key(), result.clone());
        result
    }

    fn rule(&mut self, comb: &Comb, x: &Value) -> Value {
        let at = self.at();
        let ty = &comb.to;
        match &comb.op {
            Op::Id | Op::Proj(_) | Op::Zero => bug!("done in `apply`"),
            Op::Seq(f, g) => {
                let y = self.apply(f, x);
                self.apply(g, &y)
            }
            Op::Fork(parts) => {
                let parts = parts.iter().map(|f| self.apply(f, x)).collect();
                self.tuple(parts)
            }
            Op::Ev => {
                let (f, a) = (self.part(x, 0), self.part(x, 1));
                let call = at.app(self.term(&f), self.term(&a));
                self.bind("r", ty, call)
            }
            Op::Curry(body) => {
                let function = self.function(body, x, false, "x");
                self.bind("f", ty, function)
            }
            Op::Const(value) => self.constant(value.clone(), ty),
            Op::Prim { prim, types } => {
                let args = self.parts(x, prim.info().params.len());
                let args: Vec<Term> = args.iter().map(|v| self.term(v)).collect();
                let watched = matches!(treatment(*prim), Treatment::Smooth | Treatment::Primal);
                let call = if watched && !self.scope().linear {
                    watched_prim(at, *prim, types.clone(), args)
                } else {
                    at.prim_at(*prim, types.clone(), args)
                };
                self.bind("y", ty, call)
            }
            Op::Construct { name, types, tag } => {
                let constructors = self.constructors(ty);
                let count = constructors.get(*tag).map_or(0, Vec::len);
                let args = self.parts(x, count);
                let args: Vec<Term> = args.iter().map(|v| self.term(v)).collect();
                self.bind("c", ty, at.construct(name.clone(), types.clone(), *tag, args))
            }
            Op::Case(arms) => {
                let (context, scrutinee) = (self.part(x, 0), self.part(x, 1));
                let constructors = self.constructors(&scrutinee.ty);
                let mut texts = Vec::new();
                for (tag, (arm, types)) in arms.iter().zip(constructors).enumerate() {
                    let vars: Vec<(Var, Type)> = types.into_iter().map(|t| (Var::fresh("x"), t)).collect();
                    let body = self.body(false, |inner| {
                        let values = vars.iter().map(|(v, t)| inner.variable(v, t)).collect();
                        let values = inner.tuple(values);
                        let both = inner.tuple(vec![context.clone(), values]);
                        inner.apply(arm, &both)
                    });
                    texts.push(Arm { tag, vars, body });
                }
                let case = at.case(self.term(&scrutinee), texts, None);
                self.bind("r", ty, case)
            }
            Op::If(then, otherwise) => {
                let (context, condition) = (self.part(x, 0), self.part(x, 1));
                let then = self.body(false, |inner| inner.apply(then, &context));
                let otherwise = self.body(false, |inner| inner.apply(otherwise, &context));
                let choice = at.if_(self.term(&condition), then, otherwise);
                self.bind("r", ty, choice)
            }
            Op::Build(body) => {
                let (context, size) = (self.part(x, 0), self.part(x, 1));
                let item = self.function(body, &context, false, "i");
                let array = at.prim_at(Prim::Build, [body.to.clone()], [self.term(&size), item]);
                self.bind("array", ty, array)
            }
            Op::Ifold(body) => {
                let (context, start) = (self.part(x, 0), self.part(x, 1));
                let (size, initial) = (self.part(&start, 0), self.part(&start, 1));
                let (i, state) = (Var::fresh("i"), Var::fresh("state"));
                let step = self.body(false, |inner| {
                    let index = inner.variable(&i, &Type::Int);
                    let so_far = inner.variable(&state, ty);
                    let with = inner.tuple(vec![context.clone(), index]);
                    let both = inner.tuple(vec![with, so_far]);
                    inner.apply(body, &both)
                });
                let step = at.lambdas(&[(i, Type::Int), (state, ty.clone())], step);
                let fold = at.prim_at(Prim::Ifold, [ty.clone()], [self.term(&size), step, self.term(&initial)]);
                self.bind("r", ty, fold)
            }
            Op::ArrayLiteral(count) => {
                let items = self.parts(x, *count);
                let items = items.iter().map(|v| self.term(v)).collect();
                let Type::Array(element) = ty else { bug!("an array of type {ty:?}") };
                self.bind("array", ty, at.term(TermKind::ArrayLiteral { element: (**element).clone(), items }))
            }
            Op::Rule(rule) => {
                let args = self.parts(x, rule.params.len());
                let args: Vec<Term> = args.iter().map(|v| self.term(v)).collect();
                self.bind("y", ty, at.apps(at.global(rule.function.clone()), args))
            }
            Op::CheckpointEv => bug!("the macro leaves no checkpoints"),
            Op::Plain { vars, term } => {
                let mut copy = Copy::default();
                let mut context = x.clone();
                // The latest variable is on the right.
                for var in vars.iter().rev() {
                    let value = self.part(&context, 1);
                    copy.terms.insert(var.clone(), self.atom(&value));
                    context = self.part(&context, 0);
                }
                let text = at.prim_at(Prim::StopGradient, [ty.clone()], [copy.term(term)]);
                self.bind("y", ty, text)
            }
            Op::Roll(constructor) => {
                if self.is_zero(x) {
                    return self.zero(ty);
                }
                let count = self.constructors(ty).get(recursive::tag(*constructor)).map_or(0, Vec::len);
                let parts = self.parts(x, count);
                let parts: Vec<Term> = parts.iter().map(|v| self.term(v)).collect();
                let Type::Named(name, _) = ty else { bug!("no cotangents of a recursive type: {ty:?}") };
                self.bind("x_adj", ty, at.construct(name.clone(), [], recursive::tag(*constructor), parts))
            }
            Op::Unroll(constructor) => {
                if self.is_zero(x) || is_trivial(ty) {
                    return self.zero(ty);
                }
                let tag = recursive::tag(*constructor);
                let types = self.constructors(&x.ty).into_iter().nth(tag).unwrap_or_default();
                let vars: Vec<(Var, Type)> = types.into_iter().map(|t| (Var::fresh("x_adj"), t)).collect();
                let parts = types::tuple(at, vars.iter().map(|(v, _)| at.var(v)).collect());
                let case = at.case(self.term(x), vec![Arm { tag, vars, body: parts }], Some(types::zero(at, ty)));
                self.bind("parts", ty, case)
            }
            Op::LinearEv => {
                let (map, dy) = (self.part(x, 0), self.part(x, 1));
                if self.is_zero(&dy) || is_trivial(ty) {
                    return self.zero(ty);
                }
                let call = at.app(self.term(&map), self.term(&dy));
                self.bind("x_adj", ty, call)
            }
            Op::LinearCurry(body) => {
                let map = self.function(body, x, true, "dy");
                self.bind("map", ty, map)
            }
            Op::Plus => {
                let (a, b) = (self.part(x, 0), self.part(x, 1));
                self.plus(&a, &b)
            }
            Op::Single => {
                // C equation (10): a use with cotangent zero is none.
                let dy = self.part(x, 1);
                if self.is_zero(&dy) {
                    return self.zero(ty);
                }
                let single = types::one(at, &x.ty, self.term(x));
                self.bind("uses", ty, single)
            }
            Op::Fold(body) => {
                let (context, uses) = (self.part(x, 0), self.part(x, 1));
                if self.is_zero(&uses) || is_trivial(ty) {
                    return self.zero(ty);
                }
                let item = item_of(&uses.ty);
                let (all, zero) = (self.term(&uses), types::zero(at, ty));
                let fold = fold_bag(at, &item, ty, all, zero, |item_term, state| {
                    self.body(true, |inner| {
                        let value = inner.bind("use", &item, item_term);
                        let both = inner.tuple(vec![context, value]);
                        let one = inner.apply(body, &both);
                        let so_far = inner.bind("so_far", ty, state);
                        inner.plus(&so_far, &one)
                    })
                });
                self.bind("x_adj", ty, fold)
            }
            Op::Adjoint(prim) => self.adjoint(*prim, x, ty),
            Op::Collect => {
                let (size, uses) = (self.part(x, 0), self.part(x, 1));
                let Type::Array(element) = ty else { bug!("an array of type {ty:?}") };
                let sums = collect(at, element, self.term(&size), self.term(&uses));
                self.bind("sums", ty, sums)
            }
            Op::PullBuild => self.pull_build(x, ty),
            Op::PullIfold => self.pull_ifold(x, ty),
            Op::RuleAdjoint(rule) => {
                let (args, dy) = (self.part(x, 0), self.part(x, 1));
                if self.is_zero(&dy) {
                    return self.zero(ty);
                }
                let args = self.parts(&args, rule.params.len());
                let args: Vec<Term> = args.iter().map(|v| self.atom(v)).collect();
                let y = self.bind("y", &rule.result, at.apps(at.global(rule.function.clone()), args.clone()));
                let (y, dy) = (self.atom(&y), self.atom(&dy));
                let dy = types::from_cotangent(self.linker, at, &rule.result, y, dy);
                let Ok(dy) = dy else { bug!("a custom rule at a type without cotangents") };
                let dy = self.bind("dy", &rule.result, dy);
                let dy = self.atom(&dy);
                let inputs = self.bind("dx", &rule.inputs(), rule.pull(at, &args, dy));
                let inputs = self.atom(&inputs);
                let Ok(dx) = types::to_cotangent(self.linker, at, &rule.inputs(), inputs) else {
                    bug!("a custom rule at a type without cotangents")
                };
                self.bind("x_adj", ty, dx)
            }
        }
    }

    /// `fun y -> body (x, y)`
    pub fn function(&mut self, body: &Comb, x: &Value, linear: bool, name: &str) -> Term {
        let Type::Tuple(ends) = &body.from else { bug!("the body of a function from {:?}", body.from) };
        let (var, ty) = (Var::fresh(name), ends[1].clone());
        let text = self.body(linear, |inner| {
            let y = inner.variable(&var, &ty);
            let both = inner.tuple(vec![x.clone(), y]);
            inner.apply(body, &both)
        });
        self.at().lambda(&var, ty, text)
    }

    /// The arguments of each constructor.
    fn constructors(&self, ty: &Type) -> Vec<Vec<Type>> {
        let Type::Named(name, args) = ty else { bug!("no declared type: {ty:?}") };
        match self.linker.declaration(name) {
            Ok(declaration) => declaration.constructors(args).into_iter().map(|(_, types)| types).collect(),
            Err(_) => bug!("no type {}", name.base),
        }
    }

    /// dy times the partial derivatives, for each argument.
    fn adjoint(&mut self, prim: Prim, x: &Value, ty: &Type) -> Value {
        let at = self.at();
        let (args, dy) = (self.part(x, 0), self.part(x, 1));
        if self.is_zero(&dy) {
            return self.zero(ty);
        }
        let args = self.parts(&args, prim.info().params.len());
        let atoms: Vec<Term> = args.iter().map(|v| self.atom(v)).collect();
        let mut adjoints = Vec::new();
        for partial in dual::partials(at, prim, &atoms) {
            adjoints.push(match partial {
                None => self.zero(&Type::Unit),
                Some(partial) if is_one(&partial) => dy.clone(),
                Some(partial) => {
                    let product = mul(at, partial, self.term(&dy));
                    self.bind("x_adj", &Type::Real, product)
                }
            });
        }
        self.tuple(adjoints)
    }

    /// The sum over i of the linear map of element i at the cotangent of element i.
    fn pull_build(&mut self, x: &Value, ty: &Type) -> Value {
        let at = self.at();
        let (array, uses) = (self.part(x, 0), self.part(x, 1));
        if self.is_zero(&uses) || is_trivial(ty) {
            return self.zero(ty);
        }
        let Type::Array(element) = &array.ty else { bug!("no array: {:?}", array.ty) };
        let cotangent = match &item_of(&uses.ty) {
            Type::Tuple(parts) => parts[1].clone(),
            other => bug!("no uses of an array: {other:?}"),
        };
        let array = self.atom(&array);
        let size = self.bind("size", &Type::Int, length(at, element, array.clone()));
        let size = self.atom(&size);
        let sums = collect(at, &cotangent, size.clone(), self.term(&uses));
        let sums = self.bind("sums", &Type::array(cotangent.clone()), sums);
        let sums = self.atom(&sums);
        let total = crate::write::ifold(at, ty, size, types::zero(at, ty), |i, state| {
            self.body(true, |inner| {
                let map = at.proj(get(at, element, array, i.clone()), 1);
                let result = pair(ty, &Type::Unit);
                let one = inner.bind("one", &result, at.app(map, get(at, &cotangent, sums, i)));
                let (one, so_far) = (inner.component(&one, 0, ty), inner.bind("so_far", ty, state));
                inner.plus(&so_far, &one)
            })
        });
        self.bind("x_adj", ty, total)
    }

    /// Through the linear maps of the steps, the latest first: the cotangent of the state goes in and comes out, those of the context add up.
    fn pull_ifold(&mut self, x: &Value, ty: &Type) -> Value {
        let at = self.at();
        let (maps, dy) = (self.part(x, 0), self.part(x, 1));
        if self.is_zero(&dy) || is_trivial(ty) {
            return self.zero(ty);
        }
        let Type::Tuple(ends) = ty else { bug!("no pair: {ty:?}") };
        let (context, state) = (ends[0].clone(), ends[1].clone());
        let step = pair(&pair(&context, &Type::Unit), &state);
        let map = Type::fun(state.clone(), step.clone());
        let params = [("todo", maps.ty.clone()), ("sum", context.clone()), ("dy", state.clone())];
        let start = [self.term(&maps), types::zero(at, &context), self.term(&dy)];
        let (first, rest) = (Var::fresh("map"), Var::fresh("rest"));
        let looped = letrec(
            at,
            "back",
            &params,
            ty,
            |again, args| {
                let more = self.body(true, |inner| {
                    let result = inner.bind("r", &step, at.app(at.var(&first), args[2].clone()));
                    let (dx, dy) = (inner.part(&result, 0), inner.part(&result, 1));
                    let dx = inner.part(&dx, 0);
                    let so_far = inner.bind("so_far", &context, args[1].clone());
                    let sum = inner.plus(&so_far, &dx);
                    let call = at.apps(again, [at.var(&rest), inner.term(&sum), inner.term(&dy)]);
                    // Not bound: the loop must stay one.
                    inner.constant(call, ty)
                });
                let arms = vec![
                    Arm { tag: 0, vars: vec![], body: at.tuple([args[1].clone(), args[2].clone()]) },
                    Arm { tag: 1, vars: vec![(first, map), (rest, params[0].1.clone())], body: more },
                ];
                at.case(args[0].clone(), arms, None)
            },
            |back| at.apps(back, start),
        );
        self.bind("x_adj", ty, looped)
    }
}
