//! The GradBench programs, compiled: results against numpy's (`tests/gradbench`).

mod support;

use gradus_native::flow::check;
use gradus_native::{Backend, Layout};
use serde_json::Value as Json;
use support::{data, entry, file, numbers, parts, root};

/// Runs the cases of a problem, to this tolerance relative to the largest component.
fn problem(name: &str, tolerance: f64) {
    let program = file(&root().join(format!("examples/gradbench/{name}.gr")));
    let cases = std::fs::read_to_string(root().join(format!("tests/gradbench/{name}.json"))).expect("cases");
    let cases: Vec<Json> = serde_json::from_str(&cases).expect("JSON");
    let mut functions: Vec<String> = Vec::new();
    for case in &cases {
        let function = case["function"].as_str().expect("a name").to_string();
        if !functions.contains(&function) {
            functions.push(function);
        }
    }
    let entries: Vec<_> = functions.iter().map(|f| entry(&program, f)).collect();
    let (module, _, _) = match gradus_native::lower(&program, &entries) {
        Ok(lowered) => lowered,
        Err(refusal) => panic!("{name}: {refusal:?}"),
    };
    if let Err(error) = check::module(&module) {
        panic!("{name}: {error}");
    }
    for backend in Backend::ALL {
        let native = gradus_native::compile(&program, &entries, &backend.into()).expect("compiles");
        for case in &cases {
            let function = case["function"].as_str().expect("a name");
            let at = functions.iter().position(|f| f == function).expect("an entry");
            let (from, to) = parts(&entries[at].ty);
            let input = Layout::of(&program, &from).expect("a flat input");
            let output = Layout::of(&program, &to).expect("a flat output");
            let leaves = input.flatten(&data(&program, &from, &case["input"])).expect("fits");
            let found = match native.call(at, &leaves) {
                Ok(leaves) => numbers(&output.unflatten(&mut leaves.into_iter()).expect("fits")),
                Err(error) => panic!("{name}.{function}, {backend:?}: {error:?}"),
            };
            let expected = numbers(&data(&program, &to, &case["output"]));
            let scale = expected.iter().fold(f64::MIN_POSITIVE, |m, x| m.max(x.abs()));
            let close = |(f, e): (&f64, &f64)| (f - e).abs() <= tolerance * scale;
            let same = found.len() == expected.len() && found.iter().zip(&expected).all(close);
            assert!(same, "{name}.{function}, {backend:?}: {found:?} instead of {expected:?}");
        }
    }
}

#[test]
fn gmm() {
    problem("gmm", 1e-12);
}

#[test]
fn lse() {
    problem("lse", 1e-12);
}

#[test]
fn llsq() {
    problem("llsq", 1e-12);
}

#[test]
fn ode() {
    problem("ode", 1e-12);
}

#[test]
fn lstm() {
    problem("lstm", 1e-12);
}

#[test]
fn kmeans() {
    problem("kmeans", 1e-12);
}

#[test]
fn det() {
    problem("det", 1e-12);
}

#[test]
fn ba() {
    problem("ba", 1e-12);
}

#[test]
fn ht() {
    problem("ht", 1e-12);
}

#[test]
fn hello() {
    problem("hello", 1e-12);
}

#[test]
fn particle() {
    problem("particle", 1e-8);
}

#[test]
fn saddle() {
    problem("saddle", 1e-8);
}
