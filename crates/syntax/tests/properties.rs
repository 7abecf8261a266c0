//! Laws of printing, tried on random trees: printing then parsing gives the tree back, formatting changes neither
//! the tree nor the comments, and formatting twice is formatting once.

mod common;

use common::random::{self, Random};
use gradus_source::FileId;
use gradus_syntax::ast::Module;
use gradus_syntax::{format_module, parse_module, print_module, same_shape, Parsed};

const CASES: u64 = 2000;

#[track_caller]
fn parse(seed: u64, text: &str) -> Parsed<Module> {
    let parsed = parse_module(FileId(0), text);
    assert!(parsed.errors.is_empty(), "seed {seed}:\n{text}\n{}", common::complaints(text, &parsed.errors));
    parsed
}

fn comments(text: &str, parsed: &Parsed<Module>) -> Vec<String> {
    parsed.comments.iter().map(|comment| comment.text(text).to_string()).collect()
}

#[track_caller]
fn check_format(seed: u64, text: &str) {
    let parsed = parse(seed, text);
    let formatted = format_module(text, &parsed);
    let again = parse(seed, &formatted);
    assert!(same_shape(&parsed.tree, &again.tree), "seed {seed}: other tree\n{text}\n\n{formatted}");
    assert_eq!(comments(text, &parsed), comments(&formatted, &again), "seed {seed}:\n{text}\n\n{formatted}");
    assert_eq!(format_module(&formatted, &again), formatted, "seed {seed}: not idempotent\n{text}");
    assert!(
        formatted.lines().all(|line| line == line.trim_end() || line.contains('"')),
        "seed {seed}: blanks\n{formatted}"
    );
}

#[test]
fn printed_trees_parse_to_themselves() {
    for seed in 0..CASES {
        let mut random = Random::new(seed);
        let size = 1 + random.below(6);
        let module = random::module(&mut random, size);
        let text = print_module(&module);
        let parsed = parse(seed, &text);
        let shown = || format!("{}\n{}", common::dump::module(&module), common::dump::module(&parsed.tree));
        assert!(same_shape(&module, &parsed.tree), "seed {seed}:\n{text}\n{}", shown());
    }
}

#[test]
fn formatting_keeps_tree_and_comments_and_is_idempotent() {
    for seed in 0..CASES {
        let mut random = Random::new(seed);
        let size = 1 + random.below(5);
        let text = print_module(&random::module(&mut random, size));
        check_format(seed, &text);
        check_format(seed, &with_comments(&mut random, &text));
    }
}

/// The programs of the repository obey the laws too.
#[test]
fn programs_of_the_repository_are_formatted() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut folders: Vec<std::path::PathBuf> = ["library", "examples", "tests/programs", "tests/papers"]
        .iter()
        .map(|name| format!("{root}/{name}").into())
        .collect();
    let mut count = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "gr") {
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                if parse_module(FileId(0), &text).errors.is_empty() {
                    check_format(0, &text);
                    count += 1;
                }
            }
        }
    }
    println!("{count} programs");
}

/// The text with comments and line breaks put between its words.
fn with_comments(random: &mut Random, text: &str) -> String {
    let mut result = String::new();
    let mut in_string = false;
    let mut escaped = false;
    let mut count = 0;
    for (at, character) in text.char_indices() {
        match character {
            '"' if !escaped => in_string = !in_string,
            ' ' if !in_string && random.chance(12) && !text[at..].starts_with("  ") => {
                count += 1;
                let before = *random.pick(&[" ", " ", "\n    ", "\n\n    ", "    "]);
                let after = *random.pick(&["", "", "\n   ", "\n\n   "]);
                let comment = *random.pick(&["(* c *)", "(* two\n   lines *)", "(*(* nested *)*)", "(* \" *)"]);
                // A lone quote must not meet another one on its line.
                let after = if comment.contains('"') { "\n   " } else { after };
                let comment = comment.replacen("(*", &format!("(*{count}"), 1);
                result += &format!("{before}{comment}{after}");
            }
            ' ' if !in_string && random.chance(3) => result += "\n   ",
            _ => {}
        }
        escaped = in_string && character == '\\' && !escaped;
        result.push(character);
    }
    result
}
