//! How files are read: the items of the top level and where they begin.

mod common;

#[track_caller]
fn check(text: &str, expected: &str) {
    let expected: String = expected.lines().map(|line| line.trim().to_string() + "\n").collect();
    assert_eq!(common::read_module(text), expected.trim_start_matches('\n'), "{text}");
}

#[test]
fn every_item() {
    check(
        r#"
import Optim
open Optim.Adam
type params = { slope : real; offset : real; }
type 'a tree = Leaf of 'a | Node of 'a tree * 'a tree and ('a, 'b) pair = | Pair of ('a * 'b) and t = M.u[3]
data points : (real * real)[] from "points.csv"
let x = 1
let rec f x = g x and g y = f y
let size : 'a 'b. ('a, 'b) pair -> int = fun _ -> 0
derivative f x dy = dy
tangent f (x, y) dx = dx
show f x
check f x = x
plot points
plot map f points to "out.svg"
"#,
        r#"(import Optim)
        (open Optim.Adam)
        (type (params (record slope:real offset:real)))
        (type ('a tree (Leaf 'a) (Node (tree 'a) (tree 'a))) ('a 'b pair (Pair (* 'a 'b))) (t (array 3 M.u)))
        (data points (array ? (* real real)) "points.csv")
        (let (x 1))
        (let rec (f x (g x)) (g y (f y)))
        (let (size :'a 'b (-> (pair 'a 'b) int) (fun _ 0)))
        (derivative f x dy dy)
        (tangent f (, x y) dx dx)
        (show (f x))
        (check (= (f x) x))
        (plot points)
        (plot (map f points) "out.svg")"#,
    );
}

#[test]
fn words_of_the_top_level_are_names_elsewhere() {
    check(
        "let data = 3\nlet show = data + data\nlet check plot tangent derivative import from to = from to",
        "(let (data 3))
         (let (show (+ data data)))
         (let (check plot tangent derivative import from to (from to)))",
    );
    check("let f data = data\n  show data", "(let (f data (data show data)))");
    check("let f data =\ndata + 1\nshow f 2", "(let (f data (+ data 1)))\n(show (f 2))");
    check("let f show =\nshow - 1\nshow -1", "(let (f show (- show 1)))\n(show (- 1))");
    check("plot f (to \"x\") to \"y\"", "(plot (f (to \"x\")) \"y\")");
}

#[test]
fn items_need_no_line_of_their_own() {
    check("let a = 1 let b = 2 type t = int let c = 3", "(let (a 1))\n(let (b 2))\n(type (t int))\n(let (c 3))");
    check("  let a = 1\n  show a\n  check a = 1", "(let (a 1))\n(show a)\n(check (= a 1))");
    check("let f x =\nlet y = x in\nlet z = y in\nz\nlet g = 1", "(let (f x (let (y x) (let (z y) z))))\n(let (g 1))");
}

#[test]
fn nothing_at_all() {
    check("", "");
    check("  \n\t (* only a comment *)\n", "");
}

#[test]
fn reserved_words_are_few() {
    for word in ["let", "in", "match", "mod", "for", "or", "return", "elif", "with", "and", "while"] {
        assert!(gradus_syntax::is_reserved(word), "{word}");
        let parsed = gradus_syntax::parse_module(gradus_source::FileId(0), &format!("let {word} = 1"));
        assert!(!parsed.errors.is_empty(), "{word}");
    }
    for word in ["data", "show", "check", "plot", "derivative", "tangent", "import", "from", "to", "not", "val", "x"] {
        assert!(!gradus_syntax::is_reserved(word), "{word}");
        check(&format!("let {word} = {word}"), &format!("(let ({word} {word}))"));
    }
}

#[test]
fn a_prompt_can_tell_that_more_is_to_come() {
    let incomplete = |text: &str| gradus_syntax::parse_module(gradus_source::FileId(0), text).is_incomplete();
    for text in
        ["let f x =", "show (1 +", "show [1; 2", "show let x = 1", "show if a then b", "(* so", "show f (fun x ->"]
    {
        assert!(incomplete(text), "{text}");
    }
    for text in ["let f x = 1", "show (1 + ]", "show 1 +\nlet x = 2", "1 + )", ""] {
        assert!(!incomplete(text), "{text}");
    }
}
