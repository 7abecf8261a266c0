//! The machine: a stack of values, a stack of what is to be done next, and the loop that runs code.

use crate::code::{Code, Elements, Op};
use crate::compile::{Checks, Codes};
use crate::error::{Call, Problem, RuntimeError};
use crate::lift::Lifted;
use crate::memory;
use crate::operations::Collected;
use crate::options::{Domain, Kink, Kinks, Options, Report};
use crate::value::{Fields, Value};
use gradus_core::{Definitions, Global, Prim, Symbol, Term};
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
    globals: Vec<Entry>,
    data: FxHashMap<Symbol, Value>,
    stack: Vec<Value>,
    frames: Vec<Frame>,
    pub(crate) lifted: Lifted,
    pub(crate) steps: u64,
    /// The count at which to look at the limits again.
    next_look: u64,
    peak: usize,
    /// What other machines of the thread held when this one was made.
    others: usize,
    kinks: Vec<Kink>,
}

/// A global, by its number in `Codes`.
#[derive(Clone)]
enum Entry {
    Unknown,
    Running,
    Known(Value),
}

/// What to do with the value of the code that is running.
enum Frame {
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

struct Building {
    function: Value,
    count: usize,
    items: Collected,
    span: Span,
}

/// Where the machine is.
#[derive(Clone)]
struct Registers {
    code: Rc<Code>,
    at: usize,
    /// The position of slot 0.
    base: usize,
}

/// What follows a call.
#[derive(Clone, Copy, PartialEq)]
enum Link {
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
        let checks = Checks { kinks: options.kinks != Kinks::Ignore, domain: options.domain == Domain::Error };
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

