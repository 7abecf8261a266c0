//! Patterns: their types, and the variables that they bind.

use crate::annotation::SizeNames;
use crate::declared::Declared;
use crate::error::{Expression, Twice, TypeError, Why};
use crate::infer::Infer;
use crate::store::{Node, Size, Ty, TypeId};
use crate::tree::{LocalId, Pat, PatKind};
use gradus_core::traverse::with_stack;
use gradus_core::{Literal, Symbol};
use gradus_source::Span;
use gradus_syntax::ast;
use gradus_syntax::ast::PatternKind;
use rustc_hash::FxHashMap;

/// What goes along while a pattern is read.
pub struct Reading {
    pub sizes: SizeNames,
    pub why: Why,
    /// The variables so far.
    pub bound: Vec<(Symbol, LocalId, Span)>,
    /// Inside the second and later parts of an or-pattern: the variables of the first.
    shared: Option<FxHashMap<Symbol, LocalId>>,
}

impl Reading {
    pub fn new(sizes: SizeNames, value: Option<Span>) -> Self {
        Reading { sizes, why: Why::Pattern { value }, bound: Vec::new(), shared: None }
    }
}

impl Infer {
    /// A pattern for values of type `ty`. The variables come into scope when the caller says so.
    pub fn pattern(&mut self, pattern: &ast::Pattern, ty: Ty, reading: &mut Reading) -> Pat {
        with_stack(|| {
            let kind = self.pattern_kind(pattern, ty, reading);
            self.tree.pat(kind, ty, pattern.span)
        })
    }

    /// Reads a whole pattern and checks that no variable is bound twice.
    pub fn whole_pattern(&mut self, pattern: &ast::Pattern, ty: Ty, reading: &mut Reading) -> Pat {
        let before = reading.bound.len();
        let pat = self.pattern(pattern, ty, reading);
        let names: Vec<(Symbol, Span)> = reading.bound[before..].iter().map(|(n, _, s)| (n.clone(), *s)).collect();
        self.twice(Twice::PatternVariable, names);
        pat
    }

    fn meets(&mut self, value: Ty, pattern: Ty, span: Span, reading: &Reading) {
        if let Err(clash) = self.relate(value, pattern, span) {
            self.clash(clash, pattern, value, span, &reading.why, Expression::Pattern);
        }
    }

    fn variable(&mut self, name: &Symbol, ty: Ty, span: Span, reading: &mut Reading) -> LocalId {
        if let Some(id) = reading.shared.as_ref().and_then(|shared| shared.get(name)).copied() {
            let first = self.tree.local_of(id).ty;
            self.meets(ty, first, span, reading);
            reading.bound.push((name.clone(), id, span));
            return id;
        }
        let id = self.tree.local(name.clone(), ty, span);
        reading.bound.push((name.clone(), id, span));
        id
    }

