//! `gradus eval 'EXPR' [--in FILE]`

use crate::output::{Done, Output};
use gradus::Options;
use std::path::Path;

pub fn eval(expression: &str, file: Option<&Path>, options: Options, output: &Output) -> Done {
    let program = match file {
        Some(file) => super::load(file, options, output)?,
        None => super::empty(options)?,
    };
    let added = program.with_expression("<expression>", expression, None)?;
    let value = added.function(expression);
    if value.params().is_empty() {
        output.value(&value.call(&[])?)?;
        super::say_kinks(&value.kinks(), output)
    } else {
        output.line(format!("<fun : {}>", added.shown))
    }
}