    /// The value of a closed term.
    pub fn eval(&mut self, term: &Term) -> Outcome<Value> {
        self.lifted.note_term(term);
        let number = self.codes.term("the program", term);
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
        Report { steps: self.steps, peak_memory: peak as u64, kinks: self.kinks.clone() }
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
        self.run(&mut registers).map_err(|error| self.unwind(error, before, floor))
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
    fn look(&mut self, span: Span) -> Outcome<()> {
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

    fn start_global(&mut self, number: u32, span: Span) -> Outcome<Started> {
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
                let code = self.codes.term(&name_of(&global), term);
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

    /// Applies the function that lies below `count` arguments. Gives a value if nothing has to be run.
    fn call(&mut self, count: usize, registers: &mut Registers, link: Link, span: Span) -> Outcome<Option<Value>> {
        if link == Link::Tail {
            let start = self.stack.len() - count - 1;
            drop(self.stack.drain(registers.base - 1..start));
        }
        let position = self.stack.len() - count - 1;
        let function = std::mem::take(&mut self.stack[position]);
        let Value::Fun(number, mut fields) = function else {
            return Err(internal(format!("a {} is applied", function.sort()), span));
        };
        let code = self.codes.get(number).clone();
        let captured = code.captured();
        let present = fields.len() - captured;
        let missing = code.params - present;
        if count < missing {
            let mut values = fields.to_vec();
            values.extend(self.stack.drain(position + 1..));
            self.stack.truncate(position);
            return Ok(Some(Value::Fun(number, Fields::new(values))));
        }
        if link == Link::Push {
            self.frames.push(Frame::Return(registers.clone()));
        }
        if count > missing {
            let rest = self.stack.drain(position + 1 + missing..).collect();
            self.frames.push(Frame::Apply(rest, span));
        }
        let at = position + 1..position + 1;
        match fields.unique() {
            Some(owned) => {
                let (captures, args) = owned.split_at_mut(captured);
                if !args.is_empty() {
                    drop(self.stack.splice(at, args.iter_mut().map(std::mem::take)));
                }
                self.stack.extend(captures.iter_mut().map(std::mem::take));
            }
            None => {
                let (captures, args) = fields.split_at(captured);
                if !args.is_empty() {
                    drop(self.stack.splice(at, args.iter().cloned()));
                }
                self.stack.extend(captures.iter().cloned());
            }
        }
        self.enter(code, position + 1, registers, span)?;
        Ok(None)
    }

    fn enter(&mut self, code: Rc<Code>, base: usize, registers: &mut Registers, span: Span) -> Outcome<()> {
        *registers = Registers { code, at: 0, base };
        self.need_memory(0, span)
    }

    /// Calls a member of a recursive group, whose arguments lie above a free place.
    fn call_member(
        &mut self,
        number: u32,
        environment: Option<u32>,
        registers: &mut Registers,
        link: Link,
        span: Span,
    ) -> Outcome<()> {
        let code = self.codes.get(number).clone();
        let environment = environment.map(|slot| self.stack[registers.base + slot as usize].clone());
        if link == Link::Tail {
            let start = self.stack.len() - code.params - 1;
            drop(self.stack.drain(registers.base - 1..start));
        } else {
            self.frames.push(Frame::Return(registers.clone()));
        }
        let base = self.stack.len() - code.params;
        self.stack.extend(environment);
        self.enter(code, base, registers, span)
    }

    /// Hands a value to what waits for it. Gives it back if it is what was asked for.
    fn resume(&mut self, mut value: Value, registers: &mut Registers) -> Outcome<Option<Value>> {
        loop {
            let Some(frame) = self.frames.pop() else { return Ok(Some(value)) };
            let (count, span) = match frame {
                Frame::Return(saved) => {
                    *registers = saved;
                    self.stack.push(value);
                    return Ok(None);
                }
                Frame::Halt => return Ok(Some(value)),
                Frame::Global(number) => {
                    self.globals[number as usize] = Entry::Known(value.clone());
                    continue;
                }
                Frame::Apply(args, span) => {
                    self.stack.push(value);
                    let count = args.len();
                    self.stack.extend(args);
                    (count, span)
                }
                Frame::Build(mut building) => {
                    let span = building.span;
                    building.items.push(value).map_err(|problem| RuntimeError::new(problem, span))?;
                    if building.items.len() == building.count {
                        value = building.items.finish();
                        continue;
                    }
                    self.stack.push(building.function.clone());
                    self.stack.push(Value::Int(building.items.len() as i64));
                    self.frames.push(Frame::Build(building));
                    (1, span)
                }
                Frame::Ifold { function, index, count, span } => {
                    if index + 1 == count {
                        continue;
                    }
                    self.stack.push(function.clone());
                    self.stack.push(Value::Int(index + 1));
                    self.stack.push(value);
                    self.frames.push(Frame::Ifold { function, index: index + 1, count, span });
                    (2, span)
                }
                Frame::Iterate { function, span } => {
                    let Value::Node(tag, fields) = value else {
                        return Err(internal("`iterate` got no `either`".into(), span));
                    };
                    value = fields.take(0);
                    if tag == 1 {
                        continue;
                    }
                    self.stack.push(function.clone());
                    self.stack.push(value);
                    self.frames.push(Frame::Iterate { function, span });
                    (1, span)
                }
            };
            match self.call(count, registers, Link::Ready, span)? {
                Some(immediate) => value = immediate,
                None => return Ok(None),
            }
        }
    }

    /// The loop. Runs until the innermost `Halt` frame gets its value.
    fn run(&mut self, registers: &mut Registers) -> Outcome<Value> {
        loop {
            let at = registers.at;
            let op = registers.code.ops[at];
            registers.at = at + 1;
            match op {
                Op::Steps(count) => {
                    self.steps += u64::from(count);
                    if self.steps > self.next_look {
                        self.look(registers.code.spans[at])?;
                    }
                }
                Op::Real(x) => self.stack.push(Value::Real(x)),
                Op::Int(i) => self.stack.push(Value::Int(i)),
                Op::Bool(b) => self.stack.push(Value::Bool(b)),
                Op::Unit => self.stack.push(Value::Unit),
                Op::Constant(index) => self.stack.push(registers.code.constants[index as usize].clone()),
                Op::Copy(slot) => {
                    let value = self.stack[registers.base + slot as usize].clone();
                    self.stack.push(value);
                }
                Op::Move(slot) => {
                    let value = std::mem::take(&mut self.stack[registers.base + slot as usize]);
                    self.stack.push(value);
                }
                Op::Clear(slot) => self.stack[registers.base + slot as usize] = Value::Unit,
                Op::Component(slot, index, last) => {
                    let position = registers.base + slot as usize;
                    let value = if last {
                        match std::mem::take(&mut self.stack[position]) {
                            Value::Node(_, fields) => fields.take(index as usize),
                            other => return Err(not_a("tuple", &other, registers)),
                        }
                    } else {
                        match &self.stack[position] {
                            Value::Node(_, fields) => fields[index as usize].clone(),
                            other => return Err(not_a("tuple", other, registers)),
                        }
                    };
                    self.stack.push(value);
                }
                Op::Project(index) => match self.pop() {
                    Value::Node(_, fields) => self.stack.push(fields.take(index as usize)),
                    other => return Err(not_a("tuple", &other, registers)),
                },
                Op::Global(number) => {
                    if let Some(Entry::Known(value)) = self.globals.get(number as usize) {
                        self.stack.push(value.clone());
                        continue;
                    }
                    match self.start_global(number, registers.code.spans[at])? {
                        Started::Known(value) => self.stack.push(value),
                        Started::Code(code) => {
                            self.frames.push(Frame::Return(registers.clone()));
                            self.frames.push(Frame::Global(number));
                            self.stack.push(Value::Unit);
                            let code = self.codes.get(code).clone();
                            self.enter(code, self.stack.len(), registers, Span::default())?;
                        }
                    }
                }
                Op::Closure(code, count) => {
                    let captured = Fields::pop(&mut self.stack, count as usize);
                    self.stack.push(Value::Fun(code, captured));
                }
                Op::Call(count) => {
                    let span = registers.code.spans[at];
                    if let Some(value) = self.call(count as usize, registers, Link::Push, span)? {
                        self.stack.push(value);
                    }
                }
                Op::TailCall(count) => {
                    let span = registers.code.spans[at];
                    if let Some(value) = self.call(count as usize, registers, Link::Tail, span)? {
                        if let Some(value) = self.resume(value, registers)? {
                            return Ok(value);
                        }
                    }
                }
                Op::CallMember(code, environment) => {
                    let span = registers.code.spans[at];
                    self.call_member(code, environment, registers, Link::Push, span)?;
                }
                Op::TailCallMember(code, environment) => {
                    let span = registers.code.spans[at];
                    self.call_member(code, environment, registers, Link::Tail, span)?;
                }
                Op::Return => {
                    let value = self.pop();
                    self.stack.truncate(registers.base - 1);
                    if let Some(value) = self.resume(value, registers)? {
                        return Ok(value);
                    }
                }
                Op::Pop => drop(self.pop()),
                Op::Slide(count) => {
                    let value = self.pop();
                    self.stack.truncate(self.stack.len() - count as usize);
                    self.stack.push(value);
                }
                Op::Jump(target) => registers.at = target as usize,
                Op::JumpIfFalse(target) => match self.pop() {
                    Value::Bool(true) => {}
                    Value::Bool(false) => registers.at = target as usize,
                    other => return Err(not_a("bool", &other, registers)),
                },
                Op::Switch(index) => {
                    let targets = &registers.code.switches[index as usize];
                    registers.at = match self.stack.last() {
                        Some(Value::Node(tag, _)) => targets[(*tag as usize).min(targets.len() - 1)] as usize,
                        other => return Err(not_a("constructor", other.unwrap_or(&Value::Unit), registers)),
                    };
                }
                Op::UnpackAll => match self.pop() {
                    Value::Node(_, mut fields) => match fields.unique() {
                        Some(fields) => self.stack.extend(fields.iter_mut().map(std::mem::take)),
                        None => self.stack.extend(fields.iter().cloned()),
                    },
                    other => return Err(not_a("constructor", &other, registers)),
                },
                Op::Unpack(mask) => {
                    let mask = registers.code.masks[mask as usize].iter();
                    match self.pop() {
                        Value::Node(_, mut fields) => match fields.unique() {
                            Some(fields) => {
                                let wanted = fields.iter_mut().zip(mask).filter(|(_, wanted)| **wanted);
                                self.stack.extend(wanted.map(|(field, _)| std::mem::take(field)));
                            }
                            None => {
                                let wanted = fields.iter().zip(mask).filter(|(_, wanted)| **wanted);
                                self.stack.extend(wanted.map(|(field, _)| field.clone()));
                            }
                        },
                        other => return Err(not_a("constructor", &other, registers)),
                    }
                }
                Op::Node(tag, count) => {
                    let fields = Fields::pop(&mut self.stack, count as usize);
                    self.stack.push(Value::Node(tag, fields));
                }
                Op::Real1(f) => match self.stack.last_mut() {
                    Some(Value::Real(x)) => *x = f(*x),
                    _ => return Err(wrong_operands(registers)),
                },
                Op::Real2(f) => match (self.stack.pop(), self.stack.last_mut()) {
                    (Some(Value::Real(y)), Some(Value::Real(x))) => *x = f(*x, y),
                    _ => return Err(wrong_operands(registers)),
                },
                Op::RealInt(f) => match (self.stack.pop(), self.stack.last_mut()) {
                    (Some(Value::Int(k)), Some(Value::Real(x))) => *x = f(*x, k),
                    _ => return Err(wrong_operands(registers)),
                },
                Op::IntReal(f) => match (self.stack.pop(), self.stack.last_mut()) {
                    (Some(Value::Real(x)), Some(place @ Value::Int(_))) => {
                        if let Value::Int(k) = *place {
                            *place = Value::Real(f(k, x));
                        }
                    }
                    _ => return Err(wrong_operands(registers)),
                },
                Op::RealToInt(f) => match self.pop() {
                    Value::Real(x) => self.stack.push(Value::Int(f(x))),
                    _ => return Err(wrong_operands(registers)),
                },
                Op::IntToReal(f) => match self.pop() {
                    Value::Int(k) => self.stack.push(Value::Real(f(k))),
                    _ => return Err(wrong_operands(registers)),
                },
                Op::Int1(f) => match self.stack.last_mut() {
                    Some(Value::Int(k)) => *k = f(*k),
                    _ => return Err(wrong_operands(registers)),
                },
                Op::Int2(f) => match (self.stack.pop(), self.stack.last_mut()) {
                    (Some(Value::Int(y)), Some(Value::Int(x))) => match f(*x, y) {
                        Ok(result) => *x = result,
                        Err(error) => return Err(integer_error(error, y, registers.code.spans[at])),
                    },
                    _ => return Err(wrong_operands(registers)),
                },
                Op::GetFrom(slot, last) => {
                    let span = registers.code.spans[at];
                    let index = self.pop();
                    let position = registers.base + slot as usize;
                    let element = self.element(&self.stack[position], &index, span)?;
                    if last {
                        self.stack[position] = Value::Unit;
                    }
                    self.stack.push(element);
                }
                Op::Compare(prim, kink) => {
                    let (right, left) = (self.pop(), self.pop());
                    let result = self.compare(prim, kink, left, right, registers.code.spans[at])?;
                    self.stack.push(Value::Bool(result));
                }
                Op::Not => match self.stack.last_mut() {
                    Some(Value::Bool(b)) => *b = !*b,
                    _ => return Err(wrong_operands(registers)),
                },
                Op::Build(elements) => {
                    let (function, count) = (self.pop(), self.pop());
                    let span = registers.code.spans[at];
                    if let Some(empty) = self.build(elements, count, function, registers, span)? {
                        self.stack.push(empty);
                    }
                }
                Op::Ifold => {
                    let (init, function, count) = (self.pop(), self.pop(), self.pop());
                    let span = registers.code.spans[at];
                    let Value::Int(count) = count else { return Err(wrong_operands(registers)) };
                    if count <= 0 {
                        self.stack.push(init);
                        continue;
                    }
                    self.frames.push(Frame::Return(registers.clone()));
                    self.frames.push(Frame::Ifold { function, index: -1, count, span });
                    self.resume(init, registers)?;
                }
                Op::Iterate => {
                    let (start, function) = (self.pop(), self.pop());
                    let span = registers.code.spans[at];
                    self.frames.push(Frame::Return(registers.clone()));
                    self.frames.push(Frame::Iterate { function, span });
                    self.resume(Value::construct(0, vec![start]), registers)?;
                }
                Op::Vector(prim, ty) => {
                    let span = registers.code.spans[at];
                    let code = registers.code.clone();
                    let right = self.pop();
                    let left = if prim == Prim::ZeroLike { Value::Unit } else { self.pop() };
                    let result = self.vector(prim, &code.types[ty as usize], left, right, span)?;
                    self.stack.push(result);
                }
                Op::Lift(index) => {
                    let site = registers.code.lifts[index as usize].clone();
                    let value = self.pop();
                    let value = self.lift(&site, value, registers.code.spans[at])?;
                    self.stack.push(value);
                }
                Op::ArrayLiteral(elements, count) => {
                    let span = registers.code.spans[at];
                    let start = self.stack.len() - count as usize;
                    let mut items = Collected::new(elements, count as usize);
                    for item in self.stack.drain(start..) {
                        items.push(item).map_err(|problem| RuntimeError::new(problem, span))?;
                    }
                    self.stack.push(items.finish());
                }
                Op::CheckKink(prim) => {
                    let (args, count) = self.numbers(prim);
                    if prim.info().at_kink(&args[..count]) {
                        self.kink(prim, registers.code.spans[at])?;
                    }
                }
                Op::CheckDomain(prim) => {
                    let (args, count) = self.numbers(prim);
                    if prim.info().outside_domain(&args[..count]) {
                        let problem = Problem::OutsideDomain { prim, args: args[..count].to_vec() };
                        return Err(RuntimeError::new(problem, registers.code.spans[at]));
                    }
                }
                Op::Sign
                | Op::StringAppend
                | Op::StringLength
                | Op::StringOfInt
                | Op::StringOfReal
                | Op::Get(_)
                | Op::Length
                | Op::Set
                | Op::CheckSize => self.operation(op, registers.code.spans[at])?,
                Op::Unexpanded => {
                    return Err(internal("a derivative form was not expanded".into(), registers.code.spans[at]));
                }
            }
        }
    }

    pub(crate) fn pop(&mut self) -> Value {
        self.stack.pop().unwrap_or_default()
    }

    pub(crate) fn push(&mut self, value: Value) {
        self.stack.push(value);
    }

    /// The operands of a primitive on numbers, still on the stack, as reals.
    fn numbers(&self, prim: Prim) -> ([f64; 2], usize) {
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

    fn build(
        &mut self,
        elements: Elements,
        count: Value,
        function: Value,
        registers: &mut Registers,
        span: Span,
    ) -> Outcome<Option<Value>> {
        let Value::Int(count) = count else { return Err(wrong_operands(registers)) };
        let Ok(size) = usize::try_from(count) else {
            return Err(RuntimeError::new(Problem::NegativeSize { size: count }, span));
        };
        let width = if elements == Elements::Values { size_of::<Value>() } else { size_of::<f64>() };
        self.need_memory(size.saturating_mul(width), span)?;
        let items = Collected::new(elements, size);
        if size == 0 {
            return Ok(Some(items.finish()));
        }
        self.stack.push(function.clone());
        self.stack.push(Value::Int(0));
        self.frames.push(Frame::Return(registers.clone()));
        self.frames.push(Frame::Build(Box::new(Building { function, count: size, items, span })));
        match self.call(1, registers, Link::Ready, span)? {
            Some(value) => self.resume(value, registers),
            None => Ok(None),
        }
    }
}

enum Started {
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

#[cold]
fn not_a(expected: &str, found: &Value, registers: &Registers) -> Box<RuntimeError> {
    let text = format!("a {} where a {expected} is needed", found.sort());
    internal(text, registers.code.spans[registers.at - 1])
}

#[cold]
fn wrong_operands(registers: &Registers) -> Box<RuntimeError> {
    internal("a primitive got operands of the wrong type".into(), registers.code.spans[registers.at - 1])
}

#[cold]
fn integer_error(error: gradus_core::prim::IntError, exponent: i64, span: Span) -> Box<RuntimeError> {
    let problem = match error {
        gradus_core::prim::IntError::DivisionByZero => Problem::DivisionByZero,
        gradus_core::prim::IntError::NegativeExponent => Problem::NegativeExponent { exponent },
    };
    RuntimeError::new(problem, span)
}

/// What a call trace calls a global.
fn name_of(global: &Global) -> String {
    match global {
        Global::Source { name, .. } => name.to_string(),
        Global::Derived { mode, of } => format!("{}_{mode}", name_of(of)),
        Global::Wrapper { name, .. } => (*name).to_string(),
    }
}
