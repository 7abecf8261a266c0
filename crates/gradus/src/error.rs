//! What went wrong, as data: diagnostics with codes, places and texts, together with the sources that they speak of.

use crate::data::DataError;
use gradus_core::Symbol;
use gradus_reference::Kink;
use gradus_source::{render, to_json, Diagnostic, Position, Severity, SourceMap, Span};
use std::fmt;

/// Why a program could not be loaded, or stopped. It carries every diagnostic and the source texts, so that it can be
/// drawn as the command line draws it, or looked at piece by piece.
///
/// ```
/// let error = gradus::Program::from_source("demo.gr", "let f x = x +").unwrap_err();
/// let first = error.reports().next().unwrap();
/// assert_eq!(first.code, "E0001");
/// assert_eq!(first.file.as_deref(), Some("demo.gr"));
/// assert_eq!(first.start.map(|p| (p.line, p.column)), Some((1, 14)));
/// ```
#[derive(Clone, Debug)]
pub struct Error {
    pub diagnostics: Vec<Diagnostic>,
    pub sources: SourceMap,
}

/// One diagnostic with its main place in lines and columns.
#[derive(Clone, Debug)]
pub struct Report<'a> {
    pub severity: Severity,
    /// Stable across versions: `E0203`.
    pub code: &'static str,
    pub message: &'a str,
    pub file: Option<String>,
    pub start: Option<Position>,
    pub end: Option<Position>,
    pub help: Option<&'a str>,
}

impl Error {
    pub(crate) fn new(diagnostics: Vec<Diagnostic>, sources: &SourceMap) -> Self {
        Error { diagnostics, sources: sources.clone() }
    }

    pub fn reports(&self) -> impl Iterator<Item = Report<'_>> {
        self.diagnostics.iter().map(|diagnostic| {
            let span = diagnostic.labels.first().map(|label| label.span);
            let place = span.and_then(|span| Some((span, self.sources.file(span.file)?)));
            Report {
                severity: diagnostic.severity,
                code: diagnostic.code,
                message: &diagnostic.message,
                file: place.map(|(_, file)| file.name.to_string()),
                start: place.map(|(span, file)| file.position(span.start)),
                end: place.map(|(span, file)| file.position(span.end)),
                help: diagnostic.help.as_deref(),
            }
        })
    }

    /// As the command line shows it: source lines underlined, with colours if asked for.
    pub fn render(&self, colour: bool) -> String {
        self.diagnostics.iter().map(|d| render(d, &self.sources, colour)).collect::<Vec<_>>().join("\n")
    }

    /// One JSON object on a line for each diagnostic.
    pub fn to_json(&self) -> String {
        self.diagnostics.iter().map(|d| to_json(d, &self.sources) + "\n").collect()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Error {}

/// Diagnostics of a phase that goes on after the first error.
#[derive(Clone, Debug, Default)]
pub struct Problems {
    pub all: Vec<Diagnostic>,
}

impl Problems {
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.all.push(diagnostic);
    }

    pub fn extend(&mut self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        self.all.extend(diagnostics);
    }

    pub fn has_errors(&self) -> bool {
        self.all.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }
}

