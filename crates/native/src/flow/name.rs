//! Interned names, so that variables are small and can be copied.

use indexmap::IndexSet;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex};

static NAMES: LazyLock<Mutex<IndexSet<Arc<str>>>> = LazyLock::new(Mutex::default);

/// A name for people. Only letters, digits and underscores, so that it can stand in any output.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Name(u32);

impl Name {
    pub fn new(text: &str) -> Name {
        let plain: String = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let plain = match plain.chars().next() {
            Some(c) if c.is_ascii_digit() => format!("v{plain}"),
            None => "v".to_string(),
            Some(_) => plain,
        };
        let mut names = NAMES.lock().unwrap_or_else(|e| e.into_inner());
        Name(names.insert_full(plain.into()).0 as u32)
    }

    pub fn text(self) -> Arc<str> {
        let names = NAMES.lock().unwrap_or_else(|e| e.into_inner());
        names.get_index(self.0 as usize).cloned().unwrap_or_else(|| "v".into())
    }

    /// `x` with `_adj` is `x_adj`.
    pub fn with(self, suffix: &str) -> Name {
        Name::new(&format!("{}{suffix}", self.text()))
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Name {
        Name::new(text)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}
