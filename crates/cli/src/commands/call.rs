//! `gradus call FILE FUNC [--arg VALUE]...`

use crate::arguments::Application;
use crate::options::Format;
use crate::output::{json_of, Done, Output};
use gradus::{Options, Value};
use std::path::Path;

pub fn call(file: &Path, function: &str, args: &[String], options: Options, output: &Output) -> Done {
    let program = super::load(file, options, output)?;
    let application = Application::read(&program, function, args, "--arg")?;
    let value = application.function.apply(&application.arguments())?;
    json_unless_text(&value, output)?;
    super::say_kinks(&application.function.kinks(), output)
}

/// Results that programs read are JSON, unless text was asked for.
pub fn json_unless_text(value: &Value, output: &Output) -> Done {
    if output.explicit && output.format == Format::Text {
        output.line(value.to_string())
    } else {
        output.line(json_of(value)?)
    }
}
