//! Branches: both sides are lowered into blocks of their own, and their values are joined leaf by leaf.

use super::layout::map_views;
use super::value::{Function, Part, Value, View};
use super::{Lowered, Lowering};
use crate::flow::{Atom, Block, Op, Type, Var};
use gradus_core::traverse::with_stack;
use gradus_core::{Arm, Prim, Term, Type as CoreType};
use gradus_source::Span;
use std::rc::Rc;

/// A leaf of one side of a branch.
#[derive(Clone)]
enum Side {
    Atom(Atom),
    View(View),
    /// A function that becomes a closure there.
    Function(Rc<Function>),
    /// The other side has it, this one never looks at it.
    Missing,
}

/// The leaves that must be chosen at run time, with the variable that gets the choice.
type Joined = Vec<(Var, Side, Side)>;

/// Lowers the body of an arm with its variables bound.
type OnArm<'f, 'a> = &'f mut dyn FnMut(&mut Lowering<'a>, &Term, Bound) -> Lowered<Value>;

/// Variables with their types and values.
type Bound = Vec<(gradus_core::Var, CoreType, Value)>;

/// What is matched on.
#[derive(Clone)]
enum Matched {
    /// The fields of each constructor that can occur.
    Known { tag: Atom, fields: Rc<[Option<Vec<Value>>]> },
    /// On the heap: the fields are there only after the tag was looked at.
    Boxed { cell: Atom, tag: Atom },
}

impl<'a> Lowering<'a> {
    /// `if condition then .. else ..`
    pub(super) fn choose(
        &mut self,
        condition: Atom,
        span: Span,
        then: &mut dyn FnMut(&mut Self) -> Lowered<Value>,
        otherwise: &mut dyn FnMut(&mut Self) -> Lowered<Value>,
    ) -> Lowered<Value> {
        match condition {
            Atom::Bool(true) => return then(self),
            Atom::Bool(false) => return otherwise(self),
            _ => {}
        }
        self.b.push();
        let first = then(self)?;
        let then = self.b.pop(Vec::new());
        self.b.push();
        let second = otherwise(self)?;
        let otherwise = self.b.pop(Vec::new());
        let mut joined = Joined::new();
        let value = self.join(&first, &second, &mut joined)?;
        self.b.span = span;
        let then = self.with_results(then, joined.iter().map(|(v, a, _)| (v.ty, a.clone())).collect(), span)?;
        let otherwise =
            self.with_results(otherwise, joined.iter().map(|(v, _, b)| (v.ty, b.clone())).collect(), span)?;
        let binds = joined.into_iter().map(|(v, _, _)| v).collect();
        self.b.bind(binds, Op::branch(condition, then, otherwise, false));
        Ok(value)
    }

    /// Reopens a block to give it its results.
    fn with_results(&mut self, block: Block, sides: Vec<(Type, Side)>, span: Span) -> Lowered<Block> {
        self.b.push();
        self.b.stmts(block.stmts);
        let mut results = Vec::new();
        for (ty, side) in sides {
            results.push(match side {
                Side::Atom(atom) => atom,
                Side::View(view) => self.whole(&view),
                Side::Function(function) => self.reify(&function, span)?,
                Side::Missing => self.b.dummy(ty),
            });
        }
        Ok(self.b.pop(results))
    }

