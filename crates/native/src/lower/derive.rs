//! Derivative forms: the function is lowered to a block with variables of its own for the point, and the block is differentiated
//! as flow. A form inside it has been expanded by then, so nesting is differentiating the result.

use super::value::{Function, Value};
use super::{Lowered, Lowering};
use crate::flow::walk::Renaming;
use crate::flow::{Atom, Block, Builder, Failure, FunctionId, Op, Scalar, ShapeId, Type as Leaf, Var};
use crate::refusal::Reason;
use crate::{adjoint, tangent};
use gradus_core::{DeriveOp, Prim, Type};
use gradus_source::Span;
use rustc_hash::FxHashMap;
use std::rc::Rc;
use std::sync::Arc;

/// The order up to which Taylor coefficients are compiled: each derivative at most doubles the code.
const HIGHEST_TAYLOR: i64 = 6;

/// A Jacobian with more rows than this is taken by columns.
const FEW_ROWS: usize = 8;

/// How many reals a result of a block has, if that is known: it is no array, or a list of items.
fn length_in(block: &Block, result: Atom) -> Option<usize> {
    match result {
        Atom::Var(var) if !var.ty.is_real() => Some(0),
        Atom::Var(var) if var.ty.is_array() => {
            let made = block.stmts.iter().find(|s| s.binds.contains(&var))?;
            match &made.op {
                Op::Literal { items, ty } if ty.rank == 1 => Some(items.len()),
                _ => None,
            }
        }
        _ => Some(usize::from(result.ty().is_real())),
    }
}

/// A function applied at a point, as a block of its own.
struct Applied {
    /// For each leaf of the point: the variable that stands for it in the block, if it can have a derivative.
    point: Vec<(Atom, Option<Var>)>,
    block: Block,
    /// The function's value, in terms of the block's variables.
    types: (Type, Type),
}

impl Applied {
    fn wrt(&self) -> Vec<Var> {
        self.point.iter().filter_map(|(_, v)| *v).collect()
    }
}

