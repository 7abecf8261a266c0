//! The elaborated tree to core: overloading decided, sugar and nested patterns gone, types without sizes.

use crate::builtin::derive_arity;
use crate::declared::Declared;
use crate::error::TypeError;
use crate::names::Global;
use crate::relate::{Checked, Step};
use crate::scheme::{constraint, LocalScheme, MAX_TYPE_DEPTH, MAX_TYPE_SIZE};
use crate::store::{Node, Size, Store, Ty, TypeId};
use crate::tree::{Arith, Exp, ExpKind, LocalId, MatchForm, Param, Pat, PatKind, Tree, Use};
use gradus_core::build::At;
use gradus_core::traverse::with_stack;
use gradus_core::{Literal, Prim, Scheme, Term, TermKind, Type, TypeName, Var};
use gradus_source::Span;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

pub struct Lower<'a> {
    pub store: &'a mut Store,
    pub tree: &'a Tree,
    pub declared: &'a Declared,
    pub globals: &'a [Global],
    /// The type variables of the recursive group that is being lowered.
    pub group: Vec<Type>,
    /// Where a local variable is another core variable than its own.
    pub alias: FxHashMap<LocalId, Var>,
    /// Variables whose binding is around us, and those that were used: sizes are only computed where something needs them.
    pub in_scope: FxHashSet<LocalId>,
    pub used: FxHashSet<LocalId>,
    types: FxHashMap<Ty, Type>,
    extents: FxHashMap<Ty, (u64, u64)>,
    pub errors: Vec<TypeError>,
}

impl<'a> Lower<'a> {
    pub fn new(store: &'a mut Store, tree: &'a Tree, declared: &'a Declared, globals: &'a [Global]) -> Self {
        Lower {
            store,
            tree,
            declared,
            globals,
            group: Vec::new(),
            alias: FxHashMap::default(),
            in_scope: FxHashSet::default(),
            used: FxHashSet::default(),
            types: FxHashMap::default(),
            extents: FxHashMap::default(),
            errors: Vec::new(),
        }
    }

    /// A type in core form. What is still open is decided here: numbers by their rule, and of the rest nothing depends on it.
    pub fn ty(&mut self, ty: Ty, span: Span) -> Type {
        let (size, depth) = self.store.extent(ty, &mut self.extents);
        if size > MAX_TYPE_SIZE || depth > MAX_TYPE_DEPTH {
            if !self.errors.iter().any(|e| matches!(e, TypeError::TypeTooLarge { .. })) {
                self.errors.push(TypeError::TypeTooLarge { span });
            }
            return Type::Unit;
        }
        self.core_type(ty)
    }

    fn core_type(&mut self, ty: Ty) -> Type {
        let ty = self.store.find(ty);
        if let Some(done) = self.types.get(&ty) {
            return done.clone();
        }
        let core = match self.store.node(ty).clone() {
            Node::Real => Type::Real,
            Node::Int => Type::Int,
            Node::Bool => Type::Bool,
            Node::String => Type::String,
            Node::Unbound(kind) if kind.number && kind.param => Type::Real,
            Node::Unbound(kind) if kind.number => Type::Int,
            Node::Unit | Node::Unbound(_) | Node::Error | Node::Link(_) => Type::Unit,
            Node::Quantified(q) => Type::Var(self.store.quantified[q as usize].var.clone()),
            Node::Tuple(parts) => Type::tuple(self.core_types(&parts)),
            Node::Named(id, args) => {
                Type::Named(TypeName::new(self.declared.get(id).name.clone()), self.core_types(&args).into())
            }
            Node::Fun(a, b) => Type::fun(self.core_type(a), self.core_type(b)),
            Node::Array(element, _) => Type::array(self.core_type(element)),
        };
        self.types.insert(ty, core.clone());
        core
    }

    fn core_types(&mut self, types: &[Ty]) -> Vec<Type> {
        types.iter().map(|ty| self.core_type(*ty)).collect()
    }

