//! Accumulators of a few numbers are taken apart, and sums that are added to in straight lines and branches become arithmetic.

use super::small::{numbers, place, Numbers, Parts, Small};
use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use rustc_hash::FxHashMap;

impl Small<'_> {
    /// Accumulators of such arrays whose additions all go to known places, and sums that are added to in one line.
    pub(super) fn accumulators(&mut self, block: &mut Block) {
        let opened = block.stmts.iter().filter(|s| matches!(s.op, Op::Open { .. }));
        let mut all: FxHashMap<Var, Uses> = opened.map(|s| (s.binds[0], Uses::default())).collect();
        if all.is_empty() {
            return;
        }
        for (at, stmt) in block.stmts.iter().enumerate() {
            note_uses(stmt, &Where { at, nested: false, in_loop: false }, &mut all);
        }
        all.retain(|acc, uses| {
            let known = if acc.ty.rank == 0 { !uses.in_loops } else { !uses.elsewhere };
            known && uses.frozen.is_some() && !uses.other
        });
        if all.is_empty() {
            return;
        }
        // What each statement becomes.
        let mut stmts: Vec<Vec<Stmt>> = std::mem::take(&mut block.stmts).into_iter().map(|s| vec![s]).collect();
        for at in 0..stmts.len() {
            let [Stmt { binds, op: Op::Open { init }, .. }] = &stmts[at][..] else { continue };
            let (acc, init) = (binds[0], *init);
            let Some(uses) = all.get(&acc) else { continue };
            // Boxes, which only a function can add, as long as there is nothing to add.
            let line = match init {
                Atom::Nil(_) => one_addition(uses.places.iter().flat_map(|at| &stmts[*at]), acc),
                _ => acc.ty.is_real(),
            };
            if acc.ty.rank == 0 && line {
                if uses.nested {
                    uses.places.iter().for_each(|at| {
                        out_of_branches(&mut stmts[*at], acc);
                    });
                }
                let mut total = init;
                in_one_line(&mut stmts[at], acc, init, &mut total);
                uses.places.iter().for_each(|at| in_one_line(&mut stmts[*at], acc, init, &mut total));
                self.changed = true;
            } else if let (true, Some(Parts::Items(numbers))) = (acc.ty.is_real(), self.of(init).cloned()) {
                self.take_apart(&mut stmts, [at].iter().chain(&uses.places), acc, numbers);
            }
        }
        block.stmts = stmts.into_iter().flatten().collect();
    }

    /// `places` are the statements that have to do with the accumulator.
    fn take_apart<'p>(
        &mut self,
        stmts: &mut [Vec<Stmt>],
        places: impl Iterator<Item = &'p usize>,
        acc: Var,
        init: Numbers,
    ) {
        let one = acc.ty.at(acc.ty.rank as usize);
        let accs: Vec<Var> = init.items.iter().map(|_| Var::fresh(acc.name, one)).collect();
        self.changed = true;
        for at in places {
            let apart = Apart { whole: acc, accs: &accs, dims: &init.dims };
            redirect(&mut stmts[*at], &apart, &mut |array| match self.of(array.into()) {
                Some(Parts::Items(numbers)) => Some(numbers.items.clone()),
                Some(Parts::Dummy) | None => None,
            });
            let mut new = Vec::new();
            for stmt in std::mem::take(&mut stmts[*at]) {
                let span = stmt.span;
                match &stmt.op {
                    Op::Open { .. } if stmt.binds == [acc] => {
                        let open =
                            |(acc, init): (&Var, &Atom)| Stmt { binds: vec![*acc], op: Op::Open { init: *init }, span };
                        new.extend(accs.iter().zip(&init.items).map(open));
                    }
                    Op::Freeze { acc: frozen } if *frozen == acc => {
                        let array = stmt.binds[0];
                        let totals = numbers(array, accs.len());
                        let freeze = |(acc, total): (&Var, &Var)| Stmt {
                            binds: vec![*total],
                            op: Op::Freeze { acc: *acc },
                            span,
                        };
                        new.extend(accs.iter().zip(&totals).map(freeze));
                        self.rejoin(array, init.dims.clone(), &totals, span, &mut new);
                    }
                    _ => new.push(stmt),
                }
            }
            stmts[*at] = new;
        }
    }
}

