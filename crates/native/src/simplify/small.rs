//! Arrays and matrices of a few numbers, their number known, are taken apart where they cross a branch, a loop or an accumulator: each number
//! goes on its own. Reads of the rest are seen through by `forward`, so that the arrays are never made.

use super::{forward, unroll};
use crate::flow::*;
use gradus_core::traverse::with_stack;
use rustc_hash::{FxHashMap, FxHashSet};

/// Says whether anything was taken apart.
pub fn run(block: &mut Block, lengths: &KnownLengths) -> bool {
    let mut small = Small { lengths, parts: FxHashMap::default(), before: None, changed: false };
    small.block(block);
    small.changed
}

/// What is known of an array.
#[derive(Clone)]
pub(super) enum Parts {
    Items(Numbers),
    Dummy,
}

/// The numbers of an array or matrix, row by row.
#[derive(Clone)]
pub(super) struct Numbers {
    pub(super) dims: Vec<usize>,
    pub(super) items: Vec<Atom>,
}

pub(super) struct Small<'a> {
    lengths: &'a KnownLengths,
    parts: FxHashMap<Var, Parts>,
    /// What is known from before, for a trial.
    before: Option<&'a Small<'a>>,
    pub(super) changed: bool,
}

/// The common lengths of arrays that meet at one place, if they can be taken apart there.
fn meet(sides: &[Option<&Parts>]) -> Option<Vec<usize>> {
    let mut dims = None;
    for side in sides {
        match (side, dims) {
            (None, _) => return None,
            (Some(Parts::Dummy), _) => {}
            (Some(Parts::Items(numbers)), None) => dims = Some(&numbers.dims),
            (Some(Parts::Items(numbers)), Some(known)) if numbers.dims != *known => return None,
            (Some(Parts::Items(_)), Some(_)) => {}
        }
    }
    dims.cloned()
}

/// The numbers of a side.
fn items(side: Option<&Parts>, dims: &[usize], ty: Type) -> Vec<Atom> {
    match side {
        Some(Parts::Items(numbers)) => numbers.items.clone(),
        Some(Parts::Dummy) | None => vec![Builder::zero(ty.scalar); dims.iter().product()],
    }
}

/// Variables for the numbers of an array.
pub(super) fn numbers(array: Var, count: usize) -> Vec<Var> {
    (0..count).map(|_| Var::fresh(array.name, array.ty.at(array.ty.rank as usize))).collect()
}

/// Makes an array of its numbers.
fn join(array: Var, numbers: &Numbers, span: gradus_source::Span, out: &mut Vec<Stmt>) {
    let mut literal = |bind: Var, items: Vec<Atom>| {
        out.push(Stmt { binds: vec![bind], op: Op::Literal { items, ty: bind.ty }, span });
        Atom::Var(bind)
    };
    let items = match numbers.dims[..] {
        [_, columns] => {
            let rows = numbers.items.chunks(columns);
            rows.map(|row| literal(Var::fresh(array.name, array.ty.at(1)), row.to_vec())).collect()
        }
        _ => numbers.items.clone(),
    };
    literal(array, items);
}

fn atoms(vars: &[Var]) -> Vec<Atom> {
    vars.iter().copied().map(Atom::Var).collect()
}

