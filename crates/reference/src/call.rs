//! Calls and returns: arguments, captured values and what to go on with.

use crate::code::{Code, Elements};
use crate::error::{Problem, RuntimeError};
use crate::machine::{internal, Building, Entry, Frame, Link, Machine, Outcome, Registers};
use crate::operations::Collected;
use crate::value::{Fields, Value};
use gradus_core::proved::{LAST_ITERATION, NEXT_ITERATION};
use gradus_source::Span;
use std::rc::Rc;

impl Machine<'_> {
    /// Applies the function that lies below `count` arguments. Gives a value if nothing has to be run.
    pub(crate) fn call(
        &mut self,
        count: usize,
        registers: &mut Registers,
        link: Link,
        span: Span,
    ) -> Outcome<Option<Value>> {
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
        // The body of each but the last parameter is a function.
        self.semantic_steps += count.min(missing - 1) as u64;
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

    pub(crate) fn enter(&mut self, code: Rc<Code>, base: usize, registers: &mut Registers, span: Span) -> Outcome<()> {
        *registers = Registers { code, at: 0, base };
        self.need_memory(0, span)
    }

    /// Calls a member of a recursive group, whose arguments lie above a free place.
    pub(crate) fn call_member(
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
    pub(crate) fn resume(&mut self, mut value: Value, registers: &mut Registers) -> Outcome<Option<Value>> {
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
                        self.semantic_steps += LAST_ITERATION;
                        continue;
                    }
                    self.semantic_steps += NEXT_ITERATION;
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

    /// `build n f`: an empty array at once, otherwise the first call.
    pub(crate) fn build(
        &mut self,
        elements: Elements,
        count: Value,
        function: Value,
        registers: &mut Registers,
        span: Span,
    ) -> Outcome<Option<Value>> {
        let Value::Int(count) = count else { return Err(internal("the size of an array is no integer".into(), span)) };
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
