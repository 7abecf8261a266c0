//! Arrays of which only the length is wanted, though it changes from one iteration of a loop to the next, as derivatives often want of what they
//! follow: the length is handed on and kept instead, and the arrays are never made.

use super::{dead, forward};
use crate::flow::walk::Renaming;
use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_source::Span;
use rustc_hash::{FxHashMap, FxHashSet};

pub fn run(block: &mut Block, module: &Module) {
    keep_lengths(block);
    let changing = changing_lengths(block);
    if changing.is_empty() {
        return;
    }
    let mut tried = block.clone();
    hand_on(&mut tried, &changing);
    forward::run(&mut tried, &module.lengths);
    share(&mut tried);
    dead::run(&mut tried, module);
    let mut left = 0;
    walk::for_each_binder(&tried, &mut |v| left += usize::from(changing.contains(&v)));
    if left < changing.len() {
        *block = tried;
    }
}

/// State whose length is asked for, in the loop or after it: if it were always the same, it would be known.
fn changing_lengths(block: &Block) -> FxHashSet<Var> {
    let mut measured = FxHashSet::default();
    walk::for_each_stmt(block, &mut |stmt| match &stmt.op {
        Op::Dim { array, axis: 0 } if array.ty.rank == 1 => {
            measured.insert(*array);
        }
        _ => {}
    });
    let mut found = FxHashSet::default();
    walk::for_each_stmt(block, &mut |stmt| {
        if let Some((carried, ..)) = parts(&stmt.op) {
            let state = carried.iter().map(|(v, _)| *v).zip(&stmt.binds);
            found.extend(state.filter(|(v, after)| measured.contains(v) || measured.contains(after)).map(|(v, _)| v));
        }
    });
    found
}

/// What a loop carries.
type State = Vec<(Var, Atom)>;

/// The state of a loop, its body, and how many of the body's results come before the next state.
fn parts(op: &Op) -> Option<(&State, &Block, usize)> {
    match op {
        Op::For(l) => Some((&l.carried, &l.body, 0)),
        Op::While(l) => Some((&l.carried, &l.body, 1)),
        _ => None,
    }
}

fn parts_mut(op: &mut Op) -> Option<(&mut State, &mut Block, usize)> {
    match op {
        Op::For(l) => Some((&mut l.carried, &mut l.body, 0)),
        Op::While(l) => Some((&mut l.carried, &mut l.body, 1)),
        _ => None,
    }
}

/// Gives loops the lengths of these arrays as state of its own.
fn hand_on(block: &mut Block, changing: &FxHashSet<Var>) {
    let mut lengths = Lengths { changing, of: FxHashMap::default() };
    lengths.block(block);
}

struct Lengths<'a> {
    changing: &'a FxHashSet<Var>,
    of: FxHashMap<Var, Atom>,
}

impl Lengths<'_> {
    fn block(&mut self, block: &mut Block) {
        with_stack(|| {
            let mut out = Vec::with_capacity(block.stmts.len());
            for mut stmt in std::mem::take(&mut block.stmts) {
                self.state(&mut stmt, &mut out);
                stmt.op.blocks_mut().for_each(|inner| self.block(inner));
                if let Op::Dim { array, axis: 0 } = &stmt.op {
                    if let Some(length) = self.of.get(array) {
                        stmt.op = Op::Copy { value: *length };
                    }
                }
                out.push(stmt);
            }
            block.stmts = out;
        })
    }

    fn state(&mut self, stmt: &mut Stmt, out: &mut Vec<Stmt>) {
        let Stmt { binds, op, span } = stmt;
        let Some((carried, body, skip)) = parts_mut(op) else { return };
        let arrays = carried.len();
        for i in 0..arrays {
            let (array, init) = carried[i];
            let Atom::Var(init) = init else { continue };
            if !self.changing.contains(&array) {
                continue;
            }
            let Atom::Var(result) = body.results[i + skip] else { continue };
            let [now, last] = [(); 2].map(|()| Var::fresh("n", Type::INT));
            let first = measured(out, init, *span);
            let next = measured(&mut body.stmts, result, *span);
            let at = carried.len();
            carried.push((now, first.into()));
            body.results.insert(at + skip, next.into());
            self.of.extend([(array, now.into()), (binds[i], last.into())]);
            binds.insert(at, last);
        }
    }
}

/// The length of an array that statements make: of one that comes from a branch, its sides say how long it is.
fn measured(stmts: &mut Vec<Stmt>, array: Var, span: Span) -> Var {
    let length = Var::fresh("n", Type::INT);
    let maker = stmts.iter_mut().find(|stmt| stmt.binds.contains(&array));
    if let Some(Stmt { binds, op: Op::If { then, otherwise, .. }, .. }) = maker {
        let at = binds.iter().position(|v| *v == array).unwrap_or(0);
        if let (Atom::Var(first), Atom::Var(second)) = (then.results[at], otherwise.results[at]) {
            for (side, array) in [(then, first), (otherwise, second)] {
                let length = with_stack(|| measured(&mut side.stmts, array, span));
                side.results.push(length.into());
            }
            binds.push(length);
            return length;
        }
    }
    stmts.push(Stmt { binds: vec![length], op: Op::Dim { array, axis: 0 }, span });
    length
}

