//! Large terms: the work stays in proportion to the size. Times are in `bench/tables`.

use super::AT;
use crate::optimise::Optimiser;
use crate::settings::Settings;
use crate::size::size;
use gradus_core::{Prim, Term, Type, Var};

/// `let x1 = sin x0 * x0 in let x2 = sin x1 * x1 in ...`
fn chain(length: usize) -> Term {
    let vars: Vec<Var> = (0..=length).map(|_| Var::fresh("x")).collect();
    let body = (1..=length).rev().fold(AT.var(&vars[length]), |body, i| {
        let before = AT.var(&vars[i - 1]);
        let bound = AT.prim(Prim::MulReal, [AT.prim(Prim::Sin, [before.clone()]), before]);
        AT.bind(&vars[i], Type::Real, bound, body)
    });
    AT.lambda(&vars[0], Type::Real, body)
}

/// A sum of so many products, all in one expression.
fn sum(length: usize) -> Term {
    let x = Var::fresh("x");
    let product = |i: usize| AT.prim(Prim::MulReal, [AT.real(i as f64), AT.prim(Prim::Cos, [AT.var(&x)])]);
    let body = (1..length).fold(product(0), |sum, i| AT.prim(Prim::AddReal, [sum, product(i)]));
    AT.lambda(&x, Type::Real, body)
}

/// A tower of conditionals.
fn conditions(length: usize) -> Term {
    let x = Var::fresh("x");
    let body = (0..length).fold(AT.var(&x), |rest, i| {
        let test = AT.prim_at(Prim::Less, [Type::Real], [AT.var(&x), AT.real(i as f64)]);
        AT.if_(test, AT.prim(Prim::Sin, [AT.var(&x)]), rest)
    });
    AT.lambda(&x, Type::Real, body)
}

#[test]
fn large_terms_are_done_and_do_not_grow() {
    for make in [chain, sum, conditions] {
        for length in [100, 2000] {
            let term = make(length);
            for settings in [Settings::default(), Settings::reading()] {
                let result = Optimiser { settings, ..Optimiser::default() }.run(&term);
                assert!(size(&result.term) <= size(&term), "{} nodes from {}", size(&result.term), size(&term));
            }
        }
    }
}
