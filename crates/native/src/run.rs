//! Compiled flow functions, called with flattened values.

use crate::better::Better;
use crate::cores::Plan;
use crate::flow::{Failure, FunctionId, Module, Scalar, ShapeId, Type};
use crate::leaf::Leaf;
use crate::place::{Places, Site};
use crate::{c, cranelift, recursion, Backend, CompileError, Options};
use gradus_runtime::pool;
use gradus_runtime::slot::{Entry, Kind, Limits as RawLimits, Release, SetLimits, Slot};
use gradus_source::{Diagnostic, Span};
use std::any::Any;
use std::ptr::null;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// What a call may use. A step is an iteration of a loop or a call of a recursive function.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    pub max_steps: Option<u64>,
    /// Bytes of arrays that exist at the same time.
    pub max_memory: Option<u64>,
    /// Set from another thread, or by a signal, to stop the call.
    pub interrupt: Option<Arc<AtomicBool>>,
    /// How many threads loops may use, see [`crate::cores`]; nothing: as many as the machine runs at once. Results are the same for any number.
    pub threads: Option<usize>,
}

/// Why a call did not give results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// The program failed at a place.
    Failed(Site),
    /// More memory than there is, or than the limit allows.
    Memory {
        limit: Option<u64>,
        span: Span,
    },
    /// Recursion went deeper than the stack reserved for it.
    TooDeep {
        span: Span,
    },
    Steps {
        limit: u64,
        span: Span,
    },
    Interrupted {
        span: Span,
    },
    /// The arguments do not have the function's types.
    Arguments {
        expected: Vec<Type>,
        found: Vec<Type>,
    },
}

impl RunError {
    /// What a user is told, with the codes that the same failures have on the reference evaluator.
    pub fn diagnostic(&self) -> Diagnostic {
        let stopped = "it was here when it was stopped";
        match self {
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
                    Failure::Order => (
                        "E0808",
                        "a derivative of a higher order than compiled code has",
                        "this needs itself differentiated",
                    ),
                };
                Diagnostic::error(code, message).label(site.span, label)
            }
            RunError::Memory { limit: None, span } => {
                Diagnostic::error("E0612", "the program needs more memory than there is").label(*span, stopped)
            }
            RunError::Memory { limit: Some(limit), span } => {
                let limit = gradus_source::bytes(*limit);
                Diagnostic::error("E0612", format!("the program needs more than {limit} of memory"))
                    .label(*span, stopped)
                    .help("recursion that never ends is the usual reason; `--max-memory` sets the limit")
            }
            RunError::TooDeep { span } => {
                let stack = gradus_source::bytes(STACK as u64);
                Diagnostic::error("E0806", format!("recursion needs more than {stack} of stack"))
                    .label(*span, stopped)
                    .help("recursion that never ends is the usual reason; with `--backend reference` only `--max-memory` sets a limit")
            }
            RunError::Steps { limit, span } => {
                Diagnostic::error("E0611", format!("the program did not finish within {limit} steps"))
                    .label(*span, stopped)
                    .help("`--max-steps` sets the limit; compiled code counts iterations and recursive calls")
            }
            RunError::Interrupted { span } => {
                Diagnostic::error("E0613", "the program was interrupted").label(*span, "it was here")
            }
            RunError::Arguments { .. } => Diagnostic::error("E0807", "the arguments do not have the function's types"),
        }
    }
}

/// What a backend makes: functions of the calling convention, and who owns their memory.
pub struct Code {
    pub(crate) entries: Vec<Entry>,
    pub(crate) release: Release,
    pub(crate) set_limits: SetLimits,
    pub(crate) places: Arc<Places>,
    /// Kept as long as the functions can be called.
    pub(crate) _owner: Box<dyn Any + Send + Sync>,
}

struct EntryPoint {
    params: Vec<Type>,
    results: Vec<Type>,
}

/// What recursive programs may use of the machine's stack: address space, of which only what is touched becomes memory.
const STACK: i64 = pool::STACK as i64;
/// What the C library may need beyond that.
const MARGIN: i64 = 1 << 20;
/// With less than that, it is not worth a try on the stack of the caller.
const LITTLE_STACK: i64 = 1 << 18;

/// Machine code of some functions of a module.
pub struct Executable {
    code: Code,
    /// If that is quick code.
    better: Option<Arc<Better>>,
    entries: Vec<EntryPoint>,
    /// Whether some function calls itself, so that calls may need a large stack.
    recursive: bool,
    /// Whether some call has needed it.
    deep: AtomicBool,
}

impl Executable {
    /// Compiles a module; the entry points are numbered as given.
    pub fn new(module: &Module, entries: &[FunctionId], options: &Options) -> Result<Executable, CompileError> {
        let plan = Plan::new(module, options.least_work);
        let (code, later) = match options.backend {
            Backend::Cranelift => cranelift::compile(module, entries, &plan, options.care, options.threads)
                .map_err(CompileError::Cranelift)?,
            Backend::C => (c::compile(module, entries, &plan, &options.c).map_err(CompileError::C)?, None),
        };
        let entries = entries
            .iter()
            .map(|id| {
                let function = module.function(*id);
                EntryPoint { params: function.params.iter().map(|v| v.ty).collect(), results: function.results.clone() }
            })
            .collect();
        let recursive = recursion::recursive(module).contains(&true);
        Ok(Executable { code, better: later.map(Better::new), entries, recursive, deep: AtomicBool::new(false) })
    }

    /// Makes the best code now, on so many threads at most, instead of when calls are found to take long: for those who measure.
    pub fn improve(&self, threads: Option<usize>) {
        if let Some(better) = &self.better {
            better.make(threads);
        }
    }

