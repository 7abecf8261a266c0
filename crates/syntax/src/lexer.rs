//! Source text to tokens and comments, each with its place.

use crate::error::SyntaxError;
use crate::parser::MAX_ERRORS;
use crate::token::{comment_end, Token};
use gradus_source::{FileId, Span};
use logos::Logos;

/// A token with its place.
#[derive(Clone, Copy, Debug)]
pub struct Lexeme {
    pub token: Token,
    pub start: u32,
    pub end: u32,
    /// Bytes from the start of the line, counted from 1.
    pub column: u32,
    /// Whether nothing but blanks and comments stands before it on its line.
    pub first: bool,
}

/// A comment, brackets included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comment {
    pub span: Span,
}

impl Comment {
    /// The comment as written, `(* ... *)`.
    pub fn text<'t>(&self, source: &'t str) -> &'t str {
        source.get(self.span.start as usize..self.span.end as usize).unwrap_or("")
    }
}

/// What the lexer makes of a text. The last lexeme is [`Token::End`].
pub struct Lexed {
    pub lexemes: Vec<Lexeme>,
    pub comments: Vec<Comment>,
    pub errors: Vec<SyntaxError>,
}

/// Cuts a text into tokens. Characters that cannot start a token are reported and left out.
pub fn lex(file: FileId, text: &str) -> Lexed {
    let mut lexed = Lexed { lexemes: Vec::new(), comments: Vec::new(), errors: Vec::new() };
    let too_long = text.len() >= u32::MAX as usize;
    let text = if too_long { "" } else { text };
    if too_long {
        lexed.errors.push(SyntaxError::FileTooLong { span: Span::new(file, 0, 0) });
    }
    let mut line_start = 0;
    let mut scanned = 0;
    let mut first = true;
    let mut lexer = Token::lexer(text);
    while let Some(result) = lexer.next() {
        let range = lexer.span();
        if let Some(newline) = text.as_bytes()[scanned..range.start].iter().rposition(|&b| b == b'\n') {
            line_start = scanned + newline + 1;
            first = true;
        }
        scanned = range.start;
        let span = Span::new(file, range.start as u32, range.end as u32);
        match result {
            Ok(Token::Comment) => {
                if comment_end(lexer.slice().get(2..).unwrap_or("")).is_none() {
                    lexed
                        .errors
                        .push(SyntaxError::UnclosedComment { opening: Span::new(file, span.start, span.start + 2) });
                }
                lexed.comments.push(Comment { span });
            }
            Ok(Token::LineComment) => lexed.errors.push(SyntaxError::LineComment { span }),
            Ok(token) => {
                match token {
                    Token::BadNumber => {
                        let before = lexer.source()[..range.start].chars().next_back();
                        let is_behind = before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '\'' | ')'));
                        let part = is_behind && lexer.slice().starts_with('.');
                        lexed.errors.push(SyntaxError::BadNumber { span, part });
                    }
                    Token::UnclosedString => lexed.errors.push(SyntaxError::UnclosedString { span }),
                    Token::Character => lexed.errors.push(SyntaxError::CharacterLiteral { span }),
                    _ => {}
                }
                let column = (range.start - line_start) as u32 + 1;
                lexed.lexemes.push(Lexeme { token, start: span.start, end: span.end, column, first });
                first = false;
            }
            Err(()) => unknown_character(&mut lexed.errors, span, lexer.slice()),
        }
    }
    let end = text.len() as u32;
    lexed.lexemes.push(Lexeme { token: Token::End, start: end, end, column: 1, first: true });
    lexed.errors.truncate(MAX_ERRORS);
    lexed
}

/// Adjacent unknown characters make one error: a binary file has thousands.
fn unknown_character(errors: &mut Vec<SyntaxError>, span: Span, slice: &str) {
    if let Some(SyntaxError::UnknownCharacter { span: last, .. }) = errors.last_mut() {
        if last.end == span.start {
            last.end = span.end;
            return;
        }
    }
    errors.push(SyntaxError::UnknownCharacter { span, character: slice.chars().next().unwrap_or('\u{fffd}') });
}
