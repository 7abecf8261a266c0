//! Terms of the core calculus.
//!
//! Invariants, which `check` verifies after every pass:
//! - Every binder in a definition is unique ([`Var::id`]); a pass that copies a binder refreshes it.
//! - Functions take one argument; primitives, constructors and derivative forms are saturated.
//! - Types stand at binders and instantiations only; the type of any term follows from them.
//! - Evaluation is strict, left to right: in `App(f, x)`, `f` first.

use crate::{Mode, Prim, Scheme, Type, TypeName};
use gradus_source::Span;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

/// A name as the user wrote it. Cheap to clone.
pub type Symbol = Arc<str>;

static NEXT_ID: AtomicU32 = AtomicU32::new(0);

/// A number that no variable or type variable has yet. Numbers carry no meaning beyond identity,
/// and printers rename by order of appearance, so output does not depend on them.
pub fn fresh_id() -> u32 {
    NEXT_ID.fetch_add(1, Ordering::Relaxed)
}

/// A local variable. Two variables are the same if their numbers are.
#[derive(Clone)]
pub struct Var {
    pub id: u32,
    /// What to call it in output; not unique.
    pub name: Symbol,
}

impl Var {
    pub fn fresh(name: impl Into<Symbol>) -> Self {
        Var { id: fresh_id(), name: name.into() }
    }

    /// A new variable of the same name.
    pub fn refresh(&self) -> Self {
        Var::fresh(self.name.clone())
    }
}

impl PartialEq for Var {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}
impl Eq for Var {}
impl std::hash::Hash for Var {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.id.hash(state)
    }
}
impl fmt::Debug for Var {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.name, self.id)
    }
}

/// What a global reference refers to. A global is a key; [`crate::Definitions`] makes its definition
/// on demand and keeps it, so that every function is differentiated once, from its own text alone (K section 7.5),
/// and polymorphic recursion needs no fixed set of instances.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Global {
    /// A top-level definition `Module.name` of the program at type arguments.
    Source { name: Symbol, types: Arc<[Type]> },
    /// The image of a global under a mode.
    Derived { mode: Mode, of: Arc<Global> },
    /// A polytypic function that `derive` writes from a type: `zero`, `inner`, `primal`, ... (K Fig. 1 and 15).
    Wrapper { name: &'static str, modes: Vec<Mode>, types: Arc<[Type]> },
}

/// A term and the place in the source that it comes from. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Term {
    pub kind: Arc<TermKind>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum TermKind {
    /// A local variable; type arguments if it is bound by a polymorphic `let` (usually none).
    Var(Var, Arc<[Type]>),
    Global(Global),
    Literal(Literal),
    Lambda(Arc<Lambda>),
    App(Term, Term),
    /// `let x : scheme = bound in body`. Only syntactic values are bound polymorphically.
    Let {
        var: Var,
        scheme: Scheme,
        bound: Term,
        body: Term,
    },
    /// `let rec ... and ... in body`. Every right-hand side is a [`TermKind::Lambda`].
    LetRec {
        bindings: Vec<(Var, Scheme, Term)>,
        body: Term,
    },
    /// A saturated primitive; `types` instantiate the variables of its type scheme in the primitive table.
    Prim {
        prim: Prim,
        types: Arc<[Type]>,
        args: Vec<Term>,
        site: Site,
    },
    /// Two or more components.
    Tuple(Vec<Term>),
    /// Component of a tuple, or argument of the only constructor of a type (as a record has), by position.
    Proj {
        index: usize,
        term: Term,
    },
    /// A saturated constructor, or a record (tag 0).
    Construct {
        name: TypeName,
        types: Arc<[Type]>,
        tag: usize,
        args: Vec<Term>,
    },
    /// Flat: one arm for each constructor that occurs, variables for its arguments; `default` covers the rest.
    Case {
        scrutinee: Term,
        arms: Vec<Arm>,
        default: Option<Term>,
    },
    If {
        condition: Term,
        then: Term,
        otherwise: Term,
    },
    /// `[| a; b |]` with the element type.
    ArrayLiteral {
        element: Type,
        items: Vec<Term>,
    },
    /// A derivative form, saturated. `types` are the input type, then the output type if the form has one
    /// (see [`DeriveOp`]). `derive` expands these; `native` differentiates on its own IR.
    Derive {
        op: DeriveOp,
        types: Arc<[Type]>,
        args: Vec<Term>,
    },
    /// The value of `term : ty` as a value of the translated type under `mode`, with zero derivatives. Only `derive`
    /// makes these, for functions that are not known where they are differentiated. The term
    /// has type D_u1(... D_un(ty)) for `under = [u1, .., un]`, and the result D_u1(... D_un(D_mode(ty))).
    Lift {
        under: Vec<Mode>,
        mode: Mode,
        ty: Type,
        term: Term,
    },
}

