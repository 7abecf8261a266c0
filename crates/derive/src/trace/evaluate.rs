//! The functions on trace terms that the trace mode calls, written in the language itself, so that an outer mode can differentiate them:
//! symbolic differentiation (A Fig. 6) and ordinary evaluation (A Fig. 2, for trace terms).

use super::operations::Operation;
use super::term::*;
use crate::dual::partials;
use crate::vector::{array, zeros};
use crate::write::{add_int, bind, build, compare_int, get, ifold, lambda, length, letrec, set, Lets};
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
                            let operation = |number: Term, args: &[Term]| {
                                lookup(at, at.proj(sweep.clone(), 0), id.clone(), sweep.clone(), |w| {
                                    through(at, number, args, &w, &sweep)
                                })
                            };
                            let rule = |line| super::rule::differentiate(at, id.clone(), line, sweep.clone());
                            let passed = match_line(at, line, operation, rule, sweep.clone());
                            bind(at, "sweep", &sweep_type(), passed, |sweep| at.apps(back, [rest, before, sweep]))
                        })
                    },
                    |back| at.apps(back, [lines, last, sweep]),
                )
            })
        })
    })
}

/// W.R(op(D)) = let y = W.op_r(D) in y.R(D), for each argument that is a variable; + hands the cotangent on as it is. The partial derivatives of an
/// operation are numbered after it, in the order of its real arguments. Derivatives of derivatives are taken by differentiating this program,
/// so a line to be differentiated is never an op_r.
fn through(at: At, number: Term, args: &[Term], w: &Term, sweep: &Term) -> Term {
    let mut result = sweep.clone();
    for (index, arg) in args.iter().enumerate() {
        let before = std::mem::replace(&mut result, at.unit());
        result = bind(at, "sweep", &sweep_type(), before, |sweep| {
            match_slot(at, arg.clone(), sweep.clone(), |id| {
                let position = match (index, args) {
                    (0, _) | (_, []) => at.int(1),
                    // After the first argument, unless that is an integer.
                    (_, [first, ..]) => match_whole(at, first.clone(), at.int(1), at.int(2)),
                };
                let partial = add_int(at, number.clone(), position);
                let is_sum =
                    compare_int(at, Prim::Equal, number.clone(), at.int(Operation::Apply(Prim::AddReal).number()));
                let sum = accumulate(at, sweep.clone(), id.clone(), w.clone());
                at.if_(is_sum, sum, contribution(at, partial, args, w, sweep, id))
            })
        });
    }
    result
}

/// Adds W.op_r(D) for one argument to the cotangent of its slot.
fn contribution(at: At, partial: Term, args: &[Term], w: &Term, sweep: Term, id: Term) -> Term {
    bind(at, "state", &state_type(), at.proj(sweep.clone(), 1), |state| {
        bind(at, "next", &Type::Int, at.proj(state.clone(), 0), |next| {
            let partial = line(at, partial, args);
            let times = at.int(Operation::Apply(Prim::MulReal).number());
            let product = line(at, times, &[w.clone(), slot(at, next.clone())]);
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

/// The operations with a number of arguments.
fn with_arity(arity: usize) -> Vec<Operation> {
    Operation::all().iter().filter(|op| op.prim().info().params.len() == arity).copied().collect()
}

/// A Fig. 2 for trace terms: `let x = op(V) in N`, line after line.
fn evaluate() -> Term {
    let at = At::default();
    lambda(at, "state", &state_type(), |state| {
        lambda(at, "count", &Type::Int, |count| {
            lambda(at, "inputs", &array(), |inputs| {
                let values = bind(at, "values", &array(), zeros(at, at.proj(state.clone(), 0)), |values| {
                    ifold(at, &array(), count.clone(), values, |i, values| {
                        let x = get(at, &Type::Real, inputs, i.clone());
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
                            let operation = |number: Term, args: &[Term]| {
                                let value = apply(at, number, args, &values);
                                bind(at, "y", &Type::Real, value, |y| {
                                    set(at, &Type::Real, values.clone(), id.clone(), y)
                                })
                            };
                            let rule = |line| apply_rule(at, line, id.clone(), &values);
                            let filled = match_line(at, line, operation, rule, values.clone());
                            bind(at, "values", &array(), filled, |values| {
                                at.apps(run, [rest, add_int(at, id.clone(), at.int(1)), values])
                            })
                        })
                    },
                    |run| at.apps(run, [order, count, values]),
                )
            })
        })
    })
}

/// ev(op, V): the value of one line. Each argument is read as a number and as an integer, whichever the operation takes.
fn apply(at: At, number: Term, args: &[Term], values: &Term) -> Term {
    let mut lets = Lets::default();
    let mut read = Vec::new();
    for arg in args {
        let real = lets.bind(at, "x", &Type::Real, real_of(at, arg.clone(), values.clone()));
        read.push((real, lets.bind(at, "k", &Type::Int, int_of(at, arg.clone()))));
    }
    let value = dispatch(at, number, &with_arity(args.len()), &|operation| {
        let params = &operation.prim().info().params;
        let terms: Vec<Term> = (read.iter().zip(params))
            .map(|((x, k), ty)| if *ty == Type::Int { k.clone() } else { x.clone() })
            .collect();
        match operation {
            Operation::Apply(prim) => at.prim(prim, terms),
            Operation::Partial(prim, index) => match partials(at, prim, &terms).into_iter().nth(index) {
                Some(Some(partial)) => partial,
                _ => gradus_source::bug!("{operation:?} has no partial derivative"),
            },
        }
    });
    lets.wrap(at, value)
}

/// The values of the results of a rule, the first of which has the slot `id`.
fn apply_rule(at: At, line: RuleLine, id: Term, values: &Term) -> Term {
    let real = Type::Real;
    let numbers = build(at, &real, length(at, &atom_type(), line.atoms.clone()), |i| {
        real_of(at, get(at, &atom_type(), line.atoms.clone(), i), values.clone())
    });
    bind(at, "ys", &array(), at.app(line.apply, numbers), |ys| {
        ifold(at, &array(), line.count, values.clone(), |j, values| {
            let y = get(at, &real, ys, j.clone());
            set(at, &real, values, add_int(at, id, j), y)
        })
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
