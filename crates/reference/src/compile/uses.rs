//! Last uses: a walk against the order of evaluation that finds out where a variable is used for the last time. There
//! it is moved, not copied, so that an array that nobody else holds can be updated in place.
//!
//! The findings are a list in the order of evaluation, which the emitter walks through in step: both follow the
//! same order, given by [`application`] and [`operands`].

use super::captures::Captures;
use gradus_core::traverse::with_stack;
use gradus_core::{Lambda, Prim, Term, TermKind, Var};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// A finding, at the place in the order of evaluation where it is needed.
#[derive(Debug)]
pub enum Use {
    /// A variable is read; `true`: for the last time.
    Read(bool),
    /// A variable is bound; `true`: and used.
    Bind(bool),
    /// A branch starts that has no use for these variables, while another branch has.
    Forget(Vec<Var>),
}

/// A function and its arguments: `f a b` flattened.
pub fn application<'t>(function: &'t Term, rest: &[&'t Term]) -> (&'t Term, Vec<&'t Term>) {
    let (mut head, mut args) = (function, Vec::new());
    while let TermKind::App(f, x) = &*head.kind {
        args.push(x);
        head = f;
    }
    args.reverse();
    args.extend(rest);
    (head, args)
}

/// The operands of a primitive in the order in which they are evaluated. An array that is just a variable comes after its
/// index, so that it is read in place; nothing can tell the difference.
pub fn operands(prim: Prim, args: &[Term]) -> Vec<&Term> {
    let mut order: Vec<&Term> = args.iter().collect();
    if prim == Prim::Get && is_var(&args[0]) {
        order.swap(0, 1);
    }
    order
}

pub fn is_var(term: &Term) -> bool {
    matches!(&*term.kind, TermKind::Var(..))
}

/// The findings for a function body (with its parameters known to the caller), the first one last.
pub fn uses(body: &Term, captures: &Captures) -> Vec<Use> {
    let mut walk = Walk { captures, live: FxHashSet::default(), log: Vec::new(), uses: Vec::new() };
    walk.term(body);
    walk.uses
}

/// What a group of recursive functions captures: all that its members do, but for the members.
pub fn group_captures(members: &[(Var, Arc<Lambda>)], captures: &Captures) -> Vec<Var> {
    let mut all: Vec<Var> = members.iter().flat_map(|(_, l)| captures[&Arc::as_ptr(l)].iter().cloned()).collect();
    all.sort_by_key(|v| v.id);
    all.dedup();
    all.retain(|v| members.iter().all(|(member, _)| member != v));
    all
}

/// The functions of a `let rec`.
pub fn members<S>(bindings: &[(Var, S, Term)]) -> Vec<(Var, Arc<Lambda>)> {
    let lambda = |term: &Term| match &*term.kind {
        TermKind::Lambda(lambda) => lambda.clone(),
        _ => gradus_source::bug!("`let rec` of something that is not a function"),
    };
    bindings.iter().map(|(var, _, bound)| (var.clone(), lambda(bound))).collect()
}

struct Walk<'a> {
    captures: &'a Captures,
    /// Variables that are used later on.
    live: FxHashSet<Var>,
    /// Variables in the order in which they became live, so that branches can be compared.
    log: Vec<Var>,
    uses: Vec<Use>,
}

impl Walk<'_> {
    fn read(&mut self, var: &Var) {
        let last = self.live.insert(var.clone());
        if last {
            self.log.push(var.clone());
        }
        self.uses.push(Use::Read(last));
    }

    fn bind(&mut self, var: &Var) {
        let used = self.live.remove(var);
        self.uses.push(Use::Bind(used));
    }

    fn all_reversed<'t>(&mut self, terms: impl DoubleEndedIterator<Item = &'t Term>) {
        terms.rev().for_each(|t| self.term(t));
    }

    fn term(&mut self, term: &Term) {
        with_stack(|| match &*term.kind {
            TermKind::Var(var, _) => self.read(var),
            TermKind::Global(_) | TermKind::Literal(_) => {}
            TermKind::Lambda(lambda) => {
                let captures = self.captures;
                captures[&Arc::as_ptr(lambda)].iter().rev().for_each(|v| self.read(v));
            }
            TermKind::App(..) => self.apply(term, &[]),
            TermKind::Let { var, bound, body, .. } => {
                self.term(body);
                self.bind(var);
                self.term(bound);
            }
            TermKind::LetRec { bindings, body } => {
                self.term(body);
                let members = members(bindings);
                for (var, _) in &members {
                    self.live.remove(var);
                }
                group_captures(&members, self.captures).iter().rev().for_each(|v| self.read(v));
            }
            TermKind::Prim { prim, args, .. } => self.all_reversed(operands(*prim, args).into_iter()),
            TermKind::Construct { args, .. } | TermKind::Derive { args, .. } => self.all_reversed(args.iter()),
            TermKind::Tuple(items) | TermKind::ArrayLiteral { items, .. } => self.all_reversed(items.iter()),
            TermKind::Proj { term, .. } | TermKind::Lift { term, .. } => self.term(term),
            TermKind::Case { scrutinee, arms, default } => {
                let mut branches: Vec<(&[(Var, _)], &Term)> = arms.iter().map(|a| (&a.vars[..], &a.body)).collect();
                branches.extend(default.iter().map(|body| (&[][..], body)));
                self.branches(&branches);
                self.term(scrutinee);
            }
            TermKind::If { condition, then, otherwise } => {
                self.branches(&[(&[], then), (&[], otherwise)]);
                self.term(condition);
            }
        })
    }

    /// `(fun x -> body) a b` binds `x`; everything else is a call.
    fn apply(&mut self, function: &Term, rest: &[&Term]) {
        let (head, args) = application(function, rest);
        match (&*head.kind, args.split_first()) {
            (TermKind::Lambda(lambda), Some((first, others))) => {
                with_stack(|| self.apply(&lambda.body, others));
                self.bind(&lambda.param);
                self.term(first);
            }
            (_, None) => self.term(head),
            _ => {
                self.all_reversed(args.into_iter());
                self.term(head);
            }
        }
    }

    fn branches(&mut self, branches: &[(&[(Var, gradus_core::Type)], &Term)]) {
        let mut needs: Vec<Vec<Var>> = Vec::new();
        let mut starts: Vec<usize> = Vec::new();
        for (vars, body) in branches.iter().rev() {
            let start = self.log.len();
            self.term(body);
            vars.iter().rev().for_each(|(v, _)| self.bind(v));
            let mut needed: Vec<Var> = self.log.drain(start..).collect();
            needed.retain(|v| self.live.remove(v));
            needs.push(needed);
            starts.push(self.uses.len());
            self.uses.push(Use::Forget(Vec::new()));
        }
        let mut all: Vec<Var> = Vec::new();
        for var in needs.iter().flatten() {
            if self.live.insert(var.clone()) {
                all.push(var.clone());
            }
        }
        for (needed, start) in needs.iter().zip(starts) {
            if needed.len() < all.len() {
                let needed: FxHashSet<&Var> = needed.iter().collect();
                let forgotten = all.iter().filter(|v| !needed.contains(v)).cloned().collect();
                self.uses[start] = Use::Forget(forgotten);
            }
        }
        self.log.extend(all);
    }
}
