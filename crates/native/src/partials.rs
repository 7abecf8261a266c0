//! Partial derivatives of primitives, written as flow from the formulas of the primitive table.

use crate::flow::{walk, Atom, Builder, Type, Var};
use gradus_core::build::At;
use gradus_core::traverse::with_stack;
use gradus_core::{Literal, Prim, Term, TermKind};
use rustc_hash::FxHashMap;

/// A primitive, the arguments that it was given, and its value there, which its derivatives may use.
#[derive(Clone, Copy)]
pub struct Applied<'a> {
    pub prim: Prim,
    pub args: &'a [Atom],
    pub value: Atom,
}

/// The partial derivative of a primitive in argument `i`; `None` if it has none.
pub fn partial(b: &mut Builder, applied: Applied<'_>, i: usize) -> Option<Atom> {
    if let Some(slope) = by_reciprocal(b, applied, i) {
        return Some(slope);
    }
    let Applied { prim, args, .. } = applied;
    let at = At(b.span);
    let mut vars = FxHashMap::default();
    let terms: Vec<Term> = args
        .iter()
        .map(|atom| match atom {
            Atom::Real(x) => at.real(*x),
            Atom::Int(k) => at.int(*k),
            Atom::Bool(x) => at.bool(*x),
            Atom::Nil(_) => gradus_source::bug!("arithmetic on boxes"),
            Atom::Var(_) => {
                let var = gradus_core::Var::fresh("x");
                vars.insert(var.clone(), *atom);
                at.var(&var)
            }
        })
        .collect();
    let term = prim.info().partials?(at, &terms).into_iter().nth(i).flatten()?;
    Some(formula(b, &term, &vars, applied))
}

/// Whether a primitive of one argument has a derivative that is computed from its value alone, as `exp`.
pub fn is_from_value(prim: Prim) -> bool {
    if prim.info().params.len() != 1 {
        return false;
    }
    let [x, value] = [(); 2].map(|_| Atom::Var(Var::fresh("x", Type::REAL)));
    let mut b = Builder::new();
    let slope = partial(&mut b, Applied { prim, args: &[x], value }, 0);
    slope.is_some() && x.var().is_some_and(|x| !walk::mentions(&b.pop(Vec::from_iter(slope)), x))
}

/// The partial derivatives of a quotient and a root, written so that a divisor is divided by once, however often one differentiates: the rest are
/// products with its reciprocal, which a later pass finds to be the same.
fn by_reciprocal(b: &mut Builder, applied: Applied<'_>, i: usize) -> Option<Atom> {
    match (applied.prim, applied.args, i) {
        (Prim::DivReal, [_, divisor], 0) => Some(b.scalar(Prim::DivReal, &[Atom::Real(1.0), *divisor])),
        (Prim::DivReal, [_, divisor], 1) => {
            let reciprocal = b.scalar(Prim::DivReal, &[Atom::Real(1.0), *divisor]);
            let slope = b.mul(applied.value, reciprocal);
            Some(b.scalar(Prim::NegReal, &[slope]))
        }
        (Prim::Sqrt, [_], 0) => {
            let reciprocal = b.scalar(Prim::DivReal, &[Atom::Real(1.0), applied.value]);
            Some(b.mul(Atom::Real(0.5), reciprocal))
        }
        _ => None,
    }
}

/// A formula on numbers as flow. Where it branches, only the side taken is computed: the other may be no number, and its own
/// derivative would spoil the result.
fn formula(b: &mut Builder, term: &Term, vars: &FxHashMap<gradus_core::Var, Atom>, applied: Applied<'_>) -> Atom {
    with_stack(|| match &*term.kind {
        TermKind::Var(v, _) => match vars.get(v) {
            Some(atom) => *atom,
            None => gradus_source::bug!("a partial derivative mentions the unknown variable {v:?}"),
        },
        TermKind::Literal(Literal::Real(x)) => Atom::Real(*x),
        TermKind::Literal(Literal::Int(k)) => Atom::Int(*k),
        TermKind::Literal(Literal::Bool(x)) => Atom::Bool(*x),
        TermKind::Prim { prim, args, .. } => {
            let args: Vec<Atom> = args.iter().map(|t| formula(b, t, vars, applied)).collect();
            if *prim == applied.prim && args == applied.args {
                return applied.value;
            }
            b.scalar(*prim, &args)
        }
        TermKind::If { condition, then, otherwise } => match formula(b, condition, vars, applied) {
            Atom::Bool(true) => formula(b, then, vars, applied),
            Atom::Bool(false) => formula(b, otherwise, vars, applied),
            cond => {
                b.push();
                let result = formula(b, then, vars, applied);
                let then = b.pop(vec![result]);
                b.push();
                let result = formula(b, otherwise, vars, applied);
                let otherwise = b.pop(vec![result]);
                match (&then.stmts[..], &otherwise.stmts[..]) {
                    ([], []) => b.select(cond, then.results[0], otherwise.results[0]),
                    _ => b.branch(cond, then, otherwise)[0],
                }
            }
        },
        _ => gradus_source::bug!("a partial derivative is not a formula on numbers"),
    })
}

/// `slope * adj`, with the slopes that cost nothing written so.
pub fn times(b: &mut Builder, slope: Atom, adj: Atom) -> Atom {
    if slope.is_real(-1.0) {
        return b.scalar(Prim::NegReal, &[adj]);
    }
    debug_assert_eq!(slope.ty(), Type::REAL);
    b.mul(slope, adj)
}
