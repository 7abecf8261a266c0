//! Matrix products: sums of products of two matrices' elements in three nested loops are left to a library.
//!
//! In the loops i and j, one in the other, stands the loop l; what it adds, to a sum of its own or to an element of a matrix, is the product of
//! elements of two matrices. Of the three indices each matrix has two, and each index is in two matrices: so the sum over the index that the target
//! does not have is a matrix product, in whatever order the loops are. It is made before the loops, of which only the rest is left.
//!
//! One of the two may be no matrix yet but a number that the loops i and j compute, as on the way back through a product. If there is a matrix of that
//! size anyway, they collect these numbers in another one, and the product is made after them.

use super::{apart, copies, dead, together};
use crate::flow::walk::{for_each_binder, Renaming};
use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use gradus_source::Span;
use rustc_hash::FxHashSet;
use std::collections::VecDeque;

/// Loops known to be shorter are no work for a library.
const SHORT: i64 = 8;

/// Whether anything was found.
pub fn run(block: &mut Block, module: &Module) -> bool {
    let lengths = walk::lengths(block);
    let mut made = FxHashSet::default();
    let any = take_out(block, &lengths, &mut made);
    if any {
        dead::run(block, module);
        copies::run(block, &made);
    }
    any
}

/// Takes the products out of the nests of a block; `made` gets the matrices that are nothing but a product.
fn take_out(block: &mut Block, lengths: &FxHashSet<Var>, made: &mut FxHashSet<Var>) -> bool {
    with_stack(|| {
        let mut any = false;
        let mut out = Vec::with_capacity(block.stmts.len());
        let mut found = Found::default();
        let mut rest: VecDeque<Stmt> = std::mem::take(&mut block.stmts).into();
        while let Some(mut stmt) = rest.pop_front() {
            let second = in_two(&stmt, lengths).map(|[first, second]| {
                stmt = first;
                second
            });
            if let Op::For(l) = &mut stmt.op {
                any |= of_nest(l, &mut stmt.binds, stmt.span, lengths, &mut found);
            }
            for inner in stmt.op.blocks_mut() {
                any |= take_out(inner, lengths, made);
            }
            out.append(&mut found.before);
            if let Some(mut second) = second {
                if let Some(mut names) = together::made_before(&mut out, &stmt) {
                    second.op = names.op(&second.op);
                    out.extend(only_checks(&mut stmt, &names));
                }
                rest.push_front(second);
            }
            out.push(stmt);
            out.append(&mut found.after);
        }
        block.stmts = out;
        made.extend(found.known.iter().map(|(_, made)| *made));
        any
    })
}

/// Leaves to a loop only what it checks; what it has made is known under other names, from which it is copied.
fn only_checks(stmt: &mut Stmt, names: &Renaming) -> Vec<Stmt> {
    if let Op::For(l) = &mut stmt.op {
        l.body.results.clear();
    }
    let copy = |bind: Var| Stmt { binds: vec![bind], op: Op::Copy { value: names.atom(bind.into()) }, span: stmt.span };
    std::mem::take(&mut stmt.binds).into_iter().map(copy).collect()
}

/// A loop as two, if the second has products then that the whole has not.
fn in_two(stmt: &Stmt, lengths: &FxHashSet<Var>) -> Option<[Stmt; 2]> {
    let Op::For(outer) = &stmt.op else { return None };
    let whole = |outer: &For| apart::places(outer).into_iter().find_map(|at| in_two_at(stmt, outer, at, lengths));
    whole(outer).or_else(|| whole(&apart::with_vectors(outer)?))
}

fn in_two_at(stmt: &Stmt, outer: &For, at: usize, lengths: &FxHashSet<Var>) -> Option<[Stmt; 2]> {
    let parts = apart::split(outer, &stmt.binds, stmt.span, at, false)?;
    let Op::For(second) = &parts[1].op else { return None };
    // Up to the loop at which it was taken apart.
    let mut second = second.clone();
    second.body.stmts.truncate(second.body.stmts.len() + at + 1 - outer.body.stmts.len());
    of_nest(&mut second, &mut Vec::new(), stmt.span, lengths, &mut Found::default()).then_some(parts)
}

/// The products of a block.
#[derive(Default)]
struct Found {
    /// Those of a nest of loops, as statements to stand before and after it.
    before: Vec<Stmt>,
    after: Vec<Stmt>,
    /// Statements to stand before the middle loop.
    rows: Vec<Stmt>,
    /// The numbers that the two outer loops of the nest collect, each with its matrix.
    collected: Vec<(Var, Var)>,
    /// Products that were made of nothing else so far.
    known: Vec<(Product, Var)>,
}

