//! **flow**, the first-order typed intermediate language of the native compiler.
//!
//! # What it is
//!
//! A [`Module`] is a list of functions. A [`Function`] has parameters and a [`Block`]; a block is a list of statements in
//! A-normal form and a list of results. Statements bind variables once; nested blocks see the variables around them, so that
//! a loop body or a branch needs no list of captured values. There are no functions as values, no tuples and no records:
//! lowering has flattened them, and each [`Var`] is one number or one array of numbers.
//!
//! - **Types** ([`Type`]): `real`, `int`, `bool`, and flat regular arrays of these of a fixed rank, `real[2]` being a
//!   matrix. An array of tuples is a tuple of arrays. A non-recursive variant is its tag and the fields of all its constructors.
//! - **Loops** ([`Op::For`]): one construct for what the language has four names for. A loop carries state from one
//!   iteration to the next and *collects* a value of each iteration into an array. With no state it is `build` (its iterations
//!   are independent); with state and nothing collected it is `ifold`; with both it is a scan. [`Op::While`] is the same with
//!   the end decided by the body: `iterate` and tail recursion.
//! - **Accumulators** ([`Op::Open`], [`Op::Add`], [`Op::Freeze`]): between `open` and `freeze` an accumulator can only be added
//!   to, anywhere inside nested blocks. Since nobody can read it and addition commutes, the iterations of a loop that only adds stay
//!   independent. `sum` is `open 0; for { add }; freeze`; the adjoint of an array that is read in a loop is an
//!   accumulator of the array's shape, so it is never rebuilt per element.
//! - **Cells** ([`Op::Cell`], [`Op::Tag`], [`Op::Unpack`]): what has no fixed size (recursive types, functions chosen when the program runs,
//!   elements of arrays that differ in shape) lives on the heap. A box is an immutable, counted cell: a tag and, for that tag, a fixed list
//!   of fields, each a number, an array or a box. A [`Shape`] says which; every box type names its shape, so heap values are as typed as
//!   numbers. A constructor without fields is no cell but an immediate value, and so is [`Atom::Nil`], which stands where nobody looks or
//!   for a zero derivative; its tag is -1.
//! - **Linear shapes** ([`Module::linear`]): the tangents and adjoints of boxes of shape `s` are boxes of the shape `L(s)`: the same tags, of
//!   the fields only the reals and the boxes, with `nil` for zero; `L(L(s))` is `L(s)`. Two of them are added by the function
//!   that [`Shape::merge`] names, which is also what [`Op::Add`] means on accumulators of boxes.
//! - **The tape** ([`Op::Push`], [`Op::Pop`]): a stack of values, where the last pass (`tape`) puts the traces of reverse mode that are
//!   taken apart in the reverse order of their making. No earlier pass knows of it.
//! - **Holes** ([`Op::Hole`], [`Op::Plug`]): a field of a new cell that is put in later, so that a list can be made from its beginning. The
//!   very last pass (`holes`) makes loops of recursion with them; no other pass knows of them either.
//! - **Failures** ([`Op::Check`]) are statements of their own with a source position; reading and arithmetic cannot fail.
//!   So a check that is known to hold, or that can be made once before a loop, is an ordinary simplification.
//!
//! # Why this set
//!
//! It is closed under differentiation. The adjoint of a loop is a loop that reads what the first collected; of `get`, an `add`; of
//! `add`, a `get`; of `open` and `freeze`, each other. Nothing in the output of `adjoint` is foreign to its input, so derivatives of
//! derivatives are the same transformation once more.
//!
//! # Text
//!
//! [`print`] writes a module and [`read`] reads it back; tests of passes are text in and text out:
//!
//! ```text
//! fun f(x: real, a: real[1]) -> (real) {
//!   n = dim a 0
//!   s = open 0.0
//!   for i < n {
//!     v = get a i
//!     w = mul v x
//!     accumulate s += w
//!   }
//!   t = freeze s
//!   return t
//! }
//! ```
//!
//! Shapes come first: `shape 0 list = () | (real, box0)` has two tags; the type of such boxes is `box0`, of arrays of them `box0[1]`. `y = cell
//! box0 1 x rest`, `t = tag y`, `x, rest = unpack y 1`, and `nil0`.
//!
//! A loop with state and collected values: `last, all = for i < n with c: real = 0.0 { ...` then the lines `yield next` and `collect c` and `}`.

