//! Core as Gradus source: types, terms, definitions and whole programs, in a form that the front end reads back.

mod bindings;
mod data;
mod file;
mod layout;
mod names;
mod terms;
mod types;

#[cfg(test)]
mod tests;

pub use file::{print_definitions, print_program};
pub use types::{print_scheme, print_type, type_name, TypePrinter};

use crate::check::Context;
use crate::traverse::free_vars;
use crate::Term;
use names::Names;
use terms::TermPrinter;

/// Where types are written besides the parameters and results of definitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Annotations {
    /// Nowhere.
    #[default]
    None,
    /// At the parameters of local functions with names, so that arithmetic on them is read back at the right type.
    Functions,
    /// At all parameters and variables.
    All,
}

#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub width: usize,
    pub annotations: Annotations,
}

impl Default for Options {
    fn default() -> Self {
        Options { width: 100, annotations: Annotations::None }
    }
}

/// A closed term. Without a context, components of tuples and constructors are shown in a form that Gradus does not have.
pub fn print_term(context: Option<&dyn Context>, term: &Term, options: Options) -> String {
    let mut names = Names::default();
    // Of a part of a program, so that different variables of one name can be told apart.
    free_vars(term).iter().for_each(|var| drop(names.bind(var)));
    let mut printer = TermPrinter::new(context, options, names);
    let doc = printer.whole(term);
    printer.layout.render(doc, options.width)
}
