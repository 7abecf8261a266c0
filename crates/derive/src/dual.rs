//! What the modes share that pair every real with something: K Fig. 3 (of which Fig. 5 and 7 only change the clauses for
//! reals), C Fig. 4, 8, 10 and 14, N Fig. 4.9 and 8.15.
//!
//! N's name for the something is `vect`, a type with a zero, a sum and a product with a real. A mode is a choice of it:
//! a real (`forward`), an array (`vector`), a function from a sensitivity (`continuation`), a term (`delta`).

use crate::activity::Activity;
use crate::mode::ModeRules;
use crate::primal::{of_primals, primal, Translator};
use crate::prims::{on_reals, treatment, Treatment};
use crate::scope::Scope;
use crate::stopped::stopped;
use crate::write::{bind, is_one, watched_prim, Lets};
use crate::{wrappers, Linker, Made};
use gradus_core::build::At;
use gradus_core::traverse::{map_children, with_stack};
use gradus_core::{Arm, Global, Lambda, Literal, Prim, Scheme, Term, TermKind, Type};
use gradus_source::bug;
use std::sync::Arc;

/// The answers of [`ModeRules`] that every such mode gives alike.
macro_rules! dual_rules {
    () => {
        fn real(&self) -> gradus_core::Type {
            crate::dual::real(self)
        }

        fn constant(&self, at: gradus_core::build::At, x: gradus_core::Term) -> gradus_core::Term {
            at.tuple([x, self.zero(at)])
        }

        fn primal(&self, at: gradus_core::build::At, dual: gradus_core::Term) -> gradus_core::Term {
            at.proj(dual, 0)
        }

        fn lambda(
            &self,
            linker: &crate::Linker,
            scope: &crate::scope::Scope,
            lambda: &std::sync::Arc<gradus_core::Lambda>,
        ) -> crate::Made<std::sync::Arc<gradus_core::Lambda>> {
            crate::dual::lambda(self, linker, scope, lambda)
        }

        fn value(
            &self,
            linker: &crate::Linker,
            scope: &crate::scope::Scope,
            term: &gradus_core::Term,
        ) -> crate::Made<gradus_core::Term> {
            crate::dual::term(self, linker, scope, term)
        }
    };
}
pub(crate) use dual_rules;

/// N section 4.2: what stands beside a real.
pub trait Vect: ModeRules {
    fn vect(&self) -> Type;

    fn zero(&self, at: At) -> Term;

    /// The image of a primitive as a whole, for a mode whose arithmetic is more than a linear combination (`tower`). The
    /// primals and the duals of the arguments that carry a derivative may be written more than once.
    fn primitive(&self, _at: At, _prim: Prim, _primals: &[Term], _duals: &[Option<Term>]) -> Option<Term> {
        None
    }

    /// `p1 * v1 + ... + pn * vn`. There is at least one summand, and no coefficient means 1. Coefficients compute something: they are to be written once, and
    /// under no binder.
    fn combine(&self, at: At, summands: Vec<(Option<Term>, Term)>) -> Term;
}

/// `real * vect`
pub fn real<V: Vect>(mode: &V) -> Type {
    Type::tuple([Type::Real, mode.vect()])
}

/// If G |- fun x -> b : A -> B, then D(G) |- fun x -> D(b) : D(A) -> D(B).
pub fn lambda<V: Vect>(mode: &V, linker: &Linker, scope: &Scope, lambda: &Arc<Lambda>) -> Made<Arc<Lambda>> {
    let activity = Activity::of(linker, scope, &lambda.body);
    Dual { mode, linker, scope, activity }.lambda(lambda)
}

/// If G |- e : A, then D(G) |- D(e) : D(A).
pub fn term<V: Vect>(mode: &V, linker: &Linker, scope: &Scope, term: &Term) -> Made<Term> {
    let activity = Activity::of(linker, scope, term);
    Dual { mode, linker, scope, activity }.term(term)
}

struct Dual<'a, V> {
    mode: &'a V,
    linker: &'a Linker,
    scope: &'a Scope,
    activity: Activity,
}

