//! Gradus text to values, in a mode: what the tests of this crate share.

use gradus_core::{Mode, Type};
use gradus_derive::{Linker, Settings};
use gradus_infer::{imports, infer_expr, infer_program, Inferred, ModuleSource};
use gradus_reference::{Data, Machine, Options, Report};
use gradus_source::FileId;
use gradus_syntax::{parse_expr, parse_module};
use std::sync::Arc;

/// The modes that take the whole language.
pub const MODES: [Mode; 7] =
    [Mode::Forward, Mode::Vector, Mode::Continuation, Mode::Delta, Mode::Monadic, Mode::Trace, Mode::Tower];

const LIBRARY: &[(&str, &str)] = &[
    ("Prelude", include_str!("../../../../library/prelude.gr")),
    ("List", include_str!("../../../../library/list.gr")),
    ("Array", include_str!("../../../../library/array.gr")),
    ("Option", include_str!("../../../../library/option.gr")),
    ("Math", include_str!("../../../../library/math.gr")),
    ("Linalg", include_str!("../../../../library/linalg.gr")),
    ("Optim", include_str!("../../../../library/optim.gr")),
    ("Random", include_str!("../../../../library/random.gr")),
];

/// Parses and types a program and the library modules that it imports.
pub fn load(text: &str) -> Result<Inferred, String> {
    let mut modules = Vec::new();
    add_module("Prelude", library("Prelude")?, &mut modules)?;
    add_module("Main", text, &mut modules)?;
    infer_program(&modules).map_err(|errors| {
        let messages: Vec<String> = errors.iter().map(|e| format!("{:?}", e)).collect();
        messages.join("\n")
    })
}

fn library(name: &str) -> Result<&'static str, String> {
    LIBRARY.iter().find(|(n, _)| *n == name).map(|(_, text)| *text).ok_or_else(|| format!("no module {name}"))
}

fn add_module(name: &str, text: &str, modules: &mut Vec<ModuleSource>) -> Result<(), String> {
    if modules.iter().any(|m| &*m.name == name) {
        return Ok(());
    }
    let parsed = parse_module(FileId(modules.len() as u32), text);
    if !parsed.errors.is_empty() {
        return Err(format!("{name}: {:?}", parsed.errors));
    }
    for import in imports(&parsed.tree) {
        add_module(&import.name, library(&import.name)?, modules)?;
    }
    modules.push(ModuleSource { name: name.into(), tree: parsed.tree });
    Ok(())
}

/// A program in a mode, whose expressions can be evaluated.
pub struct Session {
    inferred: Inferred,
    linker: Linker,
    options: Options,
}

impl Session {
    pub fn new(text: &str, mode: Mode) -> Result<Session, String> {
        let inferred = load(text)?;
        let linker = Linker::new(Arc::new(inferred.program.clone()), Settings { reverse: mode, check: true });
        Ok(Session { inferred, linker, options: Options::default() })
    }

    #[allow(dead_code)]
    pub fn with_options(mut self, options: Options) -> Session {
        self.options = options;
        self
    }

    /// The value of an expression, its type, and what the machine did for it.
    pub fn eval(&self, text: &str) -> Result<(Data, Type, Report), String> {
        let parsed = parse_expr(FileId(99), text);
        if !parsed.errors.is_empty() {
            return Err(format!("{text}: {:?}", parsed.errors));
        }
        let expr = infer_expr(&self.inferred, &parsed.tree, None).map_err(|e| format!("{text}: {e:?}"))?;
        self.run(&expr.term, &expr.ty).map_err(|e| format!("{text}: {e}"))
    }

    pub fn run(&self, term: &gradus_core::Term, ty: &Type) -> Result<(Data, Type, Report), String> {
        let term = self.linker.expand(term, ty).map_err(|d| d.message.clone())?;
        let mut machine = Machine::new(&self.linker, self.options.clone());
        let value = machine.eval(&term).map_err(|e| e.diagnostic().message.clone())?;
        let data = machine.to_data(&value, ty).map_err(|e| e.diagnostic().message.clone())?;
        Ok((data, ty.clone(), machine.report()))
    }

