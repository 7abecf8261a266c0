//! Types up to the names of variables and white space.

/// Renames `'a` and sizes by order of appearance and removes blanks that do not separate words.
pub fn normal(ty: &str) -> String {
    let mut names: Vec<String> = Vec::new();
    let mut out = String::new();
    let mut rest = ty;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        let word: String = after.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        match c {
            '\'' | '[' if word.starts_with(|c: char| c.is_alphabetic()) => {
                let name = format!("{c}{word}");
                let number = names.iter().position(|known| *known == name).unwrap_or_else(|| {
                    names.push(name);
                    names.len() - 1
                });
                out.push_str(&format!("{c}{number}"));
                rest = &after[word.len()..];
                continue;
            }
            c if c.is_whitespace() => {
                if !out.ends_with(' ') {
                    out.push(' ');
                }
            }
            c => out.push(c),
        }
        rest = after;
    }
    out.trim().to_string()
}