    /// Whether no better code is to come.
    pub fn is_final(&self) -> bool {
        self.better.as_ref().is_none_or(|better| better.code().is_some())
    }

    /// The best code that there is; for quick code, with the flag that is set when there is better code.
    fn code(&self) -> (&Code, *const AtomicBool) {
        let Some(better) = &self.better else { return (&self.code, null()) };
        match better.code() {
            Some(code) => (code, null()),
            None => {
                better.begin();
                (&self.code, better.there())
            }
        }
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
        self.call_within(entry, arguments, &Limits::default())
    }

    /// Calls an entry point, within limits.
    pub fn call_within(&self, entry: usize, arguments: &[Leaf], limits: &Limits) -> Result<Vec<Leaf>, RunError> {
        self.check(entry, arguments.iter().map(Leaf::ty).collect(), arguments.iter().all(Leaf::is_regular))?;
        let (_, results) = self.types(entry);
        let inputs: Vec<Slot> = arguments.iter().map(Leaf::slot).collect();
        let mut outputs = vec![Slot::integer(0); results.len()];
        // The types have just been compared, and the arguments outlive the call.
        unsafe {
            self.call_slots(entry, &inputs, &mut outputs, limits)?;
            let mut leaves = Vec::with_capacity(outputs.len());
            for (slot, ty) in outputs.iter_mut().zip(results) {
                leaves.push(Leaf::from_slot(slot, *ty));
                if ty.is_counted() {
                    self.release(slot);
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
    pub unsafe fn call_slots(
        &self,
        entry: usize,
        inputs: &[Slot],
        outputs: &mut [Slot],
        limits: &Limits,
    ) -> Result<(), RunError> {
        pool::set_threads(limits.threads.unwrap_or_else(pool::cores));
        loop {
            let (code, replaced) = self.code();
            let number = unsafe { self.call_code(code, replaced, entry, inputs, outputs, limits) };
            if number == 0 {
                return Ok(());
            }
            // A call that fails has given back all that it had and has written nothing, so that it can be run again. Better code needs less stack.
            let may_do_better = matches!(Kind::of(number).0, Kind::Replaced | Kind::Stack) && !replaced.is_null();
            if may_do_better {
                self.improve(limits.threads);
            }
            if !may_do_better || std::ptr::eq(self.code().0, code) {
                return Err(self.error(number, limits));
            }
        }
    }

    /// Calls an entry point of some code.
    ///
    /// # Safety
    /// As for [`Executable::call_slots`].
    unsafe fn call_code(
        &self,
        code: &Code,
        replaced: *const AtomicBool,
        entry: usize,
        inputs: &[Slot],
        outputs: &mut [Slot],
        limits: &Limits,
    ) -> i32 {
        let Some(function) = code.entries.get(entry) else {
            gradus_source::bug!("no entry {entry} in an executable");
        };
        let mut call = || unsafe { function(inputs.as_ptr(), outputs.as_mut_ptr()) };
        let limited = limits.max_steps.is_some() || limits.max_memory.is_some() || limits.interrupt.is_some();
        if !self.recursive && !limited && replaced.is_null() {
            return call();
        }
        let bound = |limit: Option<u64>| limit.map_or(i64::MAX, |n| i64::try_from(n).unwrap_or(i64::MAX));
        let mut within = |stack: i64, large: bool| {
            let raw = RawLimits {
                stack,
                memory: bound(limits.max_memory),
                steps: bound(limits.max_steps),
                interrupt: limits.interrupt.as_ref().map_or(null(), Arc::as_ptr),
                replaced,
            };
            // They are taken back before the flags can go away.
            unsafe { (code.set_limits)(&raw) };
            let number = if large { stacker::grow(STACK as usize, &mut call) } else { call() };
            unsafe { (code.set_limits)(null()) };
            number
        };
        if self.recursive {
            self.on_enough_stack(within)
        } else {
            within(RawLimits::NONE.stack, false)
        }
    }

    /// Runs a call that is given its stack in bytes, and whether that is to be a large one. Making one takes longer than most calls; so the
    /// stack of the caller is tried first.
    fn on_enough_stack(&self, mut call: impl FnMut(i64, bool) -> i32) -> i32 {
        let here = stacker::remaining_stack().map_or(0, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX)) - MARGIN;
        if here > LITTLE_STACK && !self.deep.load(Ordering::Relaxed) {
            let code = call(here.min(STACK - MARGIN), false);
            if code == 0 || Kind::of(code).0 != Kind::Stack {
                return code;
            }
            self.deep.store(true, Ordering::Relaxed);
        }
        call(STACK - MARGIN, true)
    }

    /// # Safety
    /// The slot must be an array result of [`Executable::call_slots`], on this thread.
    pub unsafe fn release(&self, slot: &mut Slot) {
        unsafe { (self.code.release)(slot) }
    }

    fn error(&self, code: i32, limits: &Limits) -> RunError {
        let (kind, place) = Kind::of(code);
        let place = self.code.places.get(place);
        let span = place.map_or(Span::default(), |p| p.span);
        match (kind, place.and_then(|p| p.failure)) {
            (Kind::Check, Some(failure)) => RunError::Failed(Site { failure, span }),
            (Kind::Check, None) => gradus_source::bug!("failure {code} of compiled code has no meaning"),
            (Kind::Memory, _) => RunError::Memory { limit: limits.max_memory, span },
            (Kind::Stack, _) => RunError::TooDeep { span },
            (Kind::Steps, _) => RunError::Steps { limit: limits.max_steps.unwrap_or(u64::MAX), span },
            (Kind::Interrupted, _) => RunError::Interrupted { span },
            (Kind::Replaced, _) => gradus_source::bug!("code gave way to other code that is not there"),
        }
    }
}
