//! What a rule may ask of the terms in place of its metavariables.

use crate::pattern::{Name, Pattern};
use gradus_source::bug;

#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// Evaluating it ends with a value.
    Total(Name),
    /// At most one of both can fail, so that their order does not matter.
    OneTotal(Name, Name),
    /// A variable, a literal or a global: costs nothing to repeat.
    Atom(Name),
    /// `k < n`: known to lie from 0 to below it.
    Below(Name, Pattern),
    /// Known not to be negative.
    NonNegative(Name),
    /// The variable does not occur.
    Absent(Name, Name),
    /// The variable occurs once, where it is evaluated at most once.
    Once(Name, Name),
    /// The variable occurs once, and nothing that can fail is evaluated before it.
    Next(Name, Name),
    /// The array is known to have so many elements.
    Size(Name, Name),
    /// Two integers that are known to be equal, and to have a value.
    Same(Name, Name),
}

impl Condition {
    /// A list with commas between its parts.
    pub fn parse(text: &'static str) -> Vec<Condition> {
        text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(Condition::part).collect()
    }

    fn part(text: &'static str) -> Condition {
        if let Some((index, size)) = text.split_once(" < ") {
            return Condition::Below(index, Pattern::parse(size));
        }
        let words: Vec<Name> = text.split_whitespace().collect();
        match words[..] {
            ["total", a] => Condition::Total(a),
            ["total", a, "or", "total", b] => Condition::OneTotal(a, b),
            ["atom", a] => Condition::Atom(a),
            ["nonneg", n] => Condition::NonNegative(n),
            [x, "not", "in", e] => Condition::Absent(x, e),
            ["once", x, "in", e] => Condition::Once(x, e),
            ["next", x, "in", e] => Condition::Next(x, e),
            ["size", u, n] => Condition::Size(u, n),
            ["same", m, n] => Condition::Same(m, n),
            _ => bug!("the condition `{text}`"),
        }
    }
}
