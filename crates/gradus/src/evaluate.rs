//! The driver's side of the reference evaluator: the linked program on a machine, with its data, and values on their way in and out.

use crate::constants;
use crate::error::DriverError;
use crate::function::{Argument, ArrayView};
use crate::pipeline;
use crate::schema::{Schema, Shape};
use crate::value::{Parts, Reals};
use crate::{Error, Program, Value};
use gradus_core::traverse::with_stack;
use gradus_core::{Global, Symbol, Term, Type};
use gradus_reference::{Machine, Report, RuntimeError, Value as Held};
use std::sync::Arc;

/// A program ready to be evaluated by the reference evaluator. Top-level values are computed when they are needed first, and kept.
pub struct Evaluator {
    program: Program,
    linked: Arc<pipeline::Linked>,
    machine: Machine<'static>,
}

/// See [`Evaluator::prepare`].
#[derive(Clone)]
pub(crate) struct Prepared {
    function: Held,
    arguments: Vec<Held>,
}

/// An argument with the type of its parameter.
pub struct Input<'a> {
    pub argument: &'a Argument<'a>,
    pub ty: &'a Type,
}

impl Evaluator {
    /// Links the program and loads its data.
    pub fn new(program: &Program) -> Result<Self, Error> {
        Evaluator::knowing(program, &[])
    }

    /// The same for a program of which some values have been computed already.
    pub(crate) fn knowing(program: &Program, known: &[(&Symbol, &Type, &Value)]) -> Result<Self, Error> {
        let data = program.data()?;
        let core = constants::with_data(program.core(), known.iter().map(|(name, ..)| *name));
        let linked = pipeline::link(&core, program.options());
        let mut machine = pipeline::machine(linked.clone(), program.options());
        let schema = program.schema();
        let loaded = data.iter().map(|(name, ty, value)| (name, ty, value));
        for (name, ty, value) in loaded.chain(known.iter().copied()) {
            machine.set_data(name, to_held(value, ty, &schema));
        }
        Ok(Evaluator { program: program.clone(), linked, machine })
    }

    /// The value of a term of the program that is no definition, such as that of `show e`.
    pub fn term(&mut self, term: &Term, ty: &Type) -> Result<Value, Error> {
        let term = pipeline::expand(&self.linked, term, ty).map_err(|refused| self.program.errors(vec![*refused]))?;
        let held = self.machine.eval(&term).map_err(|error| self.stopped(&error))?;
        Ok(from_held(&held, ty, &self.program.schema()))
    }

    /// The value of a definition of the given type.
    pub fn value(&mut self, definition: &Symbol, ty: &Type) -> Result<Value, Error> {
        self.apply(definition, &[], ty)
    }

    /// A definition applied to arguments; without arguments, its value.
    pub fn apply(&mut self, definition: &Symbol, inputs: &[Input], result: &Type) -> Result<Value, Error> {
        let function = self.definition(definition)?;
        let held = self.apply_held(function, inputs)?;
        Ok(from_held(&held, result, &self.program.schema()))
    }

    /// A term that is a function of the program, applied to arguments; the result stays with the machine.
    pub(crate) fn apply_term(&mut self, function: &Term, inputs: &[Input]) -> Result<Held, Error> {
        let function = self.machine.eval(function).map_err(|error| self.stopped(&error))?;
        self.apply_held(function, inputs)
    }

    pub(crate) fn linked(&self) -> &pipeline::Linked {
        &self.linked
    }

    /// A definition and its arguments, ready to be applied again and again.
    pub(crate) fn prepare(&mut self, definition: &Symbol, inputs: &[Input]) -> Result<Prepared, Error> {
        let arguments = self.held(inputs)?;
        Ok(Prepared { function: self.definition(definition)?, arguments })
    }

    pub(crate) fn run(&mut self, prepared: Prepared) -> Result<Held, Error> {
        let Prepared { function, arguments } = prepared;
        let result = if arguments.is_empty() { Ok(function) } else { self.machine.apply(function, arguments) };
        result.map_err(|error| self.stopped(&error))
    }

    /// A value of the machine as plain data.
    pub(crate) fn plain(&self, held: &Held, ty: &Type) -> Value {
        from_held(held, ty, &self.program.schema())
    }

    fn apply_held(&mut self, function: Held, inputs: &[Input]) -> Result<Held, Error> {
        let arguments = self.held(inputs)?;
        self.run(Prepared { function, arguments })
    }

