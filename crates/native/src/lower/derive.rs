//! Derivative forms: the function is lowered to a block with variables of its own for the point, and the block is differentiated
//! as flow. A form inside it has been expanded by then, so nesting is differentiating the result.

use super::value::{Function, Value};
use super::{Lowered, Lowering};
use crate::flow::walk::{free_vars, Renaming};
use crate::flow::{Atom, Block, Builder, Failure, FunctionId, Op, ShapeId, Stmt, Type as Leaf, Var};
use crate::refusal::Reason;
use crate::simplify::FEW;
use crate::{adjoint, tangent};
use gradus_core::{DeriveOp, Type};
use gradus_source::Span;
use rustc_hash::FxHashMap;
use std::rc::Rc;
use std::sync::Arc;

/// The order up to which Taylor coefficients are compiled: each derivative at most doubles the code.
const HIGHEST_TAYLOR: i64 = 6;

/// A function applied at a point, as a block of its own.
pub(super) struct Applied {
    /// For each leaf of the point: the variable that stands for it in the block, if it can have a derivative.
    pub(super) point: Vec<(Atom, Option<Var>)>,
    pub(super) block: Block,
    /// The function's value, in terms of the block's variables.
    types: (Type, Type),
}

impl Applied {
    pub(super) fn wrt(&self) -> Vec<Var> {
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
                    Reason::Derivative("`taylor` of an order above 6, or of one that is only known when the program runs (the code would double with each order)"),
                    span,
                ),
            },
            _ => gradus_source::bug!("{op:?} with {} arguments", args.len()),
        }
    }

    /// Lowers `f x` to a block in which the reals of `x` are variables of their own.
    pub(super) fn applied(&mut self, f: &Value, x: &Value, types: (&Type, &Type), span: Span) -> Lowered<Applied> {
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
        // Whoever looks at the block alone is to know it, too.
        self.check_lengths(&x);
        let value = self.apply(f.clone(), x, span)?;
        let results = self.flatten(&value, types.1, span)?;
        let mut block = self.b.pop(results);
        if self.calls_unfinished(&block) {
            return self.refuse(Reason::Foreign("the derivative of a function inside itself".into()), span);
        }
        self.write_out_again(&mut block);
        crate::simplify::written(&mut block, &self.module);
        Ok(Applied { point, block, types: (types.0.clone(), types.1.clone()) })
    }

    /// Begins a block with copies of the arrays of a few numbers that were written out before it, so that it can be simplified as if it had written them.
    fn write_out_again(&self, block: &mut Block) {
        let mut renaming = Renaming::default();
        let mut copies = Vec::new();
        for array in free_vars(block).into_iter().filter(|v| v.ty.is_array()) {
            if let Some(made) = self.written_out(array, FEW) {
                let made = renaming.block(&Block { stmts: made, results: Vec::new() });
                copies.extend(made.stmts);
            }
        }
        if !copies.is_empty() {
            *block = renaming.block(block);
            block.stmts.splice(..0, copies);
        }
    }

    /// The statements that write out an array or matrix of at most so many numbers.
    fn written_out(&self, array: Var, most: usize) -> Option<Vec<Stmt>> {
        let stmt = self.b.bound(array)?;
        let Op::Literal { items, .. } = &stmt.op else { return None };
        if items.is_empty() || items.len() > most {
            return None;
        }
        let rows = items.iter().filter_map(|item| item.var()).filter(|v| v.ty.is_array());
        let mut made = Vec::new();
        for row in rows {
            made.extend(self.written_out(row, most / items.len())?);
        }
        made.push(stmt.clone());
        Some(made)
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
        let value = self.unflatten(types.1, &mut values.into_iter(), span)?;
        self.check_tags(dy, &value)?;
        Ok((value, gradient))
    }

    pub(super) fn jvp(
        &mut self,
        f: &Value,
        x: &Value,
        dx: &Value,
        types: (&Type, &Type),
        span: Span,
    ) -> Lowered<(Value, Value)> {
        self.check_tags(dx, x)?;
        let tangents = self.flatten(dx, types.0, span)?;
        let applied = self.applied(f, x, types, span)?;
        let mut inputs = Vec::new();
        for ((_, var), tangent) in applied.point.iter().zip(tangents) {
            if let Some(var) = var {
                let tangent = self.project_leaf(tangent, (*var).into(), span)?;
                inputs.push((*var, vec![tangent]));
            }
        }
        let block = applied.block.clone();
        let (values, tans) = tangent::forward(&mut self.b, &mut self.module, &mut self.tangents, block, &inputs, 1);
        self.b.span = span;
        let mut leaves = Vec::new();
        for (value, tans) in values.iter().zip(tans) {
            leaves.push(if value.ty().may_be_active() {
                let tan = match tans.and_then(|t| t.first().copied()) {
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
}

/// The seed as an adjoint, after checking that it has the shape of the value.
fn shaped(b: &mut Builder, seed: Atom, value: Atom, projections: &FxHashMap<ShapeId, (FunctionId, ShapeId)>) -> Atom {
    if let Some((project, linear)) = seed.ty().shape().and_then(|s| projections.get(&s)) {
        if let Some((array, other)) = seed.var().filter(|v| v.ty.is_array()).zip(value.var()) {
            b.check_same_length(array, other, 0, Failure::Shape);
            let n = b.dim(array, 0);
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
        (0..v.ty.rank).for_each(|axis| b.check_same_length(s, v, axis, Failure::Shape));
    }
    seed
}
