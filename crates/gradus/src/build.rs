//! Functions of a program as C: one file that needs nothing else, with a plain header, for C and whatever can call C.

use crate::error::DriverError;
use crate::schema::{Schema, Shape};
use crate::{pipeline, Error, Function, Program};
use gradus_core::build::At;
use gradus_core::{Global, Type};
use gradus_native::lower::{DataLengths, Signature};
use gradus_native::Entry;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// A C file and its header.
#[derive(Clone, Debug)]
pub struct CLibrary {
    pub code: String,
    pub header: String,
}

/// Symbols of the calling convention itself.
const TAKEN: [&str; 8] = [
    "gradus_slot",
    "gradus_limits",
    "gradus_runner",
    "gradus_release",
    "gradus_set_limits",
    "gradus_set_runner",
    "gradus_failure",
    "gradus_place",
];

/// C++ must be told that names are those of C.
const CPP_BEGIN: &str = "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n";
const CPP_END: &str = "\n#ifdef __cplusplus\n}\n#endif\n";

impl Program {
    /// The functions `prefix_NAME` for the program's definitions of these names; with `gradients` also `prefix_NAME_grad`, value and gradient by the
    /// first parameter. The `data` of the program becomes further parameters.
    ///
    /// ```
    /// # fn main() -> Result<(), gradus::Error> {
    /// let program = gradus::Program::from_source("square.gr", "let square_of x = x ^ 2 + 0.0")?;
    /// let library = program.c_library("model", &["square_of".into()], true)?;
    /// assert!(library.header.contains("int model_square_of(const gradus_slot *in, gradus_slot *out);"));
    /// assert!(library.header.contains("int model_square_of_grad(const gradus_slot *in, gradus_slot *out);"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn c_library(&self, prefix: &str, names: &[String], gradients: bool) -> Result<CLibrary, Error> {
        let mut program = self.clone();
        let mut functions: Vec<(String, Function)> = Vec::new();
        for name in names {
            let symbol = format!("{}_{}", identifier(prefix), identifier(name));
            if !name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '\'') || TAKEN.contains(&&*symbol) {
                let what = format!("`{name}` as a C function");
                let message = "a definition of the program with a plain name is needed".into();
                return Err(self.error(DriverError::WrongValue { what, message }));
            }
            let function = program.function(name)?;
            program = function.program().clone();
            if gradients {
                let gradient = function.value_and_grad(0)?;
                program = gradient.program().clone();
                functions.push((symbol.clone(), function));
                functions.push((format!("{symbol}_grad"), gradient));
            } else {
                functions.push((symbol, function));
            }
        }
        // Every program on the way is part of the last.
        let entry = |(symbol, function): &(String, Function)| {
            let at = At(program.definition_span(function.definition()));
            let global = Global::Source { name: function.definition().clone(), types: Arc::from([]) };
            Entry { name: symbol.clone(), term: at.global(global), ty: function.ty() }
        };
        let entries: Vec<Entry> = functions.iter().map(entry).collect();
        let lowered = pipeline::lower(program.core(), &entries, &DataLengths::default());
        let (mut named, mut comments) = (Vec::new(), Vec::new());
        for (lowered, (symbol, function)) in lowered.entries.into_iter().zip(&functions) {
            let (id, signature) = lowered.map_err(|refused| program.errors(vec![*refused]))?;
            comments.push((symbol, comment(&signature, &function.type_text(), &program.schema())));
            named.push((id, symbol.clone()));
        }
        let mut library = pipeline::c_library(&lowered.module, &named, program.sources());
        for (i, (symbol, comment)) in comments.iter().enumerate() {
            let (declaration, cpp) = (format!("int {symbol}("), if i == 0 { CPP_BEGIN } else { "" });
            library.header = library.header.replace(&declaration, &format!("{cpp}\n{comment}{declaration}"));
        }
        library.header.push_str(CPP_END);
        Ok(library)
    }

    /// Compiles C text with the C compiler of the machine to a shared library.
    pub fn compile_c(&self, library: &CLibrary, to: &Path) -> Result<(), Error> {
        pipeline::compile_c(&library.code, to).map_err(|error| self.errors(vec![*error]))
    }
}

