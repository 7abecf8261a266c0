//! Decision trees to core: flat cases, and one local function for each arm that is reached in several ways.

use crate::error::MatchForm;
use crate::lower::Lower;
use crate::matching::{Decision, Matcher, Part, PartInfo, Reach, Row};
use crate::tree::{Exp, ExpKind, LocalId, MatchArm};
use gradus_core::build::At;
use gradus_core::traverse::with_stack;
use gradus_core::{Arm, Literal, Prim, Term, TermKind, Type, Var};
use gradus_source::Span;

/// The body of an arm, or its guard.
type Body<'b, 'a> = &'b mut dyn FnMut(&mut Lower<'a>, Wanted) -> Term;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Body(usize),
    Guard(usize),
}

/// An arm whose code stands in one place and is called from several.
struct Shared {
    body: Var,
    guard: Option<Var>,
    params: Vec<LocalId>,
}

struct Emit<'d> {
    parts: &'d [PartInfo],
    shared: Vec<Option<Shared>>,
    span: Span,
    result: Type,
}

impl<'a> Lower<'a> {
    pub fn match_term(&mut self, scrutinee: Exp, arms: &[MatchArm], form: MatchForm, span: Span) -> Term {
        let row = |arm: &MatchArm| {
            let body = self.tree.node(arm.body);
            let inner = matches!(body.kind, ExpKind::Match { form: MatchForm::Match, .. }).then_some(body.span);
            Row { pattern: arm.pattern, guard: arm.guard, inner, span: arm.span }
        };
        let rows: Vec<Row> = arms.iter().map(row).collect();
        let ty = self.ty_of(scrutinee);
        let mut lets: Vec<(Var, Type, Term)> = Vec::new();
        // A tuple that is only there to be matched is not built.
        let written = match &self.tree.node(scrutinee).kind {
            ExpKind::Tuple(parts) => Some(parts.clone()),
            _ => None,
        };
        let parts = written.map(|parts| {
            parts
                .iter()
                .map(|part| {
                    let term = self.term(*part);
                    let ty = self.ty_of(*part);
                    (self.repeatable(term, &ty, &mut lets), ty)
                })
                .collect::<Vec<_>>()
        });
        let value = match &parts {
            Some(_) => At(span).unit(),
            None => self.term(scrutinee),
        };
        let result = match arms.first() {
            Some(arm) => self.ty_of(arm.body),
            None => Type::Unit,
        };
        let mut body = |this: &mut Self, wanted: Wanted| match wanted {
            Wanted::Body(arm) => this.term(arms[arm].body),
            Wanted::Guard(arm) => match arms[arm].guard {
                Some(guard) => this.term(guard),
                None => At(span).bool(true),
            },
        };
        let term = self.matching_with(value, &ty, parts, &rows, form, span, result, &mut body);
        lets.into_iter().rev().fold(term, |body, (var, ty, bound)| At(span).bind(&var, ty, bound, body))
    }

    /// Matching without guards in which no body is shared: parameters and `let`.
    #[allow(clippy::too_many_arguments)]
    pub fn matching(
        &mut self,
        value: Term,
        ty: &Type,
        parts: Option<Vec<(Term, Type)>>,
        rows: &[Row],
        form: MatchForm,
        span: Span,
        body: &mut dyn FnMut(&mut Self, usize) -> Term,
    ) -> Term {
        let mut wanted = |this: &mut Self, wanted: Wanted| match wanted {
            Wanted::Body(arm) => body(this, arm),
            Wanted::Guard(_) => At(span).bool(true),
        };
        self.matching_with(value, ty, parts, rows, form, span, Type::Unit, &mut wanted)
    }

    #[allow(clippy::too_many_arguments)]
    fn matching_with(
        &mut self,
        value: Term,
        ty: &Type,
        parts: Option<Vec<(Term, Type)>>,
        rows: &[Row],
        form: MatchForm,
        span: Span,
        result: Type,
        body: Body<'_, 'a>,
    ) -> Term {
        let mut lets = Vec::new();
        let root = self.repeatable(value, ty, &mut lets);
        let mut matcher = Matcher::new(self, ty.clone(), Reach::Term(root));
        if let Some(parts) = parts {
            let components = parts.into_iter().map(|(term, ty)| matcher.add(ty, Reach::Term(term))).collect();
            matcher.unbuilt_tuple(components);
        }
        let decision = matcher.decide(rows, form, span);
        let (parts, uses) = (std::mem::take(&mut matcher.parts), std::mem::take(&mut matcher.uses));
        let mut emit = Emit { parts: &parts, shared: Vec::new(), span, result };
        let mut functions: Vec<(Var, Type, Term)> = Vec::new();
        for (arm, row) in rows.iter().enumerate() {
            let shared = (uses[arm] > 1).then(|| self.share(arm, row, &emit, &decision, &mut functions, body));
            emit.shared.push(shared);
        }
        let term = self.emit(&decision, &emit, body);
        lets.extend(functions);
        lets.into_iter().rev().fold(term, |body, (var, ty, bound)| At(span).bind(&var, ty, bound, body))
    }

