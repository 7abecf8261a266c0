//! Random terms of the shape of a rule's left side.

use super::{Function, AT};
use crate::condition::Condition;
use crate::pattern::{Name, Pattern, Sort};
use crate::table::Rule;
use gradus_core::{Arm, Prim, Term, TermKind, Type, TypeName, Var};
use gradus_generate::Rng;

pub const INPUTS: usize = 3;
/// More than loops are unrolled for.
const SIZE: usize = 7;

/// A function whose body is an instance of the left side of a rule.
pub fn instance(rule: &Rule, rng: &mut Rng) -> Function {
    let input = Var::fresh("input");
    let mut maker = Maker { rule, rng, input: input.clone(), scope: Vec::new(), metas: Vec::new(), arrays: Vec::new() };
    let body = maker.pattern(&rule.left_pattern);
    let result = maker.type_of(&rule.left_pattern);
    let around = |body, (var, array): (Var, Term)| AT.bind(&var, Type::array(Type::Real), array, body);
    let body = maker.arrays.into_iter().fold(body, around);
    Function { input, inputs: INPUTS, body, result }
}

struct Maker<'a> {
    rule: &'a Rule,
    rng: &'a mut Rng,
    input: Var,
    scope: Vec<(Name, Var, Type)>,
    metas: Vec<(Name, Term)>,
    /// Bound around the whole, for conditions that ask for a variable.
    arrays: Vec<(Var, Term)>,
}

