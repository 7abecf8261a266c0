//! What a loop has computed at some cost is kept for the way back, where to read it is cheaper than to compute it again.
//!
//! - Elementary functions whose values the loop collects are in an array already. A loop inside others that only adds them up, as in a mixture, collects
//!   them too: there they are few, and soon read. So does a loop with state.
//! - Sums that it adds up in loops inside, such as the products of a row and a vector, are kept if their values matter on the way back. Where the loops
//!   around the sum collect something, they collect it too. Elsewhere the forward sweep writes them into an array with an axis for each of these loops;
//!   whether it does is decided when the program runs, by what the array would take and how long the sums are, and where it does not, the way back adds
//!   up again.
//! - Arrays of sums, as products of matrices are, are kept by a loop with state that makes them, if their elements matter on the way back.

use super::control::outer_accumulators;
use super::undo::Saved;
use super::*;
use crate::flow::scalar::is_cheap;
use crate::partials::is_from_value;
use gradus_core::traverse::with_stack;

/// More numbers than this are not kept, and sums of fewer terms than that are not worth it.
pub(super) const MOST: i64 = 1 << 24;
pub(super) const LEAST: i64 = 8;

/// Where a number is found on the way back.
#[derive(Clone)]
pub(super) struct Kept {
    /// Whether it is there; always, if the program itself collects it.
    pub(super) cond: Atom,
    pub(super) all: Atom,
    pub(super) index: Vec<Atom>,
}

/// A sum inside a loop.
struct Sum {
    /// What the accumulator is frozen to.
    value: Var,
    /// How many terms it has; if that is not known before the loop, how many it may have, as in sums up to the index.
    terms: Atom,
    /// The loops around it, the outermost first: their indices and counts.
    loops: Vec<(Var, Atom)>,
}

/// An array that a loop fills with its sums.
pub(super) struct Keeping {
    value: Var,
    cond: Atom,
    acc: Var,
    index: Vec<Atom>,
}

