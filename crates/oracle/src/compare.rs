//! The comparison of one program on both sides.

use crate::process::Oracle;
use crate::tangent::Tangent;
use crate::taped;
use crate::translate::Translator;
use crate::types::{ty, Outside};
use crate::values::{same, write};
use crate::wire::Sexp;
use gradus_core::proved::contents;
use gradus_core::{Definition, Definitions, Global, Lambda, Mode, Program, Term, TermKind, Type, TypeDecl, TypeName};
use gradus_derive::{Linker, Settings};
use gradus_generate::{Data, Generated};
use gradus_reference::{Kinks, Machine, Options, RuntimeError};
use gradus_source::Diagnostic;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::sync::Arc;

/// Enough for random programs.
const FUEL: usize = 400;
/// Programs that take longer are passed over.
const MAX_STEPS: u64 = 200_000;

/// A difference between the proofs and the code.
#[derive(Clone, Debug)]
pub struct Fault {
    pub what: String,
}

/// What was compared, or why nothing was.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// How many points, and what was met there.
    Same {
        points: usize,
        steps: u64,
        /// Steps of the forward derivatives.
        forward: u64,
        /// Steps of the monadic derivatives.
        monadic: u64,
        kinks: u64,
        entries: usize,
    },
    Outside(String),
    TooLarge,
    Differs(Fault),
}

/// A function of a program, and where to try it.
pub struct Subject {
    pub program: Arc<Program>,
    pub function: Global,
    pub input: Type,
    pub output: Type,
    pub points: Vec<Place>,
    /// Bounds the depth of recursion in the extracted evaluator.
    pub fuel: usize,
}

pub struct Place {
    pub data: Data,
    /// The same as a term.
    pub term: Term,
}

impl From<&Generated> for Subject {
    fn from(generated: &Generated) -> Self {
        Subject {
            program: Arc::new(generated.program.clone()),
            function: Global::Source { name: Generated::FUNCTION.into(), types: [].into() },
            input: generated.input.clone(),
            output: generated.output.clone(),
            points: generated.points.iter().map(|p| Place { data: p.data.clone(), term: p.term() }).collect(),
            fuel: FUEL,
        }
    }
}

/// A program, translated, with the lines that ask the oracle about it.
pub(crate) struct Prepared {
    pub(crate) linker: Linker,
    lines: Vec<String>,
    tangent: Tangent,
    /// Top-level values: bound by `let` around the program there, computed before it here.
    pub(crate) values: Vec<Global>,
}

/// Sends a number of programs through both sides.
pub fn compare(oracle: &mut Oracle, subjects: &[Subject]) -> std::io::Result<Vec<Outcome>> {
    let prepared: Vec<Result<Option<Prepared>, Outside>> = subjects.iter().map(prepare).collect();
    let lines: Vec<String> =
        prepared.iter().flatten().flatten().flat_map(|prepared| prepared.lines.iter().cloned()).collect();
    let answers = oracle.ask(&lines)?;
    let mut rest = &answers[..];
    let mut outcomes = Vec::new();
    for (subject, prepared) in subjects.iter().zip(prepared) {
        outcomes.push(match prepared {
            Err(Outside(what)) => Outcome::Outside(what),
            Ok(None) => Outcome::TooLarge,
            Ok(Some(prepared)) => {
                let (own, others) = rest.split_at(prepared.lines.len());
                rest = others;
                match judge(subject, &prepared, own) {
                    Ok(outcome) => outcome,
                    Err(what) => Outcome::Differs(Fault { what }),
                }
            }
        });
    }
    Ok(outcomes)
}

fn lambda_of(definitions: &dyn Definitions, global: &Global) -> Result<Arc<Lambda>, Outside> {
    let definition = definitions.definition(global)?;
    match definition.term.as_ref().map(|term| &*term.kind) {
        Some(TermKind::Lambda(l)) => Ok(l.clone()),
        _ => Err(Outside("a function that is not written as one".into())),
    }
}

