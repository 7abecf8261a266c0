//! Loops whose first or last iteration is different, as in `if i = 0 then .. else ..`: the others by themselves can run in vector lanes.

use crate::flow::walk::Renaming;
use crate::flow::*;
use crate::simplify;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use rustc_hash::FxHashMap;

/// A loop taken apart: its first iteration and its last, where they are different, and the loop for the others. The last is not the first.
pub struct Peeled {
    pub first: Option<For>,
    pub others: For,
    pub last: Option<For>,
}

/// Takes a loop apart that asks whether it is in its first iteration, or in its last.
pub fn peeled(l: &For) -> Option<Peeled> {
    let branches = l.body.stmts.iter().any(|stmt| matches!(stmt.op, Op::If { .. }));
    if !l.carried.is_empty() || !branches {
        return None;
    }
    let mut asked = Asked { next: Vec::new(), first: Vec::new(), last: Vec::new() };
    asked.look(l, &l.body);
    if asked.first.is_empty() && asked.last.is_empty() {
        return None;
    }
    let decided = |is_first: bool, is_last: bool| {
        let answers = asked.first.iter().map(|v| (*v, is_first)).chain(asked.last.iter().map(|v| (*v, is_last)));
        let map: FxHashMap<Var, Atom> = answers.map(|(v, answer)| (v, Atom::Bool(answer))).collect();
        let mut body = l.body.clone();
        take_out(&mut body, &map);
        let mut one = For { body: Renaming { map }.block(&body), ..l.clone() };
        simplify::known(&mut one.body);
        one
    };
    let first = (!asked.first.is_empty()).then(|| {
        let mut first = l.clone();
        first.body = Renaming { map: [(l.index, Atom::Int(0))].into_iter().collect() }.block(&l.body);
        simplify::known(&mut first.body);
        first
    });
    let last = (!asked.last.is_empty()).then(|| decided(false, true));
    Some(Peeled { first, others: decided(false, false), last })
}

/// The variables that are one more than the index, and those that tell whether this is the first iteration, or the last.
struct Asked {
    next: Vec<Var>,
    first: Vec<Var>,
    last: Vec<Var>,
}

impl Asked {
    fn look(&mut self, l: &For, block: &Block) {
        with_stack(|| {
            for stmt in &block.stmts {
                stmt.op.blocks().iter().for_each(|(inner, _)| self.look(l, inner));
                let (Op::Scalar { prim, args }, [bind]) = (&stmt.op, &stmt.binds[..]) else { continue };
                match (prim, &args[..]) {
                    (Prim::AddInt, [a, Atom::Int(1)]) if a.var() == Some(l.index) => self.next.push(*bind),
                    (Prim::Equal, [a, Atom::Int(0)]) if a.var() == Some(l.index) => self.first.push(*bind),
                    // How simplification writes `i = n - 1`.
                    (Prim::Equal, [a, n]) if *n == l.count && a.var().is_some_and(|v| self.next.contains(&v)) => {
                        self.last.push(*bind);
                    }
                    (Prim::Equal, [a, Atom::Int(k)])
                        if a.var() == Some(l.index) && l.count == Atom::Int(k.saturating_add(1)) =>
                    {
                        self.last.push(*bind);
                    }
                    _ => {}
                }
            }
        })
    }
}

fn take_out(block: &mut Block, vars: &FxHashMap<Var, Atom>) {
    with_stack(|| {
        block.stmts.retain(|stmt| !matches!(&stmt.binds[..], [bind] if vars.contains_key(bind)));
        for stmt in &mut block.stmts {
            stmt.op.blocks_mut().into_iter().for_each(|inner| take_out(inner, vars));
        }
    })
}
