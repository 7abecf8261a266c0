//! Loops of which some iterations are different, the first or the last, as in `if i = 0 then .. else ..`, or one in between: the others by themselves can run
//! in vector lanes. So can loops that ask the same in all iterations, once the answer is known.

use crate::flow::walk::{for_each_binder, Renaming};
use crate::flow::*;
use crate::simplify;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use rustc_hash::FxHashMap;

/// A loop taken apart: its first iterations and its last, as far as they are different, each as a body of its own, and the loop for the others.
pub struct Peeled {
    /// The iterations 0, 1, ..
    pub first: Vec<For>,
    pub others: For,
    /// The last, the last but one, .. None of them is among the first.
    pub last: Vec<For>,
}

/// More iterations than this are no edge.
const EDGE: i64 = 5;

/// Takes a loop apart that asks whether it is in one of its first iterations, or of its last.
pub fn peeled(l: &For) -> Option<Peeled> {
    let branches = l.body.stmts.iter().any(|stmt| matches!(stmt.op, Op::If { .. }));
    if !l.carried.is_empty() || !branches {
        return None;
    }
    let mut asked = Asked { l, ahead: [(l.index, 0)].into_iter().collect(), first: 0, last: 0 };
    asked.look(&l.body);
    let (first, last) = (asked.first, asked.last);
    if first == 0 && last == 0 {
        return None;
    }
    let copy = |map| For { body: Renaming { map }.block(&l.body), ..l.clone() };
    let start = |i: i64| {
        let mut one = copy([(l.index, Atom::Int(i))].into_iter().collect());
        simplify::known(&mut one.body);
        one
    };
    let between = |first: i64, last: i64, only: bool| {
        let mut some = copy(FxHashMap::default());
        simplify::between(&mut some, first, last, only);
        some
    };
    Some(Peeled {
        first: (0..first).map(start).collect(),
        others: between(first, last, false),
        last: (0..last).map(|behind| between(first, behind, true)).collect(),
    })
}

/// A loop without state that asks whether it is in one iteration, as in `if i = j then .. else ..`: its number, which is known before the loop, and the
/// loop for all others.
pub fn but_one(l: &For) -> Option<(Atom, For)> {
    if !l.carried.is_empty() {
        return None;
    }
    let decides =
        |asked: Var| l.body.stmts.iter().any(|stmt| matches!(stmt.op, Op::If { cond, .. } if cond == asked.into()));
    let (asked, one) = l.body.stmts.iter().find_map(|stmt| {
        let Op::Scalar { prim: Prim::Equal, args } = &stmt.op else { return None };
        let one = match args[..] {
            [a, b] if a == l.index.into() => b,
            [a, b] if b == l.index.into() => a,
            _ => return None,
        };
        let asked = stmt.binds[0];
        decides(asked).then_some((asked, one))
    })?;
    let mut fixed = one != l.index.into();
    for_each_binder(&l.body, &mut |v| fixed &= one != v.into());
    if !fixed {
        return None;
    }
    let mut others = For { body: Block { stmts: Vec::new(), results: l.body.results.clone() }, ..l.clone() };
    others.body.stmts.extend(l.body.stmts.iter().filter(|stmt| !stmt.binds.contains(&asked)).cloned());
    others.body = Renaming { map: [(asked, Atom::Bool(false))].into_iter().collect() }.block(&others.body);
    simplify::known(&mut others.body);
    Some((one, others))
}

/// Loops that ask more than this would stand too often in the program.
const MOST_ASKED: usize = 2;

/// A loop without state that asks in each iteration what is known before the first: the answer, and the loop for each of yes and no.
pub fn by_answer(l: &For) -> Option<(Atom, [For; 2])> {
    let mut asked: Vec<Var> = Vec::new();
    for stmt in &l.body.stmts {
        if let Op::If { cond: Atom::Var(cond), .. } = &stmt.op {
            asked.extend((!asked.contains(cond)).then_some(*cond));
        }
    }
    for_each_binder(&l.body, &mut |v| asked.retain(|cond| *cond != v));
    let cond = *asked.first().filter(|_| l.carried.is_empty() && asked.len() <= MOST_ASKED)?;
    let given = |answer: bool| {
        let mut body = Renaming { map: [(cond, Atom::Bool(answer))].into_iter().collect() }.block(&l.body);
        simplify::known(&mut body);
        For { body, ..l.clone() }
    };
    Some((cond.into(), [true, false].map(given)))
}

/// What a loop asks about its index.
struct Asked<'a> {
    l: &'a For,
    /// The variables that are the index plus a constant.
    ahead: FxHashMap<Var, i64>,
    /// In how many first iterations an answer can be another than in the middle, and in how many last.
    first: i64,
    last: i64,
}

impl Asked<'_> {
    fn look(&mut self, block: &Block) {
        with_stack(|| {
            for stmt in &block.stmts {
                stmt.op.blocks().for_each(|inner| self.look(inner));
                let (Op::Scalar { prim, args }, [bind]) = (&stmt.op, &stmt.binds[..]) else { continue };
                let [a, b] = args[..] else { continue };
                match (prim, self.distance(a), self.distance(b), a, b) {
                    (Prim::AddInt, Some(by), _, _, Atom::Int(k)) | (Prim::AddInt, _, Some(by), Atom::Int(k), _) => {
                        self.ahead.insert(*bind, by.saturating_add(k));
                    }
                    (Prim::SubInt, Some(by), _, _, Atom::Int(k)) => {
                        self.ahead.insert(*bind, by.saturating_sub(k));
                    }
                    // `by` from the index, compared with something.
                    (_, Some(by), None, _, other) => self.compared(*prim, by, other),
                    (_, None, Some(by), other, _) => {
                        if let Some(prim) = scalar::mirrored(*prim) {
                            self.compared(prim, by, other);
                        }
                    }
                    _ => {}
                }
            }
        })
    }

    fn distance(&self, atom: Atom) -> Option<i64> {
        self.ahead.get(&atom.var()?).copied()
    }

    /// `index + by` is compared with a number.
    fn compared(&mut self, prim: Prim, by: i64, other: Atom) {
        // The answer changes at this iteration, or after it too.
        let after = match prim {
            Prim::Less | Prim::GreaterEqual => 0,
            Prim::LessEqual | Prim::Greater | Prim::Equal | Prim::NotEqual => 1,
            _ => return,
        };
        let from_start = match other {
            Atom::Int(k) => Some(k.saturating_sub(by)),
            _ => None,
        };
        let from_end = match (other, self.l.count) {
            (Atom::Int(k), Atom::Int(n)) => Some(n.saturating_sub(k).saturating_add(by)),
            (n, count) if n == count => Some(by),
            _ => None,
        };
        if let Some(at) = from_start.filter(|at| (0..EDGE).contains(at)) {
            self.first = self.first.max(at + after);
        } else if let Some(left) = from_end.filter(|left| (1..=EDGE).contains(left)) {
            let equal = matches!(prim, Prim::Equal | Prim::NotEqual);
            self.last = self.last.max(if equal { left } else { left - after });
        }
    }
}
