//! Every row of the table: both sides of random instances have the same value and the same derivative.

use super::instance::{instance, INPUTS};
use super::{close, identical, leaves, Function};
use crate::apply::apply_rule;
use crate::settings::Settings;
use crate::table::{rules, Class};
use gradus_core::print::print_term;
use gradus_generate::Rng;

const WANTED: usize = 25;
const MOST_TRIES: usize = 3000;

/// Numbers on which sloppy rules differ.
const SPECIAL: [f64; 8] = [0.0, -0.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e-310];

fn point(rng: &mut Rng, special: bool) -> Vec<f64> {
    let one = |rng: &mut Rng| match special && rng.chance(1, 2) {
        true => *rng.pick(&SPECIAL),
        false => rng.unit() * 2.0,
    };
    (0..INPUTS).map(|_| one(rng)).collect()
}

#[test]
fn every_row_keeps_value_and_derivative() {
    let mut faults = Vec::new();
    for (number, rule) in rules().iter().enumerate() {
        let mut rng = Rng::new(number as u64);
        let mut seen = 0;
        for _ in 0..MOST_TRIES {
            if seen == WANTED {
                break;
            }
            let left = instance(rule, &mut rng);
            let settings = Settings { class: rule.class, ..Settings::default() };
            let Some(body) = apply_rule(rule, settings, &left.body) else { continue };
            seen += 1;
            let right = Function { body, input: left.input.clone(), inputs: INPUTS, result: left.result.clone() };
            if let Some(what) = differs(&left, &right, rule.class, &mut rng) {
                let shown = |f: &Function| print_term(None, &f.body, Default::default());
                faults.push(format!("{}: {what}\n  {}\n  => {}", rule.name, shown(&left), shown(&right)));
                break;
            }
        }
        if seen < WANTED && !faults.iter().any(|fault| fault.starts_with(rule.name)) {
            faults.push(format!("{}: only {seen} instances were found", rule.name));
        }
    }
    assert!(faults.is_empty(), "{} rows are wrong:\n{}", faults.len(), faults.join("\n"));
}

fn differs(left: &Function, right: &Function, class: Class, rng: &mut Rng) -> Option<String> {
    for _ in 0..3 {
        let point = point(rng, class == Class::Exact);
        let direction = self::point(rng, false);
        let results = (left.run(&point, &direction), right.run(&point, &direction));
        let (before, after) = match results {
            (Err(first), Err(second)) if first == second => continue,
            (Ok(before), Ok(after)) => (before, after),
            (before, after) => return Some(format!("{before:?} becomes {after:?} at {point:?}")),
        };
        let ([value, tangent], [value_after, tangent_after]) = (before, after);
        let (x, y) = (leaves(&value), leaves(&value_after));
        // Where numbers are not finite, only exact rules say anything, and they only of values.
        let finite = |xs: &[f64]| xs.iter().all(|x| x.is_finite());
        let agree = match class {
            Class::Exact => identical(&x, &y),
            Class::Reassociates => close(&x, &y) || !finite(&x) || !finite(&y),
        };
        if !agree {
            return Some(format!("{x:?} becomes {y:?} at {point:?}"));
        }
        let (x, y) = (leaves(&tangent), leaves(&tangent_after));
        if finite(&point) && finite(&x) && finite(&y) && !close(&x, &y) {
            return Some(format!("the derivative {x:?} becomes {y:?} at {point:?} in direction {direction:?}"));
        }
    }
    None
}

/// Each name is taken once, and each lemma is a rule of `proofs/Laws.v` or `proofs/Rewrite.v`.
#[test]
fn names_are_unique_and_lemmas_exist() {
    let mut names: Vec<&str> = rules().iter().map(|rule| rule.name).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(count, names.len());
    let proofs = [include_str!("../../../../proofs/Laws.v"), include_str!("../../../../proofs/Rewrite.v")];
    for rule in rules() {
        if let Some(lemma) = rule.proved {
            let exists = proofs.iter().any(|text| text.contains(&format!("| {lemma} :")));
            assert!(exists, "the proofs have no `{lemma}`, which {rule:?} names");
        }
    }
}
