//! What a gradient costs: evaluator steps and memory of `grad f x` over those of `f x`, as the work of `f` grows a thousandfold (K section 7.3).

use gradus::{Error, Evaluator, Mode, Options, Program};

/// A family of programs: `input n` makes an input for which `f` does about n operations.
struct Workload {
    name: &'static str,
    text: &'static str,
}

const WORKLOADS: [Workload; 6] = [
    Workload {
        name: "chain: a loop over one number",
        text: "let input n = (real n, 0.3)
let f (n, x) = ifold (truncate n) (fun _ y -> sin y * 0.9 + x) x",
    },
    Workload {
        name: "list: a fold",
        text: "let input n = ifold n (fun i rest -> real (i mod 7) / 7.0 :: rest) []
let rec f xs = match xs with [] -> 0.0 | x :: rest -> x * sin x + 0.5 * f rest",
    },
    Workload {
        name: "tree: both branches",
        text: "type tree = Leaf of real | Node of tree * tree
let rec grow n = if n <= 1 then Leaf (real n * 0.3) else Node (grow (n / 2), grow (n - n / 2))
let input n = grow n
let rec f t = match t with Leaf x -> sin x | Node (l, r) -> tanh (f l + f r * 0.5)",
    },
    Workload {
        name: "recursion: not at the end",
        text: "let input n = (real n, 0.3)
let f (n, x) = (let rec go k y = if k = 0 then y else sin (go (k - 1) (y * 0.9)) + y in go (truncate n) x)",
    },
    Workload {
        name: "arrays: map and sum",
        text: "let input n = build n (fun i -> real (i mod 7) / 7.0)
let f a = sum (map (fun x -> x * exp (0.0 - x)) a)",
    },
    Workload {
        name: "higher order: a list of closures",
        text: "let input n = ifold n (fun i rest -> real (i mod 7) / 7.0 :: rest) []
let rec functions xs = match xs with [] -> [] | x :: rest -> (fun y -> sin (x * y)) :: functions rest
let rec all fs y = match fs with [] -> y | g :: rest -> all rest (g y + 0.1)
let f xs = all (functions xs) 0.5",
    },
];

/// Steps and peak bytes of an expression in a fresh evaluator.
fn measure(program: &Program, expression: &str) -> Result<(u64, u64), Error> {
    let added = program.with_expression("bench", expression, None)?;
    let mut evaluator = Evaluator::new(&added.program)?;
    evaluator.value(&added.name, &added.ty)?;
    let report = evaluator.report();
    Ok((report.steps, report.peak_memory))
}

pub fn cost() -> Result<(), Error> {
    println!("| workload | n | steps of f | steps of grad f | ratio | bytes per step of f |");
    println!("|---|---|---|---|---|---|");
    for workload in &WORKLOADS {
        let program = Program::from_source(workload.name, workload.text)?;
        for n in [1_000, 10_000, 100_000, 1_000_000] {
            let (base, _) = measure(&program, &format!("let x = input {n} in 0.0"))?;
            let (value, _) = measure(&program, &format!("f (input {n})"))?;
            let (gradient, bytes) = measure(&program, &format!("let g = grad f (input {n}) in 0.0"))?;
            let (value, gradient) = (value.saturating_sub(base).max(1), gradient.saturating_sub(base));
            let ratio = gradient as f64 / value as f64;
            let density = bytes as f64 / value as f64;
            println!("| {} | {n} | {value} | {gradient} | {ratio:.2} | {density:.0} |", workload.name);
        }
    }
    Ok(())
}

/// K section 7: n nested doublings, linear with sharing and exponential without.
pub fn doubling() -> Result<(), Error> {
    println!("| n | steps of f | `monadic` | `delta` |");
    println!("|---|---|---|---|");
    for n in [2usize, 4, 6, 8, 10, 12, 14, 16, 18] {
        let lets: String = (1..=n).map(|i| format!("let x{i} = x{0} + x{0} in ", i - 1)).collect();
        let program = Program::from_source("doubling", &format!("let f x0 = {lets}x{n}"))?;
        let with = |mode| program.clone().with_options(Options { mode: Some(mode), ..Options::default() });
        let (value, _) = measure(&program, "f 1.0")?;
        let (monadic, _) = measure(&with(Mode::Monadic), "grad f 1.0")?;
        let (delta, _) = measure(&with(Mode::Delta), "grad f 1.0")?;
        println!("| {n} | {value} | {monadic} | {delta} |");
    }
    Ok(())
}
