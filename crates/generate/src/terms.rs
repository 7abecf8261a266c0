//! Random terms, directed by their type.
//!
//! Three rules keep every program total, cheap and smooth: recursion and loops run at most [`MAX_ROUNDS`] times and nest at most
//! twice; integers stay within `0..7`, so that indices (taken modulo the length of a non-empty array) are in bounds; and
//! inside loops real operations do not multiply magnitudes.

mod repetition;

use crate::points::{constructor_args, EDGES};
use crate::{Feature, Features, Rng};
use gradus_core::build::At;
use gradus_core::{Arm, DeriveOp, Global, Prim, Symbol, Term, TermKind, Type, TypeName, Var};
use std::sync::Arc;

const MAX_ROUNDS: usize = 3;
const MAX_LOOP_DEPTH: usize = 2;
const MAX_DERIVATIVE_DEPTH: usize = 2;

pub(crate) struct Generator<'a> {
    pub(crate) rng: Rng,
    features: Features,
    rough: bool,
    /// Top-level functions that may be called.
    helpers: &'a [(Symbol, Type)],
    scope: Vec<(Var, Type)>,
    loop_depth: usize,
    derivative_depth: usize,
    at: At,
}

/// What can be made at any type.
#[derive(Clone, Copy)]
enum Shape {
    Let,
    If,
    Apply,
    CallHelper,
    CallVariable,
    MatchVariant,
    RecurseOnNumber,
    RecurseOnData,
    Iterate,
    Fold,
    Index,
    /// A constructor of the type itself.
    Own,
    /// The derivative of something.
    Derivative,
    VectorSpace,
    Checkpoint,
}

impl<'a> Generator<'a> {
    pub(crate) fn new(rng: Rng, features: Features, rough: bool, helpers: &'a [(Symbol, Type)]) -> Self {
        let at = At::default();
        Generator { rng, features, rough, helpers, scope: Vec::new(), loop_depth: 0, derivative_depth: 0, at }
    }

    pub(crate) fn has(&self, feature: Feature) -> bool {
        self.features.has(feature)
    }

    pub(crate) fn bring_into_scope(&mut self, var: &Var, ty: Type) {
        self.scope.push((var.clone(), ty));
    }

    /// Runs `make` with more variables in scope.
    fn within<R>(&mut self, vars: &[(Var, Type)], make: impl FnOnce(&mut Self) -> R) -> R {
        let outside = self.scope.len();
        self.scope.extend(vars.iter().cloned());
        let made = make(self);
        self.scope.truncate(outside);
        made
    }

    /// A data type, small.
    pub(crate) fn data_type(&mut self, depth: usize) -> Type {
        let mut choices = vec![Type::Real, Type::Real, Type::Int];
        if depth > 0 {
            let part = self.data_type(depth - 1);
            if self.has(Feature::Products) {
                choices.push(Type::tuple([Type::Real, part.clone()]));
            }
            if self.has(Feature::Arrays) {
                choices.push(Type::array(Type::Real));
            }
            if self.has(Feature::Variants) {
                choices.push(Type::option(Type::Real));
                choices.push(Type::either(Type::Real, part));
            }
            if self.has(Feature::RecursiveTypes) {
                choices.push(Type::list(Type::Real));
                choices.push(Type::named("tree", [Type::Real]));
            }
        }
        self.rng.pick(&choices).clone()
    }

    /// Any type, functions included.
    fn any_type(&mut self) -> Type {
        if self.has(Feature::HigherOrder) && self.rng.chance(1, 3) {
            let function = Type::fun(self.data_type(1), self.data_type(1));
            return match self.rng.below(6) {
                0 => Type::tuple([function, Type::Real]),
                1 => Type::option(function),
                2 => Type::fun(function, self.data_type(1)),
                _ => function,
            };
        }
        self.data_type(2)
    }

