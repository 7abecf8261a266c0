//! Arrays that wait in memory. Loops with many arrays as state, and branches that give many, would have several values for each of them in every block that they go
//! through: more than there are registers, and whoever allocates these would take most of the time to find that out. They wait on the stack instead, and are
//! fetched where they are used.

use super::emit::{args, machine_types, plain, Array, Emitter, Held};
use crate::flow::*;
use cranelift_codegen::ir::{self, types, InstBuilder, StackSlot, Value};
use gradus_core::traverse::with_stack;
use gradus_runtime::memory::DATA;
use gradus_runtime::slot::Kind;
use gradus_source::Span;

/// So many machine values of arrays are few enough for registers.
const FEW: usize = 12;
/// So many arrays are made one by one.
const SINGLE: usize = 3;

/// Where the machine values of an array wait: from so many bytes on, in the order of [`machine_types`].
#[derive(Clone, Copy)]
pub(super) struct Place {
    slot: StackSlot,
    at: i32,
}

/// A block to which several ways lead, each with values for some variables.
pub(super) struct Meeting {
    block: ir::Block,
    values: Vec<Value>,
    places: Vec<Option<Place>>,
}

impl Emitter<'_, '_, '_> {
    /// Places for those variables that are arrays, if there are many.
    pub(super) fn places(&mut self, vars: &[Var]) -> Vec<Option<Place>> {
        let arrays = vars.iter().filter(|v| v.ty.is_array());
        let values: usize = arrays.map(|v| machine_types(v.ty).len()).sum();
        if values <= FEW {
            return vec![None; vars.len()];
        }
        let slot = self.slot(8 * values as u32);
        let mut at = 0;
        let mut place = |var: &Var| {
            let here = Place { slot, at };
            at += 8 * machine_types(var.ty).len() as i32;
            here
        };
        vars.iter().map(|var| var.ty.is_array().then(|| place(var))).collect()
    }

    /// Leaves the machine values of an array in its place.
    pub(super) fn leave(&mut self, parts: &[Value], place: Place) {
        let room = self.b.ins().stack_addr(types::I64, place.slot, 0);
        for (part, at) in parts.iter().zip((place.at..).step_by(8)) {
            self.b.ins().store(plain(), *part, room, at);
        }
    }

    /// The machine values of an array that waits.
    pub(super) fn fetched(&mut self, ty: Type, place: Place) -> Held {
        let room = self.b.ins().stack_addr(types::I64, place.slot, 0);
        let mut parts = Vec::new();
        for (part, at) in machine_types(ty).into_iter().zip((place.at..).step_by(8)) {
            parts.push(self.b.ins().load(part, plain(), room, at));
        }
        Held::of(ty, &parts)
    }

    /// Fetches what waits for the body of an innermost loop, which would do so in each iteration; gives what it was.
    pub(super) fn fetch_for(&mut self, body: &Block, carried: &[(Var, Atom)]) -> Vec<Var> {
        let mut wanted = Vec::new();
        if self.waiting.is_empty() || !is_innermost(body, &mut wanted) {
            return Vec::new();
        }
        wanted.retain(|v| self.waiting.contains_key(v) && carried.iter().all(|(state, _)| state != v));
        wanted.retain(|v| !self.held.contains_key(v));
        wanted.sort_unstable_by_key(|v| v.id);
        wanted.dedup();
        for var in &wanted {
            let held = self.held(*var);
            self.held.insert(*var, held);
        }
        wanted
    }

    /// After the loop.
    pub(super) fn forget(&mut self, fetched: &[Var]) {
        for var in fetched {
            self.held.remove(var);
        }
    }

    /// From here on the variable is at the place.
    pub(super) fn waits(&mut self, var: Var, place: Place) {
        self.held.remove(&var);
        self.waiting.insert(var, place);
    }

    /// Gives variables machine values, which stand in order, but for those that wait.
    pub(super) fn bind_or_wait(&mut self, vars: &[Var], places: &[Option<Place>], values: &[Value]) {
        let here: Vec<Var> = vars.iter().zip(places).filter(|(_, place)| place.is_none()).map(|(v, _)| *v).collect();
        self.bind_all(&here, values);
        for (var, place) in vars.iter().zip(places) {
            if let Some(place) = place {
                self.waits(*var, *place);
            }
        }
    }

    /// Machine values for each variable: leaves those of variables that wait, and gives the others in order. All are known before the first is left, for some may come
    /// from places of others.
    pub(super) fn leave_some(&mut self, parts: &[Vec<Value>], places: &[Option<Place>]) -> Vec<Value> {
        let mut others = Vec::new();
        for (parts, place) in parts.iter().zip(places) {
            match place {
                Some(place) => self.leave(parts, *place),
                None => others.extend(parts),
            }
        }
        others
    }

    pub(super) fn meeting(&mut self, binds: &[Var]) -> Meeting {
        let places = self.places(binds);
        let here: Vec<Var> = binds.iter().zip(&places).filter(|(_, place)| place.is_none()).map(|(v, _)| *v).collect();
        let (block, values) = self.block_with(&Self::types_of(&here));
        Meeting { block, values, places }
    }

    /// The end of a way.
    pub(super) fn arrive(&mut self, meeting: &Meeting, parts: &[Vec<Value>]) {
        let values = self.leave_some(parts, &meeting.places);
        self.b.ins().jump(meeting.block, &args(&values));
    }

    /// After all ways.
    pub(super) fn go_on_from(&mut self, meeting: Meeting, binds: &[Var]) {
        self.b.switch_to_block(meeting.block);
        self.b.seal_block(meeting.block);
        self.bind_or_wait(binds, &meeting.places, &meeting.values);
    }

    /// New arrays of one length, which are all plain. Several are made by one call.
    pub(super) fn new_arrays(&mut self, arrays: &[Var], length: Value, span: Span) -> Vec<Array> {
        if arrays.len() <= SINGLE {
            return arrays.iter().map(|array| self.new_array(vec![length], array.ty.scalar, span)).collect();
        }
        let bytes = self.size(&[length], 8);
        let number = self.b.ins().iconst(types::I64, arrays.len() as i64);
        let room = self.room(8 * arrays.len() as u32);
        let made = self.runtime("gradus_allocate_several", &[self.thread, bytes, number, room]);
        self.require(made, None, span, Kind::Memory);
        let mut new = Vec::new();
        for (array, at) in arrays.iter().zip((0..).step_by(8)) {
            let block = self.b.ins().load(types::I64, plain(), room, at);
            let data = self.b.ins().iadd_imm_s(block, DATA);
            new.push(Array { data, block, dims: vec![length], scalar: array.ty.scalar });
        }
        new
    }
}

/// Whether a block has no loops, and what it uses.
fn is_innermost(block: &Block, uses: &mut Vec<Var>) -> bool {
    with_stack(|| {
        block.stmts.iter().all(|stmt| {
            stmt.op.for_each_operand(&mut |a| uses.extend(a.var()));
            !matches!(stmt.op, Op::For(_) | Op::While(_)) && stmt.op.blocks().all(|inner| is_innermost(inner, uses))
        })
    })
}

/// Whether arrays are lists of numbers of eight bytes.
pub(super) fn all_plain(arrays: &[Var]) -> bool {
    arrays.iter().all(|array| array.ty.rank == 1 && matches!(array.ty.scalar, Scalar::Real | Scalar::Int))
}
