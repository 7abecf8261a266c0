//! The machine: a stack of values, a stack of what is to be done next, the top-level values, the limits. Code is run by
//! [`crate::run`], which calls functions by [`crate::call`].

use crate::code::Code;
use crate::compile::{Checks, Codes};
use crate::error::{Call, Problem, RuntimeError};
use crate::lift::Lifted;
use crate::memory;
use crate::operations::Collected;
use crate::options::{Domain, Kink, Kinks, Options, Report};
use crate::value::{Fields, Value};
use gradus_core::proved::Steps;
use gradus_core::{Checked, Definitions, Global, Prim, Symbol, Term};
use gradus_source::Span;
use rustc_hash::FxHashMap;
use std::rc::Rc;
use std::sync::atomic::Ordering;

pub(crate) type Outcome<T> = Result<T, Box<RuntimeError>>;

/// Evaluates terms of a program. Top-level values are computed when they are needed first, and kept.
pub struct Machine<'d> {
    pub(crate) definitions: Handle<'d>,
    pub(crate) options: Options,
    pub(crate) codes: Codes,
    pub(crate) globals: Vec<Entry>,
    data: FxHashMap<Symbol, Value>,
    pub(crate) stack: Vec<Value>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) lifted: Lifted,
    pub(crate) steps: u64,
    /// Some of what they are made of is added in any case, all of it for the premises only.
    pub(crate) semantic_steps: u64,
    /// The count at which to look at the limits again.
    pub(crate) next_look: u64,
    peak: usize,
    /// What other machines of the thread held when this one was made.
    others: usize,
    kinks: Vec<Kink>,
}

/// A global, by its number in `Codes`.
#[derive(Clone)]
pub(crate) enum Entry {
    Unknown,
    Running,
    Known(Value),
}

/// What to do with the value of the code that is running.
pub(crate) enum Frame {
    /// Go on in the middle of other code.
    Return(Registers),
    /// Apply it to more arguments.
    Apply(Vec<Value>, Span),
    /// It is the next element of an array.
    Build(Box<Building>),
    /// It is the next state of a loop, at this iteration of so many.
    Ifold { function: Value, index: i64, count: i64, span: Span },
    /// It says whether to go on.
    Iterate { function: Value, span: Span },
    /// It is the value of a global.
    Global(u32),
    /// It is what was asked for.
    Halt,
}

pub(crate) struct Building {
    pub function: Value,
    pub count: usize,
    pub items: Collected,
    pub span: Span,
}

/// Where the machine is.
#[derive(Clone)]
pub(crate) struct Registers {
    pub code: Rc<Code>,
    pub at: usize,
    /// The position of slot 0.
    pub base: usize,
}

impl Registers {
    /// What the operation that was run last has checked, if it was handed to a derivative form.
    fn checked(&self) -> Option<Checked> {
        let at = (self.at as u32).checked_sub(1)?;
        self.code.checked.iter().find(|(position, _)| *position == at).map(|(_, what)| *what)
    }
}

/// What follows a call.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Link {
    /// The caller goes on.
    Push,
    /// The caller is done: its frame gives way.
    Tail,
    /// What follows is on the stack of frames already.
    Ready,
}

/// Steps between two looks at the limits.
const LOOK_EVERY: u64 = 10_000;
/// The calls that an error shows.
const SHOWN_CALLS: usize = 4;

