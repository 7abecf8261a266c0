//! The passes, in order. This is the only place that lists them.
//!
//! ```text
//! text ──load──▶ trees ──infer──▶ core ──link, expand──▶ core ──optimise──▶ core ──machine──▶ values
//!                                   └──lower──▶ flow ──code──▶ machine code
//! ```

use crate::build::CLibrary;
use crate::loader::Loader;
use crate::modules::{self, Main, Modules};
use crate::options::{Backend, Domain, Kinks, Options};
use crate::Error;
use gradus_core::build::At;
use gradus_core::traverse::free_vars;
use gradus_core::{
    Definition, Definitions, Global, Lambda, Mode, Program, Term, TermKind, Type, TypeDecl, TypeName, Var,
};
use gradus_derive::combinator::Steps;
use gradus_derive::{Linker, Settings};
use gradus_infer::{Elaborated, Inferred, ModuleSource};
use gradus_native::cores::{Plan, LEAST_WORK};
use gradus_native::flow::{FunctionId, Module};
use gradus_native::lower::{DataLengths, Signature};
use gradus_native::Executable;
use gradus_reference::Machine;
use gradus_rewrite::{Class, Optimiser, Step};
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
    optimise: Option<gradus_rewrite::Settings>,
    explain: bool,
    optimised: Mutex<FxHashMap<Global, Arc<Definition>>>,
    derivations: Mutex<Vec<Derivation>>,
    /// Optimised functions of the top level, by address, with the text that they were made from: that is what is differentiated.
    originals: Mutex<FxHashMap<usize, Original>>,
}

/// The original of an optimised function, which is kept alive so that its address stays its own.
struct Original {
    _optimised: Arc<Lambda>,
    original: Arc<Lambda>,
}

/// Why an optimised definition is as good as it was.
pub struct Derivation {
    pub global: Global,
    pub steps: Vec<Step>,
}

pub fn link(core: &Arc<Program>, options: &Options) -> Arc<Linked> {
    // Whatever runs may still be differentiated, when a function is only known then.
    Arc::new(linked(core, options, true))
}

/// For reading: nothing will run, so that functions may be changed at will.
pub fn link_for_reading(core: &Arc<Program>, options: &Options, explain: bool) -> Arc<Linked> {
    Arc::new(Linked { explain, ..linked(core, options, false) })
}

fn linked(core: &Arc<Program>, options: &Options, origins: bool) -> Linked {
    let reverse = options.mode.unwrap_or(Mode::Monadic);
    let linker = Linker::new(core.clone(), Settings { reverse, ..Settings::default() });
    let settings = gradus_rewrite::Settings {
        class: if options.reassociate { Class::Reassociates } else { Class::Exact },
        kinks: options.kinks != Kinks::Ignore,
        domain: options.domain == Domain::Error,
        origins,
    };
    let optimise = options.optimise.then_some(settings);
    Linked {
        linker,
        optimise,
        explain: false,
        optimised: Mutex::default(),
        derivations: Mutex::default(),
        originals: Mutex::default(),
    }
}

/// A term of an item, ready to run.
pub fn expand(linked: &Linked, term: &Term, ty: &Type) -> Result<Term, Box<Diagnostic>> {
    let term = linked.linker.expand(term, ty)?;
    let Some(settings) = linked.optimise else { return Ok(term) };
    let optimiser = Optimiser { settings, definitions: Some(&linked.linker), explain: false };
    let optimised = optimiser.run(&term).term;
    linked.linker.note_scopes(&optimised, &Default::default());
    Ok(optimised)
}

/// The derivations of the definitions that were made so far, in order.
pub fn derivations(linked: &Linked) -> Vec<Derivation> {
    std::mem::take(&mut *linked.derivations.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
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
        interrupt: options.interrupt.clone(),
    };
    Machine::shared(definitions(linked), settings)
}

