//! Text in, text out: programs to the types of their definitions, or to what is wrong with them.
#![allow(dead_code)]

use gradus_core::{Body, Program};
use gradus_infer::{imports, infer_program, Inferred, ModuleSource, TypeError};
use gradus_source::{SourceFile, SourceMap};

const PRELUDE: &str = include_str!("../../../../library/prelude.gr");

pub struct Loaded {
    pub map: SourceMap,
    pub result: Result<Inferred, Vec<TypeError>>,
}

/// The modules in order; the last is the one that is run. `Prelude` goes before them.
pub fn load(modules: &[(&str, &str)]) -> Loaded {
    let mut map = SourceMap::default();
    let mut sources = Vec::new();
    for (name, text) in [("Prelude", PRELUDE)].iter().chain(modules) {
        let file = map.add(SourceFile::new(*name, *text));
        let parsed = gradus_syntax::parse_module(file, text);
        assert!(parsed.errors.is_empty(), "{name} does not parse: {:?}", parsed.errors);
        let _ = imports(&parsed.tree);
        sources.push(ModuleSource { name: (*name).into(), tree: parsed.tree });
    }
    Loaded { map, result: infer_program(&sources) }
}

pub fn describe(map: &SourceMap, error: &TypeError) -> String {
    let said = error.diagnostic();
    let mut text = format!("{} {}", said.code, said.message);
    for label in &said.labels {
        let place = map.text(label.span).unwrap_or("?").lines().next().unwrap_or("");
        text.push_str(&format!("\n  `{place}`: {}", label.text));
    }
    for note in &said.notes {
        text.push_str(&format!("\n  note: {note}"));
    }
    if let Some(help) = &said.help {
        text.push_str(&format!("\n  help: {help}"));
    }
    text
}

pub fn accept(modules: &[(&str, &str)]) -> Inferred {
    let loaded = load(modules);
    match loaded.result {
        Ok(inferred) => {
            well_typed(&inferred.program);
            inferred
        }
        Err(errors) => {
            let texts: Vec<String> = errors.iter().map(|e| describe(&loaded.map, e)).collect();
            panic!("refused:\n{}\n{}", modules[modules.len() - 1].1, texts.join("\n"))
        }
    }
}

/// What inference makes is right by core's own checker.
fn well_typed(program: &Program) {
    if let Err(error) = gradus_core::check::check_program(program) {
        panic!("core does not check: {:?}", error.diagnostic());
    }
}

/// `name : type` for each definition.
pub fn types(source: &str) -> String {
    let inferred = accept(&[("Main", source)]);
    let lines: Vec<String> = inferred
        .own_definitions()
        .filter_map(|name| inferred.signature(&name))
        .map(|signature| format!("{} : {}", signature.name, signature.shown))
        .collect();
    lines.join("\n")
}

#[track_caller]
pub fn check(source: &str, expected: &[&str]) {
    assert_eq!(types(source), expected.join("\n"), "\n{source}");
}

/// What is wrong, in full.
pub fn errors_of(modules: &[(&str, &str)]) -> Vec<String> {
    let loaded = load(modules);
    match loaded.result {
        Ok(_) => panic!("accepted:\n{}", modules[modules.len() - 1].1),
        Err(errors) => errors.iter().map(|e| describe(&loaded.map, e)).collect(),
    }
}

/// Exactly these errors, each given by the lines that it must have.
#[track_caller]
pub fn check_error(source: &str, expected: &[&str]) {
    let errors = errors_of(&[("Main", source)]);
    assert_eq!(errors.join("\n"), expected.join("\n"), "\n{source}");
}

/// The core term of a definition, for tests of elaboration.
pub fn body<'p>(program: &'p Program, name: &str) -> &'p gradus_core::Term {
    match &program.defs[name].body {
        Body::Term(term) => term,
        Body::Data { .. } => panic!("{name} is data"),
    }
}
