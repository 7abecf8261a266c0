//! The words of the language, as the lexer cuts them out of the text.
//!
//! Besides Gradus's own tokens this lists those of its neighbours (`+.`, `==`, `:=`, `while`, ...), so that
//! the parser can say what to write instead.

use logos::Logos;

#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[logos(skip r"[ \t\r\n\f\u{feff}]+")]
pub enum Token {
    // Reserved words.
    #[token("and")]
    And,
    #[token("as")]
    As,
    #[token("begin")]
    Begin,
    #[token("else")]
    Else,
    #[token("end")]
    EndWord,
    #[token("false")]
    False,
    #[token("for")]
    For,
    #[token("fun")]
    Fun,
    #[token("function")]
    Function,
    #[token("if")]
    If,
    #[token("in")]
    In,
    #[token("let")]
    Let,
    #[token("match")]
    Match,
    #[token("mod")]
    Mod,
    #[token("of")]
    Of,
    #[token("open")]
    Open,
    #[token("rec")]
    Rec,
    #[token("then")]
    Then,
    #[token("true")]
    True,
    #[token("type")]
    Type,
    #[token("when")]
    When,
    #[token("with")]
    With,

    // Words of other languages, reserved so that they get an answer.
    #[token("elif")]
    Elif,
    #[token("mutable")]
    Mutable,
    #[token("or")]
    Or,
    #[token("return")]
    Return,
    #[token("try")]
    Try,
    #[token("while")]
    While,

    // Names and literals.
    #[regex(r"[a-z][A-Za-z0-9_']*|_[A-Za-z0-9_']+")]
    LowerName,
    #[regex(r"[A-Z][A-Za-z0-9_']*")]
    UpperName,
    #[regex(r"'[a-z_][A-Za-z0-9_]*")]
    TypeVar,
    #[regex(r"[0-9][0-9_]*", priority = 20)]
    #[regex(r"0[xX][0-9a-fA-F][0-9a-fA-F_]*|0[oO][0-7][0-7_]*|0[bB][01][01_]*", priority = 20)]
    Int,
    #[regex(r"[0-9][0-9_]*\.[0-9_]*([eE][+-]?[0-9][0-9_]*)?", priority = 20)]
    #[regex(r"[0-9][0-9_]*[eE][+-]?[0-9][0-9_]*", priority = 20)]
    Real,
    /// `2x`, `0xg`, `1.5.2`, `.5`
    #[regex(r"[0-9][0-9A-Za-z_']*(\.[0-9A-Za-z_'][0-9A-Za-z_'.]*)?", priority = 1)]
    #[regex(r"\.[0-9][0-9A-Za-z_']*", priority = 1)]
    BadNumber,
    #[regex(r#""([^"\\\n]|\\[^\n])*""#, priority = 20)]
    String,
    #[regex(r#""([^"\\\n]|\\[^\n])*"#, priority = 1)]
    UnclosedString,
    /// `'a'`, `'\n'`, `'word'`
    #[regex(r"'[^'\\\n]'|'\\[^'\n]+'|'[A-Za-z0-9_]+'")]
    Character,

    // Brackets and punctuation.
    #[token("(")]
    LeftParen,
    #[token(")")]
    RightParen,
    #[token("[")]
    LeftBracket,
    #[token("]")]
    RightBracket,
    #[token("[|")]
    LeftArray,
    #[token("|]")]
    RightArray,
    #[token("{")]
    LeftBrace,
    #[token("}")]
    RightBrace,
    #[token(",")]
    Comma,
    #[token(";")]
    Semicolon,
    #[token(":")]
    Colon,
    #[token(".")]
    Dot,
    #[token("->")]
    Arrow,
    #[token("|")]
    Bar,
    #[token("_")]
    Underscore,

    // Operators; `mod` is among the words. See `operators.rs` for what they mean.
    #[token("|>")]
    Pipe,
    #[token("||")]
    OrOr,
    #[token("&&")]
    AndAnd,
    #[token("=")]
    Equal,
    #[token("<>")]
    NotEqual,
    #[token("<")]
    Less,
    #[token("<=")]
    LessEqual,
    #[token(">")]
    Greater,
    #[token(">=")]
    GreaterEqual,
    #[token("@")]
    At,
    #[token("::")]
    ColonColon,
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("<+>")]
    VectorPlus,
    #[token("<->")]
    VectorMinus,
    #[token("*")]
    Star,
    #[token("/")]
    Slash,
    #[token("*>")]
    Scale,
    #[token("<.>")]
    Inner,
    #[token("^")]
    Caret,
    #[token("**")]
    StarStar,

    // Operators of other languages.
    #[token("==")]
    EqualEqual,
    #[token("!=")]
    BangEqual,
    #[token("+.")]
    PlusDot,
    #[token("-.")]
    MinusDot,
    #[token("*.")]
    StarDot,
    #[token("/.")]
    SlashDot,
    #[token("%")]
    Percent,
    #[token("&")]
    Ampersand,
    #[token("++")]
    PlusPlus,
    #[token("@@")]
    AtAt,
    #[token(":=")]
    ColonEqual,
    #[token("<-")]
    LeftArrow,
    #[token("=>")]
    FatArrow,
    #[token("!")]
    Bang,
    #[token(";;")]
    SemicolonSemicolon,
    #[token("~")]
    Tilde,
    #[token("?")]
    Question,
    #[token("\\")]
    Backslash,
    #[token("..")]
    DotDot,

    /// `(* ... (* ... *) ... *)`; the lexer keeps these apart from the other tokens.
    #[token("(*", skip_comment)]
    Comment,
    /// `// ...` and `# ...`, which are not comments here.
    #[regex(r"(//|#)[^\n]*", allow_greedy = true)]
    LineComment,

    /// The end of the text, or of what the parser may look at. The lexer itself never cuts this out.
    End,
}

