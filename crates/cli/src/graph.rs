//! A Delta program or a trace term as a graph: for Graphviz, or drawn as SVG without outside tools.

use gradus::{operation_name, print_value, DeltaProgram, Summand, TraceLine, TraceTerm, TraceValue};
use std::collections::HashMap;
use std::fmt::Write;

const COLUMN: f64 = 130.0;
const ROW: f64 = 46.0;
const MARGIN: f64 = 40.0;

/// A factor with as many digits as help a reader.
fn short(factor: f64) -> String {
    let text = format!("{factor:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if factor != 0.0 && (factor.abs() >= 1e6 || factor.abs() < 1e-3) {
        format!("{factor:.2e}")
    } else {
        text.to_string()
    }
}

/// As text of XML and of DOT.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// What is drawn: inputs, what is computed from them in order, and the result.
pub struct Graph {
    nodes: Vec<Node>,
    /// From, to, and what is written beside the arrow.
    arrows: Vec<(i64, i64, String)>,
}

struct Node {
    id: i64,
    label: String,
    /// An input or the result.
    end: bool,
}

const RESULT: i64 = -1;

impl Graph {
    fn of_inputs(inputs: &[f64]) -> Graph {
        let node = |(id, x): (i64, &f64)| Node { id, label: format!("x{id} = {}", short(*x)), end: true };
        Graph { nodes: (0..).zip(inputs).map(node).collect(), arrows: Vec::new() }
    }

    fn add_result(&mut self, value: f64) {
        self.nodes.push(Node { id: RESULT, label: format!("result = {}", short(value)), end: true });
    }

    pub fn of_delta_program(program: &DeltaProgram) -> Graph {
        let mut graph = Graph::of_inputs(&program.inputs);
        let mut connect = |to: i64, summands: &[Summand]| {
            let scaled = summands.iter().filter_map(|summand| match summand {
                Summand::Scaled { factor, id } => Some((*id, to, short(*factor))),
                Summand::Rule => None,
            });
            graph.arrows.extend(scaled);
        };
        for binding in &program.bindings {
            connect(binding.id, &binding.summands);
        }
        connect(RESULT, &program.result);
        let node = |binding: &gradus::Binding| Node { id: binding.id, label: format!("x{}", binding.id), end: false };
        graph.nodes.extend(program.bindings.iter().map(node));
        graph.add_result(program.value);
        graph
    }

    /// The trace term alone: its derivative is a graph of many more arrows.
    pub fn of_trace(trace: &TraceTerm) -> Graph {
        let mut graph = Graph::of_inputs(&trace.inputs);
        let mut last = 0;
        for (id, line) in (trace.first..).zip(&trace.lines) {
            let (name, args) = match line {
                TraceLine::Apply { operation, args } => (operation_name(*operation), &args[..]),
                TraceLine::Rule { name, args, .. } => (name.clone(), &args[..]),
                TraceLine::Rest => {
                    graph.arrows.push((last, id, String::new()));
                    graph.nodes.push(Node { id, label: format!("x{id}"), end: false });
                    continue;
                }
            };
            last = id;
            let constants: Vec<String> =
                args.iter().filter(|arg| !matches!(arg, TraceValue::Slot(_))).map(print_value).collect();
            let label = [&[format!("x{id}: {name}")], &constants[..]].concat().join(" ");
            graph.nodes.push(Node { id, label, end: false });
            graph.connect(id, args);
        }
        graph.connect(RESULT, std::slice::from_ref(&trace.result));
        graph.add_result(trace.value);
        graph
    }

    fn connect(&mut self, to: i64, args: &[TraceValue]) {
        for arg in args {
            if let TraceValue::Slot(from) = arg {
                self.arrows.push((*from, to, String::new()));
            }
        }
    }

    /// For Graphviz.
    pub fn dot(&self) -> String {
        let name = |id: i64| if id == RESULT { "result".to_string() } else { format!("x{id}") };
        let mut out =
            String::from("digraph trace {\n  rankdir=LR;\n  node [shape=ellipse, fontname=\"sans-serif\"];\n");
        for node in &self.nodes {
            let shape = if node.end { "shape=box, " } else { "" };
            let _ = writeln!(out, "  {} [{shape}label=\"{}\"];", name(node.id), escaped(&node.label));
        }
        for (from, to, label) in &self.arrows {
            let label = if label.is_empty() { String::new() } else { format!(" [label=\"{label}\"]") };
            let _ = writeln!(out, "  {} -> {}{label};", name(*from), name(*to));
        }
        out.push_str("}\n");
        out
    }

    /// Nodes stand in columns: each to the right of all that it needs.
    pub fn svg(&self) -> String {
        let mut columns: HashMap<i64, usize> = HashMap::new();
        let mut into: HashMap<i64, Vec<i64>> = HashMap::new();
        for (from, to, _) in &self.arrows {
            into.entry(*to).or_default().push(*from);
        }
        for node in &self.nodes {
            let before =
                into.get(&node.id).into_iter().flatten().map(|from| columns.get(from).copied().unwrap_or(0) + 1);
            let column = before.max().unwrap_or(0);
            columns.insert(node.id, column);
        }
        let mut used: HashMap<usize, usize> = HashMap::new();
        let mut places: HashMap<i64, (f64, f64)> = HashMap::new();
        for Node { id, .. } in &self.nodes {
            let column = columns.get(id).copied().unwrap_or(0);
            let row = used.entry(column).or_insert(0);
            places.insert(*id, (MARGIN + column as f64 * COLUMN + 40.0, MARGIN + *row as f64 * ROW));
            *row += 1;
        }
        let width = 2.0 * MARGIN + 80.0 + COLUMN * used.keys().copied().max().unwrap_or(0) as f64;
        let height = 2.0 * MARGIN + ROW * (used.values().copied().max().unwrap_or(1) as f64 - 1.0);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             font-family=\"system-ui, sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        );
        let at = |id: i64| places.get(&id).copied().unwrap_or((0.0, 0.0));
        for (from, to, label) in &self.arrows {
            let ((x1, y1), (x2, y2)) = (at(*from), at(*to));
            let (start, end, bend) = (x1 + 38.0, x2 - 38.0, (x2 - x1) / 2.0);
            let _ = writeln!(
                out,
                "<path d=\"M{start:.1} {y1:.1}C{:.1} {y1:.1} {:.1} {y2:.1} {end:.1} {y2:.1}\" fill=\"none\" stroke=\"#9bb\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#687\" font-size=\"10\">{}</text>",
                start + bend / 2.0,
                end - bend / 2.0,
                start + (end - start) * 0.7,
                y1 + (y2 - y1) * 0.78 - 3.0,
                escaped(label)
            );
        }
        for Node { id, label, end } in &self.nodes {
            let (x, y) = at(*id);
            let fill = if *end { "#e8f1f8" } else { "#f7f7f7" };
            let _ = writeln!(
                out,
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"76\" height=\"24\" rx=\"6\" fill=\"{fill}\" stroke=\"#679\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                x - 38.0,
                y - 12.0,
                y + 4.0,
                escaped(label)
            );
        }
        out.push_str("</svg>\n");
        out
    }
}
