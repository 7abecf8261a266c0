//! Interned names, so that variables are small and can be copied.

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex};

static NAMES: LazyLock<Mutex<IndexSet<Arc<str>, FxBuildHasher>>> = LazyLock::new(Mutex::default);

/// A name for people. Only letters, digits and underscores, so that it can stand in any output.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Name(u32);

impl Name {
    pub fn new(text: &str) -> Name {
        let text = plain(text);
        let mut names = NAMES.lock().unwrap_or_else(|e| e.into_inner());
        let at = names.get_index_of(&*text).unwrap_or_else(|| names.insert_full(text.into()).0);
        Name(at as u32)
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

/// The nearest text that can stand in any output.
fn plain(text: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match text.chars().next() {
        None => "v".into(),
        Some(first) if text.chars().all(fits) && !first.is_ascii_digit() => text.into(),
        Some(first) => {
            let before = if first.is_ascii_digit() { "v" } else { "" };
            let letters = text.chars().map(|c| if fits(c) { c } else { '_' });
            before.chars().chain(letters).collect::<String>().into()
        }
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
