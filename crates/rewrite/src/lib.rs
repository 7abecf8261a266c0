//! The optimiser of core programs: rules as tables (C section 4), and a directed pass for what needs no search.

mod occurrences;
mod simplify;
mod total;

pub use simplify::{forget_origins, simplify};
pub use total::is_total;
