//! Taylor coefficients of a primitive from its partial derivatives alone.
//!
//! With y = f(x), k y_k is the sum over j from 1 to k of j x_j p_(k-j), where p is the series of the partial derivative f'(x). That series is made of
//! arithmetic and of other primitives, perhaps of f itself: `exp` has p = y, and `sin` and `cos` have each other. So the
//! partial derivatives, followed until nothing new appears, are a finite system of equations in which the coefficient of order
//! k depends on arguments of order k and on partial derivatives of lower order: one pass over the orders solves it.

use super::tower;
use crate::dual::partials;
use crate::vector::{array, empty, zeros};
use crate::write::{add, add_int, bind, build, compare_int, get, ifold, length, mul, set, watched_prim};
use gradus_core::build::At;
use gradus_core::traverse::free_vars;
use gradus_core::{Literal, Prim, Term, TermKind, Type, Var};
use gradus_source::bug;

/// The number of a series in its system.
type Id = usize;

/// How the coefficients of a series follow from those of others.
enum Equation {
    /// An argument of the primitive, by position.
    Input(usize),
    /// A number that may depend on values of order 0 only.
    Constant(Term),
    Add(Id, Id),
    Sub(Id, Id),
    Neg(Id),
    Mul(Id, Id),
    Div(Id, Id),
    /// A smooth primitive, with the series of its partial derivative for each argument.
    Smooth {
        prim: Prim,
        args: Vec<Id>,
        partials: Vec<Id>,
    },
    /// A partial derivative that differs from place to place: the condition looks at values of order 0.
    Select {
        condition: Term,
        then: Id,
        otherwise: Id,
    },
}

struct System {
    /// In an order in which each needs, at its own order, only earlier ones.
    equations: Vec<Equation>,
    /// The value of order 0 of each series, as terms speak of it.
    values: Vec<Var>,
    at: At,
}

/// `fun x1 .. xn -> ...`: the primitive on towers.
pub fn function(prim: Prim) -> Term {
    let at = At::default();
    let count = prim.info().params.len();
    let mut system = System { equations: Vec::new(), values: Vec::new(), at };
    let inputs: Vec<Id> = (0..count).map(|i| system.push(Equation::Input(i))).collect();
    let output = system.primitive(prim, &inputs);
    let params: Vec<(Var, Type)> = (0..count).map(|_| (Var::fresh("x"), tower())).collect();
    let args: Vec<Term> = params.iter().map(|(var, _)| at.var(var)).collect();
    at.lambdas(&params, system.solve(prim, &args, output))
}

impl System {
    fn push(&mut self, equation: Equation) -> Id {
        self.equations.push(equation);
        self.values.push(Var::fresh("v"));
        self.equations.len() - 1
    }

    fn constant(&mut self, value: Term) -> Id {
        self.push(Equation::Constant(value))
    }

    fn primitive(&mut self, prim: Prim, args: &[Id]) -> Id {
        match (prim, args) {
            (Prim::AddReal, [a, b]) => self.push(Equation::Add(*a, *b)),
            (Prim::SubReal, [a, b]) => self.push(Equation::Sub(*a, *b)),
            (Prim::NegReal, [a]) => self.push(Equation::Neg(*a)),
            (Prim::MulReal, [a, b]) => self.push(Equation::Mul(*a, *b)),
            (Prim::DivReal, [a, b]) => self.push(Equation::Div(*a, *b)),
            _ => self.smooth(prim, args),
        }
    }

    fn smooth(&mut self, new: Prim, new_args: &[Id]) -> Id {
        let known = self.equations.iter().position(
            |equation| matches!(equation, Equation::Smooth { prim, args, .. } if *prim == new && args[..] == *new_args),
        );
        if let Some(id) = known {
            return id;
        }
        // Known before its partial derivatives are made, since they may speak of it.
        let id = self.push(Equation::Smooth { prim: new, args: new_args.to_vec(), partials: vec![] });
        let values: Vec<Term> = new_args.iter().map(|&arg| self.at.var(&self.values[arg])).collect();
        let terms: Vec<Term> = partials(self.at, new, &values).into_iter().flatten().collect();
        let made = terms.iter().map(|partial| self.term(partial)).collect();
        if let Equation::Smooth { partials, .. } = &mut self.equations[id] {
            *partials = made;
        }
        id
    }

