//! Numbers that a loop with state computes in each of its steps, or in loops that it runs there, as those over the units of a network: what the way back needs of
//! them and would take long to compute again is kept, in an array with an axis for the steps and one for each of these loops.

use super::control::outer_accumulators;
use super::kept::{Kept, LEAST, MOST};
use super::*;
use crate::flow::scalar::is_cheap;
use crate::partials::is_from_value;
use gradus_core::traverse::with_stack;

/// What takes this many statements to compute again is kept; an elementary function counts as many.
const DEAR: usize = 32;
/// If it is not known how many numbers there are of a step, they are kept of a few steps; if it is not known how many steps there are, a few are kept of each. More
/// than that only if the loop keeps as many of its state anyway.
const FEW_STEPS: i64 = 64;
const FEW_OF_A_STEP: i64 = 16;

/// In the step itself a number is written and read once, side by side with others: so many statements are enough, while what is kept stays in the caches.
const DEAR_IN_STEP: usize = 8;
const IN_CACHES: i64 = 1 << 16;
/// The same if there may be as many of these loops side by side as a strip has lanes.
const IN_CACHES_OF_STRIPS: i64 = 1 << 11;
/// Fewer steps than this are not worth the arrays.
const WORTH_ARRAYS: i64 = 16;

/// A number that is kept: the loop directly inside the one with state makes an array of it.
pub(super) struct Dear {
    number: Var,
    /// What people are told that it is: the function that gives it, if there is one.
    name: Name,
    array: Var,
    /// Where it is there: the indices of the loops around it, and how often these run.
    index: Vec<Atom>,
    counts: Vec<Atom>,
}

/// How much a loop with state keeps anyway.
struct Room {
    steps: Atom,
    /// For each array of the state how often the loops run that make it, the outermost first.
    states: Vec<Vec<Atom>>,
}

impl Room {
    /// Whether there is room for a number from loops that run so often.
    fn is_enough(&self, counts: &[Atom]) -> bool {
        let number = |count: &Atom| match count {
            Atom::Int(count) => Some(*count),
            _ => None,
        };
        let of_a_step = counts.iter().try_fold(1i64, |all, count| all.checked_mul(number(count)?));
        let is_little = match (number(&self.steps), of_a_step) {
            (Some(steps), Some(all)) => all.saturating_mul(steps) <= MOST,
            (Some(steps), None) => steps <= FEW_STEPS,
            (None, Some(all)) => all <= FEW_OF_A_STEP,
            (None, None) => false,
        };
        counts.len() < Type::MAX_RANK as usize
            && (is_little || self.states.iter().any(|state| state.starts_with(counts)))
    }
}

/// See [`Room::states`].
fn state_counts(l: &For) -> Vec<Vec<Atom>> {
    fn counts(block: &Block, array: Atom) -> Vec<Atom> {
        let made = block.stmts.iter().find(|stmt| array.var().is_some_and(|v| stmt.binds.contains(&v)));
        match made.map(|stmt| (&stmt.op, &stmt.binds)) {
            Some((Op::For(l), binds)) if l.carried.is_empty() => {
                let at = binds.iter().position(|v| Atom::Var(*v) == array).unwrap_or(0);
                [vec![l.count], with_stack(|| counts(&l.body, l.body.results[at]))].concat()
            }
            Some((Op::Literal { items, .. }, _)) => vec![Atom::Int(items.len() as i64)],
            _ => Vec::new(),
        }
    }
    l.body.results[..l.carried.len()].iter().map(|next| counts(&l.body, *next)).collect()
}

