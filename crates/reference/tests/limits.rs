//! Depth, size and time: what would overflow the thread's stack, what must be linear, and what ends at a limit.

mod support;

use gradus_core::{Prim, Term, Type};
use gradus_reference::{Machine, Options, Problem, Value};
use support::*;
use Type::{Int, Real};

const MILLION: i64 = 1_000_000;

/// `let rec count n = if n = 0 then 0 else 1 + count (n - 1)`
fn counting(linker: &mut Linker) {
    let n = var("n");
    let body = AT.if_(eqi(v(&n), i(0)), i(0), addi(i(1), app(g("count"), [subi(v(&n), i(1))])));
    linker.define("count", Type::fun(Int, Int), fun([(&n, Int)], body));
}

#[test]
fn a_million_nested_calls() {
    let mut linker = Linker::new();
    counting(&mut linker);
    assert_eq!(linker.int(&app(g("count"), [i(MILLION)])), MILLION);
}

/// `up n acc`: the list of 1.0, ..., n in a tail call; `sum l`: not in a tail call.
fn lists(linker: &mut Linker) {
    let (n, acc) = (var("n"), var("acc"));
    let list = Type::list(Real);
    let next = cons(Real, p(Prim::RealOfInt, [v(&n)]), v(&acc));
    let up = AT.if_(eqi(v(&n), i(0)), v(&acc), app(g("up"), [subi(v(&n), i(1)), next]));
    linker.define("up", Type::funs([Int, list.clone()], list.clone()), fun([(&n, Int), (&acc, list.clone())], up));
    let (l, x, rest) = (var("l"), var("x"), var("rest"));
    let sum = match_list(v(&l), Real, r(0.0), &x, &rest, add(v(&x), app(g("sum"), [v(&rest)])));
    linker.define("sum", Type::fun(list.clone(), Real), fun([(&l, list)], sum));
}

fn million_list() -> Term {
    app(g("up"), [i(MILLION), nil(Real)])
}

