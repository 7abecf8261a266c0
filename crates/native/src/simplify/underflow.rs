//! Adjoints that have become too small.
//!
//! On the way back through steps that draw near to something, as an iteration does that converges or a motion that dies out, adjoints become smaller with each
//! step, and in the end so small that they have no more than a few digits, with which processors compute some fifty times as slowly: rounded up again and again, such a
//! number never becomes zero. So the way back through many steps goes by *windows* of a few, and before each of them adjoints that are less than the least number with
//! all its digits become zero.

use super::segments::{is_over_segments, Collected};
use super::strips::{is_over_strips, one_by_one};
use crate::adjoint::BACKWARD_INDEX;
use crate::flow::walk::Renaming;
use crate::flow::*;
use crate::steady::{Length, Lengths};
use gradus_core::traverse::with_stack;
use gradus_core::Prim;

/// So few steps are one window, and their adjoints stay what they are: from one, halved with each step, it takes twice as many to become so small.
const FEW: i64 = 512;
/// Otherwise a window has so many.
const MANY: i64 = 16;

/// What the index of a loop over windows is called.
const WINDOW: &str = "window";

pub(super) fn is_over_windows(l: &For) -> bool {
    l.index.name == Name::new(WINDOW)
}

pub fn run(block: &mut Block) {
    let lengths = Lengths::of(block);
    Windows { lengths }.block(block, None);
}

/// The state of a loop that is made zero where it is too small: adjoints, which their names tell. An array is, if each step makes all of it.
fn wanted(l: &For) -> Vec<bool> {
    let is_made = |result: Atom| {
        let makes = |stmt: &Stmt| matches!(stmt.op, Op::For(_)) && stmt.binds.iter().any(|v| result == (*v).into());
        l.body.stmts.iter().any(makes)
    };
    let is_wanted = |((var, _), result): (&(Var, Atom), &Atom)| {
        let adjoint = var.ty.is_real() && var.ty.rank <= 2 && var.name.text().ends_with("_adj");
        adjoint && (!var.ty.is_array() || is_made(*result))
    };
    l.carried.iter().zip(&l.body.results).map(is_wanted).collect()
}

struct Windows {
    lengths: Lengths,
}

/// How a number of steps is cut into windows.
#[derive(Clone, Copy)]
struct Size {
    /// Whether all steps are one window.
    is_few: Atom,
    /// The steps of a window.
    size: Atom,
    windows: Atom,
}

impl Size {
    fn of(b: &mut Builder, count: Atom, segments: Option<Atom>) -> Size {
        let mut is_few = b.scalar(Prim::LessEqual, &[count, Atom::Int(FEW)]);
        if let Some(segments) = segments {
            let is_one = b.scalar(Prim::LessEqual, &[segments, Atom::Int(1)]);
            is_few = b.select(is_one, is_few, Atom::Bool(false));
        }
        let size = b.select(is_few, count, Atom::Int(MANY));
        let sum = b.scalar(Prim::AddInt, &[count, Atom::Int(MANY - 1)]);
        let many = b.scalar(Prim::DivInt, &[sum, Atom::Int(MANY)]);
        let windows = b.select(is_few, Atom::Int(1), many);
        Size { is_few, size, windows }
    }
}

impl Windows {
    /// `segments`: how many there are, in the body of a loop over these.
    fn block(&self, block: &mut Block, segments: Option<Atom>) {
        with_stack(|| {
            let mut out = Vec::with_capacity(block.stmts.len());
            let mut sizes = Vec::new();
            for mut stmt in std::mem::take(&mut block.stmts) {
                if let Some(stmts) = self.by_windows(&stmt, segments, &mut sizes) {
                    out.extend(stmts);
                    continue;
                }
                let side_by_side = one_by_one(&stmt).is_some();
                match &mut stmt.op {
                    Op::For(l) if is_over_segments(l) => self.block(&mut l.body, Some(l.count)),
                    Op::For(l) if is_over_strips(l) => self.block(&mut l.body, None),
                    // Iterations are not to have more to do than they have, unless they are few.
                    Op::For(_) | Op::While(_) => {}
                    Op::If { then, otherwise, .. } => {
                        let few = then.stmts.iter_mut().filter(|_| side_by_side).flat_map(|stmt| stmt.op.blocks_mut());
                        few.for_each(|iteration| self.block(iteration, None));
                        [then, otherwise].into_iter().for_each(|side| self.block(side, None));
                    }
                    _ => {}
                }
                out.push(stmt);
            }
            block.stmts = out;
        })
    }

