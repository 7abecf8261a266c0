//! The rules, one for each form of term.

use super::error::{CheckError, CheckErrorKind};
use super::{is_data, Checked, Context, PartTypes};
use crate::definitions::Environment;
use crate::print::type_name;
use crate::traverse::with_stack;
use crate::*;
use gradus_source::Span;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Walks over a term and computes its type.
pub(super) struct Checker<'a> {
    context: &'a dyn Context,
    environment: Environment,
    bound: FxHashSet<Var>,
    /// The recursive groups that we are inside of: there a use needs no type arguments.
    own_group: FxHashSet<Var>,
    /// The type variables in scope.
    scope: Vec<TypeVar>,
    decls: FxHashMap<TypeName, Arc<TypeDecl>>,
    /// The types found so far, if they are asked for.
    types: Option<PartTypes>,
}

impl<'a> Checker<'a> {
    pub fn new(context: &'a dyn Context) -> Self {
        Checker {
            context,
            environment: Environment::default(),
            bound: FxHashSet::default(),
            own_group: FxHashSet::default(),
            scope: Vec::new(),
            decls: FxHashMap::default(),
            types: None,
        }
    }

    pub fn keeping_types(self) -> Self {
        Checker { types: Some(PartTypes::default()), ..self }
    }

    pub fn into_types(self) -> PartTypes {
        self.types.unwrap_or_default()
    }

    pub fn in_environment(self, environment: Environment) -> Self {
        Checker { environment, ..self }
    }

    pub fn in_scope(self, scope: Vec<TypeVar>) -> Self {
        Checker { scope, ..self }
    }

    fn fail<T>(&self, span: Span, kind: CheckErrorKind) -> Checked<T> {
        Err(Box::new(CheckError { span, kind }))
    }

    fn decl(&mut self, name: &TypeName, span: Span) -> Checked<Arc<TypeDecl>> {
        if let Some(decl) = self.decls.get(name) {
            return Ok(decl.clone());
        }
        match self.context.type_decl(name) {
            Ok(decl) => {
                self.decls.insert(name.clone(), decl.clone());
                Ok(decl)
            }
            Err(diagnostic) => self.fail(span, CheckErrorKind::Refused(diagnostic)),
        }
    }

    /// Every variable in scope, every declared type known and given as many arguments as it takes.
    pub fn well_formed(&mut self, ty: &Type, span: Span) -> Checked<()> {
        with_stack(|| match ty {
            Type::Var(v) if !self.scope.contains(v) => self.fail(span, CheckErrorKind::OpenType(ty.clone())),
            Type::Var(_) | Type::Real | Type::Int | Type::Bool | Type::String | Type::Unit => Ok(()),
            Type::Tuple(parts) => parts.iter().try_for_each(|t| self.well_formed(t, span)),
            Type::Fun(parts) => {
                self.well_formed(&parts.0, span)?;
                self.well_formed(&parts.1, span)
            }
            Type::Array(element) => self.well_formed(element, span),
            Type::Named(name, args) => {
                args.iter().try_for_each(|t| self.well_formed(t, span))?;
                let expected = self.decl(name, span)?.params.len();
                self.type_arguments(|| type_name(name), expected, args.len(), span)
            }
        })
    }

    fn type_arguments(&self, what: impl Fn() -> String, expected: usize, found: usize, span: Span) -> Checked<()> {
        if expected == found {
            return Ok(());
        }
        self.fail(span, CheckErrorKind::TypeArguments { what: what(), expected, found })
    }

    fn arity(&self, what: impl Fn() -> String, expected: usize, found: usize, span: Span) -> Checked<()> {
        if expected == found {
            return Ok(());
        }
        self.fail(span, CheckErrorKind::Arity { what: what(), expected, found })
    }

