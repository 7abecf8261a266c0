//! Numerals and strings: what their text stands for.

use super::cursor::Parser;
use crate::ast::Text;
use crate::error::SyntaxError;
use crate::literal::escape;
use crate::token::Token;
use gradus_source::Span;
use std::sync::Arc;

impl<'t> Parser<'t> {
    /// An integer numeral in decimal digits, whatever its base and underscores were. It is exact: the checker
    /// decides whether it fits.
    pub fn int_text(&mut self) -> Arc<str> {
        let word = self.word();
        let plain: String;
        let digits = if word.contains('_') {
            plain = word.replace('_', "");
            &plain
        } else {
            word
        };
        let radix = match digits.get(..2) {
            Some("0x" | "0X") => 16,
            Some("0o" | "0O") => 8,
            Some("0b" | "0B") => 2,
            _ if std::ptr::eq(digits, word) => return self.name(word),
            _ => return digits.into(),
        };
        match u128::from_str_radix(&digits[2..], radix) {
            Ok(value) => value.to_string().into(),
            Err(_) => {
                self.report(SyntaxError::BadNumber { span: self.here(), part: false });
                "0".into()
            }
        }
    }

    pub fn real_text(&mut self) -> Arc<str> {
        let word = self.word();
        if word.contains('_') {
            word.replace('_', "").into()
        } else {
            self.name(word)
        }
    }

    /// A string literal, taken; the lexer has reported it if it is not closed.
    pub fn string(&mut self) -> Text {
        let span = self.here();
        let word = self.word();
        let inner = word.strip_prefix('"').unwrap_or(word);
        let inner = if self.at(Token::String) { inner.strip_suffix('"').unwrap_or(inner) } else { inner };
        let value = self.unescape(inner, span.start + 1);
        self.bump();
        Text { value: value.into(), span }
    }

    fn unescape(&mut self, inner: &str, offset: u32) -> String {
        let mut value = String::with_capacity(inner.len());
        let mut rest = inner;
        while let Some(at) = rest.find('\\') {
            value.push_str(&rest[..at]);
            rest = &rest[at..];
            let (length, meaning) = escape(rest);
            match meaning {
                Some(character) => value.push(character),
                None => {
                    let start = offset + (inner.len() - rest.len()) as u32;
                    let span = Span::new(self.file, start, start + length as u32);
                    self.errors.push(SyntaxError::BadEscape { span, escape: rest[..length].into() });
                }
            }
            rest = &rest[length..];
        }
        value.push_str(rest);
        value
    }
}
