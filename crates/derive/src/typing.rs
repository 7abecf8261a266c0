//! The type of a well-typed term, from the types at its binders and instantiations. (`core::check` verifies; this only reads off.)

use crate::{Linker, Made, Refusal};
use gradus_core::traverse::with_stack;
use gradus_core::{DeriveOp, Global, Literal, Term, TermKind, Type, Var};
use gradus_source::bug;
use rustc_hash::FxHashMap;

impl Linker {
    /// The type of a global, without making its definition.
    pub fn global_type(&self, global: &Global) -> Made<Type> {
        match global {
            Global::Source { name, types } => match self.hidden(global) {
                Some(hidden) => Ok(hidden.ty.clone()),
                None => match self.program().defs.get(name) {
                    Some(def) => Ok(def.scheme.instantiate(types)),
                    None => Err(Box::new(Refusal::UnknownGlobal { global: Box::new(global.clone()) })),
                },
            },
            Global::Derived { mode, of } => self.kept_type(global, || {
                Ok(self.image(crate::mode::rules(*mode, Default::default())?, &self.global_type(of)?))
            }),
            Global::Wrapper { name, modes, types } => {
                self.kept_type(global, || crate::wrappers::type_of(self, name, modes, types))
            }
        }
    }

    fn kept_type(&self, global: &Global, make: impl FnOnce() -> Made<Type>) -> Made<Type> {
        if let Some(known) = self.known_type(global) {
            return Ok(known);
        }
        let ty = make()?;
        self.keep_type(global, &ty);
        Ok(ty)
    }

    /// The type of a term whose variables, bound ones included, are in `vars`.
    pub fn type_of(&self, vars: &FxHashMap<Var, Type>, term: &Term) -> Made<Type> {
        with_stack(|| {
            Ok(match &*term.kind {
                TermKind::Var(v, _) => match vars.get(v) {
                    Some(ty) => ty.clone(),
                    None => bug!("the type of the variable {v:?} is not known"),
                },
                TermKind::Global(global) => self.global_type(global)?,
                TermKind::Literal(literal) => match literal {
                    Literal::Real(_) => Type::Real,
                    Literal::Int(_) => Type::Int,
                    Literal::Bool(_) => Type::Bool,
                    Literal::String(_) => Type::String,
                    Literal::Unit => Type::Unit,
                },
                TermKind::Lambda(l) => Type::fun(l.ty.clone(), self.type_of(vars, &l.body)?),
                TermKind::App(function, _) => result_type(&self.type_of(vars, function)?),
                TermKind::Let { body, .. } | TermKind::LetRec { body, .. } => self.type_of(vars, body)?,
                TermKind::Prim { prim, types, .. } => prim.info().result_at(types),
                TermKind::Tuple(items) => {
                    Type::Tuple(items.iter().map(|t| self.type_of(vars, t)).collect::<Made<Vec<_>>>()?.into())
                }
                TermKind::Proj { index, term } => self.component(&self.type_of(vars, term)?, *index)?,
                TermKind::Construct { name, types, .. } => Type::Named(name.clone(), types.clone()),
                TermKind::Case { arms, default, .. } => match (arms.first(), default) {
                    (Some(arm), _) => self.type_of(vars, &arm.body)?,
                    (None, Some(default)) => self.type_of(vars, default)?,
                    (None, None) => bug!("a case without arms"),
                },
                TermKind::If { then, .. } => self.type_of(vars, then)?,
                TermKind::ArrayLiteral { element, .. } => Type::array(element.clone()),
                TermKind::Derive { op, types, .. } => derive_type(*op, types),
                TermKind::Lift { under, mode, ty, .. } => {
                    let mut modes = under.clone();
                    modes.push(*mode);
                    self.image_under(&modes, ty)?
                }
            })
        })
    }

    /// The type of a component of a tuple or record.
    pub fn component(&self, ty: &Type, index: usize) -> Made<Type> {
        let found = match ty {
            Type::Tuple(parts) => parts.get(index).cloned(),
            Type::Named(name, args) => {
                let constructors = self.declaration(name)?.constructors(args);
                constructors.first().and_then(|(_, fields)| fields.get(index).cloned())
            }
            _ => None,
        };
        Ok(found.unwrap_or_else(|| bug!("no component {index} in {ty:?}")))
    }
}

pub fn result_type(ty: &Type) -> Type {
    match ty {
        Type::Fun(ends) => ends.1.clone(),
        _ => bug!("not a function: {ty:?}"),
    }
}

pub fn parameter_type(ty: &Type) -> Type {
    match ty {
        Type::Fun(ends) => ends.0.clone(),
        _ => bug!("not a function: {ty:?}"),
    }
}

/// See [`DeriveOp`].
fn derive_type(op: DeriveOp, types: &[Type]) -> Type {
    let ty = |i: usize| types.get(i).cloned().unwrap_or_else(|| bug!("{op:?} without its types"));
    match op {
        DeriveOp::Grad | DeriveOp::Vjp | DeriveOp::Hvp => ty(0),
        DeriveOp::ValueAndGrad => Type::tuple([Type::Real, ty(0)]),
        DeriveOp::Jvp => ty(1),
        DeriveOp::Pullback => Type::tuple([ty(1), Type::fun(ty(1), ty(0))]),
        DeriveOp::Linearize => Type::tuple([ty(1), Type::fun(ty(0), ty(1))]),
        DeriveOp::Jacobian | DeriveOp::Hessian => Type::array(Type::array(Type::Real)),
        DeriveOp::Diff => Type::Real,
        DeriveOp::Taylor => Type::array(Type::Real),
    }
}
