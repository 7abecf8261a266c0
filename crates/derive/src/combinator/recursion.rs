//! Recursion inside a function: `let rec` and `iterate` become definitions of their own, which take what they capture as parameters. A definition is a
//! constant of the combinator language, and may be recursive.

use super::compile::Compiler;
use crate::typing::result_type;
use crate::Made;
use gradus_core::build::At;
use gradus_core::traverse::{free_vars, map_children, with_stack};
use gradus_core::{Arm, Global, Scheme, Symbol, Term, TermKind, Type, Var};
use gradus_source::bug;
use rustc_hash::FxHashMap;

type Binding = (Var, Scheme, Term);

impl Compiler<'_> {
    /// `let rec f = e1 in e2` without the `let rec`: e2 with `f` replaced by a definition, applied to what it captures.
    pub fn without_recursion(&self, at: At, bindings: &[Binding], body: &Term) -> Made<Term> {
        let captured = self.captured(bindings);
        let args: Vec<Term> = captured.iter().map(|(var, _)| at.var(var)).collect();
        let names: Vec<Symbol> = bindings.iter().map(|(var, _, _)| var.name.clone()).collect();
        let types: Vec<Type> = bindings
            .iter()
            .map(|(_, scheme, _)| {
                Type::funs(captured.iter().map(|(_, ty)| ty.clone()).collect::<Vec<_>>(), scheme.ty.clone())
            })
            .collect();
        let calls = |globals: &[Global]| -> FxHashMap<Var, Term> {
            let call = |global: &Global| at.apps(at.global(global.clone()), args.iter().cloned());
            bindings.iter().zip(globals).map(|((var, _, _), global)| (var.clone(), call(global))).collect()
        };
        let globals = self.linker.hide_together(&names, &types, |globals| {
            let calls = calls(globals);
            bindings.iter().map(|(_, _, text)| at.lambdas(&captured, replaced(text, &calls))).collect()
        })?;
        Ok(replaced(body, &calls(&globals)))
    }

    fn captured(&self, bindings: &[Binding]) -> Vec<(Var, Type)> {
        let mut captured: Vec<(Var, Type)> = Vec::new();
        for var in bindings.iter().flat_map(|(_, _, text)| free_vars(text)) {
            let own = bindings.iter().any(|(other, _, _)| *other == var);
            if own || captured.iter().any(|(other, _)| *other == var) {
                continue;
            }
            let ty = self.type_of_variable(&var);
            captured.push((var, ty));
        }
        captured
    }

    /// `iterate f x` is `let rec go x = match f x with Inl y -> go y | Inr z -> z in go x`.
    pub fn without_iteration(&self, at: At, types: &[Type], function: &Term, start: &Term) -> Made<Term> {
        let [from, to] = types else { bug!("`iterate` at {types:?}") };
        let (go, y, z) = (Var::fresh("iterate"), Var::fresh("y"), Var::fresh("z"));
        let again = at.app(at.var(&go), at.var(&y));
        let arms = |scrutinee| {
            let more = Arm { tag: 0, vars: vec![(y.clone(), from.clone())], body: again.clone() };
            let done = Arm { tag: 1, vars: vec![(z.clone(), to.clone())], body: at.var(&z) };
            at.case(scrutinee, vec![more, done], None)
        };
        let ty = Type::fun(from.clone(), to.clone());
        if let TermKind::Lambda(l) = &*function.kind {
            let text = at.lambda(&l.param, l.ty.clone(), arms(l.body.clone()));
            return self.without_recursion(
                at,
                &[(go.clone(), Scheme::mono(ty), text)],
                &at.app(at.var(&go), start.clone()),
            );
        }
        // A function that has to be computed is computed once, and handed on.
        let (f, x) = (Var::fresh("f"), Var::fresh("x"));
        let function_type = Type::fun(from.clone(), Type::either(from.clone(), to.clone()));
        let types = [Type::funs([function_type.clone(), from.clone()], to.clone())];
        debug_assert!(result_type(&types[0]) == ty);
        let globals = self.linker.hide_together(&["iterate".into()], &types, |globals| {
            let again = globals.iter().map(|global| at.app(at.global(global.clone()), at.var(&f)));
            let calls: FxHashMap<Var, Term> = std::iter::once(go.clone()).zip(again).collect();
            let body = replaced(&arms(at.app(at.var(&f), at.var(&x))), &calls);
            vec![at.lambdas(&[(f.clone(), function_type.clone()), (x.clone(), from.clone())], body)]
        })?;
        match globals.as_slice() {
            [global] => Ok(at.apps(at.global(global.clone()), [function.clone(), start.clone()])),
            _ => bug!("one definition became another number of them"),
        }
    }
}

/// A term with variables replaced by terms that bind nothing.
fn replaced(term: &Term, by: &FxHashMap<Var, Term>) -> Term {
    with_stack(|| match &*term.kind {
        TermKind::Var(var, _) => by.get(var).unwrap_or(term).clone(),
        _ => map_children(term, &mut |child| replaced(child, by)),
    })
}
