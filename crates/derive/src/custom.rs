//! Custom derivatives: `derivative f x dy = e` and `tangent f x dx = e`, used instead of looking inside `f`.
//!
//! Where only one of the two is given, the other direction is had from it one real at a time: the tangent from the reverse rule
//! with one application for each real of the output, the cotangent from the tangent rule with one for each real of the input.

use crate::dual::Vect;
use crate::mode::ModeRules;
use crate::wrappers::{self, call, COUNT, FLATTEN, ONE_HOT, PRIMAL, UNFLATTEN};
use crate::write::{bind, build, get, ifold, length};
use crate::{Linker, Made, Refusal};
use gradus_core::build::At;
use gradus_core::{Def, Global, Prim, Term, Type, Var};
use gradus_source::Span;

/// A function `f : a1 -> .. -> an -> b` on data with its rules.
#[derive(Clone)]
pub struct CustomRule {
    /// The function without its rules.
    pub function: Global,
    pub params: Vec<Type>,
    pub result: Type,
    /// `a1 -> .. -> an -> b -> a1 * .. * an`
    pub reverse: Option<Global>,
    /// `a1 -> .. -> an -> a1 -> .. -> an -> b`
    pub forward: Option<Global>,
    pub span: Span,
}

impl CustomRule {
    pub fn new(
        linker: &Linker,
        function: Global,
        def: &Def,
        types: &[Type],
        reverse: Option<Global>,
        forward: Option<Global>,
    ) -> Made<Self> {
        let mut result = def.scheme.instantiate(types);
        let mut params = Vec::new();
        for _ in 0..def.rules.arity {
            params.push(crate::typing::parameter_type(&result));
            result = crate::typing::result_type(&result);
        }
        if params.iter().chain([&result]).any(|ty| !linker.contents(ty).is_data()) {
            return Err(Box::new(Refusal::RuleOnFunctions { function: def.name.to_string(), span: def.span }));
        }
        Ok(CustomRule { function, params, result, reverse, forward, span: def.span })
    }

    /// `a1 * .. * an`, or `a1` alone
    pub fn inputs(&self) -> Type {
        match self.params.as_slice() {
            [one] => one.clone(),
            several => Type::tuple(several.to_vec()),
        }
    }

    /// The components of a term of the type [`CustomRule::inputs`].
    pub fn parts(&self, at: At, inputs: &Term) -> Vec<Term> {
        match self.params.len() {
            1 => vec![inputs.clone()],
            n => (0..n).map(|i| at.proj(inputs.clone(), i)).collect(),
        }
    }

    /// The cotangent of the inputs. All arguments are variables.
    pub fn pull(&self, at: At, xs: &[Term], dy: Term) -> Term {
        let inputs = self.inputs();
        match (&self.reverse, &self.forward) {
            (Some(reverse), _) => at.apps(at.global(reverse.clone()), xs.iter().cloned().chain([dy])),
            (None, Some(_)) => bind(at, "x", &inputs, tuple(at, xs.to_vec()), |x| {
                let count = call(at, COUNT, &[], &inputs, [x.clone()]);
                let partials = build(at, &Type::Real, count, |i| {
                    let seed = call(at, ONE_HOT, &[], &inputs, [x.clone(), i]);
                    bind(at, "seed", &inputs, seed, |seed| {
                        at.prim_at(Prim::Inner, [self.result.clone()], [self.push(at, xs, seed), dy])
                    })
                });
                call(at, UNFLATTEN, &[], &inputs, [x, partials])
            }),
            (None, None) => gradus_source::bug!("a custom rule without rules"),
        }
    }

    /// The tangent of the output. All arguments are variables.
    pub fn push(&self, at: At, xs: &[Term], dx: Term) -> Term {
        match (&self.forward, &self.reverse) {
            (Some(forward), _) => {
                let args = xs.iter().cloned().chain(self.parts(at, &dx));
                at.apps(at.global(forward.clone()), args)
            }
            (None, _) => {
                let y = at.apps(at.global(self.function.clone()), xs.to_vec());
                // Only its shape is looked at.
                let y = at.prim_at(Prim::StopGradient, [self.result.clone()], [y]);
                bind(at, "y", &self.result, y, |y| {
                    let count = call(at, COUNT, &[], &self.result, [y.clone()]);
                    let partials = build(at, &Type::Real, count, |j| {
                        let seed = call(at, ONE_HOT, &[], &self.result, [y.clone(), j]);
                        bind(at, "seed", &self.result, seed, |seed| {
                            at.prim_at(Prim::Inner, [self.inputs()], [self.pull(at, xs, seed), dx])
                        })
                    });
                    call(at, UNFLATTEN, &[], &self.result, [y, partials])
                })
            }
        }
    }
}

