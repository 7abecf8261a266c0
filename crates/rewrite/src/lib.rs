//! The optimiser of core programs (C section 4): rules as a table, a directed pass for what needs no search, an e-graph for what does.

mod apply;
mod arrays;
mod condition;
mod directed;
mod documentation;
mod equal;
mod facts;
mod island;
mod known;
mod lets;
mod matching;
mod occurrences;
mod optimise;
mod parse;
mod pattern;
mod search;
mod settings;
mod share;
mod size;
mod steps;
mod table;
mod total;
mod unfold;

pub use apply::apply_rule;
pub use documentation::documentation;
pub use optimise::{forget_origins, Optimised, Optimiser};
pub use settings::Settings;
pub use steps::{part, replace, Step};
pub use table::{rule, rules, Class, Rule, Use};

#[cfg(test)]
mod tests;
