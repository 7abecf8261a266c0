//! The infix operators: one table that lexer, parser, printer and the other crates read.

use crate::ast::BinaryOp;
use crate::token::Token;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Associativity {
    Left,
    Right,
}

/// One infix operator.
#[derive(Clone, Copy, Debug)]
pub struct Operator {
    pub token: Token,
    pub text: &'static str,
    pub op: BinaryOp,
    /// Higher binds tighter.
    pub precedence: u8,
    pub associativity: Associativity,
}

const fn row(precedence: u8, associativity: Associativity, text: &'static str, token: Token, op: BinaryOp) -> Operator {
    Operator { token, text, op, precedence, associativity }
}

use Associativity::{Left, Right};

/// OCaml's levels. `^` is a power here and so stands with `**`, not with `@`.
#[rustfmt::skip]
pub const OPERATORS: &[Operator] = &[
    row(1, Right, "||",  Token::OrOr,         BinaryOp::Or),
    row(2, Right, "&&",  Token::AndAnd,       BinaryOp::And),
    row(3, Left,  "|>",  Token::Pipe,         BinaryOp::Pipe),
    row(3, Left,  "=",   Token::Equal,        BinaryOp::Eq),
    row(3, Left,  "<>",  Token::NotEqual,     BinaryOp::Ne),
    row(3, Left,  "<",   Token::Less,         BinaryOp::Lt),
    row(3, Left,  "<=",  Token::LessEqual,    BinaryOp::Le),
    row(3, Left,  ">",   Token::Greater,      BinaryOp::Gt),
    row(3, Left,  ">=",  Token::GreaterEqual, BinaryOp::Ge),
    row(4, Right, "@",   Token::At,           BinaryOp::Append),
    row(5, Right, "::",  Token::ColonColon,   BinaryOp::Cons),
    row(6, Left,  "+",   Token::Plus,         BinaryOp::Add),
    row(6, Left,  "-",   Token::Minus,        BinaryOp::Sub),
    row(6, Left,  "<+>", Token::VectorPlus,   BinaryOp::VectorAdd),
    row(6, Left,  "<->", Token::VectorMinus,  BinaryOp::VectorSub),
    row(7, Left,  "*",   Token::Star,         BinaryOp::Mul),
    row(7, Left,  "/",   Token::Slash,        BinaryOp::Div),
    row(7, Left,  "mod", Token::Mod,          BinaryOp::Mod),
    row(7, Left,  "*>",  Token::Scale,        BinaryOp::Scale),
    row(7, Left,  "<.>", Token::Inner,        BinaryOp::Inner),
    row(9, Right, "^",   Token::Caret,        BinaryOp::Pow),
    row(9, Right, "**",  Token::StarStar,     BinaryOp::RealPow),
];

/// Of unary minus: looser than `^`, so that `-x ^ 2` is `-(x ^ 2)`, and tighter than `*`.
pub const NEGATION: u8 = 8;

/// Of `f x`, tighter than every operator; then that of `a.x`, `a.(i)` and what needs no parentheses.
pub const APPLICATION: u8 = 10;
pub const SIMPLE: u8 = 11;

/// Of `a, b`, looser than every operator.
pub const TUPLE: u8 = 0;

/// The operator that a token stands for.
pub fn of_token(token: Token) -> Option<&'static Operator> {
    OPERATORS.iter().find(|row| row.token == token)
}

/// The row of an operator.
pub fn of_op(op: BinaryOp) -> &'static Operator {
    match OPERATORS.iter().find(|row| row.op == op) {
        Some(row) => row,
        None => gradus_source::bug!("operator {op:?} is not in the table"),
    }
}

/// What an operator of another language is called here, so that the parser can go on as if it had been written.
pub fn of_foreign(token: Token) -> Option<&'static Operator> {
    let own = match token {
        Token::EqualEqual => Token::Equal,
        Token::BangEqual => Token::NotEqual,
        Token::PlusDot => Token::Plus,
        Token::MinusDot => Token::Minus,
        Token::StarDot => Token::Star,
        Token::SlashDot => Token::Slash,
        Token::Percent => Token::Mod,
        Token::Ampersand => Token::AndAnd,
        Token::Or => Token::OrOr,
        Token::PlusPlus => Token::At,
        _ => return None,
    };
    of_token(own)
}
