//! How types are laid out in registers and arrays, and values between their structure and their leaves.

use super::value::{Part, Value, View};
use super::{Lowered, Lowering};
use crate::flow::{Atom, Failure, Type as Leaf};
use crate::refusal::Reason;
use gradus_core::traverse::with_stack;
use gradus_core::{Type, TypeBody};
use gradus_source::Span;
use std::rc::Rc;

/// The fields of a declared type at its arguments.
pub enum Shape {
    Record(Vec<Type>),
    Variant(Vec<Vec<Type>>),
}

impl Lowering<'_> {
    /// The constructors of a declared type that is not recursive.
    pub(super) fn shape(&self, ty: &Type, span: Span) -> Lowered<Shape> {
        let Type::Named(name, args) = ty else {
            gradus_source::bug!("the shape of a type that was not declared");
        };
        let Some(decl) = self.types.get(name) else {
            return self.refuse(Reason::Foreign(format!("the type `{}`", name.base)), span);
        };
        let constructors = decl.constructors(args).into_iter().map(|(_, fields)| fields);
        Ok(match &decl.body {
            TypeBody::Record(_) => Shape::Record(constructors.flatten().collect()),
            TypeBody::Variant(_) => Shape::Variant(constructors.collect()),
        })
    }

    /// The flow types of a type's leaves, in order.
    pub(crate) fn leaves(&self, ty: &Type, span: Span) -> Lowered<Vec<Leaf>> {
        let mut leaves = Vec::new();
        self.add_leaves(ty, span, &mut Vec::new(), &mut leaves)?;
        match leaves.iter().find(|l| l.rank > Leaf::MAX_RANK) {
            Some(leaf) => self.refuse(Reason::Rank(leaf.rank as usize), span),
            None => Ok(leaves),
        }
    }

    fn add_leaves(&self, ty: &Type, span: Span, inside: &mut Vec<Type>, leaves: &mut Vec<Leaf>) -> Lowered<()> {
        with_stack(|| match ty {
            Type::Real | Type::Int | Type::Bool => {
                leaves.push(match ty {
                    Type::Real => Leaf::REAL,
                    Type::Int => Leaf::INT,
                    _ => Leaf::BOOL,
                });
                Ok(())
            }
            // A string cannot be looked into, so nothing of it is kept; making one is refused.
            Type::Unit | Type::String => Ok(()),
            Type::Tuple(parts) => parts.iter().try_for_each(|t| self.add_leaves(t, span, inside, leaves)),
            Type::Named(..) => {
                if inside.contains(ty) {
                    return self.refuse(Reason::Type(gradus_core::print::print_type(ty)), span);
                }
                inside.push(ty.clone());
                match self.shape(ty, span)? {
                    Shape::Record(fields) => {
                        fields.iter().try_for_each(|t| self.add_leaves(t, span, inside, leaves))?;
                    }
                    Shape::Variant(constructors) => {
                        leaves.push(Leaf::INT);
                        for field in constructors.iter().flatten() {
                            self.add_leaves(field, span, inside, leaves)?;
                        }
                    }
                }
                inside.pop();
                Ok(())
            }
            Type::Array(element) => {
                let start = leaves.len();
                self.add_leaves(element, span, inside, leaves)?;
                if self.variant_with_arrays(element, span)? {
                    return self.refuse(Reason::IrregularElement, span);
                }
                for leaf in &mut leaves[start..] {
                    *leaf = leaf.in_array();
                }
                Ok(())
            }
            Type::Fun(_) | Type::Var(_) => self.refuse(Reason::Type(gradus_core::print::print_type(ty)), span),
        })
    }

    /// Whether a variant inside has arrays in its fields: then elements of an array would have rows of different length.
    fn variant_with_arrays(&self, ty: &Type, span: Span) -> Lowered<bool> {
        Ok(match ty {
            Type::Tuple(parts) => {
                let mut any = false;
                for part in parts.iter() {
                    any |= self.variant_with_arrays(part, span)?;
                }
                any
            }
            Type::Named(..) => match self.shape(ty, span)? {
                Shape::Record(fields) => {
                    let mut any = false;
                    for field in &fields {
                        any |= self.variant_with_arrays(field, span)?;
                    }
                    any
                }
                Shape::Variant(constructors) => {
                    let mut any = false;
                    for field in constructors.iter().flatten() {
                        any |= self.leaves(field, span)?.iter().any(|l| l.is_array());
                    }
                    any
                }
            },
            Type::Array(element) => self.variant_with_arrays(element, span)?,
            Type::Real | Type::Int | Type::Bool | Type::Unit | Type::String | Type::Fun(_) | Type::Var(_) => false,
        })
    }

    /// Whether the reals of a type stand in the same order in its leaves as in its text: not so for arrays of several reals,
    /// nor for variants, whose other constructors have leaves too.
    pub(super) fn reals_in_order(&self, ty: &Type, span: Span) -> Lowered<bool> {
        with_stack(|| {
            let all = |types: &[Type]| -> Lowered<bool> {
                types.iter().try_fold(true, |ok, t| Ok(ok && self.reals_in_order(t, span)?))
            };
            Ok(match ty {
                Type::Tuple(parts) => all(parts)?,
                Type::Named(..) => match self.shape(ty, span)? {
                    Shape::Record(fields) => all(&fields)?,
                    Shape::Variant(constructors) => constructors.iter().flatten().next().is_none(),
                },
                Type::Array(element) => {
                    let reals = self.leaves(element, span)?.iter().filter(|l| l.is_real()).count();
                    reals <= 1 && self.reals_in_order(element, span)?
                }
                Type::Real | Type::Int | Type::Bool | Type::Unit | Type::String | Type::Fun(_) | Type::Var(_) => true,
            })
        })
    }

    /// The leaves of a value as operands, in the order of [`Lowering::leaves`].
    pub(super) fn flatten(&mut self, value: &Value, ty: &Type, span: Span) -> Lowered<Vec<Atom>> {
        let mut atoms = Vec::new();
        self.flatten_into(value, ty, span, &mut atoms)?;
        Ok(atoms)
    }

    fn flatten_into(&mut self, value: &Value, ty: &Type, span: Span, atoms: &mut Vec<Atom>) -> Lowered<()> {
        with_stack(|| match (value, ty) {
            (Value::Leaf(atom), _) => {
                atoms.push(*atom);
                Ok(())
            }
            (Value::Unit, _) => Ok(()),
            (Value::Tuple(items), Type::Tuple(types)) => {
                items.iter().zip(types.iter()).try_for_each(|(v, t)| self.flatten_into(v, t, span, atoms))
            }
            (Value::Tuple(items), Type::Named(..)) => match self.shape(ty, span)? {
                Shape::Record(types) => {
                    items.iter().zip(&types).try_for_each(|(v, t)| self.flatten_into(v, t, span, atoms))
                }
                Shape::Variant(_) => gradus_source::bug!("a record of a variant type"),
            },
            (Value::Variant { tag, fields }, Type::Named(..)) => match self.shape(ty, span)? {
                Shape::Record(_) => gradus_source::bug!("a variant of a record type"),
                Shape::Variant(constructors) => {
                    atoms.push(*tag);
                    for (values, types) in fields.iter().zip(&constructors) {
                        for (i, t) in types.iter().enumerate() {
                            match values {
                                Some(values) => self.flatten_into(&values[i], t, span, atoms)?,
                                None => {
                                    for leaf in self.leaves(t, span)? {
                                        atoms.push(self.b.dummy(leaf));
                                    }
                                }
                            }
                        }
                    }
                    Ok(())
                }
            },
            (Value::Array(part), _) => {
                for view in views(part) {
                    atoms.push(self.whole(&view));
                }
                Ok(())
            }
            (Value::Function(_), _) => self.refuse(Reason::UnknownFunction, span),
            (Value::Tuple(_) | Value::Variant { .. }, _) => {
                gradus_source::bug!("a value does not have its type {}", gradus_core::print::print_type(ty))
            }
        })
    }

    /// The value of a type with these leaves.
    pub(super) fn unflatten(&self, ty: &Type, atoms: &mut dyn Iterator<Item = Atom>, span: Span) -> Lowered<Value> {
        with_stack(|| {
            let next = |atoms: &mut dyn Iterator<Item = Atom>| match atoms.next() {
                Some(atom) => atom,
                None => gradus_source::bug!("a value with too few leaves"),
            };
            Ok(match ty {
                Type::Real | Type::Int | Type::Bool => Value::Leaf(next(atoms)),
                Type::Unit | Type::String => Value::Unit,
                Type::Tuple(parts) => Value::tuple(self.unflatten_all(parts, atoms, span)?),
                Type::Named(..) => match self.shape(ty, span)? {
                    Shape::Record(fields) => Value::tuple(self.unflatten_all(&fields, atoms, span)?),
                    Shape::Variant(constructors) => {
                        let tag = next(atoms);
                        let mut fields = Vec::new();
                        for types in &constructors {
                            fields.push(Some(self.unflatten_all(types, atoms, span)?));
                        }
                        Value::Variant { tag, fields: fields.into() }
                    }
                },
                Type::Array(element) => Value::Array(Rc::new(self.part(element, atoms, span)?)),
                Type::Fun(_) | Type::Var(_) => {
                    return self.refuse(Reason::Type(gradus_core::print::print_type(ty)), span)
                }
            })
        })
    }

    fn unflatten_all(&self, types: &[Type], atoms: &mut dyn Iterator<Item = Atom>, span: Span) -> Lowered<Vec<Value>> {
        types.iter().map(|t| self.unflatten(t, atoms, span)).collect()
    }

    /// The structure of an array's elements, with arrays as leaves.
    pub(super) fn part(&self, element: &Type, atoms: &mut dyn Iterator<Item = Atom>, span: Span) -> Lowered<Part> {
        with_stack(|| {
            let view = |atoms: &mut dyn Iterator<Item = Atom>| match atoms.next() {
                Some(Atom::Var(array)) => View { array, index: Vec::new() },
                _ => gradus_source::bug!("an array with too few leaves"),
            };
            let all = |types: &[Type], atoms: &mut dyn Iterator<Item = Atom>| {
                types.iter().map(|t| self.part(t, atoms, span)).collect::<Lowered<Vec<Part>>>()
            };
            Ok(match element {
                Type::Real | Type::Int | Type::Bool => Part::Leaf(view(atoms)),
                Type::Unit | Type::String => Part::Unit,
                Type::Tuple(parts) => Part::Tuple(all(parts, atoms)?),
                Type::Named(..) => match self.shape(element, span)? {
                    Shape::Record(fields) => Part::Tuple(all(&fields, atoms)?),
                    Shape::Variant(constructors) => {
                        let tag = view(atoms);
                        let fields = constructors.iter().map(|ts| all(ts, atoms)).collect::<Lowered<Vec<_>>>()?;
                        Part::Variant { tag, fields }
                    }
                },
                Type::Array(inner) => Part::Array(Box::new(self.part(inner, atoms, span)?)),
                Type::Fun(_) | Type::Var(_) => {
                    return self.refuse(Reason::Type(gradus_core::print::print_type(element)), span)
                }
            })
        })
    }

    /// A view as an array of its own.
    pub(super) fn whole(&mut self, view: &View) -> Atom {
        self.b.get(view.array.into(), view.index.clone())
    }

    /// Element `i` of an array; the index is known to be in bounds.
    pub(super) fn element(&mut self, part: &Part, i: Atom) -> Value {
        let at = |view: &View| View { array: view.array, index: [view.index.clone(), vec![i]].concat() };
        match part {
            Part::Leaf(view) => Value::Leaf(self.whole(&at(view))),
            Part::Unit => Value::Unit,
            Part::Tuple(parts) => Value::tuple(parts.iter().map(|p| self.element(p, i)).collect()),
            Part::Variant { tag, fields } => {
                let tag = self.whole(&at(tag));
                let fields: Vec<_> = fields
                    .iter()
                    .map(|parts| Some(parts.iter().map(|p| self.element(p, i)).collect::<Vec<_>>()))
                    .collect();
                Value::Variant { tag, fields: fields.into() }
            }
            Part::Array(inner) => Value::Array(Rc::new(map_views(inner, &at))),
        }
    }

    /// The number of elements.
    pub(super) fn length(&mut self, part: &Part) -> Lowered<Atom> {
        match views(part).first() {
            Some(view) => Ok(self.b.dim(view.array, view.index.len() as u8)),
            None => self.refuse(Reason::EmptyElement, self.b.span),
        }
    }

    /// Refuses a type that loses something when it is flattened, for results.
    pub(super) fn keeps_everything(&self, ty: &Type, span: Span) -> Lowered<()> {
        with_stack(|| match ty {
            Type::String => self.refuse(Reason::Type("string".into()), span),
            Type::Array(element) if self.leaves(element, span)?.is_empty() => self.refuse(Reason::EmptyElement, span),
            Type::Array(element) => self.keeps_everything(element, span),
            Type::Tuple(parts) => parts.iter().try_for_each(|t| self.keeps_everything(t, span)),
            Type::Named(..) => match self.shape(ty, span)? {
                Shape::Record(fields) => fields.iter().try_for_each(|t| self.keeps_everything(t, span)),
                Shape::Variant(all) => all.iter().flatten().try_for_each(|t| self.keeps_everything(t, span)),
            },
            Type::Real | Type::Int | Type::Bool | Type::Unit | Type::Fun(_) | Type::Var(_) => Ok(()),
        })
    }

    /// Fails unless `0 <= i < n`.
    pub(super) fn check_index(&mut self, i: Atom, n: Atom) {
        let not_negative = self.b.scalar(gradus_core::Prim::GreaterEqual, &[i, Atom::Int(0)]);
        self.b.check(not_negative, Failure::Index);
        let below = self.b.scalar(gradus_core::Prim::Less, &[i, n]);
        self.b.check(below, Failure::Index);
    }

    /// Fails unless two operands have the same shape.
    pub(super) fn check_same_shape(&mut self, a: Atom, b: Atom, failure: Failure) {
        if let (Atom::Var(a), Atom::Var(b)) = (a, b) {
            for axis in 0..a.ty.rank {
                let (n, m) = (self.b.dim(a, axis), self.b.dim(b, axis));
                let same = self.b.scalar(gradus_core::Prim::Equal, &[n, m]);
                self.b.check(same, failure);
            }
        }
    }
}