    fn join(&mut self, a: &Value, b: &Value, joined: &mut Joined) -> Lowered<Value> {
        with_stack(|| {
            Ok(match (a, b) {
                (Value::Leaf(x), Value::Leaf(y)) => Value::Leaf(join_atoms(*x, *y, joined)),
                (Value::Unit, Value::Unit) => Value::Unit,
                (Value::Tuple(xs), Value::Tuple(ys)) => {
                    let pairs = xs.iter().zip(ys.iter());
                    Value::tuple(pairs.map(|(x, y)| self.join(x, y, joined)).collect::<Lowered<_>>()?)
                }
                (Value::Variant { tag: s, fields: xs }, Value::Variant { tag: t, fields: ys }) => {
                    let tag = join_atoms(*s, *t, joined);
                    let mut fields = Vec::new();
                    for (x, y) in xs.iter().zip(ys.iter()) {
                        fields.push(match (x, y) {
                            (Some(x), Some(y)) => {
                                let pairs = x.iter().zip(y);
                                Some(pairs.map(|(x, y)| self.join(x, y, joined)).collect::<Lowered<_>>()?)
                            }
                            (Some(x), None) => Some(self.one_side(x, true, joined)?),
                            (None, Some(y)) => Some(self.one_side(y, false, joined)?),
                            (None, None) => None,
                        });
                    }
                    Value::Variant { tag, fields: fields.into() }
                }
                (Value::Array(x), Value::Array(y)) => Value::Array(Rc::new(join_parts(x, y, joined))),
                (Value::Function(f), Value::Function(g)) if Rc::ptr_eq(f, g) => a.clone(),
                (Value::Function(_) | Value::Closure { .. }, Value::Function(_) | Value::Closure { .. }) => {
                    let ty = match (a, b) {
                        (Value::Closure { ty, .. }, _) | (_, Value::Closure { ty, .. }) => ty.clone(),
                        (Value::Function(f), _) => self.function_type(f),
                        _ => gradus_source::bug!("the sides of a branch are no functions"),
                    };
                    if let (Value::Closure { cell: x, .. }, Value::Closure { cell: y, .. }) = (a, b) {
                        return Ok(Value::Closure { cell: join_atoms(*x, *y, joined), ty });
                    }
                    let var = Var::fresh("f", Type::boxed(self.closure_shape(&ty)));
                    joined.push((var, function_side(a), function_side(b)));
                    Value::Closure { cell: var.into(), ty }
                }
                (Value::Text(x), Value::Text(y)) => Value::Text(join_atoms(*x, *y, joined)),
                (Value::Boxed { cell: x, ty, known }, Value::Boxed { cell: y, .. }) => {
                    let known = if x == y { known.clone() } else { None };
                    Value::Boxed { cell: join_atoms(*x, *y, joined), ty: ty.clone(), known }
                }
                _ => gradus_source::bug!("the sides of a branch have different structure"),
            })
        })
    }

    /// Fields that only one side has; the other gets what nobody looks at.
    fn one_side(&mut self, values: &[Value], first: bool, joined: &mut Joined) -> Lowered<Vec<Value>> {
        values
            .iter()
            .map(|value| {
                with_stack(|| {
                    Ok(match value {
                        Value::Leaf(atom) => Value::Leaf(one_sided(Side::Atom(*atom), atom.ty(), first, joined).into()),
                        Value::Unit => Value::Unit,
                        Value::Tuple(items) => Value::tuple(self.one_side(items, first, joined)?),
                        Value::Variant { tag, fields } => {
                            let tag = one_sided(Side::Atom(*tag), tag.ty(), first, joined).into();
                            let fields = fields
                                .iter()
                                .map(|f| f.as_ref().map(|f| self.one_side(f, first, joined)).transpose())
                                .collect::<Lowered<Vec<_>>>()?;
                            Value::Variant { tag, fields: fields.into() }
                        }
                        Value::Array(part) => {
                            let chosen = std::cell::RefCell::new(std::mem::take(joined));
                            let part = map_views(part, &|view| {
                                let ty = view.array.ty.at(view.index.len());
                                let array = one_sided(Side::View(view.clone()), ty, first, &mut chosen.borrow_mut());
                                View { array, index: Vec::new() }
                            });
                            *joined = chosen.into_inner();
                            Value::Array(Rc::new(part))
                        }
                        Value::Function(function) => {
                            let ty = self.function_type(function);
                            let leaf = Type::boxed(self.closure_shape(&ty));
                            let cell = one_sided(Side::Function(function.clone()), leaf, first, joined).into();
                            Value::Closure { cell, ty }
                        }
                        Value::Closure { cell, ty } => {
                            let cell = one_sided(Side::Atom(*cell), cell.ty(), first, joined).into();
                            Value::Closure { cell, ty: ty.clone() }
                        }
                        Value::Text(atom) => Value::Text(one_sided(Side::Atom(*atom), atom.ty(), first, joined).into()),
                        Value::Boxed { cell, ty, .. } => {
                            let cell = one_sided(Side::Atom(*cell), cell.ty(), first, joined).into();
                            Value::Boxed { cell, ty: ty.clone(), known: None }
                        }
                    })
                })
            })
            .collect()
    }

