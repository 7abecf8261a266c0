//! Programs from source text, and JSON values by type.

#![allow(dead_code)] // Each test file uses its own part.

use gradus_core::build::At;
use gradus_core::{Global, Program, Term, Type, TypeBody};
use gradus_infer::ModuleSource;
use gradus_native::{compile, Backend, Data, Entry, Native};
use gradus_source::{FileId, SourceFile, SourceMap};
use serde_json::Value as Json;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Reads, parses and types a program; imports are looked for beside it and in the library.
pub fn program(name: &str, text: &str, folder: &Path) -> Program {
    let mut sources = SourceMap::default();
    let mut modules = Vec::new();
    let prelude = std::fs::read_to_string(root().join("library/prelude.gr")).expect("the prelude");
    load("Prelude", "prelude.gr", &prelude, folder, &mut sources, &mut modules);
    load(name, name, text, folder, &mut sources, &mut modules);
    match gradus_infer::infer_program(&modules) {
        Ok(inferred) => inferred.program,
        Err(errors) => panic!("{name}: {errors:?}"),
    }
}

fn load(name: &str, shown: &str, text: &str, folder: &Path, sources: &mut SourceMap, modules: &mut Vec<ModuleSource>) {
    let file: FileId = sources.add(SourceFile::new(shown, text));
    let parsed = gradus_syntax::parse_module(file, text);
    assert!(parsed.errors.is_empty(), "{shown}: {:?}", parsed.errors);
    for import in gradus_infer::imports(&parsed.tree) {
        if modules.iter().any(|m| m.name == import.name) {
            continue;
        }
        let file = format!("{}.gr", import.name.to_lowercase());
        let text = [folder.join(&file), root().join("library").join(&file)]
            .iter()
            .find_map(|path| std::fs::read_to_string(path).ok())
            .unwrap_or_else(|| panic!("no module {}", import.name));
        load(&import.name, &file, &text, folder, sources, modules);
    }
    modules.push(ModuleSource { name: name.into(), tree: parsed.tree });
}

pub fn file(path: &Path) -> Program {
    let text = std::fs::read_to_string(path).expect("a program");
    program(&path.display().to_string(), &text, path.parent().expect("a folder"))
}

pub fn global(name: &str) -> Term {
    At::default().global(Global::Source { name: name.into(), types: Arc::from([]) })
}

/// The functions of a program on each backend.
pub fn natives(text: &str, names: &[&str]) -> Vec<Native> {
    let program = program("test.gr", text, Path::new("."));
    let entries: Vec<Entry> = names.iter().map(|name| entry(&program, name)).collect();
    let native = |backend: Backend| match compile(&program, &entries, &backend.into()) {
        Ok(native) => native,
        Err(error) => panic!("{backend:?}: {:?}", error.diagnostic()),
    };
    Backend::ALL.map(native).into()
}

/// A monomorphic definition as an entry.
pub fn entry(program: &Program, name: &str) -> Entry {
    let def = program.defs.get(name).unwrap_or_else(|| panic!("no definition {name}"));
    Entry { name: name.into(), term: global(name), ty: def.scheme.ty.clone() }
}

pub fn parts(ty: &Type) -> (Type, Type) {
    match ty {
        Type::Fun(ft) => (ft.0.clone(), ft.1.clone()),
        other => panic!("{other:?} is no function type"),
    }
}

/// A JSON value as data of a type; fields are found whatever their case.
pub fn data(program: &Program, ty: &Type, json: &Json) -> Data {
    match (ty, json) {
        (Type::Real, Json::Number(n)) => Data::Real(n.as_f64().expect("a number")),
        (Type::Int, Json::Number(n)) => Data::Int(n.as_i64().expect("an integer")),
        (Type::Bool, Json::Bool(b)) => Data::Bool(*b),
        (Type::String, Json::String(text)) => Data::String(text.clone()),
        (Type::Tuple(types), Json::Array(items)) => {
            Data::Tuple(types.iter().zip(items).map(|(t, j)| data(program, t, j)).collect())
        }
        (Type::Array(element), Json::Array(items)) => {
            Data::Array(items.iter().map(|j| data(program, element, j)).collect())
        }
        (Type::Named(name, args), Json::Object(fields)) => {
            let decl = program.types.values().find(|d| d.name == *name).expect("a declared type");
            let TypeBody::Record(names) = &decl.body else { panic!("{name:?} is no record") };
            let types = &decl.constructors(args)[0].1;
            let field = |name: &str| {
                let found = fields.iter().find(|(k, _)| k.eq_ignore_ascii_case(name));
                found.unwrap_or_else(|| panic!("no field {name}")).1
            };
            Data::Tuple(names.iter().zip(types).map(|((n, _), t)| data(program, t, field(n))).collect())
        }
        _ => panic!("{json} is no {ty:?}"),
    }
}

pub fn numbers(data: &Data) -> Vec<f64> {
    match data {
        Data::Real(x) => vec![*x],
        Data::Int(x) => vec![*x as f64],
        Data::Bool(x) => vec![f64::from(u8::from(*x))],
        Data::Unit | Data::String(_) => Vec::new(),
        Data::Tuple(items) | Data::Array(items) | Data::List(items) => items.iter().flat_map(numbers).collect(),
        Data::Variant { tag, args } => std::iter::once(*tag as f64).chain(args.iter().flat_map(numbers)).collect(),
        Data::Reals { data, .. } => data.clone(),
    }
}
