//! Every mode agrees with every other on random programs.

use gradus_agree::{run, source};
use gradus_core::Mode;
use gradus_generate::Options;

/// How many programs the test run sends through all modes, in two halves that run beside each other.
const PROGRAMS: u64 = 5_000;

fn agree(first: u64, count: u64) {
    let tally = run(first, count, Options::default(), 1);
    if let Some((program, fault)) = tally.faults.first() {
        panic!("seed {} under `{}`: {}\n{}", program.seed, fault.mode, fault.what, source(program));
    }
    // Two points for each program. A mode may refuse a program, or take too long for it, but seldom does.
    for mode in Mode::ALL {
        let points = tally.compared.get(&mode).copied().unwrap_or(0) as u64;
        assert!(points * 10 > count * 2 * 9, "`{mode}` was compared at {points} of {} points", 2 * count);
    }
    assert!(tally.differences as u64 > count, "finite differences were hardly ever compared");
}

#[test]
fn first_half() {
    agree(0, PROGRAMS / 2);
}

#[test]
fn second_half() {
    agree(PROGRAMS / 2, PROGRAMS / 2);
}
