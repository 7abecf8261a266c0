//! The types of definitions, by the rules of Hindley and Milner and those of the language page.

mod common;
use common::{accept, check, load};

#[test]
fn principal_types() {
    check(
        "let id x = x
         let compose f g x = f (g x)
         let twice f x = f (f x)
         let flip f x y = f y x
         let s f g x = f x (g x)
         let rec map f xs = match xs with [] -> [] | x :: rest -> f x :: map f rest
         let rec fold f acc xs = match xs with [] -> acc | x :: rest -> fold f (f acc x) rest",
        &[
            "id : 'a -> 'a",
            "compose : ('a -> 'b) -> ('c -> 'a) -> 'c -> 'b",
            "twice : ('a -> 'a) -> 'a -> 'a",
            "flip : ('a -> 'b -> 'c) -> 'b -> 'a -> 'c",
            "s : ('a -> 'b -> 'c) -> ('a -> 'b) -> 'a -> 'c",
            "map : ('a -> 'b) -> 'a list -> 'b list",
            "fold : ('a -> 'b -> 'a) -> 'a -> 'b list -> 'a",
        ],
    );
}

#[test]
fn numbers_are_decided_by_use_then_by_the_rule() {
    check(
        "let square x = x * x
         let two = 2
         let five = 2 + 3
         let half x = x / 2
         let count n = n + length [| 1 |]
         let scaled x = 2 * x + 0.5
         let power x = x ^ 2
         let negated x = -x
         let listed = [1; 2]
         let mapped = map (fun x -> x + 1) [| 1; 2 |]
         let inferred = map (fun x -> x * x)
         let fact = let rec f n = if n = 0 then 1 else n * f (n - 1) in f
         let add = ( + )
         let total = reduce ( + ) 0 [| 1; 2 |]
         let first p = fst p + snd p",
        &[
            "square : real -> real",
            "two : int",
            "five : int",
            "half : real -> real",
            "count : int -> int",
            "scaled : real -> real",
            "power : real -> real",
            "negated : real -> real",
            "listed : int list",
            "mapped : int[2]",
            "inferred : real[n] -> real[n]",
            "fact : real -> real",
            "add : real -> real -> real",
            "total : int",
            "first : real * real -> real",
        ],
    );
}

#[test]
fn a_local_number_waits_until_it_is_known() {
    check(
        "let a = let double x = x + x in double 2.0
         let b (n : int) = let double x = x + x in double n",
        &["a : real", "b : int -> int"],
    );
}