/// How many bytes after its `(*` a comment ends, nested comments included; nothing if it is never closed.
///
/// As in OCaml, comment brackets in a string inside a comment do not count; but a quote that has no partner on its
/// line is only a quote.
pub fn comment_end(rest: &str) -> Option<usize> {
    let bytes = rest.as_bytes();
    let mut depth = 1usize;
    let mut at = 0;
    let mut lone_quotes_until = 0;
    while at < bytes.len() {
        match &bytes[at..] {
            [b'(', b'*', ..] => {
                depth += 1;
                at += 2;
            }
            [b'*', b')', ..] => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return Some(at);
                }
            }
            [b'"', inner @ ..] if at >= lone_quotes_until => match string_length(inner) {
                Ok(length) => at += 1 + length,
                // Do not look again from every further quote of the line: that would take quadratic time.
                Err(length) => {
                    lone_quotes_until = at + 1 + length;
                    at += 1;
                }
            },
            _ => at += 1,
        }
    }
    None
}

/// Whether a comment ends on a line with a quote that has no partner in it.
pub fn has_open_quote(comment: &str) -> bool {
    let bytes = comment.as_bytes();
    let mut at = 0;
    while let Some(quote) = bytes[at..].iter().position(|&byte| byte == b'"') {
        let start = at + quote + 1;
        match string_length(&bytes[start..]) {
            Ok(length) => at = start + length,
            Err(length) if start + length == bytes.len() => return true,
            Err(length) => at = start + length,
        }
    }
    false
}

/// The length of a string behind its opening quote, closing quote included; of the rest of the line if there is none.
fn string_length(inner: &[u8]) -> Result<usize, usize> {
    let mut at = 0;
    loop {
        match inner.get(at) {
            None | Some(b'\n') => return Err(at),
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') if inner.get(at + 1).is_some_and(|&next| next != b'\n') => at += 2,
            Some(_) => at += 1,
        }
    }
}

/// Moves past the rest of a comment; to the end of the text if it is never closed.
fn skip_comment(lexer: &mut logos::Lexer<Token>) {
    let rest = lexer.remainder();
    let length = comment_end(rest).unwrap_or(rest.len());
    lexer.bump(length);
}

impl Token {
    /// Whether an argument of a function can begin with this token.
    pub fn starts_argument(self) -> bool {
        use Token::*;
        matches!(
            self,
            LowerName
                | UpperName
                | Int
                | Real
                | BadNumber
                | String
                | UnclosedString
                | Character
                | True
                | False
                | LeftParen
                | LeftBracket
                | LeftArray
                | LeftBrace
                | Begin
        )
    }

    /// Whether an expression can begin with this token.
    pub fn starts_expression(self) -> bool {
        use Token::*;
        self.starts_argument() || matches!(self, Let | Fun | Function | If | Match | Minus | MinusDot | Bang | Return)
    }

    /// Whether a pattern that needs no parentheses as a parameter can begin with this token.
    pub fn starts_simple_pattern(self) -> bool {
        use Token::*;
        matches!(
            self,
            LowerName
                | UpperName
                | Underscore
                | Int
                | Real
                | BadNumber
                | String
                | UnclosedString
                | Character
                | True
                | False
                | LeftParen
                | LeftBracket
                | LeftArray
                | LeftBrace
        )
    }

    /// Whether an expression, a pattern or a type can end with this token, so that what follows need not
    /// be a part of it.
    pub fn ends_operand(self) -> bool {
        use Token::*;
        matches!(
            self,
            LowerName
                | UpperName
                | TypeVar
                | Underscore
                | Int
                | Real
                | BadNumber
                | String
                | UnclosedString
                | Character
                | True
                | False
                | RightParen
                | RightBracket
                | RightArray
                | RightBrace
                | EndWord
                | SemicolonSemicolon
        )
    }

    /// The bracket that closes this one.
    pub fn closer(self) -> Option<Token> {
        match self {
            Token::LeftParen => Some(Token::RightParen),
            Token::LeftBracket => Some(Token::RightBracket),
            Token::LeftArray => Some(Token::RightArray),
            Token::LeftBrace => Some(Token::RightBrace),
            Token::Begin => Some(Token::EndWord),
            _ => None,
        }
    }

    pub fn is_closer(self) -> bool {
        use Token::*;
        matches!(self, RightParen | RightBracket | RightArray | RightBrace | EndWord)
    }
}

/// Words that cannot be names. The words of the top level (`data`, `show`, `import`, ...) are not among them.
const RESERVED: &[&str] = &[
    "and", "as", "begin", "elif", "else", "end", "false", "for", "fun", "function", "if", "in", "let", "match", "mod",
    "mutable", "of", "open", "or", "rec", "return", "then", "true", "try", "type", "when", "while", "with",
];

/// Whether a word cannot be used as a name.
pub fn is_reserved(name: &str) -> bool {
    RESERVED.binary_search(&name).is_ok()
}
