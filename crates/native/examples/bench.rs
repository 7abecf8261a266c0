//! Times of compiled Gradus against C written by hand; see `bench/native/README.md`.

#![allow(unsafe_code)] // Calls the C functions that it compiles.

#[path = "../tests/support/mod.rs"]
mod support;

use gradus_native::{compile, Argument, Backend, Call, Leaf, Limits, Native};
use gradus_runtime::slot::Slot;
use std::process::Command;
use std::rc::Rc;
use support::{entry, file, root};

type Gmm = unsafe extern "C" fn(
    i32,
    i32,
    i32,
    *const f64,
    *const f64,
    *const f64,
    *const f64,
    *const f64,
    f64,
    i32,
    *mut f64,
    *mut f64,
    *mut f64,
    *mut f64,
) -> f64;
type Lse = unsafe extern "C" fn(i32, *const f64, *mut f64) -> f64;
type Llsq = unsafe extern "C" fn(i32, i32, *const f64, *mut f64) -> f64;

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

extern "C" {
    fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
}

/// CPU time of this thread (Linux).
fn now() -> f64 {
    let mut time = Timespec { seconds: 0, nanoseconds: 0 };
    unsafe { clock_gettime(3, &mut time) };
    time.seconds as f64 * 1e9 + time.nanoseconds as f64
}

/// The least time of a run, in nanoseconds.
fn time(mut run: impl FnMut()) -> f64 {
    run();
    let (mut best, mut total, mut runs) = (f64::INFINITY, 0.0, 0);
    let mut batch = 1;
    while (total < 3e8 || runs < 5) && runs < 100_000 {
        let start = now();
        for _ in 0..batch {
            run();
        }
        let spent = now() - start;
        if spent < 2e4 {
            batch *= 4;
            continue;
        }
        best = best.min(spent / f64::from(batch));
        total += spent;
        runs += 1;
    }
    best
}

fn random(seed: &mut u64) -> f64 {
    *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*seed >> 11) as f64 / (1u64 << 53) as f64
}

fn vector(n: usize, seed: &mut u64) -> Vec<f64> {
    (0..n).map(|_| random(seed) - 0.5).collect()
}

/// Times an entry on slots, without copying results.
fn time_entry(native: &Native, at: usize, leaves: &[Leaf], results: &[bool]) -> f64 {
    let slots: Vec<Slot> = leaves.iter().map(Leaf::slot).collect();
    let mut out = vec![Slot::integer(0); results.len()];
    time(|| unsafe {
        native.executable.call_slots(at, &slots, &mut out, &Limits::default()).expect("runs");
        for (slot, array) in out.iter_mut().zip(results) {
            if *array {
                native.executable.release(slot);
            }
        }
    })
}

/// Function and gradient on both backends, in nanoseconds.
struct Ours {
    c: (f64, f64),
    cranelift: (f64, f64),
}

/// Compiled by both backends.
struct Both {
    c: Native,
    cranelift: Native,
}

impl Both {
    fn compile(path: &str, names: [&str; 2]) -> Both {
        let program = file(&root().join(path));
        let entries = names.map(|name| entry(&program, name));
        let native = |backend: Backend| compile(&program, &entries, &backend.into()).expect("compiles");
        Both { c: native(Backend::C), cranelift: native(Backend::Cranelift) }
    }

    /// Checks that both give these results, if they are known, or the same; then times function and gradient. `arrays` says which
    /// results of the two are arrays.
    fn time(&self, leaves: &[Leaf], known: [Option<Vec<f64>>; 2], arrays: [&[bool]; 2]) -> Ours {
        for (at, known) in known.into_iter().enumerate() {
            let results = |native: &Native| -> Vec<f64> {
                native.call(at, leaves).expect("runs").iter().flat_map(reals).collect()
            };
            let expected = known.unwrap_or_else(|| results(&self.c));
            close(&results(&self.c), &expected);
            close(&results(&self.cranelift), &expected);
        }
        let times =
            |native: &Native| (time_entry(native, 0, leaves, arrays[0]), time_entry(native, 1, leaves, arrays[1]));
        Ours { c: times(&self.c), cranelift: times(&self.cranelift) }
    }
}

fn heading() {
    println!(
        "{:22} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} | {:>6} {:>6} {:>6} | {:>6} {:>6} | {:>6}",
        "microseconds",
        "hand f",
        "C f",
        "Clif f",
        "hand g",
        "C g",
        "Clif g",
        "C/hand",
        "g/hand",
        "g/f",
        "Clif/C",
        "g",
        "g/f"
    );
}

