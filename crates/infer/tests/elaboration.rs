//! What comes out: core terms. That they are well typed is checked by every test that accepts a program.

mod common;
use common::{accept, body};
use gradus_core::{Body, DeriveOp, Global, ItemKind, Literal, Prim, Term, TermKind};

fn count(term: &Term, wanted: &dyn Fn(&TermKind) -> bool) -> usize {
    let mut total = usize::from(wanted(&term.kind));
    gradus_core::traverse::for_each_child(term, &mut |child| total += count(child, wanted));
    total
}

fn prims(term: &Term, prim: Prim) -> usize {
    count(term, &|kind| matches!(kind, TermKind::Prim { prim: p, .. } if *p == prim))
}

#[test]
fn arithmetic_is_decided() {
    let inferred = accept(&[("Main", "let f x = x * 2\nlet g (n : int) = n * 2 ^ 3\nlet h x = x ^ 2")]);
    assert_eq!(prims(body(&inferred.program, "f"), Prim::MulReal), 1);
    assert_eq!(prims(body(&inferred.program, "g"), Prim::MulInt), 1);
    assert_eq!(prims(body(&inferred.program, "g"), Prim::PowInt), 1);
    assert_eq!(prims(body(&inferred.program, "h"), Prim::PowRealInt), 1);
    let two = |kind: &TermKind| matches!(kind, TermKind::Literal(Literal::Real(x)) if *x == 2.0);
    assert_eq!(count(body(&inferred.program, "f"), &two), 1);
}

#[test]
fn derivative_forms_and_primitives_are_saturated() {
    let inferred = accept(&[("Main", "let a = grad sin 1.0\nlet b = grad sin\nlet c = grad\nlet d = maximum 1.0")]);
    for name in ["a", "b", "c"] {
        let full =
            |kind: &TermKind| matches!(kind, TermKind::Derive { op: DeriveOp::Grad, args, .. } if args.len() == 2);
        assert_eq!(count(body(&inferred.program, name), &full), 1, "{name}");
    }
    let full = |kind: &TermKind| matches!(kind, TermKind::Prim { prim: Prim::Maximum, args, .. } if args.len() == 2);
    assert_eq!(count(body(&inferred.program, "d"), &full), 1);
}

#[test]
fn an_arm_that_is_reached_in_several_ways_stands_once() {
    let source = "let f a b = match (a, b) with (Some x, _) | (_, Some x) -> sin x | (None, None) -> 0.0";
    let inferred = accept(&[("Main", source)]);
    assert_eq!(prims(body(&inferred.program, "f"), Prim::Sin), 1);
    // The tuple is only there to be matched.
    assert_eq!(count(body(&inferred.program, "f"), &|kind| matches!(kind, TermKind::Tuple(_))), 0);
}

#[test]
fn uses_inside_a_recursive_group_are_at_its_own_variables() {
    let source = "let rec f x y = g y x and g x y = f y x\nlet use_it = f 1 \"a\"";
    let inferred = accept(&[("Main", source)]);
    let f = &inferred.program.defs["f"];
    let g = &inferred.program.defs["g"];
    assert_eq!(f.scheme.vars.len(), g.scheme.vars.len());
    let Body::Term(term) = &f.body else { panic!("f has a body") };
    let own = |kind: &TermKind| match kind {
        TermKind::Global(Global::Source { name, types }) => &**name == "g" && types.len() == f.scheme.vars.len(),
        _ => false,
    };
    assert_eq!(count(term, &own), 1);
}

#[test]
fn items_of_the_program_that_is_run() {
    let source = "show 1 + 1\ncheck 1.0 < 2.0\ncheck not false\nplot [| 1.0; 2.0 |] to \"a.svg\"\ndata d : real[] from \"d.csv\"";
    let inferred = accept(&[("Main", source)]);
    let items = &inferred.program.items;
    assert_eq!(items.len(), 4);
    assert!(matches!(items[0].kind, ItemKind::Show));
    assert!(matches!(&items[1].kind, ItemKind::Check { sides: Some((_, _, gradus_core::Type::Real)) }));
    assert!(matches!(&items[2].kind, ItemKind::Check { sides: None }));
    assert!(matches!(&items[3].kind, ItemKind::Plot { file: Some(file) } if &**file == "a.svg"));
    assert!(matches!(&inferred.program.defs["d"].body, Body::Data { file, .. } if &**file == "d.csv"));
}

#[test]
fn rules_belong_to_their_function() {
    let source = "let mul (x : real) (y : real) : real = x * y
derivative mul x y dz = (y * dz, x * dz)
tangent mul x y dx dy = dx * y + x * dy
let scale (k : real) (a : 'a) : 'a = k *> a
derivative scale k a da = (a <.> da, k *> da)";
    let inferred = accept(&[("Main", source)]);
    let rules = &inferred.program.defs["mul"].rules;
    assert_eq!((rules.arity, rules.reverse.is_some(), rules.forward.is_some()), (2, true, true));
    assert!(inferred.program.defs["scale"].rules.reverse.is_some());
}

#[test]
fn top_level_patterns_become_definitions() {
    let inferred = accept(&[("Main", "let (a, (b, _)) = (1, (2.0, \"c\"))\nlet c = b + 1.0")]);
    let shown = |name: &str| inferred.signature(name).map(|s| s.shown).unwrap_or_default();
    assert_eq!((shown("a"), shown("b")), ("int".to_string(), "real".to_string()));
    assert!(matches!(&inferred.program.defs["a"].body, Body::Term(_)));
}
