//! `Lift` on values of all kinds, with derivatives that can be recognised: differentiating a function adds 100 to each of its
//! real literals, and lifting a real adds 1000 for each mode.

mod support;

use gradus_core::traverse::map_children;
use gradus_core::*;
use gradus_reference::{Machine, Options, Problem, Value};
use gradus_source::Diagnostic;
use std::sync::Arc;
use support::*;
use Type::{Int, Real};

struct Marked(Linker);

fn image(term: &Term, mode: Mode) -> Term {
    traverse::with_stack(|| match &*term.kind {
        TermKind::Literal(Literal::Real(x)) => r(x + 100.0),
        TermKind::Lambda(lambda) => AT.term(TermKind::Lambda(image_of(lambda, mode))),
        _ => map_children(term, &mut |child| image(child, mode)),
    })
}

fn image_of(lambda: &Arc<Lambda>, mode: Mode) -> Arc<Lambda> {
    Arc::new(Lambda {
        param: lambda.param.clone(),
        ty: lambda.ty.clone(),
        body: image(&lambda.body, mode),
        origin: Some((mode, lambda.clone())),
    })
}

impl Definitions for Marked {
    fn definition(&self, global: &Global) -> Result<Arc<Definition>, Box<Diagnostic>> {
        let Global::Wrapper { name: "lift", modes, types } = global else { return self.0.definition(global) };
        let x = var("x");
        let more = r(1000.0 * modes.len() as f64);
        let body = match &types[0] {
            Real => add(v(&x), more),
            other => pt(Prim::Scale, [other.clone()], [r(-1.0), v(&x)]),
        };
        let ty = Type::fun(types[0].clone(), types[0].clone());
        Ok(Arc::new(Definition { global: global.clone(), ty, term: Some(fun([(&x, types[0].clone())], body)) }))
    }

    fn type_decl(&self, name: &TypeName) -> Result<Arc<TypeDecl>, Box<Diagnostic>> {
        self.0.type_decl(name)
    }

    fn differentiate(&self, lambda: &Arc<Lambda>, mode: Mode) -> Result<Arc<Lambda>, Box<Diagnostic>> {
        Ok(image_of(lambda, mode))
    }
}

fn lift_under(under: &[Mode], mode: Mode, ty: Type, term: Term) -> Term {
    AT.term(TermKind::Lift { under: under.to_vec(), mode, ty, term })
}

fn lift(ty: Type, term: Term) -> Term {
    lift_under(&[], Mode::Forward, ty, term)
}

fn real(term: &Term) -> f64 {
    let definitions = Marked(Linker::new());
    let mut machine = Machine::new(&definitions, Options::default());
    match machine.eval(term) {
        Ok(Value::Real(x)) => x,
        other => panic!("{other:?}"),
    }
}

fn to() -> Type {
    Type::fun(Real, Real)
}

/// `let k = 3.0 in let f = fun x -> x * 2.0 + k in body`
fn with_f(body: impl FnOnce(&Var) -> Term) -> Term {
    let (k, f, x) = (var("k"), var("f"), var("x"));
    let function = fun([(&x, Real)], add(mul(v(&x), r(2.0)), v(&k)));
    AT.bind(&k, Real, r(3.0), AT.bind(&f, to(), function, body(&f)))
}

#[test]
fn a_closure_is_differentiated_and_its_captures_are_lifted() {
    assert_eq!(real(&with_f(|f| app(lift(to(), v(f)), [r(10.0)]))), 10.0 * 102.0 + 1003.0);
    // The original is as it was.
    assert_eq!(real(&with_f(|f| add(app(lift(to(), v(f)), [r(0.0)]), app(v(f), [r(0.0)])))), 1003.0 + 3.0);
}

#[test]
fn captured_functions_and_mixed_data_are_lifted_inside() {
    // let p = (f, 5.0) in let g = fun y -> p.0 y + p.1 in lift g
    let (p, g, y) = (var("p"), var("g"), var("y"));
    let pair = Type::tuple([to(), Real]);
    let term = with_f(|f| {
        let sum = add(app(AT.proj(v(&p), 0), [v(&y)]), AT.proj(v(&p), 1));
        let call = app(lift(to(), v(&g)), [r(10.0)]);
        let inner = AT.bind(&g, to(), fun([(&y, Real)], sum), call);
        AT.bind(&p, pair.clone(), AT.tuple([v(f), r(5.0)]), inner)
    });
    assert_eq!(real(&term), (10.0 * 102.0 + 1003.0) + 1005.0);
    // Lists and arrays of functions.
    let list = |f: &Var| cons(to(), v(f), nil(to()));
    let (h, t) = (var("h"), var("t"));
    let of_list = with_f(|f| match_list(lift(Type::list(to()), list(f)), to(), r(0.0), &h, &t, app(v(&h), [r(1.0)])));
    assert_eq!(real(&of_list), 102.0 + 1003.0);
    let array = |f: &Var| AT.term(TermKind::ArrayLiteral { element: to(), items: vec![v(f), v(f)] });
    let of_array = with_f(|f| {
        let lifted = lift(Type::array(to()), array(f));
        app(pt(Prim::Get, [to()], [lifted, i(1)]), [r(1.0)])
    });
    assert_eq!(real(&of_array), 102.0 + 1003.0);
}

