//! Checks of loops that run in vector lanes, made before them.

use super::emit::Emitter;
use super::vectors::in_lanes;
use crate::checks::{are_alike, checks_of, hold_between};
use crate::flow::*;

/// Iterations whose checks are made together.
const TOGETHER: i64 = 1 << 14;

/// For a loop that could run in vector lanes but for its checks: the checks with what they are computed from, and the loop
/// without them. Only checks on arithmetic of the index and of outer values can be made ahead.
pub(super) fn checks_apart(l: &For) -> Option<(Vec<Stmt>, For)> {
    let mut rest = l.clone();
    rest.body.stmts.retain(|s| !matches!(s.op, Op::Check { .. }));
    if rest.body.stmts.len() == l.body.stmts.len() || !in_lanes(&rest) {
        return None;
    }
    Some((checks_of(l)?, rest))
}

impl Emitter<'_> {
    /// All the checks of a loop before it runs, from one iteration to before another.
    pub(super) fn check_loop(&mut self, checks: &[Stmt], index: Var, [from, to]: [&str; 2]) {
        let name = self.name(index);
        if are_alike(checks, index) {
            self.line(&format!("if ({from} < {to}) {{"));
            self.depth += 1;
            checks.iter().for_each(|stmt| self.plain(stmt));
        } else if let Some(unsure) = hold_between(checks, index) {
            self.line(&format!("if ({from} < {to}) {{"));
            self.depth += 1;
            self.line("int64_t bad = 0;");
            let first: Vec<String> = unsure.iter().map(|place| format!("first_{}", self.name(*place))).collect();
            first.iter().for_each(|first| self.line(&format!("int64_t {first};")));
            for (end, is_last) in [(from.to_string(), false), (format!("{to} - 1"), true)] {
                self.line("{");
                self.depth += 1;
                self.line(&format!("int64_t {name} = {end};"));
                self.find_bad(checks);
                for (place, first) in unsure.iter().zip(&first) {
                    let place = self.name(*place);
                    self.line(&match is_last {
                        true => format!("bad |= {place} < {first};"),
                        false => format!("{first} = {place};"),
                    });
                }
                self.depth -= 1;
                self.line("}");
            }
            self.search_bad(checks, &name, [from, to]);
        } else {
            // In parts, so that a loop that fails early does not look at all its iterations first.
            let (part, past) = (format!("{name}_part"), format!("{name}_past"));
            self.line(&format!("for (int64_t {part} = {from}, {past}; {part} < {to}; {part} = {past}) {{"));
            self.depth += 1;
            self.line(&format!("{past} = {to} - {part} > {TOGETHER} ? {part} + {TOGETHER} : {to};"));
            self.line("int64_t bad = 0;");
            self.line("#pragma omp simd reduction(| : bad)");
            self.line(&format!("for (int64_t {name} = {part}; {name} < {past}; {name}++) {{"));
            self.depth += 1;
            self.find_bad(checks);
            self.depth -= 1;
            self.line("}");
            self.search_bad(checks, &name, [&part, &past]);
        }
        self.depth -= 1;
        self.line("}");
    }

    /// Whether any check of an iteration fails.
    fn find_bad(&mut self, checks: &[Stmt]) {
        for stmt in checks {
            match &stmt.op {
                Op::Check { cond, .. } => {
                    let cond = self.atom(*cond);
                    self.line(&format!("bad |= !({cond});"));
                }
                _ => self.plain(stmt),
            }
        }
    }

    /// Finds which check fails first, if one may.
    fn search_bad(&mut self, checks: &[Stmt], index: &str, [from, to]: [&str; 2]) {
        self.line("if (GR_RARE(bad))");
        self.line(&format!("for (int64_t {index} = {from}; {index} < {to}; {index}++) {{"));
        self.depth += 1;
        checks.iter().for_each(|stmt| self.plain(stmt));
        self.depth -= 1;
        self.line("}");
    }
}
