//! Places of arrays that are not there: loops that check them before they run, at their ends or under conditions, fail as if each iteration did.

mod support;

use gradus_native::cores::{Plan, LEAST_WORK};
use gradus_native::flow::Failure;
use gradus_native::{lower, Leaf, Native, RunError};
use std::path::Path;
use support::{entry, natives, program};

/// The function, called so, fails at the text of its place.
fn fails_at(native: &Native, entry: usize, text: &str, args: &[Leaf], place: &str) {
    match native.call(entry, args) {
        Err(RunError::Failed(site)) => {
            assert_eq!(site.failure, Failure::Index);
            assert_eq!(&text[site.span.start as usize..site.span.end as usize], place, "{args:?}");
        }
        other => panic!("{args:?}: {other:?}"),
    }
}

#[test]
fn neighbours_beyond_the_end_fail() {
    let text =
        "let f (n : int) (a : real[]) (b : real[]) : real = ifold n (fun i s -> 0.5 * s + a.(i + 2) * b.(i)) 0.0\n\
                let g (n : int) (a : real[]) (b : real[]) : real[] = grad (fun a -> f n a b) a";
    let reals = |count: usize| Leaf::reals(vec![2.0; count]);
    for native in natives(text, &["f", "g"]) {
        let (next, own) = ("a.(i + 2)", "b.(i)");
        let short =
            [(5, 6, 5, next), (5, 7, 4, own), (5, 6, 4, next), (1, 0, 0, next), (1, 2, 0, next), (1, 3, 0, own)];
        for (n, a, b, place) in short.into_iter().chain([(i64::MAX, 3, 5, next)]) {
            for entry in [0, 1] {
                fails_at(&native, entry, text, &[Leaf::Int(n), reals(a), reals(b)], place);
            }
        }
        for (n, a) in [(0, 0), (-3, 0), (0, 1), (i64::MIN, 1)] {
            assert_eq!(native.call(0, &[Leaf::Int(n), reals(a), reals(2)]), Ok(vec![Leaf::Real(0.0)]));
        }
        assert_eq!(native.call(0, &[Leaf::Int(2), reals(4), reals(2)]), Ok(vec![Leaf::Real(6.0)]));
        assert_eq!(native.call(1, &[Leaf::Int(2), reals(4), reals(2)]), Ok(vec![Leaf::reals([0.0, 0.0, 1.0, 2.0])]));
    }
}

/// Loops in lanes look at their ends first. What fails is what the first iteration meets that fails.
#[test]
fn the_first_place_that_is_missing_fails() {
    let text = "let f (n : int) (a : real[]) (b : real[]) : real[] = build n (fun i -> 2.0 * a.(i + 1) + b.(i - 1 + 1) * a.(i + 2))";
    let reals = |count: usize| Leaf::reals(vec![2.0; count]);
    for native in natives(text, &["f"]) {
        let cases = [
            (30, 30, 40, "a.(i + 2)"),
            (30, 40, 20, "b.(i - 1 + 1)"),
            (30, 20, 20, "a.(i + 2)"),
            (30, 1, 9, "a.(i + 1)"),
        ];
        for (n, a, b, place) in cases {
            fails_at(&native, 0, text, &[Leaf::Int(n), reals(a), reals(b)], place);
        }
        assert_eq!(native.call(0, &[Leaf::Int(30), reals(32), reals(30)]), Ok(vec![Leaf::reals(vec![8.0; 30])]));
        assert_eq!(native.call(0, &[Leaf::Int(0), reals(0), reals(0)]), Ok(vec![Leaf::reals(Vec::new())]));
    }
}

