//! The primitives on data of any shape: comparison, strings, arrays, iteration, the vector-space operations.

use super::info::{Eval, Fixity, PrimInfo};
use super::Prim;
use crate::{Constraint, Type, TypeVar};
use Constraint::{Any, Data};
use Fixity::{Function, Index, Infix};
use Type::{Bool, Int, Real, String};

/// The rows in the order of the enum, from `Equal` to the end.
pub(super) fn rows() -> Vec<PrimInfo> {
    let mut rows = comparisons();
    rows.extend(strings());
    rows.extend(arrays());
    rows.extend(vectors());
    rows
}

fn plain(prim: Prim, name: &'static str, params: Vec<Type>, result: Type, doc: &'static str) -> PrimInfo {
    PrimInfo::new(prim, (name, Function), vec![], params, result, Eval::Structural, doc)
}

/// A primitive with one type variable.
fn generic(
    prim: Prim,
    name: (&'static str, Fixity),
    constraint: Constraint,
    ty: impl Fn(Type) -> (Vec<Type>, Type),
    doc: &'static str,
) -> PrimInfo {
    let a = TypeVar::fresh("a");
    let (params, result) = ty(Type::Var(a.clone()));
    PrimInfo::new(prim, name, vec![(a, constraint)], params, result, Eval::Structural, doc)
}

/// A primitive with two type variables.
fn generic2(
    prim: Prim,
    name: &'static str,
    constraint: Constraint,
    ty: impl Fn(Type, Type) -> (Vec<Type>, Type),
    doc: &'static str,
) -> PrimInfo {
    let (a, b) = (TypeVar::fresh("a"), TypeVar::fresh("b"));
    let (params, result) = ty(Type::Var(a.clone()), Type::Var(b.clone()));
    PrimInfo::new(prim, (name, Function), vec![(a, constraint), (b, constraint)], params, result, Eval::Structural, doc)
}

fn comparisons() -> Vec<PrimInfo> {
    let compare = |prim, name, doc| {
        generic(prim, (name, Infix), Data, |a| (vec![a.clone(), a], Bool), doc)
            .kinks("two reals inside are equal", |a| a[0] == a[1])
            .differences("|x - y| > 0.01", |a| (a[0] - a[1]).abs() > 0.01)
    };
    vec![
        compare(Prim::Equal, "=", "equality of data, structural; NaN is equal to nothing"),
        compare(Prim::NotEqual, "<>", "the opposite of `=`"),
        compare(
            Prim::Less,
            "<",
            "order of data: reals, integers, `false` before `true`, strings by their bytes, constructors by their \
             declaration, then their parts from the left; a shorter array comes before a longer one",
        ),
        compare(Prim::LessEqual, "<=", "order of data, as for `<`"),
        compare(Prim::Greater, ">", "order of data, as for `<`"),
        compare(Prim::GreaterEqual, ">=", "order of data, as for `<`"),
        plain(Prim::Not, "not", vec![Bool], Bool, "negation"),
    ]
}

fn strings() -> Vec<PrimInfo> {
    vec![
        plain(Prim::StringAppend, "string_append", vec![String, String], String, "one string after the other"),
        plain(Prim::StringLength, "string_length", vec![String], Int, "the number of characters"),
        plain(Prim::StringOfInt, "string_of_int", vec![Int], String, "in decimal"),
        plain(
            Prim::StringOfReal,
            "string_of_real",
            vec![Real],
            String,
            "the shortest decimal that reads back as the same real",
        ),
    ]
}

fn arrays() -> Vec<PrimInfo> {
    vec![
        generic(
            Prim::Build,
            ("build", Function),
            Any,
            |a| (vec![Int, Type::fun(Int, a.clone())], Type::array(a)),
            "`build n f`: the array of `f 0` to `f (n - 1)`, from the left",
        ),
        generic(
            Prim::Get,
            ("get", Index),
            Any,
            |a| (vec![Type::array(a.clone()), Int], a),
            "`a.(i)`: element `i`, counted from 0; an error outside the array",
        ),
        generic(Prim::Length, ("length", Function), Any, |a| (vec![Type::array(a)], Int), "the number of elements"),
        generic(
            Prim::Set,
            ("set", Function),
            Any,
            |a| (vec![Type::array(a.clone()), Int, a.clone()], Type::array(a)),
            "`set a i x`: `a` with `x` as element `i`; takes constant time if `a` is not used again",
        ),
        generic(
            Prim::Ifold,
            ("ifold", Function),
            Any,
            |s| (vec![Int, Type::funs([Int, s.clone()], s.clone()), s.clone()], s),
            "`ifold n f init`: `f (n - 1) (... (f 1 (f 0 init)))`",
        ),
        generic2(
            Prim::Iterate,
            "iterate",
            Any,
            |a, b| (vec![Type::fun(a.clone(), Type::either(a.clone(), b.clone())), a], b),
            "`iterate f x`: applies `f` as long as it answers `Inl`; the content of the first `Inr`",
        ),
        generic(
            Prim::CheckSize,
            ("check_size", Function),
            Any,
            |a| (vec![Type::array(a.clone()), Int], Type::array(a)),
            "`check_size a n`: `a`, if it has `n` elements; otherwise an error",
        ),
    ]
}

fn vectors() -> Vec<PrimInfo> {
    vec![
        generic(
            Prim::VectorAdd,
            ("<+>", Infix),
            Data,
            |a| (vec![a.clone(), a.clone()], a),
            "sum of the reals inside, one by one; other leaves from the left. Different shapes are an error",
        ),
        generic(
            Prim::VectorSub,
            ("<->", Infix),
            Data,
            |a| (vec![a.clone(), a.clone()], a),
            "difference of the reals inside, as for `<+>`",
        ),
        generic(
            Prim::Scale,
            ("*>", Infix),
            Data,
            |a| (vec![Real, a.clone()], a),
            "`k *> a`: the reals of `a` times `k`",
        ),
        generic(
            Prim::Inner,
            ("<.>", Infix),
            Data,
            |a| (vec![a.clone(), a], Real),
            "inner product of the reals inside, summed from the left. Different shapes are an error",
        ),
        generic(
            Prim::ZeroLike,
            ("zero_like", Function),
            Data,
            |a| (vec![a.clone()], a),
            "the same shape with 0 for each real; other leaves stay",
        ),
        generic(
            Prim::StopGradient,
            ("stop_gradient", Function),
            Data,
            |a| (vec![a.clone()], a),
            "the value itself, taken as constant by derivatives",
        ),
        generic2(
            Prim::Checkpoint,
            "checkpoint",
            Any,
            |a, b| (vec![Type::fun(a.clone(), b.clone()), a], b),
            "`checkpoint f x`: `f x`; reverse derivatives run `f` again instead of storing what it did",
        ),
    ]
}
