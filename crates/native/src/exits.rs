//! How a loop that ends by a condition goes on and stops: its last statement is a branch that decides, or leaves that to a branch at the end of a side.

use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use rustc_hash::FxHashSet;

/// A side, and what it gives of what is wanted.
pub struct Side<'a> {
    pub block: &'a Block,
    pub given: Vec<Atom>,
}

/// The branch at the end of a block that decides the first of what is wanted, and what is wanted of each of its sides.
fn branch<'a>(block: &'a Block, wanted: &[Atom]) -> Option<(&'a Stmt, [Side<'a>; 2])> {
    let stmt = block.stmts.last()?;
    let Op::If { then, otherwise, .. } = &stmt.op else { return None };
    let place = |a: &Atom| stmt.binds.iter().position(|v| Atom::Var(*v) == *a);
    place(wanted.first()?)?;
    let of = |block: &'a Block| Side {
        block,
        given: wanted.iter().map(|a| place(a).map_or(*a, |place| block.results[place])).collect(),
    };
    Some((stmt, [of(then), of(otherwise)]))
}

/// All sides that decide.
pub fn leaves<'a>(block: &'a Block, wanted: &[Atom]) -> Vec<Side<'a>> {
    with_stack(|| match branch(block, wanted) {
        Some((_, sides)) => sides.into_iter().flat_map(|side| leaves(side.block, &side.given)).collect(),
        None => vec![Side { block, given: wanted.to_vec() }],
    })
}

/// Whether anything is computed from a variable, apart from what the sides give.
pub fn reads(block: &Block, wanted: &[Atom], var: Var) -> bool {
    with_stack(|| match (branch(block, wanted), block.stmts.split_last()) {
        (Some((Stmt { op: Op::If { cond, .. }, .. }, sides)), Some((_, before))) => {
            *cond == var.into()
                || before.iter().any(|stmt| stmt.mentions(var))
                || sides.iter().any(|side| reads(side.block, &side.given, var))
        }
        _ => block.stmts.iter().any(|stmt| stmt.mentions(var)),
    })
}

/// The block with other results, which are made from what each side that decides gives. A side that stops does nothing; `on` is decided where it goes on.
pub fn with_results(block: &Block, wanted: &[Atom], on: Atom, results: &dyn Fn(&[Atom]) -> Vec<Atom>) -> Block {
    with_stack(|| {
        let Some((stmt, sides)) = branch(block, wanted) else {
            let stmts = if wanted[0] == on { block.stmts.clone() } else { Vec::new() };
            return Block { stmts, results: results(wanted) };
        };
        let [then, otherwise] = sides.map(|side| with_results(side.block, &side.given, on, results));
        let mut stmts = block.stmts[..block.stmts.len() - 1].to_vec();
        let results = branch_again(stmt, then, otherwise, &mut stmts);
        Block { stmts, results }
    })
}

/// What is done to stop: the block without the sides that go on, and without what only these want. It gives what is wanted but the decision; nothing if it
/// never stops. `again` gets what is also done to go on.
pub fn stopping(block: &Block, wanted: &[Atom], on: Atom, again: &mut Vec<Stmt>) -> Option<Block> {
    with_stack(|| {
        let Some((stmt, sides)) = branch(block, wanted) else {
            let stop = Block { stmts: block.stmts.clone(), results: wanted[1..].to_vec() };
            return (wanted[0] != on).then_some(stop);
        };
        let mut last = Vec::new();
        let results = match sides.map(|side| stopping(side.block, &side.given, on, again)) {
            [Some(then), Some(otherwise)] if then.stmts.is_empty() && then == otherwise => then.results,
            [Some(then), Some(otherwise)] => branch_again(stmt, then, otherwise, &mut last),
            [Some(side), None] | [None, Some(side)] => {
                last = side.stmts;
                side.results
            }
            [None, None] => return None,
        };
        let after = Block { stmts: last, results };
        let before = &block.stmts[..block.stmts.len() - 1];
        let mut stmts: Vec<Stmt> = needed(before, walk::free_vars(&after).into_iter().collect()).cloned().collect();
        again.extend(stmts.iter().cloned());
        stmts.extend(after.stmts);
        Some(Block { stmts, results: after.results })
    })
}

/// Writes a branch with other sides; gives what it gives.
fn branch_again(stmt: &Stmt, then: Block, otherwise: Block, out: &mut Vec<Stmt>) -> Vec<Atom> {
    let Op::If { cond, replayed, .. } = stmt.op else { gradus_source::bug!("a branch is none") };
    let binds: Vec<Var> = then.results.iter().map(|a| Var::fresh("r", a.ty())).collect();
    let given = binds.iter().map(|v| Atom::Var(*v)).collect();
    out.push(Stmt { binds, op: Op::branch(cond, then, otherwise, replayed), span: stmt.span });
    given
}

/// The statements, in order, that others want to have done.
pub fn needed(stmts: &[Stmt], mut wanted: FxHashSet<Var>) -> impl Iterator<Item = &Stmt> + '_ {
    let mut found = Vec::new();
    for stmt in stmts.iter().rev() {
        if stmt.binds.iter().any(|v| wanted.contains(v)) {
            stmt.for_each_use(&mut |v| {
                wanted.insert(v);
            });
            found.push(stmt);
        }
    }
    found.into_iter().rev()
}

