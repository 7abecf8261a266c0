//! The checker of core: recomputes every type from those at binders and instantiations, and verifies the invariants
//! of [`crate::term`]. In tests it runs after every pass, so that a pass that breaks something is caught by name.

use crate::definitions::Environment;
use crate::print::{print_type, type_name};
use crate::traverse::with_stack;
use crate::*;
use gradus_source::{Diagnostic, Span};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// What the checker must know about the world around a term.
pub trait Context {
    fn global_type(&self, global: &Global) -> Result<Type, Box<Diagnostic>>;

    fn type_decl(&self, name: &TypeName) -> Result<Arc<TypeDecl>, Box<Diagnostic>>;

    /// The image of a type under a mode, which only `derive` knows. Needed for [`TermKind::Lift`].
    fn translate(&self, _ty: &Type, _mode: Mode) -> Option<Type> {
        None
    }
}

/// How modes translate types.
pub type TypeTranslation<'a> = dyn Fn(&Type, Mode) -> Type + 'a;

/// The context that a linker gives.
pub struct Linked<'a> {
    pub definitions: &'a dyn Definitions,
    /// How a mode translates types; without it `Lift` cannot be checked.
    pub translate: Option<&'a TypeTranslation<'a>>,
}

impl Context for Linked<'_> {
    fn global_type(&self, global: &Global) -> Result<Type, Box<Diagnostic>> {
        Ok(self.definitions.definition(global)?.ty.clone())
    }

    fn type_decl(&self, name: &TypeName) -> Result<Arc<TypeDecl>, Box<Diagnostic>> {
        self.definitions.type_decl(name)
    }

    fn translate(&self, ty: &Type, mode: Mode) -> Option<Type> {
        self.translate.map(|translate| translate(ty, mode))
    }
}

/// The context of a program as inference leaves it: polymorphic, without derivatives.
pub struct Unlinked<'a>(pub &'a Program);

impl Context for Unlinked<'_> {
    fn global_type(&self, global: &Global) -> Result<Type, Box<Diagnostic>> {
        let missing = || Box::new(Diagnostic::error(CODE, format!("core: there is no definition {global:?}")));
        match global {
            Global::Source { name, types } => {
                let def = self.0.defs.get(name).ok_or_else(missing)?;
                if def.scheme.vars.len() != types.len() {
                    return Err(Box::new(Diagnostic::error(
                        CODE,
                        format!("core: `{name}` has {} type arguments", types.len()),
                    )));
                }
                Ok(def.scheme.instantiate(types))
            }
            Global::Derived { .. } | Global::Wrapper { .. } => Err(missing()),
        }
    }

    fn type_decl(&self, name: &TypeName) -> Result<Arc<TypeDecl>, Box<Diagnostic>> {
        let found = if name.modes.is_empty() { self.0.types.get(&name.base) } else { None };
        match found {
            Some(decl) => Ok(Arc::new(decl.clone())),
            None => Err(Box::new(Diagnostic::error(CODE, format!("core: there is no type {}", type_name(name))))),
        }
    }
}

const CODE: &str = "E0900";

/// A broken invariant of core: a mistake in a pass, never in the user's program.
#[derive(Clone, Debug)]
pub struct CheckError {
    pub span: Span,
    pub kind: CheckErrorKind,
}

#[derive(Clone, Debug)]
pub enum CheckErrorKind {
    UnboundVariable(Var),
    BoundTwice(Var),
    Mismatch {
        what: &'static str,
        expected: Type,
        found: Type,
    },
    NotAFunction(Type),
    Arity {
        what: String,
        expected: usize,
        found: usize,
    },
    TypeArguments {
        what: String,
        expected: usize,
        found: usize,
    },
    NoComponent {
        ty: Type,
        index: usize,
    },
    NoConstructor {
        ty: Type,
        tag: usize,
    },
    RepeatedArm {
        tag: usize,
    },
    Uncovered {
        ty: Type,
        tag: usize,
    },
    NotAVariant(Type),
    RecursiveValue(Var),
    PolymorphicNonValue(Var),
    NotData {
        what: &'static str,
        ty: Type,
    },
    OpenType(Type),
    NoTranslation(Mode),
    /// The context could not answer.
    Refused(Box<Diagnostic>),
}

impl CheckError {
    pub fn diagnostic(&self) -> Diagnostic {
        use CheckErrorKind::*;
        let text = match &self.kind {
            UnboundVariable(v) => format!("variable {v:?} is not bound"),
            BoundTwice(v) => format!("variable {v:?} is bound twice"),
            Mismatch { what, expected, found } => {
                format!("{what} has type {}, expected {}", print_type(found), print_type(expected))
            }
            NotAFunction(ty) => format!("a value of type {} is applied", print_type(ty)),
            Arity { what, expected, found } => format!("{what} takes {expected} arguments, not {found}"),
            TypeArguments { what, expected, found } => format!("{what} takes {expected} type arguments, not {found}"),
            NoComponent { ty, index } => format!("type {} has no component {index}", print_type(ty)),
            NoConstructor { ty, tag } => format!("type {} has no constructor {tag}", print_type(ty)),
            RepeatedArm { tag } => format!("two arms for constructor {tag}"),
            Uncovered { ty, tag } => format!("no arm for constructor {tag} of type {}", print_type(ty)),
            NotAVariant(ty) => format!("a value of type {} is taken apart", print_type(ty)),
            RecursiveValue(v) => format!("recursive {v:?} is not a function"),
            PolymorphicNonValue(v) => format!("polymorphic {v:?} is not a value"),
            NotData { what, ty } => format!("{what} is used at type {}, which contains functions", print_type(ty)),
            OpenType(ty) => format!("type {} has a variable that is not in scope", print_type(ty)),
            NoTranslation(mode) => format!("types under mode {mode} are not known here"),
            Refused(diagnostic) => diagnostic.message.clone(),
        };
        Diagnostic::error(CODE, format!("core: {text}")).label(self.span, "in what was made from this")
    }
}

