//! `gradus explain FILE FUNC [--dump PASS]`: what the compiler makes of a function.

use crate::options::Pass;
use crate::output::{Done, Output};
use gradus::{Function, Options, Remark, Stage};
use std::path::Path;

pub fn explain(file: &Path, function: &str, wrt: usize, dump: Option<Pass>, options: Options, output: &Output) -> Done {
    let program = super::load(file, options, output)?;
    let function = program.function(function)?;
    if let Some(pass) = dump {
        return output.text(shown(&function, wrt, pass)?);
    }
    show(&format!("{} : {}", function.name(), function.type_text()), &function.explain()?, output)?;
    // A function without a gradient has been explained as a whole.
    match function.value_and_grad(wrt) {
        Ok(gradient) => {
            let title = format!("gradient by parameter {wrt}");
            show(&title, &gradient.explain_derivative()?, output)
        }
        Err(_) => Ok(()),
    }
}

fn shown(function: &Function, wrt: usize, pass: Pass) -> Result<String, gradus::Error> {
    match pass {
        Pass::Core => function.dump(Stage::Core),
        Pass::Lowered => function.dump(Stage::Lowered),
        Pass::Flow => function.dump(Stage::Flow),
        Pass::Derivative => function.value_and_grad(wrt)?.dump(Stage::Lowered),
        Pass::DerivativeFlow => function.value_and_grad(wrt)?.dump(Stage::Flow),
        Pass::Cranelift => function.value_and_grad(wrt)?.dump(Stage::Cranelift),
        Pass::C => function.value_and_grad(wrt)?.dump(Stage::C),
    }
}

fn show(title: &str, remarks: &[Remark], output: &Output) -> Done {
    if output.is_json() {
        for Remark { file, start, text } in remarks {
            let (line, column) = (start.line, start.column);
            let object = serde_json::json!({ "of": title, "file": file, "line": line, "column": column, "text": text });
            output.line(object.to_string())?;
        }
        return Ok(());
    }
    output.line(title)?;
    if remarks.is_empty() {
        output.line("  straight code: no loops, nothing saved, nothing on the heap")?;
    }
    for Remark { file, start, text } in remarks {
        output.line(format!("  {file}:{}:{}: {text}", start.line, start.column))?;
    }
    Ok(())
}
