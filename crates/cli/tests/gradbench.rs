//! The GradBench tool, spoken to as the suite does: small cases with numpy's results (`tests/gradbench`), and what must not go wrong.

mod support;

use serde_json::{json, Value as Json};
use std::path::{Path, PathBuf};
use support::Folder;

const BACKENDS: [&str; 3] = ["reference", "native", "c"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The answers to messages, one line each.
fn converse(dir: &Path, backend: &str, lines: &[String]) -> Vec<Json> {
    let dir = dir.display().to_string();
    let folder = Folder::new(&format!("gradbench-{backend}-{:p}", lines));
    let ran = folder.run_with(&["gradbench", "--dir", &dir, "--backend", backend], &(lines.join("\n") + "\n")).exits(0);
    let answers: Vec<Json> = ran.out().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(answers.len(), lines.len(), "one answer for each message");
    answers
}

/// The suite compares trees with 1e-4 here.
const TOLERANCE: f64 = 1e-9;

fn agree(found: &Json, expected: &Json) -> bool {
    match (found, expected) {
        (Json::Number(a), Json::Number(b)) if a.is_f64() || b.is_f64() => {
            let (a, b) = (a.as_f64().unwrap_or(f64::NAN), b.as_f64().unwrap_or(f64::NAN));
            (a - b).abs() / (a.abs() + b.abs()).max(1.0) <= TOLERANCE
        }
        (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| agree(a, b)),
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| agree(a, b)))
        }
        (a, b) => a == b,
    }
}

/// All cases of a problem on all backends.
fn problem(name: &str) {
    problem_on(name, &BACKENDS);
}

/// An optimisation of many thousand steps: with the reference evaluator it takes minutes.
fn long_problem(name: &str) {
    problem_on(name, &BACKENDS[1..]);
}

/// Every input but a bare number also asks for runs.
fn problem_on(name: &str, backends: &[&str]) {
    let cases = std::fs::read_to_string(root().join(format!("tests/gradbench/{name}.json"))).expect("cases");
    let cases: Vec<Json> = serde_json::from_str(&cases).expect("JSON");
    let mut lines = vec![
        json!({ "id": 0, "kind": "start", "eval": name }).to_string(),
        json!({ "id": 1, "kind": "define", "module": name }).to_string(),
    ];
    for case in &cases {
        let mut input = case["input"].clone();
        if let Json::Object(fields) = &mut input {
            fields.insert("min_runs".into(), 2.into());
            fields.insert("min_seconds".into(), json!(1e-6));
        }
        let function = &case["function"];
        let (id, description) = (lines.len(), "a case");
        lines.push(
            json!({ "id": id, "kind": "evaluate", "module": name, "function": function, "input": input,
            "description": description })
            .to_string(),
        );
    }
    for backend in backends {
        let answers = converse(&root().join("examples/gradbench"), backend, &lines);
        assert_eq!(answers[0], json!({ "id": 0, "tool": "gradus" }));
        assert_eq!((&answers[1]["id"], &answers[1]["success"]), (&json!(1), &json!(true)));
        for (answer, case) in answers[2..].iter().zip(&cases) {
            assert_eq!(answer["success"], json!(true), "{name}, {backend}: {answer}");
            let (found, expected) = (&answer["output"], &case["output"]);
            assert!(agree(found, expected), "{name}.{} on {backend}: {found} instead of {expected}", case["function"]);
            let timings = answer["timings"].as_array().expect("a list");
            let runs = timings.iter().filter(|timing| timing["name"] == "evaluate").count();
            let wanted = if case["input"].is_object() { 2 } else { 1 };
            assert!(runs >= wanted, "{runs} runs");
            assert!(timings.iter().all(|timing| timing["nanoseconds"].is_u64()));
        }
    }
}

#[test]
fn hello() {
    problem("hello");
}

#[test]
fn gmm() {
    problem("gmm");
}

#[test]
fn ba() {
    problem("ba");
}

#[test]
fn ht() {
    problem("ht");
}

#[test]
fn lstm() {
    problem("lstm");
}

#[test]
fn kmeans() {
    problem("kmeans");
}

#[test]
fn llsq() {
    problem("llsq");
}

#[test]
fn lse() {
    problem("lse");
}

#[test]
fn ode() {
    problem("ode");
}

#[test]
fn det() {
    problem("det");
}

#[test]
fn particle() {
    long_problem("particle");
}

#[test]
fn saddle() {
    long_problem("saddle");
}

