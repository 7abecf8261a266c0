//! Before a matrix is changed: what is still wanted of the old one is read first, and rows that outlive it are copied. Otherwise the whole would have
//! to be copied, since somebody still looks at it.

use crate::flow::*;
use gradus_core::traverse::with_stack;

/// How many statements before and after a change are looked at.
const NEAR: usize = 64;

pub fn run(block: &mut Block) {
    with_stack(|| {
        super::each_inside(block, run);
        let mut at = 0;
        while at < block.stmts.len() {
            if let Op::Set { array, .. } = block.stmts[at].op {
                at += read_first(block, at, array);
                if array.ty.rank > 1 {
                    copy_rows(block, at, array);
                }
            }
            at += 1;
        }
    })
}

/// Moves the reads of an array after statement `at`, which changes it, before that, if there is nothing else that looks at it; says how many.
fn read_first(block: &mut Block, at: usize, array: Var) -> usize {
    let mut reads = Vec::new();
    for (later, stmt) in block.stmts.iter().enumerate().skip(at + 1).take(NEAR) {
        match &stmt.op {
            Op::Get { array: read, index } if *read == array => {
                let known = |a: &Atom| a.var().is_none_or(|v| !binds(&block.stmts[at..later], v));
                // A check may be what makes the read a good one.
                let unchecked = block.stmts[at..later].iter().all(|s| is_plain(&s.op));
                if !index.iter().all(known) || !unchecked {
                    return 0;
                }
                reads.push(later);
            }
            _ if stmt.mentions(array) => return 0,
            _ => {}
        }
    }
    if block.results.contains(&array.into()) {
        return 0;
    }
    for (count, read) in reads.iter().enumerate() {
        let stmt = block.stmts.remove(*read);
        block.stmts.insert(at + count, stmt);
    }
    reads.len()
}

fn binds(stmts: &[Stmt], var: Var) -> bool {
    stmts.iter().any(|s| s.binds.contains(&var))
}

/// Whether an operation cannot fail, so that others may be made before it.
fn is_plain(op: &Op) -> bool {
    matches!(
        op,
        Op::Scalar { .. }
            | Op::Select { .. }
            | Op::Copy { .. }
            | Op::Dim { .. }
            | Op::Get { .. }
            | Op::Set { .. }
            | Op::Fill { .. }
    )
}

/// Copies the rows of an array that are looked at after statement `at`, which changes it.
fn copy_rows(block: &mut Block, at: usize, array: Var) {
    let rows: Vec<usize> = (at.saturating_sub(NEAR)..at)
        .filter(|i| {
            let Stmt { op: Op::Get { array: read, .. }, binds, .. } = &block.stmts[*i] else { return false };
            let wanted = |row: Var| {
                block.stmts[at..].iter().take(NEAR).any(|s| s.mentions(row)) || block.results.contains(&row.into())
            };
            *read == array
                && binds.iter().any(|row| row.ty.rank == 1 && !matches!(row.ty.scalar, Scalar::Box(_)) && wanted(*row))
        })
        .collect();
    for row in rows.into_iter().rev() {
        let Stmt { binds, op: Op::Get { array, index }, span } = block.stmts.remove(row) else { continue };
        let axis = index.len() as u8;
        let (length, j, element) = (
            Var::fresh("n", Type::INT),
            Var::fresh("j", Type::INT),
            Var::fresh("e", array.ty.at(array.ty.rank as usize)),
        );
        let index = index.into_iter().chain([j.into()]).collect();
        let get = Stmt { binds: vec![element], op: Op::Get { array, index }, span };
        let body = Block { stmts: vec![get], results: vec![element.into()] };
        let copy = Op::For(For { index: j, count: length.into(), carried: Vec::new(), body, replayed: false });
        block.stmts.insert(row, Stmt { binds, op: copy, span });
        block.stmts.insert(row, Stmt { binds: vec![length], op: Op::Dim { array, axis }, span });
    }
}
