//! The rule table as a page of the documentation.

use crate::table::{rules, Class, Use};
use std::fmt::Write;

const INTRODUCTION: &str = "# The optimiser

The first part of this page explains; the table is generated from `crates/rewrite/src/table.rs`. Do not edit: `cargo xtask docs` writes it.

    gradus transform FILE FUNCTION -O              # the derivative, optimised, as Gradus source
    gradus transform FILE FUNCTION -O --exact      # only by rules that change no bit of any result
    gradus transform FILE FUNCTION -O --explain    # and how it came out, rule by rule
    gradus transform FILE FUNCTION -O --itself     # the function, with the derivatives that it takes carried out

`d/dx (x^2 + sin x)` comes out as a person would write it:

    let f_value_and_grad (x : real) : real * real = (x ^ 2 + sin x, 2.0 * x + cos x)

and so does the gradient of a dot product by forward mode, which runs the function once for each element before the rules have seen it. From
`let g ((a, b) : real[] * real[]) = grad (fun x -> dot x b) a`, with `--itself --ad forward -O`:

    let g (x : real[] * real[]) : real[] =
      let x' : real[] = snd x in let _ = check_size x' (length (fst x)) in x'

## What happens

1. A *directed pass* goes over the term again and again, as long as a rule applies: small functions are put where they are called, definitions
   where they are used, known tuples, constructors, conditions and constants are computed, arrays that are read once at each index are fused
   with the loop that reads them, and zeros and ones of derivatives go away. After a check that two arrays have one length, that is known.
2. A *search* takes the expressions on numbers and truth values, makes all their equal forms in an e-graph (egg) and keeps the cheapest. A
   part that binds a variable is a leaf there, so that no rule can take a variable out of its scope. Each expression has its own
   budget of nodes and rounds; the time is linear in the size of the program.
3. *Sharing*: an expression that stands twice and is certain to be evaluated is computed once.

The cost that is made small is the number of evaluator steps, and of forms with as many steps the time that their operations take.

## What is kept

A program that stops with an error, does not end, or meets a kink under `--kinks=warn` or `error`, does so afterwards. What
can fail is neither dropped nor moved past something else that can: `total e` in the table says that evaluating `e` ends with a value whatever its variables
are, which is known of arithmetic, of `a.(i)` where `i` is the index of a loop over `a`, and so on, and never of calls. Under
`--domain=error` an operation with a domain is not total.

*Exact* rules change no bit of any result (all NaN count as one). *Reassociating* rules are true of real numbers but can change rounding, infinities,
NaN and the sign of zero: `x + 0.0 => x` turns `0.0` into `-0.0`, and `0.0 * x => 0.0` forgets a NaN. Programs that are run are optimised by exact rules
only; `transform -O`, whose result is read, uses both unless `--exact` is given.

A rule that is *proved* has a lemma in [`proofs/Laws.v`](../proofs/Laws.v) or [`proofs/Rewrite.v`](../proofs/Rewrite.v): whenever the left side returns, the right side returns the same
value, in no more steps, with no more kinks, and so does any program in which rules were applied anywhere (`C_theorem_2` in
`Statements.v`). Derivations of random programs are replayed by a checker that was extracted from the proofs (`cargo xtask oracle`). Every rule, proved or not, is tested on random terms of its shape: same value (bit for bit, if exact, on
infinities, NaN and signed zeros too), same error, same derivative.

## The rules

Names stand for terms: `a` to `h` reals, `i` to `n` integers, `p` and `q` truth values, `u` to `w` arrays, others anything. `e[x := a]` is `e` with `a` for
`x`. A rule used in `search` only is one whose two sides are equally good; one marked `code` covers more than the instance that is shown, such as
tuples of any length.
";

/// A Markdown page with one row for each rule; `docs/` holds its text.
pub fn documentation() -> String {
    let mut page = String::from(INTRODUCTION);
    let mut section = "";
    for rule in rules() {
        if rule.section != section {
            section = rule.section;
            let _ = write!(
                page,
                "\n### {section}\n\n| rule | | if | class | used in | proved |\n|---|---|---|---|---|---|\n"
            );
        }
        let class = match rule.class {
            Class::Exact => "exact",
            Class::Reassociates => "reassociates",
        };
        let used = match rule.usage {
            Use::Simplify => "simplify",
            Use::Search => "search",
            Use::Code => "code",
        };
        let condition = if rule.condition.is_empty() { String::new() } else { format!("`{}`", rule.condition) };
        let cells = [
            format!("`{}`", rule.name),
            format!("`{} => {}`", rule.left, rule.right),
            condition,
            class.to_string(),
            used.to_string(),
            rule.proved.map_or(String::new(), |lemma| format!("`{lemma}`")),
        ];
        // A bar inside a cell would end it.
        let _ = writeln!(page, "| {} |", cells.map(|cell| cell.replace('|', "\\|")).join(" | "));
    }
    page
}
