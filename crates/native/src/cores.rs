//! Which loops run on all cores, and how they are cut into chunks.
//!
//! A loop that carries no state has iterations that do not know of each other: they collect values and add to accumulators. Such a loop is cut into
//! *chunks*, each a range of iterations, if there is enough to do, which is decided when the program runs. Invariants:
//!
//! - The number of chunks depends on the number of iterations and on what they cost, never on the number of threads
//!   (see [`gradus_runtime::chunks`]). So results are the same bits on any number of threads.
//! - A chunk sees what is outside of the loop as the caller of a compiled function sees its arguments: borrowed, not counted.
//! - State may be carried if it is only joined with a value of each iteration by an operation of [`Join`], which is associative to the last bit. Each chunk
//!   begins with the neutral element, and the states are joined in the order of the chunks.
//! - What is collected has its place, of known size, before the loop runs; each chunk writes to its own part.
//! - An accumulator to which each iteration only adds at places of its own is shared by the chunks. Of any other each chunk has one of its own, which begins at
//!   -0.0 (so that not even the sign of a zero is lost), and these are added to it in the order of the chunks.
//! - Nothing in the loop is a box or goes on the tape: both belong to one thread.
//! - Of the failures in a loop, that of the lowest chunk counts, so it is that of the first iteration that fails. (Which limit on memory or steps
//!   is met first, and where, may depend on the number of threads.)
//! - Chunks are not cut again: a loop inside a chunk, also one in a function that is called, runs its own chunks one after the other.

use crate::flow::walk::{for_each_binder, for_each_operand, free_vars};
use crate::flow::*;
use crate::recursion;
use crate::steady::{Length, Lengths};
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use gradus_runtime::chunks;
use rustc_hash::{FxHashMap, FxHashSet};

/// What makes a chunk worth its while: see [`Chunked::work`]. About 30 microseconds.
pub const LEAST_WORK: f64 = 65536.0;

/// A count that is not known before it runs is taken to be this.
const UNKNOWN: f64 = 16.0;
/// What a call of a function costs that may come to call itself.
const RECURSION: f64 = 1000.0;
/// Iterations of a loop in vector lanes cost so much of what they would cost alone: between the two lanes of Cranelift and the four to eight of C.
const IN_LANES: f64 = 1.0 / 3.0;
/// A body of so many statements is small.
const SMALL: usize = 24;
/// An estimate has so many terms.
const MOST_TERMS: usize = 6;

/// The loops of a module that are cut into chunks.
pub struct Plan {
    /// By their index variables.
    loops: FxHashMap<Var, Chunked>,
    /// Of [`Chunked::work`]: what a chunk should have at least; infinite: nothing is cut.
    pub least_work: f64,
}

/// A loop that is cut into chunks.
#[derive(Clone, Debug)]
pub struct Chunked {
    /// What an iteration costs, one for a simple operation: a sum of products of lengths that are known outside of the loop.
    pub work: Vec<(f64, Vec<Length>)>,
    /// For each collected value the lengths of its rows, known outside of the loop. If one of them is zero, others may be, and the loop is not cut, unless its
    /// body is written once. If there are no iterations, rows have no length.
    pub rows: Vec<Vec<Length>>,
    /// For each state that it carries, how those of the chunks become one.
    pub joins: Vec<Join>,
    /// Accumulators of which each chunk has one of its own.
    pub sums: Vec<Var>,
    /// Whether the body is written once, as a function that also runs the loop as a whole. Small ones that may run often are written twice: where the
    /// loop stands, for few iterations, and as a function.
    pub once: bool,
    /// All variables that the body uses and does not bind but for sums of one number; also those accumulators that the chunks share.
    pub outside: Vec<Var>,
}

/// An operation that joins states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Join {
    Maximum,
    Minimum,
    /// Of integers, as the next.
    Sum,
    Product,
}

impl Join {
    fn of(prim: Prim) -> Option<Join> {
        match prim {
            Prim::Maximum => Some(Join::Maximum),
            Prim::Minimum => Some(Join::Minimum),
            Prim::AddInt => Some(Join::Sum),
            Prim::MulInt => Some(Join::Product),
            _ => None,
        }
    }

