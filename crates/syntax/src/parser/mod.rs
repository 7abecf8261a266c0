//! The parser: recursive descent, with a table of precedences for the infix operators.
//!
//! A wrong text gives a tree too, with `Error` nodes where something could not be read. Each mistake is
//! reported once, and parsing goes on behind it: at the next operand, at a closing bracket, and at the latest at
//! the next top-level item.

mod bindings;
mod boundary;
mod cursor;
mod expr;
mod item;
mod literal;
mod pattern;
mod simple;
mod types;

use crate::ast::{Expr, Module};
use crate::error::SyntaxError;
use crate::lexer::{lex, Comment};
use cursor::Parser;
use gradus_source::FileId;

/// How deep a tree may be, so that passes which recurse over it have a bound. There is no stack to grow in a browser.
pub const DEPTH_LIMIT: usize = if cfg!(target_family = "wasm") { 300 } else { 10_000 };

/// How many errors of one text are kept.
pub const MAX_ERRORS: usize = 100;

/// A tree with what was wrong with its text, in the order of the text, and its comments.
#[derive(Clone, Debug)]
pub struct Parsed<T> {
    pub tree: T,
    pub errors: Vec<SyntaxError>,
    pub comments: Vec<Comment>,
}

impl<T> Parsed<T> {
    /// Whether there are errors and more text could mend them all: a prompt then waits for another line.
    pub fn is_incomplete(&self) -> bool {
        !self.errors.is_empty() && self.errors.iter().all(SyntaxError::is_incomplete)
    }
}

/// Parses a source file.
pub fn parse_module(file: FileId, text: &str) -> Parsed<Module> {
    let lexed = lex(file, text);
    let mut parser = Parser::new(file, text, &lexed.lexemes);
    let tree = parser.module();
    let errors = merge(lexed.errors, parser.errors);
    Parsed { tree, errors, comments: lexed.comments }
}

/// Parses one expression, which must be the whole text.
pub fn parse_expr(file: FileId, text: &str) -> Parsed<Expr> {
    let lexed = lex(file, text);
    let mut parser = Parser::new(file, text, &lexed.lexemes);
    let tree = parser.whole_expr();
    let errors = merge(lexed.errors, parser.errors);
    Parsed { tree, errors, comments: lexed.comments }
}

/// The errors of lexer and parser in the order of the text.
fn merge(mut errors: Vec<SyntaxError>, mut more: Vec<SyntaxError>) -> Vec<SyntaxError> {
    // An unclosed comment swallows the rest of the text: that something is missing there is no news.
    if errors.iter().any(|error| matches!(error, SyntaxError::UnclosedComment { .. })) {
        more.retain(|error| !error.is_incomplete());
    }
    errors.extend(more);
    errors.sort_by_key(|error| error.span().start);
    errors.truncate(MAX_ERRORS);
    errors
}
