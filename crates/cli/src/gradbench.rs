//! The tool side of the GradBench protocol: a line of JSON in, a line of JSON out. It knows no problem: modules are programs in a folder.

use gradus::json::{read_loosely, write};
use gradus::{Argument, Error, Function, Measured, Options, Program, Repeat};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What a message may have; anything else in it is of no concern here.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    module: Option<Cow<'a, str>>,
    #[serde(borrow)]
    function: Option<Cow<'a, str>>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

/// How often the input wants the function to be run.
#[derive(Default, Deserialize)]
struct Wanted {
    min_runs: Option<u64>,
    min_seconds: Option<f64>,
}

/// What is answered besides the id: fields as JSON text.
type Fields = String;

pub struct Tool {
    dir: PathBuf,
    options: Options,
    modules: HashMap<String, Result<Program, String>>,
    /// Functions keep what they have compiled.
    functions: HashMap<(String, String), Function>,
    /// The id of the next message, for one that cannot be read: they are counted.
    next: i64,
}

impl Tool {
    pub fn new(dir: impl Into<PathBuf>, options: Options) -> Tool {
        Tool { dir: dir.into(), options, modules: HashMap::new(), functions: HashMap::new(), next: 0 }
    }

    /// The one answer to a message.
    pub fn answer(&mut self, line: &[u8]) -> String {
        let (id, fields) = match serde_json::from_slice::<Message>(line) {
            Ok(message) => {
                let id = message.id.map_or_else(|| self.next.to_string(), |id| id.get().to_string());
                (id, self.fields(&message))
            }
            Err(error) => (self.next.to_string(), failure(&format!("the message cannot be read: {error}"))),
        };
        self.next = id.parse().unwrap_or(self.next) + 1;
        format!("{{\"id\":{id}{fields}}}")
    }

    fn fields(&mut self, message: &Message) -> Fields {
        match message.kind.as_deref() {
            Some("start") => ",\"tool\":\"gradus\"".into(),
            Some("define") => self.define(message),
            Some("evaluate") => {
                let evaluated = catch_unwind(AssertUnwindSafe(|| self.evaluate(message)));
                match evaluated {
                    Ok(Ok(fields)) => fields,
                    Ok(Err(error)) => failure(&error),
                    Err(_) => {
                        self.functions.clear();
                        failure("internal error, please report it together with the program")
                    }
                }
            }
            // `analysis`, and what may come in a later version.
            _ => String::new(),
        }
    }

    fn define(&mut self, message: &Message) -> Fields {
        let Some(module) = &message.module else { return failure("`define` needs a module") };
        let began = Instant::now();
        match self.module(module) {
            Ok(_) => {
                let took = timings([("define", began.elapsed())]);
                format!(",\"success\":true,\"timings\":{took}")
            }
            Err(error) => failure(&error),
        }
    }

    /// The program of a module, loaded when it is needed first.
    fn module(&mut self, name: &str) -> Result<Program, String> {
        if !name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-') || name.is_empty() {
            return Err(format!("there is no module {name:?}"));
        }
        if let Some(known) = self.modules.get(name) {
            return known.clone();
        }
        let file = self.dir.join(format!("{name}.gr"));
        let loaded = if file.is_file() {
            Program::from_file(&file).map(|program| program.with_options(self.options.clone())).map_err(|e| words(&e))
        } else {
            Err(format!("there is no module {name}: no file {}", file.display()))
        };
        self.modules.insert(name.into(), loaded.clone());
        loaded
    }

    fn evaluate(&mut self, message: &Message) -> Result<Fields, String> {
        let module = message.module.as_deref().ok_or("`evaluate` needs a module")?;
        let name = message.function.as_deref().ok_or("`evaluate` needs a function")?;
        let input = message.input.ok_or("`evaluate` needs an input")?.get();
        let program = self.module(module)?;
        let key = (module.to_string(), name.to_string());
        if !self.functions.contains_key(&key) {
            if !program.definitions().any(|(known, _)| known == name) {
                return Err(format!("the module {module} has no function {name}"));
            }
            let function = program.function(name).map_err(|error| words(&error))?;
            self.functions.insert(key.clone(), function);
        }
        let Some(function) = self.functions.get(&key) else { return Err(format!("no function {name}")) };
        let [param] = function.params() else {
            return Err(format!("{name} : {} takes not one input", function.type_text()));
        };
        let value = read_loosely(input.as_bytes(), param, &program.schema()).map_err(|e| format!("the input: {e}"))?;
        // An input that is no object asks for nothing.
        let wanted = if input.starts_with('{') {
            serde_json::from_str(input).map_err(|error| format!("the input: {error}"))?
        } else {
            Wanted::default()
        };
        let repeat = Repeat { min_runs: wanted.min_runs.unwrap_or(1), min_seconds: wanted.min_seconds.unwrap_or(0.0) };
        let measured = function.measure(&[Argument::Value(&value)], repeat).map_err(|error| words(&error))?;
        success(&measured)
    }
}

fn success(measured: &Measured) -> Result<Fields, String> {
    if !measured.value.is_finite() {
        return Err("the result holds NaN or infinity, for which JSON has no numbers".into());
    }
    let output = write(&measured.value).map_err(|error| error.to_string())?;
    let compilation = Some(measured.compilation).filter(|took| !took.is_zero()).map(|took| ("compile", took));
    let runs = measured.runs.iter().map(|took| ("evaluate", *took));
    let cpu = measured.cpu.map(|least| ("least_cpu", least));
    let timings = timings(compilation.into_iter().chain(runs).chain(cpu));
    Ok(format!(",\"success\":true,\"output\":{output},\"timings\":{timings}"))
}

fn failure(error: &str) -> Fields {
    format!(",\"success\":false,\"error\":{}", serde_json::Value::from(error))
}

fn timings(all: impl IntoIterator<Item = (&'static str, Duration)>) -> String {
    let mut out = String::from("[");
    for (i, (name, took)) in all.into_iter().enumerate() {
        let comma = if i == 0 { "" } else { "," };
        let _ = write!(out, "{comma}{{\"name\":\"{name}\",\"nanoseconds\":{}}}", took.as_nanos());
    }
    out.push(']');
    out
}

/// An error as the command line shows it, without colours.
fn words(error: &Error) -> String {
    error.to_string().trim_end().to_string()
}
