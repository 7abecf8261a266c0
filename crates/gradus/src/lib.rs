//! The driver and public Rust API of Gradus.

pub mod data;
pub mod json;
pub mod place;
pub mod schema;
pub mod value;

pub use value::{Parts, Reals, Value};