    /// A term of the type, of roughly the given number of nodes.
    pub(crate) fn term(&mut self, ty: &Type, size: usize) -> Term {
        if size <= 1 {
            return self.leaf(ty);
        }
        match self.shape(ty) {
            Shape::Own => self.own(ty, size),
            Shape::Let => {
                let (var, bound_ty) = (Var::fresh("v"), self.any_type());
                let bound = self.term(&bound_ty, size / 2);
                let body = self.within(&[(var.clone(), bound_ty.clone())], |g| g.term(ty, size / 2));
                self.at.bind(&var, bound_ty, bound, body)
            }
            Shape::If => {
                let condition = self.condition(size / 4);
                let then = self.term(ty, size / 3);
                let otherwise = self.term(ty, size / 3);
                self.at.if_(condition, then, otherwise)
            }
            Shape::Apply => {
                let from = self.any_type();
                let function = self.term(&Type::fun(from.clone(), ty.clone()), size / 2);
                let argument = self.term(&from, size / 2);
                self.at.app(function, argument)
            }
            Shape::CallHelper => self.call_helper(ty, size),
            Shape::CallVariable => self.call_variable(ty, size),
            Shape::MatchVariant => self.match_variant(ty, size),
            Shape::RecurseOnNumber => self.recurse_on_number(ty, size),
            Shape::RecurseOnData => self.recurse_on_data(ty, size),
            Shape::Iterate => self.iterate(ty, size),
            Shape::Fold => self.fold(ty, size),
            Shape::Index => self.index(ty, size),
            Shape::Derivative => self.derivative(ty, size),
            Shape::VectorSpace => self.vector_space(ty, size),
            Shape::Checkpoint => {
                let from = self.any_type();
                let function = self.term(&Type::fun(from.clone(), ty.clone()), size / 2);
                let argument = self.term(&from, size / 2);
                self.at.prim_at(Prim::Checkpoint, [from, ty.clone()], [function, argument])
            }
        }
    }

    fn shape(&mut self, ty: &Type) -> Shape {
        let mut shapes = vec![Shape::Own; 6];
        let mut offer = |on: bool, shape: Shape| {
            if on {
                shapes.push(shape)
            }
        };
        let loops = self.loop_depth < MAX_LOOP_DEPTH;
        offer(self.has(Feature::Sharing), Shape::Let);
        offer(self.has(Feature::Sharing), Shape::Let);
        offer(self.has(Feature::Conditionals), Shape::If);
        offer(self.has(Feature::HigherOrder), Shape::Apply);
        offer(self.helpers.iter().any(|(_, t)| result(t) == Some(ty)), Shape::CallHelper);
        offer(self.scope.iter().any(|(_, t)| result(t) == Some(ty)), Shape::CallVariable);
        offer(self.has(Feature::Variants), Shape::MatchVariant);
        offer(self.has(Feature::Recursion) && loops, Shape::RecurseOnNumber);
        offer(self.has(Feature::RecursiveTypes) && loops, Shape::RecurseOnData);
        offer(self.has(Feature::Iteration) && loops, Shape::Iterate);
        offer(self.has(Feature::Arrays) && loops, Shape::Fold);
        offer(self.has(Feature::Arrays) && *ty == Type::Real, Shape::Index);
        let derivable = self.has(Feature::NestedDerivatives) && self.derivative_depth < MAX_DERIVATIVE_DEPTH;
        offer(derivable && only_reals(ty), Shape::Derivative);
        offer(self.has(Feature::VectorSpace) && only_reals(ty), Shape::VectorSpace);
        offer(self.has(Feature::Checkpoints), Shape::Checkpoint);
        *self.rng.pick(&shapes)
    }

    /// A variable, a literal, or the smallest constructor.
    fn leaf(&mut self, ty: &Type) -> Term {
        let mut found: Vec<Term> = Vec::new();
        for (var, t) in &self.scope {
            if t == ty {
                found.push(self.at.var(var));
            }
            if let Type::Tuple(parts) = t {
                for (index, _) in parts.iter().enumerate().filter(|(_, part)| *part == ty) {
                    found.push(self.at.proj(self.at.var(var), index));
                }
            }
        }
        if !found.is_empty() && self.rng.chance(7, 8) {
            return self.rng.pick(&found).clone();
        }
        match ty {
            Type::Real => self.literal(),
            Type::Int => self.at.int(self.rng.below(4) as i64),
            Type::Bool => self.at.bool(self.rng.chance(1, 2)),
            Type::Unit => self.at.unit(),
            Type::Tuple(parts) => self.at.tuple(parts.iter().map(|t| self.leaf(t)).collect::<Vec<_>>()),
            Type::Array(element) => self.array_literal(element, 2, 1),
            Type::Named(name, types) => {
                let tag = usize::from(&*name.base == "option" && self.rng.chance(1, 2));
                self.construct(name, types, tag, 1)
            }
            Type::Fun(_) => self.lambda(ty, 1),
            Type::Var(_) | Type::String => gradus_source::bug!("random programs have no type {ty:?}"),
        }
    }

