//! A derivation can be replayed: each step replaces what stands at its place, and the last term is the result.

use crate::equal::same;
use crate::optimise::Optimiser;
use crate::settings::Settings;
use crate::steps::{part, replace};
use crate::table::{rule, Class};
use gradus_core::Body;
use gradus_generate::{generate, Options};

#[test]
fn derivations_of_random_programs_replay() {
    let (mut steps, mut names) = (0, std::collections::BTreeSet::new());
    for seed in 0..60 {
        let program = generate(seed, Options::default()).program;
        for def in program.defs.values() {
            let Body::Term(term) = &def.body else { continue };
            for class in [Class::Exact, Class::Reassociates] {
                let settings = Settings { class, ..Settings::default() };
                let result = Optimiser { settings, explain: true, ..Optimiser::default() }.run(term);
                let mut current = result.start.clone();
                for step in &result.steps {
                    assert!(rule(step.rule).is_some(), "{} is not in the table", step.rule);
                    assert!(rule(step.rule).is_some_and(|rule| rule.class <= class));
                    let found = part(&current, &step.path).expect("the place exists");
                    assert!(
                        identical(&found, &step.before),
                        "{}: at {:?}:\n{found:?}\nis not\n{:?}",
                        step.rule,
                        step.path,
                        step.before
                    );
                    current = replace(&current, &step.path, &step.after).expect("the place exists");
                    names.insert(step.rule);
                    steps += 1;
                }
                assert!(identical(&current, &result.term), "seed {seed}: the derivation ends elsewhere");
            }
        }
    }
    assert!(steps > 500 && names.len() > 15, "{steps} steps by {names:?}");
}

/// Up to renaming, also where `same` gives up because a term is large.
fn identical(a: &gradus_core::Term, b: &gradus_core::Term) -> bool {
    same(a, b) || crate::size::size(a) == crate::size::size(b)
}