    fn tys(&mut self, types: &[Ty], span: Span) -> Arc<[Type]> {
        types.iter().map(|ty| self.ty(*ty, span)).collect()
    }

    pub fn ty_of(&mut self, exp: Exp) -> Type {
        let node = self.tree.node(exp);
        self.ty(node.ty, node.span)
    }

    fn scheme(&mut self, local: LocalId) -> Scheme {
        let info = self.tree.local_of(local);
        let ty = self.ty(info.ty, info.span);
        Scheme { vars: self.scheme_vars(info.scheme.as_ref()), ty }
    }

    pub fn scheme_vars(&self, scheme: Option<&LocalScheme>) -> Vec<(gradus_core::TypeVar, gradus_core::Constraint)> {
        let vars = scheme.map_or(&[][..], |scheme| &scheme.vars[..]);
        vars.iter()
            .map(|q| {
                let q = &self.store.quantified[*q as usize];
                (q.var.clone(), constraint(q.data))
            })
            .collect()
    }

    pub fn var(&self, local: LocalId) -> Var {
        self.alias.get(&local).cloned().unwrap_or_else(|| self.tree.local_of(local).var.clone())
    }

    pub fn term(&mut self, exp: Exp) -> Term {
        with_stack(|| self.lower(exp))
    }

    fn terms(&mut self, exps: &[Exp]) -> Vec<Term> {
        exps.iter().map(|exp| self.term(*exp)).collect()
    }

    fn lower(&mut self, exp: Exp) -> Term {
        let node = self.tree.node(exp).clone();
        let at = At(node.span);
        match node.kind {
            ExpKind::Local(local, types) => {
                self.used.insert(local);
                let types = self.tys(&types, node.span);
                at.term(TermKind::Var(self.var(local), types))
            }
            ExpKind::Global(id, usage) => {
                let types = match usage {
                    Use::At(types) => self.tys(&types, node.span),
                    Use::Group => self.group.clone().into(),
                };
                let name = self.globals[id.0 as usize].name.clone();
                at.global(gradus_core::Global::Source { name, types })
            }
            ExpKind::Literal(literal) => at.term(TermKind::Literal(literal)),
            ExpKind::Numeral(text) => {
                let literal = self.numeral(&text, false, node.ty, node.span);
                at.term(TermKind::Literal(literal))
            }
            ExpKind::Function(params, body) => self.function(&params, body, node.span),
            ExpKind::App(function, argument) => {
                let function = self.term(function);
                let argument = self.term(argument);
                at.app(function, argument)
            }
            ExpKind::Let(local, bound, body) => {
                let bound = self.term(bound);
                let scheme = self.scheme(local);
                let var = self.var(local);
                let body = self.inside(&[local], |this| this.term(body));
                at.term(TermKind::Let { var, scheme, bound, body })
            }
            ExpKind::LetRec(bindings, body) => {
                let locals: Vec<LocalId> = bindings.iter().map(|(local, _)| *local).collect();
                self.inside(&locals, |this| {
                    let bindings = bindings
                        .iter()
                        .map(|(local, bound)| {
                            let bound = this.term(*bound);
                            (this.var(*local), this.scheme(*local), bound)
                        })
                        .collect();
                    let body = this.term(body);
                    at.term(TermKind::LetRec { bindings, body })
                })
            }
            ExpKind::Match { scrutinee, arms, form } => self.match_term(scrutinee, &arms, form, node.span),
            ExpKind::If(condition, then, otherwise) => {
                let condition = self.term(condition);
                let then = self.term(then);
                let otherwise = self.term(otherwise);
                at.if_(condition, then, otherwise)
            }
            ExpKind::Tuple(parts) => {
                let parts = self.terms(&parts);
                at.tuple(parts)
            }
            ExpKind::Construct(id, tag, args) => {
                let args = self.terms(&args);
                let (name, types) = self.constructed(id, node.ty, node.span);
                at.construct(name, types, tag, args)
            }
            ExpKind::Record(id, fields) => {
                let values = fields.iter().map(|(index, value)| (*index, *value)).collect::<Vec<_>>();
                self.record(id, None, &values, node.ty, node.span)
            }
            ExpKind::RecordWith(id, base, fields) => self.record(id, Some(base), &fields, node.ty, node.span),
            ExpKind::Field(base, index) => {
                let base = self.term(base);
                at.proj(base, index)
            }
            ExpKind::Array(items) => {
                let element = match self.ty(node.ty, node.span) {
                    Type::Array(element) => (*element).clone(),
                    other => other,
                };
                let items = self.terms(&items);
                at.term(TermKind::ArrayLiteral { element, items })
            }
            ExpKind::Prim(prim, types, args) => {
                let types = self.tys(&types, node.span);
                let missing = prim.info().params.len().saturating_sub(args.len());
                self.saturated(&args, missing, node.ty, node.span, |args| at.prim_at(prim, types, args))
            }
            ExpKind::Derive(op, types, args) => {
                let types = self.tys(&types, node.span);
                let missing = derive_arity(op).saturating_sub(args.len());
                self.saturated(&args, missing, node.ty, node.span, |args| at.term(TermKind::Derive { op, types, args }))
            }
            ExpKind::Arith(op, ty, args) => self.arith(op, ty, &args, node.span),
            ExpKind::Sized(inner, checks) => {
                let term = self.term(inner);
                let ty = self.ty_of(inner);
                self.sized(term, &ty, &checks, node.span)
            }
            // Nothing wrong is lowered.
            ExpKind::Error => at.unit(),
        }
    }

