//! Arrays that only one variable holds, whatever happens. To change such an array, code need not look whether somebody else holds it; above all loops that
//! change an array in each iteration need not. Where it takes no more than that, a loop makes sure of it before its first iteration.

use crate::flow::*;
use crate::ownership::Ownership;
use gradus_core::traverse::with_stack;
use rustc_hash::{FxHashMap, FxHashSet};

/// What is known of the arrays of a module.
#[derive(Default)]
pub struct Sole {
    arrays: FxHashSet<Var>,
    /// For the rows of arrays, the array: who holds a row holds all of it.
    rows: FxHashMap<Var, Var>,
    /// What became sole, or no longer is, since the beginning.
    log: Vec<Learnt>,
}

enum Learnt {
    Sole(Var),
    Shared(Var),
}

/// Assumptions about the state of a loop are given up one by one, and then all together.
const TRIES: usize = 3;

impl Sole {
    pub fn of(module: &Module) -> Sole {
        let mut sole = Sole::default();
        for function in module.functions.iter().filter(|function| changes_arrays(&function.body)) {
            sole.block(&function.body, &[]);
        }
        sole
    }

    /// Whether nobody else holds an array when the last use of the variable hands it on. The state of a loop is meant to be so in each iteration if it is
    /// so in the first, for which the loop has to see to it.
    pub fn contains(&self, array: Var) -> bool {
        self.arrays.contains(&array)
    }

    /// Goes through a block in the order in which it runs, as the backends do; whether its results are sole.
    fn block(&mut self, block: &Block, params: &[Var]) -> Vec<bool> {
        with_stack(|| {
            let (mut ownership, _) = Ownership::new(block, params);
            for (at, stmt) in block.stmts.iter().enumerate() {
                ownership.start(at, stmt);
                self.stmt(stmt, &mut ownership);
                ownership.end();
            }
            // What is given twice has two holders.
            let mut results = FxHashSet::default();
            for twice in block.results.iter().filter_map(|a| a.var()).filter(|v| !results.insert(*v)) {
                self.share(twice);
            }
            let mut give = |result: &Atom| match result.var() {
                Some(var) if ownership.gives(var) => self.arrays.contains(&var),
                Some(var) => self.share(var),
                None => false,
            };
            block.results.iter().map(&mut give).collect()
        })
    }

    /// Others may hold this array from now on.
    fn share(&mut self, var: Var) -> bool {
        let mut whole = Some(var);
        while let Some(var) = whole {
            if self.arrays.remove(&var) {
                self.log.push(Learnt::Shared(var));
            }
            whole = self.rows.get(&var).copied();
        }
        false
    }

    fn insert(&mut self, var: Var) {
        // A sum may also be a number or a box.
        if var.ty.is_array() && self.arrays.insert(var) {
            self.log.push(Learnt::Sole(var));
        }
    }

    /// Forgets all that was learnt since the log had this length.
    fn forget(&mut self, since: usize) {
        for learnt in self.log.drain(since..).rev() {
            match learnt {
                Learnt::Sole(var) => self.arrays.remove(&var),
                Learnt::Shared(var) => self.arrays.insert(var),
            };
        }
    }

    /// An operand that the operation takes over; whether it is sole.
    fn take(&mut self, atom: Atom, ownership: &mut Ownership) -> bool {
        let Some(var) = atom.var().filter(|v| v.ty.is_counted()) else { return false };
        if ownership.hands_on(var) {
            return self.arrays.contains(&var);
        }
        self.share(var)
    }

