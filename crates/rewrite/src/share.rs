//! Common subexpressions: a total expression on numbers that is certain to be evaluated twice or more is bound to a variable.
//!
//! A *region* is what runs as a whole: the body of a function, or a branch. An expression is bound at the start of the region, or after the
//! last definition of the region that it uses.

use crate::facts::Facts;
use crate::settings::Settings;
use crate::steps::Trail;
use gradus_core::build::At;
use gradus_core::traverse::{for_each_child, map_children, with_stack};
use gradus_core::{Literal, Prim, Term, TermKind, Type, Var};
use rustc_hash::FxHashMap;

/// Shares what can be shared, from the outside in.
pub fn share(term: &Term, settings: Settings, trail: &mut Trail) -> Term {
    let mut pass = Share { facts: Facts::new(settings, None), numbers: Numbers::default() };
    pass.learn(term);
    let shared = pass.region(term);
    if pass.numbers.shared > 0 {
        trail.fire("share", || term.clone(), || shared.clone());
    }
    shared
}

/// Equal expressions have equal numbers.
#[derive(Default)]
struct Numbers {
    known: FxHashMap<Key, usize>,
    /// By number: how many nodes.
    sizes: Vec<usize>,
    /// Answers of [`Share::number`], by the address of a term that is kept alive beside: each is asked for again by the terms around it.
    answers: FxHashMap<usize, (Term, Option<usize>)>,
    shared: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Var(Var),
    Real(u64),
    Int(i64),
    Bool(bool),
    Proj(usize, usize),
    Prim(Prim, Vec<usize>),
}

struct Share<'f> {
    facts: Facts<'f>,
    numbers: Numbers,
}

impl Share<'_> {
    fn learn(&mut self, term: &Term) {
        with_stack(|| {
            self.facts.enter(term);
            if let TermKind::Let { var, bound, .. } = &*term.kind {
                self.facts.note_value(var, bound);
            }
            for_each_child(term, &mut |child| self.learn(child));
        })
    }

    /// The number of an expression that may be shared or be part of one.
    fn number(&mut self, term: &Term) -> Option<usize> {
        let address = std::sync::Arc::as_ptr(&term.kind) as usize;
        if let Some((_, known)) = self.numbers.answers.get(&address) {
            return *known;
        }
        let answer = self.new_number(term);
        self.numbers.answers.insert(address, (term.clone(), answer));
        answer
    }

    fn new_number(&mut self, term: &Term) -> Option<usize> {
        let (key, size) = with_stack(|| match &*term.kind {
            TermKind::Var(var, types) if types.is_empty() => Some((Key::Var(var.clone()), 1)),
            TermKind::Literal(literal) => match literal {
                Literal::Real(x) => Some((Key::Real(x.to_bits()), 1)),
                Literal::Int(k) => Some((Key::Int(*k), 1)),
                Literal::Bool(p) => Some((Key::Bool(*p), 1)),
                Literal::String(_) | Literal::Unit => None,
            },
            TermKind::Proj { index, term: inner } => {
                let inner = self.number(inner)?;
                Some((Key::Proj(*index, inner), 1 + self.numbers.sizes[inner]))
            }
            TermKind::Prim { prim, args, site, .. } => {
                let watched = site.differentiated && prim.info().kinks.is_some();
                let scalar = matches!(prim.info().result, Type::Real | Type::Int | Type::Bool);
                let of_arrays = matches!(prim, Prim::Get | Prim::Length) || prim.info().scheme.vars.is_empty();
                if watched || !of_arrays || !(scalar || *prim == Prim::Get) {
                    return None;
                }
                let parts: Vec<usize> = args.iter().map(|arg| self.number(arg)).collect::<Option<_>>()?;
                let size = 1 + parts.iter().map(|part| self.numbers.sizes[*part]).sum::<usize>();
                Some((Key::Prim(*prim, parts), size))
            }
            _ => None,
        })?;
        let next = self.numbers.known.len();
        let number = *self.numbers.known.entry(key).or_insert(next);
        if number == next {
            self.numbers.sizes.push(size);
        }
        Some(number)
    }

    /// The type of an expression worth sharing.
    fn scalar(&self, term: &Term) -> Option<Type> {
        let TermKind::Prim { .. } = &*term.kind else { return None };
        let ty = self.facts.synthesize(term)?;
        (matches!(ty, Type::Real | Type::Int | Type::Bool) && self.facts.is_total(term)).then_some(ty)
    }

    fn region(&mut self, term: &Term) -> Term {
        let mut counts = FxHashMap::default();
        self.count(term, &mut counts);
        // The definition, and a variable for each use, must take fewer steps.
        counts.retain(|number, count| (*count - 1) * self.numbers.sizes[*number] > *count + 1);
        let mut writer = Writer { share: self, wanted: counts, bound: FxHashMap::default(), open: vec![Vec::new()] };
        let body = writer.term(term, true);
        let start = writer.open.pop().unwrap_or_default();
        wrap(start, body)
    }

    /// How often each expression is certain to be evaluated.
    fn count(&mut self, term: &Term, counts: &mut FxHashMap<usize, usize>) {
        with_stack(|| {
            if self.scalar(term).is_some() {
                if let Some(number) = self.number(term) {
                    let count = counts.entry(number).or_default();
                    *count += 1;
                    // The parts of one that is shared stand once.
                    if *count > 1 {
                        return;
                    }
                }
            }
            match &*term.kind {
                TermKind::Lambda(_) | TermKind::LetRec { .. } => {}
                TermKind::If { condition: decides, .. } | TermKind::Case { scrutinee: decides, .. } => {
                    self.count(decides, counts)
                }
                _ => for_each_child(term, &mut |child| self.count(child, counts)),
            }
        })
    }
}

