//! A loop that changes a row of a matrix has, on the way back, what belongs to that row taken out and zeros put there, to which a loop then adds. Here the
//! loop collects the row, which is put there when it is done. If all that it adds is what was there, the row stays where it is.

use super::collect::{mentions, Mentions};
use crate::flow::walk::for_each_operand;
use crate::flow::*;
use gradus_core::traverse::with_stack;

pub fn run(block: &mut Block) {
    with_stack(|| {
        super::each_inside(block, run);
        let mentions = mentions(block);
        if mentions.is_empty() {
            return;
        }
        let mut found: Vec<Emptied> = (0..block.stmts.len()).filter_map(|at| emptied(block, &mentions, at)).collect();
        // From the last, since statements are put in.
        found.sort_by_key(|e| e.adding);
        let mut last = block.stmts.len();
        for emptied in found.into_iter().rev() {
            // One that lies within another waits for the next time.
            if emptied.adding < last && emptied.is_alone(block) {
                last = emptied.set;
                emptied.fill(block);
            }
        }
    })
}

/// A matrix of which a row is emptied, and the loop that is the first to add to it, also to each element of that row.
struct Emptied {
    /// Where zeros are put into the matrix, and where it is opened.
    set: usize,
    open: usize,
    /// The loop, which of its statements adds to the row, and what.
    adding: usize,
    addition: usize,
    value: Atom,
    /// The matrix before, and which row.
    matrix: Var,
    row: Vec<Atom>,
}

fn emptied(block: &Block, mentions: &Mentions, open: usize) -> Option<Emptied> {
    let Stmt { binds, op: Op::Open { init: Atom::Var(opened) }, .. } = &block.stmts[open] else { return None };
    let acc = binds[0];
    let set = block.stmts[..open].iter().rposition(|s| s.binds.contains(opened))?;
    let Op::Set { array: matrix, index: row, value: Atom::Var(zeros) } = &block.stmts[set].op else { return None };
    let Op::Fill { dims, .. } = &block.stmts[*mentions.get(zeros)?.first()?].op else { return None };
    let adding = *mentions.get(&acc)?.get(1)?;
    let Op::For(l) = &block.stmts[adding].op else { return None };
    let place = [&row[..], &[l.index.into()]].concat();
    let own = |s: &Stmt| matches!(&s.op, Op::Add { acc: to, index, .. } if *to == acc && *index == place);
    let addition = l.body.stmts.iter().position(own)?;
    let Op::Add { value, .. } = l.body.stmts[addition].op else { return None };
    let whole = dims[..] == [l.count] && l.carried.is_empty();
    whole.then(|| Emptied { set, open, adding, addition, value, matrix: *matrix, row: row.clone() })
}

impl Emptied {
    /// Whether nobody else looks at the matrix with the zeros.
    fn is_alone(&self, block: &Block) -> bool {
        let emptied = block.stmts[self.set].binds[0];
        let others = block.stmts.iter().enumerate().filter(|(at, _)| *at != self.open);
        !others.map(|(_, s)| s).any(|s| s.mentions(emptied)) && !block.results.contains(&emptied.into())
    }

    fn fill(self, block: &mut Block) {
        let acc = block.stmts[self.open].binds[0];
        let Op::For(l) = &block.stmts[self.adding].op else { return };
        let mut uses = 0;
        for_each_operand(&l.body, &mut |a| uses += usize::from(a == acc.into()));
        if self.stays(l) {
            self.leave(block);
        } else if uses == 1 {
            self.collect(block);
        }
    }

    /// Whether what the loop adds to the row is what was there, and it wants to know nothing else of the matrix.
    fn stays(&self, l: &For) -> bool {
        let place = [&self.row[..], &[l.index.into()]].concat();
        let is_old = |s: &Stmt| matches!(&s.op, Op::Get { array, index } if *array == self.matrix && *index == place);
        let mut uses = 0;
        for_each_operand(&l.body, &mut |a| uses += usize::from(a == self.matrix.into()));
        let mut reads = l.body.stmts.iter().filter(|s| is_old(s));
        reads.next().is_some_and(|read| Some(read.binds[0]) == self.value.var()) && uses == 1
    }

    /// The loop reads a copy of the row, and does not add what was there.
    fn leave(self, block: &mut Block) {
        let copy = Var::fresh(self.matrix.name, self.matrix.ty.at(self.row.len()));
        let mut b = Builder::new();
        b.span = block.stmts[self.set].span;
        b.copy_out(copy, self.matrix, self.row);
        let Op::For(l) = &mut block.stmts[self.adding].op else { return };
        l.body.stmts.remove(self.addition);
        for stmt in &mut l.body.stmts {
            if let Op::Get { array, index } = &mut stmt.op {
                if *array == self.matrix {
                    (*array, *index) = (copy, vec![l.index.into()]);
                }
            }
        }
        block.stmts[self.set].op = Op::Copy { value: self.matrix.into() };
        block.stmts.splice(self.set..self.set, b.pop(Vec::new()).stmts);
    }

    /// The loop collects the row, which is put into the matrix after it.
    fn collect(self, block: &mut Block) {
        let Stmt { binds, op: Op::For(l), span } = &mut block.stmts[self.adding] else { return };
        let row = Var::fresh(self.matrix.name, self.matrix.ty.at(self.row.len()));
        l.body.stmts.remove(self.addition);
        l.body.results.push(self.value);
        binds.push(row);
        let span = *span;
        let mut set = block.stmts[self.set].clone();
        set.op = Op::Set { array: self.matrix, index: self.row, value: row.into() };
        set.span = span;
        let open = block.stmts[self.open].clone();
        block.stmts.splice(self.adding + 1..self.adding + 1, [set, open]);
        block.stmts.remove(self.open);
        block.stmts.remove(self.set);
    }
}
