//! The parser's state: the next token, reporting, skipping, and the bound on nesting.

use super::boundary::{word, Boundaries};
use super::{DEPTH_LIMIT, MAX_ERRORS};
use crate::ast::Ident;
use crate::error::{Found, SyntaxError};
use crate::lexer::Lexeme;
use crate::token::Token;
use gradus_source::{FileId, Span};
use std::collections::HashMap;
use std::sync::Arc;

pub struct Parser<'t> {
    pub file: FileId,
    pub text: &'t str,
    pub lexemes: &'t [Lexeme],
    pub boundaries: Boundaries,
    /// The next lexeme.
    pub pos: usize,
    /// Where the present item ends: tokens from here on are not seen.
    pub limit: usize,
    /// What holds only until the next bracket is opened.
    pub layout: Layout,
    pub errors: Vec<SyntaxError>,
    /// Where the last error was reported: a place has one error.
    reported_at: Option<usize>,
    /// Levels of calls above this one, and of tree below it.
    depth: usize,
    height: usize,
    names: HashMap<&'t str, Arc<str>>,
}

#[derive(Clone, Copy, Default)]
pub struct Layout {
    /// In a `let` that lacks its `in`: a line that starts at or left of this column ends the definition.
    pub offside: u32,
    /// In `plot e to "file"`: `to` before a string ends the expression.
    pub to_ends: bool,
    /// In `data x : t from "file"`: `from` ends the type.
    pub from_ends: bool,
}

impl<'t> Parser<'t> {
    pub fn new(file: FileId, text: &'t str, lexemes: &'t [Lexeme]) -> Self {
        Parser {
            file,
            text,
            lexemes,
            boundaries: Boundaries::find(text, lexemes),
            pos: 0,
            limit: lexemes.len().saturating_sub(1),
            layout: Layout::default(),
            errors: Vec::new(),
            reported_at: None,
            depth: 0,
            height: 0,
            names: HashMap::new(),
        }
    }

    /// The next token; [`Token::End`] where the present item, or an unfinished `let` in it, ends.
    pub fn peek(&self) -> Token {
        match self.lexemes.get(self.pos) {
            Some(lexeme) if self.pos < self.limit => {
                let offside = lexeme.first && lexeme.column <= self.layout.offside;
                if offside && lexeme.token != Token::In {
                    Token::End
                } else {
                    lexeme.token
                }
            }
            _ => Token::End,
        }
    }

    /// The token after the next.
    pub fn peek_second(&self) -> Token {
        self.token_at(self.pos + 1)
    }

    pub fn token_at(&self, at: usize) -> Token {
        self.lexemes.get(at).filter(|_| at < self.limit).map_or(Token::End, |lexeme| lexeme.token)
    }

