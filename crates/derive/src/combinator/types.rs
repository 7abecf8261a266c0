//! The macro on types, C Fig. 20: a type becomes a pair, D1 of values and D2 of their cotangents.
//!
//! | type | D1 | D2 |
//! |---|---|---|
//! | real | real | real |
//! | int, bool, string, unit, and whatever is made of them alone | itself | unit |
//! | A * B, records | D1(A) * D1(B) | D2(A) * D2(B) |
//! | A -> B | D1(A) -> D1(B) * (D2(B) -> D2(A)) | a bag of D1(A) * D2(B) |
//! | A[] | D1(A)[] | a bag of int * D2(A) |
//! | sums | D1(A) + D1(B) | D2(A) * D2(B) |
//! | recursive types, mu a. A + B | mu a. D1(A) + D1(B) | mu a. zero + D2(A) + D2(B) |
//!
//! D1 is `Linker::image`. A product of cotangents for every constructor would have no end where a type is recursive; but all cotangents of one value
//! have its constructor, or are zero, so that their sum is theirs, constructor by constructor: see `recursive`.

use super::language::product;
use super::recursive;
use crate::write::{bind, build, get, ifold, length};
use crate::{Linker, Made};
use gradus_core::build::At;
use gradus_core::traverse::with_stack;
use gradus_core::{Arm, Term, Type, TypeBody, TypeDecl, TypeName, TypeVar, Var};
use gradus_source::{bug, Span};

/// `type 'a CotangentBag = Empty | One of 'a | Both of 'a CotangentBag * 'a CotangentBag`
pub const BAG: &str = "CotangentBag";
pub const EMPTY: usize = 0;
pub const ONE: usize = 1;
pub const BOTH: usize = 2;

pub fn bag(item: Type) -> Type {
    Type::named(BAG, [item])
}

pub fn is_bag(ty: &Type) -> bool {
    matches!(ty, Type::Named(name, args) if &*name.base == BAG && args.len() == 1)
}

/// What a bag contains.
pub fn item_of(bag: &Type) -> Type {
    match bag {
        Type::Named(_, args) if args.len() == 1 => args[0].clone(),
        _ => bug!("not a bag: {bag:?}"),
    }
}

pub fn declarations() -> Vec<TypeDecl> {
    let a = TypeVar::fresh("a");
    let item = Type::Var(a.clone());
    let constructors = vec![
        ("Empty".into(), vec![]),
        ("One".into(), vec![item.clone()]),
        ("Both".into(), vec![bag(item.clone()), bag(item)]),
    ];
    vec![TypeDecl {
        name: TypeName::new(BAG),
        params: vec![a],
        body: TypeBody::Variant(constructors),
        span: Span::default(),
    }]
}

/// D1
pub fn values(linker: &Linker, ty: &Type) -> Type {
    linker.image(&super::Combinator, ty)
}

/// D2
pub fn cotangents(linker: &Linker, ty: &Type, span: Span) -> Made<Type> {
    with_stack(|| {
        // A product stays a product, so that it can be taken apart whatever it contains.
        if let Type::Tuple(parts) = ty {
            let parts: Made<Vec<Type>> = parts.iter().map(|t| cotangents(linker, t, span)).collect();
            return Ok(Type::tuple(parts?));
        }
        if linker.contents(ty).is_leaf() {
            return Ok(Type::Unit);
        }
        Ok(match ty {
            Type::Real => Type::Real,
            Type::Fun(ends) => bag(Type::tuple([values(linker, &ends.0), cotangents(linker, &ends.1, span)?])),
            Type::Array(element) => bag(Type::tuple([Type::Int, cotangents(linker, element, span)?])),
            Type::Named(name, args) => {
                if let Some(declared) = recursive::cotangents(linker, ty, span)? {
                    return Ok(declared);
                }
                let mut sums = Vec::new();
                for (_, types) in linker.declaration(name)?.constructors(args) {
                    let parts: Made<Vec<Type>> = types.iter().map(|t| cotangents(linker, t, span)).collect();
                    sums.push(product(parts?));
                }
                product(sums)
            }
            Type::Int | Type::Bool | Type::String | Type::Unit | Type::Var(_) | Type::Tuple(_) => Type::Unit,
        })
    })
}

