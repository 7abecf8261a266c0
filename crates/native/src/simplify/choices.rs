//! Integers that are one of a few constants, such as the place of the largest number of a short list. What follows from such an integer is a
//! choice of what follows from the constants: a list that is read or changed there is known number by number, and is never made.

use super::forward::{Forward, Key, Made};
use super::unroll::FEW;
use crate::flow::*;
use gradus_core::Prim;
use gradus_source::Span;

/// An integer that takes more choices than this is not looked through.
const CHOICES: usize = 16;

/// An integer that is chosen from constants and such integers.
struct Chosen {
    integer: Var,
    cond: Atom,
    sides: [Atom; 2],
}

/// Where choices are written down.
pub(super) struct Here<'a> {
    pub span: Span,
    pub out: &'a mut Vec<Stmt>,
}

impl Forward {
    pub(super) fn choice(&mut self, mut stmt: Stmt, out: &mut Vec<Stmt>) {
        let Op::Select { cond, then, otherwise } = &mut stmt.op else { return };
        [&mut *cond, then, otherwise].into_iter().for_each(|a| self.atom(a));
        *then = self.side(*then, *cond, true);
        *otherwise = self.side(*otherwise, *cond, false);
        let (cond, then, otherwise) = (*cond, *then, *otherwise);
        if self.holds(cond) || then == otherwise {
            return self.replace(stmt.binds[0], then);
        }
        if self.fails(cond) {
            return self.replace(stmt.binds[0], otherwise);
        }
        match (then, otherwise) {
            (Atom::Bool(true), Atom::Bool(false)) => self.replace(stmt.binds[0], cond),
            (Atom::Bool(false), Atom::Bool(true)) => {
                self.stmt(Stmt { op: Op::Scalar { prim: Prim::Not, args: vec![cond] }, ..stmt }, out);
            }
            _ => {
                self.made.insert(stmt.binds[0], Made::Choice(cond, then, otherwise));
                self.keep(Key::Select(cond, then, otherwise), stmt, out);
            }
        }
    }

    /// What one side of a choice is, if it asks the same again.
    fn side(&self, side: Atom, cond: Atom, outcome: bool) -> Atom {
        match side.var().and_then(|v| self.made.get(&v)) {
            Some(Made::Choice(same, then, otherwise)) if *same == cond => {
                if outcome {
                    *then
                } else {
                    *otherwise
                }
            }
            _ => side,
        }
    }

    /// The result of a primitive for an integer that is one of a few.
    pub(super) fn scalar_by_cases(&mut self, prim: Prim, args: &[Atom], here: &mut Here) -> Option<Atom> {
        let (at, integer) = match *args {
            [integer @ Atom::Var(_)] | [integer @ Atom::Var(_), Atom::Int(_)] => (0, integer),
            [Atom::Int(_), integer @ Atom::Var(_)] => (1, integer),
            _ => return None,
        };
        let chosen = self.chosen(integer)?;
        let result = |k: i64| {
            let mut args = args.to_vec();
            args[at] = Atom::Int(k);
            fold::scalar(prim, &args)
        };
        let results = for_each_case(&chosen, result)?;
        Some(self.by_cases(&chosen, &results, here))
    }

    /// A number of a list, or of a list of rows, at a place that is one of a few.
    pub(super) fn element_by_cases(&mut self, array: Var, index: &[Atom], here: &mut Here) -> Option<Atom> {
        let at = index.iter().position(|i| i.var().is_some())?;
        let chosen = self.chosen(index[at])?;
        let number = |k: i64| {
            let mut index = index.to_vec();
            index[at] = Atom::Int(k);
            self.item(array, &index)
        };
        let numbers = for_each_case(&chosen, number)?;
        Some(self.by_cases(&chosen, &numbers, here))
    }

    /// The numbers of a row of a list of rows, the same.
    pub(super) fn row_by_cases(&mut self, rows: Var, index: &[Atom], here: &mut Here) -> Option<Vec<Atom>> {
        let [row] = *index else { return None };
        let chosen = self.chosen(row)?;
        let rows = for_each_case(&chosen, |k| match self.made.get(&self.item(rows, &[Atom::Int(k)])?.var()?)? {
            Made::Literal(items) => Some(items.clone()),
            _ => None,
        })?;
        let columns = rows[0].1.len();
        let are_numbers = |row: &[Atom]| row.len() == columns && row.iter().all(|item| !item.ty().is_counted());
        if columns > FEW || !rows.iter().all(|(_, row)| are_numbers(row)) {
            return None;
        }
        let column = |j: usize| rows.iter().map(|(k, row)| (*k, row[j])).collect::<Vec<_>>();
        Some((0..columns).map(|j| self.by_cases(&chosen, &column(j), here)).collect())
    }