/// Times, then: C over hand-written for function and gradient, gradient over function; Cranelift over C for both, gradient over function.
fn row(name: &str, hand: Option<(f64, f64)>, ours: &Ours) {
    let us = |x: f64| format!("{:.1}", x / 1e3);
    let (hand_f, hand_g) = hand.map_or((String::new(), String::new()), |(f, g)| (us(f), us(g)));
    let over = |a: f64, b: Option<f64>| b.map_or(String::new(), |b| format!("{:.2}", a / b));
    let Ours { c, cranelift } = ours;
    println!(
        "{name:22} {hand_f:>9} {:>9} {:>9} {hand_g:>9} {:>9} {:>9} | {:>6} {:>6} {:>6.2} | {:>6.2} {:>6.2} | {:>6.2}",
        us(c.0),
        us(cranelift.0),
        us(c.1),
        us(cranelift.1),
        over(c.0, hand.map(|h| h.0)),
        over(c.1, hand.map(|h| h.1)),
        c.1 / c.0,
        cranelift.0 / c.0,
        cranelift.1 / c.1,
        cranelift.1 / cranelift.0
    );
}

fn close(a: &[f64], b: &[f64]) {
    let scale = b.iter().fold(1.0_f64, |m, x| m.max(x.abs()));
    let off = a.iter().zip(b).fold(0.0_f64, |m, (x, y)| m.max((x - y).abs()));
    assert!(a.len() == b.len() && off <= 1e-9 * scale, "results differ by {off} of {scale}");
}

fn reals(leaf: &Leaf) -> Vec<f64> {
    match leaf {
        Leaf::Reals { data, .. } => data.clone(),
        Leaf::Real(x) => vec![*x],
        other => panic!("{other:?} is not real"),
    }
}

/// `bench flow FILE FUNCTION`: what the function becomes.
fn show(path: &str, name: &str) {
    let program = file(std::path::Path::new(path));
    match gradus_native::lower(&program, &[entry(&program, name)]) {
        Ok((module, _, _)) => print!("{}", gradus_native::flow::print::module(&module)),
        Err(refusal) => println!("{}", refusal.diagnostic().message),
    }
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if let [_, command, path, name] = &words[..] {
        if command == "flow" {
            return show(path, name);
        }
    }
    let options = gradus_native::c::Options::default();
    let library = std::env::temp_dir().join(format!("gradus-bench-{}.so", std::process::id()));
    let status = Command::new(&options.compiler)
        .args(&options.flags)
        .arg(root().join("bench/native/hand.c"))
        .arg("-o")
        .arg(&library)
        .arg("-lm")
        .status()
        .expect("a C compiler");
    assert!(status.success());
    let hand = unsafe { libloading::Library::new(&library).expect("loads") };
    heading();
    gmm(&hand);
    lse(&hand);
    llsq(&hand);
    others();
    let _ = std::fs::remove_file(&library);
}

fn gmm(hand: &libloading::Library) {
    let f = unsafe { hand.get::<Gmm>(b"hand_gmm").expect("there") };
    let both = Both::compile("examples/gradbench/gmm.gr", ["objective", "jacobian"]);
    let null = std::ptr::null_mut();
    for (d, k, n) in [(2, 5, 1000), (10, 25, 1000), (32, 10, 1000), (64, 25, 1000)] {
        let seed = &mut 7;
        let t = d * (d - 1) / 2;
        let (x, alpha, mu) = (vector(n * d, seed), vector(k, seed), vector(k * d, seed));
        let (q, l) = (vector(k * d, seed), vector(k * t, seed));
        let (mut ga, mut gm, mut gq, mut gl) = (vec![0.0; k], vec![0.0; k * d], vec![0.0; k * d], vec![0.0; k * t]);
        let mut call = |gradient: bool| unsafe {
            let p = |v: &mut Vec<f64>| if gradient { v.as_mut_ptr() } else { null };
            f(
                d as i32,
                k as i32,
                n as i32,
                alpha.as_ptr(),
                mu.as_ptr(),
                q.as_ptr(),
                l.as_ptr(),
                x.as_ptr(),
                1.0,
                0,
                p(&mut ga),
                p(&mut gm),
                p(&mut gq),
                p(&mut gl),
            )
        };
        let value = call(true);
        let hand_times = (
            time(|| {
                call(false);
            }),
            time(|| {
                call(true);
            }),
        );
        let leaves = [
            Leaf::Int(d as i64),
            Leaf::Int(k as i64),
            Leaf::Int(n as i64),
            Leaf::matrix(n, d, x.clone()),
            Leaf::Int(0),
            Leaf::Real(1.0),
            Leaf::reals(alpha.clone()),
            Leaf::matrix(k, d, mu.clone()),
            Leaf::matrix(k, d, q.clone()),
            Leaf::matrix(k, t, l.clone()),
        ];
        let ours = both.time(&leaves, [Some(vec![value]), Some([ga, gm, gq, gl].concat())], [&[false], &[true; 4]]);
        row(&format!("gmm d={d} k={k} n={n}"), Some(hand_times), &ours);
    }
}

