//! An accumulator of zeros to which a whole array is added first starts as that array, also if it is another one on each side of a branch. Otherwise a loop
//! that changes one place of an array, or under some condition none, would go through all of it on the way back.

use super::collect::{mentions, Mentions};
use crate::flow::*;
use gradus_core::traverse::with_stack;

pub fn run(block: &mut Block) {
    with_stack(|| {
        super::each_inside(block, run);
        let mentions = mentions(block);
        let mut moved: Vec<(usize, usize)> = Vec::new();
        for open in 0..block.stmts.len() {
            if let Some(first) = starts_at(block, &mentions, open) {
                moved.push((open, first));
            }
        }
        // In the order of the statements after which they are opened now.
        moved.sort_by_key(|(_, first)| *first);
        let mut gone = vec![false; block.stmts.len()];
        let mut after: Vec<(usize, Stmt)> = Vec::new();
        for (open, first) in moved {
            let mut opened = block.stmts[open].clone();
            opened.op = Op::Open { init: start(&mut block.stmts[first], opened.binds[0], &opened.op) };
            gone[open] = true;
            after.push((first, opened));
        }
        let mut after = after.into_iter().peekable();
        let stmts = std::mem::take(&mut block.stmts);
        for (at, (stmt, gone)) in stmts.into_iter().zip(gone).enumerate() {
            if !gone {
                block.stmts.push(stmt);
            }
            while let Some((_, open)) = after.next_if(|(first, _)| *first == at) {
                block.stmts.push(open);
            }
        }
    })
}

/// The statement that is the first to add to the accumulator of zeros opened at a place, if it adds a whole array.
fn starts_at(block: &Block, mentions: &Mentions, open: usize) -> Option<usize> {
    let Stmt { binds, op: Op::Open { init: Atom::Var(zeros) }, .. } = &block.stmts[open] else { return None };
    mentions.get(zeros)?;
    let first = *mentions.get(&binds[0])?.get(1)?;
    adds_whole(&block.stmts[first], binds[0]).then_some(first)
}

/// Whether the first that a statement does to an accumulator is to add a whole array, at least on one side of a branch.
fn adds_whole(stmt: &Stmt, acc: Var) -> bool {
    with_stack(|| match &stmt.op {
        Op::Add { acc: to, index, value } => *to == acc && index.is_empty() && value.ty().is_array(),
        Op::If { then, otherwise, .. } => [then, otherwise].iter().any(|side| {
            let first = side.stmts.iter().find(|s| s.mentions(acc));
            first.is_some_and(|s| adds_whole(s, acc))
        }),
        _ => false,
    })
}

/// Takes the array that is added first out of a statement; gives it, or what a branch gives with all that it adds. `zeros` opens the accumulator.
fn start(stmt: &mut Stmt, acc: Var, zeros: &Op) -> Atom {
    let span = stmt.span;
    match &mut stmt.op {
        Op::Add { value, .. } => {
            let value = *value;
            let same = Var::fresh(acc.name, acc.ty.frozen());
            *stmt = Stmt { binds: vec![same], op: Op::Copy { value }, span };
            same.into()
        }
        Op::If { then, otherwise, .. } => {
            for side in [then, otherwise] {
                let (own, sum) = (acc.refresh(), Var::fresh(acc.name, acc.ty.frozen()));
                super::sums::rename_accumulator(side, acc, own);
                let first =
                    side.stmts.iter().position(|s| s.mentions(own)).filter(|at| adds_whole(&side.stmts[*at], own));
                let (at, op) = match first {
                    Some(at) => {
                        let init = with_stack(|| start(&mut side.stmts[at], own, zeros));
                        (at + 1, Op::Open { init })
                    }
                    None => (0, zeros.clone()),
                };
                side.stmts.insert(at, Stmt { binds: vec![own], op, span });
                side.stmts.push(Stmt { binds: vec![sum], op: Op::Freeze { acc: own }, span });
                side.results.push(sum.into());
            }
            let sum = Var::fresh(acc.name, acc.ty.frozen());
            stmt.binds.push(sum);
            sum.into()
        }
        _ => acc.into(),
    }
}
