//! Values as Gradus expressions: `{ slope = 1.5; offset = 0.25 }`, `Node (Leaf 1.0, Leaf 2.0)`.
//!
//! Text is for people: a long value is broken into lines of at most 100 columns, and a huge one is abbreviated with `...` and a
//! count. [`crate::json`] never leaves anything out.

use super::Value;
use gradus_core::traverse::with_stack;
use std::fmt;

const WIDTH: usize = 100;
/// A sequence longer than this shows its first and last elements only.
const LONGEST: usize = 200;
const FIRST: usize = 20;
const LAST: usize = 3;
/// Constructors inside constructors beyond this depth are left out.
const DEEPEST: usize = 60;

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layout = layout(self, 0);
        let mut out = String::new();
        match layout.flat(WIDTH) {
            Some(line) => out.push_str(&line),
            None => layout.broken(0, &mut out),
        }
        f.write_str(&out)
    }
}

/// A real so that it reads back as the same real: `1.0`, `0.1`, `1e-7`, `nan`, `-inf`.
pub fn real(x: f64) -> String {
    if x.is_nan() {
        "nan".into()
    } else if x.is_infinite() {
        if x > 0.0 { "inf" } else { "-inf" }.into()
    } else {
        format!("{x:?}")
    }
}

/// A string as a literal.
pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// What is to be printed, before it is known where lines break.
enum Layout {
    Atom(String),
    /// `Node` before its argument.
    Applied(String, Box<Layout>),
    Group {
        open: &'static str,
        close: &'static str,
        separator: char,
        /// Whether there is a blank inside the brackets.
        padded: bool,
        /// With the field name in a record.
        items: Vec<(Option<String>, Layout)>,
    },
}

fn layout(value: &Value, depth: usize) -> Layout {
    with_stack(|| match value {
        Value::Unit => Layout::Atom("()".into()),
        Value::Bool(b) => Layout::Atom(b.to_string()),
        Value::Int(i) => Layout::Atom(i.to_string()),
        Value::Real(x) => Layout::Atom(real(*x)),
        Value::String(s) => Layout::Atom(quoted(s)),
        Value::Function => Layout::Atom("<fun>".into()),
        _ if depth > DEEPEST => Layout::Atom("...".into()),
        Value::Tuple(parts) => tuple(parts, depth),
        Value::Record { fields, parts } => {
            let named = fields.iter().zip(parts.iter());
            let items = named.map(|(name, part)| (Some(name.to_string()), layout(part, depth + 1))).collect();
            Layout::Group { open: "{", close: "}", separator: ';', padded: true, items }
        }
        Value::Variant { constructor, parts } => match &**parts {
            [] => Layout::Atom(constructor.to_string()),
            [part] => Layout::Applied(constructor.to_string(), Box::new(argument(part, depth + 1))),
            parts => Layout::Applied(constructor.to_string(), Box::new(tuple(parts, depth + 1))),
        },
        Value::List(parts) => {
            let items = abbreviated(parts.len(), |i| parts.get(i).map(|part| layout(part, depth + 1)));
            Layout::Group { open: "[", close: "]", separator: ';', padded: false, items }
        }
        Value::Array(parts) => {
            let items = abbreviated(parts.len(), |i| parts.get(i).map(|part| layout(part, depth + 1)));
            Layout::Group { open: "[|", close: "|]", separator: ';', padded: true, items }
        }
        Value::Reals(block) => reals(block.shape(), block.data()),
    })
}

fn tuple(parts: &[Value], depth: usize) -> Layout {
    let items = parts.iter().map(|part| (None, layout(part, depth + 1))).collect();
    Layout::Group { open: "(", close: ")", separator: ',', padded: false, items }
}

/// The argument of a constructor: in parentheses where Gradus would read it otherwise.
fn argument(value: &Value, depth: usize) -> Layout {
    let inner = layout(value, depth);
    let bare = match value {
        Value::Int(i) => *i >= 0,
        Value::Real(x) => !x.is_sign_negative() || x.is_nan(),
        Value::Variant { parts, .. } => parts.is_empty(),
        _ => true,
    };
    if bare {
        return inner;
    }
    Layout::Group { open: "(", close: ")", separator: ',', padded: false, items: vec![(None, inner)] }
}

fn reals(shape: &[usize], data: &[f64]) -> Layout {
    let (len, inner) = shape.split_first().map_or((0, &[][..]), |(len, inner)| (*len, inner));
    let step: usize = inner.iter().product();
    let items = abbreviated(len, |i| {
        let part = data.get(i * step..(i + 1) * step)?;
        Some(match (inner, part) {
            ([], [x]) => Layout::Atom(real(*x)),
            _ => reals(inner, part),
        })
    });
    Layout::Group { open: "[|", close: "|]", separator: ';', padded: true, items }
}

fn abbreviated(len: usize, item: impl Fn(usize) -> Option<Layout>) -> Vec<(Option<String>, Layout)> {
    let some = |range: std::ops::Range<usize>| range.filter_map(&item).map(|layout| (None, layout));
    if len <= LONGEST {
        return some(0..len).collect();
    }
    let gap = Layout::Atom(format!("... (* {len} elements *)"));
    some(0..FIRST).chain([(None, gap)]).chain(some(len - LAST..len)).collect()
}

impl Layout {
    /// On one line, if that takes at most `room` columns.
    fn flat(&self, room: usize) -> Option<String> {
        let mut out = String::new();
        (self.write_flat(room, &mut out) && out.chars().count() <= room).then_some(out)
    }

