//! The pieces of long blocks as functions. See [`crate::pieces`].

use super::emit::{machine_type, machine_types, plain, Emitter, Held, Linker};
use crate::flow::*;
use crate::ownership::Ownership;
use crate::pieces::{is_sum, Insides, Pieces, Sizes};
use cranelift_codegen::ir::{types, AbiParam, InstBuilder, Signature, Value};
use cranelift_module::{FuncId, Module as _};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::rc::Rc;

/// Short enough for the time of a register allocator not to be felt.
pub(super) const SIZES: Sizes = Sizes { long: 300, piece: 150, of_loop: 1 };

/// A block that is cut.
pub(super) struct Cut {
    /// The variables that wait in the frame, and where.
    places: FxHashMap<Var, i32>,
    /// Sums from around the block that are in memory: the frame has their addresses.
    addresses: FxHashSet<Var>,
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
        let Some(pieces) = self.insides.cut(block, self.linker.plan, |var| self.is_there(var)) else { return false };
        let Pieces { ranges, waiting, captured, results } = pieces;
        let (mut places, mut bytes) = (FxHashMap::default(), 0);
        for var in waiting {
            places.insert(var, bytes);
            bytes += 8 * frame_types(var).len() as i32;
        }
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
        for piece in ranges {
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
        let (recursive, insides) = (self.recursive, std::mem::replace(&mut self.insides, Insides::new(SIZES)));
        let shared_sums = std::mem::take(&mut self.shared_sums);
        (self.insides, self.shared_sums) = self.linker.write(id, signature, |emitter, params| {
            (emitter.recursive, emitter.insides, emitter.shared_sums) = (recursive, insides, shared_sums);
            emitter.piece_body(stmts, piece, cut, ownership, params);
            (std::mem::replace(&mut emitter.insides, Insides::new(SIZES)), std::mem::take(&mut emitter.shared_sums))
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
