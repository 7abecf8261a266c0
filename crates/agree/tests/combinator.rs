//! The mode `combinator` refuses recursion, so among programs with everything it takes few. Here the others, on which it has to agree.

use gradus_agree::run;
use gradus_core::Mode;
use gradus_generate::{Feature, Features, Options};

const PROGRAMS: u64 = 300;

#[test]
fn programs_without_recursion() {
    let features =
        Features::all().without(Feature::RecursiveTypes).without(Feature::Recursion).without(Feature::Iteration);
    let tally = run(100_000, PROGRAMS, Options { features, ..Options::default() }, 1);
    if let Some((program, fault)) = tally.faults.first() {
        panic!("seed {} under `{}`: {}\n{:?}", program.seed, fault.mode, fault.what, program.body());
    }
    let taken = tally.compared.get(&Mode::Combinator).copied().unwrap_or(0) as u64;
    let refused = tally.passed_over.get(&Mode::Combinator).copied().unwrap_or(0);
    eprintln!("combinator was compared at {taken} points and passed over at {refused}");
    assert!(taken > PROGRAMS, "`combinator` was compared at {taken} points only");
}
