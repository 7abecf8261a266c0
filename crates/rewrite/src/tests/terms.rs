//! What the optimiser does to small terms, and what it must leave alone.

use super::AT;
use crate::optimise::Optimiser;
use crate::settings::Settings;
use crate::table::Class;
use gradus_core::{Arm, Lambda, Mode, Prim, Term, TermKind, Type, TypeName, Var};
use std::sync::Arc;

fn add(a: Term, b: Term) -> Term {
    AT.prim(Prim::AddReal, [a, b])
}

fn mul(a: Term, b: Term) -> Term {
    AT.prim(Prim::MulReal, [a, b])
}

fn sin(a: Term) -> Term {
    AT.prim(Prim::Sin, [a])
}

/// The optimised term and the rules that were used, under given settings. What is not bound is a real.
fn optimised(term: &Term, settings: Settings) -> (Term, Vec<&'static str>) {
    let optimiser = Optimiser { settings, explain: true, ..Optimiser::default() };
    let result = optimiser.run(term);
    (result.term, result.steps.iter().map(|step| step.rule).collect())
}

fn exact(term: &Term) -> (Term, Vec<&'static str>) {
    optimised(term, Settings::default())
}

/// Enough for terms without binders.
fn text(term: &Term) -> String {
    format!("{:?}", term.kind)
}

fn check(term: Term, expected: Term, rule: &str) {
    let (result, fired) = exact(&term);
    assert_eq!(text(&result), text(&expected));
    assert!(fired.contains(&rule), "{rule} is not among {fired:?}");
}

fn input() -> (Var, Term) {
    let x = Var::fresh("x");
    (x.clone(), AT.var(&x))
}

#[test]
fn beta_and_single_use() {
    let ((_, x), (y, y_term)) = (input(), input());
    let function = AT.lambda(&y, Type::Real, add(y_term, AT.real(1.0)));
    check(AT.app(function, sin(x.clone())), add(sin(x), AT.real(1.0)), "beta");
}

#[test]
fn a_shared_result_stays_shared() {
    let ((_, x), (y, y_term)) = (input(), input());
    let term = AT.bind(&y, Type::Real, sin(x), mul(y_term.clone(), sin(y_term)));
    let (result, fired) = exact(&term);
    assert!(matches!(&*result.kind, TermKind::Let { .. }) && fired.is_empty(), "{:?}", result.kind);
}

#[test]
fn what_stands_twice_is_computed_once() {
    let (x, x_term) = input();
    let twice = || sin(mul(x_term.clone(), AT.real(3.0)));
    let body = add(twice(), AT.prim(Prim::Exp, [twice()]));
    let (result, fired) = exact(&AT.lambda(&x, Type::Real, body));
    assert!(fired.contains(&"share"), "{fired:?}");
    assert!(text(&result).matches("Sin").count() == 1, "{result:?}");
}

#[test]
fn a_branch_is_not_computed_outside_of_it() {
    let (x, x_term) = input();
    let costly = || sin(mul(x_term.clone(), AT.real(3.0)));
    let positive = AT.prim_at(Prim::Less, [Type::Real], [AT.real(0.0), x_term.clone()]);
    let body = AT.if_(positive, add(costly(), AT.real(1.0)), mul(costly(), AT.real(2.0)));
    let (result, _) = exact(&AT.lambda(&x, Type::Real, body));
    let TermKind::Lambda(lambda) = &*result.kind else { panic!("{result:?}") };
    assert!(matches!(&*lambda.body.kind, TermKind::If { .. }), "{result:?}");
}

#[test]
fn work_does_not_move_into_a_function() {
    let ((_, x), (y, y_term), (z, z_term)) = (input(), input(), input());
    let function = AT.lambda(&z, Type::Real, add(y_term, z_term));
    let (result, _) = exact(&AT.bind(&y, Type::Real, sin(x), function));
    assert!(matches!(&*result.kind, TermKind::Let { .. }), "{:?}", result.kind);
}