/// What can go wrong in the driver itself: modules, data, and the calls of the Rust API.
#[derive(Clone, Debug)]
pub enum DriverError {
    NoSuchModule {
        name: Symbol,
        looked_for: Option<String>,
        span: Span,
    },
    UnreadableModule {
        name: Symbol,
        reason: String,
        span: Span,
    },
    ImportCycle {
        cycle: Vec<Symbol>,
        span: Span,
    },
    NotUtf8 {
        span: Span,
    },
    UnreadableProgram {
        path: String,
        reason: String,
    },
    Data {
        file: String,
        error: DataError,
        span: Span,
    },
    /// A value can only be passed to or taken from an expression whose type is known completely.
    Polymorphic {
        name: String,
        ty: String,
    },
    NotAFunction {
        name: String,
        ty: String,
    },
    NotReal {
        name: String,
        ty: String,
    },
    NotDifferentiable {
        name: String,
        ty: String,
    },
    WrongArgumentCount {
        name: String,
        ty: String,
        expected: usize,
        found: usize,
    },
    /// An argument that does not have the parameter's type, or a result that does not have the caller's.
    WrongValue {
        what: String,
        message: String,
    },
    /// A setting that compiled code does not heed.
    OnlyReference {
        option: &'static str,
    },
    /// A value of the top level, through a derivative rule.
    DependsOnItself {
        name: Symbol,
        span: Span,
    },
    /// What is printed is the derivative of a function of one parameter.
    NotOneParameter {
        name: String,
        ty: String,
    },
    /// A derivative that needs ever more definitions.
    EndlessDerivative,
    /// A function that is not known before the program runs is differentiated.
    UnknownFunction {
        span: Span,
    },
    CheckFailed {
        sides: Option<(String, String)>,
        span: Span,
    },
    KinkMet(Kink),
    /// The value of an item cannot be used for what the item says.
    Unusable {
        message: String,
        span: Span,
    },
    /// A custom derivative rule disagrees with the function.
    WrongRule {
        function: String,
        rule: &'static str,
        point: String,
        expected: f64,
        found: f64,
        span: Span,
    },
    UntestedRule {
        function: String,
        rule: &'static str,
        reason: String,
        span: Span,
    },
}

impl DriverError {
    pub fn diagnostic(&self) -> Diagnostic {
        match self {
            DriverError::NoSuchModule { name, looked_for, span } => {
                let library = crate::library::names().collect::<Vec<_>>().join(", ");
                let diagnostic =
                    Diagnostic::error("E0151", format!("there is no module `{name}`")).label(*span, "imported here");
                let diagnostic = match looked_for {
                    Some(path) => diagnostic.note(format!("there is no file {path}")),
                    None => diagnostic,
                };
                let diagnostic = diagnostic.note(format!("the standard library has {library}"));
                match crate::library::names().find(|known| nearly(known, name)) {
                    Some(known) => diagnostic.help(format!("did you mean `{known}`?")),
                    None => diagnostic,
                }
            }
            DriverError::UnreadableModule { name, reason, span } => {
                Diagnostic::error("E0152", format!("the module `{name}` cannot be read: {reason}"))
                    .label(*span, "imported here")
            }
            DriverError::ImportCycle { cycle, span } => {
                let names = cycle.iter().map(Symbol::to_string).collect::<Vec<String>>().join(" imports ");
                Diagnostic::error("E0153", "modules import each other in a cycle")
                    .label(*span, "this import closes the cycle")
                    .note(names)
            }
            DriverError::NotUtf8 { span } => Diagnostic::error("E0154", "the file is not valid UTF-8 text")
                .label(*span, "the first byte that is not text"),
            DriverError::UnreadableProgram { path, reason } => {
                Diagnostic::error("E0701", format!("cannot read {path}: {reason}"))
            }
            DriverError::Data { file, error, span } => data_diagnostic(file, error, *span),
            DriverError::Polymorphic { name, ty } => Diagnostic::error(
                "E0721",
                format!("`{name}` has the type {ty}, which leaves open what it is applied to"),
            )
            .help(format!("say at which type it is meant, as in `({name} : real -> real)`")),
            DriverError::NotAFunction { name, ty } => {
                Diagnostic::error("E0722", format!("`{name}` has the type {ty} and is not a function"))
            }
            DriverError::NotReal { name, ty } => Diagnostic::error(
                "E0723",
                format!("`{name}` has the type {ty}; a gradient needs a function that returns a real"),
            )
            .help("for a result of another type there is the Jacobian"),
            DriverError::NotDifferentiable { name, ty } => Diagnostic::error(
                "E0724",
                format!("`{name}` has the type {ty}; derivatives need input and output without functions inside"),
            ),
            DriverError::WrongArgumentCount { name, ty, expected, found } => {
                let takes = if *expected == 1 { "1 argument".into() } else { format!("{expected} arguments") };
                Diagnostic::error("E0725", format!("`{name}` takes {takes}, but {found} were given"))
                    .note(format!("{name} : {ty}"))
            }
            DriverError::WrongValue { what, message } => Diagnostic::error("E0726", format!("{what}: {message}")),
            DriverError::NotOneParameter { name, ty } => {
                Diagnostic::error("E0728", format!("`{name}` has the type {ty}; a function of one parameter is needed"))
                    .help(format!("fix the others, as in `(fun x -> {name} x 1.0)`, or take a tuple"))
            }
            DriverError::EndlessDerivative => {
                Diagnostic::error("E0729", "the derivative needs ever more definitions and cannot be written down")
                    .note("the function is defined through its own derivative; it can still be run")
            }
            DriverError::UnknownFunction { span } => {
                Diagnostic::error("E0730", "the derivative cannot be written down before the program runs")
                    .label(*span, "the function that is differentiated here is known only then")
            }
            DriverError::CheckFailed { sides, span } => {
                let diagnostic = Diagnostic::error("E0620", "a check does not hold").label(*span, "this is false");
                match sides {
                    Some((left, right)) => diagnostic.note(format!("left:  {left}")).note(format!("right: {right}")),
                    None => diagnostic,
                }
            }
            DriverError::KinkMet(kink) => {
                let info = kink.prim.info();
                let times = if kink.count == 1 { "once".into() } else { format!("{} times", kink.count) };
                let place = info.kinks.map_or(String::new(), |kinks| format!("where {}, ", kinks.text));
                let message = format!("a derivative was taken where `{}` is not differentiable", info.name);
                Diagnostic::warning("W0609", message).label(kink.span, format!("{place}{times}"))
            }
            DriverError::Unusable { message, span } => {
                Diagnostic::error("E0621", message.clone()).label(*span, "needed here")
            }
            DriverError::WrongRule { function, rule, point, expected, found, span } => {
                Diagnostic::error("E0510", format!("the {rule} rule of `{function}` disagrees with the function"))
                    .label(*span, "this function")
                    .note(format!("at {point}"))
                    .note(format!("the rule gives {found:?} in a direction where finite differences give {expected:?}"))
            }
            DriverError::UntestedRule { function, rule, reason, span } => {
                Diagnostic::warning("W0511", format!("the {rule} rule of `{function}` could not be tested"))
                    .label(*span, reason.clone())
            }
            DriverError::DependsOnItself { name, span } => {
                Diagnostic::error("E0615", format!("the value of `{name}` depends on itself"))
                    .label(*span, "needed to compute it")
            }
            DriverError::OnlyReference { option } => {
                Diagnostic::error("E0810", format!("compiled code knows no {option}"))
                    .help("use --backend reference, which does")
            }
        }
    }
}