fn lse(hand: &libloading::Library) {
    let f = unsafe { hand.get::<Lse>(b"hand_lse").expect("there") };
    let both = Both::compile("examples/gradbench/lse.gr", ["primal", "gradient"]);
    for n in [1_000_usize, 100_000, 1_000_000] {
        let x = vector(n, &mut 3);
        let mut adj = vec![0.0; n];
        let value = unsafe { f(n as i32, x.as_ptr(), adj.as_mut_ptr()) };
        let null = std::ptr::null_mut();
        let hand_times = (
            time(|| unsafe {
                f(n as i32, x.as_ptr(), null);
            }),
            time(|| unsafe {
                f(n as i32, x.as_ptr(), adj.as_mut_ptr());
            }),
        );
        let leaves = [Leaf::reals(x.clone())];
        let ours = both.time(&leaves, [Some(vec![value]), Some(adj)], [&[false], &[true]]);
        row(&format!("lse n={n}"), Some(hand_times), &ours);
    }
}

fn llsq(hand: &libloading::Library) {
    let f = unsafe { hand.get::<Llsq>(b"hand_llsq").expect("there") };
    let both = Both::compile("examples/gradbench/llsq.gr", ["primal", "gradient"]);
    for n in [64, 4096] {
        let m = 128;
        let x = vector(m, &mut 5);
        let mut adj = vec![0.0; m];
        let value = unsafe { f(n, m as i32, x.as_ptr(), adj.as_mut_ptr()) };
        let null = std::ptr::null_mut();
        let hand_times = (
            time(|| unsafe {
                f(n, m as i32, x.as_ptr(), null);
            }),
            time(|| unsafe {
                f(n, m as i32, x.as_ptr(), adj.as_mut_ptr());
            }),
        );
        let leaves = [Leaf::reals(x.clone()), Leaf::Int(i64::from(n))];
        let ours = both.time(&leaves, [Some(vec![value]), Some(adj)], [&[false], &[true]]);
        row(&format!("llsq n={n} m=128"), Some(hand_times), &ours);
    }
}

/// What has no counterpart by hand: function and gradient alone.
fn others() {
    for (n, s) in [(1000, 10), (10_000, 10)] {
        let both = Both::compile("examples/gradbench/ode.gr", ["primal", "gradient"]);
        let x: Vec<f64> = vector(n, &mut 9).iter().map(|v| v + 0.5).collect();
        let leaves = [Leaf::reals(x), Leaf::Int(s)];
        row(&format!("ode n={n} s={s}"), None, &both.time(&leaves, [None, None], [&[true], &[true]]));
    }
    let both = Both::compile("examples/gradbench/det.gr", ["primal", "gradient"]);
    for l in [6_i64, 8] {
        let leaves = [Leaf::reals(vector((l * l) as usize, &mut 11)), Leaf::Int(l)];
        row(&format!("det l={l}"), None, &both.time(&leaves, [None, None], [&[false], &[true]]));
    }
    let both = Both::compile("examples/gradbench/lstm.gr", ["objective", "jacobian"]);
    let (b, layers, c) = (14, 2, 1024);
    let seed = &mut 13;
    let leaves = [
        Leaf::matrix(2 * layers, 4 * b, vector(2 * layers * 4 * b, seed)),
        Leaf::matrix(3, b, vector(3 * b, seed)),
        Leaf::matrix(2 * layers, b, vector(2 * layers * b, seed)),
        Leaf::matrix(c, b, vector(c * b, seed).iter().map(|v| f64::from(u8::from(*v > 0.0))).collect::<Vec<_>>()),
    ];
    row(&format!("lstm l={layers} c={c}"), None, &both.time(&leaves, [None, None], [&[false], &[true]]));

    let both = Both::compile("bench/native/kernels.gr", ["rosenbrock", "rosenbrock_gradient"]);
    for (name, native) in [("C", both.c), ("Cranelift", both.cranelift)] {
        let executable = Rc::new(native.executable);
        let arguments = || vec![Argument::Owned(Leaf::Real(0.0)); 2];
        let times = [0, 1].map(|entry| {
            let mut call = Call::new(executable.clone(), entry, arguments()).expect("reals");
            let mut results = [0.0; 3];
            let results = &mut results[..1 + 2 * entry];
            time(|| {
                assert!(call.write_reals(2, &[0.3, 0.7]));
                call.run().expect("runs");
                assert!(call.read_reals(results));
            })
        });
        println!("rosenbrock, {name}: function {:.1} ns, value and gradient {:.1} ns per call", times[0], times[1]);
    }
}
