//! Simplification of flow. Each step keeps the meaning, failures included; sums may be taken in another order where they are
//! accumulators, which is what accumulators are for.

mod accumulators;
mod added_there;
mod ahead;
mod apart;
mod as_it_was;
mod at_once;
mod beforehand;
mod branches;
mod choices;
mod collect;
mod columns;
mod copies;
mod counted;
mod dead;
mod decided;
mod ends;
mod extend;
mod failures;
mod fixed;
mod forward;
mod fuse;
mod gathers;
mod hoist;
mod inside;
mod kept_twice;
mod lengths;
mod lengths_alone;
mod limits;
mod nearby;
mod products;
mod put_back;
mod quotients;
mod ranges;
mod reads;
mod recompute;
mod rows;
mod same_place;
mod same_side;
mod segments;
mod shapes;
mod small;
mod strips;
mod sums;
mod together;
mod underflow;
mod unread;
mod unroll;
mod whole;
mod wraps;

pub use failures::can_fail;
pub use segments::{is_over_segments, Room};
pub use strips::{one_by_one, WIDEST};
pub use unroll::FEW;

use crate::flow::*;
use gradus_core::traverse::with_stack;
use rustc_hash::FxHashSet;

/// Simplifies a function of a module.
pub fn function(module: &mut Module, id: FunctionId) {
    // A copy, since a function that calls itself wants to know what that does.
    let mut body = match walk::has_calls(&module.function(id).body) {
        true => module.function(id).body.clone(),
        false => std::mem::take(&mut module.functions[id.0].body),
    };
    block(&mut body, module);
    module.functions[id.0].body = body;
}

/// Simplifies every function, and puts on the tape what belongs there.
pub fn module(module: &mut Module) {
    module_within(module, &Room::default());
}

/// The same for loops that keep so much.
pub fn module_within(module: &mut Module, room: &Room) {
    let mut called = Vec::new();
    module.functions.iter().for_each(|function| walk::callees(&function.body, &mut called));
    let called: FxHashSet<FunctionId> = called.into_iter().collect();
    for id in 0..module.functions.len() {
        if has_loops(&module.functions[id].body) {
            let body = &mut module.functions[id].body;
            forward::run(body, &module.lengths);
            fuse::run(body);
            together::run_loops_in_turn(body);
        }
        function(module, FunctionId(id));
        if !has_loops(&module.functions[id].body) {
            continue;
        }
        let mut body = module.functions[id].body.clone();
        if hoist::out_of_branches(&mut body) {
            forward::run(&mut body, &module.lengths);
            module.functions[id].body = body.clone();
        }
        if gathers::run(&mut body, module) {
            again(&mut body, module);
            if recompute::run(&mut body, module) {
                again(&mut body, module);
            }
            if at_once::run(&mut body, module) {
                again(&mut body, module);
            }
            collect::instead_of_copies(&mut body);
            // What began with these arrays now reads their elements.
            recompute::run(&mut body, module);
            forward::run(&mut body, &module.lengths);
            dead::run(&mut body, module);
            module.functions[id].body = body;
        }
        let mut body = std::mem::take(&mut module.functions[id].body);
        if products::run(&mut body, module) {
            again(&mut body, module);
            // The checks that are left of loops.
            hoist::run(&mut body);
            if added_there::run(&mut body) {
                forward::run(&mut body, &module.lengths);
                dead::run(&mut body, module);
            }
        }
        module.functions[id].body = body;
        let body = &mut module.functions[id].body;
        together::run(body);
        if collect::rows(body) {
            let mut body = body.clone();
            dead::run(&mut body, module);
            module.functions[id].body = body;
        }
        rows::run(&mut module.functions[id].body);
        if same_side::run(&mut module.functions[id].body) {
            clean(module, id);
        }
        if nearby::run(&mut module.functions[id].body) {
            clean(module, id);
        }
        quotients::run(&mut module.functions[id].body);
        if ahead::run(&mut module.functions[id].body) {
            fixed::out_of_loops(&mut module.functions[id].body);
            clean(module, id);
        }
        if same_place::run(&mut module.functions[id].body) {
            clean(module, id);
        }
        strips::run(&mut module.functions[id].body);
        fixed::out_of_branches(&mut module.functions[id].body);
        if segments::run(&mut module.functions[id].body, room) {
            let mut body = module.functions[id].body.clone();
            dead::run(&mut body, module);
            module.functions[id].body = body;
        }
        decided::run(&mut module.functions[id].body, &module.lengths);
        if extend::run(&mut module.functions[id].body) {
            clean(module, id);
        }
        // What is called may be called often.
        if !called.contains(&FunctionId(id)) {
            underflow::run(&mut module.functions[id].body);
        }
    }
    kept_twice::run(module);
    unread::run(module);
    crate::tape::run(module);
    crate::holes::run(module);
    crate::ends_of_recursion::run(module);
}

