//! Expressions, from the loosest form down to application.

use super::cursor::Parser;
use crate::ast::{Arm, BinaryOp, Expr, ExprKind, UnaryOp};
use crate::error::SyntaxError;
use crate::operators::{self, Associativity, Operator, NEGATION};
use crate::token::Token;
use gradus_source::Span;

pub fn no_expr(span: Span) -> Expr {
    Expr { kind: ExprKind::Error, span }
}

impl<'t> Parser<'t> {
    /// An expression that must be the whole text.
    pub fn whole_expr(&mut self) -> Expr {
        let expr = self.expr();
        while self.at(Token::Semicolon) {
            self.sequence();
        }
        if self.pos < self.limit {
            self.unexpected("the end of the expression");
        }
        expr
    }

    /// Any expression, a tuple without parentheses included.
    pub fn expr(&mut self) -> Expr {
        self.deeper(no_expr, |p| {
            let start = p.pos;
            let first = p.binary(0);
            if !p.at(Token::Comma) {
                return first;
            }
            let mut parts = vec![first];
            while p.eat(Token::Comma) {
                parts.push(p.expr_without_comma());
            }
            p.grow();
            Expr { kind: ExprKind::Tuple(parts), span: p.span_from(start) }
        })
    }

    /// An expression where a comma belongs to what is around.
    pub fn expr_without_comma(&mut self) -> Expr {
        self.deeper(no_expr, |p| p.binary(0))
    }

    /// Operands joined by operators that bind at least as tightly as `loosest`.
    fn binary(&mut self, loosest: u8) -> Expr {
        let start = self.pos;
        let mut left = self.operand();
        loop {
            let token = self.peek();
            if let Some(row) = operators::of_token(token).or_else(|| operators::of_foreign(token)) {
                if row.precedence < loosest {
                    return left;
                }
                left = self.infix(start, left, row);
            } else if matches!(token, Token::ColonEqual | Token::LeftArrow | Token::AtAt) && loosest == 0 {
                // Not an operator at all: read the right side, so that its own mistakes are found.
                self.foreign();
                self.deeper(no_expr, |p| p.binary(0));
                left = no_expr(self.span_from(start));
            } else {
                return left;
            }
        }
    }

    /// The operator at hand with its right operand.
    fn infix(&mut self, start: usize, left: Expr, row: &'static Operator) -> Expr {
        let op_span = self.here();
        if self.peek() == row.token {
            self.bump();
        } else {
            self.foreign();
        }
        let loosest = match row.associativity {
            Associativity::Left => row.precedence + 1,
            Associativity::Right => row.precedence,
        };
        let right = self.deeper(no_expr, |p| p.binary(loosest));
        self.grow();
        let kind = ExprKind::Binary(row.op, op_span, Box::new(left), Box::new(right));
        Expr { kind, span: self.span_from(start) }
    }

    /// What stands between operators. Forms that begin with a word reach as far to the right as they can.
    fn operand(&mut self) -> Expr {
        match self.peek() {
            Token::Let => self.let_expr(),
            Token::Fun => self.fun(),
            Token::Function => self.function(),
            Token::If => self.if_expr(),
            Token::Match => self.match_expr(),
            Token::Minus | Token::MinusDot => self.negation(),
            Token::Bang | Token::Return | Token::Tilde | Token::Question => {
                self.foreign();
                self.deeper(no_expr, |p| p.operand())
            }
            Token::For | Token::While | Token::Try | Token::Backslash => {
                // The rest of such a form would only be a row of further errors.
                let start = self.pos;
                self.foreign();
                self.skip_to(&[Token::Semicolon, Token::Bar]);
                no_expr(self.span_from(start))
            }
            _ => self.application(),
        }
    }

    fn negation(&mut self) -> Expr {
        let start = self.pos;
        if self.at(Token::MinusDot) {
            self.foreign();
        } else {
            self.bump();
        }
        let operand = self.deeper(no_expr, |p| p.binary(NEGATION + 1));
        self.grow();
        Expr { kind: ExprKind::Unary(UnaryOp::Neg, Box::new(operand)), span: self.span_from(start) }
    }

    /// `f a b`
    fn application(&mut self) -> Expr {
        let start = self.pos;
        let function = self.postfix();
        if self.pos == start {
            return function;
        }
        let mut args = Vec::new();
        loop {
            match self.peek() {
                Token::Fun | Token::Function | Token::If | Token::Match if !self.on_new_line() => {
                    let word = self.word().into();
                    self.report(SyntaxError::NeedsParentheses { span: self.here(), word });
                    args.push(self.expr());
                }
                token if token.starts_argument() && !self.at_to() => args.push(self.deeper(no_expr, Self::postfix)),
                _ => break,
            }
        }
        if args.is_empty() {
            return function;
        }
        self.grow();
        Expr { kind: ExprKind::App(Box::new(function), args), span: self.span_from(start) }
    }

