//! The checker of core: recomputes every type from those at binders and instantiations, and verifies the invariants
//! of [`crate::term`]. In tests it runs after every pass, so that a pass that breaks something is caught by name.

mod error;
mod terms;

#[cfg(test)]
mod tests;

pub use error::{CheckError, CheckErrorKind};

use crate::definitions::Environment;
use crate::print::type_name;
use crate::traverse::with_stack;
use crate::*;
use error::CODE;
use gradus_source::{Diagnostic, Span};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use terms::Checker;

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
        let new = || Checker::new(&context).in_scope(scope.clone());
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
    Checker::new(context).in_environment(environment.clone()).type_of(term)
}

/// The type of each part of a term, by its address.
pub type PartTypes = FxHashMap<*const TermKind, Type>;

/// The types of all parts of a closed term. Verifies the term on the way.
pub fn part_types(context: &dyn Context, term: &Term) -> Checked<PartTypes> {
    let mut checker = Checker::new(context).keeping_types();
    checker.type_of(term)?;
    Ok(checker.into_types())
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