impl Lowering<'_> {
    pub(super) fn derivative(
        &mut self,
        op: DeriveOp,
        types: &Arc<[Type]>,
        args: Vec<Value>,
        span: Span,
    ) -> Lowered<Value> {
        let a = types.first().cloned().unwrap_or(Type::Real);
        let b = types.get(1).cloned().unwrap_or(Type::Real);
        match (op, &args[..]) {
            (DeriveOp::Grad, [f, x]) => Ok(self.gradient(f, x, &a, span)?.1),
            (DeriveOp::ValueAndGrad, [f, x]) => {
                let (value, gradient) = self.gradient(f, x, &a, span)?;
                Ok(Value::tuple(vec![value, gradient]))
            }
            (DeriveOp::Vjp, [f, x, dy]) => Ok(self.vjp(f, x, dy, (&a, &b), span)?.1),
            (DeriveOp::Jvp, [f, x, dx]) => Ok(self.jvp(f, x, dx, (&a, &b), span)?.1),
            (DeriveOp::Diff, [f, x]) => Ok(self.jvp(f, x, &Value::real(1.0), (&a, &b), span)?.1),
            (DeriveOp::Pullback, [f, x]) => {
                let value = self.apply(f.clone(), x.clone(), span)?;
                let map = Function::Derivative { op: DeriveOp::Vjp, types: types.clone(), args };
                Ok(Value::tuple(vec![value, Value::Function(Rc::new(map))]))
            }
            (DeriveOp::Linearize, [f, x]) => {
                let value = self.apply(f.clone(), x.clone(), span)?;
                let map = Function::Derivative { op: DeriveOp::Jvp, types: types.clone(), args };
                Ok(Value::tuple(vec![value, Value::Function(Rc::new(map))]))
            }
            (DeriveOp::Hvp, [f, x, v]) => self.hvp(f, x, v, &a, span),
            (DeriveOp::Jacobian, [f, x]) => self.jacobian(f, x, (&a, &b), span),
            (DeriveOp::Hessian, [f, x]) => self.hessian(f, x, &a, span),
            (DeriveOp::Taylor, [order, f, x]) => match self.leaf(order) {
                Atom::Int(order) if order < 0 => {
                    self.b.check(Atom::Bool(false), Failure::Count);
                    self.array_literal(&Type::Real, &[], span)
                }
                Atom::Int(order) if order <= HIGHEST_TAYLOR => self.taylor(order as usize, f, x, span),
                _ => self.refuse(
                    Reason::Derivative("`taylor` of a high order, or one that is only known at run time"),
                    span,
                ),
            },
            _ => gradus_source::bug!("{op:?} with {} arguments", args.len()),
        }
    }

    /// Lowers `f x` to a block in which the reals of `x` are variables of their own.
    fn applied(&mut self, f: &Value, x: &Value, types: (&Type, &Type), span: Span) -> Lowered<Applied> {
        let leaves = self.flatten(x, types.0, span)?;
        let mut point = Vec::new();
        for leaf in leaves {
            let var = leaf
                .ty()
                .may_be_active()
                .then(|| Var::fresh(leaf.var().map_or_else(|| "x".into(), |v| v.name), leaf.ty()));
            if let Some(var) = var {
                self.b.bind(vec![var], Op::Copy { value: leaf });
            }
            point.push((leaf, var));
        }
        let mut inside = point.iter().map(|(leaf, var)| var.map_or(*leaf, Atom::Var));
        let x = self.unflatten(types.0, &mut inside, span)?;
        self.b.push();
        let value = self.apply(f.clone(), x, span)?;
        let results = self.flatten(&value, types.1, span)?;
        let mut block = self.b.pop(results);
        if self.calls_unfinished(&block) {
            return self.refuse(Reason::Foreign("the derivative of a function inside itself".into()), span);
        }
        crate::simplify::block(&mut block, &self.module);
        Ok(Applied { point, block, types: (types.0.clone(), types.1.clone()) })
    }

    /// A value in the shape of the point, with these for its reals.
    fn in_point(&mut self, applied: &Applied, reals: Vec<Atom>, span: Span) -> Lowered<Value> {
        let mut reals = reals.into_iter();
        let mut leaves = Vec::new();
        for (leaf, var) in &applied.point {
            leaves.push(match var.and_then(|_| reals.next()) {
                Some(real) => self.rebuild_leaf(*leaf, real, span)?,
                None => *leaf,
            });
        }
        self.unflatten(&applied.types.0, &mut leaves.into_iter(), span)
    }

    fn gradient(&mut self, f: &Value, x: &Value, a: &Type, span: Span) -> Lowered<(Value, Value)> {
        let applied = self.applied(f, x, (a, &Type::Real), span)?;
        let seed = |_: &mut Builder, _: &[Atom]| vec![Some(Atom::Real(1.0))];
        let (values, adjs) = self.reverse(&applied, seed, span);
        let gradient = self.in_point(&applied, adjs, span)?;
        Ok((Value::Leaf(values[0]), gradient))
    }

    fn reverse(
        &mut self,
        applied: &Applied,
        seed: impl FnOnce(&mut Builder, &[Atom]) -> Vec<Option<Atom>>,
        span: Span,
    ) -> (Vec<Atom>, Vec<Atom>) {
        let wrt = applied.wrt();
        let block = applied.block.clone();
        let result = adjoint::reverse(&mut self.b, &mut self.module, &mut self.adjoints, block, &wrt, seed);
        self.b.span = span;
        result
    }

    fn vjp(&mut self, f: &Value, x: &Value, dy: &Value, types: (&Type, &Type), span: Span) -> Lowered<(Value, Value)> {
        let seeds = self.flatten(dy, types.1, span)?;
        let applied = self.applied(f, x, types, span)?;
        let mut projections = FxHashMap::default();
        for shape in seeds.iter().filter_map(|a| a.ty().shape()) {
            let function = self.project_function(shape, span)?;
            projections.insert(shape, (function, self.module.linear(shape)));
        }
        let seed = |b: &mut Builder, values: &[Atom]| {
            let pairs = values.iter().zip(&seeds);
            let active = |value: &Atom| value.ty().may_be_active();
            pairs.map(|(value, seed)| active(value).then(|| shaped(b, *seed, *value, &projections))).collect()
        };
        let (values, adjs) = self.reverse(&applied, seed, span);
        let gradient = self.in_point(&applied, adjs, span)?;
        Ok((self.unflatten(types.1, &mut values.into_iter(), span)?, gradient))
    }

    pub(super) fn jvp(
        &mut self,
        f: &Value,
        x: &Value,
        dx: &Value,
        types: (&Type, &Type),
        span: Span,
    ) -> Lowered<(Value, Value)> {
        let tangents = self.flatten(dx, types.0, span)?;
        let applied = self.applied(f, x, types, span)?;
        let mut inputs = Vec::new();
        for ((_, var), tangent) in applied.point.iter().zip(tangents) {
            if let Some(var) = var {
                let tangent = self.project_leaf(tangent, (*var).into(), span)?;
                inputs.push((*var, tangent));
            }
        }
        let block = applied.block.clone();
        let (values, tans) = tangent::forward(&mut self.b, &mut self.module, &mut self.tangents, block, &inputs);
        self.b.span = span;
        let mut leaves = Vec::new();
        for (value, tan) in values.iter().zip(tans) {
            leaves.push(if value.ty().may_be_active() {
                let tan = match tan {
                    Some(tan) => tan,
                    None => self.b.linear_zeros_like(&mut self.module, *value),
                };
                self.rebuild_leaf(*value, tan, span)?
            } else {
                *value
            });
        }
        let tangent = self.unflatten(types.1, &mut leaves.into_iter(), span)?;
        Ok((self.unflatten(types.1, &mut values.into_iter(), span)?, tangent))
    }

    /// Forward over reverse.
    fn hvp(&mut self, f: &Value, x: &Value, v: &Value, a: &Type, span: Span) -> Lowered<Value> {
        Ok(self.jvp(&self.gradient_function(f, a), x, v, (a, a), span)?.1)
    }

    fn gradient_function(&self, f: &Value, a: &Type) -> Value {
        let types: Arc<[Type]> = [a.clone()].into();
        Value::Function(Rc::new(Function::Derivative { op: DeriveOp::Grad, types, args: vec![f.clone()] }))
    }

    fn hessian(&mut self, f: &Value, x: &Value, a: &Type, span: Span) -> Lowered<Value> {
        self.jacobian(&self.gradient_function(f, a), x, (a, a), span)
    }

    /// A row for each real of the output. If these are a few numbers, fewer than those of the input, each row is one reverse sweep;
    /// otherwise there is one forward run for each column.
    fn jacobian(&mut self, f: &Value, x: &Value, types: (&Type, &Type), span: Span) -> Lowered<Value> {
        if !self.reals_in_order(types.0, span)? || !self.reals_in_order(types.1, span)? {
            return self.jacobian_in_order(f, x, types, span);
        }
        let applied = self.applied(f, x, types, span)?;
        let xs = self.flatten(x, types.0, span)?;
        let known = |lengths: Vec<Option<usize>>| lengths.into_iter().sum::<Option<usize>>();
        let outputs = known(applied.block.results.iter().map(|a| length_in(&applied.block, *a)).collect());
        let inputs = known(xs.iter().map(|a| if a.ty().is_array() { None } else { Some(1) }).collect());
        match outputs {
            Some(rows) if rows <= FEW_ROWS && inputs.is_none_or(|columns| rows < columns) => {
                self.jacobian_by_rows(&applied, rows, span)
            }
            _ => {
                let count = self.count_reals(&xs);
                let columns = self.build_with(count, &Type::array(Type::Real), span, &mut |s, i| {
                    let seeds = s.one_hot(&xs, i);
                    let dx = s.unflatten(types.0, &mut seeds.into_iter(), span)?;
                    let (_, column) = s.jvp(f, x, &dx, types, span)?;
                    let column = s.flatten(&column, types.1, span)?;
                    s.concatenated(&column, span)
                })?;
                self.transposed(&columns, f, x, types, span)
            }
        }
    }

    /// The adjoints of each real of the output in turn.
    fn jacobian_by_rows(&mut self, applied: &Applied, rows: usize, span: Span) -> Lowered<Value> {
        let wrt = applied.wrt();
        let mut items = Vec::new();
        for row in 0..rows {
            let mut renaming = Renaming::default();
            let block = renaming.block(&applied.block);
            let mut rest = row;
            let mut seeds: Vec<Option<Atom>> = Vec::new();
            for result in &applied.block.results {
                let size = length_in(&applied.block, *result).unwrap_or(0);
                let here = rest < size && result.ty().is_real();
                let number = |k: usize| Atom::Real(if k == rest { 1.0 } else { 0.0 });
                seeds.push(match (here, result.ty().is_array()) {
                    (false, _) => None,
                    (true, false) => Some(Atom::Real(1.0)),
                    (true, true) => Some(self.b.literal((0..size).map(number).collect())),
                });
                rest = rest.wrapping_sub(size);
            }
            let seed = |_: &mut Builder, _: &[Atom]| seeds;
            let (_, adjs) = adjoint::reverse(&mut self.b, &mut self.module, &mut self.adjoints, block, &wrt, seed);
            self.b.span = span;
            let row = self.concatenated(&adjs, span)?;
            items.extend(self.flatten(&row, &Type::array(Type::Real), span)?);
        }
        let all = self.b.literal_of(items, Leaf::array(Scalar::Real, 2));
        self.unflatten(&Type::array(Type::array(Type::Real)), &mut [all].into_iter(), span)
    }

    fn transposed(
        &mut self,
        columns: &Value,
        f: &Value,
        x: &Value,
        types: (&Type, &Type),
        span: Span,
    ) -> Lowered<Value> {
        let Value::Array(part) = columns else { gradus_source::bug!("the columns of a Jacobian are no array") };
        let part = part.clone();
        // With no columns the number of rows is still that of the output's reals.
        let value = self.apply(f.clone(), x.clone(), span)?;
        let ys = self.flatten(&value, types.1, span)?;
        let rows = self.count_reals(&ys);
        let count = self.length(&part)?;
        self.build_with(rows, &Type::array(Type::Real), span, &mut |s, i| {
            s.build_with(count, &Type::Real, span, &mut |s, j| {
                let Value::Array(column) = s.element(&part, j) else {
                    gradus_source::bug!("a column of a Jacobian is no array")
                };
                Ok(s.element(&column, i))
            })
        })
    }

    /// The number of reals in leaves.
    pub(super) fn count_reals(&mut self, leaves: &[Atom]) -> Atom {
        let mut total = Atom::Int(0);
        for leaf in leaves.iter().filter(|a| a.ty().is_real()) {
            let count = self.size(*leaf);
            total = self.b.scalar(Prim::AddInt, &[total, count]);
        }
        total
    }

    pub(super) fn size(&mut self, leaf: Atom) -> Atom {
        let mut size = Atom::Int(1);
        if let Atom::Var(array) = leaf {
            for dim in self.b.dims(array) {
                size = self.b.scalar(Prim::MulInt, &[size, dim]);
            }
        }
        size
    }

    /// Leaves of the same shape that are 1 at real number `at` and 0 elsewhere.
    pub(super) fn one_hot(&mut self, leaves: &[Atom], at: Atom) -> Vec<Atom> {
        let mut rest = at;
        let mut seeds = Vec::new();
        for leaf in leaves {
            if !leaf.ty().is_real() {
                seeds.push(*leaf);
                continue;
            }
            seeds.push(self.one_hot_leaf(*leaf, rest));
            let size = self.size(*leaf);
            rest = self.b.scalar(Prim::SubInt, &[rest, size]);
        }
        seeds
    }

    fn one_hot_leaf(&mut self, leaf: Atom, at: Atom) -> Atom {
        match leaf {
            Atom::Var(array) if array.ty.is_array() => {
                let n = self.b.dim(array, 0);
                let i = Self::index();
                self.b.push();
                let row = self.b.get(leaf, vec![i.into()]);
                let width = self.size(row);
                let before = self.b.scalar(Prim::MulInt, &[i.into(), width]);
                let rest = self.b.scalar(Prim::SubInt, &[at, before]);
                let seed = self.one_hot_leaf(row, rest);
                let body = self.b.pop(vec![seed]);
                self.b.for_loop(i, n, Vec::new(), body)[0]
            }
            _ => {
                let here = self.b.scalar(Prim::Equal, &[at, Atom::Int(0)]);
                self.b.select(here, Atom::Real(1.0), Atom::Real(0.0))
            }
        }
    }

    /// All reals of leaves in one array.
    fn concatenated(&mut self, leaves: &[Atom], span: Span) -> Lowered<Value> {
        let total = self.count_reals(leaves);
        let mut all = self.b.fill(vec![total], Atom::Real(0.0));
        let mut start = Atom::Int(0);
        for leaf in leaves.iter().filter(|a| a.ty().is_real()) {
            if let Atom::Var(array) = all {
                all = self.write_at(array, start, *leaf).into();
            }
            let size = self.size(*leaf);
            start = self.b.scalar(Prim::AddInt, &[start, size]);
        }
        self.unflatten(&Type::array(Type::Real), &mut [all].into_iter(), span)
    }

    /// Writes the numbers of a leaf one after the other into an array.
    fn write_at(&mut self, into: Var, start: Atom, leaf: Atom) -> Var {
        match leaf {
            Atom::Var(array) if array.ty.is_array() => {
                let n = self.b.dim(array, 0);
                let i = Self::index();
                let state = into.refresh();
                self.b.push();
                let row = self.b.get(leaf, vec![i.into()]);
                let width = self.size(row);
                let before = self.b.scalar(Prim::MulInt, &[i.into(), width]);
                let place = self.b.scalar(Prim::AddInt, &[start, before]);
                let next = self.write_at(state, place, row);
                let body = self.b.pop(vec![next.into()]);
                match self.b.for_loop(i, n, vec![(state, into.into())], body)[..] {
                    [Atom::Var(last)] => last,
                    _ => gradus_source::bug!("a loop over one array gives one array"),
                }
            }
            _ => self.b.set(into, vec![start], leaf),
        }
    }
}

