//! What the optimiser must keep.

use crate::table::Class;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The rules that may be used: the exact ones, or all.
    pub class: Class,
    /// Kinks are looked for (`--kinks=warn` or `error`): what can meet one is neither dropped nor moved.
    pub kinks: bool,
    /// An operation outside its domain stops the program (`--domain=error`): it is neither dropped nor moved.
    pub domain: bool,
    /// A function that is the image of another under a mode may still be differentiated, so that it must keep the variables that its
    /// original captures. Otherwise such functions are changed like others.
    pub origins: bool,
}

impl Settings {
    /// For reading: all rules, nothing else to keep.
    pub fn reading() -> Self {
        Settings { class: Class::Reassociates, ..Settings::default() }
    }
}
