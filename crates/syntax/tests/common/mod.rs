//! What the tests of this crate share: text in, text out.
#![allow(dead_code)]

pub mod dump;
pub mod random;

use gradus_source::FileId;
use gradus_syntax::{parse_expr, parse_module, SyntaxError};

/// Parses an expression without errors and dumps it.
#[track_caller]
pub fn read_expr(text: &str) -> String {
    let parsed = parse_expr(FileId(0), text);
    assert!(parsed.errors.is_empty(), "{text}\n{:#?}", parsed.errors);
    dump::expr(&parsed.tree)
}

/// Parses a file without errors and dumps it.
#[track_caller]
pub fn read_module(text: &str) -> String {
    let parsed = parse_module(FileId(0), text);
    assert!(parsed.errors.is_empty(), "{text}\n{:#?}", parsed.errors);
    dump::module(&parsed.tree)
}

/// `line:column code message` for each error.
pub fn complaints(text: &str, errors: &[SyntaxError]) -> String {
    let file = gradus_source::SourceFile::new("t.gr", text);
    errors
        .iter()
        .map(|error| {
            let diagnostic = error.diagnostic();
            let at = file.position(error.span().start);
            format!("{}:{} {} {}\n", at.line, at.column, diagnostic.code, diagnostic.message)
        })
        .collect()
}
