//! Matrix products: sums of products of two matrices' elements in three nested loops are left to a library.
//!
//! In the loops i and j, one in the other, stands the loop l; what it adds, to a sum of its own or to an element of a matrix, is the product of
//! elements of two matrices. Of the three indices each matrix has two, and each index is in two matrices: so the sum over the index that the target
//! does not have is a matrix product, in whatever order the loops are. It is made before the loops, of which only the rest is left.

use crate::flow::walk::for_each_binder;
use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use gradus_source::Span;
use rustc_hash::FxHashSet;

/// Loops known to be shorter are no work for a library.
const SHORT: i64 = 8;

/// Whether anything was found.
pub fn run(block: &mut Block) -> bool {
    with_stack(|| {
        let mut any = false;
        let mut out = Vec::with_capacity(block.stmts.len());
        for mut stmt in std::mem::take(&mut block.stmts) {
            if let Op::For(l) = &mut stmt.op {
                let found = of_nest(l, stmt.span);
                any |= !found.is_empty();
                out.extend(found);
            }
            for inner in stmt.op.blocks_mut() {
                any |= run(inner);
            }
            out.push(stmt);
        }
        block.stmts = out;
        any
    })
}

/// The products in a nest of loops, as statements to stand before it; they are taken out of the nest.
fn of_nest(outer: &mut For, span: Span) -> Vec<Stmt> {
    let mut found = Vec::new();
    if !is_long(outer) {
        return found;
    }
    let mut inside = FxHashSet::from_iter([outer.index]);
    for_each_binder(&outer.body, &mut |v| {
        inside.insert(v);
    });
    let around = outer.clone();
    for stmt in &mut outer.body.stmts {
        let Op::For(middle) = &mut stmt.op else { continue };
        if !is_long(middle) || is_among(&inside, middle.count) {
            continue;
        }
        let nest = Nest { outer: &around, middle: &middle.clone(), inside: &inside };
        let mut kept = Vec::new();
        for mut stmt in std::mem::take(&mut middle.body.stmts) {
            if let Op::For(inner) = &mut stmt.op {
                nest.take(inner, span, &mut found, &mut kept);
            }
            kept.push(stmt);
        }
        middle.body.stmts = kept;
    }
    found
}

fn is_long(l: &For) -> bool {
    l.carried.is_empty() && !matches!(l.count, Atom::Int(n) if n < SHORT)
}

fn is_among(vars: &FxHashSet<Var>, atom: Atom) -> bool {
    atom.var().is_some_and(|v| vars.contains(&v))
}

/// Two loops, and all variables that they bind.
struct Nest<'a> {
    outer: &'a For,
    middle: &'a For,
    inside: &'a FxHashSet<Var>,
}

