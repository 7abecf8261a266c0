//! Runs of the forward derivative that ships: its text, translated, in the extracted semantics, and the derivative itself in our evaluator, at a point with
//! tangents. Values must be equal bit for bit, steps exactly, and the steps within what `K_forward_mode` allows for the steps of the program.

use crate::translate::Translator;
use crate::types::{ty, Outside};
use crate::values::{same, write};
use crate::wire::Sexp;
use gradus_core::traverse::with_stack;
use gradus_core::{Definitions, Global, Lambda, Type};
use gradus_derive::Linker;
use gradus_generate::Data;
use gradus_reference::{Machine, RuntimeError, Value};

/// The factor of `K_forward_mode` in `proofs/Statements.v`.
const MOST: u64 = 208;
/// Tangents of the reals of a point, again and again.
const TANGENTS: [f64; 3] = [1.0, -0.5, 0.25];

/// The forward derivative of a function.
pub struct Tangent {
    global: Global,
    input: Type,
    output: Type,
    context: String,
    text: String,
}

impl Tangent {
    pub fn new(linker: &Linker, global: Global, lambda: &Lambda) -> Result<Self, Outside> {
        let definition = linker.definition(&global).map_err(|refused| Outside(refused.message.clone()))?;
        let Type::Fun(ends) = &definition.ty else { return Err(Outside("a derivative that is no function".into())) };
        let (mut context, mut text) = (String::new(), String::new());
        ty(linker, &lambda.ty)?.write(&mut context);
        Translator::body(linker, lambda, &[])?.write(&mut text);
        Ok(Tangent { input: ends.0.clone(), output: ends.1.clone(), global, context, text })
    }

    /// What the oracle is asked.
    pub fn line(&self, linker: &Linker, point: &Data, fuel: usize) -> String {
        let mut value = String::new();
        write(linker, &self.input, &dual(point, &mut 0), &mut value);
        format!("(eval {fuel} ({}) ({value}) {})", self.context, self.text)
    }

    /// The derivative in our evaluator: its value and its steps.
    pub fn run(&self, machine: &mut Machine, point: &Data) -> Result<(Value, Option<u64>), Box<RuntimeError>> {
        let function = machine.global(&self.global)?;
        let before = machine.report().semantic_steps;
        let value = machine.apply(function, [value(&dual(point, &mut 0))])?;
        let steps = machine.report().semantic_steps.zip(before).map(|(after, before)| after - before);
        Ok((value, steps))
    }

    /// Compares with the oracle's value and steps. `primal`: the steps of the program; `exact`: whether the derivative computes everything in place.
    pub fn judge(
        &self,
        linker: &Linker,
        ours: (Value, Option<u64>),
        theirs: (&Sexp, u64),
        primal: u64,
        exact: bool,
    ) -> Result<(), String> {
        if !same(linker, &self.output, &ours.0, theirs.0, false) {
            return Err(format!("the forward derivative is {:?} in the proofs, in the code {:?}", theirs.0, ours.0));
        }
        let steps = theirs.1;
        if exact && ours.1 != Some(steps) {
            return Err(format!("{steps} steps of the forward derivative in the proofs, in the code {:?}", ours.1));
        }
        if exact && steps > MOST * primal {
            return Err(format!("{steps} steps of the forward derivative of {primal} steps"));
        }
        Ok(())
    }
}

/// A point with a tangent beside each real.
fn dual(data: &Data, count: &mut usize) -> Data {
    let mut all = |parts: &[Data]| parts.iter().map(|part| with_stack(|| dual(part, count))).collect();
    match data {
        Data::Real(x) => {
            *count += 1;
            Data::Tuple(vec![Data::Real(*x), Data::Real(TANGENTS[*count % TANGENTS.len()])])
        }
        Data::Int(_) | Data::Bool(_) => data.clone(),
        Data::Tuple(parts) => Data::Tuple(all(parts)),
        Data::Array(parts) => Data::Array(all(parts)),
        Data::Construct { tag, args } => Data::Construct { tag: *tag, args: all(args) },
    }
}

/// Data as a value of our evaluator. No array has bare reals, since these have tangents.
fn value(data: &Data) -> Value {
    let all = |parts: &[Data]| parts.iter().map(|part| with_stack(|| value(part))).collect::<Vec<_>>();
    match data {
        Data::Real(x) => Value::Real(*x),
        Data::Int(z) => Value::Int(*z),
        Data::Bool(b) => Value::Bool(*b),
        Data::Tuple(parts) => Value::tuple(all(parts)),
        Data::Construct { tag, args } => Value::construct(*tag, all(args)),
        Data::Array(parts) => {
            let integer = |part: &Data| if let Data::Int(z) = part { Some(*z) } else { None };
            match parts.iter().map(integer).collect() {
                Some(integers) if !parts.is_empty() => Value::ints(integers),
                _ => Value::Array(all(parts).into()),
            }
        }
    }
}
