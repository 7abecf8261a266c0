//! The typed core calculus: the union of the four papers' source languages, and the target of every
//! differentiation mode. Because source and target are one language, derivatives nest.
//!
//! This crate knows only `source`. It reads no files and prints nothing.

pub mod build;
pub mod check;
pub mod definitions;
pub mod instance;
pub mod mode;
pub mod prim;
pub mod print;
pub mod program;
pub mod proved;
pub mod term;
pub mod traverse;
pub mod types;

pub use definitions::{Definition, Definitions};
pub use mode::Mode;
pub use prim::Prim;
pub use program::{Body, Def, Item, ItemKind, Program, Rules};
pub use term::{Arm, Checked, DeriveOp, Global, Lambda, Literal, Site, Symbol, Term, TermKind, Var};
pub use types::{Constraint, Scheme, Type, TypeBody, TypeDecl, TypeName, TypeVar};
