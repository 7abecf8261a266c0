//! Primitives on values.

use super::value::Value;
use super::{Lowered, Lowering};
use crate::flow::{scalar, Atom, Failure, Op, Scalar, Type as Leaf, Var};
use gradus_core::{Prim, Type};
use gradus_source::Span;

impl Lowering<'_> {
    pub(super) fn prim(&mut self, prim: Prim, types: &[Type], args: Vec<Value>, span: Span) -> Lowered<Value> {
        match (prim, &args[..]) {
            (Prim::DivInt | Prim::ModInt, [x, y]) => {
                let (x, y) = (self.leaf(x), self.leaf(y));
                let divisible = self.b.scalar(Prim::NotEqual, &[y, Atom::Int(0)]);
                self.b.check(divisible, Failure::DivisionByZero);
                Ok(Value::Leaf(self.b.scalar(prim, &[x, y])))
            }
            (Prim::PowInt, [x, k]) => {
                let (x, k) = (self.leaf(x), self.leaf(k));
                let natural = self.b.scalar(Prim::GreaterEqual, &[k, Atom::Int(0)]);
                self.b.check(natural, Failure::NegativeExponent);
                Ok(Value::Leaf(self.b.scalar(prim, &[x, k])))
            }
            (Prim::Sign, [x]) => {
                let x = self.leaf(x);
                let above = self.b.scalar(Prim::Greater, &[x, Atom::Real(0.0)]);
                let below = self.b.scalar(Prim::Less, &[x, Atom::Real(0.0)]);
                let known = self.b.select(above, Atom::Bool(true), below);
                self.b.check(known, Failure::SignOfZero);
                let tag = self.b.select(above, Atom::Int(1), Atom::Int(0));
                let unit = Some(vec![Value::Unit]);
                Ok(Value::Variant { tag, fields: vec![unit.clone(), unit].into() })
            }
            (Prim::Equal, [x, y]) => Ok(Value::Leaf(self.equal(x, y, &types[0], span)?)),
            (Prim::NotEqual, [x, y]) => {
                let equal = self.equal(x, y, &types[0], span)?;
                Ok(Value::Leaf(self.b.scalar(Prim::Not, &[equal])))
            }
            (Prim::Less | Prim::LessEqual | Prim::Greater | Prim::GreaterEqual, [x, y]) => match (x, y) {
                (Value::Leaf(x), Value::Leaf(y)) => Ok(Value::Leaf(self.b.scalar(prim, &[*x, *y]))),
                _ => Ok(Value::Leaf(self.ordered(prim, x, y, &types[0], span)?)),
            },
            (Prim::Build, [n, f]) => self.build(self.leaf(n), f.clone(), &types[0], span),
            (Prim::Get, [Value::Array(part), i]) => {
                let (part, i) = (part.clone(), self.leaf(i));
                let n = self.length(&part)?;
                self.check_index(i, n);
                Ok(self.element(&part, i))
            }
            (Prim::Length, [Value::Array(part)]) => {
                let part = part.clone();
                Ok(Value::Leaf(self.length(&part)?))
            }
            (Prim::Set, [Value::Array(part), i, x]) => {
                let (part, i) = (part.clone(), self.leaf(i));
                self.set(&part, i, x, &types[0], span)
            }
            (Prim::Ifold, [n, f, init]) => self.ifold(self.leaf(n), f.clone(), init, &types[0], span),
            (Prim::Iterate, [f, x]) => self.iterate(f.clone(), x, (&types[0], &types[1]), span),
            (Prim::CheckSize, [Value::Array(part), n]) => {
                let (part, n) = (part.clone(), self.leaf(n));
                let found = self.length(&part)?;
                let same = self.b.scalar(Prim::Equal, &[found, n]);
                self.b.check(same, Failure::Size);
                Ok(Value::Array(part))
            }
            (Prim::VectorAdd, [x, y]) => self.zip_reals(Prim::AddReal, x, y, &types[0], span),
            (Prim::VectorSub, [x, y]) => self.zip_reals(Prim::SubReal, x, y, &types[0], span),
            (Prim::Scale, [k, x]) => {
                let k = self.leaf(k);
                self.scaled(k, x, &types[0], span)
            }
            (Prim::Inner, [x, y]) => self.inner(x, y, &types[0], span),
            (Prim::ZeroLike, [x]) => self.zero_like(x, &types[0], span),
            (Prim::StopGradient, [x]) => {
                let leaves = self.flatten(x, &types[0], span)?;
                let stopped: Vec<Atom> = leaves.into_iter().map(|a| self.stop(a)).collect();
                self.unflatten(&types[0], &mut stopped.into_iter(), span)
            }
            (Prim::Checkpoint, [f, x]) => self.checkpoint(f.clone(), x, (&types[0], &types[1]), span),
            (Prim::StringAppend, [Value::Text(x), Value::Text(y)]) => Ok(self.text_append(*x, *y)),
            (Prim::StringLength, [Value::Text(Atom::Var(x))]) => Ok(Value::Leaf(self.b.dim(*x, 0))),
            (Prim::StringOfInt, [k]) => {
                let k = self.leaf(k);
                Ok(self.text_of_int(k))
            }
            (Prim::StringOfReal, [x]) => {
                let digits = Var::fresh("text", Leaf::array(Scalar::Int, 1));
                self.b.bind(vec![digits], Op::Digits { value: self.leaf(x) });
                Ok(Value::Text(digits.into()))
            }
            _ => {
                let atoms: Vec<Atom> = args.iter().map(|v| self.leaf(v)).collect();
                debug_assert!(scalar::result(prim, &atoms.iter().map(|a| a.ty()).collect::<Vec<_>>()).is_some());
                Ok(Value::Leaf(self.b.scalar(prim, &atoms)))
            }
        }
    }

    fn stop(&mut self, atom: Atom) -> Atom {
        match atom {
            Atom::Var(v) if v.ty.may_be_active() => {
                let stopped = v.refresh();
                self.b.bind(vec![stopped], Op::Stop { value: atom });
                stopped.into()
            }
            _ => atom,
        }
    }

    /// `a && b` on known operands.
    pub(super) fn and(&mut self, a: Atom, b: Atom) -> Atom {
        self.b.select(a, b, Atom::Bool(false))
    }

    /// A variable that is a loop's index.
    pub(super) fn index() -> Var {
        Var::fresh("i", crate::flow::Type::INT)
    }
}
