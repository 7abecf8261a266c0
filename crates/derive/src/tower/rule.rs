//! A function with a custom derivative on towers.
//!
//! A rule speaks of first derivatives only, but it is itself a program: with y(t) = f(x(t)) we have y'(t) = tangent f (x(t)) (x'(t)), so that the rule,
//! translated to towers and applied to those of x and of x', one order lower, gives the tower of y', and from it that of y.

use super::{tower, Tower};
use crate::custom::{self, CustomRule};
use crate::vector::array;
use crate::wrappers::{call, COUNT, FLATTEN, UNFLATTEN};
use crate::write::{add_int, bind, build, compare_int, get, ifold, lambda, length, mul};
use crate::{Linker, Made};
use gradus_core::build::At;
use gradus_core::{Global, Mode, Prim, Symbol, Term, Type, Var};
use std::sync::Arc;

const MODES: [Mode; 1] = [Mode::Tower];

pub fn custom(linker: &Linker, rule: &CustomRule) -> Made<Term> {
    let at = At(rule.span);
    let push = Global::Derived { mode: Mode::Tower, of: Arc::new(tangent(linker, rule)?) };
    let (inputs, result) = (rule.inputs(), &rule.result);
    let towers = Type::array(tower());
    let y_var = Var::fresh("y");
    let constant = crate::wrappers::lift(linker, at, Mode::Tower, result, at.var(&y_var))?;
    let order_of = |x: Term| length(at, &Type::Real, at.proj(x, 1));
    Ok(custom::function(at, &Tower, linker, rule, |primals, duals| {
        let value = at.apps(at.global(rule.function.clone()), primals.to_vec());
        let flat = call(at, FLATTEN, &MODES, &inputs, [custom::tuple(at, duals.to_vec())]);
        let body = {
            let y = at.var(&y_var);
            bind(at, "xs", &towers, flat, |xs| {
                let count = length(at, &tower(), xs.clone());
                let order = ifold(at, &Type::Int, count, at.int(0), |i, so_far| {
                    bind(at, "n", &Type::Int, order_of(get(at, &tower(), xs.clone(), i)), |n| {
                        at.if_(compare_int(at, Prim::Less, so_far.clone(), n.clone()), n, so_far)
                    })
                });
                bind(at, "order", &Type::Int, order, |order| {
                    // One order less is known of y', and asked for: a rule may well call the function itself.
                    let below = at.prim(Prim::SubInt, [order.clone(), at.int(1)]);
                    let all = || custom::tuple(at, primals.to_vec());
                    let lower = towers_of(at, &inputs, all(), &xs, |x| cut(at, x, below));
                    let dx = towers_of(at, &inputs, all(), &xs, |x| slope(at, x));
                    let pushed = bind(at, "x", &linker.image(&Tower, &inputs), lower, |x| {
                        at.apps(at.global(push), rule.parts(at, &x).into_iter().chain([dx]))
                    });
                    let y_tan = call(at, FLATTEN, &MODES, result, [pushed]);
                    let integrated = bind(at, "y_tan", &towers, y_tan, |y_tan| {
                        let values = call(at, FLATTEN, &[], result, [y.clone()]);
                        bind(at, "values", &array(), values, |values| {
                            let outputs = call(at, COUNT, &[], result, [y.clone()]);
                            let outputs = build(at, &tower(), outputs, |j| {
                                bind(at, "dy", &tower(), get(at, &tower(), y_tan, j.clone()), |dy| {
                                    at.tuple([get(at, &Type::Real, values, j), integral(at, dy, order.clone())])
                                })
                            });
                            call(at, UNFLATTEN, &MODES, result, [y.clone(), outputs])
                        })
                    });
                    let is_constant = compare_int(at, Prim::Equal, order, at.int(0));
                    at.if_(is_constant, constant, integrated)
                })
            })
        };
        at.bind(&y_var, result.clone(), value, body)
    }))
}

