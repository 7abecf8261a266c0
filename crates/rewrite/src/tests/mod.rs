//! What must hold of the rules and of the optimiser. Values come from the evaluator, on both sides of a rule.

mod budget;
mod derivation;
mod instance;
mod rows;
mod terms;

use gradus_core::build::At;
use gradus_core::{Body, Def, DeriveOp, Global, Program, Rules, Scheme, Symbol, Term, TermKind, Type, TypeDecl, Var};
use gradus_derive::{Linker, Settings};
use gradus_reference::{Machine, Options, Value};
use std::sync::Arc;

pub const AT: At = At(gradus_source::Span { file: gradus_source::FileId(0), start: 0, end: 0 });

/// A program with one function of a tuple of reals.
pub struct Function {
    pub input: Var,
    pub inputs: usize,
    pub body: Term,
    pub result: Type,
}

impl Function {
    pub fn input_type(&self) -> Type {
        Type::tuple(vec![Type::Real; self.inputs])
    }

    fn linker(&self) -> Linker {
        let name: Symbol = "f".into();
        let ty = Type::fun(self.input_type(), self.result.clone());
        let def = Def {
            name: name.clone(),
            module: "Main".into(),
            scheme: Scheme::mono(ty),
            body: Body::Term(AT.lambda(&self.input, self.input_type(), self.body.clone())),
            rules: Rules::default(),
            span: AT.0,
        };
        let types = TypeDecl::builtin().into_iter().map(|decl| (decl.name.base.clone(), decl)).collect();
        let program = Program { types, defs: [(name, def)].into_iter().collect(), items: vec![], irregular: false };
        gradus_core::check::check_program(&program).unwrap_or_else(|error| {
            panic!(
                "{}\n{}",
                error.diagnostic().message,
                gradus_core::print::print_program(&program, Default::default())
            )
        });
        Linker::new(Arc::new(program), Settings::default())
    }

    /// The value at a point and the derivative in a direction, as text; or the code of the error that stops it.
    pub fn run(&self, point: &[f64], direction: &[f64]) -> Result<[Value; 2], String> {
        let linker = self.linker();
        let f = AT.global(Global::Source { name: "f".into(), types: Arc::from([]) });
        let tuple = |xs: &[f64]| AT.tuple(xs.iter().map(|x| AT.real(*x)).collect::<Vec<_>>());
        let types = [self.input_type(), self.result.clone()];
        let args = vec![f.clone(), tuple(point), tuple(direction)];
        let jvp = AT.term(TermKind::Derive { op: DeriveOp::Jvp, types: types.into(), args });
        let run = |term: &Term| {
            let term = linker.expand(term, &self.result).map_err(|refused| refused.message.clone())?;
            let mut machine = Machine::new(&linker, Options { max_steps: Some(100_000), ..Options::default() });
            machine.eval(&term).map_err(|error| error.diagnostic().code.to_string())
        };
        Ok([run(&AT.app(f, tuple(point)))?, run(&jvp)?])
    }
}

/// All reals of a value, in order; other leaves as text.
pub fn leaves(value: &Value) -> Vec<f64> {
    match value {
        Value::Real(x) => vec![*x],
        Value::Int(k) => vec![*k as f64],
        Value::Bool(p) => vec![f64::from(u8::from(*p))],
        Value::Reals(xs) => xs.to_vec(),
        Value::Ints(xs) => xs.iter().map(|k| *k as f64).collect(),
        Value::Array(items) => items.iter().flat_map(leaves).collect(),
        Value::Node(tag, fields) => std::iter::once(f64::from(*tag)).chain(fields.iter().flat_map(leaves)).collect(),
        Value::Unit | Value::String(_) | Value::Fun(..) => vec![],
    }
}

/// Bit for bit, all NaN being one.
pub fn identical(a: &[f64], b: &[f64]) -> bool {
    let same = |x: &f64, y: &f64| x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan());
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| same(x, y))
}

/// Up to rounding.
pub fn close(a: &[f64], b: &[f64]) -> bool {
    let near = |x: &f64, y: &f64| (x - y).abs() <= 1e-9 * (1.0 + x.abs().max(y.abs()));
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| near(x, y))
}
