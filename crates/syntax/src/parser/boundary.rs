//! Where top-level items begin, told from the tokens alone, so that a mistake in one item stays in it.
//!
//! `let` and `type` are reserved; `data`, `show` and the others are words only at the start of an item. Inside an
//! expression such a word is a name, unless it stands in the items' column and is followed by what the item
//! wants: then it begins a new item.

use crate::lexer::Lexeme;
use crate::token::Token;

/// The words that begin an item and may be names elsewhere.
pub const ITEM_WORDS: &[&str] = &["check", "data", "derivative", "import", "plot", "show", "tangent"];

/// For each `let` that has an `in`, and for each item start, whether it is so.
pub struct Boundaries {
    /// Indices of the lexemes that begin an item, ascending.
    pub items: Vec<usize>,
    has_in: Vec<bool>,
}

impl Boundaries {
    pub fn find(text: &str, lexemes: &[Lexeme]) -> Boundaries {
        let column = lexemes.first().map_or(1, |lexeme| lexeme.column);
        let in_column = |at: usize| lexemes[at].first && lexemes[at].column <= column;
        let after_operand = |at: usize| at == 0 || lexemes[at - 1].token.ends_operand();

        // Innermost `let` and `in` belong together. A `let` that surely begins an item ends all earlier ones.
        let mut has_in = vec![false; lexemes.len()];
        let mut open = Vec::new();
        for (at, lexeme) in lexemes.iter().enumerate() {
            match lexeme.token {
                Token::Let => {
                    if in_column(at) && after_operand(at) {
                        open.clear();
                    }
                    open.push(at);
                }
                Token::In => {
                    if let Some(start) = open.pop() {
                        has_in[start] = true;
                    }
                }
                Token::Type | Token::LowerName if in_column(at) && item_shape(text, lexemes, at) => open.clear(),
                _ => {}
            }
        }

        let is_start = |at: usize| {
            in_column(at)
                && match lexemes[at].token {
                    Token::Let => after_operand(at) || !has_in[at],
                    _ => item_shape(text, lexemes, at),
                }
        };
        let items = (0..lexemes.len()).filter(|&at| is_start(at)).collect();
        Boundaries { items, has_in }
    }

    /// Whether the `let` at this place has an `in` of its own.
    pub fn has_in(&self, at: usize) -> bool {
        self.has_in.get(at).copied().unwrap_or(false)
    }
}

/// Whether the token and those after it look like the start of an item other than `let`.
fn item_shape(text: &str, lexemes: &[Lexeme], at: usize) -> bool {
    let token = |ahead: usize| lexemes.get(at + ahead).map_or(Token::End, |lexeme| lexeme.token);
    let word = |ahead: usize| word(text, lexemes.get(at + ahead));
    let alone = || at == 0 || lexemes[at - 1].token.ends_operand();
    match token(0) {
        Token::Type => true,
        Token::Open => token(1) == Token::UpperName || alone(),
        Token::LowerName => match word(0) {
            "data" => token(1) == Token::LowerName && (alone() || token(2) == Token::Colon || word(2) == "from"),
            "show" | "check" | "plot" => match token(1) {
                // `show -x` shows, `show - x` subtracts.
                Token::Minus | Token::MinusDot => {
                    let (here, minus, after) = (lexemes[at].end, lexemes[at + 1], lexemes.get(at + 2));
                    here < minus.start && after.is_some_and(|after| after.start == minus.end)
                }
                next => next.starts_expression() || (alone() && next == Token::End),
            },
            "derivative" | "tangent" => {
                token(1) == Token::LowerName
                    && (alone() || token(2).starts_simple_pattern() || token(2) == Token::Equal)
            }
            "import" => token(1) == Token::UpperName || (alone() && token(1).starts_argument()),
            _ => false,
        },
        _ => false,
    }
}

/// The text of a lexeme.
pub fn word<'t>(text: &'t str, lexeme: Option<&Lexeme>) -> &'t str {
    lexeme.and_then(|lexeme| text.get(lexeme.start as usize..lexeme.end as usize)).unwrap_or("")
}