    /// A flat `match`: `body` lowers an arm with its variables bound.
    pub(super) fn case(
        &mut self,
        value: Value,
        arms: &[Arm],
        default: Option<&Term>,
        span: Span,
        body: OnArm<'_, 'a>,
    ) -> Lowered<Value> {
        let matched = self.matched(value, span)?;
        self.arms(&matched, arms, default, span, body)
    }

    /// What is matched; a record has one constructor.
    fn matched(&mut self, value: Value, span: Span) -> Lowered<Matched> {
        Ok(match value {
            Value::Variant { tag, fields } => Matched::Known { tag, fields },
            Value::Tuple(items) => Matched::Known { tag: Atom::Int(0), fields: vec![Some(items.to_vec())].into() },
            Value::Boxed { known: Some((tag, fields)), ty, .. } => {
                let mut all = vec![None; self.constructors(&ty, span)?.len()];
                all[tag] = Some(fields.to_vec());
                Matched::Known { tag: Atom::Int(tag as i64), fields: all.into() }
            }
            Value::Boxed { cell, ty, known: None } => {
                // With one constructor there is nothing to choose.
                let tag = if self.constructors(&ty, span)?.len() == 1 { Atom::Int(0) } else { self.b.tag(cell) };
                Matched::Boxed { cell, tag }
            }
            _ => gradus_source::bug!("a match on something that has no constructor"),
        })
    }

    /// The fields of a box that is known to have the tag.
    pub(super) fn fields_of(&mut self, cell: Atom, tag: usize, types: &[CoreType], span: Span) -> Lowered<Vec<Value>> {
        let Some(shape) = cell.ty().shape() else { gradus_source::bug!("the fields of something that is no box") };
        let leaves = self.module.fields(shape, tag).to_vec();
        let mut atoms = self.b.unpack(&leaves, cell, tag).into_iter();
        types.iter().map(|ty| self.unflatten(ty, &mut atoms, span)).collect()
    }

    fn bound(&mut self, matched: &Matched, arm: &Arm, span: Span) -> Lowered<Bound> {
        let values = match matched {
            Matched::Known { fields, .. } => fields.get(arm.tag).and_then(|f| f.clone()).unwrap_or_default(),
            Matched::Boxed { cell, .. } => {
                let types: Vec<CoreType> = arm.vars.iter().map(|(_, t)| t.clone()).collect();
                self.fields_of(*cell, arm.tag, &types, span)?
            }
        };
        Ok(arm.vars.iter().zip(values).map(|((v, t), x)| (v.clone(), t.clone(), x)).collect())
    }

    fn arms(
        &mut self,
        matched: &Matched,
        arms: &[Arm],
        default: Option<&Term>,
        span: Span,
        body: OnArm<'_, 'a>,
    ) -> Lowered<Value> {
        let tag = match matched {
            Matched::Known { tag, .. } | Matched::Boxed { tag, .. } => *tag,
        };
        // Constructors that were never built cannot occur.
        let possible = |arm: &&Arm| match (tag, matched) {
            (Atom::Int(known), _) => known == arm.tag as i64,
            (_, Matched::Known { fields, .. }) => fields.get(arm.tag).is_some_and(|f| f.is_some()),
            (_, Matched::Boxed { .. }) => true,
        };
        let arms: Vec<&Arm> = arms.iter().filter(possible).collect();
        self.possible_arms(matched, tag, &arms, default, span, body)
    }

