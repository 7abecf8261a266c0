//! Matrices whose rows are lists of a few numbers, and of which only columns are read, are collected column by column: points in space become one array for each
//! coordinate, which loops read and write in lanes, and which can be seen through one by one.

use super::unroll::FEW;
use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use gradus_source::Span;
use rustc_hash::FxHashMap;

pub fn run(block: &mut Block) {
    let mut columns = Columns::default();
    columns.find(block);
    columns.leave_others(block);
    if !columns.0.is_empty() {
        columns.block(block);
    }
}

/// For each matrix its columns.
#[derive(Default)]
struct Columns(FxHashMap<Var, Vec<Var>>);

/// The numbers of a row that is written out in a block.
fn items(block: &Block, row: Atom) -> Option<&Vec<Atom>> {
    let row = row.var().filter(|v| v.ty.rank == 1 && v.ty.shape().is_none())?;
    let made = block.stmts.iter().find(|stmt| stmt.binds.contains(&row))?;
    match &made.op {
        Op::Literal { items, .. } if (1..=FEW).contains(&items.len()) => Some(items),
        _ => None,
    }
}

impl Columns {
    /// The matrices whose rows are written out.
    fn find(&mut self, block: &Block) {
        with_stack(|| {
            for stmt in &block.stmts {
                stmt.op.blocks().for_each(|inner| self.find(inner));
                let Op::For(l) = &stmt.op else { continue };
                for (matrix, row) in stmt.binds.iter().zip(&l.body.results).skip(l.carried.len()) {
                    if let Some(items) = items(&l.body, *row) {
                        let columns = items.iter().map(|_| Var::fresh(matrix.name, matrix.ty.at(1)));
                        self.0.insert(*matrix, columns.collect());
                    }
                }
            }
        })
    }

    /// Forgets those of which more is asked than lengths and numbers of known columns.
    fn leave_others(&mut self, block: &Block) {
        with_stack(|| {
            for stmt in &block.stmts {
                stmt.op.blocks().for_each(|inner| self.leave_others(inner));
                match &stmt.op {
                    Op::Dim { .. } => {}
                    Op::Get { array, index } if self.column(*array, index).is_some() => {}
                    op => op.for_each_operand(&mut |a| self.forget(a)),
                }
            }
            block.results.iter().for_each(|a| self.forget(*a));
        })
    }

    fn forget(&mut self, atom: Atom) {
        if let Some(var) = atom.var() {
            self.0.remove(&var);
        }
    }

    fn column(&self, matrix: Var, index: &[Atom]) -> Option<Var> {
        match index {
            [_, Atom::Int(column)] => self.0.get(&matrix)?.get(usize::try_from(*column).ok()?).copied(),
            _ => None,
        }
    }

    fn block(&self, block: &mut Block) {
        with_stack(|| {
            let mut out = Vec::with_capacity(block.stmts.len());
            for mut stmt in std::mem::take(&mut block.stmts) {
                stmt.op.blocks_mut().for_each(|inner| self.block(inner));
                match &mut stmt.op {
                    Op::For(l) => self.collect(l, &mut stmt.binds),
                    Op::Get { array, index } => {
                        if let Some(column) = self.column(*array, index) {
                            *array = column;
                            index.truncate(1);
                        }
                    }
                    Op::Dim { array, axis } => {
                        if let Some(columns) = self.0.get(array) {
                            *array = columns[0];
                            if *axis == 1 {
                                *axis = 0;
                                width(&mut stmt, columns.len(), &mut out);
                            }
                        }
                    }
                    _ => {}
                }
                out.push(stmt);
            }
            block.stmts = out;
        })
    }

    /// The loop that collects the columns.
    fn collect(&self, l: &mut For, binds: &mut Vec<Var>) {
        if !binds.iter().any(|v| self.0.contains_key(v)) {
            return;
        }
        let results = std::mem::take(&mut l.body.results);
        for (var, result) in std::mem::take(binds).into_iter().zip(results) {
            match (self.0.get(&var), items(&l.body, result)) {
                (Some(columns), Some(items)) => {
                    binds.extend(columns);
                    l.body.results.extend(items.clone());
                }
                _ => {
                    binds.push(var);
                    l.body.results.push(result);
                }
            }
        }
    }
}

/// Makes of the number of rows the number of columns: a matrix without rows has none.
fn width(stmt: &mut Stmt, columns: usize, out: &mut Vec<Stmt>) {
    let span: Span = stmt.span;
    let (rows, some) = (Var::fresh("n", Type::INT), Var::fresh("t", Type::BOOL));
    let width = Op::Select { cond: some.into(), then: Atom::Int(columns as i64), otherwise: Atom::Int(0) };
    let count = std::mem::replace(&mut stmt.op, width);
    out.push(Stmt { binds: vec![rows], op: count, span });
    let op = Op::Scalar { prim: Prim::Less, args: vec![Atom::Int(0), rows.into()] };
    out.push(Stmt { binds: vec![some], op, span });
}