#[test]
fn a_list_of_a_million_cells_is_folded_compared_scaled_converted_and_freed() {
    let mut linker = Linker::new();
    lists(&mut linker);
    // let l = up .. in (sum l, sum (2 *> l), sum (l <+> l), l = l <+> zero_like l)
    let expected = (MILLION * (MILLION + 1) / 2) as f64;
    let list = Type::list(Real);
    let l = var("l");
    let sum = |l: Term| app(g("sum"), [l]);
    let doubled = pt(Prim::Scale, [list.clone()], [r(2.0), v(&l)]);
    let both = pt(Prim::VectorAdd, [list.clone()], [v(&l), v(&l)]);
    let same = pt(Prim::VectorAdd, [list.clone()], [v(&l), pt(Prim::ZeroLike, [list.clone()], [v(&l)])]);
    let equal = pt(Prim::Equal, [list.clone()], [v(&l), same]);
    let results = AT.tuple([sum(v(&l)), sum(doubled), sum(both), equal]);
    match linker.run(&AT.bind(&l, list.clone(), million_list(), results)) {
        Ok(Value::Node(0, parts)) => match &parts[..] {
            [Value::Real(sum), Value::Real(doubled), Value::Real(both), Value::Bool(true)] => {
                assert_eq!((*sum, *doubled, *both), (expected, 2.0 * expected, 2.0 * expected));
            }
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
    let mut machine = Machine::new(&linker, Options::default());
    let value = machine.eval(&million_list()).unwrap();
    let data = machine.to_data(&value, &list).unwrap();
    let back = machine.from_data(&data, &list).unwrap();
    assert_eq!(machine.to_data(&back, &list).unwrap(), data);
    assert!(machine.report().peak_memory > 24_000_000);
}

#[test]
fn a_chain_of_a_million_closures_is_run_and_freed() {
    // grow n f = if n = 0 then f else grow (n - 1) (fun x -> f x + 1.0)
    let to = Type::fun(Real, Real);
    let (n, f, x, y) = (var("n"), var("f"), var("x"), var("y"));
    let wrapped = fun([(&x, Real)], add(app(v(&f), [v(&x)]), r(1.0)));
    let mut linker = Linker::new();
    let grow = AT.if_(eqi(v(&n), i(0)), v(&f), app(g("grow"), [subi(v(&n), i(1)), wrapped]));
    linker.define("grow", Type::funs([Int, to.clone()], to.clone()), fun([(&n, Int), (&f, to)], grow));
    let term = app(g("grow"), [i(MILLION), fun([(&y, Real)], v(&y)), r(0.5)]);
    assert_eq!(linker.real(&term), MILLION as f64 + 0.5);
}

#[test]
fn tail_calls_need_no_memory() {
    // go k acc = if k = 0 then acc else go (k - 1) (acc + 1), local and global
    let (go, k, acc) = (var("go"), var("k"), var("acc"));
    let next = [subi(v(&k), i(1)), addi(v(&acc), i(1))];
    let body = AT.if_(eqi(v(&k), i(0)), v(&acc), app(v(&go), next));
    let go_type = Type::funs([Int, Int], Int);
    let group = vec![(go.clone(), go_type, fun([(&k, Int), (&acc, Int)], body))];
    let term = AT.letrec(group, app(v(&go), [i(MILLION), i(0)]));
    let linker = Linker::new();
    let mut machine = Machine::new(&linker, Options { max_memory: 10_000, ..Options::default() });
    assert!(matches!(machine.eval(&term), Ok(Value::Int(MILLION))));
}

/// `ifold n (fun k a -> set a k (real k)) (build n (fun _ -> 0.0))`, with the update behind a function of three parameters.
fn filled(linker: &mut Linker, n: i64) -> Term {
    let (a, k, x) = (var("a"), var("k"), var("x"));
    let array = Type::array(Real);
    let put = fun([(&a, array.clone()), (&k, Int), (&x, Real)], pt(Prim::Set, [Real], [v(&a), v(&k), v(&x)]));
    linker.define("put", Type::funs([array.clone(), Int, Real], array.clone()), put);
    let (j, b, u) = (var("j"), var("b"), var("u"));
    let step = fun([(&j, Int), (&b, array.clone())], app(g("put"), [v(&b), v(&j), p(Prim::RealOfInt, [v(&j)])]));
    let zeros = pt(Prim::Build, [Real], [i(n), fun([(&u, Int)], r(0.0))]);
    pt(Prim::Ifold, [array], [i(n), step, zeros])
}

fn steps(linker: &Linker, term: &Term) -> u64 {
    let mut machine = Machine::new(linker, Options::default());
    linker.check(term);
    machine.eval(term).unwrap();
    machine.report().steps
}

#[test]
fn an_array_is_updated_in_place() {
    let mut linker = Linker::new();
    let small = filled(&mut linker, 1_000);
    let large = filled(&mut linker, 100_000);
    // Copying would show in the steps.
    let (small, large) = (steps(&linker, &small), steps(&linker, &large));
    assert!(large <= 100 * small, "{small} steps for 1000, {large} for 100000");
}

#[test]
fn an_array_inside_a_tuple_is_updated_in_place() {
    // ifold n (fun k s -> let a = s.0 in let c = s.1 in (set a k (a.(k) + 1.0), c + 1)) (build .., 0)
    let n = 20_000;
    let (k, s, a, c, u) = (var("k"), var("s"), var("a"), var("c"), var("u"));
    let array = Type::array(Real);
    let state = Type::tuple([array.clone(), Int]);
    let bumped = add(pt(Prim::Get, [Real], [v(&a), v(&k)]), r(1.0));
    let result = AT.tuple([pt(Prim::Set, [Real], [v(&a), v(&k), bumped]), addi(v(&c), i(1))]);
    let body = AT.bind(&a, array, AT.proj(v(&s), 0), AT.bind(&c, Int, AT.proj(v(&s), 1), result));
    let zeros = pt(Prim::Build, [Real], [i(n), fun([(&u, Int)], r(0.0))]);
    let step = fun([(&k, Int), (&s, state.clone())], body);
    let term = pt(Prim::Ifold, [state], [i(n), step, AT.tuple([zeros, i(0)])]);
    assert!(steps(&Linker::new(), &term) < 30 * n as u64);
}

#[test]
fn runaway_recursion_ends_at_the_memory_limit() {
    let n = var("n");
    let mut linker = Linker::new();
    let body = addi(i(1), app(g("down"), [v(&n)]));
    linker.define("down", Type::fun(Int, Int), fun([(&n, Int)], body));
    let options = Options { max_memory: 64 << 20, ..Options::default() };
    let error = linker.run_with(&app(g("down"), [i(0)]), options).unwrap_err();
    assert!(matches!(error.problem, Problem::MemoryLimit { .. }));
    assert!(error.calls.len() == 4 && error.more_calls > 100_000);
    assert_eq!(error.diagnostic().code, "E0612");
    // A huge array is refused before it is made.
    let u = var("u");
    let huge = pt(Prim::Build, [Real], [i(1 << 50), fun([(&u, Int)], r(0.0))]);
    assert!(matches!(linker.error(&huge).problem, Problem::MemoryLimit { .. }));
}

#[test]
fn endless_loops_end_at_the_step_limit_or_by_interrupt() {
    let n = var("n");
    let mut linker = Linker::new();
    linker.define("spin", Type::fun(Int, Int), fun([(&n, Int)], app(g("spin"), [v(&n)])));
    let term = app(g("spin"), [i(0)]);
    let options = Options { max_steps: Some(12_345), ..Options::default() };
    let error = linker.run_with(&term, options).unwrap_err();
    assert!(matches!(error.problem, Problem::StepLimit { limit: 12_345 }));
    let flag = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let options = Options { interrupt: Some(flag), ..Options::default() };
    assert!(matches!(linker.run_with(&term, options).unwrap_err().problem, Problem::Interrupted));
    // A program that needs exactly the limit finishes.
    let options = Options { max_steps: Some(3), ..Options::default() };
    assert!(linker.run_with(&addi(i(1), i(2)), options).is_ok());
    let options = Options { max_steps: Some(2), ..Options::default() };
    assert!(linker.run_with(&addi(i(1), i(2)), options).is_err());
}

#[test]
fn deep_terms_are_compiled_and_dropped() {
    let mut term = r(0.0);
    for _ in 0..200_000 {
        term = add(term, r(1.0));
    }
    let mut nested = r(0.0);
    for _ in 0..50_000 {
        let x = var("x");
        nested = AT.bind(&x, Real, r(1.0), add(v(&x), nested));
    }
    assert_eq!(
        Machine::new(&Linker::new(), Options::default()).eval(&term).map(|v| format!("{v:?}")).unwrap(),
        "200000.0"
    );
    assert_eq!(Linker::new().real(&nested), 50_000.0);
}

#[test]
fn dead_variables_do_not_hold_memory() {
    // A branch that does not use a big array lets go of it: the loop stays within a small limit.
    // go k a = if k = 0 then a.(0) else go (k - 1) (build 1000 (fun _ -> 1.0))
    let (k, a, u) = (var("k"), var("a"), var("u"));
    let array = Type::array(Real);
    let fresh = pt(Prim::Build, [Real], [i(1000), fun([(&u, Int)], r(1.0))]);
    let body = AT.if_(eqi(v(&k), i(0)), pt(Prim::Get, [Real], [v(&a), i(0)]), app(g("go"), [subi(v(&k), i(1)), fresh]));
    let mut linker = Linker::new();
    linker.define("go", Type::funs([Int, array.clone()], Real), fun([(&k, Int), (&a, array)], body));
    let term = app(g("go"), [i(100), reals(&[1.0])]);
    let options = Options { max_memory: 20_000, ..Options::default() };
    assert!(matches!(linker.run_with(&term, options), Ok(Value::Real(x)) if x == 1.0));
}
