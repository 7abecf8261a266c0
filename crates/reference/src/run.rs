//! The loop that runs code.

use crate::code::Op;
use crate::error::{Problem, RuntimeError};
use crate::machine::{internal, Entry, Frame, Link, Machine, Outcome, Registers, Started};
use crate::operations::Collected;
use crate::value::{Fields, Value};
use gradus_core::prim::IntError;
use gradus_core::proved::EARLIER_CONSTRUCTOR;
use gradus_core::Prim;
use gradus_source::Span;

impl Machine<'_> {
    /// The loop. Runs until the innermost `Halt` frame gets its value.
    pub(crate) fn run(&mut self, registers: &mut Registers) -> Outcome<Value> {
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
                Op::SemanticSteps(count) => self.semantic_steps += u64::from(count),
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
                Op::ConstructorSteps => {
                    if let Some(Value::Node(tag, _)) = self.stack.last() {
                        self.semantic_steps += EARLIER_CONSTRUCTOR * u64::from(*tag);
                    }
                }
                Op::TurnSteps(depth, each) => {
                    let turns = self.stack.len().checked_sub(depth as usize + 1).and_then(|at| self.stack.get(at));
                    if let Some(Value::Int(turns)) = turns {
                        self.semantic_steps += u64::from(each) * u64::try_from(*turns).unwrap_or(0);
                    }
                }
                Op::CheckKink(prim) => {
                    let (args, count) = self.numbers(prim);
                    if prim.info().at_kink(&args[..count]) {
                        self.kink(prim, registers.code.spans[at])?;
                    }
                }
                Op::CheckPremise(prim) => {
                    let (args, count) = self.numbers(prim);
                    if prim.info().outside_premise(&args[..count]) {
                        self.kink(prim, registers.code.spans[at])?;
                    }
                }
                Op::CheckDomain(prim, partial_of) => {
                    let (args, count) = self.numbers(prim);
                    if prim.info().outside_domain(&args[..count]) {
                        let problem = Problem::OutsideDomain { prim, partial_of, args: args[..count].to_vec() };
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
fn integer_error(error: IntError, exponent: i64, span: Span) -> Box<RuntimeError> {
    let problem = match error {
        IntError::DivisionByZero => Problem::DivisionByZero,
        IntError::NegativeExponent => Problem::NegativeExponent { exponent },
    };
    RuntimeError::new(problem, span)
}
