//! Sends random programs through every differentiation mode and compares what comes out.
//!
//! For a program `f`, a point `x`, a tangent `dx` and a cotangent `dy`, each mode that accepts `f` must give
//!
//! - the primal value of `f x`, bit for bit;
//! - the same `vjp f x dy` as every other mode, and, paired with `dx`, the same number as `dy` paired with `jvp f x dx` (K Lemma 1);
//! - to within its error, the slope of `dy . f` along `dx` by central differences.
//!
//! A program that differs is shrunk before it is reported.

mod compare;
mod numbers;
mod run;
mod source;

pub use compare::{compare, modes, Agreement, Fault};
pub use run::{run, Tally};
pub use source::source;