    pub fn prim(self) -> Prim {
        match self {
            Join::Maximum => Prim::Maximum,
            Join::Minimum => Prim::Minimum,
            Join::Sum => Prim::AddInt,
            Join::Product => Prim::MulInt,
        }
    }

    pub fn neutral(self) -> Atom {
        match self {
            Join::Maximum => Atom::Real(f64::NEG_INFINITY),
            Join::Minimum => Atom::Real(f64::INFINITY),
            Join::Sum => Atom::Int(0),
            Join::Product => Atom::Int(1),
        }
    }

    /// What the runtime knows it by.
    fn code(self) -> i64 {
        let code = match self {
            Join::Maximum => chunks::Join::Maximum,
            Join::Minimum => chunks::Join::Minimum,
            Join::Sum => chunks::Join::Sum,
            Join::Product => chunks::Join::Product,
        };
        code as i64
    }
}

impl Chunked {
    /// The joins as the runtime takes them: the first in the lowest bits.
    pub fn join_codes(&self) -> i64 {
        self.joins.iter().rev().fold(0, |codes, join| codes << chunks::JOIN_BITS | join.code())
    }

    /// The sums of one number, then the arrays of sums: so they stand in what a chunk adds up.
    pub fn parted_sums(&self) -> (Vec<Var>, Vec<Var>) {
        self.sums.iter().copied().partition(|v| !v.ty.is_array())
    }
}

impl Plan {
    pub fn new(module: &Module, least_work: f64) -> Plan {
        let mut planner = Planner {
            module,
            least_work,
            boxes: with_boxes(module),
            recursive: recursion::recursive(module),
            costs: vec![None; module.functions.len()],
            loops: FxHashMap::default(),
        };
        if least_work.is_finite() {
            let mut called = Vec::new();
            module.functions.iter().for_each(|function| walk::callees(&function.body, &mut called));
            let called: FxHashSet<FunctionId> = called.into_iter().collect();
            for (id, function) in module.functions.iter().enumerate() {
                planner.block(&function.body, !called.contains(&FunctionId(id)));
            }
        }
        Plan { loops: planner.loops, least_work }
    }

    /// How many loops are cut.
    pub fn loops(&self) -> usize {
        self.loops.len()
    }

    pub fn of(&self, l: &For) -> Option<&Chunked> {
        self.loops.get(&l.index)
    }
}

/// For each function whether boxes occur in it or in what it calls.
fn with_boxes(module: &Module) -> Vec<bool> {
    let is_box = |ty: Type| ty.shape().is_some();
    let mut found: Vec<bool> = Vec::new();
    let mut callers: Vec<Vec<usize>> = vec![Vec::new(); module.functions.len()];
    for (id, function) in module.functions.iter().enumerate() {
        let mut calls = Vec::new();
        walk::callees(&function.body, &mut calls);
        calls.iter().for_each(|callee| callers[callee.0].push(id));
        found.push(function.params.iter().any(|v| is_box(v.ty)) || boxes_inside(&function.body));
    }
    let mut new: Vec<usize> = (0..found.len()).filter(|id| found[*id]).collect();
    while let Some(id) = new.pop() {
        for caller in &callers[id] {
            if !std::mem::replace(&mut found[*caller], true) {
                new.push(*caller);
            }
        }
    }
    found
}

fn boxes_inside(block: &Block) -> bool {
    let mut found = uses_tape(block);
    for_each_binder(block, &mut |v| found |= v.ty.shape().is_some());
    for_each_operand(block, &mut |a| found |= a.ty().shape().is_some());
    found
}

/// The tape, too, belongs to one thread, and what is on it has an order.
fn uses_tape(block: &Block) -> bool {
    with_stack(|| {
        block.stmts.iter().any(|stmt| match &stmt.op {
            Op::Push { .. } | Op::Pop { .. } => true,
            op => op.blocks().any(uses_tape),
        })
    })
}

struct Planner<'a> {
    module: &'a Module,
    least_work: f64,
    boxes: Vec<bool>,
    recursive: Vec<bool>,
    /// Of functions, once they are known.
    costs: Vec<Option<f64>>,
    loops: FxHashMap<Var, Chunked>,
}

