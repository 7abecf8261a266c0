//! Loops that are cut into chunks, as Cranelift code: a function for a range of iterations, and the call that runs it on all of them. See
//! [`crate::cores`].

use super::emit::{args, machine_type, machine_types, plain, shared_sums, Array, Emitter, Held, Linker};
use crate::cores::Chunked;
use crate::flow::*;
use crate::ownership::Ownership;
use crate::steady::Length;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{types, AbiParam, InstBuilder, Signature, Value};
use cranelift_module::{FuncId, Linkage, Module as _};
use gradus_source::Span;

/// A function that runs a range of iterations.
pub(super) struct Body {
    pub(super) function: FuncId,
    l: For,
    chunked: Chunked,
    /// What the loop collects.
    arrays: Vec<Var>,
    span: Span,
}

impl Linker<'_> {
    /// `thread, outside, own, from, to -> failure number`, see [`gradus_runtime::chunks::Body`].
    pub(super) fn body_signature(&self) -> Signature {
        let mut signature = self.jit.make_signature();
        signature.params = vec![AbiParam::new(types::I64); 5];
        signature.returns.push(AbiParam::new(types::I32));
        signature
    }

    fn body(&mut self, l: &For, chunked: &Chunked, arrays: &[Var], span: Span) -> FuncId {
        let name = format!("gradus_body_{}", l.index.id);
        match self.jit.declare_function(&name, Linkage::Local, &self.body_signature()) {
            Ok(function) => {
                let (l, chunked, arrays) = (l.clone(), chunked.clone(), arrays.to_vec());
                self.bodies.push(Body { function, l, chunked, arrays, span });
                function
            }
            Err(error) => gradus_source::bug!("{name} cannot be declared: {error}"),
        }
    }
}

/// The sums of one number, then the arrays: in this order they stand in a chunk's record.
fn sums(chunked: &Chunked) -> (Vec<Var>, Vec<Var>) {
    chunked.sums.iter().copied().partition(|v| !v.ty.is_array())
}

