//! Loops that are cut into chunks, as Cranelift code: a function for a range of iterations, and the call that runs it on all of them. See
//! [`crate::cores`].

use super::collected::Collected;
use super::emit::{machine_type, machine_types, plain, shared_sums, Array, Emitter, Held, Linker};
use super::same::Shared;
use super::waiting::all_plain;
use crate::cores::Chunked;
use crate::flow::*;
use crate::ownership::Ownership;
use crate::place::Places;
use crate::spread::spread;
use crate::steady::Length;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{types, AbiParam, InstBuilder, Signature, Value};
use cranelift_module::{FuncId, Module as _};
use gradus_runtime::chunks::{Loop, Shape, Sums, WORTH_CUTTING};
use gradus_runtime::slot::Kind;
use gradus_source::Span;
use std::mem::offset_of;
use std::sync::Arc;

/// A function that runs a range of iterations.
pub(super) struct Body {
    pub(super) function: FuncId,
    l: For,
    chunked: Chunked,
    /// What the loop collects.
    arrays: Vec<Var>,
    span: Span,
    /// Its places, if it has numbers of its own for them.
    pub(super) places: Option<Places>,
}

impl Body {
    pub(super) fn new(
        function: FuncId,
        l: For,
        chunked: &Chunked,
        arrays: Vec<Var>,
        span: Span,
        places: Option<Places>,
    ) -> Body {
        Body { function, l, chunked: chunked.clone(), arrays, span, places }
    }
}

impl Linker<'_> {
    /// `thread, outside, own, from, to -> failure number`, see [`gradus_runtime::chunks::Body`].
    pub(super) fn body_signature(&self) -> Signature {
        let mut signature = self.jit.make_signature();
        signature.params = vec![AbiParam::new(types::I64); 5];
        signature.returns.push(AbiParam::new(types::I32));
        signature
    }
}

