//! What is known of integers: inequalities between sums of lengths and indices.
//!
//! An integer is written as a linear form of lengths, indices of loops and other variables, where its computation cannot overflow. An inequality
//! is a linear form that is not negative. It follows if it still holds after every index, the innermost first, is replaced by the end of its
//! range that makes the form smallest; or if it does so after one of the inequalities that hold here is taken off.

use super::forward::{Forward, Key, Made};
use crate::flow::*;
use gradus_core::Prim;

/// A sum of multiples of variables and a constant.
#[derive(Clone, Debug, Default)]
pub(super) struct Linear {
    terms: Vec<(Var, i64)>,
    constant: i64,
}

/// How large an integer can be, which decides what can be computed from it without overflow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Size {
    /// A small constant, a length or a few of them: no array has more than 2^48 elements.
    Small,
    /// The index of any loop: at least 0, and no run gets near the largest integer by counting.
    Index,
    /// Not far below 0, if at all.
    Natural,
    Any,
}

/// `prim (index + by) count`, where the count is that of the index.
pub(super) struct AsksForEnd {
    pub(super) prim: Prim,
    pub(super) index: Var,
    pub(super) by: i64,
    pub(super) count: Atom,
}

/// Constants, and factors, that are small.
const CONSTANT: i64 = 1 << 40;
const FACTOR: i64 = 1 << 10;
/// How many computations deep a form looks: so few small numbers, each with a factor, do not overflow.
const DEPTH: usize = 3;
/// How many of the latest inequalities are tried.
const TRIED: usize = 32;

impl Linear {
    pub(super) fn of(var: Var) -> Linear {
        Linear { terms: vec![(var, 1)], constant: 0 }
    }

    pub(super) fn constant(constant: i64) -> Linear {
        Linear { terms: Vec::new(), constant }
    }

    fn is_constant(&self) -> bool {
        self.terms.is_empty()
    }

    /// The number that this form is, if it is the same for all values of the variables.
    pub(super) fn as_constant(&self) -> Option<i64> {
        self.is_constant().then_some(self.constant)
    }

    /// Of which multiple of a variable this is the sum, and of what else.
    pub(super) fn without(mut self, var: Var) -> (i64, Linear) {
        (self.take(var), self)
    }

    pub(super) fn mentions(&self, var: Var) -> bool {
        self.terms.iter().any(|(v, _)| *v == var)
    }

    /// Whether sums of a few such forms do not overflow.
    pub(super) fn is_small(&self) -> bool {
        self.constant.abs() <= CONSTANT && self.terms.iter().all(|(_, factor)| factor.abs() <= FACTOR)
    }

    /// With a multiple of another form added. Forms have small coefficients, as their makers see to; sums of them saturate far from what counts.
    pub(super) fn plus(mut self, factor: i64, other: &Linear) -> Linear {
        for (var, coefficient) in &other.terms {
            let more = factor.saturating_mul(*coefficient);
            match self.terms.iter_mut().find(|(v, _)| v == var) {
                Some((_, there)) => *there = there.saturating_add(more),
                None => self.terms.push((*var, more)),
            }
        }
        self.terms.retain(|(_, coefficient)| *coefficient != 0);
        self.constant = self.constant.saturating_add(factor.saturating_mul(other.constant));
        self
    }

    fn take(&mut self, var: Var) -> i64 {
        match self.terms.iter().position(|(v, _)| *v == var) {
            Some(at) => self.terms.swap_remove(at).1,
            None => 0,
        }
    }

    fn shares_a_variable(&self, other: &Linear) -> bool {
        self.terms.iter().any(|(v, _)| other.terms.iter().any(|(w, _)| v == w))
    }
}