impl Maker<'_> {
    fn type_of(&self, pattern: &Pattern) -> Type {
        type_of(&self.scope, pattern)
    }

    /// Something in the scope of one more variable.
    fn under<T>(&mut self, name: Name, ty: Type, make: impl FnOnce(&mut Self, &Var) -> T) -> T {
        let var = Var::fresh(name);
        self.scope.push((name, var.clone(), ty));
        let made = make(self, &var);
        self.scope.pop();
        made
    }

    fn lambda(&mut self, name: Name, ty: Type, body: &Pattern) -> Term {
        self.under(name, ty.clone(), |maker, var| AT.lambda(var, ty, maker.pattern(body)))
    }

    fn pattern(&mut self, pattern: &Pattern) -> Term {
        match pattern {
            Pattern::Meta(name) => self.meta(name),
            Pattern::Bound(name) => match self.scope.iter().rev().find(|(known, _, _)| known == name) {
                Some((_, var, _)) => AT.var(var),
                None => panic!("{name} is not bound"),
            },
            Pattern::Real(x) => AT.real(*x),
            Pattern::Int(k) => AT.int(*k),
            Pattern::Bool(p) => AT.bool(*p),
            // The state of a loop has the type of its start.
            Pattern::Prim(Prim::Ifold, _, args) => {
                let state = self.type_of(&args[2]);
                let (Pattern::Lambda(index, inner), count) = (&args[1], self.pattern(&args[0])) else {
                    panic!("a loop without a function")
                };
                let Pattern::Lambda(so_far, body) = &**inner else { panic!("a loop without a state") };
                let function = self.under(index, Type::Int, |maker, var| {
                    AT.lambda(var, Type::Int, maker.lambda(so_far, state.clone(), body))
                });
                let init = self.pattern(&args[2]);
                AT.prim_at(Prim::Ifold, [state], [count, function, init])
            }
            Pattern::Prim(prim, _, args) => {
                let terms: Vec<Term> = args.iter().map(|arg| self.pattern(arg)).collect();
                let types = match prim {
                    _ if prim.info().scheme.vars.is_empty() => vec![],
                    Prim::Get | Prim::Length | Prim::CheckSize => vec![element(self.type_of(&args[0]))],
                    Prim::Build => vec![element(self.type_of(pattern))],
                    _ => vec![args.last().map_or(Type::Real, |arg| self.type_of(arg))],
                };
                AT.prim_at(*prim, types, terms)
            }
            Pattern::Lambda(name, body) => self.lambda(name, sort_type(Sort::of_name(name)), body),
            Pattern::App(function, argument) => match &**function {
                Pattern::Let(name, bound, body) => {
                    // A function that comes out of a definition.
                    let bound = self.pattern(bound);
                    let Pattern::Meta(_) = &**body else { panic!("{body:?} is applied") };
                    let inner = self.under(name, Type::Real, |maker, var| {
                        let param = Var::fresh("y");
                        let sum = AT.prim(Prim::AddReal, [AT.var(var), AT.var(&param)]);
                        let _ = &maker.rule;
                        AT.bind(var, Type::Real, bound, AT.lambda(&param, Type::Real, sum))
                    });
                    AT.app(inner, self.pattern(argument))
                }
                _ => AT.app(self.pattern(function), self.pattern(argument)),
            },
            Pattern::Let(name, bound, body) => {
                let ty = self.type_of(bound);
                let bound = self.pattern(bound);
                self.under(name, ty.clone(), |maker, var| AT.bind(var, ty, bound, maker.pattern(body)))
            }
            Pattern::If(parts) => AT.if_(self.pattern(&parts[0]), self.pattern(&parts[1]), self.pattern(&parts[2])),
            Pattern::Tuple(items) => AT.tuple(items.iter().map(|item| self.pattern(item)).collect::<Vec<_>>()),
            Pattern::Proj(index, inner) => AT.proj(self.pattern(inner), *index),
            Pattern::Inject(tag, inner) => {
                AT.construct(TypeName::new("either"), [Type::Real, Type::Real], *tag, [self.pattern(inner)])
            }
            Pattern::Match(scrutinee, cases) => {
                let scrutinee = self.pattern(scrutinee);
                let arms = cases.iter().enumerate().map(|(tag, (name, body))| {
                    self.under(name, Type::Real, |maker, var| Arm {
                        tag,
                        vars: vec![(var.clone(), Type::Real)],
                        body: maker.pattern(body),
                    })
                });
                AT.case(scrutinee, arms.collect(), None)
            }
            Pattern::Array(items) => AT.term(TermKind::ArrayLiteral {
                element: Type::Real,
                items: items.iter().map(|item| self.pattern(item)).collect(),
            }),
            Pattern::Substitute { .. } => panic!("a left side substitutes nothing"),
        }
    }

    fn meta(&mut self, name: Name) -> Term {
        if let Some((_, known)) = self.metas.iter().find(|(known, _)| *known == name) {
            return gradus_core::traverse::Copy::default().term(known);
        }
        let asks = |wanted: fn(&Condition, Name) -> bool| self.rule.conditions.iter().any(|c| wanted(c, name));
        let atom = asks(|c, name| matches!(c, Condition::Atom(a) if *a == name));
        let index = asks(|c, name| matches!(c, Condition::Below(k, _) if *k == name));
        let size = asks(|c, name| match c {
            Condition::Below(_, Pattern::Meta(n)) | Condition::NonNegative(n) | Condition::Size(_, n) => *n == name,
            _ => false,
        });
        let same = asks(|c, name| matches!(c, Condition::Same(m, n) if *m == name || *n == name));
        let total = asks(|c, name| match c {
            Condition::Total(a) => *a == name,
            Condition::OneTotal(a, b) => *a == name || *b == name,
            _ => false,
        });
        let absent: Vec<Name> = self
            .rule
            .conditions
            .iter()
            .filter_map(|c| match c {
                Condition::Absent(x, e) if *e == name => Some(*x),
                _ => None,
            })
            .collect();
        let term = match Sort::of_name(name) {
            Sort::Int if index => AT.int(self.rng.below(SIZE) as i64),
            Sort::Int if same && self.rng.chance(1, 2) => {
                let array = self.array(&absent);
                AT.prim_at(Prim::Length, [Type::Real], [array])
            }
            Sort::Int if size || same => AT.int(SIZE as i64),
            Sort::Int => self.int(&absent, if atom { 0 } else { 2 }),
            Sort::Bool => self.bool(&absent),
            Sort::Array if atom => {
                let (var, array) = (Var::fresh(name), self.array(&["u", "i"]));
                self.arrays.push((var.clone(), array));
                AT.var(&var)
            }
            Sort::Array => self.array(&absent),
            Sort::Real | Sort::Any if !total && !atom && self.rng.chance(1, 12) => self.failing(),
            Sort::Real | Sort::Any => self.real(&absent, if atom { 0 } else { 2 }),
        };
        // One that mentions bound variables means something else elsewhere.
        self.metas.push((name, term.clone()));
        term
    }

    fn real(&mut self, absent: &[Name], depth: usize) -> Term {
        if depth == 0 || self.rng.chance(1, 4) {
            let mut atoms: Vec<Term> = vec![AT.real(*self.rng.pick(&[0.0, 1.0, -1.0, 2.0, 0.5, -0.0]))];
            for (name, var, ty) in &self.scope {
                match ty {
                    _ if absent.contains(name) => {}
                    Type::Real => atoms.push(AT.var(var)),
                    Type::Tuple(parts) => (0..parts.len()).for_each(|k| atoms.push(AT.proj(AT.var(var), k))),
                    Type::Int => atoms.push(AT.prim(Prim::RealOfInt, [AT.var(var)])),
                    _ => {}
                }
            }
            atoms.extend((0..INPUTS).map(|k| AT.proj(AT.var(&self.input), k)));
            if depth == 0 && self.scope.is_empty() {
                // A condition may ask for a variable or a literal.
                atoms.truncate(1);
            }
            return self.rng.pick(&atoms).clone();
        }
        let prims = [Prim::AddReal, Prim::MulReal, Prim::SubReal, Prim::Sin, Prim::Exp, Prim::NegReal, Prim::Tanh];
        let prim = *self.rng.pick(&prims);
        let args: Vec<Term> = prim.info().params.iter().map(|_| self.real(absent, depth - 1)).collect();
        AT.prim(prim, args)
    }

    fn int(&mut self, absent: &[Name], depth: usize) -> Term {
        let scope: Vec<Term> = self
            .scope
            .iter()
            .filter(|(name, _, ty)| *ty == Type::Int && !absent.contains(name))
            .map(|(_, var, _)| AT.var(var))
            .collect();
        if !scope.is_empty() && self.rng.chance(1, 2) {
            return self.rng.pick(&scope).clone();
        }
        if depth == 0 || self.rng.chance(1, 2) {
            return AT.int(self.rng.below(4) as i64);
        }
        AT.prim(Prim::AddInt, [self.int(absent, depth - 1), self.int(absent, depth - 1)])
    }

    fn bool(&mut self, absent: &[Name]) -> Term {
        AT.prim_at(Prim::Less, [Type::Real], [self.real(absent, 1), self.real(absent, 1)])
    }

    /// Of [`SIZE`] elements.
    fn array(&mut self, absent: &[Name]) -> Term {
        let items = (0..SIZE).map(|_| self.real(absent, 1)).collect();
        AT.term(TermKind::ArrayLiteral { element: Type::Real, items })
    }

    /// A real that stops the program.
    fn failing(&mut self) -> Term {
        let array = AT.term(TermKind::ArrayLiteral { element: Type::Real, items: vec![] });
        AT.prim_at(Prim::Get, [Type::Real], [array, AT.int(self.rng.below(3) as i64)])
    }
}

