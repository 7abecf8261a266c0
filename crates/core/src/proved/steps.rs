//! What a run costs in steps of the semantics (`tick` in `proofs/Language.v`), the unit in which the theorems bound the cost of derivatives.
//!
//! A node of core costs as many steps as its text in the proved language has constructs, its parts left out: an n-ary tuple is n - 1 pairs, the third
//! constructor of a variant two `inr` and one `inl`, and so on. `crates/oracle` writes that text, has the extracted semantics run it, and compares the
//! counts. Three things are known only when a program runs, and an evaluator adds them:
//!
//! - the constructor that a `case` meets: [`EARLIER_CONSTRUCTOR`] for each one before it;
//! - the turns of a loop: [`Steps::turn`] for each, and for `iterate` [`NEXT_ITERATION`] and [`LAST_ITERATION`];
//! - a function that is applied to one of several arguments: its body is a function again, which costs one step.

use super::Layout;
use crate::check::{part_types, Linked, PartTypes};
use crate::traverse::{for_each_child, with_stack};
use crate::{Arm, Definitions, Literal, Prim, Term, TermKind, Type};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A `case` looks at the constructors one after the other: a decision, and the variable that stands for the others.
pub const EARLIER_CONSTRUCTOR: u64 = 2;
/// `iterate f` is `let s = f in let r = fix r x. case s x of next -> let y = next in r y | last -> let z = last in let y = z in y in r x`: what a turn costs apart from the
/// function, and what the end of all costs. The five constructs around are as many as the first turn has less than the others, since nothing leads to it.
pub const NEXT_ITERATION: u64 = 9;
pub const LAST_ITERATION: u64 = 5;

/// The steps of the nodes of a definition, by address.
#[derive(Debug, Default)]
pub struct Steps {
    nodes: FxHashMap<*const TermKind, u32>,
    /// For each arm of a `case`, what it costs to bind its variables.
    arms: FxHashMap<*const TermKind, Vec<u32>>,
}

impl Steps {
    /// `None` if something in the term is outside the proved language.
    pub fn of(definitions: &dyn Definitions, term: &Term) -> Option<Steps> {
        let types = part_types(&Linked { definitions, translate: None }, term).ok()?;
        let mut walk = Walk { definitions, types, found: Steps::default() };
        walk.term(term)?;
        Some(walk.found)
    }

    /// What a node costs by itself.
    pub fn node(&self, term: &Term) -> u32 {
        self.nodes.get(&Arc::as_ptr(&term.kind)).copied().unwrap_or(1)
    }

    /// What it costs to bind the variables of an arm.
    pub fn arm(&self, case: &Term, arm: usize) -> u32 {
        let arms = self.arms.get(&Arc::as_ptr(&case.kind));
        arms.and_then(|arms| arms.get(arm)).copied().unwrap_or(0)
    }

    /// What each turn of `build` or `ifold` costs apart from running the function.
    pub fn turn(prim: Prim, args: &[Term]) -> u32 {
        match (prim, args) {
            // The turn.
            (Prim::Build, [_, function]) if parameters(function) > 0 => 1,
            // And `f i`.
            (Prim::Build, _) => 4,
            // The function of two arguments costs a step where it is applied to the first; the turn is this step.
            (Prim::Ifold, [_, step, _]) if parameters(step) > 1 => 0,
            // The turn and `f i s`.
            (Prim::Ifold, _) => 6,
            _ => 0,
        }
    }
}

struct Walk<'a> {
    definitions: &'a dyn Definitions,
    types: PartTypes,
    found: Steps,
}

impl Walk<'_> {
    fn term(&mut self, term: &Term) -> Option<()> {
        with_stack(|| {
            let steps = self.node(term)?;
            if steps != 1 {
                self.found.nodes.insert(Arc::as_ptr(&term.kind), steps);
            }
            let mut inside = Some(());
            for_each_child(term, &mut |child| {
                if inside.is_some() {
                    inside = self.term(child);
                }
            });
            inside
        })
    }

    fn node(&mut self, term: &Term) -> Option<u32> {
        Some(match &*term.kind {
            TermKind::Var(..) | TermKind::Global(_) | TermKind::Lambda(_) | TermKind::App(..) => 1,
            TermKind::Let { .. } | TermKind::If { .. } => 1,
            TermKind::Literal(literal) => match literal {
                Literal::Real(_) | Literal::Int(_) | Literal::Unit => 1,
                // A side of the sum of two units.
                Literal::Bool(_) => 2,
                Literal::String(_) => return None,
            },
            // `let f = fix ..`
            TermKind::LetRec { bindings, .. } => match &bindings[..] {
                [_] => 2,
                _ => return None,
            },
            TermKind::Prim { prim, types, args, .. } => prim_steps(*prim, types, args)?,
            TermKind::Tuple(items) => tuple(items.len()),
            TermKind::Proj { index, term } => match self.types.get(&Arc::as_ptr(&term.kind))? {
                Type::Tuple(types) => component(*index, types.len()),
                ty => {
                    let layout = self.layout(ty)?;
                    if layout.recursive() {
                        return None;
                    }
                    component(*index, layout.constructors.first()?.len())
                }
            },
            TermKind::Construct { name, types, tag, .. } => {
                let layout = Layout::of(self.definitions, name, types).ok()?;
                let args = layout.constructors.get(*tag)?;
                let own = args.iter().flatten().count();
                let last = tag + 1 == layout.constructors.len();
                let label = tuple(own) + *tag as u32 + u32::from(!last);
                // `node label [subtrees]`
                label + if layout.recursive() { 1 + array(args.len() - own) } else { 0 }
            }
            TermKind::Case { scrutinee, arms, .. } => {
                let layout = self.layout(self.types.get(&Arc::as_ptr(&scrutinee.kind))?)?;
                let steps = arms.iter().map(|arm| arm_steps(&layout, arm)).collect::<Option<Vec<u32>>>()?;
                self.found.arms.insert(Arc::as_ptr(&term.kind), steps);
                // `let node = unnode .. in case fst node of ..`
                1 + if layout.recursive() { 4 } else { 0 }
            }
            TermKind::ArrayLiteral { items, .. } => array(items.len()),
            TermKind::Derive { .. } | TermKind::Lift { .. } => return None,
        })
    }

    fn layout(&self, ty: &Type) -> Option<Layout> {
        match ty {
            Type::Named(name, args) => Layout::of(self.definitions, name, args).ok(),
            Type::Var(_)
            | Type::Real
            | Type::Int
            | Type::Bool
            | Type::String
            | Type::Unit
            | Type::Tuple(_)
            | Type::Fun(_)
            | Type::Array(_) => None,
        }
    }
}

