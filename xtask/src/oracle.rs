//! The comparison with the proofs (`crates/oracle`), where Coq and OCaml are installed.

use crate::count::Count;
use std::process::Command;

/// What `cargo xtask test` compares.
pub const FEW: u64 = 300;

/// `--count N`, `--first SEED`
pub fn arguments(rest: &[String]) -> Option<(u64, u64)> {
    let (mut count, mut first) = (10_000, 0);
    let mut rest = rest.iter();
    while let Some(name) = rest.next() {
        let value = rest.next()?.parse().ok()?;
        match name.as_str() {
            "--count" => count = value,
            "--first" => first = value,
            _ => return None,
        }
    }
    Some((count, first))
}

pub fn check(count: u64, first: u64, release: bool) -> Count {
    for (tool, packages) in [("coqc", "coq libcoq-coquelicot"), ("ocamlfind", "ocaml-nox ocaml-findlib")] {
        // Not every tool answers to a question for its version with success; that it can be started is enough.
        if Command::new(tool).arg("-version").output().is_err() {
            return Count::skipped(format!(
                "oracle: the derivatives were not compared with the proofs, since {tool} is not installed (Debian: apt-get install {packages})"
            ));
        }
    }
    println!("oracle: make, {count} programs");
    // The crate links what is extracted by itself, in a place of its own.
    let made = Command::new("make").arg("-C").arg(super::root().join("proofs")).arg("proofs").status();
    let profile: &[&str] = if release { &["--release"] } else { &[] };
    let build = super::cargo().args(["build", "--quiet", "-p", "gradus-oracle"]).args(profile).status();
    if !made.is_ok_and(|status| status.success()) || !build.is_ok_and(|status| status.success()) {
        println!("oracle: FAILED to build");
        return Count::failed();
    }
    let numbers = [count.to_string(), first.to_string()];
    let run =
        super::cargo().args(["run", "--quiet", "-p", "gradus-oracle"]).args(profile).arg("--").args(numbers).status();
    if run.is_ok_and(|status| status.success()) {
        Count::passed()
    } else {
        println!("oracle: FAILED");
        Count::failed()
    }
}
