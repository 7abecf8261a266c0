//! The wrappers behind the derivative forms: from a translated function to values, tangents, cotangents and matrices.

use crate::mode::{rules, ModeRules};
use crate::wrappers::{call, global, transpose, COUNT, FLATTEN, INIT_VARS, ONE_HOT, PRIMAL, SEED};
use crate::write::{bind, build, compare_int, lambda};
use crate::{delta_type, Linker, Made};
use gradus_core::build::At;
use gradus_core::{Mode, Prim, Term, Type};
use gradus_source::{bug, Span};

/// `D(a -> b) -> a -> b * (b -> a)`, for one mode
pub const PULLBACK: &str = "pullback";
/// `D(a -> b) -> a -> a -> b * b`, for one mode
pub const PUSHFORWARD: &str = "pushforward";
/// `D(a -> b) -> a -> real[][]`: the Jacobian, by pullback, row by row
pub const JACOBIAN_ROWS: &str = "jacobian_rows";
/// The same by pushforward, column by column
pub const JACOBIAN_COLUMNS: &str = "jacobian_columns";
/// `D_u(a -> b) -> D_m(a -> b) -> a -> real[][]` for the modes `[u, m]`: by pushforward of u or by pullback of m, whichever takes fewer runs
pub const JACOBIAN: &str = "jacobian";
/// `D(real -> real) -> real[] -> real -> real[]`, for the mode `tower`: from the coefficients of x of order 1 and more
pub const TAYLOR: &str = "taylor";
/// `D(a -> b) -> a -> D(b) * DeltaState`: the result and the Delta program of one run (K Fig. 12). The reals of the input have the
/// identifiers from 0 on; the bindings follow, the latest first.
pub const DELTA_PROGRAM: &str = "delta_program";
/// `D(a -> b) -> a -> b -> D(b) * TraceState * (TraceMap * TraceState)`: the result and the trace term of one run (A Fig. 4 and 5), the latest line
/// first, and its symbolic derivative at a cotangent (A Fig. 6): the cotangent of each slot, and the trace with the lines that compute them.
pub const TRACE_PROGRAM: &str = "trace_program";

fn matrix() -> Type {
    Type::array(Type::array(Type::Real))
}

fn translated(linker: &Linker, mode: Mode, from: &Type, to: &Type) -> Made<Type> {
    Ok(linker.image(rules(mode, Span::default())?, &Type::fun(from.clone(), to.clone())))
}

pub fn type_of(linker: &Linker, name: &str, modes: &[Mode], types: &[Type]) -> Made<Option<Type>> {
    Ok(Some(match (name, modes, types) {
        (PULLBACK, [mode], [a, b]) => {
            let result = Type::tuple([b.clone(), Type::fun(b.clone(), a.clone())]);
            Type::funs([translated(linker, *mode, a, b)?, a.clone()], result)
        }
        (PUSHFORWARD, [mode], [a, b]) => {
            let result = Type::tuple([b.clone(), b.clone()]);
            Type::funs([translated(linker, *mode, a, b)?, a.clone(), a.clone()], result)
        }
        (JACOBIAN_ROWS | JACOBIAN_COLUMNS, [mode], [a, b]) => {
            Type::funs([translated(linker, *mode, a, b)?, a.clone()], matrix())
        }
        (JACOBIAN, [columns, rows], [a, b]) => {
            let functions = [translated(linker, *columns, a, b)?, translated(linker, *rows, a, b)?];
            Type::funs(functions.into_iter().chain([a.clone()]).collect::<Vec<_>>(), matrix())
        }
        (TAYLOR, [mode @ Mode::Tower], []) => {
            let function = translated(linker, *mode, &Type::Real, &Type::Real)?;
            Type::funs([function, Type::array(Type::Real), Type::Real], Type::array(Type::Real))
        }
        (TRACE_PROGRAM, [mode @ Mode::Trace], [a, b]) => {
            Type::fun(translated(linker, *mode, a, b)?, crate::trace::program_type(linker, a, b))
        }
        (DELTA_PROGRAM, [Mode::Monadic], [a, b]) => {
            let result = linker.image(rules(Mode::Monadic, Span::default())?, b);
            let result = Type::tuple([result, delta_type::state()]);
            Type::funs([translated(linker, Mode::Monadic, a, b)?, a.clone()], result)
        }
        _ => return Ok(None),
    }))
}

pub fn make(linker: &Linker, name: &str, modes: &[Mode], types: &[Type]) -> Made<Term> {
    match (name, modes, types) {
        (PULLBACK, [mode], [a, b]) => rules(*mode, Span::default())?.pullback(linker, a, b),
        (PUSHFORWARD, [mode], [a, b]) => rules(*mode, Span::default())?.pushforward(linker, a, b),
        (JACOBIAN_ROWS, [mode], [a, b]) => by_rows(linker, *mode, a, b),
        (JACOBIAN_COLUMNS, [mode], [a, b]) => by_columns(linker, *mode, a, b),
        (JACOBIAN, [columns, rows], [a, b]) => jacobian(linker, *columns, *rows, a, b),
        (TAYLOR, [Mode::Tower], []) => Ok(crate::tower::taylor(linker)),
        (DELTA_PROGRAM, [Mode::Monadic], [a, b]) => Ok(crate::monadic::delta_program(linker, a, b)),
        (TRACE_PROGRAM, [Mode::Trace], [a, b]) => Ok(crate::trace::trace_program(linker, a, b)),
        _ => bug!("the wrapper `{name}` of {modes:?} at {types:?}"),
    }
}

