//! Which traces are taken apart in the reverse order of their making, each exactly once.
//!
//! Each function is run on names: a stack has the traces that exist, the last at the end. Making a trace takes those inside from the end
//! and adds the new one; taking it apart takes it from the end and adds those inside; a call takes its argument and adds its
//! result. Both sides of a branch must leave the same stack, and an iteration one like that before it. Where this does not work out, the shape at
//! fault is no candidate any more, and all is tried again without it.

use crate::flow::walk::for_each_binder;
use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use rustc_hash::{FxHashMap, FxHashSet};

/// The shapes of traces that can go on the tape.
pub(super) fn find(module: &Module) -> FxHashSet<ShapeId> {
    let all = 0..module.shapes.len() as u32;
    let mut candidates: FxHashSet<ShapeId> = all.map(ShapeId).filter(|s| module.shape(*s).trace).collect();
    while !candidates.is_empty() {
        let fields = order_of_fields(module, &candidates);
        let mut faults = FxHashSet::default();
        for function in &module.functions {
            let mut run = Run {
                module,
                candidates: &candidates,
                fields: &fields,
                empty: FxHashSet::default(),
                tags: FxHashMap::default(),
                tests: FxHashMap::default(),
                used: FxHashSet::default(),
            };
            walk::for_each_operand(&function.body, &mut |a| run.used.extend(a.var()));
            faults.extend(run.function(function).err());
        }
        if faults.is_empty() {
            break;
        }
        let before = candidates.len();
        candidates.retain(|s| !faults.contains(s));
        if candidates.len() == before {
            gradus_source::bug!("the order of traces is wrong and no trace is at fault");
        }
    }
    candidates
}

/// For each cell of a trace which of its fields are traces, in the order in which they were made.
fn order_of_fields(module: &Module, candidates: &FxHashSet<ShapeId>) -> FxHashMap<(ShapeId, usize), Vec<usize>> {
    fn visit(block: &Block, is_trace: &dyn Fn(Type) -> bool, made: &FxHashMap<Var, usize>, found: &mut Orders) {
        with_stack(|| {
            for stmt in &block.stmts {
                if let Op::Cell { shape, tag, fields } = &stmt.op {
                    let mut order: Vec<usize> = (0..fields.len()).filter(|i| is_trace(fields[*i].ty())).collect();
                    order.sort_by_key(|i| fields[*i].var().map(|v| made.get(&v).copied()));
                    // One that is nil could be anywhere, so that another cell knows better.
                    let sure = order.iter().all(|i| fields[*i].var().is_some());
                    if sure || !found.contains_key(&(*shape, *tag)) {
                        found.insert((*shape, *tag), order);
                    }
                }
                stmt.op.blocks().for_each(|inner| visit(inner, is_trace, made, found));
            }
        })
    }
    type Orders = FxHashMap<(ShapeId, usize), Vec<usize>>;
    let is_trace = |ty: Type| ty.shape().is_some_and(|s| candidates.contains(&s));
    let mut found = Orders::default();
    for function in &module.functions {
        let mut made: FxHashMap<Var, usize> = FxHashMap::default();
        let mut note = |v: Var| {
            let number = made.len();
            made.insert(v, number);
        };
        function.params.iter().for_each(|v| note(*v));
        for_each_binder(&function.body, &mut note);
        visit(&function.body, &is_trace, &made, &mut found);
    }
    found
}

/// One function. An error is the shape at fault.
struct Run<'a> {
    module: &'a Module,
    candidates: &'a FxHashSet<ShapeId>,
    fields: &'a FxHashMap<(ShapeId, usize), Vec<usize>>,
    /// Traces without fields: there is nothing of them on the stack.
    empty: FxHashSet<Var>,
    /// For a tag, the trace that has it.
    tags: FxHashMap<Var, Var>,
    /// Conditions that say that a trace has a tag.
    tests: FxHashMap<Var, (Var, usize)>,
    /// The variables that anybody uses.
    used: FxHashSet<Var>,
}

type Outcome = Result<(), ShapeId>;

