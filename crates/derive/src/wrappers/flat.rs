//! A value of data type as an array of its reals and back, and the other plain functions over the polytypic families.

use super::families::{COLLECT, COUNT_FROM, INNER_FROM, REPLACE, SCALE_BY};
use super::global;
use crate::mode::rules;
use crate::write::{build, cons, get, lambda, length, letrec, nil, set};
use crate::{Linker, Made};
use gradus_core::build::At;
use gradus_core::{Arm, Mode, Prim, Term, TermKind, Type, Var};
use gradus_source::Span;

/// `count : a -> int`, the number of reals
pub const COUNT: &str = "count";
/// `flatten : D(a) -> D(real)[]`, for modes `[]` or one mode
pub const FLATTEN: &str = "flatten";
/// `unflatten : a -> D(real)[] -> D(a)`: shape and leaves from the first
pub const UNFLATTEN: &str = "unflatten";
/// `one_hot : a -> int -> a`: K's `onehot`, one at one real and zero at the others
pub const ONE_HOT: &str = "one_hot";
const INNER: &str = "inner";
const SCALE: &str = "scale";
/// `array_of_list : D(real) list -> D(real)[]`, last first
const REVERSED_ARRAY: &str = "reversed_array";

/// D(real)
pub fn element(modes: &[Mode]) -> Made<Type> {
    match modes {
        [] => Ok(Type::Real),
        [mode] => Ok(rules(*mode, Span::default())?.real()),
        _ => gradus_source::bug!("flat under the modes {modes:?}"),
    }
}

pub fn type_of(linker: &Linker, name: &str, modes: &[Mode], types: &[Type]) -> Made<Option<Type>> {
    let result = match (name, types) {
        (COUNT, [ty]) => Type::fun(ty.clone(), Type::Int),
        (FLATTEN, [ty]) => Type::fun(linker.image_under(modes, ty)?, Type::array(element(modes)?)),
        (UNFLATTEN, [ty]) => Type::funs([ty.clone(), Type::array(element(modes)?)], linker.image_under(modes, ty)?),
        (ONE_HOT, [ty]) => Type::funs([ty.clone(), Type::Int], ty.clone()),
        (INNER, [ty]) => Type::funs([ty.clone(), ty.clone()], Type::Real),
        (SCALE, [ty]) => Type::funs([Type::Real, ty.clone()], ty.clone()),
        (REVERSED_ARRAY, []) => Type::fun(Type::list(element(modes)?), Type::array(element(modes)?)),
        _ => return Ok(None),
    };
    Ok(Some(result))
}

pub fn make(linker: &Linker, name: &str, modes: &[Mode], types: &[Type]) -> Made<Term> {
    let at = At::default();
    let ty = types.first().cloned().unwrap_or(Type::Unit);
    let family = |name, modes: &[Mode]| global(at, name, modes, [ty.clone()]);
    Ok(match name {
        COUNT => lambda(at, "x", &ty, |x| at.apps(family(COUNT_FROM, &[]), [x, at.int(0)])),
        FLATTEN => {
            let list = nil(at, &element(modes)?);
            lambda(at, "x", &linker.image_under(modes, &ty)?, |x| {
                let reals = at.apps(family(COLLECT, modes), [x, list]);
                at.app(global(at, REVERSED_ARRAY, modes, []), reals)
            })
        }
        UNFLATTEN => {
            let array = Type::array(element(modes)?);
            lambda(at, "x", &ty, |x| {
                lambda(at, "values", &array, |values| {
                    at.proj(at.apps(family(REPLACE, modes), [x, values, at.int(0)]), 0)
                })
            })
        }
        ONE_HOT => lambda(at, "x", &ty, |x| {
            lambda(at, "index", &Type::Int, |index| {
                let size = at.app(family(COUNT, &[]), x.clone());
                at.apps(family(UNFLATTEN, &[]), [x, unit_vector(at, size, index, at.real(1.0))])
            })
        }),
        INNER => {
            lambda(at, "a", &ty, |a| lambda(at, "b", &ty, |b| at.apps(family(INNER_FROM, &[]), [a, b, at.real(0.0)])))
        }
        SCALE => lambda(at, "factor", &Type::Real, |factor| {
            lambda(at, "x", &ty, |x| at.apps(family(SCALE_BY, &[]), [x, factor]))
        }),
        _ => reversed_array(at, &element(modes)?),
    })
}

