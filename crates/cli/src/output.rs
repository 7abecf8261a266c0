//! Where results and errors go: standard output and standard error, in text or JSON, with colours on a terminal only.

use crate::options::Format;
use gradus::{json, Error, Value};
use std::io::{self, IsTerminal, Write};

/// Why a command ended early.
pub enum Failure {
    /// The program is wrong; nothing has been said yet.
    Program(Error),
    /// Something else is wrong with the input; nothing has been said yet.
    Input(String),
    /// The command line is wrong.
    Usage(String),
    /// Everything has been said; the exit status is 1.
    Said,
    /// Nobody reads our output any more.
    Pipe,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Program(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::Pipe,
            _ => Failure::Input(format!("cannot write: {error}")),
        }
    }
}

pub type Done = Result<(), Failure>;

pub struct Output {
    pub format: Format,
    /// Whether a format was asked for; some commands print JSON unless text is wanted.
    pub explicit: bool,
}

impl Output {
    pub fn new(format: Option<Format>) -> Self {
        Output { format: format.unwrap_or(Format::Text), explicit: format.is_some() }
    }

    pub fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// A line of results.
    pub fn line(&self, text: impl AsRef<str>) -> Done {
        let mut out = io::stdout().lock();
        out.write_all(text.as_ref().as_bytes())?;
        out.write_all(b"\n")?;
        Ok(())
    }

    /// Results as they are, without a line break at the end.
    pub fn text(&self, text: impl AsRef<str>) -> Done {
        io::stdout().lock().write_all(text.as_ref().as_bytes())?;
        Ok(())
    }

    pub fn flush(&self) -> Done {
        Ok(io::stdout().flush()?)
    }

    /// A value in the format at hand.
    pub fn value(&self, value: &Value) -> Done {
        if self.is_json() {
            self.line(json_of(value)?)
        } else {
            self.line(value.to_string())
        }
    }

    pub fn stdout_colour(&self) -> bool {
        wants_colour(io::stdout().is_terminal())
    }

    /// Errors and warnings, on standard error.
    pub fn diagnostics(&self, error: &Error) {
        let text =
            if self.is_json() { error.to_json() } else { error.render(wants_colour(io::stderr().is_terminal())) };
        self.complain_raw(&text);
    }

    /// A message without a place.
    pub fn complain(&self, message: &str) {
        if self.is_json() {
            let fields = [("severity", "error"), ("message", message)];
            let object: serde_json::Map<_, _> =
                fields.map(|(key, text)| (key.to_string(), text.into())).into_iter().collect();
            self.complain_raw(&format!("{}\n", serde_json::Value::Object(object)));
        } else {
            self.complain_raw(&format!("error: {message}\n"));
        }
    }

    /// Progress and remarks for people: only in text.
    pub fn remark(&self, text: &str) {
        if !self.is_json() {
            self.complain_raw(&format!("{text}\n"));
        }
    }

    fn complain_raw(&self, text: &str) {
        // If standard error is gone there is nobody left to tell.
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }
}

fn wants_colour(is_terminal: bool) -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    is_terminal && !refused && !dumb
}

pub fn json_of(value: &Value) -> Result<String, Failure> {
    json::write(value).map_err(|error| Failure::Input(error.to_string()))
}