    fn data(&self, what: &'static str, ty: &Type, span: Span) -> Checked<()> {
        match is_data(self.context, ty) {
            Ok(true) => Ok(()),
            Ok(false) => self.fail(span, CheckErrorKind::NotData { what, ty: ty.clone() }),
            Err(diagnostic) => self.fail(span, CheckErrorKind::Refused(diagnostic)),
        }
    }

    fn bind(&mut self, var: &Var, scheme: Scheme, span: Span) -> Checked<()> {
        let outer = self.scope.len();
        self.scope.extend(scheme.vars.iter().map(|(v, _)| v.clone()));
        self.well_formed(&scheme.ty, span)?;
        self.scope.truncate(outer);
        if !self.bound.insert(var.clone()) {
            return self.fail(span, CheckErrorKind::BoundTwice(var.clone()));
        }
        self.environment.insert(var.clone(), scheme);
        Ok(())
    }

    pub fn expect(&mut self, what: &'static str, expected: &Type, term: &Term) -> Checked<()> {
        let found = self.type_of(term)?;
        self.same(what, expected, found, term.span)
    }

    fn same(&self, what: &'static str, expected: &Type, found: Type, span: Span) -> Checked<()> {
        if *expected == found {
            return Ok(());
        }
        self.fail(span, CheckErrorKind::Mismatch { what, expected: expected.clone(), found })
    }

    pub fn type_of(&mut self, term: &Term) -> Checked<Type> {
        with_stack(|| {
            let ty = self.type_of_inner(term)?;
            if let Some(types) = &mut self.types {
                types.insert(Arc::as_ptr(&term.kind), ty.clone());
            }
            Ok(ty)
        })
    }