impl Emitter<'_, '_, '_> {
    fn length(&mut self, length: Length) -> Value {
        match length {
            Length::Number(atom) => self.number(atom),
            Length::Of(array, axis) => self.array(array).dims[axis as usize],
        }
    }

    /// The loop in chunks if there is enough to do, as a whole otherwise.
    pub(super) fn chunked_loop(&mut self, l: &For, chunked: &Chunked, binds: &[Var], span: Span) {
        let count = self.number(l.count);
        let (scalars, arrays) = sums(chunked);
        let mut width = self.b.ins().iconst(types::I64, scalars.len() as i64);
        for array in &arrays {
            let dims = self.array(*array).dims;
            let size = self.count(&dims);
            width = self.b.ins().iadd(width, size);
        }
        let chunks = self.chunk_count(chunked, count, width);
        let (apart, whole) = (self.b.create_block(), self.b.create_block());
        let cut = self.b.ins().icmp_imm_s(IntCC::SignedGreaterThan, chunks, 1);
        if chunked.once {
            let on = self.b.create_block();
            let filled = self.filled(chunked, binds, count, span);
            let outside = self.outside(chunked, &filled, cut);
            let function = self.linker.body(l, chunked, binds, span);
            self.b.ins().brif(cut, apart, &[], whole, &[]);
            self.b.switch_to_block(whole);
            self.b.seal_block(whole);
            self.run_whole(function, outside, &scalars, count);
            self.b.ins().jump(on, &[]);
            self.b.set_cold_block(apart);
            self.b.switch_to_block(apart);
            self.b.seal_block(apart);
            self.run_chunks(function, outside, chunked, [count, chunks, width], span);
            self.go_on(on, &[]);
            self.b.seal_block(on);
            for (bind, array) in binds.iter().zip(filled) {
                self.held.insert(*bind, Held::Array(array));
            }
            return;
        }
        let (on, values) = self.block_with(&Self::types_of(binds));
        self.b.ins().brif(cut, apart, &[], whole, &[]);
        self.b.switch_to_block(whole);
        self.b.seal_block(whole);
        self.whole_loop(l, binds, &mut Ownership::none(), span);
        let parts: Vec<Value> = binds.iter().flat_map(|v| self.parts((*v).into())).collect();
        self.b.ins().jump(on, &args(&parts));
        self.b.set_cold_block(apart);
        self.b.switch_to_block(apart);
        self.b.seal_block(apart);
        let filled = self.filled(chunked, binds, count, span);
        let outside = self.outside(chunked, &filled, cut);
        let function = self.linker.body(l, chunked, binds, span);
        self.run_chunks(function, outside, chunked, [count, chunks, width], span);
        let parts: Vec<Value> = filled.iter().flat_map(Array::parts).collect();
        self.b.ins().jump(on, &args(&parts));
        self.b.switch_to_block(on);
        self.b.seal_block(on);
        self.bind_all(binds, &values);
    }

    /// Into how many chunks the loop is cut.
    fn chunk_count(&mut self, chunked: &Chunked, count: Value, width: Value) -> Value {
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
        let work = self.b.ins().fmul(times, each);
        let least = self.b.ins().f64const(self.linker.plan.least_work);
        let two = self.b.ins().f64const(2.0 * self.linker.plan.least_work);
        let mut enough = self.b.ins().fcmp(FloatCC::GreaterThanOrEqual, work, two);
        for length in chunked.rows.iter().flatten() {
            let length = self.length(*length);
            let some = self.b.ins().icmp_imm_s(IntCC::SignedGreaterThan, length, 0);
            enough = self.b.ins().band(enough, some);
        }
        let ask = self.b.create_block();
        self.b.set_cold_block(ask);
        let (on, values) = self.block_with(&[types::I64]);
        let one = self.b.ins().iconst(types::I64, 1);
        self.b.ins().brif(enough, ask, &[], on, &args(&[one]));
        self.b.switch_to_block(ask);
        self.b.seal_block(ask);
        let chunks = self.runtime("gradus_chunk_count", &[count, work, least, width]);
        self.go_on(on, &args(&[chunks]));
        self.b.seal_block(on);
        values[0]
    }

    /// The arrays that the loop will fill.
    fn filled(&mut self, chunked: &Chunked, binds: &[Var], count: Value, span: Span) -> Vec<Array> {
        let mut filled = Vec::new();
        for (bind, row) in binds.iter().zip(&chunked.rows) {
            let mut dims = vec![count];
            dims.extend(row.iter().map(|length| self.length(*length)).collect::<Vec<_>>());
            filled.push(self.new_array(dims, bind.ty.scalar, span));
        }
        filled
    }

    /// Puts down what the body uses from outside: whether the loop is cut, variables, arrays to be filled.
    fn outside(&mut self, chunked: &Chunked, filled: &[Array], cut: Value) -> Value {
        let mut outside = vec![cut];
        for var in &chunked.outside {
            match self.held(*var) {
                // Borrowed: not counted, and never changed in place.
                Held::Array(array) => outside.extend(borrowed(&array)),
                Held::Number(value) => outside.push(value),
                Held::Sum(_) | Held::SumAt(_) => gradus_source::bug!("a sum is no value"),
            }
        }
        filled.iter().for_each(|array| outside.extend(borrowed(array)));
        let room = self.room(8 * outside.len() as u32);
        for (at, value) in (0_i32..).zip(&outside) {
            self.b.ins().store(plain(), *value, room, 8 * at);
        }
        room
    }

    /// Runs the body of a loop on all iterations, with sums that go on from where they are.
    fn run_whole(&mut self, function: FuncId, outside: Value, scalars: &[Var], count: Value) {
        let own = self.room(8 * scalars.len().max(1) as u32);
        let offsets = || (0_i32..).step_by(8);
        for (sum, offset) in scalars.iter().zip(offsets()) {
            let value = match self.held(*sum) {
                Held::Sum(variable) => self.b.use_var(variable),
                Held::SumAt(address) => self.b.ins().load(types::F64, plain(), address, 0),
                Held::Array(_) | Held::Number(_) => gradus_source::bug!("{} is no sum", sum.name),
            };
            self.b.ins().store(plain(), value, own, offset);
        }
        let function = self.reference(function);
        let zero = self.b.ins().iconst(types::I64, 0);
        let call = self.b.ins().call(function, &[self.thread, outside, own, zero, count]);
        let code = self.b.inst_results(call)[0];
        self.hand_on(code);
        for (sum, offset) in scalars.iter().zip(offsets()) {
            let value = self.b.ins().load(types::F64, plain(), own, offset);
            match self.held(*sum) {
                Held::Sum(variable) => self.b.def_var(variable, value),
                Held::SumAt(address) => {
                    self.b.ins().store(plain(), value, address, 0);
                }
                Held::Array(_) | Held::Number(_) => gradus_source::bug!("{} is no sum", sum.name),
            }
        }
    }

    /// Runs the chunks and adds up what they have added.
    fn run_chunks(
        &mut self,
        function: FuncId,
        outside: Value,
        chunked: &Chunked,
        [count, chunks, width]: [Value; 3],
        span: Span,
    ) {
        let records = match chunked.sums.is_empty() {
            true => None,
            false => Some(self.new_array(vec![chunks, width], Scalar::Real, span)),
        };
        let data = records.as_ref().map_or_else(|| self.b.ins().iconst(types::I64, 0), |records| records.data);
        let function = self.reference(function);
        let function = self.b.ins().func_addr(types::I64, function);
        let code = self.runtime("gradus_run_chunks", &[self.thread, function, outside, count, chunks, data, width]);
        self.hand_on(code);
        // All threads together may have made too many steps.
        let none = self.b.ins().iconst(types::I64, 0);
        self.charge(none, span);
        if let Some(records) = records {
            self.merge_sums(chunked, &records, chunks, width);
            self.let_go(records.block);
        }
    }

    /// Adds what the chunks have added up.
    fn merge_sums(&mut self, chunked: &Chunked, records: &Array, chunks: Value, width: Value) {
        let (scalars, arrays) = sums(chunked);
        let mut from = records.data;
        for sum in scalars {
            let one = self.b.ins().iconst(types::I64, 1);
            match self.held(sum) {
                Held::SumAt(address) => {
                    self.runtime_effect("gradus_merge", &[address, from, width, chunks, one]);
                }
                Held::Sum(variable) => {
                    let room = self.room(8);
                    let before = self.b.use_var(variable);
                    self.b.ins().store(plain(), before, room, 0);
                    self.runtime_effect("gradus_merge", &[room, from, width, chunks, one]);
                    let after = self.b.ins().load(types::F64, plain(), room, 0);
                    self.b.def_var(variable, after);
                }
                Held::Array(_) | Held::Number(_) => gradus_source::bug!("{} is no sum", sum.name),
            }
            from = self.b.ins().iadd_imm_s(from, 8);
        }
        for sum in arrays {
            let array = self.array(sum);
            let count = self.count(&array.dims);
            self.runtime_effect("gradus_merge", &[array.data, from, width, chunks, count]);
            let bytes = self.bytes(&array.dims, Scalar::Real);
            from = self.b.ins().iadd(from, bytes);
        }
    }

    /// The function that runs a range of iterations.
    pub(super) fn chunk_body(&mut self, body: &Body, params: &[Value]) {
        let Body { l, chunked, arrays, span, .. } = body;
        let [thread, outside, own, from, to] = *params else { gradus_source::bug!("a chunk has five parameters") };
        self.thread = thread;
        let cut = self.b.ins().load(types::I8, plain(), outside, 0);
        let mut at = 8;
        for var in &chunked.outside {
            let held = self.borrow(outside, &mut at, *var);
            self.held.insert(*var, held);
        }
        let mut filled = Vec::new();
        for var in arrays {
            match self.borrow(outside, &mut at, *var) {
                Held::Array(array) => filled.push(Some(array)),
                Held::Number(_) | Held::Sum(_) | Held::SumAt(_) => gradus_source::bug!("{} is no array", var.name),
            }
        }
        shared_sums(&l.body, &mut self.shared_sums);
        let (scalars, array_sums) = sums(chunked);
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
        for sum in array_sums {
            let given = self.array(sum);
            // A loop that is not cut adds to the accumulators themselves.
            let array = Array { data: self.b.ins().select(cut, record, given.data), ..given };
            let bytes = self.bytes(&array.dims, Scalar::Real);
            record = self.b.ins().iadd(record, bytes);
            self.held.insert(sum, Held::Array(array));
        }
        self.iterations(l, arrays, &filled, &[], [from, to], *span);
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
