//! Programs so long that their blocks are cut into pieces: results are those of closed forms.

mod support;

use gradus_native::{lower, Backend, Executable, Leaf};
use std::path::Path;
use support::{entry, program};

const LINES: usize = 150;
const WEIGHTS: [f64; 3] = [0.004, -0.002, -0.001];

fn run(text: &str, name: &str, leaves: &[Leaf]) -> Vec<Leaf> {
    run_with(Backend::Cranelift, text, name, leaves)
}

fn run_with(backend: Backend, text: &str, name: &str, leaves: &[Leaf]) -> Vec<Leaf> {
    let program = program("long.gr", text, Path::new("."));
    let (module, ids, _) = lower(&program, &[entry(&program, name)]).expect("is compiled");
    let code = Executable::new(&module, &ids, &backend.into()).expect("compiles");
    code.call(0, leaves).expect("runs")
}

/// The value and the derivatives after so many lines, with both backends.
fn holds(text: &str, all: usize) {
    for backend in [Backend::Cranelift, Backend::C] {
        close(&run_with(backend, text, "both", &[Leaf::reals(WEIGHTS), Leaf::Real(2.0)]), &expected(all));
    }
}

fn close(found: &[Leaf], expected: &[f64]) {
    let found: Vec<f64> = found
        .iter()
        .flat_map(|leaf| match leaf {
            Leaf::Real(x) => vec![*x],
            Leaf::Reals { data, .. } => data.to_vec(),
            other => panic!("{other:?} is no real"),
        })
        .collect();
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= 1e-12 * expected.abs(), "{found} instead of {expected}");
    }
}

/// Each line adds the sum of the weights times what there is, so that it is multiplied by 1 + s.
fn lines(from: &str) -> String {
    let mut text = format!("  let a0 = {from} in\n");
    for k in 1..=LINES {
        text += &format!("  let a{k} = a{0} + sum (map (fun w -> w * a{0}) ws) in\n", k - 1);
    }
    text
}

/// The value after so many lines from 2.0, and its derivatives by the weights and by the start.
fn expected(all: usize) -> Vec<f64> {
    let growth = 1.0 + WEIGHTS.iter().sum::<f64>();
    let by_weight = 2.0 * all as f64 * growth.powi(all as i32 - 1);
    let by_start = growth.powi(all as i32);
    vec![2.0 * by_start, by_weight, by_weight, by_weight, by_start]
}

const DERIVATIVES: &str = "let both (ws : real[]) (x : real) : real * (real[] * real) =\n  \
                           value_and_grad (fun (ws, x) -> f ws x) (ws, x)\n";

#[test]
fn a_long_function() {
    let text = format!("let f (ws : real[]) (x : real) : real =\n{}  a{LINES}\n{DERIVATIVES}", lines("x"));
    holds(&text, LINES);
}

#[test]
fn a_long_body_of_a_loop() {
    let text = format!(
        "let f (ws : real[]) (x : real) : real =\n  loop 3 (fun x ->\n{}  a{LINES}) x\n{DERIVATIVES}",
        lines("x")
    );
    holds(&text, 3 * LINES);
}

/// Recursion that is no loop, through lists.
#[test]
fn a_long_recursive_function() {
    let text = format!(
        "let rec g (ws : real[]) (n : int) (x : real) : real list =\n  if n = 0 then [x] else\n{}  \
         x :: g ws (n - 1) a{LINES}\n\
         let rec last (xs : real list) : real = match xs with [] -> 0.0 | [x] -> x | _ :: rest -> last rest\n\
         let f (ws : real[]) (x : real) : real = last (g ws 3 x)\n{DERIVATIVES}",
        lines("x")
    );
    holds(&text, 3 * LINES);
}

/// A long function that is called often: it is not written out each time.
#[test]
fn a_long_function_called_often() {
    let mut text = String::from("let half (w : real) (x : real) : real =\n  let a0 = x in\n");
    for k in 1..=LINES {
        text += &format!("  let a{k} = a{0} + (w * a{0} - a{0} * 0.0) in\n", k - 1);
    }
    text += &format!("  a{LINES}\nlet f (w : real) (x : real) : real =\n  let b0 = x in\n");
    for k in 1..=LINES {
        text += &format!("  let b{k} = b{} + half w {k}.0 in\n", k - 1);
    }
    text += &format!("  b{LINES}\nlet both (w : real) (x : real) : real * (real * real) =\n  ");
    text += "value_and_grad (fun (w, x) -> f w x) (w, x)\n";
    let (w, all) = (0.002, LINES as i32);
    let sum = f64::from(all * (all + 1) / 2);
    let value = 2.0 + sum * f64::powi(1.0 + w, all);
    let by_weight = sum * f64::from(all) * f64::powi(1.0 + w, all - 1);
    close(&run(&text, "both", &[Leaf::Real(w), Leaf::Real(2.0)]), &[value, by_weight, 1.0]);
}

/// A branch in a branch, as deep as the program is long: each side gives what its line says, and the derivative of that.
#[test]
fn a_deep_ladder() {
    let mut text = String::from("let f (x : real) : real =\n");
    for k in 1..=400 {
        text += &format!("  if x < {k}.0 then {k}.0 * x * x else\n");
    }
    text += "  0.0\nlet both (x : real) : real * real = value_and_grad f x\n";
    for x in [0.5, 17.25, 399.5] {
        let k = f64::floor(x) + 1.0;
        close(&run(&text, "both", &[Leaf::Real(x)]), &[k * x * x, 2.0 * k * x]);
    }
}

/// Functions each of which calls the two before it, as Fibonacci's numbers: written out, they would be too long.
#[test]
fn functions_that_call_the_two_before() {
    let mut text = String::from("let f0 (x : real) : real = x\nlet f1 (x : real) : real = x\n");
    for k in 2..=25 {
        text += &format!("let f{k} (x : real) : real = f{} x + f{} x\n", k - 1, k - 2);
    }
    text += "let both (x : real) : real * real = value_and_grad f25 x\n";
    close(&run(&text, "both", &[Leaf::Real(2.0)]), &[2.0 * 121_393.0, 121_393.0]);
}

/// A ring of recursive functions: all wait for each other while they are lowered. And a chain of them, each also calling the one before.
#[test]
fn many_recursive_functions() {
    let mut text = String::new();
    for k in 0..100 {
        let start = if k == 0 { "let rec" } else { "and" };
        text += &format!(
            "{start} ring{k} (n : int) (x : real) : real =\n  if n <= 0 then x else 1.01 * ring{} (n - 1) x\n",
            (k + 1) % 100
        );
    }
    text += "let rec chain0 (n : int) (x : real) : real = if n <= 0 then x else 0.5 * chain0 (n - 1) x\n";
    for k in 1..100 {
        text += &format!("let rec chain{k} (n : int) (x : real) : real =\n  if n <= 0 then chain{} 1 x else 1.0 * chain{k} (n - 1) x\n", k - 1);
    }
    text += "let both (x : real) : real * real = value_and_grad (fun x -> ring0 250 x + chain99 2 x) x\n";
    let factor = f64::powi(1.01, 250) + 0.5;
    close(&run(&text, "both", &[Leaf::Real(2.0)]), &[2.0 * factor, factor]);
}
