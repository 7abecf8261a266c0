//! Which primitives are operations on numbers, with their flow types and words. The facts come from the primitive table.

use super::{Scalar, Type};
use gradus_core::Prim;

fn scalar_of(ty: &gradus_core::Type) -> Option<Scalar> {
    match ty {
        gradus_core::Type::Real => Some(Scalar::Real),
        gradus_core::Type::Int => Some(Scalar::Int),
        gradus_core::Type::Bool => Some(Scalar::Bool),
        _ => None,
    }
}

/// Whether this compares two numbers.
pub fn is_comparison(prim: Prim) -> bool {
    matches!(prim, Prim::Equal | Prim::NotEqual | Prim::Less | Prim::LessEqual | Prim::Greater | Prim::GreaterEqual)
}

/// The comparison with its operands exchanged.
pub fn mirrored(prim: Prim) -> Option<Prim> {
    Some(match prim {
        Prim::Less => Prim::Greater,
        Prim::Greater => Prim::Less,
        Prim::LessEqual => Prim::GreaterEqual,
        Prim::GreaterEqual => Prim::LessEqual,
        Prim::Equal | Prim::NotEqual => prim,
        _ => return None,
    })
}

/// Whether it pays to compute a primitive again rather than to keep its value: not for elementary functions.
pub fn is_cheap(prim: Prim) -> bool {
    !matches!(
        prim.info().eval,
        gradus_core::prim::Eval::Real(_) if !matches!(prim, Prim::NegReal | Prim::Abs | Prim::Sqrt)
    ) && !matches!(prim, Prim::PowReal | Prim::Polygamma | Prim::Atan2)
}

/// The result type of a primitive on numbers of the given types; `None` if it is no such primitive or does not take these.
pub fn result(prim: Prim, args: &[Type]) -> Option<Type> {
    if args.iter().any(|t| t.is_array() || t.accumulator) {
        return None;
    }
    if is_comparison(prim) {
        return (args.len() == 2 && args[0] == args[1]).then_some(Type::BOOL);
    }
    let info = prim.info();
    let params: Option<Vec<Scalar>> = info.params.iter().map(scalar_of).collect();
    let fits = params?.iter().copied().eq(args.iter().map(|t| t.scalar));
    if !fits || !info.scheme.vars.is_empty() {
        return None;
    }
    Some(Type::array(scalar_of(&info.result)?, 0))
}

/// The operations that flow spells shorter than their enum name.
const WORDS: [(Prim, &str); 19] = [
    (Prim::AddReal, "add"),
    (Prim::SubReal, "sub"),
    (Prim::MulReal, "mul"),
    (Prim::DivReal, "div"),
    (Prim::NegReal, "neg"),
    (Prim::PowRealInt, "powi"),
    (Prim::PowReal, "pow"),
    (Prim::AddInt, "iadd"),
    (Prim::SubInt, "isub"),
    (Prim::MulInt, "imul"),
    (Prim::DivInt, "idiv"),
    (Prim::ModInt, "imod"),
    (Prim::NegInt, "ineg"),
    (Prim::Equal, "eq"),
    (Prim::NotEqual, "ne"),
    (Prim::Less, "lt"),
    (Prim::LessEqual, "le"),
    (Prim::Greater, "gt"),
    (Prim::GreaterEqual, "ge"),
];

/// The word for a primitive in flow text.
pub fn word(prim: Prim) -> String {
    match WORDS.iter().find(|(p, _)| *p == prim) {
        Some((_, word)) => (*word).to_string(),
        None => format!("{prim:?}").to_lowercase(),
    }
}

/// The primitive of a word; the inverse of [`word`].
pub fn prim(text: &str) -> Option<Prim> {
    match WORDS.iter().find(|(_, word)| *word == text) {
        Some((prim, _)) => Some(*prim),
        None => Prim::ALL.iter().copied().find(|p| word(*p) == text),
    }
}
