//! What the formatter makes of a text.

mod common;

use gradus_source::FileId;
use gradus_syntax::{format_module, parse_expr, parse_module, print_expr};

#[track_caller]
fn check(text: &str, expected: &str) {
    let parsed = parse_module(FileId(0), text);
    assert!(parsed.errors.is_empty(), "{}", common::complaints(text, &parsed.errors));
    assert_eq!(format_module(text, &parsed), expected);
}

/// Already as it should be.
#[track_caller]
fn keeps(text: &str) {
    check(text, text);
}

#[test]
fn the_first_program_stays_as_it_is() {
    keeps(
        r#"(* descent.gr: the whole idea on one screen *)
type params = { slope : real; offset : real }

data points : (real * real)[] from "points.csv"

let predict p x = p.slope * x + p.offset

let loss p = mean (map (fun (x, y) -> (predict p x - y) ^ 2) points)

let rec descend p =
  let (l, g) = value_and_grad loss p in
  if norm g < 1e-6 then p else descend (p <-> 0.1 *> g)

show descend { slope = 0.0; offset = 0.0 }
"#,
    );
}

#[test]
fn blanks_and_empty_lines() {
    check("let   x=1\n\n\n\nlet y   =  x+1\nshow x", "let x = 1\n\nlet y = x + 1\nshow x\n");
    check("let f x=\n\n  let y=x in\n\n\n  let z=y in\n  z", "let f x =\n  let y = x in\n\n  let z = y in\n  z\n");
    check("", "");
    check("\n\n(* alone *)\n\n", "(* alone *)\n");
    check("let x = 1 let y = 2", "let x = 1\nlet y = 2\n");
    check("  let x = 1\n  show x", "let x = 1\nshow x\n");
}

#[test]
fn parentheses_that_are_not_needed_go() {
    check("let x = ((1)) + (2 * 3)", "let x = 1 + 2 * 3\n");
    check("let x = (a + b) * c - (d - e) - (f)", "let x = (a + b) * c - (d - e) - f\n");
    check("let x = -(x ^ 2) + (-y)", "let x = -x ^ 2 + -y\n");
    check("let x = (-y) ^ 2 ^ (-z) ^ (-w)", "let x = (-y) ^ 2 ^ (-z) ^ -w\n");
    check("let x = f (g) (h 1) (-1) (a.b) ((c, d))", "let x = f g (h 1) (-1) a.b (c, d)\n");
    check("let f = fun (x) -> (x |> (fun y -> y))", "let f = fun x -> x |> (fun y -> y)\n");
    check("let f : ((real -> (real))) = g", "let f : real -> real = g\n");
    check("let f (Some (x)) ((A), b) = begin x end", "let f (Some x) (A, b) = x\n");
    check("let x = M.((a, b)), N.(c)", "let x = (M.(a, b), N.(c))\n");
}

#[test]
fn parentheses_that_help_a_reader_stay() {
    keeps("let x = (a <.> b) / c\n");
    keeps("let x = (f a < 0.0) = rising\n");
    keeps("let x = if a then (if b then c else d) else e\n");
    keeps("let x = [(fun x -> x); (fun y -> y)]\n");
    keeps("let f = function A -> (function B -> 1 | C -> 2) | D -> g\n");
}

