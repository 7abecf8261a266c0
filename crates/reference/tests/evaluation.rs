//! What terms evaluate to, form by form.

mod support;

use gradus_core::{Arm, Prim, Type, TypeBody, TypeDecl, TypeName, TypeVar};
use gradus_reference::{Data, Machine, Options, Problem, Value};
use gradus_source::Span;
use support::*;
use Type::{Int, Real};

#[test]
fn arithmetic_and_let() {
    let x = var("x");
    let term = AT.bind(&x, Real, mul(r(3.0), r(4.0)), add(v(&x), mul(v(&x), r(0.5))));
    assert_eq!(Linker::new().real(&term), 18.0);
    assert_eq!(Linker::new().int(&p(Prim::DivInt, [i(-7), i(2)])), -3);
    assert_eq!(Linker::new().int(&p(Prim::ModInt, [i(-7), i(2)])), -1);
    assert_eq!(Linker::new().int(&p(Prim::PowInt, [i(3), i(4)])), 81);
    assert_eq!(Linker::new().real(&p(Prim::PowRealInt, [r(2.0), i(-2)])), 0.25);
    assert_eq!(Linker::new().int(&p(Prim::Round, [r(-2.5)])), -3);
}

#[test]
fn every_primitive_on_numbers_is_the_one_of_the_table() {
    for &prim in Prim::ALL {
        let info = prim.info();
        if info.partials.is_none() {
            continue;
        }
        let args: Vec<_> = info.params.iter().map(|t| if *t == Int { i(2) } else { r(0.75) }).collect();
        let value = Linker::new().real(&p(prim, args));
        assert!(value.is_finite(), "{prim:?}");
    }
    assert_eq!(Linker::new().real(&p(Prim::Atan2, [r(1.0), r(-1.0)])), 3.0 * std::f64::consts::FRAC_PI_4);
    assert_eq!(Linker::new().real(&p(Prim::Minimum, [r(1.0), r(-1.0)])), -1.0);
}

#[test]
fn functions_partial_and_over_application() {
    // twice f x = f (f x); twice (twice (+ 3)) 1 = 13, also when the function has fewer parameters than arguments
    let (f, x, y) = (var("f"), var("x"), var("y"));
    let int_to_int = Type::fun(Int, Int);
    let mut linker = Linker::new();
    let twice = fun([(&f, int_to_int.clone()), (&x, Int)], app(v(&f), [app(v(&f), [v(&x)])]));
    linker.define("twice", Type::funs([int_to_int.clone(), Int], Int), twice);
    let add3 = fun([(&y, Int)], addi(v(&y), i(3)));
    let term = app(g("twice"), [app(g("twice"), [add3]), i(1)]);
    assert_eq!(linker.int(&term), 13);
    // pick b = if b then (fun x y -> x - y) else (fun x y -> y - x), defined with one parameter
    let (b, x1, y1, x2, y2) = (var("b"), var("x"), var("y"), var("x"), var("y"));
    let first = fun([(&x1, Int), (&y1, Int)], subi(v(&x1), v(&y1)));
    let second = fun([(&x2, Int), (&y2, Int)], subi(v(&y2), v(&x2)));
    let pick = fun([(&b, Type::Bool)], AT.if_(v(&b), first, second));
    linker.define("pick", Type::funs([Type::Bool, Int, Int], Int), pick);
    assert_eq!(linker.int(&app(g("pick"), [AT.bool(false), i(10), i(4)])), -6);
    // Explicit functions applied to fewer and to more arguments than they have parameters.
    let (a, b1, h1) = (var("a"), var("b"), var("h"));
    let few = app(fun([(&a, Int), (&b1, Int)], subi(v(&a), v(&b1))), [i(10)]);
    let term = AT.bind(&h1, int_to_int.clone(), few, app(v(&h1), [i(3)]));
    assert_eq!(linker.int(&term), 7);
    let c = var("c");
    assert_eq!(linker.int(&app(fun([(&c, Type::Bool)], app(g("pick"), [v(&c), i(10)])), [AT.bool(true), i(4)])), 6);
    // A partial application keeps its argument.
    let h = var("h");
    let partial = app(g("pick"), [AT.bool(true), i(10)]);
    let term = AT.bind(&h, int_to_int, partial, addi(app(v(&h), [i(1)]), app(v(&h), [i(2)])));
    assert_eq!(linker.int(&term), 17);
}

