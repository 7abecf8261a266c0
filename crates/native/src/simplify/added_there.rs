//! A product of matrices that is made only to be added to something else is added there. So the way back through an exchange of rows and columns makes no
//! matrix, for the adjoint of what was exchanged is a product of the same factors the other way round.

use super::collect::{mentions, Mentions};
use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use gradus_source::Span;
use rustc_hash::FxHashMap;

/// When all derivatives have been taken. Says whether there was one.
pub fn run(block: &mut Block) -> bool {
    with_stack(|| {
        let mut changed = super::inside(block, run);
        // A matrix to which a product has been moved may be one that is only added to another.
        for _ in 0..2 {
            let found = find(block);
            if found.is_empty() {
                break;
            }
            add_there(block, found);
            changed = true;
        }
        changed
    })
}

/// An accumulator of zeros that a product alone adds to: where it is opened, added to and taken, and where the matrix is used that is made of it.
struct Made {
    open: usize,
    product: usize,
    taken: usize,
    matrix: Var,
    uses: Vec<usize>,
}

/// The product, the loop that adds all of it to another accumulator, and that one.
struct Found {
    made: Made,
    target: Var,
    transposed: bool,
}

fn find(block: &Block) -> Vec<Found> {
    let mentions = mentions(block);
    let mut made: FxHashMap<Var, Made> = (0..block.stmts.len())
        .filter_map(|open| made_at(block, &mentions, open))
        .map(|made| (made.matrix, made))
        .collect();
    if made.is_empty() {
        return Vec::new();
    }
    for (at, stmt) in block.stmts.iter().enumerate() {
        stmt.for_each_use(&mut |v| {
            if let Some(made) = made.get_mut(&v) {
                made.uses.push(at);
            }
        });
    }
    block.results.iter().filter_map(|a| a.var()).for_each(|result| {
        made.remove(&result);
    });
    let mut found: Vec<Found> = made.into_values().filter_map(|made| added(block, made)).collect();
    found.sort_by_key(|found| found.made.open);
    found
}

fn made_at(block: &Block, mentions: &Mentions, open: usize) -> Option<Made> {
    let Stmt { binds, op: Op::Open { init: Atom::Var(zeros) }, .. } = &block.stmts[open] else { return None };
    mentions.get(zeros)?;
    let [_, product, taken] = mentions.get(binds.first()?)?[..] else { return None };
    let (Op::Product(_), Op::Freeze { .. }) = (&block.stmts[product].op, &block.stmts[taken].op) else { return None };
    let matrix = *block.stmts[taken].binds.first()?;
    Some(Made { open, product, taken, matrix, uses: Vec::new() })
}

fn added(block: &Block, made: Made) -> Option<Found> {
    let [adding] = made.uses[..] else { return None };
    let Op::For(l) = &block.stmts[adding].op else { return None };
    let (target, transposed) = adds_all(l, made.matrix)?;
    Some(Found { made, target, transposed })
}

/// What two loops add a matrix to, and whether its rows become columns, if they do nothing else with it.
fn adds_all(outer: &For, matrix: Var) -> Option<(Var, bool)> {
    let inner = outer.body.stmts.iter().find_map(|stmt| match &stmt.op {
        Op::For(inner) if stmt.mentions(matrix) => Some(inner),
        _ => None,
    })?;
    let read = inner.body.stmts.iter().find(|stmt| stmt.mentions(matrix))?;
    let element = *read.binds.first()?;
    let added = inner.body.stmts.iter().find(|stmt| stmt.mentions(element))?;
    let (Op::Get { index: from, .. }, Op::Add { acc, index: to, value }) = (&read.op, &added.op) else { return None };
    let uses = walk::count_uses(&outer.body);
    let once = [matrix, element].iter().all(|v| uses.get(v) == Some(&1)) && *value == element.into();
    let place = [outer.index, inner.index].map(Atom::Var);
    let transposed = to[..] != place;
    let is_whole = from[..] == place && (!transposed || to[..] == [place[1], place[0]]);
    let plain = outer.carried.is_empty() && inner.carried.is_empty();
    let mut own = false;
    walk::for_each_binder(&outer.body, &mut |v| own |= v == *acc || inner.count == v.into());
    (once && is_whole && plain && !own && acc.ty == matrix.ty.accumulator()).then_some((*acc, transposed))
}

/// Adds each product after its loop, of which what it checks is left.
fn add_there(block: &mut Block, found: Vec<Found>) {
    let mut gone = vec![false; block.stmts.len()];
    let mut after: FxHashMap<usize, Vec<Stmt>> = FxHashMap::default();
    for Found { made, target, transposed } in found {
        let [adding] = made.uses[..] else { continue };
        let Stmt { op: Op::Product(product), span, .. } = block.stmts[made.product].clone() else { continue };
        let Op::For(l) = &mut block.stmts[adding].op else { continue };
        let out = after.entry(adding).or_default();
        // Elsewhere it is zero.
        let rows = least(out, product.rows, l.count, span);
        let columns = least(out, product.columns, without_addition(l, made.matrix), span);
        let Product { left, right, inner, .. } = *product;
        let turned = |factor: Factor| Factor { transposed: !factor.transposed, ..factor };
        let moved = match transposed {
            false => Product { acc: target, left, right, rows, columns, inner },
            true => {
                Product { acc: target, left: turned(right), right: turned(left), rows: columns, columns: rows, inner }
            }
        };
        out.push(Stmt { binds: Vec::new(), op: Op::Product(Box::new(moved)), span });
        [made.open, made.product, made.taken].into_iter().for_each(|at| gone[at] = true);
    }
    for (at, stmt) in std::mem::take(&mut block.stmts).into_iter().enumerate() {
        if !gone[at] {
            block.stmts.push(stmt);
        }
        block.stmts.extend(after.remove(&at).into_iter().flatten());
    }
}

/// Takes the addition of a matrix out of a loop, and gives the number of columns that it has added.
fn without_addition(outer: &mut For, matrix: Var) -> Atom {
    let mut columns = Atom::Int(0);
    for stmt in &mut outer.body.stmts {
        let reads = stmt.mentions(matrix);
        if let (true, Op::For(inner)) = (reads, &mut stmt.op) {
            columns = inner.count;
            let element = inner.body.stmts.iter().find(|s| s.mentions(matrix)).and_then(|s| s.binds.first().copied());
            inner.body.stmts.retain(|s| !s.mentions(matrix) && !element.is_some_and(|e| s.mentions(e)));
        }
    }
    columns
}

/// The smaller of two counts.
fn least(out: &mut Vec<Stmt>, one: Atom, other: Atom, span: Span) -> Atom {
    if one == other {
        return one;
    }
    let (less, least) = (Var::fresh("t", Type::BOOL), Var::fresh("n", Type::INT));
    let compare = Op::Scalar { prim: Prim::Less, args: vec![one, other] };
    out.push(Stmt { binds: vec![less], op: compare, span });
    let op = Op::Select { cond: less.into(), then: one, otherwise: other };
    out.push(Stmt { binds: vec![least], op, span });
    least.into()
}
