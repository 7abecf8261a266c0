//! How a loop that ends by a condition goes on and stops: its last statement is a branch that decides, or leaves that to a branch at the end of a side.

use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;

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

/// The block with other results, which are made from what each side that decides gives.
pub fn with_results(block: &Block, wanted: &[Atom], results: &dyn Fn(&[Atom]) -> Vec<Atom>) -> Block {
    with_stack(|| {
        let Some((stmt, sides)) = branch(block, wanted) else {
            return Block { stmts: block.stmts.clone(), results: results(wanted) };
        };
        let [then, otherwise] = sides.map(|side| with_results(side.block, &side.given, results));
        let Op::If { cond, replayed, .. } = stmt.op else { gradus_source::bug!("a branch is none") };
        let binds: Vec<Var> = then.results.iter().map(|a| Var::fresh("r", a.ty())).collect();
        let given = binds.iter().map(|v| Atom::Var(*v)).collect();
        let stmt = Stmt { binds, op: Op::If { cond, then, otherwise, replayed }, span: stmt.span };
        let before = block.stmts[..block.stmts.len() - 1].iter().cloned();
        Block { stmts: before.chain([stmt]).collect(), results: given }
    })
}

/// The body of a loop as it is in every iteration but the last, if the last does nothing and leaves the state as it is.
pub fn going_on(l: &While) -> Option<Block> {
    let states: Vec<Atom> = l.carried.iter().map(|(v, _)| (*v).into()).collect();
    let wanted = &l.body.results[..];
    if wanted.len() != 1 + states.len() {
        return None;
    }
    let decisive = leaves(&l.body, wanted);
    let is_end = |leaf: &Side| leaf.given[1..] == states[..] && leaf.block.stmts.is_empty();
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
                let op = Op::If { cond: *cond, then, otherwise, replayed: *replayed };
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
