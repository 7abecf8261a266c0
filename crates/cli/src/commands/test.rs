//! `gradus test [FILE]...`

use crate::interrupt;
use crate::output::{Done, Failure, Output};
use gradus::{Error, Options, Outcome};
use std::path::{Path, PathBuf};

pub fn test(files: &[PathBuf], options: Options, output: &Output) -> Done {
    let here = [PathBuf::from(".")];
    let places = if files.is_empty() { &here[..] } else { files };
    let mut programs = Vec::new();
    for place in places {
        if place.is_dir() {
            collect(place, &mut programs).map_err(|error| Failure::Input(format!("{}: {error}", place.display())))?;
        } else {
            programs.push(place.clone());
        }
    }
    let mut total = (0, 0);
    for file in &programs {
        let (passed, failed) = checks(file, options.clone(), output)?;
        if passed + failed > 0 {
            output.line(format!("{}: {passed} passed, {failed} failed", file.display()))?;
        }
        total = (total.0 + passed, total.1 + failed);
    }
    output.line(format!("{} passed, {} failed", total.0, total.1))?;
    if total.1 == 0 {
        Ok(())
    } else {
        Err(Failure::Said)
    }
}

/// Every `.gr` file below a folder, in order.
fn collect(folder: &Path, programs: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)?.filter_map(|e| Some(e.ok()?.path())).collect();
    entries.sort();
    for entry in entries {
        let hidden = entry.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if entry.is_dir() && !entry.is_symlink() && !hidden {
            collect(&entry, programs)?;
        } else if entry.extension().is_some_and(|extension| extension == "gr") {
            programs.push(entry);
        }
    }
    Ok(())
}

/// How many checks of a file hold and fail; a program that stops counts as one failure.
fn checks(file: &Path, options: Options, output: &Output) -> Result<(usize, usize), Failure> {
    let say = |error: &Error| -> Done {
        output.flush()?;
        output.diagnostics(error);
        Ok(())
    };
    let mut counts = (0, 0);
    let program = match super::load(file, options, output) {
        Ok(program) => program,
        Err(Failure::Program(error)) => {
            say(&error)?;
            return Ok((0, 1));
        }
        Err(other) => return Err(other),
    };
    let mut run = match program.run() {
        Ok(run) => run,
        Err(error) => {
            say(&error)?;
            return Ok((0, 1));
        }
    };
    while let Some(outcome) = run.next() {
        match outcome {
            Ok(Outcome::Check(check)) if check.holds => counts.0 += 1,
            Ok(Outcome::Check(check)) => {
                counts.1 += 1;
                say(&run.failed_check(&check))?;
            }
            Ok(Outcome::Show(_) | Outcome::Plot { .. }) => {}
            Err(error) if interrupt::happened() => return Err(Failure::Program(error)),
            Err(error) => {
                counts.1 += 1;
                say(&error)?;
            }
        }
    }
    Ok(counts)
}
