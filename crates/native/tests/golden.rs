//! The golden suite through both backends: whatever a program shows or states is the same as on the reference evaluator, and with Cranelift also
//! without simplification.

mod support;

use gradus_core::{Program, Type};
use gradus_derive::{Linker, Settings};
use gradus_native::flow::{check, FunctionId, Module};
use gradus_native::{Backend, Care, Data, Entry, Executable, Layout, Refusal};
use gradus_reference::{Data as Known, Machine};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use support::root;

/// What is not compiled, by a part of the path and of the message, and why.
const REFUSED: &[(&str, &str, &str)] = &[
    ("", "`taylor`", "there is no series arithmetic on flow yet"),
    ("", "`jacobian over arrays of structures or variants`", "rows in the order of the values are not written yet"),
    ("polymorphic_recursion.gr", "ever new functions", "there are finitely many functions in compiled code"),
    ("growing_types.gr", "ever new functions", "there are finitely many functions in compiled code"),
];

/// Results that depend on the order of summation more than others do, and why.
const LOOSE: &[(&str, f64, &str)] =
    &[("library/matrices.gr", 1e-9, "solves a system with the Hilbert matrix, whose condition is 5e5")];

fn programs(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            programs(&path, found);
        } else if path.extension().is_some_and(|e| e == "gr") {
            found.push(path);
        }
    }
}

const FORMS: [&str; 10] =
    ["value", "grad", "value_and_grad", "vjp", "jvp", "jacobian", "hessian", "hvp", "diff", "taylor"];

/// The text with a `show` for each expectation.
fn with_expectations(text: &str) -> String {
    let mut all = text.to_string();
    for comment in text.split("(*").skip(1) {
        let Some(comment) = comment.split("*)").next() else { continue };
        let Some((word, rest)) = comment.trim().split_once(':') else { continue };
        if !FORMS.contains(&word) {
            continue;
        }
        let (mut depth, mut end) = (0i32, None);
        let bytes = rest.as_bytes();
        let blank = |at: usize| bytes.get(at).is_some_and(|b| b.is_ascii_whitespace());
        for (i, c) in rest.char_indices() {
            match c {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => depth -= 1,
                '=' if depth == 0 && i > 0 && [i - 1, i + 1].iter().all(|at| blank(*at)) => {
                    end = Some(i);
                    break;
                }
                _ => {}
            }
        }
        let Some(end) = end else { continue };
        let form = if word == "value" { "" } else { word };
        all.push_str(&format!("\nshow {form} {}\n", &rest[..end]));
    }
    all
}

fn agree(found: &Data, expected: &Known, tolerance: f64) -> bool {
    let all = |a: &[Data], b: &[Known]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| agree(a, b, tolerance));
    let reals = |a: f64, b: f64| {
        a.to_bits() == b.to_bits()
            || a == b
            || (a.is_nan() && b.is_nan())
            || (a - b).abs() <= tolerance * a.abs().max(b.abs()).max(1.0)
    };
    match (found, expected) {
        (Data::Real(a), Known::Real(b)) => reals(*a, *b),
        (Data::Int(a), Known::Int(b)) => a == b,
        (Data::Bool(a), Known::Bool(b)) => a == b,
        (Data::String(a), Known::String(b)) => a[..] == b[..],
        (Data::Unit, Known::Unit) => true,
        (Data::Tuple(a), Known::Tuple(b) | Known::Record(b)) => all(a, b),
        (Data::Array(a), Known::Array(b)) => all(a, b),
        (Data::List(a), Known::List(b)) => all(a, b),
        (Data::Variant { tag, args }, Known::Construct { tag: t, args: b }) => tag == t && all(args, b),
        (Data::Array(a), Known::Ints(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| matches!(a, Data::Int(a) if a == b))
        }
        (Data::Array(a), Known::Reals(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| matches!(a, Data::Real(a) if reals(*a, *b)))
        }
        (Data::Reals { dims, data }, _) => {
            fn flat(known: &Known, found: &mut Vec<f64>) {
                match known {
                    Known::Reals(b) => found.extend(b.iter()),
                    Known::Array(items) => items.iter().for_each(|k| flat(k, found)),
                    Known::Real(x) => found.push(*x),
                    _ => {}
                }
            }
            let mut all = Vec::new();
            flat(expected, &mut all);
            let length = match expected {
                Known::Reals(b) => b.len(),
                Known::Array(b) => b.len(),
                _ => usize::MAX,
            };
            dims[0] == length && all.len() == data.len() && data.iter().zip(&all).all(|(a, b)| reals(*a, *b))
        }
        _ => false,
    }
}

struct Case {
    place: String,
    program: Program,
    ty: Type,
    expected: Known,
}

