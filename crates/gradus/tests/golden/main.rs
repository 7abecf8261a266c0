//! The golden suite: every program under tests/ in every mode that accepts it, optimised and not, and compiled. See tests/README.md.

mod agree;
mod expectations;
mod types;

use expectations::{Expectation, Golden, Kind};
use gradus::{Added, Backend, Domain, Engine, Kinks, Mode, Options, Outcome, Program};
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Passes over deep programs grow their own stacks; this is what the command line gives them to begin with.
const STACK: usize = 512 << 20;

/// Seconds after which a cell is worth a remark.
const SLOW: u64 = 20;

/// What a cell may use; a program that needs more says so with `only:`.
const MOST_STEPS: u64 = 2_000_000_000;
const MOST_STEPS_UNSHARED: u64 = 30_000_000;
const MOST_MEMORY: u64 = 2 << 30;

/// These modes do not share what a program shares, and may take exponentially many steps.
const UNSHARED: [Mode; 2] = [Mode::Delta, Mode::Continuation];

/// Programs of which compiled code does not take all, and why.
const NOT_COMPILED: [(&str, &str); 4] = [
    ("polymorphic_recursion.gr", "there are finitely many functions in compiled code"),
    ("polymorphic_recursion_derivative.gr", "there are finitely many functions in compiled code"),
    ("growing_types.gr", "there are finitely many functions in compiled code"),
    ("taylor.gr", "the code of Taylor coefficients doubles with each order, and order 10 is asked for"),
];

fn not_compiled(file: &Path) -> Option<&'static str> {
    NOT_COMPILED.iter().find(|(name, _)| file.ends_with(name)).map(|(_, reason)| *reason)
}

/// What happened in the cells of the matrix, over all programs.
#[derive(Default)]
struct Tally {
    held: usize,
    refused: usize,
    /// With the reason.
    skipped: Vec<String>,
}

fn main() {
    let arguments = Arguments::from_args();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let tally: Arc<Mutex<Tally>> = Arc::default();
    let mut trials = Vec::new();
    // Those that take long come first, so that no core is left alone with one at the end.
    for folder in ["papers", "gradbench", "programs"] {
        let mut files = Vec::new();
        collect(&tests.join(folder), &mut files);
        for file in files {
            let name = file.strip_prefix(&tests).unwrap_or(&file).display().to_string();
            let tally = tally.clone();
            trials.push(Trial::test(name, move || on_a_large_stack(move || program(&file, &tally))));
        }
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    let tally = tally.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut reasons: Vec<(usize, &String)> = Vec::new();
    for reason in &tally.skipped {
        match reasons.iter_mut().find(|(_, known)| *known == reason) {
            Some((count, _)) => *count += 1,
            None => reasons.push((1, reason)),
        }
    }
    println!(
        "golden suite: {} cells hold, {} refused as expected, {} skipped",
        tally.held,
        tally.refused,
        tally.skipped.len()
    );
    for (count, reason) in reasons {
        println!("  skipped {count}: {reason}");
    }
    conclusion.exit();
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut entries: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            collect(&entry, files);
        } else if entry.extension().is_some_and(|extension| extension == "gr") {
            files.push(entry);
        }
    }
}

fn on_a_large_stack(work: impl FnOnce() -> Result<(), Failed> + Send + 'static) -> Result<(), Failed> {
    let handle = std::thread::Builder::new().stack_size(STACK).spawn(work).map_err(|e| e.to_string())?;
    match handle.join() {
        Ok(result) => result,
        Err(panic) => Err(panic.downcast_ref::<String>().cloned().unwrap_or("panicked".into()).into()),
    }
}

/// An expectation that needs evaluation, with the definition that holds both of its sides.
struct Prepared {
    expectation: usize,
    added: Added,
}