/// The seed as an adjoint, after checking that it has the shape of the value.
fn shaped(b: &mut Builder, seed: Atom, value: Atom, projections: &FxHashMap<ShapeId, (FunctionId, ShapeId)>) -> Atom {
    if let Some((project, linear)) = seed.ty().shape().and_then(|s| projections.get(&s)) {
        if let Atom::Var(array) = seed.var().filter(|v| v.ty.is_array()).map_or(Atom::Int(0), Atom::Var) {
            let (n, m) = (b.dim(array, 0), value.var().map_or(Atom::Int(0), |v| b.dim(v, 0)));
            let same = b.scalar(Prim::Equal, &[n, m]);
            b.check(same, Failure::Shape);
            let i = Var::fresh("i", Leaf::INT);
            b.push();
            let (s, v) = (b.get(seed, vec![i.into()]), b.get(value, vec![i.into()]));
            let element = shaped(b, s, v, projections);
            let body = b.pop(vec![element]);
            return b.for_loop(i, n, Vec::new(), body)[0];
        }
        let linear = Var::fresh("seed", Leaf::boxed(*linear));
        b.bind(vec![linear], Op::Call { function: *project, args: vec![seed, value] });
        return linear.into();
    }
    if let (Atom::Var(s), Atom::Var(v)) = (seed, value) {
        for axis in 0..v.ty.rank {
            let (n, m) = (b.dim(s, axis), b.dim(v, axis));
            let same = b.scalar(Prim::Equal, &[n, m]);
            b.check(same, Failure::Shape);
        }
    }
    seed
}
