//! Functions, `let` and `let rec`, with tuples taken apart by patterns.

use super::layout::Doc;
use super::terms::{Level, TermPrinter};
use super::Annotations;
use crate::*;
use std::sync::Arc;

impl TermPrinter<'_> {
    /// Parameters of a chain of functions, then its body. Returns the parameters as text and the variables to unbind.
    pub fn parameters(&mut self, lambda: &Arc<Lambda>, annotate: bool) -> (Vec<String>, Vec<Var>, Term) {
        let (mut texts, mut vars) = (Vec::new(), Vec::new());
        let mut current = lambda.clone();
        loop {
            let (pattern, bound, body) = self.pattern_of(&current.param, &current.ty, &current.body);
            vars.extend(bound);
            // A type variable would have the same name in every annotation, and so be taken for one and the same.
            let annotate = annotate && !current.ty.has_vars();
            texts.push(if annotate { format!("({pattern} : {})", self.ty(&current.ty)) } else { pattern });
            match &*body.kind {
                TermKind::Lambda(inner) => current = inner.clone(),
                _ => return (texts, vars, body),
            }
        }
    }

    /// A variable that is bound and, if the body starts by taking it apart and does nothing else with it, the components
    /// instead; the rest of the body.
    fn pattern_of(&mut self, var: &Var, ty: &Type, body: &Term) -> (String, Vec<Var>, Term) {
        self.environment.insert(var.clone(), Scheme::mono(ty.clone()));
        if let Type::Tuple(parts) = ty {
            let (components, rest) = components(var, parts.len(), body);
            if !components.is_empty() && components.iter().flatten().count() == self.uses(var) {
                let (pattern, vars) = self.tuple_pattern(&components);
                return (pattern, vars, rest);
            }
        }
        (self.bind(var, Scheme::mono(ty.clone())), vec![var.clone()], body.clone())
    }

    fn tuple_pattern(&mut self, components: &[Option<(Var, Scheme)>]) -> (String, Vec<Var>) {
        let (mut items, mut vars) = (Vec::new(), Vec::new());
        for component in components {
            match component {
                Some((var, scheme)) => {
                    items.push(self.bind(var, scheme.clone()));
                    vars.push(var.clone());
                }
                None => items.push("_".into()),
            }
        }
        (format!("({})", items.join(", ")), vars)
    }

    pub(super) fn lambda(&mut self, lambda: &Arc<Lambda>) -> Doc {
        let annotate = self.options.annotations == Annotations::All;
        let (params, vars, body) = self.parameters(lambda, annotate);
        let head = self.text(format!("fun {} ->", params.join(" ")));
        let line = self.layout.line();
        let body = self.term(&body, Level::Open);
        let body = self.layout.many([line, body]);
        let body = self.layout.nest(body);
        self.unbind(&vars);
        self.layout.group([head, body])
    }

    /// `let`s one after the other, without indentation.
    pub(super) fn lets(&mut self, term: &Term) -> Doc {
        let mut parts = Vec::new();
        let mut bound_vars = Vec::new();
        let mut current = term.clone();
        loop {
            let next = match &*current.kind {
                TermKind::Let { var, scheme, bound, body } => {
                    let (doc, vars, rest) = self.one_let(var, scheme, bound, body);
                    parts.push(doc);
                    bound_vars.extend(vars);
                    rest
                }
                TermKind::LetRec { bindings, body } => {
                    for (var, scheme, _) in bindings {
                        self.bind(var, scheme.clone());
                        bound_vars.push(var.clone());
                    }
                    for (index, (var, scheme, bound)) in bindings.iter().enumerate() {
                        if index > 0 {
                            parts.push(self.layout.line());
                        }
                        let word = if index == 0 { "let rec" } else { "and" };
                        let name = self.names.local(var);
                        parts.push(self.binding(word, &name, scheme, bound));
                    }
                    body.clone()
                }
                _ => break,
            };
            parts.push(self.text(" in"));
            parts.push(self.layout.line());
            current = next;
        }
        parts.push(self.term(&current, Level::Open));
        self.unbind(&bound_vars);
        self.layout.group(parts)
    }

    fn one_let(&mut self, var: &Var, scheme: &Scheme, bound: &Term, body: &Term) -> (Doc, Vec<Var>, Term) {
        // `let a = fst t in let b = snd t in ...` as `let (a, b) = t in ...`
        if let TermKind::Proj { term: tuple, .. } = &*bound.kind {
            if let (TermKind::Var(t, _), Some(Type::Tuple(types))) = (&*tuple.kind, self.type_of(tuple)) {
                let whole = build::At(bound.span).term(TermKind::Let {
                    var: var.clone(),
                    scheme: scheme.clone(),
                    bound: bound.clone(),
                    body: body.clone(),
                });
                let (found, rest) = components(t, types.len(), &whole);
                // One component of a pair reads better as `fst t`.
                if found.iter().flatten().count() > 1 || found.len() > 2 {
                    let tuple = self.named(t);
                    let (pattern, vars) = self.tuple_pattern(&found);
                    let start = self.text(format!("let {pattern} = "));
                    return (self.layout.many([start, tuple]), vars, rest);
                }
            }
        }
        if let (Type::Tuple(types), true) = (&scheme.ty, scheme.vars.is_empty()) {
            let (found, rest) = components(var, types.len(), body);
            if !found.is_empty() && found.iter().flatten().count() == self.uses(var) {
                let value = self.term(bound, Level::Open);
                self.environment.insert(var.clone(), scheme.clone());
                let (pattern, vars) = self.tuple_pattern(&found);
                let doc = self.equation(&format!("let {pattern} ="), value);
                return (doc, vars, rest);
            }
        }
        let doc = {
            // The variable is not in scope in what it is bound to.
            // `_` takes no parameters, so an unused function is written as a value.
            let bound_doc = match self.uses(var) {
                0 => (String::new(), self.term(bound, Level::Open)),
                _ => self.bound(bound, scheme),
            };
            let name = self.bind(var, scheme.clone());
            self.finish_binding("let", &name, bound_doc)
        };
        (doc, vec![var.clone()], body.clone())
    }

    /// Parameters and annotation of a binding as text, and its right-hand side.
    fn bound(&mut self, bound: &Term, scheme: &Scheme) -> (String, Doc) {
        match &*bound.kind {
            TermKind::Lambda(lambda) => {
                let annotate = self.options.annotations != Annotations::None;
                let (params, vars, body) = self.parameters(lambda, annotate);
                let body = self.term(&body, Level::Open);
                self.unbind(&vars);
                (format!(" {}", params.join(" ")), body)
            }
            _ => {
                let annotation = match self.options.annotations == Annotations::All && !scheme.ty.has_vars() {
                    true => format!(" : {}", self.ty(&scheme.ty)),
                    false => String::new(),
                };
                (annotation, self.term(bound, Level::Open))
            }
        }
    }

    fn binding(&mut self, word: &str, name: &str, scheme: &Scheme, bound: &Term) -> Doc {
        let bound = self.bound(bound, scheme);
        self.finish_binding(word, name, bound)
    }

    fn finish_binding(&mut self, word: &str, name: &str, (params, body): (String, Doc)) -> Doc {
        self.equation(&format!("{word} {name}{params} ="), body)
    }

    /// `head` and, on the same line or the next, what it is equal to.
    pub fn equation(&mut self, head: &str, body: Doc) -> Doc {
        let head = self.text(head);
        let line = self.layout.line();
        let body = self.layout.many([line, body]);
        let body = self.layout.nest(body);
        self.layout.group([head, body])
    }
}

/// The components of a tuple variable that a run of `let`s takes out, by position, and what follows. Empty if there is none.
fn components(tuple: &Var, arity: usize, body: &Term) -> (Vec<Option<(Var, Scheme)>>, Term) {
    let mut found: Vec<Option<(Var, Scheme)>> = vec![None; arity];
    let mut rest = body.clone();
    while let Some((index, var, scheme, body)) = component(tuple, &rest) {
        match found.get_mut(index) {
            Some(place @ None) => *place = Some((var, scheme)),
            _ => break,
        }
        rest = body;
    }
    if found.iter().all(Option::is_none) {
        found.clear();
    }
    (found, rest)
}

/// `let x = (component of the tuple) in body`
fn component(tuple: &Var, term: &Term) -> Option<(usize, Var, Scheme, Term)> {
    let TermKind::Let { var, scheme, bound, body } = &*term.kind else { return None };
    let TermKind::Proj { index, term } = &*bound.kind else { return None };
    match &*term.kind {
        TermKind::Var(found, _) if found == tuple => Some((*index, var.clone(), scheme.clone(), body.clone())),
        _ => None,
    }
}