/// The ends of a loop do not tell of places that do not move along with its index.
#[test]
fn a_place_that_is_missing_in_the_middle_fails() {
    let text = "let f (n : int) (a : real[]) : real[] = build n (fun i -> 2.0 * a.((i - 10) * (i - 10) - 4))";
    let numbers: Vec<f64> = (0..100).map(f64::from).collect();
    for native in natives(text, &["f"]) {
        let place = "a.((i - 10) * (i - 10) - 4)";
        fails_at(&native, 0, text, &[Leaf::Int(21), Leaf::reals(numbers.clone())], place);
        let found = native.call(0, &[Leaf::Int(9), Leaf::reals(numbers.clone())]);
        let expected = (0..9).map(|i| 2.0 * f64::from((i - 10) * (i - 10) - 4)).collect::<Vec<_>>();
        assert_eq!(found, Ok(vec![Leaf::reals(expected)]));
    }
}

#[test]
fn places_from_an_unknown_one_on_are_all_there() {
    let text = "let f (n : int) (k : int) (a : real[]) : real[] = build n (fun i -> 2.0 * a.(i + k))";
    let numbers: Vec<f64> = (0..40).map(f64::from).collect();
    let args = |n: i64, k: i64| [Leaf::Int(n), Leaf::Int(k), Leaf::reals(numbers.clone())];
    for native in natives(text, &["f"]) {
        let missing = [(30, 11), (30, -1), (41, 0), (30, i64::MAX - 7), (30, i64::MIN), (20, -19), (1000, 3)];
        for (n, k) in missing {
            fails_at(&native, 0, text, &args(n, k), "a.(i + k)");
        }
        let expected = (10..40).map(|i| 2.0 * f64::from(i)).collect::<Vec<_>>();
        assert_eq!(native.call(0, &args(30, 10)), Ok(vec![Leaf::reals(expected)]));
        assert_eq!(native.call(0, &args(0, -9)), Ok(vec![Leaf::reals(Vec::new())]));
    }
}

/// A loop that asks the same in all iterations checks only what the answer lets it read.
#[test]
fn what_the_answer_leaves_out_may_be_missing() {
    let text = "let f (yes : bool) (k : int) (a : real[]) (b : real[]) : real[] =\n\
                  build 30 (fun i -> if yes then 2.0 * a.(i + k) else if i > 3 then b.(i) else 1.0)";
    let args = |yes: bool, k: i64, a: usize, b: usize| {
        [Leaf::Bool(yes), Leaf::Int(k), Leaf::reals(vec![4.0; a]), Leaf::reals(vec![3.0; b])]
    };
    for native in natives(text, &["f"]) {
        fails_at(&native, 0, text, &args(true, 1, 30, 30), "a.(i + k)");
        fails_at(&native, 0, text, &args(true, -1, 30, 30), "a.(i + k)");
        fails_at(&native, 0, text, &args(false, 0, 30, 29), "b.(i)");
        fails_at(&native, 0, text, &args(false, 0, 30, 4), "b.(i)");
        assert_eq!(native.call(0, &args(true, 5, 35, 0)), Ok(vec![Leaf::reals(vec![8.0; 30])]));
        let expected = (0..30).map(|i| if i > 3 { 3.0 } else { 1.0 }).collect::<Vec<_>>();
        assert_eq!(native.call(0, &args(false, i64::MAX, 0, 30)), Ok(vec![Leaf::reals(expected)]));
    }
}

#[test]
fn of_several_arrays_the_shortest_fails() {
    let text = "let f (n : int) (a : real[]) (b : real[]) : real = ifold n (fun i s -> 0.5 * s + a.(i) * b.(i)) 0.0\n\
                let g (n : int) (a : real[]) (b : real[]) : real[] = grad (fun a -> f n a b) a";
    let reals = |count: usize| Leaf::reals(vec![2.0; count]);
    for native in natives(text, &["f", "g"]) {
        for (n, a, b, place) in [(5, 5, 4, "b.(i)"), (5, 4, 5, "a.(i)"), (5, 4, 4, "a.(i)"), (1, 0, 0, "a.(i)")] {
            for entry in [0, 1] {
                fails_at(&native, entry, text, &[Leaf::Int(n), reals(a), reals(b)], place);
            }
        }
        for n in [0, -3] {
            assert_eq!(native.call(0, &[Leaf::Int(n), reals(0), reals(2)]), Ok(vec![Leaf::Real(0.0)]));
        }
        assert_eq!(native.call(0, &[Leaf::Int(2), reals(3), reals(2)]), Ok(vec![Leaf::Real(6.0)]));
        assert_eq!(native.call(1, &[Leaf::Int(2), reals(3), reals(2)]), Ok(vec![Leaf::reals([1.0, 2.0, 0.0])]));
    }
}

