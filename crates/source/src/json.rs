//! A diagnostic for programs: one JSON object.

use crate::{Diagnostic, Severity, SourceMap, Span};
use std::fmt::Write;

/// The diagnostic as a JSON object on one line: `severity`, `code`, `message`, `file`, `line`, `column`, `end_line`,
/// `end_column` (of the main label; null if it has none), `labels` (each with `file` to `end_column` and `text`),
/// `notes`, `help` (or null).
pub fn to_json(diagnostic: &Diagnostic, map: &SourceMap) -> String {
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let main = place(diagnostic.labels.first().map(|label| label.span), map);
    let labels = diagnostic.labels.iter().map(|label| {
        let place = place(Some(label.span), map);
        format!("{{{place},\"text\":{}}}", string(&label.text))
    });
    let notes = diagnostic.notes.iter().map(|note| string(note));
    let help = diagnostic.help.as_deref().map_or("null".to_string(), string);
    format!(
        "{{\"severity\":\"{severity}\",\"code\":{},\"message\":{},{main},\"labels\":[{}],\"notes\":[{}],\"help\":{help}}}",
        string(diagnostic.code),
        string(&diagnostic.message),
        labels.collect::<Vec<_>>().join(","),
        notes.collect::<Vec<_>>().join(","),
    )
}

/// The members that tell where a span is.
fn place(span: Option<Span>, map: &SourceMap) -> String {
    match span.and_then(|span| Some((span, map.file(span.file)?))) {
        Some((span, file)) => {
            let (start, end) = (file.position(span.start), file.position(span.end));
            format!(
                "\"file\":{},\"line\":{},\"column\":{},\"end_line\":{},\"end_column\":{}",
                string(&file.name),
                start.line,
                start.column,
                end.line,
                end.column
            )
        }
        None => "\"file\":null,\"line\":null,\"column\":null,\"end_line\":null,\"end_column\":null".to_string(),
    }
}

fn string(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    for character in text.chars() {
        match character {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\n' => json.push_str("\\n"),
            '\r' => json.push_str("\\r"),
            '\t' => json.push_str("\\t"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => {
                // Writing to a string cannot fail.
                let _ = write!(json, "\\u{:04x}", c as u32);
            }
            c => json.push(c),
        }
    }
    json.push('"');
    json
}
