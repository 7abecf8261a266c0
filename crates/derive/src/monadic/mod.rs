//! Monadic mode, the specification of reverse mode: a real becomes the pair of its value and the identifier of a Delta term, and every
//! computation hands on the list of bindings of such terms. K Fig. 9, 10, 11, 14 and 15, and section 10.2 for arrays; N Fig. 8.15 for recursive types.
//!
//! The monad is written out: `M a = DeltaState -> a * DeltaState`, and D(a -> b) = D(a) -> M D(b).
//! A gradient costs a constant times the function: each step of the function becomes a bounded number of steps
//! ([`translate`]), each arithmetic operation adds one binding of bounded size, and the sweep looks at each once.
//!
//! `named` prepares the text, `translate` and `loops` have the translation, `image` the monad; `checkpoint` has the rule for checkpoints, the wrapper of Fig. 11 and 15 here, the types and `eval` of Fig. 10 in `delta_type`.

mod checkpoint;
mod image;
mod loops;
mod named;
pub mod stateful;
mod translate;

use crate::custom::{self, CustomRule};
use crate::dual::partials;
use crate::mode::{Capabilities, ModeRules};
use crate::wrappers::{call, COUNT, INIT_VARS, LOOKUP, SEED};
use crate::write::{add_int, bind, cons, is_one, nil};
use crate::{delta_type, Linker, Made};
use checkpoint::with_cotangents;
use gradus_core::build::At;
use gradus_core::{Mode, Prim, Term, Type, TypeDecl};
use stateful::{stateful_rules, Recorded, Stateful};

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
                Recorded::Active { beside, .. } | Recorded::Constant { beside, .. } => beside.clone(),
                Recorded::Whole { .. } => continue,
            };
            summands.push(((!is_one(&partial)).then_some(partial), u));
        }
        let next = add_int(at, id.clone(), at.int(1));
        let u = delta_type::combine(at, summands);
        (delta_type::var(at, id.clone()), delta_let(at, next, id, u, state))
    }

    fn checkpoint(&self, linker: &Linker, at: At, to: &Type, function: Term, argument: Term, state: Term) -> Term {
        checkpoint::checkpoint(linker, at, to, function, argument, state)
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

    stateful_rules!();

    fn declarations(&self) -> Vec<TypeDecl> {
        vec![delta_type::declaration()]
    }

    fn constant(&self, at: At, x: Term) -> Term {
        at.tuple([x, delta_type::zero(at)])
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

    fn pullback(&self, linker: &Linker, from: &Type, to: &Type) -> Made<Term> {
        let at = At::default();
        Ok(stateful::pullback(self, linker, from, to, |run, dt| {
            let start = delta_type::empty_map(at, at.proj(run.state.clone(), 0));
            let seeded = call(at, SEED, &MODES, to, [run.t, dt, start]);
            let map = delta_type::sweep(at, at.proj(run.state, 1), seeded);
            call(at, LOOKUP, &MODES, from, [run.s0, map])
        }))
    }

    /// A binding that holds the rule; during the sweep it takes the cotangents of the outputs from the map, if there are any, and adds those of the inputs.
    fn custom(&self, linker: &Linker, rule: &CustomRule) -> Made<Term> {
        let at = At(rule.span);
        let images: Vec<Type> = rule.params.iter().map(|t| linker.image(self, t)).collect();
        Ok(stateful::curried(self, at, &images, Vec::new(), &mut |duals, state| {
            custom::with_primals(at, self, rule, duals.to_vec(), |primals, duals| {
                self.apply_rule(at, linker, rule, primals, duals, state)
            })
        }))
    }
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
        bind(at, "y", result, y, |y| {
            bind(at, "first", &Type::Int, at.proj(state.clone(), 0), |first| {
                let count = call(at, COUNT, &[], result, [y.clone()]);
                bind(at, "count", &Type::Int, count, |count| {
                    let outputs = call(at, INIT_VARS, &MODES, result, [y.clone(), count.clone(), first.clone()]);
                    let outputs_type = Type::tuple([linker.image(self, result), Type::Int]);
                    bind(at, "outputs", &outputs_type, outputs, |outputs| {
                        let action = with_cotangents(at, result, y, first.clone(), count, |dy, um| {
                            bind(at, "dx", &inputs, rule.pull(at, primals, dy), |dx| {
                                let duals = custom::tuple(at, duals.to_vec());
                                call(at, SEED, &MODES, &inputs, [duals, dx, um])
                            })
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

/// What K Fig. 12 shows: the result of a run and the bindings it has made.
pub fn delta_program(linker: &Linker, from: &Type, to: &Type) -> Term {
    stateful::run(&Monadic, linker, from, to, |run| At::default().tuple([run.t, run.state]))
}
