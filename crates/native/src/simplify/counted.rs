//! Integers that follow from the index of a loop over a range: state that goes up or down by the same in each iteration is not handed on, nor kept for a way back,
//! and what a loop collects of such numbers is computed where it is read. Lengths of arrays that get shorter with each step are such.

use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use gradus_source::Span;
use rustc_hash::FxHashMap;

/// So many statements may lead to the next number.
const FEW: usize = 4;

pub fn run(block: &mut Block) {
    follow(block, &mut FxHashMap::default());
}

/// `collected`: of arrays of integers, what their elements are.
fn follow(block: &mut Block, collected: &mut FxHashMap<Var, Line>) {
    with_stack(|| {
        let mut b = Builder::new();
        for mut stmt in std::mem::take(&mut block.stmts) {
            b.span = stmt.span;
            let mut after = Vec::new();
            if let Op::For(l) = &mut stmt.op {
                let mut at = 0;
                while at < l.carried.len() {
                    match state(l, at) {
                        Some(line) => after.extend(from_index(l, at, &line, stmt.binds.remove(at), stmt.span)),
                        None => at += 1,
                    }
                }
                for (array, element) in stmt.binds.iter().zip(&l.body.results).skip(l.carried.len()) {
                    let line = Line::of(l, *element, FEW)
                        .filter(|line| !l.carried.iter().any(|(v, _)| Some(*v) == line.other));
                    collected.extend(line.map(|line| (*array, line)));
                }
            }
            stmt.op.blocks_mut().for_each(|inner| follow(inner, collected));
            match &stmt.op {
                Op::Get { array, index } if collected.contains_key(array) => {
                    let value = collected[array].at(&mut b, index[0]);
                    b.bind(stmt.binds, Op::Copy { value });
                }
                _ => b.stmt(stmt),
            }
            b.stmts(after);
        }
        block.stmts = b.pop(Vec::new()).stmts;
    })
}

/// What a state is in each iteration.
fn state(l: &For, at: usize) -> Option<Line> {
    let (state, init) = l.carried[at];
    if state.ty != Type::INT {
        return None;
    }
    let next = Line::of(l, l.body.results[at], FEW)?;
    let first = Line::of(l, init, 0)?;
    if next.other == Some(state) {
        return (next.step == 0).then_some(Line { step: next.plus, ..first });
    }
    // What it begins with, and so much for this iteration and each before.
    let goes_on = next.other == first.other && next.plus == first.plus.wrapping_add(next.step);
    goes_on.then_some(Line { step: next.step, ..first })
}

/// Makes the state an integer that the body computes; gives what computes the last.
fn from_index(l: &mut For, at: usize, line: &Line, last: Var, span: Span) -> Vec<Stmt> {
    let (state, _) = l.carried.remove(at);
    l.body.results.remove(at);
    let compute = |bind: Var, times: &dyn Fn(&mut Builder) -> Atom| {
        let mut b = Builder::new();
        b.span = span;
        let times = times(&mut b);
        let value = line.at(&mut b, times);
        b.bind(vec![bind], Op::Copy { value });
        b.pop(Vec::new()).stmts
    };
    l.body.stmts.splice(0..0, compute(state, &|_| l.index.into()));
    compute(last, &|b| match l.count {
        Atom::Int(count) => Atom::Int(count.max(0)),
        count => {
            let negative = b.scalar(Prim::Less, &[count, Atom::Int(0)]);
            b.select(negative, Atom::Int(0), count)
        }
    })
}

/// `step * index + other + plus`, as the arithmetic of integers goes, which begins again beyond the largest.
struct Line {
    step: i64,
    other: Option<Var>,
    plus: i64,
}

impl Line {
    /// The number for an index.
    fn at(&self, b: &mut Builder, index: Atom) -> Atom {
        let start = match self.other {
            None => Atom::Int(self.plus),
            Some(other) => b.scalar(Prim::AddInt, &[other.into(), Atom::Int(self.plus)]),
        };
        match self.step {
            -1 => b.scalar(Prim::SubInt, &[start, index]),
            step => {
                let more = b.scalar(Prim::MulInt, &[index, Atom::Int(step)]);
                b.scalar(Prim::AddInt, &[start, more])
            }
        }
    }

    /// Of an integer in the body of a loop; at most so many statements compute it.
    fn of(l: &For, atom: Atom, few: usize) -> Option<Line> {
        let var = match atom {
            Atom::Int(plus) => return Some(Line { step: 0, other: None, plus }),
            Atom::Var(var) if var == l.index => return Some(Line { step: 1, other: None, plus: 0 }),
            atom => atom.var().filter(|v| v.ty == Type::INT)?,
        };
        let Some(stmt) = l.body.stmts.iter().find(|s| s.binds.contains(&var)) else {
            return Some(Line { step: 0, other: Some(var), plus: 0 });
        };
        let Op::Scalar { prim: prim @ (Prim::AddInt | Prim::SubInt), args } = &stmt.op else { return None };
        let few = few.checked_sub(1)?;
        let [a, b] = [Line::of(l, args[0], few)?, Line::of(l, args[1], few)?];
        match (prim, a.other, b.other) {
            (Prim::AddInt, other, None) | (Prim::AddInt, None, other) => {
                Some(Line { step: a.step.wrapping_add(b.step), other, plus: a.plus.wrapping_add(b.plus) })
            }
            (Prim::SubInt, other, None) => {
                Some(Line { step: a.step.wrapping_sub(b.step), other, plus: a.plus.wrapping_sub(b.plus) })
            }
            _ => None,
        }
    }
}