    fn literal(&mut self) -> Term {
        if self.rough && self.rng.chance(1, 2) {
            return self.at.real(*self.rng.pick(&EDGES));
        }
        // One zero: the reals have no negative one.
        self.at.real((self.rng.unit() * 200.0).round() / 100.0 + 0.0)
    }

    /// A term whose outermost form belongs to the type.
    fn own(&mut self, ty: &Type, size: usize) -> Term {
        match ty {
            Type::Real => self.real(size),
            Type::Int => self.int(size),
            Type::Bool => self.condition(size),
            Type::Unit => self.at.unit(),
            Type::Tuple(parts) => {
                let share = size / parts.len();
                self.at.tuple(parts.iter().map(|t| self.term(t, share)).collect::<Vec<_>>())
            }
            Type::Array(element) => self.array(element, size),
            Type::Named(name, types) => {
                let tag = usize::from(self.rng.chance(2, 3));
                self.construct(name, types, tag, size)
            }
            Type::Fun(_) => self.lambda(ty, size),
            Type::Var(_) | Type::String => gradus_source::bug!("random programs have no type {ty:?}"),
        }
    }

    /// Any scalar primitive, at any argument.
    fn rough_real(&mut self, size: usize) -> Term {
        const UNARY: [Prim; 14] = [
            Prim::Exp,
            Prim::Log,
            Prim::Sqrt,
            Prim::Tan,
            Prim::Asin,
            Prim::Acos,
            Prim::Atan,
            Prim::Sinh,
            Prim::Cosh,
            Prim::Log1p,
            Prim::Expm1,
            Prim::Abs,
            Prim::Erf,
            Prim::Lgamma,
        ];
        const BINARY: [Prim; 5] = [Prim::DivReal, Prim::PowReal, Prim::Atan2, Prim::Maximum, Prim::Minimum];
        let at = self.at;
        match self.rng.below(4) {
            0 | 1 => {
                let prim = *self.rng.pick(&UNARY);
                at.prim(prim, [self.term(&Type::Real, size - 1)])
            }
            2 => {
                let prim = *self.rng.pick(&BINARY);
                at.prim(prim, [self.term(&Type::Real, size / 2), self.term(&Type::Real, size / 2)])
            }
            _ => {
                let real = self.term(&Type::Real, size / 2);
                if self.rng.chance(1, 4) {
                    return at.prim(Prim::Polygamma, [at.int(self.rng.below(4) as i64 - 1), real]);
                }
                let exponent = match self.rng.chance(1, 2) {
                    true => at.int(self.rng.below(6) as i64 - 2),
                    false => self.term(&Type::Int, size / 4),
                };
                at.prim(Prim::PowRealInt, [real, exponent])
            }
        }
    }