#[test]
fn nothing_outside_an_array_is_touched() {
    let text = "let there (x : real[]) (n : int) : real =\n\
                \x20 sum (build 3 (fun i -> sum (build n (fun j -> if j < length x then real (i + 1) * x.(j) else 0.0))))\n\
                let stepping (x : real[]) (n : int) : real =\n\
                \x20 sum (build 3 (fun i -> sum (build n (fun j -> if 2 * j < length x then real (i + 1) * x.(2 * j) else 0.0))))\n\
                let far (x : real[]) (n : int) : real = sum (build n (fun i -> sin (real i) * x.(1000000000000)))\n\
                let farther (x : real[]) (n : int) : real =\n\
                \x20 sum (build 5 (fun k -> sum (build n (fun i -> cos (real i) * x.(1000000000000 + k)))))\n\
                let by_there (x : real[]) (n : int) : real[] = grad (fun x -> there x n) x\n\
                let by_stepping (x : real[]) (n : int) : real[] = grad (fun x -> stepping x n) x\n\
                let by_far (x : real[]) (n : int) : real[] = grad (fun x -> far x n) x\n\
                let by_farther (x : real[]) (n : int) : real[] = grad (fun x -> farther x n) x";
    for native in natives(text, &["by_there", "by_stepping", "by_far", "by_farther"]) {
        let gradient = |entry: usize, n: i64| native.call(entry, &[Leaf::reals([1.0, 2.0, 3.0]), Leaf::Int(n)]);
        assert_eq!(gradient(0, 20_000_000), Ok(vec![Leaf::reals([6.0, 6.0, 6.0])]));
        assert_eq!(gradient(1, 20_000_000), Ok(vec![Leaf::reals([6.0, 0.0, 6.0])]));
        for entry in [2, 3] {
            assert_eq!(gradient(entry, 0), Ok(vec![Leaf::reals([0.0; 3])]));
            let failed = gradient(entry, 1);
            assert!(matches!(&failed, Err(RunError::Failed(site)) if site.failure == Failure::Index), "{failed:?}");
        }
    }
}

/// What is known of a place is part of the address, and what places have in common is computed once.
#[test]
fn known_places_are_not_computed() {
    let text = "let f (a : real[][]) : real = a.(3, 1) * a.(3, 2) + a.(3, 6) * a.(0, 5) + a.(1, 0)";
    let program = program("test.gr", text, Path::new("."));
    let (module, _, _) = lower(&program, &[entry(&program, "f")]).expect("is compiled");
    let written = gradus_native::cranelift::text(&module, &[], &Plan::new(&module, LEAST_WORK)).expect("is written");
    assert_eq!(written.matches("imul").count(), 1, "{written}");
    for offset in ["+8\n", "+16\n", "+48\n", "+40\n"] {
        let reads = written.split_inclusive('\n').filter(|line| line.contains("load.f64") && line.ends_with(offset));
        assert_eq!(reads.count(), 1, "{written}");
    }
    let rows = (0..4).flat_map(|i| (0..7).map(move |j| f64::from(10 * i + j)));
    for native in natives(text, &["f"]) {
        let matrix = Leaf::Reals { dims: vec![4, 7], data: rows.clone().collect() };
        assert_eq!(native.call(0, &[matrix]), Ok(vec![Leaf::Real(31.0 * 32.0 + 36.0 * 5.0 + 10.0)]));
    }
}
