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
//! Programs over numbers, booleans, tuples, records, variants that are not recursive, and regular arrays of these; every function
//! must be known where it is called, which higher-order functions, closures and polymorphism are no obstacle to. Recursion of
//! any kind, `iterate`, `ifold`, `build`, and all derivative forms but `taylor`, nested to any depth. Everything else (recursive
//! types, strings that are looked at, functions chosen by a condition, custom derivative rules, a function that is defined through
//! its own derivative) is refused by name and place, see [`refusal`].
//!
//! # What it costs
//!
//! The adjoint of a call runs the function again, so reverse mode through recursion that is not a tail call costs its depth times
//! the function. A loop that carries an array which it both reads and replaces in part saves the array in each iteration.

#![allow(unsafe_code)] // Compiled code is called through foreign functions; see `run`, `c::compile` and `cranelift`.

pub mod activity;
pub mod adjoint;
pub mod c;
pub mod call;
pub mod cranelift;
pub mod data;
pub mod flow;
pub mod leaf;
pub mod lower;
mod ownership;
mod partials;
pub mod place;
mod recursion;
pub mod refusal;
pub mod run;
pub mod simplify;
mod steps;
pub mod tangent;

mod compile;

pub use call::{Argument, Call};
pub use compile::{compile, lower, Backend, CompileError, Entry, Error, Native, Options};
pub use data::{Data, Layout};
pub use leaf::Leaf;
pub use place::Site;
pub use refusal::Refusal;
pub use run::{Executable, Limits, RunError};