    /// The series of a partial derivative, a term over the variables of the system.
    fn term(&mut self, term: &Term) -> Id {
        match &*term.kind {
            TermKind::Var(var, _) => match self.values.iter().position(|value| value == var) {
                Some(id) => id,
                None => bug!("a partial derivative speaks of {var:?}, which is no argument"),
            },
            TermKind::Literal(Literal::Real(_)) => self.constant(term.clone()),
            TermKind::If { condition, then, otherwise } => {
                let (then, otherwise) = (self.term(then), self.term(otherwise));
                self.push(Equation::Select { condition: condition.clone(), then, otherwise })
            }
            TermKind::Prim { prim, args, .. } if prim.info().partials.is_some() => {
                let args: Vec<Id> = args.iter().map(|arg| self.term(arg)).collect();
                self.primitive(*prim, &args)
            }
            _ => bug!("a partial derivative is written with more than arithmetic: {:?}", term.kind),
        }
    }

    /// Code that fills a table with one row for each series and one column for each order, and reads the result off.
    fn solve(&self, prim: Prim, args: &[Term], output: Id) -> Term {
        let at = self.at;
        let sizes: Vec<Term> = args.iter().map(|x| length(at, &Type::Real, at.proj(x.clone(), 1))).collect();
        let order = sizes.into_iter().reduce(|a, b| larger(at, a, b)).unwrap_or_else(|| at.int(0));
        let value = |watched: bool| {
            let values: Vec<Term> = args.iter().map(|x| at.proj(x.clone(), 0)).collect();
            if watched {
                watched_prim(at, prim, [], values)
            } else {
                at.prim(prim, values)
            }
        };
        bind(at, "order", &Type::Int, order, |order| {
            let columns = add_int(at, order.clone(), at.int(1));
            let solved = bind(at, "columns", &Type::Int, columns, |columns| {
                let cells = at.prim(Prim::MulInt, [at.int(self.equations.len() as i64), columns.clone()]);
                let filled = ifold(at, &array(), columns.clone(), zeros(at, cells), |k, table| {
                    self.column(args, &columns, &k, table)
                });
                bind(at, "table", &array(), filled, |table| {
                    let row = Row { at, table: &table, columns: &columns };
                    let higher = build(at, &Type::Real, order.clone(), |i| row.at(output, add_int(at, i, at.int(1))));
                    at.tuple([row.at(output, at.int(0)), higher])
                })
            });
            // A kink or a domain error is the primitive's own, met once; the table repeats the computation.
            let is_constant = compare_int(at, Prim::Equal, order.clone(), at.int(0));
            let constant = at.tuple([value(true), empty(at)]);
            let noticed = bind(at, "y", &Type::Real, value(true), |_| solved);
            at.if_(is_constant, constant, noticed)
        })
    }

    /// The table with the coefficients of order `k` filled in, series by series.
    fn column(&self, args: &[Term], columns: &Term, k: &Term, table: Term) -> Term {
        self.cell(0, args, columns, k, table)
    }

    fn cell(&self, id: Id, args: &[Term], columns: &Term, k: &Term, table: Term) -> Term {
        let at = self.at;
        let Some(equation) = self.equations.get(id) else { return table };
        let row = Row { at, table: &table, columns };
        let value = self.coefficient(equation, id, args, k, &row);
        bind(at, "c", &Type::Real, value, |value| {
            let changed = set(at, &Type::Real, table.clone(), row.index(id, k.clone()), value);
            bind(at, "table", &array(), changed, |table| self.cell(id + 1, args, columns, k, table))
        })
    }

