//! `gradus transform FILE FUNC --ad MODE [-O] [--steps]`

use crate::output::{Done, Failure, Output};
use gradus::{Mode, Options};
use std::path::Path;

pub fn transform(file: &Path, function: &str, optimise: bool, steps: bool, options: Options, output: &Output) -> Done {
    if steps && options.mode != Some(Mode::Combinator) {
        return Err(Failure::Usage("--steps shows the steps of the mode `combinator`: add --ad combinator".into()));
    }
    let options = Options { optimise, ..options };
    let program = super::load(file, options, output)?;
    let function = program.function(function)?;
    output.text(if steps { function.steps()? } else { function.transformed()? })
}