impl Small<'_> {
    pub(super) fn of(&self, atom: Atom) -> Option<&Parts> {
        let var = atom.var()?;
        self.parts.get(&var).or_else(|| self.before?.of(atom))
    }

    fn block(&mut self, block: &mut Block) {
        with_stack(|| {
            let mut out = Vec::with_capacity(block.stmts.len());
            for mut stmt in std::mem::take(&mut block.stmts) {
                stmt.op.blocks_mut().for_each(|inner| self.block(inner));
                match &stmt.op {
                    Op::If { .. } => self.branch(stmt, &mut out),
                    Op::For(_) | Op::While(_) => self.repeated(stmt, &mut out),
                    Op::Literal { items, ty } => {
                        if let Some(numbers) = self.literal(items, *ty) {
                            self.parts.insert(stmt.binds[0], Parts::Items(numbers));
                        }
                        out.push(stmt);
                    }
                    op if op.is_dummy() => {
                        self.parts.insert(stmt.binds[0], Parts::Dummy);
                        out.push(stmt);
                    }
                    Op::Fill { dims, value } => match few(dims) {
                        Some(dims) => {
                            let numbers = Numbers { items: vec![*value; dims.iter().product()], dims };
                            match stmt.binds[0].ty.rank {
                                1 => join(stmt.binds[0], &numbers, stmt.span, &mut out),
                                _ => out.push(stmt.clone()),
                            }
                            self.parts.insert(stmt.binds[0], Parts::Items(numbers));
                        }
                        None => out.push(stmt),
                    },
                    Op::Add { acc, index, value } if value.ty().is_array() => match self.of(*value) {
                        Some(Parts::Items(numbers)) => {
                            for (k, item) in numbers.items.iter().enumerate() {
                                let index = [index.clone(), place(&numbers.dims, k)].concat();
                                let op = Op::Add { acc: *acc, index, value: *item };
                                out.push(Stmt { binds: Vec::new(), op, span: stmt.span });
                            }
                            self.changed = true;
                        }
                        _ => out.push(stmt),
                    },
                    _ => out.push(stmt),
                }
            }
            block.stmts = out;
            self.accumulators(block);
        })
    }

    /// The numbers of a list of numbers, or of rows.
    fn literal(&self, items: &[Atom], ty: Type) -> Option<Numbers> {
        let numbers = match ty.rank {
            1 => Numbers { dims: vec![items.len()], items: items.to_vec() },
            2 => {
                let row = |row: &Atom| match self.of(*row) {
                    Some(Parts::Items(numbers)) => Some(&numbers.items),
                    _ => None,
                };
                let rows: Vec<&Vec<Atom>> = items.iter().map(row).collect::<Option<_>>()?;
                let columns = rows.first().map(|row| row.len()).filter(|n| rows.iter().all(|row| row.len() == *n))?;
                Numbers { dims: vec![rows.len(), columns], items: rows.into_iter().flatten().copied().collect() }
            }
            _ => return None,
        };
        let some = numbers.dims.len() == 1 || !numbers.items.is_empty();
        (some && numbers.items.len() <= unroll::FEW).then_some(numbers)
    }

    /// `out` gets the array again, made from its numbers, for those who still want it whole.
    pub(super) fn rejoin(
        &mut self,
        array: Var,
        dims: Vec<usize>,
        vars: &[Var],
        span: gradus_source::Span,
        out: &mut Vec<Stmt>,
    ) {
        let numbers = Numbers { dims, items: atoms(vars) };
        join(array, &numbers, span, out);
        self.parts.insert(array, Parts::Items(numbers));
        self.changed = true;
    }

    fn branch(&mut self, stmt: Stmt, out: &mut Vec<Stmt>) {
        let Stmt { binds, op: Op::If { cond, mut then, mut otherwise, replayed }, span } = stmt else { return };
        let (mut new_binds, mut whole) = (Vec::new(), Vec::new());
        let sides: Vec<(Atom, Atom)> = then.results.drain(..).zip(otherwise.results.drain(..)).collect();
        for (bind, (a, b)) in binds.into_iter().zip(sides) {
            let (a_parts, b_parts) = (self.of(a), self.of(b));
            match meet(&[a_parts, b_parts]) {
                Some(dims) => {
                    then.results.extend(items(a_parts, &dims, bind.ty));
                    otherwise.results.extend(items(b_parts, &dims, bind.ty));
                    let vars = numbers(bind, dims.iter().product());
                    new_binds.extend(vars.iter().copied());
                    whole.push((bind, dims, vars));
                }
                None => {
                    then.results.push(a);
                    otherwise.results.push(b);
                    new_binds.push(bind);
                }
            }
        }
        out.push(Stmt { binds: new_binds, op: Op::If { cond, then, otherwise, replayed }, span });
        for (array, dims, vars) in whole {
            self.rejoin(array, dims, &vars, span, out);
        }
    }

    /// State of a loop that is such an array from the start and after every iteration.
    fn repeated(&mut self, stmt: Stmt, out: &mut Vec<Stmt>) {
        let (carried, body, skip) = match &stmt.op {
            Op::For(l) => (&l.carried, &l.body, 0),
            Op::While(l) => (&l.carried, &l.body, 1),
            _ => return,
        };
        let dims = |(i, (_, init)): (usize, &(Var, Atom))| {
            let parts = match self.of(*init)? {
                // Nobody looks at the start: the state is as long as what follows it.
                Parts::Dummy => self.of(*body.results.get(i + skip)?)?,
                parts => parts,
            };
            match parts {
                Parts::Items(numbers) if !numbers.items.is_empty() => Some(numbers.dims.clone()),
                Parts::Items(_) | Parts::Dummy => None,
            }
        };
        let mut chosen: Vec<Option<Vec<usize>>> = carried.iter().enumerate().map(dims).collect();
        if chosen.iter().any(|c| c.is_some()) {
            let changing = Changing::of(&stmt.op);
            for (choice, next) in chosen.iter_mut().zip(&body.results[skip..]) {
                *choice = choice.take().filter(|_| !changing.is_changed(*next));
            }
        }
        let mut may_add = true;
        while chosen.iter().any(|c| c.is_some()) {
            match self.try_state(&stmt, &chosen, skip, &mut may_add) {
                Ok((stmt, whole)) => {
                    let span = stmt.span;
                    out.push(stmt);
                    for (array, dims, vars) in whole {
                        self.rejoin(array, dims, &vars, span, out);
                    }
                    return;
                }
                Err(still) => chosen = still,
            }
        }
        out.push(stmt);
    }

    /// The loop with the chosen state taken apart; or another choice: what is left when some of it does not keep its length, or, if one may
    /// add to it, more when it is found of what length state becomes whose start nobody looks at.
    #[allow(clippy::type_complexity)]
    fn try_state(
        &self,
        stmt: &Stmt,
        chosen: &[Option<Vec<usize>>],
        skip: usize,
        may_add: &mut bool,
    ) -> Result<(Stmt, Vec<(Var, Vec<usize>, Vec<Var>)>), Vec<Option<Vec<usize>>>> {
        let mut stmt = stmt.clone();
        let (carried, body) = match &mut stmt.op {
            Op::For(l) => (&mut l.carried, &mut l.body),
            Op::While(l) => (&mut l.carried, &mut l.body),
            _ => return Err(Vec::new()),
        };
        let mut front = Vec::new();
        let mut new_carried = Vec::new();
        for ((var, init), choice) in carried.iter().zip(chosen) {
            match choice {
                Some(dims) => {
                    let vars = numbers(*var, dims.iter().product());
                    let numbers = Numbers { dims: dims.clone(), items: atoms(&vars) };
                    join(*var, &numbers, stmt.span, &mut front);
                    new_carried.extend(vars.into_iter().zip(items(self.of(*init), dims, var.ty)));
                }
                None => new_carried.push((*var, *init)),
            }
        }
        front.append(&mut body.stmts);
        body.stmts = front;
        forward::run(body, self.lengths);
        unroll::run(body);
        forward::run(body, self.lengths);
        let mut inner =
            Small { lengths: self.lengths, parts: FxHashMap::default(), before: Some(self), changed: false };
        inner.block(body);
        let next = |i: usize| body.results.get(i + skip).and_then(|a| inner.of(*a));
        let keeps = |(i, choice): (usize, &Option<Vec<usize>>)| choice.clone().filter(|_| meet(&[next(i)]) == *choice);
        let still: Vec<Option<Vec<usize>>> = chosen.iter().enumerate().map(keeps).collect();
        if still != chosen {
            return Err(still);
        }
        if std::mem::take(may_add) {
            let found = |(i, choice): (usize, &Option<Vec<usize>>)| match (choice, self.of(carried[i].1), next(i)) {
                (None, Some(Parts::Dummy), Some(Parts::Items(n))) if !n.items.is_empty() => Some(n.dims.clone()),
                _ => choice.clone(),
            };
            let more: Vec<Option<Vec<usize>>> = chosen.iter().enumerate().map(found).collect();
            if more != chosen {
                return Err(more);
            }
        }
        let old_results = std::mem::take(&mut body.results);
        let mut results = old_results[..skip].to_vec();
        let (mut binds, mut whole) = (Vec::new(), Vec::new());
        for (i, bind) in stmt.binds.iter().enumerate() {
            let result = old_results[i + skip];
            match chosen.get(i).cloned().flatten() {
                Some(dims) => {
                    results.extend(items(inner.of(result), &dims, bind.ty));
                    let vars = numbers(*bind, dims.iter().product());
                    binds.extend(vars.iter().copied());
                    whole.push((*bind, dims, vars));
                }
                None => {
                    results.push(result);
                    binds.push(*bind);
                }
            }
        }
        body.results = results;
        *carried = new_carried;
        stmt.binds = binds;
        Ok((stmt, whole))
    }
}

