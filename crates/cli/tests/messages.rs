//! What users are told: each program under tests/ with a `.expected` file, run as a user would, must say exactly that.
//! With GRADUS_BLESS set the files are written instead (`cargo xtask bless`).

use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let mut arguments = Arguments::from_args();
    let bless = std::env::var_os("GRADUS_BLESS").is_some();
    // A program that runs into its limit of memory should not have to share it.
    arguments.test_threads = arguments.test_threads.or(Some(2));
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let mut files = Vec::new();
    collect(&tests, &mut files);
    let mut trials = Vec::new();
    for file in files {
        let rejected = file.starts_with(tests.join("reject"));
        let expected = file.with_extension("expected");
        let is_module = rejected && is_imported(&file);
        if is_module || (!rejected && !expected.exists()) {
            continue;
        }
        let name = file.strip_prefix(&tests).unwrap_or(&file).display().to_string();
        trials.push(Trial::test(name, move || message(&file, &expected, rejected, bless)));
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut entries: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            collect(&entry, files);
        } else if entry.extension().is_some_and(|extension| extension == "gr") {
            files.push(entry);
        }
    }
}

/// A module beside the programs that import it, with nothing of its own to say.
fn is_imported(file: &Path) -> bool {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.contains("(* A module for others")
}

fn message(file: &Path, expected: &Path, rejected: bool, bless: bool) -> Result<(), Failed> {
    let text = std::fs::read(file)?;
    let text = String::from_utf8_lossy(&text);
    let options =
        text.split_once("(* options:").and_then(|(_, rest)| rest.split_once("*)")).map_or("", |(words, _)| words);
    let folder = file.parent().unwrap_or(Path::new("."));
    let name = file.file_name().unwrap_or_default();
    let output = Command::new(env!("CARGO_BIN_EXE_gradus"))
        .arg("run")
        .args(options.split_whitespace())
        .arg(name)
        .current_dir(folder)
        .env_remove("NO_COLOR")
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let wanted = if rejected { 1 } else { 0 };
    if output.status.code() != Some(wanted) {
        return Err(format!("exit status {:?} instead of {wanted}; it said\n{said}", output.status.code()).into());
    }
    if bless {
        std::fs::write(expected, &said)?;
        return Ok(());
    }
    let known = std::fs::read_to_string(expected).map_err(|error| format!("{}: {error}", expected.display()))?;
    if known == said {
        Ok(())
    } else {
        Err(format!("it said\n{said}\ninstead of\n{known}").into())
    }
}
