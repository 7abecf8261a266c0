//! From a typed program to functions that can be called.

use crate::flow::{FunctionId, Module};
use crate::lower::{DataLengths, Lowering, Signature};
use crate::{c, cranelift, simplify, Executable, Leaf, Limits, Refusal, RunError};
use gradus_core::{Program, Term, Type};
use gradus_source::{Diagnostic, FileId};

/// What is to be compiled: a closed term of a type `a1 -> ... -> an -> b` over data types. A definition is such a term, and
/// so is any derivative of it.
#[derive(Clone, Debug)]
pub struct Entry {
    pub name: String,
    pub term: Term,
    pub ty: Type,
}

/// What makes the machine code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// In milliseconds, with no tool outside the binary.
    #[default]
    Cranelift,
    /// By the machine's C compiler: slower to compile, faster to run.
    C,
}

impl Backend {
    pub const ALL: [Backend; 2] = [Backend::Cranelift, Backend::C];
}

/// How to compile.
#[derive(Clone, Debug)]
pub struct Options {
    pub backend: Backend,
    /// For [`Backend::C`].
    pub c: c::Options,
    /// For [`Backend::Cranelift`].
    pub care: cranelift::Care,
    /// What a chunk of a loop should have to do at least, see [`crate::cores`].
    pub least_work: f64,
    /// How many threads may make machine code, for [`Backend::Cranelift`]; nothing: as many as the machine runs at once.
    pub threads: Option<usize>,
}

impl Default for Options {
    fn default() -> Options {
        let least_work = crate::cores::LEAST_WORK;
        let (backend, care) = Default::default();
        Options { backend, c: c::Options::default(), care, least_work, threads: None }
    }
}

impl From<Backend> for Options {
    fn from(backend: Backend) -> Options {
        Options { backend, ..Options::default() }
    }
}

/// Why a backend made no code.
#[derive(Debug)]
pub enum CompileError {
    Cranelift(cranelift::CompileError),
    C(c::CompileError),
}

impl CompileError {
    /// What a user is told.
    pub fn diagnostic(&self) -> Diagnostic {
        match self {
            CompileError::Cranelift(error) => error.diagnostic(),
            CompileError::C(error) => error.diagnostic(),
        }
    }
}

#[derive(Debug)]
pub enum Error {
    /// The program uses something that has no native form yet.
    Refused(Box<Refusal>),
    /// The backend could not do its part.
    Compiler(CompileError),
}

impl Error {
    /// What a user is told.
    pub fn diagnostic(&self) -> Diagnostic {
        match self {
            Error::Refused(refusal) => refusal.diagnostic(),
            Error::Compiler(error) => error.diagnostic(),
        }
    }
}

/// Compiled entries, in the order in which they were asked for.
pub struct Native {
    pub executable: Executable,
    pub signatures: Vec<Signature>,
}

impl Native {
    /// Calls an entry with the leaves of its arguments and of its data, in order.
    pub fn call(&self, entry: usize, arguments: &[Leaf]) -> Result<Vec<Leaf>, RunError> {
        self.executable.call(entry, arguments)
    }

    /// The same, within limits.
    pub fn call_within(&self, entry: usize, arguments: &[Leaf], limits: &Limits) -> Result<Vec<Leaf>, RunError> {
        self.executable.call_within(entry, arguments, limits)
    }
}

/// Flow with the functions and signatures of the entries.
pub type Flow = (Module, Vec<FunctionId>, Vec<Signature>);

/// The flow program of some entries, simplified: what the backends take, and what can be shown.
pub fn lower(program: &Program, entries: &[Entry]) -> Result<Flow, Box<Refusal>> {
    lower_for_data(program, entries, &DataLengths::default())
}

/// The same for data of these lengths.
pub fn lower_for_data(program: &Program, entries: &[Entry], lengths: &DataLengths) -> Result<Flow, Box<Refusal>> {
    let mut flow = lower_entries(Lowering::new(program, lengths), entries)?;
    simplify::module(&mut flow.0);
    Ok(flow)
}

/// The same before it is simplified, for a reader who knows only some files (none: all): see [`Lowering::seen_from`].
pub fn lower_seen_from(program: &Program, entries: &[Entry], files: &[FileId]) -> Result<Flow, Box<Refusal>> {
    let lengths = DataLengths::default();
    let mut lowering = Lowering::new(program, &lengths);
    lowering.seen_from(files);
    lower_entries(lowering, entries)
}

fn lower_entries(mut lowering: Lowering, entries: &[Entry]) -> Result<Flow, Box<Refusal>> {
    let (mut ids, mut signatures) = (Vec::new(), Vec::new());
    for entry in entries {
        let (id, signature) = lowering.entry(&entry.name, &entry.term, &entry.ty)?;
        ids.push(id);
        signatures.push(signature);
    }
    Ok((lowering.finish()?, ids, signatures))
}

/// Compiles entries of a program.
pub fn compile(program: &Program, entries: &[Entry], options: &Options) -> Result<Native, Error> {
    let (module, ids, signatures) = lower(program, entries).map_err(Error::Refused)?;
    let executable = Executable::new(&module, &ids, options).map_err(Error::Compiler)?;
    Ok(Native { executable, signatures })
}
