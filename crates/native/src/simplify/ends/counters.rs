//! Loops that end when an integer has reached a number, which are loops over a range: it is state that goes up or down by one, or the length of an array that the
//! loop carries, of which each iteration makes one that is longer or shorter by one.

use super::Ending;
use crate::flow::walk::Renaming;
use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use rustc_hash::FxHashSet;

/// A loop that goes on until an integer has reached a number, which its steps of one, up or down, cannot miss.
pub(super) struct Counter<'a> {
    counted: Counted,
    past: Atom,
    /// How much further it goes.
    beyond: i64,
    down: bool,
    /// The check by which it fails in its first iteration if it would miss the number.
    check: Option<&'a Stmt>,
}

/// What a loop counts.
enum Counted {
    State(usize),
    /// The length of an array that it carries, of which each iteration makes the next, and what it begins with.
    Length {
        number: Var,
        first: Var,
    },
}

impl<'a> Ending<'a> {
    /// A loop over a range.
    pub(super) fn count(&self, b: &mut Builder, kept: &[usize], counter: &Counter, last: &mut Renaming) {
        let Counter { past, beyond, down, check, .. } = *counter;
        let (number, first, others) = match counter.counted {
            Counted::State(state) => {
                let (number, first) = self.carried[state];
                (number, first, kept.iter().copied().filter(|k| *k != state).collect())
            }
            Counted::Length { number, first } => (number, b.dim(first, 0), kept.to_vec()),
        };
        let past = match (past, beyond) {
            (past, 0) => past,
            (Atom::Int(past), _) => Atom::Int(past.saturating_add(beyond)),
            _ => b.scalar(Prim::AddInt, &[past, Atom::Int(beyond)]),
        };
        let carried: Vec<(Var, Atom)> = others.iter().map(|k| self.carried[*k]).collect();
        let (low, high) = if down { (past, first) } else { (first, past) };
        if let Some(Stmt { op: Op::Check { failure, .. }, span, .. }) = check {
            let around = std::mem::replace(&mut b.span, *span);
            let meets = b.scalar(Prim::LessEqual, &[low, high]);
            b.check(meets, *failure);
            b.span = around;
        }
        let runs = b.scalar(Prim::Less, &[low, high]);
        let count = match low {
            Atom::Int(0) => high,
            _ => {
                let count = b.scalar(Prim::SubInt, &[high, low]);
                b.select(runs, count, Atom::Int(0))
            }
        };
        let index = Var::fresh(number.name, Type::INT);
        b.push();
        let step = if down { Prim::SubInt } else { Prim::AddInt };
        b.bind(vec![number], Op::Scalar { prim: step, args: vec![first, index.into()] });
        let is_other = |s: &&Stmt| !s.binds.contains(&number) && !check.is_some_and(|check| std::ptr::eq(check, *s));
        b.stmts(self.before.iter().chain(&self.go.stmts).filter(is_other).cloned());
        let body = b.pop(others.iter().map(|k: &usize| self.next[*k]).collect());
        let states = carried.iter().map(|(v, _)| *v).collect::<Vec<_>>();
        last.map.extend(states.into_iter().zip(b.for_loop(index, count, carried, body)));
        let reached = b.select(runs, past, first);
        last.map.insert(number, reached);
    }

