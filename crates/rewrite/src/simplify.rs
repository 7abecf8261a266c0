//! The directed pass: what needs no search. Inlining, beta, dead code, known tuples, constructors and conditions, constants.
//!
//! Every step keeps the value bit for bit, takes no more evaluator steps, and leaves alone what can fail: that is neither dropped nor moved
//! ([`is_total`]), so that a program stops with the same error as before.

use crate::occurrences::Occurrences;
use crate::total::is_total;
use gradus_core::build::At;
use gradus_core::prim::Eval;
use gradus_core::traverse::{map_children, with_stack};
use gradus_core::{Lambda, Literal, Prim, Term, TermKind, Type, Var};
use rustc_hash::FxHashMap;

/// Rounds after which the pass stops even if it could go on. Each is linear in the size of the term.
const MAX_ROUNDS: usize = 8;

/// The simplified term, and the names of the rules used, in order. A function that is the image of another under a mode is left
/// alone, because it must keep the variables that its original captures; see [`forget_origins`].
pub fn simplify(term: &Term) -> (Term, Vec<&'static str>) {
    let mut current = term.clone();
    let mut fired = Vec::new();
    for _ in 0..MAX_ROUNDS {
        let before = fired.len();
        let mut pass = Pass { occurrences: Occurrences::of(&current), known: FxHashMap::default(), fired: &mut fired };
        current = pass.term(&current);
        if fired.len() == before {
            break;
        }
    }
    (current, fired)
}

/// The same code without the memory of what it was made from: for printing, where no function is differentiated any more.
pub fn forget_origins(term: &Term) -> Term {
    with_stack(|| {
        let inner = map_children(term, &mut forget_origins);
        match &*inner.kind {
            TermKind::Lambda(lambda) if lambda.origin.is_some() => {
                let lambda = Lambda { origin: None, ..(**lambda).clone() };
                Term::new(TermKind::Lambda(std::sync::Arc::new(lambda)), inner.span)
            }
            _ => inner,
        }
    })
}

struct Pass<'a> {
    occurrences: Occurrences,
    /// Variables to be replaced, and variables whose bound value is known.
    known: FxHashMap<Var, Known>,
    fired: &'a mut Vec<&'static str>,
}

#[derive(Clone)]
enum Known {
    /// Replace every use by this simplified term.
    Inline(Term),
    /// The variable stays; this is what it is bound to.
    Value(Term),
}