    /// Stops early, with `false`, once the text is too long to be of use.
    fn write_flat(&self, room: usize, out: &mut String) -> bool {
        with_stack(|| {
            match self {
                Layout::Atom(text) => out.push_str(text),
                Layout::Applied(name, inner) => {
                    out.push_str(name);
                    out.push(' ');
                    if !inner.write_flat(room, out) {
                        return false;
                    }
                }
                Layout::Group { open, close, separator, padded, items } => {
                    let pad = if *padded && !items.is_empty() { " " } else { "" };
                    out.push_str(open);
                    out.push_str(pad);
                    for (i, (name, item)) in items.iter().enumerate() {
                        if i > 0 {
                            out.push(*separator);
                            out.push(' ');
                        }
                        if let Some(name) = name {
                            out.push_str(name);
                            out.push_str(" = ");
                        }
                        if !item.write_flat(room, out) {
                            return false;
                        }
                    }
                    out.push_str(pad);
                    out.push_str(close);
                }
            }
            out.len() <= room * 4 // a character has at most four bytes
        })
    }

    /// Over several lines: what is opened stands on the present line, the rest is indented by `indent`.
    fn broken(&self, indent: usize, out: &mut String) {
        with_stack(|| match self {
            Layout::Atom(text) => out.push_str(text),
            Layout::Applied(name, inner) => {
                out.push_str(name);
                out.push(' ');
                inner.broken(indent, out);
            }
            Layout::Group { open, close, separator, items, .. } => {
                out.push_str(open);
                let inside = indent + 2;
                let mut column = WIDTH; // forces the first item onto a new line
                for (i, (name, item)) in items.iter().enumerate() {
                    let last = i + 1 == items.len();
                    let label = name.as_ref().map_or(String::new(), |n| format!("{n} = "));
                    let label_width = label.chars().count();
                    let line = item.flat(WIDTH.saturating_sub(inside + label_width + 1));
                    let is_atom = matches!(item, Layout::Atom(_));
                    let width = line.as_ref().map_or(WIDTH, |l| l.chars().count()) + label_width + 1;
                    if is_atom && column + 1 + width <= WIDTH {
                        out.push(' ');
                        column += 1 + width;
                    } else {
                        out.push('\n');
                        out.extend(std::iter::repeat_n(' ', inside));
                        column = if is_atom { inside + width } else { WIDTH };
                    }
                    out.push_str(&label);
                    match line {
                        Some(line) => out.push_str(&line),
                        None => item.broken(inside, out),
                    }
                    if !last {
                        out.push(*separator);
                    }
                }
                out.push('\n');
                out.extend(std::iter::repeat_n(' ', indent));
                out.push_str(close);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reals;

    #[track_caller]
    fn prints(value: Value, expected: &str) {
        assert_eq!(value.to_string(), expected);
    }

    #[test]
    fn leaves() {
        prints(Value::Real(1.0), "1.0");
        prints(Value::Real(-0.0), "-0.0");
        prints(Value::Real(0.1 + 0.2), "0.30000000000000004");
        prints(Value::Real(1e300), "1e300");
        prints(Value::Real(f64::NAN), "nan");
        prints(Value::Real(f64::NEG_INFINITY), "-inf");
        prints(Value::Int(-3), "-3");
        prints(Value::Unit, "()");
        prints(Value::from("a \"b\"\n"), r#""a \"b\"\n""#);
    }

    #[test]
    fn composite_values() {
        let leaf = |x: f64| Value::variant("Leaf", [x.into()]);
        prints(Value::variant("Node", [leaf(1.0), leaf(-2.0)]), "Node (Leaf 1.0, Leaf (-2.0))");
        prints(Value::variant("Some", [Value::variant("None", [])]), "Some None");
        prints(Value::variant("Some", [leaf(1.0)]), "Some (Leaf 1.0)");
        prints(Value::record([("slope", 1.5.into()), ("offset", 0.25.into())]), "{ slope = 1.5; offset = 0.25 }");
        prints(vec![1.0, 2.0].into(), "[| 1.0; 2.0 |]");
        prints(Vec::<f64>::new().into(), "[||]");
        prints(Value::list([Value::Int(1), Value::Int(2)]), "[1; 2]");
        prints(Value::tuple([Value::Int(1), Value::Bool(true)]), "(1, true)");
        prints(Reals::new([2, 2], [1.0, 2.0, 3.0, 4.0]).expect("fits").into(), "[| [| 1.0; 2.0 |]; [| 3.0; 4.0 |] |]");
    }

    #[test]
    fn long_arrays_fill_lines_of_at_most_100_columns() {
        let text = Value::from(vec![1.25; 60]).to_string();
        assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
        assert!(text.lines().count() > 3 && text.lines().nth(1).is_some_and(|l| l.len() > 90), "{text}");
    }

    #[test]
    fn a_matrix_prints_row_by_row() {
        let matrix: Value = Reals::new([3, 12], (0..36).map(f64::from).collect::<Vec<_>>()).expect("fits").into();
        let text = matrix.to_string();
        assert_eq!(text.lines().count(), 5, "{text}");
        assert_eq!(text.lines().nth(1), Some("  [| 0.0; 1.0; 2.0; 3.0; 4.0; 5.0; 6.0; 7.0; 8.0; 9.0; 10.0; 11.0 |];"));
    }

    #[test]
    fn huge_values_are_abbreviated() {
        let text = Value::from(vec![0.0; 100_000]).to_string();
        assert!(text.contains("... (* 100000 elements *)") && text.len() < 400, "{text}");
        let mut deep = Value::Unit;
        for _ in 0..100_000 {
            deep = Value::variant("Next", [deep]);
        }
        assert!(deep.to_string().contains("..."));
    }
}
