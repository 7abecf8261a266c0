//! Equality of terms up to the names of bound variables.

use gradus_core::traverse::{for_each_child, with_stack};
use gradus_core::{Literal, Term, TermKind, Var};
use std::sync::Arc;

/// Pairs of nodes compared before two terms count as different.
const MOST: usize = 400;

/// Whether two terms are the same up to the names of bound variables. Large ones count as different, so that rules which ask for
/// equal parts stay linear. A term that may give another value each time does not exist: the language is pure.
pub fn same(left: &Term, right: &Term) -> bool {
    Comparison { bound: Vec::new(), left: MOST }.same(left, right)
}

struct Comparison {
    bound: Vec<(Var, Var)>,
    left: usize,
}

impl Comparison {
    fn same(&mut self, a: &Term, b: &Term) -> bool {
        if Arc::ptr_eq(&a.kind, &b.kind) && self.bound.is_empty() {
            return true;
        }
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        with_stack(|| self.nodes(a, b))
    }

    fn nodes(&mut self, a: &Term, b: &Term) -> bool {
        let binders = self.bound.len();
        let here = match (&*a.kind, &*b.kind) {
            (TermKind::Var(x, s), TermKind::Var(y, t)) => {
                let paired = self.bound.iter().rev().find(|(left, right)| left == x || right == y);
                s == t && paired.map_or(x == y, |(left, right)| left == x && right == y)
            }
            (TermKind::Global(x), TermKind::Global(y)) => x == y,
            (TermKind::Literal(x), TermKind::Literal(y)) => same_literal(x, y),
            (TermKind::Lambda(x), TermKind::Lambda(y)) => {
                self.bound.push((x.param.clone(), y.param.clone()));
                x.origin.is_none() && y.origin.is_none() && x.ty == y.ty
            }
            (TermKind::App(..), TermKind::App(..)) | (TermKind::If { .. }, TermKind::If { .. }) => true,
            (TermKind::Prim { prim, types, site, .. }, TermKind::Prim { prim: q, types: s, site: t, .. }) => {
                prim == q && types == s && site == t
            }
            (TermKind::Tuple(x), TermKind::Tuple(y)) => x.len() == y.len(),
            (TermKind::Proj { index: i, .. }, TermKind::Proj { index: j, .. }) => i == j,
            (
                TermKind::Construct { name, types, tag, .. },
                TermKind::Construct { name: other, types: others, tag: second, .. },
            ) => name == other && types == others && tag == second,
            (TermKind::ArrayLiteral { items: x, .. }, TermKind::ArrayLiteral { items: y, .. }) => x.len() == y.len(),
            // Where two such terms meet, a rule more would gain little.
            _ => false,
        };
        let (mut left, mut right) = (Vec::new(), Vec::new());
        if here {
            for_each_child(a, &mut |child| left.push(child.clone()));
            for_each_child(b, &mut |child| right.push(child.clone()));
        }
        let all = here && left.len() == right.len() && left.iter().zip(&right).all(|(x, y)| self.same(x, y));
        self.bound.truncate(binders);
        all
    }
}

/// Bit for bit.
pub fn same_literal(a: &Literal, b: &Literal) -> bool {
    match (a, b) {
        (Literal::Real(x), Literal::Real(y)) => x.to_bits() == y.to_bits(),
        _ => a == b,
    }
}
