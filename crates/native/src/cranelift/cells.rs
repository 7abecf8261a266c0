//! Boxes as Cranelift code: cells and their fields, holding and letting go, sums of boxes.

use super::emit::{args, machine_type, plain, Array, Emitter, Held};
use crate::flow::*;
use crate::ownership::Ownership;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{types, BlockArg, InstBuilder, Value};
use gradus_runtime::boxes::{Field, Fields, Kind as FieldKind, Shapes};
use gradus_runtime::cells::{immediate, waiting_offset, NIL, TAG_OFFSET, WORDS_OFFSET};
use gradus_runtime::slot::Kind;
use gradus_source::Span;

/// The cells of a program, for those that write them out and read them in.
pub(super) fn shapes(module: &Module) -> Shapes {
    let fields = |(tag, types): (usize, &Vec<Type>)| {
        let layout = CellLayout::of(types);
        let field = |(ty, place): (&Type, &Place)| Field {
            kind: match ty.scalar {
                Scalar::Real | Scalar::Int => FieldKind::Word,
                Scalar::Bool => FieldKind::Bool,
                Scalar::Box(shape) => FieldKind::Box(shape.0 as usize),
            },
            rank: ty.rank as usize,
            at: place.at,
            rest: place.rest,
        };
        Fields::new(tag, types.iter().zip(&layout.places).map(field).collect())
    };
    Shapes(module.shapes.iter().map(|shape| shape.cells.iter().enumerate().map(fields).collect()).collect())
}

fn offset(word: usize) -> i32 {
    WORDS_OFFSET + 8 * word as i32
}