/// State that begins with the same and goes on with the same as other state is that state.
fn share(block: &mut Block) {
    with_stack(|| {
        super::each_inside(block, share);
        let mut same = Renaming::default();
        for stmt in &mut block.stmts {
            let Stmt { binds, op, .. } = stmt;
            let Some((carried, body, skip)) = parts_mut(op) else { continue };
            let mut i = 0;
            while i < carried.len() {
                let (var, init) = carried[i];
                let equal = |j: &usize| {
                    let (other, start) = carried[*j];
                    var.ty == Type::INT
                        && other.ty == var.ty
                        && start == init
                        && body.results[*j + skip] == body.results[i + skip]
                };
                let Some(first) = (0..i).find(equal) else {
                    i += 1;
                    continue;
                };
                same.map.insert(var, carried[first].0.into());
                same.map.insert(binds[i], binds[first].into());
                carried.remove(i);
                body.results.remove(i + skip);
                binds.remove(i);
            }
        }
        if !same.map.is_empty() {
            replace(block, &same);
        }
    })
}

fn replace(block: &mut Block, by: &Renaming) {
    with_stack(|| {
        for stmt in &mut block.stmts {
            stmt.op.for_each_operand_mut(&mut |a| *a = by.atom(*a));
            stmt.op.blocks_mut().for_each(|inner| replace(inner, by));
        }
        block.results.iter_mut().for_each(|a| *a = by.atom(*a));
    })
}

/// Loops that collect arrays in boxes, of which only the lengths are wanted later, collect these.
fn keep_lengths(block: &mut Block) {
    let mut kept = Kept::default();
    kept.look(block);
    if !kept.arrays.is_empty() {
        kept.replace(block);
    }
}

#[derive(Default)]
struct Kept {
    /// Arrays of boxes: what is in the box of an iteration, and the lengths.
    arrays: FxHashMap<Var, (Var, Var)>,
    /// The boxes and then the arrays that were taken out of them: which array of boxes that is, and the length.
    taken: FxHashMap<Var, (Var, Var)>,
}

impl Kept {
    fn look(&mut self, block: &Block) {
        with_stack(|| {
            for stmt in &block.stmts {
                match &stmt.op {
                    Op::Get { array, index } if self.arrays.contains_key(array) && index.len() == 1 => {
                        self.taken.insert(stmt.binds[0], (*array, Var::fresh("n", Type::INT)));
                    }
                    Op::Unpack { cell: Atom::Var(cell), .. } if self.taken.contains_key(cell) => {
                        self.taken.insert(stmt.binds[0], self.taken[cell]);
                    }
                    Op::Dim { .. } => {}
                    op => op.for_each_operand(&mut |a| self.forget(a)),
                }
                stmt.op.blocks().for_each(|inner| self.look(inner));
                if let Some((carried, body, skip)) = parts(&stmt.op) {
                    for (array, item) in stmt.binds.iter().zip(&body.results[skip..]).skip(carried.len()) {
                        let lengths = || Var::fresh("lengths", Type::array(Scalar::Int, 1));
                        self.arrays.extend(boxed(body, *item).map(|content| (*array, (content, lengths()))));
                    }
                }
            }
            block.results.iter().for_each(|a| self.forget(*a));
        })
    }

    /// More is wanted than the length.
    fn forget(&mut self, atom: Atom) {
        let Atom::Var(var) = atom else { return };
        let array = self.taken.get(&var).map_or(var, |(array, _)| *array);
        self.arrays.remove(&array);
    }

    fn replace(&self, block: &mut Block) {
        with_stack(|| {
            let length =
                |var: &Var| self.taken.get(var).filter(|(array, _)| self.arrays.contains_key(array)).map(|(_, n)| *n);
            block
                .stmts
                .retain(|s| !matches!(&s.op, Op::Unpack { cell: Atom::Var(cell), .. } if length(cell).is_some()));
            for stmt in &mut block.stmts {
                stmt.op.blocks_mut().for_each(|inner| self.replace(inner));
                if let Some((_, body, skip)) = parts_mut(&mut stmt.op) {
                    for (i, bind) in stmt.binds.iter_mut().enumerate() {
                        let Some((content, lengths)) = self.arrays.get(bind) else { continue };
                        let n = Var::fresh("n", Type::INT);
                        let op = Op::Dim { array: *content, axis: 0 };
                        body.stmts.push(Stmt { binds: vec![n], op, span: stmt.span });
                        body.results[i + skip] = n.into();
                        *bind = *lengths;
                    }
                }
                match &mut stmt.op {
                    Op::Get { array, .. } => {
                        if let (Some((_, lengths)), Some(n)) = (self.arrays.get(array), length(&stmt.binds[0])) {
                            *array = *lengths;
                            stmt.binds[0] = n;
                        }
                    }
                    Op::Dim { array, .. } => {
                        if let Some((_, lengths)) = self.arrays.get(array) {
                            *array = *lengths;
                        } else if let Some(n) = length(array) {
                            stmt.op = Op::Copy { value: n.into() };
                        }
                    }
                    _ => {}
                }
            }
        })
    }
}

/// The vector that is in the box that a body gives to be collected.
fn boxed(body: &Block, item: Atom) -> Option<Var> {
    let made = body.stmts.iter().find(|s| s.binds.first().map(|v| Atom::Var(*v)) == Some(item))?;
    match &made.op {
        Op::Cell { fields, .. } => match fields[..] {
            [Atom::Var(content)] => Some(content).filter(|v| v.ty.rank == 1),
            _ => None,
        },
        _ => None,
    }
}
