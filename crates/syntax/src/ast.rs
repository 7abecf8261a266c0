//! The surface syntax tree: what the user wrote, before names and types are known.
//!
//! Every node carries its exact span. Parentheses and comments are not in the tree; the formatter
//! finds them through the spans.

use gradus_source::Span;
use std::sync::Arc;

/// A name with the place where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Ident {
    pub name: Arc<str>,
    pub span: Span,
}

/// `x`, `Optim.descend`, `Tree.Node`: module names, then the name itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    pub modules: Vec<Ident>,
    pub name: Ident,
    pub span: Span,
}

/// A source file.
#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    pub items: Vec<Item>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    pub kind: ItemKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ItemKind {
    /// `import Optim`
    Import(Ident),
    /// `open Optim`
    Open(Path),
    /// `type a = ... and b = ...`
    Type(Vec<TypeDecl>),
    /// `let x = e`, `let rec f x = e and g y = e`
    Let(LetGroup),
    /// `data points : (real * real)[] from "points.csv"`
    Data { name: Ident, ty: TypeExpr, file: Text },
    /// `show e`
    Show(Expr),
    /// `check e`
    Check(Expr),
    /// `plot e`, or `plot e to "file.svg"`
    Plot { value: Expr, file: Option<Text> },
    /// `derivative f x y dz = e` (reverse rule) or `tangent f x y dx dy = e` (forward rule)
    Rule { direction: Direction, function: Ident, params: Vec<Pattern>, body: Expr },
    /// What the parser could not read; it has already said so.
    Error,
}

/// A string literal, unescaped, with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    pub value: Arc<str>,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Reverse,
    Forward,
}

