//! Long blocks are cut into pieces, each a function of its own.
//!
//! Whoever allocates registers takes more than twice the time for a function of twice the length: reverse mode makes functions in which the values of the
//! way there are used on the way back, in reverse order, so that in the middle almost all of them are alive. C compilers do many more things that take
//! longer. Pieces have a bounded length. What one piece makes and another one uses, or what comes from around the block, waits in the *frame*: room on the
//! stack of the function with the block, of which each piece gets the address. No such value would have stayed in a register for long anyway.

use crate::cores::Plan;
use crate::flow::*;
use crate::steady;
use gradus_core::traverse::with_stack;
use indexmap::IndexSet;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// How long pieces are.
#[derive(Clone, Copy)]
pub struct Sizes {
    /// Shorter blocks are left alone, unless they are as long as a piece and contain a block that is cut.
    pub long: usize,
    /// A piece ends when it is so long.
    pub piece: usize,
    /// The length of a loop, without what is in it, where other statements have one.
    pub of_loop: usize,
}

/// A block that is to be cut.
pub struct Pieces {
    /// The statements of each piece.
    pub ranges: Vec<Range<usize>>,
    /// What waits in the frame.
    pub waiting: Vec<Var>,
    /// Those that are there before the block.
    pub captured: Vec<Var>,
    /// Those that the block makes for its results.
    pub results: Vec<Var>,
}

/// What is known of the statements of the function that is being written, which are not touched, by their addresses. It is found at once, since blocks
/// within blocks would be gone through again at each level.
pub struct Insides {
    sizes: Sizes,
    /// The lengths of those that contain others.
    lengths: FxHashMap<*const Stmt, Length>,
    /// Of those of blocks that are cut: what the blocks inside them use from outside.
    uses: FxHashMap<*const Stmt, Vec<Var>>,
    /// Whether there is a block to be cut.
    long: bool,
}

/// How long statements are, without those that are cut off, and whether some are.
#[derive(Clone, Copy, Default)]
struct Length {
    total: usize,
    cut: bool,
}

impl Insides {
    pub fn new(sizes: Sizes) -> Insides {
        Insides { sizes, lengths: FxHashMap::default(), uses: FxHashMap::default(), long: false }
    }

    /// Whether a block of this length is cut.
    fn is_cut(&self, block: &Block, length: Length) -> bool {
        block.stmts.len() >= 2 && length.total >= if length.cut { self.sizes.piece } else { self.sizes.long }
    }

    pub fn note(&mut self, block: &Block, plan: &Plan) {
        self.note_lengths(block);
        if self.long || self.is_long(block) {
            self.note_uses(block, plan);
        }
    }

    fn note_lengths(&mut self, block: &Block) {
        for stmt in &block.stmts {
            if stmt.op.has_blocks() {
                with_stack(|| stmt.op.blocks().for_each(|inner| self.note_lengths(inner)));
                let length = self.with_inside(stmt);
                self.lengths.insert(stmt, length);
                self.long |= length.cut;
            }
        }
    }

    fn of(&self, stmt: &Stmt) -> Length {
        if !matches!(stmt.op, Op::If { .. } | Op::For(_) | Op::While(_)) {
            return Length { total: 1, cut: false };
        }
        self.lengths.get(&std::ptr::from_ref(stmt)).copied().unwrap_or_else(|| self.with_inside(stmt))
    }

    /// One statement, and those inside it that are not cut themselves.
    fn with_inside(&self, stmt: &Stmt) -> Length {
        let own = if matches!(stmt.op, Op::If { .. }) { 1 } else { self.sizes.of_loop };
        let mut all = Length { total: own, cut: false };
        for inner in stmt.op.blocks() {
            let length = self.all(inner);
            let cut = self.is_cut(inner, length);
            // Calls of its pieces remain.
            all.total += if cut { length.total / self.sizes.piece } else { length.total };
            all.cut |= cut || length.cut;
        }
        all
    }

    fn all(&self, block: &Block) -> Length {
        let mut all = Length::default();
        for stmt in &block.stmts {
            let Length { total, cut } = with_stack(|| self.of(stmt));
            all.total += total;
            all.cut |= cut;
        }
        all
    }

    pub fn is_long(&self, block: &Block) -> bool {
        self.is_cut(block, self.all(block))
    }

    /// Gives what the block uses from outside. Sets are handed on from the inside to the outside, so that they are copied for blocks that are cut only.
    fn note_uses(&mut self, block: &Block, plan: &Plan) -> FxHashSet<Var> {
        with_stack(|| {
            let is_long = self.is_long(block);
            let mut all: FxHashSet<Var> = block.results.iter().filter_map(|a| a.var()).collect();
            for stmt in &block.stmts {
                stmt.op.for_each_operand(&mut |a| all.extend(a.var()));
                let inside = self.note_inside(stmt, plan);
                if is_long && !inside.is_empty() {
                    self.uses.insert(stmt, sorted(&inside));
                }
                unite(&mut all, inside);
            }
            block.stmts.iter().flat_map(|stmt| &stmt.binds).for_each(|v| {
                all.remove(v);
            });
            all
        })
    }

