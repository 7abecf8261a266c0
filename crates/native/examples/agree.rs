//! `agree [COUNT] [FIRST] [cranelift|c|all] [grids|steps|holders|recursions]`: sends that many random programs (over matrices, if `grids` is said; simulations, if `steps`
//! is said; such in which many things hold the same arrays, if `holders` is said;
//! functions that call themselves several times, if `recursions` is said), from the given seed on, through the native compiler, simplified and not, and
//! through the reference evaluator, and compares the functions and their derivatives. `agree source grids|steps|holders|recursions SEED` prints such a program.

#[path = "../tests/support/grids.rs"]
mod grids;
#[path = "../tests/support/holders.rs"]
mod holders;
#[path = "../tests/support/random.rs"]
mod random;
#[path = "../tests/support/recursions.rs"]
mod recursions;
#[path = "../tests/support/steps.rs"]
mod steps;
#[path = "../tests/support/mod.rs"]
mod support;

use gradus_generate::{Generated, Options};
use gradus_native::Backend;
use random::{compare, Tally, Way};
use std::process::ExitCode;

/// As in the command line.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Programs that are compiled together.
const TOGETHER: u64 = 100;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, kind, seed] = &arguments[..] {
        let source = match (&word[..], &kind[..], seed.parse()) {
            ("source", "grids", Ok(seed)) => Some(grids::source(seed)),
            ("source", "steps", Ok(seed)) => Some(steps::source(seed)),
            ("source", "holders", Ok(seed)) => Some(holders::source(seed)),
            ("source", "recursions", Ok(seed)) => Some(recursions::source(seed)),
            _ => None,
        };
        if let Some(source) = source {
            print!("{source}");
            return ExitCode::SUCCESS;
        }
    }
    let number = |at: usize, default: u64| arguments.get(at).map_or(Some(default), |text| text.parse::<u64>().ok());
    let ways: Option<Vec<Way>> = match arguments.get(2).map(String::as_str) {
        None | Some("all") => Some(Way::ALL.to_vec()),
        Some("cranelift") => Some(Way::ALL.into_iter().filter(|way| way.backend == Backend::Cranelift).collect()),
        Some("c") => Some(Way::ALL.into_iter().filter(|way| way.backend == Backend::C).collect()),
        Some(_) => None,
    };
    let generate: Option<fn(u64) -> Generated> = match arguments.get(3).map(String::as_str) {
        None => Some(|seed| gradus_generate::generate(seed, Options::default())),
        Some("grids") => Some(grids::generate),
        Some("steps") => Some(steps::generate),
        Some("holders") => Some(holders::generate),
        Some("recursions") => Some(recursions::generate),
        Some(_) => None,
    };
    let (Some(count), Some(first), Some(ways), Some(generate)) = (number(0, 1000), number(1, 0), ways, generate) else {
        eprintln!("usage: agree [COUNT] [FIRST] [cranelift|c|all] [grids|steps|holders|recursions]");
        return ExitCode::from(2);
    };
    let mut tally = Tally::default();
    let mut next = first;
    while next < first + count {
        let end = (next + TOGETHER).min(first + count);
        let some = compare(next..end, generate, &ways);
        some.differences.iter().for_each(|difference| println!("{difference}"));
        tally.add(some);
        eprintln!("{} programs, {} results, {} differences", tally.programs, tally.compared, tally.differences.len());
        next = end;
    }
    println!("{} programs from seed {first}, {} ways each", tally.programs, ways.len());
    println!("  {} results compared, {} that the reference evaluator does not give", tally.compared, tally.failing);
    for (reason, count) in &tally.refused {
        println!("  {count} programs refused: {reason}");
    }
    println!("{} differences", tally.differences.len());
    if tally.differences.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
