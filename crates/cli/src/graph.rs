//! A Delta program as a graph: for Graphviz, or drawn as SVG without outside tools.

use gradus::{DeltaProgram, Summand};
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

/// The arrows into a node, as (from, factor).
fn arrows(summands: &[Summand]) -> impl Iterator<Item = (i64, f64)> + '_ {
    summands.iter().filter_map(|summand| match summand {
        Summand::Scaled { factor, id } => Some((*id, *factor)),
        Summand::Rule => None,
    })
}

pub fn dot(program: &DeltaProgram) -> String {
    let mut out = String::from("digraph delta {\n  rankdir=LR;\n  node [shape=circle, fontname=\"sans-serif\"];\n");
    for (id, value) in program.inputs.iter().enumerate() {
        let _ = writeln!(out, "  x{id} [shape=box, label=\"x{id}\\n{}\"];", short(*value));
    }
    let _ = writeln!(out, "  result [shape=box, label=\"result\\n{}\"];", short(program.value));
    let results = arrows(&program.result).map(|(from, factor)| (from, "result".to_string(), factor));
    let inner = program
        .bindings
        .iter()
        .flat_map(|binding| arrows(&binding.summands).map(|(from, factor)| (from, format!("x{}", binding.id), factor)));
    for (from, to, factor) in inner.chain(results) {
        let _ = writeln!(out, "  x{from} -> {to} [label=\"{}\"];", short(factor));
    }
    out.push_str("}\n");
    out
}

/// Nodes stand in columns: each to the right of all that it needs.
pub fn svg(program: &DeltaProgram) -> String {
    let mut columns: HashMap<i64, usize> = (0..program.inputs.len() as i64).map(|id| (id, 0)).collect();
    let mut nodes: Vec<(i64, String)> = program
        .inputs
        .iter()
        .enumerate()
        .map(|(id, value)| (id as i64, format!("x{id} = {}", short(*value))))
        .collect();
    const RESULT: i64 = -1;
    let all = program.bindings.iter().map(|binding| (binding.id, &binding.summands)).chain([(RESULT, &program.result)]);
    let mut edges = Vec::new();
    for (id, summands) in all {
        let column = arrows(summands).map(|(from, _)| columns.get(&from).copied().unwrap_or(0) + 1).max().unwrap_or(0);
        columns.insert(id, column);
        let label = if id == RESULT { format!("result = {}", short(program.value)) } else { format!("x{id}") };
        nodes.push((id, label));
        edges.extend(arrows(summands).map(|(from, factor)| (from, id, factor)));
    }
    let mut used: HashMap<usize, usize> = HashMap::new();
    let mut places: HashMap<i64, (f64, f64)> = HashMap::new();
    for (id, _) in &nodes {
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
    for (from, to, factor) in &edges {
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
            short(*factor)
        );
    }
    for (id, label) in &nodes {
        let (x, y) = at(*id);
        let fill = if *id == RESULT || (*id as usize) < program.inputs.len() { "#e8f1f8" } else { "#f7f7f7" };
        let _ = writeln!(
            out,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"76\" height=\"24\" rx=\"6\" fill=\"{fill}\" stroke=\"#679\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
            x - 38.0,
            y - 12.0,
            y + 4.0
        );
    }
    out.push_str("</svg>\n");
    out
}
