//! The record that declares a primitive.

use crate::build::At;
use crate::{Constraint, Prim, Scheme, Term, Type, TypeVar};

/// Everything there is to know about a primitive.
pub struct PrimInfo {
    pub prim: Prim,
    /// The Gradus name or operator. Overloaded operators have one record for each type.
    pub name: &'static str,
    pub fixity: Fixity,
    /// The type as a curried function; the variables stand in the order of a `Prim` node's `types`.
    pub scheme: Scheme,
    /// The same type, taken apart; it mentions the variables of `scheme`.
    pub params: Vec<Type>,
    pub result: Type,
    pub doc: &'static str,
    pub eval: Eval,
    /// One term per argument: the partial derivative at the given arguments, `None` for an argument that is not real.
    /// Exactly the primitives from numbers to a real have this. The arguments must be variables or literals, since
    /// they may be repeated. The comparisons inside decide which branch was taken; the kink itself is the primitive's own.
    pub partials: Option<Partials>,
    /// Where the primitive is defined; `None`: everywhere. See [`PrimInfo::outside_domain`].
    pub domain: Option<Condition>,
    /// Where the primitive is not differentiable, or a decision falls at equality; `None`: nowhere.
    pub kinks: Option<Condition>,
    /// Where the theorems of `proofs/` cover the primitive; `None`: inside its domain, away from its kinks.
    pub proved: Option<Condition>,
    /// Where central differences with steps up to 1e-3 are accurate; `None`: everywhere.
    pub finite_differences: Option<Condition>,
}

/// From the place and the arguments to a term for each argument.
pub type Partials = fn(At, &[Term]) -> Vec<Option<Term>>;

/// A set of arguments. Integers are given as reals.
#[derive(Clone, Copy)]
pub struct Condition {
    /// In the names of the parameters, `x` and `y`, such as `x >= 0`.
    pub text: &'static str,
    pub holds: fn(&[f64]) -> bool,
}

/// How an application is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fixity {
    /// `f x y`
    Function,
    /// `-x`
    Prefix,
    /// `x + y`
    Infix,
    /// `a.(i)`
    Index,
}

/// How a primitive is computed.
#[derive(Clone, Copy)]
pub enum Eval {
    Real(fn(f64) -> f64),
    RealReal(fn(f64, f64) -> f64),
    RealInt(fn(f64, i64) -> f64),
    IntReal(fn(i64, f64) -> f64),
    RealToInt(fn(f64) -> i64),
    IntToReal(fn(i64) -> f64),
    Int(fn(i64) -> i64),
    IntInt(fn(i64, i64) -> Result<i64, IntError>),
    /// On structured values, by the evaluator.
    Structural,
}

/// What an integer operation can stumble over, whatever the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntError {
    DivisionByZero,
    NegativeExponent,
}

impl PrimInfo {
    /// The parameter types at type arguments.
    pub fn params_at(&self, types: &[Type]) -> Vec<Type> {
        let map = self.scheme.bindings(types);
        self.params.iter().map(|t| t.substitute(&map)).collect()
    }

    /// The result type at type arguments.
    pub fn result_at(&self, types: &[Type]) -> Type {
        self.result.substitute(&self.scheme.bindings(types))
    }

    /// Whether the arguments lie outside the domain. NaN counts as inside, since it was made elsewhere.
    pub fn outside_domain(&self, args: &[f64]) -> bool {
        self.domain.is_some_and(|domain| !(domain.holds)(args)) && !args.iter().any(|x| x.is_nan())
    }

    /// Whether the arguments lie on a kink.
    pub fn at_kink(&self, args: &[f64]) -> bool {
        self.kinks.is_some_and(|kinks| (kinks.holds)(args))
    }

    /// Whether the theorems exclude some arguments.
    pub fn has_premise(&self) -> bool {
        self.proved.is_some() || self.domain.is_some() || self.kinks.is_some()
    }

    /// Whether the arguments lie where the theorems say nothing.
    pub fn outside_premise(&self, args: &[f64]) -> bool {
        let unproved = self.proved.is_some_and(|proved| !(proved.holds)(args));
        (unproved && !args.iter().any(|x| x.is_nan())) || self.outside_domain(args) || self.at_kink(args)
    }

    pub(super) fn new(
        prim: Prim,
        (name, fixity): (&'static str, Fixity),
        vars: Vec<(TypeVar, Constraint)>,
        params: Vec<Type>,
        result: Type,
        eval: Eval,
        doc: &'static str,
    ) -> Self {
        let scheme = Scheme { vars, ty: Type::funs(params.clone(), result.clone()) };
        PrimInfo {
            prim,
            name,
            fixity,
            scheme,
            params,
            result,
            doc,
            eval,
            partials: None,
            domain: None,
            kinks: None,
            proved: None,
            finite_differences: None,
        }
    }

    pub(super) fn partials(mut self, partials: Partials) -> Self {
        self.partials = Some(partials);
        self
    }

    pub(super) fn domain(mut self, text: &'static str, holds: fn(&[f64]) -> bool) -> Self {
        self.domain = Some(Condition { text, holds });
        self
    }

    pub(super) fn kinks(mut self, text: &'static str, holds: fn(&[f64]) -> bool) -> Self {
        self.kinks = Some(Condition { text, holds });
        self
    }

    pub(super) fn proved(mut self, text: &'static str, holds: fn(&[f64]) -> bool) -> Self {
        self.proved = Some(Condition { text, holds });
        self
    }

    pub(super) fn differences(mut self, text: &'static str, holds: fn(&[f64]) -> bool) -> Self {
        self.finite_differences = Some(Condition { text, holds });
        self
    }
}
