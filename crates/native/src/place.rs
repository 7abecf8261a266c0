//! Places where compiled code can stop, numbered for the calling convention.

use crate::flow::Failure;
use gradus_source::Span;
use rustc_hash::FxHashMap;

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
pub struct Places {
    all: Vec<Place>,
    /// Counted from 1.
    numbers: FxHashMap<Place, usize>,
}

impl Places {
    /// The number of a place, counted from 1.
    pub fn number(&mut self, failure: Option<Failure>, span: Span) -> usize {
        let place = Place { failure, span };
        *self.numbers.entry(place).or_insert_with(|| {
            self.all.push(place);
            self.all.len()
        })
    }

    /// Gives places the next numbers, one after the other, also if they have others; how many come before them.
    pub fn append(&mut self, places: &[Place]) -> usize {
        self.all.extend(places);
        self.all.len() - places.len()
    }

    pub fn get(&self, number: usize) -> Option<Place> {
        self.all.get(number.checked_sub(1)?).copied()
    }

    /// In order of their numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Place> + '_ {
        self.all.iter().copied()
    }
}