    fn real(&mut self, size: usize) -> Term {
        if self.rough && self.rng.chance(1, 2) {
            return self.rough_real(size);
        }
        let at = self.at;
        let unary = |g: &mut Self, prim| at.prim(prim, [g.term(&Type::Real, size - 1)]);
        match self.rng.below(13) {
            0 | 1 => at.prim(Prim::AddReal, [self.term(&Type::Real, size / 2), self.term(&Type::Real, size / 2)]),
            2 => at.prim(Prim::SubReal, [self.term(&Type::Real, size / 2), self.term(&Type::Real, size / 2)]),
            3 | 4 => {
                let (left, mut right) = (self.term(&Type::Real, size / 2), self.term(&Type::Real, size / 2));
                if self.loop_depth > 0 {
                    right = at.prim(Prim::Tanh, [right]);
                }
                at.prim(Prim::MulReal, [left, right])
            }
            5 => unary(self, Prim::NegReal),
            6 => unary(self, Prim::Sin),
            7 => unary(self, Prim::Cos),
            8 => unary(self, Prim::Tanh),
            9 => {
                let bounded = unary(self, Prim::Sin);
                at.prim(Prim::Exp, [bounded])
            }
            10 => {
                let argument = self.term(&Type::Real, size - 1);
                let prim = *self.rng.pick(&[Prim::Log, Prim::Sqrt]);
                self.one_plus_square(argument, |sum| at.prim(prim, [sum]))
            }
            11 => {
                let above = self.term(&Type::Real, size / 2);
                let below = self.term(&Type::Real, size / 2);
                self.one_plus_square(below, |sum| at.prim(Prim::DivReal, [above, sum]))
            }
            _ => at.prim(Prim::RealOfInt, [self.term(&Type::Int, size / 2)]),
        }
    }

    /// `let v = argument in use (1 + v * v)`: an argument inside the domain of everything.
    fn one_plus_square(&mut self, argument: Term, make: impl FnOnce(Term) -> Term) -> Term {
        let (at, var) = (self.at, Var::fresh("v"));
        let square = at.prim(Prim::MulReal, [at.var(&var), at.var(&var)]);
        let sum = at.prim(Prim::AddReal, [at.real(1.0), square]);
        at.bind(&var, Type::Real, argument, make(sum))
    }

    /// An integer in `0..7`.
    fn int(&mut self, size: usize) -> Term {
        let at = self.at;
        if self.rough && self.rng.chance(1, 3) {
            // Within the integers of every evaluator, whatever the argument.
            let bounded = at.prim(Prim::Tanh, [self.term(&Type::Real, size / 2)]);
            let prim = *self.rng.pick(&[Prim::Floor, Prim::Round, Prim::Truncate]);
            return at.prim(prim, [at.prim(Prim::MulReal, [at.real(2.5), bounded])]);
        }
        let prims: &[Prim] =
            if self.rough { &[Prim::AddInt, Prim::MulInt, Prim::PowInt] } else { &[Prim::AddInt, Prim::MulInt] };
        let prim = *self.rng.pick(prims);
        let sum = at.prim(prim, [self.term(&Type::Int, size / 2), self.term(&Type::Int, size / 2)]);
        at.prim(Prim::ModInt, [sum, at.int(7)])
    }

    fn condition(&mut self, size: usize) -> Term {
        let at = self.at;
        if self.rng.chance(1, 2) {
            let prim = *self.rng.pick(&[Prim::Less, Prim::LessEqual, Prim::Equal]);
            return at.prim_at(prim, [Type::Int], [self.term(&Type::Int, size / 2), self.term(&Type::Int, size / 2)]);
        }
        if self.rough && self.rng.chance(1, 2) {
            let prims = [Prim::Less, Prim::LessEqual, Prim::Equal, Prim::NotEqual, Prim::Greater, Prim::GreaterEqual];
            let prim = *self.rng.pick(&prims);
            let sides = [self.term(&Type::Real, size / 2), self.term(&Type::Real, size / 2)];
            return at.prim_at(prim, [Type::Real], sides);
        }
        // An odd constant: no computed value meets it by accident.
        let boundary = at.real(self.rng.unit() + 1.234_567e-7);
        let prim = *self.rng.pick(&[Prim::Less, Prim::Greater]);
        at.prim_at(prim, [Type::Real], [self.term(&Type::Real, size / 2), boundary])
    }

    fn lambda(&mut self, ty: &Type, size: usize) -> Term {
        let Type::Fun(fun) = ty else { gradus_source::bug!("{ty:?} is not a function type") };
        let param = Var::fresh("x");
        let body = self.within(&[(param.clone(), fun.0.clone())], |g| g.term(&fun.1, size.saturating_sub(1)));
        self.at.lambda(&param, fun.0.clone(), body)
    }