#[test]
fn a_partial_application_keeps_its_arguments() {
    // let add = fun a b -> a + b * 2.0 in lift (add 7.0)
    let (f, a, b) = (var("f"), var("a"), var("b"));
    let function = fun([(&a, Real), (&b, Real)], add(v(&a), mul(v(&b), r(2.0))));
    let call = app(lift(to(), app(v(&f), [r(7.0)])), [r(10.0)]);
    let term = AT.bind(&f, Type::funs([Real, Real], Real), function, call);
    assert_eq!(real(&term), 1007.0 + 10.0 * 102.0);
}

#[test]
fn a_recursive_group_stays_a_group() {
    // let k = 3.0 in let rec up n = if n = 0 then k else 1.0 + down (n - 1) and down n = if n = 0 then 2.0 else up (n - 1)
    let (k, up, down, n, m) = (var("k"), var("up"), var("down"), var("n"), var("m"));
    let ty = Type::fun(Int, Real);
    let less = |n: &Var| subi(v(n), i(1));
    let up_body = AT.if_(eqi(v(&n), i(0)), v(&k), add(r(1.0), app(v(&down), [less(&n)])));
    let down_body = AT.if_(eqi(v(&m), i(0)), r(2.0), app(v(&up), [less(&m)]));
    let group = |body| {
        let bindings = vec![
            (up.clone(), ty.clone(), fun([(&n, Int)], up_body.clone())),
            (down.clone(), ty.clone(), fun([(&m, Int)], down_body.clone())),
        ];
        AT.bind(&k, Real, r(3.0), AT.letrec(bindings, body))
    };
    assert_eq!(real(&group(app(lift(ty.clone(), v(&up)), [i(4)]))), 101.0 + 101.0 + 1003.0);
    assert_eq!(real(&group(app(lift(ty.clone(), v(&up)), [i(3)]))), 101.0 + 101.0 + 102.0);
    // Captured by another function.
    let (g, y) = (var("g"), var("y"));
    let both = fun([(&y, Int)], add(app(v(&up), [v(&y)]), app(v(&down), [v(&y)])));
    let call = app(lift(ty.clone(), v(&g)), [i(1)]);
    let term = group(AT.bind(&g, ty.clone(), both, call));
    assert_eq!(real(&term), (101.0 + 102.0) + 1003.0);
}

#[test]
fn under_an_outer_mode_the_inner_one_acts_on_the_original_text() {
    let term = with_f(|f| {
        let outer = lift(to(), v(f));
        app(lift_under(&[Mode::Forward], Mode::Monadic, to(), outer), [r(10.0)])
    });
    // Both modes mark the literal; the capture is lifted once by the outer and then, by two modes at once, by the inner.
    assert_eq!(real(&term), 10.0 * 202.0 + (1003.0 + 2000.0));
    let wrong = with_f(|f| app(lift_under(&[Mode::Forward], Mode::Monadic, to(), v(f)), [r(10.0)]));
    let definitions = Marked(Linker::new());
    let error = Machine::new(&definitions, Options::default()).eval(&wrong).unwrap_err();
    assert!(matches!(error.problem, Problem::Internal(_)));
}

#[test]
fn a_deep_chain_of_closures_is_lifted() {
    // grow n f = if n = 0 then f else grow (n - 1) (fun x -> f x + 1.0)
    let (n, f, x, y) = (var("n"), var("f"), var("x"), var("y"));
    let wrapped = fun([(&x, Real)], add(app(v(&f), [v(&x)]), r(1.0)));
    let body = AT.if_(eqi(v(&n), i(0)), v(&f), app(g("grow"), [subi(v(&n), i(1)), wrapped]));
    let mut linker = Linker::new();
    linker.define("grow", Type::funs([Int, to()], to()), fun([(&n, Int), (&f, to())], body));
    let definitions = Marked(linker);
    let chain = app(g("grow"), [i(100_000), fun([(&y, Real)], v(&y))]);
    let term = app(lift(to(), chain), [r(0.0)]);
    let value = Machine::new(&definitions, Options::default()).eval(&term).unwrap();
    assert!(matches!(value, Value::Real(x) if x == 100_000.0 * 101.0));
}

#[test]
fn sharing_is_kept() {
    // Each function captures the one before twice, in a tuple: 2^60 paths, 60 functions.
    // twice n p = if n = 0 then p else twice (n - 1) (let f = fun x -> p.0 x in (f, f))
    let pair = Type::tuple([to(), to()]);
    let (n, p, f, x, y) = (var("n"), var("p"), var("f"), var("x"), var("y"));
    let next = AT.bind(&f, to(), fun([(&x, Real)], app(AT.proj(v(&p), 0), [v(&x)])), AT.tuple([v(&f), v(&f)]));
    let body = AT.if_(eqi(v(&n), i(0)), v(&p), app(g("twice"), [subi(v(&n), i(1)), next]));
    let mut linker = Linker::new();
    linker.define("twice", Type::funs([Int, pair.clone()], pair.clone()), fun([(&n, Int), (&p, pair.clone())], body));
    let definitions = Marked(linker);
    let q = var("q");
    let start = AT.bind(&q, to(), fun([(&y, Real)], mul(v(&y), r(2.0))), AT.tuple([v(&q), v(&q)]));
    let term = app(AT.proj(lift(pair, app(g("twice"), [i(60), start])), 1), [r(1.0)]);
    let value = Machine::new(&definitions, Options::default()).eval(&term).unwrap();
    assert!(matches!(value, Value::Real(x) if x == 102.0));
}
