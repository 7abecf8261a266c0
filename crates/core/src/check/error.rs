//! What the checker finds.

use crate::print::print_type;
use crate::{Mode, Type, Var};
use gradus_source::{Diagnostic, Span};

pub(super) const CODE: &str = "E0900";

/// A broken invariant of core: a mistake in a pass, never in the user's program.
#[derive(Clone, Debug)]
pub struct CheckError {
    pub span: Span,
    pub kind: CheckErrorKind,
}

#[derive(Clone, Debug)]
pub enum CheckErrorKind {
    UnboundVariable(Var),
    BoundTwice(Var),
    Mismatch {
        what: &'static str,
        expected: Type,
        found: Type,
    },
    NotAFunction(Type),
    Arity {
        what: String,
        expected: usize,
        found: usize,
    },
    TypeArguments {
        what: String,
        expected: usize,
        found: usize,
    },
    NoComponent {
        ty: Type,
        index: usize,
    },
    NoConstructor {
        ty: Type,
        tag: usize,
    },
    RepeatedArm {
        tag: usize,
    },
    Uncovered {
        ty: Type,
        tag: usize,
    },
    NotAVariant(Type),
    RecursiveValue(Var),
    PolymorphicNonValue(Var),
    NotData {
        what: &'static str,
        ty: Type,
    },
    OpenType(Type),
    NoTranslation(Mode),
    /// The context could not answer.
    Refused(Box<Diagnostic>),
}

impl CheckError {
    pub fn diagnostic(&self) -> Diagnostic {
        use CheckErrorKind::*;
        let text = match &self.kind {
            UnboundVariable(v) => format!("variable {v:?} is not bound"),
            BoundTwice(v) => format!("variable {v:?} is bound twice"),
            Mismatch { what, expected, found } => {
                format!("{what} has type {}, expected {}", print_type(found), print_type(expected))
            }
            NotAFunction(ty) => format!("a value of type {} is applied", print_type(ty)),
            Arity { what, expected, found } => format!("{what} takes {expected} arguments, not {found}"),
            TypeArguments { what, expected, found } => format!("{what} takes {expected} type arguments, not {found}"),
            NoComponent { ty, index } => format!("type {} has no component {index}", print_type(ty)),
            NoConstructor { ty, tag } => format!("type {} has no constructor {tag}", print_type(ty)),
            RepeatedArm { tag } => format!("two arms for constructor {tag}"),
            Uncovered { ty, tag } => format!("no arm for constructor {tag} of type {}", print_type(ty)),
            NotAVariant(ty) => format!("a value of type {} is taken apart", print_type(ty)),
            RecursiveValue(v) => format!("recursive {v:?} is not a function"),
            PolymorphicNonValue(v) => format!("polymorphic {v:?} is not a value"),
            NotData { what, ty } => format!("{what} is used at type {}, which contains functions", print_type(ty)),
            OpenType(ty) => format!("type {} has a variable that is not in scope", print_type(ty)),
            NoTranslation(mode) => format!("types under mode {mode} are not known here"),
            Refused(diagnostic) => diagnostic.message.clone(),
        };
        Diagnostic::error(CODE, format!("core: {text}")).label(self.span, "in what was made from this")
    }
}
