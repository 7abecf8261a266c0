//! Walking and rebuilding terms: children, free variables, renaming, substitution of types.
//! Every function here grows the stack as needed, so that deep terms are no danger.

use crate::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Runs `work` with room on the stack. Every recursive pass over terms goes through this.
pub fn with_stack<R>(work: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(128 * 1024, 4 * 1024 * 1024, work)
}

/// Rebuilds a term with `f` applied to each direct child term.
pub fn map_children(term: &Term, f: &mut dyn FnMut(&Term) -> Term) -> Term {
    let kind = match &*term.kind {
        TermKind::Var(..) | TermKind::Global(_) | TermKind::Literal(_) => return term.clone(),
        TermKind::Lambda(l) => TermKind::Lambda(Arc::new(Lambda {
            param: l.param.clone(),
            ty: l.ty.clone(),
            body: f(&l.body),
            origin: l.origin.clone(),
        })),
        TermKind::App(function, argument) => TermKind::App(f(function), f(argument)),
        TermKind::Let { var, scheme, bound, body } => {
            TermKind::Let { var: var.clone(), scheme: scheme.clone(), bound: f(bound), body: f(body) }
        }
        TermKind::LetRec { bindings, body } => TermKind::LetRec {
            bindings: bindings.iter().map(|(v, s, t)| (v.clone(), s.clone(), f(t))).collect(),
            body: f(body),
        },
        TermKind::Prim { prim, types, args, site } => {
            TermKind::Prim { prim: *prim, types: types.clone(), args: args.iter().map(f).collect(), site: *site }
        }
        TermKind::Tuple(items) => TermKind::Tuple(items.iter().map(f).collect()),
        TermKind::Proj { index, term } => TermKind::Proj { index: *index, term: f(term) },
        TermKind::Construct { name, types, tag, args } => TermKind::Construct {
            name: name.clone(),
            types: types.clone(),
            tag: *tag,
            args: args.iter().map(f).collect(),
        },
        TermKind::Case { scrutinee, arms, default } => TermKind::Case {
            scrutinee: f(scrutinee),
            arms: arms.iter().map(|a| Arm { tag: a.tag, vars: a.vars.clone(), body: f(&a.body) }).collect(),
            default: default.as_ref().map(f),
        },
        TermKind::If { condition, then, otherwise } => {
            TermKind::If { condition: f(condition), then: f(then), otherwise: f(otherwise) }
        }
        TermKind::ArrayLiteral { element, items } => {
            TermKind::ArrayLiteral { element: element.clone(), items: items.iter().map(f).collect() }
        }
        TermKind::Derive { op, types, args } => {
            TermKind::Derive { op: *op, types: types.clone(), args: args.iter().map(f).collect() }
        }
        TermKind::Lift { under, mode, ty, term } => {
            TermKind::Lift { under: under.clone(), mode: *mode, ty: ty.clone(), term: f(term) }
        }
    };
    Term::new(kind, term.span)
}

/// Calls `f` on each direct child term, in order of evaluation.
pub fn for_each_child(term: &Term, f: &mut dyn FnMut(&Term)) {
    match &*term.kind {
        TermKind::Var(..) | TermKind::Global(_) | TermKind::Literal(_) => {}
        TermKind::Lambda(l) => f(&l.body),
        TermKind::App(function, argument) => {
            f(function);
            f(argument);
        }
        TermKind::Let { bound, body, .. } => {
            f(bound);
            f(body);
        }
        TermKind::LetRec { bindings, body } => {
            bindings.iter().for_each(|(_, _, t)| f(t));
            f(body);
        }
        TermKind::Prim { args, .. } | TermKind::Construct { args, .. } | TermKind::Derive { args, .. } => {
            args.iter().for_each(f)
        }
        TermKind::Tuple(items) | TermKind::ArrayLiteral { items, .. } => items.iter().for_each(f),
        TermKind::Proj { term, .. } | TermKind::Lift { term, .. } => f(term),
        TermKind::Case { scrutinee, arms, default } => {
            f(scrutinee);
            arms.iter().for_each(|a| f(&a.body));
            default.iter().for_each(f);
        }
        TermKind::If { condition, then, otherwise } => {
            f(condition);
            f(then);
            f(otherwise);
        }
    }
}

