//! Patterns, types and paths as documents.

use super::doc::Doc;
use super::Printer;
use crate::ast::{Ident, Path, Pattern, PatternKind, SizeExpr, TypeExpr, TypeExprKind};
use crate::literal::quote;
use gradus_source::Span;

/// How tightly a pattern binds.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub enum PatternLevel {
    Any,
    Or,
    Cons,
    Applied,
    Simple,
}

/// How tightly a type binds.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum TypeLevel {
    Any,
    Tuple,
    Postfix,
}

impl Printer<'_> {
    pub fn ident(&mut self, ident: &Ident) -> Doc {
        self.docs.text(ident.name.to_string())
    }

    pub fn path(&mut self, path: &Path) -> Doc {
        self.docs.text(path_text(path))
    }

    /// A literal as the user spelt it.
    pub fn literal(&mut self, span: Span, value: &str) -> Doc {
        let text = self.slice(span).unwrap_or(value).to_string();
        self.docs.text(text)
    }

    pub fn string_literal(&mut self, span: Span, value: &str) -> Doc {
        let text = self.slice(span).map_or_else(|| quote(value), str::to_string);
        self.docs.text(text)
    }

    // Patterns.

    pub fn any_pattern(&mut self, pattern: &Pattern) -> Doc {
        self.pattern(pattern, PatternLevel::Any)
    }

    /// A pattern before an arrow: a tuple there needs no parentheses.
    pub fn arm_pattern(&mut self, pattern: &Pattern) -> Doc {
        match &pattern.kind {
            PatternKind::Tuple(parts) if parts.len() > 1 => {
                let lead = self.before_inline(pattern.span.start);
                let parts = parts.iter().map(|part| self.pattern(part, PatternLevel::Cons)).collect();
                let tuple = self.separated(parts, ", ");
                self.docs.concat([lead, tuple])
            }
            _ => self.any_pattern(pattern),
        }
    }

    /// Parameters, each with a space before it.
    pub fn params(&mut self, params: &[Pattern]) -> Doc {
        let mut parts = Vec::new();
        for param in params {
            parts.push(self.text(" "));
            parts.push(self.pattern(param, PatternLevel::Simple));
        }
        self.docs.concat(parts)
    }

    pub fn pattern(&mut self, pattern: &Pattern, least: PatternLevel) -> Doc {
        stacker::maybe_grow(128 * 1024, 2 * 1024 * 1024, || {
            let lead = self.before_inline(pattern.span.start);
            let doc = self.bare_pattern(pattern);
            let doc = if pattern_level(pattern) < least { self.parens(doc) } else { doc };
            let trail = self.behind(pattern.span.end);
            self.docs.concat([lead, doc, trail])
        })
    }

    fn bare_pattern(&mut self, pattern: &Pattern) -> Doc {
        use PatternLevel::*;
        match &pattern.kind {
            PatternKind::Wild => self.text("_"),
            PatternKind::Var(name) => self.docs.text(name.to_string()),
            PatternKind::Int(value) | PatternKind::Real(value) => self.literal(pattern.span, value),
            PatternKind::String(value) => self.string_literal(pattern.span, value),
            PatternKind::Bool(value) => self.text(if *value { "true" } else { "false" }),
            PatternKind::Unit => self.text("()"),
            PatternKind::Tuple(parts) => {
                let parts = parts.iter().map(|part| self.pattern(part, Cons)).collect();
                let tuple = self.separated(parts, ", ");
                self.parens(tuple)
            }
            PatternKind::List(parts) => self.pattern_list("[", parts, "]"),
            PatternKind::Array(parts) if parts.is_empty() => self.text("[||]"),
            PatternKind::Array(parts) => self.pattern_list("[| ", parts, " |]"),
            PatternKind::Cons(head, tail) => {
                let (head, sign, tail) = (self.pattern(head, Applied), self.text(" :: "), self.pattern(tail, Cons));
                self.docs.concat([head, sign, tail])
            }
            PatternKind::Constructor(path, None) => self.path(path),
            PatternKind::Constructor(path, Some(arg)) => {
                let (path, space, arg) = (self.path(path), self.text(" "), self.pattern(arg, Simple));
                self.docs.concat([path, space, arg])
            }
            PatternKind::Record { fields, open } => self.record_pattern(fields, *open),
            PatternKind::Or(cases) => {
                let cases = cases.iter().map(|case| self.pattern(case, Cons)).collect();
                self.separated(cases, " | ")
            }
            PatternKind::As(inner, name) => {
                let (inner, sign, name) = (self.pattern(inner, Any), self.text(" as "), self.ident(name));
                self.docs.concat([inner, sign, name])
            }
            PatternKind::Annotation(inner, ty) => {
                let (inner, sign, ty) = (self.pattern(inner, Any), self.text(" : "), self.any_type(ty));
                let doc = self.docs.concat([inner, sign, ty]);
                self.parens(doc)
            }
            PatternKind::Error => self.text("_"),
        }
    }

    fn pattern_list(&mut self, open: &'static str, parts: &[Pattern], close: &'static str) -> Doc {
        let parts = parts.iter().map(|part| self.any_pattern(part)).collect();
        let (open, parts, close) = (self.text(open), self.separated(parts, "; "), self.text(close));
        self.docs.concat([open, parts, close])
    }

    fn record_pattern(&mut self, fields: &[(Path, Option<Pattern>)], open: bool) -> Doc {
        let mut parts = Vec::new();
        for (path, pattern) in fields {
            let name = self.path(path);
            parts.push(match pattern {
                Some(pattern) => {
                    let (sign, pattern) = (self.text(" = "), self.any_pattern(pattern));
                    self.docs.concat([name, sign, pattern])
                }
                None => name,
            });
        }
        if open {
            parts.push(self.text("_"));
        }
        let (left, parts, right) = (self.text("{ "), self.separated(parts, "; "), self.text(" }"));
        self.docs.concat([left, parts, right])
    }

    // Types.

    pub fn any_type(&mut self, ty: &TypeExpr) -> Doc {
        self.ty(ty, TypeLevel::Any)
    }

    /// A type as an argument of a constructor in its declaration.
    pub fn constructor_arg(&mut self, ty: &TypeExpr) -> Doc {
        self.ty(ty, TypeLevel::Postfix)
    }

    fn ty(&mut self, ty: &TypeExpr, least: TypeLevel) -> Doc {
        stacker::maybe_grow(128 * 1024, 2 * 1024 * 1024, || {
            let lead = self.before_inline(ty.span.start);
            let doc = self.bare_type(ty);
            let doc = if type_level(ty) < least { self.parens(doc) } else { doc };
            let trail = self.behind(ty.span.end);
            self.docs.concat([lead, doc, trail])
        })
    }

    fn bare_type(&mut self, ty: &TypeExpr) -> Doc {
        use TypeLevel::*;
        match &ty.kind {
            TypeExprKind::Var(name) => self.docs.text(format!("'{}", name.name)),
            TypeExprKind::Named(path, args) => match args.as_slice() {
                [] => self.path(path),
                [arg] => {
                    let (arg, space, path) = (self.ty(arg, Postfix), self.text(" "), self.path(path));
                    self.docs.concat([arg, space, path])
                }
                args => {
                    let args = args.iter().map(|arg| self.any_type(arg)).collect();
                    let (open, args, close) = (self.text("("), self.separated(args, ", "), self.text(") "));
                    let path = self.path(path);
                    self.docs.concat([open, args, close, path])
                }
            },
            TypeExprKind::Tuple(parts) => {
                let parts = parts.iter().map(|part| self.ty(part, Postfix)).collect();
                self.separated(parts, " * ")
            }
            TypeExprKind::Fun(from, to) => {
                let (from, sign, to) = (self.ty(from, Tuple), self.text(" -> "), self.any_type(to));
                self.docs.concat([from, sign, to])
            }
            TypeExprKind::Array(..) => self.array_type(ty),
            TypeExprKind::Wild | TypeExprKind::Error => self.text("_"),
        }
    }

    /// `real[n][m]`: the outermost size comes first.
    fn array_type(&mut self, ty: &TypeExpr) -> Doc {
        let mut element = ty;
        let mut sizes = String::new();
        while let TypeExprKind::Array(inner, size) = &element.kind {
            match size {
                SizeExpr::Literal(value, _) => sizes += &format!("[{value}]"),
                SizeExpr::Var(name) => sizes += &format!("[{}]", name.name),
                SizeExpr::Unknown => sizes += "[]",
            }
            element = inner;
        }
        let (element, sizes) = (self.ty(element, TypeLevel::Postfix), self.docs.text(sizes));
        self.docs.concat([element, sizes])
    }
}

