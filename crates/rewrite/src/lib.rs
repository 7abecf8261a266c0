//! The optimiser of core programs: rules as tables (C section 4), and a directed pass for what needs no search.

mod occurrences;
mod simplify;

pub use simplify::simplify;
