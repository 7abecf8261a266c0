//! Gradus from Rust: load a program, call its functions, take derivatives.
//!
//! ```
//! # fn main() -> Result<(), gradus::Error> {
//! use gradus::{Program, Value};
//!
//! let program = Program::from_source("bowl.gr", "let bowl (x, y) = x ^ 2 + 3.0 * y ^ 2")?;
//! let bowl = program.function("bowl")?;
//! assert_eq!(bowl.type_text(), "real * real -> real");
//!
//! let point = Value::tuple([1.0.into(), 2.0.into()]);
//! assert_eq!(bowl.call(&[point.clone()])?, Value::Real(13.0));
//! assert_eq!(program.gradient("bowl", &point)?.1.to_string(), "(2.0, 12.0)");
//! # Ok(())
//! # }
//! ```
//!
//! - [`Program`] loads from text, from a file or through a [`Loader`], and is free to be shared between threads.
//! - [`Function`] has a type and is called with [`Value`]s, with Rust values through serde ([`Function::call_with`]), or with
//!   blocks of reals ([`ArrayView`]).
//! - [`Error`] carries diagnostics with stable codes and places.
//! - [`Backend`] says what runs: compiled code unless told otherwise, with an evaluator behind it.
//! - [`pipeline`] is the list of the passes.

mod build;
mod certify;
mod compiled;
mod constants;
pub mod convert;
pub mod data;
mod derivative;
mod engine;
pub mod error;
mod evaluate;
mod explain;
mod explanation;
mod fits;
mod function;
pub mod json;
mod kernel;
pub mod library;
pub mod loader;
mod measure;
mod modules;
pub mod numeric;
mod options;
pub mod pipeline;
pub mod place;
mod program;
mod reach;
mod rules;
mod run;
pub mod schema;
mod sizes;
mod text;
mod trace;
mod transform;
pub mod value;

pub use build::CLibrary;
pub use certify::Certificate;
pub use engine::Engine;
pub use error::{Error, Report};
pub use evaluate::{Evaluator, Input};
pub use explain::{Remark, Stage};
pub use function::{Argument, ArrayView, Function};
pub use gradus_core::print::print_type as type_text;
pub use gradus_core::Type;
pub use gradus_derive::trace::{operation_name, print_value, TraceLine, TraceValue};
pub use gradus_source::{Diagnostic, Position, Severity, Span};
pub use kernel::Kernel;
pub use loader::{FsLoader, LoadError, Loader, MemoryLoader};
pub use measure::{Measured, Repeat};
pub use options::{Backend, Domain, Kinks, Mode, Options};
pub use program::{Added, Program};
pub use rules::RuleReport;
pub use run::{Check, Outcome, Run};
pub use text::{format, read_entry, Entry};
pub use trace::{Binding, DeltaProgram, Summand, TraceTerm};
pub use value::{Parts, Reals, Value};