/// `size` reals: `value` at `index`, zero elsewhere.
pub fn unit_vector(at: At, size: Term, index: Term, value: Term) -> Term {
    build(at, &Type::Real, size, |i| at.if_(crate::write::compare_int(at, Prim::Equal, i, index), value, at.real(0.0)))
}

/// The elements of a list as an array, in reverse. The array is the last argument of the loop, so that nobody else holds it.
fn reversed_array(at: At, element: &Type) -> Term {
    let list = Type::list(element.clone());
    let size_of = |items: Term, rest: &dyn Fn(Term) -> Term| {
        letrec(
            at,
            "size",
            &[("items", list.clone()), ("so_far", Type::Int)],
            &Type::Int,
            |size, args| {
                let (head, tail) = (Var::fresh("head"), Var::fresh("tail"));
                let more = crate::write::add_int(at, args[1].clone(), at.int(1));
                let next = at.apps(size, [at.var(&tail), more]);
                let arms = vec![
                    Arm { tag: 0, vars: vec![], body: args[1].clone() },
                    Arm { tag: 1, vars: vec![(head, element.clone()), (tail, list.clone())], body: next },
                ];
                at.case(args[0].clone(), arms, None)
            },
            |size| rest(at.apps(size, [items, at.int(0)])),
        )
    };
    lambda(at, "items", &list, |items| {
        let (head, tail) = (Var::fresh("first"), Var::fresh("rest"));
        let whole = cons(at, element, at.var(&head), at.var(&tail));
        let filled = size_of(whole.clone(), &|size| {
            crate::write::bind(at, "size", &Type::Int, size, |size| {
                let start = build(at, element, size.clone(), |_| at.var(&head));
                fill(at, element, whole.clone(), size, start)
            })
        });
        let empty = at.term(TermKind::ArrayLiteral { element: element.clone(), items: vec![] });
        let arms = vec![
            Arm { tag: 0, vars: vec![], body: empty },
            Arm { tag: 1, vars: vec![(head, element.clone()), (tail, list.clone())], body: filled },
        ];
        at.case(items, arms, None)
    })
}

/// Writes the elements of a list into an array, from position `after - 1` downwards.
fn fill(at: At, element: &Type, items: Term, after: Term, start: Term) -> Term {
    let (list, array) = (Type::list(element.clone()), Type::array(element.clone()));
    letrec(
        at,
        "fill",
        &[("items", list.clone()), ("after", Type::Int), ("array", array.clone())],
        &array,
        |fill, args| {
            let (head, tail) = (Var::fresh("head"), Var::fresh("tail"));
            let next = crate::write::bind(
                at,
                "index",
                &Type::Int,
                at.prim(Prim::SubInt, [args[1].clone(), at.int(1)]),
                |index| {
                    let changed = set(at, element, args[2].clone(), index.clone(), at.var(&head));
                    at.apps(fill, [at.var(&tail), index, changed])
                },
            );
            let arms = vec![
                Arm { tag: 0, vars: vec![], body: args[2].clone() },
                Arm { tag: 1, vars: vec![(head, element.clone()), (tail, list.clone())], body: next },
            ];
            at.case(args[0].clone(), arms, None)
        },
        |fill| at.apps(fill, [items, after, start]),
    )
}

/// The columns of a matrix as rows: `rows` arrays of the elements at one position of each column.
pub fn transpose(at: At, rows: Term, columns: Term) -> Term {
    let row = Type::array(Type::Real);
    build(at, &row, rows, |j| {
        build(at, &Type::Real, length(at, &row, columns.clone()), |i| {
            get(at, &Type::Real, get(at, &row, columns, i), j)
        })
    })
}
