//! Places where compiled code can stop, numbered for the calling convention.

use crate::flow::Failure;
use gradus_source::Span;
use indexmap::IndexSet;

/// A check of the program that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    pub failure: Failure,
    pub span: Span,
}

/// A check, or a place where memory, stack, steps or patience can run out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Of a check.
    pub failure: Option<Failure>,
    pub span: Span,
}

/// The places of a module; a failure number is `8 * place + kind`, see [`gradus_runtime::slot::Kind`].
#[derive(Clone, Debug, Default)]
pub struct Places(IndexSet<Place>);

impl Places {
    /// The number of a place, counted from 1.
    pub fn number(&mut self, failure: Option<Failure>, span: Span) -> usize {
        self.0.insert_full(Place { failure, span }).0 + 1
    }

    pub fn get(&self, number: usize) -> Option<Place> {
        self.0.get_index(number.checked_sub(1)?).copied()
    }

    /// In order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = Place> + '_ {
        self.0.iter().copied()
    }
}
