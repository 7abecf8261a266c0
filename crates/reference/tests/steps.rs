//! Steps of the semantics, counted by hand from `proofs/Language.v`: one for each construct that is evaluated.

mod support;

use gradus_core::{Prim, Term, Type};
use gradus_reference::{Kinks, Machine, Options};
use support::*;
use Type::{Int, Real};

fn steps(term: &Term) -> Option<u64> {
    let linker = Linker::new();
    linker.check(term);
    let mut machine = Machine::new(&linker, Options { kinks: Kinks::Premise, ..Options::default() });
    machine.eval(term).expect("a value");
    machine.report().semantic_steps
}

#[test]
fn nested_pairs_and_sums() {
    // pair 1 (pair 2 3), and `fst (snd ..)` of it
    let three = || AT.tuple([r(1.0), r(2.0), r(3.0)]);
    assert_eq!(steps(&three()), Some(5));
    assert_eq!(steps(&AT.proj(three(), 0)), Some(6));
    assert_eq!(steps(&AT.proj(three(), 1)), Some(7));
    assert_eq!(steps(&AT.proj(three(), 2)), Some(7));
    // case (inl unit) ..
    assert_eq!(steps(&AT.if_(AT.bool(true), r(1.0), r(2.0))), Some(4));
    // node (inr 1) (cons (node (inl unit) nil) nil)
    let list = || cons(Real, r(1.0), nil(Real));
    assert_eq!(steps(&list()), Some(3 + 4 + 2));
    // let n = list in case fst n of .. | p -> let h = p in let t = get (snd n) 0 in h: let, unnode, case, fst, n; let, the variable of the other
    // side; let, p; let, get, snd, n, 0; h
    let (head, tail) = (var("h"), var("t"));
    assert_eq!(steps(&match_list(list(), Real, r(0.0), &head, &tail, v(&head))), Some(9 + 5 + 2 + 2 + 5 + 1));
}

#[test]
fn functions_of_several_arguments() {
    let (x, y, f, h) = (var("x"), var("y"), var("f"), var("h"));
    let sum = fun([(&x, Real), (&y, Real)], add(v(&x), v(&y)));
    let ty = Type::funs([Real, Real], Real);
    // let, lam; app, app, f, 1, 2; the inner lam; add, x, y
    let whole = AT.bind(&f, ty.clone(), sum.clone(), app(v(&f), [r(1.0), r(2.0)]));
    assert_eq!(steps(&whole), Some(2 + 5 + 1 + 3));
    // let, lam; let; app, f, 1, the inner lam; add; twice app, h, 2, and add, x, y
    let call = || app(v(&h), [r(2.0)]);
    let partial = AT.bind(&h, Type::fun(Real, Real), app(v(&f), [r(1.0)]), add(call(), call()));
    assert_eq!(steps(&AT.bind(&f, ty, sum, partial)), Some(2 + 1 + 4 + 1 + 2 * (3 + 3)));
}

#[test]
fn loops() {
    let (n, s, f) = (var("n"), var("s"), var("f"));
    // build, 3; each turn, real, n
    let body = || fun([(&n, Int)], p(Prim::RealOfInt, [v(&n)]));
    assert_eq!(steps(&pt(Prim::Build, [Real], [i(3), body()])), Some(2 + 3 * 3));
    // let, lam; let, 3, let, f, build, variable; each turn, app, f, i, and real, n
    let named = AT.bind(&f, Type::fun(Int, Real), body(), pt(Prim::Build, [Real], [i(3), v(&f)]));
    assert_eq!(steps(&named), Some(2 + 6 + 3 * (4 + 2)));
    // loop, 4, 0.0; each turn, add, s, 1.0
    let (n, step) = (var("n"), |n| fun([(n, Int), (&s, Real)], add(v(&s), r(1.0))));
    assert_eq!(steps(&pt(Prim::Ifold, [Real], [i(4), step(&n), r(0.0)])), Some(3 + 4 * 4));
}

#[test]
fn what_the_semantics_does_not_have_is_not_counted() {
    assert_eq!(steps(&pt(Prim::StopGradient, [Real], [r(1.0)])), None);
    let linker = Linker::new();
    assert_eq!(Machine::new(&linker, Options::default()).report().semantic_steps, None);
}
