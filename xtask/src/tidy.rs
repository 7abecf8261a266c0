//! The house rules, executable: which crate may know which, what the pure crates may not touch, how long a file may be,
//! and that nothing depends on one machine.

use crate::count::Count;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Which of our crates each crate may know: the table of ARCHITECTURE.md.
const MAY_KNOW: &[(&str, &[&str])] = &[
    ("source", &[]),
    ("syntax", &["source"]),
    ("core", &["source"]),
    ("infer", &["source", "syntax", "core"]),
    ("derive", &["source", "core"]),
    ("rewrite", &["source", "core"]),
    ("reference", &["source", "core"]),
    ("runtime", &[]),
    ("native", &["source", "core", "runtime"]),
    ("generate", &["source", "core"]),
    ("gradus", &["source", "syntax", "core", "infer", "derive", "rewrite", "reference", "native", "runtime"]),
    ("cli", &["source", "gradus"]),
    ("oracle", &["source", "syntax", "core", "infer", "derive", "generate", "reference", "rewrite"]),
    ("agree", &["source", "core", "derive", "generate", "reference", "rewrite"]),
];

/// These crates also run in a browser: no files, no clock, no printing, no processes.
const PURE: [&str; 7] = ["source", "syntax", "core", "infer", "derive", "rewrite", "reference"];
const IMPURE: [&str; 10] = [
    "std::fs",
    "std::time",
    "std::env",
    "std::process",
    "std::net",
    "std::io",
    "println!",
    "print!(",
    "eprint!",
    "dbg!",
];

/// Without its tests at the end.
const LONGEST_FILE: usize = 600;

/// Paths that exist on somebody's machine only.
const MACHINE_PATHS: [&str; 4] = ["/home/", "/root/", "/Users/", "C:\\\\Users"];

pub fn check() -> Count {
    let root = super::root();
    let mut complaints = Vec::new();
    dependencies(&root, &mut complaints);
    for file in tracked(&root) {
        let Ok(text) = std::fs::read_to_string(root.join(&file)) else { continue };
        let name = file.display().to_string();
        machine_paths(&name, &text, &mut complaints);
        if name.ends_with(".rs") {
            rust(&name, &text, &mut complaints);
        }
    }
    for complaint in &complaints {
        println!("tidy: {complaint}");
    }
    if complaints.is_empty() {
        Count::passed()
    } else {
        Count { failed: complaints.len(), ..Count::default() }
    }
}

/// The files that git knows, or all files if this is not a git checkout.
fn tracked(root: &Path) -> Vec<PathBuf> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output();
    let text = listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from).collect()
}

fn dependencies(root: &Path, complaints: &mut Vec<String>) {
    let Ok(folders) = std::fs::read_dir(root.join("crates")) else {
        complaints.push("there is no folder crates".into());
        return;
    };
    for folder in folders.filter_map(Result::ok) {
        let name = folder.file_name().to_string_lossy().into_owned();
        let Ok(manifest) = std::fs::read_to_string(folder.path().join("Cargo.toml")) else { continue };
        let Some((_, allowed)) = MAY_KNOW.iter().find(|(crate_name, _)| *crate_name == name) else {
            complaints.push(format!("crates/{name} is not in the table of xtask/src/tidy.rs"));
            continue;
        };
        for known in our_dependencies(&manifest) {
            if !allowed.contains(&known.as_str()) {
                complaints.push(format!("crates/{name} must not know {known}"));
            }
        }
    }
}

/// The names, without `gradus-`, in the section `[dependencies]`. What only tests use is free.
fn our_dependencies(manifest: &str) -> Vec<String> {
    let section = manifest.split("\n[").find(|section| section.starts_with("dependencies]")).unwrap_or("");
    let names = section.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
    names
        .filter_map(|name| (name == "gradus").then_some("gradus").or(name.strip_prefix("gradus-")))
        .map(String::from)
        .collect()
}

fn machine_paths(name: &str, text: &str, complaints: &mut Vec<String>) {
    if name == "xtask/src/tidy.rs" {
        return;
    }
    for (number, line) in text.lines().enumerate() {
        if let Some(path) = MACHINE_PATHS.iter().find(|path| line.contains(**path)) {
            complaints.push(format!("{name}:{}: {path} is a path of one machine", number + 1));
        }
    }
}

fn rust(name: &str, text: &str, complaints: &mut Vec<String>) {
    if !text.starts_with("//!") {
        complaints.push(format!("{name} does not open with a `//!` sentence that says what it is"));
    }
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text);
    let lines = code.lines().count();
    if lines > LONGEST_FILE {
        complaints.push(format!("{name} has {lines} lines; split it (at most {LONGEST_FILE} without its tests)"));
    }
    for (number, line) in text.lines().enumerate() {
        let line_number = number + 1;
        if line.trim_start().starts_with("#[ignore") {
            complaints.push(format!("{name}:{line_number}: a test must not be ignored"));
        }
    }
    let pure = PURE.iter().any(|pure| name.starts_with(&format!("crates/{pure}/src/")));
    if !pure || name.ends_with("/tests.rs") || name.contains("/tests/") {
        return;
    }
    for (number, line) in code.lines().enumerate() {
        let statement = line.split("//").next().unwrap_or(line);
        if let Some(word) = IMPURE.iter().find(|word| statement.contains(**word)) {
            complaints.push(format!("{name}:{}: {word} in a crate that must not touch the outside", number + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_section_dependencies_counts() {
        let manifest =
            "[package]\nname = \"x\"\n\n[dependencies]\ngradus-core.workspace = true\ngradus = { path = \".\" }\n\
                        serde = \"1\"\n\n[dev-dependencies]\ngradus-cli.workspace = true\n";
        assert_eq!(our_dependencies(manifest), ["core", "gradus"]);
    }

    #[test]
    fn rules_complain() {
        let mut complaints = Vec::new();
        rust("crates/core/src/a.rs", "use std::fs;\n", &mut complaints);
        rust("crates/core/src/b.rs", &("//! B.\n".to_string() + &"x\n".repeat(LONGEST_FILE)), &mut complaints);
        machine_paths("a.md", &format!("see {}me/x", MACHINE_PATHS[0]), &mut complaints);
        assert_eq!(complaints.len(), 4, "{complaints:?}");
    }
}
