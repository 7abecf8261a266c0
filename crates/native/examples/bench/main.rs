//! Times of compiled Gradus against C written by hand; see `bench/native/README.md`.

#![allow(unsafe_code)] // Calls the C functions that it compiles.

#[path = "../../tests/support/mod.rs"]
mod support;

mod problems;
mod threads;

use gradus_native::cores::{Plan, LEAST_WORK};
use gradus_native::{compile, Argument, Backend, Call, Care, Leaf, Limits, Native, Options};
use gradus_runtime::slot::Slot;
use problems::Problem;
use std::path::Path;
use std::process::Command;
use std::rc::Rc;
use support::{entry, file, root};

/// A function written by hand: the inputs as a compiled function gets them, and where the numbers of its results go.
type Hand = unsafe extern "C" fn(*const Slot, *mut f64);

/// CPU time of this thread, in nanoseconds.
fn now() -> f64 {
    match gradus_runtime::clock::cpu_time() {
        Some(time) => time.as_secs_f64() * 1e9,
        None => panic!("the system tells no CPU time of a thread"),
    }
}

/// What long runs get.
fn best(backend: Backend) -> Options {
    Options { care: Care::Best, ..backend.into() }
}

/// The least time of a run, in nanoseconds.
fn time(mut run: impl FnMut()) -> f64 {
    run();
    let (mut best, mut total, mut runs) = (f64::INFINITY, 0.0, 0);
    let mut batch = 1;
    while total < 2e8 || (runs < 5 && total < 3e9) {
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

/// Times an entry on slots, without copying results.
fn time_entry(native: &Native, at: usize, leaves: &[Leaf]) -> f64 {
    let results: Vec<bool> = native.call(at, leaves).expect("runs").iter().map(|leaf| leaf.ty().is_array()).collect();
    let slots: Vec<Slot> = leaves.iter().map(Leaf::slot).collect();
    let mut out = vec![Slot::integer(0); results.len()];
    let limits = Limits { threads: Some(1), ..Limits::default() };
    time(|| unsafe {
        native.executable.call_slots(at, &slots, &mut out, &limits).expect("runs");
        for (slot, array) in out.iter_mut().zip(&results) {
            if *array {
                native.executable.release(slot);
            }
        }
    })
}

/// Relative to the largest number; what is not a number is off by more than anything.
fn close(found: &[f64], expected: &[f64], what: &str) {
    let scale = expected.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
    let differences = found.iter().zip(expected).map(|(x, y)| (x - y).abs());
    let off = differences.max_by(f64::total_cmp).unwrap_or(0.0);
    assert!(found.len() == expected.len() && off <= 1e-9 * scale, "{what}: results differ by {off} of {scale}");
}

/// The numbers of a result.
fn numbers(leaf: &Leaf) -> Vec<f64> {
    match leaf {
        Leaf::Real(x) => vec![*x],
        Leaf::Int(n) => vec![*n as f64],
        Leaf::Reals { data, .. } => data.clone(),
        Leaf::Ints { data, .. } => data.iter().map(|n| *n as f64).collect(),
        Leaf::Bool(_) | Leaf::Bools { .. } | Leaf::Boxes(_) => panic!("results are numbers"),
    }
}

/// Compares each result on its own, since their sizes differ.
fn agree(mut found: &[f64], expected: &[Leaf], what: &str) {
    for leaf in expected {
        let expected = numbers(leaf);
        let (these, others) = found.split_at(expected.len());
        close(these, &expected, what);
        found = others;
    }
    assert!(found.is_empty(), "{what}: too many results");
}

/// `bench flow FILE FUNCTION` and `bench c FILE FUNCTION`: what the function becomes.
fn show(path: &str, name: &str, as_c: bool) {
    let program = file(Path::new(path));
    match gradus_native::lower(&program, &[entry(&program, name)]) {
        Ok((module, ids, _)) if as_c => {
            let plan = Plan::new(&module, LEAST_WORK);
            print!("{}", gradus_native::c::emit(&module, &[(ids[0], name.into())], &plan).code)
        }
        Ok((module, _, _)) => print!("{}", gradus_native::flow::print::module(&module)),
        Err(refusal) => println!("{}", refusal.diagnostic().message),
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match &words[..] {
        [command, path, name] if command == "flow" || command == "c" => return show(path, name, command == "c"),
        [command, count, names @ ..] if command == "threads" => {
            return threads::table(count.parse().expect("a number of threads"), names)
        }
        _ => {}
    }
    let library = std::env::temp_dir().join(format!("gradus-bench-{}.so", std::process::id()));
    build_hand(&library);
    let hand = unsafe { libloading::Library::new(&library).expect("loads") };
    println!(
        "| microseconds | hand f | C f | Cranelift f | hand grad | C grad | Cranelift grad | f | grad | grad / f |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for problem in problems::all().iter().filter(|p| words.is_empty() || words.iter().any(|w| w == p.name)) {
        measure(problem, &hand);
    }
    if words.is_empty() {
        rosenbrock();
    }
    let _ = std::fs::remove_file(&library);
}

/// Compiles what is written by hand as compiled programs are.
fn build_hand(library: &Path) {
    let options = gradus_native::c::Options::default();
    let folder = root().join("bench/native/hand");
    let files = std::fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path());
    let status = Command::new(&options.compiler)
        .args(&options.flags)
        .arg("-I")
        .arg(root().join("crates/runtime/src"))
        .args(files.filter(|path| path.extension().is_some_and(|e| e == "c")))
        .arg("-o")
        .arg(library)
        .arg("-lm")
        .status()
        .expect("a C compiler");
    assert!(status.success());
}

fn cell(ns: f64) -> String {
    let us = ns / 1e3;
    if us < 1e3 {
        format!("{us:.1}")
    } else {
        format!("{us:.0}")
    }
}

fn measure(problem: &Problem, hand: &libloading::Library) {
    let program = file(&root().join(format!("examples/gradbench/{}.gr", problem.name)));
    let entries = [entry(&program, problem.function), entry(&program, problem.derivative)];
    let native = |backend: Backend| compile(&program, &entries, &best(backend)).expect("compiles");
    let (c, cranelift) = (native(Backend::C), native(Backend::Cranelift));
    let by_hand = [problem.function, problem.derivative]
        .map(|function| unsafe { hand.get::<Hand>(format!("{}_{function}", problem.name).as_bytes()).ok() });
    for (label, leaves) in &problem.cases {
        let results = [0, 1].map(|at| c.call(at, leaves).expect("runs"));
        let found = cranelift.call(1, leaves).expect("runs").iter().flat_map(numbers).collect::<Vec<_>>();
        agree(&found, &results[1], label);
        let times = |native: &Native| (time_entry(native, 0, leaves), time_entry(native, 1, leaves));
        let (ours, instant) = (times(&c), times(&cranelift));
        let slots: Vec<Slot> = leaves.iter().map(Leaf::slot).collect();
        let by_hand = [0, 1].map(|at| {
            let hand = by_hand[at].as_ref()?;
            let mut found: Vec<f64> = results[at].iter().flat_map(numbers).map(|_| f64::NAN).collect();
            let mut run = || unsafe { hand(slots.as_ptr(), found.as_mut_ptr()) };
            run();
            let least = time(run);
            agree(&found, &results[at], label);
            Some(least)
        });
        let shown = |ns: Option<f64>| ns.map_or(String::new(), cell);
        let over = |ours: f64, hand: Option<f64>| hand.map_or(String::new(), |hand| format!("{:.2}", ours / hand));
        println!(
            "| {label} | {} | {} | {} | {} | {} | {} | {} | {} | {:.2} |",
            shown(by_hand[0]),
            cell(ours.0),
            cell(instant.0),
            shown(by_hand[1]),
            cell(ours.1),
            cell(instant.1),
            over(ours.0, by_hand[0]),
            over(ours.1, by_hand[1]),
            ours.1 / ours.0
        );
    }
}

/// Through prepared calls: no allocation.
fn rosenbrock() {
    let program = file(&root().join("bench/native/kernels.gr"));
    let entries = [entry(&program, "rosenbrock"), entry(&program, "rosenbrock_gradient")];
    println!();
    for backend in [Backend::C, Backend::Cranelift] {
        let native = compile(&program, &entries, &best(backend)).expect("compiles");
        let executable = Rc::new(native.executable);
        let times = [0, 1].map(|entry| {
            let arguments = vec![Argument::Owned(Leaf::Real(0.0)); 2];
            let mut call = Call::new(executable.clone(), entry, arguments).expect("reals");
            let mut results = [0.0; 3];
            let results = &mut results[..1 + 2 * entry];
            time(|| {
                assert!(call.write_reals(2, &[0.3, 0.7]));
                call.run().expect("runs");
                assert!(call.read_reals(results));
            })
        });
        println!(
            "Rosenbrock, {backend:?}: function {:.1} ns, value and gradient {:.1} ns per call",
            times[0], times[1]
        );
    }
}
