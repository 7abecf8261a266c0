//! `let`: functions with their size variables, generalisation, recursion.

use crate::annotation::SizeNames;
use crate::error::{TypeError, Why};
use crate::infer::Infer;
use crate::names::GlobalId;
use crate::pattern::Reading;
use crate::relate::{Checked, Step};
use crate::scheme::LocalScheme;
use crate::store::{Node, Size, Ty};
use crate::tree::{Exp, ExpKind, LocalId, MatchArm, MatchForm, Param};
use gradus_core::Symbol;
use gradus_source::Span;
use gradus_syntax::ast;
use gradus_syntax::ast::{Binding, LetGroup, PatternKind, TypeExprKind};

/// Who is being defined, if the definition may use itself.
#[derive(Clone, Copy)]
pub enum Owner {
    Nobody,
    Local(LocalId),
    Global(GlobalId),
}

/// The right-hand side of a binding, with the variables that its annotations introduced.
pub struct Bound {
    pub exp: Exp,
    pub introduced: LocalScheme,
}

/// The variable that a binding defines, if its pattern is one.
pub fn variable(binding: &Binding) -> Option<(Symbol, Span)> {
    match &binding.pattern.kind {
        PatternKind::Var(name) => Some((name.clone(), binding.pattern.span)),
        _ => None,
    }
}

impl Infer {
    /// The right-hand side of a binding. `known` is the type that recursive uses assume.
    pub fn bound(&mut self, binding: &Binding, known: Option<Ty>, owner: Owner) -> Bound {
        let mut introduced = LocalScheme::default();
        let mut scope = rustc_hash::FxHashMap::default();
        for name in &binding.quantified {
            let q = self.store.quantify(name.name.clone(), false);
            introduced.vars.push(q);
            scope.insert(name.name.clone(), self.store.add(Node::Quantified(q)));
        }
        self.type_vars.push(scope);
        self.size_vars.push(Default::default());
        let around = self.defining.len();
        if known.is_none() {
            self.defining.extend(variable(binding).map(|(name, _)| name));
        }
        let exp = match (&binding.params[..], &binding.annotation) {
            ([], None) => match known {
                Some(known) => self.check(&binding.body, known, &self.recursion(binding)),
                None => self.synth(&binding.body),
            },
            ([], Some(annotation)) => {
                let is_function = matches!(annotation.kind, TypeExprKind::Fun(..));
                let sizes = if is_function { SizeNames::Rigid } else { SizeNames::Unknown };
                let ty = self.type_expr(annotation, sizes);
                introduced.sizes = self.introduced_sizes();
                if let Some(known) = known {
                    self.agree(ty, known, annotation.span, &Why::Annotation { at: annotation.span });
                    self.announce(owner, &introduced);
                }
                let exp = self.check(&binding.body, ty, &Why::Annotation { at: annotation.span });
                let node = self.tree.node(exp).clone();
                self.tree.exp(node.kind, if node.ty == Ty::ERROR { Ty::ERROR } else { ty }, node.span)
            }
            (params, annotation) => self.function(binding, params, annotation.as_ref(), known, owner, &mut introduced),
        };
        self.defining.truncate(around);
        self.size_vars.pop();
        self.type_vars.pop();
        Bound { exp, introduced }
    }

    fn recursion(&self, binding: &Binding) -> Why {
        Why::Recursion { name: variable(binding).map_or("".into(), |(name, _)| name) }
    }

    /// The size variables that the annotations of this binding have introduced.
    fn introduced_sizes(&self) -> Vec<u32> {
        let mut sizes: Vec<u32> = self
            .size_vars
            .last()
            .into_iter()
            .flat_map(|scope| scope.values())
            .filter_map(|size| match size {
                Size::Rigid(r) => Some(*r),
                Size::Unknown | Size::Literal(_) | Size::Var(_) => None,
            })
            .collect();
        sizes.sort_unstable();
        sizes
    }