/// What changes from one iteration of a loop to the next.
struct Changing<'a> {
    numbers: FxHashSet<Var>,
    bound: FxHashMap<Var, &'a Stmt>,
}

impl<'a> Changing<'a> {
    fn of(op: &'a Op) -> Changing<'a> {
        let mut numbers: FxHashSet<Var> = op.params().filter(|v| !v.ty.is_array()).collect();
        let mut bound = FxHashMap::default();
        let mut note = |stmt: &'a Stmt| {
            bound.extend(stmt.binds.iter().map(|v| (*v, stmt)));
            let mut changes = false;
            stmt.op.for_each_operand(&mut |a| changes |= a.var().is_some_and(|v| numbers.contains(&v)));
            match &stmt.op {
                Op::For(l) if l.count.var().is_some_and(|n| numbers.contains(&n)) => numbers.extend([l.index]),
                Op::Scalar { .. } | Op::Select { .. } if changes => numbers.extend(&stmt.binds),
                _ => {}
            }
        };
        op.blocks().for_each(|body| walk::for_each_stmt(body, &mut note));
        Changing { numbers, bound }
    }

    /// Whether an array is changed at a place that is not always the same: then its numbers are not told apart.
    fn is_changed(&self, array: Atom) -> bool {
        let Some(array) = array.var() else { return false };
        let Some(stmt) = self.bound.get(&array) else { return false };
        let place = || stmt.binds.iter().position(|v| *v == array).unwrap_or(0);
        let is_changed = |array: Atom| with_stack(|| self.is_changed(array));
        match &stmt.op {
            Op::Set { array, index, .. } => {
                let changes = |i: &Atom| i.var().is_some_and(|i| self.numbers.contains(&i));
                index.iter().any(changes) || is_changed((*array).into())
            }
            Op::Copy { value } | Op::Stop { value } => is_changed(*value),
            Op::If { then, otherwise, .. } => [then, otherwise].iter().any(|side| is_changed(side.results[place()])),
            Op::For(l) if place() < l.carried.len() => {
                is_changed(l.body.results[place()]) || is_changed(l.carried[place()].1)
            }
            Op::While(l) if place() < l.carried.len() => {
                is_changed(l.body.results[place() + 1]) || is_changed(l.carried[place()].1)
            }
            _ => false,
        }
    }
}

/// The indices of a number, row by row.
pub(super) fn place(dims: &[usize], k: usize) -> Vec<Atom> {
    let index = match *dims {
        [_, columns] => vec![k / columns, k % columns],
        _ => vec![k],
    };
    index.into_iter().map(|i| Atom::Int(i as i64)).collect()
}

/// The lengths of an array or matrix of a few numbers, and not none.
fn few(dims: &[Atom]) -> Option<Vec<usize>> {
    let known = |dim: &Atom| match dim {
        Atom::Int(n) => usize::try_from(*n).ok(),
        _ => None,
    };
    let dims: Vec<usize> = dims.iter().map(known).collect::<Option<_>>()?;
    let count = dims.iter().try_fold(1, |count: usize, n| count.checked_mul(*n))?;
    ((1..=2).contains(&dims.len()) && (1..=unroll::FEW).contains(&count)).then_some(dims)
}