/// `None` if a run takes too long: the oracle would not end it.
fn prepare(subject: &Subject) -> Result<Option<Prepared>, Outside> {
    let linker = Linker::new(subject.program.clone(), Settings { reverse: Mode::Monadic, check: false });
    let ends = |point: &Place| {
        let Ok(Some(x)) = run(&linker, Kinks::Ignore, |machine| machine.eval(&point.term)) else { return false };
        let called = run(&linker, Kinks::Ignore, |machine| {
            let f = machine.global(&subject.function)?;
            machine.apply(f, [x])
        });
        !matches!(called, Ok(None))
    };
    if !subject.points.iter().all(ends) {
        return Ok(None);
    }
    let source = lambda_of(&linker, &subject.function)?;
    let values = values(&linker, &subject.function)?;
    let written = |values: &[Global]| -> Result<String, Outside> {
        let mut text = String::new();
        Translator::body(&linker, &source, values)?.write(&mut text);
        Ok(text)
    };
    // A run computes a top-level value once; a derivative sees that it is constant.
    let (text, run) = (written(&[])?, written(&values)?);
    let mut context = String::from("(");
    ty(&linker, &source.ty)?.write(&mut context);
    context.push(')');
    // Their derivatives are lifted here, computed there: both texts are compared with them as variables.
    let lifted = lifted(&linker, &values)?;
    let open = |definitions: &dyn Definitions| -> Result<String, Outside> {
        let kept = match lifted.is_empty() {
            true => Default::default(),
            false => kept(&linker, definitions, &subject.function)?,
        };
        let source = lambda_of(definitions, &subject.function)?;
        let parameter = Some((source.param.clone(), source.ty.clone()));
        let mut text = String::new();
        Translator::open(definitions, parameter, &lifted, kept, &source.body)?.write(&mut text);
        Ok(text)
    };
    let mut around = String::new();
    for of in std::iter::once(&source.ty).chain(lifted.iter().map(|(_, of)| of)) {
        ty(&linker, of)?.write(&mut around);
        around.push(' ');
    }
    let derived = |mode| Global::Derived { mode, of: Arc::new(subject.function.clone()) };
    let tangent = Tangent::new(&linker, derived(Mode::Forward), &*lambda_of(&linker, &derived(Mode::Forward))?)?;
    let agree = |name: &str, mode, definitions: &dyn Definitions| -> Result<String, Outside> {
        let open = open(definitions)?;
        let mut images = Vec::new();
        for (value, _) in &lifted {
            let image = Global::Derived { mode, of: Arc::new(value.clone()) };
            let ty = linker.definition(&image)?.ty.clone();
            images.push((image, ty));
        }
        let lambda = lambda_of(&linker, &derived(mode))?;
        let parameter = Some((lambda.param.clone(), lambda.ty.clone()));
        let mut ours = String::new();
        Translator::open(definitions, parameter, &images, Default::default(), &lambda.body)?.write(&mut ours);
        Ok(format!("(agree {name} ({around}) {open} {ours})"))
    };
    let named = Named { linker: &linker, known: RefCell::default() };
    let mut lines = vec![agree("forward", Mode::Forward, &linker)?, agree("monadic", Mode::Monadic, &named)?];
    for point in &subject.points {
        let mut value = String::new();
        write(&linker, &subject.input, &point.data, &mut value);
        let fuel = subject.fuel;
        lines.push(format!("(eval {fuel} {context} ({value}) {run})"));
        lines.push(format!("(tape {fuel} {context} ({value}) {text})"));
        lines.push(tangent.line(&linker, &point.data, fuel));
    }
    Ok(Some(Prepared { linker, lines, tangent, values }))
}

/// Of some top-level values, those with a derivative of another type that is not made on the spot, as that of a real is; with their types.
fn lifted(linker: &Linker, values: &[Global]) -> Result<Vec<(Global, Type)>, Outside> {
    let mut lifted = Vec::new();
    for value in values {
        let ty = linker.definition(value)?.ty.clone();
        let contents = linker.contents(&ty);
        if ty != Type::Real && contents.is_data() && !contents.is_leaf() {
            lifted.push((value.clone(), ty));
        }
    }
    Ok(lifted)
}

/// The program with the texts that monadic derivatives are made from.
struct Named<'a> {
    linker: &'a Linker,
    known: RefCell<FxHashMap<Global, Arc<Definition>>>,
}