    fn held(&mut self, inputs: &[Input]) -> Result<Vec<Held>, Error> {
        let program = self.program.clone();
        let schema = program.schema();
        let mut held = Vec::new();
        for input in inputs {
            held.push(match input.argument {
                Argument::Value(value) => to_held(value, input.ty, &schema),
                Argument::Reals(view) => block_to_held(view.shape(), view.data()),
                Argument::Defined(name) => self.definition(name)?,
            });
        }
        Ok(held)
    }

    /// A function from vectors to a vector applied: the numbers go in and come out without being copied.
    pub fn apply_vectors(&mut self, definition: &Symbol, vectors: Vec<Vec<f64>>) -> Result<Vec<f64>, Error> {
        let function = self.definition(definition)?;
        let held = vectors.into_iter().map(Held::reals);
        let result = self.machine.apply(function, held).map_err(|error| self.stopped(&error))?;
        // An empty array has no reals to be stored flat.
        Ok(result.into_reals().unwrap_or_default())
    }

    fn definition(&mut self, name: &Symbol) -> Result<Held, Error> {
        let global = Global::Source { name: name.clone(), types: Arc::from([]) };
        self.machine.global(&global).map_err(|error| self.stopped(&error))
    }

    fn stopped(&self, error: &RuntimeError) -> Error {
        self.program.errors(vec![error.diagnostic()])
    }

    /// The kinks met so far, as warnings; none unless they are counted.
    pub fn kinks(&self) -> Error {
        let kinks = self.report().kinks;
        self.program.errors(kinks.into_iter().map(|kink| DriverError::KinkMet(kink).diagnostic()).collect())
    }

    /// Steps, memory and kinks so far.
    pub fn report(&self) -> Report {
        self.machine.report()
    }
}

/// Whether a value fits a type, so that the evaluator may rely on it; otherwise what does not fit.
pub fn check(argument: &Argument, ty: &Type, schema: &Schema) -> Result<(), String> {
    match argument {
        Argument::Defined(_) => Ok(()),
        Argument::Reals(view) => match Schema::rank_of_reals(ty) {
            Some(rank) if rank == view.shape().len() => Ok(()),
            _ => Err(format!("a block of reals with {} dimensions was given", view.shape().len())),
        },
        Argument::Value(value) => crate::fits::check(value, ty, schema).map_err(|misfit| misfit.to_string()),
    }
}

/// A value for the machine. The value fits the type.
fn to_held(value: &Value, ty: &Type, schema: &Schema) -> Held {
    with_stack(|| match value {
        Value::Unit => Held::Unit,
        Value::Bool(b) => Held::Bool(*b),
        Value::Int(i) => Held::Int(*i),
        Value::Real(x) => Held::Real(*x),
        Value::String(s) => Held::string(s),
        Value::Reals(block) => block_to_held(block.shape(), block.data()),
        Value::Function => gradus_source::bug!("a function came in from outside"),
        Value::Tuple(_) | Value::Record { .. } | Value::Variant { .. } | Value::List(_) | Value::Array(_) => {
            composite_to_held(value, ty, schema)
        }
    })
}

fn composite_to_held(value: &Value, ty: &Type, schema: &Schema) -> Held {
    let all = |parts: &[Value], types: &[Type]| -> Vec<Held> {
        parts.iter().zip(types).map(|(part, ty)| to_held(part, ty, schema)).collect()
    };
    match (&*schema.shape(ty), value) {
        (Shape::Tuple(types), Value::Tuple(parts)) => Held::tuple(all(parts, types)),
        (Shape::Record { types, .. }, Value::Record { parts, .. }) => Held::construct(0, all(parts, types)),
        (Shape::Variant { constructors, .. }, Value::Variant { constructor, parts }) => {
            let found = constructors.iter().enumerate().find(|(_, (name, _))| name == constructor);
            let (tag, types) = found.map_or((0, &[][..]), |(tag, (_, types))| (tag, types));
            Held::construct(tag, all(parts, types))
        }
        (Shape::List(element), Value::List(parts)) => {
            let empty = Held::construct(EMPTY, Vec::new());
            parts
                .iter()
                .rev()
                .fold(empty, |tail, head| Held::construct(CONS, vec![to_held(head, element, schema), tail]))
        }
        (Shape::Array(Type::Real), Value::Array(parts)) => {
            Held::reals(parts.iter().filter_map(Value::as_real).collect())
        }
        (Shape::Array(Type::Int), Value::Array(parts)) => {
            let int = |part: &Value| if let Value::Int(i) = part { *i } else { 0 };
            Held::ints(parts.iter().map(int).collect())
        }
        (Shape::Array(element), Value::Array(parts)) => {
            let items: Vec<Held> = parts.iter().map(|part| to_held(part, element, schema)).collect();
            Held::Array(items.into())
        }
        _ => gradus_source::bug!("a value that does not fit its type"),
    }
}

