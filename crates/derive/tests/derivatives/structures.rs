//! Inputs and outputs of every data type, and the constructs that take them apart.

use crate::session::{check, check_in, reals, Session, MODES};
use gradus_core::Mode;
use gradus_reference::Data;

#[test]
fn records_variants_and_leaves() {
    let program = r#"
        type shape = Circle of real | Box of real * real | Named of string * shape | Nothing
        type body = { mass : real; name : string; count : int; shape : shape }
        let rec area s = match s with
          | Circle r -> 3.0 * r * r
          | Box (a, b) -> a * b
          | Named (_, inner) -> area inner
          | Nothing -> 0.0
        let f b = b.mass * real b.count * area b.shape
        let at = { mass = 2.0; name = "x"; count = 3; shape = Named ("in", Box (5.0, 7.0)) }
    "#;
    check(
        program,
        &[
            ("grad f at", &[105.0, 42.0, 30.0]),
            ("grad area Nothing", &[]),
            ("jvp f at { at with mass = 1.0; shape = Named (\"other\", Box (1.0, 0.0)) }", &[105.0 + 42.0]),
        ],
    );
    // Leaves and constructors are the input's.
    let session = Session::new(program, Mode::Monadic).unwrap_or_else(|e| panic!("{e}"));
    let (data, _, _) = session.eval("grad f at").unwrap_or_else(|e| panic!("{e}"));
    let Data::Record(fields) = &data else { panic!("{data:?}") };
    assert_eq!(fields[1], Data::String("x".into()));
    assert_eq!(fields[2], Data::Int(3));
    assert!(matches!(&fields[3], Data::Construct { tag: 2, args } if args[0] == Data::String("in".into())));
}

#[test]
fn recursive_types() {
    let program = "
        type 'a tree = Leaf of 'a | Node of 'a tree * 'a * 'a tree
        let rec total t = match t with Leaf x -> x * x | Node (l, x, r) -> x * (total l + total r)
        let t = Node (Leaf 2.0, 3.0, Node (Leaf 5.0, 7.0, Leaf 11.0))
        type even = End | Even of real * odd
        and odd = Odd of real * even
        let rec even_sum e = match e with End -> 1.0 | Even (x, o) -> x * odd_sum o
        and odd_sum o = match o with Odd (x, e) -> x + even_sum e
        let e = Even (2.0, Odd (3.0, Even (5.0, Odd (7.0, End))))
        type 'a nested = Flat of 'a | Deep of ('a * 'a) nested
        let rec nested_sum : 'a. ('a -> real) -> 'a nested -> real = fun f n -> match n with
          | Flat x -> f x
          | Deep inner -> nested_sum (fun (a, b) -> f a * f b) inner
        let n = Deep (Deep (Flat ((2.0, 3.0), (5.0, 7.0))))
    ";
    // total t = 3 (4 + 7 (25 + 121)) = 3 (4 + 1022)
    // even_sum e = 2 (3 + 5 (7 + 1)) = 2 (3 + 40)
    check(
        program,
        &[
            ("grad total t", &[12.0, 1026.0, 210.0, 438.0, 462.0]),
            ("grad even_sum e", &[43.0, 2.0, 16.0, 10.0]),
            ("grad (nested_sum (fun x -> x)) n", &[105.0, 70.0, 42.0, 30.0]),
        ],
    );
}

#[test]
fn lists_options_and_either() {
    let program = "
        import List
        let f xs = match xs with [] -> 0.0 | x :: rest -> x * List.fold (fun a b -> a + b * b) 1.0 rest
        let g (o, e) = (match o with None -> 1.0 | Some x -> x * x) * (match e with Inl x -> x | Inr (y, z) -> y * z)
        let out xs = List.map (fun x -> (x * x, 1)) xs
    ";
    check(
        program,
        &[
            ("grad f [2.0; 3.0; 4.0]", &[26.0, 12.0, 16.0]),
            ("grad f []", &[]),
            ("grad g (Some 3.0, Inr (2.0, 5.0))", &[60.0, 45.0, 18.0]),
            ("grad g (None, Inl 7.0)", &[1.0]),
            ("vjp out [3.0; 4.0] [(1.0, 0); (10.0, 0)]", &[6.0, 80.0]),
            ("jvp out [3.0; 4.0] [1.0; 10.0]", &[6.0, 80.0]),
        ],
    );
}

