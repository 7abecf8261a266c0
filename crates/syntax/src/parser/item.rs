//! The top level of a file: one item after the other.

use super::boundary::ITEM_WORDS;
use super::cursor::{Layout, Parser};
use crate::ast::{Direction, Item, ItemKind, Module, Text};
use crate::error::SyntaxError;
use crate::token::Token;

impl<'t> Parser<'t> {
    pub fn module(&mut self) -> Module {
        let mut items = Vec::new();
        let end = self.limit;
        let starts = std::mem::take(&mut self.boundaries.items);
        let mut next = 0;
        while self.pos < end {
            // The item may reach to where the next one surely begins.
            while starts.get(next).is_some_and(|&start| start <= self.pos) {
                next += 1;
            }
            self.limit = starts.get(next).copied().unwrap_or(end);
            if let Some(item) = self.item() {
                items.push(item);
            }
        }
        Module { items }
    }

    fn item(&mut self) -> Option<Item> {
        let start = self.pos;
        self.layout = Layout::default();
        self.reset_nesting();
        let kind = match self.peek() {
            Token::SemicolonSemicolon => {
                self.foreign();
                return None;
            }
            Token::Let => self.let_item(),
            Token::Type => self.type_item(),
            Token::Open => {
                self.bump();
                ItemKind::Open(self.module_path())
            }
            Token::LowerName if ITEM_WORDS.contains(&self.word()) => self.worded_item(),
            _ => self.stray_expression(),
        };
        self.finish_item(start);
        Some(Item { kind, span: self.span_from(start) })
    }

    /// What must follow an item: another one, or nothing.
    fn finish_item(&mut self, start: usize) {
        loop {
            match self.peek() {
                Token::End | Token::Let | Token::Type | Token::Open | Token::SemicolonSemicolon => return,
                Token::LowerName if ITEM_WORDS.contains(&self.word()) => return,
                Token::Semicolon if self.peek_second().starts_expression() && self.peek_second() != Token::Let => {
                    self.sequence();
                }
                Token::Semicolon | Token::And => {
                    self.foreign();
                    if self.peek().starts_expression() && !self.at(Token::Let) {
                        self.expr();
                    }
                }
                Token::Colon => {
                    self.report(SyntaxError::BareAnnotation { span: self.here() });
                    self.pos = self.limit;
                }
                Token::In if self.token_at(start) == Token::Let => {
                    let (let_span, span) = (self.span_at(start), self.here());
                    self.report(SyntaxError::TopLevelIn { let_span, span });
                    self.bump();
                    if self.peek().starts_expression() {
                        self.expr();
                    }
                }
                token => {
                    if token.is_closer() {
                        self.report(SyntaxError::UnopenedBracket { span: self.here(), text: self.word().into() });
                    } else {
                        self.unexpected("a new definition or the end of this one");
                    }
                    // One error is enough for what follows in this item.
                    self.pos = self.limit;
                }
            }
        }
    }

    fn let_item(&mut self) -> ItemKind {
        if self.peek_second() == Token::Open {
            return self.stray_expression();
        }
        self.bump();
        ItemKind::Let(self.let_group())
    }

    fn type_item(&mut self) -> ItemKind {
        self.bump();
        let mut decls = vec![self.type_decl()];
        while self.eat(Token::And) {
            decls.push(self.type_decl());
        }
        ItemKind::Type(decls)
    }

    fn worded_item(&mut self) -> ItemKind {
        let word = self.word();
        self.bump();
        match word {
            "import" => ItemKind::Import(self.module_name()),
            "data" => self.data(),
            "show" => ItemKind::Show(self.expr()),
            "check" => ItemKind::Check(self.expr()),
            "plot" => self.plot(),
            "derivative" => self.rule(Direction::Reverse),
            "tangent" => self.rule(Direction::Forward),
            _ => ItemKind::Error,
        }
    }

    /// `data x : t from "file"`
    fn data(&mut self) -> ItemKind {
        self.layout.from_ends = true;
        let name = self.lower_name("the name for the data");
        self.expect(Token::Colon, "`:` and the type of the data");
        let ty = self.type_expr();
        if self.at(Token::LowerName) && self.word() == "from" {
            self.bump();
        } else {
            self.unexpected("`from` and the name of a file");
        }
        let file = self.file_name();
        ItemKind::Data { name, ty, file }
    }

    fn file_name(&mut self) -> Text {
        match self.peek() {
            Token::String | Token::UnclosedString => self.string(),
            _ => {
                self.unexpected("the name of a file in quotes");
                Text { value: "".into(), span: self.after_last() }
            }
        }
    }

    /// `plot e`, `plot e to "file"`
    fn plot(&mut self) -> ItemKind {
        self.layout.to_ends = true;
        let value = self.expr();
        let file = if self.at(Token::LowerName) && self.word() == "to" {
            self.bump();
            Some(self.file_name())
        } else {
            None
        };
        ItemKind::Plot { value, file }
    }

    /// `derivative f x dy = e`, `tangent f x dx = e`
    fn rule(&mut self, direction: Direction) -> ItemKind {
        let function = self.lower_name("the name of the function whose rule this is");
        let mut params = Vec::new();
        while self.peek().starts_simple_pattern() {
            params.push(self.simple_pattern());
        }
        self.expect_equal("`=` and the rule");
        let body = self.expr();
        ItemKind::Rule { direction, function, params, body }
    }

    /// Something that is no item: an expression without `show`, or nothing we know.
    fn stray_expression(&mut self) -> ItemKind {
        if self.peek().starts_expression() {
            let (start, first) = (self.pos, self.word());
            let reported = self.errors.len();
            self.expr();
            let span = self.span_from(start);
            // If the expression itself is wrong, that is what the user should look at.
            if self.errors.len() == reported {
                let definition = matches!(first, "def" | "var" | "val" | "const" | "fn" | "func" | "define");
                self.report(SyntaxError::TopLevelExpression { span, definition });
            }
            self.hush();
        } else {
            self.unexpected("a definition such as `let`, `type` or `show`");
            self.pos = self.limit;
        }
        ItemKind::Error
    }
}
