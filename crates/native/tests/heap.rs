//! Values on the heap and their derivatives: lists, trees, functions as data, strings; deep structures; rules.

mod support;

use gradus_native::{compile, Backend, Data, Layout};
use std::path::Path;
use support::{entry, parts, program};

/// Calls a function of one argument, on both backends, which must agree.
fn call(text: &str, name: &str, argument: &Data) -> Data {
    let program = program("test.gr", text, Path::new("."));
    let (from, to) = parts(&program.defs[name].scheme.ty);
    let leaves = Layout::of(&program, &from).expect("data").flatten(argument).expect("fits");
    let results = Backend::ALL.map(|backend| {
        let native = match compile(&program, &[entry(&program, name)], &backend.into()) {
            Ok(native) => native,
            Err(error) => panic!("{backend:?}: {:?}", error.diagnostic()),
        };
        let results = native.call(0, &leaves).unwrap_or_else(|e| panic!("{name}, {backend:?}: {e:?}"));
        Layout::of(&program, &to).expect("data").unflatten(&mut results.into_iter()).expect("fits")
    });
    let [found, other] = results;
    let (a, b) = (reals(&found), reals(&other));
    let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * a.abs().max(1.0);
    assert!(a.len() == b.len() && a.iter().zip(&b).all(close), "{name}: the backends differ");
    other
}

fn reals(data: &Data) -> Vec<f64> {
    support::numbers(data)
}

fn list(items: impl Iterator<Item = f64>) -> Data {
    Data::List(items.map(Data::Real).collect())
}

#[test]
fn gradients_of_long_lists() {
    let text = "let rec squares (l : real list) : real = match l with [] -> 0.0 | x :: r -> x * x + squares r\n\
                let rec onto (s : real) (l : real list) : real = match l with [] -> s | x :: r -> onto (s + x * x) r\n\
                let recursive (l : real list) : real list = grad squares l\n\
                let looped (l : real list) : real list = grad (fun l -> onto 0.0 l) l\n\
                let along (l : real list) : real = jvp squares l l\n\
                let curved (l : real list) : real list = hvp squares l l";
    let n = 1_000_000;
    let l = list((0..n).map(|i| f64::from(i % 1000)));
    for name in ["recursive", "looped"] {
        let found = reals(&call(text, name, &l));
        assert_eq!(found.len(), n as usize);
        assert!(found.iter().enumerate().all(|(i, g)| *g == 2.0 * (i % 1000) as f64), "{name}");
    }
    let short = list([1.0, 2.0, 3.0].into_iter());
    assert_eq!(reals(&call(text, "along", &short)), [28.0]);
    assert_eq!(reals(&call(text, "curved", &short)), [2.0, 4.0, 6.0]);
}

#[test]
fn gradients_of_trees() {
    let text = "type tree = Leaf | Node of tree * real * tree\n\
                let rec make (n : int) (x : real) : tree =\n\
                  if n = 0 then Leaf else Node (make (n - 1) (0.5 * x), x, make (n - 1) (0.5 * x))\n\
                let rec total (t : tree) : real = match t with Leaf -> 1.0 | Node (l, x, r) -> x * x + 0.5 * total l + 0.5 * total r\n\
                let rec size (t : tree) : int = match t with Leaf -> 0 | Node (l, _, r) -> 1 + size l + size r\n\
                let rec top (t : tree) : real list = match t with Leaf -> [] | Node (l, x, _) -> x :: top l\n\
                let f (n : int) : int * real list = let g = grad total (make n 1.0) in (size g, top g)\n\
                let rec chain (n : int) (t : tree) : tree = if n = 0 then t else chain (n - 1) (Node (t, 1.0, Leaf))\n\
                let deep (n : int) : int = size (grad total (chain n Leaf))";
    // Halved at each level, and so is the weight: 2 x w = 2 / 4^k.
    let Data::Tuple(found) = call(text, "f", &Data::Int(17)) else { panic!("a pair") };
    assert_eq!(found[0], Data::Int(131_071));
    let expected: Vec<f64> = (0..17).map(|k| 2.0 / 4f64.powi(k)).collect();
    assert_eq!(reals(&found[1]), expected);
    assert_eq!(call(text, "deep", &Data::Int(100_000)), Data::Int(100_000));
}

#[test]
fn functions_as_data() {
    let text = "let compose (fs : (real -> real) list) (x : real) : real = fold_list (fun y f -> f y) x fs\n\
                let rec repeat (n : int) (f : real -> real) : (real -> real) list = if n = 0 then [] else f :: repeat (n - 1) f\n\
                let f (n : int) : real = compose (repeat n (fun y -> 1.01 * y)) 1.0\n\
                let g (x : real) : real = grad (fun x -> compose [sin; (fun y -> y * x); exp] x) x\n\
                let h (x : real) : real = diff (fun x -> compose [sin; (fun y -> y * x); exp] x) x\n\
                let pick (x : real) : real = grad (fun y -> (if y > 0.0 then sin else cos) y) x";
    let text = text.replace("fold_list (fun y f -> f y) x fs", "go x fs").replace(
        "let compose",
        "let rec go (x : real) (fs : (real -> real) list) : real = match fs with [] -> x | f :: r -> go (f x) r\nlet compose",
    );
    let x = 0.7f64;
    let expected = (x * x.sin()).exp() * (x.sin() + x * x.cos());
    for name in ["g", "h"] {
        let found = reals(&call(&text, name, &Data::Real(x)))[0];
        assert!((found - expected).abs() < 1e-14, "{name}: {found} instead of {expected}");
    }
    let found = reals(&call(&text, "f", &Data::Int(1000)))[0];
    assert!((found / 1.01f64.powi(1000) - 1.0).abs() < 1e-11, "{found}");
    assert_eq!(reals(&call(&text, "pick", &Data::Real(0.5))), [0.5f64.cos()]);
    assert_eq!(reals(&call(&text, "pick", &Data::Real(-0.5))), [-(-0.5f64).sin()]);
}

