//! What the directed pass does to small terms, as printed text, and what it must leave alone.

use gradus_core::build::At;
use gradus_core::{Arm, Prim, Term, TermKind, Type, TypeName, Var};
use gradus_rewrite::{is_total, simplify};

const AT: At = At(gradus_source::Span { file: gradus_source::FileId(0), start: 0, end: 0 });

fn add(a: Term, b: Term) -> Term {
    AT.prim(Prim::AddReal, [a, b])
}

/// Whether two terms are the same up to the names of bound variables; enough for terms without binders.
fn same(a: &Term, b: &Term) -> bool {
    let text = |term: &Term| format!("{:?}", term.kind);
    text(a) == text(b)
}

fn check(term: Term, expected: Term, rule: &str) {
    let (simple, fired) = simplify(&term);
    assert!(same(&simple, &expected), "{:?}\nis not\n{:?}", simple.kind, expected.kind);
    assert!(fired.contains(&rule), "{rule} is not among {fired:?}");
}

fn input() -> (Var, Term) {
    let x = Var::fresh("x");
    (x.clone(), AT.var(&x))
}

#[test]
fn beta_and_single_use() {
    let (_, x) = input();
    let (y, y_term) = input();
    let function = AT.lambda(&y, Type::Real, add(y_term, AT.real(1.0)));
    check(AT.app(function, AT.prim(Prim::Sin, [x.clone()])), add(AT.prim(Prim::Sin, [x]), AT.real(1.0)), "beta");
}

#[test]
fn a_shared_result_stays_shared() {
    let (_, x) = input();
    let (y, y_term) = input();
    let term = AT.bind(&y, Type::Real, AT.prim(Prim::Sin, [x]), add(y_term.clone(), y_term));
    let (simple, fired) = simplify(&term);
    assert!(matches!(&*simple.kind, TermKind::Let { .. }) && fired.is_empty(), "{:?}", simple.kind);
}

#[test]
fn work_does_not_move_into_a_function() {
    let (_, x) = input();
    let (y, y_term) = input();
    let (z, z_term) = input();
    let function = AT.lambda(&z, Type::Real, add(y_term, z_term));
    let (simple, _) = simplify(&AT.bind(&y, Type::Real, AT.prim(Prim::Sin, [x]), function));
    assert!(matches!(&*simple.kind, TermKind::Let { .. }), "{:?}", simple.kind);
}

#[test]
fn unused_results_go_unless_they_can_fail() {
    let (_, x) = input();
    let (y, _) = input();
    check(AT.bind(&y, Type::Real, AT.prim(Prim::Log, [x.clone()]), x.clone()), x.clone(), "let-unused");
    let (k, _) = input();
    let division = AT.prim(Prim::DivInt, [AT.int(1), AT.int(0)]);
    assert!(!is_total(&division));
    let (simple, _) = simplify(&AT.bind(&k, Type::Int, division, x));
    assert!(matches!(&*simple.kind, TermKind::Let { .. }), "a division by zero was dropped");
}

#[test]
fn known_tuples_constructors_and_conditions() {
    let (_, x) = input();
    check(AT.proj(AT.tuple([x.clone(), AT.real(2.0)]), 0), x.clone(), "projection");
    let some = AT.construct(TypeName::new("option"), [Type::Real], 1, [AT.prim(Prim::Sin, [x.clone()])]);
    let (y, y_term) = input();
    let arms = vec![
        Arm { tag: 0, vars: vec![], body: AT.real(0.0) },
        Arm { tag: 1, vars: vec![(y, Type::Real)], body: add(y_term, AT.real(1.0)) },
    ];
    check(AT.case(some, arms, None), add(AT.prim(Prim::Sin, [x.clone()]), AT.real(1.0)), "case-known");
    let two_is_zero = AT.prim_at(Prim::Equal, [Type::Int], [AT.int(2), AT.int(0)]);
    check(AT.if_(two_is_zero, AT.real(0.0), x.clone()), x, "if-known");
}

#[test]
fn constants_fold_but_not_out_of_their_domain() {
    check(AT.prim(Prim::Sqrt, [AT.real(4.0)]), AT.real(2.0), "constant");
    let undefined = AT.prim(Prim::Log, [AT.real(-1.0)]);
    let (simple, fired) = simplify(&undefined);
    assert!(same(&simple, &undefined) && fired.is_empty());
}
