//! Values as plain data: what goes into a machine and comes out of it. Data hold no code and can be sent to another thread.

use crate::machine::{internal, refused, Machine, Outcome};
use crate::value::{Fields, Value};
use gradus_core::{Type, TypeBody};
use gradus_source::Span;
use std::ops::Deref;

/// A value without machine. Names are in the type: fields and constructors stand by position.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    Unit,
    Bool(bool),
    Int(i64),
    Real(f64),
    String(Box<str>),
    Tuple(Parts),
    /// Fields in the order of declaration.
    Record(Parts),
    Construct {
        tag: usize,
        args: Parts,
    },
    List(Parts),
    /// `real[]`
    Reals(Vec<f64>),
    /// `int[]`
    Ints(Vec<i64>),
    /// An array of anything else.
    Array(Parts),
    /// A function cannot leave its machine: only that there was one.
    Function,
}

/// The parts of composite data; freed without recursion, however deep.
#[derive(Default)]
pub struct Parts(Vec<Data>);

impl Parts {
    pub fn into_vec(mut self) -> Vec<Data> {
        std::mem::take(&mut self.0)
    }
}

impl Deref for Parts {
    type Target = [Data];
    fn deref(&self) -> &[Data] {
        &self.0
    }
}

impl From<Vec<Data>> for Parts {
    fn from(parts: Vec<Data>) -> Self {
        Parts(parts)
    }
}

impl Clone for Parts {
    fn clone(&self) -> Self {
        gradus_core::traverse::with_stack(|| Parts(self.0.clone()))
    }
}

impl PartialEq for Parts {
    fn eq(&self, other: &Self) -> bool {
        gradus_core::traverse::with_stack(|| self.0 == other.0)
    }
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        gradus_core::traverse::with_stack(|| self.0.fmt(f))
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        let mut pending = std::mem::take(&mut self.0);
        while let Some(mut data) = pending.pop() {
            match &mut data {
                Data::Tuple(parts)
                | Data::Record(parts)
                | Data::Construct { args: parts, .. }
                | Data::List(parts)
                | Data::Array(parts) => pending.append(&mut parts.0),
                Data::Unit
                | Data::Bool(_)
                | Data::Int(_)
                | Data::Real(_)
                | Data::String(_)
                | Data::Reals(_)
                | Data::Ints(_)
                | Data::Function => {}
            }
        }
    }
}

/// Data that are not of the type at which they were to become a value.
#[derive(Clone, Debug, PartialEq)]
pub struct DataMismatch {
    pub expected: Type,
}

/// What is left to do on the way out: results are put together in the order of the tasks below them.
enum Out {
    Visit(Value, Type),
    Tuple(usize),
    Record(usize),
    Construct(usize, usize),
    List(usize),
    Array(usize),
}

enum In<'d> {
    Visit(&'d Data, Type),
    Node(u32, usize),
    List(usize),
    Array(usize),
}

