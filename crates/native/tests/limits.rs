//! Limits on memory and steps, interrupts, and repeated calls, on every backend.

mod support;

use gradus_native::flow::{read, FunctionId};
use gradus_native::{Argument, Backend, Call, Executable, Leaf, Limits, Native, Options, RunError};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use support::natives;

const TEXT: &str = "\
let rec endless (x : real) : real = if x < 0.0 then x else endless (x + 1.0)
let rec deep (n : int) : int = if n = 0 then 0 else 1 + deep (n - 1)
let numbers (n : int) : real[] = build n real
let total (n : int) : real = sum (build n (fun i -> real i))
let table (n : int) : real[][] = build n (fun i -> build n (fun j -> real (i * j)))
let rec chain (n : int) (x : real) : real = if n = 0 then x else 0.5 * sin (chain (n - 1) x)
let slope (n : int) : real = grad (chain n) 0.7
let rec tally (n : int) (a : real[]) : real[] =
  if n = 0 then a else let b = tally (n - 1) (set a 0 (a.(0) + 1.0)) in set b 1 (b.(1) + 1.0)
";

fn within(native: &Native, entry: usize, argument: Leaf, limits: &Limits) -> Result<Vec<Leaf>, RunError> {
    native.call_within(entry, &[argument], limits)
}

#[test]
fn steps() {
    for native in natives(TEXT, &["endless", "deep", "total"]) {
        let limits = |steps| Limits { max_steps: Some(steps), ..Limits::default() };
        match within(&native, 0, Leaf::Real(0.0), &limits(1000)) {
            Err(RunError::Steps { limit: 1000, span }) => {
                let place = &TEXT[span.start as usize..span.end as usize];
                assert!(TEXT.lines().next().is_some_and(|line| line.contains(place)), "{place}");
            }
            other => panic!("{other:?}"),
        }
        // 100 calls: where it would call itself for the last time, it ends.
        assert_eq!(within(&native, 1, Leaf::Int(100), &limits(100)), Ok(vec![Leaf::Int(100)]));
        assert!(matches!(within(&native, 1, Leaf::Int(100), &limits(99)), Err(RunError::Steps { .. })));
        assert_eq!(within(&native, 2, Leaf::Int(1000), &limits(1000)), Ok(vec![Leaf::Real(499_500.0)]));
        assert!(matches!(within(&native, 2, Leaf::Int(1000), &limits(999)), Err(RunError::Steps { .. })));
        // A long loop is counted while it runs.
        let long = Leaf::Int(10_000_000_000_000);
        assert!(matches!(within(&native, 2, long, &limits(10_000_000)), Err(RunError::Steps { .. })));
        assert_eq!(native.call(2, &[Leaf::Int(10_000_000)]), Ok(vec![Leaf::Real(49_999_995_000_000.0)]));
    }
}

#[test]
fn steps_of_arrays_that_become_longer() {
    let text = "let grown (n : int) : real = sum (loop n (fun xs -> concat xs [| 1.0 |]) [| |])\n";
    let limits = Limits { max_steps: Some(10_000_000), ..Limits::default() };
    for native in natives(text, &["grown"]) {
        assert_eq!(within(&native, 0, Leaf::Int(5000), &limits), Ok(vec![Leaf::Real(5000.0)]));
        assert!(matches!(within(&native, 0, Leaf::Int(20_000), &limits), Err(RunError::Steps { .. })));
    }
}

#[test]
fn interrupts() {
    for native in natives(TEXT, &["endless", "total", "slope"]) {
        for (entry, argument) in [(0, Leaf::Real(0.0)), (1, Leaf::Int(i64::MAX)), (2, Leaf::Int(i64::MAX))] {
            let flag = Arc::new(AtomicBool::new(false));
            let limits = Limits { interrupt: Some(flag.clone()), ..Limits::default() };
            let other = std::thread::spawn(move || {
                std::thread::sleep(std::time::Duration::from_millis(20));
                flag.store(true, Ordering::Relaxed);
            });
            let found = within(&native, entry, argument, &limits);
            assert!(matches!(found, Err(RunError::Interrupted { .. })), "{found:?}");
            other.join().expect("ends");
        }
    }
}

