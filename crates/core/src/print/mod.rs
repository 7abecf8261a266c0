//! Core as Gradus source: types, terms, definitions and whole programs, in a form that the front end reads back.

mod types;

pub use types::{print_scheme, print_type, type_name, TypePrinter};