    /// The next token as written.
    pub fn word(&self) -> &'t str {
        word(self.text, self.lexemes.get(self.pos))
    }

    pub fn bump(&mut self) {
        if self.pos < self.limit {
            self.pos += 1;
        }
    }

    pub fn at(&self, token: Token) -> bool {
        self.peek() == token
    }

    pub fn eat(&mut self, token: Token) -> bool {
        let found = self.at(token);
        if found {
            self.bump();
        }
        found
    }

    /// A piece of the text.
    pub fn written(&self, span: Span) -> String {
        self.text.get(span.start as usize..span.end as usize).unwrap_or_default().to_string()
    }

    /// The span of one lexeme.
    pub fn span_at(&self, at: usize) -> Span {
        self.lexemes.get(at).map_or(Span::new(self.file, 0, 0), |lexeme| Span::new(self.file, lexeme.start, lexeme.end))
    }

    /// From the lexeme `start` to the last one taken; empty if none was.
    pub fn span_from(&self, start: usize) -> Span {
        match self.pos.checked_sub(1) {
            Some(last) if last >= start => self.span_at(start).to(self.span_at(last)),
            _ => self.after_last(),
        }
    }

    /// The empty place behind the last lexeme taken.
    pub fn after_last(&self) -> Span {
        let end = self.pos.checked_sub(1).map_or(0, |last| self.span_at(last).end);
        Span::new(self.file, end, end)
    }

    /// The next token; where there is none, the place behind the last.
    pub fn here(&self) -> Span {
        if self.at(Token::End) {
            self.after_last()
        } else {
            self.span_at(self.pos)
        }
    }

    pub fn found(&self) -> Found {
        let at_end = self.lexemes.get(self.pos).is_none_or(|lexeme| lexeme.token == Token::End);
        if at_end {
            Found::EndOfFile
        } else if self.pos >= self.limit {
            Found::NextItem(self.word().into())
        } else {
            // A token can be a string as long as the file.
            let mut text: String = self.word().chars().take(30).collect();
            if text.len() < self.word().len() {
                text.push_str("...");
            }
            Found::Token(text)
        }
    }

    // Reporting.

    pub fn report(&mut self, error: SyntaxError) {
        if self.reported_at != Some(self.pos) {
            self.reported_at = Some(self.pos);
            // A broken file may have millions of errors; nobody reads more than the first hundred.
            if self.errors.len() < MAX_ERRORS {
                self.errors.push(error);
            }
        }
    }

    /// Reports that something else was expected here.
    pub fn unexpected(&mut self, expected: &'static str) {
        self.unexpected_since(expected, None);
    }

    pub fn unexpected_since(&mut self, expected: &'static str, since: Option<(Span, &'static str)>) {
        let token = self.peek();
        let error = if is_foreign(token) {
            SyntaxError::Foreign { span: self.here(), token, text: self.word().into() }
        } else {
            SyntaxError::Unexpected { span: self.here(), found: self.found(), expected, since }
        };
        self.report(error);
    }

    /// Reports an operator or a word of another language and moves past it.
    pub fn foreign(&mut self) {
        let error = SyntaxError::Foreign { span: self.here(), token: self.peek(), text: self.word().into() };
        self.report(error);
        self.bump();
    }

    /// Takes the token or reports its absence.
    pub fn expect(&mut self, token: Token, expected: &'static str) -> bool {
        let found = self.eat(token);
        if !found {
            self.unexpected(expected);
        }
        found
    }

    /// Makes a further error at this place a consequence of the last one, not to be reported.
    pub fn hush(&mut self) {
        self.reported_at = Some(self.pos);
    }

    // Skipping.

    /// After an error, moves to the first of these tokens that is not inside brackets, to an `in` or a closing
    /// bracket that belongs to something around, or to the end of the item.
    pub fn skip_to(&mut self, stops: &[Token]) {
        let mut nesting = 0usize;
        loop {
            let token = self.peek();
            if token == Token::End || (nesting == 0 && (stops.contains(&token) || ends_anything(token))) {
                self.hush();
                return;
            }
            if token.closer().is_some() {
                nesting += 1;
            } else if token.is_closer() {
                nesting -= 1;
            }
            self.bump();
        }
    }

    /// Takes the bracket that closes the one at `open`, or reports it missing and skips to where it may be.
    pub fn close(&mut self, open: usize) {
        let opener = self.lexemes.get(open).map_or(Token::End, |lexeme| lexeme.token);
        let (Some(closer), Some(shown)) = (opener.closer(), closer_text(opener)) else { return };
        if self.eat(closer) {
            return;
        }
        let bracket = word(self.text, self.lexemes.get(open)).to_string();
        let opening = self.span_at(open);
        let token = self.peek();
        if token.is_closer() {
            let text = self.word().to_string();
            self.report(SyntaxError::WrongBracket { opening, bracket, closer: shown, span: self.here(), text });
            self.bump();
            return;
        }
        if token == Token::End || ends_anything(token) {
            let (found, span) = (self.found(), self.here());
            self.report(SyntaxError::UnclosedBracket { opening, bracket, closer: shown, found, span });
        } else {
            self.unexpected_since(expected_closer(opener), Some((opening, "to close this")));
        }
        self.skip_to(&[]);
        self.eat(closer);
    }

    /// Runs a parser between brackets, where the layout of what is around does not hold.
    pub fn inside<T>(&mut self, parse: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::take(&mut self.layout);
        let result = parse(self);
        self.layout = outer;
        result
    }

    // Nesting.

    /// Runs a parser one level deeper, with as much stack as it needs; beyond the limit it reports that and gives
    /// up the item.
    pub fn deeper<T>(&mut self, give_up: impl FnOnce(Span) -> T, parse: impl FnOnce(&mut Self) -> T) -> T {
        if self.depth >= DEPTH_LIMIT {
            self.too_deep();
            return give_up(self.after_last());
        }
        let beside = std::mem::take(&mut self.height);
        self.depth += 1;
        let result = stacker::maybe_grow(128 * 1024, 2 * 1024 * 1024, || parse(self));
        self.depth -= 1;
        let below = self.height;
        self.height = beside;
        self.reach(below + 1);
        result
    }

    /// Notes that the tree under construction got a node on top of all that this call has parsed.
    pub fn grow(&mut self) {
        self.reach(self.height + 1);
    }

    fn reach(&mut self, height: usize) {
        self.height = self.height.max(height);
        if self.depth + self.height > DEPTH_LIMIT {
            self.too_deep();
        }
    }

    fn too_deep(&mut self) {
        if self.pos < self.limit {
            let span = self.here();
            self.reported_at = None;
            self.report(SyntaxError::TooDeep { span, limit: DEPTH_LIMIT });
            self.pos = self.limit;
            self.hush();
        }
    }

    /// Begins a new item: what was deep before is not any more.
    pub fn reset_nesting(&mut self) {
        self.depth = 0;
        self.height = 0;
    }

    // Names.

    pub fn name(&mut self, text: &'t str) -> Arc<str> {
        self.names.entry(text).or_insert_with(|| text.into()).clone()
    }

    /// The next token as an identifier, taken.
    pub fn ident(&mut self) -> Ident {
        let ident = Ident { name: self.name(self.word()), span: self.here() };
        self.bump();
        ident
    }

    /// An identifier that could not be read.
    pub fn no_ident(&mut self) -> Ident {
        Ident { name: self.name("_"), span: self.after_last() }
    }

    /// The name of a value, a field or a type.
    pub fn lower_name(&mut self, expected: &'static str) -> Ident {
        match self.peek() {
            Token::LowerName => self.ident(),
            Token::UpperName => {
                self.report(SyntaxError::UpperCaseName { span: self.here(), name: self.word().into() });
                self.ident()
            }
            _ => {
                self.unexpected(expected);
                self.no_ident()
            }
        }
    }
}