    fn on_new_line(&self) -> bool {
        self.lexemes.get(self.pos).is_some_and(|lexeme| lexeme.first)
    }

    /// At the `to` of `plot e to "file"`.
    fn at_to(&self) -> bool {
        self.layout.to_ends
            && self.word() == "to"
            && matches!(self.peek_second(), Token::String | Token::UnclosedString | Token::End)
    }

    /// `fun p q -> e`
    fn fun(&mut self) -> Expr {
        let start = self.pos;
        self.bump();
        let mut params = vec![self.simple_pattern()];
        while self.peek().starts_simple_pattern() {
            params.push(self.simple_pattern());
        }
        self.expect_arrow("`->` and the function's value", start);
        let body = self.expr();
        self.grow();
        Expr { kind: ExprKind::Fun(params, Box::new(body)), span: self.span_from(start) }
    }

    /// `function A -> e | B -> e`
    fn function(&mut self) -> Expr {
        let start = self.pos;
        self.bump();
        let arms = self.arms();
        self.grow();
        Expr { kind: ExprKind::Function(arms), span: self.span_from(start) }
    }

    /// `match e with A -> e | B -> e`
    fn match_expr(&mut self) -> Expr {
        let start = self.pos;
        self.bump();
        let scrutinee = self.expr();
        if !self.at(Token::With) {
            self.unexpected_since("`with`", Some((self.span_at(start), "this `match` needs `with`")));
            self.skip_to(&[Token::With, Token::Bar]);
        }
        self.eat(Token::With);
        let arms = self.arms();
        self.grow();
        Expr { kind: ExprKind::Match(Box::new(scrutinee), arms), span: self.span_from(start) }
    }

    fn arms(&mut self) -> Vec<Arm> {
        self.eat(Token::Bar);
        let mut arms = vec![self.arm()];
        while self.eat(Token::Bar) {
            arms.push(self.arm());
        }
        arms
    }

    /// `p when e -> e`
    fn arm(&mut self) -> Arm {
        let start = self.pos;
        let pattern = self.pattern();
        let guard = if self.eat(Token::When) { Some(self.expr()) } else { None };
        self.expect_arrow("`->`", start);
        let body = self.expr();
        Arm { pattern, guard, body, span: self.span_from(start) }
    }

    /// `->`, or what other languages write for it.
    fn expect_arrow(&mut self, expected: &'static str, start: usize) {
        match self.peek() {
            Token::Arrow => self.bump(),
            Token::FatArrow => self.foreign(),
            Token::Equal => {
                self.unexpected(expected);
                self.bump();
            }
            _ => {
                self.unexpected_since(expected, Some((self.span_at(start), "after this")));
                self.skip_to(&[Token::Arrow, Token::Bar, Token::Semicolon]);
                self.eat(Token::Arrow);
            }
        }
    }

    /// `if a then b else c`
    fn if_expr(&mut self) -> Expr {
        let start = self.pos;
        let if_span = self.here();
        self.bump();
        let condition = self.expr();
        if !self.at(Token::Then) {
            self.unexpected_since("`then`", Some((if_span, "this `if` needs `then`")));
            self.skip_to(&[Token::Then, Token::Else, Token::Bar, Token::Semicolon]);
        }
        self.eat(Token::Then);
        let yes = self.expr();
        let no = match self.peek() {
            Token::Else => {
                self.bump();
                self.expr()
            }
            Token::Elif => {
                // Read on as if it were `else if`.
                let error = SyntaxError::Foreign { span: self.here(), token: Token::Elif, text: self.word().into() };
                self.report(error);
                self.deeper(no_expr, Self::if_expr)
            }
            _ => {
                let span = self.after_last();
                self.report(SyntaxError::MissingElse { if_span, span, found: self.found() });
                no_expr(span)
            }
        };
        self.grow();
        let kind = ExprKind::If(Box::new(condition), Box::new(yes), Box::new(no));
        Expr { kind, span: self.span_from(start) }
    }

    /// `; e` where no list, array or record is: reported, read and dropped.
    pub fn sequence(&mut self) {
        let span = self.here();
        self.report(SyntaxError::Sequence { span });
        self.bump();
        if self.peek().starts_expression() {
            self.expr();
        }
    }

    /// The operator of `( + )`, if that is what follows the parenthesis.
    pub fn section(&self) -> Option<BinaryOp> {
        if self.peek_second() != Token::RightParen {
            return None;
        }
        operators::of_token(self.peek()).map(|row| row.op)
    }
}
