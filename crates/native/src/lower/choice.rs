//! Branches: both sides are lowered into blocks of their own, and their values are joined leaf by leaf.

use super::layout::map_views;
use super::value::{Part, Value, View};
use super::{Lowered, Lowering};
use crate::flow::{Atom, Block, Op, Type, Var};
use crate::refusal::Reason;
use gradus_core::traverse::with_stack;
use gradus_core::{Arm, Prim, Term};
use gradus_source::Span;
use std::rc::Rc;

/// A leaf of one side of a branch.
#[derive(Clone)]
enum Side {
    Atom(Atom),
    View(View),
    /// The other side has it, this one never looks at it.
    Missing,
}

/// The leaves that must be chosen at run time, with the variable that gets the choice.
type Joined = Vec<(Var, Side, Side)>;

/// Lowers the body of an arm with its variables bound.
type OnArm<'f, 'a> = &'f mut dyn FnMut(&mut Lowering<'a>, &Term, Vec<(gradus_core::Var, Value)>) -> Lowered<Value>;

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
        let value = self.join(&first, &second, span, &mut joined)?;
        self.b.span = span;
        let then = self.finish(then, joined.iter().map(|(v, a, _)| (v.ty, a.clone())).collect());
        let otherwise = self.finish(otherwise, joined.iter().map(|(v, _, b)| (v.ty, b.clone())).collect());
        let binds = joined.into_iter().map(|(v, _, _)| v).collect();
        self.b.bind(binds, Op::If { cond: condition, then, otherwise, replayed: false });
        Ok(value)
    }

    /// Reopens a block to give it its results.
    fn finish(&mut self, block: Block, sides: Vec<(Type, Side)>) -> Block {
        self.b.push();
        self.b.stmts(block.stmts);
        let mut results = Vec::new();
        for (ty, side) in sides {
            results.push(match side {
                Side::Atom(atom) => atom,
                Side::View(view) => self.whole(&view),
                Side::Missing => self.b.dummy(ty),
            });
        }
        self.b.pop(results)
    }

    fn join(&mut self, a: &Value, b: &Value, span: Span, joined: &mut Joined) -> Lowered<Value> {
        with_stack(|| {
            Ok(match (a, b) {
                (Value::Leaf(x), Value::Leaf(y)) => Value::Leaf(join_atoms(*x, *y, joined)),
                (Value::Unit, Value::Unit) => Value::Unit,
                (Value::Tuple(xs), Value::Tuple(ys)) => {
                    let pairs = xs.iter().zip(ys.iter());
                    Value::tuple(pairs.map(|(x, y)| self.join(x, y, span, joined)).collect::<Lowered<_>>()?)
                }
                (Value::Variant { tag: s, fields: xs }, Value::Variant { tag: t, fields: ys }) => {
                    let tag = join_atoms(*s, *t, joined);
                    let mut fields = Vec::new();
                    for (x, y) in xs.iter().zip(ys.iter()) {
                        fields.push(match (x, y) {
                            (Some(x), Some(y)) => {
                                let pairs = x.iter().zip(y);
                                Some(pairs.map(|(x, y)| self.join(x, y, span, joined)).collect::<Lowered<_>>()?)
                            }
                            (Some(x), None) => Some(self.one_side(x, true, span, joined)?),
                            (None, Some(y)) => Some(self.one_side(y, false, span, joined)?),
                            (None, None) => None,
                        });
                    }
                    Value::Variant { tag, fields: fields.into() }
                }
                (Value::Array(x), Value::Array(y)) => Value::Array(Rc::new(join_parts(x, y, joined))),
                (Value::Function(f), Value::Function(g)) if Rc::ptr_eq(f, g) => a.clone(),
                (Value::Function(_), Value::Function(_)) => return self.refuse(Reason::UnknownFunction, span),
                _ => gradus_source::bug!("the sides of a branch have different structure"),
            })
        })
    }

    /// Fields that only one side has; the other gets what nobody looks at.
    fn one_side(&mut self, values: &[Value], first: bool, span: Span, joined: &mut Joined) -> Lowered<Vec<Value>> {
        values
            .iter()
            .map(|value| {
                with_stack(|| {
                    Ok(match value {
                        Value::Leaf(atom) => Value::Leaf(one_sided(Side::Atom(*atom), atom.ty(), first, joined).into()),
                        Value::Unit => Value::Unit,
                        Value::Tuple(items) => Value::tuple(self.one_side(items, first, span, joined)?),
                        Value::Variant { tag, fields } => {
                            let tag = one_sided(Side::Atom(*tag), tag.ty(), first, joined).into();
                            let fields = fields
                                .iter()
                                .map(|f| f.as_ref().map(|f| self.one_side(f, first, span, joined)).transpose())
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
                        Value::Function(_) => return self.refuse(Reason::UnknownFunction, span),
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
        let (tag, fields) = self.constructor(value);
        self.arms(tag, &fields, arms, default, span, body)
    }

    /// The tag and fields of what is matched; a record has one constructor.
    pub(super) fn constructor(&mut self, value: Value) -> (Atom, Rc<[Option<Vec<Value>>]>) {
        match value {
            Value::Variant { tag, fields } => (tag, fields),
            Value::Tuple(items) => (Atom::Int(0), vec![Some(items.to_vec())].into()),
            _ => gradus_source::bug!("a match on something that has no constructor"),
        }
    }

    fn arms(
        &mut self,
        tag: Atom,
        fields: &Rc<[Option<Vec<Value>>]>,
        arms: &[Arm],
        default: Option<&Term>,
        span: Span,
        body: OnArm<'_, 'a>,
    ) -> Lowered<Value> {
        // Constructors that were never built cannot occur.
        let possible = |arm: &&Arm| match tag {
            Atom::Int(known) => known == arm.tag as i64,
            _ => fields.get(arm.tag).is_some_and(|f| f.is_some()),
        };
        let arms: Vec<&Arm> = arms.iter().filter(possible).collect();
        let Some((arm, rest)) = arms.split_first() else {
            return match default {
                Some(default) => body(self, default, Vec::new()),
                None => gradus_source::bug!("a match without a possible arm"),
            };
        };
        let bound = |arm: &Arm| -> Vec<(gradus_core::Var, Value)> {
            let values = fields.get(arm.tag).and_then(|f| f.clone()).unwrap_or_default();
            arm.vars.iter().map(|(v, _)| v.clone()).zip(values).collect()
        };
        let last = rest.is_empty() && default.is_none();
        if last || matches!(tag, Atom::Int(_)) {
            return body(self, &arm.body, bound(arm));
        }
        let here = self.b.scalar(Prim::Equal, &[tag, Atom::Int(arm.tag as i64)]);
        let rest: Vec<Arm> = rest.iter().map(|a| (*a).clone()).collect();
        let bound = bound(arm);
        // Both sides need the one continuation, one after the other.
        let body = std::cell::RefCell::new(body);
        self.choose(here, span, &mut |s| (*body.borrow_mut())(s, &arm.body, bound.clone()), &mut |s| {
            s.arms(tag, fields, &rest, default, span, &mut |s, t, b| (*body.borrow_mut())(s, t, b))
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
        _ => gradus_source::bug!("the sides of a branch have arrays of different structure"),
    }
}
