//! `gradus trace FILE FUNC --at VALUE`

use crate::arguments::Application;
use crate::options::Point;
use crate::output::{Done, Failure, Output};
use gradus::Options;

pub fn trace(point: &Point, options: Options, output: &Output) -> Done {
    let program = super::load(&point.file, options, output)?;
    Application::read(&program, &point.function, &point.at, "--at")?;
    Err(Failure::Input("`gradus trace` is not built yet".into()))
}
