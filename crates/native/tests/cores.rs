//! Loops on all cores: the same bits on any number of threads, with the failures, limits and interrupts of one thread, on every backend.

mod support;

use gradus_native::cores::Plan;
use gradus_native::flow::Failure;
use gradus_native::{compile, lower, Backend, Leaf, Limits, Native, Options, RunError};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use support::{entry, program};

/// Little enough that the small loops of these tests are cut into chunks.
const LITTLE: f64 = 20.0;

/// The functions on each backend; `least_work`: see [`Options`].
fn natives(text: &str, names: &[&str], least_work: f64) -> Vec<Native> {
    let program = program("test.gr", text, Path::new("."));
    let entries: Vec<_> = names.iter().map(|n| entry(&program, n)).collect();
    let native = |backend: Backend| {
        let options = Options { backend, least_work, ..Options::default() };
        match compile(&program, &entries, &options) {
            Ok(native) => native,
            Err(error) => panic!("{backend:?}: {:?}", error.diagnostic()),
        }
    };
    Backend::ALL.map(native).into()
}

fn on(threads: usize) -> Limits {
    Limits { threads: Some(threads), ..Limits::default() }
}

/// Results with their reals as bits, so that the zeros differ and NaN is itself.
fn bits(leaves: &[Leaf]) -> Vec<String> {
    let of = |leaf: &Leaf| match leaf {
        Leaf::Real(x) => format!("{:x}", x.to_bits()),
        Leaf::Reals { dims, data } => format!("{dims:?} {:x?}", data.iter().map(|x| x.to_bits()).collect::<Vec<_>>()),
        other => format!("{other:?}"),
    };
    leaves.iter().map(of).collect()
}

fn reals(leaves: &[Leaf]) -> Vec<f64> {
    let of = |leaf: &Leaf| match leaf {
        Leaf::Real(x) => vec![*x],
        Leaf::Reals { data, .. } => data.clone(),
        Leaf::Int(i) => vec![*i as f64],
        Leaf::Ints { data, .. } => data.iter().map(|i| *i as f64).collect(),
        Leaf::Bools { data, .. } => data.iter().map(|b| f64::from(*b)).collect(),
        other => panic!("{other:?}"),
    };
    leaves.iter().flat_map(of).collect()
}

/// Numbers without a pattern, between -1 and 1.
fn numbers(count: usize) -> Vec<f64> {
    (0..count).map(|i| (i as f64 * 0.7391 + 0.31).sin()).collect()
}

fn ints(data: Vec<i64>) -> Leaf {
    Leaf::Ints { dims: vec![data.len()], data }
}

const TEXT: &str = "\
let total (xs : real[]) : real = sum (map (fun x -> x * exp x) xs)
let slopes (xs : real[]) : real[] = grad total xs
let curve (xs : real[]) : real[] = map (fun x -> sin x + 2.0) xs
let whole (n : int) : int[] = build n (fun i -> i * i)
let signs (xs : real[]) : bool[] = map (fun x -> x > 0.0) xs
let table (n : int) (m : int) : real[][] = build n (fun i -> build m (fun j -> real i / real (j + 1)))
let cube (n : int) : real[][][] = build n (fun i -> build 3 (fun j -> build 2 (fun k -> real (100 * i + 10 * j + k))))
let product (a : real[][]) (x : real[]) : real[] = map (fun row -> sum (build (length x) (fun j -> row.(j) * x.(j)))) a
let energy (a : real[][]) (x : real[]) : real = sum (map (fun y -> y * y) (product a x))
let forces (a : real[][]) (x : real[]) : real[][] * real[] = grad (fun (a, x) -> energy a x) (a, x)
let gathered (xs : real[]) (at : int[]) : real = sum (map (fun k -> xs.(k) * xs.(k)) at)
let scattered (xs : real[]) (at : int[]) : real[] = grad (fun xs -> gathered xs at) xs
let rec power (x : real) (n : int) : real = if n = 0 then 1.0 else x * power x (n - 1)
let powers (xs : real[]) : real = sum (map (fun x -> power x 5) xs)
let derived (xs : real[]) : real[] = grad powers xs
let rec tower (x : real) (n : int) : real = if n = 0 then x else sin (tower x (n - 1))
let towers (xs : real[]) : real = sum (map (fun x -> tower x 5) xs)
let traced (xs : real[]) : real[] = grad towers xs
let steps (xs : real[]) : real = ifold 5 (fun t s -> s * 0.5 + sum (map (fun x -> tanh (x * s)) xs)) 1.0
let learned (xs : real[]) : real[] = grad steps xs
let mixed (xs : real[]) (at : int[]) : real =
  ifold 3 (fun t s -> s * 0.25 + sum (map (fun k ->
    let x = xs.(k) in
    let y = sin x * xs.((k + t) mod length xs) + exp (0.0 - x * x) / (2.0 + cos (0.001 * s * x)) in
    let z = if y > 0.3 then log (1.0 + y * y) else tanh (y - x) in
    x * y * z + sqrt (1.0 + z * z) / (1.0 + x * x)) at)) 1.0
