//! A flow function as Cranelift code: how values are held, how functions are called, how failure leaves.

use super::chunks::Body;
use super::machine::Waiting;
use super::math;
use super::pieces::Cut;
use super::reckoned::Reckoned;
use super::same::Same;
use super::waiting::Place;
use crate::cores::Plan;
use crate::flow::*;
use crate::ownership::Ownership;
use crate::pieces::Insides;
use crate::place::Places;
use crate::sole::Sole;
use cranelift_codegen::ir::{
    self, types, AbiParam, BlockArg, FuncRef, InstBuilder, MemFlagsData, Signature, StackSlot, StackSlotData,
    StackSlotKind, Value,
};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use cranelift_jit::JITModule;
use cranelift_module::{FuncId, Linkage, Module as _};
use gradus_runtime::boxes::Shapes;
use gradus_runtime::chunks::Shape;
use gradus_runtime::slot::Kind;
use gradus_source::Span;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;
use std::sync::Arc;

/// Where a variable is.
#[derive(Clone)]
pub(super) enum Held {
    Number(Value),
    Array(Array),
    /// An accumulator of one number.
    Sum(Variable),
    /// An accumulator of one number that some call adds to: its address.
    SumAt(Value),
}

#[derive(Clone)]
pub(super) struct Array {
    pub(super) data: Value,
    pub(super) block: Value,
    pub(super) dims: Vec<Value>,
    pub(super) scalar: Scalar,
}

impl Held {
    /// A value of the type from its machine values.
    pub(super) fn of(ty: Type, values: &[Value]) -> Held {
        match values {
            [data, block, dims @ ..] if ty.is_array() => {
                Held::Array(Array { data: *data, block: *block, dims: dims.to_vec(), scalar: ty.scalar })
            }
            [value] => Held::Number(*value),
            _ => gradus_source::bug!("{} machine values for {ty:?}", values.len()),
        }
    }
}

impl Array {
    /// In the order of [`machine_types`].
    pub(super) fn parts(&self) -> Vec<Value> {
        [self.data, self.block].into_iter().chain(self.dims.iter().copied()).collect()
    }
}

/// The machine type of a number.
pub(super) fn machine_type(scalar: Scalar) -> types::Type {
    match scalar {
        Scalar::Real => types::F64,
        Scalar::Int | Scalar::Box(_) => types::I64,
        Scalar::Bool => types::I8,
    }
}

/// Bytes of an element.
pub(super) fn width(scalar: Scalar) -> i64 {
    match scalar {
        Scalar::Real | Scalar::Int | Scalar::Box(_) => 8,
        Scalar::Bool => 1,
    }
}

/// The machine values of a variable.
pub(super) fn machine_types(ty: Type) -> Vec<types::Type> {
    if ty.is_array() {
        vec![types::I64; 2 + ty.rank as usize]
    } else if ty.accumulator {
        vec![types::I64]
    } else {
        vec![machine_type(ty.scalar)]
    }
}

pub(super) fn args(values: &[Value]) -> Vec<BlockArg> {
    values.iter().map(|v| BlockArg::Value(*v)).collect()
}

/// Of memory that is there and aligned.
pub(super) fn plain() -> MemFlagsData {
    MemFlagsData::trusted()
}

/// What is shared by the functions of a module.
pub(super) struct Linker<'a> {
    pub(super) jit: JITModule,
    pub(super) module: &'a Module,
    pub(super) plan: &'a Plan,
    pub(super) sole: Sole,
    /// The functions that run chunks of loops and are still to be written.
    pub(super) bodies: Vec<Body>,
    /// Those that may run several loops, by what they do.
    pub(super) shared: FxHashMap<Same, FuncId>,
    /// What has been written, and memory that writers use in turn: one for each function that is written while another one is.
    pub(super) written: Arc<Waiting>,
    pub(super) contexts: Vec<FunctionBuilderContext>,
    /// The flow functions.
    pub(super) functions: Vec<FuncId>,
    /// The functions of the runtime, by symbol.
    pub(super) imports: FxHashMap<&'static str, FuncId>,
    pub(super) places: Places,
    pub(super) recursive: Vec<bool>,
    /// What entry points need to know of the program's cells.
    pub(super) shapes: Box<Shapes>,
    /// What the runtime needs to know of loops. The code has their addresses.
    pub(super) loops: Vec<Arc<Shape>>,
}

