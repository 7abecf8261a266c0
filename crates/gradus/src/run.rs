//! Running a program: its `show`, `check` and `plot`, in order.

use crate::engine::Engine;
use crate::error::DriverError;
use crate::{Error, Program, Value};
use gradus_core::{Item, ItemKind};
use gradus_source::{Label, Span};
use std::path::PathBuf;

/// What an item of a program gave.
#[derive(Clone, Debug)]
pub enum Outcome {
    Show(Value),
    Check(Check),
    /// The value to draw, and the file to draw it to: beside the program, unless the name says otherwise.
    Plot {
        value: Value,
        file: Option<PathBuf>,
        span: Span,
    },
}

/// A `check` that was made.
#[derive(Clone, Debug)]
pub struct Check {
    pub holds: bool,
    /// If it compares, the two sides.
    pub sides: Option<(Value, Value)>,
    pub span: Span,
}

/// A run under way: an iterator over the outcomes. It ends after the first error.
///
/// ```
/// # fn main() -> Result<(), gradus::Error> {
/// use gradus::{Outcome, Program};
/// let program = Program::from_source("two.gr", "show 1 + 1\ncheck 1 < 2")?;
/// for outcome in program.run()? {
///     match outcome? {
///         Outcome::Show(value) => assert_eq!(value.to_string(), "2"),
///         Outcome::Check(check) => assert!(check.holds),
///         Outcome::Plot { .. } => {}
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct Run {
    program: Program,
    engine: Engine,
    next: usize,
    stopped: bool,
}

impl Program {
    /// Loads the program's data and makes ready to run its items.
    pub fn run(&self) -> Result<Run, Error> {
        self.run_from(0)
    }

    /// The same, without the first items.
    pub fn run_from(&self, first: usize) -> Result<Run, Error> {
        Ok(self.run_on(Engine::new(self)?, first))
    }

    /// The same on an engine of this program that has perhaps been prepared.
    pub fn run_on(&self, engine: Engine, first: usize) -> Run {
        Run { program: self.clone(), engine, next: first, stopped: false }
    }
}

impl Iterator for Run {
    type Item = Result<Outcome, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let core = self.program.core().clone();
        let item = core.items.get(self.next).filter(|_| !self.stopped)?;
        self.next += 1;
        let outcome = self.item(self.next - 1, item);
        self.stopped = outcome.is_err();
        Some(outcome)
    }
}

/// An error inside the library or another module also shows the item of the program that led there.
fn led_by(mut error: Error, item: &Item) -> Error {
    for diagnostic in &mut error.diagnostics {
        if !diagnostic.labels.iter().any(|label| label.span.file == item.span.file) {
            diagnostic.labels.push(Label { span: item.span, text: "while evaluating this".to_string() });
        }
    }
    error
}

impl Run {
    fn item(&mut self, number: usize, item: &Item) -> Result<Outcome, Error> {
        let value = self.engine.item(number).map_err(|error| led_by(error, item))?;
        Ok(match &item.kind {
            ItemKind::Show => Outcome::Show(value),
            ItemKind::Plot { file } => {
                let folder = self.program.folder().unwrap_or_default();
                let file = file.as_ref().map(|file| folder.join(&**file));
                Outcome::Plot { value, file, span: item.span }
            }
            ItemKind::Check { sides } => {
                let holds = value == Value::Bool(true);
                let sides = match sides {
                    Some((left, right, ty)) if !holds => {
                        Some((self.engine.term(left, ty)?, self.engine.term(right, ty)?))
                    }
                    _ => None,
                };
                Outcome::Check(Check { holds, sides, span: item.span })
            }
        })
    }

    /// What ran the items, for more of the same program.
    pub fn into_engine(self) -> Engine {
        self.engine
    }

    /// Goes on with the next item after an error.
    pub fn go_on(&mut self) {
        self.stopped = false;
    }

    /// What is to be said about a check that failed.
    pub fn failed_check(&self, check: &Check) -> Error {
        let sides = check.sides.as_ref().map(|(left, right)| (left.to_string(), right.to_string()));
        self.program.error(DriverError::CheckFailed { sides, span: check.span })
    }

    /// A problem with the value of an item that only the one who uses it can see.
    pub fn complaint(&self, message: String, span: Span) -> Error {
        self.program.error(DriverError::Unusable { message, span })
    }

    /// The kinks met so far, as warnings; none unless they are counted.
    pub fn kinks(&self) -> Error {
        self.engine.kinks().unwrap_or_else(|| self.program.errors(Vec::new()))
    }

    pub fn steps(&self) -> u64 {
        self.engine.steps()
    }
}