    /// A variable for the term, unless it is one.
    fn repeatable(&mut self, term: Term, ty: &Type, lets: &mut Vec<(Var, Type, Term)>) -> Term {
        if matches!(&*term.kind, TermKind::Var(..) | TermKind::Literal(_)) {
            return term;
        }
        let var = Var::fresh("x");
        let span = term.span;
        lets.push((var.clone(), ty.clone(), term));
        At(span).var(&var)
    }

    /// The body of an arm as a function of its variables.
    fn share(
        &mut self,
        arm: usize,
        row: &Row,
        emit: &Emit,
        decision: &Decision,
        functions: &mut Vec<(Var, Type, Term)>,
        body: Body<'_, 'a>,
    ) -> Shared {
        let at = At(row.span);
        let params = binds_of(decision, arm).unwrap_or_default();
        let types: Vec<Type> = params
            .iter()
            .map(|local| {
                let info = self.tree.local_of(*local);
                self.ty(info.ty, info.span)
            })
            .collect();
        let mut function = |this: &mut Self, name: &str, wanted: Wanted, result: Type| {
            // Guard and body have their own copies of the variables.
            let vars: Vec<Var> = params.iter().map(|local| this.tree.local_of(*local).var.refresh()).collect();
            for (local, var) in params.iter().zip(&vars) {
                this.alias.insert(*local, var.clone());
            }
            let inner = this.inside(&params, |this| body(this, wanted));
            let mut binders: Vec<(Var, Type)> = vars.into_iter().zip(types.iter().cloned()).collect();
            if binders.is_empty() {
                binders.push((Var::fresh("_"), Type::Unit));
            }
            let var = Var::fresh(name);
            let ty = Type::funs(binders.iter().map(|(_, ty)| ty.clone()).collect::<Vec<_>>(), result);
            functions.push((var.clone(), ty, at.lambdas(&binders, inner)));
            var
        };
        let guard = row.guard.map(|_| function(self, "guard", Wanted::Guard(arm), Type::Bool));
        let body = function(self, "arm", Wanted::Body(arm), emit.result.clone());
        Shared { body, guard, params }
    }

    fn emit(&mut self, decision: &Decision, emit: &Emit, body: Body<'_, 'a>) -> Term {
        with_stack(|| self.emit_node(decision, emit, body))
    }

    fn emit_node(&mut self, decision: &Decision, emit: &Emit, body: Body<'_, 'a>) -> Term {
        let at = At(emit.span);
        match decision {
            Decision::Leaf { arm, binds } => match &emit.shared[*arm] {
                Some(shared) => emit.call(&shared.body, &shared.params, binds, at),
                None => self.with_binds(binds, emit, |this| body(this, Wanted::Body(*arm))),
            },
            Decision::Guarded { arm, binds, otherwise } => match &emit.shared[*arm] {
                Some(shared) => {
                    let guard = match &shared.guard {
                        Some(guard) => emit.call(guard, &shared.params, binds, at),
                        None => at.bool(true),
                    };
                    let then = emit.call(&shared.body, &shared.params, binds, at);
                    at.if_(guard, then, self.emit(otherwise, emit, body))
                }
                None => self.with_binds(binds, emit, |this| {
                    let guard = body(this, Wanted::Guard(*arm));
                    let then = body(this, Wanted::Body(*arm));
                    at.if_(guard, then, this.emit(otherwise, emit, body))
                }),
            },
            Decision::Constructors { part, cases, default } => {
                let arms = cases
                    .iter()
                    .map(|(tag, children, inner)| {
                        let vars = children.iter().map(|child| emit.variable(*child)).collect();
                        Arm { tag: *tag, vars, body: self.emit(inner, emit, body) }
                    })
                    .collect();
                let default = default.as_ref().map(|inner| self.emit(inner, emit, body));
                at.case(emit.term(*part, at), arms, default)
            }
            Decision::Literals { part, cases, default } => {
                self.emit_literals(*part, cases, default.as_deref(), emit, body)
            }
            Decision::Lengths { part, cases, default } => {
                let element = match &emit.parts_of(*part).ty {
                    Type::Array(element) => (**element).clone(),
                    other => other.clone(),
                };
                let mut term = self.emit(default, emit, body);
                for (length, inner) in cases.iter().rev() {
                    let own = at.prim_at(Prim::Length, [element.clone()], [emit.term(*part, at)]);
                    let test = at.prim_at(Prim::Equal, [Type::Int], [own, at.int(*length as i64)]);
                    term = at.if_(test, self.emit(inner, emit, body), term);
                }
                term
            }
            Decision::Fail => at.unit(),
        }
    }

