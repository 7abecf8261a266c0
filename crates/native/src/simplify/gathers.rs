//! Additions to neighbours, turned round. The adjoint of a loop that reads its neighbours adds to them, `a[i - 1] += v(i)`, so that its iterations meet.
//! Here each place takes what it would have been given, `a[j] = v(j + 1)`, in a loop of independent iterations which ends with the array: no zeros
//! are written, nothing waits to be added, and later loops can take it in.
//!
//! In a ring, one iteration adds to the place at the other end; it does so afterwards.
//!
//! What is given is computed apart from what else the loop does, so it must be cheap to compute, if need be from one number that the loop computes and
//! keeps for each iteration.

use super::accumulators::{out_of_branches, taken_sum};
use super::collect::{mentions, Mentions};
use super::dead;
use crate::flow::walk::Renaming;
use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use rings::Far;
use rustc_hash::FxHashMap;

mod rings;

/// A place further away than this is no neighbour.
const NEAR: i64 = 8;
/// How much computing a place that takes may do for each that gives, in additions, products and reads.
const CHEAP: usize = 6;
/// How many of the last numbers that a loop computes are tried as what it keeps.
const TRIED: usize = 12;

/// Says whether anything was turned round. Only when all derivatives have been taken, which know how to save what a loop computes once.
pub fn run(block: &mut Block, module: &Module) -> bool {
    with_stack(|| {
        let mut changed = super::inside(block, |inner| run(inner, module));
        let (mut at, mut mentioned) = (0, mentions(block));
        while at < block.stmts.len() {
            match giving(block, at, &mentioned, module) {
                Some(giving) => {
                    turn_round(block, at, giving);
                    mentioned = mentions(block);
                    changed = true;
                }
                None => at += 1,
            }
        }
        changed
    })
}

/// A loop that gives to neighbours.
struct Giving {
    /// Where it is.
    at: usize,
    gives: Gives,
}

struct Gives {
    /// A number of each iteration, and the array of them.
    kept: Option<(Var, Var)>,
    /// For each distance from the index at which the loop adds, what it adds there.
    given: Vec<(i64, Given)>,
    /// What single iterations add elsewhere.
    far: Vec<(Far, Given)>,
}

/// What an iteration gives to a place.
pub(super) struct Given {
    /// The index of the iteration.
    pub(super) index: Var,
    /// Computes what it gives, its one result.
    pub(super) block: Block,
}

/// The first loop that adds to neighbours in the accumulator opened at `at`.
fn giving(block: &Block, at: usize, mentioned: &Mentions, module: &Module) -> Option<Giving> {
    let Stmt { binds, op: Op::Open { init: Atom::Var(_) }, .. } = &block.stmts[at] else { return None };
    let acc = binds[0];
    if acc.ty.rank != 1 || !acc.ty.is_real() {
        return None;
    }
    for at in mentioned.get(&acc)?.iter().copied() {
        let Op::For(l) = &block.stmts[at].op else { continue };
        if let Some(gives) = gives(l, acc, module) {
            return Some(Giving { at, gives });
        }
    }
    None
}

/// What a loop adds to an accumulator in its own place, if that is all that it adds to it.
pub(super) fn own_additions(l: &For, acc: Var, module: &Module) -> Option<Given> {
    let Distances { l, distances, .. } = Distances::of(l, acc)?;
    (distances == [0]).then(|| given(&l, acc, &|_| true, None, module))
}

/// Where a loop adds to an accumulator.
struct Distances {
    /// The loop, with additions that speak of the index where they can.
    l: For,
    /// Numbers that are the index and so much more.
    ahead: FxHashMap<Var, i64>,
    distances: Vec<i64>,
}

impl Distances {
    fn of(l: &For, acc: Var) -> Option<Distances> {
        if !l.carried.is_empty() {
            return None;
        }
        let mut l = l.clone();
        write_index(&mut l.body, l.index, None);
        let mut ahead: FxHashMap<Var, i64> = [(l.index, 0)].into_iter().collect();
        let mut distances = Vec::new();
        find_distances(&l.body, acc, &mut ahead, &mut distances)?;
        Some(Distances { l, ahead, distances })
    }
}

