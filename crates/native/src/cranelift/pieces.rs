//! Long blocks are cut into pieces, each a function of its own.
//!
//! Whoever allocates registers takes more than twice the time for a function of twice the length: reverse mode makes functions in which the values of the
//! way there are used on the way back, in reverse order, so that in the middle almost all of them are alive. Pieces have a bounded length. What one piece
//! makes and another one uses, or what comes from around the block, waits in the *frame*: room on the stack of the function with the block, of which
//! each piece gets the address. No such value would have stayed in a register for long anyway.

use super::emit::{machine_type, machine_types, plain, shared_sums, Emitter, Held, Linker};
use crate::cores::Plan;
use crate::flow::walk::free_vars;
use crate::flow::*;
use crate::ownership::Ownership;
use crate::steady::Length;
use cranelift_codegen::ir::{types, AbiParam, InstBuilder, Signature, Value};
use cranelift_module::{FuncId, Module as _};
use gradus_core::traverse::with_stack;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

/// Blocks of fewer statements are left alone.
const LONG: usize = 600;
/// A piece ends when it has so many statements.
const PIECE: usize = 300;

/// A function that runs some statements of a block.
pub(super) struct Piece {
    pub(super) function: FuncId,
    cut: Rc<Cut>,
    stmts: Range<usize>,
}

/// A block that is cut.
struct Cut {
    stmts: Vec<Stmt>,
    ownership: RefCell<Ownership>,
    /// The variables that wait in the frame, and where.
    places: FxHashMap<Var, i32>,
    /// Sums from around the block that are in memory: the frame has their addresses.
    addresses: FxHashSet<Var>,
    /// Whether the function with the block can come to call itself.
    recursive: bool,
}

/// The lengths of statements, those that contain others by their addresses: these are the statements of the function that is being written, which are not
/// touched. They are noted at once, since blocks within blocks would be measured again at each level.
#[derive(Default)]
pub(super) struct Lengths(FxHashMap<*const Stmt, usize>);

impl Lengths {
    pub(super) fn note(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            let inside = stmt.op.blocks();
            if !inside.is_empty() {
                with_stack(|| inside.iter().for_each(|(inner, _)| self.note(&inner.stmts)));
                let length = self.with_inside(stmt);
                self.0.insert(stmt, length);
            }
        }
    }

    fn of(&self, stmt: &Stmt) -> usize {
        self.0.get(&std::ptr::from_ref(stmt)).copied().unwrap_or_else(|| self.with_inside(stmt))
    }

    /// One statement, and those inside it that are not cut themselves.
    fn with_inside(&self, stmt: &Stmt) -> usize {
        let block = |inner: &Block| {
            let all: usize = inner.stmts.iter().map(|stmt| with_stack(|| self.of(stmt))).sum();
            match inner.stmts.len() {
                // Calls of its pieces remain.
                2.. if all >= LONG => all / PIECE,
                _ => all,
            }
        };
        1 + stmt.op.blocks().iter().map(|(inner, _)| block(inner)).sum::<usize>()
    }
}

/// The statements of each piece; nothing if the block is not to be cut.
fn pieces(stmts: &[Stmt], lengths: &Lengths) -> Vec<Range<usize>> {
    let lengths: Vec<usize> = stmts.iter().map(|stmt| lengths.of(stmt)).collect();
    if stmts.len() < 2 || lengths.iter().sum::<usize>() < LONG {
        return Vec::new();
    }
    let mut pieces = Vec::new();
    let (mut start, mut so_far) = (0, 0);
    for (at, own) in lengths.into_iter().enumerate() {
        if so_far > 0 && so_far + own > PIECE {
            pieces.push(start..at);
            (start, so_far) = (at, 0);
        }
        so_far += own;
    }
    pieces.push(start..stmts.len());
    if pieces.len() < 2 {
        pieces.clear();
    }
    pieces
}

/// The variables from outside that a statement uses, and perhaps some from inside.
fn operands(stmt: &Stmt, plan: &Plan) -> Vec<Var> {
    let mut found = Vec::new();
    for (block, params) in stmt.op.blocks() {
        found.extend(free_vars(block).into_iter().filter(|v| !params.contains(v)));
    }
    stmt.op.for_each_operand(&mut |a| found.extend(a.var()));
    lengths(stmt, plan, &mut found);
    found
}