impl<V: Vect> Translator for Dual<'_, V> {
    fn linker(&self) -> &Linker {
        self.linker
    }

    fn rules(&self) -> &dyn ModeRules {
        self.mode
    }

    fn activity(&self) -> &Activity {
        &self.activity
    }

    fn image(&mut self, term: &Term) -> Made<Term> {
        self.term(term)
    }
}

impl<V: Vect> Dual<'_, V> {
    fn ty(&self, ty: &Type) -> Type {
        self.linker.image(self.mode, ty)
    }

    fn tys(&self, types: &Arc<[Type]>) -> Arc<[Type]> {
        types.iter().map(|t| self.ty(t)).collect()
    }

    fn terms(&mut self, terms: &[Term]) -> Made<Vec<Term>> {
        terms.iter().map(|t| self.term(t)).collect()
    }

    fn lambda(&mut self, l: &Arc<Lambda>) -> Made<Arc<Lambda>> {
        let body = self.term(&l.body)?;
        let origin = Some((self.mode.mode(), l.clone()));
        Ok(Arc::new(Lambda { param: l.param.clone(), ty: self.ty(&l.ty), body, origin }))
    }

    fn term(&mut self, term: &Term) -> Made<Term> {
        with_stack(|| {
            if let Some(image) = constant_image(self, self.scope, term)? {
                return Ok(image);
            }
            self.rule(term)
        })
    }

    /// One arm per rule, in the order of K Fig. 3; then what C and N add.
    fn rule(&mut self, term: &Term) -> Made<Term> {
        let at = At(term.span);
        let kind = match &*term.kind {
            // D(x) = x
            TermKind::Var(..) => return Ok(term.clone()),
            // D(let x = e1 in e2) = let x = D(e1) in D(e2)
            TermKind::Let { var, scheme, bound, body } => TermKind::Let {
                var: var.clone(),
                scheme: Scheme::mono(self.ty(&scheme.ty)),
                bound: self.term(bound)?,
                body: self.term(body)?,
            },
            // D(fun x -> e) = fun x -> D(e)
            TermKind::Lambda(l) => TermKind::Lambda(self.lambda(l)?),
            // D(e1 e2) = D(e1) D(e2)
            TermKind::App(function, argument) => match lifted_again(self.mode, function) {
                Some(lift) => TermKind::App(at.global(lift), self.term(argument)?),
                None => TermKind::App(self.term(function)?, self.term(argument)?),
            },
            // D(inl e) = inl D(e), for every constructor (N Fig. 8.15: also `roll`)
            TermKind::Construct { name, types, tag, args } => TermKind::Construct {
                name: self.linker.image_name(self.mode.mode(), name),
                types: self.tys(types),
                tag: *tag,
                args: self.terms(args)?,
            },
            // D(case e0 of inl x1 -> e1, inr x2 -> e2) = case D(e0) of inl x1 -> D(e1), inr x2 -> D(e2)
            TermKind::Case { scrutinee, arms, default } => TermKind::Case {
                scrutinee: self.term(scrutinee)?,
                arms: arms.iter().map(|arm| self.arm(arm)).collect::<Made<_>>()?,
                default: default.as_ref().map(|d| self.term(d)).transpose()?,
            },
            TermKind::If { condition, then, otherwise } => TermKind::If {
                condition: primal(self, condition, &Type::Bool)?,
                then: self.term(then)?,
                otherwise: self.term(otherwise)?,
            },
            // D((e1, e2)) = (D(e1), D(e2))
            TermKind::Tuple(items) => TermKind::Tuple(self.terms(items)?),
            // D(fst e) = fst D(e)
            TermKind::Proj { index, term } => TermKind::Proj { index: *index, term: self.term(term)? },
            // D(k) = k and D(r) = (r, 0)
            TermKind::Literal(literal) => match literal {
                Literal::Real(_) => return Ok(self.mode.constant(at, term.clone())),
                Literal::Int(_) | Literal::Bool(_) | Literal::String(_) | Literal::Unit => return Ok(term.clone()),
            },
            TermKind::Prim { prim, types, args, .. } => return self.prim(at, *prim, types, args),
            // K section 7.5: D(f) is the translation of the definition of f, made apart.
            TermKind::Global(global) => TermKind::Global(image_of_global(self.mode, self.linker, global)?),
            // N Fig. 4.9: D(mu x. e) = mu x. D(e)
            TermKind::LetRec { bindings, body } => {
                let mut images = Vec::new();
                for (var, scheme, bound) in bindings {
                    images.push((var.clone(), Scheme::mono(self.ty(&scheme.ty)), self.term(bound)?));
                }
                TermKind::LetRec { bindings: images, body: self.term(body)? }
            }
            TermKind::ArrayLiteral { element, items } => {
                TermKind::ArrayLiteral { element: self.ty(element), items: self.terms(items)? }
            }
            TermKind::Lift { under, mode, ty, term } => {
                let under = std::iter::once(self.mode.mode()).chain(under.iter().copied()).collect();
                TermKind::Lift { under, mode: *mode, ty: ty.clone(), term: self.term(term)? }
            }
            TermKind::Derive { op, .. } => bug!("{op:?} was not expanded before differentiation"),
        };
        Ok(at.term(kind))
    }

    fn arm(&mut self, arm: &Arm) -> Made<Arm> {
        let vars = arm.vars.iter().map(|(v, t)| (v.clone(), self.ty(t))).collect();
        Ok(Arm { tag: arm.tag, vars, body: self.term(&arm.body)? })
    }

    fn prim(&mut self, at: At, prim: Prim, types: &Arc<[Type]>, args: &[Term]) -> Made<Term> {
        let prim = on_reals(prim, types);
        match treatment(prim) {
            Treatment::Smooth => self.smooth(at, prim, args),
            Treatment::Primal => of_primals(self, at, prim, types, args),
            // C Fig. 8 and 10, N Fig. 4.9: D(op e) = op D(e). The iterations too: their functions are translated functions.
            Treatment::Structural | Treatment::Build | Treatment::Ifold | Treatment::Iterate => {
                Ok(at.prim_at(prim, self.tys(types), self.terms(args)?))
            }
            Treatment::Polytypic(name) => {
                let family = Global::Wrapper { name, modes: vec![], types: types.clone() };
                let function = at.global(image_of_global(self.mode, self.linker, &family)?);
                // Not a tail call: what goes wrong inside has no place of its own, and is told here.
                let ty = self.ty(&prim.info().result_at(types));
                Ok(bind(at, "r", &ty, at.apps(function, self.terms(args)?), |r| r))
            }
            Treatment::StopGradient => {
                let (ty, arg) = (one_type(types), &args[0]);
                let value = match stopped(self.linker, self.mode, self.scope, arg)? {
                    Some(value) => value,
                    None => primal(self, arg, &ty)?,
                };
                // Still cut off from the modes outside.
                let value = at.prim_at(prim, types.clone(), [value]);
                wrappers::lift(self.linker, at, self.mode.mode(), &ty, value)
            }
            // The value of `checkpoint f x` is that of `f x`; what to store and what to recompute is a matter of reverse sweeps.
            Treatment::Checkpoint => {
                let function = self.term(&args[0])?;
                Ok(at.app(function, self.term(&args[1])?))
            }
        }
    }

    /// K Fig. 14 and N Fig. 4.9:
    /// D(op(e1, .., en)) = let di = D(ei) in (op(fst d1, .., fst dn), d1 op(fst d1, .., fst dn) * snd d1 + ... + dn op(fst d1, .., fst dn) * snd dn).
    ///
    /// An argument that cannot carry a derivative adds no summand, so that a partial derivative that does not exist there
    /// (the one of `x ** 2.0` by its exponent, at a negative `x`) does no harm. Word for word the text of `proofs/Macro.v`.
    fn smooth(&mut self, at: At, prim: Prim, args: &[Term]) -> Made<Term> {
        let params = &prim.info().params;
        let mut lets = Lets::default();
        let (mut primals, mut duals) = (vec![at.unit(); args.len()], vec![None; args.len()]);
        // Reals before integers, as in the proofs.
        let (reals, integers): (Vec<usize>, Vec<usize>) = (0..args.len()).partition(|i| params[*i] == Type::Real);
        for i in reals.into_iter().chain(integers) {
            let (arg, ty) = (&args[i], &params[i]);
            if *ty != Type::Real || self.activity.is_constant(arg) {
                primals[i] = lets.name(at, "x", ty, primal(self, arg, ty)?);
            } else {
                let dual = lets.name(at, "d", &real(self.mode), self.term(arg)?);
                primals[i] = at.proj(dual.clone(), 0);
                duals[i] = Some(dual);
            }
        }
        if let Some(image) = self.mode.primitive(at, prim, &primals, &duals) {
            return Ok(lets.wrap(at, image));
        }
        let mut summands = Vec::new();
        for (partial, dual) in partials(at, prim, &primals).into_iter().zip(duals) {
            let (Some(partial), Some(dual)) = (partial, dual) else { continue };
            summands.push(((!is_one(&partial)).then_some(partial), at.proj(dual, 1)));
        }
        let vect = if summands.is_empty() { self.mode.zero(at) } else { self.mode.combine(at, summands) };
        Ok(lets.wrap(at, at.tuple([watched_prim(at, prim, [], primals), vect])))
    }
}

