//! Monadic mode, the specification of reverse mode: a real becomes the pair of its value and the identifier of a Delta term, and every
//! computation hands on the list of bindings of such terms. K Fig. 9, 10, 11, 14 and 15, and section 10.2 for arrays; N Fig. 8.15 for recursive types.
//!
//! The monad is written out: `M a = DeltaState -> a * DeltaState`, and D(a -> b) = D(a) -> M D(b).
//! A gradient costs a constant times the function: each step of the function becomes a bounded number of steps
//! ([`translate`]), each arithmetic operation adds one binding of bounded size, and the sweep looks at each once.
//!
//! The translation is in `translate`, the wrapper of Fig. 11 and 15 here, the types and `eval` of Fig. 10 in `delta_type`.

pub mod stateful;
mod translate;

use crate::custom::{self, CustomRule};
use crate::dual::partials;
use crate::forms::with_variables;
use crate::mode::{Capabilities, ModeRules};
use crate::scope::Scope;
use crate::wrappers::{call, COUNT, INIT_VARS, LOOKUP, PRIMAL, SEED, UNFLATTEN};
use crate::write::{add_int, bind, build, cons, ifold, is_one, lambda, nil};
use crate::{delta_type, Linker, Made};
use gradus_core::build::At;
use gradus_core::{Lambda, Mode, Prim, Term, Type, TypeDecl};
use stateful::{with_state, Recorded, Stateful};
use std::sync::Arc;

pub struct Monadic;

const MODES: [Mode; 1] = [Mode::Monadic];

/// `deltaLet` of Fig. 10, for a known identifier: the state in which the next identifier is `next` and `id` is bound to `u`.
fn delta_let(at: At, next: Term, id: Term, u: Term, state: Term) -> Term {
    at.tuple([next, cons(at, &delta_type::binding(), at.tuple([id, u]), at.proj(state, 1))])
}

impl Stateful for Monadic {
    /// `DeltaState`
    fn state(&self) -> Type {
        delta_type::state()
    }

    fn initial_state(&self, at: At, next: Term) -> Term {
        at.tuple([next, nil(at, &delta_type::binding())])
    }

    /// K Fig. 14: u <- deltaLet (Add (Scale (d1 f) u1) (... (Scale (dn f) un)))
    fn record(&self, at: At, prim: Prim, args: &[Recorded], id: Term, state: Term) -> (Term, Term) {
        let primals: Vec<Term> = args.iter().map(|arg| arg.primal().clone()).collect();
        let mut summands = Vec::new();
        for (partial, arg) in partials(at, prim, &primals).into_iter().zip(args) {
            let Some(partial) = partial else { continue };
            // A constant is recorded too, as in the paper's Fig. 12: `eval` passes over `Zero` whatever it is scaled by.
            let u = match arg {
                Recorded::Active { beside, .. } => beside.clone(),
                Recorded::Constant { .. } => delta_type::zero(at),
            };
            summands.push(((!is_one(&partial)).then_some(partial), u));
        }
        let next = add_int(at, id.clone(), at.int(1));
        let u = delta_type::combine(at, summands);
        (delta_type::var(at, id.clone()), delta_let(at, next, id, u, state))
    }
}

impl ModeRules for Monadic {
    fn mode(&self) -> Mode {
        Mode::Monadic
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { vjp: true, jvp: false }
    }

    /// D(R) = R x Delta
    fn real(&self) -> Type {
        Type::tuple([Type::Real, delta_type::delta()])
    }

    /// D(A -> B) = D(A) -> M D(B)
    fn arrow(&self, from: Type, to: Type) -> Type {
        stateful::arrow(self, from, to)
    }

    fn declarations(&self) -> Vec<TypeDecl> {
        vec![delta_type::declaration()]
    }

    fn constant(&self, at: At, x: Term) -> Term {
        at.tuple([x, delta_type::zero(at)])
    }

    fn primal(&self, at: At, dual: Term) -> Term {
        at.proj(dual, 0)
    }

    fn lambda(&self, linker: &Linker, scope: &Scope, lambda: &Arc<Lambda>) -> Made<Arc<Lambda>> {
        stateful::lambda(self, linker, scope, lambda)
    }

    fn value(&self, linker: &Linker, scope: &Scope, term: &Term) -> Made<Term> {
        stateful::value(self, linker, scope, term)
    }

    fn partial_application(&self, at: At, function: Term, argument: Term) -> Term {
        stateful::partial_application(self, at, function, argument)
    }

    fn helper(&self, name: &str) -> Option<(Type, Term)> {
        delta_type::helper_text(name)
    }

    /// Fig. 15, `initVars`: `(x, Var id)`
    fn variable(&self, at: At, x: Term, index: Term, _count: Term) -> Term {
        at.tuple([x, delta_type::var(at, index)])
    }

    fn accumulator(&self) -> Type {
        delta_type::map_type()
    }

    fn seed(&self, at: At, dual: Term, cotangent: Term, map: Term) -> Term {
        delta_type::eval(at, cotangent, at.proj(dual, 1), map)
    }

