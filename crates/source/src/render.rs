//! A diagnostic drawn for people: the message, the source lines underlined, notes and help.
//!
//! ```text
//! error[E0013]: this `if` has no `else`
//!  --> a.gr:1:20
//!   |
//! 1 | show if x then true
//!   |                    ^ expected `else` here
//!   |      -- for this `if`
//!   = help: `if` is an expression and must have a value in both cases
//! ```

use crate::excerpt::{clean, Excerpt};
use crate::{Diagnostic, Label, Severity, SourceFile, SourceMap};
use std::fmt::Write;

/// Draws a diagnostic, with a line break at its end. `colour` adds the escape codes of a terminal.
pub fn render(diagnostic: &Diagnostic, map: &SourceMap, colour: bool) -> String {
    let mut drawing = Drawing { text: String::new(), paint: Paint { on: colour }, margin: margin(diagnostic, map) };
    drawing.header(diagnostic);
    drawing.places(diagnostic, map);
    for note in &diagnostic.notes {
        drawing.remark("note", note);
    }
    if let Some(help) = &diagnostic.help {
        drawing.remark("help", help);
    }
    drawing.text
}

/// The width of the largest line number that will be shown.
fn margin(diagnostic: &Diagnostic, map: &SourceMap) -> usize {
    let lines =
        diagnostic.labels.iter().filter_map(|label| Some(map.file(label.span.file)?.position(label.span.start).line));
    lines.max().map_or(0, |line| line.to_string().len())
}

struct Drawing {
    text: String,
    paint: Paint,
    margin: usize,
}

/// A label with the file and the line it starts on. The main label comes first among those of its line.
struct Place<'a> {
    label: &'a Label,
    file: &'a SourceFile,
    line: usize,
    main: bool,
}

impl Drawing {
    fn header(&mut self, diagnostic: &Diagnostic) {
        let (word, colour) = match diagnostic.severity {
            Severity::Error => ("error", Colour::Red),
            Severity::Warning => ("warning", Colour::Yellow),
        };
        let head = self.paint.with(colour, &format!("{word}[{}]", diagnostic.code));
        let message = self.paint.with(Colour::Bold, &format!(": {}", indented(&diagnostic.message, 2)));
        self.line(&format!("{head}{message}"));
    }

    /// The labels, those of the main label's file first, each file's in the order of its lines.
    fn places(&mut self, diagnostic: &Diagnostic, map: &SourceMap) {
        let known = diagnostic.labels.iter().enumerate().filter_map(|(i, label)| {
            let file = map.file(label.span.file)?;
            Some(Place { label, file, line: file.position(label.span.start).line, main: i == 0 })
        });
        let places: Vec<Place> = known.collect();
        let mut files = Vec::new();
        for place in &places {
            if !files.contains(&place.label.span.file) {
                files.push(place.label.span.file);
            }
        }
        for (i, id) in files.iter().enumerate() {
            let mut here: Vec<&Place> = places.iter().filter(|place| place.label.span.file == *id).collect();
            let Some(first) = here.first() else { continue };
            let at = first.file.position(first.label.span.start);
            let arrow = self.paint.with(Colour::Blue, if i == 0 { "-->" } else { ":::" });
            self.line(&format!(
                "{:margin$}{arrow} {}:{}:{}",
                "",
                first.file.name,
                at.line,
                at.column,
                margin = self.margin
            ));
            here.sort_by_key(|place| (place.line, !place.main, place.label.span.start));
            self.lines(&here, diagnostic.severity);
        }
    }

    fn lines(&mut self, places: &[&Place], severity: Severity) {
        self.gutter("", "");
        let mut shown: Option<(usize, Excerpt)> = None;
        for place in places {
            let excerpt = Excerpt::new(place.file, place.label.span, place.line);
            let repeated = shown.as_ref().is_some_and(|(line, last)| *line == place.line && last.text == excerpt.text);
            if !repeated {
                if shown.as_ref().is_some_and(|(line, _)| line + 1 < place.line) {
                    let dots = self.paint.with(Colour::Blue, "...");
                    self.line(&dots);
                }
                self.gutter(&place.line.to_string(), &excerpt.text);
            }
            let (mark, colour) = match (place.main, severity) {
                (true, Severity::Error) => ("^", Colour::Red),
                (true, Severity::Warning) => ("^", Colour::Yellow),
                (false, _) => ("-", Colour::Blue),
            };
            let text = indented(&place.label.text, self.margin + 3 + excerpt.column);
            let underline = format!("{} {text}", mark.repeat(excerpt.width));
            let underline = self.paint.with(colour, underline.trim_end());
            self.gutter("", &format!("{}{underline}", " ".repeat(excerpt.column)));
            shown = Some((place.line, excerpt));
        }
    }

    fn remark(&mut self, word: &str, text: &str) {
        let sign = self.paint.with(Colour::Blue, "=");
        let word = self.paint.with(Colour::Bold, &format!("{word}:"));
        let text = indented(text, self.margin + 9);
        self.line(&format!("{:margin$} {sign} {word} {text}", "", margin = self.margin));
    }

    fn gutter(&mut self, number: &str, content: &str) {
        let gutter = self.paint.with(Colour::Blue, &format!("{number:margin$} |", margin = self.margin));
        let line = if content.is_empty() { gutter } else { format!("{gutter} {content}") };
        self.line(&line);
    }

    fn line(&mut self, text: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{text}");
    }
}

/// Text of several lines with all but the first moved to the right, and without characters that would act on the terminal.
fn indented(text: &str, by: usize) -> String {
    let mut lines = text.split('\n').map(clean);
    let mut result = lines.next().unwrap_or_default();
    for line in lines {
        let _ = write!(result, "\n{:by$}{line}", "");
    }
    result
}

#[derive(Clone, Copy)]
enum Colour {
    Bold,
    Red,
    Yellow,
    Blue,
}

struct Paint {
    on: bool,
}

impl Paint {
    fn with(&self, colour: Colour, text: &str) -> String {
        if !self.on {
            return text.to_string();
        }
        let code = match colour {
            Colour::Bold => "1",
            Colour::Red => "1;31",
            Colour::Yellow => "1;33",
            Colour::Blue => "1;34",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}
