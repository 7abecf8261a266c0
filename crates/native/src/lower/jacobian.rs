//! Jacobians: by reverse sweeps for a few rows, else by forward runs for several columns at once.

use super::derive::Applied;
use super::value::Value;
use super::{Lowered, Lowering};
use crate::flow::walk::Renaming;
use crate::flow::{Atom, Block, Builder, Op, Scalar, Type as Leaf, Var};
use crate::{adjoint, tangent};
use gradus_core::{Prim, Type};
use gradus_source::Span;

/// A Jacobian with more rows than this is taken by columns.
const FEW_ROWS: usize = 8;

/// How many columns a forward run gives. More share more of the work, and make more code.
const COLUMNS: i64 = 4;

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

impl Lowering<'_> {
    /// A row for each real of the output. If these are a few numbers, fewer than those of the input, each row is one reverse sweep;
    /// otherwise forward runs give the columns.
    pub(super) fn jacobian(&mut self, f: &Value, x: &Value, types: (&Type, &Type), span: Span) -> Lowered<Value> {
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
            _ => self.jacobian_by_columns(&applied, &xs, span),
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

    /// Several columns in each forward run, then those that are left one by one.
    fn jacobian_by_columns(&mut self, applied: &Applied, xs: &[Atom], span: Span) -> Lowered<Value> {
        let values = Renaming::default().block(&applied.block);
        self.b.stmts(values.stmts);
        self.b.span = span;
        let rows = self.count_reals(&values.results);
        let columns = self.count_reals(xs);
        let zeros = self.b.fill(vec![rows, columns], Atom::Real(0.0));
        let all = self.b.open("jacobian".into(), zeros);
        let width = match columns {
            Atom::Int(columns) => columns.clamp(1, COLUMNS),
            _ => COLUMNS,
        };
        let runs = self.b.scalar(Prim::DivInt, &[columns, Atom::Int(width)]);
        self.columns(applied, xs, all, Atom::Int(0), runs, width as usize, span)?;
        let done = self.b.scalar(Prim::MulInt, &[runs, Atom::Int(width)]);
        let left = self.b.scalar(Prim::SubInt, &[columns, done]);
        if width > 1 && left != Atom::Int(0) {
            self.columns(applied, xs, all, done, left, 1, span)?;
        }
        let all = self.b.freeze(all);
        self.unflatten(&Type::array(Type::array(Type::Real)), &mut [all].into_iter(), span)
    }

    /// Adds to `all` the columns from `first` on: `runs` times `width`.
    #[allow(clippy::too_many_arguments)]
    fn columns(
        &mut self,
        applied: &Applied,
        xs: &[Atom],
        all: Var,
        first: Atom,
        runs: Atom,
        width: usize,
        span: Span,
    ) -> Lowered<()> {
        let run = Self::index();
        self.b.push();
        let before = self.b.scalar(Prim::MulInt, &[run.into(), Atom::Int(width as i64)]);
        let start = self.b.scalar(Prim::AddInt, &[first, before]);
        let columns: Vec<Atom> =
            (0..width).map(|k| self.b.scalar(Prim::AddInt, &[start, Atom::Int(k as i64)])).collect();
        let seeds: Vec<Vec<Atom>> = columns.iter().map(|column| self.one_hot(xs, *column)).collect();
        let mut inputs = Vec::new();
        for (at, (_, var)) in applied.point.iter().enumerate() {
            let Some(var) = *var else { continue };
            let tans = seeds.iter().map(|leaves| self.project_leaf(leaves[at], var.into(), span));
            inputs.push((var, tans.collect::<Lowered<Vec<Atom>>>()?));
        }
        let block = Renaming::default().block(&applied.block);
        let (values, tans) = tangent::forward(&mut self.b, &mut self.module, &mut self.tangents, block, &inputs, width);
        self.b.span = span;
        let mut row = Atom::Int(0);
        for (value, tans) in values.iter().zip(tans).filter(|(value, _)| value.ty().is_real()) {
            if let Some(tans) = tans {
                self.add_columns(all, row, &columns, &tans, Vec::new());
            }
            let size = self.size(*value);
            row = self.b.scalar(Prim::AddInt, &[row, size]);
        }
        let body = self.b.pop(Vec::new());
        self.b.for_loop(run, runs, Vec::new(), body);
        Ok(())
    }

    /// Adds the numbers of some leaves, at an index into each, to their columns from a row on.
    fn add_columns(&mut self, all: Var, row: Atom, columns: &[Atom], tans: &[Atom], index: Vec<Atom>) {
        let axis = index.len();
        let longer = tans.first().and_then(|a| a.var()).filter(|v| axis < v.ty.rank as usize);
        let Some(array) = longer else {
            for (column, tan) in columns.iter().zip(tans) {
                let number = self.b.get(*tan, index.clone());
                self.b.accumulate(all, vec![row, *column], number);
            }
            return;
        };
        let n = self.b.dim(array, axis as u8);
        let i = Self::index();
        self.b.push();
        let mut width = Atom::Int(1);
        for inner in axis + 1..array.ty.rank as usize {
            let dim = self.b.dim(array, inner as u8);
            width = self.b.scalar(Prim::MulInt, &[width, dim]);
        }
        let before = self.b.scalar(Prim::MulInt, &[i.into(), width]);
        let row = self.b.scalar(Prim::AddInt, &[row, before]);
        self.add_columns(all, row, columns, tans, [index, vec![i.into()]].concat());
        let body = self.b.pop(Vec::new());
        self.b.for_loop(i, n, Vec::new(), body);
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
