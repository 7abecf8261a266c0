//! The vector-space operations: real by real over data of any shape, without recursion.

use crate::error::{Problem, RuntimeError};
use crate::machine::{internal, refused, Machine, Outcome};
use crate::operations::length;
use crate::value::{Fields, Value};
use gradus_core::{Prim, Type, TypeBody};
use gradus_source::Span;
use std::fmt::Write;

/// What is left to do when a value is rebuilt; `V`: one value, or two in step.
enum Task<V> {
    Visit(V),
    /// Puts the last so many results under a constructor, or into an array.
    Node(u32, usize),
    Array(usize),
}

impl Machine<'_> {
    pub(crate) fn vector(&mut self, prim: Prim, ty: &Type, left: Value, right: Value, span: Span) -> Outcome<Value> {
        match prim {
            Prim::ZeroLike => self.map(right, &|_| 0.0, span),
            Prim::Scale => match left {
                Value::Real(k) => self.map(right, &|x| k * x, span),
                other => Err(internal(format!("a {} scales", other.sort()), span)),
            },
            Prim::VectorAdd => self.zip(prim, ty, left, right, &|x, y| x + y, span),
            Prim::VectorSub => self.zip(prim, ty, left, right, &|x, y| x - y, span),
            Prim::Inner => self.inner(ty, left, right, span).map(Value::Real),
            other => gradus_source::bug!("{other:?} is no operation on vectors"),
        }
    }

    fn map(&mut self, value: Value, f: &dyn Fn(f64) -> f64, span: Span) -> Outcome<Value> {
        let mut tasks = vec![Task::Visit(value)];
        let mut results = Vec::new();
        while let Some(task) = tasks.pop() {
            let result = match task {
                Task::Node(tag, count) => Value::Node(tag, Fields::pop(&mut results, count)),
                Task::Array(count) => Value::Array(Fields::pop(&mut results, count)),
                Task::Visit(Value::Real(x)) => {
                    self.steps += 1;
                    Value::Real(f(x))
                }
                Task::Visit(Value::Reals(mut xs)) => {
                    self.steps += xs.len() as u64;
                    match xs.unique() {
                        Some(own) => {
                            own.iter_mut().for_each(|x| *x = f(*x));
                            Value::Reals(xs)
                        }
                        None => Value::reals(xs.iter().map(|x| f(*x)).collect()),
                    }
                }
                Task::Visit(Value::Node(tag, fields)) => {
                    tasks.push(Task::Node(tag, fields.len()));
                    tasks.extend(fields.iter().rev().cloned().map(Task::Visit));
                    continue;
                }
                Task::Visit(Value::Array(items)) => {
                    tasks.push(Task::Array(items.len()));
                    tasks.extend(items.iter().rev().cloned().map(Task::Visit));
                    continue;
                }
                Task::Visit(
                    leaf @ (Value::Unit | Value::Bool(_) | Value::Int(_) | Value::String(_) | Value::Ints(_)),
                ) => leaf,
                Task::Visit(Value::Fun(..)) => return Err(internal("a function in a vector".into(), span)),
            };
            results.push(result);
        }
        self.need_memory(0, span)?;
        Ok(results.pop().unwrap_or_default())
    }

    fn zip(
        &mut self,
        prim: Prim,
        ty: &Type,
        left: Value,
        right: Value,
        f: &dyn Fn(f64, f64) -> f64,
        span: Span,
    ) -> Outcome<Value> {
        if let (Value::Real(x), Value::Real(y)) = (&left, &right) {
            self.steps += 1;
            return Ok(Value::Real(f(*x, *y)));
        }
        if differ(&left, &right) {
            return Err(self.shapes_differ(prim, ty, &left, &right, span));
        }
        let mut tasks = vec![Task::Visit((left.clone(), right.clone()))];
        let mut results = Vec::new();
        while let Some(task) = tasks.pop() {
            let (x, y) = match task {
                Task::Node(tag, count) => {
                    let fields = Fields::pop(&mut results, count);
                    results.push(Value::Node(tag, fields));
                    continue;
                }
                Task::Array(count) => {
                    let fields = Fields::pop(&mut results, count);
                    results.push(Value::Array(fields));
                    continue;
                }
                Task::Visit(pair) => pair,
            };
            if differ(&x, &y) {
                return Err(self.shapes_differ(prim, ty, &left, &right, span));
            }
            let result = match (x, y) {
                (Value::Real(x), Value::Real(y)) => {
                    self.steps += 1;
                    Value::Real(f(x, y))
                }
                (Value::Reals(xs), Value::Reals(ys)) => {
                    self.steps += xs.len() as u64;
                    Value::reals(xs.iter().zip(ys.iter()).map(|(x, y)| f(*x, *y)).collect())
                }
                (Value::Node(tag, xs), Value::Node(_, ys)) => {
                    tasks.push(Task::Node(tag, xs.len()));
                    tasks.extend(xs.iter().cloned().zip(ys.iter().cloned()).rev().map(Task::Visit));
                    continue;
                }
                (Value::Array(xs), Value::Array(ys)) => {
                    tasks.push(Task::Array(xs.len()));
                    tasks.extend(xs.iter().cloned().zip(ys.iter().cloned()).rev().map(Task::Visit));
                    continue;
                }
                (leaf, _) => leaf,
            };
            results.push(result);
        }
        self.need_memory(0, span)?;
        Ok(results.pop().unwrap_or_default())
    }

    fn inner(&mut self, ty: &Type, left: Value, right: Value, span: Span) -> Outcome<f64> {
        let mut sum = 0.0;
        let mut pending = vec![(&left, &right)];
        while let Some((x, y)) = pending.pop() {
            if differ(x, y) {
                return Err(self.shapes_differ(Prim::Inner, ty, &left, &right, span));
            }
            match (x, y) {
                (Value::Real(x), Value::Real(y)) => {
                    self.steps += 1;
                    sum += x * y;
                }
                (Value::Reals(xs), Value::Reals(ys)) => {
                    self.steps += xs.len() as u64;
                    xs.iter().zip(ys.iter()).for_each(|(x, y)| sum += x * y);
                }
                (Value::Node(_, xs), Value::Node(_, ys)) | (Value::Array(xs), Value::Array(ys)) => {
                    pending.extend(xs.iter().zip(ys.iter()).rev());
                }
                _ => {}
            }
        }
        Ok(sum)
    }

    /// Says where two values differ, in the words of their type.
    #[cold]
    fn shapes_differ(&self, prim: Prim, ty: &Type, left: &Value, right: &Value, span: Span) -> Box<RuntimeError> {
        let (steps, x, y) = first_difference(left, right);
        let place = match self.place(ty, left, &steps) {
            Ok(place) => place,
            Err(refusal) => return refused(refusal, span),
        };
        let name = |value: &Value| match (value, length(value)) {
            (_, Some(length)) => format!("length {length}"),
            (Value::Node(tag, _), None) => match place.constructors.get(*tag as usize) {
                Some(name) => format!("`{name}`"),
                None => format!("constructor {tag}"),
            },
            (other, None) => other.sort().to_string(),
        };
        let (left, right) = (name(x), name(y));
        let problem = Problem::ShapesDiffer { operator: prim.info().name, path: place.path, left, right };
        RuntimeError::new(problem, span)
    }

    /// Follows steps into a value of a type: `.left[3]`.
    fn place(&self, ty: &Type, value: &Value, steps: &[usize]) -> Result<Place, Box<gradus_source::Diagnostic>> {
        let (mut ty, mut value, mut path, mut tail) = (ty.clone(), value, String::new(), None::<usize>);
        let mut constructors = Vec::new();
        for step in steps.iter().copied().map(Some).chain([None]) {
            let is_list = matches!(&ty, Type::Named(name, _) if &*name.base == "list");
            // A step along a list counts; the position is written when the list is left.
            match (is_list, tail, step) {
                (true, before, Some(1)) => tail = Some(before.unwrap_or(0) + 1),
                (true, before, _) => {
                    if step.is_some() || before.is_some() {
                        let _ = write!(path, "[{}]", before.unwrap_or(0));
                    }
                    tail = None;
                }
                (false, _, _) => {}
            }
            let (Value::Node(_, parts) | Value::Array(parts)) = value else { break };
            let next = match &ty {
                Type::Tuple(types) => step.and_then(|i| types.get(i).map(|t| (t.clone(), format!(".{i}")))),
                Type::Array(element) => step.map(|i| ((**element).clone(), format!("[{i}]"))),
                Type::Named(name, args) => {
                    let decl = self.definitions.type_decl(name)?;
                    let tag = if let Value::Node(tag, _) = value { *tag as usize } else { 0 };
                    let all = decl.constructors(args);
                    constructors = all.iter().map(|(name, _)| name.to_string()).collect();
                    let part = step.and_then(|i| all.get(tag).and_then(|(_, types)| types.get(i)).cloned());
                    let label = |i: usize| match &decl.body {
                        TypeBody::Record(fields) => fields.get(i).map_or(String::new(), |(f, _)| format!(".{f}")),
                        TypeBody::Variant(_) if is_list => String::new(),
                        TypeBody::Variant(_) => format!(".{i}"),
                    };
                    part.zip(step).map(|(ty, i)| (ty, label(i)))
                }
                Type::Var(_) | Type::Real | Type::Int | Type::Bool | Type::String | Type::Unit | Type::Fun(_) => None,
            };
            let (Some((part, label)), Some(index)) = (next, step) else { break };
            path.push_str(&label);
            ty = part;
            match parts.get(index) {
                Some(part) => value = part,
                None => break,
            }
        }
        Ok(Place { path, constructors })
    }
}

