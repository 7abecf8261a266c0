//! `gradus bench FILE FUNC --at VALUE`: what a function costs, and its gradient.

use crate::arguments::Application;
use crate::options::Point;
use crate::output::{Done, Output};
use gradus::{Backend, Options, Repeat};
use std::time::Instant;

pub fn bench(point: &Point, seconds: f64, options: Options, output: &Output) -> Done {
    let asked = options.clone();
    let began = Instant::now();
    let program = super::load(&point.file, options, output)?;
    let application = Application::read(&program, &point.function, &point.at, "--at")?;
    let arguments = application.arguments();
    let gradient = application.function.value_and_grad(point.wrt)?;
    let once = Repeat { min_runs: 1, min_seconds: 0.0 };
    let first = gradient.measure(&arguments, once)?;
    let (backend, peak_bytes) = (first.backend, first.peak_bytes);
    let first_result_ms = began.elapsed().as_secs_f64() * 1e3;
    // The function on what ran the gradient, so that they can be compared.
    let options = Options { backend, ..asked };
    // The reference evaluator knows no others.
    let threads = options.threads.filter(|_| backend != Backend::Reference).unwrap_or(1);
    let program = application.function.program().clone().with_options(options);
    let function = application.function.within(&program);
    let primal_ns = function.least_time(&arguments, seconds)?;
    let gradient_ns = gradient.least_time(&arguments, seconds)?;
    let ratio = gradient_ns / primal_ns;
    if output.is_json() {
        return output.line(
            serde_json::json!({
                "primal_ns": primal_ns, "gradient_ns": gradient_ns, "ratio": ratio, "first_result_ms": first_result_ms,
                "peak_bytes": peak_bytes, "backend": backend.key(), "threads": threads,
            })
            .to_string(),
        );
    }
    let plural = if threads == 1 { "" } else { "s" };
    output.line(format!("backend       {}, {threads} thread{plural}", backend.key()))?;
    output.line(format!("function      {}", duration(primal_ns)))?;
    output.line(format!("gradient      {} ({ratio:.2} times the function)", duration(gradient_ns)))?;
    output.line(format!("first result  {first_result_ms:.1} ms after reading the source"))?;
    output.line(match peak_bytes {
        Some(bytes) => format!("memory        {:.1} MB at most for a gradient", bytes as f64 / 1e6),
        None => "memory        not known on this system".into(),
    })
}

/// A time in the unit that suits it.
fn duration(nanoseconds: f64) -> String {
    match nanoseconds {
        ns if ns < 1e4 => format!("{ns:.1} ns"),
        ns if ns < 1e7 => format!("{:.1} us", ns / 1e3),
        ns if ns < 1e10 => format!("{:.1} ms", ns / 1e6),
        ns => format!("{:.2} s", ns / 1e9),
    }
}
