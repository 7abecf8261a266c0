//! Simplification of flow. Each step keeps the meaning, failures included; sums may be taken in another order where they are
//! accumulators, which is what accumulators are for.

mod dead;
mod forward;
mod fuse;
mod hoist;
mod sums;

use crate::flow::*;

/// Simplifies a function of a module.
pub fn function(module: &mut Module, id: FunctionId) {
    let mut body = std::mem::take(&mut module.functions[id.0].body);
    block(&mut body, module);
    module.functions[id.0].body = body;
}

/// Simplifies every function.
pub fn module(module: &mut Module) {
    for id in 0..module.functions.len() {
        function(module, FunctionId(id));
    }
}

/// Simplifies a block, which may have free variables.
pub fn block(block: &mut Block, module: &Module) {
    // Each step makes room for others; twice is enough for what differentiation writes.
    for _ in 0..2 {
        forward::run(block);
        sums::from_state(block);
        hoist::run(block);
        dead::run(block, module);
        fuse::run(block);
        sums::out_of_loops(block);
    }
    forward::run(block);
    dead::run(block, module);
}