pub fn tuple(at: At, mut items: Vec<Term>) -> Term {
    match (items.len(), items.pop()) {
        (1, Some(item)) => item,
        (_, last) => {
            items.extend(last);
            at.tuple(items)
        }
    }
}

/// `fun x1 .. xn -> let p1 = primal x1 in .. body` for translated parameters, where translated functions are functions.
pub fn function(
    at: At,
    mode: &dyn ModeRules,
    linker: &Linker,
    rule: &CustomRule,
    body: impl FnOnce(&[Term], &[Term]) -> Term,
) -> Term {
    let params: Vec<(Var, Type)> = rule.params.iter().map(|ty| (Var::fresh("x"), linker.image(mode, ty))).collect();
    let duals: Vec<Term> = params.iter().map(|(v, _)| at.var(v)).collect();
    at.lambdas(&params, with_primals(at, mode, rule, duals, body))
}

pub fn with_primals(
    at: At,
    mode: &dyn ModeRules,
    rule: &CustomRule,
    duals: Vec<Term>,
    body: impl FnOnce(&[Term], &[Term]) -> Term,
) -> Term {
    let mut lets = crate::write::Lets::default();
    let mut primals = Vec::new();
    for (dual, ty) in duals.iter().zip(&rule.params) {
        primals.push(lets.bind(at, "p", ty, call(at, PRIMAL, &[mode.mode()], ty, [dual.clone()])));
    }
    lets.wrap(at, body(&primals, &duals))
}

/// For the modes that pair reals with a vector: the Jacobian of the rule at the point, row by row, times the vectors of the inputs.
pub fn dual<V: Vect>(mode: &V, linker: &Linker, rule: &CustomRule) -> Made<Term> {
    let at = At(rule.span);
    let modes = [mode.mode()];
    let (inputs, result) = (rule.inputs(), &rule.result);
    let row = Type::array(Type::Real);
    let (real, vect) = (mode.real(), mode.vect());
    Ok(function(at, mode, linker, rule, |primals, duals| {
        let y = at.apps(at.global(rule.function.clone()), primals.to_vec());
        bind(at, "y", result, y, |y| {
            let reals = call(at, FLATTEN, &[], result, [y.clone()]);
            let vectors = call(at, FLATTEN, &modes, &inputs, [tuple(at, duals.to_vec())]);
            bind(at, "reals", &row, reals, |reals| {
                bind(at, "inputs", &Type::array(real.clone()), vectors, |vectors| {
                    let size = length(at, &Type::Real, reals.clone());
                    bind(at, "jacobian", &Type::array(row.clone()), jacobian(at, rule, primals, &y), |jacobian| {
                        let outputs = build(at, &real, size, |j| {
                            let count = length(at, &real, vectors.clone());
                            let sum = ifold(at, &vect, count, mode.zero(at), |i, so_far| {
                                let coefficient = get(at, &row, jacobian.clone(), j.clone());
                                let coefficient = get(at, &Type::Real, coefficient, i.clone());
                                bind(at, "p", &Type::Real, coefficient, |p| {
                                    let vector = at.proj(get(at, &real, vectors, i), 1);
                                    bind(at, "v", &vect, vector, |v| {
                                        mode.combine(at, vec![(None, so_far), (Some(p), v)])
                                    })
                                })
                            });
                            at.tuple([get(at, &Type::Real, reals, j), sum])
                        });
                        call(at, UNFLATTEN, &modes, result, [y, outputs])
                    })
                })
            })
        })
    }))
}

/// A row for each real of the output, from whichever rule there is.
fn jacobian(at: At, rule: &CustomRule, xs: &[Term], y: &Term) -> Term {
    let (inputs, row) = (rule.inputs(), Type::array(Type::Real));
    let rows = call(at, COUNT, &[], &rule.result, [y.clone()]);
    if rule.reverse.is_some() {
        return build(at, &row, rows, |j| {
            let seed = call(at, ONE_HOT, &[], &rule.result, [y.clone(), j]);
            bind(at, "seed", &rule.result, seed, |seed| call(at, FLATTEN, &[], &inputs, [rule.pull(at, xs, seed)]))
        });
    }
    bind(at, "x", &inputs, tuple(at, xs.to_vec()), |x| {
        let columns = call(at, COUNT, &[], &inputs, [x.clone()]);
        let columns = build(at, &row, columns, |i| {
            let seed = call(at, ONE_HOT, &[], &inputs, [x, i]);
            bind(at, "seed", &inputs, seed, |seed| call(at, FLATTEN, &[], &rule.result, [rule.push(at, xs, seed)]))
        });
        bind(at, "columns", &Type::array(row), columns, |columns| wrappers::transpose(at, rows, columns))
    })
}
