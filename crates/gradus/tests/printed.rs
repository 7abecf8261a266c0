//! Core printed as Gradus source is read back as a program that passes core's checker and gives the same results.

use gradus::{Outcome, Program};
use gradus_core::{check::check_program, print::print_program};
use std::path::{Path, PathBuf};

#[test]
fn every_program_of_the_suite_survives_printing() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    // Data files are looked for beside a program, and a printed one stands nowhere.
    for folder in ["tests/programs", "tests/papers", "examples"] {
        collect(&root.join(folder), &mut files);
    }
    files.retain(|file| !std::fs::read_to_string(file).unwrap().contains(" from \""));
    assert!(files.len() > 100, "only {} programs found", files.len());
    for file in files {
        let program = Program::from_file(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        check(&file, &program);
        let text = print_program(program.core(), Default::default());
        let printed = Program::from_source("printed.gr", &text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        check(&file, &printed);
        assert_eq!(outcomes(&program), outcomes(&printed), "{}", file.display());
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "gr") {
            files.push(path);
        }
    }
    files.sort();
}

fn check(file: &Path, program: &Program) {
    if let Err(error) = check_program(program.core()) {
        panic!("{}: {}", file.display(), error.diagnostic().message);
    }
}

fn outcomes(program: &Program) -> Vec<String> {
    let run = program.run().unwrap_or_else(|e| panic!("{e}"));
    run.map(|outcome| match outcome {
        Ok(Outcome::Show(value)) => format!("show {value}"),
        Ok(Outcome::Check(check)) => format!("check {}", check.holds),
        Ok(Outcome::Plot { value, .. }) => format!("plot {value}"),
        Err(_) => "error".to_string(),
    })
    .collect()
}
