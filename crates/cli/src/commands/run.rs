//! `gradus run FILE`

use crate::output::{Done, Failure, Output};
use crate::plot;
use gradus::{Options, Outcome, Program, Run};
use std::path::Path;

pub fn run(file: &Path, options: Options, output: &Output) -> Done {
    let program = super::load(file, options, output)?;
    run_items(&program, output)
}

/// Runs the items of a program, in order. A failed check does not stop the run, but makes it fail.
pub fn run_items(program: &Program, output: &Output) -> Done {
    let mut run = program.run()?;
    let mut failed = false;
    let result = loop {
        match run.next() {
            None => break Ok(()),
            Some(Err(error)) => break Err(Failure::Program(error)),
            Some(Ok(outcome)) => match show_outcome(&run, outcome, output) {
                Ok(holds) => failed |= !holds,
                Err(failure) => break Err(failure),
            },
        }
    };
    super::say_kinks(&run.kinks(), output)?;
    result?;
    if failed {
        Err(Failure::Said)
    } else {
        Ok(())
    }
}

/// Shows one outcome; `false` for a check that does not hold.
pub fn show_outcome(run: &Run, outcome: Outcome, output: &Output) -> Result<bool, Failure> {
    match outcome {
        Outcome::Show(value) => output.value(&value)?,
        Outcome::Check(check) => {
            if !check.holds {
                output.flush()?;
                output.diagnostics(&run.failed_check(&check));
            }
            return Ok(check.holds);
        }
        Outcome::Plot { value, file, span } => {
            let series = plot::series(&value).map_err(|message| run.complaint(message, span))?;
            match file {
                Some(file) => {
                    let written = std::fs::write(&file, plot::svg::draw(&series));
                    written
                        .map_err(|error| run.complaint(format!("cannot write {}: {error}", file.display()), span))?;
                    output.remark(&format!("wrote {}", file.display()));
                }
                None if output.is_json() => output.value(&value)?,
                None => output.text(plot::terminal::draw(&series, output.stdout_colour()))?,
            }
        }
    }
    Ok(true)
}
