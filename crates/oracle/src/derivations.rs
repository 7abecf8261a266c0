//! The derivations of the optimiser, replayed by the checker that was extracted from `proofs/Checker.v`: every step by a rule that the table
//! marks as proved must be a rewriting by the lemma that it names.

use crate::process::Oracle;
use crate::translate::Translator;
use crate::wire::{Sexp, Wire};
use gradus_core::{Body, Mode, Term};
use gradus_derive::{Linker, Settings};
use gradus_generate::Generated;
use gradus_rewrite::{replace, rule, Class, Optimiser, Step};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Terms that are longer as text are not sent.
const LONGEST: usize = 40_000;

/// What else a lemma may need to come to the same text. The translation binds parts of data by `let`, and a function that a loop runs unless it is
/// written out; some rows do several steps at once.
pub fn companions(lemma: &str) -> &'static [&'static str] {
    match lemma {
        "loop_succ" => &["loop_zero", "let_atom"],
        "if_not" => &["if_truth"],
        "case_inl" | "case_inr" => &[
            "let_atom",
            "let_dead",
            "beta_let",
            "case_inr",
            "fst_pair",
            "snd_pair",
            "unnode_node",
            "get_first",
            "get_next",
        ],
        "let_out" => &["let_out_2", "let_out_3", "let_let", "let_swap", "let_atom", "beta_let"],
        "fold_compare" => &["fold_intcmp", "fold_neg", "case_inl", "case_inr", "let_dead"],
        _ => &["let_atom", "beta_let"],
    }
}

/// What came of the steps of some derivations.
#[derive(Debug, Default)]
pub struct Replay {
    /// By rule.
    pub replayed: BTreeMap<&'static str, usize>,
    pub unproved: BTreeMap<&'static str, usize>,
    /// Steps of the search from right to left: equal values, not a refinement.
    pub reversed: usize,
    /// Arithmetic on literals whose result was rounded, which is no equation of real numbers.
    pub rounded: usize,
    /// Outside the proved language, or too long.
    pub outside: usize,
    pub faults: Vec<String>,
    /// How many of them, by rule.
    pub refused: BTreeMap<&'static str, usize>,
}

/// The optimised definitions of a program, step by step.
pub fn replay(oracle: &mut Oracle, program: &Generated, replay: &mut Replay) -> std::io::Result<()> {
    let linker = Linker::new(Arc::new(program.program.clone()), Settings { reverse: Mode::Monadic, check: false });
    let settings = gradus_rewrite::Settings { class: Class::Reassociates, ..Default::default() };
    let (mut asked, mut lines) = (Vec::new(), Vec::new());
    for def in program.program.defs.values() {
        let Body::Term(term) = &def.body else { continue };
        let optimised = Optimiser { settings, explain: true, ..Optimiser::default() }.run(term);
        let mut current = optimised.start;
        for step in optimised.steps {
            let Some(next) = replace(&current, &step.path, &step.after) else {
                replay.faults.push(format!("{}: no such place", step.rule));
                break;
            };
            match question(&linker, &step, &current, &next) {
                Question::Ask(line) => {
                    lines.push(line);
                    asked.push(step.rule);
                }
                Question::Unproved => *replay.unproved.entry(step.rule).or_default() += 1,
                Question::Reversed => replay.reversed += 1,
                Question::Outside => replay.outside += 1,
            }
            current = next;
        }
    }
    for ((rule, line), answer) in asked.into_iter().zip(&lines).zip(oracle.ask(&lines)?) {
        match answer {
            Sexp::List(_) if is_yes(&answer) => *replay.replayed.entry(rule).or_default() += 1,
            Sexp::Atom(_) if matches!(rule, "fold_add" | "fold_mul" | "fold_sub" | "fold_real") => replay.rounded += 1,
            Sexp::Atom(_) | Sexp::List(_) => {
                *replay.refused.entry(rule).or_default() += 1;
                replay.faults.push(format!("seed {}: {rule}: {line}", program.seed));
            }
        }
    }
    Ok(())
}

fn is_yes(answer: &Sexp) -> bool {
    matches!(answer.list(), Some([yes, ..]) if yes.atom() == Some("yes"))
}

enum Question {
    Ask(String),
    Unproved,
    Reversed,
    Outside,
}

fn question(linker: &Linker, step: &Step, before: &Term, after: &Term) -> Question {
    let Some(lemma) = rule(step.rule).and_then(|rule| rule.proved) else { return Question::Unproved };
    if step.reversed {
        return Question::Reversed;
    }
    let wire = |term: &Term| Translator::plain(linker, term);
    match (wire(before), wire(after)) {
        (Ok(before), Ok(after)) => line(lemma, &before, &after).map_or(Question::Outside, Question::Ask),
        _ => Question::Outside,
    }
}

/// `(derive () e e' (rule ...))`
fn line(lemma: &str, before: &Wire, after: &Wire) -> Option<String> {
    let mut line = String::from("(derive () ");
    before.write(&mut line);
    line.push(' ');
    after.write(&mut line);
    line.push_str(&format!(" ({lemma}"));
    companions(lemma).iter().for_each(|name| line.push_str(&format!(" {name}")));
    line.push_str("))");
    (line.len() <= LONGEST).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::companions;
    use std::collections::BTreeSet;

    /// The names of the rules in the table of `proofs/oracle.ml`.
    fn known_to_the_checker() -> BTreeSet<String> {
        let text = include_str!("../../../proofs/oracle.ml");
        let table =
            text.split_once("let names = [").and_then(|(_, rest)| rest.split_once(']')).map_or("", |(table, _)| table);
        table.split('"').skip(1).step_by(2).map(str::to_string).collect()
    }

    #[test]
    fn what_the_table_calls_proved_is_what_the_checker_knows() {
        let known = known_to_the_checker();
        let named: BTreeSet<String> =
            gradus_rewrite::rules().iter().filter_map(|rule| rule.proved).map(str::to_string).collect();
        assert!(named.is_subset(&known), "no rule of the checker: {:?}", named.difference(&known));
        let helpers = named.iter().flat_map(|lemma| companions(lemma)).map(|name| name.to_string());
        let used: BTreeSet<String> = named.iter().cloned().chain(helpers).collect();
        let unused: Vec<&String> = known.difference(&used).collect();
        assert!(unused.is_empty(), "proved, and not claimed by any row: {unused:?}");
    }
}