/// Whether a type of cotangents has nothing in it.
pub fn is_trivial(ty: &Type) -> bool {
    match ty {
        Type::Unit => true,
        Type::Tuple(parts) => parts.iter().all(is_trivial),
        _ => false,
    }
}

/// The zero of a type of cotangents, by induction on it (C section 6.2).
pub fn zero(at: At, ty: &Type) -> Term {
    match ty {
        Type::Unit => at.unit(),
        Type::Real => at.real(0.0),
        Type::Tuple(parts) => at.tuple(parts.iter().map(|t| zero(at, t)).collect::<Vec<_>>()),
        Type::Named(name, _) if !is_bag(ty) => recursive::zero(at, name),
        Type::Named(..) => empty(at, &item_of(ty)),
        Type::Var(_) | Type::Int | Type::Bool | Type::String | Type::Fun(_) | Type::Array(_) => {
            bug!("no type of cotangents: {ty:?}")
        }
    }
}

/// The sum of two cotangents, which are variables, by induction on their type.
pub fn plus(at: At, ty: &Type, a: Term, b: Term) -> Term {
    match ty {
        Type::Unit => at.unit(),
        Type::Real => crate::write::add(at, a, b),
        Type::Tuple(parts) => {
            let part = |(i, t)| {
                bind(at, "a", t, at.proj(a.clone(), i), |a| {
                    bind(at, "b", t, at.proj(b.clone(), i), |b| plus(at, t, a, b))
                })
            };
            at.tuple(parts.iter().enumerate().map(part).collect::<Vec<_>>())
        }
        Type::Named(..) if !is_bag(ty) => recursive::plus(at, ty, a, b),
        Type::Named(..) => both(at, &item_of(ty), a, b),
        Type::Var(_) | Type::Int | Type::Bool | Type::String | Type::Fun(_) | Type::Array(_) => {
            bug!("no type of cotangents: {ty:?}")
        }
    }
}

pub fn empty(at: At, item: &Type) -> Term {
    at.construct(TypeName::new(BAG), [item.clone()], EMPTY, [])
}

pub fn one(at: At, item_type: &Type, item: Term) -> Term {
    at.construct(TypeName::new(BAG), [item_type.clone()], ONE, [item])
}

pub fn both(at: At, item: &Type, a: Term, b: Term) -> Term {
    at.construct(TypeName::new(BAG), [item.clone()], BOTH, [a, b])
}

/// Folds over a bag from the left, in constant stack: what is still to do is a list.
pub fn fold_bag(
    at: At,
    item: &Type,
    state: &Type,
    all: Term,
    initial: Term,
    step: impl FnOnce(Term, Term) -> Term,
) -> Term {
    let bags = Type::list(bag(item.clone()));
    let cons = |head: Term, tail: Term| crate::write::cons(at, &bag(item.clone()), head, tail);
    let params = [("todo", bags.clone()), ("state", state.clone())];
    let body = |again: Term, args: &[Term]| {
        let (todo, so_far) = (args[0].clone(), args[1].clone());
        let (first, rest) = (Var::fresh("first"), Var::fresh("rest"));
        let (x, left, right) = (Var::fresh("item"), Var::fresh("left"), Var::fresh("right"));
        let one_more = at.apps(again.clone(), [at.var(&rest), step(at.var(&x), so_far.clone())]);
        let both = cons(at.var(&left), cons(at.var(&right), at.var(&rest)));
        let inside = vec![
            Arm { tag: EMPTY, vars: vec![], body: at.apps(again.clone(), [at.var(&rest), so_far.clone()]) },
            Arm { tag: ONE, vars: vec![(x, item.clone())], body: one_more },
            Arm {
                tag: BOTH,
                vars: vec![(left, bag(item.clone())), (right, bag(item.clone()))],
                body: at.apps(again, [both, so_far.clone()]),
            },
        ];
        let arms = vec![
            Arm { tag: 0, vars: vec![], body: so_far },
            Arm {
                tag: 1,
                body: at.case(at.var(&first), inside, None),
                vars: vec![(first, bag(item.clone())), (rest, bags.clone())],
            },
        ];
        at.case(todo, arms, None)
    };
    let start = cons(all, crate::write::nil(at, &bag(item.clone())));
    crate::write::letrec(at, "fold", &params, state, body, |fold| at.apps(fold, [start, initial]))
}

