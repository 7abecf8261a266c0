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
    let grows = "type 'a nest = End | More of 'a * ('a * 'a) nest\n\
                 let f (xs : real nest) = match xs with End -> 0.0 | More (x, _) -> x";
    let grows = refusal(grows, "grad f (More (1.0, End))");
    assert!(grows.contains("`combinator` cannot differentiate a recursive type that contains itself"), "{grows}");
    let unknown = refusal("let f g x = grad g x * 2.0", "grad (fun x -> f (fun y -> x * y) x) 2.0");
    assert!(unknown.contains("a function that is only known when the program runs"), "{unknown}");
}

#[test]
fn recursion_inside_a_function() {
    check(
        "let power x = let rec go n = if n = 0 then 1.0 else x * go (n - 1) in go 5\n\
         let even_odd x =\n\
           let rec even n y = if n = 0 then y else odd (n - 1) (x * y)\n\
           and odd n y = if n = 0 then 2.0 * y else even (n - 1) (x + y) in\n\
           even 3 x\n\
         let root x = iterate (fun y -> let z = 0.5 * (y + x / y) in if abs (z - y) < 1e-13 then Inr z else Inl z) x\n\
         let choose b = if b then (fun y -> if y > 100.0 then Inr y else Inl (y * y)) else (fun y -> Inr y)\n\
         let by_value x = iterate (choose (x > 1.0)) x\n\
         let as_value x = let rec go n y = if n = 0 then y else go (n - 1) (x * y) in let f = go 2 in f x + f 1.0",
        &[
            ("grad power 2.0", &[80.0]),
            // odd 2 (x * x), even 1 (x + x * x), odd 0 (x * (x + x * x)): twice that
            ("grad even_odd 2.0", &[2.0 * (2.0 * 2.0 + 3.0 * 4.0)]),
            ("grad root 2.0", &[0.5 / 2.0f64.sqrt()]),
            ("grad by_value 3.0", &[8.0 * 3.0f64.powi(7)]),
            // x^3 + x^2
            ("grad as_value 2.0", &[16.0]),
        ],
    );
}

#[test]
fn recursive_types() {
    check(
        "type tree = Leaf of real | Node of tree * tree\n\
         type chain = { head : real; next : chain option }\n\
         type even = Done | Even of real * odd and odd = Odd of real * even\n\
         let rec total t = match t with Leaf x -> x * x | Node (a, b) -> total a * 2.0 + total b\n\
         let rec dot xs ys = match (xs, ys) with (x :: xs, y :: ys) -> x * y + dot xs ys | _ -> 0.0\n\
         let rec add t x = match t with Leaf y -> Leaf (x * y) | Node (a, b) -> Node (add a x, b)\n\
         let twice t = total t + total (Node (t, t))\n\
         let rec sum c = c.head * c.head + (match c.next with None -> 0.0 | Some rest -> sum rest)\n\
         let rec even e = match e with Done -> 1.0 | Even (x, o) -> x * odd o\n\
         and odd o = match o with Odd (x, e) -> x * even e\n\
         let functions x = let rec apply fs y = match fs with [] -> y | f :: rest -> apply rest (f y) in\n\
           apply [(fun y -> x * y); sin; (fun y -> x + y)] x",
        &[
            ("grad total (Node (Leaf 3.0, Node (Leaf 1.0, Leaf 2.0)))", &[12.0, 4.0, 4.0]),
            ("grad (fun xs -> dot xs xs) [1.0; 2.0; 3.0]", &[2.0, 4.0, 6.0]),
            ("grad (fun (xs, ys) -> dot xs ys) ([1.0; 2.0], [5.0; 6.0; 7.0])", &[5.0, 6.0, 1.0, 2.0, 0.0]),
            (
                "vjp (fun (t, x) -> add t x) (Node (Leaf 2.0, Leaf 3.0), 5.0) (Node (Leaf 1.0, Leaf 10.0))",
                &[5.0, 10.0, 2.0],
            ),
            ("grad twice (Node (Leaf 1.0, Leaf 2.0))", &[2.0 * 2.0 * 4.0, 2.0 * 2.0 * 2.0 * 2.0]),
            ("grad sum { head = 1.0; next = Some { head = 2.0; next = None } }", &[2.0, 4.0]),
            ("grad even (Even (2.0, Odd (3.0, Done)))", &[3.0, 2.0]),
            ("grad functions 0.5", &[2.0 * 0.5 * 0.25f64.cos() + 1.0]),
            ("grad (fun (xs : real list) -> 1.0) [1.0; 2.0]", &[0.0, 0.0]),
            ("hessian (fun xs -> dot xs xs * dot xs [1.0; 0.0]) [2.0; 3.0]", &[12.0, 6.0, 6.0, 4.0]),
        ],
    );
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

/// The same through lists, recursion and iteration.
#[test]
fn cost_is_linear_in_recursion() {
    let program = "let rec list n = if n = 0 then [] else 0.5 :: list (n - 1)\n\
                   let rec over_list xs = match xs with [] -> 1.0 | x :: rest -> x * 0.9 + cos (over_list rest)\n\
                   let inside xs = let rec go xs acc = match xs with [] -> acc | x :: rest -> go rest (acc * 0.9 + x) in go xs 0.0\n\
                   let iterated n x = iterate (fun (i, y) -> if i = n then Inr y else Inl (i + 1, y * 0.99 + x)) (0, x)";
    let session = Session::new(program, Mode::Combinator).unwrap_or_else(|e| panic!("{e}"));
    let steps = |text: &str| session.eval(text).map(|(_, _, report)| report.steps).unwrap_or_else(|e| panic!("{e}"));
    let at = |n: usize| {
        [format!("grad over_list (list {n})"), format!("grad inside (list {n})"), format!("grad (iterated {n}) 0.01")]
    };
    for (small, large) in at(100).iter().zip(&at(1000)) {
        let (few, many) = (steps(small), steps(large));
        assert!(many < 11 * few, "{few} steps for {small}, {many} for {large}");
    }
}

#[test]
fn steps_can_be_printed() {
    let inferred = load("let f x = x * sin x\nlet data = 3.0").unwrap_or_else(|e| panic!("{e}"));
    let linker = Linker::new(Arc::new(inferred.program.clone()), Settings { reverse: Mode::Combinator, check: true });
    let key = |name: &str| Global::Source { name: name.into(), types: [].into() };
    let steps = combinator::steps(&linker, &key("f")).unwrap_or_else(|e| panic!("{e:?}"));
    assert_eq!(steps.combinators, "f : unit -> real -> real\nf = curry (<exr, exr ;; [sin]> ;; [*])\n");
    assert!(steps.reversed.contains("[sin]'") && steps.reversed.contains("linear ="), "{}", steps.reversed);
    // From the context and the argument, and the cotangent of the result, to the cotangents of the two.
    assert!(steps.reversed.contains("linear : (unit * real) * real -o unit * real\n"), "{}", steps.reversed);
    let refused = combinator::steps(&linker, &key("data"));
    assert!(matches!(refused.map_err(|r| *r), Err(Refusal::Construct { mode: Mode::Combinator, .. })));
}