    fn array_literal(&mut self, element: &Type, count: usize, size: usize) -> Term {
        let items = (0..count).map(|_| self.term(element, size / count)).collect();
        self.at.term(TermKind::ArrayLiteral { element: element.clone(), items })
    }

    fn array(&mut self, element: &Type, size: usize) -> Term {
        let at = self.at;
        match self.rng.below(3) {
            0 => {
                let count = 1 + self.rng.below(3);
                self.array_literal(element, count, size)
            }
            1 => {
                let count = at.int(1 + self.rng.below(MAX_ROUNDS) as i64);
                self.loop_depth += 1;
                let function = self.lambda(&Type::fun(Type::Int, element.clone()), size / 2);
                self.loop_depth -= 1;
                at.prim_at(Prim::Build, [element.clone()], [count, function])
            }
            _ => {
                let var = Var::fresh("a");
                let array = self.term(&Type::array(element.clone()), size / 2);
                let index = self.index_into(&var, element, size / 4);
                let item = self.term(element, size / 4);
                let set = at.prim_at(Prim::Set, [element.clone()], [at.var(&var), index, item]);
                at.bind(&var, Type::array(element.clone()), array, set)
            }
        }
    }

    /// An index of the non-empty array in `var`.
    fn index_into(&mut self, var: &Var, element: &Type, size: usize) -> Term {
        let at = self.at;
        let length = at.prim_at(Prim::Length, [element.clone()], [at.var(var)]);
        at.prim(Prim::ModInt, [self.term(&Type::Int, size), length])
    }

    fn index(&mut self, element: &Type, size: usize) -> Term {
        let (at, var) = (self.at, Var::fresh("a"));
        let array_ty = Type::array(element.clone());
        let array = self.term(&array_ty, size / 2);
        let index = self.index_into(&var, element, size / 4);
        let get = at.prim_at(Prim::Get, [element.clone()], [at.var(&var), index]);
        at.bind(&var, array_ty, array, get)
    }

    fn construct(&mut self, name: &TypeName, types: &Arc<[Type]>, tag: usize, size: usize) -> Term {
        let args = constructor_args(name, types, tag);
        let share = size / args.len().max(1);
        let args: Vec<Term> = args.iter().map(|t| self.term(t, share.min(size.saturating_sub(1)))).collect();
        self.at.construct(name.clone(), types.clone(), tag, args)
    }

    fn call_helper(&mut self, ty: &Type, size: usize) -> Term {
        let fitting: Vec<_> = self.helpers.iter().filter(|(_, t)| result(t) == Some(ty)).cloned().collect();
        let (name, function) = self.rng.pick(&fitting).clone();
        let function_term = self.at.global(Global::Source { name, types: Arc::from([]) });
        self.apply(function_term, &function, size)
    }

    fn call_variable(&mut self, ty: &Type, size: usize) -> Term {
        let fitting: Vec<_> = self.scope.iter().filter(|(_, t)| result(t) == Some(ty)).cloned().collect();
        let (var, function) = self.rng.pick(&fitting).clone();
        self.apply(self.at.var(&var), &function, size)
    }

    fn apply(&mut self, function: Term, ty: &Type, size: usize) -> Term {
        let Type::Fun(fun) = ty else { gradus_source::bug!("{ty:?} is not a function type") };
        let argument = self.term(&fun.0, size - 1);
        self.at.app(function, argument)
    }

    fn match_variant(&mut self, ty: &Type, size: usize) -> Term {
        let left = self.data_type(1);
        let scrutinee_ty = match self.rng.below(2) {
            0 => Type::option(left),
            _ => Type::either(left, Type::Real),
        };
        let scrutinee = self.term(&scrutinee_ty, size / 3);
        let arms = self.arms(&scrutinee_ty, |g, _, vars| g.within(vars, |g| g.term(ty, size / 3)));
        self.at.case(scrutinee, arms, None)
    }

