//! Operations on data of any shape, written out by their structure: equality and the vector-space operations.

use super::value::Value;
use super::{Lowered, Lowering};
use crate::flow::{Atom, Failure, Scalar, Type as Leaf, Var};
use crate::refusal::Reason;
use gradus_core::traverse::with_stack;
use gradus_core::{Prim, Type};
use gradus_source::Span;

/// What is done with a real.
pub(super) type OnReal<'f, 'a> = &'f dyn Fn(&mut Lowering<'a>, Atom) -> Atom;

impl<'a> Lowering<'a> {
    /// Structural equality.
    pub(super) fn equal(&mut self, x: &Value, y: &Value, span: Span) -> Lowered<Atom> {
        with_stack(|| match (x, y) {
            (Value::Leaf(x), Value::Leaf(y)) => Ok(self.b.scalar(Prim::Equal, &[*x, *y])),
            (Value::Unit, Value::Unit) => Ok(Atom::Bool(true)),
            (Value::Tuple(xs), Value::Tuple(ys)) => self.all_equal(xs, ys, span),
            (Value::Variant { tag: s, fields: xs }, Value::Variant { tag: t, fields: ys }) => {
                let mut all = self.b.scalar(Prim::Equal, &[*s, *t]);
                for (tag, (x, y)) in xs.iter().zip(ys.iter()).enumerate() {
                    let (Some(x), Some(y)) = (x, y) else { continue };
                    // The fields of other constructors do not count.
                    let equal = self.all_equal(x, y, span)?;
                    let other = self.b.scalar(Prim::NotEqual, &[*s, Atom::Int(tag as i64)]);
                    let fine = self.b.select(other, Atom::Bool(true), equal);
                    all = self.and(all, fine);
                }
                Ok(all)
            }
            (Value::Array(x), Value::Array(y)) => {
                let (x, y) = (x.clone(), y.clone());
                let (n, m) = (self.length(&x)?, self.length(&y)?);
                let same_length = self.b.scalar(Prim::Equal, &[n, m]);
                let count = self.b.select(same_length, n, Atom::Int(0));
                let i = Self::index();
                let so_far = Var::fresh("equal", Leaf::BOOL);
                self.b.push();
                let (a, b) = (self.element(&x, i.into()), self.element(&y, i.into()));
                let equal = self.equal(&a, &b, span)?;
                let next = self.and(so_far.into(), equal);
                let body = self.b.pop(vec![next]);
                Ok(self.b.for_loop(i, count, vec![(so_far, same_length)], body)[0])
            }
            (Value::Function(_), _) => self.refuse(Reason::UnknownFunction, span),
            _ => gradus_source::bug!("values of different structure are compared"),
        })
    }

    fn all_equal(&mut self, xs: &[Value], ys: &[Value], span: Span) -> Lowered<Atom> {
        let mut all = Atom::Bool(true);
        for (x, y) in xs.iter().zip(ys) {
            let equal = self.equal(x, y, span)?;
            all = self.and(all, equal);
        }
        Ok(all)
    }

    /// The value with each of its reals replaced.
    pub(super) fn map_reals(&mut self, x: &Value, ty: &Type, span: Span, f: OnReal<'_, 'a>) -> Lowered<Value> {
        let leaves = self.flatten(x, ty, span)?;
        let mapped: Vec<Atom> = leaves.into_iter().map(|a| self.map_leaf(a, f)).collect();
        self.unflatten(ty, &mut mapped.into_iter(), span)
    }

    fn map_leaf(&mut self, leaf: Atom, f: OnReal<'_, 'a>) -> Atom {
        match leaf {
            _ if leaf.ty().scalar != Scalar::Real => leaf,
            Atom::Var(array) if array.ty.is_array() => {
                let n = self.b.dim(array, 0);
                let i = Self::index();
                self.b.push();
                let element = self.b.get(leaf, vec![i.into()]);
                let mapped = self.map_leaf(element, f);
                let body = self.b.pop(vec![mapped]);
                self.b.for_loop(i, n, Vec::new(), body)[0]
            }
            _ => f(self, leaf),
        }
    }