impl Nest<'_> {
    /// Takes products out of the innermost loop; `after` gets what is to stand in its place.
    fn take(&self, inner: &mut For, span: Span, found: &mut Vec<Stmt>, after: &mut Vec<Stmt>) {
        if !is_long(inner) || is_among(self.inside, inner.count) || !inner.body.results.is_empty() {
            return;
        }
        let Some(mut checks) = self.checks(inner) else { return };
        let whole = inner.clone();
        inner.body.stmts.retain(|stmt| {
            let Some((mut product, target)) = self.product(&whole, stmt) else { return true };
            found.append(&mut checks);
            match target {
                Target::Matrix => found.push(Stmt { binds: Vec::new(), op: Op::Product(product), span }),
                Target::Sum(sum) => {
                    let matrix = Type::array(Scalar::Real, 2);
                    let zeros = Var::fresh("zeros", matrix);
                    let sums = Var::fresh("sums", matrix.accumulator());
                    let made = Var::fresh("product", matrix);
                    let element = Var::fresh("e", Type::REAL);
                    product.acc = sums;
                    let dims = vec![product.rows, product.columns];
                    let place = vec![self.outer.index.into(), self.middle.index.into()];
                    let one = |var: Var, op: Op| Stmt { binds: vec![var], op, span };
                    found.push(one(zeros, Op::Fill { dims, value: Atom::Real(0.0) }));
                    found.push(one(sums, Op::Open { init: zeros.into() }));
                    found.push(Stmt { binds: Vec::new(), op: Op::Product(product), span });
                    found.push(one(made, Op::Freeze { acc: sums }));
                    after.push(one(element, Op::Get { array: made, index: place }));
                    let op = Op::Add { acc: sum, index: Vec::new(), value: element.into() };
                    after.push(Stmt { binds: Vec::new(), op, span });
                }
            }
            false
        });
    }

    /// What is checked before the innermost loop runs, to be checked before the product is made; nothing if that depends on the iteration.
    fn checks(&self, inner: &For) -> Option<Vec<Stmt>> {
        let mut checks = Vec::new();
        for block in [&self.outer.body, &self.middle.body, &inner.body] {
            for stmt in &block.stmts {
                match &stmt.op {
                    Op::Check { cond, .. } if is_among(self.inside, *cond) => return None,
                    Op::Check { .. } => checks.push(stmt.clone()),
                    // Where something else can fail, nothing is known of what comes after.
                    Op::Call { .. } | Op::While(_) => return None,
                    _ => {}
                }
            }
        }
        // There is nothing to check for loops that do not run.
        let counts = [self.outer.count, self.middle.count, inner.count];
        Some(match checks.is_empty() {
            true => checks,
            false => counts.into_iter().rev().fold(checks, |then, count| {
                let runs = Var::fresh("t", Type::BOOL);
                let span = then[0].span;
                let compare = Op::Scalar { prim: Prim::Less, args: vec![Atom::Int(0), count] };
                let then = Block { stmts: then, results: Vec::new() };
                let op = Op::If { cond: runs.into(), then, otherwise: Block::default(), replayed: false };
                vec![Stmt { binds: vec![runs], op: compare, span }, Stmt { binds: Vec::new(), op, span }]
            }),
        })
    }

    /// The product that an addition of the innermost loop belongs to.
    fn product(&self, inner: &For, stmt: &Stmt) -> Option<(Product, Target)> {
        let Op::Add { acc, index, value } = &stmt.op else { return None };
        let (target, [row, column]) = match index[..] {
            // A sum that begins with this loop.
            [] if self.middle.body.stmts.iter().any(|s| s.binds == [*acc]) => {
                (Target::Sum(*acc), [self.outer.index, self.middle.index])
            }
            [Atom::Var(row), Atom::Var(column)] if !self.inside.contains(acc) => (Target::Matrix, [row, column]),
            _ => return None,
        };
        let count = |index: Var| [self.outer, self.middle, inner].iter().find(|l| l.index == index).map(|l| l.count);
        let indices = [self.outer.index, self.middle.index, inner.index];
        let along = indices.into_iter().find(|i| *i != row && *i != column)?;
        if row == column || count(row).is_none() || count(column).is_none() {
            return None;
        }
        let made = |atom: Atom| {
            let var = atom.var()?;
            let blocks = [&inner.body, &self.middle.body, &self.outer.body];
            blocks.iter().flat_map(|b| &b.stmts).find(|s| s.binds == [var]).map(|s| &s.op)
        };
        let Some(Op::Scalar { prim: Prim::MulReal, args }) = made(*value) else { return None };
        let [x, y] = args[..] else { return None };
        // The matrix that has an index of the target, and that along which is summed.
        let factor = |atom: Atom, own: Var, own_first: bool| match made(atom)? {
            Op::Get { array, index } if !self.inside.contains(array) && array.ty == Type::array(Scalar::Real, 2) => {
                let (first, second) = if own_first { (own, along) } else { (along, own) };
                match index[..] {
                    [Atom::Var(a), Atom::Var(b)] if a == first && b == second => {
                        Some(Factor { matrix: *array, transposed: false })
                    }
                    [Atom::Var(a), Atom::Var(b)] if a == second && b == first => {
                        Some(Factor { matrix: *array, transposed: true })
                    }
                    _ => None,
                }
            }
            _ => None,
        };
        let factors = |x: Atom, y: Atom| Some((factor(x, row, true)?, factor(y, column, false)?));
        let (left, right) = factors(x, y).or_else(|| factors(y, x))?;
        let (rows, columns, inner) = (count(row)?, count(column)?, count(along)?);
        Some((Product { acc: *acc, left, right, rows, columns, inner }, target))
    }
}

/// What a product is added to.
enum Target {
    Matrix,
    Sum(Var),
}