    /// The Delta program of a run of a definition at an expression, as the coefficients of each binding, the first binding first.
    #[allow(dead_code)]
    pub fn delta_program(&self, name: &str, at: &str) -> Result<Vec<Vec<f64>>, String> {
        let signature = self.inferred.signature(name).ok_or("no such definition")?;
        let Type::Fun(ends) = &signature.scheme.ty else { return Err("not a function".into()) };
        let parsed = parse_expr(FileId(99), at);
        let x = infer_expr(&self.inferred, &parsed.tree, None).map_err(|e| format!("{e:?}"))?;
        let f = gradus_core::Global::Source { name: signature.name.clone(), types: [].into() };
        let term = self.linker.delta_program(&f, x.term, &ends.0, &ends.1);
        let real = Type::tuple([Type::Real, Type::named("Delta", [])]);
        let binding = Type::tuple([Type::Int, Type::named("Delta", [])]);
        let ty = Type::tuple([real, Type::tuple([Type::Int, Type::list(binding)])]);
        let (data, _, _) = self.run(&term, &ty)?;
        let Data::Tuple(parts) = &data else { return Err("no pair".into()) };
        let Data::Tuple(state) = &parts[1] else { return Err("no state".into()) };
        let Data::List(bindings) = &state[1] else { return Err("no bindings".into()) };
        Ok(bindings.iter().rev().map(coefficients).collect())
    }

    #[allow(dead_code)]
    pub fn program(&self) -> &gradus_core::Program {
        &self.inferred.program
    }
}

/// The coefficients of `(id, Add (Scale p1 u1) (Scale p2 u2))`; a summand that is not scaled has 1.
fn coefficients(binding: &Data) -> Vec<f64> {
    fn walk(delta: &Data, factor: f64, found: &mut Vec<f64>) {
        match delta {
            Data::Construct { tag: 1, args } => match &args[0] {
                Data::Real(p) => walk(&args[1], factor * p, found),
                other => panic!("{other:?}"),
            },
            Data::Construct { tag: 2, args } => args.iter().for_each(|u| walk(u, factor, found)),
            _ => found.push(factor),
        }
    }
    let mut found = Vec::new();
    match binding {
        Data::Tuple(parts) => walk(&parts[1], 1.0, &mut found),
        other => panic!("{other:?}"),
    }
    found
}

/// The reals inside a value, from the left.
pub fn reals(data: &Data) -> Vec<f64> {
    let mut found = Vec::new();
    let mut pending = vec![data];
    while let Some(data) = pending.pop() {
        match data {
            Data::Real(x) => found.push(*x),
            Data::Reals(xs) => found.extend(xs),
            Data::Tuple(parts) | Data::Record(parts) | Data::List(parts) | Data::Array(parts) => {
                pending.extend(parts.iter().rev())
            }
            Data::Construct { args, .. } => pending.extend(args.iter().rev()),
            Data::Unit | Data::Bool(_) | Data::Int(_) | Data::String(_) | Data::Ints(_) | Data::Function => {}
        }
    }
    found
}

pub fn agree(a: f64, b: f64, tolerance: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * 1f64.max(a.abs()).max(b.abs())
}

/// Evaluates expressions of a program in every mode and compares their reals with what is expected. The mode `combinator` may refuse, by name.
#[allow(dead_code)]
pub fn check(program: &str, expectations: &[(&str, &[f64])]) {
    check_in(&MODES, program, expectations);
    compare(&[Mode::Combinator], program, expectations, "`combinator` cannot differentiate");
}

#[allow(dead_code)]
pub fn check_in(modes: &[Mode], program: &str, expectations: &[(&str, &[f64])]) {
    compare(modes, program, expectations, "nothing is refused");
}

fn compare(modes: &[Mode], program: &str, expectations: &[(&str, &[f64])], refusal: &str) {
    for mode in modes {
        let session = Session::new(program, *mode).unwrap_or_else(|e| panic!("{e}"));
        for (text, expected) in expectations {
            let (data, _, _) = match session.eval(text) {
                Ok(result) => result,
                Err(message) if message.contains(refusal) => continue,
                Err(message) => panic!("{mode}: {message}"),
            };
            let found = reals(&data);
            let same = found.len() == expected.len() && found.iter().zip(*expected).all(|(a, b)| agree(*a, *b, 1e-11));
            assert!(same, "{mode}: {text} = {found:?}, expected {expected:?}");
        }
    }
}
