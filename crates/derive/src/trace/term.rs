//! Trace terms as values of the language, and the types around them.
//!
//! ```text
//! type TraceAtom = Const of real | Slot of int | Whole of int
//! type TraceLine = Unary of int * TraceAtom             (the number of an operation, and its arguments)
//!                | Binary of int * TraceAtom * TraceAtom
//!                | Rule of string * (real[] -> real[]) * (real[] -> real[]) * int * TraceAtom[]
//!                                                       (a function with a custom derivative: its name, itself, its op_r, the number of its
//!                                                        results, and its arguments; see `rule`)
//!                | Rest                                 (of the results of the `Rule` before it)
//! type TraceState = int * TraceLine list                (the next slot; the latest line first)
//! type TraceMap = TraceAtom option[]                    (the cotangent of each slot)
//! ```
//!
//! A trace term of A, `let x1 = op1(..) in .. let xn = opn(..) in C`, is the list of its right-hand sides; the variable xi is the slot
//! that belongs to line i. Products are gone, because reals are traced one at a time.

use super::operations::Operation;
use crate::vector::array;
use crate::write::{add_int, bind, compare_int, cons, get, ifold, set};
use gradus_core::build::At;
use gradus_core::{Arm, Prim, Term, Type, TypeBody, TypeDecl, TypeName, Var};
use gradus_source::Span;

const CONST: usize = 0;
const SLOT: usize = 1;
const WHOLE: usize = 2;

const RULE: usize = 2;
const REST: usize = 3;

pub fn atom_type() -> Type {
    Type::named("TraceAtom", [])
}

pub fn line_type() -> Type {
    Type::named("TraceLine", [])
}

pub fn lines_type() -> Type {
    Type::list(line_type())
}

pub fn state_type() -> Type {
    Type::tuple([Type::Int, lines_type()])
}

pub fn map_type() -> Type {
    Type::array(Type::option(atom_type()))
}

/// What symbolic differentiation hands on: the cotangents found so far, and the trace that computes them.
pub fn sweep_type() -> Type {
    Type::tuple([map_type(), state_type()])
}

pub fn declarations() -> Vec<TypeDecl> {
    let variant = |name: &str, constructors: Vec<(&str, Vec<Type>)>| TypeDecl {
        name: TypeName::new(name),
        params: vec![],
        body: TypeBody::Variant(constructors.into_iter().map(|(c, types)| (c.into(), types)).collect()),
        span: Span::default(),
    };
    let map = || Type::fun(array(), array());
    let rule = vec![Type::String, map(), map(), Type::Int, Type::array(atom_type())];
    vec![
        variant("TraceAtom", vec![("Const", vec![Type::Real]), ("Slot", vec![Type::Int]), ("Whole", vec![Type::Int])]),
        variant(
            "TraceLine",
            vec![
                ("Unary", vec![Type::Int, atom_type()]),
                ("Binary", vec![Type::Int, atom_type(), atom_type()]),
                ("Rule", rule),
                ("Rest", vec![]),
            ],
        ),
    ]
}

fn atom(at: At, tag: usize, content: Term) -> Term {
    at.construct(TypeName::new("TraceAtom"), [], tag, [content])
}

pub fn constant(at: At, x: Term) -> Term {
    atom(at, CONST, x)
}

pub fn slot(at: At, id: Term) -> Term {
    atom(at, SLOT, id)
}

pub fn whole(at: At, k: Term) -> Term {
    atom(at, WHOLE, k)
}

/// `Unary (number, a)` or `Binary (number, a, b)`, for the number of an operation
pub fn line(at: At, number: Term, atoms: &[Term]) -> Term {
    let args: Vec<Term> = std::iter::once(number).chain(atoms.iter().cloned()).collect();
    at.construct(TypeName::new("TraceLine"), [], atoms.len() - 1, args)
}

/// `Rule (name, apply, adjoint, count, atoms)`
pub fn rule_line(at: At, name: Term, apply: Term, adjoint: Term, count: Term, atoms: Term) -> Term {
    at.construct(TypeName::new("TraceLine"), [], RULE, [name, apply, adjoint, count, atoms])
}

/// The state with a line that has `count` slots, the others of which are `Rest`; without any, it leaves no trace.
pub fn append_several(at: At, state: Term, line: Term, count: Term) -> Term {
    let several = bind(at, "state", &state_type(), state.clone(), |state| {
        let rest = at.construct(TypeName::new("TraceLine"), [], REST, []);
        let start = append(at, at.proj(state.clone(), 0), line, at.proj(state, 1));
        let others = at.prim(Prim::SubInt, [count.clone(), at.int(1)]);
        ifold(at, &state_type(), others, start, |_, state| {
            append(at, at.proj(state.clone(), 0), rest, at.proj(state, 1))
        })
    });
    at.if_(compare_int(at, Prim::Equal, count, at.int(0)), state, several)
}

/// The state with one more line, which belongs to the slot `id`, the next one.
pub fn append(at: At, id: Term, line: Term, lines: Term) -> Term {
    at.tuple([add_int(at, id, at.int(1)), cons(at, &line_type(), line, lines)])
}

/// The parts of a `Rule`.
pub struct RuleLine {
    pub name: Term,
    pub apply: Term,
    pub adjoint: Term,
    pub count: Term,
    pub atoms: Term,
}