    pub(super) fn counter(&self, kept: &[usize], lengths: &FxHashSet<Var>) -> Option<Counter<'a>> {
        let is_plain = |s: &Stmt| match &s.op {
            Op::Scalar { prim, .. } => scalar::is_cheap(*prim),
            op => matches!(op, Op::Dim { .. }),
        };
        if !self.before.iter().all(is_plain) {
            return None;
        }
        let compared = self.before.iter().find(|s| s.binds.first().copied().map(Atom::Var) == Some(self.cond))?;
        let Op::Scalar { prim, args } = &compared.op else { return None };
        let [a, b] = args[..] else { return None };
        let (number, past, swapped) = match (self.counted(a, kept), b) {
            (Some(_), past) => (a.var()?, past, false),
            (None, number) => (number.var()?, a, true),
        };
        let (counted, next) = self.counted(number.into(), kept)?;
        // It stops where the number is so to `past`.
        let prim = if self.stops_if { *prim } else { opposite(*prim)? };
        let (down, beyond, exactly) = match if swapped { scalar::mirrored(prim)? } else { prim } {
            Prim::GreaterEqual => (false, 0, false),
            Prim::Greater => (false, 1, false),
            Prim::LessEqual => (true, 0, false),
            Prim::Less => (true, -1, false),
            Prim::Equal => (is_next(self.go, next, number, Prim::SubInt), 0, true),
            _ => return None,
        };
        let first = match counted {
            Counted::State(state) => self.carried[state].1,
            Counted::Length { first, .. } => first.into(),
        };
        let is_length = |a: Atom| a.var().is_some_and(|v| v.ty.is_array() || lengths.contains(&v));
        let meets = match if down { (past, first) } else { (first, past) } {
            (Atom::Int(low), Atom::Int(high)) => low <= high,
            (Atom::Int(..=0), high) => is_length(high),
            _ => false,
        };
        let is_inside = |v: Var| self.before.iter().any(|s| s.binds.contains(&v)) || self.is_state(v.into());
        let step = if down { Prim::SubInt } else { Prim::AddInt };
        if past.var().is_some_and(is_inside) || !is_next(self.go, next, number, step) {
            return None;
        }
        let check = match (exactly && !meets, past) {
            (false, _) => None,
            (true, Atom::Int(past)) if down && is_length(first) => Some(self.check_that_not_past(next, past)?),
            (true, _) => return None,
        };
        Some(Counter { counted, past, beyond, down, check })
    }

    /// What a number counts, and what it is in the next iteration.
    fn counted(&self, number: Atom, kept: &[usize]) -> Option<(Counted, Atom)> {
        let number = number.var().filter(|v| v.ty == Type::INT)?;
        let is_kept = |v: Var| kept.iter().copied().find(|k| self.carried[*k].0 == v);
        if let Some(state) = is_kept(number) {
            return Some((Counted::State(state), self.next[state]));
        }
        let measured = self.before.iter().find(|s| s.binds.contains(&number))?;
        let Op::Dim { array, axis: 0 } = &measured.op else { return None };
        let (array, first) = self.carried[is_kept(*array)?];
        let next = self.next[is_kept(array)?].var()?;
        let made = self.go.stmts.iter().position(|s| s.binds.contains(&next))?;
        let Op::For(l) = &self.go.stmts[made].op else { return None };
        // An array of which the length would be negative has none.
        let is_positive = is_next(self.go, l.count, number, Prim::AddInt);
        let is_collected = self.go.stmts[made].binds[l.carried.len()..].contains(&next);
        let is_length = is_positive || self.checked(l.count, 0).is_some_and(|at| at < made);
        (is_collected && is_length).then_some((Counted::Length { number, first: first.var()? }, l.count))
    }

    /// Where the side that goes on checks that a number is at least another.
    fn checked(&self, number: Atom, least: i64) -> Option<usize> {
        let stmts = &self.go.stmts;
        let compared = stmts.iter().find(|s| {
            matches!(&s.op, Op::Scalar { prim: Prim::GreaterEqual, args } if args[..] == [number, Atom::Int(least)])
        })?;
        let holds = Atom::Var(*compared.binds.first()?);
        stmts.iter().position(|s| matches!(s.op, Op::Check { cond, .. } if cond == holds))
    }

    /// The check that the side which goes on makes before all that can fail, and that does not hold if a number that goes down was past another from the beginning.
    fn check_that_not_past(&self, next: Atom, past: i64) -> Option<&'a Stmt> {
        let at = self.checked(next, past.checked_sub(1)?)?;
        let is_plain = |s: &Stmt| matches!(s.op, Op::Scalar { .. } | Op::Select { .. } | Op::Dim { .. });
        self.go.stmts[..at].iter().all(is_plain).then(|| &self.go.stmts[at])
    }

    fn is_state(&self, atom: Atom) -> bool {
        self.carried.iter().any(|(v, _)| atom == (*v).into())
    }
}

/// The comparison that holds where this one does not.
fn opposite(prim: Prim) -> Option<Prim> {
    Some(match prim {
        Prim::Less => Prim::GreaterEqual,
        Prim::LessEqual => Prim::Greater,
        Prim::Greater => Prim::LessEqual,
        Prim::GreaterEqual => Prim::Less,
        Prim::NotEqual => Prim::Equal,
        _ => return None,
    })
}

/// Whether a result of a block is a number and one, or a number less one.
fn is_next(block: &Block, result: Atom, number: Var, step: Prim) -> bool {
    let Some(stmt) = result.var().and_then(|v| block.stmts.iter().find(|s| s.binds.contains(&v))) else { return false };
    match &stmt.op {
        Op::Scalar { prim, args } if *prim == step => match args[..] {
            [a, Atom::Int(1)] => a == number.into(),
            [Atom::Int(1), a] => a == number.into() && step == Prim::AddInt,
            _ => false,
        },
        Op::If { then, otherwise, .. } => {
            let at = stmt.binds.iter().position(|v| Atom::Var(*v) == result);
            let side_is = |side: &Block, at: usize| with_stack(|| is_next(side, side.results[at], number, step));
            [then, otherwise].iter().all(|side| at.is_some_and(|at| side_is(side, at)))
        }
        _ => false,
    }
}