/// Factors are lengths that are known outside.
type Term = (f64, Vec<Length>);

impl Planner<'_> {
    /// Finds the loops of a block. `single`: it runs once for each call of compiled code, at most.
    fn block(&mut self, block: &Block, single: bool) {
        with_stack(|| {
            for stmt in &block.stmts {
                if let Op::For(l) = &stmt.op {
                    if let Some(mut chunked) = self.chunked(l) {
                        chunked.once = (single || size(&l.body) > SMALL) && has_those_rows(l, &chunked.rows);
                        self.loops.insert(l.index, chunked);
                        continue;
                    }
                }
                let repeats = matches!(stmt.op, Op::For(_) | Op::While(_));
                for inner in stmt.op.blocks() {
                    self.block(inner, single && !repeats);
                }
            }
        })
    }

    fn chunked(&mut self, l: &For) -> Option<Chunked> {
        let mut calls = Vec::new();
        walk::callees(&l.body, &mut calls);
        let joins = joins(l)?;
        if boxes_inside(&l.body) || calls.iter().any(|f| self.boxes[f.0]) {
            return None;
        }
        let mut inside = FxHashSet::default();
        inside.insert(l.index);
        inside.extend(l.carried.iter().map(|(v, _)| *v));
        for_each_binder(&l.body, &mut |v| {
            inside.insert(v);
        });
        let known = |length: &Length| match length {
            Length::Number(atom) => atom.var().is_none_or(|v| !inside.contains(&v)),
            Length::Of(array, _) => !inside.contains(array),
        };
        let lengths = Lengths::of_full(&l.body);
        let mut rows = Vec::new();
        for result in &l.body.results[l.carried.len()..] {
            let row = lengths.of_array(*result);
            if row.len() != result.ty().rank as usize || !row.iter().all(known) {
                return None;
            }
            rows.push(row);
        }
        let work = self.work_of_loop(l, &lengths, &known);
        if let [(cost, factors)] = &work[..] {
            let constant = |length: &Length| match length {
                Length::Number(Atom::Int(n)) => Some(*n as f64),
                Length::Number(_) | Length::Of(..) => None,
            };
            let all = factors.iter().chain([&lengths.number(l.count)]).map(constant).product::<Option<f64>>();
            if all.is_some_and(|all| all * cost < chunks::WORTH_CUTTING * self.least_work) {
                return None;
            }
        }
        // Of few iterations the loops inside are the better ones to cut.
        let loops_inside = l.body.stmts.iter().any(|s| s.op.has_blocks());
        if matches!(l.count, Atom::Int(n) if n < if loops_inside { 8 } else { 2 }) {
            return None;
        }
        let mut free = free_vars(&l.body);
        free.retain(|v| *v != l.index && !l.carried.iter().any(|(c, _)| c == v));
        let own = places_of(l);
        let sums: Vec<Var> =
            free.iter().copied().filter(|v| v.ty.accumulator && !own_places(&l.body, *v, &own)).collect();
        if free.iter().any(|v| v.ty.accumulator && !v.ty.is_real()) {
            return None;
        }
        let outside = free.into_iter().filter(|v| v.ty.is_array() || !v.ty.accumulator).collect();
        Some(Chunked { work, rows, joins, sums, once: false, outside })
    }

    /// What a block costs.
    fn work(&mut self, block: &Block, lengths: &Lengths, known: &dyn Fn(&Length) -> bool) -> Vec<Term> {
        with_stack(|| {
            let mut terms: Vec<Term> = vec![(1.0, Vec::new())];
            for stmt in &block.stmts {
                let cost = match &stmt.op {
                    Op::Scalar { prim, .. } => scalar_cost(*prim),
                    Op::Copy { .. } | Op::Stop { .. } | Op::Dim { .. } => 0.0,
                    Op::Select { .. } | Op::Get { .. } | Op::Check { .. } | Op::Freeze { .. } | Op::Tag { .. } => 1.0,
                    Op::Add { value, .. } => {
                        if value.ty().is_array() {
                            UNKNOWN
                        } else {
                            1.0
                        }
                    }
                    Op::Open { init } => {
                        if init.ty().is_array() {
                            UNKNOWN
                        } else {
                            1.0
                        }
                    }
                    Op::Set { .. }
                    | Op::Unpack { .. }
                    | Op::Hole { .. }
                    | Op::Plug { .. }
                    | Op::Push { .. }
                    | Op::Pop { .. } => 4.0,
                    Op::Extend { .. } | Op::Fill { .. } | Op::Literal { .. } | Op::Cell { .. } => 2.0 * UNKNOWN,
                    Op::Digits { .. } | Op::Product(_) => 300.0,
                    Op::Call { function, .. } => self.function(*function),
                    Op::If { then, otherwise, .. } => {
                        let sides = [then, otherwise].map(|side| self.work(side, lengths, known));
                        // The longer side, taken to be the one with more terms.
                        let [one, other] = sides;
                        let longer = if total(&one) >= total(&other) { one } else { other };
                        longer.into_iter().for_each(|term| add(&mut terms, term));
                        1.0
                    }
                    Op::For(l) => {
                        let count = lengths.number(l.count);
                        for (cost, mut factors) in self.work_of_loop(l, lengths, known) {
                            if known(&count) {
                                factors.push(count);
                                add(&mut terms, (cost, factors));
                            } else {
                                add(&mut terms, (UNKNOWN * cost, factors));
                            }
                        }
                        4.0
                    }
                    Op::While(l) => {
                        for (cost, factors) in self.work(&l.body, lengths, known) {
                            add(&mut terms, (UNKNOWN * cost, factors));
                        }
                        4.0
                    }
                };
                add(&mut terms, (cost, Vec::new()));
            }
            terms
        })
    }

    /// What an iteration of a loop costs.
    fn work_of_loop(&mut self, l: &For, lengths: &Lengths, known: &dyn Fn(&Length) -> bool) -> Vec<Term> {
        let mut terms = self.work(&l.body, lengths, known);
        if l.carried.is_empty() && l.body.stmts.iter().all(runs_in_lanes) {
            terms.iter_mut().for_each(|(cost, _)| *cost *= IN_LANES);
        }
        terms
    }

    fn function(&mut self, id: FunctionId) -> f64 {
        if self.recursive[id.0] {
            return RECURSION;
        }
        if let Some(cost) = self.costs[id.0] {
            return cost;
        }
        let module = self.module;
        let body = &module.function(id).body;
        let cost = 8.0 + total(&self.work(body, &Lengths::of_full(body), &|_| false));
        self.costs[id.0] = Some(cost);
        cost
    }
}