    fn pattern_kind(&mut self, pattern: &ast::Pattern, ty: Ty, reading: &mut Reading) -> PatKind {
        let span = pattern.span;
        match &pattern.kind {
            PatternKind::Wild | PatternKind::Error => PatKind::Wild,
            PatternKind::Var(name) => PatKind::Bind(self.variable(name, ty, span, reading), None),
            PatternKind::Int(text) => {
                let number = self.store.number();
                self.meets(ty, number, span, reading);
                PatKind::Numeral(text.clone())
            }
            PatternKind::Real(text) => {
                self.meets(ty, Ty::REAL, span, reading);
                PatKind::Literal(Literal::Real(crate::literal::real(text)))
            }
            PatternKind::String(text) => {
                self.meets(ty, Ty::STRING, span, reading);
                PatKind::Literal(Literal::String(text.clone()))
            }
            PatternKind::Bool(value) => {
                self.meets(ty, Ty::BOOL, span, reading);
                PatKind::Literal(Literal::Bool(*value))
            }
            PatternKind::Unit => {
                self.meets(ty, Ty::UNIT, span, reading);
                PatKind::Wild
            }
            PatternKind::Tuple(parts) => {
                let types: Vec<Ty> = match self.store.shape(ty) {
                    Node::Tuple(types) if types.len() == parts.len() => types.to_vec(),
                    _ => {
                        let types: Vec<Ty> = parts.iter().map(|_| self.store.fresh()).collect();
                        let tuple = self.store.tuple(types.clone());
                        self.meets(ty, tuple, span, reading);
                        types
                    }
                };
                PatKind::Tuple(parts.iter().zip(types).map(|(p, t)| self.pattern(p, t, reading)).collect())
            }
            PatternKind::List(items) => {
                let element = self.store.fresh();
                let list = self.named(Declared::LIST, vec![element]);
                self.meets(ty, list, span, reading);
                let items: Vec<Pat> = items.iter().map(|p| self.pattern(p, element, reading)).collect();
                let mut kind = PatKind::Construct(Declared::LIST, 0, Vec::new());
                for item in items.into_iter().rev() {
                    let rest = self.tree.pat(kind, list, span);
                    kind = PatKind::Construct(Declared::LIST, 1, vec![item, rest]);
                }
                kind
            }
            PatternKind::Cons(head, tail) => {
                let element = self.store.fresh();
                let list = self.named(Declared::LIST, vec![element]);
                self.meets(ty, list, span, reading);
                let head = self.pattern(head, element, reading);
                let tail = self.pattern(tail, list, reading);
                PatKind::Construct(Declared::LIST, 1, vec![head, tail])
            }
            PatternKind::Constructor(path, argument) => self.constructor_pattern(path, argument, ty, span, reading),
            PatternKind::Record { fields, open: _ } => self.record_pattern(fields, ty, span, reading),
            PatternKind::Array(items) => {
                let element = self.store.fresh();
                let size = match self.store.shape(ty) {
                    Node::Array(_, size) => size,
                    _ => Size::Unknown,
                };
                let array = self.store.array(element, size);
                self.meets(ty, array, span, reading);
                PatKind::Array(items.iter().map(|p| self.pattern(p, element, reading)).collect())
            }
            PatternKind::Or(alternatives) => self.or_pattern(alternatives, ty, reading),
            PatternKind::As(inner, name) => {
                let inner = self.pattern(inner, ty, reading);
                PatKind::Bind(self.variable(&name.name, ty, name.span, reading), Some(inner))
            }
            PatternKind::Annotation(inner, annotation) => {
                let sizes = reading.sizes;
                let annotated = self.type_expr(annotation, sizes);
                let outer = std::mem::replace(&mut reading.why, Why::Annotation { at: annotation.span });
                self.meets(ty, annotated, inner.span, reading);
                reading.why = outer;
                self.pattern_kind(inner, annotated, reading)
            }
        }
    }

    fn constructor_pattern(
        &mut self,
        path: &ast::Path,
        argument: &Option<Box<ast::Pattern>>,
        ty: Ty,
        span: Span,
        reading: &mut Reading,
    ) -> PatKind {
        let Some((id, tag)) = self.constructor(path) else {
            // Its variables shall not be unknown as well.
            if let Some(argument) = argument {
                self.pattern(argument, Ty::ERROR, reading);
            }
            return PatKind::Wild;
        };
        let (own, types) = self.constructor_instance(id, tag);
        self.meets(ty, own, span, reading);
        let parts: Vec<&ast::Pattern> = match argument.as_deref() {
            None => Vec::new(),
            // `Node _` matches whatever the arguments are.
            Some(wild) if matches!(wild.kind, PatternKind::Wild) && types.len() != 1 && !types.is_empty() => {
                types.iter().map(|_| wild).collect()
            }
            Some(ast::Pattern { kind: PatternKind::Tuple(parts), .. }) if types.len() != 1 => parts.iter().collect(),
            Some(one) => vec![one],
        };
        if parts.len() != types.len() {
            let name = path.name.name.clone();
            self.report(TypeError::ConstructorArity { name, expected: types.len(), given: parts.len(), span });
            for part in parts {
                self.pattern(part, Ty::ERROR, reading);
            }
            return PatKind::Wild;
        }
        PatKind::Construct(id, tag, parts.iter().zip(types).map(|(p, t)| self.pattern(p, t, reading)).collect())
    }