/// Each with its number.
type Definitions = Vec<(Var, Type, Term, usize)>;

struct Writer<'w, 'f> {
    share: &'w mut Share<'f>,
    wanted: FxHashMap<usize, usize>,
    /// The variables of what has been bound, by number.
    bound: FxHashMap<usize, Var>,
    /// What to bind at the start of the region and after each of its definitions, the innermost last.
    open: Vec<Definitions>,
}

impl Writer<'_, '_> {
    /// `spine`: outside of branches of the region.
    fn term(&mut self, term: &Term, spine: bool) -> Term {
        with_stack(|| self.node(term, spine))
    }

    fn node(&mut self, term: &Term, spine: bool) -> Term {
        let at = At(term.span);
        if let Some(ty) = self.share.scalar(term) {
            if let Some(number) = self.share.number(term).filter(|number| self.wanted.contains_key(number)) {
                if let Some(var) = self.bound.get(&number) {
                    return at.var(var);
                }
                // Bound where it is certain to be evaluated; a branch that comes first keeps its own.
                if spine {
                    let inner = self.children(term, spine);
                    let var = Var::fresh("shared");
                    self.share.facts.note_type(&var, &ty);
                    self.share.numbers.shared += 1;
                    self.bound.insert(number, var.clone());
                    if let Some(open) = self.open.last_mut() {
                        open.push((var.clone(), ty, inner, number));
                    }
                    return at.var(&var);
                }
            }
        }
        match &*term.kind {
            TermKind::Let { var, scheme, bound, body } if spine => {
                let bound = self.term(bound, true);
                self.open.push(Vec::new());
                let body = self.term(body, true);
                let inner = self.open.pop().unwrap_or_default();
                // Out of scope from here on.
                inner.iter().for_each(|(_, _, _, number)| drop(self.bound.remove(number)));
                let (var, scheme, body) = (var.clone(), scheme.clone(), wrap(inner, body));
                at.term(TermKind::Let { var, scheme, bound, body })
            }
            TermKind::Lambda(lambda) if lambda.origin.is_some() => term.clone(),
            // What is bound around it may be used inside a function too.
            TermKind::Lambda(_) | TermKind::LetRec { .. } if spine => {
                map_children(term, &mut |child| self.branch(child))
            }
            TermKind::If { condition, then, otherwise } if spine => {
                let condition = self.term(condition, spine);
                at.if_(condition, self.branch(then), self.branch(otherwise))
            }
            TermKind::Case { scrutinee, arms, default } if spine => {
                let scrutinee = self.term(scrutinee, spine);
                let arms = arms
                    .iter()
                    .map(|arm| gradus_core::Arm { tag: arm.tag, vars: arm.vars.clone(), body: self.branch(&arm.body) })
                    .collect();
                at.case(scrutinee, arms, default.as_ref().map(|body| self.branch(body)))
            }
            _ => self.children(term, spine),
        }
    }

    /// A branch first uses what the region has bound, then shares on its own.
    fn branch(&mut self, term: &Term) -> Term {
        let used = if self.bound.is_empty() { term.clone() } else { self.term(term, false) };
        self.share.region(&used)
    }

    fn children(&mut self, term: &Term, spine: bool) -> Term {
        map_children(term, &mut |child| self.term(child, spine))
    }
}

fn wrap(definitions: Definitions, body: Term) -> Term {
    let span = body.span;
    definitions.into_iter().rev().fold(body, |body, (var, ty, bound, _)| At(span).bind(&var, ty, bound, body))
}