/// Takes the products out of a nest of loops, and says whether there were any. `binds` gets the matrices that it collects for them.
fn of_nest(outer: &mut For, binds: &mut Vec<Var>, span: Span, lengths: &FxHashSet<Var>, found: &mut Found) -> bool {
    if !is_long(outer) {
        return false;
    }
    let mut any = false;
    let mut inside = FxHashSet::from_iter([outer.index]);
    for_each_binder(&outer.body, &mut |v| {
        inside.insert(v);
    });
    let around = outer.clone();
    let For { body, .. } = outer;
    let mut out = Vec::with_capacity(body.stmts.len());
    for mut stmt in std::mem::take(&mut body.stmts) {
        let middle = match &mut stmt.op {
            Op::For(middle) if is_long(middle) && !is_among(&inside, middle.count) => middle,
            _ => {
                out.push(stmt);
                continue;
            }
        };
        let nest = Nest { outer: &around, middle: &middle.clone(), inside: &inside, lengths };
        let mut kept = Vec::new();
        for mut stmt in std::mem::take(&mut middle.body.stmts) {
            if let Op::For(inner) = &mut stmt.op {
                any |= nest.take(inner, span, found, &mut kept);
            }
            kept.push(stmt);
        }
        middle.body.stmts = kept;
        for (number, matrix) in std::mem::take(&mut found.collected) {
            let row = Var::fresh(number.name, matrix.ty.at(1));
            middle.body.results.push(number.into());
            stmt.binds.push(row);
            body.results.push(row.into());
            binds.push(matrix);
        }
        out.append(&mut found.rows);
        out.push(stmt);
    }
    body.stmts = out;
    any
}

pub(super) fn is_long(l: &For) -> bool {
    l.carried.is_empty() && !matches!(l.count, Atom::Int(n) if n < SHORT)
}

pub(super) fn is_among(vars: &FxHashSet<Var>, atom: Atom) -> bool {
    atom.var().is_some_and(|v| vars.contains(&v))
}

/// Whether a count is certainly not negative.
fn is_length(count: Atom, lengths: &FxHashSet<Var>) -> bool {
    matches!(count, Atom::Int(0..)) || is_among(lengths, count)
}

/// Two loops, all variables that they bind, and those that are lengths.
struct Nest<'a> {
    outer: &'a For,
    middle: &'a For,
    inside: &'a FxHashSet<Var>,
    lengths: &'a FxHashSet<Var>,
}

impl Nest<'_> {
    /// Takes products out of the innermost loop, and says whether there were any; `instead` gets what is to stand in their place.
    fn take(&self, inner: &mut For, span: Span, found: &mut Found, instead: &mut Vec<Stmt>) -> bool {
        if !is_long(inner) || is_among(self.inside, inner.count) || !inner.body.results.is_empty() {
            return false;
        }
        let mut checks = self.checks(inner);
        let whole = inner.clone();
        let all = whole.body.stmts.len();
        inner.body.stmts.retain(|stmt| {
            let Some((mut product, target)) = self.product(&whole, stmt, found) else { return true };
            let numbers = [&mut product.left, &mut product.right].into_iter().filter(|f| f.matrix.ty == Type::REAL);
            let computed = numbers.map(|factor| factor.matrix = found.matrix_of(factor.matrix)).count() > 0;
            if computed {
                found.after.push(Stmt { binds: Vec::new(), op: Op::Product(Box::new(product)), span });
                return false;
            }
            let Some(checks) = &mut checks else { return true };
            found.before.append(checks);
            match target {
                Target::Matrix => {
                    found.before.push(Stmt { binds: Vec::new(), op: Op::Product(Box::new(product)), span })
                }
                Target::Sum(sum) => {
                    let element = Var::fresh("e", Type::REAL);
                    let index = vec![self.outer.index.into(), self.middle.index.into()];
                    let op = Op::Get { array: found.made(product, span, self.lengths), index };
                    instead.push(Stmt { binds: vec![element], op, span });
                    let op = Op::Add { acc: sum, index: Vec::new(), value: element.into() };
                    instead.push(Stmt { binds: Vec::new(), op, span });
                }
                Target::Row(row) => {
                    let columns = product.columns;
                    let array = found.made(product, span, self.lengths);
                    let (column, element) = (Var::fresh("i", Type::INT), Var::fresh("e", Type::REAL));
                    let index = vec![self.outer.index.into(), column.into()];
                    let read = Stmt { binds: vec![element], op: Op::Get { array, index }, span };
                    let op = Op::Add { acc: row, index: vec![column.into()], value: element.into() };
                    let body = Block { stmts: vec![read, Stmt { binds: Vec::new(), op, span }], results: Vec::new() };
                    let l = For { index: column, count: columns, carried: Vec::new(), body, replayed: false };
                    found.rows.push(Stmt { binds: Vec::new(), op: Op::For(Box::new(l)), span });
                }
            }
            false
        });
        inner.body.stmts.len() < all
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
                let op = Op::branch(runs.into(), then, Block::default(), false);
                vec![Stmt { binds: vec![runs], op: compare, span }, Stmt { binds: Vec::new(), op, span }]
            }),
        })
    }

    /// Whether a number that the two loops compute may be collected in a matrix: there is one of that size.
    fn may_collect(&self, number: Var, found: &Found) -> bool {
        let is_size = |count: Atom| is_length(count, self.lengths);
        let pair = [self.outer.index.into(), self.middle.index.into()];
        let is_read = |stmt: &Stmt| matches!(&stmt.op, Op::Get { index, .. } if index[..] == pair);
        let stmts = &self.middle.body.stmts;
        let is_made_here = stmts.iter().any(|stmt| stmt.binds.contains(&number));
        let is_as_large = |product: &Product| [product.rows, product.columns] == [self.outer.count, self.middle.count];
        let is_there = stmts.iter().any(is_read) || found.known.iter().any(|(product, _)| is_as_large(product));
        is_size(self.outer.count) && is_size(self.middle.count) && is_made_here && is_there
    }

    /// The product that an addition of the innermost loop belongs to. A factor that is a number stands for the matrix that is to be collected of it.
    fn product(&self, inner: &For, stmt: &Stmt, found: &Found) -> Option<(Product, Target)> {
        let Op::Add { acc, index, value } = &stmt.op else { return None };
        let (target, [row, column]) = match index[..] {
            // A sum that begins with this loop.
            [] if self.middle.body.stmts.iter().any(|s| s.binds == [*acc]) => {
                (Target::Sum(*acc), [self.outer.index, self.middle.index])
            }
            // A row that each iteration of the outer loop begins.
            [Atom::Var(column)] if self.outer.body.stmts.iter().any(|s| s.binds == [*acc]) => {
                (Target::Row(*acc), [self.outer.index, column])
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
            // Who waits for the product cannot make a factor.
            _ if own == inner.index || along == inner.index || !matches!(target, Target::Matrix) => None,
            _ => atom.var().filter(|v| self.may_collect(*v, found)).map(|number| {
                let first = if own_first { own } else { along };
                Factor { matrix: number, transposed: first != self.outer.index }
            }),
        };
        let factors = |x: Atom, y: Atom| Some((factor(x, row, true)?, factor(y, column, false)?));
        let (left, right) = factors(x, y).or_else(|| factors(y, x))?;
        let (rows, columns, inner) = (count(row)?, count(column)?, count(along)?);
        Some((Product { acc: *acc, left, right, rows, columns, inner }, target))
    }
}

