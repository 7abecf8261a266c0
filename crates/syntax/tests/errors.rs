//! What a user is told about a wrong text: every case of `errors.txt`, exactly.
//!
//! `UPDATE_EXPECT=1 cargo test -p gradus-syntax --test errors` writes the present answers into the file.

use gradus_source::{render, FileId, SourceFile, SourceMap};
use gradus_syntax::parse_module;

const CASES: &str = include_str!("errors.txt");

fn answer(text: &str) -> String {
    let mut map = SourceMap::default();
    map.add(SourceFile::new("t.gr", text));
    let errors = parse_module(FileId(0), text).errors;
    errors.iter().map(|error| render(&error.diagnostic(), &map, false)).collect()
}

#[test]
fn every_mistake_is_answered_as_recorded() {
    let mut renewed = String::new();
    let mut wrong = String::new();
    for case in CASES.split("=====\n").skip(1) {
        let (program, expected) = case.split_once("~~~~~\n").unwrap_or((case, ""));
        let found = answer(program);
        assert!(!found.is_empty(), "this should be wrong:\n{program}");
        if found != expected {
            wrong += &format!("{program}\nexpected:\n{expected}\nfound:\n{found}\n");
        }
        renewed += &format!("=====\n{program}~~~~~\n{found}");
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/errors.txt");
        std::fs::write(path, renewed).expect("the file of cases can be written");
    } else {
        assert!(wrong.is_empty(), "{wrong}");
    }
}
