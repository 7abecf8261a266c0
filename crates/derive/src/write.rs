//! Writing typed core code: functions whose bodies are given as Rust functions of their parameters, and sequences of bindings.

use crate::Made;
use gradus_core::build::At;
use gradus_core::traverse::map_children;
use gradus_core::{Checked, Prim, Site, Term, TermKind, Type, TypeName, Var};

/// A term with other children; the first refusal ends it.
pub fn try_map_children(term: &Term, mut image: impl FnMut(&Term) -> Made<Term>) -> Made<Term> {
    let mut problem = None;
    let mapped = map_children(term, &mut |child| {
        if problem.is_some() {
            return child.clone();
        }
        image(child).unwrap_or_else(|refusal| {
            problem = Some(refusal);
            child.clone()
        })
    });
    match problem {
        Some(refusal) => Err(refusal),
        None => Ok(mapped),
    }
}

/// `fun name -> body`
pub fn lambda(at: At, name: &str, ty: &Type, body: impl FnOnce(Term) -> Term) -> Term {
    let var = Var::fresh(name);
    let body = body(at.var(&var));
    at.lambda(&var, ty.clone(), body)
}

/// `let name = bound in body`
pub fn bind(at: At, name: &str, ty: &Type, bound: Term, body: impl FnOnce(Term) -> Term) -> Term {
    if is_atom(&bound) {
        return body(bound);
    }
    let var = Var::fresh(name);
    let body = body(at.var(&var));
    at.bind(&var, ty.clone(), bound, body)
}

/// `let rec name params = body in rest`: `body` and `rest` are given the function (`body` also its parameters).
pub fn letrec(
    at: At,
    name: &str,
    params: &[(&str, Type)],
    result: &Type,
    body: impl FnOnce(Term, &[Term]) -> Term,
    rest: impl FnOnce(Term) -> Term,
) -> Term {
    let function = Var::fresh(name);
    let vars: Vec<(Var, Type)> = params.iter().map(|(n, t)| (Var::fresh(*n), t.clone())).collect();
    let terms: Vec<Term> = vars.iter().map(|(v, _)| at.var(v)).collect();
    let body = at.lambdas(&vars, body(at.var(&function), &terms));
    let ty = Type::funs(params.iter().map(|(_, t)| t.clone()), result.clone());
    let rest = rest(at.var(&function));
    at.letrec(vec![(function, ty, body)], rest)
}

/// A variable or a literal: may be written twice without being computed twice.
pub fn is_atom(term: &Term) -> bool {
    matches!(&*term.kind, TermKind::Var(..) | TermKind::Literal(_))
}

pub fn is_one(term: &Term) -> bool {
    matches!(&*term.kind, TermKind::Literal(gradus_core::Literal::Real(x)) if *x == 1.0)
}

/// A primitive that decides something about reals while a derivative is taken: its kinks are to be seen.
pub fn watched_prim(at: At, prim: Prim, types: impl Into<std::sync::Arc<[Type]>>, args: Vec<Term>) -> Term {
    at.term(TermKind::Prim { prim, types: types.into(), args, site: Site { differentiated: true, ..Site::default() } })
}

/// A primitive that checks what was handed to a derivative form.
pub fn checking_prim(at: At, checked: Checked, prim: Prim, ty: &Type, args: Vec<Term>) -> Term {
    let site = Site { checks: Some(checked), ..Site::default() };
    at.term(TermKind::Prim { prim, types: [ty.clone()].into(), args, site })
}

pub fn add(at: At, a: Term, b: Term) -> Term {
    at.prim(Prim::AddReal, [a, b])
}

pub fn mul(at: At, a: Term, b: Term) -> Term {
    at.prim(Prim::MulReal, [a, b])
}

pub fn add_int(at: At, a: Term, b: Term) -> Term {
    at.prim(Prim::AddInt, [a, b])
}

pub fn nil(at: At, element: &Type) -> Term {
    at.construct(TypeName::new("list"), [element.clone()], 0, [])
}

pub fn cons(at: At, element: &Type, head: Term, tail: Term) -> Term {
    at.construct(TypeName::new("list"), [element.clone()], 1, [head, tail])
}

