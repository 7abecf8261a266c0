//! The mode `combinator` on closed forms, its refusals, its cost, and its steps as text.

#[path = "derivatives/session.rs"]
mod session;

use gradus_core::{Global, Mode};
use gradus_derive::{combinator, Linker, Refusal, Settings};
use session::{check_in, load, Session};
use std::sync::Arc;

fn check(program: &str, expectations: &[(&str, &[f64])]) {
    check_in(&[Mode::Combinator], program, expectations)
}

#[test]
fn numbers() {
    let (sin, cos) = (0.7f64.sin(), 0.7f64.cos());
    check(
        "let f x = x * sin x\nlet g (x, y) = x * y + x\nlet power x = x ** 2.0",
        &[
            ("grad f 0.7", &[sin + 0.7 * cos]),
            ("grad g (2.0, 3.0)", &[4.0, 2.0]),
            ("value_and_grad g (2.0, 3.0)", &[8.0, 4.0, 2.0]),
            ("vjp (fun (x : real) -> (x * x, 3.0 * x)) 2.0 (1.0, 10.0)", &[34.0]),
            // The derivative by the exponent does not exist here, and nobody asks for it.
            ("grad power (-3.0)", &[-6.0]),
            ("grad (fun x -> let y = x * x in let z = y * y in z * z) 1.1", &[8.0 * 1.1f64.powi(7)]),
            ("jacobian (fun (x, y) -> (x * y, x + y)) (2.0, 3.0)", &[3.0, 2.0, 1.0, 1.0]),
        ],
    );
}

#[test]
fn functions_as_values() {
    check(
        "let twice f x = f (f x)\n\
         let compose f g x = f (g x)\n\
         let scaled k = fun x -> k * x\n\
         let pick b = if b then (fun x -> x * x) else (fun x -> 3.0 * x)",
        &[
            ("grad (twice (fun x -> x * x)) 1.5", &[4.0 * 1.5f64.powi(3)]),
            // The function itself depends on x: k (k x) with k = x.
            ("grad (fun x -> twice (scaled x) x) 1.5", &[3.0 * 1.5 * 1.5]),
            ("grad (fun x -> compose sin (fun y -> x * y) x) 0.5", &[2.0 * 0.5 * 0.25f64.cos()]),
            ("grad (fun x -> let f = fun y -> x * y * y in f x + f 2.0) 3.0", &[3.0 * 9.0 + 4.0]),
            ("grad (fun x -> pick (x > 0.0) x + pick (x < 0.0) x) 2.0", &[4.0 + 3.0]),
            ("grad (fun x -> let fs = ((fun y -> x + y), (fun y -> x * y)) in let (f, g) = fs in f (g x)) 3.0", &[7.0]),
        ],
    );
}

#[test]
fn sums_records_and_branches() {
    check(
        "type shape = Circle of real | Box of real * real | Empty of int\n\
         type point = { x : real; y : real; tag : string }\n\
         let area s = match s with Circle r -> 3.0 * r * r | Box (a, b) -> a * b | Empty _ -> 0.0\n\
         let norm p = p.x * p.x + p.y * p.y * p.y\n\
         let safe o = match o with None -> 1.0 | Some x -> x * x\n\
         let relu x = if x > 0.0 then x else 0.0",
        &[
            ("grad area (Circle 2.0)", &[12.0]),
            ("grad area (Box (2.0, 5.0))", &[5.0, 2.0]),
            ("grad area (Empty 3)", &[]),
            ("grad norm { x = 3.0; y = 2.0; tag = \"p\" }", &[6.0, 12.0]),
            ("grad safe (Some 3.0)", &[6.0]),
            ("grad (fun x -> safe (if x > 0.0 then Some (x * x) else None)) 2.0", &[32.0]),
            ("grad (fun x -> relu x + relu (-x) * 5.0) (-2.0)", &[-5.0]),
            ("grad (fun (e : (real, real * real) either) -> match e with Inl x -> x | Inr (x, y) -> x * y) (Inr (2.0, 3.0))", &[3.0, 2.0]),
        ],
    );
}

#[test]
fn arrays_and_loops() {
    check(
        "let sum a = ifold (length a) (fun i s -> s + a.(i)) 0.0\n\
         let squares a = build (length a) (fun i -> a.(i) * a.(i))\n\
         let product a = ifold (length a) (fun i s -> s * a.(i)) 1.0",
        &[
            ("grad (fun a -> sum (squares a)) [| 1.0; 2.0; 3.0 |]", &[2.0, 4.0, 6.0]),
            ("grad product [| 2.0; 3.0; 4.0 |]", &[12.0, 8.0, 6.0]),
            ("grad (fun x -> sum [| x; x * x; 1.0 |]) 3.0", &[7.0]),
            ("grad (fun a -> sum (set a 1 (a.(0) * 5.0))) [| 1.0; 2.0; 3.0 |]", &[6.0, 0.0, 1.0]),
            ("vjp squares [| 1.0; 2.0 |] [| 10.0; 100.0 |]", &[20.0, 400.0]),
            ("grad (fun x -> ifold 5 (fun _ y -> y * x) 1.0) 2.0", &[80.0]),
            ("grad (fun a -> let rows = build 2 (fun i -> build 2 (fun j -> a.(i) * a.(j))) in rows.(0).(1) + rows.(1).(1)) [| 2.0; 3.0 |]", &[3.0, 8.0]),
        ],
    );
}