impl Pass<'_> {
    fn fire(&mut self, rule: &'static str) {
        self.fired.push(rule);
    }

    fn term(&mut self, term: &Term) -> Term {
        with_stack(|| self.node(term))
    }

    fn node(&mut self, term: &Term) -> Term {
        let at = At(term.span);
        match &*term.kind {
            TermKind::Var(var, _) => match self.known.get(var).cloned() {
                Some(Known::Inline(value)) => value,
                Some(Known::Value(_)) | None => term.clone(),
            },
            TermKind::Let { var, scheme, bound, body } if scheme.vars.is_empty() => {
                self.let_(at, var, &scheme.ty, bound, body)
            }
            TermKind::App(function, argument) => {
                let function = self.term(function);
                match &*function.kind {
                    // (fun x -> b) e  =>  let x = e in b
                    TermKind::Lambda(lambda) => {
                        self.fire("beta");
                        let argument = self.term(argument);
                        at.bind(&lambda.param, lambda.ty.clone(), argument, lambda.body.clone())
                    }
                    // (let x = e in f) a  =>  let x = e in f a
                    TermKind::Let { var, scheme, bound, body } => {
                        self.fire("let-from-function");
                        let argument = self.term(argument);
                        let body = at.app(body.clone(), argument);
                        let (var, scheme, bound) = (var.clone(), scheme.clone(), bound.clone());
                        at.term(TermKind::Let { var, scheme, bound, body })
                    }
                    _ => at.app(function, self.term(argument)),
                }
            }
            TermKind::Proj { index, term: inner } => {
                let inner = self.term(inner);
                self.projection(at, *index, inner)
            }
            TermKind::If { condition, then, otherwise } => {
                let condition = self.term(condition);
                match self.literal(&condition) {
                    Some(Literal::Bool(taken)) => {
                        self.fire("if-known");
                        self.term(if taken { then } else { otherwise })
                    }
                    _ => at.if_(condition, self.term(then), self.term(otherwise)),
                }
            }
            TermKind::Case { scrutinee, arms, default } => {
                let scrutinee = self.term(scrutinee);
                let value = self.value(&scrutinee);
                if let TermKind::Construct { tag, args, .. } = &*value.kind {
                    let cheap = args.iter().all(is_atom) || matches!(&*scrutinee.kind, TermKind::Construct { .. });
                    if let (true, Some(arm)) = (cheap, arms.iter().find(|arm| arm.tag == *tag)) {
                        self.fire("case-known");
                        let body = self.term(&arm.body);
                        let bindings = arm.vars.iter().zip(args).rev();
                        return bindings
                            .fold(body, |body, ((var, ty), arg)| at.bind(var, ty.clone(), arg.clone(), body));
                    }
                    if let (None, Some(default)) = (arms.iter().find(|arm| arm.tag == *tag), default) {
                        self.fire("case-known");
                        return self.term(default);
                    }
                }
                let arms = arms
                    .iter()
                    .map(|arm| gradus_core::Arm { tag: arm.tag, vars: arm.vars.clone(), body: self.term(&arm.body) })
                    .collect();
                at.case(scrutinee, arms, default.as_ref().map(|d| self.term(d)))
            }
            TermKind::LetRec { bindings, body } => {
                if bindings.iter().all(|(var, _, _)| self.occurrences.uses(var).count == 0) {
                    self.fire("let-unused");
                    return self.term(body);
                }
                map_children(term, &mut |child| self.term(child))
            }
            TermKind::Prim { prim, types, args, site } => {
                let args: Vec<Term> = args.iter().map(|arg| self.term(arg)).collect();
                match self.fold_constant(*prim, &args) {
                    Some(literal) => {
                        self.fire("constant");
                        at.term(TermKind::Literal(literal))
                    }
                    None => at.term(TermKind::Prim { prim: *prim, types: types.clone(), args, site: *site }),
                }
            }
            // The image of a function must keep the variables that its original captures.
            TermKind::Lambda(lambda) if lambda.origin.is_some() => term.clone(),
            TermKind::Lambda(_)
            | TermKind::Let { .. }
            | TermKind::Global(_)
            | TermKind::Literal(_)
            | TermKind::Tuple(_)
            | TermKind::Construct { .. }
            | TermKind::ArrayLiteral { .. }
            | TermKind::Derive { .. }
            | TermKind::Lift { .. } => map_children(term, &mut |child| self.term(child)),
        }
    }

    fn let_(&mut self, at: At, var: &Var, ty: &Type, bound: &Term, body: &Term) -> Term {
        let uses = self.occurrences.uses(var);
        if uses.count == 0 && is_total(bound) {
            self.fire("let-unused");
            return self.term(body);
        }
        let bound = self.term(bound);
        // let x = (let y = e in f) in b  =>  let y = e in let x = f in b
        if let TermKind::Let { var: inner, scheme, bound: first, body: second } = &*bound.kind {
            self.fire("let-from-let");
            let rest = at.bind(var, ty.clone(), second.clone(), self.term(body));
            let (var, scheme, bound) = (inner.clone(), scheme.clone(), first.clone());
            return at.term(TermKind::Let { var, scheme, bound, body: rest });
        }
        let once = uses.count == 1 && (!uses.under_lambda || is_function(&bound)) && is_total(&bound);
        if is_atom(&bound) {
            self.fire("let-atom");
            self.known.insert(var.clone(), Known::Inline(bound));
            return self.term(body);
        }
        if once {
            self.fire("let-once");
            self.known.insert(var.clone(), Known::Inline(bound));
            return self.term(body);
        }
        self.known.insert(var.clone(), Known::Value(bound.clone()));
        let body = self.term(body);
        at.bind(var, ty.clone(), bound, body)
    }

    fn projection(&mut self, at: At, index: usize, inner: Term) -> Term {
        match &*inner.kind {
            TermKind::Tuple(items) if others_are_total(items, index) => {
                self.fire("projection");
                return items[index].clone();
            }
            // (let x = e in t).i  =>  let x = e in t.i
            TermKind::Let { var, scheme, bound, body } => {
                self.fire("let-from-projection");
                let body = self.projection(at, index, body.clone());
                let (var, scheme, bound) = (var.clone(), scheme.clone(), bound.clone());
                return at.term(TermKind::Let { var, scheme, bound, body });
            }
            _ => {}
        }
        let value = self.value(&inner);
        match &*value.kind {
            TermKind::Tuple(items) if is_atom(&items[index]) => {
                self.fire("projection");
                items[index].clone()
            }
            TermKind::Construct { args, .. } if args.get(index).is_some_and(is_atom) => {
                self.fire("projection");
                args[index].clone()
            }
            _ => at.proj(inner, index),
        }
    }

    /// What a term is known to be: itself, or the value of the variable that it is.
    fn value(&self, term: &Term) -> Term {
        match &*term.kind {
            TermKind::Var(var, _) => match self.known.get(var) {
                Some(Known::Value(value)) | Some(Known::Inline(value)) => value.clone(),
                None => term.clone(),
            },
            _ => term.clone(),
        }
    }

    fn literal(&self, term: &Term) -> Option<Literal> {
        match &*term.kind {
            TermKind::Literal(literal) => Some(literal.clone()),
            _ => None,
        }
    }

    /// The value of a scalar primitive at literals; nothing if it lies outside the domain, so that the error stays where it is.
    fn fold_constant(&self, prim: Prim, args: &[Term]) -> Option<Literal> {
        let literals: Vec<Literal> = args.iter().map(|arg| self.literal(arg)).collect::<Option<_>>()?;
        if let [Literal::Int(i), Literal::Int(j)] = literals[..] {
            if let Some(holds) = compare(prim, i, j) {
                return Some(Literal::Bool(holds));
            }
        }
        let info = prim.info();
        let numbers: Vec<f64> = literals
            .iter()
            .map(|literal| match literal {
                Literal::Real(x) => Some(*x),
                Literal::Int(i) => Some(*i as f64),
                Literal::Bool(_) | Literal::String(_) | Literal::Unit => None,
            })
            .collect::<Option<_>>()?;
        if info.outside_domain(&numbers) || info.at_kink(&numbers) {
            return None;
        }
        match (info.eval, &literals[..]) {
            (Eval::Real(f), [Literal::Real(x)]) => Some(Literal::Real(f(*x))),
            (Eval::RealReal(f), [Literal::Real(x), Literal::Real(y)]) => Some(Literal::Real(f(*x, *y))),
            (Eval::RealInt(f), [Literal::Real(x), Literal::Int(k)]) => Some(Literal::Real(f(*x, *k))),
            (Eval::IntReal(f), [Literal::Int(k), Literal::Real(x)]) => Some(Literal::Real(f(*k, *x))),
            (Eval::IntToReal(f), [Literal::Int(i)]) => Some(Literal::Real(f(*i))),
            (Eval::RealToInt(f), [Literal::Real(x)]) => Some(Literal::Int(f(*x))),
            (Eval::Int(f), [Literal::Int(i)]) => Some(Literal::Int(f(*i))),
            (Eval::IntInt(f), [Literal::Int(i), Literal::Int(j)]) => f(*i, *j).ok().map(Literal::Int),
            _ => None,
        }
    }
}

/// A comparison of integers. One of reals is left alone, because deciding it can be a kink.
fn compare(prim: Prim, i: i64, j: i64) -> Option<bool> {
    match prim {
        Prim::Equal => Some(i == j),
        Prim::NotEqual => Some(i != j),
        Prim::Less => Some(i < j),
        Prim::LessEqual => Some(i <= j),
        Prim::Greater => Some(i > j),
        Prim::GreaterEqual => Some(i >= j),
        _ => None,
    }
}

fn others_are_total(items: &[Term], index: usize) -> bool {
    items.iter().enumerate().all(|(i, item)| i == index || is_total(item))
}

/// A term that costs nothing to repeat.
fn is_atom(term: &Term) -> bool {
    matches!(&*term.kind, TermKind::Var(..) | TermKind::Literal(_) | TermKind::Global(_))
}

fn is_function(term: &Term) -> bool {
    matches!(&*term.kind, TermKind::Lambda(lambda) if has_no_origin(lambda))
}

fn has_no_origin(lambda: &Lambda) -> bool {
    lambda.origin.is_none()
}