/// The tags of the constructors of `list`.
const EMPTY: usize = 0;
const CONS: usize = 1;

fn block_to_held(shape: &[usize], data: &[f64]) -> Held {
    match shape {
        [] | [_] => Held::reals(data.to_vec()),
        [len, inner @ ..] => {
            let step: usize = inner.iter().product();
            let row = |i: usize| block_to_held(inner, data.get(i * step..(i + 1) * step).unwrap_or_default());
            Held::Array((0..*len).map(row).collect::<Vec<_>>().into())
        }
    }
}

/// A value of the machine as plain data.
fn from_held(held: &Held, ty: &Type, schema: &Schema) -> Value {
    with_stack(|| {
        if let Some(rank) = Schema::rank_of_reals(ty) {
            return reals_from_held(held, rank);
        }
        match held {
            Held::Unit => Value::Unit,
            Held::Bool(b) => Value::Bool(*b),
            Held::Int(i) => Value::Int(*i),
            Held::Real(x) => Value::Real(*x),
            Held::String(s) => Value::from(&**s),
            Held::Fun(..) => Value::Function,
            Held::Ints(items) => Value::Array(items.iter().map(|i| Value::Int(*i)).collect()),
            Held::Reals(items) => Value::from(&items[..]),
            Held::Array(items) => match &*schema.shape(ty) {
                Shape::Array(element) => {
                    Value::Array(items.iter().map(|item| from_held(item, element, schema)).collect())
                }
                _ => Value::Array(Parts::default()),
            },
            Held::Node(tag, fields) => node_from_held(*tag as usize, fields, ty, schema),
        }
    })
}

fn node_from_held(tag: usize, fields: &[Held], ty: &Type, schema: &Schema) -> Value {
    let all = |types: &[Type]| -> Parts { fields.iter().zip(types).map(|(f, ty)| from_held(f, ty, schema)).collect() };
    match &*schema.shape(ty) {
        Shape::Tuple(types) => Value::Tuple(all(types)),
        Shape::Record { fields, types } => Value::Record { fields: fields.clone(), parts: all(types) },
        Shape::Variant { constructors, .. } => match constructors.get(tag) {
            Some((constructor, types)) => Value::Variant { constructor: constructor.clone(), parts: all(types) },
            None => gradus_source::bug!("a tag that the type does not have"),
        },
        Shape::List(element) => {
            let mut items = Vec::new();
            let mut rest = fields;
            while let [head, Held::Node(_, tail)] = rest {
                items.push(from_held(head, element, schema));
                rest = tail;
            }
            Value::List(items.into())
        }
        _ => gradus_source::bug!("a constructor at a type without constructors"),
    }
}

/// An array of arrays of reals as one block. An empty outer array has no inner sizes to tell.
fn reals_from_held(held: &Held, rank: usize) -> Value {
    fn collect(held: &Held, depth: usize, shape: &mut [usize], data: &mut Vec<f64>) {
        match held {
            Held::Reals(items) => {
                shape.get_mut(depth).into_iter().for_each(|size| *size = items.len());
                data.extend_from_slice(items);
            }
            Held::Array(items) => {
                shape.get_mut(depth).into_iter().for_each(|size| *size = items.len());
                items.iter().for_each(|item| collect(item, depth + 1, shape, data));
            }
            _ => {}
        }
    }
    let mut shape = vec![0; rank];
    let mut data = Vec::new();
    collect(held, 0, &mut shape, &mut data);
    match Reals::new(shape, data) {
        Some(block) => Value::Reals(block),
        None => gradus_source::bug!("an array with rows of different sizes"),
    }
}

impl<'a> From<ArrayView<'a>> for Argument<'a> {
    fn from(view: ArrayView<'a>) -> Self {
        Argument::Reals(view)
    }
}

impl<'a> From<&'a Value> for Argument<'a> {
    fn from(value: &'a Value) -> Self {
        Argument::Value(value)
    }
}
