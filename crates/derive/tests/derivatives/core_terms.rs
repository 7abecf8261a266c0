//! Derivatives of core terms written by hand, in every mode, against closed forms.

use gradus_core::build::At;
use gradus_core::{
    Body, Def, DeriveOp, Global, Mode, Prim, Program, Rules, Scheme, Term, TermKind, Type, TypeDecl, Var,
};
use gradus_derive::{Linker, Settings};
use gradus_reference::{Machine, Options, Value};
use gradus_source::Span;
use std::sync::Arc;

const AT: At = At(Span { file: gradus_source::FileId(0), start: 0, end: 0 });
const MODES: [Mode; 5] = [Mode::Forward, Mode::Vector, Mode::Continuation, Mode::Delta, Mode::Monadic];

fn program(defs: Vec<(&str, Type, Term)>) -> Arc<Program> {
    let mut program = Program::default();
    for decl in TypeDecl::builtin() {
        program.types.insert(decl.name.base.clone(), decl);
    }
    for (name, ty, term) in defs {
        let def = Def {
            name: name.into(),
            module: "Main".into(),
            scheme: Scheme::mono(ty),
            body: Body::Term(term),
            rules: Rules::default(),
            span: Span::default(),
        };
        program.defs.insert(name.into(), def);
    }
    Arc::new(program)
}

fn source(name: &str) -> Term {
    AT.global(Global::Source { name: name.into(), types: [].into() })
}

fn fun(name: &str, ty: Type, body: impl FnOnce(Term) -> Term) -> Term {
    let var = Var::fresh(name);
    let body = body(AT.var(&var));
    AT.lambda(&var, ty, body)
}

fn derive(op: DeriveOp, types: &[Type], args: &[Term]) -> Term {
    AT.term(TermKind::Derive { op, types: types.into(), args: args.to_vec() })
}

fn run(program: &Arc<Program>, mode: Mode, term: &Term, ty: &Type) -> Value {
    let linker = Linker::new(program.clone(), Settings { reverse: mode, check: true });
    let term = linker.expand(term, ty).unwrap_or_else(|d| panic!("{mode}: {}", d.message));
    let mut machine = Machine::new(&linker, Options::default());
    machine.eval(&term).unwrap_or_else(|e| panic!("{mode}: {:?}", e))
}

fn real(value: &Value) -> f64 {
    match value {
        Value::Real(x) => *x,
        other => panic!("not a real: {other:?}"),
    }
}

fn close(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() <= 1e-12 * (1.0 + expected.abs()), "{what}: {found}, expected {expected}");
}

/// `fun x -> x * x + sin x`
fn example() -> Term {
    fun("x", Type::Real, |x| {
        let square = AT.prim(Prim::MulReal, [x.clone(), x.clone()]);
        AT.prim(Prim::AddReal, [square, AT.prim(Prim::Sin, [x])])
    })
}

#[test]
fn first_and_second_derivatives() {
    let function = Type::fun(Type::Real, Type::Real);
    let program = program(vec![("f", function, example())]);
    for mode in MODES {
        let grad = derive(DeriveOp::Grad, &[Type::Real], &[source("f"), AT.real(1.5)]);
        close(real(&run(&program, mode, &grad, &Type::Real)), 3.0 + 1.5f64.cos(), mode.key());
        let slope = fun("x", Type::Real, |x| derive(DeriveOp::Grad, &[Type::Real], &[source("f"), x]));
        let second = derive(DeriveOp::Grad, &[Type::Real], &[slope, AT.real(1.5)]);
        close(real(&run(&program, mode, &second, &Type::Real)), 2.0 - 1.5f64.sin(), mode.key());
        let hessian = derive(DeriveOp::Hvp, &[Type::Real], &[source("f"), AT.real(1.5), AT.real(2.0)]);
        close(real(&run(&program, mode, &hessian, &Type::Real)), 2.0 * (2.0 - 1.5f64.sin()), mode.key());
    }
}
