//! The interface of a differentiation mode; see the crate's documentation for how the parts fit.

use crate::custom::CustomRule;
use crate::scope::Scope;
use crate::{Linker, Made, Refusal};
use gradus_core::build::At;
use gradus_core::{Lambda, Mode, Term, Type, TypeDecl};
use gradus_source::Span;
use std::sync::Arc;

/// Which derivative forms a mode can serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// `grad`, `value_and_grad`, `vjp`, `pullback`
    pub vjp: bool,
    /// `jvp`, `linearize`, `diff`
    pub jvp: bool,
}

/// What the linker, the wrappers and the expansion of derivative forms ask of a mode. We write D for its translation.
pub trait ModeRules: Sync {
    fn mode(&self) -> Mode;

    fn capabilities(&self) -> Capabilities;

    /// D(real)
    fn real(&self) -> Type;

    /// D(a -> b), from D(a) and D(b)
    fn arrow(&self, from: Type, to: Type) -> Type {
        Type::fun(from, to)
    }

    /// D(a -> b) from a and b themselves, for a mode that needs more than their images.
    fn function(&self, _linker: &Linker, _from: &Type, _to: &Type) -> Option<Type> {
        None
    }

    /// The types of the mode's own, which translated types mention.
    fn declarations(&self) -> Vec<TypeDecl> {
        Vec::new()
    }

    /// A real without derivative as a D(real). The result does no arithmetic.
    fn constant(&self, at: At, x: Term) -> Term;

    /// The primal part of a D(real).
    fn primal(&self, at: At, dual: Term) -> Term;

    /// If `x : a |- b : c`, then `D(x) : D(a) |- D(b) : D(c)`, as a function; free variables keep their numbers.
    fn lambda(&self, linker: &Linker, scope: &Scope, lambda: &Arc<Lambda>) -> Made<Arc<Lambda>>;

    /// D of a term that does no arithmetic and calls nothing, such as a pair of a variable and a literal.
    fn value(&self, linker: &Linker, scope: &Scope, term: &Term) -> Made<Term>;

    /// D(f a) from D(f) and D(a), where `f a` only waits for more arguments.
    fn partial_application(&self, at: At, function: Term, argument: Term) -> Term {
        at.app(function, argument)
    }

    /// D(f) of a function with a custom rule, instead of looking inside it.
    fn custom(&self, linker: &Linker, rule: &CustomRule) -> Made<Term>;

    /// `pullback : D(a -> b) -> a -> b * (b -> a)`
    fn pullback(&self, _linker: &Linker, _from: &Type, _to: &Type) -> Made<Term> {
        Err(Box::new(Refusal::Form { mode: self.mode(), form: "vjp", span: Span::default() }))
    }

    /// `pushforward : D(a -> b) -> a -> a -> b * b`: the value and its tangent
    fn pushforward(&self, _linker: &Linker, _from: &Type, _to: &Type) -> Made<Term> {
        Err(Box::new(Refusal::Form { mode: self.mode(), form: "jvp", span: Span::default() }))
    }

    /// A function of the mode's own that its code refers to as `Wrapper { name, modes: [mode], types: [] }`, such as `eval`.
    fn helper(&self, _name: &str) -> Option<(Type, Term)> {
        None
    }

    /// The same at a type: `Wrapper { name, modes: [mode], types: [ty] }`.
    fn helper_at(&self, _linker: &Linker, _name: &str, _ty: &Type) -> Made<Option<(Type, Term)>> {
        Ok(None)
    }

    /// Beside a real of the input: the mode's seed for real number `index` of `count`. See [`crate::wrappers`], `init_vars`.
    fn variable(&self, _at: At, _x: Term, _index: Term, _count: Term) -> Term {
        gradus_source::bug!("the mode {} has no seeds", self.mode())
    }

    /// What the sweep accumulates in, and how an output with a cotangent enters it. See [`crate::wrappers`], `seed`.
    fn accumulator(&self) -> Type {
        gradus_source::bug!("the mode {} has no sweep", self.mode())
    }

    fn seed(&self, _at: At, _dual: Term, _cotangent: Term, _accumulator: Term) -> Term {
        gradus_source::bug!("the mode {} has no sweep", self.mode())
    }
}

/// The list of modes: the only place that knows them all.
pub fn rules(mode: Mode, _span: Span) -> Made<&'static dyn ModeRules> {
    match mode {
        Mode::Forward => Ok(&crate::forward::Forward),
        Mode::Vector => Ok(&crate::vector::Vector),
        Mode::Continuation => Ok(&crate::continuation::Continuation),
        Mode::Delta => Ok(&crate::delta::Delta),
        Mode::Monadic => Ok(&crate::monadic::Monadic),
        Mode::Tower => Ok(&crate::tower::Tower),
        Mode::Trace => Ok(&crate::trace::Trace),
        Mode::Combinator => Ok(&crate::combinator::Combinator),
    }
}