/// The arguments again, with other towers at their reals.
fn towers_of(at: At, inputs: &Type, x: Term, towers: &Term, change: impl FnOnce(Term) -> Term) -> Term {
    let size = length(at, &tower(), towers.clone());
    let changed = build(at, &tower(), size, |i| bind(at, "x", &tower(), get(at, &tower(), towers.clone(), i), change));
    call(at, UNFLATTEN, &MODES, inputs, [x, changed])
}

/// The tower without what is above an order.
fn cut(at: At, x: Term, order: Term) -> Term {
    let higher = at.proj(x.clone(), 1);
    let known = length(at, &Type::Real, higher.clone());
    let size = at.if_(compare_int(at, Prim::Less, known.clone(), order.clone()), known, order);
    at.tuple([at.proj(x, 0), build(at, &Type::Real, size, |k| get(at, &Type::Real, higher, k))])
}

/// The tower of the derivative: the coefficient k of x' is (k + 1) times the coefficient k + 1 of x.
fn slope(at: At, x: Term) -> Term {
    let real = Type::Real;
    bind(at, "order", &Type::Int, length(at, &real, at.proj(x.clone(), 1)), |order| {
        let coefficient = |k: Term| get(at, &real, at.proj(x.clone(), 1), k);
        let higher = build(at, &real, at.prim(Prim::SubInt, [order.clone(), at.int(1)]), |k| {
            let next = at.prim(Prim::RealOfInt, [add_int(at, k.clone(), at.int(2))]);
            mul(at, next, coefficient(add_int(at, k, at.int(1))))
        });
        let is_constant = compare_int(at, Prim::Equal, order, at.int(0));
        let zero = at.tuple([at.real(0.0), crate::vector::empty(at)]);
        at.if_(is_constant, zero, at.tuple([coefficient(at.int(0)), higher]))
    })
}

/// The coefficients of order 1 to `order` of the function whose derivative has the tower `dy`: the coefficient k + 1 is the coefficient k of that, over
/// k + 1. What `dy` has beyond is not right, and not used.
fn integral(at: At, dy: Term, order: Term) -> Term {
    let real = Type::Real;
    build(at, &real, order, |k| {
        let known = length(at, &real, at.proj(dy.clone(), 1));
        let higher = get(at, &real, at.proj(dy.clone(), 1), at.prim(Prim::SubInt, [k.clone(), at.int(1)]));
        let higher = at.if_(compare_int(at, Prim::LessEqual, k.clone(), known), higher, at.real(0.0));
        let coefficient = at.if_(compare_int(at, Prim::Equal, k.clone(), at.int(0)), at.proj(dy, 0), higher);
        let divisor = at.prim(Prim::RealOfInt, [add_int(at, k, at.int(1))]);
        at.prim(Prim::DivReal, [coefficient, divisor])
    })
}

/// `fun x1 .. xn dx -> the tangent of f`, by whichever rule there is, as a definition of its own.
fn tangent(linker: &Linker, rule: &CustomRule) -> Made<Global> {
    let Global::Source { name, types } = &rule.function else {
        gradus_source::bug!("a function with a custom rule is no definition of the program")
    };
    let name: Symbol = format!("{name}#push").into();
    let global = Global::Source { name: name.clone(), types: types.clone() };
    if linker.hidden(&global).is_some() {
        return Ok(global);
    }
    let at = At(rule.span);
    let params: Vec<(Var, Type)> = rule.params.iter().map(|ty| (Var::fresh("x"), ty.clone())).collect();
    let xs: Vec<Term> = params.iter().map(|(var, _)| at.var(var)).collect();
    let text = at.lambdas(&params, lambda(at, "dx", &rule.inputs(), |dx| rule.push(at, &xs, dx)));
    let from: Vec<Type> = rule.params.iter().cloned().chain([rule.inputs()]).collect();
    linker.hide(name, types.clone(), Type::funs(from, rule.result.clone()), text)
}
