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
//! A function with a custom derivative is one more operation: `rule`.
//!
//! Nested `rd`: A evaluates an inner one symbolically as part of the outer trace. Here the three steps are programs of the language, so the
//! outer mode differentiates them like any other.

mod evaluate;
mod operations;
mod print;
mod rule;
mod term;

use crate::custom::CustomRule;
use crate::mode::{Capabilities, ModeRules};
use crate::monadic::stateful::{self, stateful_rules, Recorded, Run, Stateful};
use crate::vector::array;
use crate::wrappers::{call, FLATTEN, SEED, UNFLATTEN};
use crate::write::{bind, build, lambda, nil};
use crate::{Linker, Made};
use gradus_core::build::At;
use gradus_core::{Mode, Prim, Term, Type, TypeDecl};
use operations::Operation;

pub use print::{operation_name, print_lines, print_value, TraceLine, TraceValue};

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
                Recorded::Whole { primal } => term::whole(at, primal.clone()),
                Recorded::Constant { primal, .. } => term::constant(at, primal.clone()),
            })
            .collect();
        let line = term::line(at, at.int(Operation::Apply(prim).number()), &atoms);
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

    stateful_rules!();

    fn declarations(&self) -> Vec<TypeDecl> {
        term::declarations()
    }

    fn constant(&self, at: At, x: Term) -> Term {
        bind(at, "x", &Type::Real, x, |x| at.tuple([x.clone(), term::constant(at, x)]))
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

    fn custom(&self, linker: &Linker, rule: &CustomRule) -> Made<Term> {
        rule::custom(linker, rule)
    }

    fn pullback(&self, linker: &Linker, from: &Type, to: &Type) -> Made<Term> {
        let at = At::default();
        Ok(stateful::pullback(self, linker, from, to, |run, dt| {
            let (x, count) = (run.x.clone(), run.count.clone());
            bind(at, "sweep", &term::sweep_type(), differentiated(at, to, run, dt), |sweep| {
                let inputs = call(at, FLATTEN, &[], from, [x.clone()]);
                let values = evaluate::call(at, evaluate::EVALUATE, [at.proj(sweep.clone(), 1), count.clone(), inputs]);
                bind(at, "values", &array(), values, |values| {
                    let partials = build(at, &Type::Real, count, |i| {
                        term::lookup(at, at.proj(sweep, 0), i, at.real(0.0), |atom| term::real_of(at, atom, values))
                    });
                    call(at, UNFLATTEN, &[], from, [x, partials])
                })
            })
        }))
    }
}

/// Step 2 on the trace of a run: the cotangents of the slots, and the trace that computes them.
fn differentiated(at: At, to: &Type, run: Run, dt: Term) -> Term {
    let last = at.prim(Prim::SubInt, [at.proj(run.state.clone(), 0), at.int(1)]);
    let map = term::empty_map(at, at.proj(run.state.clone(), 0));
    let seeded = call(at, SEED, &MODES, to, [run.t, dt, at.tuple([map, run.state.clone()])]);
    bind(at, "sweep", &term::sweep_type(), seeded, |sweep| {
        evaluate::call(at, evaluate::DIFFERENTIATE, [at.proj(run.state, 1), last, sweep])
    })
}

/// The type of [`trace_program`] without its first argument.
pub fn program_type(linker: &Linker, from: &Type, to: &Type) -> Type {
    let result = Type::tuple([linker.image(&Trace, to), term::state_type(), term::sweep_type()]);
    Type::funs([from.clone(), to.clone()], result)
}

/// `fun f x dt -> (t, trace, differentiated trace)`: what steps 1 and 2 leave of one run.
pub fn trace_program(linker: &Linker, from: &Type, to: &Type) -> Term {
    let at = At::default();
    stateful::run(&Trace, linker, from, to, |run| {
        lambda(at, "dt", to, |dt| {
            let (t, state) = (run.t.clone(), run.state.clone());
            at.tuple([t, state, differentiated(at, to, run, dt)])
        })
    })
}
