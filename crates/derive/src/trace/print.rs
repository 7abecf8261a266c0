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

/// A line of a trace term as a run left it: the number of the operation and the arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceLine {
    pub operation: i64,
    pub args: Vec<TraceValue>,
}

/// `let x3 = x1 * x2 in ...`, for lines in order of execution, the first of which belongs to slot `first`.
pub fn print_trace(first: i64, lines: &[TraceLine], result: &TraceValue) -> String {
    let mut text = String::new();
    for (offset, line) in lines.iter().enumerate() {
        text.push_str(&format!("let x{} = {} in\n", first + offset as i64, operation(line)));
    }
    text.push_str(&atom(result));
    text.push('\n');
    text
}

fn operation(line: &TraceLine) -> String {
    let args: Vec<String> = line.args.iter().map(atom).collect();
    let Some(operation) = usize::try_from(line.operation).ok().and_then(|n| Operation::all().get(n)) else {
        return format!("op{}({})", line.operation, args.join(", "));
    };
    match (operation, operation.prim().info().fixity, &args[..]) {
        (Operation::Apply(prim), Fixity::Infix, [a, b]) => format!("{a} {} {b}", prim.info().name),
        (Operation::Apply(_), Fixity::Prefix, [a]) => format!("-{a}"),
        _ => format!("{} {}", operation.text(), args.join(" ")),
    }
}

fn atom(value: &TraceValue) -> String {
    match value {
        TraceValue::Const(x) if *x < 0.0 => format!("({x:?})"),
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
        let line = |operation: Operation, args: Vec<TraceValue>| TraceLine { operation: operation.number(), args };
        let lines = [
            line(Operation::Apply(Prim::MulReal), vec![TraceValue::Slot(0), TraceValue::Const(-2.0)]),
            line(Operation::Apply(Prim::Sin), vec![TraceValue::Slot(1)]),
            line(Operation::Apply(Prim::NegReal), vec![TraceValue::Slot(2)]),
            line(Operation::Partial(Prim::PowRealInt, 0), vec![TraceValue::Slot(0), TraceValue::Whole(3)]),
        ];
        let text = print_trace(1, &lines, &TraceValue::Slot(4));
        assert_eq!(text, "let x1 = x0 * (-2.0) in\nlet x2 = sin x1 in\nlet x3 = -x2 in\nlet x4 = d1[^] x0 3 in\nx4\n");
    }
}
