//! Where source and data files come from. The driver asks a [`Loader`]; only [`FsLoader`] knows a file system.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Why a file could not be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    NotFound,
    Other(String),
}

impl std::fmt::Display for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LoadError::NotFound => f.write_str("there is no such file"),
            LoadError::Other(reason) => f.write_str(reason),
        }
    }
}

/// Gives the bytes of files.
pub trait Loader {
    fn read(&self, path: &Path) -> Result<Vec<u8>, LoadError>;
}

/// The files of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct FsLoader;

impl Loader for FsLoader {
    fn read(&self, path: &Path) -> Result<Vec<u8>, LoadError> {
        std::fs::read(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => LoadError::NotFound,
            std::io::ErrorKind::IsADirectory => LoadError::Other("it is a folder".into()),
            std::io::ErrorKind::PermissionDenied => LoadError::Other("permission denied".into()),
            _ => LoadError::Other(error.to_string()),
        })
    }
}

/// Files held in memory: for tests, and for programs that bring their own modules and data.
#[derive(Clone, Debug, Default)]
pub struct MemoryLoader {
    files: HashMap<PathBuf, Vec<u8>>,
}

impl MemoryLoader {
    pub fn new() -> Self {
        MemoryLoader::default()
    }

    pub fn with(mut self, path: impl Into<PathBuf>, bytes: impl Into<Vec<u8>>) -> Self {
        self.files.insert(path.into(), bytes.into());
        self
    }
}

impl Loader for MemoryLoader {
    fn read(&self, path: &Path) -> Result<Vec<u8>, LoadError> {
        self.files.get(path).cloned().ok_or(LoadError::NotFound)
    }
}