    /// The arms that can occur, one after the other.
    fn possible_arms(
        &mut self,
        matched: &Matched,
        tag: Atom,
        arms: &[&Arm],
        default: Option<&Term>,
        span: Span,
        body: OnArm<'_, 'a>,
    ) -> Lowered<Value> {
        let Some((arm, rest)) = arms.split_first() else {
            return match default {
                Some(default) => body(self, default, Vec::new()),
                None => gradus_source::bug!("a match without a possible arm"),
            };
        };
        let last = rest.is_empty() && default.is_none();
        if last || matches!(tag, Atom::Int(_)) {
            let bound = self.bound(matched, arm, span)?;
            return body(self, &arm.body, bound);
        }
        let here = self.b.scalar(Prim::Equal, &[tag, Atom::Int(arm.tag as i64)]);
        // Both sides need the one continuation, one after the other.
        let body = std::cell::RefCell::new(body);
        let mut first = |s: &mut Self| {
            let bound = s.bound(matched, arm, span)?;
            (*body.borrow_mut())(s, &arm.body, bound)
        };
        self.choose(here, span, &mut first, &mut |s| {
            s.possible_arms(matched, tag, rest, default, span, &mut |s, t, b| (*body.borrow_mut())(s, t, b))
        })
    }
}

fn join_atoms(a: Atom, b: Atom, joined: &mut Joined) -> Atom {
    if a == b {
        return a;
    }
    let name = a.var().or(b.var()).map_or_else(|| "r".into(), |v| v.name);
    let var = Var::fresh(name, a.ty());
    joined.push((var, Side::Atom(a), Side::Atom(b)));
    var.into()
}

fn function_side(value: &Value) -> Side {
    match value {
        Value::Function(function) => Side::Function(function.clone()),
        Value::Closure { cell, .. } => Side::Atom(*cell),
        _ => gradus_source::bug!("the side of a branch is no function"),
    }
}

fn one_sided(side: Side, ty: Type, first: bool, joined: &mut Joined) -> Var {
    let var = Var::fresh("r", ty);
    joined.push(if first { (var, side, Side::Missing) } else { (var, Side::Missing, side) });
    var
}

fn join_parts(a: &Part, b: &Part, joined: &mut Joined) -> Part {
    fn views(a: &View, b: &View, joined: &mut Joined) -> View {
        if a.array == b.array && a.index == b.index {
            return a.clone();
        }
        let array = Var::fresh(a.array.name, a.array.ty.at(a.index.len()));
        joined.push((array, Side::View(a.clone()), Side::View(b.clone())));
        View { array, index: Vec::new() }
    }
    match (a, b) {
        (Part::Leaf(x), Part::Leaf(y)) => Part::Leaf(views(x, y, joined)),
        (Part::Unit, Part::Unit) => Part::Unit,
        (Part::Tuple(xs), Part::Tuple(ys)) => {
            Part::Tuple(xs.iter().zip(ys).map(|(x, y)| join_parts(x, y, joined)).collect())
        }
        (Part::Variant { tag: s, fields: xs }, Part::Variant { tag: t, fields: ys }) => Part::Variant {
            tag: views(s, t, joined),
            fields: xs
                .iter()
                .zip(ys)
                .map(|(x, y)| x.iter().zip(y).map(|(x, y)| join_parts(x, y, joined)).collect())
                .collect(),
        },
        (Part::Array(x), Part::Array(y)) => Part::Array(Box::new(join_parts(x, y, joined))),
        (Part::Boxed { view: x, ty }, Part::Boxed { view: y, .. }) => {
            Part::Boxed { view: views(x, y, joined), ty: ty.clone() }
        }
        (Part::Wrapped { view: x, ty }, Part::Wrapped { view: y, .. }) => {
            Part::Wrapped { view: views(x, y, joined), ty: ty.clone() }
        }
        (Part::Counted(x), Part::Counted(y)) => Part::Counted(views(x, y, joined)),
        _ => gradus_source::bug!("the sides of a branch have arrays of different structure"),
    }
}