pub fn path_text(path: &Path) -> String {
    path.modules.iter().map(|module| format!("{}.", module.name)).collect::<String>() + &path.name.name
}

fn pattern_level(pattern: &Pattern) -> PatternLevel {
    match &pattern.kind {
        PatternKind::As(..) => PatternLevel::Any,
        PatternKind::Or(_) => PatternLevel::Or,
        PatternKind::Cons(..) => PatternLevel::Cons,
        PatternKind::Constructor(_, Some(_)) => PatternLevel::Applied,
        // `f -1` is a subtraction.
        PatternKind::Int(value) | PatternKind::Real(value) if value.starts_with('-') => PatternLevel::Applied,
        PatternKind::Wild
        | PatternKind::Var(_)
        | PatternKind::Int(_)
        | PatternKind::Real(_)
        | PatternKind::String(_)
        | PatternKind::Bool(_)
        | PatternKind::Unit
        | PatternKind::Tuple(_)
        | PatternKind::List(_)
        | PatternKind::Constructor(_, None)
        | PatternKind::Record { .. }
        | PatternKind::Array(_)
        | PatternKind::Annotation(..)
        | PatternKind::Error => PatternLevel::Simple,
    }
}

fn type_level(ty: &TypeExpr) -> TypeLevel {
    match &ty.kind {
        TypeExprKind::Fun(..) => TypeLevel::Any,
        TypeExprKind::Tuple(_) => TypeLevel::Tuple,
        TypeExprKind::Var(_)
        | TypeExprKind::Named(..)
        | TypeExprKind::Array(..)
        | TypeExprKind::Wild
        | TypeExprKind::Error => TypeLevel::Postfix,
    }
}
