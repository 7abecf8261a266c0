//! The commands, one file each.

pub mod bench;
pub mod build;
pub mod call;
pub mod check;
pub mod eval;
pub mod explain;
pub mod fmt;
pub mod grad;
pub mod gradbench;
pub mod repl;
pub mod run;
pub mod test;
pub mod trace;
pub mod transform;

use crate::output::{Failure, Output};
use gradus::{Options, Program};
use std::path::Path;

/// Loads a program and shows its warnings.
pub fn load(file: &Path, options: Options, output: &Output) -> Result<Program, Failure> {
    let program = Program::from_file(file)?.with_options(options);
    warn(&program, output);
    Ok(program)
}

/// An empty program, for expressions that need no file.
pub fn empty(options: Options) -> Result<Program, Failure> {
    Ok(Program::from_source("<expression>", "")?.with_options(options))
}

fn warn(program: &Program, output: &Output) {
    let warnings = program.warnings();
    if !warnings.diagnostics.is_empty() {
        output.diagnostics(&warnings);
    }
}

/// Says after the results where a derivative was taken at a kink, if that was asked for.
pub fn say_kinks(kinks: &gradus::Error, output: &Output) -> Result<(), Failure> {
    if !kinks.diagnostics.is_empty() {
        output.flush()?;
        output.diagnostics(kinks);
    }
    Ok(())
}
