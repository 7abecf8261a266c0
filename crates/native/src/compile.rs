//! From a typed program to functions that can be called.

use crate::c::{CompileError, Options};
use crate::flow::{FunctionId, Module};
use crate::lower::{Lowering, Signature};
use crate::{simplify, Executable, Leaf, Refusal, RunError};
use gradus_core::{Program, Term, Type};
use gradus_source::Diagnostic;

/// What is to be compiled: a closed term of a type `a1 -> ... -> an -> b` over data types. A definition is such a term, and
/// so is any derivative of it.
#[derive(Clone, Debug)]
pub struct Entry {
    pub name: String,
    pub term: Term,
    pub ty: Type,
}

#[derive(Debug)]
pub enum Error {
    /// The program uses something that has no native form yet.
    Refused(Box<Refusal>),
    /// The C compiler could not do its part.
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
}

/// The flow program of some entries, simplified: what the backends take, and what can be shown.
pub fn lower(program: &Program, entries: &[Entry]) -> Result<(Module, Vec<FunctionId>, Vec<Signature>), Box<Refusal>> {
    let mut lowering = Lowering::new(program);
    let (mut ids, mut signatures) = (Vec::new(), Vec::new());
    for entry in entries {
        let (id, signature) = lowering.entry(&entry.name, &entry.term, &entry.ty)?;
        ids.push(id);
        signatures.push(signature);
    }
    let mut module = lowering.module;
    simplify::module(&mut module);
    Ok((module, ids, signatures))
}

/// Compiles entries of a program through C.
pub fn compile(program: &Program, entries: &[Entry], options: &Options) -> Result<Native, Error> {
    let (module, ids, signatures) = lower(program, entries).map_err(Error::Refused)?;
    let executable = Executable::with_c(&module, &ids, options).map_err(Error::Compiler)?;
    Ok(Native { executable, signatures })
}
