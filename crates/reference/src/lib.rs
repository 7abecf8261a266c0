//! The evaluator that defines what a Gradus program means: strict, from left to right.
//!
//! Each definition is compiled to simple code ([`compile`]) that runs on a machine with stacks of its own ([`machine`], [`run`]),
//! so that recursion is limited by memory and not by the stack of the thread. The crate sees programs only through
//! [`gradus_core::Definitions`]; it reads no files and no clock and prints nothing.
//!
//! Two points go beyond what the text of a program says, and tests may rely on them:
//!
//! - *Order.* In `f a b`, first `f`, then `a`, then `b` are evaluated, and then `f` is entered.
//! - *Steps.* Every evaluated node of core counts one, and besides, every real that a vector-space operation or the
//!   copying of a shared array touches counts one. (Steps of the semantics that the proofs are about are counted apart, see
//!   [`Report::semantic_steps`].)

mod call;
mod code;
mod compare;
mod compile;
mod data;
mod error;
mod lift;
mod machine;
mod memory;
mod operations;
mod options;
mod run;
mod value;
mod vector;

pub use data::{Data, DataMismatch, Parts};
pub use error::{Call, Problem, RuntimeError};
pub use machine::Machine;
pub use options::{Domain, Kink, Kinks, Options, Report};
pub use value::{Fields, Value};
