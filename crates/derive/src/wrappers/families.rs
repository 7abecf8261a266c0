//! The polytypic functions: K Fig. 1 (scaling, sum, inner product, `primal`) and Fig. 15 (`delta`, `zip`, `initVars`, `initZeros`, `lookup`).

use super::flat;
use super::polytypic::{AtReal, Polytypic, ResultKind};
use crate::mode::{rules, ModeRules};
use crate::write::{add, add_int, bind, cons, get, mul};
use crate::{delta_type, Linker, Made};
use gradus_core::build::At;
use gradus_core::{Mode, Prim, Term, Type, Var};
use gradus_source::{bug, Span};
use std::sync::Arc;

/// K's `initZeros`: a value of D_u1(.. D_un(a)) as one of D_u1(.. D_un(D_m(a))), for modes `[u1, .., un, m]`.
pub const LIFT: &str = "lift";
/// K's `primal : D(a) -> a`
pub const PRIMAL: &str = "primal";
/// K's `delta : D(a) -> a`: what stands beside each real, where that is a real.
pub const DELTA: &str = "delta";
/// K's `zip : a -> a -> D(a)`
pub const ZIP: &str = "zip";
/// K's `initVars : a -> count -> id -> D(a) * id`: beside each real, the mode's seed for its number.
pub const INIT_VARS: &str = "init_vars";
/// K's `lookup : D(a) -> DeltaMap -> a`
pub const LOOKUP: &str = "lookup";
/// `seed : D(b) -> b -> accumulator -> accumulator`: starts the sweep with a cotangent.
pub const SEED: &str = "seed";
/// The steps behind [`super::COUNT`], [`super::FLATTEN`] and [`super::UNFLATTEN`].
pub const SCALE_BY: &str = "scale_by";
pub const INNER_FROM: &str = "inner_from";
pub const COUNT_FROM: &str = "count_from";
pub const COLLECT: &str = "collect";
pub const REPLACE: &str = "replace";

/// The function of a name, if there is one.
pub fn family(name: &str, modes: &[Mode]) -> Made<Option<Polytypic>> {
    let only = |modes: &[Mode]| -> Made<&'static dyn ModeRules> {
        match modes {
            [mode] => rules(*mode, Span::default()),
            _ => bug!("`{name}` under the modes {modes:?}"),
        }
    };
    Ok(Some(match name {
        "vector_add" => vector("vector_add", Prim::AddReal, Prim::VectorAdd),
        "vector_sub" => vector("vector_sub", Prim::SubReal, Prim::VectorSub),
        SCALE_BY => scale(),
        INNER_FROM => inner(),
        "zero_like" => zero_like(),
        LIFT => lift(modes)?,
        PRIMAL => primal(only(modes)?),
        DELTA => delta(modes),
        ZIP => zip(modes),
        INIT_VARS => init_vars(only(modes)?),
        LOOKUP => lookup(modes),
        SEED => seed(only(modes)?),
        COUNT_FROM => count(),
        COLLECT => collect(modes)?,
        REPLACE => replace(modes)?,
        _ => return Ok(None),
    }))
}

fn one(name: &'static str, modes: &[Mode], input: &[Mode], output: &[Mode], at_real: AtReal) -> Polytypic {
    Polytypic {
        name,
        modes: modes.to_vec(),
        inputs: vec![input.to_vec()],
        parameters: vec![],
        result: ResultKind::Structure(output.to_vec()),
        at_real,
        mismatch: unreachable_mismatch,
    }
}

/// For functions whose second structure is known to have the shape of the first: the wrappers see to it.
fn unreachable_mismatch(_: &Polytypic, _: At, _: &Type, structures: &[Term], acc: Option<Term>) -> Term {
    acc.unwrap_or_else(|| structures[0].clone())
}

/// K's `(+)` at a: the sum of corresponding reals; and the difference.
fn vector(name: &'static str, at_real: Prim, whole: Prim) -> Polytypic {
    Polytypic {
        inputs: vec![vec![], vec![]],
        // The primitive itself says how the two differ. It is cut off from differentiation, or its derivative would be
        // made from this text for ever.
        mismatch: match whole {
            Prim::VectorAdd => |_, at, ty, both, _| stopped(at, Prim::VectorAdd, ty, both),
            _ => |_, at, ty, both, _| stopped(at, Prim::VectorSub, ty, both),
        },
        ..one(name, &[], &[], &[], Box::new(move |_, at, both, _, _| Ok(at.prim(at_real, both.to_vec()))))
    }
}

fn stopped(at: At, whole: Prim, ty: &Type, both: &[Term]) -> Term {
    let whole = at.prim_at(whole, [ty.clone()], both.to_vec());
    at.prim_at(Prim::StopGradient, [ty.clone()], [whole])
}

/// K's `(x)` at a: every real scaled, `a -> real -> a`.
fn scale() -> Polytypic {
    Polytypic {
        parameters: vec![("factor", Type::Real)],
        ..one(SCALE_BY, &[], &[], &[], Box::new(|_, at, x, factor, _| Ok(mul(at, factor[0].clone(), x[0].clone()))))
    }
}

/// K's `(.)` at a: the inner product, added to an accumulator, `a -> a -> real -> real`.
fn inner() -> Polytypic {
    Polytypic {
        name: INNER_FROM,
        modes: vec![],
        inputs: vec![vec![], vec![]],
        parameters: vec![],
        result: ResultKind::Fold(Type::Real),
        at_real: Box::new(|_, at, both, _, acc| Ok(add(at, needed(acc), mul(at, both[0].clone(), both[1].clone())))),
        mismatch: |_, at, ty, both, _| {
            let whole = at.prim_at(Prim::Inner, [ty.clone()], both.to_vec());
            at.prim_at(Prim::StopGradient, [Type::Real], [whole])
        },
    }
}

