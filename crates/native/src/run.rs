//! Compiled flow functions, called with flattened values.

use crate::c::{self, CompileError, Options, Site};
use crate::flow::{Failure, FunctionId, Module, Scalar, ShapeId, Type};
use crate::leaf::Leaf;
use gradus_runtime::slot::Slot;
use gradus_source::Diagnostic;

/// Why a call did not give results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// The program failed at a place.
    Failed(Site),
    OutOfMemory,
    /// Recursion went deeper than the stack reserved for it.
    TooDeep,
    /// The arguments do not have the function's types.
    Arguments {
        expected: Vec<Type>,
        found: Vec<Type>,
    },
}

impl RunError {
    /// What a user is told, with the codes that the same failures have on the reference evaluator.
    pub fn diagnostic(&self) -> Diagnostic {
        let (code, message, label, span) = match self {
            RunError::Failed(site) => {
                let (code, message, label) = match site.failure {
                    Failure::DivisionByZero => ("E0601", "division of an integer by zero", "the divisor is 0"),
                    Failure::NegativeExponent => {
                        ("E0602", "an integer is raised to a negative power", "the exponent is negative")
                    }
                    Failure::Index => ("E0603", "an index is outside its array", "this element"),
                    Failure::Count => ("E0604", "an array of negative size", "the size is negative"),
                    Failure::Rows => ("E0605", "the rows of an array differ in size", "this array"),
                    Failure::Size => ("E0606", "an array of another size than its type says", "this array"),
                    Failure::Shape => ("E0607", "the operands differ in shape", "these operands"),
                    Failure::SignOfZero => ("E0608", "`sign` is undefined at 0", "the argument is 0"),
                };
                (code, message, label, Some(site.span))
            }
            RunError::OutOfMemory => ("E0612", "out of memory", "", None),
            RunError::TooDeep => ("E0806", "recursion is too deep for the stack of compiled code", "", None),
            RunError::Arguments { .. } => ("E0807", "the arguments do not have the function's types", "", None),
        };
        let diagnostic = Diagnostic::error(code, message);
        match span {
            Some(span) => diagnostic.label(span, label),
            None => diagnostic,
        }
    }
}

struct EntryPoint {
    params: Vec<Type>,
    results: Vec<Type>,
}

/// What recursive programs may use of the machine's stack: address space, of which only what is touched becomes memory.
const STACK: usize = 1 << 30;
/// What the C library may need beyond that.
const MARGIN: usize = 1 << 20;

/// Machine code of some functions of a module.
pub struct Executable {
    code: c::Compiled,
    entries: Vec<EntryPoint>,
    /// Whether some function calls itself, so that calls get a large stack.
    recursive: bool,
}

impl Executable {
    /// Through C. The entry points are numbered as given.
    pub fn with_c(module: &Module, entries: &[FunctionId], options: &Options) -> Result<Executable, CompileError> {
        let names: Vec<String> = (0..entries.len()).map(|i| format!("gradus_entry_{i}")).collect();
        let pairs: Vec<_> = entries.iter().copied().zip(names.iter().cloned()).collect();
        let source = c::emit(module, &pairs);
        let code = c::compile(&source, &names, options)?;
        let entries = entries
            .iter()
            .map(|id| {
                let function = module.function(*id);
                EntryPoint { params: function.params.iter().map(|v| v.ty).collect(), results: function.results.clone() }
            })
            .collect();
        let recursive = (0..module.functions.len()).any(|id| c::is_recursive(module, FunctionId(id)));
        Ok(Executable { code, entries, recursive })
    }

    /// The flattened parameters and results of an entry point.
    pub fn types(&self, entry: usize) -> (&[Type], &[Type]) {
        match self.entries.get(entry) {
            Some(point) => (&point.params, &point.results),
            None => gradus_source::bug!("no entry {entry} in an executable"),
        }
    }

    /// Whether arguments of these types, which fill their shapes or do not, can be given to an entry point.
    pub(crate) fn check(&self, entry: usize, found: Vec<Type>, regular: bool) -> Result<(), RunError> {
        let (params, _) = self.types(entry);
        // Boxes of any shape look the same; what they contain is the layout's business.
        let plain = |ty: &Type| match ty.scalar {
            Scalar::Box(_) => Type { scalar: Scalar::Box(ShapeId(0)), ..*ty },
            Scalar::Real | Scalar::Int | Scalar::Bool => *ty,
        };
        if regular && found.iter().map(plain).eq(params.iter().map(plain)) {
            Ok(())
        } else {
            Err(RunError::Arguments { expected: params.to_vec(), found })
        }
    }

    /// Calls an entry point.
    pub fn call(&self, entry: usize, arguments: &[Leaf]) -> Result<Vec<Leaf>, RunError> {
        let Some(point) = self.entries.get(entry) else {
            gradus_source::bug!("no entry {entry} in an executable");
        };
        self.check(entry, arguments.iter().map(Leaf::ty).collect(), arguments.iter().all(Leaf::is_regular))?;
        let inputs: Vec<Slot> = arguments.iter().map(Leaf::slot).collect();
        let mut outputs = vec![Slot::integer(0); point.results.len()];
        // The types have just been compared, and the arguments outlive the call.
        unsafe {
            self.call_slots(entry, &inputs, &mut outputs)?;
            let mut leaves = Vec::with_capacity(outputs.len());
            for (slot, ty) in outputs.iter_mut().zip(&point.results) {
                leaves.push(Leaf::from_slot(slot, *ty));
                if ty.is_counted() {
                    self.code.release(slot);
                }
            }
            Ok(leaves)
        }
    }

    /// Calls an entry point on slots, with no copying and no allocation: for those who call it very often.
    ///
    /// # Safety
    /// The slots must be as many and of the types that the function has; array results must be given back with
    /// [`Executable::release`].
    pub unsafe fn call_slots(&self, entry: usize, inputs: &[Slot], outputs: &mut [Slot]) -> Result<(), RunError> {
        let call = |outputs: &mut [Slot]| unsafe { self.code.call(entry, inputs, outputs) };
        let result = if self.recursive {
            stacker::grow(STACK, || {
                unsafe { self.code.set_stack(STACK - MARGIN) };
                call(outputs)
            })
        } else {
            call(outputs)
        };
        result.map_err(|code| self.error(code))
    }

    /// # Safety
    /// The slot must be an array result of [`Executable::call_slots`], on this thread.
    pub unsafe fn release(&self, slot: &mut Slot) {
        unsafe { self.code.release(slot) }
    }

    fn error(&self, code: i32) -> RunError {
        if code == c::STACK {
            return RunError::TooDeep;
        }
        match self.code.sites.get((code as usize).wrapping_sub(c::FIRST_SITE)) {
            Some(site) => RunError::Failed(*site),
            None => RunError::OutOfMemory,
        }
    }
}
