//! `gradus transform FILE FUNC --ad MODE [-O] [--exact] [--explain] [--itself] [--steps]`

use crate::output::{Done, Failure, Output};
use gradus::{Mode, Options};
use std::path::Path;

/// What the command's own options ask for.
pub struct Wanted {
    pub optimise: bool,
    pub exact: bool,
    pub explain: bool,
    pub steps: bool,
    pub itself: bool,
}

pub fn transform(file: &Path, function: &str, wanted: Wanted, options: Options, output: &Output) -> Done {
    if wanted.steps && options.mode != Some(Mode::Combinator) {
        return Err(Failure::Usage("--steps shows the steps of the mode `combinator`: add --ad combinator".into()));
    }
    let options = Options { optimise: wanted.optimise, reassociate: wanted.optimise && !wanted.exact, ..options };
    let program = super::load(file, options, output)?;
    let function = program.function(function)?;
    output.text(match wanted {
        Wanted { steps: true, .. } => function.steps()?,
        Wanted { itself: true, explain: true, .. } => function.expanded_and_explained()?,
        Wanted { itself: true, .. } => function.expanded()?,
        Wanted { explain: true, .. } => function.explained()?,
        Wanted { .. } => function.transformed()?,
    })
}
