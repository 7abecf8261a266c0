//! Values that are used long after they were made, in large functions: they wait on the stack.
//!
//! Reverse mode makes functions in which the values of the way there are used on the way back, in reverse order. In the middle almost all of them are
//! alive, and a register allocator that keeps for each block the set of what is alive takes time with the square of the function's size. No such
//! value would have stayed in a register anyway, so it is put away where it is made, and each statement that uses it gets it from there.

use super::emit::{machine_types, plain, Emitter, Held};
use crate::flow::walk::free_vars;
use crate::flow::*;
use cranelift_codegen::ir::{InstBuilder, Value};
use gradus_core::traverse::with_stack;
use rustc_hash::FxHashMap;

/// Functions of fewer statements are left alone.
const LARGE: usize = 500;
/// So many statements further on is far.
const FAR: usize = 100;

/// The far variables of a function's outermost block.
#[derive(Default)]
pub(super) struct Far {
    /// Where they are put.
    places: FxHashMap<Var, i32>,
    /// The address of all places; one for the function, since addresses are values that are alive, too.
    room: Option<Value>,
    /// For each statement, and then the results, which of them it uses.
    used: Vec<Vec<Var>>,
}

impl Far {
    pub(super) fn new(function: &Function) -> Far {
        let block = &function.body;
        let mut places = Vec::with_capacity(block.stmts.len());
        let mut size = 0;
        for stmt in &block.stmts {
            places.push(size);
            size += length(stmt);
        }
        if size < LARGE {
            return Far::default();
        }
        let mut made: FxHashMap<Var, usize> = function.params.iter().map(|v| (*v, 0)).collect();
        let (mut far, mut bytes) = (FxHashMap::default(), 0);
        let mut all_used = Vec::with_capacity(block.stmts.len() + 1);
        let mut note = |made: &FxHashMap<Var, usize>, used: &[Var], place: usize| {
            for var in used.iter().filter(|v| !v.ty.accumulator) {
                if made.get(var).is_some_and(|start| place > start + FAR) {
                    far.entry(*var).or_insert_with(|| {
                        let place = bytes;
                        bytes += 8 * machine_types(var.ty).len() as i32;
                        place
                    });
                }
            }
        };
        for (stmt, place) in block.stmts.iter().zip(places) {
            let used = operands(stmt);
            note(&made, &used, place);
            all_used.push(used);
            made.extend(stmt.binds.iter().map(|v| (*v, place)));
        }
        let results: Vec<Var> = block.results.iter().filter_map(|a| a.var()).collect();
        note(&made, &results, size);
        all_used.push(results);
        for used in &mut all_used {
            used.retain(|v| far.contains_key(v));
        }
        Far { places: far, room: None, used: all_used }
    }
}

/// How many statements a statement is.
fn length(stmt: &Stmt) -> usize {
    with_stack(|| 1 + stmt.op.blocks().iter().flat_map(|(block, _)| &block.stmts).map(length).sum::<usize>())
}

/// The variables from outside that a statement uses.
fn operands(stmt: &Stmt) -> Vec<Var> {
    let mut found: Vec<Var> = stmt.op.blocks().iter().flat_map(|(block, _)| free_vars(block)).collect();
    stmt.op.for_each_operand(&mut |a| found.extend(a.var()));
    found
}

impl Emitter<'_, '_, '_> {
    /// Makes room at the start of a function.
    pub(super) fn make_room(&mut self, far: &mut Far) {
        let values: usize = far.places.keys().map(|v| machine_types(v.ty).len()).sum();
        if values > 0 {
            far.room = Some(self.room(8 * values as u32));
        }
    }

    /// Puts away those of the variables, which have just been made, that are used far from here.
    pub(super) fn put_away(&mut self, far: &Far, made: &[Var]) {
        let Some(room) = far.room else { return };
        for var in made {
            let Some(place) = far.places.get(var) else { continue };
            for (at, part) in (0_i32..).zip(self.parts((*var).into())) {
                self.b.ins().store(plain(), part, room, place + 8 * at);
            }
        }
    }

    /// Gets what a statement, or the results, use of what was put away.
    pub(super) fn fetch(&mut self, far: &Far, number: usize) {
        let Some(room) = far.room else { return };
        for var in far.used.get(number).into_iter().flatten() {
            let Some(place) = far.places.get(var) else { continue };
            let mut parts = Vec::new();
            for (at, ty) in (0_i32..).zip(machine_types(var.ty)) {
                parts.push(self.b.ins().load(ty, plain(), room, place + 8 * at));
            }
            self.held.insert(*var, Held::of(var.ty, &parts));
        }
    }
}
