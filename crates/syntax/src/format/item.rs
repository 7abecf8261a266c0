//! The items of a file as documents.

use super::doc::{Doc, NIL};
use super::{print_type, Printer};
use crate::ast::{Direction, Expr, ExprKind, Item, ItemKind, Module, TypeBody, TypeDecl};

impl Printer<'_> {
    pub fn module(&mut self, module: &Module) -> Doc {
        let mut parts = Vec::with_capacity(module.items.len() * 3 + 2);
        for (i, item) in module.items.iter().enumerate() {
            parts.push(self.own_lines_before(item.span.start, i == 0));
            parts.push(self.item(item));
            parts.push(self.before_end(item.span.end));
            parts.push(self.behind(item.span.end));
        }
        parts.push(self.comments_at_end(module.items.is_empty()));
        self.docs.concat(parts)
    }

    fn item(&mut self, item: &Item) -> Doc {
        match &item.kind {
            ItemKind::Import(name) => self.docs.text(format!("import {}", name.name)),
            ItemKind::Open(path) => {
                let (word, path) = (self.text("open "), self.path(path));
                self.docs.concat([word, path])
            }
            ItemKind::Type(decls) => self.type_decls(decls),
            ItemKind::Let(group) => self.let_group(group),
            ItemKind::Data { name, ty, file } => {
                let head = self.docs.text(format!("data {} : ", name.name));
                // In parentheses a type may be called `from`.
                let doubtful = print_type(ty).split(|c: char| !c.is_alphanumeric()).any(|word| word == "from");
                let ty = self.any_type(ty);
                let ty = if doubtful { self.parens(ty) } else { ty };
                let (from, file) = (self.text(" from "), self.string_literal(file.span, &file.value));
                self.docs.concat([head, ty, from, file])
            }
            ItemKind::Show(value) => self.worded("show", value),
            ItemKind::Check(value) => self.worded("check", value),
            ItemKind::Plot { value, file } => {
                let value = self.plotted(value);
                let file = match file {
                    Some(file) => {
                        let (to, file) = (self.text(" to "), self.string_literal(file.span, &file.value));
                        self.docs.concat([to, file])
                    }
                    None => NIL,
                };
                self.docs.concat([value, file])
            }
            ItemKind::Rule { direction, function, params, body } => {
                let word = match direction {
                    Direction::Reverse => "derivative",
                    Direction::Forward => "tangent",
                };
                let head = self.docs.text(format!("{word} {}", function.name));
                let (params, sign, body) = (self.params(params), self.text(" ="), self.defined(body));
                self.docs.concat([head, params, sign, body])
            }
            ItemKind::Error => NIL,
        }
    }

    /// `show e`
    fn worded(&mut self, word: &'static str, value: &Expr) -> Doc {
        let (word, value) = (self.text(word), self.whole_expr(value));
        let value = self.hanging(value, 2);
        self.docs.concat([word, value])
    }

    /// `plot e`, where `to "x"` as two arguments would be read as the file.
    fn plotted(&mut self, value: &Expr) -> Doc {
        if !mentions_to(value) {
            return self.worded("plot", value);
        }
        let (word, value) = (self.text("plot "), self.whole_expr(value));
        let value = self.parens(value);
        self.docs.concat([word, value])
    }

    // Type declarations.

    fn type_decls(&mut self, decls: &[TypeDecl]) -> Doc {
        let mut parts = Vec::new();
        for (i, decl) in decls.iter().enumerate() {
            if i > 0 {
                parts.push(self.line_before(decl.span.start));
            }
            parts.push(self.text(if i == 0 { "type " } else { "and " }));
            parts.push(self.type_decl(decl));
        }
        self.docs.concat(parts)
    }

    fn type_decl(&mut self, decl: &TypeDecl) -> Doc {
        let params: Vec<String> = decl.params.iter().map(|name| format!("'{}", name.name)).collect();
        let params = match params.as_slice() {
            [] => String::new(),
            [one] => format!("{one} "),
            several => format!("({}) ", several.join(", ")),
        };
        let head = self.docs.text(format!("{params}{} =", decl.name.name));
        let body = match &decl.body {
            TypeBody::Alias(ty) => {
                let ty = self.any_type(ty);
                self.hanging(ty, 2)
            }
            TypeBody::Record(fields) => {
                let mut parts = Vec::new();
                for (i, field) in fields.iter().enumerate() {
                    if i > 0 {
                        parts.push(self.separator(field.name.span.start));
                    }
                    parts.push(self.before(field.name.span.start));
                    parts.push(self.docs.text(format!("{} : ", field.name.name)));
                    parts.push(self.any_type(&field.ty));
                }
                parts.push(self.before_end(decl.span.end));
                let open = self.text(" {");
                self.bracketed(open, parts, "}", !fields.is_empty())
            }
            TypeBody::Variant(_) => self.variant(decl),
        };
        let trail = self.behind(decl.span.end);
        self.docs.concat([head, body, trail])
    }

    /// `A | B of t`: on one line, or each case on its own as the user has it.
    fn variant(&mut self, decl: &TypeDecl) -> Doc {
        let TypeBody::Variant(cases) = &decl.body else { return NIL };
        let last_start = cases.last().map_or(0, |case| case.span.start);
        let broken = self.broken_between(decl.name.span.end, last_start);
        let mut parts = Vec::new();
        for (i, case) in cases.iter().enumerate() {
            let bar = self.text("| ");
            if broken {
                parts.push(self.line_before(case.span.start));
                parts.push(bar);
            } else {
                parts.push(self.at_line_end(case.span.start));
                parts.push(self.docs.line());
                parts.push(self.docs.if_break(bar, if i == 0 { NIL } else { bar }));
                parts.push(self.before(case.span.start));
            }
            parts.push(self.ident(&case.name));
            if !case.args.is_empty() {
                let args = case.args.iter().map(|arg| self.constructor_arg(arg)).collect();
                parts.push(self.text(" of "));
                parts.push(self.separated(args, " * "));
            }
            parts.push(self.behind(case.span.end));
        }
        let doc = self.docs.concat(parts);
        let doc = self.docs.nest(2, doc);
        self.docs.group(doc)
    }
}

/// Whether a variable `to` is applied to, or stands before, a string somewhere outside brackets; to be safe, whether
/// there is one among the arguments of any application at the outside.
fn mentions_to(value: &Expr) -> bool {
    let is_to =
        |e: &Expr| matches!(&e.kind, ExprKind::Var(path) if path.modules.is_empty() && &*path.name.name == "to");
    let mut todo = vec![value];
    while let Some(expr) = todo.pop() {
        match &expr.kind {
            ExprKind::App(function, args) if args.iter().any(is_to) || is_to(function) => return true,
            ExprKind::Binary(_, _, left, right) => todo.extend([&**left, &**right]),
            ExprKind::Unary(_, operand) => todo.push(operand),
            ExprKind::Let(group, body) => {
                todo.extend(group.bindings.iter().map(|binding| &binding.body));
                todo.push(body);
            }
            ExprKind::Fun(_, body) | ExprKind::Open(_, body) => todo.push(body),
            ExprKind::If(a, b, c) => todo.extend([&**a, &**b, &**c]),
            ExprKind::Function(arms) => todo.extend(arms.iter().map(|arm| &arm.body)),
            ExprKind::Match(scrutinee, arms) => {
                todo.push(scrutinee);
                todo.extend(arms.iter().map(|arm| &arm.body));
            }
            // Between brackets `to` is a name.
            _ => {}
        }
    }
    false
}
