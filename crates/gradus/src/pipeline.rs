//! The passes, in order. This is the only place that lists them.
//!
//! ```text
//! text ──load──▶ trees ──infer──▶ core ──link, expand──▶ core ──simplify──▶ core ──machine──▶ values
//!                                   └──lower──▶ flow ──code──▶ machine code
//! ```

use crate::build::CLibrary;
use crate::loader::Loader;
use crate::modules::{self, Main, Modules};
use crate::options::{Backend, Options};
use crate::Error;
use gradus_core::build::At;
use gradus_core::{Definition, Definitions, Global, Lambda, Mode, Program, Term, Type, TypeDecl, TypeName, Var};
use gradus_derive::combinator::Steps;
use gradus_derive::{Linker, Settings};
use gradus_infer::{Elaborated, Inferred, ModuleSource};
use gradus_native::flow::{FunctionId, Module};
use gradus_native::lower::Signature;
use gradus_native::Executable;
use gradus_reference::Machine;
use gradus_source::{Diagnostic, SourceFile, SourceMap, Span};
use rustc_hash::FxHashMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

/// What the front end makes of a program.
pub struct Typed {
    pub modules: Modules,
    pub inferred: Inferred,
    pub warnings: Vec<Diagnostic>,
}

/// Text to core: read and parse all modules, then names and types. A program with syntax errors is not typed: what is missing
/// would only be reported again.
pub fn front(main: Main, loader: &dyn Loader) -> Result<Typed, Error> {
    let (modules, mut problems) = modules::load(main, loader);
    if problems.has_errors() {
        return Err(Error::new(problems.all, &modules.sources));
    }
    let trees: Vec<ModuleSource> =
        modules.list.iter().map(|m| ModuleSource { name: m.name.clone(), tree: m.tree.clone() }).collect();
    match gradus_infer::infer_program(&trees) {
        Ok(inferred) => {
            problems.extend(inferred.warnings.iter().map(|warning| warning.diagnostic()));
            Ok(Typed { modules, inferred, warnings: problems.all })
        }
        Err(errors) => Err(Error::new(errors.iter().map(|error| error.diagnostic()).collect(), &modules.sources)),
    }
}

/// One more expression in the scope of the whole program, perhaps at a type that is wanted.
pub fn expression(
    inferred: &Inferred,
    sources: &mut SourceMap,
    shown: &str,
    text: &str,
    expected: Option<Type>,
) -> Result<Elaborated, Error> {
    let file = sources.add(SourceFile::new(shown, text));
    let parsed = gradus_syntax::parse_expr(file, text);
    if !parsed.errors.is_empty() {
        return Err(Error::new(parsed.errors.iter().map(|error| error.diagnostic()).collect(), sources));
    }
    let elaborated = gradus_infer::infer_expr(inferred, &parsed.tree, expected);
    elaborated.map_err(|errors| Error::new(errors.iter().map(|error| error.diagnostic()).collect(), sources))
}

/// Definitions behind keys, made on demand: differentiated by the linker, then optimised if that is asked for.
pub struct Linked {
    linker: Linker,
    optimise: bool,
    optimised: Mutex<FxHashMap<Global, Arc<Definition>>>,
}

pub fn link(core: &Arc<Program>, options: &Options) -> Arc<Linked> {
    let reverse = options.mode.unwrap_or(Mode::Monadic);
    let linker = Linker::new(core.clone(), Settings { reverse, ..Settings::default() });
    Arc::new(Linked { linker, optimise: options.optimise, optimised: Mutex::default() })
}

/// A term of an item, ready to run.
pub fn expand(linked: &Linked, term: &Term, ty: &Type) -> Result<Term, Box<Diagnostic>> {
    let term = linked.linker.expand(term, ty)?;
    Ok(linked.simplify(term))
}

/// The term whose value is the Delta program of one run of a function (K Fig. 12).
pub fn delta_program(linked: &Linked, function: &Global, x: Term, from: &Type, to: &Type) -> Term {
    linked.linker.delta_program(function, x, from, to)
}

/// The term whose value is the trace term of one run of a function that returns a real, and its symbolic derivative at the cotangent 1 (A Fig. 4 to 6).
pub fn trace_program(linked: &Linked, function: &Global, x: Term, from: &Type, to: &Type) -> Term {
    let one = At(x.span).real(1.0);
    linked.linker.trace_program(function, x, one, from, to)
}

/// A definition on its way through the mode `combinator` (C section 6).
pub fn combinator_steps(linked: &Linked, definition: &Global) -> Result<Steps, Box<Diagnostic>> {
    Ok(gradus_derive::combinator::steps(&linked.linker, definition)?)
}