#[test]
fn closures_capture_and_recursive_groups_know_each_other() {
    // let k = 5 in let rec even n = if n = 0 then k else odd (n - 1) and odd n = if n = 0 then -k else even (n - 1)
    let (k, even, odd, n, m) = (var("k"), var("even"), var("odd"), var("n"), var("m"));
    let branch = |n: &gradus_core::Var, base, other: &gradus_core::Var| {
        fun([(n, Int)], AT.if_(eqi(v(n), i(0)), base, app(v(other), [subi(v(n), i(1))])))
    };
    let to = Type::fun(Int, Int);
    let group = vec![
        (even.clone(), to.clone(), branch(&n, v(&k), &odd)),
        (odd.clone(), to.clone(), branch(&m, p(Prim::NegInt, [v(&k)]), &even)),
    ];
    // The group is also used as values, in a tuple.
    let pair = var("pair");
    let body = AT.bind(
        &pair,
        Type::tuple([to.clone(), to]),
        AT.tuple([v(&even), v(&odd)]),
        addi(mul_int(app(AT.proj(v(&pair), 0), [i(7)]), 10), app(AT.proj(v(&pair), 1), [i(7)])),
    );
    let term = AT.bind(&k, Int, i(5), AT.letrec(group, body));
    assert_eq!(Linker::new().int(&term), -45);
}

fn mul_int(x: gradus_core::Term, k: i64) -> gradus_core::Term {
    p(Prim::MulInt, [x, i(k)])
}

#[test]
fn polymorphic_recursion_makes_instances_as_they_are_called() {
    // type 'a nest = Flat of 'a | Deep of ('a * 'a) nest; depth : 'a nest -> int
    let a = TypeVar::fresh("a");
    let ta = Type::Var(a.clone());
    let nest = |t: Type| Type::named("nest", [t]);
    let pair = |t: &Type| Type::tuple([t.clone(), t.clone()]);
    let mut linker = Linker::new();
    linker.declare(TypeDecl {
        name: TypeName::new("nest"),
        params: vec![a.clone()],
        body: TypeBody::Variant(vec![("Flat".into(), vec![ta.clone()]), ("Deep".into(), vec![nest(pair(&ta))])]),
        span: Span::default(),
    });
    let b = TypeVar::fresh("b");
    let tb = Type::Var(b.clone());
    let (t, x, inner) = (var("t"), var("x"), var("inner"));
    let again = app(g_at("depth", [pair(&tb)]), [v(&inner)]);
    let arms = vec![
        Arm { tag: 0, vars: vec![(x.clone(), tb.clone())], body: i(0) },
        Arm { tag: 1, vars: vec![(inner.clone(), nest(pair(&tb)))], body: addi(i(1), again) },
    ];
    let depth = fun([(&t, nest(tb.clone()))], AT.case(v(&t), arms, None));
    linker.define_generic("depth", &b, Type::fun(nest(tb), Int), depth);
    let name = TypeName::new("nest");
    let two = pair(&Int);
    let flat =
        AT.construct(name.clone(), [pair(&two)], 0, [AT.tuple([AT.tuple([i(1), i(2)]), AT.tuple([i(3), i(4)])])]);
    let deep = AT.construct(name.clone(), [Int], 1, [AT.construct(name, [two], 1, [flat])]);
    assert_eq!(linker.int(&app(g_at("depth", [Int]), [deep])), 2);
}

#[test]
fn arrays() {
    let linker = Linker::new();
    let k = var("k");
    let squares = pt(Prim::Build, [Int], [i(4), fun([(&k, Int)], p(Prim::MulInt, [v(&k), v(&k)]))]);
    let a = var("a");
    let at_3 = AT.bind(&a, Type::array(Int), squares, pt(Prim::Get, [Int], [v(&a), i(3)]));
    assert_eq!(linker.int(&at_3), 9);
    let (j, s) = (var("j"), var("s"));
    let sum = pt(Prim::Ifold, [Int], [i(5), fun([(&j, Int), (&s, Int)], addi(v(&s), v(&j))), i(100)]);
    assert_eq!(linker.int(&sum), 110);
    assert_eq!(linker.int(&pt(Prim::Length, [Real], [reals(&[1.0, 2.0])])), 2);
    // Set leaves a shared array alone.
    let (b, c) = (var("b"), var("c"));
    let changed = pt(Prim::Set, [Real], [v(&b), i(0), r(7.0)]);
    let first = |x: &gradus_core::Var| pt(Prim::Get, [Real], [v(x), i(0)]);
    let term = AT.bind(
        &b,
        Type::array(Real),
        reals(&[1.0, 2.0]),
        AT.bind(&c, Type::array(Real), changed, add(mul(first(&b), r(10.0)), first(&c))),
    );
    assert_eq!(linker.real(&term), 17.0);
}

