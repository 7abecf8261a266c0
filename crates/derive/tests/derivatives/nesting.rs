//! Derivatives inside derivatives: no level is taken for another.

use crate::session::{check, check_in, MODES};
use gradus_core::Mode;

#[test]
fn perturbations_are_not_confused() {
    let program = "
        let inner x = diff (fun y -> x + y) 1.0
        let outer = diff (fun x -> x * inner x) 1.0
        let outer_grad = grad (fun x -> x * grad (fun y -> x + y) 1.0) 1.0
        let square x = diff (fun y -> x * y * y) 2.0
        let mixed = grad square 5.0
        let shadow = grad (fun x -> grad (fun x -> x ^ 3) (2.0 * x)) 1.0
    ";
    check(program, &[("outer", &[1.0]), ("outer_grad", &[1.0]), ("mixed", &[4.0]), ("shadow", &[24.0])]);
}

/// Manzyuk and others, \"Perturbation confusion in forward automatic differentiation of higher-order functions\":
/// s u f x = f (x + u); D (s) 0 is the derivative operator, and applying it twice gives the second derivative.
#[test]
fn curried_derivative_operator() {
    let program = "
        let s u f x = f (x + u)
        let d f y = diff (fun u -> s u f y) 0.0
        let twice y = d (d exp) y
        let twice_sin y = d (d sin) y
        let twice_grad y = grad (fun u -> s u (fun z -> grad (fun v -> s v exp z) 0.0) y) 0.0
    ";
    check(
        program,
        &[("twice 1.0", &[1f64.exp()]), ("twice_sin 1.0", &[-1f64.sin()]), ("twice_grad 1.0", &[1f64.exp()])],
    );
}

#[test]
fn orders_and_mixtures() {
    let program = "
        let f x = x ^ 5
        let second x = grad (grad f) x
        let third x = grad (fun z -> diff (grad f) z) x
        let fourth x = diff (diff (grad (grad f))) x
        let taylor_like x = diff (diff (diff (diff sin))) x
    ";
    check(
        program,
        &[
            ("second 2.0", &[160.0]),
            ("third 2.0", &[240.0]),
            ("fourth 2.0", &[240.0]),
            ("taylor_like 0.3", &[0.3f64.sin()]),
        ],
    );
}

#[test]
fn functions_as_values() {
    let program = "
        import List
        let slopes = List.map (fun f -> diff f 1.0) [sin; cos; (fun x -> x ^ 3)]
        let slopes_grad = List.map (fun f -> grad f 1.0) [sin; cos; (fun x -> x ^ 3)]
        let pick b = if b then sin else (fun x -> 2.0 * x)
        let picked = (grad (pick true) 0.5, grad (pick false) 0.5)
        let scaled a = fun x -> a * x * x
        let scaled_at a = grad (scaled a) 3.0
        let both = grad (fun a -> scaled_at a * a) 2.0
        let pair_of k = ((fun x -> k * x), k)
        let from_pair k = let (f, c) = pair_of k in grad (fun x -> f x * c * x) 2.0
        let compose f g = fun x -> f (g x)
        let composed = grad (compose sin exp) 0.2
        let rec power n = if n = 0 then (fun x -> 1.0) else let p = power (n - 1) in fun x -> x * p x
        let powered = grad (power 5) 2.0
        let array_of_functions = [| sin; cos |]
        let from_array = grad (fun x -> array_of_functions.(0) x * array_of_functions.(1) x) 0.3
    ";
    let e = 0.2f64.exp();
    check(
        program,
        &[
            ("slopes", &[1f64.cos(), -1f64.sin(), 3.0]),
            ("slopes_grad", &[1f64.cos(), -1f64.sin(), 3.0]),
            ("picked", &[0.5f64.cos(), 2.0]),
            // scaled_at a = 6 a; d/da (6 a^2) = 12 a
            ("both", &[24.0]),
            // k^2 x^2 has slope 2 k^2 x
            ("from_pair 3.0", &[36.0]),
            ("grad from_pair 3.0", &[24.0]),
            ("composed", &[e.cos() * e]),
            ("powered", &[80.0]),
            ("from_array", &[0.6f64.cos()]),
        ],
    );
}

/// A function defined through its own derivative: f 0 x = x^4, f n x = f (n - 1)' x, so f n is the n-th derivative.
#[test]
fn recursion_through_the_own_derivative() {
    let program = "
        let rec f n x = if n = 0 then x ^ 4 else diff (f (n - 1)) x
        let rec g n x = if n = 0 then x ^ 4 else grad (fun y -> g (n - 1) y) x
        let local n x = let rec h n x = if n = 0 then x ^ 4 else diff (h (n - 1)) x in h n x
    ";
    check(
        program,
        &[
            ("f 2 3.0", &[108.0]),
            ("f 3 3.0", &[72.0]),
            ("g 2 3.0", &[108.0]),
            ("g 3 3.0", &[72.0]),
            ("local 3 3.0", &[72.0]),
        ],
    );
}

/// What `pullback` and `linearize` give back are functions like others: they capture translated values, and can be differentiated.
#[test]
fn derivatives_of_pulled_back_functions() {
    let program = "
        let f k = fun x -> k * x * x
        let pulled k = let (_, back) = pullback (f k) 3.0 in diff (fun t -> back (t * t)) 2.0
        let pushed k = let (_, map) = linearize (f k) 3.0 in diff (fun t -> map (t * t)) 2.0
        let held back = diff back 2.0
        let handed k = let (_, back) = pullback (f k) 3.0 in held back
    ";
    // back t = 2 k x t = 6 k t; d/dt back (t^2) at 2 = 24 k
    check(
        program,
        &[
            ("pulled 5.0", &[120.0]),
            ("pushed 5.0", &[120.0]),
            ("handed 5.0", &[30.0]),
            ("grad pulled 5.0", &[24.0]),
            ("grad handed 5.0", &[6.0]),
        ],
    );
}

#[test]
fn newton_inside_a_gradient() {
    let program = "
        let newton g x = loop 8 (fun x -> x - g x / diff g x) x
        let root a = newton (fun x -> x * x - a) 1.0
        let newton_grad g x = loop 8 (fun x -> x - g x / grad g x) x
        let root_grad a = newton_grad (fun x -> x * x - a) 1.0
    ";
    // Exponential without sharing, so not in delta and continuation.
    let sharing: Vec<Mode> = MODES.into_iter().filter(|m| *m != Mode::Delta && *m != Mode::Continuation).collect();
    check_in(&sharing, program, &[("grad root 9.0", &[1.0 / 6.0]), ("grad root_grad 9.0", &[1.0 / 6.0])]);
}
