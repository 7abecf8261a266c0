//! Quotients by powers of two are products with their reciprocals, to the last bit.
//!
//! Slopes of quotients with one division. The slope of `a / b` by `b` is `-(a / b) (1 / b)`: where nobody else wants the quotient, as on the way back through a
//! loop that has not kept it, it is a product with the reciprocal that is there.

use crate::flow::walk::count_uses;
use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use rustc_hash::FxHashMap;

pub fn run(block: &mut Block) {
    let uses = count_uses(block);
    run_inside(block, &uses);
}

fn run_inside(block: &mut Block, uses: &FxHashMap<Var, usize>) {
    with_stack(|| {
        let mut out: Vec<Option<Stmt>> = Vec::with_capacity(block.stmts.len());
        // Of this block: where quotients are made, and of what.
        let mut quotients: FxHashMap<Var, (usize, [Atom; 2])> = FxHashMap::default();
        for mut stmt in std::mem::take(&mut block.stmts) {
            stmt.op.blocks_mut().for_each(|inner| run_inside(inner, uses));
            multiply(&mut stmt.op);
            match &stmt.op {
                Op::Scalar { prim: Prim::DivReal, args } => {
                    quotients.insert(stmt.binds[0], (out.len(), [args[0], args[1]]));
                }
                Op::Scalar { prim: Prim::MulReal, args } => {
                    let of = |i: usize| args[i].var().and_then(|v| quotients.get(&v)).copied();
                    let is_only_use = args[0].var().is_some_and(|v| uses.get(&v) == Some(&1));
                    if let (Some((at, [dividend, divisor])), Some((_, [one, same])), true) = (of(0), of(1), is_only_use)
                    {
                        if divisor == same && one.is_real(1.0) {
                            // Where the quotient was made there may be no reciprocal yet.
                            let op = Op::Scalar { prim: Prim::MulReal, args: vec![dividend, args[1]] };
                            let quotient = out[at].take().map(|quotient| Stmt { op, ..quotient });
                            out.push(quotient);
                        }
                    }
                }
                _ => {}
            }
            out.push(Some(stmt));
        }
        block.stmts = out.into_iter().flatten().collect();
    })
}

/// Multiplies by the reciprocal of a power of two: both are the same number, rounded once.
fn multiply(op: &mut Op) {
    let Op::Scalar { prim: prim @ Prim::DivReal, args } = op else { return };
    let Atom::Real(divisor) = args[1] else { return };
    let is_power_of_two = divisor.to_bits().trailing_zeros() >= f64::MANTISSA_DIGITS - 1;
    if is_power_of_two && divisor.is_normal() && (1.0 / divisor).is_normal() {
        (*prim, args[1]) = (Prim::MulReal, Atom::Real(1.0 / divisor));
    }
}