#[test]
fn local_definitions_are_polymorphic_if_they_are_values() {
    check(
        "let a = let pair x = (x, x) in (pair 1, pair \"a\")
         let b = let nil = [] in (1 :: nil, \"a\" :: nil)
         let c = let rec last d xs = match xs with [] -> d | x :: r -> last x r in (last 1 [2], last \"a\" [])",
        &["a : (int * int) * (string * string)", "b : int list * string list", "c : int * string"],
    );
}

#[test]
fn top_level_definitions_are_polymorphic_even_if_they_are_not_values() {
    check(
        "let compose f g x = f (g x)
         let twice_id = compose id id
         let a = (twice_id 1, twice_id \"a\")",
        &["compose : ('a -> 'b) -> ('c -> 'a) -> 'c -> 'b", "twice_id : 'a -> 'a", "a : int * string"],
    );
}

#[test]
fn polymorphic_recursion_with_an_annotation() {
    check(
        "type 'a perfect = Zero of 'a | Succ of ('a * 'a) perfect
         let rec size : 'a. 'a perfect -> int = fun p -> match p with Zero _ -> 1 | Succ q -> 2 * size q
         let rec total : 'a. ('a -> real) -> 'a perfect -> real =
           fun f p -> match p with Zero x -> f x | Succ q -> total (fun (a, b) -> f a + f b) q
         let rec length_of : 'a. 'a perfect -> real = fun p -> match p with Zero x -> norm x | Succ q -> length_of q",
        &["size : 'a perfect -> int", "total : ('a -> real) -> 'a perfect -> real", "length_of : 'a perfect -> real"],
    );
}

#[test]
fn records_are_resolved_by_type_and_then_by_the_latest_field() {
    check(
        "type p = { x : real; y : real }
         type q = { x : int; z : int }
         let known (a : p) = a.x
         let latest a = a.x
         let through_array = map (fun r -> r.x) [| ({ x = 1.0; y = 2.0 } : p) |]
         let by_other_field = { x = 1.0; y = 2.0 }
         let changed (r : p) = { r with y = 3.0 }
         let punned x z = { x; z }
         let taken { x; y } = (x, y)",
        &[
            "known : p -> real",
            "latest : q -> int",
            "through_array : real[1]",
            "by_other_field : p",
            "changed : p -> p",
            "punned : int -> int -> q",
            "taken : p -> real * real",
        ],
    );
}

#[test]
fn declared_types() {
    check(
        "type point = real * real
         type 'a pair = 'a * 'a
         type tree = Leaf | Node of forest and forest = tree list
         type ('k, 'v) entry = { key : 'k; value : 'v }
         let origin : point = (0.0, 0.0)
         let both (a : real) : point pair = ((a, a), (a, a))
         let leaf = Node [Leaf; Leaf]
         let entry k v = { key = k; value = v }
         let constructor = Node",
        &[
            "origin : real * real",
            "both : real -> (real * real) * (real * real)",
            "leaf : tree",
            "entry : 'a -> 'b -> ('a, 'b) entry",
            "constructor : tree list -> tree",
        ],
    );
}

#[test]
fn constructors_of_several_arguments_are_functions_of_a_tuple() {
    check(
        "type shape = Circle of real | Rect of real * real
         let areas = map (function Circle r -> r * r | Rect (w, h) -> w * h)
         let make = Rect
         let from pair = Rect pair",
        &["areas : shape[n] -> real[n]", "make : real * real -> shape", "from : real * real -> shape"],
    );
}

#[test]
fn derivative_forms_and_their_data() {
    check(
        "let slope = grad (fun x -> x * x) 3.0
         let of_pair = grad (fun (x, y) -> x * y)
         let general f = grad f
         let both = value_and_grad (fun x -> sin x)
         let back = pullback (fun (x, y) -> x * y)
         let nested x = grad (fun x -> grad (fun y -> x * y ^ 2) x) x
         let matrix = jacobian (fun (x, y) -> [| x; y |]) (1.0, 2.0)
         let series = taylor 3 sin 0.0
         let stopped = stop_gradient [1.0]",
        &[
            "slope : real",
            "of_pair : real * real -> real * real",
            "general : ('a -> real) -> 'a -> 'a",
            "both : real -> real * real",
            "back : real * real -> real * (real -> real * real)",
            "nested : real -> real",
            "matrix : real[][]",
            "series : real[]",
            "stopped : real list",
        ],
    );
}

#[test]
fn data_constraints_are_part_of_a_scheme() {
    let inferred = accept(&[("Main", "let close a b = norm (a <-> b) < 0.1\nlet same a b = a = b\nlet id x = x")]);
    let constraints = |name: &str| {
        inferred.program.defs[name].scheme.vars.iter().map(|(_, c)| *c).collect::<Vec<gradus_core::Constraint>>()
    };
    assert_eq!(constraints("close"), [gradus_core::Constraint::Data]);
    assert_eq!(constraints("same"), [gradus_core::Constraint::Data]);
    assert_eq!(constraints("id"), [gradus_core::Constraint::Any]);
}

#[test]
fn the_first_program_of_the_language_page() {
    let source = "type params = { slope : real; offset : real }
data points : (real * real)[] from \"points.csv\"
let predict p x = p.slope * x + p.offset
let loss p = mean (map (fun (x, y) -> (predict p x - y) ^ 2) points)
let rec descend p =
  let (l, g) = value_and_grad loss p in
  if norm g < 1e-6 then p else descend (p <-> 0.1 *> g)
show descend { slope = 0.0; offset = 0.0 }";
    check(
        source,
        &[
            "points : (real * real)[]",
            "predict : params -> real -> real",
            "loss : params -> real",
            "descend : params -> params",
        ],
    );
}

#[test]
fn modules_are_qualified_or_opened() {
    let geometry = "type point = { x : real; y : real }\nlet origin = { x = 0.0; y = 0.0 }\nlet shift p = { p with x = p.x + 1.0 }";
    let inferred = accept(&[
        ("Geometry", geometry),
        (
            "Main",
            "import Geometry
             let a = Geometry.shift Geometry.origin
             let b = let open Geometry in origin.x
             let c = Geometry.(origin.y)
             let d p = p.Geometry.x
             let e : Geometry.point = { Geometry.x = 1.0; y = 2.0 }
             open Geometry
             let f = shift { x = 1.0; y = 2.0 }",
        ),
    ]);
    let shown = |name: &str| inferred.signature(name).map(|s| s.shown).unwrap_or_default();
    assert_eq!(shown("a"), "Geometry.point");
    assert_eq!(shown("b"), "real");
    assert_eq!(shown("c"), "real");
    assert_eq!(shown("d"), "Geometry.point -> real");
    assert_eq!(shown("e"), "Geometry.point");
    assert_eq!(shown("f"), "Geometry.point");
    assert_eq!(shown("Geometry.shift"), "Geometry.point -> Geometry.point");
    assert!(inferred.program.defs.contains_key("Geometry.origin"));
    assert!(inferred.program.defs.contains_key("Prelude.map"));
}

#[test]
fn a_later_definition_shadows_an_earlier_one() {
    check("let x = 1\nlet y = x + 1\nlet x = real x + 0.5", &["y : int", "x : real"]);
}

#[test]
fn words_of_the_top_level_are_names_inside_expressions() {
    check("let f data show check plot = data + show + check + plot", &["f : real -> real -> real -> real -> real"]);
}

#[test]
fn one_more_expression() {
    let inferred = accept(&[("Main", "let scale = 2.0\nlet f x = scale * x")]);
    let parse = |text: &str| gradus_syntax::parse_expr(gradus_source::FileId(9), text).tree;
    let made = gradus_infer::infer_expr(&inferred, &parse("f 3"), None).unwrap();
    assert_eq!((made.shown.as_str(), &made.ty), ("real", &gradus_core::Type::Real));
    let open = gradus_infer::infer_expr(&inferred, &parse("[]"), None).unwrap();
    assert_eq!(open.shown, "'a list");
    let wanted = gradus_infer::infer_expr(&inferred, &parse("2"), Some(gradus_core::Type::Real)).unwrap();
    assert_eq!(wanted.ty, gradus_core::Type::Real);
    assert!(gradus_infer::infer_expr(&inferred, &parse("g 3"), None).is_err());
    assert!(gradus_infer::infer_expr(&inferred, &parse("\"a\""), Some(gradus_core::Type::Real)).is_err());
}

#[test]
fn the_library_checks() {
    let library = ["option", "list", "array", "math", "linalg", "random", "optim"];
    for name in library {
        let text = std::fs::read_to_string(format!("{}/../../library/{name}.gr", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let loaded = load(&[("Main", &text)]);
        let errors = loaded.result.err().unwrap_or_default();
        // A module that needs another one is checked where both are loaded.
        if !text.contains("import ") {
            assert!(errors.is_empty(), "{name}: {}", common::describe(&loaded.map, &errors[0]));
        }
    }
}

#[test]
fn deep_and_long_sources() {
    let nested = format!("let x = {}1{}", "(1 + ".repeat(3000), ")".repeat(3000));
    check(&nested, &["x : int"]);
    let lets = format!("let x = {} 1", "let y = 1 in ".repeat(3000));
    check(&lets, &["x : int"]);
    let list = format!("let x = [{}1]", "1; ".repeat(20_000));
    check(&list, &["x : int list"]);
    let lambdas = format!("let x = length [| {} 1 |]", "fun y -> ".repeat(400));
    check(&lambdas, &["x : int"]);
}