pub mod build;
pub mod check;
pub mod fold;
mod name;
pub mod print;
pub mod read;
pub mod scalar;
mod shapes;
pub mod walk;

pub use build::Builder;
pub use name::Name;
pub use shapes::{CellLayout, Place, TapeLayout};

use gradus_core::Prim;
use gradus_source::Span;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

/// What an array consists of, or a register holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scalar {
    Real,
    Int,
    Bool,
    /// A counted cell of a shape, or an immediate value.
    Box(ShapeId),
}

/// The position of a shape in its [`Module`]. Packed, which makes operands a third smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(Rust, packed)]
pub struct ShapeId(pub u32);

impl fmt::Display for ShapeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A copy: what is packed cannot be lent.
        let number = self.0;
        write!(f, "{number}")
    }
}

/// What the cells of a type consist of.
#[derive(Clone, Debug)]
pub struct Shape {
    pub name: Name,
    /// The types of the fields, for each tag.
    pub cells: Vec<Vec<Type>>,
    /// Made by reverse mode for its own use: what a forward sweep keeps for the backward sweep.
    pub trace: bool,
    /// For `L(s)`: `s` itself, or what it was made from.
    pub linear_of: Option<ShapeId>,
    /// Of a linear shape: the function that adds two such boxes.
    pub merge: Option<FunctionId>,
}

/// A number or box (rank 0), a flat regular array, or an accumulator of either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Type {
    pub scalar: Scalar,
    pub rank: u8,
    pub accumulator: bool,
}

impl Type {
    pub const REAL: Type = Type::array(Scalar::Real, 0);
    pub const INT: Type = Type::array(Scalar::Int, 0);
    pub const BOOL: Type = Type::array(Scalar::Bool, 0);
    /// The calling convention has room for this many dimensions.
    pub const MAX_RANK: u8 = 7;

    pub const fn array(scalar: Scalar, rank: u8) -> Type {
        Type { scalar, rank, accumulator: false }
    }

    pub fn is_array(self) -> bool {
        self.rank > 0
    }

    pub const fn boxed(shape: ShapeId) -> Type {
        Type::array(Scalar::Box(shape), 0)
    }

    pub fn is_real(self) -> bool {
        self.scalar == Scalar::Real
    }

    /// The shape, if it is a box or an array of boxes.
    pub fn shape(self) -> Option<ShapeId> {
        match self.scalar {
            Scalar::Box(shape) => Some(shape),
            Scalar::Real | Scalar::Int | Scalar::Bool => None,
        }
    }

    /// Whether it can have a derivative: reals, and boxes, which may have reals inside.
    pub fn may_be_active(self) -> bool {
        matches!(self.scalar, Scalar::Real | Scalar::Box(_))
    }

    /// Whether it is counted by its holders: arrays and boxes.
    pub fn is_counted(self) -> bool {
        self.is_array() || matches!(self.scalar, Scalar::Box(_))
    }

    /// The type of an array of these.
    pub fn in_array(self) -> Type {
        Type { rank: self.rank + 1, ..self }
    }

    /// What is left after indexing with so many integers.
    pub fn at(self, indices: usize) -> Type {
        Type { rank: self.rank.saturating_sub(indices as u8), ..self }
    }

    /// The type of the accumulator of such a value.
    pub fn accumulator(self) -> Type {
        Type { accumulator: true, ..self }
    }

    /// The type of what an accumulator is frozen to.
    pub fn frozen(self) -> Type {
        Type { accumulator: false, ..self }
    }
}

static NEXT_VAR: AtomicU32 = AtomicU32::new(0);

/// A variable: bound once in its function. Two variables are the same if their numbers are.
#[derive(Clone, Copy, Debug)]
pub struct Var {
    pub id: u32,
    pub ty: Type,
    /// What to call it in output; not unique.
    pub name: Name,
}