impl Run<'_> {
    fn trace(&self, ty: Type) -> Option<ShapeId> {
        ty.shape().filter(|s| self.candidates.contains(s))
    }

    /// The one trace among types; several at once have no order.
    fn only(&self, types: impl Iterator<Item = Type>) -> Result<Option<usize>, ShapeId> {
        let all: Vec<(usize, Type)> = types.enumerate().filter(|(_, t)| self.trace(*t).is_some()).collect();
        match all[..] {
            [] => Ok(None),
            [(at, ty)] if ty.rank == 0 && !ty.accumulator => Ok(Some(at)),
            // The one that was there first: the others, of which there may be more, have a chance without it.
            _ => Err(all.iter().filter_map(|(_, t)| t.shape()).min().unwrap_or(ShapeId(0))),
        }
    }

    fn function(&mut self, function: &Function) -> Outcome {
        let param = self.only(function.params.iter().map(|v| v.ty))?;
        let mut stack: Vec<Var> = param.map(|at| function.params[at]).into_iter().collect();
        self.block(&function.body, &mut stack)?;
        if let Some(at) = self.only(function.results.iter().copied())? {
            self.take(&mut stack, function.body.results[at])?;
        }
        self.nothing_left(&stack)
    }

    fn nothing_left(&self, stack: &[Var]) -> Outcome {
        match stack.first().and_then(|v| v.ty.shape()) {
            Some(shape) => Err(shape),
            None => Ok(()),
        }
    }

    /// Takes a trace from the end of the stack.
    fn take(&self, stack: &mut Vec<Var>, trace: Atom) -> Outcome {
        match (trace.var(), stack.last()) {
            (Some(var), Some(last)) if var == *last => {
                stack.pop();
                Ok(())
            }
            (Some(var), _) if self.empty.contains(&var) => Ok(()),
            (Some(var), last) => {
                let shapes = [Some(var), last.copied()].into_iter().flatten().filter_map(|v| v.ty.shape());
                Err(shapes.min().unwrap_or(ShapeId(0)))
            }
            (None, _) => Ok(()),
        }
    }

    fn block(&mut self, block: &Block, stack: &mut Vec<Var>) -> Outcome {
        with_stack(|| block.stmts.iter().try_for_each(|stmt| self.stmt(stmt, stack)))
    }

    fn stmt(&mut self, stmt: &Stmt, stack: &mut Vec<Var>) -> Outcome {
        let Stmt { binds, op, .. } = stmt;
        match op {
            Op::Cell { shape, tag, fields } if self.candidates.contains(shape) => {
                let order = self.fields.get(&(*shape, *tag)).map_or(&[][..], |o| &o[..]);
                for at in order.iter().rev() {
                    self.take(stack, fields[*at])?;
                }
                if fields.is_empty() {
                    self.empty.extend(binds);
                } else {
                    stack.extend(binds);
                }
                Ok(())
            }
            Op::Unpack { cell, tag } if self.trace(cell.ty()).is_some() => {
                self.take(stack, *cell)?;
                let shape = self.trace(cell.ty()).unwrap_or(ShapeId(0));
                let order = self.fields.get(&(shape, *tag)).map_or(&[][..], |o| &o[..]);
                stack.extend(order.iter().map(|at| binds[*at]));
                Ok(())
            }
            Op::Tag { cell } if self.trace(cell.ty()).is_some() => {
                if let (Some(cell), [tag]) = (cell.var(), &binds[..]) {
                    self.tags.insert(*tag, cell);
                }
                Ok(())
            }
            Op::Scalar { prim: Prim::Equal, args } => {
                if let ([Atom::Var(tag), Atom::Int(k)] | [Atom::Int(k), Atom::Var(tag)], [test]) =
                    (&args[..], &binds[..])
                {
                    if let (Some(cell), Ok(k)) = (self.tags.get(tag), usize::try_from(*k)) {
                        self.tests.insert(*test, (*cell, k));
                    }
                }
                Ok(())
            }
            Op::Call { function, args } => {
                if let Some(at) = self.only(args.iter().map(|a| a.ty()))? {
                    self.take(stack, args[at])?;
                }
                let result = self.only(self.module.function(*function).results.iter().copied())?;
                stack.extend(result.map(|at| binds[at]));
                Ok(())
            }
            Op::If { cond, then, otherwise, .. } => self.branch(*cond, [then, otherwise], binds, stack),
            Op::For(l) => self.repeated(&l.carried, &l.body, 0, binds, stack),
            Op::While(l) => self.repeated(&l.carried, &l.body, 1, binds, stack),
            // Whatever else is done with a trace is more than once, or not in order.
            op => {
                let mut fault = binds.iter().find_map(|v| self.trace(v.ty));
                op.for_each_operand(&mut |a| fault = fault.or(self.trace(a.ty())));
                fault.map_or(Ok(()), Err)
            }
        }
    }

    /// The trace that has no fields on a side of a branch, as far as the condition says so.
    fn empty_side(&self, cond: Atom, then: bool) -> Option<Var> {
        let (cell, tag) = *self.tests.get(&cond.var()?)?;
        let cells = &self.module.shape(cell.ty.shape()?).cells;
        let empty = cells.iter().enumerate().filter(|(k, _)| (*k == tag) == then).all(|(_, fields)| fields.is_empty());
        (empty && !self.empty.contains(&cell)).then_some(cell)
    }

    fn branch(&mut self, cond: Atom, sides: [&Block; 2], binds: &[Var], stack: &mut Vec<Var>) -> Outcome {
        let result = self.only(binds.iter().map(|v| v.ty))?;
        let mut ends = Vec::new();
        for (side, then) in sides.into_iter().zip([true, false]) {
            let mut own = stack.clone();
            let empty = self.empty_side(cond, then);
            if let Some(cell) = empty {
                own.retain(|v| *v != cell);
                self.empty.insert(cell);
            }
            self.block(side, &mut own)?;
            if let Some(at) = result {
                self.take(&mut own, side.results[at])?;
            }
            if let Some(cell) = empty {
                self.empty.remove(&cell);
            }
            ends.push((own, empty));
        }
        // What has no fields on one side may stay on the other.
        let without = |(end, _): &(Vec<Var>, Option<Var>), empty: Option<Var>| -> Vec<Var> {
            end.iter().copied().filter(|v| Some(*v) != empty).collect()
        };
        let same = |a: &(Vec<Var>, Option<Var>), b: &(Vec<Var>, Option<Var>)| a.0 == without(b, a.1);
        let end = match &ends[..] {
            [a, b] if same(a, b) => b.0.clone(),
            [a, b] if same(b, a) => a.0.clone(),
            [a, b] => {
                let longer = if a.0.len() > b.0.len() { &a.0 } else { &b.0 };
                return Err(longer.iter().filter_map(|v| v.ty.shape()).max().unwrap_or(ShapeId(0)));
            }
            _ => gradus_source::bug!("a branch has two sides"),
        };
        *stack = end;
        stack.extend(result.map(|at| binds[at]));
        Ok(())
    }

    fn repeated(
        &mut self,
        carried: &[(Var, Atom)],
        body: &Block,
        skip: usize,
        binds: &[Var],
        stack: &mut Vec<Var>,
    ) -> Outcome {
        let state = self.only(carried.iter().map(|(v, _)| v.ty))?;
        // Traces that are collected are no state.
        if binds.iter().filter(|v| self.trace(v.ty).is_some()).count() > usize::from(state.is_some()) {
            return Err(binds.iter().filter_map(|v| self.trace(v.ty)).min().unwrap_or(ShapeId(0)));
        }
        let mut own = Vec::new();
        if let Some(at) = state {
            self.take(stack, carried[at].1)?;
            own.push(carried[at].0);
        }
        self.block(body, &mut own)?;
        if let Some(at) = state {
            self.take(&mut own, body.results[at + skip])?;
            // A loop that goes back through the traces of iterations ends with that before the first, which is nil.
            let goes_back = body.stmts.iter().any(|s| {
                let whole = matches!(&s.op, Op::Unpack { cell, .. } if cell.var() == Some(carried[at].0));
                whole && body.results[at + skip].var().is_some_and(|v| s.binds.contains(&v))
            });
            if goes_back && !self.used.contains(&binds[at]) {
                self.empty.insert(binds[at]);
            } else {
                stack.push(binds[at]);
            }
        }
        self.nothing_left(&own)
    }
}
