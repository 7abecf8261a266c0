//! `stop_gradient e`: `e` is run as it stands, from primal values, so that nothing inside it is differentiated, recorded or looked at for kinks.
//!
//! Its variables have translated types. A part of a data structure (`rows.(i).(k)`, a field, what a `match` takes out) is reached in the translated
//! structure, and only what is there is made primal; a structure that is used as a whole is walked over. A term that calls a function
//! that came from outside cannot be run as it stands, since only the translated function is there: it is differentiated, and the derivative is dropped.

use crate::mode::ModeRules;
use crate::scope::Scope;
use crate::write::{get, try_map_children};
use crate::{wrappers, Linker, Made};
use gradus_core::build::At;
use gradus_core::traverse::{free_vars, with_stack};
use gradus_core::{Arm, Prim, Term, TermKind, Type, Var};
use rustc_hash::FxHashSet;

/// The value of a term of data type without derivatives; `None` if it cannot be run as it stands.
pub fn stopped(linker: &Linker, mode: &dyn ModeRules, scope: &Scope, term: &Term) -> Made<Option<Term>> {
    let Some(duals) = translated_variables(linker, scope, term) else { return Ok(None) };
    Stopped { linker, mode, scope, duals }.term(term).map(Some)
}

/// The free variables that have reals inside, if none has a function inside.
fn translated_variables(linker: &Linker, scope: &Scope, term: &Term) -> Option<FxHashSet<Var>> {
    let mut duals = FxHashSet::default();
    for var in free_vars(term) {
        let contents = linker.contents(scope.get(&var)?);
        if !contents.is_data() {
            return None;
        }
        if !contents.is_leaf() {
            duals.insert(var);
        }
    }
    Some(duals)
}

struct Stopped<'a> {
    linker: &'a Linker,
    mode: &'a dyn ModeRules,
    scope: &'a Scope,
    /// The variables that have translated types.
    duals: FxHashSet<Var>,
}

impl Stopped<'_> {
    fn image(&self, ty: &Type) -> Type {
        self.linker.image(self.mode, ty)
    }

    fn term(&mut self, term: &Term) -> Made<Term> {
        with_stack(|| {
            let at = At(term.span);
            if let Some((image, ty)) = self.part(term)? {
                return wrappers::primal(self.linker, at, self.mode, &ty, image);
            }
            match &*term.kind {
                TermKind::Prim { prim: Prim::Length, args, .. } => {
                    if let [array] = &args[..] {
                        if let Some((image, ty)) = self.part(array)? {
                            return Ok(crate::write::length(at, &element(&self.image(&ty)), image));
                        }
                    }
                }
                TermKind::Case { scrutinee, arms, default } => {
                    if let Some((image, _)) = self.part(scrutinee)? {
                        return self.case(at, image, arms, default.as_ref());
                    }
                }
                _ => {}
            }
            try_map_children(term, |child| self.term(child))
        })
    }

    /// The way to a part of a translated variable, and the type of that part before translation.
    fn part(&mut self, term: &Term) -> Made<Option<(Term, Type)>> {
        let at = At(term.span);
        Ok(match &*term.kind {
            TermKind::Var(var, _) if self.duals.contains(var) => {
                self.scope.get(var).map(|ty| (term.clone(), ty.clone()))
            }
            TermKind::Proj { index, term: whole } => match self.part(whole)? {
                Some((image, ty)) => Some((at.proj(image, *index), self.linker.component(&ty, *index)?)),
                None => None,
            },
            TermKind::Prim { prim: Prim::Get, args, .. } => match &args[..] {
                [array, index] => match self.part(array)? {
                    Some((image, ty)) => {
                        let element = element(&ty);
                        let index = self.term(index)?;
                        Some((get(at, &self.image(&element), image, index), element))
                    }
                    None => None,
                },
                _ => None,
            },
            _ => None,
        })
    }

    /// A `match` on a translated structure takes translated parts out of it.
    fn case(&mut self, at: At, scrutinee: Term, arms: &[Arm], default: Option<&Term>) -> Made<Term> {
        let mut images = Vec::new();
        for arm in arms {
            let mut vars = Vec::new();
            for (var, ty) in &arm.vars {
                if !self.linker.contents(ty).is_leaf() {
                    self.duals.insert(var.clone());
                }
                vars.push((var.clone(), self.image(ty)));
            }
            images.push(Arm { tag: arm.tag, vars, body: self.term(&arm.body)? });
        }
        let default = default.map(|default| self.term(default)).transpose()?;
        Ok(at.case(scrutinee, images, default))
    }
}

fn element(array: &Type) -> Type {
    match array {
        Type::Array(element) => (**element).clone(),
        other => gradus_source::bug!("no array: {other:?}"),
    }
}