    fn note_inside(&mut self, stmt: &Stmt, plan: &Plan) -> FxHashSet<Var> {
        let mut inside: FxHashSet<Var> = estimated(stmt, plan).collect();
        for inner in stmt.op.blocks() {
            let mut uses = self.note_uses(inner, plan);
            stmt.op.params().for_each(|param| {
                uses.remove(&param);
            });
            unite(&mut inside, uses);
        }
        inside
    }

    /// The variables from outside that a statement of a block that is cut uses.
    pub fn operands(&self, stmt: &Stmt, plan: &Plan) -> Vec<Var> {
        let noted = self.uses.get(&std::ptr::from_ref(stmt)).cloned();
        // Of loops that are written in another way than they stand, nothing has been noted.
        let mut found = noted.unwrap_or_else(|| {
            let mut own = Insides::new(self.sizes);
            stmt.op.blocks().for_each(|inner| own.note_lengths(inner));
            sorted(&own.note_inside(stmt, plan))
        });
        stmt.op.for_each_operand(&mut |a| found.extend(a.var()));
        found
    }

    /// What a statement of a block that is cut uses, at any depth, but for blocks that are cut themselves.
    pub fn near(&self, stmt: &Stmt, plan: &Plan, found: &mut Vec<Var>) {
        stmt.op.for_each_operand(&mut |a| found.extend(a.var()));
        found.extend(estimated(stmt, plan));
        for inner in stmt.op.blocks() {
            found.extend(inner.results.iter().filter_map(|a| a.var()));
            if !self.is_long(inner) {
                with_stack(|| inner.stmts.iter().for_each(|stmt| self.near(stmt, plan, found)));
            }
        }
    }

    /// How to cut a block, unless it is too short. Of what its statements use, some may not be there, as nothing that is written uses it.
    pub fn cut(&self, block: &Block, plan: &Plan, is_there: impl Fn(Var) -> bool) -> Option<Pieces> {
        let ranges = self.ranges(block)?;
        let mut made: FxHashMap<Var, usize> = FxHashMap::default();
        let (mut waiting, mut captured) = (IndexSet::new(), IndexSet::new());
        for (number, range) in ranges.iter().enumerate() {
            for stmt in &block.stmts[range.clone()] {
                for var in self.operands(stmt, plan) {
                    match made.get(&var) {
                        Some(there) if *there == number => {}
                        Some(_) => {
                            waiting.insert(var);
                        }
                        None if is_there(var) => {
                            waiting.insert(var);
                            captured.insert(var);
                        }
                        None => {}
                    }
                }
                made.extend(stmt.binds.iter().map(|v| (*v, number)));
            }
        }
        let results = block.results.iter().filter_map(|a| a.var()).filter(|v| made.contains_key(v));
        let results: IndexSet<Var> = results.collect();
        waiting.extend(&results);
        let [waiting, captured, results] = [waiting, captured, results].map(|vars| vars.into_iter().collect());
        Some(Pieces { ranges, waiting, captured, results })
    }

    /// The statements of each piece.
    fn ranges(&self, block: &Block) -> Option<Vec<Range<usize>>> {
        if !self.is_long(block) {
            return None;
        }
        let mut pieces = Vec::new();
        let (mut start, mut so_far) = (0, 0);
        for (at, stmt) in block.stmts.iter().enumerate() {
            let own = self.of(stmt).total;
            if so_far > 0 && so_far + own > self.sizes.piece {
                pieces.push(start..at);
                (start, so_far) = (at, 0);
            }
            so_far += own;
        }
        pieces.push(start..block.stmts.len());
        Some(pieces)
    }
}

fn sorted(vars: &FxHashSet<Var>) -> Vec<Var> {
    let mut vars: Vec<Var> = vars.iter().copied().collect();
    vars.sort_unstable_by_key(|v| v.id);
    vars
}

/// Adds a set to another one; the larger one is kept.
fn unite(to: &mut FxHashSet<Var>, mut from: FxHashSet<Var>) {
    if from.len() > to.len() {
        std::mem::swap(to, &mut from);
    }
    to.extend(from);
}

/// The lengths from which the work of a loop is estimated.
fn estimated<'a>(stmt: &Stmt, plan: &'a Plan) -> impl Iterator<Item = Var> + 'a {
    let chunked = match &stmt.op {
        Op::For(l) => plan.of(l),
        _ => None,
    };
    let lengths = chunked.into_iter().flat_map(|chunked| {
        let factors = chunked.work.iter().flat_map(|(_, factors)| factors);
        factors.chain(chunked.rows.iter().flatten())
    });
    lengths.filter_map(|length| match length {
        steady::Length::Number(atom) => atom.var(),
        steady::Length::Of(array, _) => Some(*array),
    })
}

/// Whether a variable is a sum of numbers that are not in an array, which goes on from one piece to the next.
pub fn is_sum(var: Var) -> bool {
    var.ty.accumulator && !var.ty.is_array()
}