/// A function. Shared, because evaluators identify code by it.
#[derive(Clone, Debug)]
pub struct Lambda {
    pub param: Var,
    pub ty: Type,
    pub body: Term,
    /// The function of which this is the image under a mode: what [`TermKind::Lift`] needs to differentiate
    /// a function that has already been differentiated by an outer mode.
    pub origin: Option<(Mode, Arc<Lambda>)>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    Real(f64),
    Int(i64),
    Bool(bool),
    String(Arc<str>),
    Unit,
}

#[derive(Clone, Debug)]
pub struct Arm {
    pub tag: usize,
    /// One variable with its type for each argument of the constructor.
    pub vars: Vec<(Var, Type)>,
    pub body: Term,
}

/// What a primitive's application needs besides its position: whether it is run to take a derivative, in which case
/// evaluators look for kinks (see [`crate::prim::PrimInfo`]). `derive` marks the primitive itself; the comparisons inside its
/// partial derivatives stay unmarked, so that a kink is counted once.
///
/// And whether it checks what was handed to a derivative form, or belongs to the partial derivative of a primitive, so that an error
/// can speak of that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Site {
    pub differentiated: bool,
    pub checks: Option<Checked>,
    pub partial_of: Option<Prim>,
}

/// What is handed to a derivative form and must fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// `zero_like x <+> dx`: of the shape of the input
    Tangent,
    /// `zero_like y <+> dy`: of the shape of the result
    Cotangent,
    /// `build order ..`: of a Taylor series
    Order,
}

/// The derivative forms, with the types that a [`TermKind::Derive`] carries and its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeriveOp {
    /// `[a]`; `f : a -> real`, `x : a`; gives `a`
    Grad,
    /// `[a]`; `f`, `x`; gives `real * a`
    ValueAndGrad,
    /// `[a, b]`; `f : a -> b`, `x : a`, `dy : b`; gives `a`
    Vjp,
    /// `[a, b]`; `f`, `x`, `dx : a`; gives `b`
    Jvp,
    /// `[a, b]`; `f`, `x`; gives `b * (b -> a)`
    Pullback,
    /// `[a, b]`; `f`, `x`; gives `b * (a -> b)`
    Linearize,
    /// `[a, b]`; `f`, `x`; gives `real[][]`, a row for each real of the output
    Jacobian,
    /// `[a]`; `f : a -> real`, `x`; gives `real[][]`
    Hessian,
    /// `[a]`; `f : a -> real`, `x : a`, `v : a`; gives `a`
    Hvp,
    /// `[]`; `f : real -> real`, `x : real`; gives `real`
    Diff,
    /// `[]`; `order : int`, `f : real -> real`, `x : real`; gives `real[]` with order + 1 coefficients
    Taylor,
}