    /// From now on, each use of the function in its own body chooses its sizes anew.
    fn announce(&mut self, owner: Owner, introduced: &LocalScheme) {
        let sizes = introduced.sizes.clone();
        match owner {
            Owner::Nobody => {}
            Owner::Local(id) => {
                if !sizes.is_empty() {
                    self.tree.local_mut(id).scheme = Some(LocalScheme { vars: Vec::new(), sizes });
                }
            }
            Owner::Global(id) => {
                if let Some((_, progress)) = &mut self.tables.globals[id.0 as usize].progress {
                    *progress = sizes;
                }
            }
        }
    }

    /// `f p1 p2 : t = body`
    fn function(
        &mut self,
        binding: &Binding,
        params: &[ast::Pattern],
        annotation: Option<&ast::TypeExpr>,
        known: Option<Ty>,
        owner: Owner,
        introduced: &mut LocalScheme,
    ) -> Exp {
        let depth = self.enter();
        let mut reading = Reading::new(SizeNames::Rigid, None);
        let mut made: Vec<Param> = params.iter().map(|param| self.param(param, None, &mut reading)).collect();
        self.no_variable_twice(&reading);
        introduced.sizes = self.introduced_sizes();
        self.determine_sizes(&mut made, &reading);
        let result = match annotation {
            Some(annotation) => Some(self.type_expr(annotation, SizeNames::Unknown)),
            None => known.map(|_| self.store.fresh()),
        };
        let types: Vec<Ty> = made.iter().map(|param| param.ty).collect();
        if let (Some(known), Some(result)) = (known, result) {
            let ty = self.store.funs(&types, result);
            self.agree(ty, known, binding.pattern.span, &self.recursion(binding));
            self.announce(owner, introduced);
        }
        let body = match (result, annotation) {
            (Some(result), Some(annotation)) => {
                self.check(&binding.body, result, &Why::Annotation { at: annotation.span })
            }
            (Some(result), None) => self.check(&binding.body, result, &self.recursion(binding)),
            (None, _) => self.synth(&binding.body),
        };
        self.leave(depth);
        let result = match result {
            Some(result) if annotation.is_some() => result,
            _ => self.ty(body),
        };
        let ty = self.store.funs(&types, result);
        // From the name to the end: what a message about the function points at.
        self.tree.exp(ExpKind::Function(made, body), ty, binding.span)
    }

    /// Size variables get their values from the first parameter that has them as its length; every other
    /// dimension that names a size is checked when the function is called.
    fn determine_sizes(&mut self, params: &mut [Param], reading: &Reading) {
        let mut sizes = Vec::new();
        for param in params.iter_mut() {
            let mut found = Vec::new();
            self.named_sizes(param.ty, &mut Vec::new(), &mut found);
            for check in &found {
                let Size::Rigid(r) = check.size else { continue };
                let Some(components) = components(&check.path) else { continue };
                if self.store.rigid_sizes[r as usize].value.is_none() {
                    let name = self.store.rigid_sizes[r as usize].name.clone();
                    let local = self.tree.local(name.clone(), Ty::INT, param.span);
                    self.tree.local_mut(local).size = Some(Size::Rigid(r));
                    self.store.rigid_sizes[r as usize].value = Some(local);
                    param.binds.push((local, components));
                    // `n` is an integer in the body, unless a parameter has that name.
                    if !reading.bound.iter().any(|(bound, _, _)| *bound == name) {
                        self.bind_local(local);
                    }
                }
            }
            sizes.push(found);
        }
        for (param, found) in params.iter_mut().zip(sizes) {
            let own = |check: &Checked| match check.size {
                Size::Rigid(r) => {
                    let value = self.store.rigid_sizes[r as usize].value;
                    let at = components(&check.path);
                    param.binds.iter().any(|(local, from)| Some(*local) == value && Some(from) == at.as_ref())
                }
                Size::Unknown | Size::Literal(_) | Size::Var(_) => false,
            };
            param.checks.extend(found.into_iter().filter(|check| !own(check)));
        }
    }

