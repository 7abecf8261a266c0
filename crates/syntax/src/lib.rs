//! Source text to surface syntax tree and back: lexer, parser with recovery, formatter.
//!
//! The crate does no input or output, and no text makes it panic or run out of stack.

pub mod ast;
mod error;
mod lexer;
pub mod operators;
mod parser;
mod token;

pub use error::{Found, SyntaxError};
pub use lexer::Comment;
pub use parser::{parse_expr, parse_module, Parsed, DEPTH_LIMIT};
pub use token::{is_reserved, Token};
