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

/// An amount of memory, for people.
pub fn bytes(count: u64) -> String {
    match count {
        n if n >= 1 << 30 && n % (1 << 30) == 0 => format!("{} GiB", n >> 30),
        n if n >= 1 << 20 && n % (1 << 20) == 0 => format!("{} MiB", n >> 20),
        n => format!("{n} bytes"),
    }
}

/// Stops with a message that says it is our fault, not the user's. For broken invariants only.
#[macro_export]
macro_rules! bug {
    ($($arg:tt)*) => {
        panic!("internal error in gradus (please report it): {}", format_args!($($arg)*))
    };
}
