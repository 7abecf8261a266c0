//! `bench threads N [PROBLEM ..]`: wall times on one thread and on N, and of loops that are never cut into chunks.

use super::best;
use crate::problems::{self, Problem};
use crate::support::{entry, file, root};
use gradus_native::{compile, Backend, Leaf, Limits, Native, Options};
use std::time::Instant;

/// The least wall time of a run, in nanoseconds.
fn least(native: &Native, at: usize, leaves: &[Leaf], threads: usize) -> f64 {
    let limits = Limits { threads: Some(threads), ..Limits::default() };
    let run = || {
        let began = Instant::now();
        native.call_within(at, leaves, &limits).expect("runs");
        began.elapsed().as_nanos() as f64
    };
    run();
    let (mut best, mut total, mut runs) = (f64::INFINITY, 0.0, 0);
    while runs < 10 || (total < 3e8 && runs < 100_000) {
        let took = run();
        best = best.min(took);
        total += took;
        runs += 1;
    }
    best
}

pub fn table(threads: usize, names: &[String]) {
    println!("| microseconds | backend | f never cut | f, 1 thread | f, {threads} threads | grad never cut | grad, 1 thread | grad, {threads} threads | f | grad |");
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for problem in problems::all().iter().filter(|p| names.is_empty() || names.iter().any(|w| w == p.name)) {
        rows(problem, threads);
    }
}

fn rows(problem: &Problem, threads: usize) {
    let program = file(&root().join(format!("examples/gradbench/{}.gr", problem.name)));
    let entries = [entry(&program, problem.function), entry(&program, problem.derivative)];
    for backend in [Backend::C, Backend::Cranelift] {
        let native = |least_work: f64| {
            let options = Options { least_work, ..best(backend) };
            compile(&program, &entries, &options).expect("compiles")
        };
        let (whole, cut) = (native(f64::INFINITY), native(Options::default().least_work));
        for (label, leaves) in &problem.cases {
            let times = [0, 1]
                .map(|at| [least(&whole, at, leaves, 1), least(&cut, at, leaves, 1), least(&cut, at, leaves, threads)]);
            let cells: String = times.iter().flatten().map(|ns| format!(" {:.1} |", ns / 1e3)).collect();
            let [f, gradient] = times.map(|[_, one, many]| one / many);
            println!("| {label} | {backend:?} |{cells} {f:.2} | {gradient:.2} |");
        }
    }
}
