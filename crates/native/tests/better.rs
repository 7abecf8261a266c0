//! Quick code and the best code: the same results, and a call that lasts goes from the one to the other.

mod support;

use gradus_native::{compile, Backend, Care, Leaf, Limits, Native, Options, RunError};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use support::{entry, program};

const TEXT: &str = "\
let lasting (n : int) : real = ifold n (fun i s -> s * 0.999 + sin (real i)) 0.0
let parallel (n : int) : real =
  sum (build n (fun i -> ifold 1000 (fun k s -> s * 0.5 + cos (real (i + k))) 0.0))
let rec deep (n : int) : real = if n = 0 then 0.0 else 1.0 + 0.5 * deep (n - 1)
let slope (n : int) : real = grad (fun x -> ifold n (fun i s -> s * 0.5 + sin (x * real i)) 0.0) 0.1
let endless (n : int) : int = iterate (fun k -> if k < 0 then Inr k else Inl (k mod 7)) n
";
const NAMES: [&str; 5] = ["lasting", "parallel", "deep", "slope", "endless"];

fn native(care: Care) -> Native {
    // With others, so that it is no small program.
    let others: Vec<String> = (0..30).map(|k| format!("other{k}")).collect();
    let text = others.iter().fold(TEXT.to_string(), |text, name| {
        text + &format!("let {name} (n : int) : real = grad (fun x -> ifold n (fun i s -> s * x + sin x) 0.0) 0.1\n")
    });
    let program = program("test.gr", &text, Path::new("."));
    let names = NAMES.into_iter().chain(others.iter().map(|name| &**name));
    let entries: Vec<_> = names.map(|name| entry(&program, name)).collect();
    compile(&program, &entries, &Options { care, ..Backend::Cranelift.into() }).expect("compiles")
}

fn bits(native: &Native, entry: usize, n: i64, limits: &Limits) -> u64 {
    match native.call_within(entry, &[Leaf::Int(n)], limits).as_deref() {
        Ok([Leaf::Real(x)]) => x.to_bits(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn both_give_the_same_bits() {
    let [quick, best, later] = [Care::Quick, Care::Best, Care::QuickThenBest].map(native);
    later.executable.improve(None);
    assert!(later.executable.is_final());
    for (entry, n) in [(0, 1000), (1, 500), (2, 300), (3, 200)] {
        let limits = Limits::default();
        let expected = bits(&quick, entry, n, &limits);
        assert_eq!(bits(&best, entry, n, &limits), expected, "{}", NAMES[entry]);
        assert_eq!(bits(&later, entry, n, &limits), expected, "{}", NAMES[entry]);
    }
}

#[test]
fn a_call_that_lasts_gets_better_code() {
    let quick = native(Care::Quick);
    for threads in [1, 3] {
        for (entry, n) in [(0, 20_000_000), (1, 20_000), (3, 1_000_000)] {
            let limits = Limits { threads: Some(threads), ..Limits::default() };
            let expected = bits(&quick, entry, n, &limits);
            let native = native(Care::QuickThenBest);
            assert!(!native.executable.is_final());
            assert_eq!(bits(&native, entry, n, &limits), expected, "{}", NAMES[entry]);
            // However short that was.
            let began = Instant::now();
            while !native.executable.is_final() {
                assert!(began.elapsed() < Duration::from_secs(300), "the best code never comes");
                thread::sleep(Duration::from_millis(1));
            }
            assert_eq!(bits(&native, entry, n, &limits), expected, "{}", NAMES[entry]);
        }
    }
}

/// The steps are those of the code that ends the call.
#[test]
fn limits_hold_for_both() {
    let native = native(Care::QuickThenBest);
    let limits = Limits { max_steps: Some(50_000_000), ..Limits::default() };
    for _ in 0..2 {
        let found = native.call_within(4, &[Leaf::Int(5)], &limits);
        assert!(matches!(found, Err(RunError::Steps { limit: 50_000_000, .. })), "{found:?}");
        native.executable.improve(None);
    }
    assert_eq!(bits(&native, 2, 200_000, &Limits::default()), 2.0_f64.to_bits());
}

#[test]
fn small_programs_have_the_best_code_at_once() {
    let program = program("test.gr", "let twice (x : real) : real = 2.0 * x", Path::new("."));
    let native = compile(&program, &[entry(&program, "twice")], &Backend::Cranelift.into()).expect("compiles");
    assert!(native.executable.is_final());
    assert_eq!(native.call(0, &[Leaf::Real(1.5)]), Ok(vec![Leaf::Real(3.0)]));
}
