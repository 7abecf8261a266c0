//! Settings of a run: what the global options of the command line set.

pub use gradus_core::Mode;
pub use gradus_reference::{Domain, Kinks};
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

/// What runs the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// Machine code, as by [`Backend::Native`]; the evaluator for what is not compiled, and where options are set that only it heeds.
    #[default]
    Auto,
    /// The evaluator that defines the meaning.
    Reference,
    /// Machine code, made in milliseconds with no tool outside the binary. What cannot be compiled is refused.
    Native,
    /// C, compiled by the C compiler of the machine. What cannot be compiled is refused.
    C,
}

impl Backend {
    /// As the command line calls it.
    pub fn key(self) -> &'static str {
        match self {
            Backend::Auto => "auto",
            Backend::Reference => "reference",
            Backend::Native => "native",
            Backend::C => "c",
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
    /// On how many threads compiled loops may run, and machine code may be made; nothing: as many as the machine runs at once. Results are the same for any number.
    pub threads: Option<usize>,
    /// Whether definitions go through the optimiser before the evaluator runs them; compiled code always has its own.
    pub optimise: bool,
    /// Whether the optimiser may also use rules that change rounding, NaN or the sign of zero.
    pub reassociate: bool,
    /// Set from another thread, or by a signal, to stop a run.
    pub interrupt: Option<Arc<AtomicBool>>,
}

/// Steps that take the evaluator less than a compiler takes for anything.
const A_FEW_STEPS: u64 = 20_000;

impl Options {
    /// The same for the evaluator, which is to give up after a few steps.
    pub fn for_a_few_steps(&self) -> Options {
        let max_steps = Some(self.max_steps.unwrap_or(A_FEW_STEPS).min(A_FEW_STEPS));
        Options { backend: Backend::Reference, max_steps, ..self.clone() }
    }

    /// Whether programs are compiled to machine code.
    pub fn compiles(&self) -> bool {
        match self.backend {
            Backend::Auto => self.only_reference().is_none(),
            Backend::Reference => false,
            Backend::Native | Backend::C => true,
        }
    }

    /// The option that only the reference evaluator heeds, if one is set.
    pub fn only_reference(&self) -> Option<&'static str> {
        let Options { mode, kinks, domain, .. } = self;
        match (mode, kinks, domain) {
            (Some(_), ..) => Some("--ad"),
            (_, Kinks::Warn | Kinks::Error | Kinks::Premise, _) => Some("--kinks"),
            (_, _, Domain::Error) => Some("--domain=error"),
            (None, Kinks::Ignore, Domain::Ieee) => None,
        }
    }
}
