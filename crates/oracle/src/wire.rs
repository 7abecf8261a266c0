//! Types and terms of the proved language (`proofs/Language.v`), as they travel to and from the oracle.

use gradus_core::traverse::with_stack;
use std::fmt::Write;
use std::rc::Rc;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ty {
    Real,
    Unit,
    Int,
    Prod(Rc<(Ty, Ty)>),
    Sum(Rc<(Ty, Ty)>),
    Fun(Rc<(Ty, Ty)>),
    Array(Rc<Ty>),
    /// Finitely branching trees with labels.
    Tree(Rc<Ty>),
}

impl Ty {
    pub fn prod(a: Ty, b: Ty) -> Ty {
        Ty::Prod(Rc::new((a, b)))
    }

    pub fn sum(a: Ty, b: Ty) -> Ty {
        Ty::Sum(Rc::new((a, b)))
    }

    pub fn fun(a: Ty, b: Ty) -> Ty {
        Ty::Fun(Rc::new((a, b)))
    }

    pub fn array(a: Ty) -> Ty {
        Ty::Array(Rc::new(a))
    }

    pub fn tree(label: Ty) -> Ty {
        Ty::Tree(Rc::new(label))
    }

    /// `true` is the left.
    pub fn bool() -> Ty {
        Ty::sum(Ty::Unit, Ty::Unit)
    }

    /// `TLabel` of `proofs/Delta.v`: Zero, Scale, Add, Var, Let.
    pub fn delta() -> Ty {
        Ty::tree(Ty::sum(Ty::Unit, Ty::sum(Ty::Real, Ty::sum(Ty::Unit, Ty::sum(Ty::Int, Ty::Int)))))
    }

    pub fn write(&self, out: &mut String) {
        match self {
            Ty::Real => out.push('R'),
            Ty::Unit => out.push('U'),
            Ty::Int => out.push('I'),
            Ty::Prod(p) => write_two(out, "*", p),
            Ty::Sum(p) => write_two(out, "+", p),
            Ty::Fun(p) => write_two(out, "->", p),
            Ty::Array(t) => write_one(out, "arr", t),
            Ty::Tree(t) => write_one(out, "tree", t),
        }
    }
}

fn write_one(out: &mut String, name: &str, t: &Ty) {
    let _ = write!(out, "({name} ");
    t.write(out);
    out.push(')');
}

fn write_two(out: &mut String, name: &str, parts: &(Ty, Ty)) {
    let _ = write!(out, "({name} ");
    parts.0.write(out);
    out.push(' ');
    parts.1.write(out);
    out.push(')');
}

/// A term, with de Bruijn indices. Binders: `Lam`, `Build` and each arm of `Case` bind 0; `Let` binds 0 in its second part;
/// `Fix` binds its argument 0 and itself 1; `Loop` the accumulator 0 and the index 1.
#[derive(Clone, Debug, PartialEq)]
pub enum Wire {
    Var(usize),
    Lam(Ty, Box<Wire>),
    Let(Box<Wire>, Box<Wire>),
    Fix(Ty, Ty, Box<Wire>),
    Case(Box<Wire>, Box<Wire>, Box<Wire>),
    Int(i64),
    /// The real m * 2^e.
    Lit(i64, i32),
    Nil(Ty),
    /// The type is that of the other side.
    Inl(Ty, Box<Wire>),
    Inr(Ty, Box<Wire>),
    /// size, start, body
    Loop(Box<Wire>, Box<Wire>, Box<Wire>),
    /// size, body
    Build(Box<Wire>, Box<Wire>),
    /// Everything that binds nothing, by its name.
    Op(&'static str, Vec<Wire>),
}

impl Wire {
    pub fn op(name: &'static str, args: impl Into<Vec<Wire>>) -> Wire {
        Wire::Op(name, args.into())
    }

    pub fn lam(ty: Ty, body: Wire) -> Wire {
        Wire::Lam(ty, Box::new(body))
    }

    pub fn bind(bound: Wire, body: Wire) -> Wire {
        Wire::Let(Box::new(bound), Box::new(body))
    }

    pub fn case(scrutinee: Wire, left: Wire, right: Wire) -> Wire {
        Wire::Case(Box::new(scrutinee), Box::new(left), Box::new(right))
    }

