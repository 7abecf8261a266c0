//! What is refused, and in which words.

mod common;
use common::{check_error, errors_of, load};

#[test]
fn misspelt_names() {
    check_error(
        "let x = lenght [| 1.0 |]",
        &["E0101 unknown variable `lenght`
  `lenght`: not found here
  help: did you mean `length`?"],
    );
    check_error(
        "type t = Leaf of real | Node of t * t\nlet x = Laef 1.0",
        &["E0102 unknown constructor `Laef`
  `Laef`: not found here
  help: did you mean `Leaf`?"],
    );
    check_error(
        "type p = { slope : real }\nlet f (p : p) = p.slop",
        &["E0103 the record `p` has no field `slop`
  `slop`: not one of its fields
  note: its fields are `slope`
  help: did you mean `slope`?"],
    );
    check_error(
        "let f (x : rael) = x",
        &["E0104 unknown type `rael`
  `rael`: not found here
  help: did you mean `real`?"],
    );
    check_error(
        "type 'a t = T of 'b",
        &["E0105 unknown type variable `'b`
  `'b`: not found here
  help: add `'b` to the parameters of the declared type"],
    );
}

#[test]
fn names_that_are_known_elsewhere() {
    check_error(
        "let f n = if n = 0 then 1 else f (n - 1)",
        &["E0101 unknown variable `f`
  `f`: not found here
  help: a function that uses itself is defined by `let rec f`"],
    );
    check_error(
        "let area = width * 2.0\nlet width = 3.0",
        &["E0101 unknown variable `width`
  `width`: not found here
  help: `width` is defined further down; a definition stands before its uses"],
    );
    check_error(
        "let f (x : float) = x",
        &["E0104 unknown type `float`
  `float`: not found here
  help: the type of numbers with a fraction is `real`"],
    );
}

#[test]
fn modules() {
    check_error(
        "let x = Optim.descend",
        &["E0106 unknown module `Optim`
  `Optim`: not imported here
  help: write `import Optim` at the top of the file"],
    );
    let errors = errors_of(&[("Optim", "let descend x = x"), ("Main", "import Optim\nlet x = Optim.descent 1")]);
    assert_eq!(
        errors.join("\n"),
        "E0101 module `Optim` has no variable `descent`
  `descent`: not found here
  help: did you mean `descend`?"
    );
    let errors = errors_of(&[("Optim", "let descend x = x"), ("Main", "import Optim\nlet x = descend 1")]);
    assert_eq!(
        errors.join("\n"),
        "E0101 unknown variable `descend`
  `descend`: not found here
  help: did you mean `Optim.descend`?"
    );
}

#[test]
fn int_and_real() {
    check_error(
        "let n = 3\nlet y = n * 0.5",
        &["E0207 expected `int`, found `real`
  `0.5`: this has type `real`
  `n`: the other side of `*` has type `int`, and both must be the same
  help: nothing is converted silently: `real e` makes a `real` of an `int`, and `2.0` is a `real`"],
    );
    check_error(
        "let x = [| 1.0 |].(1.0)",
        &["E0207 expected `int`, found `real`
  `1.0`: this has type `real`
  note: an index is an `int`
  help: write `1` for an `int`"],
    );
    check_error(
        "let n = 3\nlet x = sqrt n",
        &["E0207 expected `real`, found `int`
  `n`: `n` has type `int`
  `sqrt`: argument 1 of `sqrt` has type `real`
  help: `real e` makes a `real` of an `int`, and `2.0` is a `real`; nothing is converted silently"],
    );
}

#[test]
fn operators_on_what_is_no_number() {
    check_error(
        "let y = \"a\" + \"b\"",
        &["E0206 `+` works on numbers, `int` or `real`, not on `string`
  `\"a\"`: this has type `string`
  help: strings are joined by `string_append a b`"],
    );
    check_error(
        "let z = [| 1.0 |] + [| 2.0 |]",
        &["E0206 `+` works on numbers, `int` or `real`, not on `real[1]`
  `[| 1.0 |]`: this has type `real[1]`
  help: arrays, tuples and other data are added by `<+>`"],
    );
    check_error(
        "let g s = (string_length s, s + 1)",
        &["E0206 `+` works on numbers, `int` or `real`, not on `string`
  `s`: this has type `string`
  `s`: it has type `string` because of this
  help: strings are joined by `string_append a b`"],
    );
}

#[test]
fn both_types_and_where_they_come_from() {
    check_error(
        "let f x = if x then 1 else \"a\"",
        &["E0201 expected `int`, found `string`
  `\"a\"`: this has type `string`
  `1`: the first branch has type `int`, and both must be the same"],
    );
    check_error(
        "let f x = match x with 0 -> \"a\" | _ -> true",
        &["E0201 expected `string`, found `bool`
  `true`: this has type `bool`
  `\"a\"`: the first case has type `string`, and all must be the same"],
    );
    check_error(
        "let x = [1.0; \"a\"]",
        &["E0201 expected `real`, found `string`
  `\"a\"`: this has type `string`
  `1.0`: the first element has type `real`, and all must be the same"],
    );
    check_error(
        "let f x : real = x = 1",
        &["E0201 expected `real`, found `bool`
  `x = 1`: this has type `bool`
  `real`: `real` is written here"],
    );
    check_error(
        "let x = map sqrt [1.0; 2.0]",
        &["E0201 expected `real[]`, found `real list`
  `[1.0; 2.0]`: this has type `real list`
  `map`: argument 2 of `map` has type `real[]`
  help: arrays are written `[| a; b |]`, lists `[a; b]`"],
    );
    check_error(
        "let x = if 1 then 2 else 3",
        &["E0201 expected `bool`, found `int`
  `1`: this has type `int`
  note: a condition is a `bool`
  help: compare it with something, as in `x = 0`"],
    );
}

#[test]
fn arguments_too_many_and_too_few() {
    check_error(
        "let f a b = a + b\nlet x = f 1.0 2.0 3.0",
        &["E0203 `f` takes 2 arguments, but is given 3
  `3.0`: one too many
  `f`: this has type `real -> real -> real`"],
    );
    check_error(
        "let f a b = a + b\nlet x = sqrt (f 1.0)",
        &["E0204 this function still needs 1 argument: expected `real`, found the function `real -> real`
  `f 1.0`: this has type `real -> real`
  `sqrt`: argument 1 of `sqrt` has type `real`"],
    );
    check_error(
        "let x = 3 4",
        &["E0203 this is not a function, but is applied to 1 argument
  `3`: this has type `int`
  help: is an operator, a comma or a semicolon missing before the argument?"],
    );
}

#[test]
fn tuples_and_curried_arguments() {
    check_error(
        "let f (x, y) = x + y\nlet a = f 1.0 2.0",
        &["E0201 expected `real * real`, found `real`
  `1.0`: this has type `real`
  `f`: argument 1 of `f` has type `real * real`
  help: the argument is a tuple, in parentheses: `f (a, b)`"],
    );
    check_error(
        "let f x y = x + y\nlet a = f (1.0, 2.0)",
        &["E0201 expected `real`, found `real * real`
  `(1.0, 2.0)`: this has type `real * real`
  `f`: argument 1 of `f` has type `real`
  help: arguments stand one after the other, without comma: `f a b`"],
    );
}

#[test]
fn what_is_written_otherwise() {
    check_error(
        "let a = iterate (fun x -> x * 2.0) 1.0",
        &["E0201 expected `(real, 'a) either`, found `real`
  `x * 2.0`: this has type `real`
  `iterate`: argument 1 of `iterate` is a function with the result `(real, 'a) either`
  `x`: it has type `real` because of this
  help: a step gives `Inl next` to go on, and `Inr result` to stop"],
    );
    check_error(
        "let change (a : real[][]) = set a (1, 2) a.(0)",
        &["E0201 expected `int`, found `int * int`
  `(1, 2)`: this has type `int * int`
  `set`: argument 2 of `set` has type `int`
  help: a number of a matrix is changed in its row: `set a i (set a.(i) j x)`"],
    );
    check_error(
        "let f (a : array real) = a",
        &[
            "E0104 unknown type `array`
  `array`: not found here
  help: the type of arrays is written with brackets, as in `real[]`",
            "E0112 the type `real` takes no type arguments, but is given 1
  `array real`: 1 argument here
  help: an array is written `real[]`, a list `real list`",
        ],
    );
    check_error(
        "let a = ref 1.0",
        &["E0101 unknown variable `ref`
  `ref`: not found here
  help: there are no mutable values: name the new value with another `let`"],
    );
}

#[test]
fn an_annotation_that_promises_too_much() {
    check_error(
        "let first : 'a 'b. 'a -> 'b -> 'a = fun x y -> y",
        &["E0201 expected `'a`, found `'b`
  `y`: `y` has type `'b`
  `'a -> 'b -> 'a`: `'a` is written here"],
    );
}

#[test]
fn types_that_contain_themselves() {
    check_error(
        "let f x = x x",
        &["E0202 a type would contain itself: `'a` would have to be `'a -> 'b`
  `x`: this cannot have a finite type
  help: is a function applied to itself, or an argument missing or doubled?"],
    );
    check_error(
        "type a = b and b = a",
        &["E0111 the type `a` is an abbreviation of itself
  `a`: this leads back to where it started
  help: a recursive type needs a constructor or a record, as in `type t = T of t list`"],
    );
}

#[test]
fn functions_are_no_data() {
    check_error(
        "let x = sin = cos",
        &["E0205 `=` works on data only, and a function is not data
  `sin`: this is a function, `real -> real`
  note: data types have no function inside: numbers, booleans, strings, and tuples, records, variants, lists and arrays of data"],
    );
    check_error(
        "type t = { f : real -> real }\nlet x (a : t) = norm a",
        &["E0205 `norm` works on data only, and a function is not data
  `a`: this has type `t`, and the field `f` of `t` has the function `real -> real`
  note: data types have no function inside: numbers, booleans, strings, and tuples, records, variants, lists and arrays of data"],
    );
}

#[test]
fn records_and_constructors() {
    check_error(
        "type p = { x : real; y : real; z : real }\nlet a = { x = 1.0 }",
        &["E0211 a value of the record `p` needs all its fields: `y`, `z` missing
  `{ x = 1.0 }`: 2 fields are missing here"],
    );
    check_error(
        "type t = A of int * int | B\nlet x = A 1\nlet z = B 1",
        &[
            "E0214 the constructor `A` takes 2 arguments, but is given 1
  `A 1`: 1 argument here
  help: the arguments stand in parentheses: `A (a, b)`",
            "E0214 the constructor `B` takes no arguments, but is given 1
  `B 1`: 1 argument here",
        ],
    );
    check_error(
        "type g = (int, int) list",
        &["E0112 the type `list` takes 1 type argument, but is given 2
  `(int, int) list`: 2 arguments here"],
    );
}

#[test]
fn recursion() {
    check_error(
        "let rec xs = 1 :: xs",
        &["E0208 `xs` is defined by `let rec`, but is not a function
  `1 :: xs`: this would need its own value before it has one
  help: write it as a function, `let rec xs n = ...`, or drop `rec`"],
    );
    check_error(
        "let g x = let rec h : 'a. 'a -> int = fun y -> 0 in h x",
        &["E0209 `h` is local and may not use itself at several types
  `h`: polymorphic recursion inside an expression
  help: move `h` to the top level; its type may stay as it is"],
    );
}

#[test]
fn missing_cases_have_a_counter_example() {
    let source = |body: &str| format!("type t = Leaf of real | Node of t * t\nlet f x = {body}");
    for (body, missing) in [
        ("match x with Leaf y -> y", "Node (_, _)"),
        ("match x with Node (Node (a, b), _) -> 1 | Leaf _ -> 0", "Node (Leaf _, _)"),
        ("match x with Some (Some 1) -> 1 | None -> 2 | Some None -> 3", "Some (Some 0.0)"),
        ("match x with (true, false) -> 1 | (false, _) -> 2", "(true, true)"),
        ("match x with [] -> 1 | [_] -> 2", "_ :: _ :: _"),
        ("match x with 0 -> 1 | 1 -> 2", "2.0"),
        ("match length x with 0 -> 1 | 1 -> 2", "2"),
        ("match x with [| a |] -> 1 | [||] -> 2", "[| _; _ |]"),
        ("match x with y when y > 0 -> 1", "_"),
    ] {
        let errors = errors_of(&[("Main", &source(body))]);
        let first = errors[0].lines().next().unwrap_or_default();
        assert_eq!(first, format!("E0301 this match does not cover every value: `{missing}` is missing"), "{body}");
    }
    check_error(
        "let (Some z) = None",
        &["E0301 the pattern of this `let` does not match every value: not `None`
  `Some z`: not every value is covered
  help: use `match` with a case for every value"],
    );
}

#[test]
fn redundant_cases_are_warned_of() {
    for (source, places) in [
        ("let f x = match x with (1 | 2) -> 0 | 1 -> 3 | _ -> 4 | 5 -> 6", vec!["1", "5"]),
        ("let f x = match x with (true, _) -> 1 | (_, true) -> 2 | (false, false) -> 3 | _ -> 4", vec!["_"]),
        ("let f x = match x with y when y > 0 -> 1 | y -> 2", vec![]),
    ] {
        let loaded = load(&[("Main", source)]);
        let warnings = loaded.result.unwrap().warnings;
        let found: Vec<&str> = warnings.iter().filter_map(|w| loaded.map.text(w.span())).collect();
        assert_eq!(found, places, "{source}");
        assert!(warnings.iter().all(|w| w.is_warning() && w.code() == "E0302"));
    }
}

#[test]
fn or_patterns_bind_the_same() {
    check_error(
        "let g x = match x with Some y | None -> 1",
        &["E0303 `y` must be bound on every side of `|`
  `y`: bound here
  `None`: but not here"],
    );
    check_error(
        "let f (x, x) = x",
        &["E0110 the variable `x` stands here twice
  `x`: the second time
  `x`: the first time"],
    );
}

#[test]
fn derivative_rules() {
    check_error(
        "let mul (x : real) (y : real) : real = x * y\nderivative mul x y dz = y * dz",
        &["E0201 expected `real * real`, found `real`
  `y * dz`: this has type `real`
  `y`: it has type `real` because of this
  note: a rule of `mul` must have the type `real -> real -> real -> real * real`"],
    );
    check_error(
        "let square (x : real) : real = x * x\ntangent square x = 1.0",
        &["E0512 this rule of `square` has 1 parameter
  `square`: `square` has type `real -> real`
  note: `tangent square` takes the function's parameters and then a tangent for each
  help: `square` takes 1 parameter, so its rule takes 2"],
    );
    check_error(
        "let square (x : real) : real = x * x\nderivative sqare x dy = 2.0",
        &["E0511 there is no function `sqare` in this file before this rule
  `sqare`: a rule follows the function that it is about
  help: did you mean `square`?"],
    );
}

#[test]
fn data_is_closed() {
    check_error(
        "data d : 'a list from \"x.json\"",
        &["E0216 the data `d` is read from a file, so its type must be complete and have no function inside
  `'a`: this is `'a list`"],
    );
}

#[test]
fn several_independent_errors_and_no_cascades() {
    let errors = errors_of(&[(
        "Main",
        "let a = lenght [| 1.0 |]
         let b = a + 1
         let c = \"x\" + 1
         let d = c * 2.0
         let e = sqrt \"y\"",
    )]);
    let codes: Vec<&str> = errors.iter().map(|e| &e[..5]).collect();
    assert_eq!(codes, ["E0101", "E0206", "E0201"]);
}

#[test]
fn types_that_explode_are_refused() {
    let mut source = String::from("let p0 x = (x, x)\n");
    for i in 1..30 {
        source.push_str(&format!("let p{i} x = p{} (p{} x)\n", i - 1, i - 1));
    }
    let errors = errors_of(&[("Main", &source)]);
    assert!(errors[0].starts_with("E0215"), "{}", errors[0]);
    let nested = format!("let f x = {} a", "let a = (x, x) in ".to_string() + &"let a = (a, a) in ".repeat(60));
    let errors = errors_of(&[("Main", &nested)]);
    assert!(errors[0].starts_with("E0215"), "{}", errors[0]);
}

#[test]
fn numerals_fit_or_are_refused() {
    check_error(
        "let x = 9223372036854775808",
        &["E0217 `9223372036854775808` does not fit into an `int`, which has 64 bits
  `9223372036854775808`: too large
  help: write `9223372036854775808.0` if a `real` is meant"],
    );
    common::check("let x = -9223372036854775808", &["x : int"]);
}