let remixed (xs : real[]) (at : int[]) : real[] = grad (fun ys -> mixed ys at) xs
let top (xs : real[]) : real = max xs
let least (xs : real[]) : real = min (map (fun x -> x * x - x) xs)
let tally (at : int[]) : int = reduce (fun x y -> x + y) 7 (map (fun k -> k * k) at)
let both (at : int[]) : int * int[] = (ifold (length at) (fun i p -> p * (2 * at.(i) + 1)) 3, map (fun k -> k + 1) at)
let curved (xs : real[]) : real[] = map (fun x -> diff (fun y -> diff (fun z -> z * z * z) y) x) xs
";

const NAMES: [&str; 23] = [
    "total",
    "slopes",
    "curve",
    "whole",
    "signs",
    "table",
    "cube",
    "product",
    "energy",
    "forces",
    "gathered",
    "scattered",
    "powers",
    "derived",
    "traced",
    "steps",
    "learned",
    "mixed",
    "remixed",
    "top",
    "least",
    "tally",
    "both",
];

/// The arguments of each function, and what it gives by its definition; nothing where another test knows.
fn cases() -> Vec<(Vec<Leaf>, Option<Vec<f64>>)> {
    let (n, m) = (301, 17);
    let xs = numbers(n);
    let (a, x) = (numbers(n * m), numbers(m));
    let at: Vec<i64> = (0..500).map(|i| i * i % n as i64).collect();
    let each = |f: &dyn Fn(f64) -> f64| Some(xs.iter().map(|x| f(*x)).collect::<Vec<f64>>());
    let sum = |f: &dyn Fn(f64) -> f64| Some(vec![xs.iter().map(|x| f(*x)).sum::<f64>()]);
    let dot = |i: usize| (0..m).map(|j| a[i * m + j] * x[j]).sum::<f64>();
    let product: Vec<f64> = (0..n).map(dot).collect();
    let mut forces: Vec<f64> = (0..n * m).map(|k| 2.0 * product[k / m] * x[k % m]).collect();
    forces.extend((0..m).map(|j| (0..n).map(|i| 2.0 * product[i] * a[i * m + j]).sum::<f64>()));
    let times = |k: usize| at.iter().filter(|at| **at == k as i64).count() as f64;
    let scattered = (0..n).map(|k| 2.0 * xs[k] * times(k)).collect();
    let vector = || Leaf::reals(xs.clone());
    let matrix = || vec![Leaf::matrix(n, m, a.clone()), Leaf::reals(x.clone())];
    let places = || vec![vector(), ints(at.clone())];
    let cells = |k: usize| (100 * (k / 6) + 10 * (k / 2 % 3) + k % 2) as f64;
    vec![
        (vec![vector()], sum(&|x| x * x.exp())),
        (vec![vector()], each(&|x| (1.0 + x) * x.exp())),
        (vec![vector()], each(&|x| x.sin() + 2.0)),
        (vec![Leaf::Int(200)], Some((0..200).map(|i| f64::from(i * i)).collect())),
        (vec![vector()], each(&|x| f64::from(u8::from(x > 0.0)))),
        (vec![Leaf::Int(90), Leaf::Int(7)], Some((0..630).map(|k| (k / 7) as f64 / (k % 7 + 1) as f64).collect())),
        (vec![Leaf::Int(50)], Some((0..300).map(cells).collect())),
        (matrix(), Some(product.clone())),
        (matrix(), Some(vec![product.iter().map(|y| y * y).sum()])),
        (matrix(), Some(forces)),
        (places(), Some(vec![at.iter().map(|k| xs[*k as usize] * xs[*k as usize]).sum()])),
        (places(), Some(scattered)),
        (vec![vector()], sum(&|x| x.powi(5))),
        (vec![vector()], each(&|x| 5.0 * x.powi(4))),
        (vec![vector()], each(&|x| (0..5).fold((x, 1.0), |(y, slope), _| (y.sin(), y.cos() * slope)).1)),
        (vec![vector()], None),
        (vec![vector()], None),
        (places(), None),
        (places(), None),
        (vec![vector()], Some(vec![xs.iter().copied().fold(f64::NEG_INFINITY, f64::max)])),
        (vec![vector()], Some(vec![xs.iter().map(|x| x * x - x).fold(f64::INFINITY, f64::min)])),
        (vec![ints(at.clone())], Some(vec![7.0 + at.iter().map(|k| (k * k) as f64).sum::<f64>()])),
        (vec![ints(at.clone())], None),
    ]
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    let whole = natives(TEXT, &NAMES, f64::INFINITY);
    for (native, whole) in natives(TEXT, &NAMES, LITTLE).iter().zip(&whole) {
        for (at, (arguments, expected)) in cases().into_iter().enumerate() {
            let name = NAMES[at];
            let one = native.call_within(at, &arguments, &on(1)).expect(name);
            for threads in [2, 3, 7] {
                for _ in 0..5 {
                    let found = native.call_within(at, &arguments, &on(threads)).expect(name);
                    assert_eq!(bits(&found), bits(&one), "{name} on {threads} threads");
                }
            }
            let uncut = whole.call(at, &arguments).expect(name);
            let expected = expected.unwrap_or_else(|| reals(&uncut));
            for found in [reals(&one), reals(&uncut)] {
                assert_eq!(found.len(), expected.len(), "{name}");
                for (x, y) in found.iter().zip(&expected) {
                    assert!((x - y).abs() <= 1e-12 * (1.0 + y.abs()), "{name}: {x} for {y}");
                }
            }
        }
    }
}