    fn stmt(&mut self, stmt: &Stmt, ownership: &mut Ownership) {
        match &stmt.op {
            Op::Scalar { .. }
            | Op::Dim { .. }
            | Op::Tag { .. }
            | Op::Unpack { .. }
            | Op::Hole { .. }
            | Op::Pop { .. }
            | Op::Check { .. }
            | Op::Add { .. }
            | Op::Product(_) => {}
            Op::Get { array, .. } => {
                for row in stmt.binds.iter().filter(|row| row.ty.is_array()) {
                    self.rows.insert(*row, *array);
                    if ownership.holds(*row) {
                        self.share(*array);
                    }
                }
            }
            Op::Set { array, .. } | Op::Extend { array, .. } => {
                self.take((*array).into(), ownership);
                stmt.binds.iter().for_each(|v| self.insert(*v));
            }
            Op::Open { init } => {
                self.take(*init, ownership);
            }
            Op::Freeze { .. } | Op::Fill { .. } | Op::Literal { .. } | Op::Digits { .. } => {
                stmt.binds.iter().for_each(|v| self.insert(*v));
            }
            Op::Plug { value, .. } => {
                self.take(*value, ownership);
            }
            Op::Cell { fields: values, .. } | Op::Push { values } => values.iter().for_each(|value| {
                self.take(*value, ownership);
            }),
            Op::Copy { .. } | Op::Stop { .. } | Op::Select { .. } | Op::Call { .. } => {
                stmt.op.for_each_operand(&mut |a| {
                    a.var().map(|v| self.share(v));
                });
            }
            Op::If { then, otherwise, .. } => {
                let handed = ownership.hands_to_sides();
                let sides = self.block(then, &handed).into_iter().zip(self.block(otherwise, &handed));
                let binds = stmt.binds.iter().zip(sides).filter(|(_, (first, second))| *first && *second);
                binds.for_each(|(bind, _)| self.insert(*bind));
            }
            Op::For(l) => self.repeated(&stmt.binds, &l.carried, &l.body, 0, ownership),
            Op::While(l) => self.repeated(&stmt.binds, &l.carried, &l.body, 1, ownership),
        }
    }

    /// A loop; `skip`: how many of the body's results come before the state.
    fn repeated(
        &mut self,
        binds: &[Var],
        carried: &[(Var, Atom)],
        body: &Block,
        skip: usize,
        ownership: &mut Ownership,
    ) {
        let states: Vec<Var> = carried.iter().map(|(state, _)| *state).collect();
        let first: Vec<bool> = carried.iter().map(|(_, init)| self.take(*init, ownership)).collect();
        // State that is sole in each iteration, if it is so in the one before.
        let mut assumed: Vec<bool> = (0..carried.len())
            .map(|at| first[at] || states[at].ty.is_array() && always_changes(body, body.results[at + skip]))
            .collect();
        let start = self.log.len();
        for left in (0..TRIES).rev() {
            states.iter().zip(&assumed).filter(|(_, assumed)| **assumed).for_each(|(state, _)| self.insert(*state));
            let last = self.block(body, &states);
            let holds: Vec<bool> = assumed.iter().zip(&last[skip..]).map(|(assumed, last)| *assumed && *last).collect();
            if holds == assumed {
                break;
            }
            assumed = if left > 1 { holds } else { vec![false; assumed.len()] };
            self.forget(start);
        }
        // What is collected is a new array.
        let results = binds.iter().enumerate().filter(|(at, _)| assumed.get(*at) != Some(&false));
        results.for_each(|(_, result)| self.insert(*result));
    }
}

/// Whether a block changes arrays, at any depth.
fn changes_arrays(block: &Block) -> bool {
    with_stack(|| {
        block.stmts.iter().any(|stmt| match &stmt.op {
            Op::Set { .. } => true,
            Op::Open { init } => init.ty().is_array(),
            op => op.blocks().any(changes_arrays),
        })
    })
}

/// Whether a block changes the array that it gives, whichever branch it takes.
fn always_changes(block: &Block, result: Atom) -> bool {
    with_stack(|| {
        let Some(made) = result.var().and_then(|v| block.stmts.iter().find(|s| s.binds.contains(&v))) else {
            return false;
        };
        let Some(at) = made.binds.iter().position(|v| result == (*v).into()) else { return false };
        match &made.op {
            Op::Set { .. } | Op::Freeze { .. } => true,
            Op::If { then, otherwise, .. } => {
                always_changes(then, then.results[at]) && always_changes(otherwise, otherwise.results[at])
            }
            Op::For(l) => at < l.carried.len() && always_changes(&l.body, l.body.results[at]),
            _ => false,
        }
    })
}
