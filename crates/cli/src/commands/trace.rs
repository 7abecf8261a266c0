//! `gradus trace FILE FUNC --at VALUE [--format text|json|dot|svg]`: the Delta program of one execution (K Fig. 12), or with `--ad trace` its trace term
//! and the symbolic derivative of that (A Fig. 4 to 6).

use crate::arguments::Application;
use crate::graph::Graph;
use crate::options::{Format, Point};
use crate::output::{Done, Failure, Output};
use gradus::{operation_name, print_value, DeltaProgram, Mode, Options, Summand, TraceLine, TraceTerm, TraceValue};
use serde_json::{json, Value};
use std::fmt::Write;

pub fn trace(point: &Point, options: Options, output: &Output) -> Done {
    let mode = options.mode.unwrap_or(Mode::Monadic);
    if !matches!(mode, Mode::Monadic | Mode::Trace) {
        let what = "the Delta program of `monadic`, or the trace term with --ad trace";
        return Err(Failure::Usage(format!("the mode `{mode}` writes nothing down: `gradus trace` shows {what}")));
    }
    let program = super::load(&point.file, options, output)?;
    let application = Application::read(&program, &point.function, &point.at, "--at")?;
    let [argument] = &application.arguments()[..] else {
        return Err(Failure::Usage("`gradus trace` takes a function of one parameter".into()));
    };
    if mode == Mode::Trace {
        let trace = application.function.trace_term(argument)?;
        return output.text(match output.format {
            Format::Text => trace.text(),
            Format::Json => term_json(&trace),
            Format::Dot => Graph::of_trace(&trace).dot(),
            Format::Svg => Graph::of_trace(&trace).svg(),
        });
    }
    let program = application.function.trace(argument)?;
    output.text(match output.format {
        Format::Text => text(&program),
        Format::Json => json(&program),
        Format::Dot => Graph::of_delta_program(&program).dot(),
        Format::Svg => Graph::of_delta_program(&program).svg(),
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
    let pairs = |summands: &[Summand]| -> Value {
        let pair = |summand: &Summand| match summand {
            Summand::Scaled { factor, id } => json!([factor, id]),
            Summand::Rule => "rule".into(),
        };
        summands.iter().map(pair).collect()
    };
    let bindings: Value =
        program.bindings.iter().map(|binding| json!({ "id": binding.id, "sum": pairs(&binding.summands) })).collect();
    let whole = json!({
        "value": program.value, "inputs": program.inputs, "bindings": bindings, "result": pairs(&program.result),
    });
    format!("{whole}\n")
}

/// `{"value":..,"inputs":[..],"trace":[{"id":..,"operation":"sin","arguments":["x0"]},..],"result":"x3","derivative":[..],"gradient":["x7",..]}`
fn term_json(trace: &TraceTerm) -> String {
    let values = |values: &[TraceValue]| values.iter().map(|v| Value::from(print_value(v))).collect::<Value>();
    let lines = |first: i64, lines: &[TraceLine]| -> Value {
        let line = |(id, line): (i64, &TraceLine)| match line {
            TraceLine::Apply { operation, args } => {
                Some(json!({ "id": id, "operation": operation_name(*operation), "arguments": values(args) }))
            }
            TraceLine::Rule { name, results, args } => {
                Some(json!({ "id": id, "operation": name, "results": results, "arguments": values(args) }))
            }
            TraceLine::Rest => None,
        };
        (first..).zip(lines).filter_map(line).collect()
    };
    let whole = json!({
        "value": trace.value,
        "inputs": trace.inputs,
        "trace": lines(trace.first, &trace.lines),
        "result": print_value(&trace.result),
        "derivative": lines(trace.first + trace.lines.len() as i64, &trace.derivative),
        "gradient": values(&trace.gradient),
    });
    format!("{whole}\n")
}