#[test]
fn products_that_many_iterations_add_to_one_matrix() {
    // All numbers are whole, so every sum is exact.
    let text = "let scaled (s : real) (b : real[][]) : real[][] = map (fun r -> map (fun x -> s * x) r) b\n\
                let f (a : real[][]) (b : real[][]) : real =\n\
                \x20 sum (build 400 (fun k -> sum (map (fun r -> sum (map square r)) (matmul a (scaled (1.0 + real k) b)))))\n\
                let g (a : real[][]) (b : real[][]) : real[][] = grad (fun a -> f a b) a";
    let (n, m) = (12, 9);
    let (left, right) = (|i: usize, l: usize| ((i + l) % 3) as f64, |l: usize, j: usize| ((l * j) % 4) as f64);
    let matrix = |at: &dyn Fn(usize, usize) -> f64| (0..n * m).map(|k| at(k / m, k % m)).collect::<Vec<f64>>();
    let arguments = [
        Leaf::matrix(n, m, matrix(&left)),
        Leaf::matrix(m, m, (0..m * m).map(|k| right(k / m, k % m)).collect::<Vec<_>>()),
    ];
    let squares: f64 = (1..=400).map(|k| f64::from(k * k)).sum();
    let product = |i: usize, j: usize| (0..m).map(|l| left(i, l) * right(l, j)).sum::<f64>();
    let expected = matrix(&|i, l| 2.0 * squares * (0..m).map(|j| product(i, j) * right(l, j)).sum::<f64>());
    for native in natives(text, &["g"], LITTLE) {
        for threads in [1, 2, 7] {
            for _ in 0..5 {
                assert_eq!(reals(&native.call_within(0, &arguments, &on(threads)).expect("runs")), expected);
            }
        }
    }
}