impl Forward {
    /// A comparison of integers whose outcome is known.
    pub(super) fn in_range(&self, prim: Prim, args: &[Atom]) -> Option<Atom> {
        let [a, b] = *args else { return None };
        if a.ty() != Type::INT || b.ty() != Type::INT {
            return None;
        }
        let (a, b) = if matches!(prim, Prim::Greater | Prim::GreaterEqual) { (b, a) } else { (a, b) };
        let known = match prim {
            // Where an element is about to be read, there are rows.
            Prim::Less | Prim::Greater if self.is_less(a, b, false) || self.is_less(a, b, true) => true,
            Prim::Less | Prim::Greater if self.is_at_most(b, a) => false,
            Prim::LessEqual | Prim::GreaterEqual if self.is_at_most(a, b) => true,
            Prim::LessEqual | Prim::GreaterEqual if self.is_less(b, a, false) => false,
            Prim::Equal | Prim::NotEqual => {
                let equal = self.find(&Key::scalar(Prim::Equal, vec![a, b])).is_some_and(|e| self.holds(e))
                    || (self.is_at_most(a, b) && self.is_at_most(b, a));
                let differ = || self.is_less(a, b, false) || self.is_less(b, a, false);
                if !equal && !differ() {
                    return None;
                }
                equal == (prim == Prim::Equal)
            }
            _ => return None,
        };
        Some(Atom::Bool(known))
    }

    /// A comparison that asks how far a loop is from its end, in other words than `index + by < count`.
    pub(super) fn asks_for_end(&self, prim: Prim, args: &[Atom]) -> Option<AsksForEnd> {
        let mirrored = scalar::mirrored(prim)?;
        let [a, b] = *args else { return None };
        if a.ty() != Type::INT || b.ty() != Type::INT || a.var().is_none() || b.var().is_none() {
            return None;
        }
        let difference = self.form(a, DEPTH, false).0.plus(-1, &self.form(b, DEPTH, false).0);
        self.loops.iter().rev().find_map(|(index, count)| {
            count.var()?;
            let left = self.form(*count, DEPTH, false).0.plus(-1, &Linear::of(*index));
            for (prim, sign) in [(prim, 1), (mirrored, -1)] {
                let by = difference.clone().plus(sign, &left);
                let plain = sign == 1 && b == *count && (a == (*index).into() || self.is_ahead(a, *index));
                if by.is_constant() && by.constant.abs() < CONSTANT {
                    return (!plain).then_some(AsksForEnd {
                        prim,
                        index: *index,
                        by: sign * by.constant,
                        count: *count,
                    });
                }
            }
            None
        })
    }

    /// Whether an integer is written as the index plus a constant.
    fn is_ahead(&self, atom: Atom, index: Var) -> bool {
        match atom.var().and_then(|v| self.made.get(&v)) {
            Some(Made::Scalar(Prim::AddInt, args)) => matches!(args[..], [i, Atom::Int(_)] if i == index.into()),
            _ => false,
        }
    }

    /// So many of the first iterations of a loop are left out, and so many of the last; `only`: this is the last of the others.
    pub(super) fn learn_edges(&mut self, index: Var, count: Atom, first: i64, last: i64, only: bool) {
        self.learn_positive(count);
        let (index, count) = (Linear::of(index), self.form(count, DEPTH, false).0);
        self.inequalities.push(index.clone().plus(-1, &Linear::constant(first)));
        let left = count.plus(-1, &index).plus(-1, &Linear::constant(1 + last));
        if only {
            self.inequalities.push(Linear::default().plus(-1, &left));
        }
        self.inequalities.push(left);
    }

    /// `any_rows`: arrays are taken to have rows. One without does not know how long they would have been.
    fn is_less(&self, a: Atom, b: Atom, any_rows: bool) -> bool {
        let difference = self.form(b, DEPTH, any_rows).0.plus(-1, &self.form(a, DEPTH, any_rows).0);
        self.is_natural(&difference.plus(-1, &Linear::constant(1)), any_rows)
    }

    fn is_at_most(&self, a: Atom, b: Atom) -> bool {
        self.is_natural(&self.form(b, DEPTH, false).0.plus(-1, &self.form(a, DEPTH, false).0), false)
    }

