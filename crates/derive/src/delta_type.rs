//! K Fig. 7 and 10: the type `Delta` of symbolic linear maps, its evaluation, and the state of the monadic translation.
//!
//! ```text
//! type Delta = Zero | Scale of real * Delta | Add of Delta * Delta | Var of DeltaId | Rule of (DeltaMap -> DeltaMap)
//! type DeltaId = int
//! type DeltaMap = real option[]
//! type DeltaBinds = (DeltaId * Delta) list       (the latest first: reverse dependency order)
//! type DeltaState = DeltaId * DeltaBinds
//! ```
//!
//! Where we differ from the paper:
//! - `OneHot` (Fig. 7) is `Var`, as in Fig. 10.
//! - The chain of `Let` that `runDelta` builds (Fig. 10) is the list of bindings itself; [`sweep`] is the rule of `eval` for `Let`, as a
//!   loop over that list, so that it needs no stack.
//! - The map is an array (K section 7.3). Its elements are options, not numbers: a binding that nothing used is passed over, as by `lookup` in the paper,
//!   whatever its coefficients are. A plain zero would turn an infinite coefficient into NaN.
//! - `Rule` carries a custom derivative, applied during the sweep: from the cotangents of its outputs, which
//!   lie in the map, it adds those of its inputs.

use crate::write::{add, add_int, bind, build, compare_int, get, lambda, length, mul, set};
use gradus_core::build::At;
use gradus_core::{Arm, Global, Mode, Prim, Term, Type, TypeBody, TypeDecl, TypeName, Var};
use gradus_source::Span;

const ZERO: usize = 0;
const SCALE: usize = 1;
const ADD: usize = 2;
const VAR: usize = 3;
const RULE: usize = 4;

pub const EVAL: &str = "eval";
pub const SWEEP: &str = "sweep";
const GROW: &str = "grow";

pub fn name() -> TypeName {
    TypeName::new("Delta")
}

pub fn delta() -> Type {
    Type::Named(name(), [].into())
}

pub fn map_type() -> Type {
    Type::array(Type::option(Type::Real))
}

/// `DeltaId * Delta`
pub fn binding() -> Type {
    Type::tuple([Type::Int, delta()])
}

/// `DeltaState`
pub fn state() -> Type {
    Type::tuple([Type::Int, Type::list(binding())])
}

pub fn declaration() -> TypeDecl {
    let constructors = vec![
        ("Zero".into(), vec![]),
        ("Scale".into(), vec![Type::Real, delta()]),
        ("Add".into(), vec![delta(), delta()]),
        ("Var".into(), vec![Type::Int]),
        ("Rule".into(), vec![Type::fun(map_type(), map_type())]),
    ];
    TypeDecl { name: name(), params: vec![], body: TypeBody::Variant(constructors), span: Span::default() }
}

fn construct(at: At, tag: usize, args: impl Into<Vec<Term>>) -> Term {
    at.construct(name(), [], tag, args)
}

pub fn zero(at: At) -> Term {
    construct(at, ZERO, [])
}

pub fn var(at: At, id: Term) -> Term {
    construct(at, VAR, [id])
}

pub fn rule(at: At, action: Term) -> Term {
    construct(at, RULE, [action])
}

/// `Add (Scale p1 u1) (... (Scale pn un))`; no coefficient means 1.
pub fn combine(at: At, summands: Vec<(Option<Term>, Term)>) -> Term {
    let mut scaled = summands.into_iter().map(|(coefficient, u)| match coefficient {
        Some(coefficient) => construct(at, SCALE, [coefficient, u]),
        None => u,
    });
    let first = scaled.next().unwrap_or_else(|| zero(at));
    scaled.fold(first, |sum, next| construct(at, ADD, [sum, next]))
}

fn helper(at: At, name: &'static str) -> Term {
    at.global(Global::Wrapper { name, modes: vec![Mode::Monadic], types: [].into() })
}