/// The sums of a bag of `int * cotangent` for each index below `size`, as an array.
pub fn collect(at: At, cotangent: &Type, size: Term, all: Term) -> Term {
    let item = Type::tuple([Type::Int, cotangent.clone()]);
    let zeros = build(at, cotangent, size, |_| zero(at, cotangent));
    fold_bag(at, &item, &Type::array(cotangent.clone()), all, zeros, |item, sums| {
        bind(at, "i", &Type::Int, at.proj(item.clone(), 0), |i| {
            bind(at, "a", cotangent, get(at, cotangent, sums.clone(), i.clone()), |a| {
                bind(at, "b", cotangent, at.proj(item, 1), |b| {
                    crate::write::set(at, cotangent, sums, i, plus(at, cotangent, a, b))
                })
            })
        })
    })
}

/// From a cotangent as the user sees it, a value of the data type itself, to D2 of the type. `x` is a variable.
pub fn to_cotangent(linker: &Linker, at: At, ty: &Type, x: Term) -> Made<Term> {
    if let Type::Tuple(parts) = ty {
        return Ok(at.tuple(parts_to_cotangents(linker, at, parts, &x)?));
    }
    if linker.contents(ty).is_leaf() {
        return Ok(at.unit());
    }
    Ok(match ty {
        Type::Real => x,
        Type::Array(element) => {
            let inner = cotangents(linker, element, at.0)?;
            let item = Type::tuple([Type::Int, inner]);
            let var = Var::fresh("x");
            let converted = to_cotangent(linker, at, element, at.var(&var))?;
            let size = length(at, element, x.clone());
            ifold(at, &bag(item.clone()), size, empty(at, &item), |i, so_far| {
                let converted = at.bind(&var, (**element).clone(), get(at, element, x, i.clone()), converted);
                both(at, &item, so_far, one(at, &item, at.tuple([i, converted])))
            })
        }
        Type::Named(name, args) => {
            if recursive::cotangents(linker, ty, at.0)?.is_some() {
                return Ok(recursive::to_cotangent(at, ty, x));
            }
            let declaration = linker.declaration(name)?;
            let constructors = declaration.constructors(args);
            if let (TypeBody::Record(_), [(_, fields)]) = (&declaration.body, constructors.as_slice()) {
                return Ok(tuple(at, parts_to_cotangents(linker, at, fields, &x)?));
            }
            let mut arms = Vec::new();
            for (tag, (_, types)) in constructors.iter().enumerate() {
                let vars: Vec<(Var, Type)> = types.iter().map(|t| (Var::fresh("x"), t.clone())).collect();
                let mut sums = Vec::new();
                for (other, (_, types)) in constructors.iter().enumerate() {
                    let mut parts = Vec::new();
                    for (t, i) in types.iter().zip(0..) {
                        parts.push(match vars.get(i) {
                            Some((v, _)) if other == tag => to_cotangent(linker, at, t, at.var(v))?,
                            _ => zero(at, &cotangents(linker, t, at.0)?),
                        });
                    }
                    sums.push(tuple(at, parts));
                }
                arms.push(Arm { tag, vars, body: tuple(at, sums) });
            }
            at.case(x, arms, None)
        }
        Type::Int | Type::Bool | Type::String | Type::Unit | Type::Var(_) | Type::Fun(_) | Type::Tuple(_) => {
            bug!("no data: {ty:?}")
        }
    })
}

fn parts_to_cotangents(linker: &Linker, at: At, types: &[Type], x: &Term) -> Made<Vec<Term>> {
    let part = |(i, ty): (usize, &Type)| {
        let var = Var::fresh("x");
        let converted = to_cotangent(linker, at, ty, at.var(&var))?;
        Ok(at.bind(&var, ty.clone(), at.proj(x.clone(), i), converted))
    };
    types.iter().enumerate().map(part).collect()
}

