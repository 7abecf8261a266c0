//! The checker: types, scopes, single binding, and the discipline of accumulators. Run after every pass in tests.

use super::*;
use gradus_core::traverse::with_stack;
use rustc_hash::FxHashSet;

/// The first thing that is wrong, in words; for our own eyes, since a broken flow program is our mistake.
pub fn module(module: &Module) -> Result<(), String> {
    for (i, shape) in module.shapes.iter().enumerate() {
        for field in shape.cells.iter().flatten() {
            known_shape(*field, module).map_err(|e| format!("in shape {i}: {e}"))?;
        }
    }
    for function in &module.functions {
        self::function(function, module).map_err(|e| format!("in {}: {e}", function.name))?;
    }
    Ok(())
}

pub fn function(function: &Function, module: &Module) -> Result<(), String> {
    let mut checker =
        Checker { module, scope: Vec::new(), in_scope: FxHashSet::default(), bound: FxHashSet::default() };
    for param in &function.params {
        checker.bind(*param)?;
    }
    let here: FxHashSet<Var> = FxHashSet::default();
    checker.block(&function.body, here)?;
    let types: Vec<Type> = function.body.results.iter().map(|a| a.ty()).collect();
    same(&types, &function.results, "results of the function")
}

fn known_shape(ty: Type, module: &Module) -> Result<(), String> {
    match ty.shape() {
        Some(shape) if module.shapes.len() <= shape.0 as usize => Err(format!("no shape {shape}")),
        _ => Ok(()),
    }
}

struct Checker<'a> {
    module: &'a Module,
    /// Variables in order of binding, so that leaving a block forgets its own.
    scope: Vec<Var>,
    in_scope: FxHashSet<Var>,
    /// Everything ever bound: no variable is bound twice.
    bound: FxHashSet<Var>,
}

fn same(found: &[Type], wanted: &[Type], what: &str) -> Result<(), String> {
    if found == wanted {
        Ok(())
    } else {
        let words = |types: &[Type]| types.iter().map(|t| print::ty(*t)).collect::<Vec<_>>().join(", ");
        Err(format!("{what}: ({}) instead of ({})", words(found), words(wanted)))
    }
}