/// How an accumulator is used after it was opened.
#[derive(Default)]
struct Uses {
    /// The statements of the block that use it, in order, the last of which freezes it.
    places: Vec<usize>,
    /// Where nobody uses it any more.
    frozen: Option<usize>,
    /// In a nested block.
    nested: bool,
    /// In the body of a loop.
    in_loops: bool,
    /// Some addition is to a place that is not known now.
    elsewhere: bool,
    /// By something other than `add` and `freeze`.
    other: bool,
}

/// Where a statement stands: in which of the block's statements, and how.
struct Where {
    at: usize,
    nested: bool,
    in_loop: bool,
}

/// Notes how a statement uses accumulators.
fn note_uses(stmt: &Stmt, place: &Where, all: &mut FxHashMap<Var, Uses>) {
    stmt.op.for_each_operand(&mut |operand| {
        let Some(acc) = operand.var().filter(|v| v.ty.accumulator) else { return };
        let Some(uses) = all.get_mut(&acc) else { return };
        if uses.places.last() != Some(&place.at) {
            uses.places.push(place.at);
        }
        match &stmt.op {
            Op::Add { acc: to, index, .. } if *to == acc => {
                uses.nested |= place.nested;
                uses.in_loops |= place.in_loop;
                uses.elsewhere |= !index.iter().all(|i| matches!(i, Atom::Int(_)));
            }
            Op::Freeze { .. } if !place.nested => uses.frozen = Some(place.at),
            Op::Freeze { .. } => {}
            _ => uses.other = true,
        }
    });
    let in_loop = place.in_loop || matches!(stmt.op, Op::For(_) | Op::While(_));
    let inside = Where { at: place.at, nested: true, in_loop };
    for inner in stmt.op.blocks() {
        with_stack(|| inner.stmts.iter().for_each(|stmt| note_uses(stmt, &inside, all)));
    }
}

/// Whether at most one addition is made, whichever way the program goes.
fn one_addition<'a>(stmts: impl IntoIterator<Item = &'a Stmt>, acc: Var) -> bool {
    let mut found = 0;
    for stmt in stmts {
        match &stmt.op {
            Op::Add { acc: to, .. } if *to == acc => found += 1,
            op if op.blocks().any(|block| walk::mentions(block, acc)) => {
                found += 1;
                if !op.blocks().all(|block| with_stack(|| one_addition(&block.stmts, acc))) {
                    return false;
                }
            }
            _ => {}
        }
    }
    found <= 1
}

/// Nothing, as what an accumulator adds up.
fn nothing(acc: Var) -> Atom {
    acc.ty.shape().map_or(Atom::Real(-0.0), Atom::Nil)
}

/// `open x; += y; += z; freeze` is `x + y + z`. `total` is what was added up before these statements.
fn in_one_line(stmts: &mut [Stmt], acc: Var, init: Atom, total: &mut Atom) {
    for stmt in stmts {
        match &stmt.op {
            Op::Open { .. } if stmt.binds == [acc] => {
                // Stays as the name of the start, which nobody uses.
                *stmt = Stmt {
                    binds: vec![Var::fresh(acc.name, acc.ty.frozen())],
                    op: Op::Copy { value: init },
                    span: stmt.span,
                };
            }
            Op::Add { acc: to, value, .. } if *to == acc => {
                let sum = Var::fresh(acc.name, acc.ty.frozen());
                let op = match *total {
                    Atom::Nil(_) => Op::Copy { value: *value },
                    before => Op::Scalar { prim: Prim::AddReal, args: vec![before, *value] },
                };
                *stmt = Stmt { binds: vec![sum], op, span: stmt.span };
                *total = sum.into();
            }
            Op::Freeze { acc: frozen } if *frozen == acc => {
                *stmt = Stmt { binds: stmt.binds.clone(), op: Op::Copy { value: *total }, span: stmt.span };
            }
            _ => {}
        }
    }
}

