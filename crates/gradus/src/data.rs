//! Data files (`data x : T from "file"`): bytes of CSV, JSON or NPY to a value of the declared type.
//!
//! Nothing here reads files; a [`crate::Loader`] does. A file that does not fit is refused with its name, row and field.

mod csv;
mod npy;

use crate::json::{self, JsonError};
use crate::place::Misfit;
use crate::schema::Schema;
use crate::Value;
use gradus_core::Type;
use std::fmt;

/// The formats of data files, told apart by the end of the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Csv,
    Json,
    Npy,
}

impl Format {
    pub fn of(file: &str) -> Option<Format> {
        let (_, extension) = file.rsplit_once('.')?;
        match extension.to_ascii_lowercase().as_str() {
            "csv" => Some(Format::Csv),
            "json" => Some(Format::Json),
            "npy" => Some(Format::Npy),
            _ => None,
        }
    }
}

/// Why a data file was refused; [`crate::Error`] adds the file's name and the declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataError {
    UnknownFormat,
    Unreadable(String),
    /// The file is broken, whatever the type.
    Malformed(String),
    /// The type cannot be stored in this format.
    TypeNotStorable {
        format: &'static str,
        reason: String,
    },
    Misfit(Misfit),
}

impl fmt::Display for DataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataError::UnknownFormat => f.write_str("the name of a data file must end in .csv, .json or .npy"),
            DataError::Unreadable(reason) => write!(f, "cannot be read: {reason}"),
            DataError::Malformed(reason) => f.write_str(reason),
            DataError::TypeNotStorable { format, reason } => {
                write!(f, "a {format} file cannot hold this type: {reason}")
            }
            DataError::Misfit(misfit) => misfit.fmt(f),
        }
    }
}

impl From<JsonError> for DataError {
    fn from(error: JsonError) -> Self {
        match error {
            JsonError::Syntax(_) => DataError::Malformed(error.to_string()),
            JsonError::Misfit(misfit) => DataError::Misfit(misfit),
        }
    }
}

pub fn read(format: Format, bytes: &[u8], ty: &Type, schema: &Schema) -> Result<Value, DataError> {
    match format {
        Format::Csv => csv::read(bytes, ty, schema),
        Format::Json => Ok(json::read(bytes, ty, schema)?),
        Format::Npy => npy::read(bytes, ty),
    }
}
