//! The tables of `bench/tables/README.md`: `cargo run --release -p gradus-tables -- cost|doubling|micro|optimise|typing`.

mod cost;
mod micro;
mod optimise;
mod typing;

use std::process::ExitCode;

fn main() -> ExitCode {
    let table = match std::env::args().nth(1).as_deref() {
        Some("cost") => cost::cost(),
        Some("doubling") => cost::doubling(),
        Some("micro") => micro::micro(),
        Some("optimise") => optimise::optimise(),
        Some("typing") => typing::typing(),
        _ => {
            eprintln!("usage: gradus-tables cost | doubling | micro | optimise | typing");
            return ExitCode::from(2);
        }
    };
    match table {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
