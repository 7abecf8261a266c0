//! The size of a term, and what it costs to run.

use gradus_core::traverse::{for_each_child, with_stack};
use gradus_core::{Prim, Term};

/// Whether a term has at most so many nodes.
pub fn is_small(term: &Term, most: usize) -> bool {
    let mut left = most;
    count_down(term, &mut left)
}

fn count_down(term: &Term, left: &mut usize) -> bool {
    if *left == 0 {
        return false;
    }
    *left -= 1;
    let mut fits = true;
    with_stack(|| for_each_child(term, &mut |child| fits = fits && count_down(child, left)));
    fits
}

/// The number of nodes.
pub fn size(term: &Term) -> usize {
    let mut sum = 1;
    with_stack(|| for_each_child(term, &mut |child| sum += size(child)));
    sum
}

/// Thousandths of an evaluator step: each node is a step, and of terms with as many steps the one whose operations take less time on a
/// machine is better.
pub const STEP: u64 = 1000;

pub fn cost_of_prim(prim: Prim) -> u64 {
    STEP + match prim {
        Prim::AddReal | Prim::SubReal | Prim::NegReal | Prim::AddInt | Prim::SubInt | Prim::NegInt | Prim::Not => 10,
        Prim::MulReal | Prim::MulInt | Prim::Abs | Prim::Maximum | Prim::Minimum => 12,
        Prim::PowRealInt => 16,
        Prim::DivReal | Prim::Sqrt | Prim::DivInt | Prim::ModInt => 40,
        _ => 100,
    }
}
