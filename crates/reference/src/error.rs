//! What can go wrong at run time.

use gradus_core::{Checked, Prim};
use gradus_source::{Diagnostic, Span};

/// A problem with its place and the calls that led there.
#[derive(Clone, Debug)]
pub struct RuntimeError {
    pub problem: Problem,
    pub span: Span,
    /// The innermost calls, the last one first. Calls in tail position leave no trace.
    pub calls: Vec<Call>,
    /// How many more calls were under way.
    pub more_calls: usize,
    /// Whether the operation checked what was handed to a derivative form.
    pub checked: Option<Checked>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The function that made the call.
    pub caller: String,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum Problem {
    DivisionByZero,
    NegativeExponent {
        exponent: i64,
    },
    IndexOutOfBounds {
        index: i64,
        length: usize,
    },
    NegativeSize {
        size: i64,
    },
    /// An array of arrays whose elements differ in size.
    Ragged {
        index: usize,
        expected: Vec<usize>,
        found: Vec<usize>,
    },
    SizeMismatch {
        expected: i64,
        found: usize,
    },
    ShapesDiffer {
        operator: &'static str,
        path: String,
        left: String,
        right: String,
    },
    SignOfZero,
    Kink {
        prim: Prim,
    },
    OutsideDomain {
        prim: Prim,
        /// The primitive whose partial derivative it is a part of.
        partial_of: Option<Prim>,
        args: Vec<f64>,
    },
    StepLimit {
        limit: u64,
    },
    MemoryLimit {
        limit: u64,
    },
    Interrupted,
    MissingData {
        name: String,
    },
    /// A top-level value whose computation needs the value itself.
    Circular {
        name: String,
    },
    /// A function that the evaluator was asked to differentiate has no derivative in the mode at hand.
    Refused(Box<Diagnostic>),
    /// A broken invariant of ours that the checker of core would have found.
    Internal(String),
}

impl RuntimeError {
    pub(crate) fn new(problem: Problem, span: Span) -> Box<Self> {
        Box::new(RuntimeError { problem, span, calls: Vec::new(), more_calls: 0, checked: None })
    }

    /// The one place where run-time errors are put into words.
    pub fn diagnostic(&self) -> Diagnostic {
        if let Problem::Refused(diagnostic) = &self.problem {
            return self.with_calls((**diagnostic).clone());
        }
        let (code, message, label, help) = self.words();
        let mut diagnostic = Diagnostic::error(code, message).label(self.span, label);
        if let Some(help) = help {
            diagnostic = diagnostic.help(help);
        }
        self.with_calls(diagnostic)
    }

    fn with_calls(&self, mut diagnostic: Diagnostic) -> Diagnostic {
        for call in &self.calls {
            // Code that derivatives are made of has no place of its own.
            if call.span != Span::default() && call.span != self.span {
                diagnostic = diagnostic.label(call.span, format!("called here, in `{}`", call.caller));
            }
        }
        if self.more_calls > 0 {
            diagnostic = diagnostic.note(format!("{} more calls were under way", self.more_calls));
        }
        diagnostic
    }