impl Linker<'_> {
    /// `thread, parameters, room for results -> failure number`
    pub(super) fn signature(&self, function: &Function) -> Signature {
        let mut signature = self.jit.make_signature();
        let params = function.params.iter().flat_map(|v| machine_types(v.ty));
        let all = std::iter::once(types::I64).chain(params).chain([types::I64]);
        signature.params = all.map(AbiParam::new).collect();
        signature.returns.push(AbiParam::new(types::I32));
        signature
    }

    pub(super) fn import(&mut self, name: &'static str) -> FuncId {
        if let Some(id) = self.imports.get(name) {
            return *id;
        }
        let (params, result) = math::signature(name);
        let mut signature = self.jit.make_signature();
        signature.params = params.iter().map(|t| AbiParam::new(*t)).collect();
        signature.returns = result.map(AbiParam::new).into_iter().collect();
        match self.jit.declare_function(name, Linkage::Import, &signature) {
            Ok(id) => {
                self.imports.insert(name, id);
                id
            }
            Err(error) => gradus_source::bug!("{name} cannot be declared: {error}"),
        }
    }
}

/// Writes one function.
pub(super) struct Emitter<'a, 'b, 'c> {
    pub(super) linker: &'a mut Linker<'c>,
    pub(super) b: FunctionBuilder<'b>,
    pub(super) held: FxHashMap<Var, Held>,
    pub(super) imported: FxHashMap<FuncId, FuncRef>,
    pub(super) thread: Value,
    /// Leaves the function with a failure number.
    pub(super) fail: ir::Block,
    /// Accumulators of one number that are handed to calls.
    pub(super) shared_sums: FxHashSet<Var>,
    /// Whether loops go on. That they do can be foreseen, and their next state should not wait for it.
    pub(super) ends: FxHashSet<Var>,
    pub(super) insides: Insides,
    /// Arrays that are in memory, if they are not held.
    pub(super) waiting: FxHashMap<Var, Place>,
    /// Arrays in whose place there may be others.
    pub(super) replaced: FxHashSet<Var>,
    /// Rows that the loop collecting their numbers can put in their places.
    pub(super) rows_at: FxHashMap<Var, Value>,
    /// Of a piece: where variables wait.
    pub(super) frame: Option<(Rc<Cut>, Value)>,
    /// Whether this is part of a function that can come to call itself.
    pub(super) recursive: bool,
    pub(super) reckoned: Reckoned,
}