    /// Two values of the same shape, their reals combined one by one; other leaves from the first.
    pub(super) fn zip_reals(&mut self, prim: Prim, x: &Value, y: &Value, ty: &Type, span: Span) -> Lowered<Value> {
        self.check_tags(x, y)?;
        let (xs, ys) = (self.flatten(x, ty, span)?, self.flatten(y, ty, span)?);
        let mut combined = Vec::new();
        for (x, y) in xs.into_iter().zip(ys) {
            self.check_same_shape(x, y, Failure::Shape);
            combined.push(self.zip_leaf(prim, x, y));
        }
        self.unflatten(ty, &mut combined.into_iter(), span)
    }

    fn zip_leaf(&mut self, prim: Prim, x: Atom, y: Atom) -> Atom {
        match (x, y) {
            _ if x.ty().scalar != Scalar::Real => x,
            (Atom::Var(array), Atom::Var(_)) if array.ty.is_array() => {
                let n = self.b.dim(array, 0);
                let i = Self::index();
                self.b.push();
                let a = self.b.get(x, vec![i.into()]);
                let b = self.b.get(y, vec![i.into()]);
                let both = self.zip_leaf(prim, a, b);
                let body = self.b.pop(vec![both]);
                self.b.for_loop(i, n, Vec::new(), body)[0]
            }
            _ => self.b.scalar(prim, &[x, y]),
        }
    }

    pub(super) fn inner(&mut self, x: &Value, y: &Value, ty: &Type, span: Span) -> Lowered<Value> {
        self.check_tags(x, y)?;
        let (xs, ys) = (self.flatten(x, ty, span)?, self.flatten(y, ty, span)?);
        let sum = self.b.open("inner".into(), Atom::Real(0.0));
        for (x, y) in xs.into_iter().zip(ys) {
            self.check_same_shape(x, y, Failure::Shape);
            if x.ty().scalar == Scalar::Real {
                self.add_products(sum, x, y);
            }
        }
        Ok(Value::Leaf(self.b.freeze(sum)))
    }

    fn add_products(&mut self, sum: Var, x: Atom, y: Atom) {
        match x {
            Atom::Var(array) if array.ty.is_array() => {
                let n = self.b.dim(array, 0);
                let i = Self::index();
                self.b.push();
                let a = self.b.get(x, vec![i.into()]);
                let b = self.b.get(y, vec![i.into()]);
                self.add_products(sum, a, b);
                let body = self.b.pop(Vec::new());
                self.b.for_loop(i, n, Vec::new(), body);
            }
            _ => {
                let product = self.b.mul(x, y);
                self.b.accumulate(sum, Vec::new(), product);
            }
        }
    }

    /// Fails unless variants have the same constructors. Arrays of variants are compared where their elements meet.
    pub(super) fn check_tags(&mut self, x: &Value, y: &Value) -> Lowered<()> {
        with_stack(|| match (x, y) {
            (Value::Tuple(xs), Value::Tuple(ys)) => {
                xs.iter().zip(ys.iter()).try_for_each(|(x, y)| self.check_tags(x, y))
            }
            (Value::Variant { tag: s, fields: xs }, Value::Variant { tag: t, fields: ys }) => {
                let same = self.b.scalar(Prim::Equal, &[*s, *t]);
                self.b.check(same, Failure::Shape);
                for (x, y) in xs.iter().zip(ys.iter()) {
                    if let (Some(x), Some(y)) = (x, y) {
                        x.iter().zip(y).try_for_each(|(x, y)| self.check_tags(x, y))?;
                    }
                }
                Ok(())
            }
            (Value::Array(x), Value::Array(y)) if has_variant(x) => {
                let (x, y) = (x.clone(), y.clone());
                let (n, m) = (self.length(&x)?, self.length(&y)?);
                let same = self.b.scalar(Prim::Equal, &[n, m]);
                self.b.check(same, Failure::Shape);
                let i = Self::index();
                self.b.push();
                let (a, b) = (self.element(&x, i.into()), self.element(&y, i.into()));
                self.check_tags(&a, &b)?;
                let body = self.b.pop(Vec::new());
                self.b.for_loop(i, n, Vec::new(), body);
                Ok(())
            }
            _ => Ok(()),
        })
    }
}

fn has_variant(part: &super::value::Part) -> bool {
    use super::value::Part;
    match part {
        Part::Variant { .. } => true,
        Part::Leaf(_) | Part::Unit => false,
        Part::Tuple(parts) => parts.iter().any(has_variant),
        Part::Array(inner) => has_variant(inner),
    }
}