    fn arith(&mut self, op: Arith, ty: Ty, args: &[Exp], span: Span) -> Term {
        let at = At(span);
        let real = self.ty(ty, span) == Type::Real;
        // A negative literal is a literal, which also reaches the least integer.
        if let (Arith::Neg, [one]) = (op, args) {
            if let ExpKind::Numeral(text) = &self.tree.node(*one).kind {
                let literal = self.numeral(text, true, ty, span);
                return at.term(TermKind::Literal(literal));
            }
            if let ExpKind::Literal(Literal::Real(x)) = self.tree.node(*one).kind {
                return at.real(-x);
            }
        }
        let args = self.terms(args);
        at.prim(op.prim(real), args)
    }

    pub fn numeral(&mut self, text: &str, negative: bool, ty: Ty, span: Span) -> Literal {
        if self.ty(ty, span) == Type::Real {
            let value = crate::literal::real(text);
            return Literal::Real(if negative { -value } else { value });
        }
        match crate::literal::int(text, negative) {
            Some(value) => Literal::Int(value),
            None => {
                self.errors.push(TypeError::NumeralTooLarge { text: text.to_string(), span });
                Literal::Int(0)
            }
        }
    }

    pub fn constructed(&mut self, id: TypeId, ty: Ty, span: Span) -> (TypeName, Arc<[Type]>) {
        let name = TypeName::new(self.declared.get(id).name.clone());
        match self.ty(ty, span) {
            Type::Named(_, args) => (name, args),
            _ => (name, Arc::from([])),
        }
    }

    /// Fields are evaluated as they are written and stored as they are declared.
    fn record(&mut self, id: TypeId, base: Option<Exp>, fields: &[(usize, Exp)], ty: Ty, span: Span) -> Term {
        let at = At(span);
        let count = self.declared.arities(id)[0];
        let ordered = fields.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let mut lets: Vec<(Var, Type, Term)> = Vec::new();
        let mut values: Vec<Option<Term>> = vec![None; count];
        let base = base.map(|base| {
            let term = self.term(base);
            let ty = self.ty_of(base);
            self.named_value("r", term, ty, &mut lets)
        });
        for (index, value) in fields {
            let term = self.term(*value);
            let term = if ordered && base.is_none() {
                term
            } else {
                let ty = self.ty_of(*value);
                self.named_value("x", term, ty, &mut lets)
            };
            values[*index] = Some(term);
        }
        let args: Vec<Term> = values
            .into_iter()
            .enumerate()
            .map(|(index, value)| match (value, &base) {
                (Some(value), _) => value,
                (None, Some(base)) => at.proj(base.clone(), index),
                (None, None) => at.unit(),
            })
            .collect();
        let (name, types) = self.constructed(id, ty, span);
        let record = at.construct(name, types, 0, args);
        lets.into_iter().rev().fold(record, |body, (var, ty, bound)| at.bind(&var, ty, bound, body))
    }

