//! Forward mode: a real becomes the pair of its value and its tangent. K Fig. 3 and 4, generalised as in Fig. 15; C Fig. 4, 8 and 10; N Fig. 4.9
//! with `vect = real`.

use crate::custom::{self, CustomRule};
use crate::dual::{dual_rules, Vect};
use crate::mode::{Capabilities, ModeRules};
use crate::wrappers::{call, DELTA, ONE_HOT, PRIMAL, UNFLATTEN, ZIP};
use crate::write::{add, bind, build, lambda, mul};
use crate::{wrappers, Linker, Made};
use gradus_core::build::At;
use gradus_core::{Mode, Term, Type};

pub struct Forward;

impl Vect for Forward {
    fn vect(&self) -> Type {
        Type::Real
    }

    fn zero(&self, at: At) -> Term {
        at.real(0.0)
    }

    /// D(x1 + x2) = (.., x1_tan + x2_tan), D(x1 * x2) = (.., x2 * x1_tan + x1 * x2_tan)
    fn combine(&self, at: At, summands: Vec<(Option<Term>, Term)>) -> Term {
        let scaled = summands.into_iter().map(|(coefficient, x_tan)| match coefficient {
            Some(coefficient) => mul(at, coefficient, x_tan),
            None => x_tan,
        });
        scaled.reduce(|sum, next| add(at, sum, next)).unwrap_or_else(|| self.zero(at))
    }
}

const MODES: [Mode; 1] = [Mode::Forward];

impl ModeRules for Forward {
    fn mode(&self) -> Mode {
        Mode::Forward
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { vjp: true, jvp: true }
    }

    dual_rules!();

    /// A tangent rule is used as it is: D(f) = fun x -> zip (f (primal x)) (tangent f (primal x) (delta x)).
    /// A reverse rule gives the tangent one output real at a time.
    fn custom(&self, _linker: &Linker, rule: &CustomRule) -> Made<Term> {
        let at = At(rule.span);
        Ok(custom::function(at, self, _linker, rule, |primals, duals| {
            let tangents = duals.iter().zip(&rule.params).map(|(d, t)| call(at, DELTA, &MODES, t, [d.clone()]));
            let inputs = rule.inputs();
            let y = at.apps(at.global(rule.function.clone()), primals.to_vec());
            bind(at, "y", &rule.result, y, |y| {
                bind(at, "dx", &inputs, custom::tuple(at, tangents.collect()), |dx| {
                    let y_tan = rule.push(at, primals, dx);
                    call(at, ZIP, &MODES, &rule.result, [y, y_tan])
                })
            })
        }))
    }

    /// The wrapper of K Fig. 15: F(e) = fun (x, dx) -> delta (D(e) (zip x dx)). We give the value too.
    fn pushforward(&self, linker: &Linker, from: &Type, to: &Type) -> Made<Term> {
        let at = At::default();
        let (function, result) = (linker.image(self, &Type::fun(from.clone(), to.clone())), linker.image(self, to));
        Ok(lambda(at, "f", &function, |f| {
            lambda(at, "x", from, |x| {
                lambda(at, "dx", from, |dx| {
                    let dual = call(at, ZIP, &MODES, from, [x, dx]);
                    bind(at, "y", &result, at.app(f, dual), |y| {
                        let value = call(at, PRIMAL, &MODES, to, [y.clone()]);
                        at.tuple([value, call(at, DELTA, &MODES, to, [y])])
                    })
                })
            })
        }))
    }

    /// K section 3.2, the "forward plan": the gradient with one run for each real of the input.
    fn pullback(&self, linker: &Linker, from: &Type, to: &Type) -> Made<Term> {
        let at = At::default();
        let function = linker.image(self, &Type::fun(from.clone(), to.clone()));
        let lifted = |x: Term| wrappers::lift(linker, at, Mode::Forward, from, x);
        let mut constant = Ok(at.unit());
        let text = lambda(at, "f", &function, |f| {
            lambda(at, "x", from, |x| {
                constant = lifted(x.clone());
                let run = at.app(f.clone(), constant.clone().unwrap_or_else(|_| at.unit()));
                let value = call(at, PRIMAL, &MODES, to, [run]);
                let back = lambda(at, "dy", to, |dy| {
                    let count = call(at, wrappers::COUNT, &[], from, [x.clone()]);
                    let partials = build(at, &Type::Real, count, |i| {
                        let seed = call(at, ONE_HOT, &[], from, [x.clone(), i]);
                        let run = at.app(f, call(at, ZIP, &MODES, from, [x.clone(), seed]));
                        let y_tan = call(at, DELTA, &MODES, to, [run]);
                        at.prim_at(gradus_core::Prim::Inner, [to.clone()], [y_tan, dy])
                    });
                    call(at, UNFLATTEN, &[], from, [x, partials])
                });
                at.tuple([value, back])
            })
        });
        constant.map(|_| text)
    }
}
