//! A whole program in core form: declared types, definitions, and what the program asks to be done.

use crate::{Scheme, Symbol, Term, Type, TypeDecl};
use gradus_source::Span;
use indexmap::IndexMap;

#[derive(Clone, Debug, Default)]
pub struct Program {
    /// By qualified name (`tree`, `Geometry.point`); the builtin ones included.
    pub types: IndexMap<Symbol, TypeDecl>,
    /// By qualified name (`Main.loss` is plain `loss` for the file that is run; `Optim.descend`), in order of dependence of modules.
    pub defs: IndexMap<Symbol, Def>,
    /// `show`, `check` and `plot` of the file that is run, in order.
    pub items: Vec<Item>,
    /// Whether tuples and records that are elements of an array may have arrays of different lengths inside. Compiled code, which keeps those of all elements
    /// in one array, takes them to be alike until it finds that they are not.
    pub irregular: bool,
}

#[derive(Clone, Debug)]
pub struct Def {
    pub name: Symbol,
    /// The module that it belongs to; derivative code is made per module (K section 7.5).
    pub module: Symbol,
    pub scheme: Scheme,
    pub body: Body,
    pub rules: Rules,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum Body {
    Term(Term),
    /// `data x : T from "file"`: the value is given to the evaluator from outside.
    Data {
        file: Symbol,
        span: Span,
    },
}

/// Custom derivatives of a function `f : a1 -> ... -> an -> b`.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// How many parameters the rules speak of.
    pub arity: usize,
    /// `a1 -> ... -> an -> b -> (a1 * ... * an)` (for n = 1 just `a1`), polymorphic like the function.
    pub reverse: Option<Term>,
    /// `a1 -> ... -> an -> a1 -> ... -> an -> b`
    pub forward: Option<Term>,
}

#[derive(Clone, Debug)]
pub struct Item {
    pub kind: ItemKind,
    pub term: Term,
    pub ty: Type,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum ItemKind {
    Show,
    /// If the checked expression is a comparison, both of its sides (of the given type), so that a failure can show them.
    Check {
        sides: Option<(Term, Term, Type)>,
    },
    Plot {
        file: Option<Symbol>,
    },
}