/// The views at the leaves of an array's elements, in order.
pub fn views(part: &Part) -> Vec<View> {
    fn walk(part: &Part, found: &mut Vec<View>) {
        match part {
            Part::Leaf(view) => found.push(view.clone()),
            Part::Unit => {}
            Part::Tuple(parts) => parts.iter().for_each(|p| walk(p, found)),
            Part::Variant { tag, fields } => {
                found.push(tag.clone());
                fields.iter().flatten().for_each(|p| walk(p, found));
            }
            Part::Array(inner) => walk(inner, found),
        }
    }
    let mut found = Vec::new();
    walk(part, &mut found);
    found
}

/// The same structure with other views.
pub fn map_views(part: &Part, f: &dyn Fn(&View) -> View) -> Part {
    match part {
        Part::Leaf(view) => Part::Leaf(f(view)),
        Part::Unit => Part::Unit,
        Part::Tuple(parts) => Part::Tuple(parts.iter().map(|p| map_views(p, f)).collect()),
        Part::Variant { tag, fields } => Part::Variant {
            tag: f(tag),
            fields: fields.iter().map(|parts| parts.iter().map(|p| map_views(p, f)).collect()).collect(),
        },
        Part::Array(inner) => Part::Array(Box::new(map_views(inner, f))),
    }
}
