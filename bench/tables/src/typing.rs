//! How the time to read and check a program grows with its size.

use gradus::{Error, Program};
use std::time::Instant;

/// A program of about the given number of lines: small functions, records, matches, polymorphism, each using the ones before it.
fn program(lines: usize) -> String {
    let mut text =
        String::from("type shape = Circle of real | Box of real * real\ntype point = { x : real; y : real }\n");
    let mut written = 2;
    let mut i = 0;
    while written < lines {
        let before = if i == 0 { "0.0".to_string() } else { format!("f{} (x * 0.5)", i - 1) };
        text.push_str(&format!("let f{i} x = x * {i}.5 + {before}\n"));
        text.push_str(&format!(
            "let area{i} s = match s with\n  | Circle r -> r * r * {i}.0\n  | Box (w, h) -> w * h\n"
        ));
        text.push_str(&format!("let pair{i} a b = (a, b, f{i} {i}.25)\n"));
        text.push_str(&format!("let move{i} p = {{ p with x = p.x + f{i} p.y }}\n"));
        written += 6;
        i += 1;
    }
    text
}

pub fn typing() -> Result<(), Error> {
    println!("| lines | seconds | exponent since the row above |");
    println!("|---|---|---|");
    let mut last: Option<(usize, f64)> = None;
    for lines in [1_000, 10_000, 100_000] {
        let text = program(lines);
        // The least of three: other work on the machine only adds time.
        let mut best = f64::INFINITY;
        for _ in 0..3 {
            let start = Instant::now();
            Program::from_source("generated.gr", &text)?;
            best = best.min(start.elapsed().as_secs_f64());
        }
        let exponent = last.map(|(n, t)| (best / t).ln() / (lines as f64 / n as f64).ln());
        println!("| {lines} | {best:.3} | {} |", exponent.map_or("".into(), |e| format!("{e:.2}")));
        last = Some((lines, best));
    }
    Ok(())
}
