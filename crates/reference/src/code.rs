//! What the compiler produces and the machine runs.

use crate::value::Value;
use gradus_core::prim::IntError;
use gradus_core::{Checked, Lambda, Mode, Prim, Type, Var};
use gradus_source::Span;
use std::rc::Rc;
use std::sync::Arc;

/// The code of a function of one or more parameters, or of a term (no parameters).
///
/// Its frame on the stack holds the arguments, then the captured values, then the variables and intermediate
/// results in the order in which they come to be: a slot is a position counted from the first argument.
pub struct Code {
    /// For call traces.
    pub name: Rc<str>,
    pub params: usize,
    /// The captured variables. A member of a recursive group with captures has none here but `environment` set.
    pub captures: Box<[Var]>,
    /// Member of a recursive group: the group, and which one. If the group captures anything, the
    /// member's one capture is the tuple of all that the group captures.
    pub group: Option<(Rc<Group>, usize)>,
    /// The function's text: `fun x -> fun y -> ...` has two entries.
    pub chain: Box<[Arc<Lambda>]>,
    pub ops: Box<[Op]>,
    /// The place of each operation.
    pub spans: Box<[Span]>,
    pub constants: Box<[Value]>,
    /// For `Switch`: the target for each tag; the last one is for all others.
    pub switches: Box<[Box<[u32]>]>,
    /// For `Unpack`: which arguments of a constructor are wanted.
    pub masks: Box<[Box<[bool]>]>,
    pub lifts: Box<[LiftSite]>,
    /// For `Shape` operations: the type, needed to word an error.
    pub types: Box<[Type]>,
    /// The operations that check what was handed to a derivative form, by position.
    pub checked: Box<[(u32, Checked)]>,
}

impl Code {
    /// How many captured values a function value carries before its arguments.
    pub fn captured(&self) -> usize {
        match &self.group {
            Some((group, _)) => usize::from(!group.captures.is_empty()),
            None => self.captures.len(),
        }
    }
}

/// Functions that refer to each other.
pub struct Group {
    pub members: Vec<Member>,
    /// What they capture together.
    pub captures: Vec<Var>,
}

pub struct Member {
    pub var: Var,
    pub lambda: Arc<Lambda>,
    /// The number of its code.
    pub code: u32,
    pub arity: usize,
}

/// A `Lift` in the text.
#[derive(Clone)]
pub struct LiftSite {
    pub under: Arc<[Mode]>,
    pub mode: Mode,
    pub ty: Type,
}

/// How the elements of an array are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elements {
    Reals,
    Ints,
    Values,
}

impl Elements {
    pub fn of(ty: &Type) -> Self {
        match ty {
            Type::Real => Elements::Reals,
            Type::Int => Elements::Ints,
            Type::Var(_)
            | Type::Bool
            | Type::String
            | Type::Unit
            | Type::Tuple(_)
            | Type::Named(..)
            | Type::Fun(_)
            | Type::Array(_) => Elements::Values,
        }
    }
}

/// One operation. Operands come from the top of the stack, the last one on top; the result takes their place.
#[derive(Clone, Copy)]
pub enum Op {
    /// The start of a stretch of code: counts its steps.
    Steps(u32),
    /// The same in steps of the semantics, which are counted for the premises of the theorems only.
    SemanticSteps(u32),
    /// Before a `Switch`: what the constructor on top adds.
    ConstructorSteps,
    /// Before a loop: how far down the number of its turns lies, and what each of them adds.
    TurnSteps(u32, u32),
    Real(f64),
    Int(i64),
    Bool(bool),
    Unit,
    Constant(u32),
    /// A copy of the variable in a slot.
    Copy(u32),
    /// The variable in a slot, which is not used again.
    Move(u32),
    /// Forgets a variable that this branch does not use.
    Clear(u32),
    /// A component of the variable in a slot; `true`: which is not used again.
    Component(u32, u32, bool),
    /// A component of the value on top.
    Project(u32),
    Global(u32),
    /// A function from its code and so many captured values.
    Closure(u32, u32),
    /// A function and so many arguments.
    Call(u32),
    TailCall(u32),
    /// A member of a recursive group by its code, with its arguments on the stack above a free place; the slot
    /// of the group's environment, if it has one.
    CallMember(u32, Option<u32>),
    TailCallMember(u32, Option<u32>),
    Return,
    Pop,
    /// Removes so many values below the top.
    Slide(u32),
    Jump(u32),
    JumpIfFalse(u32),
    /// Looks at the tag of the value on top.
    Switch(u32),
    /// Replaces a constructor by its arguments: all of them, or those of a mask.
    UnpackAll,
    Unpack(u32),
    /// Tag and number of arguments.
    Node(u32, u32),
    ArrayLiteral(Elements, u32),
    Real1(fn(f64) -> f64),
    Real2(fn(f64, f64) -> f64),
    RealInt(fn(f64, i64) -> f64),
    IntReal(fn(i64, f64) -> f64),
    RealToInt(fn(f64) -> i64),
    IntToReal(fn(i64) -> f64),
    Int1(fn(i64) -> i64),
    Int2(fn(i64, i64) -> Result<i64, IntError>),
    /// Before a primitive on numbers: looks whether its operands are on a kink, or where the theorems say nothing, or outside the domain.
    CheckKink(Prim),
    CheckPremise(Prim),
    /// The second is the primitive whose partial derivative the first belongs to.
    CheckDomain(Prim, Option<Prim>),
    /// A comparison; `true`: deciding it at equality is a kink.
    Compare(Prim, bool),
    Not,
    Sign,
    StringAppend,
    StringLength,
    StringOfInt,
    StringOfReal,
    /// `a.(i)`; `true`: the array is on top of the index.
    Get(bool),
    /// `a.(i)` for an array in a slot; `true`: which is not used again.
    GetFrom(u32, bool),
    Length,
    Set,
    CheckSize,
    Build(Elements),
    Ifold,
    Iterate,
    /// A vector-space operation at a type (which is for messages only).
    Vector(Prim, u32),
    Lift(u32),
    /// A derivative form that the linker should have expanded.
    Unexpanded,
}