/// A name that C accepts as part of another.
fn identifier(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

/// The slots of a function, for its reader.
fn comment(signature: &Signature, ty: &str, schema: &Schema) -> String {
    let mut out = format!("/* {ty}\n");
    let mut inputs = Vec::new();
    for (i, ty) in signature.params.iter().enumerate() {
        slots(ty, &format!("argument {}", i + 1), 0, schema, &mut inputs);
    }
    for (name, ty) in &signature.data {
        slots(ty, &format!("data {name}"), 0, schema, &mut inputs);
    }
    let mut outputs = Vec::new();
    slots(&signature.result, "result", 0, schema, &mut outputs);
    for (array, slots) in [("in", inputs), ("out", outputs)] {
        for (i, (kind, place)) in slots.iter().enumerate() {
            let _ = writeln!(out, "   {array}[{i}]: {kind}, {place}");
        }
    }
    out.push_str("*/\n");
    out
}

/// Whether values of a type are cells on the heap: recursive types and, in arrays, strings and variants with arrays inside.
fn in_cells(ty: &Type, rank: usize, schema: &Schema) -> bool {
    fn parts(ty: &Type, schema: &Schema) -> Vec<Type> {
        match &*schema.shape(ty) {
            Shape::Real | Shape::Int | Shape::Bool | Shape::Unit | Shape::String | Shape::Opaque => Vec::new(),
            Shape::Tuple(types) => types.to_vec(),
            Shape::Record { types, .. } => types.clone(),
            Shape::Array(element) | Shape::List(element) => vec![element.clone()],
            Shape::Variant { constructors, .. } => constructors.iter().flat_map(|(_, types)| types.to_vec()).collect(),
        }
    }
    let (is_variant, is_list) = match &*schema.shape(ty) {
        Shape::String => return rank > 0,
        Shape::Variant { .. } => (true, false),
        Shape::List(_) => (false, true),
        _ => (false, false),
    };
    let (mut next, mut seen) = (parts(ty, schema), Vec::new());
    let (mut recursive, mut arrays) = (is_list, false);
    while let Some(part) = next.pop() {
        recursive |= part == *ty;
        arrays |= matches!(&*schema.shape(&part), Shape::Array(_) | Shape::String);
        if !seen.contains(&part) {
            next.extend(parts(&part, schema));
            seen.push(part);
        }
    }
    recursive || (is_variant && rank > 0 && arrays)
}

/// What each slot of a value holds, and which part of the value that is.
fn slots(ty: &Type, place: &str, rank: usize, schema: &Schema, out: &mut Vec<(String, String)>) {
    let mut leaf = |name: &str| {
        let kind = if rank == 0 { name.to_string() } else { format!("{name}{}", "[]".repeat(rank)) };
        out.push((kind, place.to_string()));
    };
    match &*schema.shape(ty) {
        Shape::Real => leaf("real"),
        Shape::Int => leaf("int"),
        Shape::Bool => leaf("bool"),
        Shape::String if rank == 0 => leaf("int[]"),
        _ if in_cells(ty, rank, schema) => leaf("cells"),
        Shape::Unit | Shape::String | Shape::Opaque => {}
        Shape::Tuple(types) => {
            for (i, ty) in types.iter().enumerate() {
                slots(ty, &format!("{place}, component {}", i + 1), rank, schema, out);
            }
        }
        Shape::Record { fields, types } => {
            for (field, ty) in fields.iter().zip(types) {
                slots(ty, &format!("{place}.{field}"), rank, schema, out);
            }
        }
        Shape::Array(element) => slots(element, place, rank + 1, schema, out),
        Shape::List(_) => {}
        Shape::Variant { name: _, constructors } => {
            leaf("int");
            for (constructor, types) in constructors {
                for (i, ty) in types.iter().enumerate() {
                    slots(ty, &format!("{place}, {constructor}, component {}", i + 1), rank, schema, out);
                }
            }
        }
    }
}
