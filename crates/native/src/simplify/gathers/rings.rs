//! Additions of one iteration to a place of its own, as in a ring: `if i = n - 1 then a.(0) else a.(i + 1)`.

use crate::flow::*;
use gradus_core::Prim;
use rustc_hash::{FxHashMap, FxHashSet};

/// The iteration with the index `end - by` adds to a place that all iterations know.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Far {
    pub(super) end: Atom,
    pub(super) by: i64,
    pub(super) place: Atom,
}

/// Takes additions that only one iteration makes, on one side of a branch, out of a loop. None, if there are others to the same places.
pub(super) fn take_far(l: &mut For, acc: Var) -> Vec<Far> {
    let mut inside: FxHashSet<Var> = [l.index].into_iter().collect();
    walk::for_each_binder(&l.body, &mut |v| {
        inside.insert(v);
    });
    let is_outside = |atom: Atom| atom.var().is_none_or(|v| !inside.contains(&v));
    let (index, count) = (l.index, l.count);
    let mut ahead: FxHashMap<Var, i64> = [(index, 0)].into_iter().collect();
    let mut comparisons: FxHashMap<Var, (Prim, [Atom; 2])> = FxHashMap::default();
    let mut found: Vec<Far> = Vec::new();
    let whole = l.body.clone();
    for stmt in &mut l.body.stmts {
        match &mut stmt.op {
            Op::Scalar { prim: Prim::AddInt, args } => {
                if let [Atom::Var(i), Atom::Int(by)] = args[..] {
                    ahead.extend((i == index).then_some((stmt.binds[0], by)));
                }
            }
            Op::Scalar { prim, args } if stmt.binds[0].ty == Type::BOOL && args.len() == 2 => {
                comparisons.insert(stmt.binds[0], (*prim, [args[0], args[1]]));
            }
            Op::If { cond, then, otherwise, .. } => {
                let Some((prim, [Atom::Var(i), end])) = cond.var().and_then(|v| comparisons.get(&v)).copied() else {
                    continue;
                };
                let Some(by) = ahead.get(&i).copied().filter(|_| is_outside(end)) else { continue };
                // The side that one iteration takes.
                let side = match (prim, end) {
                    (Prim::Equal, _) => then,
                    (Prim::Less, _) if end == count && by == 1 => otherwise,
                    (Prim::Greater, Atom::Int(0)) if by == 0 => otherwise,
                    (Prim::GreaterEqual, Atom::Int(1)) if by == 0 => otherwise,
                    _ => continue,
                };
                let (end, by) = match prim {
                    Prim::Greater | Prim::GreaterEqual => (Atom::Int(0), 0),
                    _ => (end, by),
                };
                let is_own =
                    |place: Atom| matches!((end, place), (Atom::Int(end), Atom::Int(place)) if end - by == place);
                side.stmts.retain(|stmt| match &stmt.op {
                    Op::Add { acc: to, index, .. } if *to == acc => match index[..] {
                        [place] if is_outside(place) && !is_own(place) => {
                            found.push(Far { end, by, place });
                            false
                        }
                        _ => true,
                    },
                    _ => true,
                });
            }
            _ => {}
        }
    }
    let places: Vec<Atom> = found.iter().map(|far| far.place).collect();
    let alone = places.iter().all(|place| additions(&whole, acc, *place) == 1);
    if !alone {
        l.body = whole;
        found.clear();
    }
    found
}

/// How many additions to a place there are.
fn additions(block: &Block, acc: Var, place: Atom) -> usize {
    let own = |stmt: &Stmt| match &stmt.op {
        Op::Add { acc: to, index, .. } => usize::from(*to == acc && index[..] == [place]),
        op => op.blocks().map(|inner| additions(inner, acc, place)).sum(),
    };
    block.stmts.iter().map(own).sum()
}
