//! A type where another was expected: why it was, and what may have been meant.

use super::{count, JOIN_STRINGS};
use crate::assumed::Assumed;
use crate::error::{Expression, Mismatch, Why};
use gradus_source::{Diagnostic, Span};

/// Says why a type was expected, at the place that expects it.
pub fn because(said: Diagnostic, why: &Why, expected: &str) -> Diagnostic {
    match why {
        Why::Argument { function, index, head, .. } => {
            let name = function.as_ref().map_or("this function".to_string(), |name| format!("`{name}`"));
            said.label(*head, format!("argument {index} of {name} has type `{expected}`"))
        }
        Why::Result { function, index, head } => {
            let name = function.as_ref().map_or("this function".to_string(), |name| format!("`{name}`"));
            said.label(*head, format!("argument {index} of {name} is a function with the result `{expected}`"))
        }
        Why::Operand { op, at } => said.label(*at, format!("`{op}` needs `{expected}` here")),
        Why::OtherOperand { op, first } => {
            said.label(*first, format!("the other side of `{op}` has type `{expected}`, and both must be the same"))
        }
        Why::Branch { first } => {
            said.label(*first, format!("the first branch has type `{expected}`, and both must be the same"))
        }
        Why::Arm { first } => {
            said.label(*first, format!("the first case has type `{expected}`, and all must be the same"))
        }
        Why::Element { first } => {
            said.label(*first, format!("the first element has type `{expected}`, and all must be the same"))
        }
        Why::Annotation { at } => said.label(*at, format!("`{expected}` is written here")),
        Why::Pattern { value: Some(value) } => said.label(*value, format!("the value has type `{expected}`")),
        Why::Rule { function, rule } => said.note(format!("a rule of `{function}` must have the type `{rule}`")),
        Why::Condition => said.note("a condition is a `bool`"),
        Why::Guard => said.note("the guard of a case is a `bool`"),
        Why::Check => said.note("`check` takes a `bool` that must hold"),
        Why::Index => said.note("an index is an `int`"),
        Why::Bound => said.note("the number of elements is an `int`"),
        Why::Field { name, record } => said.note(format!("the field `{name}` of `{record}` has type `{expected}`")),
        Why::Record { field } => said.note(format!("`{field}` is a field of `{expected}`")),
        Why::ConstructorArgument { name } => said.note(format!("the constructor `{name}` takes `{expected}` here")),
        Why::Recursion { name } => said.note(format!("`{name}` is used as `{expected}` in its own definition")),
        Why::Pattern { value: None } | Why::Wanted => said,
    }
}

/// For who takes `max` or `min` of two numbers, as other languages do.
fn of_two_numbers(m: &Mismatch) -> Option<String> {
    let name = match (&m.what, &m.why) {
        (_, Why::Argument { function: Some(name), index: 1, .. }) if m.actual == "real" => name,
        (Expression::Variable(name), Why::Argument { .. }) => name,
        _ => return None,
    };
    let which = match &**name {
        "max" => "largest",
        "min" => "smallest",
        _ => return None,
    };
    Some(format!("`{name}` gives the {which} element of an array; of two numbers it is `{name}imum a b`"))
}

/// The parameter that made a `real` of what should be an `int`, if nothing but that did.
fn assumed(m: &Mismatch) -> Option<&Assumed> {
    let (actual, expected) = m.parts.as_ref().map_or((&m.actual, &m.expected), |(actual, expected)| (actual, expected));
    match (actual.as_str(), expected.as_str(), &m.what, &m.why) {
        ("int", "real", _, Why::Argument { assumed, .. }) => assumed.as_ref(),
        ("real", "int", Expression::Call(assumed), _) => Some(assumed),
        _ => None,
    }
}

fn assumed_words(said: Diagnostic, Assumed { function, param }: &Assumed) -> Diagnostic {
    said.note(format!("nothing in `{function}` says whether `{param}` is an `int` or a `real`, so it is a `real`"))
        .help(format!("write `({param} : int)` in the definition of `{function}` if integers are meant"))
}

