//! What runs a program: the reference evaluator or compiled code, as the options say.

use crate::compiled::Compiled;
use crate::evaluate::{Evaluator, Input};
use crate::function::Argument;
use crate::{Error, Program, Value};
use gradus_core::{Symbol, Term, Type};

/// A program ready to run. What has been evaluated or compiled is kept.
#[allow(clippy::large_enum_variant)] // There is one for each function or run.
pub enum Engine {
    Reference(Evaluator),
    Compiled(Compiled),
}

impl Engine {
    /// Loads the program's data and makes the backend of its options ready.
    pub fn new(program: &Program) -> Result<Self, Error> {
        Ok(if program.options().backend.compiles() {
            Engine::Compiled(Compiled::new(program)?)
        } else {
            Engine::Reference(Evaluator::new(program)?)
        })
    }

    /// Makes ready what will be asked for: the items of the program and some definitions that are no functions, with their types. Only a
    /// compiled backend has anything to do, and does it faster for all at once.
    pub fn prepare(&mut self, definitions: &[(Symbol, Type)]) {
        match self {
            Engine::Reference(_) => {}
            Engine::Compiled(compiled) => compiled.prepare(definitions),
        }
    }

    /// The value of the program's item with this number.
    pub fn item(&mut self, program: &Program, number: usize) -> Result<Value, Error> {
        match self {
            Engine::Compiled(compiled) => compiled.item(number),
            Engine::Reference(evaluator) => match program.core().items.get(number) {
                Some(item) => evaluator.term(&item.term, &item.ty),
                None => gradus_source::bug!("no item {number}"),
            },
        }
    }

    /// The value of a term of the program that is no definition.
    pub fn term(&mut self, term: &Term, ty: &Type) -> Result<Value, Error> {
        match self {
            Engine::Reference(evaluator) => evaluator.term(term, ty),
            Engine::Compiled(compiled) => compiled.term(term, ty),
        }
    }

    /// The value of a definition of the given type.
    pub fn value(&mut self, definition: &Symbol, ty: &Type) -> Result<Value, Error> {
        self.apply(definition, &[], ty)
    }

    /// A definition applied to arguments; without arguments, its value.
    pub fn apply(&mut self, definition: &Symbol, inputs: &[Input], result: &Type) -> Result<Value, Error> {
        match self {
            Engine::Reference(evaluator) => evaluator.apply(definition, inputs, result),
            Engine::Compiled(compiled) => compiled.apply(definition, inputs, result),
        }
    }

    /// A function from vectors to a vector applied, without copying more than the result.
    pub fn apply_vectors(&mut self, definition: &Symbol, vectors: Vec<Vec<f64>>) -> Result<Vec<f64>, Error> {
        let compiled = match self {
            Engine::Reference(evaluator) => return evaluator.apply_vectors(definition, vectors),
            Engine::Compiled(compiled) => compiled,
        };
        let ty = Type::array(Type::Real);
        let values: Vec<Value> = vectors.into_iter().map(Value::from).collect();
        let arguments: Vec<Argument> = values.iter().map(Argument::Value).collect();
        let inputs: Vec<Input> = arguments.iter().map(|argument| Input { argument, ty: &ty }).collect();
        match compiled.apply(definition, &inputs, &ty)? {
            Value::Reals(block) => Ok(block.into_data()),
            _ => gradus_source::bug!("a vector was expected"),
        }
    }

    /// The kinks met so far, as warnings; none unless they are counted, which only the reference evaluator does.
    pub fn kinks(&self) -> Option<Error> {
        match self {
            Engine::Reference(evaluator) => Some(evaluator.kinks()),
            Engine::Compiled(_) => None,
        }
    }

    /// The steps taken so far, where they are counted.
    pub fn steps(&self) -> u64 {
        match self {
            Engine::Reference(evaluator) => evaluator.report().steps,
            Engine::Compiled(_) => 0,
        }
    }
}