    /// The wrapper of K Fig. 15 (and 11). We start the sweep with the cotangent instead of
    /// differentiating the inner product with it, so that one run serves many cotangents.
    fn pullback(&self, linker: &Linker, from: &Type, to: &Type) -> Made<Term> {
        let at = At::default();
        let function = linker.image(self, &Type::fun(from.clone(), to.clone()));
        let result = linker.image(self, to);
        Ok(lambda(at, "f", &function, |f| {
            lambda(at, "x", from, |x| {
                with_variables(at, self, linker, from, x, |s0, count| {
                    let run = at.apps(f, [s0.clone(), self.initial_state(at, count)]);
                    bind(at, "run", &with_state(self, result.clone()), run, |run| {
                        bind(at, "t", &result, at.proj(run.clone(), 0), |t| {
                            bind(at, "state", &delta_type::state(), at.proj(run, 1), |state| {
                                let value = call(at, PRIMAL, &MODES, to, [t.clone()]);
                                let back = lambda(at, "dt", to, |dt| {
                                    let start = delta_type::empty_map(at, at.proj(state.clone(), 0));
                                    let seeded = call(at, SEED, &MODES, to, [t, dt, start]);
                                    let map = delta_type::sweep(at, at.proj(state, 1), seeded);
                                    call(at, LOOKUP, &MODES, from, [s0, map])
                                });
                                at.tuple([value, back])
                            })
                        })
                    })
                })
            })
        }))
    }

    /// A binding that holds the rule; during the sweep it takes the cotangents of the outputs from the map, if there are any, and adds those of the inputs.
    fn custom(&self, linker: &Linker, rule: &CustomRule) -> Made<Term> {
        let at = At(rule.span);
        let images: Vec<Type> = rule.params.iter().map(|t| linker.image(self, t)).collect();
        Ok(stateful_function(at, &images, Vec::new(), &mut |duals, state| {
            custom::with_primals(at, self, rule, duals.to_vec(), |primals, duals| {
                self.apply_rule(at, linker, rule, primals, duals, state)
            })
        }))
    }
}

/// `fun x1 s -> ((fun x2 s -> .. body), s)`: a curried function of several translated parameters.
fn stateful_function(at: At, params: &[Type], before: Vec<Term>, body: &mut dyn FnMut(&[Term], Term) -> Term) -> Term {
    let Some((first, rest)) = params.split_first() else { gradus_source::bug!("a function without parameters") };
    lambda(at, "x", first, |x| {
        lambda(at, "s", &delta_type::state(), |state| {
            let so_far: Vec<Term> = before.into_iter().chain([x]).collect();
            if rest.is_empty() {
                body(&so_far, state)
            } else {
                at.tuple([stateful_function(at, rest, so_far, body), state])
            }
        })
    })
}

impl Monadic {
    fn apply_rule(
        &self,
        at: At,
        linker: &Linker,
        rule: &CustomRule,
        primals: &[Term],
        duals: &[Term],
        state: Term,
    ) -> Term {
        let (inputs, result) = (rule.inputs(), &rule.result);
        let y = at.apps(at.global(rule.function.clone()), primals.to_vec());
        let map = delta_type::map_type();
        bind(at, "y", result, y, |y| {
            bind(at, "first", &Type::Int, at.proj(state.clone(), 0), |first| {
                let count = call(at, COUNT, &[], result, [y.clone()]);
                bind(at, "count", &Type::Int, count, |count| {
                    let outputs = call(at, INIT_VARS, &MODES, result, [y.clone(), count.clone(), first.clone()]);
                    let outputs_type = Type::tuple([linker.image(self, result), Type::Int]);
                    bind(at, "outputs", &outputs_type, outputs, |outputs| {
                        let action = lambda(at, "um", &map, |um| {
                            let id = |j: Term| add_int(at, first.clone(), j);
                            let used = ifold(at, &Type::Bool, count.clone(), at.bool(false), |j, so_far| {
                                at.if_(so_far, at.bool(true), delta_type::is_present(at, id(j), um.clone()))
                            });
                            let cotangents = build(at, &Type::Real, count.clone(), |j| {
                                delta_type::lookup_or_zero(at, id(j), um.clone())
                            });
                            let dy = call(at, UNFLATTEN, &[], result, [y.clone(), cotangents]);
                            let pulled = bind(at, "dy", result, dy, |dy| {
                                bind(at, "dx", &inputs, rule.pull(at, primals, dy), |dx| {
                                    let duals = custom::tuple(at, duals.to_vec());
                                    call(at, SEED, &MODES, &inputs, [duals, dx, um.clone()])
                                })
                            });
                            at.if_(used, pulled, um)
                        });
                        let next = at.proj(outputs.clone(), 1);
                        let state = delta_let(at, next, first.clone(), delta_type::rule(at, action), state);
                        at.tuple([at.proj(outputs, 0), state])
                    })
                })
            })
        })
    }
}

/// `fun f x -> f (initVars x) (count x, [])`: what K Fig. 12 shows.
pub fn delta_program(linker: &Linker, from: &Type, to: &Type) -> Made<Term> {
    let at = At::default();
    let function = linker.image(&Monadic, &Type::fun(from.clone(), to.clone()));
    Ok(lambda(at, "f", &function, |f| {
        lambda(at, "x", from, |x| {
            with_variables(at, &Monadic, linker, from, x, |s0, count| {
                at.apps(f, [s0, Monadic.initial_state(at, count)])
            })
        })
    }))
}