fn element(ty: Type) -> Type {
    match ty {
        Type::Array(element) => (*element).clone(),
        other => panic!("{other:?} has no elements"),
    }
}

fn sort_type(sort: Sort) -> Type {
    match sort {
        Sort::Real | Sort::Any => Type::Real,
        Sort::Int => Type::Int,
        Sort::Bool => Type::Bool,
        Sort::Array => Type::array(Type::Real),
    }
}

fn type_of(scope: &[(Name, Var, Type)], pattern: &Pattern) -> Type {
    let type_of = |pattern: &Pattern| type_of(scope, pattern);
    match pattern {
        Pattern::Bound(name) => match scope.iter().rev().find(|(known, _, _)| known == name) {
            Some((_, _, ty)) => ty.clone(),
            None => sort_type(Sort::of_name(name)),
        },
        Pattern::Tuple(items) => Type::tuple(items.iter().map(type_of).collect::<Vec<_>>()),
        Pattern::Proj(index, inner) => match type_of(inner) {
            Type::Tuple(parts) => parts[*index].clone(),
            other => panic!("a component of {other:?}"),
        },
        Pattern::Prim(Prim::Build, _, args) => match &args[1] {
            Pattern::Lambda(_, body) => Type::array(type_of(body)),
            other => panic!("{other:?} is built"),
        },
        Pattern::Prim(Prim::Set | Prim::CheckSize, _, args) => type_of(&args[0]),
        Pattern::Array(_) => Type::array(Type::Real),
        Pattern::Prim(Prim::Get, _, args) => element(type_of(&args[0])),
        Pattern::Prim(Prim::Ifold, _, args) => type_of(&args[2]),
        Pattern::Lambda(name, body) => Type::fun(sort_type(Sort::of_name(name)), type_of(body)),
        Pattern::Inject(..) => Type::either(Type::Real, Type::Real),
        Pattern::Let(name, bound, body) => {
            let mut inner = scope.to_vec();
            inner.push((name, Var::fresh(*name), type_of(bound)));
            self::type_of(&inner, body)
        }
        Pattern::If(parts) => type_of(&parts[1]),
        // A function is applied, or known from its text.
        Pattern::App(..) => Type::Real,
        other => sort_type(other.sort()),
    }
}
