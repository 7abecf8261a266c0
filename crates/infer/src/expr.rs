//! Expressions: `synth` finds a type, `check` is told one and hands it inwards, so that messages are about the smallest
//! expression that is wrong, and fields and functions know what they are for.

use crate::annotation::SizeNames;
use crate::error::{TypeError, Why};
use crate::infer::Infer;
use crate::names::Value;
use crate::pattern::Reading;
use crate::store::{Node, Size, Ty};
use crate::tree::{Exp, ExpKind, MatchArm, MatchForm, Param, PatKind, Use};
use gradus_core::traverse::with_stack;
use gradus_core::{Literal, Prim};
use gradus_source::Span;
use gradus_syntax::ast;
use gradus_syntax::ast::{Expr, ExprKind};

impl Infer {
    pub fn synth(&mut self, expr: &Expr) -> Exp {
        self.synth_with(expr, None)
    }

    /// Finds the type of an expression. The hint is a type that it may turn out to have; nothing is forced to it.
    pub fn synth_with(&mut self, expr: &Expr, hint: Option<Ty>) -> Exp {
        with_stack(|| self.expression(expr, hint))
    }

    /// An expression that must have a type.
    pub fn check(&mut self, expr: &Expr, expected: Ty, why: &Why) -> Exp {
        with_stack(|| match &expr.kind {
            ExprKind::If(condition, then, otherwise) => {
                let open = self.store.kind(expected).is_some();
                let condition = self.check(condition, Ty::BOOL, &Why::Condition);
                let then_exp = self.check(then, expected, why);
                let other = Why::Branch { first: then.span };
                let else_exp = self.check(otherwise, expected, if open { &other } else { why });
                self.tree.exp(ExpKind::If(condition, then_exp, else_exp), expected, expr.span)
            }
            ExprKind::Match(scrutinee, arms) => {
                let scrutinee = self.synth(scrutinee);
                self.arms(scrutinee, arms, expected, why, expr.span)
            }
            ExprKind::Let(group, body) => self.local_let(group, expr.span, |this| this.check(body, expected, why)),
            ExprKind::Open(path, body) => self.with_opened(path, |this| this.check(body, expected, why)),
            ExprKind::Fun(params, body) => self.lambda(params, body, Some(expected), why, expr.span),
            ExprKind::Function(arms) => self.function_arms(arms, Some(expected), why, expr.span),
            ExprKind::Tuple(parts) => match self.store.shape(expected) {
                Node::Tuple(types) if types.len() == parts.len() => {
                    let parts = parts.iter().zip(types.iter()).map(|(p, t)| self.check(p, *t, why)).collect();
                    self.tree.exp(ExpKind::Tuple(parts), expected, expr.span)
                }
                _ => {
                    let exp = self.synth(expr);
                    self.flow(exp, expected, why)
                }
            },
            ExprKind::Int(_)
            | ExprKind::Real(_)
            | ExprKind::String(_)
            | ExprKind::Bool(_)
            | ExprKind::Unit
            | ExprKind::Var(_)
            | ExprKind::Constructor(_)
            | ExprKind::App(..)
            | ExprKind::List(_)
            | ExprKind::Array(_)
            | ExprKind::Comprehension(..)
            | ExprKind::Record(_)
            | ExprKind::RecordWith(..)
            | ExprKind::Field(..)
            | ExprKind::Index(..)
            | ExprKind::Unary(..)
            | ExprKind::Binary(..)
            | ExprKind::Operator(_)
            | ExprKind::Annotation(..)
            | ExprKind::Error => {
                let exp = self.synth_with(expr, Some(expected));
                self.flow(exp, expected, why)
            }
        })
    }