/// How the states of a loop are joined, if they are only joined.
pub fn joins(l: &For) -> Option<Vec<Join>> {
    if l.carried.is_empty() {
        return Some(Vec::new());
    }
    let uses = walk::count_uses(&l.body);
    let single = |v: Var| uses.get(&v) == Some(&1);
    let join = |((state, _), next): (&(Var, Atom), &Atom)| {
        let next = next.var().filter(|v| single(*v))?;
        let made = l.body.stmts.iter().find(|s| s.binds.contains(&next))?;
        match &made.op {
            // The state comes first: of two zeros, the later one is the result.
            Op::Scalar { prim, args } if args.first() == Some(&(*state).into()) && single(*state) => Join::of(*prim),
            _ => None,
        }
    };
    let joins: Option<Vec<Join>> = l.carried.iter().zip(&l.body.results).map(join).collect();
    joins.filter(|joins| joins.len() <= chunks::MOST_JOINS)
}

/// Whether a loop of such statements runs in lanes, as far as it matters for an estimate.
fn runs_in_lanes(stmt: &Stmt) -> bool {
    let is_simple = matches!(
        stmt.op,
        Op::Scalar { .. } | Op::Select { .. } | Op::Copy { .. } | Op::Stop { .. } | Op::Dim { .. } | Op::Check { .. }
    );
    match &stmt.op {
        Op::Get { .. } => stmt.binds.iter().all(|v| !v.ty.is_array()),
        Op::Add { value, .. } => !value.ty().is_array(),
        _ => is_simple,
    }
}