#[test]
fn which_loops_are_cut() {
    let program = program("test.gr", TEXT, Path::new("."));
    let cut = |name: &str| {
        let (module, _, _) = lower(&program, &[entry(&program, name)]).expect("lowers");
        Plan::new(&module, LITTLE).loops()
    };
    for name in NAMES.iter().chain(&["curved"]).filter(|name| **name != "traced") {
        assert!(cut(name) > 0, "{name}");
    }
    assert_eq!(cut("power"), 0);
    // The way back through recursion has cells, unless its adjoints are known on the way there.
    assert_eq!(cut("traced"), 0);
}

#[test]
fn sums_are_cut_by_their_length_alone() {
    // The sum of an alternating series, added up in chunks, differs in its last bits from one added up in order, on one thread too.
    let text = "let f (xs : real[]) : real = ifold 1 (fun i s -> s + sum xs) 0.0";
    let xs = vec![Leaf::reals((0..100_000).map(|i| (1.0 / (i as f64 + 1.0)).powi(1 + i % 2)).collect::<Vec<_>>())];
    for (cut, whole) in natives(text, &["f"], 1000.0).iter().zip(natives(text, &["f"], f64::INFINITY)) {
        let one = bits(&cut.call_within(0, &xs, &on(1)).expect("runs"));
        assert_eq!(bits(&cut.call_within(0, &xs, &on(2)).expect("runs")), one);
        assert_ne!(bits(&whole.call(0, &xs).expect("runs")), one);
    }
}

#[test]
fn extremes_of_numbers_that_are_none() {
    let text = "let f (xs : real[]) : real * real = (max xs, min xs)";
    for native in natives(text, &["f"], LITTLE) {
        for threads in [1, 2, 3] {
            let mut xs = numbers(200);
            let call = |xs: &[f64]| native.call_within(0, &[Leaf::reals(xs)], &on(threads)).expect("runs");
            (xs[20], xs[150]) = (f64::INFINITY, f64::NEG_INFINITY);
            assert_eq!(reals(&call(&xs)), [f64::INFINITY, f64::NEG_INFINITY]);
            xs[99] = f64::NAN;
            assert!(reals(&call(&xs)).iter().all(|x| x.is_nan()));
            // Of zeros the last one counts, as `if x > y then x else y` says.
            assert_eq!(bits(&call(&[[0.0; 100], [-0.0; 100]].concat())), bits(&[Leaf::Real(-0.0), Leaf::Real(-0.0)]));
            assert_eq!(bits(&call(&[[-0.0; 100], [0.0; 100]].concat())), bits(&[Leaf::Real(0.0), Leaf::Real(0.0)]));
        }
    }
}

#[test]
fn zeros_keep_their_signs() {
    let text = "let f (xs : real[]) : real[] = grad (fun ys -> sum (map (fun y -> 0.0 * y) ys)) xs\n\
                let g (n : int) : real[] = build n (fun i -> 0.0 * (0.0 - real i))";
    for native in natives(text, &["f", "g"], LITTLE) {
        let found = native.call_within(0, &[Leaf::reals(numbers(100))], &on(2)).expect("runs");
        assert_eq!(bits(&found), bits(&[Leaf::reals(vec![0.0; 100])]));
        let mut zeros = vec![-0.0; 100];
        zeros[0] = 0.0;
        let found = native.call_within(1, &[Leaf::Int(100)], &on(2)).expect("runs");
        assert_eq!(bits(&found), bits(&[Leaf::reals(zeros)]));
    }
}

