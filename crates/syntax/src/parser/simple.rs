//! Expressions that need no parentheses as an argument: literals, names, brackets, and `.` behind them.

use super::cursor::Parser;
use super::expr::no_expr;
use crate::ast::{Expr, ExprKind, Ident, Path};
use crate::error::SyntaxError;
use crate::operators;
use crate::token::Token;

impl<'t> Parser<'t> {
    /// `r.x`, `a.(i, j)`
    pub fn postfix(&mut self) -> Expr {
        let start = self.pos;
        let mut expr = self.atom();
        while self.pos > start && self.at(Token::Dot) {
            let kind = match self.peek_second() {
                Token::LeftParen => {
                    self.bump();
                    ExprKind::Index(Box::new(expr), self.indices())
                }
                Token::LowerName | Token::UpperName => {
                    self.bump();
                    ExprKind::Field(Box::new(expr), self.field_path())
                }
                Token::LeftBracket => {
                    self.report(SyntaxError::StringIndex { span: self.here() });
                    self.bump();
                    self.atom();
                    ExprKind::Error
                }
                _ => {
                    self.bump();
                    self.unexpected("the name of a field or `(`");
                    ExprKind::Error
                }
            };
            self.grow();
            expr = Expr { kind, span: self.span_from(start) };
        }
        expr
    }

    /// `(i, j)`
    fn indices(&mut self) -> Vec<Expr> {
        let open = self.pos;
        self.bump();
        let indices = self.inside(|p| {
            let mut indices = vec![p.expr_without_comma()];
            while p.eat(Token::Comma) {
                indices.push(p.expr_without_comma());
            }
            indices
        });
        self.close(open);
        indices
    }

    fn atom(&mut self) -> Expr {
        let start = self.pos;
        let kind = match self.peek() {
            Token::Int => {
                let text = self.int_text();
                self.bump();
                ExprKind::Int(text)
            }
            Token::Real => {
                let text = self.real_text();
                self.bump();
                ExprKind::Real(text)
            }
            Token::String | Token::UnclosedString => ExprKind::String(self.string().value),
            Token::True | Token::False => {
                let value = self.at(Token::True);
                self.bump();
                ExprKind::Bool(value)
            }
            Token::BadNumber | Token::Character => {
                self.bump();
                ExprKind::Error
            }
            Token::LowerName => {
                let name = self.ident();
                let span = name.span;
                ExprKind::Var(Path { modules: Vec::new(), name, span })
            }
            Token::UpperName => self.qualified(),
            Token::LeftParen => return self.paren(),
            Token::Begin => return self.begin(),
            Token::LeftBracket => ExprKind::List(self.elements(Token::RightBracket)),
            Token::LeftArray => self.array(),
            Token::LeftBrace => self.record(),
            _ => {
                self.unexpected("an expression");
                ExprKind::Error
            }
        };
        Expr { kind, span: self.span_from(start) }
    }

    /// `Leaf`, `Tree.Leaf`, `Optim.descend`, `Optim.(e)`
    fn qualified(&mut self) -> ExprKind {
        let start = self.pos;
        let mut modules: Vec<Ident> = Vec::new();
        let mut name = self.ident();
        while self.at(Token::Dot) {
            match self.peek_second() {
                Token::UpperName => {
                    self.bump();
                    modules.push(std::mem::replace(&mut name, self.ident()));
                }
                Token::LowerName => {
                    self.bump();
                    modules.push(std::mem::replace(&mut name, self.ident()));
                    return ExprKind::Var(Path { modules, name, span: self.span_from(start) });
                }
                Token::LeftParen => {
                    let path = Path { modules, name, span: self.span_from(start) };
                    self.bump();
                    let body = self.paren();
                    self.grow();
                    return ExprKind::Open(path, Box::new(body));
                }
                _ => break,
            }
        }
        ExprKind::Constructor(Path { modules, name, span: self.span_from(start) })
    }

    /// `()`, `( + )`, `(e)`, `(e : t)`
    fn paren(&mut self) -> Expr {
        let open = self.pos;
        self.bump();
        if self.eat(Token::RightParen) {
            return Expr { kind: ExprKind::Unit, span: self.span_from(open) };
        }
        if let Some(op) = self.section() {
            self.bump();
            self.bump();
            return Expr { kind: ExprKind::Operator(op), span: self.span_from(open) };
        }
        if operators::of_foreign(self.peek()).is_some() && self.peek_second() == Token::RightParen {
            self.foreign();
            self.bump();
            return no_expr(self.span_from(open));
        }
        let mut expr = self.inside(|p| {
            let expr = p.expr();
            while p.at(Token::Semicolon) {
                p.sequence();
            }
            if p.eat(Token::Colon) {
                let ty = p.type_expr();
                p.grow();
                Expr { kind: ExprKind::Annotation(Box::new(expr), ty), span: p.span_from(open) }
            } else {
                expr
            }
        });
        self.close(open);
        // The parentheses belong to the forms that need them.
        if matches!(expr.kind, ExprKind::Annotation(..) | ExprKind::Tuple(_)) {
            expr.span = self.span_from(open);
        }
        expr
    }

