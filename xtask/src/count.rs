//! Passed and failed, summed over everything that was run.

use std::io::{BufRead, BufReader};
use std::ops::AddAssign;
use std::process::{ExitCode, Stdio};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub passed: usize,
    pub failed: usize,
    /// What was not run, and why.
    pub skipped: Vec<String>,
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Count) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped.extend(other.skipped);
    }
}

impl Count {
    pub fn passed() -> Self {
        Count { passed: 1, ..Count::default() }
    }

    pub fn failed() -> Self {
        Count { failed: 1, ..Count::default() }
    }

    pub fn skipped(reason: impl Into<String>) -> Self {
        Count { skipped: vec![reason.into()], ..Count::default() }
    }

    /// Prints the totals as the last line.
    pub fn report(&self) -> ExitCode {
        for reason in &self.skipped {
            println!("skipped: {reason}");
        }
        println!("{} passed, {} failed", self.passed, self.failed);
        if self.failed == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}

/// Runs `cargo test` and adds up what its harnesses report.
pub fn cargo_test(arguments: &[String]) -> Count {
    let mut command = super::cargo();
    command.arg("test").args(arguments).stdout(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        eprintln!("cargo cannot be started");
        return Count::failed();
    };
    let mut count = Count::default();
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            println!("{line}");
            if let Some(harness) = summary(&line) {
                count += harness;
            }
        }
    }
    // A test program that does not even build, or dies, has no summary.
    let success = child.wait().is_ok_and(|status| status.success());
    if !success && count.failed == 0 {
        count += Count::failed();
    }
    count
}

/// `test result: ok. 12 passed; 0 failed; 0 ignored; ...`
fn summary(line: &str) -> Option<Count> {
    let (_, numbers) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let number = |word: &str| {
        let part = numbers.split(';').find(|part| part.trim().ends_with(word))?;
        part.split_whitespace().next()?.parse().ok()
    };
    Some(Count { passed: number("passed")?, failed: number("failed")?, skipped: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_are_read() {
        let line = "test result: FAILED. 12 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s";
        assert_eq!(summary(line), Some(Count { passed: 12, failed: 3, skipped: Vec::new() }));
        assert_eq!(summary("test a ... ok"), None);
    }
}
