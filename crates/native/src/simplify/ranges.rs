//! What is known of integers: that they are not negative, below a length, equal to one.

use super::forward::{Forward, Key, Made};
use crate::flow::*;
use gradus_core::Prim;

impl Forward {
    /// Comparisons that hold because one side counts up to the other.
    pub(super) fn in_range(&self, prim: Prim, args: &[Atom]) -> Option<Atom> {
        match (prim, args) {
            (Prim::GreaterEqual, [x, Atom::Int(0)]) | (Prim::LessEqual, [Atom::Int(0), x]) if self.natural(*x) => {
                Some(Atom::Bool(true))
            }
            (Prim::Less, [x, n]) | (Prim::Greater, [n, x]) if self.is_below(*x, *n) => Some(Atom::Bool(true)),
            (Prim::Equal, [Atom::Var(x), y]) | (Prim::NotEqual, [Atom::Var(x), y]) if x.ty == Type::INT => {
                // n = m holds if it was checked.
                let equal = self.find(&Key::Scalar(Prim::Equal, vec![(*x).into(), *y]));
                let holds = equal.is_some_and(|e| self.holds(e));
                holds.then_some(Atom::Bool(prim == Prim::Equal))
            }
            _ => None,
        }
    }

    /// Whether an integer is certainly not negative.
    pub(super) fn natural(&self, x: Atom) -> bool {
        match x {
            Atom::Int(k) => k >= 0,
            Atom::Var(v) if self.below.contains_key(&v) => true,
            Atom::Var(v) => match self.made.get(&v) {
                Some(Made::Scalar(Prim::SubInt, args)) => self.counts_down(args).is_some() || self.is_before(args),
                Some(Made::Scalar(Prim::AddInt | Prim::MulInt, args)) => args.iter().all(|a| self.is_size(*a, 3)),
                Some(_) => false,
                None => {
                    let checked = self.find(&Key::Scalar(Prim::GreaterEqual, vec![x, Atom::Int(0)]));
                    self.lengths.contains(&v) || checked.is_some_and(|e| self.holds(e))
                }
            },
            Atom::Real(_) | Atom::Bool(_) | Atom::Nil(_) => false,
        }
    }

    /// Whether an integer is a length, counts up to one, or is made of such: never negative, and far from overflowing, since no array has
    /// more than 2^48 elements and `depth` of them are not added or multiplied by more than a small constant.
    pub(super) fn is_size(&self, x: Atom, depth: usize) -> bool {
        match x {
            Atom::Int(k) => (0..1 << 10).contains(&k),
            Atom::Var(v) => match self.below.get(&v) {
                Some(Atom::Int(k)) => *k < 1 << 48,
                Some(Atom::Var(n)) => self.lengths.contains(n) || (depth > 0 && self.is_size((*n).into(), depth - 1)),
                Some(_) => false,
                None => match self.made.get(&v) {
                    Some(Made::Scalar(Prim::AddInt, args)) if depth > 0 => {
                        args.iter().all(|a| self.is_size(*a, depth - 1))
                    }
                    Some(Made::Scalar(Prim::MulInt, args)) if depth > 0 => {
                        args.iter().any(|a| a.var().is_none()) && args.iter().all(|a| self.is_size(*a, 0))
                    }
                    Some(_) => false,
                    None => self.lengths.contains(&v),
                },
            },
            Atom::Real(_) | Atom::Bool(_) | Atom::Nil(_) => false,
        }
    }

    /// Whether `i - 1` is not negative because i is not 0.
    fn is_before(&self, args: &[Atom]) -> bool {
        let [i, Atom::Int(1)] = *args else { return false };
        let zero = self.find(&Key::Scalar(Prim::Equal, vec![i, Atom::Int(0)]));
        zero.is_some_and(|e| self.fails(e)) && self.natural(i)
    }

