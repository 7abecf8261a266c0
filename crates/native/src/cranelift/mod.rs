//! The Cranelift backend: a flow module as machine code in memory, with no tool outside the binary.
//!
//! Functions take a pointer to the thread's state (`gradus_runtime::memory::Thread`), their parameters, and a pointer to room for
//! their results; they give 0 or a failure number, which callers hand on. A number is one machine value; an array is the address of its
//! data, of its block (null: not counted) and its dimensions, each a value of its own, so that they stay in registers, unless there are many (`waiting`).

mod arrays;
mod blocks;
mod cells;
mod chunks;
mod collected;
mod compile;
mod division;
mod emit;
mod entry;
mod lanes;
mod loops;
mod machine;
mod math;
mod pairs;
mod pieces;
mod plan;
mod products;
mod reckoned;
mod same;
mod scalars;
mod tape;
mod waiting;

pub use compile::{compile, text, Care, CompileError, Later};
