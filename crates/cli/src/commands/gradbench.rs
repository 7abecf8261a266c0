//! `gradus gradbench [--dir DIR]`

use crate::gradbench::Tool;
use crate::interrupt;
use crate::output::{Done, Failure};
use gradus::Options;
use std::io::{self, BufRead, Write};
use std::path::Path;

/// Answers every line of standard input with one line, until it ends.
pub fn serve(dir: &Path, options: Options) -> Done {
    let mut tool = Tool::new(dir, options);
    let mut input = io::stdin().lock();
    let mut line = Vec::new();
    loop {
        line.clear();
        let count = interrupt::waiting(|| input.read_until(b'\n', &mut line));
        let count = count.map_err(|error| Failure::Input(format!("standard input: {error}")))?;
        if count == 0 {
            return Ok(());
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let mut answer = tool.answer(&line);
        answer.push('\n');
        let mut out = io::stdout().lock();
        out.write_all(answer.as_bytes())?;
        out.flush()?;
    }
}