/// A call that does not find room on the stack of its caller runs again on a larger one, as if for the first time.
#[test]
fn recursion_on_a_small_stack() {
    let on_a_small_stack = || {
        for native in natives(TEXT, &["tally", "slope"]) {
            let array = [Leaf::Int(200_000), Leaf::reals([0.0, 0.0])];
            let limits = Limits { max_steps: Some(200_010), max_memory: Some(30_000_000), ..Limits::default() };
            for _ in 0..2 {
                let found = native.call_within(0, &array, &limits);
                assert_eq!(found, Ok(vec![Leaf::reals([200_000.0, 200_000.0])]));
                // The caller's array is still what it was.
                assert_eq!(array[1], Leaf::reals([0.0, 0.0]));
                assert_eq!(native.call(1, &[Leaf::Int(200_000)]), Ok(vec![Leaf::Real(0.0)]));
            }
        }
    };
    let thread = std::thread::Builder::new().stack_size(6 << 20).spawn(on_a_small_stack).expect("a thread");
    thread.join().expect("ends");
}

#[test]
fn memory() {
    for native in natives(TEXT, &["numbers", "table"]) {
        let limits = |bytes| Limits { max_memory: Some(bytes), ..Limits::default() };
        for _ in 0..3 {
            match within(&native, 0, Leaf::Int(100_000), &limits(400_000)) {
                Err(RunError::Memory { limit: Some(400_000), span }) => {
                    assert_eq!(&TEXT[span.start as usize..span.end as usize], "build n real");
                }
                other => panic!("{other:?}"),
            }
            let found = within(&native, 0, Leaf::Int(100_000), &limits(2_000_000));
            assert!(matches!(found.as_deref(), Ok([Leaf::Reals { data, .. }]) if data[99_999] == 99_999.0));
        }
        let found = within(&native, 1, Leaf::Int(1000), &limits(5_000_000));
        assert!(matches!(found, Err(RunError::Memory { .. })));
        // More than any machine has.
        for n in [1 << 40, 1 << 61, i64::MAX] {
            let found = native.call(0, &[Leaf::Int(n)]);
            assert!(matches!(found, Err(RunError::Memory { limit: None, .. })), "{found:?}");
        }
    }
}

#[test]
fn repeated_calls() {
    let text = "let f (x, y) = (1.0 - x) * (1.0 - x) + 100.0 * (y - x * x) * (y - x * x)\n\
                let slope (x : real) (y : real) : real * real = grad f (x, y)\n\
                let powers (k : int) (a : real[]) (s : real) : real * real[] = (s, map (fun x -> s * x ^ k) a)";
    for native in natives(text, &["slope", "powers"]) {
        let executable = Rc::new(native.executable);
        let owned = |leaves: Vec<Leaf>| leaves.into_iter().map(Argument::Owned).collect();
        let arguments = owned(vec![Leaf::Real(0.0), Leaf::Real(0.0)]);
        let mut slope = Call::new(executable.clone(), 0, arguments).expect("reals");
        let mut found = [0.0; 2];
        for (x, y) in [(0.5, 2.0), (-1.0, 3.0), (1.0, 1.0)] {
            assert!(slope.write_reals(2, &[x, y]));
            slope.run().expect("runs");
            assert!(slope.read_reals(&mut found));
            assert_eq!(found, [-2.0 * (1.0 - x) - 400.0 * x * (y - x * x), 200.0 * (y - x * x)]);
        }
        let arguments = owned(vec![Leaf::Int(3), Leaf::reals([1.0, 2.0, 3.0, 4.0]), Leaf::Real(10.0)]);
        let mut powers = Call::new(executable.clone(), 1, arguments).expect("of its types");
        let mut found = [0.0; 5];
        for _ in 0..3 {
            powers.run().expect("runs");
            assert!(powers.read_reals(&mut found));
            assert_eq!(found, [10.0, 10.0, 80.0, 270.0, 640.0]);
        }
        powers.limits.max_memory = Some(10);
        assert!(matches!(powers.run(), Err(RunError::Memory { limit: Some(10), .. })));
        let wrong = Call::new(executable, 1, owned(vec![Leaf::Int(3), Leaf::Real(0.0), Leaf::Real(0.0)]));
        assert!(matches!(wrong.err(), Some(RunError::Arguments { .. })));
    }
}

/// The place is one of the program, although the forward sweep is not.
#[test]
fn memory_of_a_gradient() {
    let text = "let rec chain (n : int) (x : real) : real =\n\
                let z = sin x in (if n = 0 then x else 0.5 * cos (chain (n - 1) (0.9 * x))) * z\n\
                let slope (n : int) : real = grad (chain n) 0.7";
    let limits = Limits { max_memory: Some(2 << 20), ..Limits::default() };
    for native in natives(text, &["slope"]) {
        match within(&native, 0, Leaf::Int(1_000_000), &limits) {
            Err(RunError::Memory { span, .. }) => {
                assert!(span.start > 0 && span.end as usize <= text.len(), "{span:?}")
            }
            other => panic!("{other:?}"),
        }
    }
}

