//! Type expressions and type declarations.

use super::cursor::Parser;
use crate::ast::{ConstructorDecl, FieldDecl, Ident, Path, SizeExpr, TypeBody, TypeDecl, TypeExpr, TypeExprKind};
use crate::error::SyntaxError;
use crate::token::Token;
use gradus_source::Span;

fn no_type(span: Span) -> TypeExpr {
    TypeExpr { kind: TypeExprKind::Error, span }
}

impl<'t> Parser<'t> {
    /// `a -> b`
    pub fn type_expr(&mut self) -> TypeExpr {
        self.deeper(no_type, |p| {
            let start = p.pos;
            let left = p.tuple_type();
            if !p.eat(Token::Arrow) {
                return left;
            }
            let right = p.type_expr();
            p.grow();
            TypeExpr { kind: TypeExprKind::Fun(Box::new(left), Box::new(right)), span: p.span_from(start) }
        })
    }

    /// `a * b * c`
    fn tuple_type(&mut self) -> TypeExpr {
        let start = self.pos;
        let mut parts = self.type_product();
        match parts.len() {
            1 => parts.swap_remove(0),
            _ => TypeExpr { kind: TypeExprKind::Tuple(parts), span: self.span_from(start) },
        }
    }

    /// The factors of `a * b * c`.
    fn type_product(&mut self) -> Vec<TypeExpr> {
        let mut parts = vec![self.postfix_type()];
        while self.eat(Token::Star) {
            parts.push(self.postfix_type());
        }
        if parts.len() > 1 {
            self.grow();
        }
        parts
    }

    /// `'a tree`, `real[n][m]`
    fn postfix_type(&mut self) -> TypeExpr {
        let start = self.pos;
        let mut ty = self.atomic_type();
        loop {
            match self.peek() {
                Token::LowerName | Token::UpperName if !self.at_from() => {
                    let path = self.type_path();
                    self.grow();
                    ty = TypeExpr { kind: TypeExprKind::Named(path, vec![ty]), span: self.span_from(start) };
                }
                Token::LeftBracket => ty = self.array_type(start, ty),
                _ => return ty,
            }
        }
    }

    fn at_from(&self) -> bool {
        self.layout.from_ends && self.word() == "from"
    }

    /// `element[n][m]` has n rows of m elements: the last size is the innermost.
    fn array_type(&mut self, start: usize, element: TypeExpr) -> TypeExpr {
        let mut sizes = Vec::new();
        while self.at(Token::LeftBracket) {
            sizes.push(self.size());
            self.grow();
        }
        let span = self.span_from(start);
        sizes
            .into_iter()
            .rev()
            .fold(element, |ty, size| TypeExpr { kind: TypeExprKind::Array(Box::new(ty), size), span })
    }

    /// `[n]`, `[3]`, `[]`
    fn size(&mut self) -> SizeExpr {
        let open = self.pos;
        self.bump();
        let size = self.inside(|p| match p.peek() {
            Token::RightBracket => SizeExpr::Unknown,
            Token::Underscore => {
                p.bump();
                SizeExpr::Unknown
            }
            Token::LowerName => SizeExpr::Var(p.ident()),
            Token::Int => {
                let span = p.here();
                let value = p.int_text().parse().ok();
                if value.is_none() {
                    p.report(SyntaxError::BadNumber { span, part: false });
                }
                p.bump();
                value.map_or(SizeExpr::Unknown, |value| SizeExpr::Literal(value, span))
            }
            _ => {
                p.unexpected("a size: a number, a variable or nothing");
                SizeExpr::Unknown
            }
        });
        self.close(open);
        size
    }

    fn atomic_type(&mut self) -> TypeExpr {
        let start = self.pos;
        let kind = match self.peek() {
            Token::TypeVar => TypeExprKind::Var(self.type_var()),
            Token::Underscore => {
                self.bump();
                TypeExprKind::Wild
            }
            Token::LowerName | Token::UpperName if !self.at_from() => TypeExprKind::Named(self.type_path(), Vec::new()),
            Token::LeftParen => return self.paren_type(),
            _ => {
                self.unexpected("a type");
                TypeExprKind::Error
            }
        };
        TypeExpr { kind, span: self.span_from(start) }
    }