/// What a loop gives to neighbours, if it is cheap.
fn gives(l: &For, acc: Var, module: &Module) -> Option<Gives> {
    let mut near = l.clone();
    let far = rings::take_far(&mut near, acc);
    let Distances { l: near, ahead, distances } = Distances::of(&near, acc)?;
    // At its own place only, a loop adds in lanes as it is.
    if distances.iter().all(|distance| *distance == 0) {
        return None;
    }
    // Of a branch that also adds, the number alone would not do.
    let statements = near.body.stmts.iter().rev().filter(|s| !s.mentions(acc));
    let numbers = statements.flat_map(|s| s.binds.iter().copied()).filter(|v| v.ty == Type::REAL);
    let kept = numbers.take(TRIED).map(|v| Some((v, Var::fresh(v.name, v.ty.in_array()))));
    [None].into_iter().chain(kept).find_map(|kept| {
        let at = |index: &[Atom]| index.first().and_then(|a| ahead.get(&a.var()?)).copied();
        let given = distances.iter().map(|d| (*d, given(&near, acc, &|index| at(index) == Some(*d), kept, module)));
        let given: Vec<(i64, Given)> = given.collect();
        let cost: Option<usize> = given.iter().map(|(_, g)| cost(&g.block)).sum();
        let far = || far.iter().map(|far| (*far, far_given(l, acc, far, kept, module)));
        (cost? <= CHEAP * given.len()).then(|| Gives { kept, given, far: far().collect() })
    })
}

/// What one iteration adds elsewhere.
fn far_given(l: &For, acc: Var, far: &Far, kept: Option<(Var, Var)>, module: &Module) -> Given {
    given(l, acc, &|index| *index == [far.place], kept, module)
}

/// Lets additions speak of the index where it is known and they speak of the number that it is.
fn write_index(block: &mut Block, index: Var, known: Option<i64>) {
    with_stack(|| {
        let mut told: FxHashMap<Var, i64> = FxHashMap::default();
        for stmt in &mut block.stmts {
            match &mut stmt.op {
                Op::Scalar { prim: Prim::Equal, args } => {
                    if let [Atom::Var(i), Atom::Int(k)] = args[..] {
                        told.extend((i == index).then_some((stmt.binds[0], k)));
                    }
                }
                Op::Add { index: place, .. } => {
                    if let ([Atom::Int(k)], Some(known)) = (&place[..], known) {
                        if *k == known {
                            *place = vec![index.into()];
                        }
                    }
                }
                Op::If { cond, then, otherwise, .. } => {
                    let here = cond.var().and_then(|v| told.get(&v).copied());
                    write_index(then, index, here.or(known));
                    write_index(otherwise, index, known);
                }
                _ => {}
            }
        }
    })
}

/// The distances from the index at which a loop adds to an accumulator; `None` if it does anything else with it.
fn find_distances(block: &Block, acc: Var, ahead: &mut FxHashMap<Var, i64>, found: &mut Vec<i64>) -> Option<()> {
    for stmt in &block.stmts {
        match &stmt.op {
            Op::Scalar { prim, args } => {
                let of = |a: Atom| a.var().and_then(|v| ahead.get(&v).copied());
                let distance = match (prim, &args[..]) {
                    (Prim::AddInt, [a, Atom::Int(k)] | [Atom::Int(k), a]) => of(*a).map(|by| by.saturating_add(*k)),
                    (Prim::SubInt, [a, Atom::Int(k)]) => of(*a).map(|by| by.saturating_sub(*k)),
                    _ => None,
                };
                if let Some(distance) = distance {
                    ahead.insert(stmt.binds[0], distance);
                }
            }
            Op::Add { acc: to, index, .. } if *to == acc => {
                let [Atom::Var(index)] = index[..] else { return None };
                let distance = ahead.get(&index).copied().filter(|distance| distance.abs() <= NEAR)?;
                if !found.contains(&distance) {
                    found.push(distance);
                }
            }
            Op::If { then, otherwise, .. } => {
                for side in [then, otherwise] {
                    with_stack(|| find_distances(side, acc, ahead, found))?;
                }
            }
            _ if stmt.mentions(acc) => return None,
            _ => {}
        }
    }
    Some(())
}

