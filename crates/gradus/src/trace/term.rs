//! The trace term of one execution, and its symbolic derivative.

use super::fields;
use gradus_derive::trace::{print_lines, print_value, TraceLine, TraceValue};
use gradus_reference::Value as Held;
use std::fmt::Write;

/// A run of a function as a straight line of operations on reals, and the line of operations that computes its gradient.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceTerm {
    pub value: f64,
    /// The reals of the input have the slots from 0 on.
    pub inputs: Vec<f64>,
    /// How many inputs there are, and so the slot of the first line.
    pub first: i64,
    /// The trace term (A Fig. 4 and 5), in order of execution; the slots follow those of the inputs.
    pub lines: Vec<TraceLine>,
    pub result: TraceValue,
    /// Its symbolic derivative at the cotangent 1 (A Fig. 6): lines to come after those of the trace term.
    pub derivative: Vec<TraceLine>,
    /// The partial derivative by each input.
    pub gradient: Vec<TraceValue>,
}

impl TraceTerm {
    /// Both terms, as A writes them.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for (id, x) in self.inputs.iter().enumerate() {
            let _ = writeln!(out, "x{id}: input, {x:?}");
        }
        out.push_str(&print_lines(self.first, &self.lines));
        let _ = writeln!(out, "{}", print_value(&self.result));
        let _ = writeln!(out, "value {:?}\n\nits derivative:", self.value);
        out.push_str(&print_lines(self.first + self.lines.len() as i64, &self.derivative));
        let partials: Vec<String> = self.gradient.iter().map(print_value).collect();
        let _ = match &partials[..] {
            [one] => writeln!(out, "{one}"),
            several => writeln!(out, "({})", several.join(", ")),
        };
        out
    }
}

/// `((value, atom), trace, (cotangents, differentiated trace))`
pub fn read(held: &Held, inputs: Vec<f64>) -> Option<TraceTerm> {
    let [dual, trace, sweep] = fields(held)? else { return None };
    let ([Held::Real(value), result], [map, whole]) = (fields(dual)?, fields(sweep)?) else { return None };
    let lines = state(trace)?;
    let derivative = state(whole)?.split_off(lines.len());
    let [Held::Int(next), _] = fields(trace)? else { return None };
    let first = next - lines.len() as i64;
    let cotangents = match map {
        Held::Array(items) => items.iter().cloned().collect::<Vec<_>>(),
        // An array of nothing is stored as no particular sort of array.
        _ => Vec::new(),
    };
    let gradient = cotangents.iter().take(usize::try_from(first).ok()?).map(option).collect::<Option<Vec<_>>>()?;
    Some(TraceTerm { value: *value, inputs, first, lines, result: atom(result)?, derivative, gradient })
}

/// The lines of a state, in order of execution.
fn state(held: &Held) -> Option<Vec<TraceLine>> {
    let [_, list] = fields(held)? else { return None };
    let mut lines = Vec::new();
    let mut rest = fields(list)?;
    while let [head, tail] = rest {
        lines.push(line(head)?);
        rest = fields(tail)?;
    }
    lines.reverse();
    Some(lines)
}

/// `Unary of int * atom | Binary of int * atom * atom | Rule of name * apply * adjoint * count * atoms | Rest`
fn line(held: &Held) -> Option<TraceLine> {
    let Held::Node(tag, fields) = held else { return None };
    Some(match (tag, &fields[..]) {
        (0 | 1, [Held::Int(operation), args @ ..]) => {
            TraceLine::Apply { operation: *operation, args: args.iter().map(atom).collect::<Option<_>>()? }
        }
        (2, [Held::String(name), _, _, Held::Int(results), args]) => {
            let args = match args {
                Held::Array(items) => items.iter().map(atom).collect::<Option<_>>()?,
                _ => Vec::new(),
            };
            TraceLine::Rule { name: name.to_string(), results: *results, args }
        }
        (3, _) => TraceLine::Rest,
        _ => return None,
    })
}

/// `Const of real | Slot of int | Whole of int`
fn atom(held: &Held) -> Option<TraceValue> {
    let Held::Node(tag, fields) = held else { return None };
    match (tag, &fields[..]) {
        (0, [Held::Real(x)]) => Some(TraceValue::Const(*x)),
        (1, [Held::Int(id)]) => Some(TraceValue::Slot(*id)),
        (2, [Held::Int(k)]) => Some(TraceValue::Whole(*k)),
        _ => None,
    }
}

/// A slot that has no cotangent has the cotangent 0.
fn option(held: &Held) -> Option<TraceValue> {
    match fields(held)? {
        [inner] => atom(inner),
        _ => Some(TraceValue::Const(0.0)),
    }
}
