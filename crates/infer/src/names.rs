//! What names mean: the names that a scope offers, the table of top-level definitions, and finding near names.

use crate::assumed::AssumedParam;
use crate::scheme::Closed;
use crate::store::{Ty, TypeId};
use crate::tree::LocalId;
use gradus_core::{DeriveOp, Prim, Symbol};
use gradus_source::Span;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A top-level definition: a position in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GlobalId(pub u32);

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    Local(LocalId),
    Global(GlobalId),
    Prim(Prim),
    Derive(DeriveOp),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TypeRef {
    Declared(TypeId),
    Alias(u32),
    Constant(Ty),
}

/// `type point = real * real`: expanded wherever it is used.
#[derive(Clone, Debug)]
pub struct Alias {
    pub params: usize,
    pub body: Arc<Closed>,
}

/// The names of one scope, one namespace each.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub values: FxHashMap<Symbol, Value>,
    pub constructors: FxHashMap<Symbol, (TypeId, usize)>,
    /// All records with a field of that name, the latest last.
    pub fields: FxHashMap<Symbol, Vec<(TypeId, usize)>>,
    pub types: FxHashMap<Symbol, TypeRef>,
}

impl Names {
    /// `open`: later names win.
    pub fn open(&mut self, other: &Names) {
        self.values.extend(other.values.iter().map(|(k, v)| (k.clone(), *v)));
        self.constructors.extend(other.constructors.iter().map(|(k, v)| (k.clone(), *v)));
        self.types.extend(other.types.iter().map(|(k, v)| (k.clone(), *v)));
        for (name, records) in &other.fields {
            self.fields.entry(name.clone()).or_default().extend(records);
        }
    }
}

/// A top-level definition.
#[derive(Clone, Debug)]
pub struct Global {
    /// As in `Program::defs`.
    pub name: Symbol,
    /// As the user wrote it.
    pub shown: Symbol,
    /// `None` while its recursive group is being inferred, and if it is wrong.
    pub scheme: Option<Arc<Closed>>,
    /// The type during inference of its group, with the size variables that each use chooses anew.
    pub progress: Option<(Ty, Vec<u32>)>,
    pub assumed: Vec<AssumedParam>,
    pub span: Span,
}

/// The nearest of some names, if it is near enough to be meant.
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    let length = name.chars().count();
    let allowed = match length {
        0..=1 => 0,
        2..=4 => 1,
        5..=7 => 2,
        _ => 3,
    };
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        if candidate == name || candidate.chars().count().abs_diff(length) > allowed || candidate.starts_with('_') {
            continue;
        }
        let distance = distance(name, candidate);
        // A name of which nothing is left is no correction.
        let better = best.is_none_or(|(d, other)| (distance, candidate) < (d, other));
        if distance <= allowed && distance < length.max(2) && better {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate.to_string())
}

/// Damerau-Levenshtein: insertions, deletions, replacements, exchanges of neighbours. Case does not count.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) =
        (a.chars().flat_map(char::to_lowercase).collect(), b.chars().flat_map(char::to_lowercase).collect());
    let width = b.len() + 1;
    let mut rows: Vec<usize> = (0..width).collect();
    let mut before: Vec<usize> = Vec::new();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(rows[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut rows, row);
    }
    rows[b.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn distances_are_those_of_damerau_and_levenshtein() {
        for (a, b, expected) in [("kitten", "sitting", 3), ("ca", "ac", 1), ("", "abc", 3), ("grad", "grad", 0)] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn short_names_need_to_be_nearer() {
        assert_eq!(nearest("lenght", ["length", "map"].into_iter()), Some("length".to_string()));
        assert_eq!(nearest("x", ["abc"].into_iter()), None);
        assert_eq!(nearest("x", ["y"].into_iter()), None);
    }
}
