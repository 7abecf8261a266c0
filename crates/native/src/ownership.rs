//! Who holds an array or a cell: each such variable of a block holds it once. It is let go after its last use in the block, or handed
//! on by that use. A row or field of something that outlives it is not held at all. Both backends follow this.

use crate::flow::walk::for_each_operand;
use crate::flow::*;
use rustc_hash::FxHashMap;

/// The arrays of one block, while its statements are written in order.
#[derive(Clone)]
pub struct Ownership {
    /// For the arrays that the block owns: the statement of the last use; the number of statements for results.
    last_use: FxHashMap<Var, usize>,
    /// For each statement the arrays to let go after it.
    ends: Vec<Vec<Var>>,
    at: usize,
    /// How often the current statement uses each array.
    uses: FxHashMap<Var, usize>,
    handed_on: Vec<Var>,
}

fn is_counted(var: Var) -> bool {
    var.ty.is_counted() && !var.ty.accumulator
}

impl Ownership {
    /// `params` are taken over by the block; those that it does not use come back, to be let go at once.
    pub fn new(block: &Block, params: &[Var]) -> (Ownership, Vec<Var>) {
        let mut last_use: FxHashMap<Var, usize> = FxHashMap::default();
        let mut unused: Vec<Var> = params.iter().copied().filter(|v| is_counted(*v)).collect();
        last_use.extend(unused.iter().map(|v| (*v, 0)));
        // For a row or a field, the array or cell that it lies in.
        let mut within: FxHashMap<Var, Var> = FxHashMap::default();
        for (at, stmt) in block.stmts.iter().enumerate() {
            let is_empty = last_use.is_empty();
            let mut see = |a: Atom| {
                if let Some(var) = a.var().filter(|v| is_counted(*v)) {
                    if let Some(last) = last_use.get_mut(&var) {
                        *last = at;
                    }
                    if !unused.is_empty() {
                        unused.retain(|v| *v != var);
                    }
                }
            };
            stmt.op.for_each_operand(&mut see);
            // Nothing to look for in branches within branches, which are as long as all that they contain.
            if !is_empty {
                for inner in stmt.op.blocks() {
                    for_each_operand(inner, &mut see);
                }
            }
            let whole = match &stmt.op {
                Op::Get { array, .. } => Some(*array),
                Op::Unpack { cell, .. } => cell.var(),
                _ => None,
            };
            if let Some(whole) = whole {
                let whole = within.get(&whole).copied().unwrap_or(whole);
                within.extend(stmt.binds.iter().map(|part| (*part, whole)));
            }
            for var in stmt.binds.iter().copied().filter(|v| is_counted(*v)) {
                last_use.insert(var, at);
            }
        }
        for result in &block.results {
            if let Some(var) = result.var() {
                if let Some(last) = last_use.get_mut(&var) {
                    *last = block.stmts.len();
                }
                unused.retain(|v| *v != var);
            }
        }
        unused.iter().for_each(|v| {
            last_use.remove(v);
        });
        let lent: Vec<Var> = within
            .into_iter()
            .filter(|(row, array)| match (last_use.get(row), last_use.get(array)) {
                (Some(row), Some(array)) => row < array,
                // Arrays from outside outlive the block.
                (Some(row), None) => *row < block.stmts.len(),
                (None, _) => false,
            })
            .map(|(row, _)| row)
            .collect();
        lent.iter().for_each(|row| {
            last_use.remove(row);
        });
        let mut ends: Vec<Vec<Var>> = vec![Vec::new(); block.stmts.len()];
        for (var, last) in &last_use {
            if let Some(end) = ends.get_mut(*last) {
                end.push(*var);
            }
        }
        ends.iter_mut().for_each(|end| end.sort_by_key(|v| v.id));
        (Ownership { last_use, ends, at: 0, uses: FxHashMap::default(), handed_on: Vec::new() }, unused)
    }

    /// For statements that own nothing.
    pub fn none() -> Ownership {
        Ownership::new(&Block::default(), &[]).0
    }

    /// Statement number `at` is going to be written.
    pub fn start(&mut self, at: usize, stmt: &Stmt) {
        self.at = at;
        self.handed_on.clear();
        self.uses.clear();
        if self.ends.get(at).is_none_or(|ends| ends.is_empty()) {
            return;
        }
        let last_use = &self.last_use;
        let uses = &mut self.uses;
        let mut count = |a: Atom| {
            if let Some(var) = a.var().filter(|v| last_use.get(v) == Some(&at)) {
                *uses.entry(var).or_insert(0) += 1;
            }
        };
        stmt.op.for_each_operand(&mut count);
        for inner in stmt.op.blocks() {
            for_each_operand(inner, &mut count);
        }
    }

    /// Whether this use of an array hands it on; otherwise it must be held once more.
    pub fn hands_on(&mut self, var: Var) -> bool {
        let hands_on = self.last_use.get(&var) == Some(&self.at) && self.uses.get(&var) == Some(&1);
        if hands_on {
            self.handed_on.push(var);
        }
        hands_on
    }

    /// The current statement is a branch: the arrays that are used nowhere after it, which both sides take over.
    pub fn hands_to_sides(&mut self) -> Vec<Var> {
        let mut handed: Vec<Var> = self.uses.keys().copied().collect();
        handed.sort_by_key(|v| v.id);
        self.handed_on.extend(&handed);
        handed
    }

    /// The arrays and cells that are let go after the current statement, as far as it does not hand them on.
    pub fn ending(&self) -> impl Iterator<Item = Var> + '_ {
        let ends = self.ends.get(self.at).into_iter().flatten().copied();
        ends.filter(|v| self.last_use.contains_key(v) && !self.handed_on.contains(v))
    }

    /// Whether a variable holds what it stands for; a row that its array outlives, or a field that its cell outlives, does not.
    pub fn holds(&self, var: Var) -> bool {
        self.last_use.contains_key(&var)
    }

    /// Whether nobody looks at what the current statement binds. Such a variable need not be made; it is not let go either.
    pub fn is_unused(&mut self, var: Var) -> bool {
        let unused = self.last_use.get(&var) == Some(&self.at);
        if unused {
            self.last_use.remove(&var);
        }
        unused
    }

    /// The statement has been written: the arrays to let go.
    pub fn end(&mut self) -> Vec<Var> {
        let mut over = self.ends.get_mut(self.at).map(std::mem::take).unwrap_or_default();
        over.retain(|v| self.last_use.contains_key(v) && !self.handed_on.contains(v));
        over.iter().chain(&self.handed_on).for_each(|v| {
            self.last_use.remove(v);
        });
        over
    }

    /// Whether a result of the block is handed over; otherwise it must be held once more. Each is handed over once.
    pub fn gives(&mut self, var: Var) -> bool {
        self.last_use.remove(&var).is_some()
    }
}
