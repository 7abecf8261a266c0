//! The functions on trace terms that the trace mode calls, written in the language itself, so that an outer mode can differentiate them:
//! symbolic differentiation (A Fig. 6) and ordinary evaluation (A Fig. 2, for trace terms).

use super::operations::Operation;
use super::term::*;
use crate::dual::partials;
use crate::vector::{array, zeros};
use crate::write::{add_int, bind, compare_int, lambda, letrec, set};
use gradus_core::build::At;
use gradus_core::{Arm, Global, Mode, Prim, Term, Type, Var};

/// `TraceLine list -> int -> TraceMap * TraceState -> TraceMap * TraceState`: the lines, the latest first, and the slot of the first of them
pub const DIFFERENTIATE: &str = "differentiate";
/// `TraceState -> int -> real[] -> real[]`: the values of all slots, from those of the inputs
pub const EVALUATE: &str = "evaluate";

pub fn call(at: At, name: &'static str, args: impl IntoIterator<Item = Term>) -> Term {
    at.apps(at.global(Global::Wrapper { name, modes: vec![Mode::Trace], types: [].into() }), args)
}

pub fn helper(name: &str) -> Option<(Type, Term)> {
    match name {
        DIFFERENTIATE => {
            let ty = Type::funs([lines_type(), Type::Int, sweep_type()], sweep_type());
            Some((ty, differentiate()))
        }
        EVALUATE => Some((Type::funs([state_type(), Type::Int, array()], array()), evaluate())),
        _ => None,
    }
}

/// A Fig. 6, from the last `let` to the first: W.R(let y = D in E) sends the cotangent of y, which E has left in the map, through D. A
/// slot that has no cotangent contributes nothing.
fn differentiate() -> Term {
    let at = At::default();
    lambda(at, "lines", &lines_type(), |lines| {
        lambda(at, "last", &Type::Int, |last| {
            lambda(at, "sweep", &sweep_type(), |sweep| {
                let params = [("lines", lines_type()), ("id", Type::Int), ("sweep", sweep_type())];
                letrec(
                    at,
                    "back",
                    &params,
                    &sweep_type(),
                    |back, args| {
                        let (lines, id, sweep) = (args[0].clone(), args[1].clone(), args[2].clone());
                        let before = at.prim(Prim::SubInt, [id.clone(), at.int(1)]);
                        match_list(at, lines, &line_type(), sweep.clone(), |line, rest| {
                            let passed = lookup(at, at.proj(sweep.clone(), 0), id, sweep.clone(), |w| {
                                match_line(at, line, |number, args| through(at, number, args, &w, &sweep))
                            });
                            bind(at, "sweep", &sweep_type(), passed, |sweep| at.apps(back, [rest, before, sweep]))
                        })
                    },
                    |back| at.apps(back, [lines, last, sweep]),
                )
            })
        })
    })
}

/// W.R(op(D)) = let y = W.op_r(D) in y.R(D), for each argument that is a variable; + hands the cotangent on as it is.
fn through(at: At, number: Term, args: &[Term], w: &Term, sweep: &Term) -> Term {
    // Derivatives of derivatives are taken by differentiating this program, so a line to be differentiated is never an op_r.
    let to_differentiate = |operation: &Operation| matches!(operation, Operation::Apply(_));
    dispatch(at, number, &with_arity(args.len(), to_differentiate), &|operation| {
        let prim = operation.prim();
        let mut result = sweep.clone();
        for (index, _) in prim.info().params.iter().enumerate().filter(|(_, ty)| **ty == Type::Real) {
            let before = result;
            result = bind(at, "sweep", &sweep_type(), before, |sweep| {
                match_slot(at, args[index].clone(), sweep.clone(), |id| {
                    contribution(at, prim, index, args, w, sweep, id)
                })
            });
        }
        result
    })
}

/// The operations with a number of arguments.
fn with_arity(arity: usize, wanted: impl Fn(&Operation) -> bool) -> Vec<Operation> {
    let fits = |op: &&Operation| op.prim().info().params.len() == arity && wanted(op);
    Operation::all().iter().filter(fits).copied().collect()
}

/// Adds W.op_r(D) for one argument to the cotangent of its slot.
fn contribution(at: At, prim: Prim, index: usize, args: &[Term], w: &Term, sweep: Term, id: Term) -> Term {
    if prim == Prim::AddReal {
        return accumulate(at, sweep, id, w.clone());
    }
    bind(at, "state", &state_type(), at.proj(sweep.clone(), 1), |state| {
        bind(at, "next", &Type::Int, at.proj(state.clone(), 0), |next| {
            let partial = line(at, Operation::Partial(prim, index), args);
            let factors = [w.clone(), slot(at, next.clone())];
            let product = line(at, Operation::Apply(Prim::MulReal), &factors);
            bind(at, "product", &Type::Int, add_int(at, next.clone(), at.int(1)), |second| {
                let first = append(at, next, partial, at.proj(state, 1));
                let state = bind(at, "state", &state_type(), first, |state| {
                    append(at, second.clone(), product, at.proj(state, 1))
                });
                let grown = at.tuple([at.proj(sweep, 0), state]);
                accumulate(at, grown, id, slot(at, second))
            })
        })
    })
}

