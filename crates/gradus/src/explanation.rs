//! The derivation of an optimised program, for people: which rule was used, on what, and what came out.

use crate::pipeline::Derivation;
use gradus_core::check::Context;
use gradus_core::print::{print_term, Options};
use gradus_core::{Global, Term};
use std::fmt::Write;

/// Longer terms are cut.
const MOST_LINES: usize = 12;

/// The derivations as comments of Gradus; nothing if there are none.
pub fn text(context: &dyn Context, derivations: &[Derivation]) -> String {
    let mut text = String::new();
    for derivation in derivations.iter().filter(|derivation| !derivation.steps.is_empty()) {
        let _ = writeln!(text, "\n(* How {} came out, step by step:", name(&derivation.global));
        for (number, step) in derivation.steps.iter().enumerate() {
            let back = if step.reversed { ", from right to left" } else { "" };
            let _ = writeln!(text, "\n{:>4}. {}{back}", number + 1, step.rule);
            let _ = writeln!(text, "{}\n      =>\n{}", shown(context, &step.before), shown(context, &step.after));
        }
        text.push_str("*)\n");
    }
    text
}

fn shown(context: &dyn Context, term: &Term) -> String {
    let text = print_term(Some(context), term, Options { width: 90, ..Options::default() });
    let lines: Vec<String> = text.lines().take(MOST_LINES).map(|line| format!("      {line}")).collect();
    let cut = if text.lines().count() > MOST_LINES { "\n      ..." } else { "" };
    lines.join("\n") + cut
}

fn name(global: &Global) -> String {
    match global {
        Global::Source { name, .. } => name.to_string(),
        Global::Derived { mode, of } => format!("{} of {}", mode, name(of)),
        Global::Wrapper { name, .. } => (*name).to_string(),
    }
}