/// Entries of a program as flow, in one module. A term that is refused keeps no other from being lowered.
pub struct Lowered {
    pub module: Module,
    /// For each entry its function and what that takes and gives, or why there is none.
    pub entries: Vec<Result<(FunctionId, Signature), Box<Diagnostic>>>,
}

pub fn lower(core: &Program, entries: &[gradus_native::Entry], lengths: &DataLengths) -> Lowered {
    if let Ok((module, ids, signatures)) = gradus_native::lower_for_data(core, entries, lengths) {
        return Lowered { module, entries: ids.into_iter().zip(signatures).map(Ok).collect() };
    }
    let mut all = Lowered { module: Module::default(), entries: Vec::new() };
    for entry in entries {
        let lowered = match gradus_native::lower_for_data(core, std::slice::from_ref(entry), lengths) {
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

/// One entry as flow, before and after simplification, for a reader who knows the program's own files and not the library's.
pub fn lower_for_people(
    core: &Program,
    entry: gradus_native::Entry,
    sources: &SourceMap,
    simplified: bool,
) -> Result<(Module, FunctionId), Box<Diagnostic>> {
    let own =
        sources.files().filter(|(_, file)| !crate::library::is_module(file)).map(|(id, _)| id).collect::<Vec<_>>();
    let lowered = gradus_native::lower_seen_from(core, &[entry], &own);
    let (mut module, ids, _) = lowered.map_err(|refusal| Box::new(refusal.diagnostic()))?;
    let Some(id) = ids.first().copied() else { gradus_source::bug!("an entry without function") };
    if simplified {
        gradus_native::simplify::module(&mut module);
    }
    Ok((module, id))
}

/// The core of a definition, for people.
pub fn core_text(core: &Program, definition: &gradus_core::Symbol) -> String {
    match core.defs.get(definition).map(|def| &def.body) {
        Some(gradus_core::Body::Term(term)) => gradus_core::print::print_term(None, term, Default::default()) + "\n",
        Some(gradus_core::Body::Data { .. }) | None => String::new(),
    }
}

/// A flow program, for people.
pub fn flow_text(module: &Module) -> String {
    gradus_native::flow::print::module(module)
}

/// What Cranelift gets, for people.
pub fn cranelift_text(module: &Module, entry: FunctionId) -> Result<String, Box<Diagnostic>> {
    gradus_native::cranelift::text(module, &[entry], &chunks(module)).map_err(|error| Box::new(error.diagnostic()))
}

/// The loops that run on all cores.
fn chunks(module: &Module) -> Plan {
    Plan::new(module, LEAST_WORK)
}

/// Machine code of flow functions, numbered as given, made on at most so many threads.
pub fn code(
    module: &Module,
    entries: &[FunctionId],
    backend: Backend,
    threads: Option<usize>,
) -> Result<Executable, Box<Diagnostic>> {
    let backend = match backend {
        Backend::C => gradus_native::Backend::C,
        Backend::Native => gradus_native::Backend::Cranelift,
        Backend::Auto | Backend::Reference => gradus_source::bug!("a backend that compiles was to be chosen"),
    };
    let options = gradus_native::Options { threads, ..backend.into() };
    Executable::new(module, entries, &options).map_err(|error| Box::new(error.diagnostic()))
}

/// Flow functions as C text under these names. Failures are told with lines and columns.
pub fn c_library(module: &Module, entries: &[(FunctionId, String)], sources: &SourceMap) -> CLibrary {
    let place = |span: Span| {
        let file = sources.file(span.file)?;
        let position = file.position(span.start);
        Some(format!("{}:{}:{}", file.name, position.line, position.column))
    };
    let source = gradus_native::c::emit(module, entries, &chunks(module)).located(&place);
    CLibrary { code: source.code, header: source.header }
}

/// C text to a shared library.
pub fn compile_c(code: &str, to: &Path) -> Result<(), Box<Diagnostic>> {
    let options = gradus_native::c::Options::default();
    gradus_native::c::library(code, to, &options).map_err(|error| Box::new(error.diagnostic()))
}

impl Linked {
    fn optimised(&self, made: &Definition, settings: gradus_rewrite::Settings) -> Definition {
        let Some(term) = &made.term else { return made.clone() };
        let optimiser = Optimiser { settings, definitions: Some(&self.linker), explain: self.explain };
        let result = optimiser.run(term);
        self.linker.note_scopes(&result.term, &Default::default());
        if self.explain {
            let derivation = Derivation { global: made.global.clone(), steps: result.steps };
            self.derivations.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(derivation);
        }
        let optimised = with_origin_of(term, result.term);
        if let (TermKind::Lambda(before), TermKind::Lambda(after)) = (&*term.kind, &*optimised.kind) {
            let mut originals = self.originals.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            let known = Original { _optimised: after.clone(), original: before.clone() };
            originals.insert(Arc::as_ptr(after) as usize, known);
        }
        Definition { term: Some(optimised), ..made.clone() }
    }

    /// A function that was differentiated while the program runs. It captures nothing, so that it may be changed, but what it makes may be
    /// differentiated again.
    fn optimised_image(&self, image: Arc<Lambda>, settings: gradus_rewrite::Settings) -> Arc<Lambda> {
        let settings = gradus_rewrite::Settings { origins: true, ..settings };
        let optimiser = Optimiser { settings, definitions: Some(&self.linker), explain: false };
        let plain = function(&Arc::new(Lambda { origin: None, ..(*image).clone() }));
        let optimised = with_origin_of(&function(&image), optimiser.run(&plain).term);
        self.linker.note_scopes(&optimised, &Default::default());
        match &*optimised.kind {
            TermKind::Lambda(lambda) => lambda.clone(),
            _ => image,
        }
    }
}

fn function(lambda: &Arc<Lambda>) -> Term {
    Term::new(TermKind::Lambda(lambda.clone()), lambda.body.span)
}

/// The function itself, which captures nothing, still remembers.
fn with_origin_of(original: &Term, optimised: Term) -> Term {
    match (&*original.kind, &*optimised.kind) {
        (TermKind::Lambda(before), TermKind::Lambda(after)) if before.origin.is_some() => {
            let lambda = Lambda { origin: before.origin.clone(), ..(**after).clone() };
            Term::new(TermKind::Lambda(Arc::new(lambda)), optimised.span)
        }
        _ => optimised,
    }
}

/// What the machine sees of a linked program.
struct Shared(Arc<Linked>);

impl Definitions for Shared {
    fn definition(&self, global: &Global) -> Result<Arc<Definition>, Box<Diagnostic>> {
        let made = self.0.linker.definition(global)?;
        let Some(settings) = self.0.optimise else { return Ok(made) };
        let mut kept = self.0.optimised.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(known) = kept.get(global) {
            return Ok(known.clone());
        }
        let simple = Arc::new(self.0.optimised(&made, settings));
        kept.insert(global.clone(), simple.clone());
        Ok(simple)
    }

    fn type_decl(&self, name: &TypeName) -> Result<Arc<TypeDecl>, Box<Diagnostic>> {
        self.0.linker.type_decl(name)
    }

    fn differentiate(&self, lambda: &Arc<Lambda>, mode: Mode) -> Result<Arc<Lambda>, Box<Diagnostic>> {
        let originals = self.0.originals.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let original = originals.get(&(Arc::as_ptr(lambda) as usize)).map_or(lambda, |known| &known.original).clone();
        drop(originals);
        let image = self.0.linker.differentiate(&original, mode)?;
        match self.0.optimise {
            Some(settings) if free_vars(&function(&image)).is_empty() => Ok(self.0.optimised_image(image, settings)),
            _ => Ok(image),
        }
    }

    fn variable_types(&self, lambda: &Arc<Lambda>) -> Option<Arc<FxHashMap<Var, Type>>> {
        self.0.linker.variable_types(lambda)
    }
}
