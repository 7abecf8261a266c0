//! How loops count their steps, for the limits on a call: often enough to be stopped, seldom enough to cost nothing.

use crate::flow::*;
use gradus_core::Prim;

/// Iterations between looks at the limits.
pub const CHUNK: i64 = 1 << 16;
/// The same for a loop that ends by a condition, whose body may be short.
pub const WINDOW: i64 = 1 << 10;
/// A loop of at most so many iterations is as good as straight-line code.
pub const FEW: i64 = 64;
/// A bounded loop counts its steps only if it has more.
pub const LARGE: i64 = 1 << 12;

/// Whether a loop has no loops or calls inside and finds an element by its index, forwards or backwards from somewhere, so that memory bounds its
/// length: it counts its steps once, and needs no looks while it runs.
pub fn is_bounded(l: &For) -> bool {
    let is_inside = |v: Var| {
        l.carried.iter().any(|(state, _)| *state == v) || l.body.stmts.iter().any(|stmt| stmt.binds.contains(&v))
    };
    // Of the index and what is as far from it, or from its opposite, in each iteration.
    let mut places: Vec<Atom> = vec![l.index.into()];
    let mut finds = l.body.results.len() > l.carried.len();
    for stmt in &l.body.stmts {
        match &stmt.op {
            Op::Scalar { prim: Prim::AddInt | Prim::SubInt, args } => {
                let (own, others): (Vec<Atom>, Vec<Atom>) = args.iter().partition(|a| places.contains(a));
                if own.len() == 1 && !others.iter().filter_map(|a| a.var()).any(is_inside) {
                    places.extend(stmt.binds.iter().map(|v| Atom::from(*v)));
                }
            }
            Op::Get { index, .. } | Op::Set { index, .. } | Op::Add { index, .. } => {
                finds |= index.iter().any(|a| places.contains(a));
            }
            Op::Call { .. } => return false,
            op if op.has_blocks() => return false,
            _ => {}
        }
    }
    finds
}
