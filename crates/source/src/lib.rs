//! Where things are and what went wrong there: source files, spans and diagnostics.
//!
//! Every other crate may know this one; it knows nobody. It does no input or output: rendering
//! a diagnostic produces a string.

mod diagnostic;
mod excerpt;
mod json;
mod render;
mod span;

pub use diagnostic::{Diagnostic, Label, Severity};
pub use json::to_json;
pub use render::render;
pub use span::{FileId, Position, SourceFile, SourceMap, Span};

/// Stops with a message that says it is our fault, not the user's. For broken invariants only.
#[macro_export]
macro_rules! bug {
    ($($arg:tt)*) => {
        panic!("internal error in gradus (please report it): {}", format_args!($($arg)*))
    };
}
