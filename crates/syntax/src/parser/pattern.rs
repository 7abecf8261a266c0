//! Patterns: from loosest to tightest `as`, `|`, `,`, `::`, a constructor with its argument, simple ones.

use super::cursor::Parser;
use crate::ast::{Path, Pattern, PatternKind};
use crate::error::SyntaxError;
use crate::operators;
use crate::token::Token;
use gradus_source::Span;

fn no_pattern(span: Span) -> Pattern {
    Pattern { kind: PatternKind::Error, span }
}

impl<'t> Parser<'t> {
    /// `p as x`
    pub fn pattern(&mut self) -> Pattern {
        self.deeper(no_pattern, |p| {
            let start = p.pos;
            let mut pattern = p.or_pattern();
            while p.eat(Token::As) {
                let name = p.lower_name("the name for the value");
                p.grow();
                pattern = Pattern { kind: PatternKind::As(Box::new(pattern), name), span: p.span_from(start) };
            }
            pattern
        })
    }

    /// `p | q`
    fn or_pattern(&mut self) -> Pattern {
        let start = self.pos;
        let first = self.tuple_pattern();
        if !self.at(Token::Bar) {
            return first;
        }
        let mut cases = vec![first];
        while self.eat(Token::Bar) {
            cases.push(self.tuple_pattern());
        }
        self.grow();
        Pattern { kind: PatternKind::Or(cases), span: self.span_from(start) }
    }

    /// `p, q`
    fn tuple_pattern(&mut self) -> Pattern {
        let start = self.pos;
        let first = self.cons_pattern();
        if !self.at(Token::Comma) {
            return first;
        }
        let mut parts = vec![first];
        while self.eat(Token::Comma) {
            parts.push(self.cons_pattern());
        }
        self.grow();
        Pattern { kind: PatternKind::Tuple(parts), span: self.span_from(start) }
    }

    /// `p :: q`
    fn cons_pattern(&mut self) -> Pattern {
        let start = self.pos;
        let head = self.applied_pattern();
        if !self.eat(Token::ColonColon) {
            return head;
        }
        let tail = self.deeper(no_pattern, Self::cons_pattern);
        self.grow();
        Pattern { kind: PatternKind::Cons(Box::new(head), Box::new(tail)), span: self.span_from(start) }
    }

    /// `Node p`; of `Node p q` it is told that its arguments stand in parentheses.
    fn applied_pattern(&mut self) -> Pattern {
        let start = self.pos;
        let pattern = self.simple_pattern();
        match pattern.kind {
            PatternKind::Constructor(path, None)
                if self.token_at(start) == Token::UpperName && self.peek().starts_simple_pattern() =>
            {
                let first = self.pos;
                let mut arg = self.deeper(no_pattern, Self::simple_pattern);
                if self.peek().starts_simple_pattern() {
                    let mut parts = vec![arg];
                    while self.peek().starts_simple_pattern() {
                        parts.push(self.deeper(no_pattern, Self::simple_pattern));
                    }
                    let written = parts.iter().map(|part| self.written(part.span)).collect();
                    let name = path.name.name.to_string();
                    self.report(SyntaxError::CurriedPattern { span: self.span_from(start), name, written });
                    arg = Pattern { kind: PatternKind::Tuple(parts), span: self.span_from(first) };
                }
                self.grow();
                Pattern { kind: PatternKind::Constructor(path, Some(Box::new(arg))), span: self.span_from(start) }
            }
            _ => pattern,
        }
    }

    /// A pattern that can be a parameter.
    pub fn simple_pattern(&mut self) -> Pattern {
        let start = self.pos;
        let kind = match self.peek() {
            Token::Underscore => {
                self.bump();
                PatternKind::Wild
            }
            Token::LowerName => PatternKind::Var(self.ident().name),
            Token::UpperName => PatternKind::Constructor(self.constructor_path(), None),
            Token::True | Token::False => {
                let value = self.at(Token::True);
                self.bump();
                PatternKind::Bool(value)
            }
            Token::Int => {
                let text = self.int_text();
                self.bump();
                PatternKind::Int(text)
            }
            Token::Real => {
                let text = self.real_text();
                self.bump();
                PatternKind::Real(text)
            }
            Token::Minus => self.negative_pattern(),
            Token::String | Token::UnclosedString => PatternKind::String(self.string().value),
            Token::BadNumber | Token::Character => {
                self.bump();
                PatternKind::Error
            }
            Token::LeftParen => return self.paren_pattern(),
            Token::LeftBracket => PatternKind::List(self.pattern_list(Token::RightBracket)),
            Token::LeftArray => PatternKind::Array(self.pattern_list(Token::RightArray)),
            Token::LeftBrace => self.record_pattern(),
            _ => {
                self.unexpected("a pattern");
                PatternKind::Error
            }
        };
        Pattern { kind, span: self.span_from(start) }
    }