/// `match line with Unary (op, a) -> body op [a] | Binary (op, a, b) -> body op [a, b] | Rule .. -> rule .. | Rest -> rest`
pub fn match_line(
    at: At,
    line: Term,
    body: impl Fn(Term, &[Term]) -> Term,
    rule: impl FnOnce(RuleLine) -> Term,
    rest: Term,
) -> Term {
    let mut arms: Vec<Arm> = (0..2)
        .map(|tag| {
            let number = Var::fresh("op");
            let atoms: Vec<Var> = (0..=tag).map(|_| Var::fresh("arg")).collect();
            let args: Vec<Term> = atoms.iter().map(|var| at.var(var)).collect();
            let body = body(at.var(&number), &args);
            let vars = std::iter::once((number, Type::Int)).chain(atoms.into_iter().map(|var| (var, atom_type())));
            Arm { tag, vars: vars.collect(), body }
        })
        .collect();
    let map = Type::fun(array(), array());
    let (name, apply, adjoint) = (Var::fresh("name"), Var::fresh("apply"), Var::fresh("adjoint"));
    let (count, atoms) = (Var::fresh("count"), Var::fresh("atoms"));
    let parts = RuleLine {
        name: at.var(&name),
        apply: at.var(&apply),
        adjoint: at.var(&adjoint),
        count: at.var(&count),
        atoms: at.var(&atoms),
    };
    let vars = vec![
        (name, Type::String),
        (apply, map.clone()),
        (adjoint, map),
        (count, Type::Int),
        (atoms, Type::array(atom_type())),
    ];
    arms.push(Arm { tag: RULE, vars, body: rule(parts) });
    arms.push(Arm { tag: REST, vars: vec![], body: rest });
    at.case(line, arms, None)
}

/// `match atom with Slot id -> body | _ -> otherwise`
pub fn match_slot(at: At, atom: Term, otherwise: Term, body: impl FnOnce(Term) -> Term) -> Term {
    let id = Var::fresh("id");
    let body = body(at.var(&id));
    at.case(atom, vec![Arm { tag: SLOT, vars: vec![(id, Type::Int)], body }], Some(otherwise))
}

/// `match atom with Whole _ -> whole | _ -> otherwise`
pub fn match_whole(at: At, atom: Term, whole: Term, otherwise: Term) -> Term {
    at.case(atom, vec![Arm { tag: WHOLE, vars: vec![(Var::fresh("k"), Type::Int)], body: whole }], Some(otherwise))
}

/// The number that an atom stands for, given the values of the slots.
pub fn real_of(at: At, atom: Term, values: Term) -> Term {
    let (x, id) = (Var::fresh("x"), Var::fresh("id"));
    let from_slot = get(at, &Type::Real, values, at.var(&id));
    let arms = vec![
        Arm { tag: CONST, body: at.var(&x), vars: vec![(x, Type::Real)] },
        Arm { tag: SLOT, vars: vec![(id, Type::Int)], body: from_slot },
    ];
    at.case(atom, arms, Some(at.real(0.0)))
}

pub fn int_of(at: At, atom: Term) -> Term {
    let k = Var::fresh("k");
    let arm = Arm { tag: WHOLE, body: at.var(&k), vars: vec![(k, Type::Int)] };
    at.case(atom, vec![arm], Some(at.int(0)))
}

/// `match map.(id) with None -> absent | Some atom -> present atom`
pub fn lookup(at: At, map: Term, id: Term, absent: Term, present: impl FnOnce(Term) -> Term) -> Term {
    let found = Var::fresh("x_adj");
    let body = present(at.var(&found));
    let arms = vec![Arm { tag: 0, vars: vec![], body: absent }, Arm { tag: 1, vars: vec![(found, atom_type())], body }];
    at.case(get(at, &Type::option(atom_type()), map, id), arms, None)
}

pub fn some(at: At, atom: Term) -> Term {
    at.construct(TypeName::new("option"), [atom_type()], 1, [atom])
}

pub fn empty_map(at: At, size: Term) -> Term {
    let option = Type::option(atom_type());
    crate::write::build(at, &option, size, |_| at.construct(TypeName::new("option"), [atom_type()], 0, []))
}

/// Adds a cotangent to what a slot has: a line with a sum, if it has any. `sweep` is a pair of a map and a state.
pub fn accumulate(at: At, sweep: Term, id: Term, cotangent: Term) -> Term {
    let option = Type::option(atom_type());
    bind(at, "sweep", &sweep_type(), sweep, |sweep| {
        bind(at, "map", &map_type(), at.proj(sweep.clone(), 0), |map| {
            bind(at, "state", &state_type(), at.proj(sweep, 1), |state| {
                let put = |map: Term, atom: Term| set(at, &option, map, id.clone(), some(at, atom));
                let first = at.tuple([put(map.clone(), cotangent.clone()), state.clone()]);
                lookup(at, map.clone(), id.clone(), first, |so_far| {
                    bind(at, "next", &Type::Int, at.proj(state.clone(), 0), |next| {
                        let plus = at.int(Operation::Apply(Prim::AddReal).number());
                        let sum = line(at, plus, &[so_far, cotangent]);
                        let state = append(at, next.clone(), sum, at.proj(state, 1));
                        at.tuple([put(map, slot(at, next)), state])
                    })
                })
            })
        })
    })
}
