//! Derivatives in every mode of this crate that takes the whole language, against closed forms and finite differences.

mod closed_forms;
mod core_terms;
mod cost;
mod custom_rules;
mod decisions;
mod figure_12;
mod nesting;
mod refusals;
mod session;
mod structures;