    pub(super) fn is_below(&self, x: Atom, n: Atom) -> bool {
        match (x, n) {
            (Atom::Int(x), Atom::Int(n)) => x < n,
            (Atom::Int(0), _) => self.around.contains(&n),
            (Atom::Var(v), _) => match self.below.get(&v).copied() {
                Some(count) => self.same_count(count, n) || self.at_most(count, n),
                None => match self.made.get(&v) {
                    // i - 1 with i below n
                    Some(Made::Scalar(Prim::SubInt, args)) => {
                        self.counts_down(args).is_some_and(|count| self.same_count(count, n))
                            || matches!(args[..], [i, Atom::Int(1)] if self.natural(i) && self.is_below(i, n))
                    }
                    // i + 1 with i below n - 1
                    Some(Made::Scalar(Prim::AddInt, args)) => match args[..] {
                        [Atom::Var(i), Atom::Int(1)] | [Atom::Int(1), Atom::Var(i)] => {
                            self.below.get(&i).is_some_and(|count| self.is_one_less(*count, n))
                        }
                        _ => false,
                    },
                    _ => false,
                },
            },
            _ => false,
        }
    }

    /// Whether a count is at most n because it is itself below it, or one more than what is.
    pub(super) fn at_most(&self, count: Atom, n: Atom) -> bool {
        let Atom::Var(v) = count else { return false };
        match self.made.get(&v) {
            Some(Made::Scalar(Prim::AddInt, args)) => match args[..] {
                [Atom::Var(i), Atom::Int(1)] | [Atom::Int(1), Atom::Var(i)] => self.is_below(i.into(), n),
                _ => false,
            },
            _ => self.below.contains_key(&v) && self.is_below(count, n),
        }
    }

    /// Whether `count` is `n - 1`.
    pub(super) fn is_one_less(&self, count: Atom, n: Atom) -> bool {
        match (count, n) {
            (Atom::Int(count), Atom::Int(n)) => n.checked_sub(1) == Some(count),
            (Atom::Var(v), _) => match self.made.get(&v) {
                Some(Made::Scalar(Prim::SubInt, args)) => match args[..] {
                    // n - 1 does not overflow.
                    [Atom::Var(m), Atom::Int(1)] => self.natural(m.into()) && self.same_count(m.into(), n),
                    _ => false,
                },
                _ => false,
            },
            _ => false,
        }
    }

    /// Two integers that are the same, or known to be equal because it was checked.
    pub(super) fn same_count(&self, a: Atom, b: Atom) -> bool {
        let checked =
            |x: Atom, y: Atom| self.find(&Key::Scalar(Prim::Equal, vec![x, y])).is_some_and(|e| self.holds(e));
        match (a, b) {
            (Atom::Int(x), Atom::Int(y)) => x <= y,
            _ => a == b || checked(a, b) || checked(b, a) || self.as_row(a) == self.as_row(b),
        }
    }

    /// The length of a row as it is if there are rows. Only for bounds: where there are none, no index is asked for.
    fn as_row(&self, n: Atom) -> Atom {
        n.var().and_then(|v| self.row_lengths.get(&v).copied()).unwrap_or(n)
    }

    /// `(n - 1) - k` with k below n: the count n.
    pub(super) fn counts_down(&self, args: &[Atom]) -> Option<Atom> {
        let [Atom::Var(last), Atom::Var(k)] = args else { return self.counts_down_from_constant(args) };
        let count = *self.below.get(k)?;
        match self.made.get(last)? {
            Made::Scalar(Prim::SubInt, inner) if inner[..] == [count, Atom::Int(1)] => Some(count),
            _ => None,
        }
    }

    pub(super) fn counts_down_from_constant(&self, args: &[Atom]) -> Option<Atom> {
        match args {
            [Atom::Int(last), Atom::Var(k)] if self.below.get(k) == Some(&Atom::Int(last + 1)) => {
                Some(Atom::Int(last + 1))
            }
            _ => None,
        }
    }
}