#[test]
fn long_lines_break() {
    check(
        "let result = some_function (another_function first_argument second_argument) (third_function fourth_argument) fifth",
        "\
let result =
  some_function
    (another_function first_argument second_argument)
    (third_function fourth_argument)
    fifth
",
    );
    check(
        "let total = first_long_name * second_long_name + third_long_name * fourth_long_name + fifth_long_name * sixth_long_name",
        "\
let total =
  first_long_name * second_long_name
  + third_long_name * fourth_long_name
  + fifth_long_name * sixth_long_name
",
    );
    check(
        "let answer = if some_condition_that_is_long then the_first_alternative_value else if other_condition then second else third",
        "\
let answer =
  if some_condition_that_is_long then the_first_alternative_value
  else if other_condition then second
  else third
",
    );
    check(
        "let table = [| 1.0; 2.0; 3.0; 4.0; 5.0; 6.0; 7.0; 8.0; 9.0; 10.0; 11.0; 12.0; 13.0; 14.0; 15.0; 16.0; 17.0; 18.0; 19.0 |]",
        "\
let table = [|
  1.0; 2.0; 3.0; 4.0; 5.0; 6.0; 7.0; 8.0; 9.0; 10.0; 11.0; 12.0; 13.0; 14.0; 15.0; 16.0; 17.0; 18.0;
  19.0
|]
",
    );
    check(
        "let r = { the_first_field = some_function_of one_argument; the_second_field = another_function_of another_argument }",
        "\
let r = {
  the_first_field = some_function_of one_argument;
  the_second_field = another_function_of another_argument
}
",
    );
    keeps(
        "\
let fresh_layer key inputs outputs =
  { weights = Random.normal_matrix key outputs inputs; biases = replicate outputs 0.0; more = 1 }
",
    );
    keeps(
        "\
let at i j =
  ifold 9
    (fun n total -> total + k.(n / 3, n mod 3) * pixel p (i + n / 3 - 1) (j + n mod 3 - 1) * 2.0)
    0.0
",
    );
    check(
        "let f xs = fold_over_everything (fun acc x -> let y = some_long_function acc x in another_long_function y y y) xs 0 1",
        "\
let f xs =
  fold_over_everything
    (fun acc x -> let y = some_long_function acc x in another_long_function y y y)
    xs
    0
    1
",
    );
    check(
        "let f n = build n (fun i ->\n let y = some_function_of i in\n y * y)",
        "let f n =\n  build n (fun i ->\n    let y = some_function_of i in\n    y * y)\n",
    );
}

#[test]
fn matches_and_types() {
    keeps("let f = function\n  | [] -> 0\n  | x :: rest when x > 0 -> f rest\n  | _ -> 1\n");
    keeps("let f x =\n  match x, g x with\n  | A, _ -> 1\n  | B y, Some (-1) ->\n      let z = y in\n      z\n  | _ -> 2\n");
    keeps("let f o = match o with Some x -> x | None -> 0\n");
    keeps("type 'a tree = Leaf of 'a | Node of 'a tree * 'a tree\nand ('a, 'b) pair = Pair of ('a * 'b)\n");
    keeps("type t =\n  | A of (int -> int) * real[n][m]\n  | B\n");
    keeps("let rec size : 'a. 'a tree -> int = fun t -> 0\nand f (x : real[3]) : (real, int) either = g x\n");
    keeps(
        "derivative f (x, y) dz = (dz, dz)\ntangent f (x, y) (dx, dy) = dx + dy\nplot f to \"a.svg\"\ncheck f 1 = 2\n",
    );
    keeps("let f x = let open M in x\nlet g x = M.(x + y)\nlet h = ( * )\nlet i = 0xff + 1_000\n");
}

#[test]
fn comments_stay_where_they_are() {
    keeps(
        "\
(* about x *)
let x = 1 (* one *)

(* about f,
   in two lines *)
let f a (* first *) b =
  (* the sum *)
  let s = a + b in (* named *)
  (* and its double *)
  s * 2 (* done *)

let l = [
  1; (* one *)
  2 (* two *)
]

type t =
  | A (* first *)
  (* before B *)
  | B of int

type r = {
  x : real; (* across *)
  y : real (* up *)
}

let g = function
  | 0 -> 1 (* zero *)
  (* the others *)
  | n -> n

let h =
  a (* left *)
  + b
(* at the end *)
",
    );
}

#[test]
fn a_wrong_text_comes_back() {
    let text = "let x = (1\nlet   y=2";
    assert_eq!(format_module(text, &parse_module(FileId(0), text)), text);
}

#[test]
fn expressions_are_printed_from_the_tree_alone() {
    let print = |text: &str| print_expr(&parse_expr(FileId(0), text).tree);
    assert_eq!(print("let x=1 in f(x)(-1)"), "let x = 1 in f x (-1)");
    assert_eq!(print("match x with|A->1|B->(match y with C->2)"), "match x with A -> 1 | B -> match y with C -> 2");
    assert_eq!(print("\"a\\n\" :: 0x10 :: []"), "\"a\\n\" :: 16 :: []");
    assert_eq!(print("let a=1 in let b=2 in a"), "let a = 1 in\nlet b = 2 in a");
}