#[test]
fn strings_and_elements_of_different_shape() {
    let text = "type entry = Word of string | Values of real[]\n\
                let f (n : int) : string[] = [| string_of_int n; string_append \"a\" \"bc\"; string_of_real 0.1; string_of_real 1e300 |]\n\
                let sizes (a : entry[]) : int[] = map (fun e -> match e with Word s -> string_length s | Values v -> length v) a\n\
                let sum_of (e : entry) : real = match e with Word _ -> 1.0 | Values v -> sum (map (fun x -> x * x) v)\n\
                let g (a : entry[]) : entry[] = grad (fun a -> sum (map sum_of a)) a\n\
                let order (n : int) : bool[] = [| \"ab\" < \"b\"; [1; 2] < [1; 3]; (1, \"x\") <= (1, \"w\"); Some 2.0 > None |]";
    let string = |s: &str| Data::String(s.into());
    let found = call(text, "f", &Data::Int(i64::MIN));
    let shown = ["-9223372036854775808", "abc", "0.1", "1e300"].map(string).to_vec();
    assert_eq!(found, Data::array(shown));
    let word = |s: &str| Data::Variant { tag: 0, args: vec![string(s)].into() };
    let values = |v: &[f64]| {
        let data = Data::Reals { dims: vec![v.len()], data: v.to_vec() };
        Data::Variant { tag: 1, args: vec![data].into() }
    };
    let a = Data::array(vec![word("héllo"), values(&[1.0, 2.0]), values(&[3.0])]);
    assert_eq!(reals(&call(text, "sizes", &a)), [5.0, 2.0, 1.0]);
    assert_eq!(call(text, "g", &a), Data::array(vec![word("héllo"), values(&[2.0, 4.0]), values(&[6.0])]));
    let bools = [true, true, false, true].map(Data::Bool).to_vec();
    assert_eq!(call(text, "order", &Data::Int(0)), Data::array(bools));
}

#[test]
fn rules_take_the_place_of_derivatives() {
    let text = "let f x = x * x\nderivative f x dy = 100.0 * x * dy\n\
                let g x = x * x\ntangent g x dx = 7.0 * x * dx\n\
                let by_rule (x : real) : real = grad f x\n\
                let forwards (x : real) : real = diff f x\n\
                let backwards (x : real) : real = grad g x\n\
                let twice (x : real) : real = grad (grad f) x\n\
                let inside (x : real) : real = grad (fun y -> 2.0 * f (y + 1.0) + g y) x";
    let at = |name: &str, x: f64| reals(&call(text, name, &Data::Real(x)))[0];
    assert_eq!(at("by_rule", 2.0), 200.0);
    assert_eq!(at("forwards", 2.0), 200.0);
    assert_eq!(at("backwards", 2.0), 14.0);
    assert_eq!(at("twice", 2.0), 100.0);
    assert_eq!(at("inside", 2.0), 2.0 * 300.0 + 14.0);
}

/// A rule for one direction serves the other too, one real at a time, also where the reals are in lists and trees.
#[test]
fn rules_for_the_other_direction_on_the_heap() {
    let text = "type tree = Leaf of real | Node of tree * tree\n\
                let rec total (t : tree) : real = match t with Leaf x -> x | Node (l, r) -> total l + 2.0 * total r\n\
                let weighted (t : tree) : real = total t\n\
                tangent weighted t dt = 3.0 * total dt\n\
                let rec powers (n : int) (x : real) : real list = if n = 0 then [] else x :: powers (n - 1) (x * x)\n\
                let three (x : real) : real list = powers 3 x\n\
                derivative three x dl = match dl with a :: b :: c :: [] -> a + 10.0 * b + 100.0 * c | _ -> 0.0\n\
                let backwards (x : real) : tree = grad weighted (Node (Leaf x, Node (Leaf 1.0, Leaf 2.0)))\n\
                let forwards (x : real) : real list = jvp three x 2.0";
    // 3 (x + 2 (y + 2 z)), which is not the derivative of the function, so that the rule's use can be seen.
    assert_eq!(reals(&call(text, "backwards", &Data::Real(5.0))), [1.0, 0.0, 3.0, 1.0, 0.0, 6.0, 0.0, 12.0]);
    assert_eq!(reals(&call(text, "forwards", &Data::Real(5.0))), [2.0, 20.0, 200.0]);
}
