//! Takes out what nobody looks at: statements, loop results, state, accumulators. Checks stay, and so does what they need.
//!
//! What is needed is found from the ends, each statement once: the results and whatever has an effect, what these are made from, and so on.
//! Then the rest goes.

use crate::flow::*;
use gradus_core::traverse::with_stack;
use rustc_hash::{FxHashMap, FxHashSet};

pub fn run(block: &mut Block, module: &Module) {
    let mut needs = Needs::of(module);
    needs.note(block, None, true);
    let mut wanted = Wanted { kept: vec![false; needs.stmts.len()], live: FxHashSet::default(), left: Vec::new() };
    needs.find(block, &mut wanted);
    wanted.sweep(block, &mut 0);
}

/// A statement, by its number: they are numbered as they are written, those inside a statement after it.
type Number = usize;

/// What a statement needs if it is kept, and what a variable needs if somebody looks at it.
struct Needs<'a> {
    module: &'a Module,
    stmts: Vec<Noted<'a>>,
    /// Where each variable comes from; one that is not here comes from outside.
    bound: FxHashMap<Var, Origin>,
    /// The statements that add to an accumulator, calls included.
    adding: FxHashMap<Var, Vec<Number>>,
    /// The checks directly inside a statement, or in none.
    checks: FxHashMap<Option<Number>, Vec<Number>>,
}

struct Noted<'a> {
    stmt: &'a Stmt,
    /// The statement that it is in.
    around: Option<Number>,
    /// Whether failing counts; in a loop that is run again it does not, since the other run makes the same checks.
    checks: bool,
}

/// The statement that binds a variable, and which of the values is meant: of what it gives, or, inside a loop, of its state.
#[derive(Clone, Copy)]
struct Origin {
    stmt: Number,
    place: usize,
}

/// What was found to be needed.
struct Wanted {
    kept: Vec<bool>,
    live: FxHashSet<Var>,
    /// Live variables of which it was not yet asked what they need.
    left: Vec<Var>,
}

impl<'a> Needs<'a> {
    fn of(module: &'a Module) -> Needs<'a> {
        let (bound, adding, checks) = Default::default();
        Needs { module, stmts: Vec::new(), bound, adding, checks }
    }

    fn note(&mut self, block: &'a Block, around: Option<Number>, checks: bool) {
        with_stack(|| {
            for stmt in &block.stmts {
                let number = self.stmts.len();
                let replayed = match &stmt.op {
                    Op::For(l) => l.replayed,
                    Op::If { replayed, .. } => *replayed,
                    _ => false,
                };
                let checks = checks && !replayed;
                self.stmts.push(Noted { stmt, around, checks });
                let state = carried(&stmt.op).iter().map(|(v, _)| *v).enumerate();
                for (place, var) in stmt.binds.iter().copied().enumerate().chain(state) {
                    self.bound.insert(var, Origin { stmt: number, place });
                }
                match &stmt.op {
                    Op::Check { .. } => self.checks.entry(around).or_default().push(number),
                    Op::Add { acc, .. } => self.adding.entry(*acc).or_default().push(number),
                    Op::Product(product) => self.adding.entry(product.acc).or_default().push(number),
                    Op::Call { args, .. } => {
                        for acc in args.iter().filter_map(|a| a.var()).filter(|v| v.ty.accumulator) {
                            self.adding.entry(acc).or_default().push(number);
                        }
                    }
                    op => op.blocks().for_each(|inner| self.note(inner, Some(number), checks)),
                }
            }
        })
    }

    fn find(&self, block: &Block, wanted: &mut Wanted) {
        let mut failing = FxHashMap::default();
        for number in 0..self.stmts.len() {
            if self.has_effect(number, &mut failing) {
                self.keep(number, wanted);
            }
        }
        self.keep_checks(None, wanted);
        block.results.iter().for_each(|a| wanted.look_at(*a));
        while let Some(var) = wanted.left.pop() {
            self.follow(var, wanted);
        }
    }

    /// What a live variable needs.
    fn follow(&self, var: Var, wanted: &mut Wanted) {
        for adding in self.adding.get(&var).into_iter().flatten() {
            self.keep(*adding, wanted);
        }
        let Some(origin) = self.bound.get(&var) else { return };
        self.keep(origin.stmt, wanted);
        let op = &self.stmts[origin.stmt].stmt.op;
        let skip = usize::from(matches!(op, Op::While(_)));
        for inner in op.blocks() {
            wanted.look_at(inner.results[origin.place + skip]);
        }
        if let Some((_, init)) = carried(op).get(origin.place) {
            wanted.look_at(*init);
        }
    }

    /// Keeps a statement, and with it what it is in.
    fn keep(&self, mut number: Number, wanted: &mut Wanted) {
        while !std::mem::replace(&mut wanted.kept[number], true) {
            let Noted { stmt, around, .. } = self.stmts[number];
            match &stmt.op {
                Op::For(l) => wanted.look_at(l.count),
                Op::While(l) => wanted.look_at(l.body.results[0]),
                op => op.for_each_operand(&mut |a| wanted.look_at(a)),
            }
            self.keep_checks(Some(number), wanted);
            let Some(around) = around else { return };
            number = around;
        }
    }

    /// A check protects the reads after it, so it stays wherever its block stays.
    fn keep_checks(&self, around: Option<Number>, wanted: &mut Wanted) {
        for check in self.checks.get(&around).into_iter().flatten() {
            wanted.kept[*check] = true;
            self.stmts[*check].stmt.op.for_each_operand(&mut |a| wanted.look_at(a));
        }
    }

    /// Whether running a statement matters beyond its results, whatever these are wanted for.
    fn has_effect(&self, number: Number, failing: &mut FxHashMap<FunctionId, bool>) -> bool {
        let Noted { stmt, checks, .. } = self.stmts[number];
        // Accumulators that come from outside are always wanted.
        let foreign = |acc: &Var| !self.bound.contains_key(acc);
        match &stmt.op {
            Op::Check { .. } => checks,
            Op::Plug { .. } | Op::Push { .. } | Op::Pop { .. } => true,
            Op::Add { acc, .. } => foreign(acc),
            Op::Product(product) => foreign(&product.acc),
            // A call may be kept for its results, and then needs what it adds to from open to freeze.
            Op::Freeze { acc } => {
                let is_call = |n: &Number| matches!(self.stmts[*n].stmt.op, Op::Call { .. });
                self.adding.get(acc).is_some_and(|adding| adding.iter().any(is_call))
            }
            Op::Call { function, args } => {
                let adds = args.iter().filter_map(|a| a.var()).any(|v| v.ty.accumulator && foreign(&v));
                adds || (checks && *failing.entry(*function).or_insert_with(|| can_fail(self.module, *function)))
            }
            Op::If { .. } | Op::For(_) | Op::While(_) => false,
            Op::Scalar { .. }
            | Op::Copy { .. }
            | Op::Stop { .. }
            | Op::Select { .. }
            | Op::Dim { .. }
            | Op::Get { .. }
            | Op::Set { .. }
            | Op::Extend { .. }
            | Op::Fill { .. }
            | Op::Literal { .. }
            | Op::Cell { .. }
            | Op::Tag { .. }
            | Op::Hole { .. }
            | Op::Unpack { .. }
            | Op::Digits { .. }
            | Op::Open { .. } => false,
        }
    }
}

impl Wanted {
    fn look_at(&mut self, atom: Atom) {
        if let Atom::Var(var) = atom {
            if self.live.insert(var) {
                self.left.push(var);
            }
        }
    }