    fn type_of_inner(&mut self, term: &Term) -> Checked<Type> {
        let span = term.span;
        match &*term.kind {
            TermKind::Var(var, types) => self.variable(var, types, span),
            TermKind::Global(global) => match self.context.global_type(global) {
                Ok(ty) => Ok(ty),
                Err(diagnostic) => self.fail(span, CheckErrorKind::Refused(diagnostic)),
            },
            TermKind::Literal(literal) => Ok(match literal {
                Literal::Real(_) => Type::Real,
                Literal::Int(_) => Type::Int,
                Literal::Bool(_) => Type::Bool,
                Literal::String(_) => Type::String,
                Literal::Unit => Type::Unit,
            }),
            TermKind::Lambda(lambda) => {
                self.bind(&lambda.param, Scheme::mono(lambda.ty.clone()), span)?;
                Ok(Type::fun(lambda.ty.clone(), self.type_of(&lambda.body)?))
            }
            TermKind::App(function, argument) => match self.type_of(function)? {
                Type::Fun(parts) => {
                    self.expect("the argument", &parts.0, argument)?;
                    Ok(parts.1.clone())
                }
                other => self.fail(span, CheckErrorKind::NotAFunction(other)),
            },
            TermKind::Let { var, scheme, bound, body } => {
                if !scheme.vars.is_empty() && !is_value(bound) {
                    return self.fail(span, CheckErrorKind::PolymorphicNonValue(var.clone()));
                }
                self.expect_scheme("the bound term", scheme, bound)?;
                self.bind(var, scheme.clone(), span)?;
                self.type_of(body)
            }
            TermKind::LetRec { bindings, body } => {
                for (var, scheme, bound) in bindings {
                    if !matches!(&*bound.kind, TermKind::Lambda(_)) {
                        return self.fail(span, CheckErrorKind::RecursiveValue(var.clone()));
                    }
                    self.bind(var, scheme.clone(), span)?;
                    self.own_group.insert(var.clone());
                }
                for (_, scheme, bound) in bindings {
                    self.expect_scheme("the recursive function", scheme, bound)?;
                }
                bindings.iter().for_each(|(var, _, _)| {
                    self.own_group.remove(var);
                });
                self.type_of(body)
            }
            TermKind::Prim { prim, types, args, site: _ } => {
                let info = prim.info();
                self.type_arguments(|| info.name.to_string(), info.scheme.vars.len(), types.len(), span)?;
                self.arity(|| info.name.to_string(), info.params.len(), args.len(), span)?;
                for ((_, constraint), ty) in info.scheme.vars.iter().zip(types.iter()) {
                    self.well_formed(ty, span)?;
                    if *constraint == Constraint::Data {
                        self.data(info.name, ty, span)?;
                    }
                }
                for (param, arg) in info.params_at(types).iter().zip(args) {
                    self.expect("the operand", param, arg)?;
                }
                Ok(info.result_at(types))
            }
            TermKind::Tuple(items) => {
                if items.len() < 2 {
                    self.arity(|| "a tuple".into(), 2, items.len(), span)?;
                }
                let types: Vec<Type> = items.iter().map(|t| self.type_of(t)).collect::<Checked<_>>()?;
                Ok(Type::tuple(types))
            }
            TermKind::Proj { index, term } => {
                let ty = self.type_of(term)?;
                self.component(ty, *index, span)
            }
            TermKind::Construct { name, types, tag, args } => {
                let ty = Type::Named(name.clone(), types.clone());
                self.well_formed(&ty, span)?;
                let constructors = self.decl(name, span)?.constructors(types);
                let Some((label, params)) = constructors.get(*tag) else {
                    return self.fail(span, CheckErrorKind::NoConstructor { ty, tag: *tag });
                };
                self.arity(|| label.to_string(), params.len(), args.len(), span)?;
                for (param, arg) in params.iter().zip(args) {
                    self.expect("the constructor's argument", param, arg)?;
                }
                Ok(ty)
            }
            TermKind::Case { scrutinee, arms, default } => self.case(scrutinee, arms, default.as_ref(), span),
            TermKind::If { condition, then, otherwise } => {
                self.expect("the condition", &Type::Bool, condition)?;
                let ty = self.type_of(then)?;
                self.expect("the other branch", &ty, otherwise)?;
                Ok(ty)
            }
            TermKind::ArrayLiteral { element, items } => {
                self.well_formed(element, span)?;
                for item in items {
                    self.expect("the element", element, item)?;
                }
                Ok(Type::array(element.clone()))
            }
            TermKind::Derive { op, types, args } => {
                types.iter().try_for_each(|t| self.well_formed(t, span))?;
                let what = || format!("{op:?}");
                self.type_arguments(what, op.type_arity(), types.len(), span)?;
                for ty in types.iter() {
                    self.data("a derivative form", ty, span)?;
                }
                let (params, result) = op.signature(types);
                self.arity(what, params.len(), args.len(), span)?;
                for (param, arg) in params.iter().zip(args) {
                    self.expect("the derivative form's argument", param, arg)?;
                }
                Ok(result)
            }
            TermKind::Lift { under, mode, ty, term } => {
                self.well_formed(ty, span)?;
                let translated = self.translate(ty, *mode, span)?;
                let (mut from, mut to) = (ty.clone(), translated);
                for outer in under.iter().rev() {
                    from = self.translate(&from, *outer, span)?;
                    to = self.translate(&to, *outer, span)?;
                }
                self.expect("the lifted term", &from, term)?;
                Ok(to)
            }
        }
    }

    fn translate(&self, ty: &Type, mode: Mode, span: Span) -> Checked<Type> {
        match self.context.translate(ty, mode) {
            Some(ty) => Ok(ty),
            None => self.fail(span, CheckErrorKind::NoTranslation(mode)),
        }
    }

    fn variable(&mut self, var: &Var, types: &[Type], span: Span) -> Checked<Type> {
        types.iter().try_for_each(|t| self.well_formed(t, span))?;
        let Some(scheme) = self.environment.get(var) else {
            return self.fail(span, CheckErrorKind::UnboundVariable(var.clone()));
        };
        if types.is_empty() && self.own_group.contains(var) {
            return Ok(scheme.ty.clone());
        }
        self.type_arguments(|| var.name.to_string(), scheme.vars.len(), types.len(), span)?;
        Ok(scheme.instantiate(types))
    }