    /// The arrays inside a value of a type that have a size, through rows and tuples.
    fn named_sizes(&mut self, ty: Ty, path: &mut Vec<Step>, found: &mut Vec<Checked>) {
        match self.store.shape(ty) {
            Node::Array(element, size) => {
                if size != Size::Unknown {
                    found.push(Checked { path: path.clone(), size });
                }
                path.push(Step::Row);
                self.named_sizes(element, path, found);
                path.pop();
            }
            Node::Tuple(parts) => {
                for (i, part) in parts.iter().enumerate() {
                    path.push(Step::Part(i));
                    self.named_sizes(*part, path, found);
                    path.pop();
                }
            }
            Node::Unbound(_)
            | Node::Link(_)
            | Node::Quantified(_)
            | Node::Named(..)
            | Node::Fun(..)
            | Node::Real
            | Node::Int
            | Node::Bool
            | Node::String
            | Node::Unit
            | Node::Error => {}
        }
    }

    /// `let` inside an expression.
    pub fn local_let(&mut self, group: &LetGroup, span: Span, body: impl FnOnce(&mut Self) -> Exp) -> Exp {
        if group.recursive {
            return self.local_rec(group, span, body);
        }
        let depth = self.enter();
        let mut made = Vec::new();
        // The bindings of one group do not see each other.
        for binding in &group.bindings {
            self.store.level += 1;
            let bound = self.bound(binding, None, Owner::Nobody);
            self.store.level -= 1;
            let ty = self.ty(bound.exp);
            let ty = self.bounded(ty, binding.body.span);
            let mut reading = Reading::new(SizeNames::Unknown, Some(binding.body.span));
            match variable(binding) {
                Some((name, place)) => {
                    let local = self.tree.local(name.clone(), ty, place);
                    self.generalise_local(&[(local, bound.exp)], bound.introduced);
                    self.tree.local_mut(local).size = self.size_of(bound.exp);
                    reading.bound.push((name, local, place));
                    made.push((Err(local), bound.exp, binding, reading));
                }
                None => {
                    self.store.keep_monomorphic(ty);
                    let pattern = self.whole_pattern(&binding.pattern, ty, &mut reading);
                    made.push((Ok(pattern), bound.exp, binding, reading));
                }
            }
        }
        let bound: Vec<_> = made.iter().flat_map(|(_, _, _, reading)| reading.bound.clone()).collect();
        if made.len() > 1 {
            self.twice(crate::error::Twice::Definition, bound.iter().map(|(name, _, place)| (name.clone(), *place)));
        }
        for (_, id, _) in bound {
            self.bind_local(id);
        }
        let mut exp = body(self);
        self.leave(depth);
        let ty = self.ty(exp);
        for (target, bound, binding, _) in made.into_iter().rev() {
            let kind = match target {
                Err(local) => ExpKind::Let(local, bound, exp),
                Ok(pattern) => {
                    let arm = MatchArm { pattern, guard: None, body: exp, span: binding.pattern.span };
                    ExpKind::Match { scrutinee: bound, arms: vec![arm], form: MatchForm::Let }
                }
            };
            exp = self.tree.exp(kind, ty, span);
        }
        exp
    }