/// What an iteration adds to some places.
fn given(l: &For, acc: Var, there: &dyn Fn(&[Atom]) -> bool, kept: Option<(Var, Var)>, module: &Module) -> Given {
    let sum = Var::fresh(acc.name, Type::REAL.accumulator());
    let mut body = l.body.clone();
    if let Some((number, array)) = kept {
        for stmt in body.stmts.iter_mut().filter(|s| s.binds == [number]) {
            stmt.op = Op::Get { array, index: vec![l.index.into()] };
        }
    }
    only_additions(&mut body, &mut |to, index| (to == acc && there(index)).then_some(sum));
    out_of_branches(&mut body.stmts, sum);
    let value = taken_sum(&mut body, sum);
    body.results = vec![value];
    dead::run(&mut body, module);
    let mut renaming = Renaming::default();
    let index = l.index.refresh();
    renaming.map.insert(l.index, index.into());
    Given { index, block: renaming.block(&body) }
}

/// Leaves out checks and additions, but for those that go to a number instead.
pub(super) fn only_additions(block: &mut Block, instead: &mut dyn FnMut(Var, &[Atom]) -> Option<Var>) {
    with_stack(|| {
        block.stmts.retain_mut(|stmt| match &mut stmt.op {
            Op::Check { .. } => false,
            Op::Add { acc, index, .. } => match instead(*acc, index) {
                Some(number) => {
                    *acc = number;
                    index.clear();
                    true
                }
                None => false,
            },
            op => {
                op.blocks_mut().for_each(|inner| only_additions(inner, instead));
                true
            }
        });
    })
}

/// How much there is to compute; `None` for what is not for computing twice.
pub(super) fn cost(block: &Block) -> Option<usize> {
    let of = |stmt: &Stmt| match &stmt.op {
        Op::Scalar { prim, .. } => match prim {
            Prim::AddReal | Prim::SubReal | Prim::MulReal | Prim::NegReal => Some(1),
            // Of the index: mostly decided, once the edges are taken apart.
            _ if stmt.binds.iter().all(|v| !v.ty.is_real()) => Some(0),
            Prim::RealOfInt | Prim::Maximum | Prim::Minimum | Prim::Abs => Some(1),
            Prim::DivReal => Some(4),
            _ => None,
        },
        Op::Get { array, index } if index.len() == array.ty.rank as usize => Some(1),
        Op::Select { .. } => Some(1),
        Op::Dim { .. } | Op::Copy { .. } => Some(0),
        Op::If { then, otherwise, .. } => with_stack(|| Some(cost(then)? + cost(otherwise)?)),
        _ => None,
    };
    block.stmts.iter().map(of).sum()
}