/// The flow program of an entry, as it is written and simplified.
fn lower(program: &Program, entry: Entry) -> Result<([Module; 2], FunctionId), Box<Refusal>> {
    let (plain, ids, signatures) = gradus_native::lower_seen_from(program, &[entry], &[])?;
    assert!(signatures[0].data.is_empty(), "programs with data are left out");
    let mut simple = plain.clone();
    gradus_native::simplify::module(&mut simple);
    for module in [&plain, &simple] {
        if let Err(error) = check::module(module) {
            panic!("{error}\n{}", gradus_native::flow::print::module(module));
        }
    }
    Ok(([plain, simple], ids[0]))
}

fn compare(paths: &[PathBuf]) -> (usize, Vec<String>) {
    let (mut modules, mut entries, mut cases) =
        ([Module::default(), Module::default()], [Vec::new(), Vec::new()], Vec::new());
    let mut complaints = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(path).expect("a program");
        let shown = path.strip_prefix(root()).unwrap_or(path).display().to_string();
        if ["\ndata ", "(* options:", "(* only:"].iter().any(|w| text.contains(w)) || text.starts_with("data ") {
            continue;
        }
        let text = with_expectations(&text);
        let mut program = support::program(&shown, &text, path.parent().expect("a folder"));
        // Others find out when they run it.
        program.irregular = shown.ends_with("irregular.gr");
        let linker = Linker::new(Arc::new(program.clone()), Settings::default());
        for item in &program.items {
            let line = text[..item.span.start as usize].lines().count();
            let place = format!("{shown}, item at line {line}");
            let mut machine = Machine::new(&linker, Default::default());
            let value = linker
                .expand(&item.term, &item.ty)
                .and_then(|t| machine.eval(&t).map_err(|e| Box::new(e.diagnostic())));
            let Ok(value) = value else { continue };
            let Ok(expected) = machine.to_data(&value, &item.ty) else { continue };
            if matches!(expected, Known::Function) {
                continue;
            }
            if std::env::var_os("SHOW_PLACES").is_some() {
                eprintln!("{place}");
            }
            let entry = Entry { name: "item".into(), term: item.term.clone(), ty: item.ty.clone() };
            match lower(&program, entry) {
                Ok((lowered, id)) => {
                    for (at, lowered) in lowered.into_iter().enumerate() {
                        let by = modules[at].append(lowered);
                        entries[at].push(FunctionId(id.0 + by));
                    }
                    cases.push(Case { place, program: program.clone(), ty: item.ty.clone(), expected });
                }
                Err(refusal) => {
                    let message = refusal.diagnostic().message;
                    let known = REFUSED.iter().any(|(p, m, _)| place.contains(p) && message.contains(m));
                    if !known {
                        complaints.push(format!("{place}: {message}"));
                    }
                }
            }
        }
    }
    // Many programs to one compilation, which need not be fast.
    let mut options = gradus_native::Options::from(Backend::C);
    options.c.flags.retain(|f| f != "-O3" && f != "-march=native");
    options.c.flags.push("-O1".into());
    let quick = gradus_native::Options { care: Care::Quick, ..Backend::Cranelift.into() };
    let ways = [
        ("C", 1, options),
        ("Cranelift", 1, Backend::Cranelift.into()),
        ("quick code", 1, quick.clone()),
        ("plain", 0, quick),
    ];
    for (way, at, options) in ways {
        let code = Executable::new(&modules[at], &entries[at], &options).expect("compiles");
        code.improve(None);
        for (number, case) in cases.iter().enumerate() {
            if std::env::var_os("SHOW_PLACES").is_some() {
                eprintln!("running {} on {way}", case.place);
            }
            let layout = Layout::of(&case.program, &case.ty).expect("data");
            let leaves = match code.call(number, &[]) {
                Ok(leaves) => leaves,
                Err(error) => {
                    complaints.push(format!("{} on {way}: {:?}", case.place, error));
                    continue;
                }
            };
            if gradus_runtime::memory::left_behind() > 0 {
                complaints.push(format!("{} on {way}: memory is left behind", case.place));
            }
            let Ok(found) = layout.unflatten(&mut leaves.into_iter()) else {
                complaints.push(format!("{} on {way}: not of its type", case.place));
                continue;
            };
            let loose = LOOSE.iter().find(|(path, _, _)| case.place.contains(path)).map(|(_, t, _)| *t);
            if !agree(&found, &case.expected, loose.unwrap_or(1e-12)) {
                complaints.push(format!("{} on {way}: {found:?} instead of {:?}", case.place, case.expected));
            }
        }
    }
    (cases.len(), complaints)
}

#[test]
fn golden_programs_agree_with_the_reference() {
    let mut paths = Vec::new();
    for folder in ["tests/programs", "tests/papers"] {
        programs(&root().join(folder), &mut paths);
    }
    if let Some(only) = std::env::var_os("ONLY") {
        paths.retain(|p| p.display().to_string().contains(only.to_str().expect("text")));
    }
    let (mut compared, mut complaints) = (0, Vec::new());
    for some in paths.chunks(40) {
        let (count, more) = compare(some);
        compared += count;
        complaints.extend(more);
    }
    println!("{compared} results compared");
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}
