//! The driver and public Rust API of Gradus.

pub mod convert;
pub mod data;
pub mod error;
pub mod json;
pub mod library;
pub mod loader;
pub mod modules;
pub mod place;
pub mod schema;
pub mod value;

pub use error::Error;
pub use loader::{FsLoader, LoadError, Loader, MemoryLoader};
pub use value::{Parts, Reals, Value};
