//! The extracted oracle as a process: lines in, one answer each (`proofs/README.md` has the protocol).

use crate::wire::Sexp;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub struct Oracle {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Oracle {
    pub fn start(program: &Path) -> std::io::Result<Oracle> {
        let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let answers = child.stdout.take().map(BufReader::new);
        let answers = answers.ok_or_else(|| std::io::Error::other("the oracle has no output"))?;
        Ok(Oracle { child, answers })
    }

    /// The answers to a number of lines. Lines are written while answers are read, since either pipe can be full.
    pub fn ask(&mut self, lines: &[String]) -> std::io::Result<Vec<Sexp>> {
        let mut input = self.child.stdin.take().ok_or_else(|| std::io::Error::other("the oracle has no input"))?;
        let answers = &mut self.answers;
        let (input, found) = std::thread::scope(|scope| {
            let writer = scope.spawn(move || {
                for line in lines {
                    input.write_all(line.as_bytes())?;
                    input.write_all(b"\n")?;
                }
                input.flush()?;
                Ok::<_, std::io::Error>(input)
            });
            let mut found = Vec::with_capacity(lines.len());
            let mut text = String::new();
            for _ in lines {
                text.clear();
                if answers.read_line(&mut text)? == 0 {
                    return Err(std::io::Error::other("the oracle ended"));
                }
                let answer = Sexp::read(text.trim_end());
                found.push(answer.ok_or_else(|| std::io::Error::other(format!("no expression: {text}")))?);
            }
            let input = writer.join().map_err(|_| std::io::Error::other("the writer failed"))??;
            Ok((input, found))
        })?;
        self.child.stdin = Some(input);
        Ok(found)
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Links the extracted code with our elementary functions. `library`: the static library of this crate; `proofs`: the folder in
/// which `make` has extracted; the result is put in `to`, in one go, since others may be doing the same.
pub fn link(proofs: &Path, library: &Path, to: &Path) -> std::io::Result<PathBuf> {
    let own = to.join(std::process::id().to_string());
    std::fs::create_dir_all(&own)?;
    let program = to.join("oracle");
    let linked = link_in(&own, proofs, library).and_then(|linked| std::fs::rename(linked, &program));
    std::fs::remove_dir_all(&own)?;
    linked.map(|()| program)
}

fn link_in(to: &Path, proofs: &Path, library: &Path) -> std::io::Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = ["extracted.mli", "extracted.ml", "oracle.ml"].map(|name| (proofs.join(name), to.join(name)));
    for (from, copy) in sources.into_iter().chain([(here.join("elementary.ml"), to.join("elementary.ml"))]) {
        std::fs::copy(&from, copy).map_err(|error| std::io::Error::other(format!("{}: {error}", from.display())))?;
    }
    let program = to.join("oracle");
    let status = Command::new("ocamlfind")
        .current_dir(to)
        .args(["ocamlopt", "-w", "-a", "extracted.mli", "extracted.ml", "elementary.ml", "oracle.ml"])
        .arg(library)
        .args(["-cclib", "-lm", "-cclib", "-lpthread", "-cclib", "-ldl", "-o", "oracle"])
        .status()?;
    match status.success() {
        true => Ok(program),
        false => Err(std::io::Error::other("ocamlfind ocamlopt failed")),
    }
}