    fn expect_scheme(&mut self, what: &'static str, scheme: &Scheme, term: &Term) -> Checked<()> {
        let outer = self.scope.len();
        self.scope.extend(scheme.vars.iter().map(|(v, _)| v.clone()));
        let result = self.expect(what, &scheme.ty, term);
        self.scope.truncate(outer);
        result
    }

    fn component(&mut self, ty: Type, index: usize, span: Span) -> Checked<Type> {
        let found = match &ty {
            Type::Tuple(parts) => parts.get(index).cloned(),
            Type::Named(name, args) => {
                // A record, or a variant with one constructor.
                match &self.decl(name, span)?.constructors(args)[..] {
                    [(_, fields)] => fields.get(index).cloned(),
                    _ => None,
                }
            }
            Type::Var(_)
            | Type::Real
            | Type::Int
            | Type::Bool
            | Type::String
            | Type::Unit
            | Type::Fun(_)
            | Type::Array(_) => None,
        };
        match found {
            Some(ty) => Ok(ty),
            None => self.fail(span, CheckErrorKind::NoComponent { ty, index }),
        }
    }

    fn case(&mut self, scrutinee: &Term, arms: &[Arm], default: Option<&Term>, span: Span) -> Checked<Type> {
        let ty = self.type_of(scrutinee)?;
        let Type::Named(name, types) = &ty else { return self.fail(span, CheckErrorKind::NotAVariant(ty)) };
        let constructors = self.decl(name, span)?.constructors(types);
        let mut covered = vec![false; constructors.len()];
        let mut result: Option<Type> = None;
        for arm in arms {
            let Some((label, params)) = constructors.get(arm.tag) else {
                return self.fail(span, CheckErrorKind::NoConstructor { ty, tag: arm.tag });
            };
            if std::mem::replace(&mut covered[arm.tag], true) {
                return self.fail(span, CheckErrorKind::RepeatedArm { tag: arm.tag });
            }
            self.arity(|| label.to_string(), params.len(), arm.vars.len(), span)?;
            for ((var, ty), param) in arm.vars.iter().zip(params) {
                self.same("the pattern variable", param, ty.clone(), span)?;
                self.bind(var, Scheme::mono(ty.clone()), span)?;
            }
            match &result {
                None => result = Some(self.type_of(&arm.body)?),
                Some(ty) => self.expect("the arm", &ty.clone(), &arm.body)?,
            }
        }
        match default {
            Some(body) => match &result {
                None => result = Some(self.type_of(body)?),
                Some(ty) => self.expect("the default arm", &ty.clone(), body)?,
            },
            None => {
                if let Some(tag) = covered.iter().position(|c| !c) {
                    return self.fail(span, CheckErrorKind::Uncovered { ty, tag });
                }
            }
        }
        match result {
            Some(ty) => Ok(ty),
            None => self.fail(span, CheckErrorKind::Uncovered { ty, tag: 0 }),
        }
    }
}

/// What may be bound polymorphically: evaluating it does nothing.
fn is_value(term: &Term) -> bool {
    with_stack(|| match &*term.kind {
        TermKind::Var(..) | TermKind::Global(_) | TermKind::Literal(_) | TermKind::Lambda(_) => true,
        TermKind::Construct { args, .. } => args.iter().all(is_value),
        TermKind::Tuple(items) | TermKind::ArrayLiteral { items, .. } => items.iter().all(is_value),
        TermKind::Let { bound, body, .. } => is_value(bound) && is_value(body),
        TermKind::LetRec { body, .. } => is_value(body),
        TermKind::Proj { term, .. } => is_value(term),
        TermKind::App(..)
        | TermKind::Prim { .. }
        | TermKind::Case { .. }
        | TermKind::If { .. }
        | TermKind::Derive { .. }
        | TermKind::Lift { .. } => false,
    })
}
