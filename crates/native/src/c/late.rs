//! Additions of a loop in vector lanes to places that may meet: they wait in buffers until a strip of iterations has run.

use super::emit::Emitter;
use crate::flow::*;

/// An addition that waits until a strip of iterations has run.
pub(super) struct Late {
    /// What is kept for each iteration, with its buffer: the number, and what its place is computed from.
    pub(super) kept: Vec<(Var, String)>,
    /// Those of the buffers that an earlier addition does not have.
    pub(super) own: Vec<(Type, String)>,
    /// The addition, with its place computed.
    pub(super) stmts: Vec<Stmt>,
    /// Whether each iteration has a place of its own.
    pub(super) apart: bool,
    /// How much the last index of the place is larger than that of the iteration, if nothing else is known of the place but what is so in all iterations.
    pub(super) distance: Option<i64>,
}

impl Late {
    pub(super) fn buffers(&self) -> impl Iterator<Item = (Type, &str)> {
        self.own.iter().map(|(ty, buffer)| (*ty, &buffer[..]))
    }

    pub(super) fn values(&self) -> impl Iterator<Item = (Var, &str)> {
        self.kept.iter().map(|(var, buffer)| (*var, &buffer[..]))
    }

    /// The addition at another last index.
    pub(super) fn at(&self, last: Var) -> Option<Stmt> {
        let mut add = self.stmts.last()?.clone();
        if let Op::Add { index, .. } = &mut add.op {
            *index.last_mut()? = last.into();
        }
        Some(add)
    }

    /// Whether both add to neighbours in one row.
    fn is_near(&self, other: &Late) -> bool {
        let row = |late: &Late| match late.stmts.last().map(|stmt| &stmt.op) {
            Some(Op::Add { acc, index, .. }) => Some((*acc, index[..index.len() - 1].to_vec())),
            _ => None,
        };
        self.distance.is_some() && other.distance.is_some() && row(self) == row(other)
    }
}

/// Additions to neighbours in one row, which one loop makes: an addition would wait for the one before it, which writes next to where it reads.
pub(super) fn neighbours(late: &[Late]) -> impl Iterator<Item = &[Late]> {
    late.chunk_by(|one, next| one.is_near(next))
}

impl Emitter<'_> {
    /// The additions of statements that add to neighbours, for a strip of iterations: the places to which all of them add together, the others apart.
    pub(super) fn add_near(&mut self, near: &[Late], index: Var, [start, end]: [&str; 2]) {
        let distances: Option<Vec<i64>> = near.iter().map(|late| late.distance).collect();
        let distances = distances.filter(|distances| distances.len() > 1);
        let ends = |distances: &[i64]| Some((*distances.iter().min()?, *distances.iter().max()?));
        let Some((least, most)) = distances.as_deref().and_then(ends) else {
            near.iter().for_each(|late| self.add_late(late, index, start, [start, end]));
            return;
        };
        let (first, last) = (format!("{start} + {most}"), format!("{end} + ({least})"));
        let each: Vec<(&Late, i64)> = near.iter().zip(distances.into_iter().flatten()).collect();
        for (late, distance) in each.iter().filter(|(_, distance)| *distance < most) {
            let from_first = format!("({first} - ({distance}))");
            self.add_late(late, index, start, [start, &format!("({from_first} < {end} ? {from_first} : {end})")]);
        }
        self.line("#pragma omp simd");
        let place = Var::fresh("near", Type::INT);
        let j = self.name(place);
        self.line(&format!("for (int64_t {j} = {first}; {j} < {last}; {j}++) {{"));
        self.depth += 1;
        self.in_lanes = true;
        for (late, distance) in &each {
            for (var, buffer) in late.values() {
                let (ty, name) = (self.ty(var.ty), self.name(var));
                self.line(&format!("{ty} {name} = {buffer}[{j} - ({distance}) - {start}];"));
            }
            late.at(place).iter().for_each(|add| self.plain(add));
        }
        self.in_lanes = false;
        self.depth -= 1;
        self.line("}");
        for (late, distance) in each.iter().filter(|(_, distance)| *distance > least) {
            let (from_first, from_last) = (format!("({first} - ({distance}))"), format!("({last} - ({distance}))"));
            let from = format!("({from_first} > {from_last} ? {from_first} : {from_last})");
            self.add_late(late, index, start, [&from, end]);
        }
    }

    /// The additions of one statement for some iterations of a strip.
    fn add_late(&mut self, late: &Late, index: Var, start: &str, [from, to]: [&str; 2]) {
        let i = self.name(index);
        if late.apart {
            self.line("#pragma omp simd");
        }
        self.line(&format!("for (int64_t {i} = {from}; {i} < {to}; {i}++) {{"));
        self.depth += 1;
        for (var, buffer) in late.values() {
            let (ty, name) = (self.ty(var.ty), self.name(var));
            self.line(&format!("{ty} {name} = {buffer}[{i} - {start}];"));
        }
        self.in_lanes = late.apart;
        for stmt in &late.stmts {
            self.plain(stmt);
        }
        self.in_lanes = false;
        self.depth -= 1;
        self.line("}");
    }
}
