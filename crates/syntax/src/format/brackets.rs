//! Tuples, lists, arrays, comprehensions and records: parts between brackets.

use super::doc::{Doc, NIL};
use super::expr::{Context, Right, ANYWHERE, ELEMENT};
use super::Printer;
use crate::ast::{Expr, ExprKind, Ident, Path, UnaryOp};

impl Printer<'_> {
    /// `a, b`: without parentheses.
    pub(super) fn comma_separated(&mut self, parts: &[Expr]) -> Doc {
        let mut docs = Vec::with_capacity(parts.len() * 3);
        for (i, part) in parts.iter().enumerate() {
            if i > 0 {
                docs.push(self.text(","));
                docs.push(self.at_line_end(part.span.start));
                docs.push(self.docs.line());
            }
            let right = if i + 1 == parts.len() { Right::Closed } else { Right::Operator };
            docs.push(self.expr(part, Context { right, ..ELEMENT }));
        }
        let doc = self.docs.concat(docs);
        self.docs.group(doc)
    }

    /// `[a; b]`, `[| a; b |]`. Literals and names fill the lines; other elements have a line each if one does not fit.
    pub(super) fn elements(&mut self, open: &'static str, parts: &[Expr], close: &'static str, end: u32) -> Doc {
        let fill = parts.iter().all(is_atom);
        let mut docs = Vec::with_capacity(parts.len() * 3);
        for (i, part) in parts.iter().enumerate() {
            let separator = if i == 0 { NIL } else { self.separator(part.span.start) };
            let right = if i + 1 == parts.len() { Right::Closed } else { Right::Semicolon };
            let element = self.expr(part, Context { right, clarify: true, ..ANYWHERE });
            let doc = self.docs.concat([separator, element]);
            docs.push(if fill { self.docs.group(doc) } else { doc });
        }
        docs.push(self.before_end(end));
        let spaced = open == "[|" && !parts.is_empty();
        let open = self.text(open);
        self.bracketed(open, docs, close, spaced)
    }

    /// `;` and what may stand between it and the next element.
    pub(super) fn separator(&mut self, next: u32) -> Doc {
        let (sign, comments, line) = (self.text(";"), self.at_line_end(next), self.docs.line());
        self.docs.concat([sign, comments, line])
    }

    /// The parts between brackets, indented on lines of their own if they do not fit on one.
    pub(super) fn bracketed(&mut self, open: Doc, parts: Vec<Doc>, close: &'static str, spaced: bool) -> Doc {
        let edge = if spaced { self.docs.line() } else { self.docs.soft_line() };
        let inner = self.docs.concat(parts);
        let inner = self.docs.concat([edge, inner]);
        let (inner, close) = (self.docs.nest(2, inner), self.text(close));
        let doc = self.docs.concat([open, inner, edge, close]);
        self.docs.group(doc)
    }

    pub(super) fn comprehension(&mut self, ranges: &[(Ident, Expr)], body: &Expr, end: u32) -> Doc {
        let mut head = vec![self.text("[| for ")];
        for (i, (name, bound)) in ranges.iter().enumerate() {
            if i > 0 {
                head.push(self.text(", "));
            }
            head.push(self.docs.text(format!("{} < ", name.name)));
            head.push(self.expr(bound, Context { right: Right::Operator, ..ELEMENT }));
        }
        head.push(self.text(" ->"));
        let head = self.docs.concat(head);
        let (body, rest) = (self.whole_expr(body), self.before_end(end));
        self.bracketed(head, vec![body, rest], "|]", true)
    }

    pub(super) fn record(&mut self, open: Doc, fields: &[(Path, Option<Expr>)], end: u32) -> Doc {
        let mut docs = Vec::with_capacity(fields.len() * 3);
        for (i, (path, value)) in fields.iter().enumerate() {
            if i > 0 {
                docs.push(self.separator(path.span.start));
            }
            docs.push(self.before(path.span.start));
            docs.push(self.path(path));
            if let Some(value) = value {
                let right = if i + 1 == fields.len() { Right::Closed } else { Right::Semicolon };
                let (sign, value) = (self.text(" ="), self.expr(value, Context { right, clarify: true, ..ELEMENT }));
                let value = self.hanging(value, 2);
                docs.push(self.docs.concat([sign, value]));
            } else {
                docs.push(self.behind(path.span.end));
            }
        }
        docs.push(self.before_end(end));
        self.bracketed(open, docs, "}", !fields.is_empty())
    }
}

/// A literal or a name.
pub(super) fn is_atom(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Int(_) | ExprKind::Real(_) | ExprKind::Bool(_) | ExprKind::Unit | ExprKind::String(_) => true,
        ExprKind::Var(_) | ExprKind::Constructor(_) => true,
        ExprKind::Unary(UnaryOp::Neg, operand) => matches!(operand.kind, ExprKind::Int(_) | ExprKind::Real(_)),
        _ => false,
    }
}
