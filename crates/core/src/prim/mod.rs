//! The primitive operations. A primitive is declared once, in a table row of [`scalars`] or [`structures`]: name, type,
//! documentation, evaluation, partial derivatives as core terms, domain, kinks, where finite differences can be
//! trusted. Nothing else matches on names.

mod documentation;
mod info;
pub mod math;
mod scalars;
mod structures;

pub use documentation::documentation;
pub use info::{Condition, Eval, Fixity, IntError, Partials, PrimInfo};

use std::sync::LazyLock;

/// Declares the enum together with the list of its members.
macro_rules! prims {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The keys of the primitive table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Prim {
            $($(#[$doc])* $name,)*
        }

        impl Prim {
            /// Every primitive, in the order of declaration.
            pub const ALL: &'static [Prim] = &[$(Prim::$name),*];
        }
    };
}

prims! {
    // Reals.
    AddReal,
    SubReal,
    MulReal,
    DivReal,
    NegReal,
    /// `x ^ k` with an integer exponent
    PowRealInt,
    /// `x ** y`
    PowReal,
    Exp,
    Log,
    Sqrt,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    /// `atan2 y x`
    Atan2,
    Sinh,
    Cosh,
    Tanh,
    Log1p,
    Expm1,
    Erf,
    Lgamma,
    /// `polygamma k x`; `polygamma 0` is digamma
    Polygamma,
    Abs,
    /// `maximum x y`, `minimum x y`
    Maximum,
    Minimum,
    /// `sign : real -> (unit, unit) either`: `Inl ()` below zero, `Inr ()` above, undefined at zero
    Sign,
    // Conversions.
    RealOfInt,
    Floor,
    Round,
    Truncate,
    // Integers (64 bits, wrapping).
    AddInt,
    SubInt,
    MulInt,
    DivInt,
    ModInt,
    NegInt,
    /// `x ^ k` on integers
    PowInt,
    // Comparison, structural on data types: one type argument.
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Not,
    // Strings.
    StringAppend,
    StringLength,
    StringOfInt,
    StringOfReal,
    // Arrays: element type as type argument (fold: the state type).
    /// `build n f : 'a[]` with `f : int -> 'a`
    Build,
    /// `a.(i)`
    Get,
    Length,
    /// `set a i x`: `a` with element `i` replaced; in place when nobody else holds `a`
    Set,
    /// `ifold n (fun i state -> state') init`
    Ifold,
    /// `iterate f x` with `f : 'a -> ('a, 'b) either`: until `Inr`. Type arguments `'a`, `'b`.
    Iterate,
    /// `check_size a n`: `a`, if it has `n` elements; otherwise a located error. What inference inserts where an unknown size meets a known one.
    CheckSize,
    // Vector-space operations at a data type (type argument).
    /// `a <+> b`
    VectorAdd,
    /// `a <-> b`
    VectorSub,
    /// `k *> a`
    Scale,
    /// `a <.> b`
    Inner,
    ZeroLike,
    // Derivatives.
    /// `stop_gradient x`; type argument: the data type of `x`
    StopGradient,
    /// `checkpoint f x`; type arguments `'a`, `'b`
    Checkpoint,
}

impl Prim {
    /// The record of this primitive.
    pub fn info(self) -> &'static PrimInfo {
        &table()[self as usize]
    }

    /// The primitive of a name. Where a name is overloaded (`+` on reals and on integers) the one on reals.
    pub fn from_name(name: &str) -> Option<Prim> {
        Prim::all_named(name).next()
    }

    /// All primitives of a name: two for overloaded operators.
    pub fn all_named(name: &str) -> impl Iterator<Item = Prim> + '_ {
        table().iter().filter(move |info| info.name == name).map(|info| info.prim)
    }
}

/// The table, made once; position = `prim as usize`.
fn table() -> &'static [PrimInfo] {
    static TABLE: LazyLock<Vec<PrimInfo>> = LazyLock::new(|| {
        let mut rows = scalars::rows();
        rows.extend(structures::rows());
        rows
    });
    &TABLE
}

#[cfg(test)]
mod tests;
