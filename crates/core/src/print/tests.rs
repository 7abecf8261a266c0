//! Terms and files as text. That the front end reads them back is tested where there is a front end.

use super::*;
use crate::build::At;
use crate::check::Unlinked;
use crate::*;
use gradus_source::Span;
use std::sync::Arc;

const AT: At = At(Span { file: gradus_source::FileId(0), start: 0, end: 0 });

fn program() -> Program {
    let mut program = Program::default();
    let mut declare = |decl: TypeDecl| {
        program.types.insert(decl.name.base.clone(), decl);
    };
    TypeDecl::builtin().into_iter().for_each(&mut declare);
    let a = TypeVar::fresh("a");
    let ta = Type::Var(a.clone());
    let tree = Type::named("tree", [ta.clone()]);
    declare(TypeDecl {
        name: TypeName::new("tree"),
        params: vec![a],
        body: TypeBody::Variant(vec![("Leaf".into(), vec![ta]), ("Node".into(), vec![tree.clone(), tree])]),
        span: Span::default(),
    });
    declare(TypeDecl {
        name: TypeName::new("point"),
        params: vec![],
        body: TypeBody::Record(vec![("x".into(), Type::Real), ("y".into(), Type::Real)]),
        span: Span::default(),
    });
    program
}

fn def(program: &mut Program, name: &str, scheme: Scheme, term: Term) {
    let def = Def {
        name: name.into(),
        module: "Main".into(),
        scheme,
        body: Body::Term(term),
        rules: Rules::default(),
        span: Span::default(),
    };
    program.defs.insert(name.into(), def);
}

fn show(term: &Term) -> String {
    let program = program();
    print_term(Some(&Unlinked(&program)), term, Options::default())
}

fn real(x: f64) -> Term {
    AT.real(x)
}

fn prim(prim: Prim, args: impl Into<Vec<Term>>) -> Term {
    AT.prim(prim, args)
}

#[test]
fn operators_get_the_parentheses_they_need() {
    let (a, b, c) = (real(1.0), real(2.0), real(3.0));
    let sum = prim(Prim::AddReal, [a.clone(), b.clone()]);
    let difference = prim(Prim::SubReal, [b.clone(), c.clone()]);
    assert_eq!(show(&prim(Prim::MulReal, [sum.clone(), c.clone()])), "(1.0 + 2.0) * 3.0");
    assert_eq!(show(&prim(Prim::SubReal, [a.clone(), difference.clone()])), "1.0 - (2.0 - 3.0)");
    assert_eq!(show(&prim(Prim::SubReal, [sum.clone(), c.clone()])), "1.0 + 2.0 - 3.0");
    let power = prim(Prim::PowReal, [b.clone(), c.clone()]);
    assert_eq!(show(&prim(Prim::PowReal, [a.clone(), power.clone()])), "1.0 ** 2.0 ** 3.0");
    assert_eq!(show(&prim(Prim::PowReal, [power.clone(), a.clone()])), "(2.0 ** 3.0) ** 1.0");
    assert_eq!(show(&prim(Prim::NegReal, [power])), "-2.0 ** 3.0");
    assert_eq!(show(&prim(Prim::AddReal, [a.clone(), real(-2.0)])), "1.0 + (-2.0)");
    assert_eq!(show(&prim(Prim::Exp, [real(-2.0)])), "exp (-2.0)");
    assert_eq!(show(&prim(Prim::Exp, [prim(Prim::Exp, [sum.clone()])])), "exp (exp (1.0 + 2.0))");
    let less = AT.prim_at(Prim::Less, [Type::Real], [sum, c.clone()]);
    let both = AT.if_(less.clone(), AT.if_(AT.bool(true), AT.bool(true), AT.bool(false)), AT.bool(false));
    assert_eq!(show(&both), "1.0 + 2.0 < 3.0 && true && true");
    let either = AT.if_(less.clone(), AT.bool(true), less);
    assert_eq!(show(&either), "1.0 + 2.0 < 3.0 || 1.0 + 2.0 < 3.0");
    assert_eq!(show(&real(f64::NAN)), "0.0 / 0.0");
    assert_eq!(show(&AT.int(i64::MIN)), "-9223372036854775807 - 1");
}

