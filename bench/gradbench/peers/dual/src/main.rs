//! Dual numbers in Rust on the problems with few inputs, or many small ones: the tool side of the protocol. Forward mode pays for each input, so large
//! sizes take it long.

mod ba;
mod functions;
mod number;
mod problems;

use rustix::time::{clock_gettime, ClockId};
use serde_json::{json, Value};
use std::hint::black_box;
use std::io::{stdin, stdout, BufRead, Write};
use std::time::Instant;

/// CPU time of this thread, in nanoseconds.
fn cpu() -> u128 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u128 * 1_000_000_000 + time.tv_nsec as u128
}

const MODULES: [&str; 9] = ["hello", "gmm", "ba", "lstm", "kmeans", "llsq", "lse", "ode", "det"];

fn evaluate(message: &Value) -> Value {
    let [module, function] = ["module", "function"].map(|name| message[name].as_str().unwrap_or_default());
    let input = &message["input"];
    let Some(prepared) = problems::prepare(module, function, input) else {
        return json!({"success": false, "error": format!("no function {function} in {module}")});
    };
    let runs = input["min_runs"].as_u64().unwrap_or(1) as usize;
    let seconds = input["min_seconds"].as_f64().unwrap_or(0.0);
    let mut output = (prepared.run)(); // not timed, as for the other tools
    let (mut timings, mut total, mut least) = (Vec::new(), 0.0, u128::MAX);
    while timings.len() < runs || total < seconds {
        let (began, before) = (Instant::now(), cpu());
        output = black_box((prepared.run)());
        let spent = cpu() - before;
        let took = began.elapsed();
        least = least.min(if spent > 0 { spent } else { took.as_nanos() }); // this clock has been seen to stand still
        total += took.as_secs_f64();
        timings.push(json!({"name": "evaluate", "nanoseconds": took.as_nanos() as u64}));
    }
    timings.push(json!({"name": "least_cpu", "nanoseconds": least as u64}));
    json!({"success": true, "output": (prepared.finish)(output), "timings": timings})
}

fn main() {
    for line in stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line.expect("standard input")).expect("a message in JSON");
        let mut answer = match message["kind"].as_str() {
            Some("start") => json!({"tool": "num-dual"}),
            Some("define") => {
                json!({"success": MODULES.iter().any(|name| message["module"] == *name)})
            }
            Some("evaluate") => evaluate(&message),
            _ => json!({}),
        };
        answer["id"] = message["id"].clone();
        println!("{answer}");
        stdout().flush().expect("standard output");
    }
}
