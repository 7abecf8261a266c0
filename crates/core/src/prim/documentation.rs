//! The primitive table as a page of the reference.

use super::{Fixity, Prim, PrimInfo};
use crate::build::At;
use crate::print::{print_scheme, print_term, Options};
use crate::Var;
use std::fmt::Write;

/// A Markdown page with one row for each primitive; `docs/` holds its text.
pub fn documentation() -> String {
    let mut page = String::from(
        "# Primitives\n\nGenerated from the primitive table in `crates/core/src/prim`; do not edit.\n\n\
         | written | type | meaning | derivative | domain | kinks |\n|---|---|---|---|---|---|\n",
    );
    for prim in Prim::ALL.iter().copied() {
        let info = prim.info();
        let condition = |c: &Option<super::Condition>| c.map_or(String::new(), |c| format!("`{}`", c.text));
        let cells = [
            format!("`{}`", usage(info)),
            format!("`{}`", print_scheme(&info.scheme)),
            info.doc.to_string(),
            derivative(info),
            condition(&info.domain),
            condition(&info.kinks),
        ];
        // A bar inside a cell would end it.
        let cells = cells.map(|c| c.replace('|', "\\|"));
        let _ = writeln!(page, "| {} |", cells.join(" | "));
    }
    page
}

/// `x`, `y` for reals and other data, `k` for integers: the names that conditions use.
fn parameters(info: &PrimInfo) -> Vec<Var> {
    let mut names = ["x", "y", "z"].into_iter();
    let mixed = info.params.len() > 1 && info.params.iter().any(|t| *t != crate::Type::Int);
    let name = |t: &crate::Type| {
        if mixed && *t == crate::Type::Int {
            "k"
        } else {
            names.next().unwrap_or("w")
        }
    };
    info.params.iter().map(name).map(Var::fresh).collect::<Vec<_>>()
}

fn usage(info: &PrimInfo) -> String {
    let names: Vec<String> = parameters(info).iter().map(|v| v.name.to_string()).collect();
    match info.fixity {
        Fixity::Function => format!("{} {}", info.name, names.join(" ")),
        Fixity::Prefix => format!("-{}", names[0]),
        Fixity::Infix => format!("{} {} {}", names[0], info.name, names[1]),
        Fixity::Index => format!("{}.({})", names[0], names[1]),
    }
}

fn derivative(info: &PrimInfo) -> String {
    let Some(partials) = info.partials else { return String::new() };
    let at = At::default();
    let args: Vec<_> = parameters(info).iter().map(|v| at.var(v)).collect();
    let terms = partials(at, &args);
    let options = Options { width: usize::MAX, ..Options::default() };
    let shown: Vec<String> = terms.iter().flatten().map(|t| format!("`{}`", print_term(None, t, options))).collect();
    shown.join(", ")
}