/// The child terms that this node owns alone, for taking it apart.
pub(crate) fn for_each_child_mut(kind: &mut TermKind, f: &mut dyn FnMut(&mut Term)) {
    match kind {
        TermKind::Var(..) | TermKind::Global(_) | TermKind::Literal(_) => {}
        TermKind::Lambda(l) => {
            if let Some(l) = Arc::get_mut(l) {
                f(&mut l.body)
            }
        }
        TermKind::App(function, argument) => {
            f(function);
            f(argument);
        }
        TermKind::Let { bound, body, .. } => {
            f(bound);
            f(body);
        }
        TermKind::LetRec { bindings, body } => {
            bindings.iter_mut().for_each(|(_, _, t)| f(t));
            f(body);
        }
        TermKind::Prim { args, .. } | TermKind::Construct { args, .. } | TermKind::Derive { args, .. } => {
            args.iter_mut().for_each(f)
        }
        TermKind::Tuple(items) | TermKind::ArrayLiteral { items, .. } => items.iter_mut().for_each(f),
        TermKind::Proj { term, .. } | TermKind::Lift { term, .. } => f(term),
        TermKind::Case { scrutinee, arms, default } => {
            f(scrutinee);
            arms.iter_mut().for_each(|a| f(&mut a.body));
            default.iter_mut().for_each(f);
        }
        TermKind::If { condition, then, otherwise } => {
            f(condition);
            f(then);
            f(otherwise);
        }
    }
}

/// The free variables of a term, in order of first occurrence. Because binders are unique, a variable is free
/// exactly if the term mentions it and does not bind it.
pub fn free_vars(term: &Term) -> Vec<Var> {
    fn walk(term: &Term, seen: &mut FxHashSet<Var>, order: &mut Vec<Var>, bound: &mut FxHashSet<Var>) {
        with_stack(|| {
            if let TermKind::Var(v, _) = &*term.kind {
                if seen.insert(v.clone()) {
                    order.push(v.clone());
                }
            }
            for_each_binder(term, &mut |v| {
                bound.insert(v.clone());
            });
            for_each_child(term, &mut |child| walk(child, seen, order, bound));
        })
    }
    let (mut seen, mut order, mut bound) = (FxHashSet::default(), Vec::new(), FxHashSet::default());
    walk(term, &mut seen, &mut order, &mut bound);
    order.retain(|v| !bound.contains(v));
    order
}

/// Calls `f` on each variable that this node itself binds.
pub fn for_each_binder(term: &Term, f: &mut dyn FnMut(&Var)) {
    match &*term.kind {
        TermKind::Lambda(l) => f(&l.param),
        TermKind::Let { var, .. } => f(var),
        TermKind::LetRec { bindings, .. } => bindings.iter().for_each(|(v, _, _)| f(v)),
        TermKind::Case { arms, .. } => arms.iter().for_each(|a| a.vars.iter().for_each(|(v, _)| f(v))),
        TermKind::Var(..)
        | TermKind::Global(_)
        | TermKind::Literal(_)
        | TermKind::App(..)
        | TermKind::Prim { .. }
        | TermKind::Tuple(_)
        | TermKind::Proj { .. }
        | TermKind::Construct { .. }
        | TermKind::If { .. }
        | TermKind::ArrayLiteral { .. }
        | TermKind::Derive { .. }
        | TermKind::Lift { .. } => {}
    }
}

/// Adds the type of every variable that is bound in a term. Binders are unique within a definition, so one flat map per definition will do.
pub fn add_binder_types(term: &Term, types: &mut FxHashMap<Var, Type>) {
    with_stack(|| {
        match &*term.kind {
            TermKind::Lambda(l) => {
                types.insert(l.param.clone(), l.ty.clone());
            }
            TermKind::Let { var, scheme, .. } => {
                types.insert(var.clone(), scheme.ty.clone());
            }
            TermKind::LetRec { bindings, .. } => {
                types.extend(bindings.iter().map(|(v, s, _)| (v.clone(), s.ty.clone())));
            }
            TermKind::Case { arms, .. } => {
                types.extend(arms.iter().flat_map(|arm| arm.vars.iter().cloned()));
            }
            TermKind::Var(..)
            | TermKind::Global(_)
            | TermKind::Literal(_)
            | TermKind::App(..)
            | TermKind::Prim { .. }
            | TermKind::Tuple(_)
            | TermKind::Proj { .. }
            | TermKind::Construct { .. }
            | TermKind::If { .. }
            | TermKind::ArrayLiteral { .. }
            | TermKind::Derive { .. }
            | TermKind::Lift { .. } => {}
        }
        for_each_child(term, &mut |child| add_binder_types(child, types));
    })
}

