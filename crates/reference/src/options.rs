//! Settings of a run, and what is known after it.

use gradus_core::Prim;
use gradus_source::Span;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

/// What happens when a decision falls at equality while a derivative is being taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kinks {
    #[default]
    Ignore,
    /// Count it; see [`Report::kinks`].
    Warn,
    /// Stop there.
    Error,
    /// Count every operation, whether or not a derivative is being taken, that the theorems about derivatives exclude:
    /// decisions at equality, and primitives applied where they are not smooth or not defined.
    Premise,
}

/// What happens when an operation is applied outside its domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Domain {
    /// NaN and infinities flow.
    #[default]
    Ieee,
    /// Stop there.
    Error,
}

#[derive(Clone, Debug)]
pub struct Options {
    pub kinks: Kinks,
    pub domain: Domain,
    pub max_steps: Option<u64>,
    /// In bytes, for values and the machine's stacks together.
    pub max_memory: u64,
    /// Set from another thread to stop the program.
    pub interrupt: Option<Arc<AtomicBool>>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            kinks: Kinks::default(),
            domain: Domain::default(),
            max_steps: None,
            max_memory: 8 << 30,
            interrupt: None,
        }
    }
}

/// A place where decisions fell at equality while a derivative was being taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kink {
    pub span: Span,
    pub prim: Prim,
    pub count: u64,
}

/// What the machine has done since it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub steps: u64,
    /// Steps of the semantics that the proofs are about (see [`gradus_core::proved::Steps`]); counted with [`Kinks::Premise`], unless there was code outside
    /// the proved language.
    pub semantic_steps: Option<u64>,
    /// In bytes, approximately.
    pub peak_memory: u64,
    /// In the order in which they were met first. Empty unless kinks are counted.
    pub kinks: Vec<Kink>,
}