/// The lengths from which the work of loops is estimated.
fn lengths(stmt: &Stmt, plan: &Plan, found: &mut Vec<Var>) {
    if let Op::For(l) = &stmt.op {
        if let Some(chunked) = plan.of(l) {
            let factors = chunked.work.iter().flat_map(|(_, factors)| factors);
            found.extend(factors.chain(chunked.rows.iter().flatten()).filter_map(|length| match length {
                Length::Number(atom) => atom.var(),
                Length::Of(array, _) => Some(*array),
            }));
        }
    }
    for (inner, _) in stmt.op.blocks() {
        with_stack(|| inner.stmts.iter().for_each(|stmt| lengths(stmt, plan, found)));
    }
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

    fn piece(&mut self, cut: &Rc<Cut>, stmts: Range<usize>) -> FuncId {
        match self.jit.declare_anonymous_function(&self.piece_signature()) {
            Ok(function) => {
                self.pieces.push_back(Piece { function, cut: cut.clone(), stmts });
                function
            }
            Err(error) => gradus_source::bug!("a piece cannot be declared: {error}"),
        }
    }
}

impl Emitter<'_, '_, '_> {
    /// Writes the statements of a block as calls of pieces, if they are many, so that its results are held; gives their ownership back if they are not.
    pub(super) fn in_pieces(&mut self, block: &Block, ownership: Ownership) -> Result<Ownership, Ownership> {
        let pieces = pieces(&block.stmts, &self.lengths);
        if pieces.is_empty() {
            return Err(ownership);
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
                for var in operands(stmt, self.linker.plan) {
                    match made.get(&var) {
                        Some(there) if *there == number => {}
                        Some(_) => wait(var),
                        None if self.held.contains_key(&var) => {
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
        let ownership = RefCell::new(ownership);
        let recursive = self.recursive;
        let cut = Rc::new(Cut { stmts: block.stmts.clone(), ownership, places, addresses, recursive });
        for piece in pieces {
            let function = self.linker.piece(&cut, piece);
            let function = self.reference(function);
            let call = self.b.ins().call(function, &[self.thread, frame]);
            let code = self.b.inst_results(call)[0];
            self.hand_on(code);
        }
        for var in captured {
            if let Held::Sum(variable) = self.held(var) {
                let value = self.b.ins().load(machine_type(var.ty.scalar), plain(), frame, cut.places[&var]);
                self.b.def_var(variable, value);
            }
        }
        for var in results {
            self.fetch(var, &cut, frame);
        }
        let ownership = cut.ownership.borrow().clone();
        Ok(ownership)
    }

    /// The function of a piece.
    pub(super) fn piece(&mut self, piece: &Piece, params: &[Value]) {
        let [thread, frame] = *params else { gradus_source::bug!("a piece has two parameters") };
        let Piece { cut, stmts, .. } = piece;
        self.thread = thread;
        self.recursive = cut.recursive;
        let stmts_here = &cut.stmts[stmts.clone()];
        if let (true, Some(first)) = (cut.recursive, stmts_here.first()) {
            self.require_stack(first.span);
        }
        self.lengths.note(stmts_here);
        stmts_here.iter().for_each(|stmt| note_shared_sums(stmt, &mut self.shared_sums));
        let mut ownership = cut.ownership.borrow_mut();
        for (at, stmt) in stmts.clone().zip(stmts_here) {
            for var in operands(stmt, self.linker.plan) {
                if !self.held.contains_key(&var) && cut.places.contains_key(&var) {
                    self.fetch(var, cut, frame);
                }
            }
            ownership.start(at, stmt);
            self.stmt(stmt, &mut ownership);
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
        let Some(place) = cut.places.get(&var).copied() else {
            gradus_source::bug!("{} is not in the frame", var.name)
        };
        if cut.addresses.contains(&var) {
            let address = self.b.ins().load(types::I64, plain(), frame, place);
            self.held.insert(var, Held::SumAt(address));
            return;
        }
        let mut parts = Vec::new();
        for (ty, at) in frame_types(var).into_iter().zip((place..).step_by(8)) {
            parts.push(self.b.ins().load(ty, plain(), frame, at));
        }
        let held = match parts[..] {
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
        };
        self.held.insert(var, held);
    }
}

fn note_shared_sums(stmt: &Stmt, found: &mut FxHashSet<Var>) {
    if let Op::Call { args, .. } = &stmt.op {
        found.extend(args.iter().filter_map(|a| a.var()).filter(|v| is_sum(*v)));
    }
    stmt.op.blocks().iter().for_each(|(inner, _)| shared_sums(inner, found));
}