pub type Checked<T> = Result<T, Box<CheckError>>;

/// Checks a definition of the linker: closed types, no polymorphism left, the stated type.
pub fn check_definition(context: &dyn Context, definition: &Definition) -> Checked<()> {
    let span = definition.term.as_ref().map_or(Span::default(), |t| t.span);
    let mut checker = Checker::new(context);
    checker.well_formed(&definition.ty, span)?;
    match &definition.term {
        Some(term) => checker.expect("the definition", &definition.ty, term),
        None => Ok(()),
    }
}

/// Checks a whole program as inference leaves it, rules and items included.
pub fn check_program(program: &Program) -> Checked<()> {
    let context = Unlinked(program);
    for def in program.defs.values() {
        let scope: Vec<TypeVar> = def.scheme.vars.iter().map(|(v, _)| v.clone()).collect();
        let new = || Checker { scope: scope.clone(), ..Checker::new(&context) };
        let mut checker = new();
        checker.well_formed(&def.scheme.ty, def.span)?;
        if let Body::Term(term) = &def.body {
            checker.expect("the definition", &def.scheme.ty, term)?;
        }
        for rule in [&def.rules.reverse, &def.rules.forward].into_iter().flatten() {
            new().type_of(rule)?;
        }
    }
    for item in &program.items {
        Checker::new(&context).expect("the item", &item.ty, &item.term)?;
    }
    Ok(())
}

/// The type of a term whose free variables have the types of the environment. Verifies the term on the way.
pub fn type_of(context: &dyn Context, term: &Term, environment: &Environment) -> Checked<Type> {
    Checker { environment: environment.clone(), ..Checker::new(context) }.type_of(term)
}

/// Whether a type has no function inside. Type variables count as data.
pub fn is_data(context: &dyn Context, ty: &Type) -> Result<bool, Box<Diagnostic>> {
    fn walk(context: &dyn Context, ty: &Type, seen: &mut FxHashSet<TypeName>) -> Result<bool, Box<Diagnostic>> {
        with_stack(|| {
            let mut all = |types: &[Type]| -> Result<bool, Box<Diagnostic>> {
                for ty in types {
                    if !walk(context, ty, seen)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            };
            match ty {
                Type::Var(_) | Type::Real | Type::Int | Type::Bool | Type::String | Type::Unit => Ok(true),
                Type::Fun(_) => Ok(false),
                Type::Tuple(parts) => all(parts),
                Type::Array(element) => walk(context, element, seen),
                Type::Named(name, args) => {
                    if !all(args)? {
                        return Ok(false);
                    }
                    // The declaration with its parameters taken as data; once is enough, also in recursion.
                    if !seen.insert(name.clone()) {
                        return Ok(true);
                    }
                    let decl = context.type_decl(name)?;
                    let parts: Vec<Type> = match &decl.body {
                        TypeBody::Record(fields) => fields.iter().map(|(_, t)| t.clone()).collect(),
                        TypeBody::Variant(constructors) => {
                            constructors.iter().flat_map(|(_, ts)| ts.iter().cloned()).collect()
                        }
                    };
                    for part in &parts {
                        if !walk(context, part, seen)? {
                            return Ok(false);
                        }
                    }
                    Ok(true)
                }
            }
        })
    }
    walk(context, ty, &mut FxHashSet::default())
}

struct Checker<'a> {
    context: &'a dyn Context,
    environment: Environment,
    bound: FxHashSet<Var>,
    /// The recursive groups that we are inside of: there a use needs no type arguments.
    own_group: FxHashSet<Var>,
    /// The type variables in scope.
    scope: Vec<TypeVar>,
    decls: FxHashMap<TypeName, Arc<TypeDecl>>,
}

impl<'a> Checker<'a> {
    fn new(context: &'a dyn Context) -> Self {
        Checker {
            context,
            environment: Environment::default(),
            bound: FxHashSet::default(),
            own_group: FxHashSet::default(),
            scope: Vec::new(),
            decls: FxHashMap::default(),
        }
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
    fn well_formed(&mut self, ty: &Type, span: Span) -> Checked<()> {
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

    fn expect(&mut self, what: &'static str, expected: &Type, term: &Term) -> Checked<()> {
        let found = self.type_of(term)?;
        self.same(what, expected, found, term.span)
    }

    fn same(&self, what: &'static str, expected: &Type, found: Type, span: Span) -> Checked<()> {
        if *expected == found {
            return Ok(());
        }
        self.fail(span, CheckErrorKind::Mismatch { what, expected: expected.clone(), found })
    }

    fn type_of(&mut self, term: &Term) -> Checked<Type> {
        with_stack(|| self.type_of_inner(term))
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
                let decl = self.decl(name, span)?;
                match &decl.body {
                    TypeBody::Record(_) => decl.constructors(args).first().and_then(|(_, ts)| ts.get(index).cloned()),
                    TypeBody::Variant(_) => None,
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
