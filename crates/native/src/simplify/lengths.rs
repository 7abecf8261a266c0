//! Matrices of which only the length of their rows is wanted, as derivatives often do of what they follow: the length is known without them.

use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use rustc_hash::{FxHashMap, FxHashSet};

/// How many rows there are, and how long each of them is.
type Rows = (Atom, Atom);

pub fn run(block: &mut Block) {
    let mut made = FxHashMap::default();
    look_for_matrices(block, &mut made);
    if made.is_empty() {
        return;
    }
    forget_wanted(block, &mut made);
    if !made.is_empty() {
        replace(block, &made);
    }
}

fn look_for_matrices(block: &Block, made: &mut FxHashMap<Var, Rows>) {
    walk::for_each_stmt(block, &mut |stmt| {
        if let Op::For(l) = &stmt.op {
            let collected = stmt.binds.iter().zip(&l.body.results).skip(l.carried.len());
            for (array, row) in collected.filter(|(array, _)| array.ty.rank > 1) {
                made.extend(length(l, *row).map(|length| (*array, (l.count, length))));
            }
        }
    });
}

/// The length of a row that a loop collects, if it is known before the loop.
fn length(l: &For, row: Atom) -> Option<Atom> {
    let row = row.var()?;
    let made = l.body.stmts.iter().find(|s| s.binds.contains(&row))?;
    let length = match &made.op {
        Op::For(inner) if made.binds[inner.carried.len()..].contains(&row) => inner.count,
        Op::Fill { dims, .. } => *dims.first()?,
        _ => return None,
    };
    let mut inside: FxHashSet<Var> = l.carried.iter().map(|(v, _)| *v).chain([l.index]).collect();
    inside.extend(l.body.stmts.iter().flat_map(|s| &s.binds));
    length.var().is_none_or(|v| !inside.contains(&v)).then_some(length)
}

/// Takes out those of which more is wanted.
fn forget_wanted(block: &Block, made: &mut FxHashMap<Var, Rows>) {
    with_stack(|| {
        let mut forget = |a: Atom| {
            if let Some(var) = a.var() {
                made.remove(&var);
            }
        };
        for stmt in &block.stmts {
            if !matches!(stmt.op, Op::Dim { axis: 1, .. }) {
                stmt.op.for_each_operand(&mut forget);
            }
        }
        block.results.iter().for_each(|a| forget(*a));
        for inner in block.stmts.iter().flat_map(|stmt| stmt.op.blocks()) {
            forget_wanted(inner, made);
        }
    })
}

fn replace(block: &mut Block, made: &FxHashMap<Var, Rows>) {
    with_stack(|| {
        let mut out = Vec::with_capacity(block.stmts.len());
        for mut stmt in std::mem::take(&mut block.stmts) {
            stmt.op.blocks_mut().for_each(|inner| replace(inner, made));
            if let Op::Dim { array, axis: 1 } = &stmt.op {
                if let Some((count, length)) = made.get(array) {
                    // Without rows, they have no length.
                    let some = Var::fresh("t", Type::BOOL);
                    let op = Op::Scalar { prim: Prim::Less, args: vec![Atom::Int(0), *count] };
                    out.push(Stmt { binds: vec![some], op, span: stmt.span });
                    stmt.op = Op::Select { cond: some.into(), then: *length, otherwise: Atom::Int(0) };
                }
            }
            out.push(stmt);
        }
        block.stmts = out;
    })
}
