//! The reader of patterns: a small part of Gradus's expressions.

use crate::pattern::{Name, Pattern, Sort};
use gradus_core::{Prim, Type};
use gradus_source::bug;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token {
    Name(Name),
    Real(f64),
    Int(i64),
    Symbol(&'static str),
    End,
}

/// The longest first.
const SYMBOLS: [&str; 31] = [
    "<.>", "<+>", "<->", "->", ":=", "*>", ".(", "<=", ">=", "<>", "[|", "|]", "&&", "**", "(", ")", "[", "]", ",",
    ";", ".", "=", "<", ">", "+", "-", "*", "/", "^", "|", "_",
];

pub struct Parser {
    tokens: Vec<Token>,
    at: usize,
    bound: Vec<Name>,
    text: &'static str,
}

impl Parser {
    pub fn new(text: &'static str) -> Self {
        Parser { tokens: tokens(text), at: 0, bound: Vec::new(), text }
    }

    pub fn pattern(mut self) -> Pattern {
        let pattern = self.expression();
        if self.peek() != Token::End {
            self.fail("the end");
        }
        pattern
    }

    fn fail(&self, wanted: &str) -> ! {
        bug!("in the pattern `{}`: {wanted} expected, {:?} found", self.text, self.peek())
    }

    fn peek(&self) -> Token {
        self.tokens.get(self.at).copied().unwrap_or(Token::End)
    }

    fn is(&self, symbol: &str) -> bool {
        matches!(self.peek(), Token::Symbol(s) | Token::Name(s) if s == symbol)
    }

    fn eat(&mut self, symbol: &str) -> bool {
        let found = self.is(symbol);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &str) {
        if !self.eat(symbol) {
            self.fail(symbol);
        }
    }

    fn name(&mut self) -> Name {
        match self.peek() {
            Token::Name(name) => {
                self.at += 1;
                name
            }
            _ => self.fail("a name"),
        }
    }

    /// Something in the scope of one more variable.
    fn under(&mut self, name: Name, read: impl FnOnce(&mut Self) -> Pattern) -> Box<Pattern> {
        self.bound.push(name);
        let pattern = read(self);
        self.bound.pop();
        Box::new(pattern)
    }

    fn expression(&mut self) -> Pattern {
        if self.eat("let") {
            let name = self.name();
            self.expect("=");
            let bound = Box::new(self.expression());
            self.expect("in");
            return Pattern::Let(name, bound, self.under(name, Self::expression));
        }
        if self.eat("if") {
            let condition = self.expression();
            self.expect("then");
            let then = self.expression();
            self.expect("else");
            return Pattern::If(Box::new([condition, then, self.expression()]));
        }
        if self.eat("fun") {
            return self.function();
        }
        if self.eat("match") {
            let scrutinee = Box::new(self.expression());
            self.expect("with");
            self.expect("Inl");
            let left = self.arm();
            self.expect("|");
            self.expect("Inr");
            return Pattern::Match(scrutinee, [left, self.arm()]);
        }
        self.comparison()
    }

    fn function(&mut self) -> Pattern {
        if self.eat("->") {
            return self.expression();
        }
        let name = self.name();
        Pattern::Lambda(name, self.under(name, Self::function))
    }

    fn arm(&mut self) -> (Name, Box<Pattern>) {
        let name = self.name();
        self.expect("->");
        (name, self.under(name, Self::expression))
    }

    fn operator(&mut self, names: &[&'static str]) -> Option<&'static str> {
        names.iter().copied().find(|name| self.eat(name))
    }

    fn comparison(&mut self) -> Pattern {
        let left = self.sum();
        match self.operator(&["=", "<>", "<=", "<", ">=", ">"]) {
            Some(name) => {
                let right = self.sum();
                infix(name, left, right)
            }
            None => left,
        }
    }

    fn sum(&mut self) -> Pattern {
        let mut left = self.product();
        while let Some(name) = self.operator(&["+", "-", "<+>", "<->"]) {
            left = infix(name, left, self.product());
        }
        left
    }

    fn product(&mut self) -> Pattern {
        let mut left = self.power();
        while let Some(name) = self.operator(&["*>", "<.>", "*", "/"]) {
            left = infix(name, left, self.power());
        }
        left
    }

    fn power(&mut self) -> Pattern {
        if self.eat("-") {
            return match self.power() {
                Pattern::Real(x) => Pattern::Real(-x),
                Pattern::Int(k) => Pattern::Int(-k),
                inner if inner.sort() == Sort::Int => Pattern::Prim(Prim::NegInt, None, vec![inner]),
                inner => Pattern::Prim(Prim::NegReal, None, vec![inner]),
            };
        }
        let base = self.application();
        match self.operator(&["^", "**"]) {
            Some(name) => infix(name, base, self.power()),
            None => base,
        }
    }

    fn application(&mut self) -> Pattern {
        if let Token::Name(name) = self.peek() {
            if let "Inl" | "Inr" = name {
                self.at += 1;
                return Pattern::Inject(usize::from(name == "Inr"), Box::new(self.postfix()));
            }
            if let Some(prim) = Prim::from_name(name).filter(|_| name.len() > 1) {
                self.at += 1;
                let args: Vec<Pattern> = (0..prim.info().params.len()).map(|_| self.postfix()).collect();
                return typed(prim, args);
            }
        }
        let mut function = self.postfix();
        while self.starts_operand() {
            function = Pattern::App(Box::new(function), Box::new(self.postfix()));
        }
        function
    }

    fn starts_operand(&self) -> bool {
        match self.peek() {
            Token::Name(name) => !matches!(name, "in" | "then" | "else" | "with"),
            Token::Real(_) | Token::Int(_) => true,
            Token::Symbol(symbol) => matches!(symbol, "(" | "[|"),
            Token::End => false,
        }
    }

    fn postfix(&mut self) -> Pattern {
        let mut inner = self.operand();
        loop {
            if self.eat(".(") {
                let index = self.expression();
                self.expect(")");
                inner = Pattern::Prim(Prim::Get, None, vec![inner, index]);
            } else if self.eat(".") {
                match self.peek() {
                    Token::Int(index) => inner = Pattern::Proj(index as usize, Box::new(inner)),
                    _ => self.fail("a position"),
                }
                self.at += 1;
            } else if self.eat("[") {
                let var = self.name();
                self.expect(":=");
                let by = Box::new(self.expression());
                self.expect("]");
                match inner {
                    Pattern::Meta(body) => inner = Pattern::Substitute { body, var, by },
                    _ => self.fail("a metavariable before `[`"),
                }
            } else {
                return inner;
            }
        }
    }

    fn operand(&mut self) -> Pattern {
        let token = self.peek();
        self.at += 1;
        match token {
            Token::Real(x) => Pattern::Real(x),
            Token::Int(k) => Pattern::Int(k),
            Token::Name("true") => Pattern::Bool(true),
            Token::Name("false") => Pattern::Bool(false),
            Token::Name(name) if self.bound.contains(&name) => Pattern::Bound(name),
            Token::Name(name) => Pattern::Meta(name),
            Token::Symbol("(") => {
                let mut items = vec![self.expression()];
                while self.eat(",") {
                    items.push(self.expression());
                }
                self.expect(")");
                match items.len() {
                    1 => items.remove(0),
                    _ => Pattern::Tuple(items),
                }
            }
            Token::Symbol("[|") => {
                let mut items = Vec::new();
                while !self.eat("|]") {
                    items.push(self.expression());
                    self.eat(";");
                }
                Pattern::Array(items)
            }
            Token::Symbol(_) | Token::End => {
                self.at -= 1;
                self.fail("an operand")
            }
        }
    }
}

fn infix(name: &'static str, left: Pattern, right: Pattern) -> Pattern {
    let on_integers = left.sort() == Sort::Int;
    let mut prims = Prim::all_named(name);
    let found = match on_integers {
        true => prims.find(|prim| prim.info().params.first() != Some(&Type::Real)),
        false => prims.next(),
    };
    match found {
        Some(prim) => typed(prim, vec![left, right]),
        None => bug!("there is no operator `{name}`"),
    }
}

/// A primitive of many types at the scalar type of its last argument, if that is one.
fn typed(prim: Prim, args: Vec<Pattern>) -> Pattern {
    let over_data = matches!(prim.info().params.last(), Some(Type::Var(_))) && prim.info().scheme.vars.len() == 1;
    let ty = if over_data && prim != Prim::Ifold { args.last().and_then(|arg| arg.sort().scalar()) } else { None };
    Pattern::Prim(prim, ty, args)
}

fn tokens(text: &'static str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if first.is_ascii_alphabetic() {
            rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len())
        } else if first.is_ascii_digit() {
            number_length(rest)
        } else {
            match SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
                Some(symbol) => symbol.len(),
                None => bug!("in the pattern `{text}`: `{first}`"),
            }
        };
        let (word, after) = rest.split_at(length);
        tokens.push(if first.is_ascii_alphabetic() {
            Token::Name(word)
        } else if first.is_ascii_digit() {
            match (word.parse::<i64>(), word.parse::<f64>()) {
                (Ok(k), _) => Token::Int(k),
                (_, Ok(x)) => Token::Real(x),
                _ => bug!("in the pattern `{text}`: `{word}`"),
            }
        } else {
            Token::Symbol(word)
        });
        rest = after.trim_start();
    }
    tokens
}

/// `2`, `2.0`; the point of `x.(2)` is none of it.
fn number_length(text: &str) -> usize {
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let whole = digits(text);
    match text[whole..].strip_prefix('.') {
        Some(fraction) if fraction.starts_with(|c: char| c.is_ascii_digit()) => whole + 1 + digits(fraction),
        _ => whole,
    }
}