impl Emitter<'_, '_, '_> {
    pub(super) fn function(&mut self, function: &Function, taken_over: &[Var], recursive: bool) {
        let entry = self.b.current_block().unwrap_or_else(|| gradus_source::bug!("a function without a block"));
        let params: Vec<Value> = self.b.block_params(entry).to_vec();
        let mut params = params.into_iter();
        let mut next = || params.next().unwrap_or_else(|| gradus_source::bug!("a parameter is missing"));
        self.thread = next();
        for var in &function.params {
            let values: Vec<Value> = machine_types(var.ty).iter().map(|_| next()).collect();
            let held = match values[..] {
                [address] if var.ty.accumulator && !var.ty.is_array() => Held::SumAt(address),
                _ => Held::of(var.ty, &values),
            };
            self.held.insert(*var, held);
        }
        let room = next();
        shared_sums(&function.body, &mut self.shared_sums);
        self.insides.note(&function.body, self.linker.plan);
        self.recursive = recursive;
        if recursive {
            self.start_of_recursive(function);
        }
        let results = self.block(&function.body, taken_over);
        let mut offset = 0;
        for value in results.iter().flatten() {
            self.b.ins().store(plain(), *value, room, offset);
            offset += 8;
        }
        self.finish();
    }

    /// The end of a function.
    pub(super) fn finish(&mut self) {
        let fine = self.b.ins().iconst(types::I32, 0);
        self.b.ins().return_(&[fine]);

        self.b.switch_to_block(self.fail);
        self.b.set_cold_block(self.fail);
        let code = self.b.append_block_param(self.fail, types::I32);
        self.b.ins().return_(&[code]);
        self.b.seal_all_blocks();
    }

    /// Fails while there is still room on the stack to do so.
    fn start_of_recursive(&mut self, function: &Function) {
        let span = function.body.stmts.first().map_or(Span::default(), |s| s.span);
        self.require_stack(span);
        let one = self.b.ins().iconst(types::I64, 1);
        self.charge(one, span);
    }

    pub(super) fn require_stack(&mut self, span: Span) {
        let end = gradus_runtime::memory::STACK_END_OFFSET;
        let end = self.b.ins().load(types::I64, plain(), self.thread, end);
        let here = self.b.ins().get_stack_pointer(types::I64);
        let fits = self.b.ins().icmp(ir::condcodes::IntCC::UnsignedGreaterThan, here, end);
        self.require(fits, None, span, Kind::Stack);
    }

    /// Counts steps, and looks at the limits from time to time.
    pub(super) fn charge(&mut self, steps: Value, span: Span) {
        let offset = gradus_runtime::memory::FUEL_OFFSET;
        let fuel = self.b.ins().load(types::I64, plain(), self.thread, offset);
        let fuel = self.b.ins().isub(fuel, steps);
        self.b.ins().store(plain(), fuel, self.thread, offset);
        let out = self.b.ins().icmp_imm_s(ir::condcodes::IntCC::SignedLessThan, fuel, 0);
        let (look, on) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(look);
        self.b.ins().brif(out, look, &[], on, &[]);
        self.b.switch_to_block(look);
        self.b.seal_block(look);
        let kind = self.runtime("gradus_look", &[self.thread]);
        self.go_on_unless(kind, on, span);
    }

    /// Leaves with a kind of failure, if there is one, else goes on in a block that has been jumped to.
    pub(super) fn go_on_unless(&mut self, kind: Value, on: ir::Block, span: Span) {
        let place = self.linker.places.number(None, span);
        let code = self.b.ins().iadd_imm_s(kind, i64::from(Kind::Check.at(place)));
        self.b.ins().brif(kind, self.fail, &[BlockArg::Value(code)], on, &[]);
        self.b.switch_to_block(on);
        self.b.seal_block(on);
    }

    /// Leaves with a failure unless the condition holds.
    pub(super) fn require(&mut self, cond: Value, failure: Option<Failure>, span: Span, kind: Kind) {
        let place = self.linker.places.number(failure, span);
        let code = self.b.ins().iconst(types::I32, i64::from(kind.at(place)));
        let on = self.b.create_block();
        self.b.ins().brif(cond, on, &[], self.fail, &[BlockArg::Value(code)]);
        self.go_through_to(on);
    }

    pub(super) fn reference(&mut self, id: FuncId) -> FuncRef {
        if let Some(reference) = self.imported.get(&id) {
            return *reference;
        }
        let reference = self.linker.jit.declare_func_in_func(id, self.b.func);
        self.imported.insert(id, reference);
        reference
    }

    /// Calls the runtime for a value.
    pub(super) fn runtime(&mut self, name: &'static str, args: &[Value]) -> Value {
        let id = self.linker.import(name);
        let reference = self.reference(id);
        let call = self.b.ins().call(reference, args);
        match self.b.inst_results(call) {
            [value] => *value,
            _ => gradus_source::bug!("{name} gives no value"),
        }
    }

    /// Calls the runtime for an effect.
    pub(super) fn runtime_effect(&mut self, name: &'static str, args: &[Value]) {
        let id = self.linker.import(name);
        let reference = self.reference(id);
        self.b.ins().call(reference, args);
    }

    pub(super) fn slot(&mut self, bytes: u32) -> StackSlot {
        self.b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 3))
    }

    pub(super) fn room(&mut self, bytes: u32) -> Value {
        let slot = self.slot(bytes);
        self.b.ins().stack_addr(types::I64, slot, 0)
    }

    pub(super) fn call(&mut self, function: FunctionId, operands: &[Atom], binds: &[Var], ownership: &mut Ownership) {
        let taken = self.linker.module.taken_over(function).len();
        let mut values = Vec::new();
        for (at, operand) in operands.iter().enumerate() {
            if at < taken {
                self.take(*operand, ownership);
            }
            match operand.var().map(|v| self.held(v)) {
                Some(Held::SumAt(address)) => values.push(address),
                Some(Held::Array(array)) => values.extend(array.parts()),
                Some(Held::Number(value)) => values.push(value),
                Some(Held::Sum(_)) => gradus_source::bug!("an accumulator in a register is handed to a call"),
                None => values.push(self.number(*operand)),
            }
        }
        let parts: Vec<Vec<types::Type>> = binds.iter().map(|v| machine_types(v.ty)).collect();
        let count: usize = parts.iter().map(Vec::len).sum();
        let room = if count == 0 { self.b.ins().iconst(types::I64, 0) } else { self.room(8 * count as u32) };
        self.call_raw(function, values, room);
        let mut offset = 0;
        for (var, types) in binds.iter().zip(parts) {
            let mut values = Vec::new();
            for ty in types {
                values.push(self.b.ins().load(ty, plain(), room, offset));
                offset += 8;
            }
            let held = Held::of(var.ty, &values);
            self.held.insert(*var, held);
        }
    }

    /// Calls a function with machine values; its results are in the room afterwards.
    pub(super) fn call_raw(&mut self, function: FunctionId, mut values: Vec<Value>, room: Value) {
        values.insert(0, self.thread);
        values.push(room);
        let id = self.linker.functions[function.0];
        let reference = self.reference(id);
        let call = self.b.ins().call(reference, &values);
        let code = self.b.inst_results(call)[0];
        self.hand_on(code);
    }

    /// Leaves with a failure number if there is one.
    pub(super) fn hand_on(&mut self, code: Value) {
        self.hand_on_as(code, code);
    }

    /// Leaves if a failure number is not 0, with another one.
    pub(super) fn hand_on_as(&mut self, code: Value, number: Value) {
        let on = self.b.create_block();
        self.b.ins().brif(code, self.fail, &[BlockArg::Value(number)], on, &[]);
        self.go_through_to(on);
    }

    pub(super) fn held(&mut self, var: Var) -> Held {
        if let (None, Some(place)) = (self.held.get(&var), self.waiting.get(&var)) {
            return self.fetched(var.ty, *place);
        }
        match (self.held.get(&var), &self.frame) {
            (Some(held), _) => held.clone(),
            (None, Some((cut, frame))) => self.in_frame(var, &cut.clone(), *frame),
            (None, None) => gradus_source::bug!("{} is used before it is there", var.name),
        }
    }

    /// The machine values of an operand.
    pub(super) fn parts(&mut self, atom: Atom) -> Vec<Value> {
        match atom.var().map(|v| self.held(v)) {
            Some(Held::Array(array)) => array.parts(),
            Some(Held::Number(value)) => vec![value],
            Some(Held::Sum(_) | Held::SumAt(_)) => gradus_source::bug!("an accumulator is read"),
            None => vec![self.number(atom)],
        }
    }

    pub(super) fn number(&mut self, atom: Atom) -> Value {
        match atom {
            Atom::Var(v) => match self.held(v) {
                Held::Number(value) => value,
                Held::Array(_) | Held::Sum(_) | Held::SumAt(_) => gradus_source::bug!("{} is no number", v.name),
            },
            Atom::Real(r) => self.b.ins().f64const(r),
            Atom::Int(i) => self.whole(i),
            Atom::Bool(b) => self.b.ins().iconst(types::I8, i64::from(b)),
            Atom::Nil(_) => self.whole(1),
        }
    }

    pub(super) fn array(&mut self, var: Var) -> Array {
        match self.held(var) {
            Held::Array(array) => array,
            Held::Number(_) | Held::Sum(_) | Held::SumAt(_) => gradus_source::bug!("{} is no array", var.name),
        }
    }

    /// A block with parameters for values of these types.
    pub(super) fn block_with(&mut self, types: &[types::Type]) -> (ir::Block, Vec<Value>) {
        let block = self.b.create_block();
        let values = types.iter().map(|t| self.b.append_block_param(block, *t)).collect();
        (block, values)
    }
}

/// The accumulators of one number that some call in a block adds to.
pub(super) fn shared_sums(block: &Block, found: &mut FxHashSet<Var>) {
    walk::for_each_stmt(block, &mut |stmt| {
        if let Op::Call { args, .. } = &stmt.op {
            found.extend(args.iter().filter_map(|a| a.var()).filter(|v| v.ty.accumulator && !v.ty.is_array()));
        }
    });
}