#[test]
fn names_are_changed_only_where_they_clash() {
    let x = || Var::fresh("x");
    let (x1, x2, x3, e) = (x(), x(), x(), Var::fresh("exp"));
    // fun x -> let x' = x + x in x' * x, and the same name again where the first is out of scope
    let inner = AT.bind(
        &x2,
        Type::Real,
        prim(Prim::AddReal, [AT.var(&x1), AT.var(&x1)]),
        prim(Prim::MulReal, [AT.var(&x2), AT.var(&x1)]),
    );
    let function = AT.lambda(&x1, Type::Real, inner);
    let pair = AT.tuple([function, AT.lambda(&x3, Type::Real, prim(Prim::Exp, [AT.var(&x3)]))]);
    assert_eq!(show(&pair), "((fun x -> let x' = x + x in x' * x), (fun x -> exp x))");
    // A variable does not hide a primitive.
    let hidden = AT.bind(&e, Type::Real, real(1.0), prim(Prim::Exp, [AT.var(&e)]));
    assert_eq!(show(&hidden), "let exp' = 1.0 in exp exp'");
    let unused = AT.bind(&x(), Type::Real, real(1.0), real(2.0));
    assert_eq!(show(&unused), "let _ = 1.0 in 2.0");
}

#[test]
fn data_are_written_with_their_names() {
    let point = |x, y| AT.construct(TypeName::new("point"), [], 0, [real(x), real(y)]);
    let leaf = |x: f64| AT.construct(TypeName::new("tree"), [Type::Real], 0, [real(x)]);
    assert_eq!(show(&AT.proj(point(1.0, 2.0), 1)), "{ x = 1.0; y = 2.0 }.y");
    let node = AT.construct(TypeName::new("tree"), [Type::Real], 1, [leaf(1.0), leaf(-2.0)]);
    assert_eq!(show(&node), "Node (Leaf 1.0, Leaf (-2.0))");
    let list = |items: &[f64], end: Term| {
        items.iter().rev().fold(end, |tail, x| AT.construct(TypeName::new("list"), [Type::Real], 1, [real(*x), tail]))
    };
    let nil = || AT.construct(TypeName::new("list"), [Type::Real], 0, []);
    assert_eq!(show(&list(&[1.0, 2.0], nil())), "[1.0; 2.0]");
    let l = Var::fresh("l");
    let open = AT.lambda(&l, Type::list(Type::Real), list(&[1.0, 2.0], AT.var(&l)));
    assert_eq!(show(&open), "fun l -> 1.0 :: 2.0 :: l");
    let t = Var::fresh("t");
    let triple = Type::tuple([Type::Real, Type::Int, Type::Real]);
    assert_eq!(
        show(&AT.lambda(&t, triple, AT.tuple([AT.proj(AT.var(&t), 2), AT.var(&t)]))),
        "fun t -> ((let (_, _, it) = t in it), t)"
    );
    let p = Var::fresh("p");
    let pair = Type::tuple([Type::Real, Type::Int]);
    assert_eq!(
        show(&AT.lambda(&p, pair.clone(), AT.tuple([AT.proj(AT.var(&p), 1), AT.var(&p)]))),
        "fun p -> (snd p, p)"
    );
    // Taking apart what is used for nothing else becomes a pattern.
    let (p, a, b) = (Var::fresh("p"), Var::fresh("a"), Var::fresh("b"));
    let sum = prim(Prim::AddReal, [AT.var(&a), prim(Prim::RealOfInt, [AT.var(&b)])]);
    let body = AT.bind(&a, Type::Real, AT.proj(AT.var(&p), 0), AT.bind(&b, Type::Int, AT.proj(AT.var(&p), 1), sum));
    assert_eq!(show(&AT.lambda(&p, pair.clone(), body.clone())), "fun (a, b) -> a + real b");
    assert_eq!(show(&AT.bind(&p, pair, AT.tuple([real(1.0), AT.int(2)]), body)), "let (a, b) = (1.0, 2) in a + real b");
}

#[test]
fn matches_inside_matches_are_parenthesised() {
    let option = |t: &Var, some: Term, none: Term| {
        let x = Var::fresh("x");
        let arms = vec![Arm { tag: 1, vars: vec![(x, Type::Int)], body: some }];
        AT.case(AT.var(t), arms, Some(none))
    };
    let t = Var::fresh("t");
    let inner = option(&t, AT.int(1), AT.int(2));
    let outer = option(&t, inner.clone(), inner);
    let term = AT.lambda(&t, Type::option(Type::Int), outer);
    let expected = "fun t -> match t with | Some _ -> (match t with | Some _ -> 1 | _ -> 2) | _ -> match t with | Some _ -> 1 | _ -> 2";
    let program = program();
    let wide = Options { width: 200, ..Options::default() };
    assert_eq!(print_term(Some(&Unlinked(&program)), &term, wide), expected);
}

