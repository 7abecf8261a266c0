//! Searches for the largest or smallest number, in vector lanes.
//!
//! Lanes do not know which of them came first, which matters between zeros of different signs and where something is no number. Then the iterations are
//! done again one by one.

use super::emit::Emitter;
use super::loops::SIMPLE;
use super::scalars;
use super::vectors::vectors;
use crate::cores::{joins, Join};
use crate::flow::*;

/// A search in fewer iterations is no faster in lanes.
const SHORT: usize = 20;

/// A loop that does nothing but look for extremes.
pub(super) struct Search {
    joins: Vec<Join>,
    /// What an iteration gives to choose from.
    values: Block,
}

pub(super) fn search(l: &For) -> Option<Search> {
    if l.carried.is_empty() || l.body.results.len() != l.carried.len() || l.body.stmts.len() > SIMPLE {
        return None;
    }
    let joins = joins(l)?;
    let mut values = l.body.clone();
    values.results.clear();
    for ((state, _), join) in l.carried.iter().zip(&joins) {
        let at = values.stmts.iter().position(|stmt| stmt.mentions(*state))?;
        match (join, values.stmts.remove(at).op) {
            (Join::Maximum | Join::Minimum, Op::Scalar { args, .. }) => values.results.push(*args.last()?),
            _ => return None,
        }
    }
    let adds = values.stmts.iter().any(|stmt| matches!(stmt.op, Op::Add { .. }));
    let side_by_side = For { carried: Vec::new(), body: values.clone(), ..l.clone() };
    (!adds && vectors(&side_by_side).is_some()).then_some(Search { joins, values })
}

impl Emitter<'_> {
    /// Does all iterations in lanes; gives the first of those that are left to do one by one.
    pub(super) fn search(&mut self, search: &Search, index: &str, state: &[String], [start, end]: [&str; 2]) -> String {
        let rest = format!("{index}_rest");
        self.line(&format!("int64_t {rest} = {start};"));
        self.line(&format!("if ({end} - {start} >= {SHORT}) {{"));
        self.depth += 1;
        self.line("int64_t none = 0;");
        let found: Vec<(Join, String)> = search.joins.iter().copied().zip((0..).map(|k| format!("best{k}"))).collect();
        let mut reductions = String::from("reduction(| : none)");
        for (join, best) in &found {
            let neutral = self.atom(join.neutral());
            self.line(&format!("double {best} = {neutral};"));
            let kind = if *join == Join::Minimum { "min" } else { "max" };
            reductions.push_str(&format!(" reduction({kind} : {best})"));
        }
        self.line(&format!("#pragma omp simd {reductions}"));
        self.line(&format!("for (int64_t {index} = {start}; {index} < {end}; {index}++) {{"));
        self.depth += 1;
        let values: Vec<String> = (0..found.len()).map(|k| format!("value{k}")).collect();
        self.line(&format!("double {};", values.join(", ")));
        self.in_lanes = true;
        self.block(&search.values, &[], &values);
        self.in_lanes = false;
        for (value, (join, best)) in values.iter().zip(&found) {
            let further = if *join == Join::Minimum { "<" } else { ">" };
            self.line(&format!("{best} = {value} {further} {best} ? {value} : {best};"));
            self.line(&format!("none |= {value} != {value};"));
        }
        self.depth -= 1;
        self.line("}");
        let clear: String = found.iter().map(|(_, best)| format!(" && {best} != 0.0")).collect();
        self.line(&format!("if (!none{clear}) {{"));
        for ((join, best), state) in found.into_iter().zip(state) {
            let joined = scalars::expression(join.prim(), &[state.clone(), best], &[]);
            self.line(&format!("  {state} = {joined};"));
        }
        self.line(&format!("  {rest} = {end};"));
        self.line("}");
        self.depth -= 1;
        self.line("}");
        rest
    }
}
