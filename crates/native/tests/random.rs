//! Random programs give the same results natively as on the reference evaluator, for the function and its derivatives, simplified and not.
//! `cargo run --release -p gradus-native --example agree -- COUNT FIRST` tries more of them.

#[path = "support/grids.rs"]
mod grids;
#[path = "support/random.rs"]
mod random;
mod support;

use gradus_generate::Generated;
use gradus_native::Backend;
use random::{compare, Way};

fn agree(count: u64, generate: fn(u64) -> Generated) {
    // C takes its time, and gets the same code.
    let ways =
        Way::ALL.into_iter().filter(|way| way.backend == Backend::Cranelift || way.simplified).collect::<Vec<_>>();
    let tally = compare(0..count, generate, &ways);
    println!("{} results compared, refused: {:?}", tally.compared, tally.refused);
    assert!(tally.differences.is_empty(), "{}", tally.differences.join("\n"));
    assert!(tally.compared > 4 * count, "only {} results were compared (refused: {:?})", tally.compared, tally.refused);
}

#[test]
fn random_programs_agree_with_the_reference() {
    agree(120, |seed| gradus_generate::generate(seed, gradus_generate::Options::default()));
}

#[test]
fn random_programs_over_matrices_agree_with_the_reference() {
    agree(20, grids::generate);
}