/// The definitions of a linked program, as evaluators and printers see them.
pub fn definitions(linked: Arc<Linked>) -> Rc<dyn Definitions> {
    Rc::new(Shared(linked))
}

/// The evaluator.
pub fn machine(linked: Arc<Linked>, options: &Options) -> Machine<'static> {
    let defaults = gradus_reference::Options::default();
    let settings = gradus_reference::Options {
        kinks: options.kinks,
        domain: options.domain,
        max_steps: options.max_steps,
        max_memory: options.max_memory.unwrap_or(defaults.max_memory),
        ..defaults
    };
    Machine::shared(definitions(linked), settings)
}

/// Entries of a program as flow, in one module. A term that is refused keeps no other from being lowered.
pub struct Lowered {
    pub module: Module,
    /// For each entry its function and what that takes and gives, or why there is none.
    pub entries: Vec<Result<(FunctionId, Signature), Box<Diagnostic>>>,
}

pub fn lower(core: &Program, entries: &[gradus_native::Entry]) -> Lowered {
    if let Ok((module, ids, signatures)) = gradus_native::lower(core, entries) {
        return Lowered { module, entries: ids.into_iter().zip(signatures).map(Ok).collect() };
    }
    let mut all = Lowered { module: Module::default(), entries: Vec::new() };
    for entry in entries {
        let lowered = match gradus_native::lower(core, std::slice::from_ref(entry)) {
            Ok((module, ids, signatures)) => {
                let by = all.module.append(module);
                let first = ids.first().zip(signatures.into_iter().next());
                let Some((id, signature)) = first else { gradus_source::bug!("an entry without function") };
                Ok((FunctionId(id.0 + by), signature))
            }
            Err(refusal) => Err(Box::new(refusal.diagnostic())),
        };
        all.entries.push(lowered);
    }
    all
}

/// Machine code of flow functions, numbered as given.
pub fn code(module: &Module, entries: &[FunctionId], backend: Backend) -> Result<Executable, Box<Diagnostic>> {
    let backend = match backend {
        Backend::C => gradus_native::Backend::C,
        Backend::Native => gradus_native::Backend::Cranelift,
        Backend::Reference => gradus_source::bug!("the reference evaluator compiles nothing"),
    };
    Executable::new(module, entries, &backend.into()).map_err(|error| Box::new(error.diagnostic()))
}

/// Flow functions as C text under these names. Failures are told with lines and columns.
pub fn c_library(module: &Module, entries: &[(FunctionId, String)], sources: &SourceMap) -> CLibrary {
    let place = |span: Span| {
        let file = sources.file(span.file)?;
        let position = file.position(span.start);
        Some(format!("{}:{}:{}", file.name, position.line, position.column))
    };
    let source = gradus_native::c::emit(module, entries).located(&place);
    CLibrary { code: source.code, header: source.header }
}

/// C text to a shared library.
pub fn compile_c(code: &str, to: &Path) -> Result<(), Box<Diagnostic>> {
    let options = gradus_native::c::Options::default();
    gradus_native::c::library(code, to, &options).map_err(|error| Box::new(error.diagnostic()))
}

impl Linked {
    fn simplify(&self, term: Term) -> Term {
        if !self.optimise {
            return term;
        }
        let (simple, _rules) = gradus_rewrite::simplify(&term);
        self.linker.note_scopes(&simple, &Default::default());
        simple
    }
}

/// What the machine sees of a linked program.
struct Shared(Arc<Linked>);

impl Definitions for Shared {
    fn definition(&self, global: &Global) -> Result<Arc<Definition>, Box<Diagnostic>> {
        let made = self.0.linker.definition(global)?;
        if !self.0.optimise {
            return Ok(made);
        }
        let mut kept = self.0.optimised.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(known) = kept.get(global) {
            return Ok(known.clone());
        }
        let term = made.term.clone().map(|term| self.0.simplify(term));
        let simple = Arc::new(Definition { term, ..(*made).clone() });
        kept.insert(global.clone(), simple.clone());
        Ok(simple)
    }

    fn type_decl(&self, name: &TypeName) -> Result<Arc<TypeDecl>, Box<Diagnostic>> {
        self.0.linker.type_decl(name)
    }

    fn differentiate(&self, lambda: &Arc<Lambda>, mode: Mode) -> Result<Arc<Lambda>, Box<Diagnostic>> {
        self.0.linker.differentiate(lambda, mode)
    }

    fn variable_types(&self, lambda: &Arc<Lambda>) -> Option<Arc<FxHashMap<Var, Type>>> {
        self.0.linker.variable_types(lambda)
    }
}
