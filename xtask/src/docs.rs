//! The generated pages of `docs/`: written from the tables in the code, and checked to be up to date.

use crate::count::Count;
use std::path::Path;

/// Each generated page with its text.
fn pages() -> Vec<(&'static str, String)> {
    vec![
        ("docs/primitives.md", gradus_core::prim::documentation()),
        ("docs/optimiser.md", gradus_rewrite::documentation()),
    ]
}

pub fn write() -> Count {
    let mut count = Count::default();
    for (path, text) in pages() {
        let written = std::fs::write(super::root().join(path), text);
        count += match written {
            Ok(()) => {
                println!("docs: wrote {path}");
                Count::passed()
            }
            Err(error) => {
                println!("docs: cannot write {path}: {error}");
                Count::failed()
            }
        };
    }
    count
}

pub fn check() -> Count {
    let mut count = Count::default();
    for (path, text) in pages() {
        count += if read(&super::root().join(path)) == text {
            Count::passed()
        } else {
            println!("docs: {path} is out of date; run `cargo xtask docs`");
            Count::failed()
        };
    }
    count
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}