impl Emitter<'_, '_, '_> {
    pub(super) fn length(&mut self, length: Length) -> Value {
        match length {
            Length::Number(atom) => self.number(atom),
            Length::Of(array, axis) => self.array(array).dims[axis as usize],
        }
    }

    /// The loop by a function that is written for it, in chunks if there is enough to do; where it stands, if there is not and its body is also written
    /// there.
    pub(super) fn chunked_loop(&mut self, l: &For, chunked: &Chunked, binds: &[Var], span: Span) {
        let count = self.number(l.count);
        let work = self.work(chunked, count);
        if chunked.once {
            let parts = self.run_loop(l, chunked, binds, [count, work], span);
            let places = self.places(binds);
            let others = self.leave_some(&parts, &places);
            return self.bind_or_wait(binds, &places, &others);
        }
        let least = self.b.ins().f64const(WORTH_CUTTING * self.linker.plan.least_work);
        let mut enough = self.b.ins().fcmp(FloatCC::GreaterThanOrEqual, work, least);
        for length in chunked.rows.iter().flatten() {
            let length = self.length(*length);
            let some = self.b.ins().icmp_imm_s(IntCC::SignedGreaterThan, length, 0);
            enough = self.b.ins().band(enough, some);
        }
        let (apart, here) = (self.b.create_block(), self.b.create_block());
        let on = self.meeting(binds);
        self.b.set_cold_block(apart);
        self.b.ins().brif(enough, apart, &[], here, &[]);
        self.b.switch_to_block(here);
        self.b.seal_block(here);
        self.whole_loop(l, binds, &mut Ownership::none(), span);
        let parts: Vec<Vec<Value>> = binds.iter().map(|v| self.parts((*v).into())).collect();
        self.arrive(&on, &parts);
        self.b.switch_to_block(apart);
        self.b.seal_block(apart);
        let parts = self.run_loop(l, chunked, binds, [count, work], span);
        self.arrive(&on, &parts);
        self.go_on_from(on, binds);
    }

    /// What all iterations cost.
    fn work(&mut self, chunked: &Chunked, count: Value) -> Value {
        let mut work = None;
        for (cost, factors) in &chunked.work {
            let mut product = self.b.ins().f64const(*cost);
            for factor in factors {
                let factor = self.length(*factor);
                let factor = self.b.ins().fcvt_from_sint(types::F64, factor);
                product = self.b.ins().fmul(product, factor);
            }
            work = Some(match work {
                None => product,
                Some(before) => self.b.ins().fadd(before, product),
            });
        }
        let each = work.unwrap_or_else(|| self.b.ins().f64const(1.0));
        let times = self.b.ins().fcvt_from_sint(types::F64, count);
        self.b.ins().fmul(times, each)
    }

    /// Runs the loop by its function; the machine values of each of its last state and of the arrays that it has filled.
    fn run_loop(
        &mut self,
        l: &For,
        chunked: &Chunked,
        binds: &[Var],
        [count, work]: [Value; 2],
        span: Span,
    ) -> Vec<Vec<Value>> {
        let (carried, arrays) = binds.split_at(l.carried.len());
        let filled = self.filled(arrays, chunked, count, span);
        let Shared { function, place, before } = self.linker.body(l, chunked, arrays, span);
        let outside = self.outside(chunked, &filled, [count, work], place);
        let (scalars, array_sums) = chunked.parted_sums();
        let words = scalars.len() + carried.len();
        // Where there is nothing to be put, any address will do.
        let own = if words > 0 { self.room(8 * words as u32) } else { outside };
        let states: Vec<i32> = (0..).step_by(8).skip(scalars.len()).take(carried.len()).collect();
        for ((_, init), offset) in l.carried.iter().zip(&states) {
            let init = self.number(*init);
            self.b.ins().store(plain(), init, own, *offset);
        }
        for (sum, offset) in scalars.iter().zip((0..).step_by(8)) {
            let value = match self.held(*sum) {
                Held::Sum(variable) => self.b.use_var(variable),
                Held::SumAt(address) => self.b.ins().load(types::F64, plain(), address, 0),
                Held::Array(_) | Held::Number(_) => gradus_source::bug!("{} is no sum", sum.name),
            };
            self.b.ins().store(plain(), value, own, offset);
        }
        let some = !array_sums.is_empty();
        let sums = if some { self.room(size_of::<Sums>() as u32 * array_sums.len() as u32) } else { outside };
        for (sum, offset) in array_sums.iter().zip((0..).step_by(size_of::<Sums>())) {
            let array = self.array(*sum);
            let size = self.count(&array.dims);
            self.b.ins().store(plain(), array.data, sums, offset + offset_of!(Sums, to) as i32);
            self.b.ins().store(plain(), size, sums, offset + offset_of!(Sums, count) as i32);
        }
        let function = self.reference(function);
        let function = self.b.ins().func_addr(types::I64, function);
        let code = self.runtime("gradus_run_loop", &[self.thread, function, outside, own, sums]);
        let number = self.b.ins().iadd_imm_s(code, 8 * before as i64);
        self.hand_on_as(code, number);
        for (sum, offset) in scalars.iter().zip((0..).step_by(8)) {
            let value = self.b.ins().load(types::F64, plain(), own, offset);
            match self.held(*sum) {
                Held::Sum(variable) => self.b.def_var(variable, value),
                Held::SumAt(address) => {
                    self.b.ins().store(plain(), value, address, 0);
                }
                Held::Array(_) | Held::Number(_) => gradus_source::bug!("{} is no sum", sum.name),
            }
        }
        let mut parts = Vec::new();
        for (bind, offset) in carried.iter().zip(states) {
            parts.push(vec![self.b.ins().load(machine_type(bind.ty.scalar), plain(), own, offset)]);
        }
        parts.extend(filled.iter().map(Array::parts));
        parts
    }

    /// The arrays that a loop fills.
    fn filled(&mut self, arrays: &[Var], chunked: &Chunked, count: Value, span: Span) -> Vec<Array> {
        if all_plain(arrays) {
            return self.new_arrays(arrays, count, span);
        }
        let mut filled = Vec::new();
        for (array, row) in arrays.iter().zip(&chunked.rows) {
            let mut dims = vec![count];
            for length in row {
                let length = self.length(*length);
                dims.push(self.if_some(count, length));
            }
            filled.push(self.new_array(dims, array.ty.scalar, span));
        }
        filled
    }

    /// Puts down the loop and what its body uses from outside: variables, arrays to be filled.
    fn outside(&mut self, chunked: &Chunked, filled: &[Array], [count, work]: [Value; 2], place: usize) -> Value {
        // Arrays are borrowed: their blocks are not counted, and never changed in place.
        let size = |var: &Var| if var.ty.is_array() { 1 + var.ty.rank as usize } else { 1 };
        let values: usize = chunked.outside.iter().map(size).sum::<usize>()
            + filled.iter().map(|array| 1 + array.dims.len()).sum::<usize>();
        let room = self.room((size_of::<Loop>() + 8 * values) as u32);
        let mut at = (size_of::<Loop>() as i32..).step_by(8);
        let mut put_all = |e: &mut Self, values: &[Value]| {
            for (value, at) in values.iter().zip(at.by_ref()) {
                e.b.ins().store(plain(), *value, room, at);
            }
        };
        for var in &chunked.outside {
            match self.held(*var) {
                Held::Array(array) => put_all(self, &borrowed(&array)),
                Held::Number(value) => put_all(self, &[value]),
                Held::Sum(_) | Held::SumAt(_) => gradus_source::bug!("a sum is no value"),
            }
        }
        filled.iter().for_each(|array| put_all(self, &borrowed(array)));
        let (scalars, arrays) = chunked.parted_sums();
        let shape = Arc::new(Shape {
            least: self.linker.plan.least_work,
            scalars: scalars.len() as i64,
            arrays: arrays.len() as i64,
            states: chunked.joins.len() as i64,
            joins: chunked.join_codes(),
            place: Kind::Check.at(place),
        });
        let address = Arc::as_ptr(&shape);
        self.linker.loops.push(shape);
        let shape = self.b.ins().iconst(types::I64, address as i64);
        let mut put = |value: Value, offset: usize| {
            self.b.ins().store(plain(), value, room, offset as i32);
        };
        put(count, offset_of!(Loop, count));
        put(work, offset_of!(Loop, work));
        put(shape, offset_of!(Loop, shape));
        room
    }

    /// The function that runs a range of iterations.
    pub(super) fn chunk_body(&mut self, body: &Body, params: &[Value]) {
        let Body { l, chunked, arrays, span, .. } = body;
        let [thread, outside, own, from, to] = *params else { gradus_source::bug!("a chunk has five parameters") };
        self.thread = thread;
        let cut = self.b.ins().load(types::I64, plain(), outside, offset_of!(Loop, cut) as i32);
        let mut at = size_of::<Loop>() as i32;
        for var in &chunked.outside {
            let held = self.borrow(outside, &mut at, *var);
            self.held.insert(*var, held);
        }
        let mut filled = Vec::new();
        for var in arrays {
            match self.borrow(outside, &mut at, *var) {
                Held::Array(array) => filled.push(array),
                Held::Number(_) | Held::Sum(_) | Held::SumAt(_) => gradus_source::bug!("{} is no array", var.name),
            }
        }
        shared_sums(&l.body, &mut self.shared_sums);
        self.insides.note(&l.body, self.linker.plan);
        let (scalars, array_sums) = chunked.parted_sums();
        let mut record = own;
        let mut in_registers = Vec::new();
        for sum in scalars {
            if self.shared_sums.contains(&sum) {
                self.held.insert(sum, Held::SumAt(record));
            } else {
                let variable = self.b.declare_var(types::F64);
                let value = self.b.ins().load(types::F64, plain(), record, 0);
                self.b.def_var(variable, value);
                self.held.insert(sum, Held::Sum(variable));
                in_registers.push((variable, record));
            }
            record = self.b.ins().iadd_imm_s(record, 8);
        }
        let (mut state, mut states) = (Vec::new(), Vec::new());
        for ((var, _), join) in l.carried.iter().zip(&chunked.joins) {
            let given = self.b.ins().load(machine_type(var.ty.scalar), plain(), record, 0);
            let neutral = self.number(join.neutral());
            state.push(self.b.ins().select(cut, neutral, given));
            states.push(record);
            record = self.b.ins().iadd_imm_s(record, 8);
        }
        for sum in array_sums {
            let given = self.array(sum);
            // A loop that is not cut adds to the accumulators themselves.
            let array = Array { data: self.b.ins().select(cut, record, given.data), ..given };
            let bytes = self.bytes(&array.dims, Scalar::Real);
            record = self.b.ins().iadd(record, bytes);
            self.held.insert(sum, Held::Array(array));
        }
        let (spread, rows) = spread(l);
        let into: Vec<Collected> =
            filled.into_iter().zip(&rows).map(|(array, row)| Collected::there(array, row)).collect();
        let ends = self.iterations(&spread, &into, &state, [from, to], *span);
        for (end, record) in ends.iter().zip(states) {
            self.b.ins().store(plain(), *end, record, 0);
        }
        for (variable, record) in in_registers {
            let value = self.b.use_var(variable);
            self.b.ins().store(plain(), value, record, 0);
        }
        self.finish();
    }

    /// A value from outside, as [`borrowed`] has left it.
    fn borrow(&mut self, outside: Value, at: &mut i32, var: Var) -> Held {
        let mut next = |e: &mut Self, ty| {
            let value = e.b.ins().load(ty, plain(), outside, *at);
            *at += 8;
            value
        };
        if !var.ty.is_array() {
            return Held::Number(next(self, machine_type(var.ty.scalar)));
        }
        let data = next(self, types::I64);
        let dims = machine_types(var.ty)[2..].iter().map(|ty| next(self, *ty)).collect();
        let block = self.b.ins().iconst(types::I64, 0);
        Held::Array(Array { data, block, dims, scalar: var.ty.scalar })
    }
}

/// What of an array goes to the chunks: not its block.
fn borrowed(array: &Array) -> Vec<Value> {
    [array.data].into_iter().chain(array.dims.iter().copied()).collect()
}
