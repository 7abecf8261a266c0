//! Source text to surface syntax tree and back: lexer, parser with recovery, formatter.
//!
//! The crate does no input or output, and no text makes it panic or run out of stack.

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
