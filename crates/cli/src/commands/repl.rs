//! `gradus repl [FILE]`: read, evaluate, print. Input may run over several lines; an empty line ends it.

use crate::commands::run::show_outcome;
use crate::interrupt;
use crate::output::{Done, Failure, Output};
use gradus::{Entry, FsLoader, Loader, Options, Program};
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::Path;

const HELP: &str = "\
Type an expression or a definition. Input that is not complete goes on in the next line; an empty line ends it.
  :type EXPR   the type of an expression
  :list        what is defined
  :quit        leave";

/// What has been defined so far, as text, and the program that it makes.
struct Session {
    name: String,
    text: String,
    program: Program,
    options: Options,
}

pub fn repl(file: Option<&Path>, options: Options, output: &Output) -> Done {
    let (name, text) = match file {
        Some(file) => {
            let read = FsLoader.read(file);
            let bytes = read.map_err(|error| Failure::Input(format!("cannot read {}: {error}", file.display())))?;
            (file.display().to_string(), String::from_utf8_lossy(&bytes).into_owned())
        }
        None => ("<repl>".into(), String::new()),
    };
    let program = Program::load(&name, text.as_bytes(), FsLoader)?.with_options(options.clone());
    let mut session = Session { name, text, program, options };
    let prompting = io::stdin().is_terminal();
    if prompting {
        output.line(format!("Gradus {}. :help for help, :quit to leave.", env!("CARGO_PKG_VERSION")))?;
    }
    let mut pending = String::new();
    loop {
        if prompting {
            output.text(if pending.is_empty() { "> " } else { "| " })?;
            io::stdout().flush()?;
        }
        let mut line = Vec::new();
        let count = interrupt::waiting(|| io::stdin().lock().read_until(b'\n', &mut line))
            .map_err(|e| Failure::Input(format!("standard input: {e}")))?;
        let line = String::from_utf8_lossy(&line);
        let ended = count == 0;
        if pending.is_empty() && line.trim().starts_with(':') {
            if !session.command(line.trim(), output)? {
                return Ok(());
            }
            continue;
        }
        let forced = ended || line.trim().is_empty();
        pending.push_str(&line);
        if !pending.trim().is_empty() {
            match gradus::read_entry(&pending) {
                Entry::Incomplete if !forced => continue,
                entry => session.enter(&entry, &pending, output)?,
            }
        }
        pending.clear();
        if ended {
            return Ok(());
        }
    }
}

impl Session {
    /// A command with a colon; `false` to leave.
    fn command(&mut self, line: &str, output: &Output) -> Result<bool, Failure> {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match word {
            ":quit" | ":q" | ":exit" => return Ok(false),
            ":help" | ":h" | ":?" => output.line(HELP)?,
            ":list" | ":l" => {
                for (name, ty) in self.program.definitions() {
                    output.line(format!("{name} : {ty}"))?;
                }
            }
            ":type" | ":t" => match self.program.type_of("<input>", rest) {
                Ok(ty) => output.line(ty)?,
                Err(error) => output.diagnostics(&error),
            },
            _ => output.complain(&format!("there is no command {word}; :help lists them")),
        }
        Ok(true)
    }

    /// An expression or definitions. What is wrong is said, and the session goes on.
    fn enter(&mut self, entry: &Entry, text: &str, output: &Output) -> Done {
        let done = match entry {
            Entry::Expression => self.expression(text, output),
            Entry::Items | Entry::Incomplete | Entry::Wrong => self.items(text, output),
        };
        match done {
            Err(Failure::Program(error)) => {
                output.flush()?;
                output.diagnostics(&error);
                // It was for what has just been stopped.
                interrupt::forget();
                Ok(())
            }
            Err(Failure::Input(message)) => {
                output.complain(&message);
                Ok(())
            }
            other => other,
        }
    }

    fn expression(&mut self, text: &str, output: &Output) -> Done {
        let added = self.program.with_expression("<input>", text, None)?;
        let value = added.function("<input>");
        if output.is_json() && value.params().is_empty() {
            return output.value(&value.call(&[])?);
        }
        let shown = if value.params().is_empty() { value.call(&[])?.to_string() } else { "<fun>".into() };
        output.line(format!("{shown} : {}", added.shown))
    }

    fn items(&mut self, text: &str, output: &Output) -> Done {
        let known = self.program.definitions().count();
        let ran = self.program.core().items.len();
        let longer = format!("{}\n{text}\n", self.text);
        let program = Program::load(&self.name, longer.as_bytes(), FsLoader)?.with_options(self.options.clone());
        for (name, ty) in program.definitions().skip(known) {
            output.line(format!("{name} : {ty}"))?;
        }
        if program.core().items.len() > ran {
            let mut run = program.run_from(ran)?;
            while let Some(outcome) = run.next() {
                show_outcome(&run, outcome?, output)?;
            }
        }
        self.text = longer;
        self.program = program;
        Ok(())
    }
}