impl Sweep<'_> {
    /// Notes the elementary functions whose values a loop collects in arrays, and those of loops inside that make rows of them. `arrays` are those of `l`,
    /// each with the place that the whole loop has in it.
    pub(super) fn note_collected(&mut self, l: &For, arrays: &[(Var, Vec<Atom>)]) {
        with_stack(|| {
            for (result, (all, place)) in l.body.results[l.carried.len()..].iter().zip(arrays) {
                let Some(made) = result.var().and_then(|y| l.body.stmts.iter().find(|s| s.binds.contains(&y))) else {
                    continue;
                };
                let index = [&place[..], &[l.index.into()]].concat();
                match (&made.op, &made.binds[..]) {
                    (Op::Scalar { prim, .. }, [y]) if !is_cheap(*prim) && !self.kept.contains_key(y) => {
                        self.kept.insert(*y, Kept { cond: Atom::Bool(true), all: (*all).into(), index });
                    }
                    (Op::For(inner), [_]) if inner.carried.is_empty() => self.note_collected(inner, &[(*all, index)]),
                    _ => {}
                }
            }
        })
    }

    /// Makes a loop inside others that only adds up collect the elementary functions of which it adds up something.
    pub(super) fn collect_terms(&mut self, l: &mut For, binds: &mut Vec<Var>) {
        if self.loops_around == 0 || !binds.is_empty() {
            return;
        }
        for stmt in &l.body.stmts {
            if let (Op::Scalar { prim, args }, [y]) = (&stmt.op, &stmt.binds[..]) {
                let is_wanted = !is_cheap(*prim) && args.iter().any(|a| self.is_active(*a)) && is_from_value(*prim);
                if is_wanted && !self.kept.contains_key(y) {
                    l.count = self.as_length(l.count);
                    binds.push(Var::fresh(y.name.with("_saved"), y.ty.in_array()));
                    l.body.results.push((*y).into());
                }
            }
        }
    }

    /// Makes a loop with state collect the elementary functions whose values the way back needs; `binds` gets the arrays.
    pub(super) fn keep_functions(&mut self, l: &mut For, binds: &mut Vec<Var>) {
        let functions = self.functions_to_keep(&l.body, &l.body.results[l.carried.len()..]);
        for (y, name) in functions {
            self.keep_number(y, name, l.index, binds);
            l.body.results.push(y.into());
        }
    }

    /// The same for a loop that ends by a condition, of which `repeated` is run again: the functions, and the sums that loops inside add up, which need no array of
    /// their own here.
    pub(super) fn keep_of_while(&mut self, l: &mut While, repeated: &Block, index: Var, binds: &mut Vec<Var>) {
        let mut numbers = self.functions_to_keep(repeated, &l.body.results[1 + l.carried.len()..]);
        let matter = self.values_that_matter(repeated);
        let is_long = |acc: Var| match adding_up(&repeated.stmts, acc) {
            Some((_, Op::For(added))) => !matches!(added.count, Atom::Int(k) if k < LEAST),
            _ => false,
        };
        for stmt in &repeated.stmts {
            if let (Op::Freeze { acc }, [y]) = (&stmt.op, &stmt.binds[..]) {
                if matter.contains(y) && !self.is_kept(stmt) && is_long(*acc) {
                    numbers.push((*y, y.name));
                }
            }
        }
        for (y, name) in numbers {
            if let Some(given) = crate::exits::give(&mut l.body, y) {
                self.keep_number(y, name, index, binds);
                l.body.results.push(given.into());
            }
        }
    }

    /// Notes that a loop collects a number.
    pub(super) fn keep_number(&mut self, y: Var, name: Name, index: Var, binds: &mut Vec<Var>) {
        let all = Var::fresh(name.with("_saved"), y.ty.in_array());
        binds.push(all);
        self.kept.insert(y, Kept { cond: Atom::Bool(true), all: all.into(), index: vec![index.into()] });
    }

    /// The elementary functions of a block whose values the way back needs, apart from those that are collected anyway, and what people are told that they are.
    fn functions_to_keep(&self, body: &Block, collected: &[Atom]) -> Vec<(Var, Name)> {
        let mut matter = self.values_that_matter(body);
        for stmt in &body.stmts {
            if let Op::Scalar { prim: Prim::MulReal, args } = &stmt.op {
                if args.iter().any(|a| self.is_active(*a)) {
                    matter.extend(args.iter().filter_map(|a| a.var()));
                }
            }
        }
        let is_collected = |y: Var| collected.contains(&y.into());
        let mut wanted: Vec<Var> = Vec::new();
        for stmt in &body.stmts {
            let (Op::Scalar { prim, args }, [y]) = (&stmt.op, &stmt.binds[..]) else { continue };
            let is_slope = || is_from_value(*prim) && args.iter().any(|a| self.is_active(*a));
            if !is_cheap(*prim) && !self.is_kept(stmt) && !is_collected(*y) && (matter.contains(y) || is_slope()) {
                wanted.push(*y);
            }
        }
        let (own, mut constants): (Vec<Var>, Vec<Var>) = wanted.into_iter().partition(|y| self.is_active((*y).into()));
        let factors = self.made_from(&constants, body, &matter);
        if factors.len() <= constants.len() {
            constants = factors;
        }
        let name = |y: Var| match body.stmts.iter().find(|stmt| stmt.binds.contains(&y)).map(|stmt| &stmt.op) {
            Some(Op::Scalar { prim, .. }) if !is_cheap(*prim) => Name::new(prim.info().name),
            // Which nobody has given a name.
            _ if y.name == Name::new("t") => Name::new("constant"),
            _ => y.name,
        };
        own.into_iter().chain(constants).map(|y| (y, name(y))).collect()
    }

    /// Of numbers that are constants for the derivative, those that are made from some of them and with which something else is computed: with a random number,
    /// not with the functions that it took. What else there is would be made from the constants themselves.
    fn made_from(&self, constants: &[Var], body: &Block, matter: &FxHashSet<Var>) -> Vec<Var> {
        let mut made: Vec<Var> = constants.to_vec();
        let mut used = Vec::new();
        for stmt in &body.stmts {
            let mut operands = Vec::new();
            stmt.op.for_each_operand(&mut |a| operands.extend(a.var().filter(|v| made.contains(v))));
            stmt.op
                .blocks()
                .for_each(|inner| operands.extend(free_vars(inner).into_iter().filter(|v| made.contains(v))));
            let is_one_of_them =
                matches!((&stmt.op, &stmt.binds[..]), (Op::Scalar { .. }, [y]) if !self.is_active((*y).into()));
            match is_one_of_them {
                true if !operands.is_empty() => made.extend(&stmt.binds),
                true => {}
                false => used.extend(operands),
            }
        }
        used.retain(|v| matter.contains(v));
        used.sort_by_key(|v| v.id);
        used.dedup();
        used
    }

    /// Makes a loop with state keep the arrays of sums that it makes; `binds` gets the arrays of these.
    pub(super) fn keep_arrays(&mut self, l: &mut For, binds: &mut Vec<Var>) {
        let mut wanted = Vec::new();
        self.arrays_that_matter(&l.body, &mut FxHashSet::default(), &mut wanted);
        wanted.into_iter().for_each(|array| self.keep_array(array, l, binds));
    }

    pub(super) fn keep_array(&mut self, array: Var, l: &mut For, binds: &mut Vec<Var>) {
        let each = self.as_element(array, &mut l.body);
        l.body.results.push(each.into());
        let all = Var::fresh(array.name.with("_saved"), each.ty.in_array());
        binds.push(all);
        let index = vec![l.index.into()];
        self.kept.insert(array, Kept { cond: Atom::Bool(true), all: all.into(), index });
    }

    /// Adds the arrays whose elements the way back through a block needs to those that are known to matter. Those of sums that the block itself makes are
    /// to be kept; the others are made again, from arrays that matter then.
    fn arrays_that_matter(&self, block: &Block, matter: &mut FxHashSet<Var>, keep: &mut Vec<Var>) {
        let numbers = self.values_that_matter(block);
        for stmt in block.stmts.iter().rev() {
            for inner in stmt.op.blocks() {
                with_stack(|| self.arrays_that_matter(inner, matter, &mut Vec::new()));
            }
            let is_wanted = |v: &Var| matter.contains(v) || (numbers.contains(v) && matches!(stmt.op, Op::Get { .. }));
            if self.is_kept(stmt) || !stmt.binds.iter().any(is_wanted) {
                continue;
            }
            let (of_sums, others): (Vec<Var>, Vec<Var>) = match &stmt.op {
                Op::For(l) => {
                    let of_sums = arrays_of_sums(l, &stmt.binds);
                    let is_kept = |v: &&Var| of_sums.contains(v) && self.is_active((**v).into());
                    stmt.binds.iter().filter(|v| is_wanted(v)).partition(is_kept)
                }
                _ => (Vec::new(), stmt.binds.clone()),
            };
            keep.extend(&of_sums);
            if !others.is_empty() {
                stmt.op.for_each_operand(&mut |a| matter.extend(a.var().filter(|v| v.ty.is_array())));
                let inner = stmt.op.blocks().flat_map(free_vars);
                matter.extend(inner.filter(|v| v.ty.is_array()));
            }
        }
    }

    /// Makes a loop keep sums, and writes what comes before it. [`Sweep::has_kept`] is to be told after the loop. `whole` is the loop with what it adds to
    /// settled accumulators, as the way back will know it; `binds` gets what it collects in addition.
    pub(super) fn keep_sums(&mut self, l: &mut For, whole: &For, binds: &mut Vec<Var>) -> Vec<Keeping> {
        let mut inside: FxHashSet<Var> = [l.index].into_iter().collect();
        walk::for_each_binder(&l.body, &mut |v| {
            inside.insert(v);
        });
        let mut sums = Vec::new();
        self.find_sums(whole, &mut Vec::new(), &inside, &mut sums);
        let keep = |sum: Sum| {
            let index: Vec<Atom> = sum.loops.iter().map(|(index, _)| (*index).into()).collect();
            if let Some(all) = collect_too(l, sum.value, &sum.loops[1..]) {
                binds.push(all);
                self.kept.insert(sum.value, Kept { cond: Atom::Bool(true), all: all.into(), index });
                return None;
            }
            let cond = self.is_worth_keeping(&sum);
            let counts = sum.loops.iter().map(|(_, count)| *count);
            let dims: Vec<Atom> = counts.map(|count| self.size(cond, count)).collect();
            // To which a sum adds without losing the sign of its zero.
            let zeros = self.b.fill(dims, Atom::Real(-0.0));
            let acc = self.b.open(sum.value.name.with("_saved"), zeros);
            add_where_made(&mut l.body, sum.value, cond, acc, &index);
            Some(Keeping { value: sum.value, cond, acc, index })
        };
        sums.into_iter().filter_map(keep).collect()
    }

    pub(super) fn has_kept(&mut self, keeping: Vec<Keeping>) {
        for Keeping { value, cond, acc, index } in keeping {
            let all = self.b.freeze(acc);
            self.kept.insert(value, Kept { cond, all, index });
        }
    }

    fn is_worth_keeping(&mut self, sum: &Sum) -> Atom {
        let mut all = Atom::Real(1.0);
        for (_, count) in &sum.loops {
            let count = self.b.scalar(Prim::RealOfInt, &[*count]);
            all = self.b.scalar(Prim::MulReal, &[all, count]);
        }
        let few = self.b.scalar(Prim::LessEqual, &[all, Atom::Real(MOST as f64)]);
        let long = self.b.scalar(Prim::GreaterEqual, &[sum.terms, Atom::Int(LEAST)]);
        self.b.select(long, few, Atom::Bool(false))
    }

    /// A count as a length: nothing if the array is not filled, or if the loop does not run.
    fn size(&mut self, cond: Atom, count: Atom) -> Atom {
        let size = self.b.select(cond, count, Atom::Int(0));
        self.as_length(size)
    }

    /// A count as the length of what its loop collects: none, if it is negative.
    pub(super) fn as_length(&mut self, count: Atom) -> Atom {
        if self.is_length(count) {
            return count;
        }
        let negative = self.b.scalar(Prim::Less, &[count, Atom::Int(0)]);
        let length = self.b.select(negative, Atom::Int(0), count);
        self.lengths.extend(length.var());
        length
    }

    /// Whether a count is known not to be negative.
    pub(super) fn is_length(&self, count: Atom) -> bool {
        matches!(count, Atom::Int(0..)) || count.var().is_some_and(|v| self.lengths.contains(&v))
    }

    fn find_sums(&self, l: &For, around: &mut Vec<(Var, Atom)>, inside: &FxHashSet<Var>, found: &mut Vec<Sum>) {
        let is_outside = |atom: Atom| atom.var().is_none_or(|v| !inside.contains(&v));
        if !is_outside(l.count) || around.len() >= Type::MAX_RANK as usize {
            return;
        }
        around.push((l.index, l.count));
        let matters = self.values_that_matter(&l.body);
        with_stack(|| {
            for stmt in &l.body.stmts {
                match (&stmt.op, &stmt.binds[..]) {
                    _ if self.is_kept(stmt) => {}
                    (Op::For(inner), _) => self.find_sums(inner, around, inside, found),
                    (Op::Freeze { acc }, [y]) if matters.contains(y) && !self.kept.contains_key(y) => {
                        let Some((_, Op::For(added))) = adding_up(&l.body.stmts, *acc) else { continue };
                        let terms = if is_outside(added.count) { added.count } else { l.count };
                        if !matches!(terms, Atom::Int(k) if k < LEAST) {
                            found.push(Sum { value: *y, terms, loops: around.clone() });
                        }
                    }
                    _ => {}
                }
            }
        });
        around.pop();
    }

    /// The numbers of a block whose values the way back needs: what active arithmetic that is not linear takes, and what that is computed from.
    fn values_that_matter(&self, block: &Block) -> FxHashSet<Var> {
        let mut found: FxHashSet<Var> = FxHashSet::default();
        for stmt in block.stmts.iter().rev() {
            let is_read = self.is_kept(stmt);
            let matters = (!is_read && stmt.binds.iter().any(|v| found.contains(v))) || {
                match &stmt.op {
                    Op::Scalar { prim: Prim::AddReal | Prim::SubReal | Prim::NegReal, .. } => false,
                    Op::Scalar { prim: Prim::MulReal, args } => args.iter().all(|a| self.is_active(*a)),
                    Op::Scalar { prim, .. } if is_read && is_from_value(*prim) => false,
                    Op::Scalar { args, .. } => args.iter().any(|a| self.is_active(*a)),
                    _ => false,
                }
            };
            if matters {
                stmt.op.for_each_operand(&mut |a| found.extend(a.var()));
            }
            for inner in stmt.op.blocks() {
                found.extend(free_vars(inner).into_iter().filter(|v| v.ty == Type::REAL));
            }
        }
        found
    }

    /// Notes the conditions that a loop has kept to undo what it changes of arrays: the way back need not ask them again, and often nothing else of what was
    /// changed.
    pub(super) fn know_conditions(&mut self, saved: &[Saved], index: Var) {
        for saved in saved {
            let Saved::Old(overwritten) = saved else { continue };
            for (condition, all) in overwritten.conditions() {
                self.kept.insert(condition, Kept { cond: Atom::Bool(true), all, index: vec![index.into()] });
            }
        }
    }

    /// Whether a statement of a block that is run again gives something that was kept.
    pub(super) fn is_kept(&self, stmt: &Stmt) -> bool {
        stmt.binds.iter().any(|y| self.kept.contains_key(y))
    }

    /// The statements that add up sums which were kept, by number: they are left out of a block that is run again. Where they do something else besides, what
    /// they add is left out.
    pub(super) fn left_to_kept(&mut self, stmts: &[Stmt]) -> FxHashSet<usize> {
        let mut left = FxHashSet::default();
        for stmt in stmts {
            let (Op::Freeze { acc }, [y]) = (&stmt.op, &stmt.binds[..]) else { continue };
            let Some(kept) = self.kept.get(y) else { continue };
            if kept.cond == Atom::Bool(true) {
                self.settled.insert(*acc);
            }
            left.extend(adding_up(stmts, *acc).map(|(places, _)| places).into_iter().flatten());
        }
        left
    }

    /// Reads what was kept, or adds it up after all by what was left out.
    pub(super) fn forward_kept(&mut self, stmt: &Stmt, left_out: &mut Vec<Stmt>) {
        let (Op::Freeze { acc }, [value]) = (&stmt.op, &stmt.binds[..]) else {
            return self.forward_read(stmt);
        };
        let Some(Kept { cond, all, index }) = self.kept.get(value).cloned() else { return };
        let is_own = |s: &Stmt| s.binds.contains(acc) || s.mentions(*acc);
        let (mut own, others): (Vec<Stmt>, Vec<Stmt>) = left_out.drain(..).partition(is_own);
        *left_out = others;
        if cond == Atom::Bool(true) {
            // A sum that was opened ends, though nothing was added to it.
            if own.is_empty() {
                self.b.freeze(*acc);
            }
            self.frozen.insert(*acc, (*value).into());
            return self.forward_read(stmt);
        }
        own.push(stmt.clone());
        self.b.push();
        let there = self.b.get(all, index);
        let then = self.b.pop(vec![there]);
        let again = Block { stmts: own, results: vec![(*value).into()] };
        let otherwise = Renaming::default().block(&again);
        self.b.bind(vec![*value], Op::branch(cond, then, otherwise, false));
        self.frozen.insert(*acc, (*value).into());
    }

    /// Reads what was kept of what a statement gives, and lets it give the rest, and add up what it adds up besides.
    fn forward_read(&mut self, stmt: &Stmt) {
        let mut rest = self.without_settled(stmt);
        if let Op::For(l) = &mut rest.op {
            self.read_kept(&mut l.body);
        }
        let others: Vec<usize> = (0..stmt.binds.len()).filter(|at| !self.kept.contains_key(&stmt.binds[*at])).collect();
        for (inner, whole) in rest.op.blocks_mut().zip(stmt.op.blocks()) {
            inner.results = others.iter().map(|at| whole.results[*at]).collect();
        }
        if rest.op.blocks().next().is_some() {
            rest.binds = others.iter().map(|at| stmt.binds[*at]).collect();
        } else {
            // It gives all or nothing.
            rest.binds.iter_mut().filter(|v| self.kept.contains_key(v)).for_each(|v| *v = v.refresh());
        }
        for value in &stmt.binds {
            let Some(Kept { all, index, .. }) = self.kept.get(value).cloned() else { continue };
            let there = self.b.get(all, index);
            let op = match there.ty() == value.ty {
                true => Op::Copy { value: there },
                false => Op::Unpack { cell: there, tag: 0 },
            };
            self.b.bind(vec![*value], op);
        }
        if !others.is_empty() || !outer_accumulators(&rest.op).is_empty() {
            self.b.stmt(rest);
        }
        if let Op::For(l) = &stmt.op {
            let arrays: Vec<_> = stmt.binds.iter().map(|all| (*all, Vec::new())).collect();
            self.note_collected(l, &arrays);
        }
    }

    /// Makes a loop that is run again read the numbers of loops inside it that are certainly there.
    pub(super) fn read_kept(&self, block: &mut Block) {
        if self.kept.is_empty() {
            return;
        }
        with_stack(|| block.stmts.iter_mut().flat_map(|s| s.op.blocks_mut()).for_each(|inner| self.read_kept(inner)));
        let mut left: FxHashSet<usize> = FxHashSet::default();
        for at in 0..block.stmts.len() {
            let Stmt { binds, op, .. } = &block.stmts[at];
            let Some(Kept { cond: Atom::Bool(true), all: Atom::Var(all), index }) =
                binds.first().and_then(|value| self.kept.get(value))
            else {
                continue;
            };
            match op {
                Op::Freeze { acc } => match adding_up(&block.stmts, *acc) {
                    Some((places, _)) => left.extend(places),
                    None => continue,
                },
                Op::Scalar { .. } => {}
                _ => continue,
            }
            block.stmts[at].op = Op::Get { array: *all, index: index.clone() };
        }
        let mut at = 0;
        block.stmts.retain(|_| {
            at += 1;
            !left.contains(&(at - 1))
        });
    }

    /// New names for what is kept.
    pub(super) fn know_kept_as(&mut self, old: Var, new: Var, renaming: &Renaming) {
        if let Some(kept) = self.kept.get(&old) {
            let index = kept.index.iter().map(|i| renaming.atom(*i)).collect();
            let kept = Kept { index, all: renaming.atom(kept.all), ..kept.clone() };
            self.kept.insert(new, kept);
        }
    }
}

