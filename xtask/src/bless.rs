//! Writes the expected messages of the golden suite anew. Expected values are never written by a program.

use crate::count::Count;

pub fn bless() -> Count {
    let mut command = super::cargo();
    command.args(["test", "--quiet", "--package", "gradus-cli", "--test", "messages"]).env("GRADUS_BLESS", "1");
    if command.status().is_ok_and(|status| status.success()) {
        println!("bless: the .expected files are written; read `git diff tests` line by line");
        Count::passed()
    } else {
        println!("bless: FAILED");
        Count::failed()
    }
}
