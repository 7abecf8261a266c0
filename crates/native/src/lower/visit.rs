//! Walking through the reals of a value in the order of its text, with a counter: how many there are, which one is the k-th, all of them
//! in one array. For matrices over data whose leaves do not stand in that order: arrays of structures, variants, boxes.

use super::layout::views;
use super::structural::OnBoxes;
use super::value::{Part, Value};
use super::{Lowered, Lowering};
use crate::flow::{Atom, Type as Leaf, Var};
use gradus_core::traverse::with_stack;
use gradus_core::{Prim, Type};
use gradus_source::Span;

/// What is done with each real.
#[derive(Clone, Copy)]
pub(super) enum Visit {
    Count,
    /// 1 if it has this number, otherwise 0.
    OneHot(Atom),
    /// Added to the accumulator, at its number.
    Write(Var),
    /// The element of this array with its number.
    Read(Var),
}

impl Lowering<'_> {
    /// Visits the reals of a value, the first of which has the number `from`; gives the value that results and the next number.
    pub(super) fn visit(
        &mut self,
        value: &Value,
        ty: &Type,
        from: Atom,
        what: Visit,
        span: Span,
    ) -> Lowered<(Value, Atom)> {
        with_stack(|| match (value, ty) {
            (Value::Leaf(atom), Type::Real) => {
                let new = match what {
                    Visit::Count => *atom,
                    Visit::OneHot(number) => {
                        let here = self.b.scalar(Prim::Equal, &[from, number]);
                        self.b.select(here, Atom::Real(1.0), Atom::Real(0.0))
                    }
                    Visit::Write(acc) => {
                        self.b.accumulate(acc, vec![from], *atom);
                        *atom
                    }
                    Visit::Read(reals) => self.b.get(reals.into(), vec![from]),
                };
                let next = self.b.scalar(Prim::AddInt, &[from, Atom::Int(1)]);
                Ok((Value::Leaf(new), next))
            }
            (Value::Tuple(items), _) => {
                let types = match ty {
                    Type::Tuple(parts) => parts.to_vec(),
                    _ => self.constructors(ty, span)?.concat(),
                };
                let (items, next) = self.visit_all(items, &types, from, what, span)?;
                Ok((Value::tuple(items), next))
            }
            (Value::Variant { tag, .. }, _) => {
                let leaves = self.flatten(value, ty, span)?;
                let Value::Variant { fields, .. } = self.unflatten(ty, &mut leaves.into_iter(), span)? else {
                    gradus_source::bug!("a variant that is none")
                };
                let fields: Vec<Vec<Value>> = fields.iter().map(|f| f.clone().unwrap_or_default()).collect();
                let both = self.visit_variant(*tag, &fields, 0, ty, from, what, span)?;
                match both {
                    Value::Tuple(both) => Ok((both[0].clone(), self.leaf(&both[1]))),
                    _ => gradus_source::bug!("a visit gives a pair"),
                }
            }
            (Value::Array(part), Type::Array(element)) => {
                let (part, element) = (part.clone(), element.clone());
                self.visit_array(&part, &element, from, what, span)
            }
            (Value::Boxed { cell, ty, .. }, _) => {
                let (cell, next) = self.visit_box(*cell, from, what, span)?;
                Ok((Value::Boxed { cell, ty: ty.clone(), known: None }, next))
            }
            (value, _) => Ok((value.clone(), from)),
        })
    }

    fn visit_all(
        &mut self,
        items: &[Value],
        types: &[Type],
        from: Atom,
        what: Visit,
        span: Span,
    ) -> Lowered<(Vec<Value>, Atom)> {
        let (mut new, mut next) = (Vec::new(), from);
        for (item, ty) in items.iter().zip(types) {
            let (item, after) = self.visit(item, ty, next, what, span)?;
            new.push(item);
            next = after;
        }
        Ok((new, next))
    }

    /// The constructors from `number` on.
    #[allow(clippy::too_many_arguments)]
    fn visit_variant(
        &mut self,
        tag: Atom,
        fields: &[Vec<Value>],
        number: usize,
        ty: &Type,
        from: Atom,
        what: Visit,
        span: Span,
    ) -> Lowered<Value> {
        let constructors = self.constructors(ty, span)?;
        let mut here = |s: &mut Self| -> Lowered<Value> {
            let (new, next) = s.visit_all(&fields[number], &constructors[number], from, what, span)?;
            let mut all = vec![None; constructors.len()];
            all[number] = Some(new);
            let value = Value::Variant { tag: Atom::Int(number as i64), fields: all.into() };
            Ok(Value::tuple(vec![value, Value::Leaf(next)]))
        };
        if number + 1 == constructors.len() {
            return here(self);
        }
        let is_here = self.b.scalar(Prim::Equal, &[tag, Atom::Int(number as i64)]);
        self.choose(is_here, span, &mut here, &mut |s| s.visit_variant(tag, fields, number + 1, ty, from, what, span))
    }

    fn visit_array(
        &mut self,
        part: &Part,
        element: &Type,
        from: Atom,
        what: Visit,
        span: Span,
    ) -> Lowered<(Value, Atom)> {
        let count = self.length(part)?;
        let number = Var::fresh("number", Leaf::INT);
        let i = Self::index();
        self.b.push();
        let value = self.element(part, i.into());
        let (new, next) = self.visit(&value, element, number.into(), what, span)?;
        let mut results = vec![next];
        if let Visit::OneHot(_) | Visit::Read(_) = what {
            results.extend(self.flatten_element(&new, element, span)?);
            if matches!(part, Part::Counted(_)) {
                results.push(Atom::Bool(false));
            }
        }
        let body = self.b.pop(results);
        let mut found = self.b.for_loop(i, count, vec![(number, from)], body).into_iter();
        let next = found.next().unwrap_or(from);
        let array = match what {
            Visit::OneHot(_) | Visit::Read(_) => self.unflatten(&Type::array(element.clone()), &mut found, span)?,
            Visit::Count | Visit::Write(_) => {
                let leaves: Vec<Atom> = views(part).iter().map(|v| self.whole(v)).collect();
                self.unflatten(&Type::array(element.clone()), &mut leaves.into_iter(), span)?
            }
        };
        Ok((array, next))
    }

    fn visit_box(&mut self, cell: Atom, from: Atom, what: Visit, span: Span) -> Lowered<(Atom, Atom)> {
        let Some(shape) = cell.ty().shape() else { gradus_source::bug!("a box without a shape") };
        let (key, more, mut args) = match what {
            Visit::Count => (OnBoxes::Count, Vec::new(), Vec::new()),
            Visit::OneHot(number) => (OnBoxes::OneHot, vec![Leaf::INT], vec![number]),
            Visit::Write(acc) => (OnBoxes::Write, vec![acc.ty], vec![Atom::Var(acc)]),
            Visit::Read(reals) => (OnBoxes::Read, vec![reals.ty], vec![Atom::Var(reals)]),
        };
        let types = [vec![Leaf::INT], more].concat();
        let result = vec![Leaf::boxed(shape), Leaf::INT];
        let id = self.on_boxes(key, shape, &types, result, span, &mut |s, p| {
            let what = match what {
                Visit::Count => Visit::Count,
                Visit::OneHot(_) => Visit::OneHot(p[2].into()),
                Visit::Write(_) => Visit::Write(p[2]),
                Visit::Read(_) => Visit::Read(p[2]),
            };
            s.by_tag(&[p[0].into()], vec![Atom::Nil(shape), p[1].into()], span, &mut |s, tag, types, fields| {
                let (new, next) = s.visit_all(&fields[0], types, p[1].into(), what, span)?;
                let mut leaves = Vec::new();
                for (value, ty) in new.iter().zip(types) {
                    leaves.extend(s.flatten(value, ty, span)?);
                }
                Ok(vec![s.b.cell(shape, tag, leaves), next])
            })
        })?;
        let mut all = vec![cell, from];
        all.append(&mut args);
        match self.call(id, all)[..] {
            [new, next] => Ok((new, next)),
            _ => gradus_source::bug!("a visit gives a pair"),
        }
    }

    /// How many reals a value has.
    pub(super) fn count(&mut self, value: &Value, ty: &Type, span: Span) -> Lowered<Atom> {
        Ok(self.visit(value, ty, Atom::Int(0), Visit::Count, span)?.1)
    }

    /// A value with its reals replaced: 1 for the one with the number, 0 for the others.
    pub(super) fn basis(&mut self, value: &Value, ty: &Type, number: Atom, span: Span) -> Lowered<Value> {
        Ok(self.visit(value, ty, Atom::Int(0), Visit::OneHot(number), span)?.0)
    }

    /// A value with its reals from an array, in order.
    pub(super) fn with_reals(&mut self, reals: &Value, like: &Value, ty: &Type, span: Span) -> Lowered<Value> {
        match self.flatten(reals, &Type::array(Type::Real), span)?[..] {
            [Atom::Var(reals)] => Ok(self.visit(like, ty, Atom::Int(0), Visit::Read(reals), span)?.0),
            _ => gradus_source::bug!("reals that are no array"),
        }
    }

    /// All reals of a value in one array.
    pub(super) fn all_reals(&mut self, value: &Value, ty: &Type, span: Span) -> Lowered<Value> {
        let (_, count) = self.visit(value, ty, Atom::Int(0), Visit::Count, span)?;
        let zeros = self.b.fill(vec![count], Atom::Real(0.0));
        let acc = self.b.open("reals".into(), zeros);
        self.visit(value, ty, Atom::Int(0), Visit::Write(acc), span)?;
        let all = self.b.freeze(acc);
        self.unflatten(&Type::array(Type::Real), &mut [all].into_iter(), span)
    }

    /// A row for each real of the output and a column for each of the input, in the order of the values.
    pub(super) fn jacobian_in_order(
        &mut self,
        f: &Value,
        x: &Value,
        types: (&Type, &Type),
        span: Span,
    ) -> Lowered<Value> {
        let (_, count) = self.visit(x, types.0, Atom::Int(0), Visit::Count, span)?;
        let columns = self.build_with(count, &Type::array(Type::Real), span, &mut |s, j| {
            let (dx, _) = s.visit(x, types.0, Atom::Int(0), Visit::OneHot(j), span)?;
            let (_, column) = s.jvp(f, x, &dx, types, span)?;
            s.all_reals(&column, types.1, span)
        })?;
        let Value::Array(part) = columns else { gradus_source::bug!("the columns of a Jacobian are no array") };
        let value = self.apply(f.clone(), x.clone(), span)?;
        let (_, rows) = self.visit(&value, types.1, Atom::Int(0), Visit::Count, span)?;
        self.build_with(rows, &Type::array(Type::Real), span, &mut |s, i| {
            s.build_with(count, &Type::Real, span, &mut |s, j| {
                let Value::Array(column) = s.element(&part, j) else {
                    gradus_source::bug!("a column of a Jacobian is no array")
                };
                Ok(s.element(&column, i))
            })
        })
    }

    /// `taylor order f x` for an order that is known: the derivatives one after the other, forwards.
    pub(super) fn taylor(&mut self, order: usize, f: &Value, x: &Value, span: Span) -> Lowered<Value> {
        let mut function = f.clone();
        let (mut coefficients, mut factorial) = (Vec::new(), 1.0);
        for k in 0..=order {
            let derivative = self.apply(function.clone(), x.clone(), span)?;
            let derivative = self.leaf(&derivative);
            if k > 1 {
                factorial *= k as f64;
            }
            let coefficient = self.b.scalar(Prim::DivReal, &[derivative, Atom::Real(factorial)]);
            coefficients.push(Value::Leaf(coefficient));
            let next = super::value::Function::Derivative {
                op: gradus_core::DeriveOp::Diff,
                types: Vec::new().into(),
                args: vec![function],
            };
            function = Value::Function(std::rc::Rc::new(next));
        }
        self.array_literal(&Type::Real, &coefficients, span)
    }
}