    fn coefficient(&self, equation: &Equation, id: Id, args: &[Term], k: &Term, row: &Row) -> Term {
        let at = self.at;
        let now = |id: Id| row.at(id, k.clone());
        let is_value = || compare_int(at, Prim::Equal, k.clone(), at.int(0));
        match equation {
            Equation::Input(position) => {
                let x = &args[*position];
                let higher = at.proj(x.clone(), 1);
                let is_constant = compare_int(at, Prim::Equal, length(at, &Type::Real, higher.clone()), at.int(0));
                let before = at.prim(Prim::SubInt, [k.clone(), at.int(1)]);
                let given = at.if_(is_constant, at.real(0.0), get(at, &Type::Real, higher, before));
                at.if_(is_value(), at.proj(x.clone(), 0), given)
            }
            Equation::Constant(value) => at.if_(is_value(), value.clone(), at.real(0.0)),
            Equation::Add(a, b) => add(at, now(*a), now(*b)),
            Equation::Sub(a, b) => at.prim(Prim::SubReal, [now(*a), now(*b)]),
            Equation::Neg(a) => at.prim(Prim::NegReal, [now(*a)]),
            Equation::Mul(a, b) => {
                let count = add_int(at, k.clone(), at.int(1));
                sum(at, count, |j| {
                    let rest = at.prim(Prim::SubInt, [k.clone(), j.clone()]);
                    mul(at, row.at(*a, j), row.at(*b, rest))
                })
            }
            Equation::Div(a, b) => {
                let known = sum(at, k.clone(), |i| {
                    let (j, rest) = one_to(at, i, k);
                    mul(at, row.at(*b, j), row.at(id, rest))
                });
                let above = at.prim(Prim::SubReal, [now(*a), known]);
                at.prim(Prim::DivReal, [above, row.at(*b, at.int(0))])
            }
            Equation::Smooth { prim, args, partials } => {
                let value = at.prim(*prim, args.iter().map(|&arg| now(arg)).collect::<Vec<_>>());
                let total = sum(at, k.clone(), |i| {
                    let (j, rest) = one_to(at, i, k);
                    let terms = args
                        .iter()
                        .zip(partials)
                        .map(|(&x, &p)| mul(at, row.at(x, j.clone()), row.at(p, rest.clone())));
                    let slope = terms.reduce(|a, b| add(at, a, b)).unwrap_or_else(|| at.real(0.0));
                    mul(at, at.prim(Prim::RealOfInt, [j]), slope)
                });
                let higher = at.prim(Prim::DivReal, [total, at.prim(Prim::RealOfInt, [k.clone()])]);
                at.if_(is_value(), value, higher)
            }
            Equation::Select { condition, then, otherwise } => {
                let chosen = at.if_(condition.clone(), now(*then), now(*otherwise));
                free_vars(condition).into_iter().fold(chosen, |body, var| {
                    match self.values.iter().position(|value| *value == var) {
                        // A copy of the condition needs binders of its own, since a series can be selected by twice.
                        Some(id) => rebind(at, &var, row.at(id, at.int(0)), body),
                        None => body,
                    }
                })
            }
        }
    }
}

/// `let fresh = value in body[fresh / var]`
fn rebind(at: At, var: &Var, value: Term, body: Term) -> Term {
    let fresh = var.refresh();
    let mut copy = gradus_core::traverse::Copy::default();
    copy.terms.insert(var.clone(), at.var(&fresh));
    at.bind(&fresh, Type::Real, value, copy.term(&body))
}

/// The table of coefficients and how it is laid out.
struct Row<'a> {
    at: At,
    table: &'a Term,
    columns: &'a Term,
}

impl Row<'_> {
    fn index(&self, id: Id, k: Term) -> Term {
        add_int(self.at, self.at.prim(Prim::MulInt, [self.at.int(id as i64), self.columns.clone()]), k)
    }

    /// The coefficient of order `k` of a series.
    fn at(&self, id: Id, k: Term) -> Term {
        get(self.at, &Type::Real, self.table.clone(), self.index(id, k))
    }
}

/// `item 0 + ... + item (count - 1)`
fn sum(at: At, count: Term, item: impl FnOnce(Term) -> Term) -> Term {
    ifold(at, &Type::Real, count, at.real(0.0), |i, sum| add(at, sum, item(i)))
}

/// For i from 0: the order j = i + 1, and what is left of k.
fn one_to(at: At, i: Term, k: &Term) -> (Term, Term) {
    let j = add_int(at, i, at.int(1));
    (j.clone(), at.prim(Prim::SubInt, [k.clone(), j]))
}

/// The larger of two integers that may be computed twice.
fn larger(at: At, a: Term, b: Term) -> Term {
    at.if_(compare_int(at, Prim::Greater, a.clone(), b.clone()), a, b)
}