/// The partial derivatives of a smooth primitive at terms that may be written more than once.
pub fn partials(at: At, prim: Prim, args: &[Term]) -> Vec<Option<Term>> {
    match prim.info().partials {
        Some(partials) => partials(at, args).into_iter().map(|partial| Some(part_of(&partial?, prim))).collect(),
        None => bug!("no partial derivatives of {prim:?}"),
    }
}

/// A partial derivative whose operations say of which primitive, where they can be outside their domain.
fn part_of(partial: &Term, of: Prim) -> Term {
    with_stack(|| {
        let mut term = map_children(partial, &mut |child| part_of(child, of));
        if let TermKind::Prim { prim, site, .. } = Arc::make_mut(&mut term.kind) {
            if prim.info().domain.is_some() {
                site.partial_of = Some(of);
            }
        }
        term
    })
}

pub fn one_type(types: &[Type]) -> Type {
    match types {
        [ty] => ty.clone(),
        _ => bug!("expected one type argument, found {types:?}"),
    }
}

/// The image of a term that cannot carry a derivative, where that is cheap to write: its value, with zero derivatives beside its reals.
pub fn constant_image(translator: &dyn Translator, scope: &Scope, term: &Term) -> Made<Option<Term>> {
    let linker = translator.linker();
    match translator.activity().kept(linker, scope, term)? {
        Some(ty) => wrappers::lift(linker, At(term.span), translator.rules().mode(), &ty, term.clone()).map(Some),
        None => Ok(None),
    }
}

/// D(f) of a global: its image, or itself if no mode changes it.
pub fn image_of_global(mode: &dyn ModeRules, linker: &Linker, global: &Global) -> Made<Global> {
    if linker.contents(&linker.global_type(global)?).is_leaf() {
        return Ok(global.clone());
    }
    Ok(Global::Derived { mode: mode.mode(), of: Arc::new(global.clone()) })
}

/// D_u(lift_m x) is the lifting from D_u(A) to D_u(D_m(A)): known outright, without differentiating the text of `lift`.
pub fn lifted_again(mode: &dyn ModeRules, function: &Term) -> Option<Global> {
    match &*function.kind {
        TermKind::Global(Global::Wrapper { name: wrappers::LIFT, modes, types }) => {
            let modes = std::iter::once(mode.mode()).chain(modes.iter().copied()).collect();
            Some(Global::Wrapper { name: wrappers::LIFT, modes, types: types.clone() })
        }
        _ => None,
    }
}
