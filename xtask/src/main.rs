//! The project's chores: `cargo xtask test`, `tidy`, `docs`, `bless`, `oracle`.

mod bless;
mod count;
mod docs;
mod oracle;
mod proofs;
mod tidy;

use count::Count;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test [ARG]...   everything: tidy, documents, unit tests, doctests, the golden suite, the examples, the proofs,
                  some programs through the code extracted from them;
                  arguments are handed to `cargo test` (say, `-p gradus-core`), and then only those tests run
  oracle [--count N] [--first SEED]
                  compare N random programs (10000) with the code that was extracted from the proofs
  tidy            the house rules: which crate may know which, file sizes, no paths of one machine
  docs            write the generated tables of docs/ anew
  bless           write tests/**/*.expected anew from what the implementation says; read every changed line
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match arguments.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("", &[][..]),
    };
    let count = match (command, rest) {
        ("test", []) => test(),
        ("test", rest) => count::cargo_test(rest),
        ("oracle", rest) => match oracle::arguments(rest) {
            Some((count, first)) => oracle::check(count, first, true),
            None => {
                eprint!("{USAGE}");
                return ExitCode::from(2);
            }
        },
        ("tidy", []) => tidy::check(),
        ("docs", []) => docs::write(),
        ("bless", []) => bless::bless(),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    count.report()
}

fn test() -> Count {
    let mut count = tidy::check();
    count += docs::check();
    count += count::cargo_test(&["--workspace".into(), "--no-fail-fast".into()]);
    count += proofs::check();
    count += oracle::check(oracle::FEW, 0, false);
    count
}

/// The root of the repository.
fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or(here.clone(), PathBuf::from)
}

/// Cargo, as it was called, in the root of the repository.
fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}
