//! The native compiler: typed core to first-order code, its derivatives, and machine code.
//!
//! ```text
//! core ──lower──▶ flow ──adjoint, tangent──▶ flow ──simplify──▶ flow ──c──▶ machine code
//! ```
//!
//! [`compile`] does all of it. Derivative forms are met while lowering: the function is lowered, its flow differentiated, and
//! the result takes the form's place, so the steps above are interleaved and derivatives nest.

#![allow(unsafe_code)] // Compiled code is called through foreign functions; see `c::compile`.

pub mod activity;
pub mod adjoint;
pub mod c;
pub mod data;
pub mod flow;
pub mod leaf;
pub mod lower;
mod partials;
pub mod refusal;
pub mod run;
pub mod simplify;
pub mod tangent;

mod compile;

pub use compile::{compile, lower, Entry, Error, Native};
pub use data::{Data, Layout};
pub use leaf::Leaf;
pub use refusal::Refusal;
pub use run::{Executable, RunError};