    fn local_rec(&mut self, group: &LetGroup, span: Span, body: impl FnOnce(&mut Self) -> Exp) -> Exp {
        let depth = self.enter();
        self.store.level += 1;
        let mut locals = Vec::new();
        let mut introduced = LocalScheme::default();
        for binding in &group.bindings {
            let Some((name, place)) = variable(binding) else {
                self.report(TypeError::RecursivePattern { span: binding.pattern.span });
                continue;
            };
            if !binding.quantified.is_empty() {
                self.report(TypeError::LocalPolymorphicRecursion { name: name.clone(), span: place });
            }
            let ty = self.store.fresh();
            let local = self.tree.local(name, ty, place);
            self.bind_local(local);
            locals.push((local, binding));
        }
        self.twice(
            crate::error::Twice::Definition,
            locals.iter().filter_map(|(_, binding)| variable(binding)).collect::<Vec<_>>(),
        );
        let mut made = Vec::new();
        for (local, binding) in &locals {
            let assumed = self.tree.local_of(*local).ty;
            let bound = self.bound(binding, Some(assumed), Owner::Local(*local));
            self.require_function(bound.exp, &self.tree.local_of(*local).name.clone());
            introduced.vars.extend(bound.introduced.vars);
            introduced.sizes.extend(bound.introduced.sizes);
            made.push((*local, bound.exp));
        }
        self.store.level -= 1;
        for (local, binding) in &locals {
            let ty = self.tree.local_of(*local).ty;
            let ty = self.bounded(ty, binding.pattern.span);
            self.tree.local_mut(*local).ty = ty;
        }
        self.generalise_local(&made, introduced);
        let exp = body(self);
        self.leave(depth);
        let ty = self.ty(exp);
        self.tree.exp(ExpKind::LetRec(made, exp), ty, span)
    }

    /// What is recursive is a function.
    pub fn require_function(&mut self, exp: Exp, name: &Symbol) {
        match self.tree.node(exp).kind {
            ExpKind::Function(..) | ExpKind::Error => {}
            _ => {
                let span = self.tree.node(exp).span;
                self.report(TypeError::RecursiveValue { name: name.clone(), span });
            }
        }
    }

    /// Generalises a group of local definitions together. Only values are: the core binds nothing else polymorphically, since
    /// it would be computed again at each use.
    fn generalise_local(&mut self, group: &[(LocalId, Exp)], introduced: LocalScheme) {
        let types: Vec<Ty> = group.iter().map(|(local, _)| self.tree.local_of(*local).ty).collect();
        if group.iter().all(|(_, exp)| self.is_value(*exp)) {
            let mut scheme = introduced;
            let more = self.store.generalise(&types, false);
            scheme.vars.extend(more.vars);
            scheme.sizes.extend(more.sizes);
            let scheme = (!scheme.vars.is_empty() || !scheme.sizes.is_empty()).then_some(scheme);
            for (local, _) in group {
                self.tree.local_mut(*local).scheme = scheme.clone();
            }
        } else {
            for ty in types {
                self.store.keep_monomorphic(ty);
            }
        }
    }

    /// A syntactic value: evaluating it does nothing.
    fn is_value(&self, exp: Exp) -> bool {
        gradus_core::traverse::with_stack(|| match &self.tree.node(exp).kind {
            ExpKind::Local(..)
            | ExpKind::Global(..)
            | ExpKind::Literal(_)
            | ExpKind::Numeral(_)
            | ExpKind::Function(..)
            | ExpKind::Error => true,
            ExpKind::Tuple(parts) | ExpKind::Construct(_, _, parts) | ExpKind::Array(parts) => {
                parts.iter().all(|part| self.is_value(*part))
            }
            ExpKind::Record(_, fields) => fields.iter().all(|(_, value)| self.is_value(*value)),
            ExpKind::Prim(_, _, args) | ExpKind::Derive(_, _, args) => args.is_empty(),
            ExpKind::App(..)
            | ExpKind::Let(..)
            | ExpKind::LetRec(..)
            | ExpKind::Match { .. }
            | ExpKind::If(..)
            | ExpKind::RecordWith(..)
            | ExpKind::Field(..)
            | ExpKind::Arith(..)
            | ExpKind::Sized(..) => false,
        })
    }
}

/// The components of tuples that a path leads through; none if it leads through rows.
fn components(path: &[Step]) -> Option<Vec<usize>> {
    path.iter()
        .map(|step| match step {
            Step::Part(index) => Some(*index),
            Step::Row => None,
        })
        .collect()
}
