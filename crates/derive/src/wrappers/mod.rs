//! The polytypic wrappers (K Fig. 1 and 15), each written as core code from a type: what stands between a translated function and a user
//! who thinks in values, tangents and cotangents.

mod families;
mod flat;
mod polytypic;

use crate::activity::SMALL;
use crate::mode::{rules, ModeRules};
use crate::{forms, Linker, Made, Refusal};
use gradus_core::build::At;
use gradus_core::{Global, Mode, Term, Type, Var};
use gradus_source::Span;
use std::sync::Arc;

pub use families::{DELTA, INIT_VARS, LIFT, LOOKUP, PRIMAL, SEED, ZIP};
pub use flat::{transpose, unit_vector, COUNT, FLATTEN, ONE_HOT, UNFLATTEN};

/// The type of a wrapper, without making it.
pub fn type_of(linker: &Linker, name: &'static str, modes: &[Mode], types: &[Type]) -> Made<Type> {
    if let (Some(family), [ty]) = (families::family(name, modes)?, types) {
        return family.type_at(linker, ty);
    }
    if let Some(ty) = flat::type_of(linker, name, modes, types)? {
        return Ok(ty);
    }
    if let Some(ty) = forms::type_of(linker, name, modes, types)? {
        return Ok(ty);
    }
    match helper(linker, name, modes, types)? {
        Some((ty, _)) => Ok(ty),
        None => Err(unknown(name, modes, types)),
    }
}

/// The type and the text of a wrapper.
pub fn make(linker: &Linker, name: &'static str, modes: &[Mode], types: &[Type]) -> Made<(Type, Term)> {
    if let (Some(family), [ty]) = (families::family(name, modes)?, types) {
        return Ok((family.type_at(linker, ty)?, family.make(linker, ty)?));
    }
    if let Some(ty) = flat::type_of(linker, name, modes, types)? {
        return Ok((ty, flat::make(linker, name, modes, types)?));
    }
    if let Some(ty) = forms::type_of(linker, name, modes, types)? {
        return Ok((ty, forms::make(linker, name, modes, types)?));
    }
    helper(linker, name, modes, types)?.ok_or_else(|| unknown(name, modes, types))
}

fn helper(linker: &Linker, name: &str, modes: &[Mode], types: &[Type]) -> Made<Option<(Type, Term)>> {
    match (modes, types) {
        ([mode], []) => Ok(rules(*mode, Span::default())?.helper(name)),
        ([mode], [ty]) => rules(*mode, Span::default())?.helper_at(linker, name, ty),
        _ => Ok(None),
    }
}

fn unknown(name: &'static str, modes: &[Mode], types: &[Type]) -> Box<Refusal> {
    let global = Global::Wrapper { name, modes: modes.to_vec(), types: types.into() };
    Box::new(Refusal::UnknownGlobal { global: Box::new(global) })
}

pub fn global(at: At, name: &'static str, modes: &[Mode], types: impl Into<Arc<[Type]>>) -> Term {
    at.global(Global::Wrapper { name, modes: modes.to_vec(), types: types.into() })
}

/// A wrapper at a type, applied.
pub fn call(at: At, name: &'static str, modes: &[Mode], ty: &Type, args: impl IntoIterator<Item = Term>) -> Term {
    at.apps(global(at, name, modes, [ty.clone()]), args)
}

/// A value of data type with zero derivatives: K's `initZeros`, N's `z`.
pub fn lift(linker: &Linker, at: At, mode: Mode, ty: &Type, value: Term) -> Made<Term> {
    if linker.contents(ty).is_leaf() {
        return Ok(value);
    }
    if *ty == Type::Real {
        return Ok(rules(mode, at.0)?.constant(at, value));
    }
    match linker.weight(ty) {
        // A field of its own: the same as a real.
        Some(1) => return Ok(zeros(linker, at, rules(mode, at.0)?, ty, value)),
        Some(weight) if weight <= SMALL => {
            let var = Var::fresh("x");
            let zeros = zeros(linker, at, rules(mode, at.0)?, ty, at.var(&var));
            return Ok(at.bind(&var, ty.clone(), value, zeros));
        }
        _ => {}
    }
    Ok(at.app(global(at, LIFT, &[mode], [ty.clone()]), value))
}

/// Zero derivatives beside the reals of a product, which is a variable or a part of one: `zeros` of `proofs/Macro.v`.
fn zeros(linker: &Linker, at: At, mode: &dyn ModeRules, ty: &Type, value: Term) -> Term {
    let Some(parts) = linker.parts(ty) else {
        return if *ty == Type::Real { mode.constant(at, value) } else { value };
    };
    let part = |(i, ty)| zeros(linker, at, mode, ty, at.proj(value.clone(), i));
    let images: Vec<Term> = parts.iter().enumerate().map(part).collect();
    match ty {
        Type::Named(name, args) => {
            let types: Vec<Type> = args.iter().map(|ty| linker.image(mode, ty)).collect();
            at.construct(linker.image_name(mode.mode(), name), types, 0, images)
        }
        _ => at.tuple(images),
    }
}

/// The primal part of a value of data type: K's `primal`, N's `p`.
pub fn primal(linker: &Linker, at: At, mode: &dyn ModeRules, ty: &Type, dual: Term) -> Made<Term> {
    if linker.contents(ty).is_leaf() {
        return Ok(dual);
    }
    if *ty == Type::Real {
        return Ok(mode.primal(at, dual));
    }
    Ok(at.app(global(at, PRIMAL, &[mode.mode()], [ty.clone()]), dual))
}
