//! Strings: arrays of characters.

use super::value::Value;
use super::Lowering;
use crate::flow::{Atom, Block, Op, Scalar, Type as Leaf, Var};
use gradus_core::Prim;

impl Lowering<'_> {
    pub(super) fn text(&mut self, text: &str) -> Value {
        let ty = Leaf::array(Scalar::Int, 1);
        let array = Var::fresh("text", ty);
        let items = text.chars().map(|c| Atom::Int(i64::from(u32::from(c)))).collect();
        self.b.bind(vec![array], Op::Literal { items, ty });
        Value::Text(array.into())
    }

    pub(super) fn text_append(&mut self, x: Atom, y: Atom) -> Value {
        let (Atom::Var(a), Atom::Var(b)) = (x, y) else { gradus_source::bug!("a text that is no array") };
        let (n, m) = (self.b.dim(a, 0), self.b.dim(b, 0));
        let total = self.b.scalar(Prim::AddInt, &[n, m]);
        let i = Self::index();
        self.b.push();
        let first = self.b.scalar(Prim::Less, &[i.into(), n]);
        let then = self.character(x, i.into());
        self.b.push();
        let rest = self.b.scalar(Prim::SubInt, &[i.into(), n]);
        let c = self.b.get(y, vec![rest]);
        let otherwise = self.b.pop(vec![c]);
        let c = self.b.branch(first, then, otherwise);
        let body = self.b.pop(c);
        Value::Text(self.b.for_loop(i, total, Vec::new(), body)[0])
    }

    fn character(&mut self, text: Atom, at: Atom) -> Block {
        self.b.push();
        let c = self.b.get(text, vec![at]);
        self.b.pop(vec![c])
    }

    /// In decimal. Digits are taken off a number that is not positive, since there is one more of these.
    pub(super) fn text_of_int(&mut self, k: Atom) -> Value {
        let negative = self.b.scalar(Prim::Less, &[k, Atom::Int(0)]);
        let opposite = self.b.scalar(Prim::NegInt, &[k]);
        let start = self.b.select(negative, k, opposite);
        let rest = Var::fresh("rest", Leaf::INT);
        self.b.push();
        let next = self.b.scalar(Prim::DivInt, &[rest.into(), Atom::Int(10)]);
        let digit = self.b.scalar(Prim::ModInt, &[rest.into(), Atom::Int(10)]);
        let character = self.b.scalar(Prim::SubInt, &[Atom::Int(48), digit]);
        let more = self.b.scalar(Prim::NotEqual, &[next, Atom::Int(0)]);
        let body = self.b.pop(vec![more, next, character]);
        let digits = self.b.while_loop(vec![(rest, start)], body)[1];
        let Atom::Var(array) = digits else { gradus_source::bug!("collected digits are an array") };
        let count = self.b.dim(array, 0);
        let sign = self.b.select(negative, Atom::Int(1), Atom::Int(0));
        let total = self.b.scalar(Prim::AddInt, &[count, sign]);
        let i = Self::index();
        self.b.push();
        let is_sign = self.b.scalar(Prim::Less, &[i.into(), sign]);
        let minus = Block { stmts: Vec::new(), results: vec![Atom::Int(45)] };
        let last = self.b.scalar(Prim::SubInt, &[total, Atom::Int(1)]);
        let at = self.b.scalar(Prim::SubInt, &[last, i.into()]);
        let otherwise = self.character(digits, at);
        let c = self.b.branch(is_sign, minus, otherwise);
        let body = self.b.pop(c);
        Value::Text(self.b.for_loop(i, total, Vec::new(), body)[0])
    }
}