/// `type ('a, 'b) name = ...`
#[derive(Clone, Debug, PartialEq)]
pub struct TypeDecl {
    pub params: Vec<Ident>,
    pub name: Ident,
    pub body: TypeBody,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TypeBody {
    /// `= real * real`
    Alias(TypeExpr),
    /// `= { x : real; y : real }`
    Record(Vec<FieldDecl>),
    /// `= Leaf of 'a | Node of 'a tree * 'a tree`
    Variant(Vec<ConstructorDecl>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct FieldDecl {
    pub name: Ident,
    pub ty: TypeExpr,
}

/// `Node of a * b` has two arguments; `Pair of (a * b)` has one, a tuple.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstructorDecl {
    pub name: Ident,
    pub args: Vec<TypeExpr>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TypeExpr {
    pub kind: TypeExprKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TypeExprKind {
    /// `'a`
    Var(Ident),
    /// `real`, `'a tree`, `(real, int) either`, `Geometry.point`
    Named(Path, Vec<TypeExpr>),
    Tuple(Vec<TypeExpr>),
    Fun(Box<TypeExpr>, Box<TypeExpr>),
    /// `a[n]`, `a[3]`, `a[]`: the element's type and the number of elements. `a[n][m]` is n rows of m elements
    /// and arrives as `Array(Array(a, m), n)`, so that a pass need not turn sizes round.
    Array(Box<TypeExpr>, SizeExpr),
    /// `_`
    Wild,
    Error,
}

/// The size in an array type.
#[derive(Clone, Debug, PartialEq)]
pub enum SizeExpr {
    Literal(u64, Span),
    Var(Ident),
    Unknown,
}

/// `let [rec] b1 and b2`
#[derive(Clone, Debug, PartialEq)]
pub struct LetGroup {
    pub recursive: bool,
    pub bindings: Vec<Binding>,
}

/// `pattern = body`, `f p1 p2 : t = body`. Parameters only follow a variable pattern.
/// `let f : 'a. 'a list -> int = ...` (a quantified annotation) is `annotation` with `quantified` names.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    pub pattern: Pattern,
    pub params: Vec<Pattern>,
    /// The names of `'a 'b .` before the type, for polymorphic recursion.
    pub quantified: Vec<Ident>,
    /// Of the result, after the parameters.
    pub annotation: Option<TypeExpr>,
    pub body: Expr,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// `2`: usable at `int` or `real`. The text keeps numerals exact; it has decimal digits only (`0xff` and `1_000`
    /// arrive as `255` and `1000`).
    Int(Arc<str>),
    /// `2.0`, `1e-6`
    Real(Arc<str>),
    String(Arc<str>),
    Bool(bool),
    Unit,
    /// `x`, `Optim.descend`
    Var(Path),
    /// `None`, `Tree.Leaf`; applied by [`ExprKind::App`]
    Constructor(Path),
    /// `f a b`
    App(Box<Expr>, Vec<Expr>),
    /// `fun x (y, z) -> e`
    Fun(Vec<Pattern>, Box<Expr>),
    /// `function A -> e | B -> e`
    Function(Vec<Arm>),
    Let(LetGroup, Box<Expr>),
    /// `let open M in e`, `M.(e)`
    Open(Path, Box<Expr>),
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    Match(Box<Expr>, Vec<Arm>),
    Tuple(Vec<Expr>),
    /// `[a; b]`
    List(Vec<Expr>),
    /// `[| a; b |]`
    Array(Vec<Expr>),
    /// `[| for i < n, j < m -> e |]`
    Comprehension(Vec<(Ident, Expr)>, Box<Expr>),
    /// `{ x = 1.0; y }` (a field without `=` means the variable of that name)
    Record(Vec<(Path, Option<Expr>)>),
    /// `{ r with x = e }`
    RecordWith(Box<Expr>, Vec<(Path, Option<Expr>)>),
    /// `r.x`
    Field(Box<Expr>, Path),
    /// `a.(i)`, `a.(i, j)`
    Index(Box<Expr>, Vec<Expr>),
    Unary(UnaryOp, Box<Expr>),
    Binary(BinaryOp, Span, Box<Expr>, Box<Expr>),
    /// `( + )`, `( *> )`
    Operator(BinaryOp),
    /// `(e : t)`
    Annotation(Box<Expr>, TypeExpr),
    /// What the parser could not read; it has already said so.
    Error,
}

/// `| pattern when guard -> body`
#[derive(Clone, Debug, PartialEq)]
pub struct Arm {
    pub pattern: Pattern,
    pub guard: Option<Expr>,
    pub body: Expr,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    Neg,
}

/// From loosest to tightest, with OCaml's precedences and associativities: `||` right; `&&` right; `|>` and
/// comparisons left; `@` right; `::` right; `+ - <+> <->` left; `* / *> <.> mod` left; `**` and `^` right
/// (`^` is power here, not string append). The table is [`crate::operators::OPERATORS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    Pipe,
    Or,
    And,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// `@`: list append
    Append,
    Cons,
    Add,
    Sub,
    Mul,
    Div,
    /// `mod`
    Mod,
    /// `^`: integer exponent
    Pow,
    /// `**`: real exponent
    RealPow,
    /// `<+>`
    VectorAdd,
    /// `<->`
    VectorSub,
    /// `*>`
    Scale,
    /// `<.>`
    Inner,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    pub kind: PatternKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum PatternKind {
    Wild,
    Var(Arc<str>),
    Int(Arc<str>),
    Real(Arc<str>),
    String(Arc<str>),
    Bool(bool),
    Unit,
    Tuple(Vec<Pattern>),
    List(Vec<Pattern>),
    /// `p :: q`
    Cons(Box<Pattern>, Box<Pattern>),
    /// `Leaf`, `Node (p, q)`: arguments as written; `Node p` has one
    Constructor(Path, Option<Box<Pattern>>),
    /// `{ x; y = p; _ }`; `open` tells whether `_` was there
    Record {
        fields: Vec<(Path, Option<Pattern>)>,
        open: bool,
    },
    /// `[| p; q |]`
    Array(Vec<Pattern>),
    Or(Vec<Pattern>),
    /// `p as x`
    As(Box<Pattern>, Ident),
    /// `(p : t)`
    Annotation(Box<Pattern>, TypeExpr),
    Error,
}