/// The way back: the cotangent in the shape of `x`, leaves from `x`. Both are variables.
pub fn from_cotangent(linker: &Linker, at: At, ty: &Type, x: Term, adjoint: Term) -> Made<Term> {
    if linker.contents(ty).is_leaf() {
        return Ok(x);
    }
    // `let x = first in let x_adj = second in ..`
    let part = |ty: &Type, first: Term, second: Term| -> Made<Term> {
        let (x, x_adj) = (Var::fresh("x"), Var::fresh("x_adj"));
        let converted = from_cotangent(linker, at, ty, at.var(&x), at.var(&x_adj))?;
        let inner = at.bind(&x_adj, cotangents(linker, ty, at.0)?, second, converted);
        Ok(at.bind(&x, ty.clone(), first, inner))
    };
    Ok(match ty {
        Type::Real => adjoint,
        Type::Tuple(parts) => {
            let each = |(i, t)| part(t, at.proj(x.clone(), i), at.proj(adjoint.clone(), i));
            at.tuple(parts.iter().enumerate().map(each).collect::<Made<Vec<_>>>()?)
        }
        Type::Array(element) => {
            let inner = cotangents(linker, element, at.0)?;
            let (size, sums, index) = (Var::fresh("size"), Var::fresh("sums"), Var::fresh("i"));
            let item = part(
                element,
                get(at, element, x.clone(), at.var(&index)),
                get(at, &inner, at.var(&sums), at.var(&index)),
            )?;
            let function = at.lambda(&index, Type::Int, item);
            let array = at.prim_at(gradus_core::Prim::Build, [(**element).clone()], [at.var(&size), function]);
            let sum = collect(at, &inner, at.var(&size), adjoint);
            at.bind(&size, Type::Int, length(at, element, x), at.bind(&sums, Type::array(inner), sum, array))
        }
        Type::Named(name, args) => {
            if recursive::cotangents(linker, ty, at.0)?.is_some() {
                return Ok(recursive::from_cotangent(at, ty, x, adjoint));
            }
            let declaration = linker.declaration(name)?;
            let constructors = declaration.constructors(args);
            let whole = |tag: usize| at_part(at, adjoint.clone(), tag, constructors.len());
            let construct = |tag, items| at.construct(name.clone(), args.clone(), tag, items);
            if let (TypeBody::Record(_), [(_, fields)]) = (&declaration.body, constructors.as_slice()) {
                let each = |(i, t)| part(t, at.proj(x.clone(), i), at_part(at, whole(0), i, fields.len()));
                return Ok(construct(0, fields.iter().enumerate().map(each).collect::<Made<Vec<_>>>()?));
            }
            let mut arms = Vec::new();
            for (tag, (_, types)) in constructors.iter().enumerate() {
                let vars: Vec<(Var, Type)> = types.iter().map(|t| (Var::fresh("x"), t.clone())).collect();
                let each =
                    |(i, (v, t)): (usize, &(Var, Type))| part(t, at.var(v), at_part(at, whole(tag), i, types.len()));
                let items = vars.iter().enumerate().map(each).collect::<Made<Vec<_>>>()?;
                arms.push(Arm { tag, vars, body: construct(tag, items) });
            }
            at.case(x, arms, None)
        }
        Type::Int | Type::Bool | Type::String | Type::Unit | Type::Var(_) | Type::Fun(_) => bug!("no data: {ty:?}"),
    })
}

/// Component of a product of `count`, where one alone is itself.
fn at_part(at: At, term: Term, index: usize, count: usize) -> Term {
    if count == 1 {
        return term;
    }
    at.proj(term, index)
}

/// The term of a [`product`].
pub fn tuple(at: At, mut items: Vec<Term>) -> Term {
    match (items.len(), items.pop()) {
        (_, None) => at.unit(),
        (1, Some(one)) => one,
        (_, Some(last)) => {
            items.push(last);
            at.tuple(items)
        }
    }
}
