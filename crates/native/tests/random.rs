//! Random programs give the same results natively as on the reference evaluator, for the function and its derivatives, simplified and not.
//! `cargo run --release -p gradus-native --example agree -- COUNT FIRST` tries more of them.

#[path = "support/grids.rs"]
mod grids;
#[path = "support/holders.rs"]
mod holders;
#[path = "support/random.rs"]
mod random;
#[path = "support/recursions.rs"]
mod recursions;
#[path = "support/steps.rs"]
mod steps;
mod support;

use gradus_generate::Generated;
use gradus_native::Backend;
use random::{compare, Way};

fn agree(count: u64, generate: fn(u64) -> Generated, is_wanted: fn(&Way) -> bool) {
    let ways: Vec<Way> = Way::ALL.into_iter().filter(is_wanted).collect();
    let tally = compare(0..count, generate, &ways);
    println!("{} results compared, refused: {:?}", tally.compared, tally.refused);
    assert!(tally.differences.is_empty(), "{}", tally.differences.join("\n"));
    assert!(tally.compared > 4 * count, "only {} results were compared (refused: {:?})", tally.compared, tally.refused);
}

#[test]
fn random_programs_agree_with_the_reference() {
    // C takes its time, and gets the same code.
    let generate = |seed| gradus_generate::generate(seed, gradus_generate::Options::default());
    agree(120, generate, |way| way.backend == Backend::Cranelift || way.simplified);
}

/// Each was refused by the checker, or stopped the compiler.
#[test]
fn programs_that_were_once_not_compiled_agree() {
    let generate = |seed| gradus_generate::generate(seed, gradus_generate::Options::default());
    for seed in [931_366, 7_100_342] {
        let tally = compare(seed..seed + 1, generate, &Way::ALL[..3]);
        assert!(tally.compared > 0 && tally.differences.is_empty(), "{}", tally.differences.join("\n"));
    }
}

#[test]
fn random_programs_over_matrices_agree_with_the_reference() {
    agree(20, grids::generate, |way| way.backend == Backend::Cranelift);
    agree(1, grids::generate, |way| way.backend == Backend::C && way.simplified);
}

#[test]
fn random_simulations_agree_with_the_reference() {
    agree(20, steps::generate, |way| way.backend == Backend::Cranelift);
    agree(1, steps::generate, |way| way.backend == Backend::C && way.simplified);
}

#[test]
fn random_programs_that_share_arrays_agree_with_the_reference() {
    agree(20, holders::generate, |way| way.backend == Backend::Cranelift);
    agree(1, holders::generate, |way| way.backend == Backend::C && way.simplified);
}

#[test]
fn random_recursion_agrees_with_the_reference() {
    agree(40, recursions::generate, |way| way.backend == Backend::Cranelift);
    agree(2, recursions::generate, |way| way.backend == Backend::C && way.simplified);
}
