//! The Coq proofs, where Coq is installed or may be.

use crate::count::Count;
use std::process::Command;

const PACKAGES: [&str; 3] = ["coq", "libcoq-coquelicot", "libcoq-flocq"];

pub fn check() -> Count {
    let folder = super::root().join("proofs");
    if !folder.join("Makefile").exists() {
        return Count::skipped("proofs: there is no proofs/Makefile yet");
    }
    if !has_coq() && std::env::var("CI").is_ok_and(|ci| ci == "true") {
        install();
    }
    if !has_coq() {
        return Count::skipped(format!(
            "proofs: coqc is not installed (Debian: apt-get install {}); set CI=true to let this command install it",
            PACKAGES.join(" ")
        ));
    }
    println!("proofs: make");
    let made = Command::new("make").arg("-C").arg(&folder).status();
    if made.is_ok_and(|status| status.success()) {
        Count::passed()
    } else {
        println!("proofs: FAILED");
        Count::failed()
    }
}

fn has_coq() -> bool {
    Command::new("coqc").arg("--version").output().is_ok_and(|output| output.status.success())
}

fn install() {
    println!("proofs: installing {}", PACKAGES.join(", "));
    let update = Command::new("apt-get").args(["-qq", "update"]).status();
    let install =
        Command::new("apt-get").args(["-qq", "-y", "install", "--no-install-recommends"]).args(PACKAGES).status();
    if update.is_err() || install.is_err() {
        println!("proofs: apt-get is not available");
    }
}
