//! What reverse mode writes down on its way forward: the Delta program of one execution (K Fig. 12), or its trace term with the symbolic derivative
//! (A Fig. 4 to 6, in [`term`]).

mod term;

pub use term::TraceTerm;

use crate::error::DriverError;
use crate::evaluate::{Evaluator, Input};
use crate::function::{Argument, Function};
use crate::{pipeline, Error};
use gradus_core::build::At;
use gradus_core::{Global, Term, Type, Var};
use gradus_reference::Value as Held;
use std::sync::Arc;

/// A run of a function, as linear maps: each binding is a combination of earlier ones.
#[derive(Clone, Debug, PartialEq)]
pub struct DeltaProgram {
    pub value: f64,
    /// The reals of the input are x0, x1, ..., before the first binding.
    pub inputs: Vec<f64>,
    pub bindings: Vec<Binding>,
    /// The derivative of the result, in terms of the bindings.
    pub result: Vec<Summand>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    pub id: i64,
    pub summands: Vec<Summand>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Summand {
    /// `factor * x_id`
    Scaled { factor: f64, id: i64 },
    /// A custom derivative rule, which is a function.
    Rule,
}

impl Function {
    /// Runs a function of one parameter that returns a real, by the monadic translation, and gives what it has written down.
    pub fn trace(&self, argument: &Argument) -> Result<DeltaProgram, Error> {
        let (held, inputs) = self.run_traced(argument, pipeline::delta_program)?;
        match read(&held, inputs) {
            Some(program) => Ok(program),
            None => gradus_source::bug!("a Delta program of another shape"),
        }
    }

    /// The same by symbolic evaluation: the trace term, and its symbolic derivative.
    pub fn trace_term(&self, argument: &Argument) -> Result<TraceTerm, Error> {
        let (held, inputs) = self.run_traced(argument, pipeline::trace_program)?;
        match term::read(&held, inputs) {
            Some(trace) => Ok(trace),
            None => gradus_source::bug!("a trace term of another shape"),
        }
    }

    /// The value of what `wrap` makes of the function and its argument, and the reals of the argument.
    fn run_traced(
        &self,
        argument: &Argument,
        wrap: fn(&pipeline::Linked, &Global, Term, &Type, &Type) -> Term,
    ) -> Result<(Held, Vec<f64>), Error> {
        let (name, ty) = (self.name().to_string(), self.type_text());
        let [from] = self.params() else {
            return Err(self.program().error(DriverError::NotOneParameter { name, ty }));
        };
        if *self.result() != Type::Real {
            return Err(self.program().error(DriverError::NotReal { name, ty }));
        }
        self.check_arguments(std::slice::from_ref(argument))?;
        let inputs = match argument {
            Argument::Value(value) => crate::numeric::reals(value),
            Argument::Reals(view) => view.data().to_vec(),
            Argument::Defined(_) => Vec::new(),
        };
        let mut evaluator = Evaluator::new(self.program())?;
        let function = Global::Source { name: self.definition().clone(), types: Arc::from([]) };
        let (at, x) = (At::default(), Var::fresh("x"));
        let body = wrap(evaluator.linked(), &function, at.var(&x), from, self.result());
        let held = evaluator.apply_term(&at.lambda(&x, from.clone(), body), &[Input { argument, ty: from }])?;
        Ok((held, inputs))
    }
}

/// `((value, delta), (next, bindings))`, the latest binding first.
fn read(held: &Held, inputs: Vec<f64>) -> Option<DeltaProgram> {
    let [dual, state] = fields(held)? else { return None };
    let ([Held::Real(value), delta], [_, list]) = (fields(dual)?, fields(state)?) else { return None };
    let mut bindings = Vec::new();
    let mut rest = fields(list)?;
    while let [binding, tail] = rest {
        let [Held::Int(id), delta] = fields(binding)? else { return None };
        let mut summands = Vec::new();
        collect(delta, 1.0, &mut summands)?;
        bindings.push(Binding { id: *id, summands });
        rest = fields(tail)?;
    }
    bindings.reverse();
    let mut result = Vec::new();
    collect(delta, 1.0, &mut result)?;
    Some(DeltaProgram { value: *value, inputs, bindings, result })
}

fn fields(held: &Held) -> Option<&[Held]> {
    match held {
        Held::Node(_, fields) => Some(fields),
        _ => None,
    }
}

/// `Zero | Scale of real * Delta | Add of Delta * Delta | Var of id | Rule of ...` as a sum.
fn collect(delta: &Held, factor: f64, summands: &mut Vec<Summand>) -> Option<()> {
    gradus_core::traverse::with_stack(|| {
        let Held::Node(tag, fields) = delta else { return None };
        match (tag, &fields[..]) {
            (0, _) => {}
            (1, [Held::Real(by), inner]) => collect(inner, factor * by, summands)?,
            (2, [left, right]) => {
                collect(left, factor, summands)?;
                collect(right, factor, summands)?;
            }
            (3, [Held::Int(id)]) => summands.push(Summand::Scaled { factor, id: *id }),
            (4, _) => summands.push(Summand::Rule),
            _ => return None,
        }
        Some(())
    })
}