impl Var {
    pub fn fresh(name: impl Into<Name>, ty: Type) -> Var {
        Var { id: NEXT_VAR.fetch_add(1, Ordering::Relaxed), ty, name: name.into() }
    }

    /// A new variable of the same name and type.
    pub fn refresh(self) -> Var {
        Var::fresh(self.name, self.ty)
    }
}

impl PartialEq for Var {
    fn eq(&self, other: &Var) -> bool {
        self.id == other.id
    }
}
impl Eq for Var {}
impl std::hash::Hash for Var {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.id.hash(state)
    }
}

/// An operand: a variable or a constant.
#[derive(Clone, Copy, Debug)]
pub enum Atom {
    Var(Var),
    Real(f64),
    Int(i64),
    Bool(bool),
    /// The box that is nothing: not looked at, or zero.
    Nil(ShapeId),
}

impl Atom {
    pub fn ty(self) -> Type {
        match self {
            Atom::Var(v) => v.ty,
            Atom::Real(_) => Type::REAL,
            Atom::Int(_) => Type::INT,
            Atom::Bool(_) => Type::BOOL,
            Atom::Nil(shape) => Type::boxed(shape),
        }
    }

    pub fn var(self) -> Option<Var> {
        match self {
            Atom::Var(v) => Some(v),
            Atom::Real(_) | Atom::Int(_) | Atom::Bool(_) | Atom::Nil(_) => None,
        }
    }

    /// Whether this is exactly the given real constant (the sign of zero counts).
    pub fn is_real(self, value: f64) -> bool {
        matches!(self, Atom::Real(r) if r.to_bits() == value.to_bits())
    }
}

/// Identity of operands: constants by their bits, so that NaN equals itself and the zeros differ.
impl PartialEq for Atom {
    fn eq(&self, other: &Atom) -> bool {
        match (self, other) {
            (Atom::Var(a), Atom::Var(b)) => a == b,
            (Atom::Real(a), Atom::Real(b)) => a.to_bits() == b.to_bits(),
            (Atom::Int(a), Atom::Int(b)) => a == b,
            (Atom::Bool(a), Atom::Bool(b)) => a == b,
            (Atom::Nil(a), Atom::Nil(b)) => a == b,
            (Atom::Var(_) | Atom::Real(_) | Atom::Int(_) | Atom::Bool(_) | Atom::Nil(_), _) => false,
        }
    }
}
impl Eq for Atom {}
impl std::hash::Hash for Atom {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        match self {
            Atom::Var(v) => (0, v.id as u64).hash(state),
            Atom::Real(r) => (1, r.to_bits()).hash(state),
            Atom::Int(i) => (2, *i as u64).hash(state),
            Atom::Bool(b) => (3, *b as u64).hash(state),
            Atom::Nil(shape) => (4, shape.0 as u64).hash(state),
        }
    }
}

impl From<Var> for Atom {
    fn from(v: Var) -> Atom {
        Atom::Var(v)
    }
}

/// Statements, then results.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Block {
    pub stmts: Vec<Stmt>,
    pub results: Vec<Atom>,
}

/// `binds = op`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stmt {
    pub binds: Vec<Var>,
    pub op: Op,
    pub span: Span,
}

/// Each pass moves every statement, from one list to the next. What is longer than this the machine copies by a call, which once took a fifth of the
/// time that simplification takes; so what is long is boxed.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Stmt>() <= 128 && size_of::<Atom>() <= 16);