    pub fn write(&self, out: &mut String) {
        with_stack(|| match self {
            Wire::Var(i) => {
                let _ = write!(out, "(v {i})");
            }
            Wire::Int(z) => {
                let _ = write!(out, "(int {z})");
            }
            Wire::Lit(m, e) => {
                let _ = write!(out, "(lit {m} {e})");
            }
            Wire::Nil(t) => write_one(out, "nil", t),
            Wire::Lam(t, b) => write_typed(out, "lam", &[t], b),
            Wire::Fix(a, b, e) => write_typed(out, "fix", &[a, b], e),
            Wire::Inl(t, e) => write_typed(out, "inl", &[t], e),
            Wire::Inr(t, e) => write_typed(out, "inr", &[t], e),
            Wire::Let(a, b) => write_all(out, "let", &[a, b]),
            Wire::Case(s, l, r) => write_all(out, "case", &[s, l, r]),
            Wire::Loop(n, z, b) => write_all(out, "loop", &[n, z, b]),
            Wire::Build(n, b) => write_all(out, "build", &[n, b]),
            Wire::Op(name, args) => write_all(out, name, &args.iter().collect::<Vec<_>>()),
        })
    }
}

fn write_typed(out: &mut String, name: &str, types: &[&Ty], term: &Wire) {
    out.push('(');
    out.push_str(name);
    for t in types {
        out.push(' ');
        t.write(out);
    }
    out.push(' ');
    term.write(out);
    out.push(')');
}

fn write_all(out: &mut String, name: &str, terms: &[&Wire]) {
    out.push('(');
    out.push_str(name);
    for term in terms {
        out.push(' ');
        term.write(out);
    }
    out.push(')');
}

/// The integer significand and exponent of a finite float.
pub fn decompose(x: f64) -> Option<(i64, i32)> {
    if !x.is_finite() {
        return None;
    }
    let bits = x.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i32;
    let fraction = (bits & ((1 << 52) - 1)) as i64;
    let (mut m, mut e) = if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) };
    if m == 0 {
        return Some((0, 0));
    }
    while m % 2 == 0 {
        m /= 2;
        e += 1;
    }
    // A whole number is written as itself, as the proofs write their literals.
    while e > 0 && m < 1 << 52 {
        m *= 2;
        e -= 1;
    }
    Some((if bits >> 63 == 1 { -m } else { m }, e))
}

/// An answer of the oracle, read.
#[derive(Clone, Debug, PartialEq)]
pub enum Sexp {
    Atom(String),
    List(Vec<Sexp>),
}

impl Sexp {
    pub fn read(text: &str) -> Option<Sexp> {
        let mut stack: Vec<Vec<Sexp>> = vec![Vec::new()];
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            match bytes[at] {
                b'(' => stack.push(Vec::new()),
                b')' => {
                    let list = stack.pop()?;
                    stack.last_mut()?.push(Sexp::List(list));
                }
                b' ' | b'\n' | b'\r' | b'\t' => {}
                _ => {
                    let start = at;
                    while at + 1 < bytes.len() && !matches!(bytes[at + 1], b'(' | b')' | b' ' | b'\n' | b'\r' | b'\t') {
                        at += 1;
                    }
                    stack.last_mut()?.push(Sexp::Atom(text[start..=at].to_string()));
                }
            }
            at += 1;
        }
        let mut whole = stack.pop()?;
        (stack.is_empty() && whole.len() == 1).then(|| whole.pop())?
    }

    /// The text, for reports: a line for each `let`.
    pub fn text(&self) -> String {
        match self {
            Sexp::Atom(a) => a.clone(),
            Sexp::List(parts) => match &parts[..] {
                [Sexp::Atom(name), bound, body] if name == "let" => format!("{};\n    {}", bound.text(), body.text()),
                parts => format!("({})", parts.iter().map(Sexp::text).collect::<Vec<_>>().join(" ")),
            },
        }
    }

    pub fn atom(&self) -> Option<&str> {
        match self {
            Sexp::Atom(a) => Some(a),
            Sexp::List(_) => None,
        }
    }

    pub fn list(&self) -> Option<&[Sexp]> {
        match self {
            Sexp::List(l) => Some(l),
            Sexp::Atom(_) => None,
        }
    }
}