/// Tokens at which every unfinished expression ends.
fn ends_anything(token: Token) -> bool {
    use Token::*;
    token.is_closer() || matches!(token, In | Then | Else | With | And | Type)
}

/// Tokens that have no place in Gradus.
fn is_foreign(token: Token) -> bool {
    use Token::*;
    matches!(
        token,
        EqualEqual
            | BangEqual
            | PlusDot
            | MinusDot
            | StarDot
            | SlashDot
            | Percent
            | Ampersand
            | PlusPlus
            | AtAt
            | ColonEqual
            | LeftArrow
            | FatArrow
            | Bang
            | SemicolonSemicolon
            | Tilde
            | Question
            | Backslash
            | DotDot
            | Elif
            | Mutable
            | Or
            | Return
            | Try
            | While
            | For
    )
}

fn closer_text(opener: Token) -> Option<&'static str> {
    match opener {
        Token::LeftParen => Some(")"),
        Token::LeftBracket => Some("]"),
        Token::LeftArray => Some("|]"),
        Token::LeftBrace => Some("}"),
        Token::Begin => Some("end"),
        _ => None,
    }
}

fn expected_closer(opener: Token) -> &'static str {
    match opener {
        Token::LeftParen => "`)`",
        Token::LeftBracket => "`;` or `]`",
        Token::LeftArray => "`;` or `|]`",
        Token::LeftBrace => "`;` or `}`",
        _ => "`end`",
    }
}
