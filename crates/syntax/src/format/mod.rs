//! The tree printed as source: the formatter, and the printer that other crates use to show terms.
//!
//! The formatter knows the text that the tree came from: it keeps comments, single empty lines and the spelling of
//! literals. The printer has only the tree. Both put parentheses only where they are needed.

mod brackets;
mod comments;
mod doc;
mod expr;
mod forms;
mod item;
mod pattern;

use crate::ast::{Expr, Module, Pattern, TypeExpr};
use crate::lexer::Comment;
use crate::parser::{parse_module, Parsed};
use crate::shape::same_shape;
use doc::{Doc, Docs};
use gradus_source::{FileId, Span};

/// The width of a line.
const WIDTH: usize = 100;

/// Formats a file. A text with syntax errors comes back as it is: look at `parsed.errors` first.
///
/// The result has the same tree and the same comments, and formatting it again changes nothing.
pub fn format_module(text: &str, parsed: &Parsed<Module>) -> String {
    if !parsed.errors.is_empty() {
        return text.to_string();
    }
    let mut formatted = format_once(text, parsed);
    // A comment in an unusual place may move, and then the text around it: go on until nothing moves.
    for _ in 0..8 {
        let again = parse_module(FileId(0), &formatted);
        if !again.errors.is_empty()
            || !same_shape(&again.tree, &parsed.tree)
            || again.comments.len() != parsed.comments.len()
        {
            debug_assert!(false, "formatting changed the program:\n{text}\n{formatted}");
            return text.to_string();
        }
        let next = format_once(&formatted, &again);
        if next == formatted {
            break;
        }
        formatted = next;
    }
    formatted
}

fn format_once(text: &str, parsed: &Parsed<Module>) -> String {
    let mut printer = Printer::new(text, &parsed.comments);
    let doc = printer.module(&parsed.tree);
    printer.docs.layout(doc, WIDTH)
}

/// A module as source text, from the tree alone.
pub fn print_module(module: &Module) -> String {
    let mut printer = Printer::new("", &[]);
    let doc = printer.module(module);
    printer.docs.layout(doc, WIDTH)
}

/// An expression as source text, from the tree alone.
pub fn print_expr(expr: &Expr) -> String {
    let mut printer = Printer::new("", &[]);
    let doc = printer.whole_expr(expr);
    printer.docs.layout(doc, WIDTH)
}

/// A pattern as source text.
pub fn print_pattern(pattern: &Pattern) -> String {
    let mut printer = Printer::new("", &[]);
    let doc = printer.any_pattern(pattern);
    printer.docs.layout(doc, WIDTH)
}

/// A type as source text.
pub fn print_type(ty: &TypeExpr) -> String {
    let mut printer = Printer::new("", &[]);
    let doc = printer.any_type(ty);
    printer.docs.layout(doc, WIDTH)
}

struct Printer<'t> {
    docs: Docs,
    /// Empty if there is only the tree.
    source: &'t str,
    comments: &'t [Comment],
    next_comment: usize,
}

impl<'t> Printer<'t> {
    fn new(source: &'t str, comments: &'t [Comment]) -> Self {
        Printer { docs: Docs::new(), source, comments, next_comment: 0 }
    }

    /// The source of a span; nothing if there is only the tree.
    fn slice(&self, span: Span) -> Option<&'t str> {
        self.source.get(span.start as usize..span.end as usize).filter(|text| !text.is_empty())
    }

    /// Whether the user put a line break between these places.
    fn broken_between(&self, start: u32, end: u32) -> bool {
        self.source.get(start as usize..end as usize).is_some_and(|text| text.contains('\n'))
    }

    fn text(&mut self, text: &'static str) -> Doc {
        self.docs.text(text)
    }

    /// The parts with this text between them.
    fn separated(&mut self, parts: Vec<Doc>, separator: &'static str) -> Doc {
        let mut joined = Vec::with_capacity(parts.len() * 2);
        for (i, part) in parts.into_iter().enumerate() {
            if i > 0 {
                joined.push(self.text(separator));
            }
            joined.push(part);
        }
        self.docs.concat(joined)
    }

    /// `(doc)`, with further lines of it aligned behind the parenthesis.
    fn parens(&mut self, doc: Doc) -> Doc {
        let (open, close) = (self.text("("), self.text(")"));
        let doc = self.docs.align(doc);
        self.docs.concat([open, doc, close])
    }

    /// On the same line if it fits, else on the next, indented.
    fn hanging(&mut self, doc: Doc, indent: usize) -> Doc {
        let line = self.docs.line();
        let doc = self.docs.concat([line, doc]);
        let doc = self.docs.nest(indent, doc);
        self.docs.group(doc)
    }
}
