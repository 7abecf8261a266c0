//! A linker for programs without derivatives, and short ways to write their terms.
#![allow(dead_code)]

use gradus_core::build::At;
use gradus_core::instance::instance;
use gradus_core::{
    Body, Constraint, Def, Definition, Definitions, Global, Lambda, Mode, Prim, Program, Rules, Scheme, Term, Type,
    TypeDecl, TypeName, TypeVar, Var,
};
use gradus_reference::{Machine, Options, RuntimeError, Value};
use gradus_source::{Diagnostic, FileId, Span};
use std::sync::Arc;

#[derive(Default)]
pub struct Linker {
    pub program: Program,
}

impl Linker {
    pub fn new() -> Self {
        let mut linker = Linker::default();
        TypeDecl::builtin().into_iter().for_each(|decl| linker.declare(decl));
        linker
    }

    pub fn declare(&mut self, decl: TypeDecl) {
        self.program.types.insert(decl.name.base.clone(), decl);
    }

    pub fn define(&mut self, name: &str, ty: Type, term: Term) {
        self.define_scheme(name, Scheme::mono(ty), Body::Term(term));
    }

    pub fn define_generic(&mut self, name: &str, var: &TypeVar, ty: Type, term: Term) {
        self.define_scheme(name, Scheme { vars: vec![(var.clone(), Constraint::Any)], ty }, Body::Term(term));
    }

    pub fn define_scheme(&mut self, name: &str, scheme: Scheme, body: Body) {
        let def = Def {
            name: name.into(),
            module: "Main".into(),
            scheme,
            body,
            rules: Rules::default(),
            span: Span::default(),
        };
        self.program.defs.insert(name.into(), def);
    }

    pub fn run(&self, term: &Term) -> Result<Value, Box<RuntimeError>> {
        self.run_with(term, Options::default())
    }

    /// Checks the program and the term by core's own checker, then runs the term.
    pub fn run_with(&self, term: &Term, options: Options) -> Result<Value, Box<RuntimeError>> {
        self.check(term);
        Machine::new(self, options).eval(term)
    }

    pub fn check(&self, term: &Term) -> Type {
        let context = gradus_core::check::Unlinked(&self.program);
        if let Err(error) = gradus_core::check::check_program(&self.program) {
            panic!("{}", error.diagnostic().message);
        }
        match gradus_core::check::type_of(&context, term, &Default::default()) {
            Ok(ty) => ty,
            Err(error) => panic!("{}", error.diagnostic().message),
        }
    }

    pub fn real(&self, term: &Term) -> f64 {
        match self.run(term) {
            Ok(Value::Real(x)) => x,
            other => panic!("{other:?}"),
        }
    }

    pub fn int(&self, term: &Term) -> i64 {
        match self.run(term) {
            Ok(Value::Int(x)) => x,
            other => panic!("{other:?}"),
        }
    }

    pub fn bool(&self, term: &Term) -> bool {
        match self.run(term) {
            Ok(Value::Bool(x)) => x,
            other => panic!("{other:?}"),
        }
    }

    pub fn error(&self, term: &Term) -> Box<RuntimeError> {
        match self.run(term) {
            Err(error) => error,
            Ok(value) => panic!("{value:?}"),
        }
    }
}

impl Definitions for Linker {
    fn definition(&self, global: &Global) -> Result<Arc<Definition>, Box<Diagnostic>> {
        let Global::Source { name, types } = global else { panic!("{global:?}") };
        let def = self.program.defs.get(name).ok_or_else(|| Box::new(Diagnostic::error("E0101", "unknown")))?;
        let term = match &def.body {
            Body::Term(term) => Some(instance(&def.scheme, term, types)),
            Body::Data { .. } => None,
        };
        Ok(Arc::new(Definition { global: global.clone(), ty: def.scheme.instantiate(types), term }))
    }

    fn type_decl(&self, name: &TypeName) -> Result<Arc<TypeDecl>, Box<Diagnostic>> {
        match self.program.types.get(&name.base) {
            Some(decl) => Ok(Arc::new(decl.clone())),
            None => Err(Box::new(Diagnostic::error("E0101", "unknown type"))),
        }
    }

    fn differentiate(&self, _: &Arc<Lambda>, _: Mode) -> Result<Arc<Lambda>, Box<Diagnostic>> {
        panic!("no derivatives here")
    }
}

pub const AT: At = At(Span { file: FileId(0), start: 0, end: 0 });

/// A place that can be recognised.
pub fn at(start: u32) -> At {
    At(Span::new(FileId(0), start, start + 1))
}

pub fn r(x: f64) -> Term {
    AT.real(x)
}

pub fn i(k: i64) -> Term {
    AT.int(k)
}

pub fn v(var: &Var) -> Term {
    AT.var(var)
}

pub fn g(name: &str) -> Term {
    AT.global(Global::Source { name: name.into(), types: Arc::from([]) })
}

pub fn g_at(name: &str, types: impl Into<Arc<[Type]>>) -> Term {
    AT.global(Global::Source { name: name.into(), types: types.into() })
}

pub fn var(name: &str) -> Var {
    Var::fresh(name)
}

pub fn p(prim: Prim, args: impl Into<Vec<Term>>) -> Term {
    AT.prim(prim, args)
}

pub fn pt(prim: Prim, types: impl Into<Arc<[Type]>>, args: impl Into<Vec<Term>>) -> Term {
    AT.prim_at(prim, types, args)
}

pub fn fun<const N: usize>(params: [(&Var, Type); N], body: Term) -> Term {
    let params: Vec<(Var, Type)> = params.into_iter().map(|(v, t)| (v.clone(), t)).collect();
    AT.lambdas(&params, body)
}

pub fn app<const N: usize>(f: Term, args: [Term; N]) -> Term {
    AT.apps(f, args)
}

pub fn add(x: Term, y: Term) -> Term {
    p(Prim::AddReal, [x, y])
}

pub fn mul(x: Term, y: Term) -> Term {
    p(Prim::MulReal, [x, y])
}

pub fn addi(x: Term, y: Term) -> Term {
    p(Prim::AddInt, [x, y])
}

pub fn subi(x: Term, y: Term) -> Term {
    p(Prim::SubInt, [x, y])
}

pub fn eqi(x: Term, y: Term) -> Term {
    pt(Prim::Equal, [Type::Int], [x, y])
}

pub fn lt(x: Term, y: Term) -> Term {
    pt(Prim::Less, [Type::Real], [x, y])
}

pub fn nil(element: Type) -> Term {
    AT.construct(TypeName::new("list"), [element], 0, [])
}

pub fn cons(element: Type, head: Term, tail: Term) -> Term {
    AT.construct(TypeName::new("list"), [element], 1, [head, tail])
}

pub fn reals(items: &[f64]) -> Term {
    AT.term(gradus_core::TermKind::ArrayLiteral { element: Type::Real, items: items.iter().map(|x| r(*x)).collect() })
}

/// `match list with [] -> empty | head :: tail -> body`
pub fn match_list(list: Term, element: Type, empty: Term, head: &Var, tail: &Var, body: Term) -> Term {
    let vars = vec![(head.clone(), element.clone()), (tail.clone(), Type::list(element))];
    let arms = vec![gradus_core::Arm { tag: 0, vars: vec![], body: empty }, gradus_core::Arm { tag: 1, vars, body }];
    AT.case(list, arms, None)
}