pub fn get(at: At, element: &Type, array: Term, index: Term) -> Term {
    at.prim_at(Prim::Get, [element.clone()], [array, index])
}

pub fn set(at: At, element: &Type, array: Term, index: Term, value: Term) -> Term {
    at.prim_at(Prim::Set, [element.clone()], [array, index, value])
}

pub fn length(at: At, element: &Type, array: Term) -> Term {
    at.prim_at(Prim::Length, [element.clone()], [array])
}

/// `build size (fun i -> item i)`
pub fn build(at: At, element: &Type, size: Term, item: impl FnOnce(Term) -> Term) -> Term {
    at.prim_at(Prim::Build, [element.clone()], [size, lambda(at, "i", &Type::Int, item)])
}

/// `ifold size (fun i state -> step i state) initial`
pub fn ifold(at: At, state: &Type, size: Term, initial: Term, step: impl FnOnce(Term, Term) -> Term) -> Term {
    let step = lambda(at, "i", &Type::Int, |i| lambda(at, "state", state, |s| step(i, s)));
    at.prim_at(Prim::Ifold, [state.clone()], [size, step, initial])
}

/// A comparison of integers.
pub fn compare_int(at: At, prim: Prim, a: Term, b: Term) -> Term {
    at.prim_at(prim, [Type::Int], [a, b])
}

/// Bindings that stand before a body, in order of evaluation.
#[derive(Default)]
pub struct Lets(Vec<(Var, Type, Term)>);

impl Lets {
    /// Binds a term and gives the variable; an atom needs no binding.
    pub fn bind(&mut self, at: At, name: &str, ty: &Type, bound: Term) -> Term {
        if is_atom(&bound) {
            return bound;
        }
        self.name(at, name, ty, bound)
    }

    /// Binds a term, an atom too, and gives the variable.
    pub fn name(&mut self, at: At, name: &str, ty: &Type, bound: Term) -> Term {
        let var = Var::fresh(name);
        self.bind_var(var.clone(), ty.clone(), bound);
        at.var(&var)
    }

    pub fn bind_var(&mut self, var: Var, ty: Type, bound: Term) {
        self.0.push((var, ty, bound));
    }

    pub fn wrap(self, at: At, body: Term) -> Term {
        self.0.into_iter().rev().fold(body, |body, (var, ty, term)| at.bind(&var, ty, term, body))
    }
}

/// Builds an array whose elements also hand on a state, from the left: `sequence` of K section 10.2. Gives
/// `array * state`. `item` gives `element * state` for an index and a state; it is written twice, so it must be the application of a variable.
pub fn build_with_state(
    at: At,
    element: &Type,
    state: &Type,
    size: Term,
    initial: Term,
    item: impl Fn(Term, Term) -> Term,
) -> Term {
    let array = Type::array(element.clone());
    let pair = Type::tuple([array.clone(), state.clone()]);
    let item_pair = Type::tuple([element.clone(), state.clone()]);
    // The empty array, or the error that a negative size means; its elements are never made.
    let empty = build(at, element, size.clone(), |i| {
        get(at, element, at.term(TermKind::ArrayLiteral { element: element.clone(), items: vec![] }), i)
    });
    let filled = bind(at, "first", &item_pair, item(at.int(0), initial.clone()), |first| {
        let all = build(at, element, size.clone(), |_| at.proj(first.clone(), 0));
        let start = at.tuple([all, at.proj(first, 1)]);
        let rest = at.prim(Prim::SubInt, [size.clone(), at.int(1)]);
        ifold(at, &pair, rest, start, |i, so_far| {
            bind(at, "index", &Type::Int, add_int(at, i, at.int(1)), |index| {
                bind(at, "item", &item_pair, item(index.clone(), at.proj(so_far.clone(), 1)), |next| {
                    // The array is taken out of the pair last, so that nobody else holds it when it is changed.
                    let changed = set(at, element, at.proj(so_far, 0), index, at.proj(next.clone(), 0));
                    at.tuple([changed, at.proj(next, 1)])
                })
            })
        })
    });
    let is_empty = compare_int(at, Prim::LessEqual, size, at.int(0));
    at.if_(is_empty, at.tuple([empty, initial]), filled)
}