/// The position of a function in its [`Module`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionId(pub usize);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// A primitive on numbers; the comparisons take two operands of the same scalar type. See [`scalar::result`].
    Scalar {
        prim: Prim,
        args: Vec<Atom>,
    },
    /// The same value under another name, with respect to which a derivative is taken. Simplification removes it.
    Copy {
        value: Atom,
    },
    /// The same value, taken as constant by derivatives.
    Stop {
        value: Atom,
    },
    /// `then` or `otherwise`, both already computed; numbers only.
    Select {
        cond: Atom,
        then: Atom,
        otherwise: Atom,
    },
    /// The length of an array along an axis.
    Dim {
        array: Var,
        axis: u8,
    },
    /// An element; with fewer indices than the rank, a row or slab. The indices are known to be in bounds.
    Get {
        array: Var,
        index: Vec<Atom>,
    },
    /// The array with an element (or row) replaced; in place when nobody else holds it. In bounds, and a row has the row's shape.
    Set {
        array: Var,
        index: Vec<Atom>,
        value: Atom,
    },
    /// An array of the given shape with one number everywhere. A single dimension that is the constant 0 says that nobody looks at the
    /// array; one that is empty and may be looked at is a `Literal` without items.
    Fill {
        dims: Vec<Atom>,
        value: Atom,
    },
    /// An array of items, all of the same shape.
    Literal {
        items: Vec<Atom>,
        ty: Type,
    },
    /// An array, row by row, and the elements of another behind it; in place when nobody else holds the first and there is room. Made by `extend`, one
    /// of the last passes, only.
    Extend {
        array: Var,
        by: Var,
    },
    /// A new cell with the fields that the shape has for the tag; without fields, an immediate value.
    Cell {
        shape: ShapeId,
        tag: usize,
        fields: Vec<Atom>,
    },
    /// The tag of a box; -1 for nil.
    Tag {
        cell: Atom,
    },
    /// Binds all the fields of a box, which is known to have the tag.
    Unpack {
        cell: Atom,
        tag: usize,
    },
    /// Where a field of a new cell lies, which is nil and will be put in later: an address, not counted. Made by `holes`, the last pass, only.
    Hole {
        cell: Var,
        tag: usize,
        field: usize,
    },
    /// Puts a box where a field was left open.
    Plug {
        hole: Atom,
        value: Atom,
    },
    /// Puts values on the tape.
    Push {
        values: Vec<Atom>,
    },
    /// Binds the values that were put on the tape last, and takes them off it.
    Pop {
        types: Vec<Type>,
    },
    /// The characters of a real in decimal, the shortest that read back as the same number.
    Digits {
        value: Atom,
    },
    /// Stops the program with `failure` at the statement's position unless `cond` holds.
    Check {
        cond: Atom,
        failure: Failure,
    },
    /// `replayed`: as in [`For`].
    If {
        cond: Atom,
        then: Box<Block>,
        otherwise: Box<Block>,
        replayed: bool,
    },
    For(Box<For>),
    /// Runs the body at least once, as long as it answers true. See [`While`].
    While(Box<While>),
    Call {
        function: FunctionId,
        args: Vec<Atom>,
    },
    /// A new accumulator that starts from a value.
    Open {
        init: Atom,
    },
    /// Adds a number to an element of an accumulator (to itself if it is of rank 0), or an array to a row or to all of it.
    Add {
        acc: Var,
        index: Vec<Atom>,
        value: Atom,
    },
    /// Adds the product of two matrices to the corner of an accumulator. Made by the last passes only, when all derivatives have been taken.
    Product(Box<Product>),
    /// The sum; the accumulator is gone. In the block of its `open`, after all its `add`s.
    Freeze {
        acc: Var,
    },
}

impl Op {
    /// One of two blocks.
    pub fn branch(cond: Atom, then: Block, otherwise: Block, replayed: bool) -> Op {
        Op::If { cond, then: Box::new(then), otherwise: Box::new(otherwise), replayed }
    }
}

/// `acc[i][j] += left(i, l) * right(l, j)` for all i < rows, j < columns, l < inner, which are known to be in bounds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Product {
    pub acc: Var,
    pub left: Factor,
    pub right: Factor,
    pub rows: Atom,
    pub columns: Atom,
    pub inner: Atom,
}

/// A matrix, or what it is with rows and columns exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Factor {
    pub matrix: Var,
    pub transposed: bool,
}

