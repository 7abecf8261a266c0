//! The elaborated tree: names resolved, every node with its type, sugar gone, but patterns still nested and overloading
//! still open. It lives in an arena, so that a deep tree is dropped without recursion, and only for one definition.

use crate::names::GlobalId;
use crate::relate::Checked;
use crate::scheme::LocalScheme;
use crate::store::{Size, Ty, TypeId};
use gradus_core::{DeriveOp, Literal, Prim, Symbol, Var};
use gradus_source::Span;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Exp(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pat(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LocalId(pub u32);

/// A local variable.
#[derive(Clone, Debug)]
pub struct Local {
    pub name: Symbol,
    pub ty: Ty,
    pub span: Span,
    /// What it was generalised over.
    pub scheme: Option<LocalScheme>,
    /// In core.
    pub var: Var,
    /// The array size that this integer is: it was bound to `length a`, or is a size variable.
    pub size: Option<Size>,
}

#[derive(Clone, Debug)]
pub struct ExpNode {
    pub kind: ExpKind,
    pub ty: Ty,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum ExpKind {
    Local(LocalId, Arc<[Ty]>),
    Global(GlobalId, Use),
    Literal(Literal),
    /// `2` at the type of the node: `int` or `real`.
    Numeral(Arc<str>),
    /// `fun p1 p2 -> e`: all parameters, then what their sizes and patterns bind.
    Function(Vec<Param>, Exp),
    App(Exp, Exp),
    /// A variable, perhaps polymorphic.
    Let(LocalId, Exp, Exp),
    LetRec(Vec<(LocalId, Exp)>, Exp),
    Match {
        scrutinee: Exp,
        arms: Vec<MatchArm>,
        /// What the patterns belong to, for messages.
        form: MatchForm,
    },
    If(Exp, Exp, Exp),
    Tuple(Vec<Exp>),
    /// A record is built with tag 0. The type arguments follow from the node's type.
    Construct(TypeId, usize, Vec<Exp>),
    /// Fields in the order in which they were written, by position.
    Record(TypeId, Vec<(usize, Exp)>),
    RecordWith(TypeId, Exp, Vec<(usize, Exp)>),
    Field(Exp, usize),
    Array(Vec<Exp>),
    /// Perhaps with too few arguments.
    Prim(Prim, Arc<[Ty]>, Vec<Exp>),
    Derive(DeriveOp, Arc<[Ty]>, Vec<Exp>),
    /// An overloaded operator; the first type decides.
    Arith(Arith, Ty, Vec<Exp>),
    /// An array that must have these sizes when the program runs.
    Sized(Exp, Vec<Checked>),
    /// What is already known to be wrong.
    Error,
}

/// How a top-level definition is used.
#[derive(Clone, Debug)]
pub enum Use {
    At(Arc<[Ty]>),
    /// Inside its own recursive group: at the group's own variables.
    Group,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arith {
    Add,
    Sub,
    Mul,
    Div,
    Neg,
    Pow,
}

impl Arith {
    pub fn prim(self, real: bool) -> Prim {
        match (self, real) {
            (Arith::Add, true) => Prim::AddReal,
            (Arith::Add, false) => Prim::AddInt,
            (Arith::Sub, true) => Prim::SubReal,
            (Arith::Sub, false) => Prim::SubInt,
            (Arith::Mul, true) => Prim::MulReal,
            (Arith::Mul, false) => Prim::MulInt,
            (Arith::Div, true) => Prim::DivReal,
            (Arith::Div, false) => Prim::DivInt,
            (Arith::Neg, true) => Prim::NegReal,
            (Arith::Neg, false) => Prim::NegInt,
            (Arith::Pow, true) => Prim::PowRealInt,
            (Arith::Pow, false) => Prim::PowInt,
        }
    }
}

/// A function's parameter.
#[derive(Clone, Debug)]
pub struct Param {
    pub pattern: Pat,
    pub ty: Ty,
    /// Sizes of the parameter that are checked when the function is called.
    pub checks: Vec<Checked>,
    /// Size variables that this parameter determines: the length of the array that these components of tuples lead to.
    pub binds: Vec<(LocalId, Vec<usize>)>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct MatchArm {
    pub pattern: Pat,
    pub guard: Option<Exp>,
    pub body: Exp,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchForm {
    Match,
    Let,
    Param,
}

#[derive(Clone, Debug)]
pub struct PatNode {
    pub kind: PatKind,
    pub ty: Ty,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum PatKind {
    Wild,
    /// A variable, or `p as x`.
    Bind(LocalId, Option<Pat>),
    Tuple(Vec<Pat>),
    /// Constructor or record, with a pattern for each argument.
    Construct(TypeId, usize, Vec<Pat>),
    Literal(Literal),
    Numeral(Arc<str>),
    Array(Vec<Pat>),
    Or(Vec<Pat>),
}

#[derive(Debug, Default)]
pub struct Tree {
    exps: Vec<ExpNode>,
    pats: Vec<PatNode>,
    pub locals: Vec<Local>,
}

impl Tree {
    pub fn exp(&mut self, kind: ExpKind, ty: Ty, span: Span) -> Exp {
        self.exps.push(ExpNode { kind, ty, span });
        Exp(self.exps.len() as u32 - 1)
    }

    pub fn pat(&mut self, kind: PatKind, ty: Ty, span: Span) -> Pat {
        self.pats.push(PatNode { kind, ty, span });
        Pat(self.pats.len() as u32 - 1)
    }

    pub fn local(&mut self, name: Symbol, ty: Ty, span: Span) -> LocalId {
        let var = Var::fresh(name.clone());
        self.locals.push(Local { name, ty, span, scheme: None, var, size: None });
        LocalId(self.locals.len() as u32 - 1)
    }

    pub fn node(&self, exp: Exp) -> &ExpNode {
        &self.exps[exp.0 as usize]
    }

    pub fn pattern(&self, pat: Pat) -> &PatNode {
        &self.pats[pat.0 as usize]
    }

    pub fn local_of(&self, id: LocalId) -> &Local {
        &self.locals[id.0 as usize]
    }

    pub fn local_mut(&mut self, id: LocalId) -> &mut Local {
        &mut self.locals[id.0 as usize]
    }

    pub fn clear(&mut self) {
        self.exps.clear();
        self.pats.clear();
        self.locals.clear();
    }
}
