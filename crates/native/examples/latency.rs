//! From source text to the first gradient, for programs of growing length, in CPU time; see `bench/native/README.md`.

#[path = "../tests/support/mod.rs"]
mod support;

use gradus_native::{lower, Backend, Executable, Leaf};
use std::path::Path;
use support::{entry, program};

/// Ten lines: a function with a local definition, a loop over an array, a branch, a record, and a call of the function before.
fn piece(k: usize) -> String {
    let before = if k == 0 { "x".to_string() } else { format!("step{} p x", k - 1) };
    format!(
        "let step{k} (p : params) (x : real) : real =\n\
         \x20 let y = {before} in\n\
         \x20 let s = sum (map (fun w -> tanh (w * y + p.shift)) p.weights) in\n\
         \x20 let t =\n\
         \x20   if y > 0.5 then exp (0.0 - s * p.scale)\n\
         \x20   else sin s + {k}.0 * cos y in\n\
         \x20 let u = ifold p.count (fun i a -> a * 0.5 + t * p.weights.(i)) 0.0 in\n\
         \x20 let v = sqrt (1.0 + u * u) in\n\
         \x20 log (1.0 + v * v + s * s)\n\n"
    )
}

fn text(pieces: usize) -> String {
    let mut text = String::from("type params = { scale : real; shift : real; weights : real[]; count : int }\n\n");
    (0..pieces).for_each(|k| text.push_str(&piece(k)));
    text.push_str(&format!("let loss (p : params) : real = step{} p 0.3\n", pieces - 1));
    text.push_str("let gradient (p : params) : params = grad loss p\n");
    text
}

/// CPU time of this thread, or time on the wall where that is not known.
fn now() -> std::time::Duration {
    let wall = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    gradus_runtime::clock::cpu_time().unwrap_or_else(wall)
}

fn main() {
    println!(
        "{:>6} {:>10} {:>10} {:>10} {:>10} {:>10} {:>12}",
        "lines", "front ms", "lower ms", "code ms", "call ms", "total ms", "statements"
    );
    let leaves = [Leaf::Real(0.5), Leaf::Real(0.1), Leaf::reals([0.3, -0.2, 0.7]), Leaf::Int(3)];
    for pieces in [1, 10, 10, 20, 40, 80] {
        let text = text(pieces);
        let start = now();
        let program = program("latency.gr", &text, Path::new("."));
        let front = now() - start;
        let (module, ids, _) = lower(&program, &[entry(&program, "gradient")]).expect("is compiled");
        let lowered = now() - start;
        let code = Executable::new(&module, &ids, &Backend::Cranelift.into()).expect("compiles");
        let made = now() - start;
        code.call(0, &leaves).expect("runs");
        let total = now() - start;
        let ms = |d: std::time::Duration| d.as_secs_f64() * 1e3;
        let statements = gradus_native::flow::print::module(&module).lines().count();
        println!(
            "{:>6} {:>10.2} {:>10.2} {:>10.2} {:>10.2} {:>10.2} {:>12}",
            text.lines().count(),
            ms(front),
            ms(lowered - front),
            ms(made - lowered),
            ms(total - made),
            ms(total),
            statements
        );
    }
}