    /// One arm for each of the two constructors, with fresh variables.
    fn arms(&mut self, ty: &Type, mut body: impl FnMut(&mut Self, usize, &[(Var, Type)]) -> Term) -> Vec<Arm> {
        let Type::Named(name, types) = ty else { gradus_source::bug!("{ty:?} is not a variant") };
        (0..2)
            .map(|tag| {
                let vars: Vec<_> =
                    constructor_args(name, types, tag).into_iter().map(|t| (Var::fresh("p"), t)).collect();
                Arm { tag, body: body(self, tag, &vars), vars }
            })
            .collect()
    }

    /// A derivative of a random function, of the type asked for.
    fn derivative(&mut self, ty: &Type, size: usize) -> Term {
        let at = self.at;
        self.derivative_depth += 1;
        let made = match (ty, self.rng.below(3)) {
            (Type::Real, 0) => {
                let function = self.lambda(&Type::fun(Type::Real, Type::Real), size / 2);
                let point = self.term(&Type::Real, size / 3);
                at.term(TermKind::Derive { op: DeriveOp::Diff, types: Arc::from([]), args: vec![function, point] })
            }
            (Type::Real, 1) => {
                let input = self.real_type();
                let function = self.lambda(&Type::fun(input.clone(), Type::Real), size / 2);
                let (point, var) = (self.term(&input, size / 4), Var::fresh("v"));
                let factor = self.term(&Type::Real, size / 4);
                let tangent = at.prim_at(Prim::Scale, [input.clone()], [factor, at.var(&var)]);
                let types = Arc::from([input.clone(), Type::Real]);
                let args = vec![function, at.var(&var), tangent];
                at.bind(&var, input, point, at.term(TermKind::Derive { op: DeriveOp::Jvp, types, args }))
            }
            (_, 2) => {
                let function = self.lambda(&Type::fun(ty.clone(), Type::Real), size / 2);
                let (point, cotangent) = (self.term(ty, size / 4), self.term(&Type::Real, size / 4));
                let types = Arc::from([ty.clone(), Type::Real]);
                at.term(TermKind::Derive { op: DeriveOp::Vjp, types, args: vec![function, point, cotangent] })
            }
            _ => {
                let function = self.lambda(&Type::fun(ty.clone(), Type::Real), size / 2);
                let point = self.term(ty, size / 3);
                let types = Arc::from([ty.clone()]);
                at.term(TermKind::Derive { op: DeriveOp::Grad, types, args: vec![function, point] })
            }
        };
        self.derivative_depth -= 1;
        made
    }

    /// A data type made of reals only.
    fn real_type(&mut self) -> Type {
        let mut choices = vec![Type::Real];
        if self.has(Feature::Products) {
            choices.push(Type::tuple([Type::Real, Type::Real]));
        }
        if self.has(Feature::Arrays) {
            choices.push(Type::array(Type::Real));
        }
        if self.has(Feature::RecursiveTypes) {
            choices.push(Type::list(Type::Real));
        }
        self.rng.pick(&choices).clone()
    }

    /// `let v = e in v <+> k *> v`: equal shapes without effort.
    fn vector_space(&mut self, ty: &Type, size: usize) -> Term {
        let (at, var) = (self.at, Var::fresh("v"));
        let value = self.term(ty, size / 2);
        let factor = self.term(&Type::Real, size / 4);
        let scaled = at.prim_at(Prim::Scale, [ty.clone()], [at.prim(Prim::Tanh, [factor]), at.var(&var)]);
        let prim = *self.rng.pick(&[Prim::VectorAdd, Prim::VectorSub]);
        at.bind(&var, ty.clone(), value, at.prim_at(prim, [ty.clone()], [at.var(&var), scaled]))
    }
}

/// The result of a function type, if it is one.
fn result(ty: &Type) -> Option<&Type> {
    match ty {
        Type::Fun(fun) => Some(&fun.1),
        _ => None,
    }
}

/// Whether the type is a data type that contains reals and no other leaves.
fn only_reals(ty: &Type) -> bool {
    match ty {
        Type::Real => true,
        Type::Tuple(parts) => parts.iter().all(only_reals),
        Type::Array(element) => only_reals(element),
        Type::Named(_, types) => types.iter().all(only_reals),
        Type::Var(_) | Type::Int | Type::Bool | Type::String | Type::Unit | Type::Fun(_) => false,
    }
}
