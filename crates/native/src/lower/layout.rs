//! How types are laid out in registers and arrays, and values between their structure and their leaves.

use super::value::{Part, Value, View};
use super::{Lowered, Lowering};
use crate::flow::{Atom, Failure, Scalar, Type as Leaf};
use crate::refusal::Reason;
use gradus_core::traverse::with_stack;
use gradus_core::{Type, TypeBody, TypeName};
use gradus_source::Span;
use rustc_hash::FxHashSet;
use std::rc::Rc;

/// The fields of a declared type at its arguments.
pub enum Shape {
    Record(Vec<Type>),
    Variant(Vec<Vec<Type>>),
}

impl Lowering<'_> {
    /// The constructors of a declared type.
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

    /// The fields of each constructor; a record has one.
    pub(super) fn constructors(&self, ty: &Type, span: Span) -> Lowered<Vec<Vec<Type>>> {
        Ok(match self.shape(ty, span)? {
            Shape::Record(fields) => vec![fields],
            Shape::Variant(constructors) => constructors,
        })
    }

    /// Whether a declared type can contain itself, so that its values live on the heap.
    pub(crate) fn is_boxed(&self, name: &TypeName) -> bool {
        if let Some(known) = self.heap.recursive.borrow().get(name) {
            return *known;
        }
        fn mentions(ty: &Type, found: &mut Vec<TypeName>) {
            with_stack(|| match ty {
                Type::Named(name, args) => {
                    found.push(name.clone());
                    args.iter().for_each(|t| mentions(t, found));
                }
                Type::Tuple(parts) => parts.iter().for_each(|t| mentions(t, found)),
                Type::Array(element) => mentions(element, found),
                Type::Fun(ft) => {
                    mentions(&ft.0, found);
                    mentions(&ft.1, found);
                }
                Type::Real | Type::Int | Type::Bool | Type::String | Type::Unit | Type::Var(_) => {}
            })
        }
        let direct = |name: &TypeName| {
            let mut found = Vec::new();
            match self.types.get(name).map(|d| &d.body) {
                Some(TypeBody::Record(fields)) => fields.iter().for_each(|(_, t)| mentions(t, &mut found)),
                Some(TypeBody::Variant(constructors)) => {
                    constructors.iter().flat_map(|(_, ts)| ts).for_each(|t| mentions(t, &mut found))
                }
                None => {}
            }
            found
        };
        let mut next = direct(name);
        let mut seen: FxHashSet<TypeName> = FxHashSet::default();
        let mut recursive = false;
        while let Some(other) = next.pop() {
            recursive |= other == *name;
            if seen.insert(other.clone()) {
                next.extend(direct(&other));
            }
        }
        self.heap.recursive.borrow_mut().insert(name.clone(), recursive);
        recursive
    }

    /// The flow types of a type's leaves, in order.
    pub(crate) fn leaves(&mut self, ty: &Type, span: Span) -> Lowered<Vec<Leaf>> {
        with_stack(|| {
            Ok(match ty {
                Type::Real => vec![Leaf::REAL],
                Type::Int => vec![Leaf::INT],
                Type::Bool => vec![Leaf::BOOL],
                Type::Unit => Vec::new(),
                Type::String => vec![Leaf::array(Scalar::Int, 1)],
                Type::Tuple(parts) => self.all_leaves(parts, span)?,
                Type::Named(name, _) if self.is_boxed(name) => vec![Leaf::boxed(self.cell_shape(ty, span)?)],
                Type::Named(..) => match self.shape(ty, span)? {
                    Shape::Record(fields) => self.all_leaves(&fields, span)?,
                    Shape::Variant(constructors) => {
                        let mut leaves = vec![Leaf::INT];
                        leaves.extend(self.all_leaves(&constructors.concat(), span)?);
                        leaves
                    }
                },
                Type::Array(element) => {
                    let mut leaves = self.element_leaves(element, span)?;
                    if leaves.is_empty() {
                        leaves.push(Leaf::BOOL);
                    }
                    leaves.into_iter().map(Leaf::in_array).collect()
                }
                Type::Fun(_) => vec![Leaf::boxed(self.closure_shape(ty))],
                Type::Var(_) => return self.refuse(Reason::Type(gradus_core::print::print_type(ty)), span),
            })
        })
    }

    fn all_leaves(&mut self, types: &[Type], span: Span) -> Lowered<Vec<Leaf>> {
        let mut leaves = Vec::new();
        for ty in types {
            leaves.extend(self.leaves(ty, span)?);
        }
        Ok(leaves)
    }

    /// The same for an element of an array: what may differ in shape from element to element is a box.
    fn element_leaves(&mut self, ty: &Type, span: Span) -> Lowered<Vec<Leaf>> {
        if self.is_wrapped(ty, span)? {
            return Ok(vec![Leaf::boxed(self.wrapper_shape(ty, span)?)]);
        }
        let parts = match ty {
            Type::Tuple(parts) => parts.to_vec(),
            Type::Named(name, _) if !self.is_boxed(name) => match self.shape(ty, span)? {
                Shape::Record(fields) => fields,
                Shape::Variant(_) => return self.leaves(ty, span),
            },
            _ => return self.leaves(ty, span),
        };
        let mut leaves = Vec::new();
        for part in &parts {
            leaves.extend(self.element_leaves(part, span)?);
        }
        Ok(leaves)
    }

    /// Whether elements of a type are boxed in arrays although they are not elsewhere: strings; variants with arrays inside, and tuples and records with
    /// arrays of different lengths; and what has more dimensions than arrays can have.
    pub(crate) fn is_wrapped(&mut self, ty: &Type, span: Span) -> Lowered<bool> {
        let may_differ = match ty {
            Type::String => return Ok(true),
            Type::Array(_) => return Ok(self.leaves(ty, span)?.iter().any(|l| l.rank >= Leaf::MAX_RANK)),
            Type::Tuple(_) => self.program.irregular,
            Type::Named(name, _) if !self.is_boxed(name) => match self.shape(ty, span)? {
                Shape::Record(_) => self.program.irregular,
                Shape::Variant(_) => true,
            },
            _ => false,
        };
        Ok(may_differ && self.leaves(ty, span)?.iter().any(|l| l.is_array()))
    }

    /// Whether the reals of a type stand in the same order in its leaves as in its text: not so for arrays of several reals,
    /// nor for variants, whose other constructors have leaves too.
    pub(super) fn reals_in_order(&mut self, ty: &Type, span: Span) -> Lowered<bool> {
        with_stack(|| {
            let all = |s: &mut Self, types: &[Type]| -> Lowered<bool> {
                types.iter().try_fold(true, |ok, t| Ok(ok && s.reals_in_order(t, span)?))
            };
            Ok(match ty {
                Type::Tuple(parts) => all(self, parts)?,
                Type::Named(name, _) if self.is_boxed(name) => false,
                Type::Named(..) => match self.shape(ty, span)? {
                    Shape::Record(fields) => all(self, &fields)?,
                    Shape::Variant(constructors) => constructors.iter().flatten().next().is_none(),
                },
                Type::Array(element) => {
                    let leaves = self.leaves(ty, span)?;
                    let reals = leaves.iter().filter(|l| l.may_be_active()).count();
                    reals <= 1 && leaves.iter().all(|l| l.shape().is_none()) && self.reals_in_order(element, span)?
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
            (Value::Leaf(atom) | Value::Text(atom), _) => {
                atoms.push(*atom);
                Ok(())
            }
            (Value::Boxed { cell, .. } | Value::Closure { cell, .. }, _) => {
                atoms.push(*cell);
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
            (Value::Function(function), _) => {
                let closure = self.reify(&function.clone(), span)?;
                atoms.push(closure);
                Ok(())
            }
            (Value::Tuple(_) | Value::Variant { .. }, _) => {
                gradus_source::bug!("a value does not have its type {}", gradus_core::print::print_type(ty))
            }
        })
    }

    /// The leaves of a value as an element of an array.
    pub(super) fn flatten_element(&mut self, value: &Value, ty: &Type, span: Span) -> Lowered<Vec<Atom>> {
        if self.is_wrapped(ty, span)? {
            let fields = self.flatten(value, ty, span)?;
            let shape = self.wrapper_shape(ty, span)?;
            return Ok(vec![self.b.cell(shape, 0, fields)]);
        }
        let types = match ty {
            Type::Tuple(parts) => parts.to_vec(),
            Type::Named(name, _) if !self.is_boxed(name) => match self.shape(ty, span)? {
                Shape::Record(fields) => fields,
                Shape::Variant(_) => return self.flatten(value, ty, span),
            },
            _ => return self.flatten(value, ty, span),
        };
        let Value::Tuple(items) = value else { gradus_source::bug!("a tuple or record that has no parts") };
        let mut atoms = Vec::new();
        for (item, ty) in items.iter().zip(&types) {
            atoms.extend(self.flatten_element(item, ty, span)?);
        }
        Ok(atoms)
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
                Type::Unit => Value::Unit,
                Type::String => Value::Text(next(atoms)),
                Type::Fun(_) => Value::Closure { cell: next(atoms), ty: ty.clone() },
                Type::Named(name, _) if self.is_boxed(name) => {
                    Value::Boxed { cell: next(atoms), ty: ty.clone(), known: None }
                }
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
                Type::Array(element) => Value::Array(Rc::new(self.array_part(element, atoms, span)?)),
                Type::Var(_) => return self.refuse(Reason::Type(gradus_core::print::print_type(ty)), span),
            })
        })
    }

    fn unflatten_all(&self, types: &[Type], atoms: &mut dyn Iterator<Item = Atom>, span: Span) -> Lowered<Vec<Value>> {
        types.iter().map(|t| self.unflatten(t, atoms, span)).collect()
    }

    /// The structure of an array's elements, with arrays as leaves.
    pub(super) fn array_part(
        &self,
        element: &Type,
        atoms: &mut dyn Iterator<Item = Atom>,
        span: Span,
    ) -> Lowered<Part> {
        let part = self.part(element, atoms, span)?;
        if views(&part).is_empty() {
            return Ok(Part::Counted(next_view(atoms)));
        }
        Ok(part)
    }

    fn part(&self, element: &Type, atoms: &mut dyn Iterator<Item = Atom>, span: Span) -> Lowered<Part> {
        with_stack(|| {
            let all = |types: &[Type], atoms: &mut dyn Iterator<Item = Atom>| {
                types.iter().map(|t| self.part(t, atoms, span)).collect::<Lowered<Vec<Part>>>()
            };
            if self.heap.wrappers.contains_key(element) {
                return Ok(Part::Wrapped { view: next_view(atoms), ty: element.clone() });
            }
            Ok(match element {
                Type::Real | Type::Int | Type::Bool => Part::Leaf(next_view(atoms)),
                Type::Unit => Part::Unit,
                Type::Tuple(parts) => Part::Tuple(all(parts, atoms)?),
                Type::Fun(_) => Part::Boxed { view: next_view(atoms), ty: element.clone() },
                Type::Named(name, _) if self.is_boxed(name) => {
                    Part::Boxed { view: next_view(atoms), ty: element.clone() }
                }
                Type::Named(..) => match self.shape(element, span)? {
                    Shape::Record(fields) => Part::Tuple(all(&fields, atoms)?),
                    Shape::Variant(constructors) => {
                        let tag = next_view(atoms);
                        let fields = constructors.iter().map(|ts| all(ts, atoms)).collect::<Lowered<Vec<_>>>()?;
                        Part::Variant { tag, fields }
                    }
                },
                Type::Array(inner) => Part::Array(Box::new(self.array_part(inner, atoms, span)?)),
                Type::String | Type::Var(_) => {
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
            Part::Boxed { view, ty } => {
                let cell = self.whole(&at(view));
                match ty {
                    Type::Fun(_) => Value::Closure { cell, ty: ty.clone() },
                    _ => Value::Boxed { cell, ty: ty.clone(), known: None },
                }
            }
            Part::Wrapped { view, ty } => {
                let cell = self.whole(&at(view));
                let Some(shape) = cell.ty().shape() else { gradus_source::bug!("a wrapped element that is no box") };
                let types = self.module.fields(shape, 0).to_vec();
                let leaves = self.b.unpack(&types, cell, 0);
                match self.unflatten(ty, &mut leaves.into_iter(), self.b.span) {
                    Ok(value) => value,
                    Err(_) => gradus_source::bug!("a wrapped element of a type that was refused"),
                }
            }
            Part::Counted(_) => Value::Unit,
        }
    }

    /// The number of elements.
    pub(super) fn length(&mut self, part: &Part) -> Lowered<Atom> {
        match views(part).first() {
            Some(view) => Ok(self.b.dim(view.array, view.index.len() as u8)),
            None => gradus_source::bug!("an array without leaves"),
        }
    }

    /// Refuses a result that cannot be given to the caller: functions.
    pub(super) fn is_data(&self, ty: &Type, span: Span) -> Lowered<()> {
        match gradus_core::check::is_data(&gradus_core::check::Unlinked(self.program), ty) {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => self.refuse(Reason::Type(gradus_core::print::print_type(ty)), span),
        }
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
            (0..a.ty.rank).for_each(|axis| self.b.check_same_length(a, b, axis, failure));
        }
    }

    /// An array of tuples comes as one array for each of their parts: fails unless these have the same length, which simplification learns.
    pub(super) fn check_lengths(&mut self, value: &Value) {
        with_stack(|| match value {
            Value::Tuple(parts) => parts.iter().for_each(|part| self.check_lengths(part)),
            Value::Array(part) => self.check_lengths_along(part, 0),
            _ => {}
        })
    }

    fn check_lengths_along(&mut self, part: &Part, axis: u8) {
        if let [first, others @ ..] = &views(part)[..] {
            others.iter().for_each(|other| self.b.check_same_length(first.array, other.array, axis, Failure::Shape));
        }
        self.check_lengths_inside(part, axis);
    }

    fn check_lengths_inside(&mut self, part: &Part, axis: u8) {
        with_stack(|| match part {
            Part::Tuple(parts) => parts.iter().for_each(|inner| self.check_lengths_inside(inner, axis)),
            Part::Array(inner) => self.check_lengths_along(inner, axis + 1),
            _ => {}
        })
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
            Part::Boxed { view, .. } | Part::Wrapped { view, .. } | Part::Counted(view) => found.push(view.clone()),
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
        Part::Boxed { view, ty } => Part::Boxed { view: f(view), ty: ty.clone() },
        Part::Wrapped { view, ty } => Part::Wrapped { view: f(view), ty: ty.clone() },
        Part::Counted(view) => Part::Counted(f(view)),
    }
}

fn next_view(atoms: &mut dyn Iterator<Item = Atom>) -> View {
    match atoms.next() {
        Some(Atom::Var(array)) => View { array, index: Vec::new() },
        _ => gradus_source::bug!("an array with too few leaves"),
    }
}