/// Nested pairs; nothing at all is the unit.
fn tuple(count: usize) -> u32 {
    match count {
        0 => 1,
        _ => count as u32 - 1,
    }
}

/// `snd` as often as there are components before, and `fst` unless it is the last.
fn component(index: usize, count: usize) -> u32 {
    index as u32 + u32::from(index + 1 < count)
}

/// A `cons` for each item, and the empty array.
fn array(count: usize) -> u32 {
    count as u32 + 1
}

/// `let x = component of label in ..` for an argument of the constructor, `let x = (snd node).(i) in ..` for a subtree.
fn arm_steps(layout: &Layout, arm: &Arm) -> Option<u32> {
    let args = layout.constructors.get(arm.tag)?;
    let own = args.iter().flatten().count();
    let subtrees = 5 * (args.len() - own) as u32;
    Some(subtrees + (0..own).map(|index| 2 + component(index, own)).sum::<u32>())
}

/// How many parameters of a function are written out.
fn parameters(function: &Term) -> usize {
    match &*function.kind {
        TermKind::Lambda(outer) if matches!(&*outer.body.kind, TermKind::Lambda(_)) => 2,
        TermKind::Lambda(_) => 1,
        _ => 0,
    }
}

fn prim_steps(prim: Prim, types: &[Type], args: &[Term]) -> Option<u32> {
    let real = matches!(types, [Type::Real]);
    Some(match prim {
        Prim::AddReal | Prim::SubReal | Prim::MulReal | Prim::DivReal | Prim::NegReal => 1,
        Prim::PowRealInt | Prim::PowReal | Prim::Exp | Prim::Log | Prim::Sqrt => 1,
        Prim::Sin | Prim::Cos | Prim::Tan | Prim::Asin | Prim::Acos | Prim::Atan | Prim::Atan2 => 1,
        Prim::Sinh | Prim::Cosh | Prim::Tanh | Prim::Log1p | Prim::Expm1 => 1,
        Prim::Erf | Prim::Lgamma | Prim::Polygamma | Prim::Abs | Prim::Maximum | Prim::Minimum => 1,
        Prim::RealOfInt | Prim::Floor | Prim::Round | Prim::Truncate => 1,
        Prim::AddInt | Prim::SubInt | Prim::MulInt | Prim::DivInt | Prim::ModInt | Prim::PowInt => 1,
        Prim::Get | Prim::Length | Prim::Set => 1,
        // `0 - n`, and whether `x < 0`
        Prim::NegInt | Prim::Sign => 2,
        Prim::Equal | Prim::Less | Prim::LessEqual if real || matches!(types, [Type::Int]) => 1,
        // `-a < -b`
        Prim::Greater | Prim::GreaterEqual if real => 3,
        // The other one, and `not`.
        Prim::Greater | Prim::GreaterEqual if matches!(types, [Type::Int]) => 4,
        Prim::NotEqual if real || matches!(types, [Type::Int]) => 4,
        Prim::Not => 3,
        Prim::VectorAdd | Prim::VectorSub if real => 1,
        // `let a = .. in if length a = n then a else error`
        Prim::CheckSize => 6,
        // A function that is written out costs a step as the argument that it is here, and none in the loop.
        Prim::Build if args.get(1).is_some_and(|function| parameters(function) > 0) => 0,
        Prim::Ifold if args.get(1).is_some_and(|step| parameters(step) > 1) => 0,
        // `let f = .. in loop n ..`
        Prim::Ifold if args.first().is_some_and(Term::is_path) => 2,
        // `let n = .. in let f = .. in build n ..`
        Prim::Build | Prim::Ifold => 4,
        // See `NEXT_ITERATION`.
        Prim::Iterate => 0,
        Prim::Equal | Prim::NotEqual | Prim::Less | Prim::LessEqual | Prim::Greater | Prim::GreaterEqual => {
            return None
        }
        Prim::VectorAdd | Prim::VectorSub | Prim::Scale | Prim::Inner | Prim::ZeroLike => return None,
        Prim::StringAppend | Prim::StringLength | Prim::StringOfInt | Prim::StringOfReal => return None,
        Prim::StopGradient | Prim::Checkpoint => return None,
    })
}
