//! Each invariant is broken once.

use super::*;
use crate::build::At;

const AT: At = At(Span { file: gradus_source::FileId(0), start: 0, end: 0 });

fn program() -> Program {
    let mut program = Program::default();
    for decl in TypeDecl::builtin() {
        program.types.insert(decl.name.base.clone(), decl);
    }
    program
}

fn found(term: &Term) -> Result<Type, String> {
    type_of(&Unlinked(&program()), term, &Environment::default()).map_err(|e| e.diagnostic().message)
}

fn message(term: &Term) -> String {
    match found(term) {
        Err(message) => message,
        Ok(ty) => panic!("it has type {ty:?}"),
    }
}

fn add(x: Term, y: Term) -> Term {
    AT.prim(Prim::AddReal, [x, y])
}

#[test]
fn types_are_recomputed() {
    let (f, x) = (Var::fresh("f"), Var::fresh("x"));
    let twice = AT.lambda(&x, Type::Real, AT.app(AT.var(&f), AT.app(AT.var(&f), AT.var(&x))));
    let to = Type::fun(Type::Real, Type::Real);
    assert_eq!(found(&AT.lambda(&f, to.clone(), twice)), Ok(Type::fun(to.clone(), to)));
    assert_eq!(found(&AT.tuple([AT.real(1.0), AT.unit()])), Ok(Type::tuple([Type::Real, Type::Unit])));
    let some = AT.construct(TypeName::new("option"), [Type::Int], 1, [AT.int(1)]);
    assert_eq!(found(&some), Ok(Type::option(Type::Int)));
}

#[test]
fn every_invariant_is_noticed() {
    let x = Var::fresh("x");
    let int_in_sum = add(AT.real(1.0), AT.int(1));
    assert_eq!(message(&int_in_sum), "core: the operand has type int, expected real");
    assert!(message(&AT.var(&x)).contains("is not bound"));
    let twice = AT.bind(&x, Type::Real, AT.real(1.0), AT.bind(&x, Type::Real, AT.real(1.0), AT.var(&x)));
    assert!(message(&twice).contains("is bound twice"));
    assert!(message(&AT.app(AT.int(1), AT.int(1))).contains("is applied"));
    assert!(message(&AT.prim(Prim::Exp, [])).contains("takes 1 arguments, not 0"));
    let no_type = AT.prim(Prim::Equal, [AT.int(1), AT.int(1)]);
    assert!(message(&no_type).contains("takes 1 type arguments, not 0"));
    assert!(message(&AT.proj(AT.tuple([AT.int(1), AT.int(2)]), 2)).contains("has no component 2"));
    let wrong_tag = AT.construct(TypeName::new("option"), [Type::Int], 2, []);
    assert!(message(&wrong_tag).contains("has no constructor 2"));
    let none = || AT.construct(TypeName::new("option"), [Type::Int], 0, []);
    let arm = |tag, vars| Arm { tag, vars, body: AT.int(0) };
    assert!(message(&AT.case(none(), vec![arm(0, vec![])], None)).contains("no arm for constructor 1"));
    assert!(message(&AT.case(none(), vec![arm(0, vec![]), arm(0, vec![])], None)).contains("two arms"));
    let wrong_var = vec![arm(1, vec![(Var::fresh("y"), Type::Real)])];
    assert!(message(&AT.case(none(), wrong_var, Some(AT.int(1)))).contains("the pattern variable has type real"));
    let branches = AT.if_(AT.bool(true), AT.int(1), AT.real(1.0));
    assert_eq!(message(&branches), "core: the other branch has type real, expected int");
    let value = AT.letrec(vec![(Var::fresh("r"), Type::Int, AT.int(1))], AT.int(1));
    assert!(message(&value).contains("is not a function"));
    let function = Type::fun(Type::Int, Type::Int);
    let z = || Var::fresh("z");
    let (z1, z2) = (z(), z());
    let identity = |z: &Var| AT.lambda(z, Type::Int, AT.var(z));
    let compared = AT.prim_at(Prim::Equal, [function], [identity(&z1), identity(&z2)]);
    assert!(message(&compared).contains("which contains functions"));
    let a = TypeVar::fresh("a");
    let open = AT.lambda(&Var::fresh("w"), Type::Var(a.clone()), AT.unit());
    assert!(message(&open).contains("not in scope"));
    let scheme = Scheme { vars: vec![(a, Constraint::Any)], ty: Type::Real };
    let polymorphic = TermKind::Let { var: z(), scheme, bound: add(AT.real(1.0), AT.real(1.0)), body: AT.unit() };
    assert!(message(&AT.term(polymorphic)).contains("is not a value"));
    let lift = TermKind::Lift { under: vec![], mode: Mode::Forward, ty: Type::Real, term: AT.real(1.0) };
    assert!(message(&AT.term(lift)).contains("not known here"));
    assert!(message(&AT.tuple([AT.int(1)])).contains("takes 2 arguments"));
    let derive = TermKind::Derive { op: DeriveOp::Diff, types: Arc::from([]), args: vec![AT.real(1.0), AT.real(1.0)] };
    assert!(message(&AT.term(derive)).contains("expected real -> real"));
}

#[test]
fn local_polymorphism_is_checked_at_its_instances() {
    // let id : 'a -> 'a = fun x -> x in (id [int] 1, id [real] 2.0)
    let a = TypeVar::fresh("a");
    let ta = Type::Var(a.clone());
    let (id, x) = (Var::fresh("id"), Var::fresh("x"));
    let scheme = Scheme { vars: vec![(a, Constraint::Any)], ty: Type::fun(ta.clone(), ta.clone()) };
    let at = |ty: Type| AT.term(TermKind::Var(id.clone(), Arc::from([ty])));
    let body = AT.tuple([AT.app(at(Type::Int), AT.int(1)), AT.app(at(Type::Real), AT.real(2.0))]);
    let bound = AT.lambda(&x, ta, AT.var(&x));
    let term = AT.term(TermKind::Let { var: id, scheme, bound, body });
    assert_eq!(found(&term), Ok(Type::tuple([Type::Int, Type::Real])));
}

#[test]
fn data_types_have_no_functions_inside() {
    let program = program();
    let context = Unlinked(&program);
    let data = |ty: &Type| is_data(&context, ty).unwrap();
    assert!(data(&Type::list(Type::array(Type::tuple([Type::Real, Type::String])))));
    assert!(!data(&Type::list(Type::fun(Type::Real, Type::Real))));
}