#[test]
fn mistakes_are_answered_and_the_tool_goes_on() {
    let modules = Folder::new("gradbench-modules").with("bad.gr", "let f x = x + \"a\"").with(
        "good.gr",
        "let f (x : real) : real = log x\nlet g (a : real[]) : real = a.(3)\nlet h x y = x + y + 0.0\n",
    );
    let evaluate = |id: i64, module: &str, function: &str, input: Json| {
        json!({ "id": id, "kind": "evaluate", "module": module, "function": function, "input": input }).to_string()
    };
    let lines = [
        json!({ "id": 0, "kind": "define", "module": "missing" }).to_string(),
        json!({ "id": 1, "kind": "define", "module": "bad" }).to_string(),
        json!({ "id": 2, "kind": "define", "module": "../good" }).to_string(),
        "{\"id\": 3, \"kind\": ".to_string(),
        json!({ "id": 4, "kind": "define", "module": "good" }).to_string(),
        evaluate(5, "missing", "f", json!(1.0)),
        evaluate(6, "good", "missing", json!(1.0)),
        evaluate(7, "good", "f", json!("one")),
        evaluate(8, "good", "f", json!(-1.0)),
        evaluate(9, "good", "f", json!(0.0)),
        evaluate(10, "good", "g", json!([1.0, 2.0])),
        evaluate(11, "good", "h", json!(1.0)),
        json!({ "id": 12, "kind": "analysis", "of": 5, "valid": false, "error": "no" }).to_string(),
        json!({ "id": 13, "kind": "something new", "input": [1, 2] }).to_string(),
        json!({ "id": 14, "kind": "evaluate" }).to_string(),
        json!({ "id": 15 }).to_string(),
        evaluate(16, "good", "f", json!(1)),
    ];
    for backend in BACKENDS {
        let answers = converse(modules.path(), backend, &lines);
        for (i, answer) in answers.iter().enumerate() {
            assert_eq!(answer["id"], json!(i), "{answer}");
        }
        for i in [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 14] {
            assert_eq!(answers[i]["success"], json!(false), "{i}: {}", answers[i]);
            assert!(answers[i]["error"].is_string() && answers[i].get("output").is_none(), "{}", answers[i]);
        }
        assert!(answers[1]["error"].as_str().is_some_and(|text| text.contains("bad.gr:1:15")), "{}", answers[1]);
        assert!(answers[10]["error"].as_str().is_some_and(|text| text.contains("good.gr:2:")), "{}", answers[10]);
        assert_eq!(answers[4]["success"], json!(true));
        for i in [12, 13, 15] {
            assert_eq!(answers[i], json!({ "id": i }));
        }
        assert_eq!(answers[16]["output"], json!(0.0));
    }
}

#[test]
fn runs_are_repeated_until_both_limits_are_reached() {
    let modules = Folder::new("gradbench-runs")
        .with("m.gr", "type input = { x : real[] }\nlet total (i : input) : real = sum i.x\n");
    let input = |runs: Json, seconds: Json| json!({ "x": [1.0, 2.0], "min_runs": runs, "min_seconds": seconds });
    let evaluate = |id: i64, input: Json| {
        json!({ "id": id, "kind": "evaluate", "module": "m", "function": "total", "input": input }).to_string()
    };
    let lines = [
        evaluate(0, input(json!(7), json!(0))),
        evaluate(1, input(json!(1), json!(0.05))),
        evaluate(2, input(json!("many"), json!(0))),
    ];
    for backend in BACKENDS {
        let answers = converse(modules.path(), backend, &lines);
        let runs = |answer: &Json| -> Vec<u64> {
            let timings = answer["timings"].as_array().cloned().unwrap_or_default();
            let runs = timings.iter().filter(|timing| timing["name"] == "evaluate");
            runs.filter_map(|timing| timing["nanoseconds"].as_u64()).collect()
        };
        assert_eq!(runs(&answers[0]).len(), 7);
        let timed = runs(&answers[1]);
        let all: u64 = timed.iter().sum();
        let before_last = all - timed.last().copied().unwrap_or(0);
        assert!(all >= 50_000_000 && before_last < 50_000_000, "{all}");
        assert_eq!(answers[2]["success"], json!(false));
        let compiled = |answer: &Json| answer["timings"][0]["name"] == "compile";
        assert_eq!((compiled(&answers[0]), compiled(&answers[1])), (backend != "reference", false));
    }
}