    /// `-1`: the numeral keeps its sign.
    fn negative_pattern(&mut self) -> PatternKind {
        self.bump();
        let kind = match self.peek() {
            Token::Int => PatternKind::Int(format!("-{}", self.int_text()).into()),
            Token::Real => PatternKind::Real(format!("-{}", self.real_text()).into()),
            _ => {
                self.unexpected("a number");
                return PatternKind::Error;
            }
        };
        self.bump();
        kind
    }

    /// `()`, `(p)`, `(p : t)`
    fn paren_pattern(&mut self) -> Pattern {
        let open = self.pos;
        self.bump();
        if self.eat(Token::RightParen) {
            return Pattern { kind: PatternKind::Unit, span: self.span_from(open) };
        }
        if operators::of_token(self.peek()).is_some() && self.peek_second() == Token::RightParen {
            self.report(SyntaxError::OperatorDefinition { span: self.here() });
            self.bump();
            self.bump();
            return no_pattern(self.span_from(open));
        }
        let mut pattern = self.inside(|p| {
            let first = p.annotated_pattern(open);
            if p.peek() != Token::Comma {
                return first;
            }
            let mut parts = vec![first];
            while p.peek() == Token::Comma {
                p.bump();
                let start = p.pos;
                parts.push(p.annotated_pattern(start));
            }
            p.report(SyntaxError::AnnotatedTuple { span: p.span_from(open + 1) });
            Pattern { kind: PatternKind::Tuple(parts), span: p.span_from(open) }
        });
        self.close(open);
        // The parentheses belong to the forms that need them.
        if matches!(pattern.kind, PatternKind::Annotation(..) | PatternKind::Tuple(_)) {
            pattern.span = self.span_from(open);
        }
        pattern
    }

    /// `p`, `p : t`
    fn annotated_pattern(&mut self, start: usize) -> Pattern {
        let pattern = self.pattern();
        if !self.eat(Token::Colon) {
            return pattern;
        }
        let ty = self.type_expr();
        self.grow();
        Pattern { kind: PatternKind::Annotation(Box::new(pattern), ty), span: self.span_from(start) }
    }

    /// `[p; q]`, `[| p; q |]`
    fn pattern_list(&mut self, closer: Token) -> Vec<Pattern> {
        let open = self.pos;
        self.bump();
        let items = self.inside(|p| {
            let mut items = Vec::new();
            while !matches!(p.peek(), Token::End) && !p.at(closer) {
                items.push(p.pattern());
                if !p.eat(Token::Semicolon) {
                    break;
                }
            }
            items
        });
        self.close(open);
        items
    }

    /// `{ x; y = p; _ }`
    fn record_pattern(&mut self) -> PatternKind {
        let start = self.pos;
        self.bump();
        let (fields, open) = self.inside(|p| {
            let mut fields = Vec::new();
            if p.at(Token::RightBrace) {
                p.unexpected("the name of a field");
            }
            while !matches!(p.peek(), Token::RightBrace | Token::End) {
                if p.eat(Token::Underscore) {
                    p.eat(Token::Semicolon);
                    return (fields, true);
                }
                let path = p.field_path();
                let pattern = if p.eat(Token::Equal) { Some(p.pattern()) } else { None };
                fields.push((path, pattern));
                if !p.eat(Token::Semicolon) {
                    break;
                }
            }
            (fields, false)
        });
        self.close(start);
        PatternKind::Record { fields, open }
    }

    /// `Leaf`, `Tree.Leaf`
    fn constructor_path(&mut self) -> Path {
        let start = self.pos;
        let mut modules = Vec::new();
        let mut name = self.ident();
        while self.at(Token::Dot) && self.peek_second() == Token::UpperName {
            self.bump();
            modules.push(std::mem::replace(&mut name, self.ident()));
        }
        Path { modules, name, span: self.span_from(start) }
    }

    /// `x`, `M.x`: the name of a field.
    pub fn field_path(&mut self) -> Path {
        let start = self.pos;
        let mut modules = Vec::new();
        while self.at(Token::UpperName) && self.peek_second() == Token::Dot {
            modules.push(self.ident());
            self.bump();
        }
        let name = self.lower_name("the name of a field");
        Path { modules, name, span: self.span_from(start) }
    }
}
