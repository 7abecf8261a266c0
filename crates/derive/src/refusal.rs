//! Why a derivative cannot be made: the facts, and their wording as a diagnostic.

use gradus_core::{Global, Mode, TypeName};
use gradus_source::{Diagnostic, Span};

/// The result of making something.
pub type Made<T> = Result<T, Box<Refusal>>;

#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// The mode cannot take a construct of the language.
    Construct {
        mode: Mode,
        construct: &'static str,
        span: Span,
    },
    /// The mode has no reverse (or no forward) derivative to offer.
    Form {
        mode: Mode,
        form: &'static str,
        span: Span,
    },
    /// A custom rule for a function whose parameters or result contain functions.
    RuleOnFunctions {
        function: String,
        span: Span,
    },
    /// A key that no program has: the caller's mistake, but one that a file can cause.
    UnknownGlobal {
        global: Box<Global>,
    },
    UnknownType {
        name: TypeName,
    },
    /// Our own mistake: the image of a definition does not have the translated type.
    IllTyped {
        what: String,
        problem: String,
    },
}

impl Refusal {
    pub fn code(&self) -> &'static str {
        match self {
            Refusal::Construct { .. } => "E0502",
            Refusal::Form { .. } => "E0503",
            Refusal::RuleOnFunctions { .. } => "E0504",
            Refusal::UnknownGlobal { .. } => "E0505",
            Refusal::UnknownType { .. } => "E0506",
            Refusal::IllTyped { .. } => "E0599",
        }
    }

    /// The one place that words these.
    pub fn diagnostic(&self) -> Diagnostic {
        let code = self.code();
        match self {
            Refusal::Construct { mode, construct, span } => {
                Diagnostic::error(code, format!("the mode `{mode}` cannot differentiate {construct}"))
                    .label(*span, format!("{construct} under `{mode}`"))
                    .help("choose another mode with `--ad`; `monadic` takes the whole language")
            }
            Refusal::Form { mode, form, span } => {
                Diagnostic::error(code, format!("the mode `{mode}` cannot compute `{form}`"))
                    .label(*span, format!("`{form}` is asked for here"))
                    .help("choose another mode with `--ad`")
            }
            Refusal::RuleOnFunctions { function, span } => Diagnostic::error(
                code,
                format!("the custom derivative of `{function}` cannot be used: its type has functions inside"),
            )
            .label(*span, "a rule needs parameters and a result of data type"),
            Refusal::UnknownGlobal { global } => Diagnostic::error(code, format!("there is no definition {global:?}")),
            Refusal::UnknownType { name } => Diagnostic::error(code, format!("there is no type `{}`", name.base)),
            Refusal::IllTyped { what, problem } => {
                Diagnostic::error(code, format!("internal error: {what} is ill-typed: {problem}"))
                    .help("please report this: differentiation must preserve types")
            }
        }
    }
}

impl From<Box<Refusal>> for Box<Diagnostic> {
    fn from(refusal: Box<Refusal>) -> Self {
        Box::new(refusal.diagnostic())
    }
}