    fn record_pattern(
        &mut self,
        fields: &[(ast::Path, Option<ast::Pattern>)],
        ty: Ty,
        span: Span,
        reading: &mut Reading,
    ) -> PatKind {
        let Some(id) = self.record_of(ty, fields.iter().map(|(path, _)| path), span) else {
            for (path, pattern) in fields {
                match pattern {
                    Some(pattern) => {
                        self.pattern(pattern, Ty::ERROR, reading);
                    }
                    None => {
                        self.variable(&path.name.name, Ty::ERROR, path.span, reading);
                    }
                }
            }
            return PatKind::Wild;
        };
        let (own, types) = self.constructor_instance(id, 0);
        self.meets(ty, own, span, reading);
        self.twice(Twice::Field, fields.iter().map(|(path, _)| (path.name.name.clone(), path.span)));
        let mut parts: Vec<Pat> = types.iter().map(|t| self.tree.pat(PatKind::Wild, *t, span)).collect();
        for (path, pattern) in fields {
            let Some(index) = self.field_index(id, path) else { continue };
            let field = types[index];
            parts[index] = match pattern {
                Some(pattern) => self.pattern(pattern, field, reading),
                None => {
                    let variable = self.variable(&path.name.name, field, path.span, reading);
                    self.tree.pat(PatKind::Bind(variable, None), field, path.span)
                }
            };
        }
        PatKind::Construct(id, 0, parts)
    }

    /// All alternatives bind the same variables.
    fn or_pattern(&mut self, alternatives: &[ast::Pattern], ty: Ty, reading: &mut Reading) -> PatKind {
        let start = reading.bound.len();
        let mut pats = Vec::new();
        let mut first: Vec<(Symbol, LocalId, Span)> = Vec::new();
        for (index, alternative) in alternatives.iter().enumerate() {
            if index == 0 {
                pats.push(self.pattern(alternative, ty, reading));
                first = reading.bound[start..].to_vec();
                continue;
            }
            let mut shared = reading.shared.clone().unwrap_or_default();
            shared.extend(first.iter().map(|(name, id, _)| (name.clone(), *id)));
            let outer = reading.shared.replace(shared);
            let here = reading.bound.len();
            pats.push(self.pattern(alternative, ty, reading));
            let bound = reading.bound.split_off(here);
            reading.shared = outer;
            let missing = first.iter().find(|(name, _, _)| !bound.iter().any(|(n, _, _)| n == name));
            if let Some((name, _, span)) = missing {
                self.report(TypeError::OrPattern { name: name.clone(), span: *span, without: alternative.span });
            }
            let extra = bound.iter().find(|(name, _, _)| !first.iter().any(|(n, _, _)| n == name));
            if let Some((name, _, span)) = extra {
                if missing.is_none() {
                    let without = alternatives[0].span;
                    self.report(TypeError::OrPattern { name: name.clone(), span: *span, without });
                }
                // In scope, so that its uses are not told as well.
                reading.bound.extend(extra.cloned());
            }
            self.twice(Twice::PatternVariable, bound.iter().map(|(n, _, s)| (n.clone(), *s)));
        }
        PatKind::Or(pats)
    }

    /// The type of a constructor's or record's values, and its argument types.
    pub fn constructor_instance(&mut self, id: TypeId, tag: usize) -> (Ty, Vec<Ty>) {
        let args: Vec<Ty> = (0..self.tables.declared.get(id).params.len()).map(|_| self.store.fresh()).collect();
        let types = match self.tables.declared.arguments(id, tag) {
            Some(closed) => closed.instantiate_with(&mut self.store, &args, &[]),
            None => Vec::new(),
        };
        (self.named(id, args), types)
    }
}
