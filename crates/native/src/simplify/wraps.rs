//! Neighbours in a ring, `a.((i + 1) mod n)` and `a.((i + n - 1) mod n)` in a loop of n iterations: all iterations but the last or the first read the neighbour
//! itself. To divide for each of them would cost more than all the rest; written as the branch that it is, the one iteration is taken apart from the others.

use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use gradus_source::Span;
use rustc_hash::FxHashMap;

pub fn run(block: &mut Block) {
    if has_remainders(block) {
        Rings::default().block(block);
    }
}

fn has_remainders(block: &Block) -> bool {
    with_stack(|| {
        block.stmts.iter().any(|stmt| match &stmt.op {
            Op::Scalar { prim, .. } => *prim == Prim::ModInt,
            op => op.blocks().any(has_remainders),
        })
    })
}

#[derive(Default)]
struct Rings {
    /// The loops around, with their counts.
    loops: Vec<(Var, Atom)>,
    /// How sums and differences of integers are computed.
    made: FxHashMap<Var, (Prim, [Atom; 2])>,
    /// Numbers that were remainders.
    neighbours: FxHashMap<Var, Neighbour>,
}

/// A place next to an index.
#[derive(Clone, Copy)]
struct Neighbour {
    index: Var,
    /// Whether it is at the other end, and where it is then and otherwise.
    round: Atom,
    there: Atom,
    next: Atom,
}

/// A sum of an index, a count and a number.
#[derive(Default)]
struct Sum {
    terms: Vec<Var>,
    constant: i64,
}

/// How deep sums are followed.
const DEPTH: usize = 4;

impl Rings {
    fn block(&mut self, block: &mut Block) {
        with_stack(|| {
            let mut out = Vec::with_capacity(block.stmts.len());
            for mut stmt in std::mem::take(&mut block.stmts) {
                if let Op::For(l) = &mut stmt.op {
                    self.loops.push((l.index, l.count));
                    self.block(&mut l.body);
                    self.loops.pop();
                } else {
                    stmt.op.blocks_mut().for_each(|inner| self.block(inner));
                }
                self.stmt(stmt, &mut out);
            }
            block.stmts = out;
        })
    }

    fn stmt(&mut self, mut stmt: Stmt, out: &mut Vec<Stmt>) {
        match &stmt.op {
            Op::Scalar { prim: prim @ (Prim::AddInt | Prim::SubInt), args } => {
                self.made.insert(stmt.binds[0], (*prim, [args[0], args[1]]));
            }
            Op::Scalar { prim: Prim::ModInt, args } => {
                let (x, count) = (args[0], args[1]);
                if let Some((index, ahead)) = self.neighbour(x, count) {
                    let neighbour = branch(index, count, ahead, stmt.span, out);
                    self.neighbours.insert(stmt.binds[0], neighbour);
                    let Neighbour { round, there, next, .. } = neighbour;
                    stmt.op = Op::Select { cond: round, then: there, otherwise: next };
                }
            }
            Op::Get { array, index } if !stmt.binds[0].ty.is_array() => {
                let last = index.last().and_then(|i| self.neighbours.get(&i.var()?)).copied();
                let own = self.loops.last().map(|(index, _)| *index);
                if let Some(neighbour) = last.filter(|neighbour| Some(neighbour.index) == own) {
                    let read = |at: Atom| {
                        let (element, rest) = (stmt.binds[0].refresh(), &index[..index.len() - 1]);
                        let op = Op::Get { array: *array, index: [rest, &[at]].concat() };
                        let stmts = vec![Stmt { binds: vec![element], op, span: stmt.span }];
                        Block { stmts, results: vec![element.into()] }
                    };
                    let (then, otherwise) = (read(neighbour.there), read(neighbour.next));
                    stmt.op = Op::branch(neighbour.round, then, otherwise, false);
                }
            }
            _ => {}
        }
        out.push(stmt);
    }

    /// The index of a loop of so many iterations, of which a number is the next in the ring, or else the one before.
    fn neighbour(&self, x: Atom, count: Atom) -> Option<(Var, bool)> {
        let sum = self.sum(x, DEPTH)?;
        let (index, _) = *self.loops.iter().find(|(index, n)| *n == count && sum.terms.contains(index))?;
        let others: Vec<Atom> = sum.terms.iter().filter(|v| **v != index).map(|v| Atom::Var(*v)).collect();
        match (&others[..], count) {
            ([], _) if sum.constant == 1 => Some((index, true)),
            ([], Atom::Int(n)) if sum.constant == n - 1 => Some((index, false)),
            ([other], _) if *other == count && sum.constant == -1 => Some((index, false)),
            _ => None,
        }
    }

    /// A number as a sum of different variables; of others than lengths and indices, which are small, it is not known whether it is one.
    fn sum(&self, x: Atom, depth: usize) -> Option<Sum> {
        let var = match x {
            Atom::Int(constant) => return Some(Sum { terms: Vec::new(), constant }),
            Atom::Var(var) => var,
            _ => return None,
        };
        let is_small = self.loops.iter().any(|(index, count)| *index == var || *count == x);
        match self.made.get(&var) {
            Some((prim, [a, b])) if depth > 0 && !is_small => {
                let (mut sum, other) = (self.sum(*a, depth - 1)?, self.sum(*b, depth - 1)?);
                let sign = if *prim == Prim::AddInt { 1 } else { -1 };
                sum.constant = sum.constant.checked_add(sign * other.constant)?;
                let is_sum = sign == 1 || other.terms.is_empty();
                sum.terms.extend(other.terms);
                is_sum.then_some(sum)
            }
            _ => is_small.then(|| Sum { terms: vec![var], constant: 0 }),
        }
    }
}

/// The place next to an index, in a ring with so many places.
fn branch(index: Var, count: Atom, ahead: bool, span: Span, out: &mut Vec<Stmt>) -> Neighbour {
    let mut b = Builder::new();
    b.span = span;
    let last = b.scalar(Prim::SubInt, &[count, Atom::Int(1)]);
    let (end, there, by) = if ahead { (last, Atom::Int(0), 1) } else { (Atom::Int(0), last, -1) };
    let round = b.scalar(Prim::Equal, &[index.into(), end]);
    let next = b.scalar(Prim::AddInt, &[index.into(), Atom::Int(by)]);
    out.append(&mut b.pop(Vec::new()).stmts);
    Neighbour { index, round, there, next }
}
