//! Errors with their places and words; kinks and domains.

mod support;

use gradus_core::*;
use gradus_reference::{Domain, Kinks, Machine, Options, Problem, RuntimeError, Value};
use gradus_source::Span;
use support::*;
use Type::{Int, Real};

/// Code, message and main label of an error, and that it has a place.
fn words(error: &RuntimeError) -> String {
    let diagnostic = error.diagnostic();
    format!("{}: {} [{}]", diagnostic.code, diagnostic.message, diagnostic.labels[0].text)
}

fn error(term: &Term) -> String {
    words(&Linker::new().error(term))
}

#[test]
fn integers() {
    assert_eq!(error(&p(Prim::DivInt, [i(1), i(0)])), "E0601: division of an integer by zero [the divisor is 0]");
    assert_eq!(error(&p(Prim::ModInt, [i(1), i(0)])), "E0601: division of an integer by zero [the divisor is 0]");
    assert_eq!(
        error(&p(Prim::PowInt, [i(2), i(-1)])),
        "E0602: an integer is raised to a negative power [the exponent is -1]"
    );
    assert_eq!(Linker::new().int(&p(Prim::DivInt, [i(i64::MIN), i(-1)])), i64::MIN);
}

#[test]
fn arrays() {
    let get = |k| pt(Prim::Get, [Real], [reals(&[1.0, 2.0]), i(k)]);
    assert_eq!(error(&get(2)), "E0603: index 2 is outside an array of 2 elements [the last element has index 1]");
    assert_eq!(error(&get(-1)), "E0603: index -1 is outside an array of 2 elements [the last element has index 1]");
    let set = pt(Prim::Set, [Real], [reals(&[]), i(0), r(1.0)]);
    assert_eq!(error(&set), "E0603: index 0 is outside an array of 0 elements [the array is empty]");
    let k = var("k");
    let negative = pt(Prim::Build, [Int], [i(-3), fun([(&k, Int)], v(&k))]);
    assert_eq!(error(&negative), "E0604: an array of size -3 [the size is negative]");
    let sized = pt(Prim::CheckSize, [Real], [reals(&[1.0]), i(4)]);
    assert_eq!(
        error(&sized),
        "E0606: an array of 1 element where 4 are needed [this array has size 1, its type says 4]"
    );
    assert!(Linker::new().run(&pt(Prim::CheckSize, [Real], [reals(&[1.0]), i(1)])).is_ok());
}

#[test]
fn arrays_are_regular() {
    let rows = |rows: &[&[f64]]| {
        let items = rows.iter().map(|row| reals(row)).collect();
        AT.term(TermKind::ArrayLiteral { element: Type::array(Real), items })
    };
    let ragged = "E0605: the rows of an array differ in size [element 1 has size 1, those before it 2]";
    assert_eq!(error(&rows(&[&[1.0, 2.0], &[3.0]])), ragged);
    // The triangle that `build` would make.
    let (n, m) = (var("n"), var("m"));
    let row = pt(Prim::Build, [Real], [v(&n), fun([(&m, Int)], r(0.0))]);
    let triangle = pt(Prim::Build, [Type::array(Real)], [i(3), fun([(&n, Int)], row)]);
    assert_eq!(
        error(&triangle),
        "E0605: the rows of an array differ in size [element 1 has size 1, those before it 0]"
    );
    let set = pt(Prim::Set, [Type::array(Real)], [rows(&[&[1.0], &[2.0]]), i(0), reals(&[1.0, 2.0])]);
    assert_eq!(error(&set), "E0605: the rows of an array differ in size [element 0 has size 2, those before it 1]");
    // Boxes of boxes: 1 by 2 against 1 by 1.
    let element = Type::array(Type::array(Real));
    let cubes = AT.term(TermKind::ArrayLiteral { element, items: vec![rows(&[&[1.0, 2.0]]), rows(&[&[1.0]])] });
    let expected = "E0605: the rows of an array differ in size [element 1 has size 1 by 1, those before it 1 by 2]";
    assert_eq!(error(&cubes), expected);
    assert!(Linker::new().run(&rows(&[&[1.0, 2.0], &[3.0, 4.0]])).is_ok());
}