    /// Adds the inequalities that a comparison's outcome tells.
    pub(super) fn learn_inequality(&mut self, prim: Prim, args: &[Atom], outcome: bool) {
        let [a, b] = *args else { return };
        if a.ty() != Type::INT || b.ty() != Type::INT {
            return;
        }
        let (a, b) = (self.form(a, DEPTH, false).0, self.form(b, DEPTH, false).0);
        let (up, down) = (b.clone().plus(-1, &a), a.plus(-1, &b));
        let more = |form: Linear| form.plus(-1, &Linear::constant(1));
        match (prim, outcome) {
            (Prim::Less, true) | (Prim::GreaterEqual, false) => self.inequalities.push(more(up)),
            (Prim::LessEqual, true) | (Prim::Greater, false) => self.inequalities.push(up),
            (Prim::Greater, true) | (Prim::LessEqual, false) => self.inequalities.push(more(down)),
            (Prim::GreaterEqual, true) | (Prim::Less, false) => self.inequalities.push(down),
            (Prim::Equal, true) | (Prim::NotEqual, false) => self.inequalities.extend([up, down]),
            (Prim::Equal, false) | (Prim::NotEqual, true) if self.is_natural(&up, false) => {
                self.inequalities.push(more(up))
            }
            (Prim::Equal, false) | (Prim::NotEqual, true) if self.is_natural(&down, false) => {
                self.inequalities.push(more(down));
            }
            _ => {}
        }
    }

    /// Notes how an integer or boolean is computed. A remainder of what is not negative is less than what it is divided by.
    pub(super) fn note_made(&mut self, y: Var, prim: Prim, args: &[Atom]) {
        self.made.insert(y, Made::Scalar(prim, args.to_vec()));
        let (Prim::ModInt, [x, by]) = (prim, args) else { return };
        let (x, by) = (self.form(*x, DEPTH, false).0, self.form(*by, DEPTH, false).0);
        let last = by.plus(-1, &Linear::constant(1));
        if self.is_natural(&x, false) && self.is_natural(&last, false) {
            self.inequalities.extend([Linear::of(y), last.plus(-1, &Linear::of(y))]);
        }
    }

    /// In the body of a loop, its count is positive.
    pub(super) fn learn_positive(&mut self, count: Atom) {
        let form = self.form(count, DEPTH, false).0;
        self.inequalities.push(form.plus(-1, &Linear::constant(1)));
    }

    /// Whether a form is certainly not negative.
    fn is_natural(&self, form: &Linear, any_rows: bool) -> bool {
        let recent = || self.inequalities.iter().rev().filter(|known| known.shares_a_variable(form)).take(TRIED);
        self.is_natural_by_ranges(form.clone(), any_rows, |count| count)
            || recent().any(|known| self.is_natural_by_ranges(form.clone().plus(-1, known), any_rows, |count| count))
            || self.is_natural_by_ranges(form.clone(), any_rows, |count| self.at_most(count))
    }

    /// `limit` gives what a count is at most, where its loop runs.
    fn is_natural_by_ranges(&self, mut form: Linear, any_rows: bool, limit: impl Fn(Atom) -> Atom) -> bool {
        for (index, count) in self.loops.iter().rev() {
            let coefficient = form.take(*index);
            if coefficient < 0 {
                let last = self.form(limit(*count), DEPTH, any_rows).0.plus(-1, &Linear::constant(1));
                form = form.plus(coefficient, &last);
            }
        }
        form.constant >= 0 && form.terms.iter().all(|(v, coefficient)| *coefficient > 0 && self.is_size(*v))
    }

    /// What a count is if it is not 0, as that of the columns of a matrix that may have no rows: where the loop runs, it is not.
    fn at_most(&self, count: Atom) -> Atom {
        match count.var().and_then(|v| self.made.get(&v)) {
            Some(Made::Choice(_, Atom::Int(0), n) | Made::Choice(_, n, Atom::Int(0))) => self.at_most(*n),
            _ => count,
        }
    }

