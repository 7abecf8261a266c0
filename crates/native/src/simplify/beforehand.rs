//! What every step of a simulation computes alike for each cell of a grid, say how well heat flows between two of them, is computed once, before the first step.
//!
//! A loop of so many steps contains nests of loops over cells. What depends only on the place is fixed there. Where something that varies needs a number that is
//! fixed and dear, a nest like that one, of which only what is fixed is left, makes an array of it beforehand, and the steps read it from there. Checks
//! are fixed, too, or the nest stays as it is: what fails beforehand would have failed in the first step, before anything else.

use super::failures::can_fail;
use super::products::is_among;
use super::same_side::is_dear;
use crate::flow::walk::{for_each_binder, Renaming};
use crate::flow::*;
use gradus_core::traverse::with_stack;
use rustc_hash::{FxHashMap, FxHashSet};

/// So many steps are worth an array.
const STEPS: i64 = 4;
/// No more arrays are made for a nest.
const MOST: usize = 8;

pub fn run(block: &mut Block) {
    with_stack(|| {
        let mut out = Vec::with_capacity(block.stmts.len());
        for mut stmt in std::mem::take(&mut block.stmts) {
            stmt.op.blocks_mut().for_each(run);
            if let Op::For(steps) = &mut stmt.op {
                // These run at least once.
                if matches!(steps.count, Atom::Int(STEPS..)) && !steps.carried.is_empty() && !steps.replayed {
                    out.extend(out_of_steps(steps));
                }
            }
            out.push(stmt);
        }
        block.stmts = out;
    })
}

/// Lets the nests of each step read what the nests that it gives make.
fn out_of_steps(steps: &mut For) -> Vec<Stmt> {
    let mut varying: FxHashSet<Var> = steps.carried.iter().map(|(state, _)| *state).chain([steps.index]).collect();
    let mut before = Vec::new();
    for stmt in &mut steps.body.stmts {
        if let Some(fixed) = Fixed::of(stmt, &varying) {
            before.push(fixed.beforehand(stmt));
            fixed.read_in(stmt, &mut Vec::new());
        } else if can_fail(stmt) {
            // Before what comes behind it, this would fail.
            break;
        }
        varying.extend(stmt.binds.iter().copied());
    }
    before
}

/// What is fixed in a nest.
struct Fixed {
    /// All but that.
    varying: FxHashSet<Var>,
    /// The dear numbers that something varying needs, with their arrays.
    arrays: FxHashMap<Var, Var>,
}

impl Fixed {
    fn of(stmt: &Stmt, varying: &FxHashSet<Var>) -> Option<Fixed> {
        let Op::For(nest) = &stmt.op else { return None };
        let mut search = Search { varying: varying.clone(), ..Search::default() };
        if is_among(varying, nest.count) {
            return None;
        }
        search.nest(nest)?;
        let Search { varying, numbers, needed, .. } = search;
        let mut arrays = FxHashMap::default();
        // No array is larger than one that the nest makes in each step.
        let largest = stmt.binds.iter().map(|v| v.ty.rank).max().unwrap_or(0);
        for var in needed {
            let Number { depth, is_dear } = numbers[&var];
            if is_dear && depth <= largest && var.ty == Type::REAL {
                let ty = Type::array(Scalar::Real, depth);
                arrays.entry(var).or_insert_with(|| Var::fresh(var.name, ty));
            }
        }
        (1..=MOST).contains(&arrays.len()).then_some(Fixed { varying, arrays })
    }

    /// The nest that makes the arrays.
    fn beforehand(&self, nest: &Stmt) -> Stmt {
        let (mut stmts, found) = self.part(std::slice::from_ref(nest), false);
        let [part] = &mut stmts[..] else { gradus_source::bug!("what is fixed in a loop is no loop") };
        let arrays = found.iter().map(|(number, _)| self.arrays[number]).collect();
        // The nest itself keeps its variables.
        Stmt { binds: arrays, ..Renaming::default().stmt(part) }
    }

    /// What is fixed of some statements; the numbers of which arrays are made, and what they are called where these statements end.
    fn part(&self, stmts: &[Stmt], in_branch: bool) -> (Vec<Stmt>, Vec<(Var, Var)>) {
        let mut part = Vec::with_capacity(stmts.len());
        let mut found: Vec<(Var, Var)> = Vec::new();
        for stmt in stmts {
            let fixed = || stmt.binds.iter().filter(|v| !self.varying.contains(v)).copied();
            let (mut binds, span) = (Vec::new(), stmt.span);
            let op = match &stmt.op {
                Op::For(l) if !in_branch && !is_among(&self.varying, l.count) => {
                    let (stmts, inner) = with_stack(|| self.part(&l.body.stmts, false));
                    for (number, row) in &inner {
                        binds.push(Var::fresh(number.name, Type::array(Scalar::Real, row.ty.rank + 1)));
                        found.extend(binds.last().map(|array| (*number, *array)));
                    }
                    let body = Block { stmts, results: inner.iter().map(|(_, row)| Atom::Var(*row)).collect() };
                    let (index, count) = (l.index, l.count);
                    Op::For(Box::new(For { index, count, carried: Vec::new(), body, replayed: false }))
                }
                Op::If { cond, then, otherwise, .. } if !is_among(&self.varying, *cond) => {
                    let mut sides = [then, otherwise].map(|side| {
                        let (stmts, inner) = with_stack(|| self.part(&side.stmts, true));
                        let results = stmt.binds.iter().zip(&side.results).filter(|(v, _)| !self.varying.contains(v));
                        (Block { stmts, results: results.map(|(_, result)| *result).collect() }, inner)
                    });
                    binds.extend(fixed());
                    for taken in [0, 1] {
                        for (number, value) in std::mem::take(&mut sides[taken].1) {
                            sides[taken].0.results.push(value.into());
                            // Nobody asks for it on the other side.
                            sides[1 - taken].0.results.push(Atom::Real(0.0));
                            binds.push(Var::fresh(number.name, Type::REAL));
                            found.extend(binds.last().map(|value| (number, *value)));
                        }
                    }
                    let [(then, _), (otherwise, _)] = sides;
                    Op::branch(*cond, then, otherwise, false)
                }
                Op::Check { .. } => stmt.op.clone(),
                op if is_computed(op) && fixed().count() > 0 => {
                    binds.extend(fixed());
                    op.clone()
                }
                _ => continue,
            };
            found.extend(fixed().filter(|v| self.arrays.contains_key(v)).map(|v| (v, v)));
            part.push(Stmt { binds, op, span });
        }
        (part, found)
    }