/// `for index < count with carried { body }`: the body's results are the next state, one for each carried variable, then the
/// collected values. The statement binds the last state, then for each collected value the array of it over all iterations.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct For {
    pub index: Var,
    pub count: Atom,
    pub carried: Vec<(Var, Atom)>,
    pub body: Block,
    /// Nothing is lost if this loop does not run and its results are not wanted: a later one makes the same checks.
    pub replayed: bool,
}

/// `while with carried { body }`: the body's results are whether to go on, the next state, and the collected values. The
/// statement binds the last state, then the array of each collected value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct While {
    pub carried: Vec<(Var, Atom)>,
    pub body: Block,
}

/// Why a check can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Failure {
    /// An index outside its array.
    Index,
    /// A negative number of elements.
    Count,
    /// Rows of an array that differ in size.
    Rows,
    /// An array whose length is not what its type says.
    Size,
    /// Two operands of different shape.
    Shape,
    /// An integer divided by zero.
    DivisionByZero,
    /// A negative exponent of an integer.
    NegativeExponent,
    /// `sign` of zero or of no number.
    SignOfZero,
    /// A derivative of a higher order than was compiled, which a function defined through its own derivative can come to.
    Order,
}

impl Failure {
    pub const ALL: [Failure; 9] = [
        Failure::Index,
        Failure::Count,
        Failure::Rows,
        Failure::Size,
        Failure::Shape,
        Failure::DivisionByZero,
        Failure::NegativeExponent,
        Failure::SignOfZero,
        Failure::Order,
    ];

    /// The word for it in flow text.
    pub fn key(self) -> &'static str {
        match self {
            Failure::Index => "index",
            Failure::Count => "count",
            Failure::Rows => "rows",
            Failure::Size => "size",
            Failure::Shape => "shape",
            Failure::DivisionByZero => "division_by_zero",
            Failure::NegativeExponent => "negative_exponent",
            Failure::SignOfZero => "sign_of_zero",
            Failure::Order => "order",
        }
    }
}

/// What takes the place of a function's derivative: custom rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Rule {
    /// Takes what the function takes, then the adjoints of its results that can have any; gives those of its parameters.
    pub reverse: Option<FunctionId>,
    /// Takes what the function takes, then the tangents of its parameters that can have any; gives those of its results.
    pub forward: Option<FunctionId>,
}

#[derive(Clone, Debug)]
pub struct Function {
    pub name: Name,
    /// Numbers, arrays, or accumulators, which the function adds to.
    pub params: Vec<Var>,
    pub results: Vec<Type>,
    pub body: Block,
    pub rule: Option<Rule>,
}

/// Functions that call each other, and the shapes of the cells that they use.
#[derive(Clone, Debug, Default)]
pub struct Module {
    pub functions: Vec<Function>,
    pub shapes: Vec<Shape>,
    /// How often functions that are derivatives have been differentiated; while the module is being made.
    pub orders: FxHashMap<FunctionId, usize>,
    /// What the functions that add boxes have become: see `holes`.
    pub loops_of_merges: FxHashSet<FunctionId>,
    pub lengths: KnownLengths,
}

/// The lengths of arrays that are known before the program runs, and not empty: data, which is always the same.
pub type KnownLengths = FxHashMap<Var, Vec<usize>>;

impl Block {
    /// A body that is not there yet. It may fail, for all that is known.
    pub fn unfinished() -> Block {
        let op = Op::Check { cond: Atom::Bool(false), failure: Failure::Order };
        Block { stmts: vec![Stmt { binds: Vec::new(), op, span: Span::default() }], results: Vec::new() }
    }
}

impl Function {
    /// Whether the body is not there yet.
    pub fn is_unfinished(&self) -> bool {
        let placeholder =
            |stmt: &Stmt| matches!(stmt.op, Op::Check { cond: Atom::Bool(false), failure: Failure::Order });
        self.body.results.is_empty() && matches!(&self.body.stmts[..], [only] if placeholder(only))
    }
}

impl Module {
    pub fn function(&self, id: FunctionId) -> &Function {
        match self.functions.get(id.0) {
            Some(function) => function,
            None => gradus_source::bug!("no flow function {}", id.0),
        }
    }
}