/// The definitions of the program: borrowed, or shared with whoever made the machine.
pub(crate) enum Handle<'d> {
    Borrowed(&'d dyn Definitions),
    Shared(Rc<dyn Definitions + 'd>),
}

impl<'d> std::ops::Deref for Handle<'d> {
    type Target = dyn Definitions + 'd;
    fn deref(&self) -> &Self::Target {
        match self {
            Handle::Borrowed(definitions) => *definitions,
            Handle::Shared(definitions) => &**definitions,
        }
    }
}

impl<'d> Machine<'d> {
    pub fn new(definitions: &'d dyn Definitions, options: Options) -> Self {
        Machine::with(Handle::Borrowed(definitions), options)
    }

    /// A machine that keeps its definitions alive, for those who keep the machine.
    pub fn shared(definitions: Rc<dyn Definitions + 'd>, options: Options) -> Self {
        Machine::with(Handle::Shared(definitions), options)
    }

    fn with(definitions: Handle<'d>, options: Options) -> Self {
        let checks = Checks {
            kinks: options.kinks != Kinks::Ignore,
            premise: options.kinks == Kinks::Premise,
            domain: options.domain == Domain::Error,
        };
        let mut machine = Machine {
            definitions,
            options,
            codes: Codes::new(checks),
            globals: Vec::new(),
            data: FxHashMap::default(),
            stack: Vec::new(),
            frames: Vec::new(),
            lifted: Lifted::default(),
            steps: 0,
            semantic_steps: 0,
            next_look: 0,
            peak: 0,
            others: memory::live(),
            kinks: Vec::new(),
        };
        machine.plan_look();
        machine
    }

    /// Gives the value of a `data` definition, before it is needed.
    pub fn set_data(&mut self, name: &str, value: Value) {
        self.data.insert(name.into(), value);
    }

    /// Limits the steps from here on, whatever was used before.
    pub fn allow_steps(&mut self, more: u64) {
        self.options.max_steps = Some(self.steps.saturating_add(more));
        self.plan_look();
    }

    /// The value of a closed term.
    pub fn eval(&mut self, term: &Term) -> Outcome<Value> {
        self.lifted.note_term(term);
        let number = self.compile("the program", term);
        if self.codes.get(number).params > 0 {
            return Ok(Value::Fun(number, Fields::default()));
        }
        self.run_code(number, Frame::Halt)
    }

    /// The value of a global.
    pub fn global(&mut self, global: &Global) -> Outcome<Value> {
        let number = self.codes.global(global);
        match self.start_global(number, Span::default())? {
            Started::Known(value) => Ok(value),
            Started::Code(code) => {
                self.frames.push(Frame::Halt);
                self.run_code(code, Frame::Global(number))
            }
        }
    }

    /// A function applied to arguments.
    pub fn apply(&mut self, function: Value, args: impl IntoIterator<Item = Value>) -> Outcome<Value> {
        let before = self.stack.len();
        self.stack.push(function);
        self.stack.extend(args);
        let count = self.stack.len() - before - 1;
        if count == 0 {
            return Ok(self.stack.pop().unwrap_or_default());
        }
        let nothing = self.nothing();
        let mut registers = Registers { code: nothing, at: 0, base: before + 1 };
        let floor = self.frames.len();
        self.frames.push(Frame::Halt);
        let result = match self.call(count, &mut registers, Link::Ready, Span::default()) {
            Ok(None) => self.run(&mut registers),
            Ok(Some(value)) => match self.resume(value, &mut registers) {
                Ok(Some(value)) => Ok(value),
                Ok(None) => self.run(&mut registers),
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        };
        result.map_err(|error| self.unwind(error, before, floor))
    }

    pub fn report(&self) -> Report {
        let peak = self.peak.max(self.memory());
        let semantic_steps = (self.codes.checks.premise && !self.codes.outside).then_some(self.semantic_steps);
        Report { steps: self.steps, semantic_steps, peak_memory: peak as u64, kinks: self.kinks.clone() }
    }

    /// Code for a closed term.
    fn compile(&mut self, name: &str, term: &Term) -> u32 {
        if self.codes.checks.premise {
            let steps = Steps::of(&*self.definitions, term);
            self.codes.outside |= steps.is_none();
            self.codes.steps = steps.unwrap_or_default();
        }
        self.codes.term(name, term)
    }

    /// Code that is never run: what the registers hold before anything runs.
    fn nothing(&mut self) -> Rc<Code> {
        let number = match self.lifted.nothing {
            Some(number) => number,
            None => self.codes.term("", &gradus_core::build::At::default().unit()),
        };
        self.lifted.nothing = Some(number);
        self.codes.get(number).clone()
    }

    /// Runs code without parameters; its value goes to `frame`.
    fn run_code(&mut self, number: u32, frame: Frame) -> Outcome<Value> {
        let before = self.stack.len();
        let floor = self.frames.len() - usize::from(!matches!(frame, Frame::Halt));
        self.frames.push(frame);
        self.stack.push(Value::Unit);
        let mut registers = Registers { code: self.codes.get(number).clone(), at: 0, base: before + 1 };
        self.run(&mut registers).map_err(|mut error| {
            error.checked = registers.checked();
            self.unwind(error, before, floor)
        })
    }

    /// After an error: notes the calls that were under way and leaves the machine as it was before.
    fn unwind(&mut self, mut error: Box<RuntimeError>, stack: usize, floor: usize) -> Box<RuntimeError> {
        for frame in self.frames.drain(floor..).rev() {
            match frame {
                Frame::Return(registers) => {
                    if error.calls.len() < SHOWN_CALLS {
                        let span = registers.code.spans[registers.at - 1];
                        error.calls.push(Call { caller: registers.code.name.to_string(), span });
                    } else {
                        error.more_calls += 1;
                    }
                }
                Frame::Global(number) => self.globals[number as usize] = Entry::Unknown,
                Frame::Apply(..) | Frame::Build(_) | Frame::Ifold { .. } | Frame::Iterate { .. } | Frame::Halt => {}
            }
        }
        self.stack.truncate(stack);
        // Code that derivatives are made of has no place of its own: then it is the place that called it.
        if error.span == Span::default() {
            if let Some(call) = error.calls.iter().find(|call| call.span != Span::default()) {
                error.span = call.span;
            }
        }
        error
    }

    fn memory(&self) -> usize {
        memory::live().saturating_sub(self.others)
            + self.stack.len() * size_of::<Value>()
            + self.frames.len() * size_of::<Frame>()
    }

    /// Whether the limit on memory allows so many bytes more.
    pub(crate) fn need_memory(&mut self, more: usize, span: Span) -> Outcome<()> {
        let needed = self.memory().saturating_add(more);
        self.peak = self.peak.max(needed);
        if needed as u64 > self.options.max_memory {
            return Err(RuntimeError::new(Problem::MemoryLimit { limit: self.options.max_memory }, span));
        }
        Ok(())
    }

    fn plan_look(&mut self) {
        let soon = self.steps.saturating_add(LOOK_EVERY);
        self.next_look = self.options.max_steps.map_or(soon, |limit| soon.min(limit));
    }

    /// Looks at the limit of steps and at the interrupt.
    #[cold]
    pub(crate) fn look(&mut self, span: Span) -> Outcome<()> {
        if let Some(limit) = self.options.max_steps {
            if self.steps > limit {
                return Err(RuntimeError::new(Problem::StepLimit { limit }, span));
            }
        }
        if self.options.interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            return Err(RuntimeError::new(Problem::Interrupted, span));
        }
        self.plan_look();
        Ok(())
    }

    /// A decision fell at equality while a derivative was being taken.
    pub(crate) fn kink(&mut self, prim: Prim, span: Span) -> Outcome<()> {
        if self.options.kinks == Kinks::Error {
            return Err(RuntimeError::new(Problem::Kink { prim }, span));
        }
        match self.kinks.iter_mut().find(|kink| kink.span == span && kink.prim == prim) {
            Some(kink) => kink.count += 1,
            None => self.kinks.push(Kink { span, prim, count: 1 }),
        }
        Ok(())
    }

    pub(crate) fn start_global(&mut self, number: u32, span: Span) -> Outcome<Started> {
        let index = number as usize;
        if self.globals.len() <= index {
            self.globals.resize(index + 1, Entry::Unknown);
        }
        let name = || name_of(&self.codes.globals[index]);
        match &self.globals[index] {
            Entry::Known(value) => return Ok(Started::Known(value.clone())),
            Entry::Running => return Err(RuntimeError::new(Problem::Circular { name: name() }, span)),
            Entry::Unknown => {}
        }
        let global = self.codes.globals[index].clone();
        let definition = self.definitions.definition(&global).map_err(|refusal| refused(refusal, span))?;
        match (&global, &definition.term) {
            (Global::Derived { of, .. }, _) => self.lifted.note_global(of),
            (_, Some(term)) => self.lifted.note_term(term),
            (_, None) => {}
        }
        let known = match (&definition.term, &global) {
            (Some(term), _) => {
                let code = self.compile(&name_of(&global), term);
                if self.codes.get(code).params == 0 {
                    self.globals[index] = Entry::Running;
                    return Ok(Started::Code(code));
                }
                Value::Fun(code, Fields::default())
            }
            (None, Global::Source { name, .. }) => match self.data.get(name) {
                Some(value) => value.clone(),
                None => return Err(RuntimeError::new(Problem::MissingData { name: name.to_string() }, span)),
            },
            (None, Global::Derived { .. } | Global::Wrapper { .. }) => {
                return Err(internal(format!("{global:?} has no definition"), span));
            }
        };
        self.globals[index] = Entry::Known(known.clone());
        Ok(Started::Known(known))
    }

    pub(crate) fn pop(&mut self) -> Value {
        self.stack.pop().unwrap_or_default()
    }

    pub(crate) fn push(&mut self, value: Value) {
        self.stack.push(value);
    }

    /// The operands of a primitive on numbers, still on the stack, as reals.
    pub(crate) fn numbers(&self, prim: Prim) -> ([f64; 2], usize) {
        let count = prim.info().params.len();
        let mut args = [0.0; 2];
        for (arg, value) in args.iter_mut().zip(&self.stack[self.stack.len() - count..]) {
            *arg = match value {
                Value::Real(x) => *x,
                Value::Int(k) => *k as f64,
                _ => f64::NAN,
            };
        }
        (args, count)
    }
}

pub(crate) enum Started {
    Known(Value),
    /// Code that computes it.
    Code(u32),
}

pub(crate) fn refused(refusal: Box<gradus_source::Diagnostic>, span: Span) -> Box<RuntimeError> {
    RuntimeError::new(Problem::Refused(refusal), span)
}

pub(crate) fn internal(text: String, span: Span) -> Box<RuntimeError> {
    RuntimeError::new(Problem::Internal(text), span)
}

/// What a call trace calls a global: derivatives have the name of what they are derivatives of, as people wrote it.
fn name_of(global: &Global) -> String {
    match global {
        Global::Source { name, .. } => name.to_string(),
        Global::Derived { of, .. } => name_of(of),
        Global::Wrapper { name, .. } => (*name).to_string(),
    }
}
