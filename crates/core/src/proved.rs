//! Which constructs the proofs speak of (`proofs/Language.v`), so that a result can say whether a theorem covers it.
//!
//! A program is within the proved language if every definition that it can reach is: the constructs of core map to the language of the proofs one by
//! one, tuples and records as nested pairs, variants as nested sums, recursive variants as trees.

mod layout;
mod steps;

pub use layout::Layout;
pub use steps::{Steps, EARLIER_CONSTRUCTOR, LAST_ITERATION, NEXT_ITERATION};

use crate::traverse::{for_each_child, with_stack};
use crate::{Definitions, Global, Mode, Prim, Term, TermKind, Type};
use gradus_source::{Diagnostic, Span};
use layout::is_tree;
use rustc_hash::FxHashSet;

/// A construct that the proofs do not speak of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outside {
    pub what: String,
    pub span: Span,
}

/// The theorem of `proofs/Statements.v` about a mode.
pub fn theorem(mode: Mode) -> Option<&'static str> {
    match mode {
        Mode::Forward => Some("K_forward_mode"),
        Mode::Vector => Some("K_vector_mode"),
        Mode::Continuation => Some("C_continuation_mode"),
        Mode::Delta => Some("K_delta_mode"),
        Mode::Monadic => Some("K_reverse_mode"),
        Mode::Combinator => Some("C_combinator_mode"),
        Mode::Trace | Mode::Tower => None,
    }
}

/// What a definition is made of.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// What is outside the proved language, in it and in all that it can reach: each construct where it is met first.
    pub outside: Vec<Outside>,
    /// All definitions that it can reach, itself included.
    pub reached: Vec<Global>,
}

pub fn contents(definitions: &dyn Definitions, global: &Global) -> Result<Contents, Box<Diagnostic>> {
    let pending = vec![(global.clone(), Span::default())];
    let mut walk = Walk { definitions, pending, around: FxHashSet::default(), found: Vec::new() };
    let mut seen = FxHashSet::default();
    // Each with the place of the definition that led to it.
    let mut reached: Vec<(Global, Option<usize>)> = Vec::new();
    let mut above = vec![None];
    while let (Some((global, span)), Some(from)) = (walk.pending.pop(), above.pop()) {
        if !seen.insert(global.clone()) {
            continue;
        }
        // Such a definition may lead to itself at ever more types.
        if at_other_types(&reached, from, &global) {
            walk.note("polymorphic recursion", span);
            continue;
        }
        reached.push((global.clone(), from));
        let definition = definitions.definition(&global)?;
        walk.ty(&definition.ty, Span::default());
        match &definition.term {
            Some(term) => walk.term(term),
            None => walk.note("data from a file", Span::default()),
        }
        above.resize(walk.pending.len(), Some(reached.len() - 1));
    }
    Ok(Contents { outside: walk.found, reached: reached.into_iter().map(|(global, _)| global).collect() })
}

/// Whether the way to a definition leads through the same one at other types.
fn at_other_types(reached: &[(Global, Option<usize>)], from: Option<usize>, global: &Global) -> bool {
    let above = std::iter::successors(from, |place| reached.get(*place).and_then(|(_, above)| *above));
    let mut above = above.filter_map(|place| reached.get(place));
    match global {
        Global::Source { name, .. } => {
            above.any(|(other, _)| matches!(other, Global::Source { name: n, .. } if n == name) && other != global)
        }
        Global::Derived { .. } | Global::Wrapper { .. } => false,
    }
}

struct Walk<'a> {
    definitions: &'a dyn Definitions,
    /// Definitions to look at, and where they are used.
    pending: Vec<(Global, Span)>,
    /// Types that were looked at.
    around: FxHashSet<Type>,
    found: Vec<Outside>,
}

