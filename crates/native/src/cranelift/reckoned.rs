//! Whole numbers that code reckons with on its own account: sizes and places. What is known is computed here, and what a stretch of code has computed it
//! does not compute again: quick code is not simplified, and there is less of it to compile.

use super::emit::Emitter;
use cranelift_codegen::ir::{types, Block, InstBuilder, InstructionData, Opcode, Value, ValueDef};
use rustc_hash::FxHashMap;

/// What has been reckoned.
#[derive(Default)]
pub(super) struct Reckoned {
    /// By the first block of a stretch, all of whose blocks come after what was reckoned in it before.
    numbers: FxHashMap<(Block, Step), Value>,
    /// The first block of the stretch of others.
    first: FxHashMap<Block, Block>,
}

/// What gives a number.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Step {
    Known(i64),
    Sum(Value, Value),
    Product(Value, Value),
}

impl Emitter<'_, '_, '_> {
    pub(super) fn whole(&mut self, number: i64) -> Value {
        self.once(Step::Known(number))
    }

    /// The number that a value stands for, if it is the same in each run.
    pub(super) fn known(&self, value: Value) -> Option<i64> {
        let ValueDef::Result(instruction, _) = self.b.func.dfg.value_def(value) else { return None };
        match self.b.func.dfg.insts[instruction] {
            InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } => Some(imm.bits()),
            _ => None,
        }
    }

    pub(super) fn plus(&mut self, x: Value, y: Value) -> Value {
        match (self.known(x), self.known(y)) {
            (Some(0), _) => y,
            (_, Some(0)) => x,
            (Some(a), Some(b)) => self.whole(a.wrapping_add(b)),
            _ => self.once(Step::Sum(x, y)),
        }
    }

    pub(super) fn times(&mut self, x: Value, y: Value) -> Value {
        match (self.known(x), self.known(y)) {
            (Some(1), _) => y,
            (_, Some(1)) => x,
            (Some(a), Some(b)) => self.whole(a.wrapping_mul(b)),
            (Some(0), _) | (_, Some(0)) => self.whole(0),
            _ => self.once(Step::Product(x, y)),
        }
    }

    fn once(&mut self, step: Step) -> Value {
        let stretch = self.stretch();
        if let Some(value) = self.reckoned.numbers.get(&(stretch, step)) {
            return *value;
        }
        let value = match step {
            Step::Known(number) => self.b.ins().iconst(types::I64, number),
            Step::Sum(x, y) => self.b.ins().iadd(x, y),
            Step::Product(x, y) => match (self.power_of_two(x), self.power_of_two(y)) {
                (Some(power), _) => self.b.ins().ishl_imm_s(y, power),
                (_, Some(power)) => self.b.ins().ishl_imm_s(x, power),
                _ => self.b.ins().imul(x, y),
            },
        };
        self.reckoned.numbers.insert((stretch, step), value);
        value
    }

    /// The first block of the stretch that is being written.
    fn stretch(&self) -> Block {
        let block = self.b.current_block().unwrap_or_else(|| gradus_source::bug!("a number without a block"));
        self.reckoned.first.get(&block).copied().unwrap_or(block)
    }

    /// Goes on in a block into which there is no way but through this one.
    pub(super) fn go_through_to(&mut self, block: Block) {
        let stretch = self.stretch();
        self.reckoned.first.insert(block, stretch);
        self.b.switch_to_block(block);
        self.b.seal_block(block);
    }

    fn power_of_two(&self, value: Value) -> Option<i64> {
        let known = self.known(value).filter(|known| known.count_ones() == 1)?;
        Some(i64::from(known.trailing_zeros()))
    }
}