/// The reverse wrapper of K Fig. 6, 8 and 15 for the modes that keep no state:
/// `fun f x -> let s0 = initVars x in let t = f s0 in (primal t, fun dt -> finish (seed t dt start) x s0)`.
///
/// K differentiates the inner product of the output with its cotangent; we start the sweep with the cotangent, which adds up to the same and
/// lets one run serve many cotangents.
pub fn reverse_wrapper<M: ModeRules>(
    mode: &M,
    linker: &Linker,
    from: &Type,
    to: &Type,
    start: impl FnOnce(Term) -> Term,
    finish: impl FnOnce(Term, Term, Term) -> Term,
) -> Term {
    let at = At::default();
    let modes = [mode.mode()];
    let function = linker.image(mode, &Type::fun(from.clone(), to.clone()));
    lambda(at, "f", &function, |f| {
        lambda(at, "x", from, |x| {
            with_variables(at, mode, linker, from, x.clone(), |s0, count| {
                bind(at, "t", &linker.image(mode, to), at.app(f, s0.clone()), |t| {
                    let value = call(at, PRIMAL, &modes, to, [t.clone()]);
                    let back =
                        lambda(at, "dt", to, |dt| finish(call(at, SEED, &modes, to, [t, dt, start(count)]), x, s0));
                    at.tuple([value, back])
                })
            })
        })
    })
}

/// `let count = count x in let s0 = initVars x in body`
pub fn with_variables(
    at: At,
    mode: &dyn ModeRules,
    linker: &Linker,
    from: &Type,
    x: Term,
    body: impl FnOnce(Term, Term) -> Term,
) -> Term {
    bind(at, "count", &Type::Int, call(at, COUNT, &[], from, [x.clone()]), |count| {
        let variables = call(at, INIT_VARS, &[mode.mode()], from, [x, count.clone(), at.int(0)]);
        bind(at, "s0", &linker.image(mode, from), at.proj(variables, 0), |s0| body(s0, count))
    })
}

fn by_rows(linker: &Linker, mode: Mode, from: &Type, to: &Type) -> Made<Term> {
    let at = At::default();
    let types = [from.clone(), to.clone()];
    let pair = Type::tuple([to.clone(), Type::fun(to.clone(), from.clone())]);
    Ok(lambda(at, "f", &translated(linker, mode, from, to)?, |f| {
        lambda(at, "x", from, |x| {
            bind(at, "result", &pair, at.apps(global(at, PULLBACK, &[mode], types), [f, x]), |result| {
                bind(at, "y", to, at.proj(result.clone(), 0), |y| {
                    let rows = call(at, COUNT, &[], to, [y.clone()]);
                    build(at, &Type::array(Type::Real), rows, |j| {
                        let seed = call(at, ONE_HOT, &[], to, [y, j]);
                        call(at, FLATTEN, &[], from, [at.app(at.proj(result, 1), seed)])
                    })
                })
            })
        })
    }))
}

fn by_columns(linker: &Linker, mode: Mode, from: &Type, to: &Type) -> Made<Term> {
    let at = At::default();
    let types = [from.clone(), to.clone()];
    let row = Type::array(Type::Real);
    Ok(lambda(at, "f", &translated(linker, mode, from, to)?, |f| {
        lambda(at, "x", from, |x| {
            let run = |dx: Term| at.apps(global(at, PUSHFORWARD, &[mode], types.clone()), [f.clone(), x.clone(), dx]);
            let size = call(at, COUNT, &[], from, [x.clone()]);
            let columns = build(at, &row, size, |i| {
                let seed = call(at, ONE_HOT, &[], from, [x.clone(), i]);
                call(at, FLATTEN, &[], to, [at.proj(run(seed), 1)])
            });
            let value = at.proj(run(at.prim_at(Prim::ZeroLike, [from.clone()], [x.clone()])), 0);
            bind(at, "columns", &matrix(), columns, |columns| transpose(at, call(at, COUNT, &[], to, [value]), columns))
        })
    }))
}

fn jacobian(linker: &Linker, columns: Mode, rows: Mode, from: &Type, to: &Type) -> Made<Term> {
    let at = At::default();
    let types = [from.clone(), to.clone()];
    let (forward, reverse) = (translated(linker, columns, from, to)?, translated(linker, rows, from, to)?);
    Ok(lambda(at, "f_columns", &forward, |f_columns| {
        lambda(at, "f_rows", &reverse, |f_rows| {
            lambda(at, "x", from, |x| {
                let zero = at.prim_at(Prim::ZeroLike, [from.clone()], [x.clone()]);
                let pair =
                    at.apps(global(at, PUSHFORWARD, &[columns], types.clone()), [f_columns.clone(), x.clone(), zero]);
                let inputs = call(at, COUNT, &[], from, [x.clone()]);
                let outputs = call(at, COUNT, &[], to, [at.proj(pair, 0)]);
                at.if_(
                    compare_int(at, Prim::LessEqual, inputs, outputs),
                    at.apps(global(at, JACOBIAN_COLUMNS, &[columns], types.clone()), [f_columns, x.clone()]),
                    at.apps(global(at, JACOBIAN_ROWS, &[rows], types), [f_rows, x]),
                )
            })
        })
    }))
}