/// `eval x u map`
pub fn eval(at: At, x: Term, u: Term, map: Term) -> Term {
    at.apps(helper(at, EVAL), [x, u, map])
}

/// `sweep binds map`
pub fn sweep(at: At, binds: Term, map: Term) -> Term {
    at.apps(helper(at, SWEEP), [binds, map])
}

/// `emptyMap`, for identifiers below `size`
pub fn empty_map(at: At, size: Term) -> Term {
    let option = Type::option(Type::Real);
    build(at, &option, size, |_| none(at))
}

fn none(at: At) -> Term {
    at.construct(TypeName::new("option"), [Type::Real], 0, [])
}

fn some(at: At, x: Term) -> Term {
    at.construct(TypeName::new("option"), [Type::Real], 1, [x])
}

/// `case lookup id map of None -> .. | Some x -> ..`
fn lookup(at: At, id: Term, map: Term, absent: Term, present: impl FnOnce(Term) -> Term) -> Term {
    let x = Var::fresh("x_adj");
    let body = present(at.var(&x));
    let arms = vec![Arm { tag: 0, vars: vec![], body: absent }, Arm { tag: 1, vars: vec![(x, Type::Real)], body }];
    at.case(get(at, &Type::option(Type::Real), map, id), arms, None)
}

/// `lookupOrZero id map`
pub fn lookup_or_zero(at: At, id: Term, map: Term) -> Term {
    lookup(at, id, map, at.real(0.0), |x| x)
}

/// Whether the map has an entry.
pub fn is_present(at: At, id: Term, map: Term) -> Term {
    lookup(at, id, map, at.bool(false), |_| at.bool(true))
}

/// `lookup` of Fig. 15 at a real: the entry of `(x, Var id)`.
pub fn lookup_dual(at: At, dual: Term, map: Term) -> Term {
    let id = Var::fresh("id");
    let found = lookup_or_zero(at, at.var(&id), map);
    let arms = vec![Arm { tag: VAR, vars: vec![(id, Type::Int)], body: found }];
    at.case(at.proj(dual, 1), arms, Some(at.real(0.0)))
}

/// `addDelta id x map`; Fig. 8: `updateAt`
fn add_delta(at: At, id: Term, x: Term, map: Term) -> Term {
    let option = Type::option(Type::Real);
    let first = set(at, &option, map.clone(), id.clone(), some(at, x.clone()));
    lookup(at, id.clone(), map.clone(), first, |y| set(at, &option, map, id, some(at, add(at, y, x))))
}

/// `delete id map`
pub fn delete(at: At, id: Term, map: Term) -> Term {
    set(at, &Type::option(Type::Real), map, id, none(at))
}

/// The map with room for at least `size` identifiers. It doubles, so that a sweep that grows it many times takes time in proportion to the last size.
pub fn grow(at: At, map: Term, size: Term) -> Term {
    at.apps(helper(at, GROW), [map, size])
}

fn grow_text(at: At) -> Term {
    let option = Type::option(Type::Real);
    lambda(at, "um", &map_type(), |um| {
        lambda(at, "size", &Type::Int, |size| {
            bind(at, "now", &Type::Int, length(at, &option, um.clone()), |now| {
                let twice = add_int(at, now.clone(), now.clone());
                let is_less = |a: Term, b: Term| compare_int(at, Prim::Less, a, b);
                let larger = at.if_(is_less(twice.clone(), size.clone()), size.clone(), twice);
                let grown = build(at, &option, larger, |i| {
                    let old = get(at, &option, um.clone(), i.clone());
                    at.if_(is_less(i, now.clone()), old, none(at))
                });
                at.if_(is_less(now.clone(), size), grown, um.clone())
            })
        })
    })
}

