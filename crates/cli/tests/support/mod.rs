//! What the tests of the command line share: running the binary in a folder of its own.

#![allow(dead_code)] // Each test file uses its own part.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder for one test, removed at its end.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(test: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("gradus-test-{}-{test}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Folder(path)
    }

    pub fn with(self, name: &str, content: impl AsRef<[u8]>) -> Folder {
        std::fs::write(self.0.join(name), content).expect("a file in the temporary folder");
        self
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with(arguments, "")
    }

    pub fn run_with(&self, arguments: &[&str], input: &str) -> Ran {
        self.run_command(Command::new(env!("CARGO_BIN_EXE_gradus")).args(arguments), input)
    }

    /// With an environment variable set.
    pub fn run_where(&self, variable: &str, value: &str, arguments: &[&str]) -> Ran {
        self.run_command(Command::new(env!("CARGO_BIN_EXE_gradus")).args(arguments).env(variable, value), "")
    }

    fn run_command(&self, command: &mut Command, input: &str) -> Ran {
        let mut child = command
            .current_dir(&self.0)
            .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let mut stdin = child.stdin.take().expect("standard input");
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        Ran(child.wait_with_output().expect("the binary ends"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A run that has ended.
pub struct Ran(Output);

impl Ran {
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }

    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }

    /// The exit status is `code`, and standard error is empty if that is 0.
    #[track_caller]
    pub fn exits(self, code: i32) -> Ran {
        assert_eq!(self.0.status.code(), Some(code), "stdout:\n{}\nstderr:\n{}", self.out(), self.err());
        self
    }

    #[track_caller]
    pub fn prints(self, expected: &str) -> Ran {
        assert_eq!(self.out(), expected, "stderr:\n{}", self.err());
        self
    }

    #[track_caller]
    pub fn says(self, part: &str) -> Ran {
        assert!(self.err().contains(part), "{part:?} is not in\n{}", self.err());
        self
    }
}
