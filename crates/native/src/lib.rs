//! The native compiler: typed core to first-order code, its derivatives, and machine code.
//!
//! ```text
//! core ──lower──▶ flow ──adjoint, tangent──▶ flow ──simplify──▶ flow ──cranelift, c──▶ machine code
//! ```
//!
//! [`compile`] does all of it. Derivative forms are met while lowering: the function is lowered, its flow differentiated, and
//! the result takes the form's place, so the steps above are interleaved and derivatives nest.
//!
//! # What is compiled
//!
//! The whole language. Numbers, tuples, records, variants that are not recursive, and regular arrays of these live in registers and flat arrays, and
//! functions that are known where they are called leave nothing behind. Recursive types, functions that are only known when the program runs,
//! and elements of arrays that differ in shape live in cells on the heap (see [`flow`]). Derivatives of all of it, nested to any depth;
//! custom rules take the place of derivatives.
//!
//! What remains is refused by name and place, see [`refusal`]: recursion at ever new types (there are finitely many functions in compiled
//! code), `taylor` of an order that is high or not written as a number, and functions as arguments or results of an entry point. A function that
//! is defined through its own derivative is compiled up to a fixed order, beyond which it stops with an error.
//!
//! # What it costs
//!
//! The adjoint of a call runs the function again, except where it is recursive: then the call leaves a trace, a cell with what the
//! reverse sweep needs. A loop that carries an array which it both reads and replaces in part saves the array in each iteration. An array inside a
//! cell (captured by a function that is only known when the program runs, or in a list) has an adjoint of its own for each time the cell is
//! taken apart, so reading single elements of it that way costs its length each time.

#![allow(unsafe_code)] // Compiled code is called through foreign functions; see `run`, `c::compile` and `cranelift`.

pub mod activity;
pub mod adjoint;
mod better;
pub mod c;
pub mod call;
mod checks;
pub mod cores;
pub mod cranelift;
pub mod data;
mod ends_of_recursion;
mod exits;
pub mod explain;
pub mod flow;
mod holes;
mod in_place;
pub mod leaf;
pub mod lower;
mod ownership;
mod partials;
mod peel;
mod pieces;
pub mod place;
mod recursion;
pub mod refusal;
pub mod run;
pub mod simplify;
mod sole;
mod spread;
pub mod steady;
mod steps;
mod straight;
pub mod tangent;
mod tape;

mod compile;

pub use call::{Argument, Call};
pub use compile::{
    compile, lower, lower_for_data, lower_seen_from, Backend, CompileError, Entry, Error, Native, Options,
};
pub use cranelift::Care;
pub use data::{Data, Layout, Mismatch, Parts};
pub use leaf::Leaf;
pub use place::Site;
pub use refusal::Refusal;
pub use run::{Executable, Limits, RunError};