    /// What decides whether a count is 0, and how it must be decided where the loop runs.
    pub(super) fn decides(&self, count: Atom) -> Option<(Var, bool)> {
        match self.made.get(&count.var()?)? {
            Made::Choice(Atom::Var(cond), Atom::Int(0), _) => Some((*cond, false)),
            Made::Choice(Atom::Var(cond), _, Atom::Int(0)) => Some((*cond, true)),
            _ => None,
        }
    }

    /// Whether a variable is a length, or was found not to be negative.
    fn is_size(&self, var: Var) -> bool {
        let checked = || self.find(&Key::Scalar(Prim::GreaterEqual, vec![var.into(), Atom::Int(0)]));
        self.lengths.contains_key(&var)
            || self.loops.iter().any(|(_, count)| *count == var.into())
            || checked().is_some_and(|e| self.holds(e))
    }

    /// An integer as a linear form, and how large it can be. What could overflow stays a variable.
    fn form(&self, atom: Atom, depth: usize, any_rows: bool) -> (Linear, Size) {
        let var = match atom {
            Atom::Int(k) if k.abs() < CONSTANT => return (Linear::constant(k), Size::Small),
            Atom::Int(k) => return (Linear::constant(k), Size::Any),
            Atom::Var(var) => var,
            Atom::Real(_) | Atom::Bool(_) | Atom::Nil(_) => gradus_source::bug!("{atom:?} is no integer"),
        };
        if let Some(count) = self.below.get(&var) {
            let counts_to = match depth {
                0 => Size::Any,
                _ => self.form(*count, depth - 1, any_rows).1,
            };
            return (Linear::of(var), if counts_to == Size::Small { Size::Small } else { Size::Index });
        }
        if self.lengths.contains_key(&var) {
            let row = self.row_lengths.get(&var).filter(|_| any_rows);
            return match row {
                Some(row) if depth > 0 => (self.form(*row, depth - 1, any_rows).0, Size::Small),
                _ => (Linear::of(var), Size::Small),
            };
        }
        let computed = match self.made.get(&var) {
            Some(Made::Scalar(prim, args)) if depth > 0 => self.computed(*prim, args, depth - 1, any_rows),
            _ => None,
        };
        computed.unwrap_or_else(|| (Linear::of(var), if self.is_size(var) { Size::Natural } else { Size::Any }))
    }

    fn computed(&self, prim: Prim, args: &[Atom], depth: usize, any_rows: bool) -> Option<(Linear, Size)> {
        let [a, b] = *args else { return None };
        let form = |atom: Atom| self.form(atom, depth, any_rows);
        Some(match prim {
            Prim::AddInt => {
                let ((a, a_size), (b, b_size)) = (form(a), form(b));
                let size = match (a_size, b_size) {
                    (Size::Small, Size::Small) => Size::Small,
                    (Size::Index, Size::Small) if b.is_constant() => Size::Index,
                    (Size::Small, Size::Index) if a.is_constant() => Size::Index,
                    _ => return None,
                };
                (a.plus(1, &b), size)
            }
            Prim::SubInt => {
                let ((a, a_size), (b, b_size)) = (form(a), form(b));
                let size = match (a_size, b_size) {
                    (Size::Small, Size::Small) => Size::Small,
                    (Size::Index | Size::Natural, Size::Small) if b.is_constant() && b.constant >= 0 => Size::Natural,
                    (Size::Small | Size::Index | Size::Natural, Size::Small | Size::Index) => Size::Any,
                    _ => return None,
                };
                (a.plus(-1, &b), size)
            }
            Prim::MulInt => {
                let (factor, other) = match (a, b) {
                    (Atom::Int(k), x) | (x, Atom::Int(k)) if (0..FACTOR).contains(&k) => (k, x),
                    _ => return None,
                };
                // Not of a sum or product: factors of factors would grow.
                let is_computed = other.var().is_some_and(|v| matches!(self.made.get(&v), Some(Made::Scalar(..))));
                match self.form(other, depth.min(1), any_rows) {
                    (form, Size::Small) if !is_computed => (Linear::default().plus(factor, &form), Size::Small),
                    _ => return None,
                }
            }
            _ => return None,
        })
    }
}