/// The statements that open an accumulator of one number and add to it in a loop that does nothing else, by number; and the loop.
fn adding_up(stmts: &[Stmt], acc: Var) -> Option<([usize; 2], &Op)> {
    let mut mentions = stmts.iter().enumerate().filter(|(_, stmt)| stmt.binds.contains(&acc) || stmt.mentions(acc));
    let (open, _) = mentions.next().filter(|(_, stmt)| matches!(stmt.op, Op::Open { .. }))?;
    let (adds, stmt) = mentions.next().filter(|(_, stmt)| matches!(stmt.op, Op::For(_)))?;
    mentions.next().filter(|(_, stmt)| matches!(stmt.op, Op::Freeze { .. }))?;
    let alone = mentions.next().is_none() && stmt.binds.is_empty() && outer_accumulators(&stmt.op) == [acc];
    (alone && acc.ty.rank == 0).then_some(([open, adds], &stmt.op))
}

/// Of the arrays that a loop makes, if it does nothing else, those whose elements come from sums that loops inside it add up.
fn arrays_of_sums(l: &For, arrays: &[Var]) -> Vec<Var> {
    if !l.carried.is_empty() || !outer_accumulators(&Op::For(Box::new(l.clone()))).is_empty() {
        return Vec::new();
    }
    let mut from_sums = FxHashSet::default();
    note_sums(&l.body, &mut from_sums);
    let is_from_sums = |result: &Atom| result.var().is_some_and(|v| from_sums.contains(&v));
    let found = arrays.iter().zip(&l.body.results).filter(|(array, each)| array.ty.is_real() && is_from_sums(each));
    found.map(|(array, _)| *array).collect()
}

