//! The part of a source line that is shown with a span of it, ready for a terminal.

use crate::{SourceFile, Span};

/// A line may be megabytes long; this much of it is shown, in characters, around the start of the span.
const WINDOW: usize = 120;
const BEFORE: usize = 40;

/// What to show of a line, and where in it the underline goes, in columns of the terminal.
pub struct Excerpt {
    pub text: String,
    pub column: usize,
    pub width: usize,
}

impl Excerpt {
    /// The span must start on this line; what of it lies on later lines is not underlined.
    pub fn new(file: &SourceFile, span: Span, line: usize) -> Excerpt {
        let source = file.line(line);
        let line_start = file.line_start(line);
        let within = |offset: u32| floor_boundary(source, (offset as usize).saturating_sub(line_start));
        let (start, end) = (within(span.start), within(span.end).max(within(span.start)));

        let is_long = source.chars().nth(WINDOW).is_some();
        let from = if is_long { back(source, start, BEFORE) } else { 0 };
        let to = if is_long { forward(source, from, WINDOW) } else { source.len() };
        let prefix = if from > 0 { "..." } else { "" };
        let suffix = if to < source.len() { "..." } else { "" };

        let before = clean(&source[from..start]);
        let inside = clean(&source[start..end.min(to).max(start)]);
        let text = format!("{prefix}{}{suffix}", clean(&source[from..to]));
        Excerpt {
            text: text.trim_end().to_string(),
            column: prefix.len() + width(&before),
            width: width(&inside).max(1),
        }
    }
}

fn floor_boundary(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

/// The offset so many characters before another.
fn back(text: &str, offset: usize, characters: usize) -> usize {
    text[..offset].char_indices().rev().nth(characters - 1).map_or(0, |(i, _)| i)
}

/// The offset so many characters behind another.
fn forward(text: &str, offset: usize, characters: usize) -> usize {
    text[offset..].char_indices().nth(characters).map_or(text.len(), |(i, _)| offset + i)
}

/// Text with tabs as spaces, and a mark for each character that would act on the terminal.
pub fn clean(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\t' => result.push_str("    "),
            // Controls, and the marks that change the direction of writing.
            c if c.is_control()
                || matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') =>
            {
                result.push('\u{fffd}');
            }
            c => result.push(c),
        }
    }
    result
}

/// How many columns a terminal uses for a text.
fn width(text: &str) -> usize {
    text.chars()
        .map(|character| match character as u32 {
            0x300..=0x36f | 0x200b..=0x200d | 0xfe00..=0xfe0f => 0,
            0x1100..=0x115f
            | 0x2e80..=0xa4cf
            | 0xac00..=0xd7a3
            | 0xf900..=0xfaff
            | 0xfe30..=0xfe6f
            | 0xff00..=0xff60
            | 0xffe0..=0xffe6
            | 0x1f300..=0x1faff
            | 0x20000..=0x3fffd => 2,
            _ => 1,
        })
        .sum()
}
