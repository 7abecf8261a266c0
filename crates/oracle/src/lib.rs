//! The bridge between the proofs and the code that ships: random programs, and the programs of `tests/`, go through the transformations and evaluators that were extracted from
//! `proofs/` and through ours, and must come out the same.
//!
//! 1. The derivatives as *text*: our `forward` and `monadic` of a program, and the extracted ones, are the same term for term, up to bound names.
//! 2. *Runs*: the primal value bit for bit; the number of steps and of kinks met, exactly; the tape of the monadic run entry for entry, with
//!    its coefficients bit for bit (`taped.rs`); value and steps of our forward derivative ([`tangent`]).
//! 3. *Derivations* of the optimiser: each step by a proved rule is replayed by the extracted checker ([`derivations`]).
//!
//! Both sides start from one program, of the generator or [`written`], translated to the proved language by [`translate`]. That translation, the
//! generator, the extraction of Coq and the OCaml compiler are what is trusted.

pub mod compare;
pub mod derivations;
pub mod elementary;
pub mod process;
pub mod tangent;
mod taped;
pub mod translate;
pub mod types;
pub mod values;
pub mod wire;
pub mod written;