#[test]
fn the_first_failure_counts() {
    let text = "let f (xs : real[]) (at : int[]) : real = sum (map (fun k -> real (10 / (k - 5)) + xs.(k)) at)\n\
                let g (xs : real[]) (at : int[]) : real[] = grad (fun ys -> f ys at) xs\n\
                let rec find (xs : real[]) (k : int) : real = if k < 0 then xs.(k) else 1.0 + find xs (k - 100)\n\
                let h (xs : real[]) (at : int[]) : real = sum (map (fun k -> if k > 90 then find xs k else 0.0) at)";
    for native in natives(text, &["f", "g", "h"], LITTLE) {
        let xs = Leaf::reals(numbers(100));
        // Iterations that fail, and how: a 5 divides by zero, a 100 is outside.
        let cases = [
            (vec![(399, 100)], Failure::Index),
            (vec![(399, 5)], Failure::DivisionByZero),
            (vec![(10, 100), (200, 5), (390, 5)], Failure::Index),
            (vec![(0, 5), (200, 100)], Failure::DivisionByZero),
            (vec![(150, 100), (151, 5), (399, 5)], Failure::Index),
        ];
        for (bad, failure) in cases {
            let mut at: Vec<i64> = (0..400).map(|i| if i % 90 == 5 { 6 } else { i % 90 }).collect();
            bad.iter().for_each(|(i, k)| at[*i] = *k);
            for entry in [0, 1] {
                for threads in [1, 2, 3, 7] {
                    let found = native.call_within(entry, &[xs.clone(), ints(at.clone())], &on(threads));
                    match found {
                        Err(RunError::Failed(site)) => {
                            assert_eq!(site.failure, failure, "{bad:?} on {threads} threads");
                            let place = &text[site.span.start as usize..site.span.end as usize];
                            assert_eq!(place, if failure == Failure::Index { "xs.(k)" } else { "10 / (k - 5)" });
                        }
                        other => panic!("{other:?}"),
                    }
                }
            }
            // The threads are as good as new.
            at.iter_mut().for_each(|k| *k = 7);
            let found = native.call_within(0, &[xs.clone(), ints(at)], &on(2)).expect("runs");
            assert!((reals(&found)[0] - 400.0 * (5.0 + numbers(100)[7])).abs() < 1e-9);
        }
        let deep = ints((0..400).map(|i| if i == 333 { 95 } else { 3 }).collect());
        for threads in [1, 2, 7] {
            let found = native.call_within(2, &[xs.clone(), deep.clone()], &on(threads));
            assert!(matches!(found, Err(RunError::Failed(site)) if site.failure == Failure::Index), "{found:?}");
        }
    }
}