/// What the forward sweep leaves for the backward sweep counts as memory, and a call that fails in between leaves nothing behind.
#[test]
fn gradients_of_deep_recursion() {
    let text = "let rec chain (n : int) (x : real) : real = if n = 0 then x else 0.5 * sin (chain (n - 1) x)\n\
                let slope (n : int) (x : real) : real = grad (chain n) x";
    let slope =
        |n: usize, x: f64| (0..n).fold((x, 1.0), |(y, slope): (f64, f64), _| (0.5 * y.sin(), 0.5 * y.cos() * slope)).1;
    for native in natives(text, &["slope"]) {
        let within = |n: i64, limits: &Limits| native.call_within(0, &[Leaf::Int(n), Leaf::Real(0.7)], limits);
        let memory = Limits { max_memory: Some(6 << 20), ..Limits::default() };
        let steps = Limits { max_steps: Some(1_500_000), ..Limits::default() };
        for _ in 0..2 {
            assert!(matches!(within(1_000_000, &memory), Err(RunError::Memory { .. })));
            // The forward sweep is over, the backward sweep is not.
            assert!(matches!(within(1_000_000, &steps), Err(RunError::Steps { .. })));
            assert_eq!(within(1_000_000, &Limits::default()), Ok(vec![Leaf::Real(0.0)]));
            for limits in [&memory, &steps] {
                let Ok(found) = within(20, limits) else { panic!("enough for a few") };
                let [Leaf::Real(found)] = found[..] else { panic!("a number") };
                assert!((found / slope(20, 0.7) - 1.0).abs() < 1e-12, "{found}");
            }
        }
    }
}

/// Loops whose state is an array, or that run for each element of one: of many steps only some are kept, see `simplify/segments.rs`.
const LONG: &str = "\
let wave (n : int) : real[] = build n (fun i -> sin (2.0 * 3.141592653589793 * real i / real n))
let diffusion (steps : int) (a : real) : real =
  let step (u : real[]) = build 100 (fun i -> u.(i) + a * (u.((i + 99) mod 100) - 2.0 * u.(i) + u.((i + 1) mod 100))) in
  dot (loop steps step (wave 100)) (wave 100)
let diffused (steps : int) : real * real = value_and_grad (diffusion steps) 0.01
let rotation (steps : int) (h : real) : real =
  sum (map (fun r -> fst (loop steps (fun (x, v) -> (x + h * v, v - h * x)) (r, 0.0))) (build 200 (fun i -> real (i + 1))))
let rotated (steps : int) : real * real = value_and_grad (rotation steps) 0.0001
let driven (force : real[]) (c : real) : real =
  sum (ifold (length force) (fun i u -> map (fun x -> c * x + force.(i)) u) (build 50 (fun _ -> 1.0)))
let drive (steps : int) : real * (real[] * real) =
  value_and_grad (fun (force, c) -> driven force c) (build steps (fun _ -> 0.0), 0.9999)
";

#[test]
fn gradients_of_long_loops() {
    let steps = 40_000;
    let reals = |found: Vec<Leaf>| -> Vec<f64> {
        found
            .iter()
            .flat_map(|leaf| match leaf {
                Leaf::Real(x) => vec![*x],
                Leaf::Reals { data, .. } => data.to_vec(),
                other => panic!("{other:?} is no real"),
            })
            .collect()
    };
    let close = |found: &[f64], expected: &[f64]| {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() <= 1e-10 * expected.abs(), "{found} instead of {expected}");
        }
    };
    let n = steps as f64;
    // An eigenvector, which each step multiplies by its eigenvalue.
    let slope = -2.0 * (1.0 - (2.0 * std::f64::consts::PI / 100.0).cos());
    let eigenvalue = 1.0 + 0.01 * slope;
    let diffused = [50.0 * eigenvalue.powf(n), 50.0 * n * eigenvalue.powf(n - 1.0) * slope];
    // Each step multiplies x + iv by 1 - ih.
    let (h, all) = (0.0001_f64, 20_100.0);
    let (length, angle) = ((1.0 + h * h).sqrt(), -h.atan());
    let rotated = [
        all * length.powf(n) * (n * angle).cos(),
        all * n * length.powf(n - 1.0) * ((n - 1.0) * angle - std::f64::consts::FRAC_PI_2).cos(),
    ];
    // What a step adds is multiplied by each step behind it.
    let by_force = (0..steps).map(|i| 50.0 * 0.9999_f64.powi(steps - 1 - i));
    let by_factor = 50.0 * n * 0.9999_f64.powf(n - 1.0);
    let driven: Vec<f64> = [50.0 * 0.9999_f64.powf(n)].into_iter().chain(by_force).chain([by_factor]).collect();
    // Of all steps: 32, 41 and 16 megabytes.
    let limits = Limits { max_memory: Some(4 << 20), threads: Some(1), ..Limits::default() };
    for native in natives(LONG, &["diffused", "rotated", "drive"]) {
        let run = |entry| reals(within(&native, entry, Leaf::Int(steps.into()), &limits).expect("runs"));
        close(&run(0), &diffused);
        close(&run(1), &rotated);
        close(&run(2), &driven);
    }
}

