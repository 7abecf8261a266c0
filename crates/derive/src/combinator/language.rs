//! The combinator language: C Fig. 16, and the linear part that the reverse macro adds to it, Fig. 19.
//!
//! A combinator is a function without variables, `comb A B`; a typing context is a nested product (C section 6.1). Where we differ from
//! the figures: products have any number of components, so that `cross` and `dupl` become pairing, `<a, b>`; there are sums, conditions,
//! arrays and loops; primitives come from the primitive table; and the tensor !A (x) B is a bag, whose sum takes constant time.

use crate::custom::CustomRule;
use gradus_core::{Prim, Term, Type, TypeName, Var};
use gradus_source::{bug, Span};
use std::sync::Arc;

/// Shared, because the macro uses the image of a combinator more than once, and lowering computes what is shared once.
pub type Comb = Arc<Node>;

pub struct Node {
    pub op: Op,
    /// The domain and the codomain.
    pub from: Type,
    pub to: Type,
    pub span: Span,
}

/// The letters say what the operation is from and to; G is a context.
pub enum Op {
    // C Fig. 16.
    /// A -> A
    Id,
    /// `f ;; g`
    Seq(Comb, Comb),
    /// `<f, g, ..>`: A -> B1 * .. * Bn; no component is `neg`, A -> unit
    Fork(Vec<Comb>),
    /// `exl`, `exr`: component of a product, or field of a record
    Proj(usize),
    /// (A -> B) * A -> B
    Ev,
    /// From A * B -> C to A -> (B -> C)
    Curry(Comb),
    /// A closed value: A -> B
    Const(Term),
    /// A1 * .. * An -> B
    Prim { prim: Prim, types: Arc<[Type]> },

    // What we add: sums, conditions, arrays, loops, custom rules.
    /// A1 * .. * An -> the declared type
    Construct { name: TypeName, types: Arc<[Type]>, tag: usize },
    /// G * S -> B from G * Ai -> B for each constructor
    Case(Vec<Comb>),
    /// G * bool -> B from G -> B twice
    If(Comb, Comb),
    /// G * int -> B[] from G * int -> B
    Build(Comb),
    /// G * (int * S) -> S from (G * int) * S -> S
    Ifold(Comb),
    /// A * .. * A -> A[], of so many
    ArrayLiteral(usize),
    /// A1 * .. * An -> B by a function with a custom derivative
    Rule(Arc<CustomRule>),
    /// G -> B by a term over the variables of the context G, run as it stands: its derivative is not asked for
    Plain { vars: Vec<Var>, term: Term },
    /// (A -> B) * A -> B, run again on the way back instead of kept
    CheckpointEv,

    // C Fig. 19, the linear part. Linear functions are functions that are known to preserve zero and sums.
    /// (A -o B) * A -> B
    LinearEv,
    /// From A * B -> C to A -> (B -o C)
    LinearCurry(Comb),
    /// The zero of B: A -> B
    Zero,
    /// A * A -> A
    Plus,
    /// `msingleton`: A * B -> !A (x) B
    Single,
    /// `mfold`: G * (!A (x) B) -> C from G * (A * B) -> C, the results added up
    Fold(Comb),
    /// The transposed derivative of a primitive on numbers: (A1 * .. * An) * real -> D2(A1) * .. * D2(An)
    Adjoint(Prim),
    /// int * (!int (x) B) -> B[]: the sums for each index
    Collect,
    /// (B * (C -o D * E))[] * (!int (x) C) -> D: the reverse of `build`
    PullBuild,
    /// (C -o (D * E) * C) list * C -> D * C: the reverse of `ifold`
    PullIfold,
    /// Between the cotangents of a recursive type and those of the arguments of one of its constructors, by number: D2(A1) * .. * D2(An) -> D2(S)
    Roll(usize),
    /// The way back, zero for another constructor: D2(S) -> D2(A1) * .. * D2(An)
    Unroll(usize),
    /// (A1 * .. * An) * D2(B) -> D2(A1) * .. * D2(An) by a custom derivative
    RuleAdjoint(Arc<CustomRule>),
}

/// None is unit, one is itself.
pub fn product(mut types: Vec<Type>) -> Type {
    match (types.len(), types.pop()) {
        (_, None) => Type::Unit,
        (1, Some(one)) => one,
        (_, Some(last)) => {
            types.push(last);
            Type::tuple(types)
        }
    }
}

pub fn pair(a: &Type, b: &Type) -> Type {
    Type::tuple([a.clone(), b.clone()])
}

pub fn component(ty: &Type, index: usize) -> Type {
    match ty {
        Type::Tuple(parts) if index < parts.len() => parts[index].clone(),
        _ => bug!("no component {index} in {ty:?}"),
    }
}

/// Writes combinators that come from one place in the source.
#[derive(Clone, Copy)]
pub struct Write(pub Span);

impl Write {
    pub fn node(self, op: Op, from: Type, to: Type) -> Comb {
        Arc::new(Node { op, from, to, span: self.0 })
    }

    pub fn id(self, ty: &Type) -> Comb {
        self.node(Op::Id, ty.clone(), ty.clone())
    }

    pub fn seq(self, f: Comb, g: Comb) -> Comb {
        match (&f.op, &g.op) {
            (Op::Id, _) => g,
            (_, Op::Id) => f,
            _ => {
                let (from, to) = (f.from.clone(), g.to.clone());
                self.node(Op::Seq(f, g), from, to)
            }
        }
    }

    pub fn fork(self, from: &Type, mut parts: Vec<Comb>) -> Comb {
        if parts.len() == 1 {
            return parts.remove(0);
        }
        let to = product(parts.iter().map(|c| c.to.clone()).collect());
        self.node(Op::Fork(parts), from.clone(), to)
    }

    /// Component of a product.
    pub fn proj(self, from: &Type, index: usize) -> Comb {
        let to = component(from, index);
        self.node(Op::Proj(index), from.clone(), to)
    }

    /// Component of a product of `count`, where one alone is itself.
    pub fn part(self, from: &Type, index: usize, count: usize) -> Comb {
        if count == 1 {
            return self.id(from);
        }
        self.proj(from, index)
    }

    /// Component of a component of ..: `exl ;; exr` is `path(from, &[0, 1])`.
    pub fn path(self, from: &Type, indices: &[usize]) -> Comb {
        indices.iter().fold(self.id(from), |so_far, index| {
            let next = self.proj(&so_far.to, *index);
            self.seq(so_far, next)
        })
    }

    pub fn zero(self, from: &Type, to: &Type) -> Comb {
        self.node(Op::Zero, from.clone(), to.clone())
    }

    pub fn constant(self, from: &Type, value: Term, to: &Type) -> Comb {
        self.node(Op::Const(value), from.clone(), to.clone())
    }

    pub fn prim(self, prim: Prim, types: Arc<[Type]>) -> Comb {
        let info = prim.info();
        let (from, to) = (product(info.params_at(&types)), info.result_at(&types));
        self.node(Op::Prim { prim, types }, from, to)
    }
}