    fn expression(&mut self, expr: &Expr, hint: Option<Ty>) -> Exp {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Int(text) => {
                let ty = self.store.number();
                self.tree.exp(ExpKind::Numeral(text.clone()), ty, span)
            }
            ExprKind::Real(text) => self.literal(Literal::Real(crate::literal::real(text)), Ty::REAL, span),
            ExprKind::String(text) => self.literal(Literal::String(text.clone()), Ty::STRING, span),
            ExprKind::Bool(value) => self.literal(Literal::Bool(*value), Ty::BOOL, span),
            ExprKind::Unit => self.literal(Literal::Unit, Ty::UNIT, span),
            ExprKind::Var(path) => match self.value(path) {
                Some(value) => self.use_value(value, span).0,
                None => self.error_exp(span),
            },
            ExprKind::Constructor(path) => self.constructed(path, None, hint, span),
            ExprKind::App(head, args) => {
                self.application(head, args.iter().map(crate::apply::Arg::Written).collect(), hint, span)
            }
            ExprKind::Fun(params, body) => self.lambda(params, body, None, &Why::Wanted, span),
            ExprKind::Function(arms) => self.function_arms(arms, None, &Why::Wanted, span),
            ExprKind::Let(group, body) => self.local_let(group, span, |this| this.synth_with(body, hint)),
            ExprKind::Open(path, body) => self.with_opened(path, |this| this.synth_with(body, hint)),
            ExprKind::If(..) | ExprKind::Match(..) => {
                let ty = self.store.fresh();
                let exp = self.check(expr, ty, &Why::Wanted);
                self.store.settle_soft(ty);
                exp
            }
            ExprKind::Tuple(parts) => {
                let parts: Vec<Exp> = parts.iter().map(|part| self.synth(part)).collect();
                let types = parts.iter().map(|part| self.ty(*part)).collect();
                let ty = self.store.tuple(types);
                self.tree.exp(ExpKind::Tuple(parts), ty, span)
            }
            ExprKind::List(items) => self.list(items, hint, span),
            ExprKind::Array(items) => {
                let hinted = match hint.map(|hint| self.store.shape(hint)) {
                    Some(Node::Array(element, _)) => Some(element),
                    _ => None,
                };
                let (items, element) = self.elements(items, hinted, true);
                let ty = self.store.array(element, Size::Literal(items.len() as u64));
                self.tree.exp(ExpKind::Array(items), ty, span)
            }
            ExprKind::Comprehension(bounds, body) => self.comprehension(bounds, body, span),
            ExprKind::Record(fields) => self.record(fields, hint, span),
            ExprKind::RecordWith(base, fields) => self.record_with(base, fields, hint, span),
            ExprKind::Field(base, path) => self.field_of(base, path, span),
            ExprKind::Index(array, indices) => {
                let array = self.synth(array);
                indices.iter().fold(array, |array, index| self.index(array, index, span))
            }
            ExprKind::Unary(ast::UnaryOp::Neg, operand) => self.negation(operand, span),
            ExprKind::Binary(op, at, left, right) => self.binary(*op, *at, left, right, hint, span),
            ExprKind::Operator(op) => self.section(*op, hint, span),
            ExprKind::Annotation(inner, annotation) => {
                let ty = self.type_expr(annotation, SizeNames::Unknown);
                let why = Why::Annotation { at: annotation.span };
                let exp = self.check(inner, ty, &why);
                // The annotation is what is known from here on, and the expression is that of the parentheses.
                let node = self.tree.node(exp).clone();
                self.tree.exp(node.kind, if node.ty == Ty::ERROR { Ty::ERROR } else { ty }, span)
            }
            ExprKind::Error => self.error_exp(span),
        }
    }

    pub fn literal(&mut self, literal: Literal, ty: Ty, span: Span) -> Exp {
        self.tree.exp(ExpKind::Literal(literal), ty, span)
    }

    /// A use of a name: an instance of its type. Also the array size that is an integer parameter, for `build`.
    pub fn use_value(&mut self, value: Value, span: Span) -> (Exp, Option<(usize, Size)>) {
        match value {
            Value::Local(id) => {
                let local = self.tree.local_of(id).clone();
                let (ty, types) = match &local.scheme {
                    None => (local.ty, [].into()),
                    Some(scheme) => {
                        let instance = self.store.instantiate_local(local.ty, scheme);
                        (instance.ty, instance.types)
                    }
                };
                (self.tree.exp(ExpKind::Local(id, types), ty, span), None)
            }
            Value::Global(id) => {
                let global = self.tables.globals[id.0 as usize].clone();
                let exp = match (global.scheme, global.progress) {
                    (Some(scheme), progress) => {
                        let instance = scheme.instantiate(&mut self.store);
                        let kind = ExpKind::Global(id, Use::At(instance.types.clone()));
                        let exp = self.tree.exp(kind, instance.ty, span);
                        if progress.is_some() {
                            self.early_uses.push((id, instance.types, exp));
                        }
                        exp
                    }
                    (None, Some((ty, sizes))) => {
                        let scheme = crate::scheme::LocalScheme { vars: Vec::new(), sizes };
                        let instance = self.store.instantiate_local(ty, &scheme);
                        self.tree.exp(ExpKind::Global(id, Use::Group), instance.ty, span)
                    }
                    // Its definition is wrong, which has been told.
                    (None, None) => self.error_exp(span),
                };
                (exp, None)
            }
            Value::Prim(prim) => {
                let scheme = self.tables.builtins.prim(prim);
                let instance = scheme.instantiate(&mut self.store);
                let size = scheme.size_param.and_then(|(i, s)| instance.sizes.get(s as usize).map(|size| (i, *size)));
                (self.tree.exp(ExpKind::Prim(prim, instance.types, Vec::new()), instance.ty, span), size)
            }
            Value::Derive(op) => {
                let instance = self.tables.builtins.derive(op).instantiate(&mut self.store);
                (self.tree.exp(ExpKind::Derive(op, instance.types, Vec::new()), instance.ty, span), None)
            }
        }
    }

    /// The elements of a list or an array, with their common type. Arrays are regular: their rows have one size.
    fn elements(&mut self, items: &[Expr], hint: Option<Ty>, regular: bool) -> (Vec<Exp>, Ty) {
        let element = self.store.fresh_of(crate::store::Kind { single: regular, ..Default::default() });
        let first = items.first().map_or(Span::default(), |item| item.span);
        let why = Why::Element { first };
        let items = items
            .iter()
            .map(|item| {
                // What the first element says helps the others, and the hint helps all, without forcing them.
                match self.store.kind(element) {
                    Some(_) => {
                        let exp = self.synth_with(item, hint);
                        self.flow(exp, element, &why)
                    }
                    None => self.check(item, element, &why),
                }
            })
            .collect();
        self.store.settle_soft(element);
        (items, element)
    }

    fn list(&mut self, items: &[Expr], hint: Option<Ty>, span: Span) -> Exp {
        let hinted = match hint.map(|hint| self.store.shape(hint)) {
            Some(Node::Named(crate::declared::Declared::LIST, args)) => args.first().copied(),
            _ => None,
        };
        let (items, element) = self.elements(items, hinted, false);
        let ty = self.named(crate::declared::Declared::LIST, vec![element]);
        let nil = ExpKind::Construct(crate::declared::Declared::LIST, 0, Vec::new());
        let nil = self.tree.exp(nil, ty, span);
        items.into_iter().rev().fold(nil, |rest, item| {
            self.tree.exp(ExpKind::Construct(crate::declared::Declared::LIST, 1, vec![item, rest]), ty, span)
        })
    }

    /// `a.(i)`
    fn index(&mut self, array: Exp, index: &Expr, span: Span) -> Exp {
        let application = self.start_application();
        let element = self.store.fresh_of(crate::store::Kind { single: true, ..Default::default() });
        let size = self.store.fresh_size();
        let ty = self.store.array(element, size);
        let array = self.flow(array, ty, &Why::Operand { op: ".( )", at: span });
        let index = self.check(index, Ty::INT, &Why::Index);
        self.finish_application(application);
        self.tree.exp(ExpKind::Prim(Prim::Get, [element].into(), vec![array, index]), element, span)
    }

    /// `[| for i < n, j < m -> e |]` is `build n (fun i -> build m (fun j -> e))`.
    fn comprehension(&mut self, bounds: &[(ast::Ident, Expr)], body: &Expr, span: Span) -> Exp {
        let depth = self.enter();
        let mut rows = Vec::new();
        for (variable, bound) in bounds {
            let bound = self.check(bound, Ty::INT, &Why::Bound);
            let size = self.size_of(bound).unwrap_or(Size::Unknown);
            let local = self.tree.local(variable.name.clone(), Ty::INT, variable.span);
            self.bind_local(local);
            rows.push((bound, size, local, variable.span));
        }
        let mut exp = self.synth(body);
        self.leave(depth);
        for (bound, size, local, place) in rows.into_iter().rev() {
            let element = self.ty(exp);
            let pattern = self.tree.pat(PatKind::Bind(local, None), Ty::INT, place);
            let param = Param { pattern, ty: Ty::INT, checks: Vec::new(), binds: Vec::new(), span: place };
            let function = self.store.fun(Ty::INT, element);
            let body = self.tree.exp(ExpKind::Function(vec![param], exp), function, span);
            let ty = self.store.array(element, size);
            exp = self.tree.exp(ExpKind::Prim(Prim::Build, [element].into(), vec![bound, body]), ty, span);
        }
        exp
    }

    /// The arms of a `match`, all of the expected type.
    pub fn arms(&mut self, scrutinee: Exp, arms: &[ast::Arm], expected: Ty, why: &Why, span: Span) -> Exp {
        let open = self.store.kind(expected).is_some();
        let (value_ty, value_span) = (self.ty(scrutinee), self.tree.node(scrutinee).span);
        let mut made = Vec::new();
        let mut first: Option<Span> = None;
        for arm in arms {
            let depth = self.enter();
            let mut reading = Reading::new(SizeNames::Unknown, Some(value_span));
            let pattern = self.whole_pattern(&arm.pattern, value_ty, &mut reading);
            for (_, id, _) in &reading.bound {
                self.bind_local(*id);
            }
            let guard = arm.guard.as_ref().map(|guard| self.check(guard, Ty::BOOL, &Why::Guard));
            let body = match (first, open) {
                (Some(first), true) => self.check(&arm.body, expected, &Why::Arm { first }),
                _ => self.check(&arm.body, expected, why),
            };
            first.get_or_insert(arm.body.span);
            self.leave(depth);
            made.push(MatchArm { pattern, guard, body, span: arm.span });
        }
        self.tree.exp(ExpKind::Match { scrutinee, arms: made, form: MatchForm::Match }, expected, span)
    }

    /// `function A -> e | B -> e` is `fun x -> match x with ...`.
    fn function_arms(&mut self, arms: &[ast::Arm], expected: Option<Ty>, why: &Why, span: Span) -> Exp {
        let (from, to) = self.split_function(expected);
        let local = self.tree.local("x".into(), from, span);
        let scrutinee = self.tree.exp(ExpKind::Local(local, [].into()), from, span);
        let body = self.arms(scrutinee, arms, to, &of_result(why), span);
        let pattern = self.tree.pat(PatKind::Bind(local, None), from, span);
        let param = Param { pattern, ty: from, checks: Vec::new(), binds: Vec::new(), span };
        let ty = self.store.fun(from, to);
        let exp = self.tree.exp(ExpKind::Function(vec![param], body), ty, span);
        match expected {
            Some(expected) => self.flow(exp, expected, why),
            None => exp,
        }
    }

    /// Parameter and result of an expected function type, or new ones.
    pub fn split_function(&mut self, expected: Option<Ty>) -> (Ty, Ty) {
        match expected.map(|ty| self.store.shape(ty)) {
            Some(Node::Fun(from, to)) => {
                self.now_param(from);
                (from, to)
            }
            _ => (self.store.param(), self.store.fresh()),
        }
    }

    /// A type of which nothing is known is a parameter's from now on; one that numerals have reached stays what they make of it.
    fn now_param(&mut self, ty: Ty) {
        if let Some(kind) = self.store.kind(ty) {
            if !kind.number {
                let root = self.store.find(ty);
                self.store.set(root, Node::Unbound(crate::store::Kind { param: true, ..kind }));
            }
        }
    }

    /// `fun x (y, z) -> e`
    fn lambda(&mut self, params: &[ast::Pattern], body: &Expr, expected: Option<Ty>, why: &Why, span: Span) -> Exp {
        self.size_vars.push(Default::default());
        let depth = self.enter();
        let mut rest = expected;
        let mut reading = Reading::new(SizeNames::Flexible, None);
        let mut made = Vec::new();
        for param in params {
            let (known, result) = match rest.map(|ty| self.store.shape(ty)) {
                Some(Node::Fun(from, to)) => (Some(from), Some(to)),
                _ => (None, None),
            };
            made.push(self.param(param, known, &mut reading));
            rest = result;
        }
        self.no_variable_twice(&reading);
        let body = match rest {
            Some(result) if made.len() == params.len() => self.check(body, result, &of_result(why)),
            _ => self.synth(body),
        };
        self.leave(depth);
        self.size_vars.pop();
        let types: Vec<Ty> = made.iter().map(|param| param.ty).collect();
        let result = self.ty(body);
        let ty = self.store.funs(&types, result);
        let exp = self.tree.exp(ExpKind::Function(made, body), ty, span);
        match expected {
            Some(expected) => self.flow(exp, expected, why),
            None => exp,
        }
    }

    /// A parameter; its variables come into scope for those after it.
    pub fn param(&mut self, pattern: &ast::Pattern, known: Option<Ty>, reading: &mut Reading) -> Param {
        let ty = match (&pattern.kind, known) {
            // A written type is what the function takes; the caller's values are checked against it.
            (ast::PatternKind::Annotation(_, annotation), None) => self.type_expr(annotation, reading.sizes),
            (_, Some(known)) => {
                self.now_param(known);
                known
            }
            (_, None) => self.store.param(),
        };
        let before = reading.bound.len();
        let pat = match (&pattern.kind, known) {
            (ast::PatternKind::Annotation(inner, _), None) => self.pattern(inner, ty, reading),
            _ => self.pattern(pattern, ty, reading),
        };
        for (_, id, _) in &reading.bound[before..] {
            self.bind_local(*id);
        }
        Param { pattern: pat, ty, checks: Vec::new(), binds: Vec::new(), span: pattern.span }
    }

    pub fn no_variable_twice(&mut self, reading: &Reading) {
        let names: Vec<_> = reading.bound.iter().map(|(n, _, s)| (n.clone(), *s)).collect();
        self.twice(crate::error::Twice::PatternVariable, names);
    }

    /// A type that is too large for the passes that follow is refused where it arises.
    pub fn bounded(&mut self, ty: Ty, span: Span) -> Ty {
        let (size, depth) = self.store.extent(ty, &mut Default::default());
        if size > crate::scheme::MAX_TYPE_SIZE || depth > crate::scheme::MAX_TYPE_DEPTH {
            self.report(TypeError::TypeTooLarge { span });
            return Ty::ERROR;
        }
        ty
    }
}

/// Why the result of a function that is an argument has its type.
fn of_result(why: &Why) -> Why {
    match why {
        Why::Argument { function, index, head, .. } => {
            Why::Result { function: function.clone(), index: *index, head: *head }
        }
        other => other.clone(),
    }
}