/// Whether one name becomes the other by one letter more, less or changed, whatever the case.
fn nearly(a: &str, b: &str) -> bool {
    let (a, b) = (a.to_lowercase().chars().collect::<Vec<_>>(), b.to_lowercase().chars().collect::<Vec<_>>());
    let (short, long) = if a.len() <= b.len() { (&a, &b) } else { (&b, &a) };
    let same_start = short.iter().zip(long.iter()).take_while(|(x, y)| x == y).count();
    let rest = long.get(same_start + 1..).unwrap_or_default();
    let skip = usize::from(short.len() == long.len());
    long.len() - short.len() <= 1 && short.get(same_start + skip..).unwrap_or_default() == rest
}

fn data_diagnostic(file: &str, error: &DataError, span: Span) -> Diagnostic {
    match error {
        DataError::Unreadable(reason) => {
            Diagnostic::error("E0702", format!("cannot read the data file {file}: {reason}")).label(span, "needed here")
        }
        DataError::UnknownFormat => Diagnostic::error("E0703", format!("{file} is not a known kind of data file"))
            .label(span, "the name must end in .csv, .json or .npy"),
        DataError::Malformed(reason) => {
            Diagnostic::error("E0704", format!("{file}: {reason}")).label(span, "loaded here")
        }
        DataError::TypeNotStorable { format, reason } => {
            Diagnostic::error("E0705", format!("a {format} file cannot hold a value of this type"))
                .label(span, reason.clone())
        }
        DataError::Misfit(misfit) => {
            Diagnostic::error("E0706", format!("{file}, {misfit}")).label(span, "does not fit the declared type")
        }
    }
}