impl Definitions for Named<'_> {
    fn definition(&self, global: &Global) -> Result<Arc<Definition>, Box<Diagnostic>> {
        if let Some(known) = self.known.borrow().get(global) {
            return Ok(known.clone());
        }
        let definition = self.linker.definition(global)?;
        let is_source = matches!(global, Global::Source { .. });
        let named = match definition.term.as_ref().map(|term| (&*term.kind, term.span)) {
            Some((TermKind::Lambda(lambda), span)) if is_source => {
                let term = Term::new(TermKind::Lambda(self.linker.named_parts(lambda)?), span);
                Arc::new(Definition { global: global.clone(), ty: definition.ty.clone(), term: Some(term) })
            }
            _ => definition,
        };
        self.known.borrow_mut().insert(global.clone(), named.clone());
        Ok(named)
    }

    fn type_decl(&self, name: &TypeName) -> Result<Arc<TypeDecl>, Box<Diagnostic>> {
        Definitions::type_decl(self.linker, name)
    }

    fn differentiate(&self, lambda: &Arc<Lambda>, mode: Mode) -> Result<Arc<Lambda>, Box<Diagnostic>> {
        self.linker.differentiate(lambda, mode)
    }
}

/// The parts of a function, and of those that it calls, that keep their text.
fn kept(linker: &Linker, definitions: &dyn Definitions, function: &Global) -> Result<FxHashSet<usize>, Outside> {
    let mut kept = FxHashSet::default();
    for global in contents(linker, function)?.reached {
        if let Ok(lambda) = lambda_of(definitions, &global) {
            kept.extend(linker.kept_parts(&lambda)?);
        }
    }
    Ok(kept)
}

/// The top-level values that a function needs and that are no functions, each after those that it needs.
fn values(linker: &Linker, function: &Global) -> Result<Vec<Global>, Outside> {
    let mut values = Vec::new();
    for global in contents(linker, function)?.reached {
        let definition = linker.definition(&global)?;
        if definition.term.as_ref().is_some_and(|term| !matches!(&*term.kind, TermKind::Lambda(_))) {
            // One that needs another reaches all that the other does.
            values.push((contents(linker, &global)?.reached.len(), global));
        }
    }
    values.sort_by_key(|(reached, _)| *reached);
    Ok(values.into_iter().map(|(_, global)| global).collect())
}

fn judge(subject: &Subject, prepared: &Prepared, answers: &[Sexp]) -> Result<Outcome, String> {
    if let Some(error) = answers.iter().find(|a| matches!(a.list(), Some([e, _]) if e.atom() == Some("error"))) {
        return Err(format!("the oracle answers {error:?}"));
    }
    same_text("forward", &answers[0])?;
    same_text("monadic", &answers[1])?;
    let mut total = (0, 0, 0, 0, 0);
    for (point, answers) in subject.points.iter().zip(answers[2..].chunks(3)) {
        let Some((steps, kinks)) = run_primal(subject, prepared, point, &answers[0])? else {
            return Ok(Outcome::TooLarge);
        };
        let Some((entries, monadic)) = taped::judge(subject, prepared, point, &answers[1], steps)? else {
            return Ok(Outcome::TooLarge);
        };
        let ours = run(&prepared.linker, Kinks::Premise, |machine| prepared.tangent.run(machine, &point.data));
        let forward = match (ok(&answers[2])?, ours) {
            (None, Err(_)) => 0,
            (_, Ok(None)) => return Ok(Outcome::TooLarge),
            (Some((value, theirs, ..)), Ok(Some(ours))) => {
                // A top-level value is computed once.
                let exact = prepared.values.is_empty();
                prepared.tangent.judge(&prepared.linker, ours, (value, theirs), steps, exact)?;
                theirs
            }
            (None, Ok(_)) => return Err("the forward derivative is undefined in the proofs, not in the code".into()),
            (Some(_), Err(problem)) => {
                return Err(format!("a forward derivative in the proofs, in the code: {problem}"))
            }
        };
        total = (total.0 + steps, total.1 + forward, total.2 + monadic, total.3 + kinks, total.4 + entries);
    }
    let (steps, forward, monadic, kinks, entries) = total;
    Ok(Outcome::Same { points: subject.points.len(), steps, forward, monadic, kinks, entries })
}