impl Checker<'_> {
    fn bind(&mut self, var: Var) -> Result<(), String> {
        known_shape(var.ty, self.module)?;
        if !self.bound.insert(var) {
            return Err(format!("{} is bound twice", var.name));
        }
        self.in_scope.insert(var);
        self.scope.push(var);
        Ok(())
    }

    /// An operand that is a number or an array.
    fn value(&self, atom: Atom) -> Result<Type, String> {
        match atom {
            Atom::Var(v) if v.ty.accumulator => Err(format!("the accumulator {} is read", v.name)),
            Atom::Var(v) if !self.in_scope.contains(&v) => Err(format!("{} is not in scope", v.name)),
            _ => Ok(atom.ty()),
        }
    }

    fn number(&self, atom: Atom, scalar: Scalar) -> Result<(), String> {
        same(&[self.value(atom)?], &[Type::array(scalar, 0)], "operand")
    }

    fn array(&self, var: Var) -> Result<Type, String> {
        let ty = self.value(var.into())?;
        if ty.is_array() {
            Ok(ty)
        } else {
            Err(format!("{} is no array", var.name))
        }
    }

    fn accumulator(&self, var: Var) -> Result<Type, String> {
        if !var.ty.accumulator || !self.in_scope.contains(&var) {
            return Err(format!("{} is no accumulator in scope", var.name));
        }
        Ok(var.ty.frozen())
    }

    fn index(&self, of: Type, index: &[Atom]) -> Result<Type, String> {
        for i in index {
            self.number(*i, Scalar::Int)?;
        }
        if index.len() > of.rank as usize {
            return Err(format!("{} indices for rank {}", index.len(), of.rank));
        }
        Ok(of.at(index.len()))
    }

    /// The fields of a box with a tag.
    fn cell(&self, ty: Type, tag: usize) -> Result<Vec<Type>, String> {
        let shape = ty.shape().filter(|_| ty.rank == 0).and_then(|s| self.module.shapes.get(s.0 as usize));
        let Some(shape) = shape else { return Err(format!("{} is no box", print::ty(ty))) };
        shape.cells.get(tag).cloned().ok_or_else(|| format!("no tag {tag} in {}", shape.name))
    }

    /// Reals can be added, and boxes whose shape names a function for it.
    fn can_add(&self, ty: Type) -> bool {
        match ty.shape() {
            Some(shape) => self.module.shapes.get(shape.0 as usize).is_some_and(|s| s.merge.is_some()),
            None => ty.is_real(),
        }
    }

    /// Checks a nested block in which `params` are bound; gives its result types.
    fn nested(&mut self, block: &Block, params: &[Var]) -> Result<Vec<Type>, String> {
        let mark = self.scope.len();
        for param in params {
            self.bind(*param)?;
        }
        self.block(block, FxHashSet::default())?;
        for var in self.scope.drain(mark..) {
            self.in_scope.remove(&var);
        }
        Ok(block.results.iter().map(|a| a.ty()).collect())
    }

    /// `open`: the accumulators opened in this very block and not yet frozen.
    fn block(&mut self, block: &Block, mut open: FxHashSet<Var>) -> Result<(), String> {
        with_stack(|| {
            for stmt in &block.stmts {
                if let Op::Freeze { acc } = &stmt.op {
                    if !open.remove(acc) {
                        return Err(format!("{} is frozen in another block than it was opened", acc.name));
                    }
                }
                let types = self.op(&stmt.op)?;
                if let Op::Freeze { acc } = &stmt.op {
                    self.in_scope.remove(acc);
                }
                let found: Vec<Type> = stmt.binds.iter().map(|v| v.ty).collect();
                same(&found, &types, "results of a statement")?;
                for var in &stmt.binds {
                    self.bind(*var)?;
                }
                if let Op::Open { .. } = &stmt.op {
                    open.extend(stmt.binds.iter().copied());
                }
            }
            for result in &block.results {
                self.value(*result)?;
            }
            match open.iter().next() {
                Some(acc) => Err(format!("{} is never frozen", acc.name)),
                None => Ok(()),
            }
        })
    }

    fn carried(&self, carried: &[(Var, Atom)]) -> Result<Vec<Type>, String> {
        carried
            .iter()
            .map(|(var, init)| same(&[self.value(*init)?], &[var.ty], "initial state").map(|()| var.ty))
            .collect()
    }

    fn loop_types(&self, state: &[Type], results: &[Type]) -> Result<Vec<Type>, String> {
        let (next, collected) = results.split_at(state.len().min(results.len()));
        same(next, state, "next state")?;
        Ok(state.iter().copied().chain(collected.iter().map(|t| t.in_array())).collect())
    }

    /// The types that the operation binds.
    fn op(&mut self, op: &Op) -> Result<Vec<Type>, String> {
        Ok(match op {
            Op::Scalar { prim, args } => {
                let types = args.iter().map(|a| self.value(*a)).collect::<Result<Vec<_>, _>>()?;
                match scalar::result(*prim, &types) {
                    Some(ty) => vec![ty],
                    None => return Err(format!("{} does not take {types:?}", scalar::word(*prim))),
                }
            }
            Op::Copy { value } | Op::Stop { value } => vec![self.value(*value)?],
            Op::Select { cond, then, otherwise } => {
                self.number(*cond, Scalar::Bool)?;
                let ty = self.value(*then)?;
                same(&[self.value(*otherwise)?], &[ty], "other side of select")?;
                if ty.is_counted() {
                    return Err("select of arrays or boxes".into());
                }
                vec![ty]
            }
            Op::Dim { array, axis } => {
                // The shape of an accumulator never changes, so it may be asked for.
                let ty = if array.ty.accumulator { self.accumulator(*array)? } else { self.array(*array)? };
                if *axis >= ty.rank {
                    return Err(format!("no axis {axis} in {}", array.name));
                }
                vec![Type::INT]
            }
            Op::Get { array, index } => vec![self.index(self.array(*array)?, index)?],
            Op::Set { array, index, value } => {
                let ty = self.array(*array)?;
                same(&[self.value(*value)?], &[self.index(ty, index)?], "value to set")?;
                vec![ty]
            }
            Op::Extend { array, by } => {
                let (first, second) = (self.array(*array)?, self.array(*by)?);
                if second.rank != 1 || first.scalar != second.scalar || second.shape().is_some() {
                    return Err(format!("{} cannot be extended by {}", array.name, by.name));
                }
                vec![second]
            }
            Op::Fill { dims, value } => {
                for dim in dims {
                    self.number(*dim, Scalar::Int)?;
                }
                let ty = self.value(*value)?;
                self.number(*value, ty.scalar)?;
                vec![Type::array(ty.scalar, dims.len() as u8)]
            }
            Op::Literal { items, ty } => {
                for item in items {
                    same(&[self.value(*item)?.in_array()], &[*ty], "item")?;
                }
                vec![*ty]
            }
            Op::Cell { shape, tag, fields } => {
                let wanted = self.cell(Type::boxed(*shape), *tag)?;
                let found = fields.iter().map(|a| self.value(*a)).collect::<Result<Vec<_>, _>>()?;
                same(&found, &wanted, "fields of a cell")?;
                vec![Type::boxed(*shape)]
            }
            Op::Tag { cell } => {
                let ty = self.value(*cell)?;
                if ty.rank > 0 || ty.shape().is_none() {
                    return Err("the tag of something that is no box".into());
                }
                vec![Type::INT]
            }
            Op::Unpack { cell, tag } => self.cell(self.value(*cell)?, *tag)?,
            Op::Hole { cell, tag, field } => {
                let fields = self.cell(self.value((*cell).into())?, *tag)?;
                if !fields.get(*field).is_some_and(|ty| ty.rank == 0 && ty.shape().is_some()) {
                    return Err("a hole that is no field for a box".into());
                }
                vec![Type::INT]
            }
            Op::Plug { hole, value } => {
                self.number(*hole, Scalar::Int)?;
                let ty = self.value(*value)?;
                if ty.rank > 0 || ty.shape().is_none() {
                    return Err("a hole is plugged with something that is no box".into());
                }
                Vec::new()
            }
            Op::Push { values } => {
                values.iter().try_for_each(|a| self.value(*a).map(|_| ()))?;
                Vec::new()
            }
            Op::Pop { types } => types.clone(),
            Op::Digits { value } => {
                self.number(*value, Scalar::Real)?;
                vec![Type::array(Scalar::Int, 1)]
            }
            Op::Check { cond, .. } => {
                self.number(*cond, Scalar::Bool)?;
                Vec::new()
            }
            Op::If { cond, then, otherwise, .. } => {
                self.number(*cond, Scalar::Bool)?;
                let types = self.nested(then, &[])?;
                same(&self.nested(otherwise, &[])?, &types, "other branch")?;
                types
            }
            Op::For(l) => {
                self.number(l.count, Scalar::Int)?;
                let state = self.carried(&l.carried)?;
                let params: Vec<Var> = std::iter::once(l.index).chain(l.carried.iter().map(|(v, _)| *v)).collect();
                let results = self.nested(&l.body, &params)?;
                self.loop_types(&state, &results)?
            }
            Op::While(l) => {
                let state = self.carried(&l.carried)?;
                let params: Vec<Var> = l.carried.iter().map(|(v, _)| *v).collect();
                let results = self.nested(&l.body, &params)?;
                match results.split_first() {
                    Some((go, rest)) => {
                        same(&[*go], &[Type::BOOL], "condition of a while")?;
                        self.loop_types(&state, rest)?
                    }
                    None => return Err("a while without a condition".into()),
                }
            }
            Op::Call { function, args } => {
                let Some(callee) = self.module.functions.get(function.0) else {
                    return Err(format!("no function {}", function.0));
                };
                for (arg, param) in args.iter().zip(&callee.params) {
                    match arg {
                        Atom::Var(v) if v.ty.accumulator => self.accumulator(*v).map(|_| ())?,
                        _ => self.value(*arg).map(|_| ())?,
                    }
                    same(&[arg.ty()], &[param.ty], "argument")?;
                }
                if args.len() != callee.params.len() {
                    return Err(format!("{} arguments for {}", args.len(), callee.name));
                }
                callee.results.clone()
            }
            Op::Open { init } => {
                let ty = self.value(*init)?;
                if !self.can_add(ty) {
                    return Err("an accumulator of something that cannot be added".into());
                }
                vec![ty.accumulator()]
            }
            Op::Add { acc, index, value } => {
                let ty = self.accumulator(*acc)?;
                same(&[self.value(*value)?], &[self.index(ty, index)?], "value to add")?;
                Vec::new()
            }
            Op::Product(p) => {
                let matrix = Type::array(Scalar::Real, 2);
                let found =
                    [self.accumulator(p.acc)?, self.value(p.left.matrix.into())?, self.value(p.right.matrix.into())?];
                same(&found, &[matrix; 3], "matrices")?;
                [p.rows, p.columns, p.inner].into_iter().try_for_each(|n| self.number(n, Scalar::Int))?;
                Vec::new()
            }
            Op::Freeze { acc } => vec![self.accumulator(*acc)?],
        })
    }
}