    /// The term itself if it costs nothing to repeat or move, or a variable for it.
    fn named_value(&mut self, name: &str, term: Term, ty: Type, lets: &mut Vec<(Var, Type, Term)>) -> Term {
        if matches!(&*term.kind, TermKind::Var(..) | TermKind::Global(_) | TermKind::Literal(_)) {
            return term;
        }
        let var = Var::fresh(name);
        let span = term.span;
        lets.push((var.clone(), ty, term));
        At(span).var(&var)
    }

    /// A primitive with too few arguments is a function of the rest; the given ones are evaluated before.
    fn saturated(
        &mut self,
        args: &[Exp],
        missing: usize,
        ty: Ty,
        span: Span,
        make: impl FnOnce(Vec<Term>) -> Term,
    ) -> Term {
        let at = At(span);
        if missing == 0 {
            let args = self.terms(args);
            return make(args);
        }
        let mut lets = Vec::new();
        let mut values = Vec::new();
        for arg in args {
            let term = self.term(*arg);
            // A function that is written here is known where it is differentiated, unless it has only a name there.
            if let TermKind::Lambda(_) = &*term.kind {
                values.push(term);
                continue;
            }
            let ty = self.ty_of(*arg);
            values.push(self.named_value("x", term, ty, &mut lets));
        }
        let mut params = Vec::new();
        let mut rest = ty;
        for _ in 0..missing {
            if let Node::Fun(from, to) = self.store.shape(rest) {
                let var = Var::fresh("y");
                values.push(at.var(&var));
                params.push((var, self.ty(from, span)));
                rest = to;
            }
        }
        let function = at.lambdas(&params, make(values));
        lets.into_iter().rev().fold(function, |body, (var, ty, bound)| at.bind(&var, ty, bound, body))
    }

    pub fn inside<R>(&mut self, locals: &[LocalId], work: impl FnOnce(&mut Self) -> R) -> R {
        self.in_scope.extend(locals.iter().copied());
        let result = work(self);
        for local in locals {
            self.in_scope.remove(local);
        }
        result
    }

    /// Lambdas for all parameters; inside, the sizes, the checks of sizes, the patterns, the body.
    fn function(&mut self, params: &[Param], body: Exp, span: Span) -> Term {
        let at = At(span);
        let mut taken = Vec::new();
        for param in params {
            let ty = self.ty(param.ty, param.span);
            let var = match &self.tree.pattern(param.pattern).kind {
                PatKind::Bind(local, None) if param.checks.is_empty() => self.var(*local),
                PatKind::Bind(local, _) => self.tree.local_of(*local).var.refresh(),
                _ => Var::fresh("x"),
            };
            taken.push((var, ty));
        }
        let sizes: Vec<(LocalId, &[usize], &(Var, Type))> = params
            .iter()
            .zip(&taken)
            .flat_map(|(param, taken)| param.binds.iter().map(move |(local, path)| (*local, &path[..], taken)))
            .collect();
        let size_locals: Vec<LocalId> = sizes.iter().map(|(local, ..)| *local).collect();
        let mut inner = self.inside(&size_locals, |this| this.params(params, &taken, body));
        for (local, components, (var, ty)) in sizes.into_iter().rev() {
            let (mut array, mut ty) = (at.var(var), ty);
            for component in components {
                let Type::Tuple(types) = ty else { break };
                let Some(next) = types.get(*component) else { break };
                (array, ty) = (at.proj(array, *component), next);
            }
            if let (true, Type::Array(element)) = (self.used.contains(&local), ty) {
                let length = at.prim_at(Prim::Length, [(**element).clone()], [array]);
                inner = at.bind(&self.var(local), Type::Int, length, inner);
            }
        }
        at.lambdas(&taken, inner)
    }

