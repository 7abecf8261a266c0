//! What differentiation does with each primitive: the one place that decides it, for all modes.

use gradus_core::{Prim, Type};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// From numbers to a real: the chain rule with the partial derivatives of the primitive table.
    Smooth,
    /// Looks only at primal values (N Fig. 4.9: `D(sign r) = sign (fst D(r))`); the result has no reals inside.
    Primal,
    /// The same primitive at translated types (C Fig. 10; K section 10.2); takes no function.
    Structural,
    /// Calls a function.
    Build,
    Ifold,
    Iterate,
    /// A family of functions indexed by a data type: its text at that type is differentiated.
    Polytypic(&'static str),
    StopGradient,
    Checkpoint,
}

impl Treatment {
    /// Whether the primal value comes from the primal values of the arguments alone. The vector-space operations walk over their arguments anyway.
    pub fn is_arithmetic(self) -> bool {
        match self {
            Treatment::Smooth | Treatment::Primal | Treatment::Polytypic(_) => true,
            Treatment::Structural
            | Treatment::Build
            | Treatment::Ifold
            | Treatment::Iterate
            | Treatment::StopGradient
            | Treatment::Checkpoint => false,
        }
    }
}

pub fn treatment(prim: Prim) -> Treatment {
    use Treatment::*;
    match prim {
        Prim::AddReal | Prim::SubReal | Prim::MulReal | Prim::DivReal | Prim::NegReal => Smooth,
        Prim::PowRealInt | Prim::PowReal | Prim::Exp | Prim::Log | Prim::Sqrt => Smooth,
        Prim::Sin | Prim::Cos | Prim::Tan | Prim::Asin | Prim::Acos | Prim::Atan | Prim::Atan2 => Smooth,
        Prim::Sinh | Prim::Cosh | Prim::Tanh | Prim::Log1p | Prim::Expm1 => Smooth,
        Prim::Erf | Prim::Lgamma | Prim::Polygamma | Prim::Abs | Prim::Maximum | Prim::Minimum => Smooth,
        Prim::RealOfInt => Smooth,
        Prim::Sign | Prim::Floor | Prim::Round | Prim::Truncate => Primal,
        Prim::AddInt | Prim::SubInt | Prim::MulInt | Prim::DivInt | Prim::ModInt | Prim::NegInt | Prim::PowInt => {
            Primal
        }
        Prim::Equal | Prim::NotEqual | Prim::Less | Prim::LessEqual | Prim::Greater | Prim::GreaterEqual => Primal,
        Prim::Not | Prim::StringAppend | Prim::StringLength | Prim::StringOfInt | Prim::StringOfReal => Primal,
        Prim::Get | Prim::Length | Prim::Set | Prim::CheckSize => Structural,
        Prim::Build => Build,
        Prim::Ifold => Ifold,
        Prim::Iterate => Iterate,
        Prim::VectorAdd => Polytypic("vector_add"),
        Prim::VectorSub => Polytypic("vector_sub"),
        Prim::Scale => Polytypic("scale"),
        Prim::Inner => Polytypic("inner"),
        Prim::ZeroLike => Polytypic("zero_like"),
        Prim::StopGradient => StopGradient,
        Prim::Checkpoint => Checkpoint,
    }
}

/// The operations of vector spaces that are arithmetic where the space is that of the reals.
pub fn on_reals(prim: Prim, types: &[Type]) -> Prim {
    match (prim, types) {
        (Prim::VectorAdd, [Type::Real]) => Prim::AddReal,
        (Prim::VectorSub, [Type::Real]) => Prim::SubReal,
        _ => prim,
    }
}