    /// Reads the arrays where their numbers were computed.
    fn read_in(&self, stmt: &mut Stmt, at: &mut Vec<Atom>) {
        let index = match &stmt.op {
            Op::For(l) => Some(l.index),
            _ => None,
        };
        at.extend(index.map(Atom::Var));
        for block in stmt.op.blocks_mut() {
            let mut out = Vec::with_capacity(block.stmts.len());
            for mut stmt in std::mem::take(&mut block.stmts) {
                with_stack(|| self.read_in(&mut stmt, at));
                let mut reads = Vec::new();
                for bind in &mut stmt.binds {
                    if let Some(array) = self.arrays.get(bind) {
                        let op = Op::Get { array: *array, index: at.clone() };
                        reads.push(Stmt { binds: vec![*bind], op, span: stmt.span });
                        *bind = bind.refresh();
                    }
                }
                out.push(stmt);
                out.extend(reads);
            }
            block.stmts = out;
        }
        at.truncate(at.len() - index.iter().len());
    }
}

/// Whether it gives a value that depends on its operands only.
fn is_computed(op: &Op) -> bool {
    matches!(op, Op::Scalar { .. } | Op::Select { .. } | Op::Get { .. } | Op::Dim { .. })
}

/// A fixed number.
#[derive(Clone, Copy)]
struct Number {
    /// So many loops are around it.
    depth: u8,
    /// Whether it, or what it is made of, is dear.
    is_dear: bool,
}

/// What is found in a nest.
#[derive(Default)]
struct Search {
    varying: FxHashSet<Var>,
    numbers: FxHashMap<Var, Number>,
    /// The numbers that something varying needs.
    needed: Vec<Var>,
    depth: u8,
    indices: FxHashSet<Var>,
}

impl Search {
    /// Nothing if something may fail that is not fixed, or if it does not matter whether it fails.
    fn nest(&mut self, l: &For) -> Option<()> {
        if l.replayed || self.depth == Type::MAX_RANK {
            return None;
        }
        self.depth += 1;
        self.indices.insert(l.index);
        self.varying.extend(l.carried.iter().map(|(state, _)| *state));
        self.block(&l.body, false)?;
        l.body.results.iter().for_each(|result| self.need(*result));
        self.depth -= 1;
        Some(())
    }

    fn block(&mut self, block: &Block, in_branch: bool) -> Option<()> {
        with_stack(|| block.stmts.iter().try_for_each(|stmt| self.stmt(stmt, in_branch)))
    }

    fn stmt(&mut self, stmt: &Stmt, in_branch: bool) -> Option<()> {
        match &stmt.op {
            Op::Check { cond, .. } => return (!is_among(&self.varying, *cond)).then_some(()),
            Op::If { cond, then, otherwise, replayed } if !is_among(&self.varying, *cond) => {
                if *replayed {
                    return None;
                }
                self.block(then, true)?;
                self.block(otherwise, true)?;
                for ((bind, one), other) in stmt.binds.iter().zip(&then.results).zip(&otherwise.results) {
                    let sides = [*one, *other];
                    if sides.iter().any(|a| is_among(&self.varying, *a)) || bind.ty.is_array() {
                        sides.iter().for_each(|a| self.need(*a));
                        self.varying.insert(*bind);
                    } else {
                        self.note(*bind, &sides, false);
                    }
                }
            }
            Op::For(l) if !in_branch && self.is_length(l.count) => {
                self.nest(l)?;
                self.varying.extend(stmt.binds.iter().copied());
            }
            op => {
                let mut operands = Vec::new();
                op.for_each_operand(&mut |a| operands.push(a));
                if is_computed(op) && !operands.iter().any(|a| is_among(&self.varying, *a)) {
                    stmt.binds.iter().for_each(|v| self.note(*v, &operands, is_dear(op)));
                } else if can_fail(stmt) {
                    return None;
                } else {
                    stmt.for_each_use(&mut |v| self.need(v.into()));
                    op.blocks().for_each(|inner| for_each_binder(inner, &mut |v| self.varying.extend([v])));
                    self.varying.extend(stmt.binds.iter().copied().chain(op.params()));
                }
            }
        }
        Some(())
    }

    fn note(&mut self, var: Var, made_of: &[Atom], dear: bool) {
        let parts = || made_of.iter().filter_map(|a| self.numbers.get(&a.var()?));
        let is_dear = dear || parts().any(|number| number.is_dear);
        self.numbers.insert(var, Number { depth: self.depth, is_dear });
    }

    fn need(&mut self, atom: Atom) {
        self.needed.extend(atom.var().filter(|v| self.numbers.contains_key(v)));
    }

    /// Whether a count is the same for all rows.
    fn is_length(&self, count: Atom) -> bool {
        let own = |v: Var| self.numbers.contains_key(&v) || self.indices.contains(&v);
        !is_among(&self.varying, count) && !count.var().is_some_and(own)
    }
}
