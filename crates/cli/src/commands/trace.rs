//! `gradus trace FILE FUNC --at VALUE [--format text|json|dot|svg]`: the Delta program of one execution (K Fig. 12).

use crate::arguments::Application;
use crate::graph;
use crate::options::{Format, Point};
use crate::output::{Done, Failure, Output};
use gradus::{DeltaProgram, Options, Summand};
use std::fmt::Write;

pub fn trace(point: &Point, options: Options, output: &Output) -> Done {
    let program = super::load(&point.file, options, output)?;
    let application = Application::read(&program, &point.function, &point.at, "--at")?;
    let [argument] = &application.arguments()[..] else {
        return Err(Failure::Usage("`gradus trace` takes a function of one parameter".into()));
    };
    let program = application.function.trace(argument)?;
    output.text(match output.format {
        Format::Text => text(&program),
        Format::Json => json(&program),
        Format::Dot => graph::dot(&program),
        Format::Svg => graph::svg(&program),
    })
}

/// `5.5 * x1 + x4`
pub fn sum(summands: &[Summand]) -> String {
    let terms: Vec<String> = summands
        .iter()
        .map(|summand| match summand {
            Summand::Scaled { factor, id } if *factor == 1.0 => format!("x{id}"),
            Summand::Scaled { factor, id } => format!("{factor:?} * x{id}"),
            Summand::Rule => "(custom rule)".into(),
        })
        .collect();
    if terms.is_empty() {
        "0".into()
    } else {
        terms.join(" + ")
    }
}

fn text(program: &DeltaProgram) -> String {
    let mut out = String::new();
    for (id, value) in program.inputs.iter().enumerate() {
        let _ = writeln!(out, "x{id}: input, {value:?}");
    }
    for binding in &program.bindings {
        let _ = writeln!(out, "x{} = {}", binding.id, sum(&binding.summands));
    }
    let _ = writeln!(out, "result = {}, value {:?}", sum(&program.result), program.value);
    out
}

/// `{"value":..,"inputs":[..],"bindings":[{"id":..,"sum":[[factor,id],..]},..],"result":[[factor,id],..]}`
fn json(program: &DeltaProgram) -> String {
    let number = |x: f64| serde_json::Value::from(x);
    let pairs = |summands: &[Summand]| -> serde_json::Value {
        let pair = |summand: &Summand| match summand {
            Summand::Scaled { factor, id } => serde_json::Value::Array(vec![number(*factor), (*id).into()]),
            Summand::Rule => "rule".into(),
        };
        summands.iter().map(pair).collect::<Vec<_>>().into()
    };
    let bindings: Vec<serde_json::Value> = (program.bindings.iter())
        .map(|binding| serde_json::json!({ "id": binding.id, "sum": pairs(&binding.summands) }))
        .collect();
    let inputs: Vec<serde_json::Value> = program.inputs.iter().map(|x| number(*x)).collect();
    let whole = serde_json::json!({
        "value": number(program.value), "inputs": inputs, "bindings": bindings, "result": pairs(&program.result),
    });
    format!("{whole}\n")
}