#[test]
fn iterate_runs_until_inr() {
    // Halve until below 1: 20 -> 10 -> 5 -> 2.5 -> 1.25 -> 0.625
    let x = var("x");
    let either = TypeName::new("either");
    let inl = AT.construct(either.clone(), [Real, Real], 0, [mul(v(&x), r(0.5))]);
    let inr = AT.construct(either, [Real, Real], 1, [v(&x)]);
    let step = fun([(&x, Real)], AT.if_(lt(v(&x), r(1.0)), inr, inl));
    assert_eq!(Linker::new().real(&pt(Prim::Iterate, [Real, Real], [step, r(20.0)])), 0.625);
}

#[test]
fn comparison_is_structural() {
    let linker = Linker::new();
    let list = |xs: &[f64]| xs.iter().rev().fold(nil(Real), |tail, x| cons(Real, r(*x), tail));
    let compare = |prim, x, y| linker.bool(&pt(prim, [Type::list(Real)], [x, y]));
    assert!(compare(Prim::Equal, list(&[1.0, 2.0]), list(&[1.0, 2.0])));
    assert!(compare(Prim::Less, list(&[1.0, 2.0]), list(&[1.0, 3.0])));
    assert!(compare(Prim::Less, list(&[1.0]), list(&[1.0, 2.0])), "`[]` comes before `::`");
    assert!(!compare(Prim::Equal, list(&[f64::NAN]), list(&[f64::NAN])));
    assert!(compare(Prim::NotEqual, list(&[f64::NAN]), list(&[f64::NAN])));
    assert!(!compare(Prim::LessEqual, list(&[f64::NAN]), list(&[f64::NAN])));
    let arrays = |prim, x: &[f64], y: &[f64]| linker.bool(&pt(prim, [Type::array(Real)], [reals(x), reals(y)]));
    assert!(arrays(Prim::Less, &[9.0], &[1.0, 1.0]), "the shorter one comes first");
    assert!(arrays(Prim::Greater, &[1.0, 2.0], &[1.0, 1.0]));
}

#[test]
fn vector_operations_at_data_of_any_shape() {
    let linker = Linker::new();
    let ty = Type::tuple([Real, Int, Type::array(Real)]);
    let point = |x, k, a: &[f64]| AT.tuple([r(x), i(k), reals(a)]);
    let sum = pt(Prim::VectorAdd, [ty.clone()], [point(1.0, 7, &[1.0, 2.0]), point(0.5, 9, &[10.0, 20.0])]);
    let mut machine = Machine::new(&linker, Options::default());
    let value = machine.eval(&sum).unwrap();
    let expected = Data::Tuple(vec![Data::Real(1.5), Data::Int(7), Data::Reals(vec![11.0, 22.0])].into());
    assert_eq!(machine.to_data(&value, &ty).unwrap(), expected);
    let inner = pt(Prim::Inner, [ty.clone()], [point(2.0, 1, &[1.0, 2.0]), point(3.0, 1, &[4.0, 5.0])]);
    assert_eq!(linker.real(&inner), 20.0);
    let scaled = pt(Prim::Scale, [ty.clone()], [r(-2.0), point(2.0, 1, &[1.0])]);
    let norm = pt(Prim::Inner, [ty.clone()], [scaled.clone(), scaled]);
    assert_eq!(linker.real(&norm), 20.0);
    let zero = pt(Prim::ZeroLike, [ty.clone()], [point(2.0, 1, &[1.0])]);
    assert_eq!(linker.real(&pt(Prim::Inner, [ty], [zero.clone(), zero])), 0.0);
}