fn program(file: &Path, tally: &Mutex<Tally>) -> Result<(), Failed> {
    let text = std::fs::read_to_string(file)?;
    let golden = expectations::read(&text)?;
    let program = Program::from_file(file).map_err(|error| error.to_string())?;
    if golden.is_module {
        return Ok(());
    }
    let (program, prepared) = prepare(program, &golden)?;
    let mut failures = Vec::new();
    let mut plain: Option<(Option<Mode>, Ran)> = None;
    for options in cells(file, &golden, &text, tally)? {
        let (mode, options_mode, optimised) = (options.mode, options.mode, options.optimise);
        let cell = cell_name(&options);
        if std::env::var("ONLY_CELLS").is_ok_and(|only| !cell.contains(&only)) {
            continue;
        }
        let began = std::time::Instant::now();
        let ran = run_cell(&program, &golden, &prepared, options);
        if began.elapsed().as_secs() >= SLOW {
            println!("slow: {} [{cell}] took {} s", file.display(), began.elapsed().as_secs());
        }
        match ran {
            Err(message) => failures.push(format!("[{cell}] {message}")),
            Ok(ran) => {
                let refusals = &ran.refusals;
                let mut tally = tally.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                let listed = mode.is_some_and(|mode| golden.refuses.contains(&mode));
                let mode = mode.map_or("native", Mode::key);
                if let Some(refusal) = &refusals.not_compiled {
                    match not_compiled(file).filter(|_| cell == Backend::Native.key()) {
                        Some(reason) => tally.skipped.push(format!("not compiled: {reason}")),
                        None => failures.push(format!("[{cell}] {refusal}")),
                    }
                    continue;
                }
                match (refusals.not_offered, refusals.refused.first(), listed) {
                    (Some(reason), _, _) => tally.skipped.push(format!("the mode {mode} {reason}")),
                    (None, None, false) => tally.held += 1,
                    (None, None, true) => {
                        failures.push(format!("[{cell}] is listed under `refuses:` but refuses nothing"))
                    }
                    (None, Some(_), true) => tally.refused += 1,
                    (None, Some(refusal), false) => failures.push(format!("[{cell}] refuses: {refusal}")),
                }
                match &plain {
                    Some((same, before)) if optimised && *same == options_mode => {
                        failures.extend(ran.worse_than(before).map(|problem| format!("[{cell}] {problem}")));
                    }
                    _ => plain = Some((options_mode, ran)),
                }
            }
        }
    }
    if failures.is_empty() {
        Ok(())
    } else {
        Err(failures.join("\n").into())
    }
}

/// Types first, then one definition for each pair of sides.
fn prepare(mut program: Program, golden: &Golden) -> Result<(Program, Vec<Prepared>), Failed> {
    let mut prepared = Vec::new();
    for (index, expectation) in golden.expectations.iter().enumerate() {
        match &expectation.kind {
            Kind::Type { name, ty } => {
                let found =
                    program.signature(name).ok_or(format!("line {}: there is no `{name}`", expectation.line))?;
                if types::normal(&found) != types::normal(ty) {
                    return Err(format!("line {}: {name} has the type {found}, not {ty}", expectation.line).into());
                }
            }
            Kind::Equal { left, right, .. } => {
                let shown = format!("<line {}>", expectation.line);
                let added = program.with_expression(&shown, &format!("[({left}\n); ({right}\n)]"), None);
                let added = added.map_err(|error| error.to_string())?;
                program = added.program.clone();
                prepared.push(Prepared { expectation: index, added });
            }
            Kind::Prints { .. } => {}
        }
    }
    Ok((program, prepared))
}

/// The cells of the matrix for this program. Without derivatives, all modes are one.
fn cells(file: &Path, golden: &Golden, text: &str, tally: &Mutex<Tally>) -> Result<Vec<Options>, Failed> {
    let base = options(&golden.options)?;
    let words = [
        "grad",
        "vjp",
        "jvp",
        "pullback",
        "linearize",
        "jacobian",
        "hessian",
        "hvp",
        "diff",
        "taylor",
        "Optim",
        "Math",
    ];
    let compiled = Options { backend: Backend::Native, ..base.clone() };
    let differentiates = words.iter().any(|word| text.contains(word));
    let modes: Vec<Option<Mode>> = if differentiates { Mode::ALL.into_iter().map(Some).collect() } else { vec![None] };
    // A program that names its modes knows what it costs.
    let limited = golden.only.is_none();
    let memory = limited.then_some(MOST_MEMORY);
    let mut cells = Vec::new();
    for mode in modes {
        let tried = golden.only.as_ref().is_none_or(|only| mode.is_none_or(|mode| only.contains(&mode)));
        let unshared = mode.is_some_and(|mode| UNSHARED.contains(&mode));
        let steps = limited.then_some(if unshared { MOST_STEPS_UNSHARED } else { MOST_STEPS });
        for optimise in [false, true] {
            if tried {
                let limits = Options { max_steps: steps, max_memory: memory, ..base.clone() };
                cells.push(Options { backend: Backend::Reference, mode, optimise, ..limits });
            } else {
                let mut tally = tally.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                tally.skipped.push(golden.only_reason.clone());
            }
        }
    }
    cells.push(compiled);
    // What a user gets who asks for nothing: the same, unless the evaluator must help.
    if base.only_reference().is_some() || not_compiled(file).is_some() {
        cells.push(base);
    }
    Ok(cells)
}

fn options(words: &[String]) -> Result<Options, Failed> {
    let mut options = Options::default();
    for word in words {
        match word.as_str() {
            "--kinks=ignore" => options.kinks = Kinks::Ignore,
            "--kinks=warn" => options.kinks = Kinks::Warn,
            "--kinks=error" => options.kinks = Kinks::Error,
            "--domain=ieee" => options.domain = Domain::Ieee,
            "--domain=error" => options.domain = Domain::Error,
            _ => return Err(format!("the golden suite does not know the option {word}").into()),
        }
    }
    Ok(options)
}

