//! Why a program cannot be compiled natively (yet). Never a wrong answer, always the construct and its place.

use gradus_source::{Diagnostic, Span};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub reason: Reason,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A value of a type that has no flat form: strings, functions, recursive types.
    Type(String),
    /// Data that contains nothing to store, such as an array of units.
    EmptyElement,
    /// Rows of an array that could differ in length: arrays inside variants inside arrays.
    IrregularElement,
    /// A function that depends on a condition or on the course of a loop.
    UnknownFunction,
    /// A primitive without a native form.
    Primitive(&'static str),
    /// Comparison of order between structures.
    OrderOfStructures,
    /// A derivative form without a native form.
    Derivative(&'static str),
    /// A function with a derivative rule of its own.
    CustomRule(String),
    /// Specialisation does not come to an end.
    Unbounded,
    /// A definition that is not there, or code that only other modes produce.
    Foreign(String),
    /// More dimensions than arrays can have.
    Rank(usize),
}

impl Refusal {
    pub fn diagnostic(&self) -> Diagnostic {
        let (message, label) = match &self.reason {
            Reason::Type(ty) => {
                (format!("values of type `{ty}` cannot be compiled natively yet"), "such a value is needed here")
            }
            Reason::EmptyElement => ("an array of elements without content".into(), "this array"),
            Reason::IrregularElement => {
                ("an array whose elements may contain arrays of different length".into(), "this array")
            }
            Reason::UnknownFunction => ("a function that is only known when the program runs".into(), "this function"),
            Reason::Primitive(name) => (format!("`{name}` cannot be compiled natively yet"), "used here"),
            Reason::OrderOfStructures => {
                ("the order of structured data cannot be compiled natively yet".into(), "compared here")
            }
            Reason::Derivative(name) => (format!("`{name}` cannot be compiled natively yet"), "used here"),
            Reason::CustomRule(name) => (
                format!("`{name}` has a derivative rule of its own, which cannot be compiled natively yet"),
                "used here",
            ),
            Reason::Unbounded => ("this recursion makes ever new functions".into(), "called here"),
            Reason::Foreign(what) => (format!("{what} cannot be compiled natively"), "used here"),
            Reason::Rank(rank) => (format!("an array of {rank} dimensions; at most 7 are possible"), "this array"),
        };
        Diagnostic::error("E0801", message)
            .label(self.span, label)
            .help("run it with `--backend reference`, which takes every program")
    }
}