/// Adds the variables of a block that come from sums which loops in it add up to those that are known.
fn note_sums(block: &Block, from_sums: &mut FxHashSet<Var>) {
    with_stack(|| {
        for stmt in &block.stmts {
            match &stmt.op {
                Op::For(inner) if inner.carried.is_empty() => {
                    note_sums(&inner.body, from_sums);
                    let rows = stmt.binds.iter().zip(&inner.body.results);
                    let found: Vec<Var> = rows
                        .filter(|(_, row)| row.var().is_some_and(|v| from_sums.contains(&v)))
                        .map(|(v, _)| *v)
                        .collect();
                    from_sums.extend(found);
                }
                Op::Freeze { acc } => {
                    let adds = |stmt: &Stmt| matches!(stmt.op, Op::For(_)) && stmt.mentions(*acc);
                    if block.stmts.iter().any(adds) {
                        from_sums.extend(&stmt.binds);
                    }
                }
                op => {
                    let mut is_from = op.blocks().flat_map(free_vars).any(|v| from_sums.contains(&v));
                    op.for_each_operand(&mut |a| is_from |= a.var().is_some_and(|v| from_sums.contains(&v)));
                    if is_from {
                        from_sums.extend(&stmt.binds);
                    }
                }
            }
        }
    })
}

