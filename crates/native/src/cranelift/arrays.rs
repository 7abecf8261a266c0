//! Array memory: making, holding, letting go, addresses.

use super::emit::{args, machine_type, plain, width, Array, Emitter, Held};
use crate::flow::*;
use crate::ownership::Ownership;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{types, BlockArg, InstBuilder, Value};
use gradus_runtime::memory::DATA;
use gradus_runtime::slot::Kind;
use gradus_source::Span;

/// How far, in bytes, what is read may be from an address.
const FURTHEST: i64 = 1 << 28;

fn is_box(scalar: Scalar) -> bool {
    matches!(scalar, Scalar::Box(_))
}

impl Emitter<'_, '_, '_> {
    /// The product of numbers that are not negative; more than any machine has if it does not fit.
    pub(super) fn size(&mut self, dims: &[Value], unit: i64) -> Value {
        let mut size = self.whole(unit);
        for factor in dims.iter().copied() {
            let both = self.known(size).zip(self.known(factor)).and_then(|(a, b)| a.checked_mul(b));
            size = match both {
                Some(known) => self.whole(known),
                None if self.known(size) == Some(1) => factor,
                None => {
                    let (product, overflow) = self.b.ins().smul_overflow(size, factor);
                    let most = self.whole(i64::MAX / 2);
                    self.b.ins().select(overflow, most, product)
                }
            };
        }
        size
    }

    /// The number of elements of an array that exists.
    pub(super) fn count(&mut self, dims: &[Value]) -> Value {
        let one = self.whole(1);
        dims.iter().fold(one, |count, dim| self.times(count, *dim))
    }

    /// The number of bytes of an array that exists.
    pub(super) fn bytes(&mut self, dims: &[Value], scalar: Scalar) -> Value {
        let unit = self.whole(width(scalar));
        dims.iter().rev().fold(unit, |bytes, dim| self.times(bytes, *dim))
    }

    /// A new array, of which nothing is set; boxes are nil.
    pub(super) fn new_array(&mut self, dims: Vec<Value>, scalar: Scalar, span: Span) -> Array {
        let bytes = self.size(&dims, width(scalar));
        let allocate = if is_box(scalar) { "gradus_allocate_boxes" } else { "gradus_allocate" };
        let block = self.runtime(allocate, &[self.thread, bytes]);
        self.require(block, None, span, Kind::Memory);
        let data = self.b.ins().iadd_imm_s(block, DATA);
        Array { data, block, dims, scalar }
    }

    /// A new array of numbers in the place of one that is let go next, if nobody else holds it.
    pub(super) fn new_for(&mut self, count: Value, old: &Array, span: Span) -> Array {
        let (counted, fresh) = (self.b.create_block(), self.b.create_block());
        let (on, made) = self.block_with(&[types::I64]);
        self.b.ins().brif(old.block, counted, &[], fresh, &[]);
        self.b.switch_to_block(counted);
        self.b.seal_block(counted);
        let holders = self.b.ins().load(types::I64, plain(), old.block, 0);
        let sole = self.b.ins().icmp_imm_s(IntCC::Equal, holders, 1);
        let start = self.b.ins().iadd_imm_s(old.block, DATA);
        let whole = self.b.ins().icmp(IntCC::Equal, start, old.data);
        let fits = self.b.ins().icmp(IntCC::Equal, count, old.dims[0]);
        let both = self.b.ins().band(sole, whole);
        let all = self.b.ins().band(both, fits);
        let reused = self.b.create_block();
        self.b.ins().brif(all, reused, &[], fresh, &[]);
        self.b.switch_to_block(reused);
        self.b.seal_block(reused);
        let holders = self.b.ins().iconst(types::I64, 2);
        self.b.ins().store(plain(), holders, old.block, 0);
        self.b.ins().jump(on, &args(&[old.block]));
        self.b.switch_to_block(fresh);
        self.b.seal_block(fresh);
        let new = self.new_array(vec![count], old.scalar, span);
        self.b.ins().jump(on, &args(&[new.block]));
        self.b.switch_to_block(on);
        self.b.seal_block(on);
        let data = self.b.ins().iadd_imm_s(made[0], DATA);
        Array { data, block: made[0], dims: vec![count], scalar: old.scalar }
    }

    /// An array, which is taken over if this is its last use, and another behind it.
    pub(super) fn extended(&mut self, array: Var, by: Var, ownership: &mut Ownership, span: Span) -> Array {
        let (first, second) = (self.array(array), self.array(by));
        let block = if ownership.hands_on(array) { first.block } else { self.whole(0) };
        let size = self.count(&first.dims);
        let count = self.plus(size, second.dims[0]);
        self.charge_large(count, span);
        let width = self.whole(width(first.scalar));
        let [bytes, more] = [size, second.dims[0]].map(|count| self.times(count, width));
        let extended = self.runtime("gradus_extend", &[self.thread, first.data, block, bytes, second.data, more]);
        self.require(extended, None, span, Kind::Memory);
        let data = self.b.ins().iadd_imm_s(extended, DATA);
        Array { data, block: extended, dims: vec![count], scalar: first.scalar }
    }

    pub(super) fn hold(&mut self, block: Value) {
        let (count, on) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(block, count, &[], on, &[]);
        self.b.switch_to_block(count);
        self.b.seal_block(count);
        let holders = self.b.ins().load(types::I64, plain(), block, 0);
        let holders = self.b.ins().iadd_imm_s(holders, 1);
        self.b.ins().store(plain(), holders, block, 0);
        self.b.ins().jump(on, &[]);
        self.b.switch_to_block(on);
        self.b.seal_block(on);
    }

    pub(super) fn let_go(&mut self, block: Value) {
        let (count, last, on) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        self.b.ins().brif(block, count, &[], on, &[]);
        self.b.switch_to_block(count);
        self.b.seal_block(count);
        let holders = self.b.ins().load(types::I64, plain(), block, 0);
        let holders = self.b.ins().iadd_imm_s(holders, -1);
        self.b.ins().store(plain(), holders, block, 0);
        self.b.ins().brif(holders, on, &[], last, &[]);
        self.b.switch_to_block(last);
        self.b.seal_block(last);
        self.runtime_effect("gradus_free", &[self.thread, block]);
        self.b.ins().jump(on, &[]);
        self.b.switch_to_block(on);
        self.b.seal_block(on);
    }

    /// An array that the operation takes over to change it.
    pub(super) fn own(&mut self, array: Atom, ownership: &mut Ownership, span: Span) -> Array {
        let parts = self.parts(array);
        let Held::Array(held) = Held::of(array.ty(), &parts) else { gradus_source::bug!("a change of no array") };
        match array.var() {
            Some(var) if !ownership.hands_on(var) => self.hold_parts(var.ty, &parts),
            Some(var) if self.linker.sole.contains(var) => return held,
            _ => {}
        }
        self.itself_or_copy(held, span)
    }

    /// The same array, which may now be changed: itself if nobody else holds it. Takes the array over.
    fn itself_or_copy(&mut self, array: Array, span: Span) -> Array {
        let (counted, shared) = (self.b.create_block(), self.b.create_block());
        let (on, owned) = self.block_with(&[types::I64, types::I64]);
        self.b.set_cold_block(shared);
        self.b.ins().brif(array.block, counted, &[], shared, &[]);
        self.b.switch_to_block(counted);
        self.b.seal_block(counted);
        let holders = self.b.ins().load(types::I64, plain(), array.block, 0);
        let sole = self.b.ins().icmp_imm_s(IntCC::Equal, holders, 1);
        self.b.ins().brif(sole, on, &args(&[array.data, array.block]), shared, &[]);
        self.b.switch_to_block(shared);
        self.b.seal_block(shared);
        let bytes = self.bytes(&array.dims, array.scalar);
        let copy = if is_box(array.scalar) { "gradus_copy_boxes" } else { "gradus_copy" };
        let fresh = self.runtime(copy, &[self.thread, array.data, bytes]);
        self.require(fresh, None, span, Kind::Memory);
        self.let_go(array.block);
        let data = self.b.ins().iadd_imm_s(fresh, DATA);
        self.b.ins().jump(on, &args(&[data, fresh]));
        self.b.switch_to_block(on);
        self.b.seal_block(on);
        Array { data: owned[0], block: owned[1], ..array }
    }

    /// An operand that the operation takes over: handed on if this is its last use, held once more otherwise.
    pub(super) fn take(&mut self, atom: Atom, ownership: &mut Ownership) -> Vec<Value> {
        let parts = self.parts(atom);
        if let Some(var) = atom.var().filter(|v| v.ty.is_counted()) {
            if !ownership.hands_on(var) {
                self.hold_parts(var.ty, &parts);
            }
        }
        parts
    }

    /// The address of the element or row at an index.
    pub(super) fn address(&mut self, array: &Array, index: &[Value]) -> Value {
        let (address, offset) = self.place(array, index);
        self.moved(address, offset)
    }

    pub(super) fn moved(&mut self, address: Value, offset: i32) -> Value {
        let offset = self.whole(i64::from(offset));
        self.plus(address, offset)
    }

    /// The same as an address and what is to be added to it, which leaves room for more. Each axis is added by itself, so that what an inner loop does not change can
    /// be computed outside of it.
    pub(super) fn place(&mut self, array: &Array, index: &[Value]) -> (Value, i32) {
        let (mut address, mut offset) = (array.data, 0);
        for (axis, i) in index.iter().enumerate() {
            let stride = self.bytes(&array.dims[axis + 1..], array.scalar);
            let step = self.times(*i, stride);
            match self.known(step).filter(|step| (0..FURTHEST).contains(step)) {
                Some(known) if offset < FURTHEST as i32 => offset += known as i32,
                _ => address = self.plus(address, step),
            }
        }
        (address, offset)
    }

    pub(super) fn load_element(&mut self, array: &Array, index: &[Value]) -> Value {
        let (address, offset) = self.place(array, index);
        self.b.ins().load(machine_type(array.scalar), plain(), address, offset)
    }

    /// Sets `count` elements.
    pub(super) fn fill(&mut self, array: &Array, value: Value) {
        let count = self.count(&array.dims);
        match array.scalar {
            Scalar::Bool => self.runtime_effect("gradus_fill_bools", &[array.data, count, value]),
            Scalar::Int => self.runtime_effect("gradus_fill", &[array.data, count, value]),
            Scalar::Box(_) => self.runtime_effect("gradus_fill_boxes", &[array.data, count, value]),
            Scalar::Real => {
                let bits = self.b.ins().bitcast(types::I64, plain(), value);
                self.runtime_effect("gradus_fill", &[array.data, count, bits]);
            }
        }
    }

    /// Replaces the element or row at an index.
    pub(super) fn store(&mut self, array: &Array, index: &[Value], value: Atom, ownership: &mut Ownership) {
        if value.ty().is_array() {
            let address = self.address(array, index);
            let from = self.parts(value)[0];
            self.copy_row(address, from, &array.dims[index.len()..], array.scalar);
        } else if is_box(array.scalar) {
            let address = self.address(array, index);
            let value = self.take(value, ownership)[0];
            self.put(address, value);
        } else {
            let (address, offset) = self.place(array, index);
            let value = self.number(value);
            self.b.ins().store(plain(), value, address, offset);
        }
    }

    /// Copies a row to an address.
    pub(super) fn copy_row(&mut self, to: Value, from: Value, dims: &[Value], scalar: Scalar) {
        if is_box(scalar) {
            let count = self.count(dims);
            self.runtime_effect("gradus_put_all", &[self.thread, to, from, count]);
        } else {
            let bytes = self.bytes(dims, scalar);
            self.runtime_effect("gradus_move", &[to, from, bytes]);
        }
    }

    /// Adds an array to the row at an index.
    pub(super) fn add_rows(&mut self, array: &Array, index: &[Value], value: Atom, span: Span) {
        let address = self.address(array, index);
        let from = self.parts(value)[0];
        let count = self.count(&array.dims[index.len()..]);
        if is_box(array.scalar) {
            self.merge_rows(address, from, count, value.ty(), span);
        } else {
            self.runtime_effect("gradus_add", &[address, from, count]);
        }
    }

    /// Arrays are regular: fails unless the rows have the same shape.
    pub(super) fn same_shape(&mut self, row: &[Value], other: &[Value], span: Span) {
        for (one, other) in row.iter().zip(other) {
            let same = self.b.ins().icmp(IntCC::Equal, *one, *other);
            self.require(same, Some(Failure::Rows), span, Kind::Check);
        }
    }

    pub(super) fn literal(&mut self, items: &[Atom], ty: Type, ownership: &mut Ownership, span: Span) -> Array {
        let mut dims = vec![self.b.ins().iconst(types::I64, items.len() as i64)];
        match items.first().filter(|a| a.ty().is_array()) {
            Some(first) => dims.extend(self.parts(*first)[2..].to_vec()),
            None => {
                for _ in 1..ty.rank {
                    dims.push(self.b.ins().iconst(types::I64, 0));
                }
            }
        }
        let array = self.new_array(dims, ty.scalar, span);
        for (i, item) in items.iter().enumerate() {
            if item.ty().is_array() {
                let row = self.parts(*item)[2..].to_vec();
                self.same_shape(&row, &array.dims[1..], span);
            }
            let i = self.whole(i as i64);
            self.store(&array, &[i], *item, ownership);
        }
        array
    }

    /// Jumps to a block that is then the current one.
    pub(super) fn go_on(&mut self, block: cranelift_codegen::ir::Block, values: &[BlockArg]) {
        self.b.ins().jump(block, values);
        self.b.switch_to_block(block);
    }
}