/// A Fig. 2 for trace terms: `let x = op(V) in N`, line after line.
fn evaluate() -> Term {
    let at = At::default();
    lambda(at, "state", &state_type(), |state| {
        lambda(at, "count", &Type::Int, |count| {
            lambda(at, "inputs", &array(), |inputs| {
                let values = bind(at, "values", &array(), zeros(at, at.proj(state.clone(), 0)), |values| {
                    crate::write::ifold(at, &array(), count.clone(), values, |i, values| {
                        let x = crate::write::get(at, &Type::Real, inputs, i.clone());
                        set(at, &Type::Real, values, i, x)
                    })
                });
                let order = reverse(at, at.proj(state, 1));
                let params = [("lines", lines_type()), ("id", Type::Int), ("values", array())];
                letrec(
                    at,
                    "run",
                    &params,
                    &array(),
                    |run, args| {
                        let (lines, id, values) = (args[0].clone(), args[1].clone(), args[2].clone());
                        match_list(at, lines, &line_type(), values.clone(), |line, rest| {
                            let value = match_line(at, line, |number, args| apply(at, number, args, &values));
                            bind(at, "y", &Type::Real, value, |y| {
                                let values = set(at, &Type::Real, values, id.clone(), y);
                                at.apps(run, [rest, add_int(at, id, at.int(1)), values])
                            })
                        })
                    },
                    |run| at.apps(run, [order, count, values]),
                )
            })
        })
    })
}

/// ev(op, V): the value of one line.
fn apply(at: At, number: Term, args: &[Term], values: &Term) -> Term {
    dispatch(at, number, &with_arity(args.len(), |_| true), &|operation| {
        let numbers: Vec<(Var, Type, Term)> = args
            .iter()
            .zip(&operation.prim().info().params)
            .map(|(arg, ty)| match ty {
                Type::Int => (Var::fresh("k"), Type::Int, int_of(at, arg.clone())),
                _ => (Var::fresh("x"), Type::Real, real_of(at, arg.clone(), values.clone())),
            })
            .collect();
        let terms: Vec<Term> = numbers.iter().map(|(var, _, _)| at.var(var)).collect();
        let body = match operation {
            Operation::Apply(prim) => at.prim(prim, terms),
            Operation::Partial(prim, index) => match partials(at, prim, &terms).into_iter().nth(index) {
                Some(Some(partial)) => partial,
                _ => gradus_source::bug!("{operation:?} has no partial derivative"),
            },
        };
        numbers.into_iter().rev().fold(body, |body, (var, ty, value)| at.bind(&var, ty, value, body))
    })
}

/// Picks the case of an operation by its number, by halving.
fn dispatch(at: At, number: Term, operations: &[Operation], case: &dyn Fn(Operation) -> Term) -> Term {
    let (lower, upper) = operations.split_at(operations.len() / 2);
    match (lower, upper) {
        ([], [operation]) => case(*operation),
        (_, [first, ..]) => {
            let is_lower = compare_int(at, Prim::Less, number.clone(), at.int(first.number()));
            at.if_(is_lower, dispatch(at, number.clone(), lower, case), dispatch(at, number, upper, case))
        }
        (_, []) => gradus_source::bug!("there are no operations to choose from"),
    }
}

/// `match list with [] -> empty | head :: tail -> body`
fn match_list(at: At, list: Term, element: &Type, empty: Term, body: impl FnOnce(Term, Term) -> Term) -> Term {
    let (head, tail) = (Var::fresh("head"), Var::fresh("tail"));
    let body = body(at.var(&head), at.var(&tail));
    let vars = vec![(head, element.clone()), (tail, Type::list(element.clone()))];
    at.case(list, vec![Arm { tag: 0, vars: vec![], body: empty }, Arm { tag: 1, vars, body }], None)
}

/// The list from the back to the front.
fn reverse(at: At, list: Term) -> Term {
    let params = [("rest", lines_type()), ("done", lines_type())];
    letrec(
        at,
        "reverse",
        &params,
        &lines_type(),
        |again, args| {
            let (rest, done) = (args[0].clone(), args[1].clone());
            match_list(at, rest, &line_type(), done.clone(), |head, tail| {
                at.apps(again, [tail, crate::write::cons(at, &line_type(), head, done)])
            })
        },
        |again| at.apps(again, [list, crate::write::nil(at, &line_type())]),
    )
}
