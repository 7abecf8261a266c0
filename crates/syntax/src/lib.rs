//! Source text to surface syntax tree and back: lexer, parser with recovery, formatter.
//!
//! ```text
//! text --lexer--> tokens, comments --parser--> ast::Module, errors --format--> text
//! ```
//!
//! The crate does no input or output, and no text makes it panic or run out of stack: a tree is at most
//! [`DEPTH_LIMIT`] levels deep. What the operators are is written once, in [`operators`]; what a user is told, once, in
//! [`SyntaxError::diagnostic`].
//!
//! ```
//! use gradus_source::FileId;
//! use gradus_syntax::{format_module, parse_module};
//!
//! let text = "let square x=x^2\nshow square 3.0";
//! let parsed = parse_module(FileId(0), text);
//! assert!(parsed.errors.is_empty());
//! assert_eq!(format_module(text, &parsed), "let square x = x ^ 2\nshow square 3.0\n");
//! ```

pub mod ast;
mod error;
mod format;
mod lexer;
mod literal;
pub mod operators;
mod parser;
mod shape;
mod token;

pub use error::{Found, SyntaxError};
pub use format::{format_module, print_expr, print_module, print_pattern, print_type};
pub use lexer::Comment;
pub use literal::quote;
pub use parser::{parse_expr, parse_module, Parsed, DEPTH_LIMIT};
pub use shape::{clear_spans, same_shape};
pub use token::{is_reserved, Token};
