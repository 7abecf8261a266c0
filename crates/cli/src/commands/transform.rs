//! `gradus transform FILE FUNC --ad MODE [-O]`

use crate::output::{Done, Output};
use gradus::Options;
use std::path::Path;

pub fn transform(file: &Path, function: &str, optimise: bool, options: Options, output: &Output) -> Done {
    let options = Options { optimise, ..options };
    let program = super::load(file, options, output)?;
    output.text(program.function(function)?.transformed()?)
}
