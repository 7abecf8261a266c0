//! The tape as Cranelift code.

use super::emit::{args, machine_types, plain, Emitter, Held};
use crate::flow::*;
use crate::ownership::Ownership;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{types, InstBuilder, MemFlagsData};
use gradus_runtime::memory::{TAPE_AT_OFFSET, TAPE_END_OFFSET};
use gradus_runtime::slot::Kind;
use gradus_source::Span;

/// Of memory that is there but need not be aligned.
fn unaligned() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}

impl Emitter<'_, '_, '_> {
    pub(super) fn push(&mut self, values: &[Atom], ownership: &mut Ownership, span: Span) {
        let all: Vec<Type> = values.iter().map(|a| a.ty()).collect();
        let layout = TapeLayout::of(&all);
        let bytes = layout.bytes as i64;
        let at = self.b.ins().load(types::I64, plain(), self.thread, TAPE_AT_OFFSET);
        let end = self.b.ins().load(types::I64, plain(), self.thread, TAPE_END_OFFSET);
        let next = self.b.ins().iadd_imm_s(at, bytes);
        let fits = self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, next, end);
        let more = self.b.create_block();
        self.b.set_cold_block(more);
        let (on, room) = self.block_with(&[types::I64]);
        self.b.ins().brif(fits, on, &args(&[at]), more, &[]);
        self.b.switch_to_block(more);
        self.b.seal_block(more);
        let bytes_value = self.b.ins().iconst(types::I64, bytes);
        let moved = self.runtime("gradus_more_tape", &[self.thread, bytes_value]);
        self.require(moved, None, span, Kind::Memory);
        self.b.ins().jump(on, &args(&[moved]));
        self.b.switch_to_block(on);
        self.b.seal_block(on);
        let to = room[0];
        for (value, place) in values.iter().zip(layout.places) {
            for (part, k) in self.take(*value, ownership).into_iter().zip(0..) {
                self.b.ins().store(unaligned(), part, to, place as i32 + 8 * k);
            }
        }
        let next = self.b.ins().iadd_imm_s(to, bytes);
        self.b.ins().store(plain(), next, self.thread, TAPE_AT_OFFSET);
    }

    pub(super) fn pop(&mut self, all: &[Type], binds: &[Var]) {
        let layout = TapeLayout::of(all);
        let at = self.b.ins().load(types::I64, plain(), self.thread, TAPE_AT_OFFSET);
        let from = self.b.ins().iadd_imm_s(at, -(layout.bytes as i64));
        self.b.ins().store(plain(), from, self.thread, TAPE_AT_OFFSET);
        for (var, place) in binds.iter().zip(layout.places) {
            let mut parts = Vec::new();
            for (ty, k) in machine_types(var.ty).into_iter().zip(0..) {
                parts.push(self.b.ins().load(ty, unaligned(), from, place as i32 + 8 * k));
            }
            self.held.insert(*var, Held::of(var.ty, &parts));
        }
    }
}