    /// `begin e end`
    fn begin(&mut self) -> Expr {
        let open = self.pos;
        self.bump();
        let expr = self.inside(|p| {
            let expr = p.expr();
            while p.at(Token::Semicolon) {
                p.sequence();
            }
            expr
        });
        self.close(open);
        expr
    }

    /// `[a; b]` and the like, brackets included.
    fn elements(&mut self, closer: Token) -> Vec<Expr> {
        let open = self.pos;
        self.bump();
        let items = self.inside(|p| {
            let mut items = Vec::new();
            while !p.at(closer) && !p.at(Token::End) {
                items.push(p.expr());
                if !p.eat(Token::Semicolon) {
                    break;
                }
            }
            items
        });
        self.close(open);
        items
    }

    /// `[| a; b |]`, `[| for i < n, j < m -> e |]`
    fn array(&mut self) -> ExprKind {
        if self.peek_second() != Token::For {
            return ExprKind::Array(self.elements(Token::RightArray));
        }
        let open = self.pos;
        self.bump();
        self.bump();
        let kind = self.inside(|p| {
            let mut ranges = vec![p.range()];
            while p.eat(Token::Comma) {
                p.eat(Token::For);
                ranges.push(p.range());
            }
            if p.at(Token::FatArrow) {
                p.foreign();
            } else if !p.eat(Token::Arrow) {
                p.unexpected("`->` and the element");
                p.skip_to(&[Token::Arrow]);
                p.eat(Token::Arrow);
            }
            let body = p.expr();
            p.grow();
            ExprKind::Comprehension(ranges, Box::new(body))
        });
        self.close(open);
        kind
    }

    /// `i < n`
    fn range(&mut self) -> (Ident, Expr) {
        let name = self.lower_name("the name of an index");
        if !self.eat(Token::Less) {
            self.unexpected("`<` and the number of elements");
            // `for i in 0 .. n`, `for i = 0 to n`: nothing of it can be kept.
            while !matches!(self.peek(), Token::Comma | Token::Arrow | Token::RightArray | Token::End) {
                self.bump();
            }
            self.hush();
            return (name, no_expr(self.after_last()));
        }
        (name, self.expr_without_comma())
    }

    /// `{ x = e; y }`, `{ r with x = e }`
    fn record(&mut self) -> ExprKind {
        let open = self.pos;
        self.bump();
        let kind = self.inside(|p| {
            if p.at(Token::RightBrace) || p.at_field() {
                return ExprKind::Record(p.fields());
            }
            let base = p.deeper(no_expr, Self::postfix);
            p.expect(Token::With, "`with` or `=`");
            let fields = p.fields();
            p.grow();
            ExprKind::RecordWith(Box::new(base), fields)
        });
        self.grow();
        self.close(open);
        kind
    }

    /// Whether a field's name stands here, rather than the expression before `with`.
    fn at_field(&self) -> bool {
        let mut at = self.pos;
        while self.token_at(at) == Token::UpperName && self.token_at(at + 1) == Token::Dot {
            at += 2;
        }
        use Token::*;
        self.token_at(at) == LowerName
            && matches!(self.token_at(at + 1), Equal | EqualEqual | ColonEqual | Colon | Semicolon | Comma | RightBrace)
    }

    fn fields(&mut self) -> Vec<(Path, Option<Expr>)> {
        let mut fields = Vec::new();
        if self.at(Token::RightBrace) {
            self.unexpected("the name of a field");
        }
        while !matches!(self.peek(), Token::RightBrace | Token::End) {
            let path = self.field_path();
            let value = match self.peek() {
                Token::Semicolon | Token::Comma | Token::RightBrace => None,
                _ => {
                    self.expect_equal("`=` and the value of the field");
                    Some(self.expr_without_comma())
                }
            };
            fields.push((path, value));
            if self.at(Token::Comma) {
                self.report(SyntaxError::FieldComma { span: self.here() });
                self.bump();
            } else if !self.eat(Token::Semicolon) {
                break;
            }
        }
        fields
    }
}