    /// A list of numbers with one replaced at a place that is one of a few.
    pub(super) fn replaced_by_cases(
        &mut self,
        items: &[Atom],
        place: Atom,
        value: Atom,
        here: &mut Here,
    ) -> Option<Vec<Atom>> {
        let chosen = self.chosen(place)?;
        let places = for_each_case(&chosen, |k| usize::try_from(k).ok().filter(|k| *k < items.len()))?;
        if value.ty().is_counted() {
            return None;
        }
        let now = |(j, item): (usize, &Atom)| {
            let of_each: Vec<(i64, Atom)> =
                places.iter().map(|(k, place)| (*k, if *place == j { value } else { *item })).collect();
            self.by_cases(&chosen, &of_each, here)
        };
        Some(items.iter().enumerate().map(now).collect())
    }

    /// The choices that an integer takes, each after those that it takes itself, if it takes any.
    fn chosen(&self, integer: Atom) -> Option<Vec<Chosen>> {
        let mut found = Vec::new();
        let is_chosen = integer.ty() == Type::INT && integer.var().is_some();
        (is_chosen && self.note_choices(integer, CHOICES, &mut found)).then_some(found)
    }

    /// Says whether all of them are known. `left`: how many may be in one another.
    fn note_choices(&self, integer: Atom, left: usize, found: &mut Vec<Chosen>) -> bool {
        let Atom::Var(integer) = integer else { return true };
        if found.iter().any(|chosen| chosen.integer == integer) {
            return true;
        }
        let Some(Made::Choice(cond, then, otherwise)) = self.made.get(&integer) else { return false };
        let sides = [*then, *otherwise];
        if left == 0 || !sides.iter().all(|side| self.note_choices(*side, left - 1, found)) {
            return false;
        }
        found.push(Chosen { integer, cond: *cond, sides });
        found.len() <= CHOICES
    }

    /// A choice of what there is for each of the constants.
    fn by_cases(&mut self, chosen: &[Chosen], of_each: &[(i64, Atom)], here: &mut Here) -> Atom {
        let mut known: Vec<(Atom, Atom)> = of_each.iter().map(|(k, of_k)| (Atom::Int(*k), *of_k)).collect();
        for Chosen { integer, cond, sides } in chosen {
            let of = |integer: Atom| known.iter().find(|(known, _)| *known == integer).map_or(integer, |(_, of)| *of);
            let (then, otherwise) = (of(sides[0]), of(sides[1]));
            let value = Var::fresh("chosen", then.ty());
            self.stmt(
                Stmt { binds: vec![value], op: Op::Select { cond: *cond, then, otherwise }, span: here.span },
                here.out,
            );
            known.push(((*integer).into(), self.replaced.atom(value.into())));
        }
        known[known.len() - 1].1
    }

    /// An item of a list, or of a list of rows.
    fn item(&self, array: Var, index: &[Atom]) -> Option<Atom> {
        let (Atom::Int(first), rest) = index.split_first()? else { return None };
        let Made::Literal(items) = self.made.get(&array)? else { return None };
        let item = *items.get(usize::try_from(*first).ok()?)?;
        if rest.is_empty() {
            Some(item)
        } else {
            self.item(item.var()?, rest)
        }
    }
}

/// What there is for each of the constants that an integer is chosen from, if there is something for all.
fn for_each_case<T>(chosen: &[Chosen], of: impl Fn(i64) -> Option<T>) -> Option<Vec<(i64, T)>> {
    let mut of_each: Vec<(i64, T)> = Vec::new();
    for side in chosen.iter().flat_map(|chosen| chosen.sides) {
        match side {
            Atom::Int(k) if of_each.iter().all(|(known, _)| *known != k) => of_each.push((k, of(k)?)),
            _ => {}
        }
    }
    Some(of_each)
}