    fn words(&self) -> (&'static str, String, String, Option<String>) {
        let plain = |code, message: &str, label: &str| (code, message.to_string(), label.to_string(), None);
        match &self.problem {
            Problem::DivisionByZero => plain("E0601", "division of an integer by zero", "the divisor is 0"),
            Problem::NegativeExponent { exponent } => (
                "E0602",
                "an integer is raised to a negative power".into(),
                format!("the exponent is {exponent}"),
                Some("use a real base, as in `real n ^ (-1)`".into()),
            ),
            Problem::IndexOutOfBounds { index, length } => (
                "E0603",
                format!("index {index} is outside an array of {}", elements(*length)),
                match length {
                    0 => "the array is empty".into(),
                    n => format!("the last element has index {}", n - 1),
                },
                None,
            ),
            Problem::NegativeSize { size } if self.checked == Some(Checked::Order) => {
                ("E0616", format!("a Taylor series of order {size}"), "the order is negative".into(), None)
            }
            Problem::NegativeSize { size } => {
                ("E0604", format!("an array of size {size}"), "the size is negative".into(), None)
            }
            Problem::Ragged { index, expected, found } => (
                "E0605",
                "the rows of an array differ in size".into(),
                format!("element {index} has size {}, those before it {}", shape(found), shape(expected)),
                Some("arrays are regular; use a list of arrays for rows of different sizes".into()),
            ),
            Problem::SizeMismatch { expected, found } => (
                "E0606",
                format!("an array of {} where {expected} are needed", elements(*found)),
                format!("this array has size {found}, its type says {expected}"),
                None,
            ),
            Problem::ShapesDiffer { path, left, right, .. } if self.checked.is_some() => {
                let (seed, other) = match self.checked {
                    Some(Checked::Cotangent) => ("cotangent", "result"),
                    Some(Checked::Tangent | Checked::Order) | None => ("tangent", "input"),
                };
                let at = if path.is_empty() { String::new() } else { format!("at `{path}`: ") };
                (
                    "E0617",
                    format!("the {seed} does not have the shape of the {other}"),
                    format!("{at}{right} in the {seed}, {left} in the {other}"),
                    Some(format!("a {seed} differs from the {other} in its reals only")),
                )
            }
            Problem::ShapesDiffer { operator, path, left, right } => (
                "E0607",
                format!("the operands of `{operator}` differ in shape"),
                match path.is_empty() {
                    true => format!("{left} on the left, {right} on the right"),
                    false => format!("at `{path}`: {left} on the left, {right} on the right"),
                },
                None,
            ),
            Problem::SignOfZero => plain("E0608", "`sign` is undefined at 0", "the argument is 0"),
            Problem::Kink { prim } => (
                "E0609",
                format!("a derivative is taken where `{}` is not differentiable", prim.info().name),
                match prim.info().kinks {
                    Some(kinks) => format!("here {}", kinks.text),
                    None => "here".into(),
                },
                Some("`--kinks=ignore` takes the derivative of the branch that was chosen".into()),
            ),
            Problem::OutsideDomain { prim, partial_of, args } => {
                let args: Vec<String> = args.iter().map(|x| format!("{x:?}")).collect();
                let (name, args) = (prim.info().name, args.join(" and "));
                let condition = prim.info().domain.map_or("", |domain| domain.text);
                let (message, label) = match partial_of {
                    Some(of) => (
                        format!("`{}` has no derivative here", of.info().name),
                        format!("its derivative applies `{name}` to {args}; `{name}` is defined for {condition}"),
                    ),
                    None => (
                        format!("`{name}` is applied outside its domain"),
                        format!("applied to {args}; defined for {condition}"),
                    ),
                };
                ("E0610", message, label, None)
            }
            Problem::StepLimit { limit } => (
                "E0611",
                format!("the program did not finish within {limit} steps"),
                "it was here when it was stopped".into(),
                Some("`--max-steps` sets the limit".into()),
            ),
            Problem::MemoryLimit { limit } => (
                "E0612",
                format!("the program needs more than {} of memory", gradus_source::bytes(*limit)),
                "it was here when it was stopped".into(),
                Some("recursion that never ends is the usual reason; `--max-memory` sets the limit".into()),
            ),
            Problem::Interrupted => plain("E0613", "the program was interrupted", "it was here"),
            Problem::MissingData { name } => {
                ("E0614", format!("no data was given for `{name}`"), "needed here".into(), None)
            }
            Problem::Circular { name } => {
                ("E0615", format!("the value of `{name}` depends on itself"), "needed here".into(), None)
            }
            Problem::Refused(_) => plain("E0690", "refused", "here"),
            Problem::Internal(text) => ("E0699", format!("internal error: {text}"), "while running this".into(), None),
        }
    }
}

fn elements(count: usize) -> String {
    match count {
        1 => "1 element".into(),
        n => format!("{n} elements"),
    }
}

fn shape(sizes: &[usize]) -> String {
    let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
    sizes.join(" by ")
}
