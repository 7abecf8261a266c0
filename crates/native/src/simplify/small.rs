//! Arrays of a few numbers, their number known, are taken apart where they cross a branch, a loop or an accumulator: each number goes
//! on its own. Reads of the rest are seen through by `forward`, so that the arrays are never made.

use super::{forward, unroll};
use crate::flow::*;
use gradus_core::traverse::with_stack;
use rustc_hash::FxHashMap;

/// Says whether anything was taken apart.
pub fn run(block: &mut Block) -> bool {
    let mut small = Small::default();
    small.block(block);
    small.changed
}

/// What is known of an array of rank 1.
#[derive(Clone)]
pub(super) enum Parts {
    Items(Vec<Atom>),
    Dummy,
}

#[derive(Default)]
pub(super) struct Small<'a> {
    parts: FxHashMap<Var, Parts>,
    /// What is known from before, for a trial.
    before: Option<&'a Small<'a>>,
    pub(super) changed: bool,
}

/// The common length of arrays that meet at one place, if they can be taken apart there.
fn meet(sides: &[Option<&Parts>]) -> Option<usize> {
    let mut length = None;
    for side in sides {
        match (side, length) {
            (None, _) => return None,
            (Some(Parts::Dummy), _) => {}
            (Some(Parts::Items(items)), None) => length = Some(items.len()),
            (Some(Parts::Items(items)), Some(known)) if items.len() != known => return None,
            (Some(Parts::Items(_)), Some(_)) => {}
        }
    }
    length
}

/// The numbers of a side.
fn items(side: Option<&Parts>, length: usize, ty: Type) -> Vec<Atom> {
    match side {
        Some(Parts::Items(items)) => items.clone(),
        Some(Parts::Dummy) | None => vec![Builder::zero(ty.scalar); length],
    }
}

