//! A function with a custom derivative as an operation of trace terms.
//!
//! A's operations are given together with their reverse derivatives, `op_r`; a custom rule makes a function one of them. It has several real arguments
//! and several results, so its line is followed by `Rest` lines, one for each further result: every result has a slot of its own.

use super::term::*;
use super::{Trace, MODES};
use crate::custom::{self, CustomRule};
use crate::monadic::stateful;
use crate::vector::array;
use crate::wrappers::{call, COUNT, FLATTEN, INIT_VARS, UNFLATTEN};
use crate::write::{add_int, bind, build, compare_int, get, ifold, lambda, length};
use crate::{Linker, Made};
use gradus_core::build::At;
use gradus_core::{Global, Literal, Prim, Term, TermKind, Type};

/// D(f): computes the value and adds the line.
pub fn custom(linker: &Linker, rule: &CustomRule) -> Made<Term> {
    let at = At(rule.span);
    let images: Vec<Type> = rule.params.iter().map(|t| linker.image(&Trace, t)).collect();
    Ok(stateful::curried(&Trace, at, &images, Vec::new(), &mut |duals, state| {
        custom::with_primals(at, &Trace, rule, duals.to_vec(), |primals, duals| {
            let y = at.apps(at.global(rule.function.clone()), primals.to_vec());
            bind(at, "x", &rule.inputs(), custom::tuple(at, primals.to_vec()), |x| {
                bind(at, "y", &rule.result, y, |y| record(at, rule, x, y, duals, state))
            })
        })
    }))
}

fn record(at: At, rule: &CustomRule, x: Term, y: Term, duals: &[Term], state: Term) -> Term {
    let real = Type::tuple([Type::Real, atom_type()]);
    let flat = call(at, FLATTEN, &MODES, &rule.inputs(), [custom::tuple(at, duals.to_vec())]);
    bind(at, "duals", &Type::array(real.clone()), flat, |flat| {
        let size = length(at, &real, flat.clone());
        let atoms = build(at, &atom_type(), size, |i| at.proj(get(at, &real, flat, i), 1));
        bind(at, "count", &Type::Int, call(at, COUNT, &[], &rule.result, [y.clone()]), |count| {
            let first = at.proj(state.clone(), 0);
            let outputs = call(at, INIT_VARS, &MODES, &rule.result, [y.clone(), count.clone(), first]);
            let line =
                rule_line(at, name(at, rule), apply(at, rule, &x), adjoint(at, rule, x, y), count.clone(), atoms);
            at.tuple([at.proj(outputs, 0), append_several(at, state, line, count)])
        })
    })
}

/// How the function is called in a printed trace.
fn name(at: At, rule: &CustomRule) -> Term {
    let name = match &rule.function {
        Global::Source { name, .. } => name.split('#').next().unwrap_or_default(),
        Global::Derived { .. } | Global::Wrapper { .. } => "rule",
    };
    at.term(TermKind::Literal(Literal::String(name.into())))
}

/// op: from the reals of the arguments to those of the result
fn apply(at: At, rule: &CustomRule, x: &Term) -> Term {
    lambda(at, "xs", &array(), |xs| {
        let arguments = call(at, UNFLATTEN, &[], &rule.inputs(), [x.clone(), xs]);
        bind(at, "x", &rule.inputs(), arguments, |x| {
            let y = at.apps(at.global(rule.function.clone()), rule.parts(at, &x));
            call(at, FLATTEN, &[], &rule.result, [y])
        })
    })
}

/// op_r: from the reals of the arguments, followed by those of the cotangent of the result, to those of the cotangents of the arguments
fn adjoint(at: At, rule: &CustomRule, x: Term, y: Term) -> Term {
    let inputs = rule.inputs();
    lambda(at, "all", &array(), |all| {
        bind(at, "size", &Type::Int, call(at, COUNT, &[], &inputs, [x.clone()]), |size| {
            let outputs = at.prim(Prim::SubInt, [length(at, &Type::Real, all.clone()), size.clone()]);
            let cotangents =
                build(at, &Type::Real, outputs, |j| get(at, &Type::Real, all.clone(), add_int(at, size, j)));
            let dy = call(at, UNFLATTEN, &[], &rule.result, [y, cotangents]);
            // The arguments come first, and no more than these are read.
            let arguments = call(at, UNFLATTEN, &[], &inputs, [x, all]);
            bind(at, "x", &inputs, arguments, |x| {
                let mut lets = crate::write::Lets::default();
                let parts = rule.parts(at, &x).into_iter().zip(&rule.params);
                let parts: Vec<Term> = parts.map(|(part, ty)| lets.bind(at, "x", ty, part)).collect();
                let pulled =
                    bind(at, "dy", &rule.result, dy, |dy| call(at, FLATTEN, &[], &inputs, [rule.pull(at, &parts, dy)]));
                lets.wrap(at, pulled)
            })
        })
    })
}

/// W.R(op(D)) for a rule whose first result has the slot `id`: a line for op_r, if there is any cotangent, and then its results to the arguments.
pub fn differentiate(at: At, id: Term, line: RuleLine, sweep: Term) -> Term {
    let map = at.proj(sweep.clone(), 0);
    let slot_of = |j: Term| add_int(at, id.clone(), j);
    let used = ifold(at, &Type::Bool, line.count.clone(), at.bool(false), |j, so_far| {
        let present = lookup(at, map.clone(), slot_of(j), at.bool(false), |_| at.bool(true));
        at.if_(so_far, at.bool(true), present)
    });
    let through = bind(at, "size", &Type::Int, length(at, &atom_type(), line.atoms.clone()), |size| {
        let all = add_int(at, size.clone(), line.count.clone());
        let args = build(at, &atom_type(), all, |k| {
            let is_argument = compare_int(at, Prim::Less, k.clone(), size.clone());
            let j = at.prim(Prim::SubInt, [k.clone(), size.clone()]);
            let w = lookup(at, map.clone(), slot_of(j), constant(at, at.real(0.0)), |w| w);
            at.if_(is_argument, get(at, &atom_type(), line.atoms.clone(), k), w)
        });
        let suffix = at.term(TermKind::Literal(Literal::String("_r".into())));
        let name = at.prim(Prim::StringAppend, [line.name.clone(), suffix]);
        let adjoint = rule_line(at, name, line.adjoint.clone(), line.adjoint.clone(), size.clone(), args);
        bind(at, "next", &Type::Int, at.proj(at.proj(sweep.clone(), 1), 0), |next| {
            let state = append_several(at, at.proj(sweep.clone(), 1), adjoint, size.clone());
            let grown = at.tuple([at.proj(sweep.clone(), 0), state]);
            ifold(at, &sweep_type(), size, grown, |i, sweep| {
                let argument = get(at, &atom_type(), line.atoms.clone(), i.clone());
                match_slot(at, argument, sweep.clone(), |id| accumulate(at, sweep, id, slot(at, add_int(at, next, i))))
            })
        })
    });
    at.if_(used, through, sweep)
}