#[test]
fn unused_results_go_unless_they_can_fail() {
    let ((_, x), (y, _), (k, _)) = (input(), input(), input());
    let unused = AT.bind(&y, Type::Real, AT.prim(Prim::Log, [x.clone()]), x.clone());
    check(unused.clone(), x.clone(), "let_dead");
    // Where leaving the domain stops the program, the logarithm must stay.
    let (result, _) = optimised(&unused, Settings { domain: true, ..Settings::default() });
    assert!(matches!(&*result.kind, TermKind::Let { .. }), "a logarithm was dropped");
    let division = AT.prim(Prim::DivInt, [AT.int(1), AT.int(0)]);
    let (result, _) = exact(&AT.bind(&k, Type::Int, division, x));
    assert!(matches!(&*result.kind, TermKind::Let { .. }), "a division by zero was dropped");
}

#[test]
fn known_tuples_constructors_and_conditions() {
    let (_, x) = input();
    check(AT.proj(AT.tuple([x.clone(), AT.real(2.0)]), 0), x.clone(), "fst_pair");
    let some = AT.construct(TypeName::new("option"), [Type::Real], 1, [sin(x.clone())]);
    let (y, y_term) = input();
    let arms = vec![
        Arm { tag: 0, vars: vec![], body: AT.real(0.0) },
        Arm { tag: 1, vars: vec![(y, Type::Real)], body: add(y_term, AT.real(1.0)) },
    ];
    check(AT.case(some, arms, None), add(sin(x.clone()), AT.real(1.0)), "case_known");
    let two_is_zero = AT.prim_at(Prim::Equal, [Type::Int], [AT.int(2), AT.int(0)]);
    check(AT.if_(two_is_zero, AT.real(0.0), x.clone()), x, "if_false");
}

#[test]
fn constants_fold_but_not_out_of_their_domain() {
    check(AT.prim(Prim::Sqrt, [AT.real(4.0)]), AT.real(2.0), "constant");
    let undefined = AT.prim(Prim::Log, [AT.real(-1.0)]);
    let (result, fired) = exact(&undefined);
    assert!(text(&result) == text(&undefined) && fired.is_empty());
}

#[test]
fn exact_rules_keep_signed_zeros_and_infinities() {
    let (_, x) = input();
    for term in
        [add(x.clone(), AT.real(0.0)), mul(x.clone(), AT.real(0.0)), AT.prim(Prim::SubReal, [x.clone(), x.clone()])]
    {
        let (kept, _) = exact(&term);
        assert_eq!(text(&kept), text(&term));
        let (changed, _) = optimised(&term, Settings::reading());
        assert_ne!(text(&changed), text(&term));
    }
}

/// x * y + x * z with no common factor in sight of any single rule: commuted on one side.
#[test]
fn the_search_finds_what_no_single_rule_sees() {
    let ((_, x), (_, y), (_, z)) = (input(), input(), input());
    let term = add(mul(y.clone(), x.clone()), mul(x.clone(), z.clone()));
    let (result, fired) = optimised(&term, Settings::reading());
    assert_eq!(text(&result), text(&mul(x, add(y, z))), "{fired:?}");
    assert!(fired.contains(&"mul_comm") && fired.contains(&"distribute"), "{fired:?}");
}

/// A function that may still be differentiated keeps the variables that it captures.
#[test]
fn images_of_functions_are_left_alone() {
    let ((x, x_term), (y, y_term)) = (input(), input());
    let original = Arc::new(Lambda { param: x.clone(), ty: Type::Real, body: y_term.clone(), origin: None });
    let body = add(mul(AT.real(1.0), x_term), y_term);
    let image = Lambda { param: x, ty: Type::Real, body, origin: Some((Mode::Forward, original)) };
    let term = AT.bind(&y, Type::Real, AT.real(2.0), AT.term(TermKind::Lambda(Arc::new(image))));
    let (kept, fired) = optimised(&term, Settings { origins: true, class: Class::Reassociates, ..Settings::default() });
    assert!(fired.is_empty() && matches!(&*kept.kind, TermKind::Let { .. }), "{fired:?}");
    let (changed, _) = exact(&term);
    assert!(matches!(&*changed.kind, TermKind::Lambda(_)), "{changed:?}");
}
