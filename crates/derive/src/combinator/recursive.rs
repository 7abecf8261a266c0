//! Cotangents of recursive types: for `type t = A of a | B of b * t` the declared type
//!
//! ```text
//! type t_cotangent = zero | A of D2(a) | B of D2(b) * t_cotangent
//! ```
//!
//! A value has one constructor, and so have all its cotangents, unless they are zero. A sum goes down two cotangents as far as both go, so it costs no more
//! than the smaller of the two did.

use super::types::{self, cotangents as d2};
use crate::wrappers::global;
use crate::write::lambda;
use crate::{Linker, Made, Refusal};
use gradus_core::build::At;
use gradus_core::print::print_type;
use gradus_core::{Arm, Mode, Prim, Term, Type, TypeBody, TypeDecl, TypeName, Var};
use gradus_source::{bug, Span};

/// `t_cotangent -> t_cotangent -> t_cotangent`, at the type of cotangents
pub const PLUS: &str = "cotangent_plus";
/// `t -> t_cotangent`, at the type of values
pub const TO_COTANGENT: &str = "to_cotangent";
/// `t -> t_cotangent -> t`: in the shape of the first
pub const FROM_COTANGENT: &str = "from_cotangent";

/// How many types the constructors of a recursive type may lead to, and how large these may be; more is taken for a type that grows without end.
const MOST_TYPES: usize = 100;
const MOST_PARTS: usize = 1000;

const MODES: [Mode; 1] = [Mode::Combinator];

/// The tag of the zero, and that of a constructor.
pub const ZERO: usize = 0;

pub fn tag(constructor: usize) -> usize {
    constructor + 1
}

/// The type of the cotangents of a recursive type; none for another type.
pub fn cotangents(linker: &Linker, ty: &Type, span: Span) -> Made<Option<Type>> {
    if let Some(known) = linker.known_cotangents(ty) {
        return Ok(known);
    }
    if !is_recursive(linker, ty, span)? {
        linker.keep_cotangents(ty, None);
        return Ok(None);
    }
    let name = TypeName::new(&*linker.new_cotangent_name(&mangled(ty)));
    let cotangent = Type::Named(name.clone(), [].into());
    // Known before its constructors, which speak of it.
    linker.keep_cotangents(ty, Some(cotangent.clone()));
    match declaration(linker, ty, name, span) {
        Ok(declaration) => {
            linker.keep_declaration(declaration.into());
            Ok(Some(cotangent))
        }
        Err(refusal) => {
            linker.forget_cotangents(ty);
            Err(refusal)
        }
    }
}

/// Letters, digits and `_`, beginning with a letter.
fn mangled(ty: &Type) -> String {
    let text = print_type(ty);
    let words: Vec<&str> = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    words.join("_")
}

fn declaration(linker: &Linker, ty: &Type, name: TypeName, span: Span) -> Made<TypeDecl> {
    let mut upper: String = name.base.to_string();
    if let Some(first) = upper.get_mut(0..1) {
        first.make_ascii_uppercase();
    }
    let mut constructors = vec![(format!("{upper}_zero").into(), vec![])];
    for (constructor, types) in constructors_of(linker, ty)? {
        let parts: Made<Vec<Type>> = types.iter().map(|t| d2(linker, t, span)).collect();
        constructors.push((format!("{upper}_{constructor}").into(), parts?));
    }
    Ok(TypeDecl { name, params: vec![], body: TypeBody::Variant(constructors), span: Span::default() })
}

fn constructors_of(linker: &Linker, ty: &Type) -> Made<Vec<(gradus_core::Symbol, Vec<Type>)>> {
    match ty {
        Type::Named(name, args) => Ok(linker.declaration(name)?.constructors(args)),
        _ => bug!("no declared type: {ty:?}"),
    }
}

/// Whether the cotangents of a type contain cotangents of the type itself.
fn is_recursive(linker: &Linker, ty: &Type, span: Span) -> Made<bool> {
    let mut seen = Vec::new();
    let mut todo = vec![ty.clone()];
    while let Some(next) = todo.pop() {
        match &next {
            Type::Tuple(parts) => todo.extend(parts.iter().cloned()),
            Type::Array(element) => todo.push((**element).clone()),
            // The cotangent of a function mentions values of its argument, which are what they are, and cotangents of its result.
            Type::Fun(ends) => todo.push(ends.1.clone()),
            Type::Named(..) => {
                if linker.contents(&next).is_leaf() {
                    continue;
                }
                if !seen.is_empty() && next == *ty {
                    return Ok(true);
                }
                if seen.contains(&next) {
                    continue;
                }
                if seen.len() > MOST_TYPES || parts(&next, MOST_PARTS) >= MOST_PARTS {
                    let construct = "a recursive type that contains itself at ever larger types";
                    return Err(Box::new(Refusal::Construct { mode: Mode::Combinator, construct, span }));
                }
                todo.extend(constructors_of(linker, &next)?.into_iter().flat_map(|(_, types)| types));
                seen.push(next);
            }
            Type::Real | Type::Int | Type::Bool | Type::String | Type::Unit | Type::Var(_) => {}
        }
    }
    Ok(false)
}

