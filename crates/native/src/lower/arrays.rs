//! Arrays and loops: `build`, `set`, array literals, `ifold`, `iterate`.

use super::layout::views;
use super::value::{Function, Part, Value};
use super::{Lowered, Lowering};
use crate::flow::{Atom, Failure, Name, Op, Var};
use gradus_core::{Prim, TermKind, Type};
use gradus_source::Span;

impl Lowering<'_> {
    pub(super) fn build(&mut self, n: Atom, f: Value, element: &Type, span: Span) -> Lowered<Value> {
        let natural = self.b.scalar(Prim::GreaterEqual, &[n, Atom::Int(0)]);
        self.b.check(natural, Failure::Count);
        self.build_with(n, element, span, &mut |s, i| s.apply(f.clone(), Value::Leaf(i), span))
    }

    /// An array whose elements are written by `element_at`, each in its own iteration.
    pub(super) fn build_with(
        &mut self,
        n: Atom,
        element: &Type,
        span: Span,
        element_at: &mut dyn FnMut(&mut Self, Atom) -> Lowered<Value>,
    ) -> Lowered<Value> {
        let leaves = self.leaves(&Type::array(element.clone()), span)?;
        let i = Self::index();
        self.b.push();
        let value = element_at(self, i.into())?;
        let mut results = self.flatten_element(&value, element, span)?;
        // Elements without content are only counted.
        results.extend(leaves.iter().skip(results.len()).map(|_| Atom::Bool(false)));
        let body = self.b.pop(results);
        self.b.span = span;
        let arrays = self.b.for_loop(i, n, Vec::new(), body);
        self.unflatten(&Type::array(element.clone()), &mut arrays.into_iter(), span)
    }

    pub(super) fn set(&mut self, part: &Part, i: Atom, x: &Value, element: &Type, span: Span) -> Lowered<Value> {
        let n = self.length(part)?;
        self.check_index(i, n);
        let mut values = self.flatten_element(x, element, span)?;
        if matches!(part, Part::Counted(_)) {
            values.push(Atom::Bool(false));
        }
        let mut arrays = Vec::new();
        for (view, value) in views(part).iter().zip(values) {
            let array = self.whole(view);
            if value.ty().is_array() {
                let row = self.b.get(array, vec![i]);
                self.check_same_shape(row, value, Failure::Rows);
            }
            if let Atom::Var(array) = array {
                arrays.push(Atom::Var(self.b.set(array, vec![i], value)));
            }
        }
        self.unflatten(&Type::array(element.clone()), &mut arrays.into_iter(), span)
    }

    pub(super) fn array_literal(&mut self, element: &Type, items: &[Value], span: Span) -> Lowered<Value> {
        let ty = Type::array(element.clone());
        let leaves = self.leaves(&ty, span)?;
        let mut columns: Vec<Vec<Atom>> = vec![Vec::new(); leaves.len()];
        for item in items {
            let mut atoms = self.flatten_element(item, element, span)?;
            atoms.extend(leaves.iter().skip(atoms.len()).map(|_| Atom::Bool(false)));
            for (column, atom) in columns.iter_mut().zip(atoms) {
                column.push(atom);
            }
        }
        self.b.span = span;
        let mut arrays = Vec::new();
        for (items, ty) in columns.into_iter().zip(leaves) {
            if let [first, others @ ..] = &items[..] {
                others.iter().for_each(|other| self.check_same_shape(*first, *other, Failure::Rows));
            }
            let array = Var::fresh("a", ty);
            self.b.bind(vec![array], Op::Literal { items, ty });
            arrays.push(Atom::Var(array));
        }
        self.unflatten(&ty, &mut arrays.into_iter(), span)
    }

    pub(super) fn ifold(&mut self, n: Atom, f: Value, init: &Value, state: &Type, span: Span) -> Lowered<Value> {
        let inits = self.flatten(init, state, span)?;
        let name = state_name(&f, 1);
        let vars: Vec<Var> = inits.iter().map(|a| Var::fresh(name, a.ty())).collect();
        let i = Self::index();
        self.b.push();
        let now = self.unflatten(state, &mut vars.iter().map(|v| Atom::Var(*v)), span)?;
        let step = self.apply(f, Value::Leaf(i.into()), span)?;
        let next = self.apply(step, now, span)?;
        let results = self.flatten(&next, state, span)?;
        let body = self.b.pop(results);
        self.b.span = span;
        let last = self.b.for_loop(i, n, vars.into_iter().zip(inits).collect(), body);
        self.unflatten(state, &mut last.into_iter(), span)
    }

    /// Until `Inr`; the state is that of `Inl`, and the result is empty until it is there.
    pub(super) fn iterate(&mut self, f: Value, x: &Value, types: (&Type, &Type), span: Span) -> Lowered<Value> {
        let (state, result) = types;
        let mut inits = self.flatten(x, state, span)?;
        let name = state_name(&f, 0);
        let vars: Vec<Var> = inits.iter().map(|a| Var::fresh(name, a.ty())).collect();
        let mut all = vars.clone();
        for leaf in self.leaves(result, span)? {
            inits.push(self.b.dummy(leaf));
            all.push(Var::fresh("result", leaf));
        }
        self.b.push();
        let now = self.unflatten(state, &mut vars.iter().map(|v| Atom::Var(*v)), span)?;
        let answer = self.apply(f, now, span)?;
        let either = Type::either(state.clone(), result.clone());
        let leaves = self.flatten(&answer, &either, span)?;
        let mut results = vec![self.b.scalar(Prim::Equal, &[leaves[0], Atom::Int(0)])];
        results.extend(&leaves[1..]);
        let body = self.b.pop(results);
        self.b.span = span;
        let last = self.b.while_loop(all.into_iter().zip(inits).collect(), body);
        self.unflatten(result, &mut last.into_iter().skip(vars.len()), span)
    }
}

/// What the program calls a parameter of a function, for those who read what became of it.
fn state_name(f: &Value, parameter: usize) -> Name {
    let Value::Function(function) = f else { return "c".into() };
    let Function::Lambda { lambda, .. } = &**function else { return "c".into() };
    let mut lambda = lambda;
    for _ in 0..parameter {
        let TermKind::Lambda(inner) = &*lambda.body.kind else { return "c".into() };
        lambda = inner;
    }
    // Patterns have no name.
    match lambda.param.name.chars().next() {
        Some(first) if first.is_alphabetic() => Name::new(&lambda.param.name),
        _ => "c".into(),
    }
}
