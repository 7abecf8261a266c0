//! Top-level definitions. All of them are generalised, not only values: the language is pure, and an instance is made and kept for each
//! set of type arguments that is used, so nothing is computed twice at one type. There are no weak type variables.

use crate::annotation::SizeNames;
use crate::binding::{variable, Owner};
use crate::error::{Expression, Twice, TypeError, Why};
use crate::infer::Infer;
use crate::lower::Lower;
use crate::names::{Global, GlobalId, Value};
use crate::pattern::Reading;
use crate::relate::Clash;
use crate::scheme::LocalScheme;
use crate::store::{Node, Ty};
use crate::tree::{Exp, MatchForm};
use gradus_core::{Body, Def, Rules, Scheme, Symbol, Term, Type};
use gradus_source::Span;
use gradus_syntax::ast::{Binding, LetGroup, Text, TypeExpr};
use std::sync::Arc;

impl Infer {
    /// A new row of the table of definitions, with a name that no other definition has.
    pub fn new_global(&mut self, shown: &Symbol, span: Span) -> GlobalId {
        let name = self.definition_name(shown);
        let shown = shown.clone();
        self.tables.globals.push(Global { name, shown, scheme: None, progress: None, assumed: Vec::new(), span });
        GlobalId(self.tables.globals.len() as u32 - 1)
    }

    /// The last definition of a name keeps it; those that it shadows get a mark.
    fn definition_name(&mut self, shown: &Symbol) -> Symbol {
        let left = self.to_define.entry(shown.clone()).or_insert(1);
        *left = left.saturating_sub(1);
        let mut plain = shown.to_string();
        if *left > 0 {
            let mut count = 1;
            while self.to_define.contains_key(&*format!("{shown}'{count}")) {
                count += 1;
            }
            plain = format!("{shown}'{count}");
            self.to_define.insert(plain.as_str().into(), 0);
        }
        if self.main {
            plain.into()
        } else {
            format!("{}.{plain}", self.module).into()
        }
    }

    pub fn offer_value(&mut self, shown: Symbol, id: GlobalId) {
        self.scope.values.insert(shown.clone(), Value::Global(id));
        self.exports.values.insert(shown, Value::Global(id));
    }

    pub fn global_mut(&mut self, id: GlobalId) -> &mut Global {
        &mut self.tables.globals[id.0 as usize]
    }

    /// Lowers with the current store and tree; what lowering found wrong is reported.
    pub fn lower<R>(&mut self, group: &[u32], work: impl FnOnce(&mut Lower) -> R) -> R {
        let group = group.iter().map(|q| Type::Var(self.store.quantified[*q as usize].var.clone())).collect();
        let mut lower = Lower::new(&mut self.store, &self.tree, &self.tables.declared, &self.tables.globals);
        lower.group = group;
        let result = work(&mut lower);
        let errors = std::mem::take(&mut lower.errors);
        for error in errors {
            self.report(error);
        }
        result
    }

    /// `let x = e`, `let f x = e and g y = e`, `let rec ...` at the top level.
    pub fn top_let(&mut self, group: &LetGroup) {
        if group.recursive {
            return self.top_rec(group);
        }
        let mut defined = Vec::new();
        for binding in &group.bindings {
            match variable(binding) {
                Some((name, span)) => {
                    let id = self.new_global(&name, span);
                    self.top_variable(binding, id);
                    defined.push((name, id, span));
                }
                None => defined.extend(self.top_pattern(binding)),
            }
            self.reset();
        }
        self.twice(Twice::Definition, defined.iter().map(|(name, _, span)| (name.clone(), *span)).collect::<Vec<_>>());
        for (name, id, _) in defined {
            self.offer_value(name, id);
        }
    }

    fn top_variable(&mut self, binding: &Binding, id: GlobalId) {
        let errors = self.errors.len();
        self.store.level = 1;
        let bound = self.bound(binding, None, Owner::Nobody);
        self.store.level = 0;
        let ty = self.ty(bound.exp);
        let ty = self.bounded(ty, binding.body.span);
        let mut scheme = bound.introduced;
        self.global_mut(id).assumed = self.undecided_params(bound.exp);
        let more = self.store.generalise(&[ty], true);
        scheme.vars.extend(more.vars);
        scheme.sizes.extend(more.sizes);
        self.finish(id, bound.exp, ty, &scheme, errors);
    }

    /// Closes the type of a definition and, if nothing is wrong, adds it to the program.
    fn finish(&mut self, id: GlobalId, exp: Exp, ty: Ty, scheme: &LocalScheme, errors_before: usize) {
        if self.errors.len() == errors_before {
            let term = self.lower(&scheme.vars, |lower| lower.term(exp));
            self.define(id, ty, scheme, Body::Term(term));
        }
        // Lowering may still find a variable to be of data.
        let closed = Arc::new(self.store.close(&[ty], scheme));
        let global = self.global_mut(id);
        global.scheme = Some(closed);
        global.progress = None;
    }

