//! Differentiation as a transformation of core programs: one file per mode, the polytypic wrappers, and the
//! [`Linker`] that makes definitions and their derivatives on demand.
//!
//! # How the parts fit
//!
//! 1. The linker makes a monomorphic instance of a source definition and hands it to `expand`, which replaces every
//!    derivative form (`grad f x`) by ordinary core code: a wrapper applied to the image of `f`. An explicit function
//!    under a derivative form becomes a *hidden definition* of its own (`loss#1`), closed over what it captures, so that
//!    its derivative is just another global, made once and on demand.
//! 2. The image of a global is the key `Derived { mode, of }`. The linker makes it by asking the mode for the image of
//!    the definition's text. A definition of data type has a derivative of zero: its image is `lift` of it.
//! 3. The wrappers (`pullback`, `pushforward`, `lift`, `primal`, `zip`, ...) are core code written from a type.
//!
//! # What a mode is
//!
//! A mode is one file (or folder) with one value that implements [`ModeRules`], listed in [`mode::rules`]. It answers
//!
//! - for **types**: what a real becomes ([`ModeRules::real`]) and what a function type becomes
//!   ([`ModeRules::arrow`]). Everything else is homomorphic and done by `Linker::image`, declared types included; a
//!   mode that needs types of its own (`Delta`) lists them in [`ModeRules::declarations`];
//! - for **terms**: the image of a function's text ([`ModeRules::lambda`]). Free variables keep their numbers and have
//!   translated types; every lambda that is made from a lambda sets `origin`. Derivative forms are gone by then;
//! - for **wrappers**: how a constant and the primal part of a real are written ([`ModeRules::constant`],
//!   [`ModeRules::primal`]), and the wrappers that the mode can serve, as its [`Capabilities`] say:
//!   `vjp` means [`ModeRules::pullback`]`: D(a -> b) -> a -> b * (b -> a)` exists, `jvp` means
//!   [`ModeRules::pushforward`]`: D(a -> b) -> a -> a -> b * b` exists. A form that the mode cannot serve is refused by name.
//!
//! The modes `forward`, `vector`, `continuation` and `delta` differ only in what stands beside a real and in their
//! wrappers; `dual.rs` has what they share. A mode that is not a homomorphism (`combinator`) implements `lambda` in its own way
//! and refuses what it cannot take with [`Refusal::Construct`]; [`combinator::steps`] gives its steps as text, and the definition of
//! `Derived { Combinator, of }` is the last of them.
//!
//! # What a driver calls
//!
//! [`Linker::expand`] makes a term that is no definition (`show e`) ready to run, [`Linker::note_scopes`] must see every
//! term that was rewritten after it came from here, and [`Linker::delta_program`] is what `gradus trace` runs. Whether definitions are checked when they
//! are made is a [`Settings`] flag, on by default in debug builds.

mod activity;
pub mod combinator;
mod continuation;
mod custom;
mod delta;
mod delta_type;
mod dual;
mod expand;
mod forms;
mod forward;
mod known;
mod linker;
pub mod mode;
mod monadic;
mod primal;
mod prims;
mod refusal;
mod scope;
mod stopped;
mod tower;
pub mod trace;
mod types;
mod typing;
mod vector;
mod wrappers;
mod write;

pub use linker::{Linker, Settings};
pub use mode::{Capabilities, ModeRules};
pub use refusal::{Made, Refusal};
