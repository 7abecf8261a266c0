//! The C backend: a flow module as one C file with a plain header, compiled by the machine's C compiler and loaded.

mod blocks;
mod cells;
mod checks;
mod chunks;
mod compile;
mod emit;
mod extremes;
mod late;
mod located;
mod loops;
mod parts;
mod pieces;
mod products;
mod scalars;
mod tape;
mod vectors;

pub use compile::{compile, library, CompileError, Options};
pub use emit::{emit, Source};