impl Emitter<'_, '_, '_> {
    /// Holds an array or a box once more.
    pub(super) fn hold_parts(&mut self, ty: Type, parts: &[Value]) {
        if ty.is_array() {
            self.hold(parts[1]);
        } else {
            self.hold_cell(parts[0]);
        }
    }

    pub(super) fn drop_parts(&mut self, ty: Type, parts: &[Value]) {
        if ty.is_array() {
            self.let_go(parts[1]);
        } else {
            self.drop_cell(parts[0]);
        }
    }

    /// Goes to a new block if this is a cell; the other block is where both ways meet.
    fn if_cell(&mut self, cell: Value) -> cranelift_codegen::ir::Block {
        let (yes, on) = (self.b.create_block(), self.b.create_block());
        let bit = self.b.ins().band_imm_s(cell, 1);
        self.b.ins().brif(bit, on, &[], yes, &[]);
        self.b.switch_to_block(yes);
        self.b.seal_block(yes);
        on
    }

    pub(super) fn hold_cell(&mut self, cell: Value) {
        let on = self.if_cell(cell);
        let holders = self.b.ins().load(types::I64, plain(), cell, 0);
        let holders = self.b.ins().iadd_imm_s(holders, 1);
        self.b.ins().store(plain(), holders, cell, 0);
        self.go_on(on, &[]);
        self.b.seal_block(on);
    }

    pub(super) fn drop_cell(&mut self, cell: Value) {
        let on = self.if_cell(cell);
        let last = self.b.create_block();
        let holders = self.b.ins().load(types::I64, plain(), cell, 0);
        let holders = self.b.ins().iadd_imm_s(holders, -1);
        self.b.ins().store(plain(), holders, cell, 0);
        self.b.ins().brif(holders, on, &[], last, &[]);
        self.b.switch_to_block(last);
        self.b.seal_block(last);
        // The count is the end of the list of what is to be freed.
        self.runtime_effect("gradus_free_cell", &[self.thread, cell]);
        self.go_on(on, &[]);
        self.b.seal_block(on);
    }

    pub(super) fn tag(&mut self, cell: Value) -> Value {
        let cell_block = self.b.create_block();
        let (on, values) = self.block_with(&[types::I64]);
        let half = self.b.ins().sshr_imm_s(cell, 1);
        let immediate = self.b.ins().iadd_imm_s(half, -1);
        let bit = self.b.ins().band_imm_s(cell, 1);
        self.b.ins().brif(bit, on, &[BlockArg::Value(immediate)], cell_block, &[]);
        self.b.switch_to_block(cell_block);
        self.b.seal_block(cell_block);
        let tag = self.b.ins().uload16(types::I64, plain(), cell, TAG_OFFSET);
        self.go_on(on, &args(&[tag]));
        self.b.seal_block(on);
        values[0]
    }

    pub(super) fn cell(&mut self, tag: usize, fields: &[Atom], ownership: &mut Ownership, span: Span) -> Value {
        if fields.is_empty() {
            return self.b.ins().iconst(types::I64, immediate(tag as i64));
        }
        let types: Vec<Type> = fields.iter().map(|a| a.ty()).collect();
        let layout = CellLayout::of(&types);
        let cell = self.new_cell(tag, &layout, span);
        for ((field, ty), place) in fields.iter().zip(&types).zip(&layout.places) {
            let parts = self.take(*field, ownership);
            if ty.is_array() {
                self.b.ins().store(plain(), parts[1], cell, offset(place.at));
                self.b.ins().store(plain(), parts[0], cell, offset(place.rest));
                for (axis, dim) in parts[2..].iter().enumerate() {
                    self.b.ins().store(plain(), *dim, cell, offset(place.rest + 1 + axis));
                }
            } else {
                let word =
                    if ty.scalar == Scalar::Bool { self.b.ins().uextend(types::I64, parts[0]) } else { parts[0] };
                self.b.ins().store(plain(), word, cell, offset(place.at));
            }
        }
        cell
    }

    /// A cell that waits, if there is one of the size, or else from the runtime.
    fn new_cell(&mut self, tag: usize, layout: &CellLayout, span: Span) -> Value {
        let header = [tag, layout.boxes, layout.blocks, layout.words];
        // As `gradus_runtime::cells::Header` lies in memory.
        let header = header.iter().rev().fold(0_u64, |word, part| word << 16 | (*part as u64 & 0xffff));
        let header = self.b.ins().iconst(types::I64, header as i64);
        let waiting = waiting_offset(layout.words).map(|list| {
            let [waits, none] = [self.b.create_block(), self.b.create_block()];
            let (on, cell) = self.block_with(&[types::I64]);
            let first = self.b.ins().load(types::I64, plain(), self.thread, list);
            self.b.ins().brif(first, waits, &[], none, &[]);
            self.b.switch_to_block(waits);
            self.b.seal_block(waits);
            let next = self.b.ins().load(types::I64, plain(), first, 0);
            self.b.ins().store(plain(), next, self.thread, list);
            let one = self.b.ins().iconst(types::I64, 1);
            self.b.ins().store(plain(), one, first, 0);
            self.b.ins().store(plain(), header, first, TAG_OFFSET);
            self.b.ins().jump(on, &args(&[first]));
            self.b.switch_to_block(none);
            self.b.seal_block(none);
            (on, cell[0])
        });
        let fresh = self.runtime("gradus_new_cell", &[self.thread, header]);
        self.require(fresh, None, span, Kind::Memory);
        match waiting {
            None => fresh,
            Some((on, cell)) => {
                self.go_on(on, &args(&[fresh]));
                self.b.seal_block(on);
                cell
            }
        }
    }

    /// The fields of a cell. Those that it outlives are not held, and those that nobody uses not even read. Of a cell that is not used any more they are
    /// taken over, if nobody else holds it.
    pub(super) fn unpack(&mut self, cell: Atom, binds: &[Var], ownership: &mut Ownership) {
        let types: Vec<Type> = binds.iter().map(|v| v.ty).collect();
        let layout = CellLayout::of(&types);
        let emptied = cell.var().is_some_and(|v| ownership.hands_on(v));
        let cell = self.number(cell);
        let (mut wanted, mut unwanted) = (Vec::new(), Vec::new());
        for (bind, place) in binds.iter().zip(&layout.places) {
            let unused = ownership.is_unused(*bind);
            if unused && !(emptied && bind.ty.is_counted()) {
                continue;
            }
            let mut parts = Vec::new();
            if bind.ty.is_array() {
                parts.push(self.b.ins().load(types::I64, plain(), cell, offset(place.rest)));
                parts.push(self.b.ins().load(types::I64, plain(), cell, offset(place.at)));
                for axis in 0..bind.ty.rank as usize {
                    parts.push(self.b.ins().load(types::I64, plain(), cell, offset(place.rest + 1 + axis)));
                }
            } else if bind.ty.scalar == Scalar::Bool {
                let word = self.b.ins().load(types::I64, plain(), cell, offset(place.at));
                parts.push(self.b.ins().ireduce(types::I8, word));
            } else {
                parts.push(self.b.ins().load(machine_type(bind.ty.scalar), plain(), cell, offset(place.at)));
            }
            self.held.insert(*bind, Held::of(bind.ty, &parts));
            match bind.ty.is_counted() {
                true if unused => unwanted.push((bind.ty, parts)),
                true if emptied => wanted.push((bind.ty, parts)),
                true if ownership.holds(*bind) => self.hold_parts(bind.ty, &parts),
                _ => {}
            }
        }
        if emptied {
            self.empty(cell, layout.words, &wanted, &unwanted);
        }
    }

    /// Where a field lies.
    pub(super) fn hole(&mut self, cell: Var, tag: usize, field: usize) -> Value {
        let at = offset(self.linker.module.place(cell, tag, field));
        let cell = self.number(cell.into());
        self.b.ins().iadd_imm_s(cell, i64::from(at))
    }

    /// Lets go of a cell whose fields have been read, as far as they are wanted, to be held.
    fn empty(&mut self, cell: Value, words: usize, wanted: &[(Type, Vec<Value>)], unwanted: &[(Type, Vec<Value>)]) {
        let [sole, shared, on] = [self.b.create_block(), self.b.create_block(), self.b.create_block()];
        let holders = self.b.ins().load(types::I64, plain(), cell, 0);
        let is_sole = self.b.ins().icmp_imm_s(IntCC::Equal, holders, 1);
        self.b.ins().brif(is_sole, sole, &[], shared, &[]);
        self.b.switch_to_block(sole);
        self.b.seal_block(sole);
        unwanted.iter().for_each(|(ty, parts)| self.drop_parts(*ty, parts));
        // Larger ones wait for the end of the call.
        if let Some(list) = waiting_offset(words) {
            let first = self.b.ins().load(types::I64, plain(), self.thread, list);
            self.b.ins().store(plain(), first, cell, 0);
            self.b.ins().store(plain(), cell, self.thread, list);
        }
        self.b.ins().jump(on, &[]);
        self.b.switch_to_block(shared);
        self.b.seal_block(shared);
        wanted.iter().for_each(|(ty, parts)| self.hold_parts(*ty, parts));
        let holders = self.b.ins().iadd_imm_s(holders, -1);
        self.b.ins().store(plain(), holders, cell, 0);
        self.go_on(on, &[]);
        self.b.seal_block(on);
    }

    /// Replaces the box at an address by another one, which the caller holds.
    pub(super) fn put(&mut self, address: Value, cell: Value) {
        let old = self.b.ins().load(types::I64, plain(), address, 0);
        self.b.ins().store(plain(), cell, address, 0);
        self.drop_cell(old);
    }

    /// Adds a box, which is taken over, to the one at an address.
    pub(super) fn merge_at(&mut self, address: Value, value: Value, shape: Option<ShapeId>) {
        let old = self.b.ins().load(types::I64, plain(), address, 0);
        let nil = self.b.ins().iconst(types::I64, NIL);
        self.b.ins().store(plain(), nil, address, 0);
        let sum = self.merged(shape, old, value);
        self.b.ins().store(plain(), sum, address, 0);
    }

    /// The sum of two boxes of a linear shape, which are taken over. The first is often nil, and then nothing is called.
    pub(super) fn merged(&mut self, shape: Option<ShapeId>, a: Value, b: Value) -> Value {
        let merge = shape.and_then(|s| self.linker.module.shape(s).merge);
        let Some(merge) = merge else { gradus_source::bug!("boxes are added that have no sum") };
        let both = self.b.create_block();
        let (on, sum) = self.block_with(&[types::I64]);
        let is_nil = self.b.ins().icmp_imm_s(IntCC::Equal, a, NIL);
        self.b.ins().brif(is_nil, on, &args(&[b]), both, &[]);
        self.b.switch_to_block(both);
        self.b.seal_block(both);
        let room = self.room(8);
        self.call_raw(merge, vec![a, b], room);
        let result = self.b.ins().load(types::I64, plain(), room, 0);
        self.go_on(on, &args(&[result]));
        self.b.seal_block(on);
        sum[0]
    }

    /// Adds boxes to the row of an accumulator at an address.
    pub(super) fn merge_rows(&mut self, to: Value, from: Value, count: Value, ty: Type, span: Span) {
        let zero = self.b.ins().iconst(types::I64, 0);
        self.counted(zero, count, false, false, &[], span, |e, index, _| {
            let step = e.b.ins().ishl_imm_s(index, 3);
            let (place, other) = (e.b.ins().iadd(to, step), e.b.ins().iadd(from, step));
            let value = e.b.ins().load(types::I64, plain(), other, 0);
            e.hold_cell(value);
            e.merge_at(place, value, ty.shape());
            Vec::new()
        });
    }

    pub(super) fn digits(&mut self, value: Atom, y: Var, span: Span) -> Array {
        let value = self.number(value);
        let room = self.room(8 * 400);
        let count = self.runtime("gradus_digits", &[value, room]);
        let array = self.new_array(vec![count], y.ty.scalar, span);
        let bytes = self.bytes(&array.dims, y.ty.scalar);
        self.runtime_effect("gradus_move", &[array.data, room, bytes]);
        array
    }

    /// Reads a box or an array of boxes in.
    pub(super) fn input_boxes(&mut self, ty: Type, shape: ShapeId, slot: Value) -> Vec<Value> {
        let count = if ty.is_array() { 2 + ty.rank as usize } else { 1 };
        let room = self.room(8 * count as u32);
        let failed = self.boxes("gradus_input_boxes", ty, shape, slot, room);
        let fine = self.b.ins().icmp_imm_s(IntCC::Equal, failed, 0);
        self.require(fine, None, Span::default(), Kind::Memory);
        (0..count).map(|i| self.b.ins().load(types::I64, plain(), room, 8 * i as i32)).collect()
    }

    /// Writes a box or an array of boxes out.
    pub(super) fn output_boxes(&mut self, ty: Type, shape: ShapeId, parts: &[Value], slot: Value) {
        // Of an array: its data and dimensions.
        let shown: Vec<Value> = parts.iter().enumerate().filter(|(i, _)| *i != 1).map(|(_, v)| *v).collect();
        let room = self.room(8 * shown.len() as u32);
        for (i, value) in shown.iter().enumerate() {
            self.b.ins().store(plain(), *value, room, 8 * i as i32);
        }
        let failed = self.boxes("gradus_output_boxes", ty, shape, slot, room);
        let fine = self.b.ins().icmp_imm_s(IntCC::Equal, failed, 0);
        self.require(fine, None, Span::default(), Kind::Memory);
    }

    fn boxes(&mut self, name: &'static str, ty: Type, shape: ShapeId, slot: Value, room: Value) -> Value {
        let shapes: *const Shapes = &*self.linker.shapes;
        let shapes = self.b.ins().iconst(types::I64, shapes as i64);
        let rank = self.b.ins().iconst(types::I64, i64::from(ty.rank));
        let shape = self.b.ins().iconst(types::I64, i64::from(shape.0));
        self.runtime(name, &[self.thread, slot, shapes, rank, shape, room])
    }
}
