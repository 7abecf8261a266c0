//! `gradus check FILE... [--rules] [--types]`

use crate::output::{Done, Failure, Output};
use gradus::{Error, Options, Program, Severity};
use std::path::PathBuf;

/// `seed` is given if rules are to be tested.
pub fn check(files: &[PathBuf], types: bool, seed: Option<u64>, options: Options, output: &Output) -> Done {
    let mut failed = false;
    for file in files {
        let program = match super::load(file, options.clone(), output) {
            Ok(program) => program,
            Err(Failure::Program(error)) => {
                output.diagnostics(&error);
                failed = true;
                continue;
            }
            Err(other) => return Err(other),
        };
        if types {
            for (name, ty) in program.definitions() {
                output.line(format!("{name} : {ty}"))?;
            }
        }
        if let Some(seed) = seed {
            failed |= !rules(&program, seed, output)?;
        }
    }
    if failed {
        Err(Failure::Said)
    } else {
        Ok(())
    }
}

fn rules(program: &Program, seed: u64, output: &Output) -> Result<bool, Failure> {
    let report = program.check_rules(seed)?;
    for rule in &report.right {
        output.remark(&format!("{rule}: agrees with finite differences"));
    }
    let wrong = report.problems.iter().any(|problem| problem.severity == Severity::Error);
    if !report.problems.is_empty() {
        output.diagnostics(&Error { diagnostics: report.problems, sources: program.sources().clone() });
    }
    Ok(!wrong)
}