#[test]
fn a_program_becomes_a_file() {
    let mut program = program();
    let (t, x, l, r) = (Var::fresh("t"), Var::fresh("x"), Var::fresh("l"), Var::fresh("r"));
    let tree = Type::named("tree", [Type::Real]);
    let total = |t: &Var| AT.app(AT.global(Global::Source { name: "total".into(), types: Arc::from([]) }), AT.var(t));
    let arms = vec![
        Arm { tag: 0, vars: vec![(x.clone(), Type::Real)], body: AT.var(&x) },
        Arm {
            tag: 1,
            vars: vec![(l.clone(), tree.clone()), (r.clone(), tree.clone())],
            body: prim(Prim::AddReal, [total(&l), total(&r)]),
        },
    ];
    let body = AT.lambda(&t, tree.clone(), AT.case(AT.var(&t), arms, None));
    def(&mut program, "total", Scheme::mono(Type::fun(tree, Type::Real)), body);
    def(&mut program, "Other.start", Scheme::mono(Type::Real), real(0.5));
    let start = AT.global(Global::Source { name: "Other.start".into(), types: Arc::from([]) });
    let leaf = AT.construct(TypeName::new("tree"), [Type::Real], 0, [start]);
    let name = Var::fresh("leaf");
    let tree = Type::named("tree", [Type::Real]);
    let term = AT.bind(&name, tree, leaf, total(&name));
    program.items.push(Item { kind: ItemKind::Show, term, ty: Type::Real, span: Span::default() });
    crate::check::check_program(&program).unwrap();
    let expected = "\
type 'a tree = Leaf of 'a | Node of 'a tree * 'a tree

type point = { x : real; y : real }

let rec total (t : real tree) : real = match t with | Leaf x -> x | Node (l, r) -> total l + total r

let start : real = 0.5

show let leaf = Leaf start in total leaf
";
    assert_eq!(print_program(&program, Options::default()), expected);
    let narrow = Options { width: 40, ..Options::default() };
    let text = print_program(&program, narrow);
    assert!(text.lines().all(|line| line.chars().count() <= 48), "{text}");
}

#[test]
fn deep_terms_are_printed() {
    let mut term = real(0.0);
    for _ in 0..100_000 {
        term = prim(Prim::AddReal, [real(1.0), prim(Prim::NegReal, [term])]);
    }
    assert!(print_term(None, &term, Options::default()).len() > 100_000);
}

#[test]
fn the_documentation_has_a_row_for_each_primitive() {
    let page = crate::prim::documentation();
    assert_eq!(page.lines().filter(|line| line.starts_with("| `")).count(), Prim::ALL.len());
    assert!(page.contains("| `log x` | `real -> real` | natural logarithm | `1.0 / x` | `x > 0` |"), "{page}");
    assert!(page.contains("`if x < 0.0 then -1.0 else if 0.0 < x then 1.0 else 0.0`"), "{page}");
}

#[test]
fn long_terms_break_where_a_reader_would() {
    let (f, x, y, p) = (Var::fresh("f"), Var::fresh("x"), Var::fresh("y"), Var::fresh("p"));
    let pair = Type::tuple([Type::Real, Type::Real]);
    let product = prim(Prim::MulReal, [AT.var(&x), AT.proj(AT.var(&p), 0)]);
    let body = AT.bind(&y, Type::Real, product, prim(Prim::AddReal, [AT.var(&y), prim(Prim::Sin, [AT.var(&y)])]));
    let function = AT.lambda(&x, Type::Real, body);
    let to = Type::fun(Type::Real, Type::Real);
    let result = AT.tuple([AT.app(AT.var(&f), AT.proj(AT.var(&p), 1)), AT.app(AT.var(&f), AT.real(0.5))]);
    let term = AT.lambda(&p, pair, AT.bind(&f, to, function, result));
    let program = program();
    let narrow = Options { width: 30, ..Options::default() };
    let expected = "\
fun p ->
  let f x =
    let y = x * fst p in
    y + sin y in
  (f (snd p), f 0.5)";
    assert_eq!(print_term(Some(&Unlinked(&program)), &term, narrow), expected);
}