impl Machine<'_> {
    /// A value of a type as plain data.
    pub fn to_data(&self, value: &Value, ty: &Type) -> Outcome<Data> {
        let mut tasks = vec![Out::Visit(value.clone(), ty.clone())];
        let mut results: Vec<Data> = Vec::new();
        while let Some(task) = tasks.pop() {
            let mut last = |count: usize| Parts(results.split_off(results.len() - count));
            let result = match task {
                Out::Tuple(count) => Data::Tuple(last(count)),
                Out::Record(count) => Data::Record(last(count)),
                Out::Construct(tag, count) => Data::Construct { tag, args: last(count) },
                Out::List(count) => Data::List(last(count)),
                Out::Array(count) => Data::Array(last(count)),
                Out::Visit(value, ty) => match self.leaf(value, &ty, &mut tasks)? {
                    Some(leaf) => leaf,
                    None => continue,
                },
            };
            results.push(result);
        }
        Ok(results.pop().unwrap_or(Data::Unit))
    }

    /// A value without parts, or the tasks for its parts.
    fn leaf(&self, value: Value, ty: &Type, tasks: &mut Vec<Out>) -> Outcome<Option<Data>> {
        let visit = |tasks: &mut Vec<Out>, values: &[Value], types: &[Type]| {
            tasks.extend(values.iter().zip(types).rev().map(|(v, t)| Out::Visit(v.clone(), t.clone())));
        };
        Ok(Some(match (value, ty) {
            (Value::Unit, _) => Data::Unit,
            (Value::Bool(b), _) => Data::Bool(b),
            (Value::Int(i), _) => Data::Int(i),
            (Value::Real(x), _) => Data::Real(x),
            (Value::String(s), _) => Data::String((*s).into()),
            (Value::Fun(..), _) => Data::Function,
            (Value::Reals(xs), _) => Data::Reals(xs.to_vec()),
            (Value::Ints(xs), _) => Data::Ints(xs.to_vec()),
            (Value::Array(items), Type::Array(element)) => {
                tasks.push(Out::Array(items.len()));
                tasks.extend(items.iter().rev().map(|item| Out::Visit(item.clone(), (**element).clone())));
                return Ok(None);
            }
            (Value::Node(_, parts), Type::Tuple(types)) => {
                tasks.push(Out::Tuple(parts.len()));
                visit(tasks, &parts, types);
                return Ok(None);
            }
            (Value::Node(tag, parts), Type::Named(_, args)) if is_list(ty) => {
                // The spine of a list, in a loop.
                let element = args.first().cloned().unwrap_or(Type::Unit);
                let mut items = Vec::new();
                let (mut tag, mut parts) = (tag, parts);
                while tag == 1 {
                    let [head, tail] = &parts[..] else { break };
                    items.push(head.clone());
                    let Value::Node(next_tag, next) = tail.clone() else { break };
                    (tag, parts) = (next_tag, next);
                }
                tasks.push(Out::List(items.len()));
                tasks.extend(items.into_iter().rev().map(|item| Out::Visit(item, element.clone())));
                return Ok(None);
            }
            (Value::Node(tag, parts), Type::Named(name, args)) => {
                let decl = self.definitions.type_decl(name).map_err(|refusal| refused(refusal, Span::default()))?;
                let constructors = decl.constructors(args);
                let types = constructors.get(tag as usize).map_or(&[][..], |(_, types)| types);
                tasks.push(match &decl.body {
                    TypeBody::Record(_) => Out::Record(parts.len()),
                    TypeBody::Variant(_) => Out::Construct(tag as usize, parts.len()),
                });
                visit(tasks, &parts, types);
                return Ok(None);
            }
            (value, ty) => {
                let ty = gradus_core::print::print_type(ty);
                return Err(internal(format!("a {} where a {ty} was promised", value.sort()), Span::default()));
            }
        }))
    }

    /// Plain data as a value of a type. Arrays must be regular already.
    pub fn from_data(&self, data: &Data, ty: &Type) -> Result<Value, DataMismatch> {
        let mut tasks = vec![In::Visit(data, ty.clone())];
        let mut results: Vec<Value> = Vec::new();
        while let Some(task) = tasks.pop() {
            let result = match task {
                In::Node(tag, count) => Value::Node(tag, Fields::pop(&mut results, count)),
                In::Array(count) => Value::Array(Fields::pop(&mut results, count)),
                In::List(count) => {
                    let items = results.split_off(results.len() - count);
                    let nil = Value::Node(0, Fields::default());
                    items.into_iter().rev().fold(nil, |tail, head| Value::construct(1, vec![head, tail]))
                }
                In::Visit(data, ty) => {
                    let mismatch = || DataMismatch { expected: ty.clone() };
                    match (data, &ty) {
                        (Data::Unit, Type::Unit) => Value::Unit,
                        (Data::Bool(b), Type::Bool) => Value::Bool(*b),
                        (Data::Int(i), Type::Int) => Value::Int(*i),
                        (Data::Real(x), Type::Real) => Value::Real(*x),
                        (Data::String(s), Type::String) => Value::string(s),
                        (Data::Reals(xs), Type::Array(element)) if **element == Type::Real => Value::reals(xs.clone()),
                        (Data::Ints(xs), Type::Array(element)) if **element == Type::Int => Value::ints(xs.clone()),
                        (Data::Array(items), Type::Array(element)) => match &**element {
                            Type::Real if items.is_empty() => Value::reals(Vec::new()),
                            Type::Int if items.is_empty() => Value::ints(Vec::new()),
                            Type::Real | Type::Int => return Err(mismatch()),
                            element => {
                                tasks.push(In::Array(items.len()));
                                tasks.extend(items.iter().rev().map(|item| In::Visit(item, element.clone())));
                                continue;
                            }
                        },
                        (Data::List(items), Type::Named(_, args)) if is_list(&ty) => {
                            let element = args.first().cloned().unwrap_or(Type::Unit);
                            tasks.push(In::List(items.len()));
                            tasks.extend(items.iter().rev().map(|item| In::Visit(item, element.clone())));
                            continue;
                        }
                        (Data::Tuple(parts), Type::Tuple(types)) if parts.len() == types.len() => {
                            tasks.push(In::Node(0, parts.len()));
                            tasks.extend(parts.iter().zip(types.iter().cloned()).rev().map(|(p, t)| In::Visit(p, t)));
                            continue;
                        }
                        (Data::Record(parts) | Data::Construct { args: parts, .. }, Type::Named(name, args)) => {
                            let tag = if let Data::Construct { tag, .. } = data { *tag } else { 0 };
                            let decl = self.definitions.type_decl(name).map_err(|_| mismatch())?;
                            let constructors = decl.constructors(args);
                            let Some((_, types)) = constructors.get(tag) else { return Err(mismatch()) };
                            if types.len() != parts.len() {
                                return Err(mismatch());
                            }
                            tasks.push(In::Node(tag as u32, parts.len()));
                            tasks.extend(parts.iter().zip(types.iter().cloned()).rev().map(|(p, t)| In::Visit(p, t)));
                            continue;
                        }
                        _ => return Err(mismatch()),
                    }
                }
            };
            results.push(result);
        }
        Ok(results.pop().unwrap_or_default())
    }
}

fn is_list(ty: &Type) -> bool {
    matches!(ty, Type::Named(name, args) if &*name.base == "list" && name.modes.is_empty() && args.len() == 1)
}