pub fn mismatch_words(m: &Mismatch) -> Diagnostic {
    let numbers = (m.actual == "int" && m.expected == "real") || (m.actual == "real" && m.expected == "int");
    if m.missing_arguments > 0 {
        let what = match &m.what {
            Expression::Variable(name) => format!("`{name}`"),
            Expression::RealLiteral(_) | Expression::Call(_) | Expression::Pattern | Expression::Other => {
                "this function".to_string()
            }
        };
        let said = Diagnostic::error(
            "E0204",
            format!(
                "{what} still needs {}: expected `{}`, found the function `{}`",
                count(m.missing_arguments, "argument"),
                m.expected,
                m.actual
            ),
        )
        .label(m.span, format!("this has type `{}`", m.actual));
        let said = because(said, &m.why, &m.expected);
        return match m.why {
            Why::Operand { op: "-", .. } => said.help("a negative argument stands in parentheses: `f (-1.0)`"),
            _ => said,
        };
    }
    let code = if numbers { "E0207" } else { "E0201" };
    let mut said = Diagnostic::error(code, format!("expected `{}`, found `{}`", m.expected, m.actual));
    said = match &m.what {
        Expression::Variable(name) => said.label(m.span, format!("`{name}` has type `{}`", m.actual)),
        Expression::Pattern => said.label(m.span, format!("this pattern is for a `{}`", m.actual)),
        Expression::RealLiteral(_) | Expression::Call(_) | Expression::Other => {
            said.label(m.span, format!("this has type `{}`", m.actual))
        }
    };
    said = because(said, &m.why, &m.expected);
    if let Some((actual, expected)) = &m.parts {
        said = said.note(format!("`{actual}` and `{expected}` differ"));
    }
    let told = |said: &Diagnostic, place: Span| said.labels.iter().any(|label| label.span == place);
    if let Some(from) = m.actual_from.filter(|from| !told(&said, *from)) {
        said = said.label(from, format!("it has type `{}` because of this", m.actual));
    }
    if let Some(from) = m.expected_from.filter(|from| !told(&said, *from)) {
        said = said.label(from, format!("`{}` is expected because of this", m.expected));
    }
    if let Some(order) = &m.order {
        return said.help(format!("the arguments stand in this order: `{order}`"));
    }
    if let Some(assumed) = assumed(m) {
        return assumed_words(said, assumed);
    }
    if numbers {
        return match (&m.what, m.expected.as_str()) {
            _ if matches!(m.why, Why::Operand { op: "^", .. }) => {
                said.help("`x ^ k` takes an `int`; `x ** y` takes a `real`")
            }
            _ if matches!(m.why, Why::OtherOperand { .. }) => {
                said.help("nothing is converted silently: `real e` makes a `real` of an `int`, and `2.0` is a `real`")
            }
            (Expression::RealLiteral(text), "int") => {
                let whole = text.strip_suffix(".0").unwrap_or(text);
                if whole.contains(['.', 'e', 'N', 'i']) {
                    said.help("`round`, `floor` and `truncate` make an `int` of a `real`")
                } else {
                    said.help(format!("write `{whole}` for an `int`"))
                }
            }
            (_, "int") => {
                said.help("`round`, `floor` and `truncate` make an `int` of a `real`; nothing is converted silently")
            }
            _ => said.help("`real e` makes a `real` of an `int`, and `2.0` is a `real`; nothing is converted silently"),
        };
    }
    if matches!(&m.why, Why::Result { function: Some(f), index: 1, .. } if &**f == "iterate")
        && m.expected.ends_with(" either")
    {
        return said.help("a step gives `Inl next` to go on, and `Inr result` to stop");
    }
    if m.actual == "unit" || m.expected == "unit" {
        return said;
    }
    if m.actual == "string" && matches!(m.why, Why::Operand { op: "@", .. }) {
        return said.help(JOIN_STRINGS);
    }
    if m.expected == "bool" && matches!(m.why, Why::Condition | Why::Check | Why::Guard) {
        return said.help("compare it with something, as in `x = 0`");
    }
    if matches!(m.why, Why::Operand { op: "*>", .. }) && m.expected == "real" {
        return said.help("the number stands on the left: `k *> a`");
    }
    if m.expected.contains("real[")
        && m.parts.as_ref().is_some_and(|(actual, expected)| actual == "int" && expected == "real")
    {
        return said.help("nothing is converted silently: `map real a` makes an array of reals of one of integers");
    }
    if m.actual.starts_with('(') && m.actual.ends_with(")[1]") && m.expected.ends_with(']') {
        return said.help("the elements of an array are separated by `;`, as in `[| a; b |]`");
    }
    if let Some(help) = of_two_numbers(m) {
        return said.help(help);
    }
    let curried = |ty: &str| ty.matches("->").count() > 1;
    if matches!(&m.why, Why::Argument { function: Some(f), index: 1, .. } if matches!(&**f, "grad" | "value_and_grad" | "diff" | "hvp" | "hessian"))
        && curried(&m.actual)
        && !curried(&m.expected)
    {
        return said.help("a derivative is taken in one argument: `fun x -> f x y`, or a function of a tuple");
    }
    if m.actual.ends_with(" list") && m.expected.ends_with(']') {
        return said.help("arrays are written `[| a; b |]`, lists `[a; b]`");
    }
    if m.actual.ends_with(']') && m.expected.ends_with(" list") {
        return said.help("lists are written `[a; b]`, arrays `[| a; b |]`");
    }
    let several =
        |(actual, expected): &(String, String)| expected == "real" && (actual.ends_with(']') || actual.contains(" * "));
    if matches!(&m.why, Why::Argument { function: Some(f), index: 1, .. } if matches!(&**f, "grad" | "value_and_grad"))
        && m.parts.as_ref().is_some_and(several)
    {
        return said
            .help("a gradient is that of one number; of a function that gives more, take `vjp`, `jvp` or `jacobian`");
    }
    let tuple = |ty: &str| ty.contains(" * ") && !ty.contains("->");
    if matches!(&m.why, Why::Argument { function: Some(f), .. } if &**f == "diff") && tuple(&m.actual) {
        return said.help("`diff` is for functions of one number; of several, take `grad`");
    }
    if matches!(m.why, Why::Branch { .. }) && tuple(&m.actual) && !tuple(&m.expected) {
        return said.help("`else` takes all of a tuple: put the `if` in parentheses, `((if c then a else b), d)`");
    }
    if matches!(m.why, Why::OtherOperand { op: "<" | "<=" | ">" | ">=", .. }) && m.expected == "bool" {
        return said.help("two comparisons are joined by `&&`: `a < b && b < c`");
    }
    if matches!(m.why, Why::Argument { .. }) && m.parts.is_none() {
        if tuple(&m.expected) && !tuple(&m.actual) {
            return said.help("the argument is a tuple, in parentheses: `f (a, b)`");
        }
        if matches!(&m.why, Why::Argument { function: Some(f), index: 2, .. } if &**f == "set") && tuple(&m.actual) {
            return said.help("a number of a matrix is changed in its row: `set a i (set a.(i) j x)`");
        }
        if tuple(&m.actual) && !tuple(&m.expected) {
            return said.help("arguments stand one after the other, without comma: `f a b`");
        }
    }
    said
}
