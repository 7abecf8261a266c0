//! Order on data of any type: `<` and its kin.

use super::*;

impl<'a> Lowering<'a> {
    /// `<`, `<=`, `>`, `>=` on data.
    pub(in crate::lower) fn ordered(
        &mut self,
        prim: Prim,
        x: &Value,
        y: &Value,
        ty: &Type,
        span: Span,
    ) -> Lowered<Atom> {
        let order = self.order(x, y, ty, span)?;
        let known = self.b.scalar(Prim::NotEqual, &[order, Atom::Int(2)]);
        let holds = self.b.scalar(prim, &[order, Atom::Int(0)]);
        Ok(self.and(known, holds))
    }

    /// -1, 0 or 1, and 2 if a NaN decides.
    pub(in crate::lower) fn order(&mut self, x: &Value, y: &Value, ty: &Type, span: Span) -> Lowered<Atom> {
        with_stack(|| match (x, y, ty) {
            (Value::Leaf(x), Value::Leaf(y), _) => Ok(self.order_of_numbers(*x, *y)),
            (Value::Unit, _, _) => Ok(Atom::Int(0)),
            (Value::Text(x), Value::Text(y), _) => self.order_of_texts(*x, *y),
            (Value::Tuple(xs), Value::Tuple(ys), _) => {
                let types = self.part_types(ty, span)?;
                self.order_of_all(xs, ys, &types, span)
            }
            (Value::Variant { tag: s, .. }, Value::Variant { tag: t, .. }, _) => {
                // Fields of constructors that are not there are all alike.
                let first = self.order_of_numbers(*s, *t);
                let (mut xs, mut ys, mut types) = (Vec::new(), Vec::new(), Vec::new());
                let all_types = self.constructors(ty, span)?.concat();
                let (a, b) = (self.flatten(x, ty, span)?, self.flatten(y, ty, span)?);
                let (mut a, mut b) = (a.into_iter().skip(1), b.into_iter().skip(1));
                for ty in all_types {
                    xs.push(self.unflatten(&ty, &mut a, span)?);
                    ys.push(self.unflatten(&ty, &mut b, span)?);
                    types.push(ty);
                }
                self.then_order(first, &mut |s| s.order_of_all(&xs, &ys, &types, span))
            }
            (Value::Array(p), Value::Array(q), Type::Array(element)) => {
                let (p, q, element) = (p.clone(), q.clone(), element.clone());
                let (n, m) = (self.length(&p)?, self.length(&q)?);
                let first = self.order_of_numbers(n, m);
                self.then_order(first, &mut |s| {
                    s.first_difference(n, &mut |s, i| {
                        let (a, b) = (s.element(&p, i), s.element(&q, i));
                        s.order(&a, &b, &element, span)
                    })
                })
            }
            (Value::Boxed { cell: x, .. }, Value::Boxed { cell: y, .. }, _) => {
                let Some(shape) = x.ty().shape() else { gradus_source::bug!("a boxed value without a shape") };
                let other = [Leaf::boxed(shape)];
                let id = self.on_boxes(OnBoxes::Order, shape, &other, vec![Leaf::INT], span, &mut |s, p| {
                    let (x, y) = (Atom::Var(p[0]), Atom::Var(p[1]));
                    let (s_tag, t_tag) = (s.b.tag(x), s.b.tag(y));
                    let first = s.order_of_numbers(s_tag, t_tag);
                    let order = s.then_order(first, &mut |s| {
                        let all = s.by_tag(&[x, y], vec![Atom::Int(0)], span, &mut |s, _, types, fields| {
                            Ok(vec![s.order_of_all(&fields[0], &fields[1], types, span)?])
                        })?;
                        Ok(all[0])
                    })?;
                    Ok(vec![order])
                })?;
                Ok(self.call(id, vec![*x, *y])[0])
            }
            _ => gradus_source::bug!("values of different structure are compared"),
        })
    }

    pub(in crate::lower) fn part_types(&self, ty: &Type, span: Span) -> Lowered<Vec<Type>> {
        Ok(match ty {
            Type::Tuple(parts) => parts.to_vec(),
            _ => self.constructors(ty, span)?.concat(),
        })
    }

    pub(in crate::lower) fn order_of_all(
        &mut self,
        xs: &[Value],
        ys: &[Value],
        types: &[Type],
        span: Span,
    ) -> Lowered<Atom> {
        let (Some((x, xs)), Some((y, ys)), Some((ty, types))) =
            (xs.split_first(), ys.split_first(), types.split_first())
        else {
            return Ok(Atom::Int(0));
        };
        let first = self.order(x, y, ty, span)?;
        if xs.is_empty() {
            return Ok(first);
        }
        self.then_order(first, &mut |s| s.order_of_all(xs, ys, types, span))
    }

    /// The first order if it decides, otherwise the next.
    pub(in crate::lower) fn then_order(
        &mut self,
        first: Atom,
        next: &mut dyn FnMut(&mut Self) -> Lowered<Atom>,
    ) -> Lowered<Atom> {
        let equal = self.b.scalar(Prim::Equal, &[first, Atom::Int(0)]);
        self.b.push();
        let result = next(self)?;
        let then = self.b.pop(vec![result]);
        let otherwise = Block { stmts: Vec::new(), results: vec![first] };
        Ok(self.b.branch(equal, then, otherwise)[0])
    }

    pub(in crate::lower) fn order_of_numbers(&mut self, x: Atom, y: Atom) -> Atom {
        let (x, y) = match x.ty().scalar {
            Scalar::Bool => {
                let number = |s: &mut Self, b| s.b.select(b, Atom::Int(1), Atom::Int(0));
                (number(self, x), number(self, y))
            }
            Scalar::Real | Scalar::Int | Scalar::Box(_) => (x, y),
        };
        let below = self.b.scalar(Prim::Less, &[x, y]);
        let above = self.b.scalar(Prim::Greater, &[x, y]);
        let equal = self.b.scalar(Prim::Equal, &[x, y]);
        let rest = self.b.select(equal, Atom::Int(0), Atom::Int(2));
        let rest = self.b.select(above, Atom::Int(1), rest);
        self.b.select(below, Atom::Int(-1), rest)
    }

    /// The order of the first pair that is not equal, among so many.
    pub(in crate::lower) fn first_difference(
        &mut self,
        count: Atom,
        order_at: &mut dyn FnMut(&mut Self, Atom) -> Lowered<Atom>,
    ) -> Lowered<Atom> {
        let so_far = Var::fresh("order", Leaf::INT);
        let i = Self::index();
        self.b.push();
        let next = self.then_order(so_far.into(), &mut |s| order_at(s, i.into()))?;
        let body = self.b.pop(vec![next]);
        Ok(self.b.for_loop(i, count, vec![(so_far, Atom::Int(0))], body)[0])
    }

    /// By characters; a text comes before those that it begins.
    pub(in crate::lower) fn order_of_texts(&mut self, x: Atom, y: Atom) -> Lowered<Atom> {
        let (Atom::Var(a), Atom::Var(b)) = (x, y) else { gradus_source::bug!("a text that is no array") };
        let (n, m) = (self.b.dim(a, 0), self.b.dim(b, 0));
        let shorter = self.b.scalar(Prim::Less, &[n, m]);
        let common = self.b.select(shorter, n, m);
        let first = self.first_difference(common, &mut |s, i| {
            let (p, q) = (s.b.get(x, vec![i]), s.b.get(y, vec![i]));
            Ok(s.order_of_numbers(p, q))
        })?;
        self.then_order(first, &mut |s| Ok(s.order_of_numbers(n, m)))
    }
}
