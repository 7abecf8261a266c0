//! Arrays that are cheaper to compute again than to keep: a loop that wants an element which is, say, twice that of another array reads the other one.

use super::collect::instead_of_start;
use super::dead;
use super::gathers::{cost, only_additions};
use crate::flow::walk::Renaming;
use crate::flow::*;
use gradus_core::traverse::with_stack;

/// One read and this much arithmetic less one are as fast as one read.
const CHEAP: usize = 3;
/// How often an array may be read, not to do more work than there was.
const READ: usize = 3;

/// Says whether any array was given up.
pub fn run(block: &mut Block, module: &Module) -> bool {
    with_stack(|| {
        let mut changed = super::inside(block, |inner| run(inner, module));
        let mut at = 0;
        while let Some(stmt) = block.stmts.get(at) {
            for (array, element) in elements(stmt, module) {
                changed |= give_up(block, array, &element);
            }
            at += 1;
        }
        changed
    })
}

/// The arrays that a statement makes whose elements are cheap.
fn elements(stmt: &Stmt, module: &Module) -> Vec<(Var, Element)> {
    let Op::For(l) = &stmt.op else { return Vec::new() };
    if !l.carried.is_empty() {
        return Vec::new();
    }
    let arrays = stmt.binds.iter().zip(&l.body.results).filter(|(array, _)| array.ty.rank == 1);
    arrays.filter_map(|(array, result)| Some((*array, Element::of(l, *result, module)?))).collect()
}

/// How an element of an array is computed.
pub(super) struct Element {
    pub(super) index: Var,
    pub(super) count: Atom,
    /// Its one result.
    pub(super) block: Block,
}

impl Element {
    fn of(l: &For, result: Atom, module: &Module) -> Option<Element> {
        let mut block = Block { stmts: l.body.stmts.clone(), results: vec![result] };
        only_additions(&mut block, &mut |_, _| None);
        dead::run(&mut block, module);
        let branches = block.stmts.iter().any(|s| matches!(s.op, Op::If { .. }));
        let computed = cost(&block).filter(|cost| *cost <= CHEAP && !branches)?;
        let reads = block.stmts.iter().filter(|s| matches!(s.op, Op::Get { .. })).count();
        // What only depends on the index is left to fusion.
        (computed > 0 && reads == 1).then_some(Element { index: l.index, count: l.count, block })
    }
}

/// Computes the elements where they are read, if nobody wants the whole but an accumulator that need not start from it.
fn give_up(block: &mut Block, array: Var, element: &Element) -> bool {
    let mut uses = Uses::default();
    uses.look(block, array, 0);
    let Uses { elements, whole, deep } = uses;
    if deep || whole > 1 || elements + whole == 0 || elements + whole > READ {
        return false;
    }
    if whole == 1 && !instead_of_start(block, array, element.count) {
        return false;
    }
    replace_in(block, array, element);
    true
}

/// How an array is used.
#[derive(Default)]
struct Uses {
    /// Reads of elements.
    elements: usize,
    /// Anything else.
    whole: usize,
    /// Whether it is used by a loop inside a loop.
    deep: bool,
}

impl Uses {
    fn look(&mut self, block: &Block, array: Var, loops: usize) {
        with_stack(|| {
            for stmt in &block.stmts {
                let mut uses = 0;
                stmt.op.for_each_operand(&mut |a| uses += usize::from(a == array.into()));
                match &stmt.op {
                    Op::Get { index, .. } if index.len() == 1 => self.elements += uses,
                    _ => self.whole += uses,
                }
                self.deep |= uses > 0 && loops > 1;
                let inside = loops + usize::from(matches!(stmt.op, Op::For(_) | Op::While(_)));
                stmt.op.blocks().for_each(|inner| self.look(inner, array, inside));
            }
            self.whole += block.results.iter().filter(|a| **a == array.into()).count();
        })
    }
}

pub(super) fn replace_in(block: &mut Block, array: Var, element: &Element) {
    with_stack(|| {
        let mut out = Vec::with_capacity(block.stmts.len());
        for mut stmt in std::mem::take(&mut block.stmts) {
            match &stmt.op {
                Op::Get { array: read, index } if *read == array => {
                    let map = [(element.index, index[0])].into_iter().collect();
                    let mut computed = Renaming { map }.block(&element.block);
                    out.append(&mut computed.stmts);
                    out.push(Stmt { op: Op::Copy { value: computed.results[0] }, ..stmt });
                }
                _ => {
                    stmt.op.blocks_mut().for_each(|inner| replace_in(inner, array, element));
                    out.push(stmt);
                }
            }
        }
        block.stmts = out;
    })
}
