//! How an evaluator or a pass gets at definitions: by key, on demand.

use crate::{Global, Lambda, Mode, Scheme, Term, Type, TypeDecl, TypeName};
use gradus_source::Diagnostic;
use std::sync::Arc;

/// A global with a closed, monomorphic type.
#[derive(Clone, Debug)]
pub struct Definition {
    pub global: Global,
    pub ty: Type,
    /// `None` for `data`: the evaluator has been given the value.
    pub term: Option<Term>,
}

/// The linker: makes and keeps definitions. `derive` has the implementation that knows all the modes; the
/// evaluators see only this.
pub trait Definitions {
    /// The definition of a global; a mode that cannot take it answers with a located refusal.
    fn definition(&self, global: &Global) -> Result<Arc<Definition>, Box<Diagnostic>>;

    /// The declaration of a type, which may be the image of a declared one under modes.
    fn type_decl(&self, name: &TypeName) -> Result<Arc<TypeDecl>, Box<Diagnostic>>;

    /// The image of a function under a mode; free variables keep their numbers and have translated types.
    fn differentiate(&self, lambda: &Arc<Lambda>, mode: Mode) -> Result<Arc<Lambda>, Box<Diagnostic>>;

    /// The types of the variables around a function (others may be among them), if the linker has seen it. A variable's number does
    /// not tell its type, since a function and its images under modes share their variables.
    fn variable_types(&self, _lambda: &Arc<Lambda>) -> Option<Arc<rustc_hash::FxHashMap<crate::Var, Type>>> {
        None
    }
}

/// Types of local variables, for passes that need the type of a term.
pub type Environment = rustc_hash::FxHashMap<crate::Var, Scheme>;