fn cell_name(options: &Options) -> String {
    let mode = options.mode.map_or("no derivatives", Mode::key);
    if options.backend != Backend::Reference {
        return options.backend.key().to_string();
    }
    format!("reference, {mode}{}", if options.optimise { ", optimised" } else { "" })
}

#[derive(Default)]
struct Refusals {
    /// Why the mode has nothing to offer for a form, whatever the function.
    not_offered: Option<&'static str>,
    /// What the compiler refuses.
    not_compiled: Option<String>,
    refused: Vec<String>,
}

impl Refusals {
    /// Takes note of a refusal; anything else is a failure.
    fn note(&mut self, error: &gradus::Error, mode: Option<Mode>) -> Result<(), String> {
        match error.reports().next().map(|report| report.code) {
            Some("E0503") => self.not_offered = Some("has no derivative form of this kind"),
            Some("E0611" | "E0612") if mode.is_some_and(|mode| UNSHARED.contains(&mode)) => {
                self.not_offered = Some("shares nothing and takes too long here");
            }
            Some("E0810") => self.not_offered = Some("does not know all options of the program"),
            Some("E0801") => self.not_compiled = Some(error.to_string()),
            Some("E0502") => self.refused.push(error.to_string()),
            _ => return Err(error.to_string()),
        }
        Ok(())
    }
}

/// What came of a cell: besides refusals, every value that was computed, in full, and the evaluator's steps.
struct Ran {
    refusals: Refusals,
    values: Vec<String>,
    steps: u64,
}

impl Ran {
    /// The optimiser must change no bit and take no more steps. Where something was refused, what was computed differs.
    fn worse_than(&self, plain: &Ran) -> Option<String> {
        let complete = |ran: &Ran| ran.refusals.not_offered.is_none() && ran.refusals.refused.is_empty();
        if !complete(self) || !complete(plain) {
            return None;
        }
        if let Some((found, expected)) = self.values.iter().zip(&plain.values).find(|(a, b)| a != b) {
            return Some(format!("{expected} becomes {found}"));
        }
        (self.steps > plain.steps).then(|| format!("{} steps become {}", plain.steps, self.steps))
    }
}

fn run_cell(program: &Program, golden: &Golden, prepared: &[Prepared], options: Options) -> Result<Ran, String> {
    let mode = options.mode;
    let program = program.clone().with_options(options);
    let mut refusals = Refusals::default();
    let mut engine = match Engine::new(&program) {
        Ok(engine) => engine,
        Err(error) => {
            refusals.note(&error, mode)?;
            return Ok(Ran { refusals, values: Vec::new(), steps: 0 });
        }
    };
    let definitions: Vec<_> = prepared.iter().map(|p| (p.added.name.clone(), p.added.ty.clone())).collect();
    engine.prepare(&definitions);
    let (mut values, mut engine) = items(&program, engine, golden, &mut refusals)?;
    for Prepared { expectation, added } in prepared {
        let Some(Expectation { line, text, kind: Kind::Equal { tolerance, .. } }) =
            golden.expectations.get(*expectation)
        else {
            continue;
        };
        match engine.value(&added.name, &added.ty) {
            Err(error) => refusals.note(&error, mode).map_err(|error| format!("line {line}: {text}\n{error}"))?,
            Ok(gradus::Value::List(sides)) => {
                values.extend(sides.iter().map(|side| side.to_string()));
                if let [left, right] = &*sides {
                    let agrees = agree::agree(left, right, *tolerance);
                    agrees.map_err(|problem| format!("line {line}: {text}\n  found {left}\n  {problem}"))?;
                }
            }
            Ok(_) => return Err("an expectation is a list of two".into()),
        }
    }
    Ok(Ran { refusals, values, steps: engine.steps() })
}

/// Runs the items: every check must hold, and what is shown must read as expected.
fn items(
    program: &Program,
    engine: Engine,
    golden: &Golden,
    refusals: &mut Refusals,
) -> Result<(Vec<String>, Engine), String> {
    let mode = program.options().mode;
    let mut run = program.run_on(engine, 0);
    let (mut number, mut values) = (0, Vec::new());
    while let Some(outcome) = run.next() {
        match outcome {
            Err(error) => {
                refusals.note(&error, mode)?;
                run.go_on();
            }
            Ok(Outcome::Check(check)) if !check.holds => return Err(run.failed_check(&check).to_string()),
            Ok(Outcome::Show(value)) => {
                values.push(value.to_string());
                let expected = golden.expectations.iter().find_map(|expectation| match &expectation.kind {
                    Kind::Prints { item, text } if *item == number => Some((expectation.line, text)),
                    _ => None,
                });
                if let Some((line, text)) = expected {
                    if value.to_string().trim() != text {
                        return Err(format!("line {line}: printed\n{value}\ninstead of\n{text}"));
                    }
                }
            }
            Ok(Outcome::Check(_) | Outcome::Plot { .. }) => {}
        }
        number += 1;
    }
    Ok((values, run.into_engine()))
}
