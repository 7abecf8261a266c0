//! The failure texts of a C file with places that people can read, for files that leave this machine.

use super::Source;
use gradus_source::{FileId, Span};

impl Source {
    /// Puts what `place` says for each `(file 1, bytes 2 to 3)` of the failure texts, which stand on lines of their own.
    pub fn located(mut self, place: &dyn Fn(Span) -> Option<String>) -> Source {
        let line = |line: &str| -> String {
            let known = line.split_once("(file ").and_then(|(before, rest)| {
                let (span, after) = rest.split_once(')')?;
                let (file, bytes) = span.split_once(", bytes ")?;
                let (start, end) = bytes.split_once(" to ")?;
                let span =
                    Span { file: FileId(file.parse().ok()?), start: start.parse().ok()?, end: end.parse().ok()? };
                let text = place(span)?.replace('\\', "/").replace('"', "'");
                Some(format!("{before}({text}){after}"))
            });
            known.unwrap_or_else(|| line.to_string())
        };
        self.code = self.code.lines().map(|text| line(text) + "\n").collect();
        self
    }
}