    fn define(&mut self, id: GlobalId, ty: Ty, scheme: &LocalScheme, body: Body) {
        let (vars, ty) = self.lower(&[], |lower| {
            let span = Span::default();
            (lower.scheme_vars(Some(scheme)), lower.ty(ty, span))
        });
        let global = &self.tables.globals[id.0 as usize];
        let def = Def {
            name: global.name.clone(),
            module: self.module.clone(),
            scheme: Scheme { vars, ty },
            body,
            rules: Rules::default(),
            span: global.span,
        };
        self.tables.program.defs.insert(def.name.clone(), def);
    }

    /// `let (a, b) = e`: one hidden definition for `e`, and one for each variable, all with the type variables of `e`.
    fn top_pattern(&mut self, binding: &Binding) -> Vec<(Symbol, GlobalId, Span)> {
        let errors = self.errors.len();
        self.store.level = 1;
        let bound = self.bound(binding, None, Owner::Nobody);
        let ty = self.ty(bound.exp);
        let mut reading = Reading::new(SizeNames::Unknown, Some(binding.body.span));
        self.type_vars.push(Default::default());
        let pattern = self.whole_pattern(&binding.pattern, ty, &mut reading);
        self.type_vars.pop();
        self.store.level = 0;
        let ty = self.bounded(ty, binding.body.span);
        let types: Vec<Ty> =
            std::iter::once(ty).chain(reading.bound.iter().map(|(_, id, _)| self.tree.local_of(*id).ty)).collect();
        let mut scheme = bound.introduced;
        let more = self.store.generalise(&types, true);
        scheme.vars.extend(more.vars);
        scheme.sizes.extend(more.sizes);
        let whole = self.new_global(&"_whole".into(), binding.pattern.span);
        self.finish(whole, bound.exp, ty, &scheme, errors);
        let mut defined = Vec::new();
        for (index, (name, local, span)) in reading.bound.iter().enumerate() {
            let id = self.new_global(name, *span);
            defined.push((name.clone(), id, *span));
            let part = self.tree.local_of(*local).ty;
            if self.errors.len() == errors {
                let name = self.tables.globals[whole.0 as usize].name.clone();
                let warned = self.warnings.len();
                let term = self.lower(&scheme.vars, |lower| {
                    let ty = lower.ty(ty, *span);
                    let types = lower.group.clone().into();
                    let value = gradus_core::build::At(*span).global(gradus_core::Global::Source { name, types });
                    lower.alias.clear();
                    lower.destructure(pattern, value, &ty, MatchForm::Let, |lower| {
                        gradus_core::build::At(*span).var(&lower.var(*local))
                    })
                });
                // What the pattern does not cover is told once, and each part has binders of its own.
                if index > 0 {
                    self.warnings.truncate(warned);
                }
                let term = gradus_core::traverse::Copy::default().term(&term);
                self.define(id, part, &scheme, Body::Term(term));
            }
            let closed = Arc::new(self.store.close(&[part], &scheme));
            self.global_mut(id).scheme = Some(closed);
        }
        defined
    }

    /// Those without a polymorphic annotation are inferred and generalised together; those with one are checked afterwards, and
    /// everybody uses them at any type.
    fn top_rec(&mut self, group: &LetGroup) {
        let mut members = Vec::new();
        for binding in &group.bindings {
            match variable(binding) {
                Some((name, span)) => members.push((self.new_global(&name, span), name, span, binding)),
                None => self.report(TypeError::RecursivePattern { span: binding.pattern.span }),
            }
        }
        self.twice(Twice::Definition, members.iter().map(|(_, n, s, _)| (n.clone(), *s)).collect::<Vec<_>>());
        for (id, name, _, _) in &members {
            self.offer_value(name.clone(), *id);
        }
        let (annotated, plain): (Vec<_>, Vec<_>) =
            members.into_iter().partition(|(_, _, _, binding)| !binding.quantified.is_empty());
        for (id, _, _, binding) in &annotated {
            self.announce_annotated(*id, binding);
        }
        self.infer_together(&plain);
        self.reset();
        for (id, name, span, binding) in &annotated {
            self.check_annotated(*id, name, *span, binding);
            self.reset();
        }
    }

    fn infer_together(&mut self, group: &[(GlobalId, Symbol, Span, &Binding)]) {
        let errors = self.errors.len();
        self.store.level = 1;
        for (id, _, _, _) in group {
            let ty = self.store.fresh();
            self.global_mut(*id).progress = Some((ty, Vec::new()));
        }
        let mut made = Vec::new();
        let mut scheme = LocalScheme::default();
        for (id, name, _, binding) in group {
            let known = self.tables.globals[id.0 as usize].progress.as_ref().map(|(ty, _)| *ty);
            let bound = self.bound(binding, known, Owner::Global(*id));
            self.require_function(bound.exp, name);
            scheme.vars.extend(bound.introduced.vars);
            scheme.sizes.extend(bound.introduced.sizes);
            made.push((*id, bound.exp, known.unwrap_or(Ty::ERROR)));
        }
        self.store.level = 0;
        let mut types = Vec::new();
        for ((_, _, ty), (_, _, span, _)) in made.iter().zip(group) {
            types.push(self.bounded(*ty, *span));
        }
        for (id, exp, _) in &made {
            self.global_mut(*id).assumed = self.undecided_params(*exp);
        }
        let more = self.store.generalise(&types, true);
        scheme.vars.extend(more.vars);
        scheme.sizes.extend(more.sizes);
        self.check_early_uses();
        for ((id, exp, _), ty) in made.into_iter().zip(types) {
            self.finish(id, exp, ty, &scheme, errors);
        }
    }