struct Place {
    path: String,
    /// The constructors of the type at the end of the path.
    constructors: Vec<String>,
}

/// Whether two values differ at the top: another constructor, another length.
fn differ(x: &Value, y: &Value) -> bool {
    match (x, y) {
        (Value::Node(s, _), Value::Node(t, _)) => s != t,
        _ => length(x) != length(y),
    }
}

/// The way to the first difference, and the two values there.
fn first_difference<'v>(left: &'v Value, right: &'v Value) -> (Vec<usize>, &'v Value, &'v Value) {
    // Each entry: the entry that it came from, and the step.
    let mut trail: Vec<(usize, usize)> = vec![(0, 0)];
    let mut pending = vec![(0, left, right)];
    while let Some((at, x, y)) = pending.pop() {
        if differ(x, y) {
            let (mut steps, mut at) = (Vec::new(), at);
            while at != 0 {
                steps.push(trail[at].1);
                at = trail[at].0;
            }
            steps.reverse();
            return (steps, x, y);
        }
        if let (Value::Node(_, xs), Value::Node(_, ys)) | (Value::Array(xs), Value::Array(ys)) = (x, y) {
            for (step, (x, y)) in xs.iter().zip(ys.iter()).enumerate().rev() {
                trail.push((at, step));
                pending.push((trail.len() - 1, x, y));
            }
        }
    }
    (Vec::new(), left, right)
}