/// Takes the additions out of the loop, and lets each place take what it is given, after it.
fn turn_round(block: &mut Block, open: usize, giving: Giving) {
    let (acc, adding) = (block.stmts[open].binds[0], giving.at);
    let added_before = block.stmts[open + 1..adding].iter().any(|s| s.mentions(acc));
    let Op::Open { init: Atom::Var(init) } = block.stmts[open].op else { return };
    let is_zero = |s: &Stmt| s.binds.contains(&init) && matches!(&s.op, Op::Fill { value, .. } if value.is_real(0.0));
    let zeros = !added_before && block.stmts[..open].iter().any(is_zero);
    let stmt = &mut block.stmts[adding];
    let Op::For(l) = &mut stmt.op else { return };
    without_additions(&mut l.body, acc);
    if let Some((number, array)) = giving.gives.kept {
        l.body.results.push(number.into());
        stmt.binds.push(array);
    }

    let (count, index) = (l.count, l.index.refresh());
    let mut b = Builder::new();
    b.span = stmt.span;
    // What was added before.
    let start = if added_before { b.freeze(acc) } else { init.into() };
    let places = match start {
        Atom::Var(start) => b.dim(start, 0),
        _ => count,
    };
    b.push();
    let mut total = (!zeros).then(|| b.get(start, vec![index.into()]));
    for (distance, given) in giving.gives.given {
        let giver = b.scalar(Prim::AddInt, &[index.into(), Atom::Int(-distance)]);
        let value = taken(&mut b, giver, count, given);
        total = Some(match total {
            Some(total) => b.add(total, value),
            None => value,
        });
    }
    let body = b.pop(vec![total.unwrap_or(Atom::Real(0.0))]);
    let gathered = b.for_loop(index, places, Vec::new(), body)[0];

    // With nothing added later it is all there is.
    let next = block.stmts[adding + 1..].iter().position(|s| s.mentions(acc)).map(|distance| adding + 1 + distance);
    match next {
        Some(next) if matches!(block.stmts[next].op, Op::Freeze { .. }) && giving.gives.far.is_empty() => {
            block.stmts[next].op = Op::Copy { value: gathered };
        }
        _ => {
            let rest = b.open(acc.name, gathered);
            for (far, given) in giving.gives.far {
                let giver = b.scalar(Prim::SubInt, &[far.end, Atom::Int(far.by)]);
                let exists = is_index(&mut b, giver, count);
                b.push();
                let there = given.of(giver);
                there.stmts.into_iter().for_each(|stmt| b.stmt(stmt));
                b.accumulate(rest, vec![far.place], there.results[0]);
                let then = b.pop(Vec::new());
                b.branch(exists, then, Block::default());
            }
            for stmt in &mut block.stmts[adding + 1..] {
                rename_accumulator(stmt, acc, rest);
            }
        }
    }
    let new = b.pop(Vec::new()).stmts;
    block.stmts.splice(adding + 1..adding + 1, new);
    if !added_before {
        block.stmts.remove(open);
    }
}

fn rename_accumulator(stmt: &mut Stmt, from: Var, to: Var) {
    with_stack(|| {
        stmt.op.for_each_operand_mut(&mut |a| {
            if *a == Atom::Var(from) {
                *a = to.into();
            }
        });
        for inner in stmt.op.blocks_mut() {
            inner.stmts.iter_mut().for_each(|stmt| rename_accumulator(stmt, from, to));
        }
    })
}

pub(super) fn without_additions(block: &mut Block, acc: Var) {
    with_stack(|| {
        block.stmts.retain(|stmt| !matches!(&stmt.op, Op::Add { acc: to, .. } if *to == acc));
        for stmt in &mut block.stmts {
            stmt.op.blocks_mut().for_each(|inner| without_additions(inner, acc));
        }
    })
}

/// What the iteration with the index `giver` gives, if there is one.
fn taken(b: &mut Builder, giver: Atom, count: Atom, given: Given) -> Atom {
    let exists = is_index(b, giver, count);
    let nothing = Block { stmts: Vec::new(), results: vec![Atom::Real(0.0)] };
    b.branch(exists, given.of(giver), nothing)[0]
}

/// Whether there is an iteration with this index.
fn is_index(b: &mut Builder, index: Atom, count: Atom) -> Atom {
    let started = b.scalar(Prim::GreaterEqual, &[index, Atom::Int(0)]);
    let not_ended = b.scalar(Prim::Less, &[index, count]);
    b.select(started, not_ended, Atom::Bool(false))
}

impl Given {
    /// What this iteration gives.
    fn of(&self, giver: Atom) -> Block {
        let map = [(self.index, giver)].into_iter().collect();
        Renaming { map }.block(&self.block)
    }
}
