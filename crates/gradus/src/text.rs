//! Source text on its own: formatting it, and telling what a line typed at a prompt is.

use crate::error::DriverError;
use crate::Error;
use gradus_source::{FileId, SourceFile, SourceMap, Span};

/// A source file in the standard layout, comments kept.
///
/// ```
/// assert_eq!(gradus::format("f.gr", b"let  f x=x+1").unwrap(), "let f x = x + 1\n");
/// ```
pub fn format(name: &str, bytes: &[u8]) -> Result<String, Error> {
    let mut sources = SourceMap::default();
    let file = sources.add(SourceFile::new(name, &*String::from_utf8_lossy(bytes)));
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to().min(u32::MAX as usize - 3) as u32;
        Error::new(vec![DriverError::NotUtf8 { span: Span::new(file, at, at + 3) }.diagnostic()], &sources)
    })?;
    let parsed = gradus_syntax::parse_module(file, text);
    if parsed.errors.is_empty() {
        Ok(gradus_syntax::format_module(text, &parsed))
    } else {
        Err(Error::new(parsed.errors.iter().map(|error| error.diagnostic()).collect(), &sources))
    }
}

/// What a text typed at a prompt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    Expression,
    /// `let`, `type`, `show`, ...
    Items,
    /// It may become something if more follows.
    Incomplete,
    Wrong,
}

/// ```
/// use gradus::{read_entry, Entry};
/// assert_eq!(read_entry("1 + 2"), Entry::Expression);
/// assert_eq!(read_entry("let x = 2"), Entry::Items);
/// assert_eq!(read_entry("let f x ="), Entry::Incomplete);
/// assert_eq!(read_entry("1 + )"), Entry::Wrong);
/// ```
pub fn read_entry(text: &str) -> Entry {
    let items = gradus_syntax::parse_module(FileId(0), text);
    // These words are names inside expressions, but at a prompt nobody means that.
    let first = text.split_whitespace().next().unwrap_or("");
    if ["show", "check", "plot", "data", "derivative", "tangent"].contains(&first) && items.errors.is_empty() {
        return Entry::Items;
    }
    let expression = gradus_syntax::parse_expr(FileId(0), text);
    if expression.errors.is_empty() {
        Entry::Expression
    } else if items.errors.is_empty() {
        Entry::Items
    } else if expression.is_incomplete() || items.is_incomplete() {
        Entry::Incomplete
    } else {
        Entry::Wrong
    }
}