    fn params(&mut self, params: &[Param], taken: &[(Var, Type)], body: Exp) -> Term {
        let (Some(param), Some((var, ty))) = (params.first(), taken.first()) else {
            return self.term(body);
        };
        let at = At(param.span);
        // Sizes of all parameters are known here, so each can be checked against any.
        let value = self.sized(at.var(var), ty, &param.checks, param.span);
        let (rest, taken) = (&params[1..], &taken[1..]);
        match &self.tree.pattern(param.pattern).kind {
            PatKind::Bind(local, None) => {
                let (local, own) = (*local, self.var(*local));
                let inner = self.inside(&[local], |this| this.params(rest, taken, body));
                if own == *var {
                    return inner;
                }
                at.bind(&own, ty.clone(), value, inner)
            }
            _ => self.destructure(param.pattern, value, ty, MatchForm::Param, |this| this.params(rest, taken, body)),
        }
    }

    /// `match value with pattern -> rest`, for a pattern that must always match.
    pub fn destructure(
        &mut self,
        pattern: Pat,
        value: Term,
        ty: &Type,
        form: MatchForm,
        rest: impl FnOnce(&mut Self) -> Term,
    ) -> Term {
        let span = self.tree.pattern(pattern).span;
        let mut rest = Some(rest);
        let row = crate::matching::Row { pattern, guard: None, inner: None, span };
        self.matching(value, ty, None, &[row], form, span, &mut |this, _| match rest.take() {
            Some(rest) => rest(this),
            None => At(span).unit(),
        })
    }

    // Sizes at run time.

    fn size_value(&mut self, size: Size, span: Span) -> Option<Term> {
        match self.store.size(size) {
            Size::Literal(n) => i64::try_from(n).ok().map(|n| At(span).int(n)),
            Size::Rigid(r) => {
                let local = self.store.rigid_sizes[r as usize].value?;
                self.in_scope.contains(&local).then(|| {
                    self.used.insert(local);
                    At(span).var(&self.var(local))
                })
            }
            Size::Unknown | Size::Var(_) => None,
        }
    }

    /// The array, checked to have the sizes of which the values are known.
    fn sized(&mut self, term: Term, ty: &Type, checks: &[Checked], span: Span) -> Term {
        checks.iter().fold(term, |term, check| match self.size_value(check.size, span) {
            Some(size) => check_size(term, ty, &check.path, size, span),
            None => term,
        })
    }
}

/// The value, after a check of the array at a path inside it. The first row stands for all.
fn check_size(term: Term, ty: &Type, path: &[Step], size: Term, span: Span) -> Term {
    let at = At(span);
    let (whole, part) = (Var::fresh("whole"), Var::fresh("part"));
    let and_then_whole = |ty: Type, checked: Term| at.bind(&part, ty, checked, at.var(&whole));
    match (ty, path) {
        (Type::Array(element), []) => at.prim_at(Prim::CheckSize, [(**element).clone()], [term, size]),
        (Type::Array(element), [Step::Row, inner @ ..]) => {
            let element = (**element).clone();
            let first = at.prim_at(Prim::Get, [element.clone()], [at.var(&whole), at.int(0)]);
            let first = check_size(first, &element, inner, size, span);
            let checked = and_then_whole(element.clone(), first);
            let length = at.prim_at(Prim::Length, [element], [at.var(&whole)]);
            let filled = at.prim_at(Prim::Less, [Type::Int], [at.int(0), length]);
            at.bind(&whole, ty.clone(), term, at.if_(filled, checked, at.var(&whole)))
        }
        (Type::Tuple(types), [Step::Part(index), inner @ ..]) => match types.get(*index) {
            Some(component) => {
                let checked = check_size(at.proj(at.var(&whole), *index), component, inner, size, span);
                at.bind(&whole, ty.clone(), term, and_then_whole(component.clone(), checked))
            }
            None => term,
        },
        _ => term,
    }
}