/// `eval : real -> Delta -> DeltaMap -> DeltaMap` of Fig. 10, and `eval2` of Fig. 8. One arm per equation, in the order of the figure.
pub fn eval_text(at: At) -> Term {
    lambda(at, "x", &Type::Real, |x| {
        lambda(at, "u", &delta(), |u| {
            lambda(at, "um", &map_type(), |um| {
                let eval = helper(at, EVAL);
                let (y, u1, u2) = (Var::fresh("y"), Var::fresh("u1"), Var::fresh("u2"));
                let (scaled, id, action) = (Var::fresh("u"), Var::fresh("id"), Var::fresh("action"));
                let arms = vec![
                    // eval x Zero um = um
                    Arm { tag: ZERO, vars: vec![], body: um.clone() },
                    // eval x (Scale y u) um = eval (x * y) u um
                    Arm {
                        tag: SCALE,
                        body: at.apps(eval.clone(), [mul(at, x.clone(), at.var(&y)), at.var(&scaled), um.clone()]),
                        vars: vec![(y, Type::Real), (scaled, delta())],
                    },
                    // eval x (Add u1 u2) um = eval x u2 (eval x u1 um)
                    Arm {
                        tag: ADD,
                        body: bind(
                            at,
                            "um1",
                            &map_type(),
                            at.apps(eval.clone(), [x.clone(), at.var(&u1), um.clone()]),
                            |um1| at.apps(eval, [x.clone(), at.var(&u2), um1]),
                        ),
                        vars: vec![(u1, delta()), (u2, delta())],
                    },
                    // eval x (Var id) um = addDelta id x um
                    Arm { tag: VAR, body: add_delta(at, at.var(&id), x, um.clone()), vars: vec![(id, Type::Int)] },
                    Arm {
                        tag: RULE,
                        body: at.app(at.var(&action), um),
                        vars: vec![(action, Type::fun(map_type(), map_type()))],
                    },
                ];
                at.case(u, arms, None)
            })
        })
    })
}

/// `sweep : DeltaBinds -> DeltaMap -> DeltaMap`: for each binding, the latest first, the rule of Fig. 10
/// `eval x (Let id u1 u2) um = let um2 = eval x u2 um in case lookup id um2 of Nothing -> um2 | Just x -> eval x u1 (delete id um2)`,
/// where `um2` is what the bindings before it in the list have left.
pub fn sweep_text(at: At) -> Term {
    let binds = Type::list(binding());
    lambda(at, "binds", &binds, |list| {
        lambda(at, "um", &map_type(), |um| {
            let (head, tail) = (Var::fresh("binding"), Var::fresh("rest"));
            let next = bind(at, "u", &delta(), at.proj(at.var(&head), 1), |u| {
                let action = Var::fresh("action");
                let run = at.app(at.var(&action), um.clone());
                let usual = bind(at, "id", &Type::Int, at.proj(at.var(&head), 0), |id| {
                    lookup(at, id.clone(), um.clone(), um.clone(), |x| {
                        let deleted = delete(at, id, um.clone());
                        eval(at, x, u.clone(), deleted)
                    })
                });
                let rule = Arm { tag: RULE, vars: vec![(action, Type::fun(map_type(), map_type()))], body: run };
                let step = at.case(u, vec![rule], Some(usual));
                sweep(at, at.var(&tail), step)
            });
            let arms = vec![
                Arm { tag: 0, vars: vec![], body: um.clone() },
                Arm { tag: 1, vars: vec![(head, binding()), (tail, binds.clone())], body: next },
            ];
            at.case(list, arms, None)
        })
    })
}

/// The functions above as globals.
pub fn helper_text(name: &str) -> Option<(Type, Term)> {
    let at = At::default();
    match name {
        EVAL => Some((Type::funs([Type::Real, delta(), map_type()], map_type()), eval_text(at))),
        SWEEP => Some((Type::funs([Type::list(binding()), map_type()], map_type()), sweep_text(at))),
        GROW => Some((Type::funs([map_type(), Type::Int], map_type()), grow_text(at))),
        _ => None,
    }
}