pub(super) fn numbers(array: Var, length: usize) -> Vec<Var> {
    (0..length).map(|_| Var::fresh(array.name, array.ty.at(1))).collect()
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
                stmt.op.blocks_mut().into_iter().for_each(|inner| self.block(inner));
                match &stmt.op {
                    Op::If { .. } => self.branch(stmt, &mut out),
                    Op::For(_) | Op::While(_) => self.repeated(stmt, &mut out),
                    Op::Literal { items, ty } if ty.rank == 1 && items.len() <= unroll::FEW => {
                        self.parts.insert(stmt.binds[0], Parts::Items(items.clone()));
                        out.push(stmt);
                    }
                    op if op.is_dummy() => {
                        self.parts.insert(stmt.binds[0], Parts::Dummy);
                        out.push(stmt);
                    }
                    Op::Fill { dims, value } => {
                        match dims[..] {
                            [Atom::Int(n)] if n > 0 && n <= unroll::FEW as i64 => {
                                let ty = stmt.binds[0].ty;
                                let items = vec![*value; n as usize];
                                self.parts.insert(stmt.binds[0], Parts::Items(items.clone()));
                                stmt.op = Op::Literal { items, ty };
                            }
                            _ => {}
                        }
                        out.push(stmt);
                    }
                    Op::Add { acc, index, value } if index.len() + 1 == acc.ty.rank as usize => match self.of(*value) {
                        Some(Parts::Items(items)) => {
                            for (k, item) in items.iter().enumerate() {
                                let index = [index.clone(), vec![Atom::Int(k as i64)]].concat();
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

    /// `out` gets the array again, made from its numbers, for those who still want it whole.
    pub(super) fn rejoin(&mut self, array: Var, vars: &[Var], span: gradus_source::Span, out: &mut Vec<Stmt>) {
        let items = atoms(vars);
        self.parts.insert(array, Parts::Items(items.clone()));
        out.push(Stmt { binds: vec![array], op: Op::Literal { items, ty: array.ty }, span });
        self.changed = true;
    }

    fn branch(&mut self, stmt: Stmt, out: &mut Vec<Stmt>) {
        let Stmt { binds, op: Op::If { cond, mut then, mut otherwise, replayed }, span } = stmt else { return };
        let (mut new_binds, mut whole) = (Vec::new(), Vec::new());
        let sides: Vec<(Atom, Atom)> = then.results.drain(..).zip(otherwise.results.drain(..)).collect();
        for (bind, (a, b)) in binds.into_iter().zip(sides) {
            let (a_parts, b_parts) = (self.of(a), self.of(b));
            match meet(&[a_parts, b_parts]).filter(|_| bind.ty.rank == 1) {
                Some(length) => {
                    then.results.extend(items(a_parts, length, bind.ty));
                    otherwise.results.extend(items(b_parts, length, bind.ty));
                    let vars = numbers(bind, length);
                    new_binds.extend(vars.iter().copied());
                    whole.push((bind, vars));
                }
                None => {
                    then.results.push(a);
                    otherwise.results.push(b);
                    new_binds.push(bind);
                }
            }
        }
        out.push(Stmt { binds: new_binds, op: Op::If { cond, then, otherwise, replayed }, span });
        for (array, vars) in whole {
            self.rejoin(array, &vars, span, out);
        }
    }

    /// State of a loop that is such an array from the start and after every iteration.
    fn repeated(&mut self, stmt: Stmt, out: &mut Vec<Stmt>) {
        let (carried, body, skip) = match &stmt.op {
            Op::For(l) => (&l.carried, &l.body, 0),
            Op::While(l) => (&l.carried, &l.body, 1),
            _ => return,
        };
        let length = |(i, (var, init)): (usize, &(Var, Atom))| {
            let parts = match self.of(*init)? {
                // Nobody looks at the start: the state is as long as what follows it.
                Parts::Dummy => self.of(*body.results.get(i + skip)?)?,
                parts => parts,
            };
            match parts {
                Parts::Items(items) if var.ty.rank == 1 && !items.is_empty() => Some(items.len()),
                Parts::Items(_) | Parts::Dummy => None,
            }
        };
        let mut chosen: Vec<Option<usize>> = carried.iter().enumerate().map(length).collect();
        while chosen.iter().any(|c| c.is_some()) {
            match self.try_state(&stmt, &chosen, skip) {
                Ok((stmt, whole)) => {
                    let span = stmt.span;
                    out.push(stmt);
                    for (array, vars) in whole {
                        self.rejoin(array, &vars, span, out);
                    }
                    return;
                }
                Err(still) => chosen = still,
            }
        }
        out.push(stmt);
    }

    /// The loop with the chosen state taken apart; or what is left of the choice when some of it does not keep its length.
    #[allow(clippy::type_complexity)]
    fn try_state(
        &self,
        stmt: &Stmt,
        chosen: &[Option<usize>],
        skip: usize,
    ) -> Result<(Stmt, Vec<(Var, Vec<Var>)>), Vec<Option<usize>>> {
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
                Some(length) => {
                    let vars = numbers(*var, *length);
                    let op = Op::Literal { items: atoms(&vars), ty: var.ty };
                    front.push(Stmt { binds: vec![*var], op, span: stmt.span });
                    new_carried.extend(vars.into_iter().zip(items(self.of(*init), *length, var.ty)));
                }
                None => new_carried.push((*var, *init)),
            }
        }
        front.append(&mut body.stmts);
        body.stmts = front;
        forward::run(body);
        unroll::run(body);
        forward::run(body);
        let mut inner = Small { before: Some(self), ..Small::default() };
        inner.block(body);
        let next = |i: usize| body.results.get(i + skip).and_then(|a| inner.of(*a));
        let keeps = |(i, choice): (usize, &Option<usize>)| choice.filter(|n| meet(&[next(i)]) == Some(*n));
        let still: Vec<Option<usize>> = chosen.iter().enumerate().map(keeps).collect();
        if still != chosen {
            return Err(still);
        }
        let old_results = std::mem::take(&mut body.results);
        let mut results = old_results[..skip].to_vec();
        let (mut binds, mut whole) = (Vec::new(), Vec::new());
        for (i, bind) in stmt.binds.iter().enumerate() {
            let result = old_results[i + skip];
            match chosen.get(i).copied().flatten() {
                Some(length) => {
                    results.extend(items(inner.of(result), length, bind.ty));
                    let vars = numbers(*bind, length);
                    binds.extend(vars.iter().copied());
                    whole.push((*bind, vars));
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