#[test]
fn shapes_that_differ_say_where() {
    let mut linker = Linker::new();
    let inner = Type::array(Type::list(Real));
    linker.declare(TypeDecl {
        name: TypeName::new("pair"),
        params: vec![],
        body: TypeBody::Record(vec![("left".into(), inner), ("right".into(), Type::option(Real))]),
        span: Span::default(),
    });
    let list = |xs: &[f64]| xs.iter().rev().fold(nil(Real), |tail, x| cons(Real, r(*x), tail));
    let none = || AT.construct(TypeName::new("option"), [Real], 0, []);
    let some = || AT.construct(TypeName::new("option"), [Real], 1, [r(1.0)]);
    let pair = |lists: &[&[f64]], option: Term| {
        let items = lists.iter().map(|xs| list(xs)).collect();
        let array = AT.term(TermKind::ArrayLiteral { element: Type::list(Real), items });
        AT.construct(TypeName::new("pair"), [], 0, [array, option])
    };
    let ty = Type::named("pair", []);
    let differ = |x, y| words(&linker.error(&pt(Prim::VectorAdd, [ty.clone()], [x, y])));
    let start = "E0607: the operands of `<+>` differ in shape";
    let all: &[&[f64]] = &[&[1.0], &[1.0, 2.0, 3.0]];
    assert_eq!(
        differ(pair(all, none()), pair(&[&[1.0], &[1.0, 2.0]], none())),
        format!("{start} [at `.left[1][2]`: `::` on the left, `[]` on the right]")
    );
    assert_eq!(
        differ(pair(all, none()), pair(&[&[1.0]], none())),
        format!("{start} [at `.left`: length 2 on the left, length 1 on the right]")
    );
    assert_eq!(
        differ(pair(all, none()), pair(all, some())),
        format!("{start} [at `.right`: `None` on the left, `Some` on the right]")
    );
    let plain = linker.error(&pt(Prim::Inner, [Type::array(Real)], [reals(&[1.0]), reals(&[])]));
    assert_eq!(
        words(&plain),
        "E0607: the operands of `<.>` differ in shape [length 1 on the left, length 0 on the right]"
    );
}

#[test]
fn errors_have_places_and_calls() {
    // inner n = 1 / n at 10; outer n = 1 + inner n at 20; the program calls outer at 30
    let (n, m) = (var("n"), var("m"));
    let mut linker = Linker::new();
    let inner = fun([(&n, Int)], at(10).prim(Prim::DivInt, [i(1), v(&n)]));
    linker.define("inner", Type::fun(Int, Int), inner);
    let outer = fun([(&m, Int)], addi(i(1), at(20).app(g("inner"), v(&m))));
    linker.define("outer", Type::fun(Int, Int), outer);
    let error = linker.error(&addi(i(1), at(30).app(g("outer"), i(0))));
    assert_eq!(error.span, at(10).0);
    let calls: Vec<(&str, Span)> = error.calls.iter().map(|c| (&*c.caller, c.span)).collect();
    assert_eq!(calls, [("outer", at(20).0), ("the program", at(30).0)]);
    assert_eq!(error.diagnostic().labels.len(), 3);
}

fn marked(prim: Prim, types: &[Type], args: &[Term], start: u32) -> Term {
    let site = Site { differentiated: true, ..Site::default() };
    at(start).term(TermKind::Prim { prim, types: types.into(), args: args.to_vec(), site })
}

fn kinks_of(term: &Term) -> Vec<(Prim, u32, u64)> {
    let linker = Linker::new();
    let mut machine = Machine::new(&linker, Options { kinks: Kinks::Warn, ..Options::default() });
    machine.eval(term).unwrap();
    machine.report().kinks.iter().map(|k| (k.prim, k.span.start, k.count)).collect()
}