    /// The type of an annotated definition, before its body is seen.
    fn announce_annotated(&mut self, id: GlobalId, binding: &Binding) {
        let mut scheme = LocalScheme::default();
        let mut scope = rustc_hash::FxHashMap::default();
        for name in &binding.quantified {
            let q = self.store.quantify(name.name.clone(), false);
            scheme.vars.push(q);
            scope.insert(name.name.clone(), self.store.add(Node::Quantified(q)));
        }
        self.type_vars.push(scope);
        self.size_vars.push(Default::default());
        let ty = match &binding.annotation {
            Some(annotation) if binding.params.is_empty() => self.type_expr(annotation, SizeNames::Rigid),
            _ => Ty::ERROR,
        };
        scheme.sizes = (0..self.store.rigid_sizes.len() as u32).collect();
        let closed = self.store.close(&[ty], &scheme);
        self.reset();
        let global = self.global_mut(id);
        global.scheme = Some(Arc::new(closed));
        global.progress = Some((Ty::ERROR, Vec::new()));
    }

    fn check_annotated(&mut self, id: GlobalId, name: &Symbol, span: Span, binding: &Binding) {
        let errors = self.errors.len();
        let announced = self.tables.globals[id.0 as usize].scheme.clone();
        self.store.level = 1;
        let bound = self.bound(binding, None, Owner::Nobody);
        self.store.level = 0;
        self.require_function(bound.exp, name);
        let ty = self.ty(bound.exp);
        let ty = self.bounded(ty, span);
        let scheme = bound.introduced;
        // The body knows which variables must be data; every use so far must agree.
        for (closed, q) in announced.iter().flat_map(|closed| &closed.vars).zip(&scheme.vars) {
            self.store.quantified[*q as usize].var = closed.var.clone();
        }
        self.finish(id, bound.exp, ty, &scheme, errors);
        self.check_early_uses();
    }

    /// Uses inside the own group were made before it was known which type variables stand for data only.
    fn check_early_uses(&mut self) {
        for (id, types, exp) in std::mem::take(&mut self.early_uses) {
            let Some(scheme) = self.tables.globals[id.0 as usize].scheme.clone() else { continue };
            let span = self.tree.node(exp).span;
            let function = self.tables.globals[id.0 as usize].shown.clone();
            for (var, ty) in scheme.vars.iter().zip(types.iter()) {
                if var.data {
                    self.require_data(
                        *ty,
                        span,
                        &Why::Argument { function: Some(function.clone()), index: 1, head: span, assumed: None },
                    );
                }
            }
        }
    }

    /// `data x : T from "file"`
    pub fn data(&mut self, name: &Symbol, span: Span, ty: &TypeExpr, file: &Text) {
        let id = self.new_global(name, span);
        let mut open = None;
        crate::declare::variables(ty, &mut |var| open = Some(var.span));
        self.type_vars.push(Default::default());
        let made = self.bounded_type(ty);
        self.type_vars.pop();
        let function = {
            let before = self.errors.len();
            let mut relate =
                crate::relate::Relate::new(&mut self.store, &self.tables.declared, 0, &mut self.pending, ty.span);
            let clash = relate.require_data(made).err();
            debug_assert_eq!(before, self.errors.len());
            clash
        };
        if open.is_some() || matches!(function, Some(Clash::Function(_))) {
            let shown = self.show(made);
            self.report(TypeError::OpenData { name: name.clone(), ty: shown, span: open.unwrap_or(ty.span) });
        } else {
            let body = Body::Data { file: file.value.clone(), span: file.span };
            self.define(id, made, &LocalScheme::default(), body);
        }
        let closed = Arc::new(self.store.close(&[made], &LocalScheme::default()));
        self.global_mut(id).scheme = Some(closed);
        self.reset();
        self.offer_value(name.clone(), id);
    }

    /// An expression with nothing open: what nothing depends on is decided.
    pub fn closed_expression(&mut self, exp: Exp, expected: Option<Type>) -> Option<(Term, Type)> {
        let errors = self.errors.len();
        let ty = self.ty(exp);
        let span = self.tree.node(exp).span;
        if let Some(expected) = expected {
            let mut closed = crate::scheme::Closed::default();
            let root = self.tables.declared.import(&mut closed, &[], &expected);
            closed.roots.push(root);
            let wanted = closed.instantiate_with(&mut self.store, &[], &[]).first().copied().unwrap_or(Ty::ERROR);
            if let Err(clash) = self.relate(ty, wanted, span) {
                self.clash(clash, ty, wanted, span, &Why::Wanted, Expression::Other);
            }
        }
        let result = self.lower(&[], |lower| {
            let term = lower.term(exp);
            (term, lower.ty(ty, span))
        });
        (self.errors.len() == errors).then_some(result)
    }
}