    /// `(t)`, `(t, u) name`
    fn paren_type(&mut self) -> TypeExpr {
        let open = self.pos;
        self.bump();
        let mut args = self.inside(|p| {
            let mut args = vec![p.type_expr()];
            while p.eat(Token::Comma) {
                args.push(p.type_expr());
            }
            args
        });
        self.close(open);
        if args.len() == 1 {
            return args.swap_remove(0);
        }
        let span = self.span_from(open);
        if matches!(self.peek(), Token::LowerName | Token::UpperName) && !self.at_from() {
            let path = self.type_path();
            self.grow();
            return TypeExpr { kind: TypeExprKind::Named(path, args), span: self.span_from(open) };
        }
        self.report(SyntaxError::TupleTypeComma { span });
        TypeExpr { kind: TypeExprKind::Tuple(args), span }
    }

    /// `'a`, without its quote.
    pub fn type_var(&mut self) -> Ident {
        let span = self.here();
        let word = self.word();
        let ident = Ident { name: self.name(word.strip_prefix('\'').unwrap_or(word)), span };
        self.bump();
        ident
    }

    fn type_path(&mut self) -> Path {
        let start = self.pos;
        let mut modules = Vec::new();
        while self.at(Token::UpperName) && self.peek_second() == Token::Dot {
            modules.push(self.ident());
            self.bump();
        }
        let name = self.lower_name("the name of a type");
        Path { modules, name, span: self.span_from(start) }
    }

    // Declarations.

    /// `('a, 'b) name = ...`
    pub fn type_decl(&mut self) -> TypeDecl {
        let start = self.pos;
        let params = self.type_params();
        let name = self.lower_name("the name of the type");
        self.expect_equal("`=` and the definition of the type");
        let body = self.type_body();
        TypeDecl { params, name, body, span: self.span_from(start) }
    }

    fn type_params(&mut self) -> Vec<Ident> {
        match self.peek() {
            Token::TypeVar => vec![self.type_var()],
            Token::LeftParen => {
                let open = self.pos;
                self.bump();
                let mut params = Vec::new();
                loop {
                    match self.peek() {
                        Token::TypeVar => params.push(self.type_var()),
                        _ => self.unexpected("a type variable such as `'a`"),
                    }
                    if !self.eat(Token::Comma) {
                        break;
                    }
                }
                self.close(open);
                params
            }
            _ => Vec::new(),
        }
    }

    fn type_body(&mut self) -> TypeBody {
        match self.peek() {
            Token::LeftBrace => TypeBody::Record(self.field_decls()),
            Token::Bar => self.variant(),
            Token::UpperName if self.peek_second() != Token::Dot => self.variant(),
            Token::LowerName if matches!(self.peek_second(), Token::Of | Token::Bar) => self.variant(),
            _ => TypeBody::Alias(self.type_expr()),
        }
    }

    /// `{ x : real; y : real }`
    fn field_decls(&mut self) -> Vec<FieldDecl> {
        let open = self.pos;
        self.bump();
        let mut fields = Vec::new();
        if self.at(Token::RightBrace) {
            self.unexpected("the name of a field");
        }
        while !matches!(self.peek(), Token::RightBrace | Token::End) {
            if self.at(Token::Mutable) {
                self.foreign();
            }
            let before = self.pos;
            let name = self.lower_name("the name of a field");
            self.expect(Token::Colon, "`:` and the type of the field");
            let ty = self.type_expr();
            fields.push(FieldDecl { name, ty });
            if self.at(Token::Comma) {
                self.report(SyntaxError::FieldComma { span: self.here() });
                self.bump();
            } else if !self.eat(Token::Semicolon) || self.pos == before {
                break;
            }
        }
        self.close(open);
        fields
    }

    fn variant(&mut self) -> TypeBody {
        self.eat(Token::Bar);
        let mut constructors = vec![self.constructor_decl()];
        while self.eat(Token::Bar) {
            constructors.push(self.constructor_decl());
        }
        TypeBody::Variant(constructors)
    }

    /// `Node of a * b`
    fn constructor_decl(&mut self) -> ConstructorDecl {
        let start = self.pos;
        let name = match self.peek() {
            Token::UpperName => self.ident(),
            Token::LowerName => {
                self.report(SyntaxError::LowerCaseConstructor { span: self.here(), name: self.word().into() });
                self.ident()
            }
            _ => {
                self.unexpected("a constructor such as `Leaf`");
                self.no_ident()
            }
        };
        let args = match self.peek() {
            Token::Of => {
                self.bump();
                self.type_product()
            }
            Token::LowerName | Token::UpperName | Token::TypeVar | Token::LeftParen => {
                self.report(SyntaxError::MissingOf { span: self.here() });
                self.type_product()
            }
            _ => Vec::new(),
        };
        ConstructorDecl { name, args, span: self.span_from(start) }
    }
}