    /// Statements that bind the same as a loop backwards. `sizes`: what earlier loops of the block found out.
    fn by_windows(&self, stmt: &Stmt, segments: Option<Atom>, sizes: &mut Vec<(Atom, Size)>) -> Option<Vec<Stmt>> {
        let Op::For(l) = &stmt.op else { return None };
        let is_long = !matches!(l.count, Atom::Int(count) if count <= FEW);
        let goes_back = l.index.name == Name::new(BACKWARD_INDEX) && wanted(l).contains(&true);
        let plain = l.body.results[l.carried.len()..].iter().all(|a| a.ty() == Type::REAL);
        // With traces of calls inside, a step takes its time anyway.
        let traced = l.carried.iter().any(|(v, _)| v.ty.shape().is_some());
        if !is_long || !goes_back || !plain || traced {
            return None;
        }
        let mut b = Builder::new();
        b.span = stmt.span;
        let Size { is_few, size, windows } = match sizes.iter().find(|(count, _)| *count == l.count) {
            Some((_, known)) => *known,
            None => {
                let size = Size::of(&mut b, l.count, segments);
                sizes.push((l.count, size));
                size
            }
        };
        let (states, collected) = stmt.binds.split_at(l.carried.len());
        let collected = Collected::open(&mut b, collected, l.count);
        let carried: Vec<(Var, Atom)> = l.carried.iter().map(|(v, init)| (v.refresh(), *init)).collect();
        let window = Var::fresh(WINDOW, Type::INT);
        b.push();
        let base = b.scalar(Prim::MulInt, &[window.into(), size]);
        let rest = b.scalar(Prim::SubInt, &[l.count, base]);
        let is_full = b.scalar(Prim::Less, &[size, rest]);
        let steps = b.select(is_full, size, rest);
        let state: Vec<Var> = carried.iter().map(|(v, _)| *v).collect();
        let starts = self.without_least(&mut b, l, &state, is_few);
        let mut renaming = Renaming::default();
        let inner = l.carried.iter().map(|(v, _)| renaming.renew(*v)).zip(starts).collect();
        b.push();
        let index = l.index.refresh();
        let k = b.scalar(Prim::AddInt, &[base, index.into()]);
        renaming.map.insert(l.index, k);
        let mut body = renaming.block(&l.body);
        b.stmts(body.stmts);
        collected.add(&mut b, k, body.results.split_off(l.carried.len()));
        let body = b.pop(body.results);
        let ends: Vec<Var> = states.iter().map(|v| v.refresh()).collect();
        b.bind(
            ends.clone(),
            Op::For(Box::new(For { index, count: steps, carried: inner, body, replayed: l.replayed })),
        );
        let body = b.pop(ends.into_iter().map(Atom::Var).collect());
        let l = For { index: window, count: windows, carried, body, replayed: l.replayed };
        b.bind(states.to_vec(), Op::For(Box::new(l)));
        collected.freeze(&mut b);
        Some(b.pop(Vec::new()).stmts)
    }

    /// The state with zero for adjoints that are too small, unless there are few steps; those in arrays of the same lengths in one loop. `l`: the
    /// loop as it was before.
    fn without_least(&self, b: &mut Builder, l: &For, state: &[Var], is_few: Atom) -> Vec<Atom> {
        let mut values: Vec<Atom> = state.iter().map(|v| (*v).into()).collect();
        let mut arrays: Vec<(Vec<Length>, Vec<usize>)> = Vec::new();
        let mut least = None;
        for (at, _) in wanted(l).into_iter().enumerate().filter(|(_, wanted)| *wanted) {
            if !state[at].ty.is_array() {
                let least =
                    *least.get_or_insert_with(|| b.select(is_few, Atom::Real(0.0), Atom::Real(f64::MIN_POSITIVE)));
                values[at] = not_less(b, &[values[at]], least)[0];
                continue;
            }
            let lengths = self.lengths.of_array(l.carried[at].0.into());
            match arrays.iter_mut().find(|(same, _)| *same == lengths) {
                Some((_, places)) => places.push(at),
                None => arrays.push((lengths, vec![at])),
            }
        }
        if arrays.is_empty() {
            return values;
        }
        let places: Vec<usize> = arrays.iter().flat_map(|(_, places)| places).copied().collect();
        let as_they_are = places.iter().map(|at| values[*at]).collect();
        b.push();
        let changed = arrays.iter().flat_map(|(_, places)| {
            let same: Vec<Atom> = places.iter().map(|at| values[*at]).collect();
            not_less(b, &same, Atom::Real(f64::MIN_POSITIVE))
        });
        let changed = changed.collect();
        let otherwise = b.pop(changed);
        let then = Block { stmts: Vec::new(), results: as_they_are };
        for (at, array) in places.into_iter().zip(b.branch(is_few, then, otherwise)) {
            values[at] = array;
        }
        values
    }
}

/// Numbers, or arrays of as many numbers, zero where they are less than this.
fn not_less(b: &mut Builder, values: &[Atom], least: Atom) -> Vec<Atom> {
    let first = values.first().and_then(|a| a.var()).filter(|v| v.ty.is_array());
    let Some(first) = first else {
        let mut number = |value: &Atom| {
            let size = b.scalar(Prim::Abs, &[*value]);
            let is_less = b.scalar(Prim::Less, &[size, least]);
            b.select(is_less, Atom::Real(0.0), *value)
        };
        return values.iter().map(&mut number).collect();
    };
    let count = b.dim(first, 0);
    let index = Var::fresh("j", Type::INT);
    b.push();
    let elements: Vec<Atom> = values.iter().map(|array| b.get(*array, vec![index.into()])).collect();
    let elements = not_less(b, &elements, least);
    let body = b.pop(elements);
    b.for_loop(index, count, Vec::new(), body)
}