/// Simplifies a block that is as it was written: loops become part of others before any are written out.
pub fn written(block: &mut Block, module: &Module) {
    if has_loops(block) {
        forward::run(block, &module.lengths);
        fuse::run(block);
    }
    self::block(block, module);
}

/// Simplifies a block, which may have free variables.
pub fn block(block: &mut Block, module: &Module) {
    // Each step makes room for others; twice is enough for what differentiation writes.
    rounds(block, module, 2);
}

/// Works out of the function with a number what follows from what a pass has changed, and takes out what it has left.
fn clean(module: &mut Module, id: usize) {
    let mut body = module.functions[id].body.clone();
    forward::run(&mut body, &module.lengths);
    dead::run(&mut body, module);
    module.functions[id].body = body;
}

/// Simplifies a block that was simplified before a step changed a part of it.
fn again(block: &mut Block, module: &Module) {
    rounds(block, module, 1);
}

fn rounds(block: &mut Block, module: &Module, count: usize) {
    if !has_loops(block) {
        // All that is left to do is done at once.
        small_arrays(block, &module.lengths);
        return dead::run(block, module);
    }
    for _ in 0..count {
        small_arrays(block, &module.lengths);
        wraps::run(block);
        limits::run(block);
        columns::run(block);
        ends::run(block);
        counted::run(block);
        rows::without_copies(block);
        sums::from_state(block);
        hoist::run(block);
        lengths::run(block);
        lengths_alone::run(block, module);
        counted::run(block);
        as_it_was::run(block);
        dead::run(block, module);
        branches::run(block);
        sums::to_one_place(block);
        whole::run(block);
        collect::run(block);
        put_back::run(block);
        fuse::run(block);
        fixed::out_of_loops(block);
    }
    hoist::arrays(block);
    beforehand::run(block);
    forward::run(block, &module.lengths);
    dead::run(block, module);
}

/// Does something to the blocks inside a block; whether it changed any.
fn inside(block: &mut Block, mut change: impl FnMut(&mut Block) -> bool) -> bool {
    let mut changed = false;
    for inner in block.stmts.iter_mut().flat_map(|stmt| stmt.op.blocks_mut()) {
        changed |= change(inner);
    }
    changed
}

/// Does something to each block inside a block.
fn each_inside(block: &mut Block, change: fn(&mut Block)) {
    block.stmts.iter_mut().flat_map(|stmt| stmt.op.blocks_mut()).for_each(change);
}

fn has_loops(block: &Block) -> bool {
    with_stack(|| {
        block.stmts.iter().any(|stmt| match &stmt.op {
            Op::For(_) | Op::While(_) => true,
            op => op.blocks().any(has_loops),
        })
    })
}

/// The steps of a segment or window, if a loop goes over these; without what else is done for them.
pub fn steps_inside(l: &For) -> Option<Block> {
    let own = |stmt: &&Stmt| !matches!(stmt.op, Op::If { .. });
    let steps = || Block { stmts: l.body.stmts.iter().filter(own).cloned().collect(), results: Vec::new() };
    (is_over_segments(l) || underflow::is_over_windows(l)).then(steps)
}

/// Works out of a block what is known, such as branches on what is decided.
pub fn known(block: &mut Block) {
    forward::run(block, &KnownLengths::default());
}

/// Works out of a loop what is known if so many of its first and so many of its last iterations are left out; `only`: of the rest, all but the last.
pub fn between(l: &mut For, first: i64, last: i64, only: bool) {
    forward::between(l, first, last, only);
}

/// Lets loops read arrays as they were, where they change them for nobody.
pub fn undo_nothing(block: &mut Block) {
    as_it_was::run(block);
}

/// Takes out of a block what nobody looks at.
pub fn dead_code(block: &mut Block, module: &Module) {
    dead::run(block, module);
}

/// Gives arrays of a few numbers up in favour of the numbers.
fn small_arrays(block: &mut Block, lengths: &KnownLengths) {
    for _ in 0..4 {
        forward::run(block, lengths);
        let written_out = unroll::run(block);
        let taken_apart = small::run(block, lengths);
        if !written_out && !taken_apart {
            return;
        }
    }
    forward::run(block, lengths);
}
