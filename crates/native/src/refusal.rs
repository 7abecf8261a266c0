//! Why a program cannot be compiled natively (yet). Never a wrong answer, always the construct and its place.

use gradus_source::{Diagnostic, Span};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub reason: Reason,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A function among the arguments or results of an entry point.
    Type(String),
    /// A derivative form without a native form.
    Derivative(&'static str),
    /// A function with a derivative rule of its own.
    CustomRule(String),
    /// Specialisation does not come to an end.
    Unbounded,
    /// Specialisation comes to an end too late.
    TooLarge,
    /// A definition that is not there, or code that only other modes produce.
    Foreign(String),
}

impl Refusal {
    pub fn diagnostic(&self) -> Diagnostic {
        let (message, label) = match &self.reason {
            Reason::Type(ty) => {
                (format!("values of type `{ty}` cannot be given to or by compiled code"), "this is a function")
            }
            Reason::Derivative(what) => (format!("{what} cannot be compiled natively yet"), "used here"),
            Reason::CustomRule(name) => (
                format!("`{name}` has a derivative rule of its own, which cannot be compiled natively yet"),
                "used here",
            ),
            Reason::Unbounded => ("this recursion makes ever new functions".into(), "called here"),
            Reason::TooLarge => (
                "this becomes too much code, since functions are written out where they are called".into(),
                "with this",
            ),
            Reason::Foreign(what) => (format!("{what} cannot be compiled natively"), "used here"),
        };
        Diagnostic::error("E0801", message)
            .label(self.span, label)
            .help("run it with `--backend reference`, which takes every program")
    }
}
