//! What traces keep and nobody reads is taken out of them. The way back is written with what it might need; what it does need is known when all of it is there
//! and simplified, as that a loop which changes arrays need not restore them if nobody asks what was in them.

use crate::flow::*;
use gradus_core::traverse::with_stack;
use rustc_hash::FxHashSet;

/// A field of the cells of a shape.
type Field = (ShapeId, usize, usize);

/// Takes out such fields, and with them what is computed for them.
pub fn run(module: &mut Module) {
    loop {
        let unread = unread(module);
        if unread.is_empty() {
            return;
        }
        for (shape, cells) in module.shapes.iter_mut().enumerate() {
            for (tag, fields) in cells.cells.iter_mut().enumerate() {
                retain(fields, |at| !unread.contains(&(ShapeId(shape as u32), tag, at)));
            }
        }
        for id in 0..module.functions.len() {
            let mut body = std::mem::take(&mut module.functions[id].body);
            take_out(&mut body, &unread);
            module.functions[id].body = body.clone();
            super::dead::run(&mut body, module);
            module.functions[id].body = body;
        }
    }
}

/// The fields of traces that are numbers or arrays of numbers, and that nobody reads. Traces in traces stay, since these say in which order they were made, and so do
/// traces that are differentiated themselves.
fn unread(module: &Module) -> FxHashSet<Field> {
    let is_derived = |shape: ShapeId| module.shapes.iter().any(|other| other.linear_of == Some(shape));
    let mut unread: FxHashSet<Field> = FxHashSet::default();
    for (shape, cells) in module.shapes.iter().enumerate() {
        let shape = ShapeId(shape as u32);
        if !cells.trace || is_derived(shape) {
            continue;
        }
        for (tag, fields) in cells.cells.iter().enumerate() {
            let plain = fields.iter().enumerate().filter(|(_, ty)| ty.shape().is_none());
            unread.extend(plain.map(|(at, _)| (shape, tag, at)));
        }
    }
    if unread.is_empty() {
        return unread;
    }
    let mut used: FxHashSet<Var> = FxHashSet::default();
    for function in &module.functions {
        walk::for_each_operand(&function.body, &mut |a| used.extend(a.var()));
    }
    for function in &module.functions {
        walk::for_each_stmt(&function.body, &mut |stmt| {
            if let Op::Unpack { cell, tag } = &stmt.op {
                let Some(shape) = cell.ty().shape() else { return };
                let read = stmt.binds.iter().enumerate().filter(|(_, v)| used.contains(v));
                read.for_each(|(at, _)| {
                    unread.remove(&(shape, *tag, at));
                });
            }
        });
    }
    unread
}

fn take_out(block: &mut Block, unread: &FxHashSet<Field>) {
    with_stack(|| {
        for stmt in &mut block.stmts {
            match &mut stmt.op {
                Op::Cell { shape, tag, fields } => {
                    let (shape, tag) = (*shape, *tag);
                    retain(fields, |at| !unread.contains(&(shape, tag, at)));
                }
                Op::Unpack { cell, tag } => {
                    let (Some(shape), tag) = (cell.ty().shape(), *tag) else { continue };
                    retain(&mut stmt.binds, |at| !unread.contains(&(shape, tag, at)));
                }
                op => op.blocks_mut().for_each(|inner| take_out(inner, unread)),
            }
        }
    })
}

/// Keeps the items at some places.
fn retain<T>(items: &mut Vec<T>, keep: impl Fn(usize) -> bool) {
    let mut at = 0;
    items.retain(|_| {
        at += 1;
        keep(at - 1)
    });
}