/// The body of a loop as it is in every iteration but the last, if the last does nothing and leaves the state as it is. Whole numbers and truth values, which have no
/// slope, may become anything; but not arrays of these, which the way back may want to undo.
pub fn going_on(l: &While) -> Option<Block> {
    let states: Vec<Atom> = l.carried.iter().map(|(v, _)| (*v).into()).collect();
    let wanted = &l.body.results[..];
    if wanted.len() != 1 + states.len() {
        return None;
    }
    let decisive = leaves(&l.body, wanted);
    let may_change = |state: &Atom| !state.ty().may_be_active() && !state.ty().is_array();
    let stays = |(given, state): (&Atom, &Atom)| given == state || may_change(state);
    let is_end = |leaf: &Side| leaf.given[1..].iter().zip(&states).all(stays) && leaf.block.stmts.is_empty();
    let is_right = |leaf: &Side| match leaf.given[0] {
        Atom::Bool(goes_on) => goes_on || is_end(leaf),
        _ => false,
    };
    (decisive.len() > 1 && decisive.iter().all(is_right)).then(|| without_stops(&l.body, wanted)).flatten()
}

/// The block without the sides that stop; nothing, if nothing else is left.
fn without_stops(block: &Block, wanted: &[Atom]) -> Option<Block> {
    with_stack(|| {
        let Some((stmt, sides)) = branch(block, wanted) else {
            return (wanted[0] == Atom::Bool(true)).then(|| block.clone());
        };
        let Op::If { cond, replayed, .. } = &stmt.op else { return None };
        let mut stmts = block.stmts[..block.stmts.len() - 1].to_vec();
        match sides.map(|side| without_stops(side.block, &side.given)) {
            [Some(then), Some(otherwise)] => {
                let op = Op::branch(*cond, then, otherwise, *replayed);
                stmts.push(Stmt { op, ..stmt.clone() });
                Some(Block { stmts, results: block.results.clone() })
            }
            [Some(side), None] | [None, Some(side)] => {
                stmts.extend(side.stmts);
                let place = |a: &Atom| stmt.binds.iter().position(|v| Atom::Var(*v) == *a);
                let results = block.results.iter().map(|a| place(a).map_or(*a, |place| side.results[place]));
                Some(Block { stmts, results: results.collect() })
            }
            [None, None] => None,
        }
    })
}

/// The body of a loop that goes on unless a number is 0: what decides asks for that.
pub fn unless_zero(l: &While, number: Var) -> Block {
    let mut body = l.body.clone();
    if let Some((at, goes_on)) = decision(&body) {
        let prim = if goes_on { Prim::NotEqual } else { Prim::Equal };
        body.stmts[at].op = Op::Scalar { prim, args: vec![number.into(), Atom::Int(0)] };
    }
    body
}

/// The statement that decides whether a loop goes on, by number, and if it does where that is true.
fn decision(body: &Block) -> Option<(usize, bool)> {
    let (mut decisive, mut goes_on) = (*body.results.first()?, Atom::Bool(true));
    let mut found = None;
    loop {
        let made = |stmt: &Stmt| decisive.var().is_some_and(|v| stmt.binds.contains(&v));
        let Some(at) = body.stmts.iter().position(made) else { return found };
        let Stmt { binds, op, .. } = &body.stmts[at];
        if let ([_], Atom::Bool(is)) = (&binds[..], goes_on) {
            found = Some((at, is));
        }
        let place = binds.iter().position(|v| Atom::Var(*v) == decisive)?;
        (decisive, goes_on) = match (op, goes_on) {
            (Op::Scalar { prim: Prim::Not, args }, Atom::Bool(is)) => (args[0], Atom::Bool(!is)),
            (Op::Scalar { prim: Prim::Equal, args }, Atom::Bool(true)) => (args[0], args[1]),
            (Op::If { cond, then, otherwise, .. }, _) => match [then, otherwise].map(|side| side.results[place]) {
                [Atom::Var(_), _] | [_, Atom::Var(_)] => return found,
                [one, other] if (one == goes_on) != (other == goes_on) => (*cond, Atom::Bool(one == goes_on)),
                _ => return found,
            },
            _ => return found,
        };
    }
}

/// Makes a block that a loop repeats give a number that it computes before it ends, or on the side where it goes on; elsewhere it gives any.
pub fn give(block: &mut Block, number: Var) -> Option<Var> {
    if block.stmts.iter().any(|stmt| stmt.binds.contains(&number)) {
        return Some(number);
    }
    let Some(Stmt { op: Op::If { then, otherwise, .. }, binds, .. }) = block.stmts.last_mut() else { return None };
    for [side, other] in [[0, 1], [1, 0]] {
        let sides = [&mut *then, &mut *otherwise];
        if let Some(given) = with_stack(|| give(sides[side], number)) {
            let outside = number.refresh();
            sides[side].results.push(given.into());
            sides[other].results.push(Builder::zero(number.ty.scalar));
            binds.push(outside);
            return Some(outside);
        }
    }
    None
}
