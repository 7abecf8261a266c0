//! Settings of a run: what the global options of the command line set.

pub use gradus_core::Mode;
pub use gradus_reference::{Domain, Kinks};
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

/// What runs the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// The evaluator that defines the meaning.
    #[default]
    Reference,
    /// Machine code, made in milliseconds with no tool outside the binary.
    Native,
    /// C, compiled by the C compiler of the machine.
    C,
}

impl Backend {
    /// As the command line calls it.
    pub fn key(self) -> &'static str {
        match self {
            Backend::Reference => "reference",
            Backend::Native => "native",
            Backend::C => "c",
        }
    }

    /// Whether programs are compiled to machine code.
    pub fn compiles(self) -> bool {
        match self {
            Backend::Reference => false,
            Backend::Native | Backend::C => true,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Options {
    pub backend: Backend,
    /// How `grad` and its relatives are made; the default is the backend's own.
    pub mode: Option<Mode>,
    pub kinks: Kinks,
    pub domain: Domain,
    /// In bytes.
    pub max_memory: Option<u64>,
    pub max_steps: Option<u64>,
    /// On how many threads compiled loops may run; nothing: as many as the machine runs at once. Results are the same for any number.
    pub threads: Option<usize>,
    /// Whether definitions go through the optimiser before they run.
    pub optimise: bool,
    /// Whether the optimiser may also use rules that change rounding, NaN or the sign of zero.
    pub reassociate: bool,
    /// Set from another thread, or by a signal, to stop a run.
    pub interrupt: Option<Arc<AtomicBool>>,
}