#[test]
fn arrays_and_iteration() {
    let program = "
        let dots a = sum (map2 (fun x y -> x * y * y) a (reverse a))
        let rows m = sum (map (fun r -> reduce (fun a b -> a * b) 1.0 r) m)
        let written x = let a = set [| x; 2.0 * x; 3.0 |] 1 (x * x) in a.(0) * a.(1) * a.(2)
        let folded x = ifold 4 (fun i s -> s * x + real i) 1.0
        let iterated x = iterate (fun (n, y) -> if n = 0 then Inr y else Inl (n - 1, y * x)) (5, 1.0)
        let built x = let a = build 3 (fun i -> x ^ (i + 1)) in a.(0) + a.(1) + a.(2)
        let none (x : real) = length (build 0 (fun i -> x))
        let pairs a = sum (map (fun (x, y) -> x * y) a)
        let ragged a = sum (map (fun l -> match l with [] -> 0.0 | x :: _ -> x * x) a)
        let empty_sum (a : real[]) = sum a
        let vectors (a, b) = (a <.> b) + norm (2.0 *> (a <-> b))
    ";
    // folded x = ((((x) + 0) x + 1) x + 2) x + 3 = x^4 + x^2 + 2 x + 3
    let d = 100f64.sqrt();
    check(
        program,
        &[
            ("grad dots [| 2.0; 3.0; 5.0 |]", &[25.0 + 20.0, 27.0, 20.0 + 4.0]),
            ("grad rows [| [| 2.0; 3.0 |]; [| 5.0; 7.0 |] |]", &[3.0, 2.0, 7.0, 5.0]),
            ("grad written 2.0", &[36.0]),
            ("grad folded 2.0", &[38.0]),
            ("grad iterated 2.0", &[80.0]),
            ("grad built 2.0", &[17.0]),
            ("grad (fun x -> x * real (none x)) 2.0", &[0.0]),
            ("grad pairs [| (2.0, 3.0); (5.0, 7.0) |]", &[3.0, 2.0, 7.0, 5.0]),
            ("grad ragged [| [1.0; 2.0]; []; [3.0] |]", &[2.0, 0.0, 6.0]),
            ("grad empty_sum [| |]", &[]),
            (
                "grad vectors ([| 4.0; 5.0 |], [| 1.0; 1.0 |])",
                &[1.0 + 4.0 * 3.0 / d, 1.0 + 4.0 * 4.0 / d, 4.0 - 4.0 * 3.0 / d, 5.0 - 4.0 * 4.0 / d],
            ),
        ],
    );
}

#[test]
fn vector_space_operations_under_derivatives() {
    let program = "
        import List
        type state = { position : real * real; tag : int; trail : real list }
        let move s v = s <+> 0.5 *> v
        let energy (s, v) = let w = move s v in (w <.> w) - (zero_like w <.> w) + norm (w <-> s)
        let s = { position = (1.0, 2.0); tag = 7; trail = [3.0] }
        let v = { position = (2.0, 0.0); tag = 8; trail = [0.0] }
    ";
    // w = (2, 2, 3); |w - s| = |v| / 2; gradient in s: 2 w; in v: w + v / (2 |v|)
    check(program, &[("grad energy (s, v)", &[4.0, 4.0, 6.0, 2.0 + 0.5, 2.0, 3.0])]);
}

#[test]
fn a_wrong_shape_is_an_error() {
    let program = "
        import List
        let f xs = List.map (fun x -> x * x) xs
        let sum_of xs = List.fold (fun a b -> a + b) 0.0 xs
        let added x = List.fold (fun a b -> a + b) 0.0 ([x; x] <+> [x])
    ";
    for mode in MODES {
        let session = Session::new(program, mode).unwrap_or_else(|e| panic!("{e}"));
        for text in ["jvp f [1.0] [1.0; 2.0]", "vjp f [1.0] []", "grad added 1.0", "grad (grad added) 1.0"] {
            let error = session.eval(text).err().unwrap_or_else(|| panic!("{mode}: {text} has a value"));
            assert!(error.contains("shape"), "{mode}: {text}: {error}");
        }
    }
}

/// A list of a million cells, and a tree of a hundred thousand nodes: no stack is exhausted.
#[test]
fn deep_structures() {
    let program = "
        import List
        type tree = Leaf | Node of tree * real * tree
        let rec list n = if n = 0 then [] else real n :: list (n - 1)
        let rec sum_squares xs = match xs with [] -> 0.0 | x :: rest -> x * x + sum_squares rest
        let rec leftmost n = if n = 0 then Leaf else Node (leftmost (n - 1), real n, Leaf)
        let rec total t = match t with Leaf -> 0.0 | Node (l, x, r) -> total l + x * x + total r
        let check_list n = sum_of (grad sum_squares (list n))
        and sum_of xs = match xs with [] -> 0.0 | x :: rest -> x + sum_of rest
        let check_tree n = let rec sum t = match t with Leaf -> 0.0 | Node (l, x, r) -> sum l + x + sum r in
          sum (grad total (leftmost n))
    "
    .replace("let check_list", "let rec check_list");
    // The gradient is 2 x, and the sum of 2 n over n <= N is N (N + 1).
    check_in(
        &[Mode::Monadic],
        &program,
        &[("check_list 1000000", &[1e6 * (1e6 + 1.0)]), ("check_tree 100000", &[1e5 * (1e5 + 1.0)])],
    );
}

#[test]
fn reals_are_read_from_the_left() {
    let data = Data::Tuple(vec![Data::Real(1.0), Data::Reals(vec![2.0, 3.0])].into());
    assert_eq!(reals(&data), [1.0, 2.0, 3.0]);
}
