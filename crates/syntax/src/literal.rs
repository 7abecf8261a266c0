//! Strings as literals of the language, both ways.

/// How long the escape at the start of the text is, and the character it means.
pub fn escape(text: &str) -> (usize, Option<char>) {
    let mut letters = text.chars().skip(1);
    match letters.next() {
        Some('n') => (2, Some('\n')),
        Some('t') => (2, Some('\t')),
        Some('r') => (2, Some('\r')),
        Some('"') => (2, Some('"')),
        Some('\\') => (2, Some('\\')),
        Some('u') => {
            match text.get(2..).and_then(|rest| rest.strip_prefix('{')).and_then(|rest| rest.split_once('}')) {
                Some((digits, _)) if digits.len() <= 8 => {
                    let code = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
                    (digits.len() + 4, code)
                }
                _ => (2, None),
            }
        }
        Some(other) => (1 + other.len_utf8(), None),
        None => (1, None),
    }
}

/// A string as a literal of the language.
pub fn quote(value: &str) -> String {
    let mut text = String::with_capacity(value.len() + 2);
    text.push('"');
    for character in value.chars() {
        match character {
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            '\r' => text.push_str("\\r"),
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            c if c.is_control() => text.push_str(&format!("\\u{{{:x}}}", c as u32)),
            c => text.push(c),
        }
    }
    text.push('"');
    text
}