impl Found {
    /// A matrix that is nothing but a product, made before the loops unless it is there.
    fn made(&mut self, mut product: Product, span: Span, lengths: &FxHashSet<Var>) -> Var {
        let is_same = |other: &Product| {
            let counts = |p: &Product| [p.rows, p.columns, p.inner];
            (other.left, other.right, counts(other)) == (product.left, product.right, counts(&product))
        };
        if let Some((_, made)) = self.known.iter().find(|(other, _)| is_same(other)) {
            return *made;
        }
        let matrix = Type::array(Scalar::Real, 2);
        let zeros = Var::fresh("zeros", matrix);
        let made = Var::fresh("product", matrix);
        product.acc = Var::fresh("sums", matrix.accumulator());
        let one = |var: Var, op: Op| Stmt { binds: vec![var], op, span };
        // As loops would make it: without rows, it has no columns. Loops may be asked to run less than no times.
        let mut if_positive = |cond: Atom, count: Atom| {
            let (runs, length) = (Var::fresh("t", Type::BOOL), Var::fresh("n", Type::INT));
            self.before.push(one(runs, Op::Scalar { prim: Prim::Less, args: vec![Atom::Int(0), cond] }));
            let op = Op::Select { cond: runs.into(), then: count, otherwise: Atom::Int(0) };
            self.before.push(one(length, op));
            Atom::Var(length)
        };
        let mut length = |count: Atom| match is_length(count, lengths) {
            true => count,
            false => if_positive(count, count),
        };
        let (rows, columns) = (length(product.rows), length(product.columns));
        let dims = vec![rows, if_positive(product.rows, columns)];
        self.before.push(one(zeros, Op::Fill { dims, value: Atom::Real(0.0) }));
        self.before.push(one(product.acc, Op::Open { init: zeros.into() }));
        self.before.push(Stmt { binds: Vec::new(), op: Op::Product(Box::new(product.clone())), span });
        self.before.push(one(made, Op::Freeze { acc: product.acc }));
        self.known.push((product, made));
        made
    }

    /// The matrix that a number of the loops is collected in.
    fn matrix_of(&mut self, number: Var) -> Var {
        if let Some((_, matrix)) = self.collected.iter().find(|(known, _)| *known == number) {
            return *matrix;
        }
        let matrix = Var::fresh(number.name, Type::array(Scalar::Real, 2));
        self.collected.push((number, matrix));
        matrix
    }
}

/// What a product is added to.
enum Target {
    Matrix,
    /// A sum of the two outer loops.
    Sum(Var),
    /// A row of the outermost.
    Row(Var),
}