#[test]
fn definitions_may_call_themselves_and_have_rules() {
    check(
        "let rec power x n = if n = 0 then 1.0 else x * power x (n - 1)\n\
         let f x y = x * y\n\
         derivative f x y dz = (dz * 100.0, dz * 1000.0)",
        &[("grad (fun x -> power x 5) 2.0", &[80.0]), ("grad (fun x -> f x (2.0 * x)) 3.0", &[2100.0])],
    );
}

#[test]
fn derivatives_inside_derivatives() {
    check(
        "let cube x = x * x * x",
        &[
            ("grad (fun x -> grad cube x) 2.0", &[12.0]),
            ("diff (fun x -> grad cube x) 2.0", &[12.0]),
            ("grad (fun x -> diff cube x) 2.0", &[12.0]),
            ("hessian (fun (x, y) -> x * x * y) (2.0, 3.0)", &[6.0, 4.0, 4.0, 0.0]),
            ("grad (fun x -> x * grad (fun y -> x * y * y) 3.0) 2.0", &[24.0]),
            ("grad (fun (x, z) -> let w = x * z in grad (fun y -> x * y * y * w) z) (2.0, 3.0)", &[72.0, 48.0]),
            ("hvp (fun (x, y) -> x * x * y) (2.0, 3.0) (1.0, 10.0)", &[46.0, 4.0]),
        ],
    );
}

fn refusal(program: &str, expression: &str) -> String {
    let session = Session::new(program, Mode::Combinator).unwrap_or_else(|e| panic!("{e}"));
    match session.eval(expression) {
        Ok(_) => panic!("{expression} was accepted"),
        Err(message) => message,
    }
}

#[test]
fn what_it_cannot_take_it_names() {
    let recursive = refusal("let f x = let rec go n = if n = 0 then x else x * go (n - 1) in go 3", "grad f 2.0");
    assert!(recursive.contains("`combinator` cannot differentiate general recursion"), "{recursive}");
    let list = refusal("let f xs = match xs with [] -> 0.0 | x :: _ -> x", "grad f [1.0]");
    assert!(list.contains("`combinator` cannot differentiate a recursive type"), "{list}");
    let iterate = refusal("let f x = iterate (fun y -> if y > 10.0 then Inr y else Inl (y * y)) x", "grad f 2.0");
    assert!(iterate.contains("`combinator` cannot differentiate `iterate`"), "{iterate}");
    let unknown = refusal("let f g x = grad g x * 2.0", "grad (fun x -> f (fun y -> x * y) x) 2.0");
    assert!(unknown.contains("a function that is only known when the program runs"), "{unknown}");
}

/// Reverse mode: the number of steps does not grow with the number of inputs beyond the work of the function itself.
#[test]
fn cost_is_linear() {
    let program = "let f a = ifold (length a) (fun i s -> if a.(i) > 0.5 then s * sin a.(i) else s + a.(i)) 1.0\n\
                   let input n = build n (fun i -> real i / real n)";
    let session = Session::new(program, Mode::Combinator).unwrap_or_else(|e| panic!("{e}"));
    let steps = |text: &str| session.eval(text).map(|(_, _, report)| report.steps).unwrap_or_else(|e| panic!("{e}"));
    let (small, large) = (steps("grad f (input 100)"), steps("grad f (input 1000)"));
    assert!(large < 11 * small, "{small} steps for 100 inputs, {large} for 1000");
}

#[test]
fn steps_can_be_printed() {
    let inferred = load("let f x = x * sin x\nlet data = 3.0").unwrap_or_else(|e| panic!("{e}"));
    let linker = Linker::new(Arc::new(inferred.program.clone()), Settings { reverse: Mode::Combinator, check: true });
    let key = |name: &str| Global::Source { name: name.into(), types: [].into() };
    let steps = combinator::steps(&linker, &key("f")).unwrap_or_else(|e| panic!("{e:?}"));
    assert_eq!(steps.combinators, "f = curry (<exr, exr ;; [sin]> ;; [*])\n");
    assert!(steps.reversed.contains("[sin]'") && steps.reversed.contains("linear ="), "{}", steps.reversed);
    let refused = combinator::steps(&linker, &key("data"));
    assert!(matches!(refused.map_err(|r| *r), Err(Refusal::Construct { mode: Mode::Combinator, .. })));
}
