//! `agree [COUNT] [FIRST]`: sends that many random programs through all modes, from the given seed on.

use gradus_agree::{run, source};
use gradus_generate::Options;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|arg| arg.parse::<u64>());
    let (Ok(count), Ok(first)) = (numbers.next().unwrap_or(Ok(1000)), numbers.next().unwrap_or(Ok(0))) else {
        eprintln!("usage: agree [COUNT] [FIRST]");
        return ExitCode::from(2);
    };
    let tally = run(first, count, Options::default(), 3);
    println!("{} programs from seed {first}", tally.programs);
    for (mode, count) in &tally.compared {
        let passed = tally.passed_over.get(mode).copied().unwrap_or(0);
        println!("  {:<13} compared at {count} points, passed over at {passed}", mode.key());
    }
    println!("  slopes compared with central differences at {} points", tally.differences);
    for (program, fault) in &tally.faults {
        println!("\nseed {}: under `{}`: {}", program.seed, fault.mode, fault.what);
        println!("{}", source(program));
    }
    println!("{} passed, {} failed", tally.programs - tally.faults.len(), tally.faults.len());
    if tally.faults.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
