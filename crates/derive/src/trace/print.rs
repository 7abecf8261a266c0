//! Trace terms as text: one `let` for each line, as A writes them.

use super::operations::Operation;
use gradus_core::prim::Fixity;

/// An argument of a line.
#[derive(Clone, Debug, PartialEq)]
pub enum TraceValue {
    Const(f64),
    Slot(i64),
    Whole(i64),
}

/// A line of a trace term as a run left it. Each line has a slot.
#[derive(Clone, Debug, PartialEq)]
pub enum TraceLine {
    /// The number of the operation, and the arguments.
    Apply { operation: i64, args: Vec<TraceValue> },
    /// A function with a custom derivative, or such a derivative. The further results have the slots after its own.
    Rule { name: String, results: i64, args: Vec<TraceValue> },
    /// The slot of a further result.
    Rest,
}

/// `let x3 = x1 * x2 in`, for lines in order of execution, the first of which belongs to slot `first`.
pub fn print_lines(first: i64, lines: &[TraceLine]) -> String {
    let mut text = String::new();
    for (id, line) in (first..).zip(lines) {
        let (results, right) = match line {
            TraceLine::Apply { operation, args } => (1, apply(*operation, args)),
            TraceLine::Rule { name, results, args } => (*results, format!("{name}({})", atoms(args).join(", "))),
            TraceLine::Rest => continue,
        };
        let left: Vec<String> = (id..id + results).map(|id| format!("x{id}")).collect();
        text.push_str(&format!("let {} = {right} in\n", left.join(", ")));
    }
    text
}

/// What an operation is called in a line.
pub fn operation_name(number: i64) -> String {
    match usize::try_from(number).ok().and_then(|n| Operation::all().get(n)) {
        Some(operation) => operation.text(),
        None => format!("op{number}"),
    }
}

fn apply(number: i64, args: &[TraceValue]) -> String {
    let args = atoms(args);
    let known = usize::try_from(number).ok().and_then(|n| Operation::all().get(n));
    let fixity = known.map(|operation| (operation, operation.prim().info().fixity));
    match (fixity, &args[..]) {
        (Some((Operation::Apply(prim), Fixity::Infix)), [a, b]) => format!("{a} {} {b}", prim.info().name),
        (Some((Operation::Apply(_), Fixity::Prefix)), [a]) => format!("-{a}"),
        _ => format!("{} {}", operation_name(number), args.join(" ")),
    }
}

fn atoms(args: &[TraceValue]) -> Vec<String> {
    args.iter().map(print_value).collect()
}

pub fn print_value(value: &TraceValue) -> String {
    match value {
        TraceValue::Const(x) if x.is_sign_negative() => format!("({x:?})"),
        TraceValue::Const(x) => format!("{x:?}"),
        TraceValue::Slot(id) => format!("x{id}"),
        TraceValue::Whole(k) if *k < 0 => format!("({k})"),
        TraceValue::Whole(k) => k.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_core::Prim;

    #[test]
    fn a_trace_reads_as_lets() {
        let line =
            |operation: Operation, args: Vec<TraceValue>| TraceLine::Apply { operation: operation.number(), args };
        let (x0, x2) = (TraceValue::Slot(0), TraceValue::Slot(2));
        let lines = [
            line(Operation::Apply(Prim::MulReal), vec![x0.clone(), TraceValue::Const(-2.0)]),
            line(Operation::Apply(Prim::Sin), vec![TraceValue::Slot(1)]),
            line(Operation::Apply(Prim::NegReal), vec![x2.clone()]),
            line(Operation::Partial(Prim::PowRealInt, 0), vec![x0.clone(), TraceValue::Whole(3)]),
            TraceLine::Rule { name: "turn".into(), results: 2, args: vec![x0, x2] },
            TraceLine::Rest,
            line(Operation::Apply(Prim::NegReal), vec![TraceValue::Slot(6)]),
        ];
        let text = "let x1 = x0 * (-2.0) in\nlet x2 = sin x1 in\nlet x3 = -x2 in\nlet x4 = d1[^] x0 3 in\n\
                    let x5, x6 = turn(x0, x2) in\nlet x7 = -x6 in\n";
        assert_eq!(print_lines(1, &lines), text);
    }
}
