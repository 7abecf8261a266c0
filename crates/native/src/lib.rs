//! The native compiler: typed core to first-order code, its derivatives, and machine code.

#![allow(unsafe_code)] // Compiled code is called through foreign functions; see `c::compile`.

pub mod activity;
pub mod adjoint;
pub mod c;
pub mod flow;
pub mod leaf;
mod partials;
pub mod run;
pub mod simplify;
pub mod tangent;

pub use leaf::Leaf;
pub use run::{Executable, RunError};
