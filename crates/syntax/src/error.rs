//! What can be wrong with a text, as facts, and the one place that words them.

use crate::token::{is_reserved, Token};
use gradus_source::{Diagnostic, Span};

/// What the parser met where it expected something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A token, as written.
    Token(String),
    EndOfFile,
    /// The next top-level item, which begins with this word.
    NextItem(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyntaxError {
    FileTooLong {
        span: Span,
    },
    UnknownCharacter {
        span: Span,
        character: char,
    },
    UnclosedComment {
        opening: Span,
    },
    LineComment {
        span: Span,
    },
    UnclosedString {
        span: Span,
    },
    BadEscape {
        span: Span,
        escape: String,
    },
    /// `part` tells whether it stands behind something like the number of a part: `pair.0`.
    BadNumber {
        span: Span,
        part: bool,
    },
    CharacterLiteral {
        span: Span,
    },
    /// `expected` is a noun phrase, such as "an expression"; `since` says which earlier text asks for it.
    Unexpected {
        span: Span,
        found: Found,
        expected: &'static str,
        since: Option<(Span, &'static str)>,
    },
    /// An operator or a word of another language.
    Foreign {
        span: Span,
        token: Token,
        text: String,
    },
    UnclosedBracket {
        opening: Span,
        bracket: String,
        closer: &'static str,
        found: Found,
        span: Span,
    },
    WrongBracket {
        opening: Span,
        bracket: String,
        closer: &'static str,
        span: Span,
        text: String,
    },
    UnopenedBracket {
        span: Span,
        text: String,
    },
    MissingIn {
        let_span: Span,
        span: Span,
        found: Found,
    },
    MissingElse {
        if_span: Span,
        span: Span,
        found: Found,
    },
    /// `let x = e in ...` at the top level.
    TopLevelIn {
        let_span: Span,
        span: Span,
    },
    /// `definition` tells whether it begins like a definition of another language, such as `def`.
    TopLevelExpression {
        span: Span,
        definition: bool,
    },
    /// `let x := e`
    DefinitionSign {
        span: Span,
        text: String,
    },
    /// `a; b`
    Sequence {
        span: Span,
    },
    /// `{ x = 1, y = 2 }`
    FieldComma {
        span: Span,
    },
    /// `f fun x -> x`
    NeedsParentheses {
        span: Span,
        word: String,
    },
    /// `let ( + ) a b = ...`
    OperatorDefinition {
        span: Span,
    },
    /// `(a, b)` as a type
    TupleTypeComma {
        span: Span,
    },
    /// `a.[i]`
    StringIndex {
        span: Span,
    },
    /// `type t = Circle real`
    MissingOf {
        span: Span,
    },
    /// `(x : real, y : real)`
    AnnotatedTuple {
        span: Span,
    },
    /// `Node l r` as a pattern; the arguments as they are written.
    CurriedPattern {
        span: Span,
        name: String,
        written: Vec<String>,
    },
    /// `e : t` without parentheses
    BareAnnotation {
        span: Span,
    },
    LowerCaseModule {
        span: Span,
        name: String,
    },
    LowerCaseConstructor {
        span: Span,
        name: String,
    },
    UpperCaseName {
        span: Span,
        name: String,
    },
    TooDeep {
        span: Span,
        limit: usize,
    },
}

impl SyntaxError {
    /// The main place of the error.
    pub fn span(&self) -> Span {
        use SyntaxError::*;
        match self {
            UnclosedComment { opening } | UnclosedBracket { opening, .. } => *opening,
            MissingIn { let_span, .. } => *let_span,
            FileTooLong { span }
            | UnknownCharacter { span, .. }
            | LineComment { span }
            | UnclosedString { span }
            | BadEscape { span, .. }
            | BadNumber { span, .. }
            | CharacterLiteral { span }
            | Unexpected { span, .. }
            | Foreign { span, .. }
            | WrongBracket { span, .. }
            | UnopenedBracket { span, .. }
            | MissingElse { span, .. }
            | TopLevelIn { span, .. }
            | TopLevelExpression { span, .. }
            | DefinitionSign { span, .. }
            | Sequence { span }
            | FieldComma { span }
            | NeedsParentheses { span, .. }
            | OperatorDefinition { span }
            | TupleTypeComma { span }
            | StringIndex { span }
            | MissingOf { span }
            | AnnotatedTuple { span }
            | CurriedPattern { span, .. }
            | BareAnnotation { span }
            | LowerCaseModule { span, .. }
            | LowerCaseConstructor { span, .. }
            | UpperCaseName { span, .. }
            | TooDeep { span, .. } => *span,
        }
    }

    /// Whether it says that the text ended too early, so that more text could mend it: a prompt waits for that.
    pub fn is_incomplete(&self) -> bool {
        use SyntaxError::*;
        match self {
            UnclosedComment { .. } => true,
            Unexpected { found, .. }
            | UnclosedBracket { found, .. }
            | MissingIn { found, .. }
            | MissingElse { found, .. } => *found == Found::EndOfFile,
            _ => false,
        }
    }

    /// What the user is told.
    pub fn diagnostic(&self) -> Diagnostic {
        use SyntaxError::*;
        match self {
            Unexpected { span, found, expected, since } => {
                let message = format!("expected {expected}, found {}", words(found));
                let diagnostic = Diagnostic::error("E0001", message).label(*span, format!("expected {expected} here"));
                let diagnostic = match since {
                    Some((place, why)) => diagnostic.label(*place, *why),
                    None => diagnostic,
                };
                match found {
                    found if is_and(found) => diagnostic.help(CONDITIONS),
                    Found::Token(word) if wants_name(expected) && is_reserved(word) => {
                        diagnostic.note(format!("`{word}` is a word of the language and cannot be a name"))
                    }
                    Found::Token(word) if *expected == "a type" && word == "{" => diagnostic
                        .help("a record type has a name: write `type pair = { a : real; b : real }` before, and `pair` here"),
                    _ => diagnostic,
                }
            }
            UnknownCharacter { span, character } => unknown_character(*span, *character),
            UnclosedComment { opening } => Diagnostic::error("E0003", "this comment is never closed")
                .label(*opening, "the comment starts here")
                .note("quotes inside a comment hide `*)` from one to the next on the same line")
                .help("close it with `*)`; for the multiplication operator as a function, write `( * )` with spaces"),
            LineComment { span } => Diagnostic::error("E0004", "this is not a comment in Gradus")
                .label(*span, "")
                .help("comments are written `(* ... *)`"),
            UnclosedString { span } => Diagnostic::error("E0005", "this string is never closed")
                .label(*span, "the string starts here")
                .help("close it with `\"` on the same line; a line break inside a string is written `\\n`"),
            BadEscape { span, escape } => {
                Diagnostic::error("E0006", format!("unknown escape `{escape}` in a string"))
                    .label(*span, "")
                    .help("the escapes are `\\n`, `\\t`, `\\r`, `\\\"`, `\\\\` and `\\u{1F600}`")
            }
            BadNumber { span, part: true } => Diagnostic::error("E0007", "parts have no numbers")
                .label(*span, "")
                .help("parts of a tuple get names, `let (a, b) = t`, or `fst t` and `snd t`; an element of an array is `a.(0)`"),
            BadNumber { span, part: false } => Diagnostic::error("E0007", "this is not a number")
                .label(*span, "")
                .help("write `2`, `0.5`, `1e-6` or `0xff`; a product is written with `*`"),
            CharacterLiteral { span } => Diagnostic::error("E0008", "strings are written in double quotes")
                .label(*span, "")
                .help("write `\"...\"`; there are no character literals, and a type variable such as `'a` has one quote"),
            Foreign { span, token, text } => foreign(*span, *token, text),
            UnclosedBracket { opening, bracket, closer, found, span } => {
                let diagnostic = Diagnostic::error("E0010", format!("this `{bracket}` is never closed"))
                    .label(*opening, format!("`{bracket}` opened here"))
                    .label(*span, format!("expected `{closer}` here, found {}", words(found)));
                match is_and(found) {
                    true => diagnostic.help(CONDITIONS),
                    false => diagnostic,
                }
            }
            WrongBracket { opening, bracket, closer, span, text } => {
                Diagnostic::error("E0011", format!("`{bracket}` is closed by `{text}`"))
                    .label(*span, format!("expected `{closer}`"))
                    .label(*opening, format!("`{bracket}` opened here"))
            }
            UnopenedBracket { span, text } => {
                Diagnostic::error("E0028", format!("this `{text}` closes nothing")).label(*span, "")
            }
            MissingIn { let_span, span, .. } => Diagnostic::error("E0012", "this `let` has no `in`")
                .label(*let_span, "a `let` inside an expression needs `in` and the expression that uses it")
                .label(*span, "expected `in` here")
                .help("write `let x = e in body`"),
            MissingElse { if_span, span, .. } => Diagnostic::error("E0013", "this `if` has no `else`")
                .label(*span, "expected `else` here")
                .label(*if_span, "for this `if`")
                .help("`if` is an expression and must have a value in both cases"),
            TopLevelIn { let_span, span } => Diagnostic::error("E0014", "a top-level `let` has no `in`")
                .label(*span, "this `in` does not belong here")
                .label(*let_span, "this definition is at the top level")
                .help("leave `in` out, or write `show let x = ... in ...` to evaluate and print the expression"),
            TopLevelExpression { span, definition } => {
                let help = if *definition {
                    "a definition is written `let f x = e`"
                } else {
                    "write `show e` to evaluate and print it, or `let x = e` to name it"
                };
                Diagnostic::error("E0015", "an expression cannot stand alone at the top level")
                    .label(*span, "expected `let`, `type`, `data`, `show`, `check`, `plot`, `import` or `open`")
                    .help(help)
            }
            DefinitionSign { span, text } => {
                Diagnostic::error("E0027", format!("expected `=`, found `{text}`"))
                    .label(*span, "write `=` here")
            }
            Sequence { span } => Diagnostic::error("E0016", "`;` does not join expressions")
                .label(*span, "")
                .note("Gradus is pure: an expression whose value is not used would do nothing")
                .help("name intermediate values with `let x = e in ...`; `;` separates elements of lists, arrays and records"),
            FieldComma { span } => Diagnostic::error("E0017", "record fields are separated by `;`")
                .label(*span, "write `;` here")
                .help("put parentheses around a tuple: `{ x = (1, 2) }`"),
            NeedsParentheses { span, word } => {
                Diagnostic::error("E0018", format!("`{word}` as an argument needs parentheses"))
                    .label(*span, "")
                    .help(format!("write `f ({word} ...)`"))
            }
            OperatorDefinition { span } => Diagnostic::error("E0019", "operators cannot be defined")
                .label(*span, "")
                .help("give the function a name"),
            TupleTypeComma { span } => Diagnostic::error("E0020", "a tuple type is written with `*`")
                .label(*span, "")
                .help("write `a * b`; `(a, b) t` applies the type `t` to two types"),
            StringIndex { span } => Diagnostic::error("E0021", "an element of an array is written `a.(i)`")
                .label(*span, ""),
            MissingOf { span } => Diagnostic::error("E0029", "expected `of` before the type of a constructor's argument")
                .label(*span, "")
                .help("write `Circle of real`; several arguments are joined by `*`"),
            AnnotatedTuple { span } => {
                Diagnostic::error("E0031", "in a tuple, each annotation has parentheses of its own")
                    .label(*span, "")
                    .help("write `((x : real), (y : real))`, or one type for all: `((x, y) : real * real)`")
            }
            CurriedPattern { span, name, written } => {
                Diagnostic::error("E0032", format!("the constructor `{name}` takes its arguments in parentheses"))
                    .label(*span, "")
                    .help(format!("write `{name} ({})`", written.join(", ")))
            }
            BareAnnotation { span } => Diagnostic::error("E0030", "an annotation needs parentheses")
                .label(*span, "")
                .help("write `(e : t)`"),
            LowerCaseModule { span, name } => Diagnostic::error("E0022", "a module's name begins with a capital letter")
                .label(*span, "")
                .help(format!("write `{}`", capitalised(name))),
            LowerCaseConstructor { span, name } => {
                Diagnostic::error("E0023", "a constructor's name begins with a capital letter")
                    .label(*span, "")
                    .help(format!("write `{}`", capitalised(name)))
            }
            UpperCaseName { span, name } => {
                Diagnostic::error("E0024", format!("`{name}` cannot be the name of a value, a field or a type"))
                    .label(*span, "these names begin with a small letter")
                    .help(format!("write `{}`", uncapitalised(name)))
            }
            TooDeep { span, limit } => Diagnostic::error("E0025", "this is nested too deeply")
                .label(*span, format!("here the nesting exceeds {limit} levels"))
                .help("split the expression into several definitions"),
            FileTooLong { span } => Diagnostic::error("E0026", "this file is longer than 4 gigabytes").label(*span, ""),
        }
    }
}

const CONDITIONS: &str = "both of two conditions is `a && b`, one of them `a || b`";

/// Whether somebody wrote the word that elsewhere joins conditions.
fn is_and(found: &Found) -> bool {
    matches!(found, Found::Token(word) if word == "and")
}

fn wants_name(expected: &str) -> bool {
    expected == "a pattern" || expected.starts_with("the name")
}

fn words(found: &Found) -> String {
    match found {
        Found::Token(text) => format!("`{text}`"),
        Found::EndOfFile => "the end of the file".into(),
        Found::NextItem(word) => format!("the next definition (`{word}`)"),
    }
}

fn unknown_character(span: Span, character: char) -> Diagnostic {
    let message = if character.is_control() {
        format!("unexpected character U+{:04X}", character as u32)
    } else {
        format!("unexpected character `{character}`")
    };
    let diagnostic = Diagnostic::error("E0002", message).label(span, "");
    let instead = match character {
        '→' | '⇒' => "->",
        '≤' => "<=",
        '≥' => ">=",
        '≠' => "<>",
        '×' | '·' | '⋅' => "*",
        '÷' => "/",
        '−' | '–' | '—' => "-",
        '∧' => "&&",
        '∨' => "||",
        'λ' => "fun",
        '“' | '”' | '„' | '«' | '»' => "\"",
        '‘' | '’' => "'",
        '$' => return diagnostic.help("a function is applied without a sign, `f x`, or behind its argument, `x |> f`"),
        _ if character.is_alphanumeric() => {
            return diagnostic.help("names are made of the letters a to z and A to Z, digits, `_` and `'`");
        }
        _ => return diagnostic,
    };
    diagnostic.help(format!("write `{instead}`"))
}

/// What to write instead of an operator or a word of another language.
fn foreign(span: Span, token: Token, text: &str) -> Diagnostic {
    let told = |message: &str, help: &str| Diagnostic::error("E0009", message).label(span, "").help(help);
    match token {
        Token::EqualEqual => told("equality is written `=`", "write `a = b`"),
        Token::BangEqual => told("inequality is written `<>`", "write `a <> b`"),
        Token::PlusDot | Token::MinusDot | Token::StarDot | Token::SlashDot => {
            let own = text.trim_end_matches('.');
            told(
                &format!("there is no operator `{text}`"),
                &format!("Gradus's `{own}` works on reals too: write `{own}`"),
            )
        }
        Token::Percent => told("there is no operator `%`", "the remainder is written `a mod b`"),
        Token::Ampersand => told("there is no operator `&`", "`and` of two booleans is written `&&`"),
        Token::Or => told("there is no operator `or`", "`or` of two booleans is written `||`"),
        Token::And => told("`and` joins definitions, not booleans", "`and` of two booleans is written `&&`"),
        Token::Semicolon => told("`;` is not needed", "leave it out: an item ends where the next one begins"),
        Token::PlusPlus => told("there is no operator `++`", "lists are joined by `@`, arrays by `concat`"),
        Token::AtAt => told("there is no operator `@@`", "write `f (x)` or `x |> f`"),
        Token::ColonEqual => told("there is no assignment", "name the new value: `let x = e in ...`"),
        Token::LeftArrow => told(
            "there is no assignment",
            "name the new value: `let x = e in ...`, or `set a i e` for an array with one element replaced; a comparison with a negative number is written `x < -1`",
        ),
        Token::FatArrow => told("there is no `=>`", "write `->`; greater or equal is `>=`"),
        Token::Bang => told("there is no operator `!`", "negation is `not x`; there are no references to read"),
        Token::SemicolonSemicolon => told("`;;` is not needed", "leave it out: an item ends where the next one begins"),
        Token::Tilde | Token::Question => {
            told("there are no labelled or optional arguments", "pass arguments by position")
        }
        Token::Backslash => told("there is no `\\`", "a function is written `fun x -> e`"),
        Token::DotDot => told("there is no `..`", "the integers below n are `iota n`"),
        Token::Elif => told("there is no `elif`", "write `else if`"),
        Token::Return => told("there is no `return`", "the value of a function is its expression: leave `return` out"),
        Token::Mutable => told("there are no mutable values", "name the new value with another `let`"),
        Token::Try => told("there are no exceptions", "give back an `option` or an `either`"),
        Token::While => told("there are no loops", "write a recursive function, or use `iterate`, `fold` or `ifold`"),
        Token::For => told(
            "`for` stands only inside `[| for i < n -> e |]`",
            "to repeat a step use `ifold n (fun i acc -> e) init`",
        ),
        _ => Diagnostic::error("E0009", format!("unexpected `{text}`")).label(span, ""),
    }
}

fn capitalised(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn uncapitalised(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}
