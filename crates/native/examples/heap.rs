//! Times of gradients over lists and trees against the functions themselves, compiled through C. The structure is made in each run; the time
//! for that alone is taken off both.

#[path = "../tests/support/mod.rs"]
mod support;

use gradus_native::{compile, Backend, Leaf};
use std::path::Path;
use support::{entry, program};

const TEXT: &str = "\
type tree = Leaf | Node of tree * real * tree
let rec numbers (n : int) (l : real list) : real list = if n = 0 then l else numbers (n - 1) (0.001 * real n :: l)
let rec squares (l : real list) : real = match l with [] -> 0.0 | x :: r -> x * x + squares r
let rec onto (s : real) (l : real list) : real = match l with [] -> s | x :: r -> onto (s + sin (s * x)) r
let head (l : real list) : real = match l with [] -> 0.0 | x :: _ -> x
let rec grow (n : int) (x : real) : tree =
  if n = 0 then Leaf else Node (grow (n / 2) (0.5 * x), x, grow (n - 1 - n / 2) (0.25 * x))
let rec total (t : tree) : real =
  match t with Leaf -> 1.0 | Node (l, x, r) -> let a = total l in let b = total r in tanh (a * x + b * (1.0 - x))
let top (t : tree) : real = match t with Leaf -> 0.0 | Node (_, x, _) -> x
let list_made (n : int) : real = head (numbers n [])
let list_recursive (n : int) : real = squares (numbers n [])
let list_recursive_grad (n : int) : real = head (grad squares (numbers n []))
let list_loop (n : int) : real = onto 0.1 (numbers n [])
let list_loop_grad (n : int) : real = head (grad (onto 0.1) (numbers n []))
let tree_made (n : int) : real = top (grow n 1.0)
let tree (n : int) : real = total (grow n 1.0)
let tree_grad (n : int) : real = top (grad total (grow n 1.0))
";

/// CPU time of this thread, in nanoseconds.
fn now() -> f64 {
    match gradus_runtime::clock::cpu_time() {
        Some(time) => time.as_secs_f64() * 1e9,
        None => panic!("the system tells no CPU time of a thread"),
    }
}

fn main() {
    let program = program("heap.gr", TEXT, Path::new("."));
    let rows = [
        ("list, recursive", ["list_made", "list_recursive", "list_recursive_grad"]),
        ("list, loop", ["list_made", "list_loop", "list_loop_grad"]),
        ("tree", ["tree_made", "tree", "tree_grad"]),
    ];
    for (name, functions) in rows {
        let entries: Vec<_> = functions.iter().map(|f| entry(&program, f)).collect();
        let native = match compile(&program, &entries, &Backend::C.into()) {
            Ok(native) => native,
            Err(error) => panic!("{:?}", error.diagnostic()),
        };
        for n in [1_000, 10_000, 100_000, 1_000_000] {
            let best = |entry: usize| {
                let run = || {
                    let start = now();
                    native.call(entry, &[Leaf::Int(n)]).expect("runs");
                    (now() - start) / n as f64
                };
                (0..20).map(|_| run()).fold(f64::INFINITY, f64::min)
            };
            let (made, primal, gradient) = (best(0), best(1), best(2));
            let ratio = (gradient - made) / (primal - made);
            println!("{name:16} {n:8}: made {made:6.2}, with value {primal:6.2}, with gradient {gradient:6.2} ns each; ratio {ratio:.1}");
        }
    }
}
