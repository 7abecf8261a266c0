//! `let`, inside expressions and at the top level.

use super::cursor::Parser;
use super::expr::no_expr;
use crate::ast::{Binding, Expr, ExprKind, Ident, LetGroup, Path, PatternKind};
use crate::error::SyntaxError;
use crate::token::Token;

impl<'t> Parser<'t> {
    /// `let x = e in body`, `let open M in body`
    pub fn let_expr(&mut self) -> Expr {
        let start = self.pos;
        if self.peek_second() == Token::Open {
            return self.let_open();
        }
        let outer = self.layout;
        if !self.boundaries.has_in(start) {
            // There is no `in`: the best guess at where it belongs is the next line that is not indented further.
            self.layout.offside = self.lexemes.get(start).map_or(0, |lexeme| lexeme.column);
        }
        self.bump();
        let group = self.let_group();
        self.layout = outer;
        let body = self.after_in(start);
        self.grow();
        Expr { kind: ExprKind::Let(group, Box::new(body)), span: self.span_from(start) }
    }

    fn let_open(&mut self) -> Expr {
        let start = self.pos;
        self.bump();
        self.bump();
        let path = self.module_path();
        let body = self.after_in(start);
        self.grow();
        Expr { kind: ExprKind::Open(path, Box::new(body)), span: self.span_from(start) }
    }

    /// `in body`, for the `let` at `start`.
    fn after_in(&mut self, start: usize) -> Expr {
        if self.eat(Token::In) {
            return self.expr();
        }
        let (let_span, span) = (self.span_at(start), self.after_last());
        self.report(SyntaxError::MissingIn { let_span, span, found: self.found() });
        // Go on as if it had been there.
        if self.peek().starts_expression() {
            self.expr()
        } else {
            no_expr(self.after_last())
        }
    }

    /// What follows `let`: `rec`, and definitions joined by `and`.
    pub fn let_group(&mut self) -> LetGroup {
        let recursive = self.eat(Token::Rec);
        let mut bindings = vec![self.binding()];
        while self.eat(Token::And) {
            bindings.push(self.binding());
        }
        LetGroup { recursive, bindings }
    }

    /// `p = e`, `f p q : t = e`, `f : 'a. t = e`
    fn binding(&mut self) -> Binding {
        let start = self.pos;
        if self.at(Token::Mutable) {
            self.foreign();
        }
        let pattern = self.pattern();
        let mut params = Vec::new();
        if matches!(pattern.kind, PatternKind::Var(_) | PatternKind::Error) {
            while self.peek().starts_simple_pattern() {
                params.push(self.simple_pattern());
            }
        }
        let mut quantified = Vec::new();
        let mut annotation = None;
        if self.eat(Token::Colon) {
            quantified = self.quantified();
            annotation = Some(self.type_expr());
        }
        self.expect_equal("`=` and a value");
        let body = self.expr();
        Binding { pattern, params, quantified, annotation, body, span: self.span_from(start) }
    }

    /// `'a 'b.` before a type.
    fn quantified(&mut self) -> Vec<Ident> {
        let mut at = self.pos;
        while self.token_at(at) == Token::TypeVar {
            at += 1;
        }
        let mut names = Vec::new();
        if at > self.pos && self.token_at(at) == Token::Dot {
            while self.at(Token::TypeVar) {
                names.push(self.type_var());
            }
            self.bump();
        }
        names
    }

    /// `=`, or what other languages write for it.
    pub fn expect_equal(&mut self, expected: &'static str) {
        match self.peek() {
            Token::Equal => self.bump(),
            Token::EqualEqual
            | Token::ColonEqual
            | Token::FatArrow
            | Token::LeftArrow
            | Token::Arrow
            | Token::Colon => {
                self.report(SyntaxError::DefinitionSign { span: self.here(), text: self.word().into() });
                self.bump();
            }
            _ => {
                self.unexpected(expected);
                self.skip_to(&[Token::Equal, Token::Semicolon, Token::Bar]);
                self.eat(Token::Equal);
            }
        }
    }

    /// `M`, `M.N`
    pub fn module_path(&mut self) -> Path {
        let start = self.pos;
        let mut modules = Vec::new();
        let mut name = self.module_name();
        while self.at(Token::Dot) && self.peek_second() == Token::UpperName {
            self.bump();
            modules.push(std::mem::replace(&mut name, self.ident()));
        }
        Path { modules, name, span: self.span_from(start) }
    }

    pub fn module_name(&mut self) -> Ident {
        match self.peek() {
            Token::UpperName => self.ident(),
            Token::LowerName => {
                self.report(SyntaxError::LowerCaseModule { span: self.here(), name: self.word().into() });
                self.ident()
            }
            _ => {
                self.unexpected("the name of a module");
                self.no_ident()
            }
        }
    }
}