#[test]
fn data_in_and_out() {
    let mut linker = Linker::new();
    linker.declare(TypeDecl {
        name: TypeName::new("point"),
        params: vec![],
        body: TypeBody::Record(vec![("x".into(), Real), ("tags".into(), Type::list(Type::String))]),
        span: Span::default(),
    });
    let ty = Type::tuple([Type::named("point", []), Type::option(Type::array(Int)), Type::Unit, Type::Bool]);
    let tags = Data::List(vec![Data::String("a".into()), Data::String("b".into())].into());
    let data = Data::Tuple(
        vec![
            Data::Record(vec![Data::Real(1.5), tags].into()),
            Data::Construct { tag: 1, args: vec![Data::Ints(vec![1, 2])].into() },
            Data::Unit,
            Data::Bool(true),
        ]
        .into(),
    );
    let machine = Machine::new(&linker, Options::default());
    let value = machine.from_data(&data, &ty).unwrap();
    assert_eq!(machine.to_data(&value, &ty).unwrap(), data);
    assert!(machine.from_data(&Data::Int(1), &Real).is_err());
    fn can_be_sent<T: Send>() {}
    can_be_sent::<Data>();
}

#[test]
fn given_data_are_used_and_missing_data_are_an_error() {
    let mut linker = Linker::new();
    let body = gradus_core::Body::Data { file: "x.csv".into(), span: Span::default() };
    linker.define_scheme("points", gradus_core::Scheme::mono(Type::array(Real)), body);
    let term = pt(Prim::Get, [Real], [g("points"), i(1)]);
    let mut machine = Machine::new(&linker, Options::default());
    machine.set_data("points", Value::reals(vec![1.0, 2.5]));
    assert!(matches!(machine.eval(&term), Ok(Value::Real(x)) if x == 2.5));
    assert!(matches!(linker.error(&term).problem, Problem::MissingData { .. }));
}

#[test]
fn top_level_values_are_computed_once_and_may_not_need_themselves() {
    let mut linker = Linker::new();
    linker.define("one", Real, add(r(0.25), r(0.75)));
    linker.define("loop1", Real, add(g("loop2"), r(1.0)));
    linker.define("loop2", Real, add(g("loop1"), r(1.0)));
    let mut machine = Machine::new(&linker, Options::default());
    let twice = add(g("one"), g("one"));
    assert!(matches!(machine.eval(&twice), Ok(Value::Real(x)) if x == 2.0));
    let first = machine.report().steps;
    machine.eval(&twice).unwrap();
    // The sum and two names; the definition of `one` is not run again (3 nodes the first time).
    assert_eq!((first, machine.report().steps), (6, 9));
    assert!(matches!(machine.eval(&g("loop1")).unwrap_err().problem, Problem::Circular { .. }));
    // The machine can be used after an error.
    assert!(matches!(machine.eval(&twice), Ok(Value::Real(x)) if x == 2.0));
}

#[test]
fn functions_can_be_called_from_outside() {
    let mut linker = Linker::new();
    let (x, y) = (var("x"), var("y"));
    linker.define(
        "sub",
        Type::funs([Real, Real], Real),
        fun([(&x, Real), (&y, Real)], p(Prim::SubReal, [v(&x), v(&y)])),
    );
    let mut machine = Machine::new(&linker, Options::default());
    let sub = machine.eval(&g("sub")).unwrap();
    let value = machine.apply(sub.clone(), [Value::Real(5.0), Value::Real(3.0)]).unwrap();
    assert!(matches!(value, Value::Real(x) if x == 2.0));
    let partial = machine.apply(sub, [Value::Real(5.0)]).unwrap();
    let value = machine.apply(partial, [Value::Real(1.0)]).unwrap();
    assert!(matches!(value, Value::Real(x) if x == 4.0));
}

#[test]
fn strings() {
    let linker = Linker::new();
    let text = p(Prim::StringAppend, [p(Prim::StringOfInt, [i(-3)]), p(Prim::StringOfReal, [r(0.1)])]);
    match linker.run(&text) {
        Ok(Value::String(s)) => assert_eq!(&*s, "-30.1"),
        other => panic!("{other:?}"),
    }
    assert_eq!(linker.int(&p(Prim::StringLength, [text])), 5);
}
