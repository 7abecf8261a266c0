//! What compiled code calls: arrays, memory, failure, mathematics.
//!
//! The C backend carries its runtime inside the one file that it writes, so that the file can be used alone: [`C_PRELUDE`].
//! The calling convention that it defines is in [`slot`]; every backend follows it.

#![allow(unsafe_code)] // Compiled code knows no Rust: it calls foreign functions with raw pointers to array data.

pub mod boxes;
pub mod cells;
pub mod chunks;
pub mod clock;
pub mod elements;
pub mod math;
pub mod memory;
pub mod pool;
pub mod process;
pub mod products;
pub mod slot;
pub mod tape;

/// The beginning of every C file: memory, failure, the mathematics that C lacks.
pub const C_PRELUDE: &str = include_str!("prelude.c");

/// What C files with heap values at their entry points need besides: boxes in the calling convention.
pub const C_CELLS: &str = include_str!("cells.c");

/// What C files need besides whose loops run in chunks.
pub const C_CHUNKS: &str = include_str!("chunks.c");

/// Matrix products, for programs that have some; needs the chunks.
pub const C_PRODUCTS: &str = include_str!("products.c");

/// The part of the header that does not depend on the program: the calling convention.
pub const C_HEADER: &str = include_str!("gradus.h");
