//! Entry points: from the slots of the calling convention to a function's own parameters, and back.

use super::emit::{machine_type, plain, Array, Emitter, Held};
use crate::flow::*;
use crate::ownership::Ownership;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{types, InstBuilder, Value};
use gradus_runtime::slot::{Kind, Slot};
use gradus_source::Span;

const SLOT: i32 = size_of::<Slot>() as i32;
const DIMS: i32 = std::mem::offset_of!(Slot, dims) as i32;

impl Emitter<'_, '_, '_> {
    /// `inputs, outputs -> failure number`
    pub(super) fn entry(&mut self, id: FunctionId, inputs: Value, outputs: Value, can_fail: bool) {
        let module = self.linker.module;
        let function = module.function(id);
        self.thread = if can_fail { self.runtime("gradus_enter", &[]) } else { self.b.ins().iconst(types::I64, 0) };
        let mut operands: Vec<Atom> = Vec::new();
        for (i, param) in function.params.iter().enumerate() {
            let at = i as i32 * SLOT;
            let held = match param.ty.shape() {
                None => self.input(param.ty, inputs, at),
                Some(shape) => {
                    let slot = self.b.ins().iadd_imm_s(inputs, i64::from(at));
                    let parts = self.input_boxes(param.ty, shape, slot);
                    Held::of(param.ty, &parts)
                }
            };
            self.held.insert(*param, held);
            operands.push((*param).into());
        }
        let binds: Vec<Var> = function.results.iter().map(|t| Var::fresh("result", *t)).collect();
        self.call(id, &operands, &binds, &mut Ownership::none());
        for param in function.params.iter().filter(|v| v.ty.shape().is_some()) {
            let parts = self.parts((*param).into());
            self.drop_parts(param.ty, &parts);
        }
        self.outputs(function, &binds, outputs);
        if !module.shapes.is_empty() {
            self.runtime_effect("gradus_leave", &[self.thread]);
        }
        let fine = self.b.ins().iconst(types::I32, 0);
        self.b.ins().return_(&[fine]);

        self.b.switch_to_block(self.fail);
        self.b.set_cold_block(self.fail);
        let code = self.b.append_block_param(self.fail, types::I32);
        if can_fail {
            self.runtime_effect("gradus_abandon", &[self.thread]);
        }
        self.b.ins().return_(&[code]);
        self.b.seal_all_blocks();
    }

    fn input(&mut self, ty: Type, inputs: Value, at: i32) -> Held {
        if ty.is_array() {
            let data = self.b.ins().load(types::I64, plain(), inputs, at);
            let block = self.b.ins().iconst(types::I64, 0);
            let dims = (0..i32::from(ty.rank))
                .map(|axis| self.b.ins().load(types::I64, plain(), inputs, at + DIMS + 8 * axis))
                .collect();
            return Held::Array(Array { data, block, dims, scalar: ty.scalar });
        }
        Held::Number(match ty.scalar {
            Scalar::Real | Scalar::Int | Scalar::Box(_) => {
                self.b.ins().load(machine_type(ty.scalar), plain(), inputs, at)
            }
            Scalar::Bool => {
                let value = self.b.ins().load(types::I64, plain(), inputs, at);
                self.b.ins().icmp_imm_s(IntCC::NotEqual, value, 0)
            }
        })
    }

    /// Arrays are settled first, which can fail; then nothing can, and all outputs are written.
    fn outputs(&mut self, function: &Function, binds: &[Var], outputs: Value) {
        let span = function.body.stmts.last().map_or(Span::default(), |s| s.span);
        let mut settled = Vec::new();
        for var in binds.iter().filter(|v| v.ty.is_array() && v.ty.shape().is_none()) {
            let array = self.array(*var);
            let bytes = self.bytes(&array.dims, array.scalar);
            let block = self.runtime("gradus_settle", &[self.thread, array.block, array.data, bytes]);
            self.require(block, None, span, Kind::Memory);
            settled.push(block);
        }
        let mut settled = settled.into_iter();
        for (i, var) in binds.iter().enumerate() {
            let at = i as i32 * SLOT;
            if let Some(shape) = var.ty.shape() {
                let slot = self.b.ins().iadd_imm_s(outputs, i64::from(at));
                let parts = self.parts((*var).into());
                self.output_boxes(var.ty, shape, &parts, slot);
                self.drop_parts(var.ty, &parts);
                continue;
            }
            match self.held(*var) {
                Held::Array(array) => {
                    let block = settled.next().unwrap_or(array.block);
                    let slot = self.b.ins().iadd_imm_s(outputs, i64::from(at));
                    self.runtime_effect("gradus_hand_over", &[self.thread, block, slot]);
                    for (axis, dim) in (0_i32..).zip(&array.dims) {
                        self.b.ins().store(plain(), *dim, outputs, at + DIMS + 8 * axis);
                    }
                }
                Held::Number(value) => {
                    let value = match var.ty.scalar {
                        Scalar::Bool => self.b.ins().uextend(types::I64, value),
                        Scalar::Real | Scalar::Int | Scalar::Box(_) => value,
                    };
                    self.b.ins().store(plain(), value, outputs, at);
                }
                Held::Sum(_) | Held::SumAt(_) => gradus_source::bug!("an accumulator is a result"),
            }
        }
    }
}
