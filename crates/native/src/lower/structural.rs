//! Operations on data of any shape, written out by their structure: equality, order, and the vector-space operations. On boxes they are
//! functions, one for each operation and shape (and place, if they can fail).

mod order;

use super::heap::choose_case;
use super::value::{Part, Value};
use super::{Lowered, Lowering};
use crate::flow::{self, Atom, Block, Builder, Failure, FunctionId, Name, Op, Scalar, ShapeId, Type as Leaf, Var};
use gradus_core::traverse::with_stack;
use gradus_core::{Prim, Type};
use gradus_source::Span;

/// What is done with boxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum OnBoxes {
    Equal,
    /// -1, 0 or 1, and 2 if a NaN decides.
    Order,
    Zip(Prim),
    /// Times a number.
    Scale,
    /// Adds products to an accumulator.
    Inner,
    Zero,
    /// A value and the reals that take the place of its own.
    Rebuild,
    /// The reals of a value that must have the shape of another one.
    Project,
    /// See `visit`.
    Count,
    OneHot,
    Write,
    Read,
}

/// Two operands, for each of them the fields of a cell.
pub(super) type OnFields<'f, 'a> =
    &'f mut dyn FnMut(&mut Lowering<'a>, usize, &[Type], &[Vec<Value>]) -> Lowered<Vec<Atom>>;

