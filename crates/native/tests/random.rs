//! Random programs give the same results natively as on the reference evaluator, for the function and its derivatives, simplified and not.
//! `cargo run --release -p gradus-native --example agree -- COUNT FIRST` tries more of them.

#[path = "support/random.rs"]
mod random;

use gradus_generate::Options;
use gradus_native::Backend;
use random::{compare, Way};

#[test]
fn random_programs_agree_with_the_reference() {
    // C takes its time, and gets the same code.
    let ways =
        Way::ALL.into_iter().filter(|way| way.backend == Backend::Cranelift || way.simplified).collect::<Vec<_>>();
    let tally = compare(0..120, Options::default(), &ways);
    println!("{} results compared, refused: {:?}", tally.compared, tally.refused);
    assert!(tally.differences.is_empty(), "{}", tally.differences.join("\n"));
    assert!(tally.compared > 500, "only {} results were compared (refused: {:?})", tally.compared, tally.refused);
}
