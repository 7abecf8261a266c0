//! Names and types: from the surface tree to core.
//!
//! 1. [`module`] goes through the items of each module; [`declare`], [`toplevel`] and [`rule`] handle the kinds of items.
//! 2. [`expr`], [`apply`], [`operator`], [`record`], [`pattern`] and [`binding`] find the types of an expression and write it down as an
//!    elaborated [`tree`]. Types live in a [`store`], meet in [`relate`] and become polymorphic in [`scheme`].
//! 3. When a definition is complete, [`lower`] turns its tree into core; [`matching`] and [`decision`] compile the patterns on the way and
//!    find those that leave something out.
//!
//! What is wrong is kept as facts in [`error`] and put into words in [`wording`].

mod annotation;
mod apply;
mod assumed;
mod binding;
mod builtin;
mod decision;
mod declare;
mod declared;
mod display;
mod error;
mod example;
mod expr;
mod infer;
mod inside;
mod lengths;
mod literal;
mod lookup;
mod lower;
mod matching;
mod module;
mod names;
mod operator;
mod order;
mod pattern;
mod record;
mod relate;
mod rule;
mod scheme;
mod store;
mod toplevel;
mod tree;
mod wording;

pub use error::{Expression, Mismatch, NamePlace, Namespace, Twice, TypeError, Why};
pub use lengths::{Length, Sized};
pub use module::{imports, infer_expr, infer_program, Elaborated, Inferred, ModuleSource, Signature};
pub use tree::MatchForm;