impl Sweep<'_> {
    /// Makes the loops inside a loop with state collect such numbers.
    pub(super) fn collect_dear(&mut self, stmt: &mut Stmt) -> Vec<Dear> {
        let is_wanted = self.may_have_adjoint(stmt) && !self.is_kept_in_trace(&stmt.op) && !self.is_search(&stmt.op);
        match &mut stmt.op {
            Op::For(l) if is_wanted && !l.carried.is_empty() => {
                let room = Room { steps: l.count, states: state_counts(l) };
                let found = self.collect_from(&mut l.body, &FxHashSet::default(), &[], &room);
                if !found.is_empty() {
                    let mut inside = FxHashSet::from_iter([l.index]);
                    walk::for_each_binder(&l.body, &mut |v| {
                        inside.insert(v);
                    });
                    let is_steady = |count: &Atom| count.var().is_none_or(|v| !inside.contains(&v));
                    let steady = found.iter().filter(|dear| dear.counts.iter().all(is_steady));
                    self.steady.extend(steady.map(|dear| dear.array));
                }
                found
            }
            _ => Vec::new(),
        }
    }

    /// The same for the loops of a block. `inside`: what the block and the loops around it bind, but for the outermost, since all rows are to have one length;
    /// `around`: how often these loops run.
    fn collect_from(&self, block: &mut Block, inside: &FxHashSet<Var>, around: &[Atom], room: &Room) -> Vec<Dear> {
        let mut all = Vec::new();
        for stmt in &mut block.stmts {
            let wanted = self.may_have_adjoint(stmt);
            let Stmt { op: Op::For(l), binds, .. } = stmt else { continue };
            let is_steady = l.count.var().is_none_or(|v| !inside.contains(&v));
            // What collects nothing may take a negative number of steps.
            let is_length = !binds.is_empty() || self.is_length(l.count);
            let counts = [around, &[l.count]].concat();
            if !wanted || !is_steady || !is_length || !l.carried.is_empty() || !room.is_enough(&counts) {
                continue;
            }
            let mut inside = inside.clone();
            inside.insert(l.index);
            walk::for_each_binder(&l.body, &mut |v| {
                inside.insert(v);
            });
            let mut found = with_stack(|| self.collect_from(&mut l.body, &inside, &counts, room));
            let own = |(number, name)| Dear { number, name, array: number, index: Vec::new(), counts: Vec::new() };
            found.extend(self.dear_numbers(&l.body, DEAR).into_iter().map(own));
            for dear in &mut found {
                l.body.results.push(dear.array.into());
                dear.array = Var::fresh(dear.name, dear.array.ty.in_array());
                binds.push(dear.array);
                dear.index.insert(0, l.index.into());
                dear.counts.push(l.count);
            }
            all.append(&mut found);
        }
        all
    }

    /// Makes the loop with state keep their arrays; `binds` gets the arrays of these.
    pub(super) fn keep_dear(&mut self, l: &mut For, found: Vec<Dear>, binds: &mut Vec<Var>) {
        for Dear { number, array, index, .. } in found {
            self.keep_array(array, l, binds);
            self.kept.insert(number, Kept { cond: Atom::Bool(true), all: array.into(), index });
        }
    }

    /// Makes a loop with state keep such numbers of its steps, and the sums that these add up; `binds` gets the arrays.
    pub(super) fn keep_of_steps(&mut self, l: &mut For, binds: &mut Vec<Var>) {
        // In a trace there would be arrays for each time that the loop is run.
        if self.tracing || matches!(l.count, Atom::Int(steps) if steps < WORTH_ARRAYS) {
            return;
        }
        let numbers = |count: usize| match l.count {
            Atom::Int(steps) => Some(steps.saturating_mul(count as i64)),
            _ => None,
        };
        // A function that is called adds to a stand-in, which is made from the sum.
        let sums = if self.has_calls { Vec::new() } else { self.sums_of_step(&l.body) };
        let (near, most) = match self.loops_around {
            0 => (IN_CACHES, MOST),
            _ => (IN_CACHES_OF_STRIPS, IN_CACHES_OF_STRIPS),
        };
        let mut found = self.dear_numbers(&l.body, DEAR_IN_STEP);
        if numbers(sums.len() + found.len()).is_none_or(|all| all > near) {
            found = self.dear_numbers(&l.body, DEAR);
        }
        found.extend(sums);
        let is_little = match numbers(found.len()) {
            Some(all) => all <= most,
            None => self.loops_around == 0 && found.len() as i64 <= FEW_OF_A_STEP,
        };
        for (y, name) in found.into_iter().filter(|_| is_little) {
            self.keep_number(y, name, l.index, binds);
            l.body.results.push(y.into());
        }
    }

    /// The sums that loops directly inside a step add up, as far as the way back needs them.
    fn sums_of_step(&self, block: &Block) -> Vec<(Var, Name)> {
        let needed = self.values_needed(block);
        let is_long = |acc: Var| {
            let adds = |stmt: &&Stmt| outer_accumulators(&stmt.op).contains(&acc);
            block.stmts.iter().filter(adds).any(|stmt| match &stmt.op {
                Op::For(l) => !matches!(l.count, Atom::Int(..LEAST)),
                _ => false,
            })
        };
        let sum = |stmt: &Stmt| match (&stmt.op, &stmt.binds[..]) {
            (Op::Freeze { acc }, [y]) if y.ty == Type::REAL && needed.contains(y) => {
                is_long(*acc).then_some((*y, y.name))
            }
            _ => None,
        };
        block.stmts.iter().filter(|stmt| !self.is_kept(stmt)).filter_map(sum).collect()
    }

    /// The numbers of a block that are to be kept, given that those before them are: what takes at least so many statements to compute again.
    fn dear_numbers(&self, block: &Block, least: usize) -> Vec<(Var, Name)> {
        let needed = self.values_needed(block);
        let mut cost: FxHashMap<Var, usize> = FxHashMap::default();
        let mut dear = Vec::new();
        for stmt in &block.stmts {
            let (Op::Scalar { .. } | Op::Select { .. } | Op::If { .. } | Op::Get { .. }, [y]) =
                (&stmt.op, &stmt.binds[..])
            else {
                continue;
            };
            let mut total = match &stmt.op {
                _ if self.is_kept(stmt) => 0,
                Op::Scalar { prim, .. } if !is_cheap(*prim) => least,
                _ => 1,
            };
            if total > 0 {
                let mut add = |v: Var| total += cost.get(&v).copied().unwrap_or(0);
                stmt.op.for_each_operand(&mut |a| a.var().into_iter().for_each(&mut add));
                stmt.op.blocks().flat_map(free_vars).for_each(&mut add);
            }
            if total >= least && y.ty == Type::REAL && needed.contains(y) {
                let name = match &stmt.op {
                    Op::Scalar { prim, .. } if !is_cheap(*prim) => Name::new(prim.info().name),
                    _ => y.name,
                };
                dear.push((*y, name));
                total = 1;
            }
            cost.insert(*y, total.min(least));
        }
        dear
    }

    /// The reals of a block that the way back through it uses: what active arithmetic that is not linear takes, or gives if its slope comes from that, and what
    /// decides where it goes.
    fn values_needed(&self, block: &Block) -> FxHashSet<Var> {
        let mut needed: FxHashSet<Var> = FxHashSet::default();
        for stmt in block.stmts.iter().rev() {
            let is_active = |a: &Atom| self.is_active(*a);
            match &stmt.op {
                Op::Scalar { prim: Prim::AddReal | Prim::SubReal | Prim::NegReal, .. } => {}
                Op::Scalar { prim: Prim::MulReal, args } => {
                    let others = [(args[0], args[1]), (args[1], args[0])];
                    needed.extend(others.iter().filter(|(_, other)| is_active(other)).filter_map(|(a, _)| a.var()));
                }
                Op::Scalar { prim, args } if is_from_value(*prim) && args.iter().any(is_active) => {
                    needed.extend(&stmt.binds);
                }
                Op::Scalar { prim: Prim::DivReal, args } if args.iter().any(is_active) => {
                    needed.extend(args[1].var());
                    needed.extend(stmt.binds.iter().filter(|_| is_active(&args[1])));
                }
                // What comes of it is not a number.
                Op::Scalar { args, .. } if stmt.binds.iter().any(|v| v.ty != Type::REAL && needed.contains(v)) => {
                    needed.extend(args.iter().filter_map(|a| a.var()));
                }
                Op::Scalar { args, .. }
                    if args.iter().any(is_active) && stmt.binds.iter().all(|v| v.ty == Type::REAL) =>
                {
                    needed.extend(args.iter().filter_map(|a| a.var()).chain(stmt.binds.iter().copied()));
                }
                Op::Select { cond, .. } | Op::If { cond, .. } => needed.extend(cond.var()),
                _ => {}
            }
            stmt.op.blocks().for_each(|inner| needed.extend(free_vars(inner)));
        }
        needed
    }
}
