//! `gradus-oracle [COUNT] [FIRST]`: compares that many random programs with the proofs, from the given seed on. Needs OCaml and what `make -C proofs` extracts.

use gradus_core::print::print_program;
use gradus_generate::{generate, shrink, Feature, Features, Generated, Options};
use gradus_oracle::compare::{compare, Fault, Outcome, Subject};
use gradus_oracle::derivations::{replay, Replay};
use gradus_oracle::process::{link, Oracle};
use gradus_oracle::written::{written, Written};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

/// Programs in one exchange with the oracle.
const BATCH: u64 = 200;
/// After so many differences the rest is not worth waiting for.
const MAX_FAULTS: usize = 3;
/// The derivations of each so many-th program are replayed.
const DERIVATIONS: u64 = 10;
/// How many smaller programs are tried when one differs.
const SHRINK_ATTEMPTS: usize = 1000;

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|arg| arg.parse::<u64>());
    let (Ok(count), Ok(first)) = (numbers.next().unwrap_or(Ok(1000)), numbers.next().unwrap_or(Ok(0))) else {
        eprintln!("usage: gradus-oracle [COUNT] [FIRST]");
        return ExitCode::from(2);
    };
    match run(count, first) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("gradus-oracle: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(count: u64, first: u64) -> std::io::Result<ExitCode> {
    let program = std::env::current_exe()?;
    let folder = program.parent().unwrap_or(Path::new("."));
    let proofs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proofs");
    let path = link(&proofs, &folder.join("libgradus_oracle.a"), &folder.join("gradus-oracle-extracted"))?;
    let mut oracle = Oracle::start(&path)?;
    let options = |seed: u64| Options { features: features(), rough: seed % 2 == 1, ..Options::default() };
    let mut tally = Tally::default();
    compare_written(&mut oracle, &mut tally)?;
    let mut seed = first;
    while seed < first + count && tally.faults < MAX_FAULTS {
        let seeds = seed..(seed + BATCH).min(first + count);
        let programs: Vec<_> = seeds.clone().map(|seed| generate(seed, options(seed))).collect();
        let subjects: Vec<Subject> = programs.iter().map(Subject::from).collect();
        let outcomes = compare(&mut oracle, &subjects)?;
        for (program, outcome) in programs.iter().zip(outcomes) {
            if let Outcome::Differs(fault) = &outcome {
                println!("seed {}: {}", program.seed, smallest(&mut oracle, program, fault.clone())?);
            }
            tally.add(outcome);
        }
        for program in programs.iter().filter(|program| program.seed % DERIVATIONS == 0) {
            replay(&mut oracle, program, &mut tally.derivations)?;
        }
        seed = seeds.end;
    }
    tally.report(first);
    Ok(if tally.faults == 0 && tally.derivations.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A smaller program with a difference, what differs, and its text.
fn smallest(oracle: &mut Oracle, program: &Generated, fault: Fault) -> std::io::Result<String> {
    let (mut last, mut problem) = (fault, None);
    let mut differs = |candidate: &Generated| {
        // Shrinking pays no regard to types.
        if gradus_core::check::check_program(&candidate.program).is_err() {
            return false;
        }
        match compare(oracle, &[Subject::from(candidate)]) {
            Ok(outcomes) => match outcomes.into_iter().next() {
                Some(Outcome::Differs(fault)) => {
                    last = fault;
                    true
                }
                Some(Outcome::Same { .. } | Outcome::Outside(_) | Outcome::TooLarge) | None => false,
            },
            Err(error) => {
                problem = Some(error);
                false
            }
        }
    };
    let small = shrink(program, &mut differs, SHRINK_ATTEMPTS);
    match problem {
        Some(error) => Err(error),
        None => Ok(format!("{}\n{}", last.what, print_program(&small.program, Default::default()))),
    }
}

/// What the proved language has.
fn features() -> Features {
    let without = [Feature::NestedDerivatives, Feature::VectorSpace, Feature::Checkpoints, Feature::Rules];
    without.into_iter().fold(Features::all(), Features::without)
}

#[derive(Default)]
struct Tally {
    written: usize,
    same: usize,
    points: usize,
    steps: u64,
    forward: u64,
    monadic: u64,
    kinks: u64,
    entries: usize,
    too_large: usize,
    faults: usize,
    outside: BTreeMap<String, usize>,
    derivations: Replay,
}

impl Tally {
    fn add(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Same { points, steps, forward, monadic, kinks, entries } => {
                self.same += 1;
                self.points += points;
                self.steps += steps;
                self.forward += forward;
                self.monadic += monadic;
                self.kinks += kinks;
                self.entries += entries;
            }
            Outcome::Outside(what) => *self.outside.entry(what).or_default() += 1,
            Outcome::TooLarge => self.too_large += 1,
            Outcome::Differs(_) => self.faults += 1,
        }
    }

    fn report(&self, first: u64) {
        println!("{} programs from seed {first} on: the same derivatives, runs and tapes", self.same);
        let Tally { points, steps, forward, monadic, kinks, entries, .. } = self;
        println!("  {points} points, {steps} steps, {kinks} kinks, {entries} tape entries");
        println!("  {forward} steps of forward derivatives, {monadic} of monadic ones");
        println!("  {} too large to be compared", self.too_large);
        for (what, count) in &self.outside {
            println!("  {count} outside the proved language: {what}");
        }
        let derivations = &self.derivations;
        let sum = |steps: &BTreeMap<&str, usize>| steps.values().sum::<usize>();
        println!(
            "{} steps of the optimiser replayed, by {} rules; {} by rules that are not proved, {} backwards, {} rounded, {} outside",
            sum(&derivations.replayed),
            derivations.replayed.len(),
            sum(&derivations.unproved),
            derivations.reversed,
            derivations.rounded,
            derivations.outside
        );
        for (what, rules) in [("not proved", &derivations.unproved), ("not accepted", &derivations.refused)] {
            let mut rules: Vec<_> = rules.iter().map(|(rule, count)| (*count, *rule)).collect();
            rules.sort_unstable_by(|a, b| b.cmp(a));
            let listed: Vec<String> = rules.iter().map(|(count, rule)| format!("{rule} {count}")).collect();
            if !listed.is_empty() {
                println!("  {what}: {}", listed.join(", "));
            }
        }
        for fault in derivations.faults.iter().take(MAX_FAULTS) {
            println!("  not accepted: {fault}");
        }
        println!("{} passed, {} failed", self.written + self.same, self.faults + derivations.faults.len());
    }
}

/// Compares the written programs.
fn compare_written(oracle: &mut Oracle, tally: &mut Tally) -> std::io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let Written { subjects, mut left_out } = written(&root.join("tests"), &root.join("library"))?;
    let (names, subjects): (Vec<String>, Vec<Subject>) = subjects.into_iter().unzip();
    for (name, outcome) in names.iter().zip(compare(oracle, &subjects)?) {
        match outcome {
            Outcome::Same { .. } => tally.written += 1,
            Outcome::TooLarge => *left_out.entry("too large to be compared".into()).or_default() += 1,
            Outcome::Outside(what) => *left_out.entry(what).or_default() += 1,
            Outcome::Differs(fault) => {
                println!("{name}: {}", fault.what);
                tally.faults += 1;
            }
        }
    }
    println!("{} functions of written programs: the same derivatives, runs and tapes", tally.written);
    for (what, count) in left_out {
        println!("  {count} left out: {what}");
    }
    Ok(())
}
