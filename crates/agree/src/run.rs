//! Many programs: counting, and shrinking the first that shows a fault.

use crate::compare::{compare, modes, Fault};
use gradus_core::Mode;
use gradus_generate::{generate, shrink, Generated, Options};
use std::collections::BTreeMap;

/// How many candidates the shrinker may try.
const SHRINK_ATTEMPTS: usize = 2_000;

/// What came of a number of programs.
#[derive(Default)]
pub struct Tally {
    pub programs: usize,
    pub compared: BTreeMap<Mode, usize>,
    pub passed_over: BTreeMap<Mode, usize>,
    pub differences: usize,
    /// The shrunk program and what is wrong with it.
    pub faults: Vec<(Generated, Fault)>,
}

/// Programs `first .. first + count`, stopping after `max_faults`.
pub fn run(first: u64, count: u64, options: Options, max_faults: usize) -> Tally {
    let modes = modes();
    let mut tally = Tally::default();
    for seed in first..first + count {
        let program = generate(seed, options);
        tally.programs += 1;
        match compare(&program, &modes) {
            Ok(agreement) => {
                agreement.compared.iter().for_each(|mode| *tally.compared.entry(*mode).or_default() += 1);
                agreement.passed_over.iter().for_each(|(mode, _)| *tally.passed_over.entry(*mode).or_default() += 1);
                tally.differences += agreement.differences;
            }
            Err(fault) => {
                tally.faults.push(smallest(&program, fault, &modes));
                if tally.faults.len() >= max_faults {
                    break;
                }
            }
        }
    }
    tally
}

fn smallest(program: &Generated, fault: Fault, modes: &[Mode]) -> (Generated, Fault) {
    let mut last = fault;
    let small = shrink(
        program,
        &mut |candidate| {
            // Shrinking pays no regard to types, so most candidates are simply no programs.
            if gradus_core::check::check_program(&candidate.program).is_err() {
                return false;
            }
            match compare(candidate, modes) {
                Ok(_) => false,
                Err(fault) => {
                    last = fault;
                    true
                }
            }
        },
        SHRINK_ATTEMPTS,
    );
    (small, last)
}
