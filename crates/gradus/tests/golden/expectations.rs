//! The expectations of a golden program, read from its comments as tests/README.md says.

use gradus_core::Mode;
use gradus_syntax::ast;

/// Derivative forms that may stand before arguments: `(* grad: f 3.0 = 6.0 *)`.
const FORMS: [&str; 9] = ["grad", "value_and_grad", "vjp", "jvp", "jacobian", "hessian", "hvp", "diff", "taylor"];

#[derive(Debug)]
pub struct Expectation {
    /// For messages: where it stands and what it says.
    pub line: usize,
    pub text: String,
    pub kind: Kind,
}

#[derive(Debug)]
pub enum Kind {
    /// Two expressions of one type that must agree.
    Equal {
        left: String,
        right: String,
        tolerance: f64,
    },
    /// The text that the `show` with this number among the items prints.
    Prints {
        item: usize,
        text: String,
    },
    Type {
        name: String,
        ty: String,
    },
}

#[derive(Debug, Default)]
pub struct Golden {
    pub expectations: Vec<Expectation>,
    pub options: Vec<String>,
    /// Modes that refuse something here.
    pub refuses: Vec<Mode>,
    /// If given, the only modes to try.
    pub only: Option<Vec<Mode>>,
    pub only_reason: String,
    /// Whether it has anything to run: otherwise it is a module for others.
    pub is_module: bool,
}

pub fn read(text: &str) -> Result<Golden, String> {
    let parsed = gradus_syntax::parse_module(Default::default(), text);
    let runs = |item: &ast::Item| {
        matches!(item.kind, ast::ItemKind::Show(_) | ast::ItemKind::Check(_) | ast::ItemKind::Plot { .. })
    };
    // Numbered as the driver numbers what is run.
    let items: Vec<&ast::Item> = parsed.tree.items.iter().filter(|item| runs(item)).collect();
    let mut golden = Golden::default();
    for comment in &parsed.comments {
        let raw = slice(text, comment.span);
        let Some(inside) = raw.strip_prefix("(*").and_then(|t| t.strip_suffix("*)")) else { continue };
        let line = text.get(..comment.span.start as usize).unwrap_or("").lines().count().max(1);
        let inside = inside.trim();
        let shown = || {
            let before = items.iter().enumerate().rev().find(|(_, item)| item.span.end <= comment.span.start);
            match before {
                Some((number, ast::Item { kind: ast::ItemKind::Show(e), .. })) => Ok((number, slice(text, e.span))),
                _ => Err(format!("line {line}: this expectation must stand after a `show`")),
            }
        };
        let kind = if let Some(value) = inside.strip_prefix("= ") {
            let (right, tolerance) = value_and_tolerance(value)?;
            Kind::Equal { left: shown()?.1.to_string(), right, tolerance }
        } else if let Some((word, rest)) = inside.split_once(':') {
            match word {
                "prints" => Kind::Prints { item: shown()?.0, text: rest.trim().to_string() },
                "value" => equal(line, "", rest)?,
                form if FORMS.contains(&form) => equal(line, form, rest)?,
                "type" => {
                    let (name, ty) = rest.split_once(" : ").ok_or(format!("line {line}: expected NAME : TYPE"))?;
                    Kind::Type { name: name.trim().to_string(), ty: ty.trim().to_string() }
                }
                "options" => {
                    golden.options.extend(rest.split_whitespace().map(String::from));
                    continue;
                }
                "refuses" => {
                    golden.refuses.extend(modes(line, rest)?.0);
                    continue;
                }
                "only" => {
                    let (listed, reason) = modes(line, rest)?;
                    golden.only = Some(listed);
                    golden.only_reason = reason;
                    continue;
                }
                _ => continue,
            }
        } else {
            continue;
        };
        golden.expectations.push(Expectation { line, text: inside.to_string(), kind });
    }
    golden.is_module = items.is_empty() && golden.expectations.is_empty();
    Ok(golden)
}

fn slice(text: &str, span: gradus_source::Span) -> &str {
    text.get(span.start as usize..span.end as usize).unwrap_or("")
}

/// `ARGS = VALUE +- TOLERANCE`
fn equal(line: usize, form: &str, rest: &str) -> Result<Kind, String> {
    let at = separator(rest).ok_or(format!("line {line}: expected EXPR = VALUE"))?;
    let (left, right) = (rest.get(..at).unwrap_or(""), rest.get(at + 3..).unwrap_or(""));
    let (right, tolerance) = value_and_tolerance(right)?;
    Ok(Kind::Equal { left: format!("{form} {}", left.trim()), right, tolerance })
}

/// Where the first ` = ` outside brackets and strings begins.
fn separator(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0i32;
    let mut in_string = false;
    let mut escaped = false;
    for (i, byte) in bytes.iter().enumerate() {
        if in_string {
            in_string = escaped || *byte != b'"';
            escaped = !escaped && *byte == b'\\';
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            b'=' if depth == 0 => {
                let blank = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_whitespace);
                if blank(i.checked_sub(1)) && blank(Some(i + 1)) {
                    return Some(i - 1);
                }
            }
            _ => {}
        }
    }
    None
}

fn value_and_tolerance(text: &str) -> Result<(String, f64), String> {
    match text.rsplit_once("+-") {
        Some((value, tolerance)) => {
            let tolerance = tolerance.trim().parse().map_err(|_| format!("not a tolerance: {tolerance}"))?;
            Ok((value.trim().to_string(), tolerance))
        }
        None => Ok((text.trim().to_string(), 1e-10)),
    }
}

/// `combinator, trace, because REASON`
fn modes(line: usize, text: &str) -> Result<(Vec<Mode>, String), String> {
    let (list, reason) =
        text.split_once("because").ok_or(format!("line {line}: a reason is missing (`because ...`)"))?;
    let keys = list.split(',').map(str::trim).filter(|key| !key.is_empty());
    let modes: Result<Vec<Mode>, String> =
        keys.map(|key| Mode::from_key(key).ok_or(format!("line {line}: there is no mode {key}"))).collect();
    Ok((modes?, reason.trim().to_string()))
}
