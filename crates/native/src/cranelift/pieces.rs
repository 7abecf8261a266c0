//! Long blocks are cut into pieces, each a function of its own.
//!
//! Whoever allocates registers takes more than twice the time for a function of twice the length: reverse mode makes functions in which the values of the
//! way there are used on the way back, in reverse order, so that in the middle almost all of them are alive. Pieces have a bounded length. What one piece
//! makes and another one uses, or what comes from around the block, waits in the *frame*: room on the stack of the function with the block, of which
//! each piece gets the address. No such value would have stayed in a register for long anyway.

use super::emit::{machine_type, machine_types, plain, Emitter, Held, Linker};
use crate::cores::Plan;
use crate::flow::*;
use crate::ownership::Ownership;
use crate::steady;
use cranelift_codegen::ir::{types, AbiParam, InstBuilder, Signature, Value};
use cranelift_module::{FuncId, Module as _};
use gradus_core::traverse::with_stack;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::rc::Rc;

/// Blocks of fewer statements are left alone, unless they are as long as a piece and contain a block that is cut.
const LONG: usize = 300;
/// A piece ends when it has so many statements.
const PIECE: usize = 150;

/// A block that is cut.
pub(super) struct Cut {
    /// The variables that wait in the frame, and where.
    places: FxHashMap<Var, i32>,
    /// Sums from around the block that are in memory: the frame has their addresses.
    addresses: FxHashSet<Var>,
}

/// What is known of the statements of the function that is being written, which are not touched, by their addresses. It is found at once, since blocks
/// within blocks would be gone through again at each level.
#[derive(Default)]
pub(super) struct Insides {
    /// The lengths of those that contain others.
    lengths: FxHashMap<*const Stmt, Length>,
    /// Of those of blocks that are cut: what the blocks inside them use from outside.
    uses: FxHashMap<*const Stmt, Vec<Var>>,
    /// Whether there is a block to be cut.
    long: bool,
}

/// How many statements there are, without those that are cut off, and whether some are.
#[derive(Clone, Copy, Default)]
struct Length {
    stmts: usize,
    cut: bool,
}

impl Length {
    /// Whether a block of this length is cut.
    fn is_long(self, block: &Block) -> bool {
        block.stmts.len() >= 2 && self.stmts >= if self.cut { PIECE } else { LONG }
    }
}

