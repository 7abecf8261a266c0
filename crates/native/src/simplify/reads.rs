//! Elements of arrays: reads are seen through to what was put there, and a list with one item replaced is another list.

use super::choices::Here;
use super::forward::{Forward, Key, Made};
use crate::flow::*;

impl Forward {
    pub(super) fn read(&mut self, mut stmt: Stmt, out: &mut Vec<Stmt>) {
        let Op::Get { array, index } = &mut stmt.op else { return };
        self.var(array);
        self.atoms(index);
        if let Some(Made::Row(whole, first)) = self.made.get(array) {
            *array = *whole;
            *index = [&first[..], &index[..]].concat();
        }
        // A row of a list of rows.
        while let (Some(Made::Literal(items)), [Atom::Int(i), _, ..]) = (self.made.get(array), &index[..]) {
            match usize::try_from(*i).ok().and_then(|i| items.get(i)) {
                Some(Atom::Var(row)) => {
                    *array = *row;
                    index.remove(0);
                }
                _ => break,
            }
        }
        let (array, index, element) = (*array, index.clone(), stmt.binds[0]);
        let here = &mut Here { span: stmt.span, out };
        if let Some(known) = self.element(array, &index) {
            self.replace(element, known);
        } else if !element.ty.is_counted() {
            match self.element_by_cases(array, &index, here) {
                Some(known) => self.replace(element, known),
                None => self.keep(Key::Get(array, index), stmt, out),
            }
        } else if let Some(items) = self.row_by_cases(array, &index, here) {
            self.stmt(Stmt { op: Op::Literal { items, ty: element.ty }, ..stmt }, out);
        } else {
            if element.ty.is_array() {
                self.made.insert(element, Made::Row(array, index.clone()));
            }
            self.keep(Key::Get(array, index), stmt, out);
        }
    }

    /// An element, if how the array was made tells it.
    fn element(&self, array: Var, index: &[Atom]) -> Option<Atom> {
        match (self.made.get(&array)?, index) {
            (Made::Fill(dims, value), _) if dims.len() == index.len() => Some(*value),
            (Made::Literal(items), [Atom::Int(i)]) => items.get(usize::try_from(*i).ok()?).copied(),
            _ => None,
        }
    }

    pub(super) fn change(&mut self, mut stmt: Stmt, out: &mut Vec<Stmt>) {
        let Op::Set { array, index, value } = &mut stmt.op else { return };
        self.var(array);
        self.atoms(index);
        self.atom(value);
        let here = &mut Here { span: stmt.span, out };
        let items = match self.made.get(array) {
            Some(Made::Literal(items)) => Some(items.clone()),
            _ => None,
        };
        match items.and_then(|items| self.replaced(items, index, *value, here)) {
            Some(items) => self.stmt(Stmt { op: Op::Literal { items, ty: stmt.binds[0].ty }, ..stmt }, out),
            None => {
                self.made.insert(stmt.binds[0], Made::Like((*array).into()));
                out.push(stmt);
            }
        }
    }

    /// A list with one of its items replaced, if it is known which.
    fn replaced(&mut self, mut items: Vec<Atom>, index: &[Atom], value: Atom, here: &mut Here) -> Option<Vec<Atom>> {
        match *index {
            [Atom::Int(i)] => {
                *items.get_mut(usize::try_from(i).ok()?)? = value;
                Some(items)
            }
            [place] => self.replaced_by_cases(&items, place, value, here),
            _ => None,
        }
    }
}