/// Whether the rows that a loop collects have these lengths in any case, not only if no array is empty.
fn has_those_rows(l: &For, rows: &[Vec<Length>]) -> bool {
    if rows.iter().all(Vec::is_empty) {
        return true;
    }
    let lengths = Lengths::of(&l.body);
    let collected = &l.body.results[l.carried.len()..];
    collected.iter().zip(rows).all(|(result, row)| lengths.of_array(*result) == *row)
}

/// How many statements there are in a block, at any depth.
fn size(block: &Block) -> usize {
    let inner = |stmt: &Stmt| stmt.op.blocks().map(size).sum::<usize>();
    with_stack(|| block.stmts.iter().map(|stmt| 1 + inner(stmt)).sum())
}

/// Adds a term to a sum. Products with constants are written out.
fn add(terms: &mut Vec<Term>, (mut cost, mut factors): Term) {
    factors.retain(|factor| match factor {
        Length::Number(Atom::Int(n)) => {
            cost *= (*n).max(0) as f64;
            false
        }
        Length::Number(_) | Length::Of(..) => true,
    });
    if let Some((known, _)) = terms.iter_mut().find(|(_, other)| *other == factors) {
        *known += cost;
    } else if terms.len() < MOST_TERMS {
        terms.push((cost, factors));
    }
}

/// A sum with lengths that nobody knows.
fn total(terms: &[Term]) -> f64 {
    terms.iter().map(|(cost, factors)| cost * UNKNOWN.powi(factors.len() as i32)).sum()
}

fn scalar_cost(prim: Prim) -> f64 {
    use Prim::*;
    match prim {
        Exp | Log | Sin | Cos | Tan | Asin | Acos | Atan | Sinh | Cosh | Tanh | Log1p | Expm1 | Erf | PowReal
        | Atan2 => 12.0,
        Lgamma | Polygamma => 60.0,
        DivReal | Sqrt | DivInt | ModInt | PowInt | PowRealInt => 4.0,
        _ => 1.0,
    }
}

/// The indices that no other iteration has: that of the iteration, and those of a strip that is its own (see `simplify/strips.rs`), which are
/// `iteration * size + j` for `j` less than a number that is at most `size`.
fn places_of(l: &For) -> FxHashSet<Var> {
    let made = |atom: Atom| {
        let stmt = atom.var().and_then(|v| l.body.stmts.iter().find(|stmt| stmt.binds == [v]));
        stmt.map(|stmt| &stmt.op)
    };
    let size = |base: Atom| match made(base)? {
        Op::Scalar { prim: Prim::MulInt, args } if args[0] == l.index.into() => Some(args[1]),
        _ => None,
    };
    let most = |count: Atom| match made(count)? {
        Op::Select { cond, then, otherwise } => match made(*cond)? {
            Op::Scalar { prim: Prim::Less, args } if args[..] == [*then, *otherwise] => Some(*then),
            _ => None,
        },
        _ => None,
    };
    let mut places = FxHashSet::from_iter([l.index]);
    for stmt in &l.body.stmts {
        let Op::For(inner) = &stmt.op else { continue };
        let Some(most) = most(inner.count) else { continue };
        for stmt in &inner.body.stmts {
            match &stmt.op {
                Op::Scalar { prim: Prim::AddInt, args }
                    if args[1] == inner.index.into() && size(args[0]) == Some(most) =>
                {
                    places.extend(&stmt.binds);
                }
                _ => {}
            }
        }
    }
    places
}

/// Whether an accumulator is only added to at such places.
fn own_places(block: &Block, acc: Var, places: &FxHashSet<Var>) -> bool {
    with_stack(|| {
        block.stmts.iter().all(|stmt| {
            let here = match &stmt.op {
                Op::Add { acc: to, index: place, .. } if *to == acc => {
                    place.first().and_then(|a| a.var()).is_some_and(|v| places.contains(&v))
                }
                Op::Call { args, .. } => !args.contains(&acc.into()),
                // It adds to places that all iterations have.
                Op::Product(product) => product.acc != acc,
                _ => true,
            };
            here && stmt.op.blocks().all(|inner| own_places(inner, acc, places))
        })
    })
}