/// The answer of the comparison of two texts.
fn same_text(name: &str, answer: &Sexp) -> Result<(), String> {
    match answer.list() {
        None if answer.atom() == Some("same") => Ok(()),
        Some([_, proofs, code]) => Err(format!(
            "the {name} derivatives begin to differ\n  proofs: {}\n  code:   {}",
            proofs.text(),
            code.text()
        )),
        _ => Err(format!("no comparison: {answer:?}")),
    }
}

/// Value, steps, kinks and what else a run answers.
pub(crate) type Run<'a> = (&'a Sexp, u64, u64, Option<&'a Sexp>);

/// The parts of `(ok value steps kinks ..)`; `None` for `undefined`.
pub(crate) fn ok(answer: &Sexp) -> Result<Option<Run<'_>>, String> {
    let number = |s: &Sexp| s.atom().and_then(|a| a.parse().ok());
    match answer {
        Sexp::Atom(a) if a == "undefined" => Ok(None),
        Sexp::List(parts) => match &parts[..] {
            [_, value, steps, kinks, rest @ ..] => match (number(steps), number(kinks)) {
                (Some(steps), Some(kinks)) => Ok(Some((value, steps, kinks, rest.first()))),
                _ => Err(format!("no numbers in {answer:?}")),
            },
            _ => Err(format!("no run: {answer:?}")),
        },
        Sexp::Atom(_) => Err(format!("no run: {answer:?}")),
    }
}

/// Does something with our evaluator; `None` if it takes too long.
pub(crate) fn run<T>(
    linker: &Linker,
    kinks: Kinks,
    work: impl FnOnce(&mut Machine) -> Result<T, Box<RuntimeError>>,
) -> Result<Option<T>, String> {
    let options = Options { kinks, max_steps: Some(MAX_STEPS), ..Options::default() };
    work(&mut Machine::new(linker, options)).map(Some).or_else(|error| {
        let diagnostic = error.diagnostic();
        match diagnostic.message.contains("steps") {
            true => Ok(None),
            false => Err(format!("{} {}", diagnostic.code, diagnostic.message)),
        }
    })
}

fn run_primal(
    subject: &Subject,
    prepared: &Prepared,
    point: &Place,
    answer: &Sexp,
) -> Result<Option<(u64, u64)>, String> {
    // On a machine of its own, since the point may need the same top-level values.
    let Some(x) = run(&prepared.linker, Kinks::Ignore, |machine| machine.eval(&point.term))? else { return Ok(None) };
    let ours = run(&prepared.linker, Kinks::Premise, |machine| {
        let f = machine.global(&subject.function)?;
        let before = machine.report();
        prepared.values.iter().try_for_each(|value| machine.global(value).map(drop))?;
        let value = machine.apply(f, [x])?;
        Ok((value, before, machine.report()))
    });
    let (theirs, steps, kinks, _) = match (ok(answer)?, &ours) {
        (None, Err(_)) => return Ok(Some((0, 0))),
        (None, Ok(_)) => return Err("undefined in the proofs, a value in the code".into()),
        (Some(_), Err(problem)) => return Err(format!("a value in the proofs, in the code: {problem}")),
        (Some(run), Ok(_)) => run,
    };
    let Ok(Some((value, before, after))) = ours else { return Ok(None) };
    let our_kinks: u64 = after.kinks.iter().map(|kink| kink.count).sum();
    let lets = prepared.values.len() as u64;
    let our_steps = after.semantic_steps.zip(before.semantic_steps).map(|(after, before)| lets + after - before);
    if !same(&prepared.linker, &subject.output, &value, theirs, false) {
        return Err(format!("the value at {:?} is {theirs:?} in the proofs, in the code {value:?}", point.data));
    }
    if kinks != our_kinks {
        return Err(format!("{kinks} kinks at {:?} in the proofs, in the code {our_kinks}", point.data));
    }
    if our_steps != Some(steps) {
        let ours = our_steps.map_or("not counted".to_string(), |steps| steps.to_string());
        return Err(format!("{steps} steps at {:?} in the proofs, in the code {ours}", point.data));
    }
    Ok(Some((steps, kinks)))
}
