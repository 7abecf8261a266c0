//! Trace mode: a run of the program becomes a straight-line trace term, which is differentiated symbolically; the result is a trace term
//! again, and evaluating it gives the derivative. A Fig. 2 to 6.
//!
//! A evaluates `W.rd_V(x. N)` in three steps, and so does [`Trace::pullback`]:
//!
//! 1. *Symbolic evaluation* (Fig. 4 and 5) of N at V: control constructs, calls and data structures are gone, what is left is one `let`
//!    for each operation on reals. We run the image of the program, in which a real is the pair of its value, which
//!    decides the branches, and the atom that stands for it in the trace, and in which each operation adds a line
//!    ([`record`](Stateful::record)). Values and traces are threaded as in [`crate::monadic`], which shares its translation.
//! 2. *Symbolic differentiation* (Fig. 6), W.R_V(x. C), of the trace: [`evaluate::DIFFERENTIATE`].
//! 3. *Ordinary evaluation* (Fig. 2) of the differentiated trace: [`evaluate::EVALUATE`].
//!
//! Nested `rd`: A evaluates an inner one symbolically as part of the outer trace. Here the three steps are programs of the language, so the
//! outer mode differentiates them like any other.

mod evaluate;
mod operations;
mod print;
mod term;

use crate::custom::CustomRule;
use crate::forms::with_variables;
use crate::mode::{Capabilities, ModeRules};
use crate::monadic::stateful::{self, Recorded, Stateful};
use crate::scope::Scope;
use crate::vector::array;
use crate::wrappers::{call, FLATTEN, PRIMAL, SEED, UNFLATTEN};
use crate::write::{bind, build, lambda, nil};
use crate::{Linker, Made, Refusal};
use gradus_core::build::At;
use gradus_core::{Lambda, Mode, Prim, Term, Type, TypeDecl};
use operations::Operation;
use std::sync::Arc;

pub use term::state_type;

pub use print::{print_trace, TraceLine, TraceValue};

pub struct Trace;

const MODES: [Mode; 1] = [Mode::Trace];

impl Stateful for Trace {
    fn state(&self) -> Type {
        term::state_type()
    }

    fn initial_state(&self, at: At, next: Term) -> Term {
        at.tuple([next, nil(at, &term::line_type())])
    }

    /// A Fig. 4: `op(V)` is evaluated symbolically to itself, and Fig. 5 gives it a `let`.
    fn record(&self, at: At, prim: Prim, args: &[Recorded], id: Term, state: Term) -> (Term, Term) {
        let atoms: Vec<Term> = args
            .iter()
            .map(|arg| match arg {
                Recorded::Active { beside, .. } => beside.clone(),
                Recorded::Constant { primal, ty: Type::Int } => term::whole(at, primal.clone()),
                Recorded::Constant { primal, .. } => term::constant(at, primal.clone()),
            })
            .collect();
        let line = term::line(at, Operation::Apply(prim), &atoms);
        (term::slot(at, id.clone()), term::append(at, id, line, at.proj(state, 1)))
    }
}

impl ModeRules for Trace {
    fn mode(&self) -> Mode {
        Mode::Trace
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { vjp: true, jvp: false }
    }

    fn real(&self) -> Type {
        Type::tuple([Type::Real, term::atom_type()])
    }

    fn arrow(&self, from: Type, to: Type) -> Type {
        stateful::arrow(self, from, to)
    }

    fn declarations(&self) -> Vec<TypeDecl> {
        term::declarations()
    }

    fn constant(&self, at: At, x: Term) -> Term {
        bind(at, "x", &Type::Real, x, |x| at.tuple([x.clone(), term::constant(at, x)]))
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
        evaluate::helper(name)
    }

    /// The differentiation variable: x stays a variable of the trace, although its value is known.
    fn variable(&self, at: At, x: Term, index: Term, _count: Term) -> Term {
        at.tuple([x, term::slot(at, index)])
    }

    fn accumulator(&self) -> Type {
        term::sweep_type()
    }

    fn seed(&self, at: At, dual: Term, cotangent: Term, sweep: Term) -> Term {
        bind(at, "sweep", &term::sweep_type(), sweep, |sweep| {
            term::match_slot(at, at.proj(dual, 1), sweep.clone(), |id| {
                bind(at, "w", &term::atom_type(), term::constant(at, cotangent), |w| term::accumulate(at, sweep, id, w))
            })
        })
    }

    fn custom(&self, _linker: &Linker, rule: &CustomRule) -> Made<Term> {
        let construct = "a function with a custom derivative, whose trace would be of another function,";
        Err(Box::new(Refusal::Construct { mode: Mode::Trace, construct, span: rule.span }))
    }

    fn pullback(&self, linker: &Linker, from: &Type, to: &Type) -> Made<Term> {
        let at = At::default();
        let function = linker.image(self, &Type::fun(from.clone(), to.clone()));
        let result = linker.image(self, to);
        Ok(lambda(at, "f", &function, |f| {
            lambda(at, "x", from, |x| {
                with_variables(at, self, linker, from, x.clone(), |s0, count| {
                    let run = at.apps(f, [s0, self.initial_state(at, count.clone())]);
                    bind(at, "run", &stateful::with_state(self, result.clone()), run, |run| {
                        bind(at, "t", &result, at.proj(run.clone(), 0), |t| {
                            bind(at, "state", &term::state_type(), at.proj(run, 1), |state| {
                                let value = call(at, PRIMAL, &MODES, to, [t.clone()]);
                                let back = lambda(at, "dt", to, |dt| {
                                    let seeded = |sweep| call(at, SEED, &MODES, to, [t, dt, sweep]);
                                    differentiate(at, from, x, count, state, seeded)
                                });
                                at.tuple([value, back])
                            })
                        })
                    })
                })
            })
        }))
    }
}

/// Steps 2 and 3 on the trace of a run: the cotangent of the input.
fn differentiate(at: At, from: &Type, x: Term, count: Term, state: Term, seeded: impl FnOnce(Term) -> Term) -> Term {
    let last = at.prim(Prim::SubInt, [at.proj(state.clone(), 0), at.int(1)]);
    let map = term::empty_map(at, at.proj(state.clone(), 0));
    bind(at, "sweep", &term::sweep_type(), seeded(at.tuple([map, state.clone()])), |sweep| {
        let swept = evaluate::call(at, evaluate::DIFFERENTIATE, [at.proj(state, 1), last, sweep]);
        bind(at, "sweep", &term::sweep_type(), swept, |sweep| {
            let inputs = call(at, FLATTEN, &[], from, [x.clone()]);
            let values = evaluate::call(at, evaluate::EVALUATE, [at.proj(sweep.clone(), 1), count.clone(), inputs]);
            bind(at, "values", &array(), values, |values| {
                let partials = build(at, &Type::Real, count, |i| {
                    term::lookup(at, at.proj(sweep, 0), i, at.real(0.0), |atom| term::real_of(at, atom, values))
                });
                call(at, UNFLATTEN, &[], from, [x, partials])
            })
        })
    })
}

/// `fun f x -> f (variables x) (count x, [])`: the result and the trace of one run.
pub fn trace_program(linker: &Linker, from: &Type, to: &Type) -> Made<Term> {
    let at = At::default();
    let function = linker.image(&Trace, &Type::fun(from.clone(), to.clone()));
    Ok(lambda(at, "f", &function, |f| {
        lambda(at, "x", from, |x| {
            with_variables(at, &Trace, linker, from, x, |s0, count| at.apps(f, [s0, Trace.initial_state(at, count)]))
        })
    }))
}