#[test]
fn kinks_are_counted_where_a_derivative_is_taken() {
    let pair = |x, y| AT.tuple([x, y]);
    assert_eq!(kinks_of(&marked(Prim::Abs, &[], &[r(0.0)], 5)), [(Prim::Abs, 5, 1)]);
    assert_eq!(kinks_of(&marked(Prim::Abs, &[], &[r(1.0)], 5)), []);
    assert_eq!(kinks_of(&p(Prim::Abs, [r(0.0)])), [], "no derivative is taken");
    assert_eq!(kinks_of(&marked(Prim::Less, &[Real], &[r(1.0), r(1.0)], 5)), [(Prim::Less, 5, 1)]);
    assert_eq!(kinks_of(&marked(Prim::Less, &[Int], &[i(1), i(1)], 5)), [], "integers carry no derivative");
    let real_int = Type::tuple([Real, Int]);
    let compare = |prim, x: Term, y: Term| kinks_of(&marked(prim, std::slice::from_ref(&real_int), &[x, y], 5)).len();
    assert_eq!(compare(Prim::Less, pair(r(1.0), i(1)), pair(r(1.0), i(2))), 1);
    assert_eq!(compare(Prim::Equal, pair(r(1.0), i(1)), pair(r(1.0), i(2))), 0, "stays unequal nearby");
    assert_eq!(compare(Prim::Equal, pair(r(1.0), i(1)), pair(r(1.0), i(1))), 1);
    // One position, three times.
    let (k, s) = (var("k"), var("s"));
    let step = fun([(&k, Int), (&s, Real)], marked(Prim::Maximum, &[], &[v(&s), r(0.5)], 9));
    assert_eq!(kinks_of(&pt(Prim::Ifold, [Real], [i(3), step, r(0.5)])), [(Prim::Maximum, 9, 3)]);
    let linker = Linker::new();
    let options = Options { kinks: Kinks::Error, ..Options::default() };
    let error = linker.run_with(&marked(Prim::Floor, &[], &[r(2.0)], 7), options).unwrap_err();
    assert_eq!(error.span, at(7).0);
    assert_eq!(words(&error), "E0609: a derivative is taken where `floor` is not differentiable [here x whole]");
}

#[test]
fn domains_are_guarded_on_request() {
    let linker = Linker::new();
    let log = at(4).prim(Prim::Log, [r(-1.0)]);
    assert!(linker.real(&log).is_nan());
    let strict = || Options { domain: Domain::Error, ..Options::default() };
    let error = linker.run_with(&log, strict()).unwrap_err();
    assert_eq!(error.span, at(4).0);
    assert_eq!(words(&error), "E0610: `log` is applied outside its domain [applied to -1.0; defined for x > 0]");
    let division = p(Prim::DivReal, [r(1.0), r(0.0)]);
    assert_eq!(linker.real(&division), f64::INFINITY);
    assert!(matches!(linker.run_with(&division, strict()).unwrap_err().problem, Problem::OutsideDomain { .. }));
    assert!(matches!(linker.run_with(&p(Prim::Sqrt, [r(4.0)]), strict()), Ok(Value::Real(x)) if x == 2.0));
}

#[test]
fn sign_is_undefined_at_zero_in_every_setting() {
    let arms = |term| {
        let (u, w) = (var("u"), var("w"));
        let arm = |tag, v: &Var, body| Arm { tag, vars: vec![(v.clone(), Type::Unit)], body };
        AT.case(term, vec![arm(0, &u, i(-1)), arm(1, &w, i(1))], None)
    };
    let sign = |x| arms(p(Prim::Sign, [r(x)]));
    assert_eq!((Linker::new().int(&sign(-0.5)), Linker::new().int(&sign(2.0))), (-1, 1));
    assert_eq!(error(&sign(0.0)), "E0608: `sign` is undefined at 0 [the argument is 0]");
}
