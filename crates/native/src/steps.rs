//! How loops count their steps, for the limits on a call: often enough to be stopped, seldom enough to cost nothing.

use crate::flow::*;

/// Iterations between looks at the limits.
pub const CHUNK: i64 = 1 << 16;
/// The same for a loop that ends by a condition, whose body may be short.
pub const WINDOW: i64 = 1 << 10;
/// A loop of at most so many iterations is as good as straight-line code.
pub const FEW: i64 = 64;
/// A bounded loop counts its steps only if it has more.
pub const LARGE: i64 = 1 << 12;

/// Whether a loop has no loops or calls inside and uses its index to find elements, so that memory bounds its length: it counts its
/// steps once, and needs no looks while it runs.
pub fn is_bounded(l: &For) -> bool {
    let element = |stmt: &Stmt| match &stmt.op {
        Op::Get { index, .. } | Op::Set { index, .. } | Op::Add { index, .. } => index.contains(&l.index.into()),
        _ => false,
    };
    let simple = |stmt: &Stmt| stmt.op.blocks().is_empty() && !matches!(stmt.op, Op::Call { .. });
    let collects = l.body.results.len() > l.carried.len();
    l.body.stmts.iter().all(simple) && (collects || l.body.stmts.iter().any(element))
}
