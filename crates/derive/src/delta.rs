//! Delta mode: a real becomes the pair of its value and a term for its derivative. K Fig. 7 and 8 ("reverse mode #2"). The term of a
//! variable that is used twice is evaluated twice, so the cost can be exponential; `monadic` is the cure.

use crate::custom::{self, CustomRule};
use crate::dual::{dual_rules, Vect};
use crate::mode::{Capabilities, ModeRules};
use crate::wrappers::{call, LOOKUP};
use crate::{delta_type, forms, Linker, Made};
use gradus_core::build::At;
use gradus_core::{Mode, Term, Type};

pub struct Delta;

impl Vect for Delta {
    fn vect(&self) -> Type {
        delta_type::delta()
    }

    fn zero(&self, at: At) -> Term {
        delta_type::zero(at)
    }

    /// D(x1 * x2) = (.., Add (Scale x2 u1) (Scale x1 u2))
    fn combine(&self, at: At, summands: Vec<(Option<Term>, Term)>) -> Term {
        delta_type::combine(at, summands)
    }
}

impl ModeRules for Delta {
    fn mode(&self) -> Mode {
        Mode::Delta
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { vjp: true, jvp: false }
    }

    dual_rules!();

    fn custom(&self, linker: &Linker, rule: &CustomRule) -> Made<Term> {
        custom::dual(self, linker, rule)
    }

    /// K Fig. 8: `OneHot i`, which we write `Var i`
    fn variable(&self, at: At, x: Term, index: Term, _count: Term) -> Term {
        at.tuple([x, delta_type::var(at, index)])
    }

    fn accumulator(&self) -> Type {
        delta_type::map_type()
    }

    /// K Fig. 8: `eval2 dt u z`
    fn seed(&self, at: At, dual: Term, cotangent: Term, map: Term) -> Term {
        delta_type::eval(at, cotangent, at.proj(dual, 1), map)
    }

    /// K Fig. 8
    fn pullback(&self, linker: &Linker, from: &Type, to: &Type) -> Made<Term> {
        let at = At::default();
        let finish = |map, _, s0| call(at, LOOKUP, &[Mode::Delta], from, [s0, map]);
        Ok(forms::reverse_wrapper(self, linker, from, to, |count| delta_type::empty_map(at, count), finish))
    }
}
