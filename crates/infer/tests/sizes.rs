//! Array sizes: what is related, what is refused, what is checked when the program runs.

mod common;
use common::{accept, body, check, check_error};
use gradus_core::{Prim, Term, TermKind};

fn checks(term: &Term) -> usize {
    let mut count = usize::from(matches!(&*term.kind, TermKind::Prim { prim: Prim::CheckSize, .. }));
    gradus_core::traverse::for_each_child(term, &mut |child| count += checks(child));
    count
}

#[test]
fn sizes_go_through_functions() {
    check(
        "let f a = build (length a) (fun i -> a.(i) * 2.0)
         let g a b = dot a b
         let three = build 3 (fun i -> real i)
         let kept = map (fun x -> x + 1.0) [| 1.0; 2.0 |]
         let both = zip [| 1; 2 |] [| \"a\"; \"b\" |]
         let turned = transpose [| [| 1; 2; 3 |]; [| 4; 5; 6 |] |]
         let named a = let n = length a in [| for i < n -> a.(i) + 1.0 |]
         let mean_of (a : real[n]) = sum a / real n
         let same (a : real[n]) (b : real[n]) : real[n] = map2 ( + ) a b
         let some a = filter (fun x -> x > 0.0) a
         let made n = build n (fun i -> i)",
        &[
            "f : real[n] -> real[n]",
            "g : real[n] -> real[n] -> real",
            "three : real[3]",
            "kept : real[2]",
            "both : (int * string)[2]",
            "turned : int[3][2]",
            "named : real[n] -> real[n]",
            "mean_of : real[n] -> real",
            "same : real[n] -> real[n] -> real[n]",
            "some : real[] -> real[]",
            "made : int -> int[]",
        ],
    );
}

#[test]
fn known_sizes_that_differ_are_refused() {
    check_error(
        "let d = dot [| 1.0; 2.0 |] [| 1.0; 2.0; 3.0 |]",
        &["E0401 array sizes differ: 3 here, but 2 is needed
  `[| 1.0; 2.0; 3.0 |]`: this has type `real[3]`
  `dot`: argument 2 of `dot` has type `real[2]`"],
    );
    check_error(
        "let m : real[1][3] = [| [| 1.0; 2.0; 3.0 |] |]
let v = [| 1.0; 2.0 |]
let w = map (fun row -> dot row v) m",
        &["E0401 array sizes differ: 2 here, but 3 is needed
  `v`: this has type `real[2]`
  `dot`: argument 2 of `dot` has type `real[3]`"],
    );
}

#[test]
fn rows_of_an_array_have_one_size() {
    check_error(
        "let m = [| [| 1.0; 2.0 |]; [| 3.0 |] |]",
        &["E0401 array sizes differ: 1 here, but 2 is needed
  `[| 3.0 |]`: this has type `real[1]`
  `[| 1.0; 2.0 |]`: the first element has type `real[2]`, and all must be the same"],
    );
}

#[test]
fn size_variables_of_a_function_are_different_sizes() {
    check_error(
        "let f (a : real[n]) (b : real[m]) = dot a b",
        &["E0401 array sizes differ: m here, but n is needed
  `b`: this has type `real[m]`
  `dot`: argument 2 of `dot` has type `real[n]`
  help: a size variable stands for any size that the caller chooses; write `[]` for a size that is checked when the program runs"],
    );
}

#[test]
fn values_of_several_sizes_may_meet() {
    check(
        "let branches c = if c then [| 1.0 |] else [| 1.0; 2.0 |]
         let listed = [ [| 1.0 |]; [| 1.0; 2.0 |] ]
         let padded a = if length a = 0 then [| 0.0 |] else a
         let grown = fold (fun state x -> concat state [| x |]) [||] [| 1.0; 2.0 |]
         let filled = ifold 3 (fun i acc -> if length acc = 0 then [| 1.0; 2.0 |] else map2 ( + ) acc [| 1.0; 2.0 |]) [||]
         let rec last a = if length a = 1 then a.(0) else last (slice 1 (length a) a)
         let used = (last [| 1.0; 2.0 |], last [| 1.0; 2.0; 3.0 |])
         let rec one a = if length a = 1 then a.(0) else one [| 1.0 |]
         let also = one [| 1.0; 2.0; 3.0 |]
         let rec marked (a : real[n]) : real = if n = 1 then a.(0) else marked (slice 1 n a)
         let third = marked [| 1.0; 2.0; 3.0 |]",
        &[
            "branches : bool -> real[]",
            "listed : real[] list",
            "padded : real[n] -> real[]",
            "grown : real[]",
            "filled : real[]",
            "last : 'a[] -> 'a",
            "used : real * real",
            "one : real[] -> real",
            "also : real",
            "marked : real[n] -> real",
            "third : real",
        ],
    );
}

#[test]
fn an_unknown_size_is_checked_where_it_meets_a_known_one() {
    let inferred = accept(&[(
        "Main",
        "let f (a : real[]) = dot a [| 1.0; 2.0 |]
         let g (a : real[]) = dot [| 1.0; 2.0 |] a
         let known = dot [| 1.0 |] [| 2.0 |]
         let annotated (a : real[]) : real[3] = a
         let returned (a : real[n]) (b : real[]) : real[n] = b
         let entered (a : real[n]) (b : real[n]) = a.(0) + b.(0)
         let lone (a : real[n]) = a.(0)
         let rows (m : real[n][k]) (x : real[k]) = x.(0)",
    )]);
    let count = |name: &str| checks(body(&inferred.program, name));
    assert_eq!(count("f"), 1);
    assert_eq!(count("g"), 1);
    assert_eq!(count("known"), 0);
    assert_eq!(count("annotated"), 1);
    assert_eq!(count("returned"), 1);
    assert_eq!(count("entered"), 1);
    assert_eq!(count("lone"), 0);
    assert_eq!(count("rows"), 1);
}