impl Insides {
    pub(super) fn note(&mut self, block: &Block, plan: &Plan) {
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
            return Length { stmts: 1, cut: false };
        }
        self.lengths.get(&std::ptr::from_ref(stmt)).copied().unwrap_or_else(|| self.with_inside(stmt))
    }

    /// One statement, and those inside it that are not cut themselves.
    fn with_inside(&self, stmt: &Stmt) -> Length {
        let mut all = Length { stmts: 1, cut: false };
        for inner in stmt.op.blocks() {
            let length = self.all(inner);
            let cut = length.is_long(inner);
            // Calls of its pieces remain.
            all.stmts += if cut { length.stmts / PIECE } else { length.stmts };
            all.cut |= cut || length.cut;
        }
        all
    }

    fn all(&self, block: &Block) -> Length {
        let mut all = Length::default();
        for stmt in &block.stmts {
            let Length { stmts, cut } = with_stack(|| self.of(stmt));
            all.stmts += stmts;
            all.cut |= cut;
        }
        all
    }

    fn is_long(&self, block: &Block) -> bool {
        self.all(block).is_long(block)
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
    fn operands(&self, stmt: &Stmt, plan: &Plan) -> Vec<Var> {
        let noted = self.uses.get(&std::ptr::from_ref(stmt)).cloned();
        // Of loops that are written in another way than they stand, nothing has been noted.
        let mut found = noted.unwrap_or_else(|| {
            let mut own = Insides::default();
            stmt.op.blocks().for_each(|inner| own.note_lengths(inner));
            sorted(&own.note_inside(stmt, plan))
        });
        stmt.op.for_each_operand(&mut |a| found.extend(a.var()));
        found
    }

    /// What a statement of a block that is cut uses, at any depth, but for blocks that are cut themselves.
    fn near(&self, stmt: &Stmt, plan: &Plan, found: &mut Vec<Var>) {
        stmt.op.for_each_operand(&mut |a| found.extend(a.var()));
        found.extend(estimated(stmt, plan));
        for inner in stmt.op.blocks() {
            found.extend(inner.results.iter().filter_map(|a| a.var()));
            if !self.is_long(inner) {
                with_stack(|| inner.stmts.iter().for_each(|stmt| self.near(stmt, plan, found)));
            }
        }
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

/// The statements of each piece; nothing if the block is not to be cut.
fn pieces(block: &Block, insides: &Insides) -> Vec<Range<usize>> {
    if !insides.is_long(block) {
        return Vec::new();
    }
    let mut pieces = Vec::new();
    let (mut start, mut so_far) = (0, 0);
    for (at, stmt) in block.stmts.iter().enumerate() {
        let own = insides.of(stmt).stmts;
        if so_far > 0 && so_far + own > PIECE {
            pieces.push(start..at);
            (start, so_far) = (at, 0);
        }
        so_far += own;
    }
    pieces.push(start..block.stmts.len());
    pieces
}

fn is_sum(var: Var) -> bool {
    var.ty.accumulator && !var.ty.is_array()
}

/// The machine values of a variable in a frame: of a sum its value, or its address.
fn frame_types(var: Var) -> Vec<types::Type> {
    match is_sum(var) {
        true => vec![machine_type(var.ty.scalar)],
        false => machine_types(var.ty),
    }
}

impl Linker<'_> {
    /// `thread, frame -> failure number`
    pub(super) fn piece_signature(&self) -> Signature {
        let mut signature = self.jit.make_signature();
        signature.params = vec![AbiParam::new(types::I64); 2];
        signature.returns.push(AbiParam::new(types::I32));
        signature
    }

    fn declare_piece(&mut self) -> FuncId {
        match self.jit.declare_anonymous_function(&self.piece_signature()) {
            Ok(function) => function,
            Err(error) => gradus_source::bug!("a piece cannot be declared: {error}"),
        }
    }
}

impl Emitter<'_, '_, '_> {
    /// Writes the statements of a block as calls of pieces, if they are many, so that its results are held; whether they are.
    pub(super) fn in_pieces(&mut self, block: &Block, ownership: &mut Ownership) -> bool {
        let pieces = pieces(block, &self.insides);
        if pieces.is_empty() {
            return false;
        }
        let mut made: FxHashMap<Var, usize> = FxHashMap::default();
        let (mut places, mut bytes) = (FxHashMap::default(), 0);
        let mut captured = Vec::new();
        let mut wait = |var: Var| {
            places.entry(var).or_insert_with(|| {
                bytes += 8 * frame_types(var).len() as i32;
                bytes - 8 * frame_types(var).len() as i32
            });
        };
        for (number, piece) in pieces.iter().enumerate() {
            for stmt in &block.stmts[piece.clone()] {
                for var in self.insides.operands(stmt, self.linker.plan) {
                    match made.get(&var) {
                        Some(there) if *there == number => {}
                        Some(_) => wait(var),
                        None if self.is_there(var) => {
                            wait(var);
                            captured.push(var);
                        }
                        None => {}
                    }
                }
                made.extend(stmt.binds.iter().map(|v| (*v, number)));
            }
        }
        let results: Vec<Var> = block.results.iter().filter_map(|a| a.var()).filter(|v| made.contains_key(v)).collect();
        results.iter().for_each(|v| wait(*v));
        let mut seen = FxHashSet::default();
        captured.retain(|v| seen.insert(*v));

        let frame = self.room(bytes.max(8) as u32);
        let mut addresses = FxHashSet::default();
        for var in &captured {
            let values = match self.held(*var) {
                Held::Sum(variable) => vec![self.b.use_var(variable)],
                Held::SumAt(address) => {
                    addresses.insert(*var);
                    vec![address]
                }
                Held::Array(array) => array.parts(),
                Held::Number(value) => vec![value],
            };
            for (value, at) in values.into_iter().zip((places[var]..).step_by(8)) {
                self.b.ins().store(plain(), value, frame, at);
            }
        }
        let cut = Rc::new(Cut { places, addresses });
        for piece in pieces {
            let function = self.linker.declare_piece();
            self.piece(function, &block.stmts, piece, &cut, ownership);
            let function = self.reference(function);
            let call = self.b.ins().call(function, &[self.thread, frame]);
            let code = self.b.inst_results(call)[0];
            self.hand_on(code);
        }
        for var in captured.into_iter().filter(|v| is_sum(*v)) {
            if let Held::Sum(variable) = self.held(var) {
                let value = self.b.ins().load(machine_type(var.ty.scalar), plain(), frame, cut.places[&var]);
                self.b.def_var(variable, value);
            }
        }
        for var in results {
            self.fetch(var, &cut, frame);
        }
        true
    }

    pub(super) fn is_there(&self, var: Var) -> bool {
        self.held.contains_key(&var)
            || self.waiting.contains_key(&var)
            || self.frame.as_ref().is_some_and(|(cut, _)| cut.places.contains_key(&var))
    }

    /// Writes the function of a piece, and goes on with this one.
    fn piece(&mut self, id: FuncId, stmts: &[Stmt], piece: Range<usize>, cut: &Rc<Cut>, ownership: &mut Ownership) {
        let signature = self.linker.piece_signature();
        let (recursive, insides) = (self.recursive, std::mem::take(&mut self.insides));
        let shared_sums = std::mem::take(&mut self.shared_sums);
        (self.insides, self.shared_sums) = self.linker.write(id, signature, |emitter, params| {
            (emitter.recursive, emitter.insides, emitter.shared_sums) = (recursive, insides, shared_sums);
            emitter.piece_body(stmts, piece, cut, ownership, params);
            (std::mem::take(&mut emitter.insides), std::mem::take(&mut emitter.shared_sums))
        });
    }

    fn piece_body(
        &mut self,
        stmts: &[Stmt],
        piece: Range<usize>,
        cut: &Rc<Cut>,
        ownership: &mut Ownership,
        params: &[Value],
    ) {
        let [thread, frame] = *params else { gradus_source::bug!("a piece has two parameters") };
        self.thread = thread;
        self.frame = Some((cut.clone(), frame));
        let stmts_here = &stmts[piece.clone()];
        if let (true, Some(first)) = (self.recursive, stmts_here.first()) {
            self.require_stack(first.span);
        }
        for (at, stmt) in piece.zip(stmts_here) {
            // What only blocks inside use that are cut, too, goes on from the frame to theirs; but this function goes on with their sums.
            let mut wanted = self.insides.operands(stmt, self.linker.plan);
            wanted.retain(|v| is_sum(*v));
            self.insides.near(stmt, self.linker.plan, &mut wanted);
            for var in wanted {
                if !self.held.contains_key(&var) && cut.places.contains_key(&var) {
                    self.fetch(var, cut, frame);
                }
            }
            ownership.start(at, stmt);
            self.stmt(stmt, ownership);
            for var in stmt.binds.iter().filter(|v| !is_sum(**v)) {
                let Some(place) = cut.places.get(var) else { continue };
                for (part, at) in self.parts((*var).into()).into_iter().zip((*place..).step_by(8)) {
                    self.b.ins().store(plain(), part, frame, at);
                }
            }
            for var in ownership.end() {
                self.drop_var(var);
            }
        }
        self.put_back_sums(cut, frame);
        self.finish();
    }

    /// What the piece has added up is what the next ones go on with.
    fn put_back_sums(&mut self, cut: &Cut, frame: Value) {
        let mut sums: Vec<Var> = self.held.keys().copied().filter(|v| is_sum(*v)).collect();
        sums.sort_by_key(|v| v.id);
        for sum in sums {
            let Some(place) = cut.places.get(&sum).copied() else { continue };
            let value = match self.held.get(&sum) {
                Some(Held::Sum(variable)) => self.b.use_var(*variable),
                // Of its own, or in the frame already.
                Some(Held::SumAt(address)) if !cut.addresses.contains(&sum) => {
                    self.b.ins().load(machine_type(sum.ty.scalar), plain(), *address, 0)
                }
                _ => continue,
            };
            self.b.ins().store(plain(), value, frame, place);
        }
    }

    /// Gets a variable from the frame.
    fn fetch(&mut self, var: Var, cut: &Cut, frame: Value) {
        let held = self.in_frame(var, cut, frame);
        self.held.insert(var, held);
    }

    pub(super) fn in_frame(&mut self, var: Var, cut: &Cut, frame: Value) -> Held {
        let Some(place) = cut.places.get(&var).copied() else {
            gradus_source::bug!("{} is used before it is there", var.name)
        };
        if cut.addresses.contains(&var) {
            return Held::SumAt(self.b.ins().load(types::I64, plain(), frame, place));
        }
        let mut parts = Vec::new();
        for (ty, at) in frame_types(var).into_iter().zip((place..).step_by(8)) {
            parts.push(self.b.ins().load(ty, plain(), frame, at));
        }
        match parts[..] {
            [value] if is_sum(var) && self.shared_sums.contains(&var) => {
                let address = self.b.ins().iadd_imm_s(frame, i64::from(place));
                self.b.ins().store(plain(), value, address, 0);
                Held::SumAt(address)
            }
            [value] if is_sum(var) => {
                let variable = self.b.declare_var(machine_type(var.ty.scalar));
                self.b.def_var(variable, value);
                Held::Sum(variable)
            }
            _ => Held::of(var.ty, &parts),
        }
    }
}