    /// Takes out what is not kept. `next`: the number of the first statement of the block.
    fn sweep(&self, block: &mut Block, next: &mut Number) {
        with_stack(|| {
            block.stmts.retain_mut(|stmt| {
                let kept = self.kept[*next];
                *next += 1;
                match kept {
                    true => self.trim(stmt, next),
                    false => *next += statements_inside(stmt),
                }
                kept
            });
        })
    }

    /// Takes out of a statement the results that nobody looks at, and state that none of the others depends on.
    fn trim(&self, stmt: &mut Stmt, next: &mut Number) {
        if !stmt.op.has_blocks() {
            return;
        }
        let mut keep: Vec<bool> = stmt.binds.iter().map(|v| self.live.contains(v)).collect();
        for (keep, (var, _)) in keep.iter_mut().zip(carried(&stmt.op)) {
            *keep |= self.live.contains(var);
        }
        if keep.contains(&false) {
            retain(&mut stmt.binds, 0, &keep);
            match &mut stmt.op {
                Op::For(l) => {
                    retain(&mut l.carried, 0, &keep);
                    retain(&mut l.body.results, 0, &keep);
                }
                Op::While(l) => {
                    retain(&mut l.carried, 0, &keep);
                    retain(&mut l.body.results, 1, &keep);
                }
                op => op.blocks_mut().for_each(|side| retain(&mut side.results, 0, &keep)),
            }
        }
        stmt.op.blocks_mut().for_each(|inner| self.sweep(inner, next));
    }
}

fn carried(op: &Op) -> &[(Var, Atom)] {
    match op {
        Op::For(l) => &l.carried,
        Op::While(l) => &l.carried,
        _ => &[],
    }
}

fn statements_inside(stmt: &Stmt) -> usize {
    let mut count = 0;
    stmt.op.blocks().for_each(|inner| walk::for_each_stmt(inner, &mut |_| count += 1));
    count
}

fn can_fail(module: &Module, function: FunctionId) -> bool {
    fn block_can_fail(module: &Module, block: &Block, seen: &mut FxHashSet<FunctionId>) -> bool {
        block.stmts.iter().any(|stmt| match &stmt.op {
            Op::Check { .. } => true,
            Op::Call { function, .. } => {
                seen.insert(*function) && with_stack(|| block_can_fail(module, &module.function(*function).body, seen))
            }
            op => op.blocks().any(|b| with_stack(|| block_can_fail(module, b, seen))),
        })
    }
    block_can_fail(module, &module.function(function).body, &mut [function].into_iter().collect())
}

/// Keeps what is said, after so many that stay.
fn retain<T>(items: &mut Vec<T>, first: usize, keep: &[bool]) {
    let mut flags = std::iter::repeat_n(true, first).chain(keep.iter().copied()).chain(std::iter::repeat(true));
    items.retain(|_| flags.next().unwrap_or(true));
}
