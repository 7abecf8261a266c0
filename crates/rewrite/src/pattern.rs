//! Patterns: the two sides of a rule, written as in Gradus and read once.
//!
//! A name that the pattern does not bind is a metavariable. Its first letter says its type, which decides what an overloaded operator
//! means and what the tests put in its place: `a` to `h` real, `i` to `n` integer, `p` and `q` truth value, `u` to `w` array, others anything.
//! `e[x := a]` is the term of `e` with `a` for `x`; only the right side may have it.

use crate::parse::Parser;
use gradus_core::{Prim, Type};

pub type Name = &'static str;

#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    Meta(Name),
    Bound(Name),
    Real(f64),
    Int(i64),
    Bool(bool),
    /// The type is demanded of a primitive that has many, as in `a <.> b` on reals.
    Prim(Prim, Option<Type>, Vec<Pattern>),
    Lambda(Name, Box<Pattern>),
    App(Box<Pattern>, Box<Pattern>),
    Let(Name, Box<Pattern>, Box<Pattern>),
    If(Box<[Pattern; 3]>),
    Tuple(Vec<Pattern>),
    Proj(usize, Box<Pattern>),
    /// `Inl e`, `Inr e`
    Inject(usize, Box<Pattern>),
    /// `match e with Inl x -> e | Inr y -> e`
    Match(Box<Pattern>, [(Name, Box<Pattern>); 2]),
    Array(Vec<Pattern>),
    Substitute {
        body: Name,
        var: Name,
        by: Box<Pattern>,
    },
}

/// What is known of a pattern's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Real,
    Int,
    Bool,
    Array,
    Any,
}

impl Sort {
    /// The type that a name stands for.
    pub fn of_name(name: &str) -> Sort {
        match name.as_bytes().first() {
            Some(b'a'..=b'h') => Sort::Real,
            Some(b'i'..=b'n') => Sort::Int,
            Some(b'p' | b'q') => Sort::Bool,
            Some(b'u'..=b'w') => Sort::Array,
            _ => Sort::Any,
        }
    }

    pub fn scalar(self) -> Option<Type> {
        match self {
            Sort::Real => Some(Type::Real),
            Sort::Int => Some(Type::Int),
            Sort::Bool => Some(Type::Bool),
            Sort::Array | Sort::Any => None,
        }
    }
}

impl Pattern {
    /// Reads a side of a rule. The table is ours, so that a mistake in it is a bug, which a test of the table finds.
    pub fn parse(text: &'static str) -> Pattern {
        Parser::new(text).pattern()
    }

    pub fn sort(&self) -> Sort {
        match self {
            Pattern::Meta(name) | Pattern::Bound(name) | Pattern::Substitute { body: name, .. } => Sort::of_name(name),
            Pattern::Real(_) => Sort::Real,
            Pattern::Int(_) => Sort::Int,
            Pattern::Bool(_) => Sort::Bool,
            Pattern::Prim(prim, ty, _) => match (&prim.info().result, ty) {
                (Type::Real, _) | (Type::Var(_), Some(Type::Real)) => Sort::Real,
                (Type::Int, _) | (Type::Var(_), Some(Type::Int)) => Sort::Int,
                (Type::Bool, _) => Sort::Bool,
                (Type::Array(_), _) => Sort::Array,
                _ => Sort::Any,
            },
            Pattern::Let(_, _, body) => body.sort(),
            Pattern::If(parts) => parts[1].sort(),
            Pattern::Array(_) => Sort::Array,
            Pattern::Proj(index, inner) => match &**inner {
                Pattern::Tuple(items) => items.get(*index).map_or(Sort::Any, Pattern::sort),
                _ => Sort::Any,
            },
            Pattern::Match(_, [(_, first), _]) => first.sort(),
            Pattern::Lambda(..) | Pattern::App(..) | Pattern::Tuple(_) | Pattern::Inject(..) => Sort::Any,
        }
    }

    /// The parts, in order of evaluation.
    pub fn children(&self) -> Vec<&Pattern> {
        match self {
            Pattern::Meta(_) | Pattern::Bound(_) | Pattern::Real(_) | Pattern::Int(_) | Pattern::Bool(_) => vec![],
            Pattern::Prim(_, _, items) | Pattern::Tuple(items) | Pattern::Array(items) => items.iter().collect(),
            Pattern::Lambda(_, inner) | Pattern::Proj(_, inner) | Pattern::Inject(_, inner) => vec![inner],
            Pattern::App(first, second) | Pattern::Let(_, first, second) => vec![first, second],
            Pattern::If(parts) => parts.iter().collect(),
            Pattern::Match(scrutinee, [(_, left), (_, right)]) => vec![scrutinee, left, right],
            Pattern::Substitute { by, .. } => vec![by],
        }
    }

    /// Whether no part binds a variable or substitutes: what an e-graph without binders can hold.
    pub fn is_first_order(&self) -> bool {
        let here = match self {
            Pattern::Lambda(..) | Pattern::Let(..) | Pattern::Match(..) | Pattern::Substitute { .. } => false,
            Pattern::App(..) | Pattern::Inject(..) | Pattern::Array(_) => false,
            // Primitives of many types are held whole.
            Pattern::Prim(prim, _, _) => prim.info().scheme.vars.is_empty(),
            Pattern::Meta(_) | Pattern::Bound(_) | Pattern::Real(_) | Pattern::Int(_) | Pattern::Bool(_) => true,
            Pattern::If(_) | Pattern::Tuple(_) | Pattern::Proj(..) => true,
        };
        here && self.children().into_iter().all(Pattern::is_first_order)
    }
}