fn zero_like() -> Polytypic {
    one("zero_like", &[], &[], &[], Box::new(|_, at, _, _, _| Ok(at.real(0.0))))
}

/// N appendix B, `z`: at a real, `(x, 0)`. The modes outside only translate this pair, which computes nothing.
fn lift(modes: &[Mode]) -> Made<Polytypic> {
    let [under @ .., inner] = modes else { bug!("`lift` without a mode") };
    let inner = rules(*inner, Span::default())?;
    let mut outer = Vec::new();
    for mode in under.iter().rev() {
        outer.push(rules(*mode, Span::default())?);
    }
    let at_real = Box::new(move |linker: &Linker, at: At, x: &[Term], _: &[Term], _: Option<Term>| {
        let var = Var::fresh("x");
        let mut pair = inner.constant(at, at.var(&var));
        let mut ty = Type::Real;
        for mode in &outer {
            let scope = Arc::new(std::iter::once((var.clone(), ty.clone())).collect());
            pair = mode.value(linker, &scope, &pair)?;
            ty = linker.image(*mode, &ty);
        }
        Ok(at.bind(&var, ty, x[0].clone(), pair))
    });
    Ok(one(LIFT, modes, under, modes, at_real))
}

fn primal(mode: &'static dyn ModeRules) -> Polytypic {
    let modes = [mode.mode()];
    one(PRIMAL, &modes, &modes, &[], Box::new(move |_, at, x, _, _| Ok(mode.primal(at, x[0].clone()))))
}

fn delta(modes: &[Mode]) -> Polytypic {
    one(DELTA, modes, modes, &[], Box::new(|_, at, x, _, _| Ok(at.proj(x[0].clone(), 1))))
}

fn zip(modes: &[Mode]) -> Polytypic {
    Polytypic {
        inputs: vec![vec![], vec![]],
        mismatch: |zip, at, ty, both, _| at.app(super::global(at, LIFT, &zip.modes, [ty.clone()]), both[0].clone()),
        ..one(ZIP, modes, &[], modes, Box::new(|_, at, both, _, _| Ok(at.tuple(both.to_vec()))))
    }
}

fn init_vars(mode: &'static dyn ModeRules) -> Polytypic {
    Polytypic {
        parameters: vec![("count", Type::Int)],
        result: ResultKind::Both(vec![mode.mode()], Type::Int),
        ..one(
            INIT_VARS,
            &[mode.mode()],
            &[],
            &[],
            Box::new(move |_, at, x, count, id| {
                numbered(at, id, |id| mode.variable(at, x[0].clone(), id, count[0].clone()))
            }),
        )
    }
}

fn lookup(modes: &[Mode]) -> Polytypic {
    Polytypic {
        parameters: vec![("map", delta_type::map_type())],
        ..one(
            LOOKUP,
            modes,
            modes,
            &[],
            Box::new(|_, at, x, map, _| Ok(delta_type::lookup_dual(at, x[0].clone(), map[0].clone()))),
        )
    }
}

fn seed(mode: &'static dyn ModeRules) -> Polytypic {
    Polytypic {
        name: SEED,
        modes: vec![mode.mode()],
        inputs: vec![vec![mode.mode()], vec![]],
        parameters: vec![],
        result: ResultKind::Fold(mode.accumulator()),
        at_real: Box::new(move |_, at, both, _, acc| Ok(mode.seed(at, both[0].clone(), both[1].clone(), needed(acc)))),
        mismatch: unreachable_mismatch,
    }
}

/// The number of reals, added to an accumulator.
fn count() -> Polytypic {
    Polytypic {
        result: ResultKind::Fold(Type::Int),
        ..one(COUNT_FROM, &[], &[], &[], Box::new(|_, at, _, _, acc| Ok(add_int(at, needed(acc), at.int(1)))))
    }
}

/// What stands for the reals, from the left, put before a list one by one: so the last comes first.
fn collect(modes: &[Mode]) -> Made<Polytypic> {
    let element = flat::element(modes)?;
    Ok(Polytypic {
        result: ResultKind::Fold(Type::list(element.clone())),
        ..one(
            COLLECT,
            modes,
            modes,
            &[],
            Box::new(move |_, at, x, _, acc| Ok(cons(at, &element, x[0].clone(), needed(acc)))),
        )
    })
}

/// The structure with its reals replaced by the elements of an array, from a position on: `a -> D(real)[] -> int -> D(a) * int`.
fn replace(modes: &[Mode]) -> Made<Polytypic> {
    let element = flat::element(modes)?;
    Ok(Polytypic {
        parameters: vec![("values", Type::array(element.clone()))],
        result: ResultKind::Both(modes.to_vec(), Type::Int),
        ..one(
            REPLACE,
            modes,
            &[],
            &[],
            Box::new(move |_, at, _, values, id| numbered(at, id, |id| get(at, &element, values[0].clone(), id))),
        )
    })
}

fn needed(acc: Option<Term>) -> Term {
    acc.unwrap_or_else(|| bug!("a fold without accumulator"))
}

/// `(item id, id + 1)`
fn numbered(at: At, id: Option<Term>, item: impl FnOnce(Term) -> Term) -> Made<Term> {
    Ok(bind(at, "id", &Type::Int, needed(id), |id| at.tuple([item(id.clone()), add_int(at, id, at.int(1))])))
}