/// What such a function does with its parameters.
type OnParams<'f, 'a> = dyn FnMut(&mut Lowering<'a>, &[Var]) -> Lowered<Vec<Atom>> + 'f;

impl<'a> Lowering<'a> {
    /// The function that does something with boxes; `boxes` of its parameters are boxes of the shape, `more` follow.
    pub(super) fn on_boxes(
        &mut self,
        what: OnBoxes,
        shape: ShapeId,
        more: &[Leaf],
        results: Vec<Leaf>,
        span: Span,
        body: &mut OnParams<'_, 'a>,
    ) -> Lowered<FunctionId> {
        let place = match what {
            OnBoxes::Zip(_) | OnBoxes::Inner | OnBoxes::Project => span,
            OnBoxes::Equal | OnBoxes::Order | OnBoxes::Scale | OnBoxes::Zero | OnBoxes::Rebuild => Span::default(),
            OnBoxes::Count | OnBoxes::OneHot | OnBoxes::Write | OnBoxes::Read => Span::default(),
        };
        let key = (what, shape, place);
        if let Some(known) = self.heap.on_boxes.get(&key) {
            return Ok(*known);
        }
        let mut params = vec![Var::fresh("x", Leaf::boxed(shape))];
        params.extend(more.iter().map(|ty| Var::fresh("y", *ty)));
        let id = FunctionId(self.module.functions.len());
        let name = Name::new(&format!("boxes_{what:?}_{}", self.module.shape(shape).name).to_lowercase());
        self.module.functions.push(flow::Function {
            name,
            params: params.clone(),
            results,
            body: Block::unfinished(),
            rule: None,
        });
        self.heap.on_boxes.insert(key, id);
        let inner = self.b.another();
        let outer = std::mem::replace(&mut self.b, inner);
        self.b.span = place;
        let results = body(self, &params);
        let made = std::mem::replace(&mut self.b, outer);
        let mut made = made;
        self.module.functions[id.0].body = made.pop(results?);
        Ok(id)
    }

    pub(super) fn call(&mut self, id: FunctionId, args: Vec<Atom>) -> Vec<Atom> {
        let results: Vec<Var> = self.module.function(id).results.iter().map(|ty| Var::fresh("r", *ty)).collect();
        self.b.bind(results.clone(), Op::Call { function: id, args });
        results.into_iter().map(Atom::Var).collect()
    }

    /// Chooses by the tag of the first box, which the others are known to share; `nil` is the answer if it is nothing.
    pub(super) fn by_tag(
        &mut self,
        cells: &[Atom],
        nil: Vec<Atom>,
        span: Span,
        case: OnFields<'_, 'a>,
    ) -> Lowered<Vec<Atom>> {
        let Some(shape) = cells[0].ty().shape() else { gradus_source::bug!("the tag of something that is no box") };
        let Some((ty, wrapped)) = self.type_of_shape(shape) else { return Ok(nil) };
        let constructors = if wrapped { vec![vec![ty]] } else { self.constructors(&ty, span)? };
        let tag = self.b.tag(cells[0]);
        let mut cases = Vec::new();
        for (number, types) in constructors.iter().enumerate() {
            self.b.push();
            let mut fields = Vec::new();
            for cell in cells {
                fields.push(self.fields_of(*cell, number, types, span)?);
            }
            let results = case(self, number, types, &fields)?;
            cases.push((number, self.b.pop(results)));
        }
        let is_nil = self.b.scalar(Prim::Less, &[tag, Atom::Int(0)]);
        self.b.push();
        let results = choose_case(&mut self.b, tag, cases, nil.clone());
        let chosen = self.b.pop(results);
        Ok(self.b.branch(is_nil, Block { stmts: Vec::new(), results: nil }, chosen))
    }

    /// Structural equality.
    pub(super) fn equal(&mut self, x: &Value, y: &Value, ty: &Type, span: Span) -> Lowered<Atom> {
        let (xs, ys) = (self.flatten(x, ty, span)?, self.flatten(y, ty, span)?);
        self.equal_leaves(&xs, &ys, span)
    }

    /// Fields of constructors that are not there are all alike, so that leaves can be compared one by one, as long as they agree.
    fn equal_leaves(&mut self, xs: &[Atom], ys: &[Atom], span: Span) -> Lowered<Atom> {
        let (Some((x, xs)), Some((y, ys))) = (xs.split_first(), ys.split_first()) else { return Ok(Atom::Bool(true)) };
        let first = self.equal_leaf(*x, *y, span)?;
        if xs.is_empty() {
            return Ok(first);
        }
        self.b.push();
        let rest = self.equal_leaves(xs, ys, span)?;
        let then = self.b.pop(vec![rest]);
        if then.stmts.is_empty() {
            return Ok(self.and(first, rest));
        }
        let otherwise = Block { stmts: Vec::new(), results: vec![Atom::Bool(false)] };
        Ok(self.b.branch(first, then, otherwise)[0])
    }

    fn equal_leaf(&mut self, x: Atom, y: Atom, span: Span) -> Lowered<Atom> {
        match (x, y) {
            (Atom::Var(a), Atom::Var(b)) if a.ty.is_array() => {
                let (n, m) = (self.b.dim(a, 0), self.b.dim(b, 0));
                let same_length = self.b.scalar(Prim::Equal, &[n, m]);
                let count = self.b.select(same_length, n, Atom::Int(0));
                let i = Self::index();
                let so_far = Var::fresh("equal", Leaf::BOOL);
                self.b.push();
                let (p, q) = (self.b.get(x, vec![i.into()]), self.b.get(y, vec![i.into()]));
                let equal = self.equal_leaf(p, q, span)?;
                let next = self.and(so_far.into(), equal);
                let body = self.b.pop(vec![next]);
                Ok(self.b.for_loop(i, count, vec![(so_far, same_length)], body)[0])
            }
            _ => match x.ty().shape() {
                None => Ok(self.b.scalar(Prim::Equal, &[x, y])),
                Some(shape) => {
                    let other = [Leaf::boxed(shape)];
                    let id = self.on_boxes(OnBoxes::Equal, shape, &other, vec![Leaf::BOOL], span, &mut |s, p| {
                        let (x, y) = (Atom::Var(p[0]), Atom::Var(p[1]));
                        let (s_tag, t_tag) = (s.b.tag(x), s.b.tag(y));
                        let same = s.b.scalar(Prim::Equal, &[s_tag, t_tag]);
                        s.b.push();
                        let inside = s.by_tag(&[x, y], vec![Atom::Bool(true)], span, &mut |s, _, types, fields| {
                            let ty = Type::tuple(types.to_vec());
                            let (a, b) = (Value::tuple(fields[0].clone()), Value::tuple(fields[1].clone()));
                            Ok(vec![s.equal(&a, &b, &ty, span)?])
                        })?;
                        let then = s.b.pop(inside);
                        let otherwise = Block { stmts: Vec::new(), results: vec![Atom::Bool(false)] };
                        Ok(s.b.branch(same, then, otherwise))
                    })?;
                    Ok(self.call(id, vec![x, y])[0])
                }
            },
        }
    }

    /// The value with each of its reals replaced.
    pub(super) fn scaled(&mut self, k: Atom, x: &Value, ty: &Type, span: Span) -> Lowered<Value> {
        let leaves = self.flatten(x, ty, span)?;
        let mapped = leaves.into_iter().map(|a| self.scale_leaf(k, a, span)).collect::<Lowered<Vec<_>>>()?;
        self.unflatten(ty, &mut mapped.into_iter(), span)
    }

    fn scale_leaf(&mut self, k: Atom, leaf: Atom, span: Span) -> Lowered<Atom> {
        self.map_leaf(leaf, &mut |s, leaf| match leaf.ty().shape() {
            None => Ok(s.b.mul(k, leaf)),
            Some(shape) => {
                let result = vec![Leaf::boxed(shape)];
                let id = s.on_boxes(OnBoxes::Scale, shape, &[Leaf::REAL], result, span, &mut |s, p| {
                    s.remade(p[0].into(), span, &mut |s, value, ty| s.scaled(p[1].into(), value, ty, span))
                })?;
                Ok(s.call(id, vec![leaf, k])[0])
            }
        })
    }

    pub(super) fn zero_like(&mut self, x: &Value, ty: &Type, span: Span) -> Lowered<Value> {
        let leaves = self.flatten(x, ty, span)?;
        let mut zeros = Vec::new();
        for leaf in leaves {
            zeros.push(if leaf.ty().is_real() {
                self.b.zeros_like(leaf)
            } else {
                self.map_leaf(leaf, &mut |s, leaf| {
                    let Some(shape) = leaf.ty().shape() else { gradus_source::bug!("a real was not seen") };
                    let result = vec![Leaf::boxed(shape)];
                    let id = s.on_boxes(OnBoxes::Zero, shape, &[], result, span, &mut |s, p| {
                        s.remade(p[0].into(), span, &mut |s, value, ty| s.zero_like(value, ty, span))
                    })?;
                    Ok(s.call(id, vec![leaf])[0])
                })?
            });
        }
        self.unflatten(ty, &mut zeros.into_iter(), span)
    }

    /// The box with each of its fields replaced.
    fn remade(
        &mut self,
        cell: Atom,
        span: Span,
        field: &mut dyn FnMut(&mut Self, &Value, &Type) -> Lowered<Value>,
    ) -> Lowered<Vec<Atom>> {
        let Some(shape) = cell.ty().shape() else { gradus_source::bug!("a box without a shape") };
        self.by_tag(&[cell], vec![Atom::Nil(shape)], span, &mut |s, tag, types, fields| {
            let mut leaves = Vec::new();
            for (value, ty) in fields[0].iter().zip(types) {
                let value = field(s, value, ty)?;
                leaves.extend(s.flatten(&value, ty, span)?);
            }
            Ok(vec![s.b.cell(shape, tag, leaves)])
        })
    }

    /// Something done to every real and box of a leaf.
    fn map_leaf(&mut self, leaf: Atom, f: &mut dyn FnMut(&mut Self, Atom) -> Lowered<Atom>) -> Lowered<Atom> {
        match leaf {
            _ if !leaf.ty().may_be_active() => Ok(leaf),
            Atom::Var(array) if array.ty.is_array() => {
                let n = self.b.dim(array, 0);
                let i = Self::index();
                self.b.push();
                let element = self.b.get(leaf, vec![i.into()]);
                let mapped = self.map_leaf(element, f)?;
                let body = self.b.pop(vec![mapped]);
                Ok(self.b.for_loop(i, n, Vec::new(), body)[0])
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
            combined.push(self.zip_leaf(x, y, &mut |s, x, y| match x.ty().shape() {
                None => Ok(s.b.scalar(prim, &[x, y])),
                Some(shape) => {
                    let (more, result) = ([Leaf::boxed(shape)], vec![Leaf::boxed(shape)]);
                    let id = s.on_boxes(OnBoxes::Zip(prim), shape, &more, result, span, &mut |s, p| {
                        s.zip_boxes(p, span, &mut |s, x, y, ty| s.zip_reals(prim, x, y, ty, span))
                    })?;
                    Ok(s.call(id, vec![x, y])[0])
                }
            })?);
        }
        self.unflatten(ty, &mut combined.into_iter(), span)
    }

    /// Two boxes of the same constructor, combined field by field.
    fn zip_boxes(
        &mut self,
        params: &[Var],
        span: Span,
        field: &mut dyn FnMut(&mut Self, &Value, &Value, &Type) -> Lowered<Value>,
    ) -> Lowered<Vec<Atom>> {
        let (x, y) = (Atom::Var(params[0]), Atom::Var(params[1]));
        self.check_boxes(x, y);
        let Some(shape) = x.ty().shape() else { gradus_source::bug!("a box without a shape") };
        self.by_tag(&[x, y], vec![Atom::Nil(shape)], span, &mut |s, tag, types, fields| {
            let mut leaves = Vec::new();
            for ((x, y), ty) in fields[0].iter().zip(&fields[1]).zip(types) {
                let value = field(s, x, y, ty)?;
                leaves.extend(s.flatten(&value, ty, span)?);
            }
            Ok(vec![s.b.cell(shape, tag, leaves)])
        })
    }

    /// Fails unless two boxes have the same constructor.
    fn check_boxes(&mut self, x: Atom, y: Atom) {
        let (s, t) = (self.b.tag(x), self.b.tag(y));
        let same = self.b.scalar(Prim::Equal, &[s, t]);
        self.b.check(same, Failure::Shape);
    }

    fn zip_leaf(
        &mut self,
        x: Atom,
        y: Atom,
        f: &mut dyn FnMut(&mut Self, Atom, Atom) -> Lowered<Atom>,
    ) -> Lowered<Atom> {
        match (x, y) {
            _ if !x.ty().may_be_active() => Ok(x),
            (Atom::Var(array), Atom::Var(_)) if array.ty.is_array() => {
                let n = self.b.dim(array, 0);
                let i = Self::index();
                self.b.push();
                let a = self.b.get(x, vec![i.into()]);
                let b = self.b.get(y, vec![i.into()]);
                let both = self.zip_leaf(a, b, f)?;
                let body = self.b.pop(vec![both]);
                Ok(self.b.for_loop(i, n, Vec::new(), body)[0])
            }
            _ => f(self, x, y),
        }
    }

    pub(super) fn inner(&mut self, x: &Value, y: &Value, ty: &Type, span: Span) -> Lowered<Value> {
        let sum = self.b.open("inner".into(), Atom::Real(0.0));
        self.add_inner(sum, x, y, ty, span)?;
        Ok(Value::Leaf(self.b.freeze(sum)))
    }

    fn add_inner(&mut self, sum: Var, x: &Value, y: &Value, ty: &Type, span: Span) -> Lowered<()> {
        self.check_tags(x, y)?;
        let (xs, ys) = (self.flatten(x, ty, span)?, self.flatten(y, ty, span)?);
        for (x, y) in xs.into_iter().zip(ys) {
            self.check_same_shape(x, y, Failure::Shape);
            if x.ty().may_be_active() {
                self.add_products(sum, x, y, span)?;
            }
        }
        Ok(())
    }

    fn add_products(&mut self, sum: Var, x: Atom, y: Atom, span: Span) -> Lowered<()> {
        match x {
            Atom::Var(array) if array.ty.is_array() => {
                let n = self.b.dim(array, 0);
                let i = Self::index();
                self.b.push();
                let a = self.b.get(x, vec![i.into()]);
                let b = self.b.get(y, vec![i.into()]);
                self.add_products(sum, a, b, span)?;
                let body = self.b.pop(Vec::new());
                self.b.for_loop(i, n, Vec::new(), body);
            }
            _ => match x.ty().shape() {
                None => {
                    let product = self.b.mul(x, y);
                    self.b.accumulate(sum, Vec::new(), product);
                }
                Some(shape) => {
                    let more = [Leaf::boxed(shape), Leaf::REAL.accumulator()];
                    let id = self.on_boxes(OnBoxes::Inner, shape, &more, Vec::new(), span, &mut |s, p| {
                        let (x, y) = (Atom::Var(p[0]), Atom::Var(p[1]));
                        s.check_boxes(x, y);
                        s.by_tag(&[x, y], Vec::new(), span, &mut |s, _, types, fields| {
                            for ((x, y), ty) in fields[0].iter().zip(&fields[1]).zip(types) {
                                s.add_inner(p[2], x, y, ty, span)?;
                            }
                            Ok(Vec::new())
                        })
                    })?;
                    self.call(id, vec![x, y, sum.into()]);
                }
            },
        }
        Ok(())
    }

    /// A leaf with the reals that its derivative has, zero where that is nothing.
    pub(super) fn rebuild_leaf(&mut self, x: Atom, linear: Atom, span: Span) -> Lowered<Atom> {
        if x.ty().is_real() {
            return Ok(linear);
        }
        self.zip_leaf(x, linear, &mut |s, x, linear| {
            let Some(shape) = x.ty().shape() else { return Ok(linear) };
            let (more, result) = ([linear.ty()], vec![Leaf::boxed(shape)]);
            let id = s.on_boxes(OnBoxes::Rebuild, shape, &more, result, span, &mut |s, p| s.rebuild_box(p, span))?;
            Ok(s.call(id, vec![x, linear])[0])
        })
    }

    fn rebuild_box(&mut self, params: &[Var], span: Span) -> Lowered<Vec<Atom>> {
        let (x, linear) = (Atom::Var(params[0]), Atom::Var(params[1]));
        let (Some(shape), Some(linear_shape)) = (x.ty().shape(), linear.ty().shape()) else {
            gradus_source::bug!("a box without a shape")
        };
        self.by_tag(&[x], vec![Atom::Nil(shape)], span, &mut |s, tag, types, fields| {
            let mut leaves = Vec::new();
            for (value, ty) in fields[0].iter().zip(types) {
                leaves.extend(s.flatten(value, ty, span)?);
            }
            let types = s.module.fields(linear_shape, tag).to_vec();
            if types.is_empty() {
                return Ok(vec![s.b.cell(shape, tag, leaves)]);
            }
            // Each side makes its cell, so that the parts of the derivative are only looked at and never held.
            let found = s.b.tag(linear);
            let nothing = s.b.scalar(Prim::Less, &[found, Atom::Int(0)]);
            let mut sides = Vec::new();
            for zero in [true, false] {
                s.b.push();
                let reals = if zero {
                    let active = leaves.iter().filter(|a| a.ty().may_be_active());
                    active.map(|a| s.b.linear_zeros_like(&mut s.module, *a)).collect()
                } else {
                    s.b.unpack(&types, linear, tag)
                };
                let mut reals = reals.into_iter();
                let mut rebuilt = Vec::new();
                for leaf in &leaves {
                    rebuilt.push(match leaf.ty().may_be_active() {
                        true => match reals.next() {
                            Some(real) => s.rebuild_leaf(*leaf, real, span)?,
                            None => gradus_source::bug!("a linear cell with too few fields"),
                        },
                        false => *leaf,
                    });
                }
                let cell = s.b.cell(shape, tag, rebuilt);
                sides.push(s.b.pop(vec![cell]));
            }
            let (otherwise, then) = (sides.pop().unwrap_or_default(), sides.pop().unwrap_or_default());
            Ok(s.b.branch(nothing, then, otherwise))
        })
    }

    /// The reals of a leaf, which must have the shape of another one.
    pub(super) fn project_leaf(&mut self, leaf: Atom, like: Atom, span: Span) -> Lowered<Atom> {
        self.check_same_shape(leaf, like, Failure::Shape);
        if leaf.ty().is_real() {
            return Ok(leaf);
        }
        self.zip_leaf(leaf, like, &mut |s, leaf, like| {
            let Some(shape) = leaf.ty().shape() else { return Ok(leaf) };
            let id = s.project_function(shape, span)?;
            Ok(s.call(id, vec![leaf, like])[0])
        })
    }

    /// The function that takes a box and one whose shape it must have, and gives the reals of the first.
    pub(super) fn project_function(&mut self, shape: ShapeId, span: Span) -> Lowered<FunctionId> {
        let linear = self.module.linear(shape);
        let (more, result) = ([Leaf::boxed(shape)], vec![Leaf::boxed(linear)]);
        self.on_boxes(OnBoxes::Project, shape, &more, result, span, &mut |s, p| {
            let (x, like) = (Atom::Var(p[0]), Atom::Var(p[1]));
            s.check_boxes(x, like);
            s.by_tag(&[x, like], vec![Atom::Nil(linear)], span, &mut |s, tag, types, fields| {
                let mut leaves = Vec::new();
                for ((x, like), ty) in fields[0].iter().zip(&fields[1]).zip(types) {
                    s.check_tags(x, like)?;
                    let (xs, likes) = (s.flatten(x, ty, span)?, s.flatten(like, ty, span)?);
                    for (x, like) in xs.into_iter().zip(likes).filter(|(x, _)| x.ty().may_be_active()) {
                        leaves.push(s.project_leaf(x, like, span)?);
                    }
                }
                Ok(vec![s.b.cell(linear, tag, leaves)])
            })
        })
    }

    /// Fails unless variants have the same constructors. Arrays of variants are compared where their elements meet, and boxes inside.
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

fn has_variant(part: &Part) -> bool {
    match part {
        Part::Variant { .. } => true,
        Part::Leaf(_) | Part::Unit | Part::Boxed { .. } | Part::Wrapped { .. } | Part::Counted(_) => false,
        Part::Tuple(parts) => parts.iter().any(has_variant),
        Part::Array(inner) => has_variant(inner),
    }
}

/// The fields of a linear box for a cell with a tag and these fields: zeros if it is nothing.
pub(crate) fn linear_fields(
    b: &mut Builder,
    module: &mut flow::Module,
    linear: Atom,
    shape: ShapeId,
    tag: usize,
    fields: &[Atom],
) -> Vec<Atom> {
    let types = module.fields(shape, tag).to_vec();
    if types.is_empty() {
        return Vec::new();
    }
    let found = b.tag(linear);
    let nothing = b.scalar(Prim::Less, &[found, Atom::Int(0)]);
    b.push();
    let active: Vec<Atom> = fields.iter().copied().filter(|a| a.ty().may_be_active()).collect();
    let zeros = active.into_iter().map(|a| b.linear_zeros_like(module, a)).collect();
    let then = b.pop(zeros);
    b.push();
    let unpacked = b.unpack(&types, linear, tag);
    let otherwise = b.pop(unpacked);
    b.branch(nothing, then, otherwise)
}