impl DeriveOp {
    /// How it is written.
    pub fn name(self) -> &'static str {
        match self {
            DeriveOp::Grad => "grad",
            DeriveOp::ValueAndGrad => "value_and_grad",
            DeriveOp::Vjp => "vjp",
            DeriveOp::Jvp => "jvp",
            DeriveOp::Pullback => "pullback",
            DeriveOp::Linearize => "linearize",
            DeriveOp::Jacobian => "jacobian",
            DeriveOp::Hessian => "hessian",
            DeriveOp::Hvp => "hvp",
            DeriveOp::Diff => "diff",
            DeriveOp::Taylor => "taylor",
        }
    }

    /// How many types a [`TermKind::Derive`] of this form carries.
    pub fn type_arity(self) -> usize {
        match self {
            DeriveOp::Diff | DeriveOp::Taylor => 0,
            DeriveOp::Grad | DeriveOp::ValueAndGrad | DeriveOp::Hessian | DeriveOp::Hvp => 1,
            DeriveOp::Vjp | DeriveOp::Jvp | DeriveOp::Pullback | DeriveOp::Linearize | DeriveOp::Jacobian => 2,
        }
    }

    /// The types of the arguments and of the result, at as many types as [`DeriveOp::type_arity`] says.
    pub fn signature(self, types: &[Type]) -> (Vec<Type>, Type) {
        let fun = |from: &Type, to: &Type| Type::fun(from.clone(), to.clone());
        let (real, matrix) = (Type::Real, Type::array(Type::array(Type::Real)));
        match (self, types) {
            (DeriveOp::Grad, [a]) => (vec![fun(a, &real), a.clone()], a.clone()),
            (DeriveOp::ValueAndGrad, [a]) => (vec![fun(a, &real), a.clone()], Type::tuple([real, a.clone()])),
            (DeriveOp::Vjp, [a, b]) => (vec![fun(a, b), a.clone(), b.clone()], a.clone()),
            (DeriveOp::Jvp, [a, b]) => (vec![fun(a, b), a.clone(), a.clone()], b.clone()),
            (DeriveOp::Pullback, [a, b]) => (vec![fun(a, b), a.clone()], Type::tuple([b.clone(), fun(b, a)])),
            (DeriveOp::Linearize, [a, b]) => (vec![fun(a, b), a.clone()], Type::tuple([b.clone(), fun(a, b)])),
            (DeriveOp::Jacobian, [a, b]) => (vec![fun(a, b), a.clone()], matrix),
            (DeriveOp::Hessian, [a]) => (vec![fun(a, &real), a.clone()], matrix),
            (DeriveOp::Hvp, [a]) => (vec![fun(a, &real), a.clone(), a.clone()], a.clone()),
            (DeriveOp::Diff, []) => (vec![fun(&real, &real), real.clone()], real),
            (DeriveOp::Taylor, []) => (vec![Type::Int, fun(&real, &real), real.clone()], Type::array(real)),
            (op, types) => gradus_source::bug!("{} at {} types", op.name(), types.len()),
        }
    }
}

/// A deep term is taken down with room on the stack, like every other walk over terms.
impl Drop for TermKind {
    fn drop(&mut self) {
        // Far from the end of the stack the parts may simply go after this; a literal (as used below) has none.
        let is_literal = matches!(self, TermKind::Literal(_));
        if is_literal || stacker::remaining_stack().is_none_or(|left| left > 64 * 1024) {
            return;
        }
        let unit = Term { kind: Arc::new(TermKind::Literal(Literal::Unit)), span: Span::default() };
        let mut parts = Vec::new();
        crate::traverse::for_each_child_mut(self, &mut |child| parts.push(std::mem::replace(child, unit.clone())));
        if !parts.is_empty() {
            crate::traverse::with_stack(|| drop(parts));
        }
    }
}

impl Term {
    /// A variable, or a part of one.
    pub fn is_path(&self) -> bool {
        let mut whole = self;
        while let TermKind::Proj { term, .. } = &*whole.kind {
            whole = term;
        }
        matches!(&*whole.kind, TermKind::Var(..))
    }

    pub fn new(kind: TermKind, span: Span) -> Self {
        Term { kind: Arc::new(kind), span }
    }
}