/// A copy with every binder renewed and variables and types replaced: for inlining, and for making an instance
/// of a polymorphic definition. A renewed function keeps no `origin`, since its binders are its own.
#[derive(Default)]
pub struct Copy {
    pub terms: FxHashMap<Var, Term>,
    pub types: Vec<(TypeVar, Type)>,
}

impl Copy {
    pub fn term(&mut self, term: &Term) -> Term {
        with_stack(|| self.term_inner(term))
    }

    fn renew(&mut self, var: &Var, span: gradus_source::Span) -> Var {
        let new = var.refresh();
        self.terms.insert(var.clone(), build::At(span).var(&new));
        new
    }

    fn ty(&self, ty: &Type) -> Type {
        if self.types.is_empty() {
            ty.clone()
        } else {
            ty.substitute(&self.types)
        }
    }

    fn tys(&self, types: &Arc<[Type]>) -> Arc<[Type]> {
        types.iter().map(|t| self.ty(t)).collect()
    }

    fn scheme(&self, scheme: &Scheme) -> Scheme {
        Scheme { vars: scheme.vars.clone(), ty: self.ty(&scheme.ty) }
    }

    fn global(&self, global: &Global) -> Global {
        match global {
            Global::Source { name, types } => Global::Source { name: name.clone(), types: self.tys(types) },
            Global::Derived { mode, of } => Global::Derived { mode: *mode, of: Arc::new(self.global(of)) },
            Global::Wrapper { name, modes, types } => {
                Global::Wrapper { name, modes: modes.clone(), types: self.tys(types) }
            }
        }
    }

    fn term_inner(&mut self, term: &Term) -> Term {
        let span = term.span;
        let kind = match &*term.kind {
            TermKind::Var(v, types) => match self.terms.get(v) {
                None => TermKind::Var(v.clone(), self.tys(types)),
                Some(found) => match &*found.kind {
                    TermKind::Var(w, _) => TermKind::Var(w.clone(), self.tys(types)),
                    _ => return found.clone(),
                },
            },
            TermKind::Global(global) => TermKind::Global(self.global(global)),
            TermKind::Lambda(l) => {
                let param = self.renew(&l.param, span);
                let body = self.term(&l.body);
                TermKind::Lambda(Arc::new(Lambda { param, ty: self.ty(&l.ty), body, origin: None }))
            }
            TermKind::Let { var, scheme, bound, body } => {
                let bound = self.term(bound);
                let var = self.renew(var, span);
                TermKind::Let { var, scheme: self.scheme(scheme), bound, body: self.term(body) }
            }
            TermKind::LetRec { bindings, body } => {
                let vars: Vec<Var> = bindings.iter().map(|(v, _, _)| self.renew(v, span)).collect();
                let bindings =
                    bindings.iter().zip(vars).map(|((_, s, t), v)| (v, self.scheme(s), self.term(t))).collect();
                TermKind::LetRec { bindings, body: self.term(body) }
            }
            TermKind::Case { scrutinee, arms, default } => {
                let scrutinee = self.term(scrutinee);
                let arms = arms
                    .iter()
                    .map(|a| {
                        let vars = a.vars.iter().map(|(v, t)| (self.renew(v, span), self.ty(t))).collect();
                        Arm { tag: a.tag, vars, body: self.term(&a.body) }
                    })
                    .collect();
                TermKind::Case { scrutinee, arms, default: default.as_ref().map(|d| self.term(d)) }
            }
            TermKind::Prim { prim, types, args, site } => TermKind::Prim {
                prim: *prim,
                types: self.tys(types),
                args: args.iter().map(|t| self.term(t)).collect(),
                site: *site,
            },
            TermKind::Construct { name, types, tag, args } => TermKind::Construct {
                name: name.clone(),
                types: self.tys(types),
                tag: *tag,
                args: args.iter().map(|t| self.term(t)).collect(),
            },
            TermKind::ArrayLiteral { element, items } => TermKind::ArrayLiteral {
                element: self.ty(element),
                items: items.iter().map(|t| self.term(t)).collect(),
            },
            TermKind::Derive { op, types, args } => {
                TermKind::Derive { op: *op, types: self.tys(types), args: args.iter().map(|t| self.term(t)).collect() }
            }
            TermKind::Lift { under, mode, ty, term } => {
                TermKind::Lift { under: under.clone(), mode: *mode, ty: self.ty(ty), term: self.term(term) }
            }
            TermKind::Literal(_)
            | TermKind::App(..)
            | TermKind::Tuple(_)
            | TermKind::Proj { .. }
            | TermKind::If { .. } => return map_children(term, &mut |t| self.term(t)),
        };
        Term::new(kind, span)
    }
}