impl Walk<'_> {
    fn note(&mut self, what: impl Into<String>, span: Span) {
        let what = what.into();
        if self.found.iter().all(|known| known.what != what) {
            self.found.push(Outside { what, span });
        }
    }

    fn term(&mut self, term: &Term) {
        with_stack(|| {
            let span = term.span;
            match &*term.kind {
                TermKind::Global(global @ Global::Source { .. }) => self.pending.push((global.clone(), span)),
                // What a derivative form was expanded to.
                TermKind::Global(Global::Derived { .. } | Global::Wrapper { .. }) => {
                    self.note("a derivative inside the function", span)
                }
                TermKind::Lambda(l) => self.ty(&l.ty, span),
                TermKind::Let { scheme, .. } => self.ty(&scheme.ty, span),
                TermKind::LetRec { bindings, .. } => {
                    if bindings.len() > 1 {
                        self.note("mutual recursion", span);
                    }
                    bindings.iter().for_each(|(_, scheme, _)| self.ty(&scheme.ty, span));
                }
                TermKind::Prim { prim, types, .. } => self.prim(*prim, types, span),
                TermKind::Construct { name, types, .. } => self.ty(&Type::Named(name.clone(), types.clone()), span),
                TermKind::ArrayLiteral { element, .. } => self.ty(element, span),
                TermKind::Derive { .. } | TermKind::Lift { .. } => self.note("a derivative inside the function", span),
                TermKind::Literal(crate::Literal::Real(x)) if !x.is_finite() => {
                    self.note("a literal that is no number", span)
                }
                TermKind::Literal(_)
                | TermKind::Var(..)
                | TermKind::App(..)
                | TermKind::Tuple(_)
                | TermKind::Proj { .. }
                | TermKind::Case { .. }
                | TermKind::If { .. } => {}
            }
            for_each_child(term, &mut |child| self.term(child));
        })
    }

    fn prim(&mut self, prim: Prim, types: &[Type], span: Span) {
        let name = prim.info().name;
        match prim {
            Prim::AddReal | Prim::SubReal | Prim::MulReal | Prim::DivReal | Prim::NegReal => {}
            Prim::PowRealInt | Prim::PowReal | Prim::Exp | Prim::Log | Prim::Sqrt => {}
            Prim::Sin | Prim::Cos | Prim::Tan | Prim::Asin | Prim::Acos | Prim::Atan | Prim::Atan2 => {}
            Prim::Sinh | Prim::Cosh | Prim::Tanh | Prim::Log1p | Prim::Expm1 => {}
            Prim::Erf | Prim::Lgamma | Prim::Polygamma | Prim::PowInt => {}
            Prim::Abs | Prim::Maximum | Prim::Minimum | Prim::Sign | Prim::RealOfInt => {}
            Prim::Floor | Prim::Round | Prim::Truncate => {}
            Prim::AddInt | Prim::SubInt | Prim::MulInt | Prim::DivInt | Prim::ModInt | Prim::NegInt | Prim::Not => {}
            Prim::Build | Prim::Get | Prim::Length | Prim::Set | Prim::Ifold | Prim::Iterate | Prim::CheckSize => {}
            Prim::Equal | Prim::NotEqual | Prim::Less | Prim::LessEqual | Prim::Greater | Prim::GreaterEqual => {
                if !matches!(types, [Type::Real | Type::Int]) {
                    self.note(format!("`{name}` of structured data"), span);
                }
            }
            Prim::StringAppend | Prim::StringLength | Prim::StringOfInt | Prim::StringOfReal => {
                self.note(format!("`{name}`"), span)
            }
            // At the reals the text of the family is one operation on reals.
            Prim::VectorAdd | Prim::VectorSub if matches!(types, [Type::Real]) => {}
            Prim::VectorAdd | Prim::VectorSub | Prim::Scale | Prim::Inner | Prim::ZeroLike => {
                self.note(format!("`{name}`"), span)
            }
            // A checkpoint is an application, but in reverse mode it is recorded in a way of its own.
            Prim::StopGradient | Prim::Checkpoint => self.note(format!("`{name}`"), span),
        }
    }

    fn ty(&mut self, ty: &Type, span: Span) {
        with_stack(|| {
            if !self.around.insert(ty.clone()) {
                return;
            }
            match ty {
                Type::Real | Type::Int | Type::Bool | Type::Unit | Type::Var(_) => {}
                Type::String => self.note("strings", span),
                Type::Tuple(parts) => parts.iter().for_each(|t| self.ty(t, span)),
                Type::Fun(ends) => {
                    self.ty(&ends.0, span);
                    self.ty(&ends.1, span);
                }
                Type::Array(element) => self.ty(element, span),
                Type::Named(name, args) => match self.definitions.type_decl(name) {
                    Ok(decl) => {
                        if !is_tree(self.definitions, &decl) {
                            self.note(format!("the type {}, which is recursive through another type", name.base), span);
                            return;
                        }
                        for (_, types) in decl.constructors(args) {
                            types.iter().for_each(|t| self.ty(t, span));
                        }
                    }
                    Err(_) => self.note(format!("the type {}", name.base), span),
                },
            }
        })
    }
}
