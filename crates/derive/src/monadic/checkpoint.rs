//! `checkpoint f x` in the monadic mode: the bindings of the call are thrown away, and made again when the sweep comes by.
//!
//! On the way forward the translated function runs with a list of bindings of its own, which nobody keeps; its result gets new identifiers, and one
//! binding stands for the call. On the way back that binding runs the function again, from the same identifier on, and sweeps
//! what it records. The identifiers from there on are free by then: the sweep has passed, and emptied, all later entries of the map. So what is
//! kept is proportional to what is outside of checkpoints, plus the largest of them.

use super::{delta_let, Monadic, MODES};
use crate::monadic::stateful::{with_state, Stateful};
use crate::wrappers::{call, COUNT, INIT_VARS, PRIMAL, SEED, UNFLATTEN};
use crate::write::{add_int, bind, build, ifold, lambda};
use crate::{delta_type, Linker};
use gradus_core::build::At;
use gradus_core::{Term, Type};

/// The pair of the result and the new state. The translated function and argument are atoms, and so is the state; `to` is the type of the result before
/// translation.
pub fn checkpoint(linker: &Linker, at: At, to: &Type, function: Term, argument: Term, state: Term) -> Term {
    let result = linker.image(&Monadic, to);
    let pair = with_state(&Monadic, result);
    bind(at, "first", &Type::Int, at.proj(state.clone(), 0), |first| {
        let run = || at.apps(function.clone(), [argument.clone(), Monadic.initial_state(at, first.clone())]);
        bind(at, "run", &pair, run(), |forward| {
            let contents = linker.contents(to);
            if contents.is_leaf() {
                return at.tuple([at.proj(forward, 0), state]);
            }
            if !contents.is_data() {
                // A function inside the result speaks of identifiers of the run, which therefore stay what they are.
                let again = lambda(at, "um", &delta_type::map_type(), |um| {
                    bind(at, "run", &pair, run(), |again| delta_type::sweep(at, at.proj(at.proj(again, 1), 1), um))
                });
                let next = at.proj(at.proj(forward.clone(), 1), 0);
                let state = delta_let(at, next, first.clone(), delta_type::rule(at, again), state);
                return at.tuple([at.proj(forward, 0), state]);
            }
            let value = call(at, PRIMAL, &MODES, to, [at.proj(forward, 0)]);
            bind(at, "y", to, value, |y| {
                bind(at, "count", &Type::Int, call(at, COUNT, &[], to, [y.clone()]), |count| {
                    let outputs = call(at, INIT_VARS, &MODES, to, [y.clone(), count.clone(), first.clone()]);
                    let outputs_type = Type::tuple([linker.image(&Monadic, to), Type::Int]);
                    bind(at, "outputs", &outputs_type, outputs, |outputs| {
                        let again = with_cotangents(at, to, y, first.clone(), count, |dy, um| {
                            bind(at, "run", &pair, run(), |again| {
                                bind(at, "s", &delta_type::state(), at.proj(again.clone(), 1), |s| {
                                    let um = delta_type::grow(at, um, at.proj(s.clone(), 0));
                                    let seeded = call(at, SEED, &MODES, to, [at.proj(again, 0), dy, um]);
                                    delta_type::sweep(at, at.proj(s, 1), seeded)
                                })
                            })
                        });
                        let next = at.proj(outputs.clone(), 1);
                        let state = delta_let(at, next, first.clone(), delta_type::rule(at, again), state);
                        at.tuple([at.proj(outputs, 0), state])
                    })
                })
            })
        })
    })
}

/// What a binding does that has several outputs, `count` identifiers from `first` on, with the value `y`: it takes their cotangents out of the map, if
/// there are any, and hands them on.
pub fn with_cotangents(
    at: At,
    ty: &Type,
    y: Term,
    first: Term,
    count: Term,
    body: impl FnOnce(Term, Term) -> Term,
) -> Term {
    let map = delta_type::map_type();
    lambda(at, "um", &map, |um| {
        let id = |j: Term| add_int(at, first.clone(), j);
        let used = ifold(at, &Type::Bool, count.clone(), at.bool(false), |j, so_far| {
            at.if_(so_far, at.bool(true), delta_type::is_present(at, id(j), um.clone()))
        });
        let cotangents = build(at, &Type::Real, count.clone(), |j| delta_type::lookup_or_zero(at, id(j), um.clone()));
        let dy = call(at, UNFLATTEN, &[], ty, [y, cotangents]);
        let taken = bind(at, "dy", ty, dy, |dy| {
            let emptied = ifold(at, &map, count, um.clone(), |j, um| delta_type::delete(at, id(j), um));
            bind(at, "um", &map, emptied, |um| body(dy, um))
        });
        at.if_(used, taken, um)
    })
}