/// What branches add to an accumulator they give as a result, which is added after them. Says whether anything is added.
pub(super) fn out_of_branches(stmts: &mut Vec<Stmt>, acc: Var) -> bool {
    let mut adds = false;
    let mut after = Vec::new();
    for (at, stmt) in stmts.iter_mut().enumerate() {
        match &mut stmt.op {
            Op::Add { acc: to, .. } => adds |= *to == acc,
            Op::If { then, otherwise, .. } => {
                let sides = [then, otherwise];
                let inside = sides.map(|side| (with_stack(|| out_of_branches(&mut side.stmts, acc)), side));
                if inside.iter().all(|(adds, _)| !adds) {
                    continue;
                }
                for (_, side) in inside {
                    let sum = taken_sum(side, acc);
                    side.results.push(sum);
                }
                let sum = Var::fresh(acc.name, acc.ty.frozen());
                stmt.binds.push(sum);
                let op = Op::Add { acc, index: Vec::new(), value: sum.into() };
                after.push((at + 1, Stmt { binds: Vec::new(), op, span: stmt.span }));
                adds = true;
            }
            _ => {}
        }
    }
    for (at, stmt) in after.into_iter().rev() {
        stmts.insert(at, stmt);
    }
    adds
}

/// Takes the additions to an accumulator out of a block; gives their sum.
pub(super) fn taken_sum(block: &mut Block, acc: Var) -> Atom {
    let mut total: Option<Atom> = None;
    let mut out = Vec::with_capacity(block.stmts.len());
    for stmt in std::mem::take(&mut block.stmts) {
        match stmt.op {
            Op::Add { acc: to, value, .. } if to == acc => {
                total = Some(match total {
                    None => value,
                    Some(before) => {
                        let sum = Var::fresh(acc.name, Type::REAL);
                        let op = Op::Scalar { prim: Prim::AddReal, args: vec![before, value] };
                        out.push(Stmt { binds: vec![sum], op, span: stmt.span });
                        sum.into()
                    }
                });
            }
            op => out.push(Stmt { op, ..stmt }),
        }
    }
    block.stmts = out;
    total.unwrap_or(nothing(acc))
}

/// An accumulator that is taken apart.
struct Apart<'a> {
    whole: Var,
    accs: &'a [Var],
    dims: &'a [usize],
}

impl Apart<'_> {
    /// The accumulators of what has these constants as its first indices, and where each is in it. None out of bounds, where the program
    /// never comes.
    fn at(&self, index: &[Atom]) -> Vec<(Var, Vec<Atom>)> {
        let places = self.accs.iter().enumerate().map(|(k, acc)| (*acc, place(self.dims, k)));
        places.filter_map(|(acc, place)| Some((acc, place.strip_prefix(index)?.to_vec()))).collect()
    }
}

/// Sends additions to elements of an accumulator to accumulators of their own.
fn redirect(stmts: &mut Vec<Stmt>, apart: &Apart, parts: &mut dyn FnMut(Var) -> Option<Vec<Atom>>) {
    let mut out = Vec::with_capacity(stmts.len());
    for mut stmt in std::mem::take(stmts) {
        let span = stmt.span;
        match &mut stmt.op {
            Op::Add { acc, index, value } if *acc == apart.whole => {
                let array = value.var().filter(|v| v.ty.is_array());
                let known = array.and_then(&mut *parts);
                for (k, (acc, rest)) in apart.at(index).into_iter().enumerate() {
                    let value = match (array, known.as_ref().and_then(|items| items.get(k))) {
                        (None, _) => *value,
                        (Some(_), Some(item)) => *item,
                        (Some(array), None) => {
                            let item = Var::fresh("e", array.ty.at(rest.len()));
                            out.push(Stmt { binds: vec![item], op: Op::Get { array, index: rest }, span });
                            item.into()
                        }
                    };
                    out.push(Stmt { binds: Vec::new(), op: Op::Add { acc, index: Vec::new(), value }, span });
                }
            }
            _ => {
                for inner in stmt.op.blocks_mut() {
                    with_stack(|| redirect(&mut inner.stmts, apart, parts));
                }
                out.push(stmt);
            }
        }
    }
    *stmts = out;
}