/// The number of parts of a type, as far as a limit.
fn parts(ty: &Type, limit: usize) -> usize {
    let (mut count, mut todo) = (0, vec![ty]);
    while let Some(next) = todo.pop() {
        count += 1;
        if count >= limit {
            break;
        }
        match next {
            Type::Tuple(parts) => todo.extend(parts.iter()),
            Type::Named(_, args) => todo.extend(args.iter()),
            Type::Array(element) => todo.push(element),
            Type::Fun(ends) => todo.extend([&ends.0, &ends.1]),
            Type::Real | Type::Int | Type::Bool | Type::String | Type::Unit | Type::Var(_) => {}
        }
    }
    count
}

pub fn zero(at: At, name: &TypeName) -> Term {
    at.construct(name.clone(), [], ZERO, [])
}

/// The sum of two cotangents, of the type of cotangents.
pub fn plus(at: At, ty: &Type, a: Term, b: Term) -> Term {
    at.apps(global(at, PLUS, &MODES, [ty.clone()]), [a, b])
}

pub fn to_cotangent(at: At, ty: &Type, x: Term) -> Term {
    at.app(global(at, TO_COTANGENT, &MODES, [ty.clone()]), x)
}

pub fn from_cotangent(at: At, ty: &Type, x: Term, adjoint: Term) -> Term {
    at.apps(global(at, FROM_COTANGENT, &MODES, [ty.clone()]), [x, adjoint])
}

/// The functions above.
pub fn helper(linker: &Linker, name: &str, ty: &Type) -> Made<Option<(Type, Term)>> {
    if name == PLUS {
        let two = Type::funs([ty.clone(), ty.clone()], ty.clone());
        return Ok(Some((two, plus_text(linker, ty)?)));
    }
    let Some(cotangent) = cotangents(linker, ty, Span::default())? else { return Ok(None) };
    Ok(match name {
        TO_COTANGENT => Some((Type::fun(ty.clone(), cotangent.clone()), to_text(linker, ty, &cotangent)?)),
        FROM_COTANGENT => {
            let from = Type::funs([ty.clone(), cotangent.clone()], ty.clone());
            Some((from, from_text(linker, ty, &cotangent)?))
        }
        _ => None,
    })
}

fn fresh(name: &str, types: &[Type]) -> Vec<(Var, Type)> {
    types.iter().map(|ty| (Var::fresh(name), ty.clone())).collect()
}

/// Zero adds nothing; two of one constructor are added part by part. There are no others.
fn plus_text(linker: &Linker, ty: &Type) -> Made<Term> {
    let at = At::default();
    let Type::Named(name, _) = ty else { bug!("no type of cotangents: {ty:?}") };
    let constructors = constructors_of(linker, ty)?;
    Ok(lambda(at, "a", ty, |a| {
        lambda(at, "b", ty, |b| {
            let mut arms = vec![Arm { tag: ZERO, vars: vec![], body: b.clone() }];
            for (tag, (_, types)) in constructors.iter().enumerate().skip(1) {
                let (left, right) = (fresh("a", types), fresh("b", types));
                let sums = left.iter().zip(&right).map(|((a, ty), (b, _))| types::plus(at, ty, at.var(a), at.var(b)));
                let both = at.construct(name.clone(), [], tag, sums.collect::<Vec<_>>());
                let same = Arm { tag, vars: right, body: both };
                arms.push(Arm { tag, vars: left, body: at.case(b.clone(), vec![same], Some(a.clone())) });
            }
            at.case(a.clone(), arms, None)
        })
    }))
}

fn to_text(linker: &Linker, ty: &Type, cotangent: &Type) -> Made<Term> {
    let at = At::default();
    let Type::Named(name, _) = cotangent else { bug!("no type of cotangents: {cotangent:?}") };
    let mut arms = Vec::new();
    for (index, (_, types)) in constructors_of(linker, ty)?.iter().enumerate() {
        let vars = fresh("x", types);
        let parts: Made<Vec<Term>> = vars.iter().map(|(v, t)| types::to_cotangent(linker, at, t, at.var(v))).collect();
        let body = at.construct(name.clone(), [], tag(index), parts?);
        arms.push(Arm { tag: index, vars, body });
    }
    Ok(lambda(at, "x", ty, |x| at.case(x, arms, None)))
}

fn from_text(linker: &Linker, ty: &Type, cotangent: &Type) -> Made<Term> {
    let at = At::default();
    let Type::Named(name, args) = ty else { bug!("no declared type: {ty:?}") };
    let whole = (Var::fresh("x"), Var::fresh("x_adj"));
    let mut arms = Vec::new();
    for (index, (_, types)) in constructors_of(linker, ty)?.iter().enumerate() {
        let vars = fresh("x", types);
        let cotangents: Made<Vec<Type>> = types.iter().map(|t| d2(linker, t, at.0)).collect();
        let adjoints = fresh("x_adj", &cotangents?);
        let mut parts = Vec::new();
        for ((x, ty), (x_adj, _)) in vars.iter().zip(&adjoints) {
            parts.push(types::from_cotangent(linker, at, ty, at.var(x), at.var(x_adj))?);
        }
        let same =
            Arm { tag: tag(index), vars: adjoints, body: at.construct(name.clone(), args.clone(), index, parts) };
        let zero = at.prim_at(Prim::ZeroLike, [ty.clone()], [at.var(&whole.0)]);
        arms.push(Arm { tag: index, vars, body: at.case(at.var(&whole.1), vec![same], Some(zero)) });
    }
    let body = at.case(at.var(&whole.0), arms, None);
    Ok(at.lambdas(&[(whole.0, ty.clone()), (whole.1, cotangent.clone())], body))
}
