//! Short ways to write terms, for passes that produce them.

use crate::*;
use gradus_source::Span;
use std::sync::Arc;

/// Writes terms that all come from one place in the source.
#[derive(Clone, Copy, Debug, Default)]
pub struct At(pub Span);

impl At {
    pub fn term(self, kind: TermKind) -> Term {
        Term::new(kind, self.0)
    }

    pub fn var(self, var: &Var) -> Term {
        self.term(TermKind::Var(var.clone(), Arc::from([])))
    }

    pub fn global(self, global: Global) -> Term {
        self.term(TermKind::Global(global))
    }

    pub fn real(self, value: f64) -> Term {
        self.term(TermKind::Literal(Literal::Real(value)))
    }

    pub fn int(self, value: i64) -> Term {
        self.term(TermKind::Literal(Literal::Int(value)))
    }

    pub fn bool(self, value: bool) -> Term {
        self.term(TermKind::Literal(Literal::Bool(value)))
    }

    pub fn unit(self) -> Term {
        self.term(TermKind::Literal(Literal::Unit))
    }

    pub fn lambda(self, param: &Var, ty: Type, body: Term) -> Term {
        self.term(TermKind::Lambda(Arc::new(Lambda { param: param.clone(), ty, body, origin: None })))
    }

    /// `fun x y z -> body`
    pub fn lambdas(self, params: &[(Var, Type)], body: Term) -> Term {
        params.iter().rev().fold(body, |body, (var, ty)| self.lambda(var, ty.clone(), body))
    }

    pub fn app(self, function: Term, argument: Term) -> Term {
        self.term(TermKind::App(function, argument))
    }

    /// `f a b c`
    pub fn apps(self, function: Term, arguments: impl IntoIterator<Item = Term>) -> Term {
        arguments.into_iter().fold(function, |f, x| self.app(f, x))
    }

    /// A monomorphic `let`.
    pub fn bind(self, var: &Var, ty: Type, bound: Term, body: Term) -> Term {
        self.term(TermKind::Let { var: var.clone(), scheme: Scheme::mono(ty), bound, body })
    }

    pub fn letrec(self, bindings: Vec<(Var, Type, Term)>, body: Term) -> Term {
        let bindings = bindings.into_iter().map(|(v, t, e)| (v, Scheme::mono(t), e)).collect();
        self.term(TermKind::LetRec { bindings, body })
    }

    pub fn prim(self, prim: Prim, args: impl Into<Vec<Term>>) -> Term {
        self.prim_at(prim, [], args)
    }

    pub fn prim_at(self, prim: Prim, types: impl Into<Arc<[Type]>>, args: impl Into<Vec<Term>>) -> Term {
        self.term(TermKind::Prim { prim, types: types.into(), args: args.into(), site: Site::default() })
    }

    pub fn tuple(self, items: impl Into<Vec<Term>>) -> Term {
        self.term(TermKind::Tuple(items.into()))
    }

    pub fn proj(self, term: Term, index: usize) -> Term {
        self.term(TermKind::Proj { index, term })
    }

    pub fn construct(
        self,
        name: TypeName,
        types: impl Into<Arc<[Type]>>,
        tag: usize,
        args: impl Into<Vec<Term>>,
    ) -> Term {
        self.term(TermKind::Construct { name, types: types.into(), tag, args: args.into() })
    }

    pub fn case(self, scrutinee: Term, arms: Vec<Arm>, default: Option<Term>) -> Term {
        self.term(TermKind::Case { scrutinee, arms, default })
    }

    pub fn if_(self, condition: Term, then: Term, otherwise: Term) -> Term {
        self.term(TermKind::If { condition, then, otherwise })
    }
}
