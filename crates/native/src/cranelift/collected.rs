//! Where what loops collect goes. Arrays of numbers are there before the loop, and so are those of rows whose lengths are known by then; rows that loops
//! collect are made in their places. The shape of other arrays is decided by their first row.

use super::emit::{args, Array, Emitter};
use crate::cores::Plan;
use crate::flow::*;
use crate::spread;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{types, InstBuilder, Value};
use gradus_core::traverse::with_stack;
use gradus_source::Span;
use rustc_hash::FxHashMap;

/// Where what a loop collects goes.
#[derive(Clone)]
pub(super) enum Collected {
    /// An array that is there, of which each iteration gives so many numbers.
    Numbers(Array, usize),
    /// An array that is there, of rows.
    Rows(Array),
    /// An array of rows of which the first decides its shape. Part of the state: data, block, and the dimensions of a row.
    FirstDecides(Type),
}

impl Collected {
    /// For an array that is there, by the rows of [`spread`].
    pub(super) fn there(array: Array, row: &Option<Vec<usize>>) -> Collected {
        match row {
            Some(_) => Collected::Numbers(array, spread::width(row)),
            None => Collected::Rows(array),
        }
    }
}

/// A row of an array that can be made where it belongs.
pub(super) struct Row {
    pub(super) row: Var,
    pub(super) array: Array,
    /// What loops collect number by number, one of which is the row, whichever way the program goes.
    pub(super) loops: Vec<Var>,
}

/// The rows that loops in the body of a loop collect number by number and that nobody else reads.
pub(super) fn rows_of_loops(l: &For, into: &[Collected], plan: &Plan) -> Vec<Row> {
    let mut results = l.body.results[l.carried.len()..].iter();
    let mut found = Vec::new();
    let mut uses = None;
    for into in into {
        let width = if let Collected::Numbers(_, width) = into { *width } else { 1 };
        let row = results.by_ref().take(width).last().and_then(|row| row.var());
        let row = row.filter(|v| v.ty.rank == 1 && v.ty.shape().is_none());
        if let (Collected::Rows(array), Some(row)) = (into, row) {
            let uses = uses.get_or_insert_with(|| walk::count_uses(&l.body));
            let mut loops = Vec::new();
            if collect_loops(&l.body, row, uses, plan, &mut loops) {
                found.push(Row { row, array: array.clone(), loops });
            }
        }
    }
    found
}

/// Collects the loops of which one makes a row, if there are no other ways.
fn collect_loops(block: &Block, row: Var, uses: &FxHashMap<Var, usize>, plan: &Plan, loops: &mut Vec<Var>) -> bool {
    let place = |stmt: &Stmt| stmt.binds.iter().position(|v| *v == row);
    let made = block.stmts.iter().find_map(|stmt| Some((stmt, place(stmt)?)));
    match made.filter(|_| uses.get(&row) == Some(&1)) {
        // Chunks have places of their own.
        Some((Stmt { op: Op::For(l), .. }, at)) if at >= l.carried.len() && plan.of(l).is_none() => {
            loops.push(row);
            true
        }
        Some((Stmt { op: Op::If { then, otherwise, .. }, .. }, at)) => [then, otherwise].iter().all(|side| {
            let row = side.results[at].var();
            row.is_some_and(|row| with_stack(|| collect_loops(side, row, uses, plan, loops)))
        }),
        _ => false,
    }
}

impl Emitter<'_, '_, '_> {
    /// The length of rows if there are some, else 0.
    pub(super) fn if_some(&mut self, count: Value, length: Value) -> Value {
        let zero = self.b.ins().iconst(types::I64, 0);
        let some = self.b.ins().icmp(IntCC::SignedGreaterThan, count, zero);
        self.b.ins().select(some, length, zero)
    }

    /// Puts a row into the array that is being collected, which the first row makes. `own` are its data, block and row dimensions.
    pub(super) fn collect_row(
        &mut self,
        own: &[Value],
        row: &[Value],
        index: Value,
        count: Value,
        ty: Type,
        span: Span,
    ) -> Array {
        let row_dims = &row[2..];
        let (make, there) = (self.b.create_block(), self.b.create_block());
        let (on, values) = self.block_with(&vec![types::I64; own.len()]);
        self.b.set_cold_block(make);
        self.b.ins().brif(index, there, &[], make, &[]);
        self.b.switch_to_block(make);
        self.b.seal_block(make);
        let dims = [&[count], row_dims].concat();
        let fresh = self.new_array(dims, ty.scalar, span);
        let made = [&[fresh.data, fresh.block], row_dims].concat();
        self.b.ins().jump(on, &args(&made));
        self.b.switch_to_block(there);
        self.b.seal_block(there);
        self.same_shape(row_dims, &own[2..], span);
        self.go_on(on, &args(own));
        self.b.seal_block(on);
        let bytes = self.bytes(&values[2..], ty.scalar);
        let offset = self.b.ins().imul(index, bytes);
        let to = self.b.ins().iadd(values[0], offset);
        self.copy_row(to, row[0], &values[2..], ty.scalar);
        self.let_go(row[1]);
        let dims = [&[count], &values[2..]].concat();
        Array { data: values[0], block: values[1], dims, scalar: ty.scalar }
    }

    /// What was collected; an array without elements if nothing was.
    pub(super) fn rows_or_empty(&mut self, own: &[Value], count: Value, ty: Type, span: Span) -> Array {
        let make = self.b.create_block();
        let (on, values) = self.block_with(&[types::I64, types::I64]);
        self.b.set_cold_block(make);
        self.b.ins().brif(own[1], on, &args(&own[..2]), make, &[]);
        self.b.switch_to_block(make);
        self.b.seal_block(make);
        let zero = self.b.ins().iconst(types::I64, 0);
        let empty = self.new_array(vec![zero], ty.scalar, span);
        self.go_on(on, &args(&[empty.data, empty.block]));
        self.b.seal_block(on);
        Array { data: values[0], block: values[1], dims: [&[count], &own[2..]].concat(), scalar: ty.scalar }
    }
}