/// A function of an array and a count becomes one loop, gives a result for 100 iterations over so many twos, and with one fewer fails where `place` stands
/// first.
fn is_one_loop(text: &str, twos: usize, result: f64, place: &str) {
    let program = program("test.gr", text, Path::new("."));
    let (module, _, _) = lower(&program, &[entry(&program, "f")]).expect("is compiled");
    assert_eq!(Plan::new(&module, LITTLE).loops(), 1);
    let first = text.find(place).expect("is there");
    for native in natives(text, &["f"], LITTLE) {
        let call = |b: usize| native.call_within(0, &[Leaf::reals(vec![2.0; b]), Leaf::Int(100)], &on(2));
        assert_eq!(reals(&call(twos).expect("runs")), [result]);
        match call(twos - 1) {
            Err(RunError::Failed(site)) => {
                assert_eq!(site.span.start as usize..site.span.end as usize, first..first + place.len())
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn loops_that_are_joined_fail_where_the_first_stood() {
    let text = "let f (b : real[]) (n : int) : real =\n\
                \x20 let t = sum (build n (fun j -> 3.0 * b.(j))) in\n\
                \x20 let u = sum (build n (fun k -> 4.0 * b.(k))) in\n\
                \x20 t + 10.0 * u";
    is_one_loop(text, 100, 600.0 + 8000.0, "b.(j)");
}

#[test]
fn loops_with_sums_of_their_own_are_joined_like_others() {
    let text = "let f (b : real[]) (n : int) : real =\n\
                \x20 let t = sum (build n (fun j -> square (ifold 9 (fun k s -> s + b.(j + k)) 0.0))) in\n\
                \x20 let u = sum (build n (fun j -> 3.0 * ifold 9 (fun k s -> s + b.(j + k)) 0.0)) in\n\
                \x20 t + 10.0 * u";
    is_one_loop(text, 108, 32400.0 + 54000.0, "b.(j + k)");
}

#[test]
fn loops_that_do_the_same_fail_where_they_stand() {
    let text = "let f (a : real[]) (b : real[]) (n : int) : real =\n\
                \x20 let s = sum (build n (fun i -> 3.0 * a.(i))) in\n\
                \x20 let t = sum (build n (fun j -> 3.0 * b.(j))) in\n\
                \x20 let u = sum (build n (fun j -> 4.0 * real j)) in\n\
                \x20 s + 10.0 * t + 100.0 * u";
    let functions = |module| {
        let plan = Plan::new(module, LITTLE);
        let text = gradus_native::cranelift::text(module, &[], &plan).expect("is written");
        (plan.loops(), text.matches("function ").count())
    };
    let program = program("test.gr", text, Path::new("."));
    let (module, _, _) = lower(&program, &[entry(&program, "f")]).expect("is compiled");
    // The first two loops share a function, beside `f` itself.
    assert_eq!(functions(&module), (3, 3));
    for native in natives(text, &["f"], LITTLE) {
        let call = |a: usize, b: usize, threads| {
            let lengths = [vec![1.0; a], vec![2.0; b]].map(Leaf::reals);
            let [a, b] = lengths;
            native.call_within(0, &[a, b, Leaf::Int(100)], &on(threads))
        };
        for threads in [1, 3] {
            assert_eq!(reals(&call(100, 100, threads).expect("runs")), [300.0 + 6000.0 + 1_980_000.0]);
            for (a, b, place) in [(99, 100, "a.(i)"), (100, 99, "b.(j)")] {
                match call(a, b, threads) {
                    Err(RunError::Failed(site)) => {
                        assert_eq!(&text[site.span.start as usize..site.span.end as usize], place)
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }
}

#[test]
fn rows_that_differ_and_rows_that_are_empty() {
    let text = "let f (n : int) : real[][] = build n (fun i -> build (if i = 70 then 2 else 3) (fun j -> 1.0))\n\
                let g (n : int) (m : int) : real[][] = build n (fun i -> build m (fun j -> real j))\n\
                let h (n : int) (m : int) : real[][][] = build n (fun i -> build m (fun j -> build 4 (fun k -> 1.0)))";
    for native in natives(text, &["f", "g", "h"], LITTLE) {
        for threads in [1, 2] {
            let call = |entry: usize, arguments: &[i64]| {
                let arguments: Vec<Leaf> = arguments.iter().map(|n| Leaf::Int(*n)).collect();
                native.call_within(entry, &arguments, &on(threads))
            };
            assert!(matches!(call(0, &[100]), Err(RunError::Failed(site)) if site.failure == Failure::Rows));
            assert_eq!(call(0, &[60]), Ok(vec![Leaf::matrix(60, 3, vec![1.0; 180])]));
            assert_eq!(call(1, &[100, 0]), Ok(vec![Leaf::matrix(100, 0, vec![])]));
            assert_eq!(call(1, &[0, 5]), Ok(vec![Leaf::matrix(0, 0, vec![])]));
            assert_eq!(call(2, &[100, 0]), Ok(vec![Leaf::Reals { dims: vec![100, 0, 0], data: vec![] }]));
        }
    }
}

#[test]
fn limits_hold_for_all_threads_together() {
    let text = "let rec down (n : int) : int = if n = 0 then 0 else 1 + down (n - 1)\n\
                let calls (n : int) : int[] = build n (fun i -> down 99)\n\
                let halves (n : int) (m : int) : real[] = ifold n (fun t a -> map (fun x -> x * 0.5) a) (build m real)\n\
                let held (n : int) : real[] = build n (fun i -> sum (halves (i + 2) 20000))";
    for native in natives(text, &["calls", "held"], LITTLE) {
        for threads in [1, 2, 3] {
            // Of each of 100 iterations 100 calls; of the loop itself at most 100 steps.
            let limits = |steps: u64| Limits { max_steps: Some(steps), ..on(threads) };
            let found = native.call_within(0, &[Leaf::Int(100)], &limits(10_100));
            assert_eq!(found, Ok(vec![ints(vec![99; 100])]));
            let found = native.call_within(0, &[Leaf::Int(100)], &limits(9_999));
            assert!(matches!(found, Err(RunError::Steps { limit: 9_999, .. })), "{found:?}");
            // An array of 160000 bytes, or two of them, on each thread.
            let limits = |bytes: u64| Limits { max_memory: Some(bytes), ..on(threads) };
            let found = native.call_within(1, &[Leaf::Int(50)], &limits(threads as u64 * 500_000));
            assert!(matches!(found.as_deref(), Ok([Leaf::Reals { data, .. }]) if data.len() == 50), "{found:?}");
            let found = native.call_within(1, &[Leaf::Int(50)], &limits(100_000));
            assert!(matches!(found, Err(RunError::Memory { limit: Some(100_000), .. })), "{found:?}");
        }
    }
}

#[test]
fn interrupts_reach_all_threads() {
    let text = "let rec forever (x : real) : real = if x < 0.0 then x else forever (x + 1.0)\n\
                let f (n : int) : real[] = build n (fun i -> forever (real i))";
    for native in natives(text, &["f"], LITTLE) {
        let flag = Arc::new(AtomicBool::new(false));
        let limits = Limits { interrupt: Some(flag.clone()), ..on(3) };
        let other = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(20));
            flag.store(true, Ordering::Relaxed);
        });
        let found = native.call_within(0, &[Leaf::Int(100)], &limits);
        assert!(matches!(found, Err(RunError::Interrupted { .. })), "{found:?}");
        other.join().expect("ends");
    }
}

#[test]
fn deep_recursion_on_every_thread() {
    let text = "let rec count (n : int) : int = if n = 0 then 0 else 1 + count (n - 1)\n\
                let f (n : int) : int[] = build n (fun i -> count 300000)";
    for native in natives(text, &["f"], LITTLE) {
        assert_eq!(native.call_within(0, &[Leaf::Int(20)], &on(3)), Ok(vec![ints(vec![300_000; 20])]));
    }
}

#[test]
fn recurrences_side_by_side_are_the_same_on_any_number_of_threads() {
    let text = "let f (a : real[]) : real[] = map (fun x -> loop 20 (fun z -> 0.5 * (z + x / z)) 1.0) a\n\
                let g (a : real[]) : real[] = grad (fun b -> sum (f b)) a";
    let numbers: Vec<f64> = (0..5000).map(|i| 1.0 + f64::from(i) / 10.0).collect();
    for native in natives(text, &["f", "g"], LITTLE) {
        for (function, expected) in [(0, 0.5), (1, -0.5)] {
            let call = |threads| {
                reals(&native.call_within(function, &[Leaf::reals(numbers.clone())], &on(threads)).expect("runs"))
                    .to_vec()
            };
            let found = call(1);
            let factor = if function == 0 { 1.0 } else { 0.5 };
            let close = |(y, x): (&f64, &f64)| (y - factor * x.powf(expected)).abs() <= 1e-12 * y.abs();
            assert!(found.iter().zip(&numbers).all(close));
            assert_eq!(found, call(2));
            assert_eq!(found, call(7));
        }
    }
}