    fn emit_literals(
        &mut self,
        part: Part,
        cases: &[(Literal, Decision)],
        default: Option<&Decision>,
        emit: &Emit,
        body: Body<'_, 'a>,
    ) -> Term {
        let at = At(emit.span);
        let (mut term, tested) = match (default, cases.split_last()) {
            (Some(default), _) => (self.emit(default, emit, body), cases),
            (None, Some((last, before))) => (self.emit(&last.1, emit, body), before),
            (None, None) => (at.unit(), cases),
        };
        for (literal, inner) in tested.iter().rev() {
            let value = emit.term(part, at);
            let then = self.emit(inner, emit, body);
            term = match literal {
                Literal::Bool(true) => at.if_(value, then, term),
                Literal::Bool(false) => at.if_(value, term, then),
                Literal::Real(_) | Literal::Int(_) | Literal::String(_) | Literal::Unit => {
                    let ty = emit.parts_of(part).ty.clone();
                    let literal = at.term(TermKind::Literal(literal.clone()));
                    at.if_(at.prim_at(Prim::Equal, [ty], [value, literal]), then, term)
                }
            };
        }
        term
    }

    /// Variables of a pattern are the variables of the parts, where these have one, and are bound otherwise.
    fn with_binds(&mut self, binds: &[(LocalId, Part)], emit: &Emit, work: impl FnOnce(&mut Self) -> Term) -> Term {
        let at = At(emit.span);
        let mut lets = Vec::new();
        for (local, part) in binds {
            let value = emit.term(*part, at);
            match &*value.kind {
                TermKind::Var(var, types) if types.is_empty() => {
                    self.alias.insert(*local, var.clone());
                }
                _ => lets.push((self.var(*local), emit.parts_of(*part).ty.clone(), value)),
            }
        }
        let locals: Vec<LocalId> = binds.iter().map(|(local, _)| *local).collect();
        let inner = self.inside(&locals, work);
        lets.into_iter().rev().fold(inner, |body, (var, ty, bound)| at.bind(&var, ty, bound, body))
    }
}

impl Emit<'_> {
    fn parts_of(&self, part: Part) -> &PartInfo {
        part.of(self.parts)
    }

    fn variable(&self, part: Part) -> (Var, Type) {
        let info = self.parts_of(part);
        match &info.reach {
            Reach::Term(term) => match &*term.kind {
                TermKind::Var(var, _) => (var.clone(), info.ty.clone()),
                _ => (Var::fresh("x"), info.ty.clone()),
            },
            Reach::Component(..) | Reach::Element(..) | Reach::Tuple(_) => (Var::fresh("x"), info.ty.clone()),
        }
    }

    fn term(&self, part: Part, at: At) -> Term {
        let info = self.parts_of(part);
        match &info.reach {
            Reach::Term(term) => term.clone(),
            Reach::Component(whole, index) => at.proj(self.term(*whole, at), *index),
            Reach::Element(whole, index) => {
                at.prim_at(Prim::Get, [info.ty.clone()], [self.term(*whole, at), at.int(*index as i64)])
            }
            Reach::Tuple(parts) => at.tuple(parts.iter().map(|part| self.term(*part, at)).collect::<Vec<_>>()),
        }
    }

    fn call(&self, function: &Var, params: &[LocalId], binds: &[(LocalId, Part)], at: At) -> Term {
        let mut args: Vec<Term> = params
            .iter()
            .map(|local| match binds.iter().find(|(bound, _)| bound == local) {
                Some((_, part)) => self.term(*part, at),
                None => at.unit(),
            })
            .collect();
        if args.is_empty() {
            args.push(at.unit());
        }
        at.apps(at.var(function), args)
    }
}

/// The variables that an arm binds, in some order: that of its first leaf.
fn binds_of(decision: &Decision, arm: usize) -> Option<Vec<LocalId>> {
    with_stack(|| match decision {
        Decision::Leaf { arm: own, binds } => (*own == arm).then(|| binds.iter().map(|(local, _)| *local).collect()),
        Decision::Guarded { arm: own, binds, otherwise } => {
            if *own == arm {
                return Some(binds.iter().map(|(local, _)| *local).collect());
            }
            binds_of(otherwise, arm)
        }
        Decision::Constructors { cases, default, .. } => cases
            .iter()
            .find_map(|(_, _, inner)| binds_of(inner, arm))
            .or_else(|| default.as_ref().and_then(|inner| binds_of(inner, arm))),
        Decision::Literals { cases, default, .. } => cases
            .iter()
            .find_map(|(_, inner)| binds_of(inner, arm))
            .or_else(|| default.as_ref().and_then(|inner| binds_of(inner, arm))),
        Decision::Lengths { cases, default, .. } => {
            cases.iter().find_map(|(_, inner)| binds_of(inner, arm)).or_else(|| binds_of(default, arm))
        }
        Decision::Fail => None,
    })
}