/// On the way back through many steps, adjoints with which processors compute slowly become zero, see `simplify/underflow.rs`; through few, they do not.
#[test]
fn adjoints_that_become_too_small() {
    let text = |factor: &str| {
        format!(
            "let shrink (steps : int) : real = grad (loop steps (fun x -> sin x * {factor})) 0.0\n\
             let shrink_all (steps : int) : real =\n  \
             let after (a : real[]) = sum (loop steps (fun u -> map (fun x -> x * {factor} + x * x) u) a) in\n  \
             (grad after (build 20 (fun _ -> 0.0))).(7)"
        )
    };
    let slopes = |factor: &str, steps: i64| -> Vec<f64> {
        let mut found = Vec::new();
        for native in natives(&text(factor), &["shrink", "shrink_all"]) {
            for entry in [0, 1] {
                match within(&native, entry, Leaf::Int(steps), &Limits::default()).as_deref() {
                    Ok([Leaf::Real(slope)]) => found.push(*slope),
                    other => panic!("{other:?}"),
                }
            }
        }
        found
    };
    let near = |found: f64, expected: f64, digits: f64| (found / expected - 1.0).abs() < digits;
    assert!(slopes("0.25", 500).into_iter().all(|slope| near(slope, 0.25_f64.powi(500), 1e-12)));
    assert!(slopes("0.875", 5000).into_iter().all(|slope| near(slope, 0.875_f64.powi(5000), 1e-11)));
    // A few digits of it are left.
    assert!(slopes("0.25", 512).into_iter().all(|slope| near(slope, 0.25_f64.powi(512), 1e-3) && !slope.is_normal()));
    // In steps that are rounded, it stays one of the least numbers there are.
    assert!((0..20_000).fold(1.0, |slope: f64, _| slope * 0.875) > 0.0);
    assert_eq!(slopes("0.875", 20_000), [0.0; 4]);
}

const IN_PLACE: &str = "\
fun f(x: real[1], steps: int) -> (real[1], real[1]) {
  n = dim x 0
  zeros = fill n := 0.0
  acc = open zeros
  last = for t < steps with y: real[1] = x {
    next = for i < n {
      e = get y i
      accumulate acc i += e
      half = mul 0.5 e
      accumulate acc i += half
      collect half
    }
    yield next
  }
  sums = freeze acc
  return last sums
}
";

/// A step that adds to the place of each element that it reads leaves the next state in the place of the last one; not if it adds elsewhere, too.
#[test]
fn steps_that_add_need_no_memory() {
    let limits = Limits { max_memory: Some(20_000), ..Limits::default() };
    let elsewhere = IN_PLACE.replace("acc i += half", "acc 0 += half");
    for backend in Backend::ALL {
        let within = |text: &str| {
            let x = Leaf::reals((0..1000).map(|i| (i % 8) as f64).collect::<Vec<_>>());
            let module = read::module(text).expect("reads");
            // Not for several threads, each of which would hold the state.
            let options = Options { least_work: f64::INFINITY, ..backend.into() };
            let code = Executable::new(&module, &[FunctionId(0)], &options).expect("compiles");
            code.call_within(0, &[x, Leaf::Int(10)], &limits)
        };
        let times = |factor: f64| Leaf::reals((0..1000).map(|i| factor * (i % 8) as f64).collect::<Vec<_>>());
        let left = 0.5f64.powi(10);
        assert!(within(IN_PLACE) == Ok(vec![times(left), times(3.0 * (1.0 - left))]), "on {backend:?}");
        assert!(matches!(within(&elsewhere), Err(RunError::Memory { .. })), "on {backend:?}");
    }
}
