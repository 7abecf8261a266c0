//! Loops that copy matrices around products. A product has its factors as they were before rows and columns were exchanged, and who has a copy of a product
//! has the product.

use crate::flow::*;
use gradus_core::traverse::with_stack;
use rustc_hash::{FxHashMap, FxHashSet};

/// Matrices that are copies of others, each with the one that it is a copy of.
type Copies = FxHashMap<Var, Factor>;

/// `made` are the matrices that are nothing but a product.
pub(super) fn run(block: &mut Block, made: &FxHashSet<Var>) {
    without_copies(block, &mut Copies::default(), made);
}

fn without_copies(block: &mut Block, copies: &mut Copies, made: &FxHashSet<Var>) {
    with_stack(|| {
        let mut out = Vec::with_capacity(block.stmts.len());
        for mut stmt in std::mem::take(&mut block.stmts) {
            if let Op::Product(product) = &mut stmt.op {
                for factor in [&mut product.left, &mut product.right] {
                    while let Some(of) = copies.get(&factor.matrix) {
                        *factor = Factor { matrix: of.matrix, transposed: factor.transposed != of.transposed };
                    }
                }
            }
            let copied = match &mut stmt.op {
                Op::For(l) => copied(l, made).map(|of| (of, l)),
                _ => None,
            };
            match copied {
                Some((of, _)) if of.transposed => {
                    copies.insert(stmt.binds[0], of);
                    out.push(stmt);
                }
                Some((of, l)) if made.contains(&of.matrix) => {
                    only_checks(l);
                    let copy = Op::Copy { value: of.matrix.into() };
                    let copy = Stmt { binds: std::mem::take(&mut stmt.binds), op: copy, span: stmt.span };
                    out.extend([stmt, copy]);
                }
                _ => {
                    stmt.op.blocks_mut().for_each(|inner| without_copies(inner, copies, made));
                    out.push(stmt);
                }
            }
        }
        block.stmts = out;
    })
}

/// Leaves of two loops that make a matrix what they check.
fn only_checks(l: &mut For) {
    l.body.results.clear();
    for stmt in &mut l.body.stmts {
        if let Op::For(inner) = &mut stmt.op {
            stmt.binds.clear();
            inner.body.results.clear();
            inner.body.stmts.retain(|stmt| matches!(stmt.op, Op::Check { .. }));
        }
    }
}

/// What a loop makes a copy of, if it does nothing else.
pub(super) fn copied(outer: &For, made: &FxHashSet<Var>) -> Option<Factor> {
    let (row, middle) = only_loop(outer)?;
    if outer.body.results[..] != [row.into()] || !middle.carried.is_empty() {
        return None;
    }
    let (mut read, mut last) = (None, None);
    for stmt in &middle.body.stmts {
        match &stmt.op {
            Op::Get { array, index } if read.is_none() => {
                read = Some((*array, &index[..]));
                last = stmt.binds.first().copied();
            }
            // A sum of nothing else; a product, which is a sum, has no zeros that this would change.
            Op::Open { init: Atom::Real(0.0) } if read.is_none() => {}
            Op::Add { index, value, .. } if index.is_empty() && value.var() == last => {
                read = read.filter(|(matrix, _)| made.contains(matrix));
            }
            Op::Freeze { .. } => last = stmt.binds.first().copied(),
            Op::Check { .. } => {}
            _ => return None,
        }
    }
    let (matrix, index) = read.filter(|(matrix, _)| matrix.ty == Type::array(Scalar::Real, 2) && *matrix != row)?;
    let [i, j] = [outer.index, middle.index].map(Atom::Var);
    if middle.body.results[..] != [last?.into()] {
        return None;
    }
    match index {
        [a, b] if *a == j && *b == i => Some(Factor { matrix, transposed: true }),
        [a, b] if *a == i && *b == j => Some(Factor { matrix, transposed: false }),
        _ => None,
    }
}

/// The loop in a loop that has nothing else but comparisons and checks, and the row that it makes.
fn only_loop(outer: &For) -> Option<(Var, &For)> {
    let mut found = None;
    for stmt in &outer.body.stmts {
        match (&stmt.op, &stmt.binds[..]) {
            (Op::For(inner), [row]) if found.is_none() => found = Some((*row, &**inner)),
            (Op::Check { .. } | Op::Scalar { .. }, _) => {}
            _ => return None,
        }
    }
    found.filter(|_| outer.carried.is_empty())
}