/// Makes a loop collect a number that the last of some loops inside makes, if all of them collect something anyway; and the array of it.
fn collect_too(l: &mut For, value: Var, inside: &[(Var, Atom)]) -> Option<Var> {
    if !l.carried.is_empty() || l.body.results.is_empty() {
        return None;
    }
    let each = match inside {
        [] => value,
        [(index, _), rest @ ..] => l.body.stmts.iter_mut().find_map(|stmt| match &mut stmt.op {
            Op::For(inner) if inner.index == *index => {
                let row = collect_too(inner, value, rest)?;
                stmt.binds.push(row);
                Some(row)
            }
            _ => None,
        })?,
    };
    l.body.results.push(each.into());
    Some(Var::fresh(value.name.with("_saved"), each.ty.in_array()))
}

/// Puts a number, where it is made, into its place of an array.
fn add_where_made(block: &mut Block, value: Var, cond: Atom, acc: Var, index: &[Atom]) {
    with_stack(|| {
        if let Some(at) = block.stmts.iter().position(|stmt| stmt.binds.contains(&value)) {
            let add = Op::Add { acc, index: index.to_vec(), value: value.into() };
            let span = block.stmts[at].span;
            let then = Block { stmts: vec![Stmt { binds: Vec::new(), op: add, span }], results: Vec::new() };
            let op = Op::branch(cond, then, Block::default(), false);
            block.stmts.insert(at + 1, Stmt { binds: Vec::new(), op, span });
            return;
        }
        for stmt in &mut block.stmts {
            stmt.op.blocks_mut().for_each(|inner| add_where_made(inner, value, cond, acc, index));
        }
    })
}
