//! Random well-typed core programs, deterministic from a seed, and a shrinker for those that show a fault.
//!
//! The programs range over higher-order functions, closures that capture reals, variants and recursive types, recursion
//! with decreasing arguments, iteration, arrays, conditionals and nested derivatives. They are smooth by construction:
//! every real operation is differentiable everywhere and keeps values in a moderate range, so that all modes must
//! agree to rounding and finite differences can be trusted. A branch on reals compares with an odd constant, so that its
//! boundary is met with negligible probability.
//!
//! Swarm testing: each program is made with a random half of the features switched on ([`Features`]), so that programs are
//! deep in some features instead of shallow in all.

mod features;
mod points;
mod program;
mod rng;
mod shrink;
mod terms;

pub use features::{Feature, Features};
pub use points::{Data, Point};
pub use program::{generate, Generated, Options};
pub use rng::Rng;
pub use shrink::shrink;
