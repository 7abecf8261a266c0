//! Applications, of functions and of constructors.

use crate::error::{TypeError, Why};
use crate::infer::Infer;
use crate::store::{Node, Size, Ty};
use crate::tree::{Exp, ExpKind, MatchArm, MatchForm, Param, PatKind};
use gradus_core::Symbol;
use gradus_source::Span;
use gradus_syntax::ast::{Expr, ExprKind, Path};

/// An argument, as it is written or already inferred (the left side of `|>`).
pub enum Arg<'e> {
    Written(&'e Expr),
    Done(Exp),
}

impl Arg<'_> {
    /// Functions are typed after the other arguments, which tell what they are applied to.
    fn waits(&self) -> bool {
        matches!(
            self,
            Arg::Written(Expr { kind: ExprKind::Fun(..) | ExprKind::Function(_) | ExprKind::Operator(_), .. })
        )
    }
}

impl Infer {
    pub fn application(&mut self, head: &Expr, args: Vec<Arg>, hint: Option<Ty>, span: Span) -> Exp {
        if let ExprKind::Constructor(path) = &head.kind {
            return self.constructor_application(path, args, hint, span);
        }
        let application = self.start_application();
        let name = match &head.kind {
            ExprKind::Var(path) => Some(path.name.name.clone()),
            _ => None,
        };
        let (function, size_param) = match &head.kind {
            ExprKind::Var(path) => match self.value(path) {
                Some(value) => self.use_value(value, head.span),
                None => (self.error_exp(head.span), None),
            },
            _ => (self.synth(head), None),
        };
        let exp = self.apply(function, name, args, size_param, span);
        self.finish_application(application);
        exp
    }

    /// Applies a function to arguments. The result's node is at `span`.
    fn apply(
        &mut self,
        function: Exp,
        name: Option<Symbol>,
        args: Vec<Arg>,
        size_param: Option<(usize, Size)>,
        span: Span,
    ) -> Exp {
        let head = self.tree.node(function).span;
        let whole = self.ty(function);
        let total = args.len();
        let errors = self.errors.len();
        let mut done: Vec<Exp> = Vec::new();
        let mut wanted = Vec::new();
        let mut at = whole;
        let mut args: Vec<Option<Arg>> = args.into_iter().map(Some).collect();
        while done.len() < total {
            // As many parameters as the type shows now; more may appear once these are known.
            let start = done.len();
            let mut params = Vec::new();
            while start + params.len() < total {
                match self.store.shape(at) {
                    Node::Fun(from, to) => {
                        params.push(from);
                        at = to;
                    }
                    _ => break,
                }
            }
            if params.is_empty() {
                match self.store.shape(at) {
                    Node::Unbound(kind) if !kind.number => {
                        let (from, to) = (self.store.fresh(), self.store.fresh());
                        let function = self.store.fun(from, to);
                        self.agree(at, function, head, &Why::Wanted);
                        if matches!(self.store.shape(at), Node::Unbound(_)) {
                            at = Ty::ERROR;
                        }
                        continue;
                    }
                    Node::Error => {
                        for arg in args[start..].iter_mut().filter_map(Option::take) {
                            done.push(self.written(arg));
                        }
                        return self.error_exp(span);
                    }
                    _ => {
                        let extra = match &args[start] {
                            Some(Arg::Written(e)) => e.span,
                            Some(Arg::Done(e)) => self.tree.node(*e).span,
                            None => span,
                        };
                        for arg in args[start..].iter_mut().filter_map(Option::take) {
                            self.written(arg);
                        }
                        // What is wrong with an argument explains it already.
                        if self.errors.len() > errors {
                            return self.error_exp(span);
                        }
                        let (ty, takes) = (self.show(whole), start);
                        let error =
                            TypeError::TooManyArguments { function: name, ty, takes, given: total, span: head, extra };
                        return self.wrong(error, span);
                    }
                }
            }
            wanted.extend(params.iter().map(|param| self.argument_shape(*param)));
            let mut made: Vec<Option<Exp>> = vec![None; params.len()];
            for later in [false, true] {
                for (i, param) in params.iter().enumerate() {
                    let index = start + i;
                    if args[index].as_ref().is_some_and(|arg| arg.waits() == later) {
                        let assumed = self
                            .assumed_param(function, index)
                            .or_else(|| made.iter().flatten().find_map(|argument| self.assumed_in(*argument)));
                        let why = Why::Argument { function: name.clone(), index: index + 1, head, assumed };
                        made[i] = args[index].take().map(|arg| match arg {
                            Arg::Written(expr) => self.check(expr, *param, &why),
                            Arg::Done(exp) => self.flow(exp, *param, &why),
                        });
                    }
                }
            }
            done.extend(made.into_iter().flatten());
            if let Some((index, size)) = size_param {
                if index >= start && index < done.len() {
                    self.decide_size(size, done[index]);
                }
            }
        }
        if self.errors.len() > errors {
            self.tell_order(function, &wanted, &done, errors);
        }
        self.applied(function, done, at, span)
    }

    /// The size of what `build n f` makes is `n`, if `n` names a size.
    fn decide_size(&mut self, size: Size, count: Exp) {
        if let Size::Var(v) = self.store.size(size) {
            let known = self.size_of(count).unwrap_or(Size::Unknown);
            if self.store.size(known) != Size::Var(v) {
                self.store.sizes[v as usize] = crate::store::SizeNode::Link(known);
            }
        }
    }

    fn written(&mut self, arg: Arg) -> Exp {
        match arg {
            Arg::Written(expr) => self.synth(expr),
            Arg::Done(exp) => exp,
        }
    }

    /// Primitives and derivative forms take their arguments into the node, as many as they have room for.
    fn applied(&mut self, function: Exp, args: Vec<Exp>, ty: Ty, span: Span) -> Exp {
        let node = self.tree.node(function).clone();
        let room = match &node.kind {
            ExpKind::Prim(prim, _, before) if before.is_empty() => prim.info().params.len(),
            ExpKind::Derive(op, _, before) if before.is_empty() => crate::builtin::derive_arity(*op),
            _ => 0,
        };
        let taken = room.min(args.len());
        let mut at = node.ty;
        let mut exp = function;
        if taken > 0 {
            for _ in 0..taken {
                if let Node::Fun(_, to) = self.store.shape(at) {
                    at = to;
                }
            }
            exp = self.tree.exp(with_args(node.kind, args[..taken].to_vec()), at, span);
        }
        for arg in &args[taken..] {
            at = match self.store.shape(at) {
                Node::Fun(_, to) => to,
                _ => ty,
            };
            let place = self.tree.node(function).span.to(self.tree.node(*arg).span);
            let place = if place.file == span.file { place } else { span };
            exp = self.tree.exp(ExpKind::App(exp, *arg), at, place);
        }
        exp
    }

    fn constructor_application(&mut self, path: &Path, args: Vec<Arg>, hint: Option<Ty>, span: Span) -> Exp {
        let mut args = args.into_iter();
        let (first, more) = (args.next(), args.next());
        if more.is_some() {
            // `Node a b`: constructors take a tuple.
            let given = 2 + args.count();
            if let Some((id, tag)) = self.constructor(path) {
                let expected = self.tables.declared.arities(id)[tag];
                let name = path.name.name.clone();
                self.report(TypeError::ConstructorArity { name, expected, given, span });
            }
            return self.error_exp(span);
        }
        self.constructed(path, first, hint, span)
    }

    /// A constructor, with or without its argument.
    pub fn constructed(&mut self, path: &Path, arg: Option<Arg>, hint: Option<Ty>, span: Span) -> Exp {
        let name = path.name.name.clone();
        let Some((id, tag)) = self.constructor(path) else {
            if let Some(arg) = arg {
                self.written(arg);
            }
            return self.error_exp(span);
        };
        let (own, types) = self.constructor_instance(id, tag);
        if let Some(hint) = hint {
            // Helps what is inside; whether it fits is for the caller to say.
            let fits = matches!(self.store.shape(hint), Node::Named(known, _) if known == id);
            if fits && arg.is_some() {
                let inner: Vec<Ty> = match self.store.shape(hint) {
                    Node::Named(_, args) => args.to_vec(),
                    _ => Vec::new(),
                };
                // Only what is known for certain: an open variable shall take its value from here, softly.
                if inner.iter().all(|ty| self.store.kind(*ty).is_none()) {
                    let _ = self.relate(hint, own, span);
                }
            }
        }
        let why = Why::ConstructorArgument { name: name.clone() };
        match (arg, &types[..]) {
            (None, []) => self.tree.exp(ExpKind::Construct(id, tag, Vec::new()), own, span),
            (None, _) => self.constructor_function(id, tag, own, types, span),
            (Some(arg), [one]) => {
                let arg = match arg {
                    Arg::Written(expr) => self.check(expr, *one, &why),
                    Arg::Done(exp) => self.flow(exp, *one, &why),
                };
                self.tree.exp(ExpKind::Construct(id, tag, vec![arg]), own, span)
            }
            (Some(Arg::Written(Expr { kind: ExprKind::Tuple(parts), .. })), types) if parts.len() == types.len() => {
                let args = parts.iter().zip(types).map(|(part, ty)| self.check(part, *ty, &why)).collect();
                self.tree.exp(ExpKind::Construct(id, tag, args), own, span)
            }
            (Some(arg), types) => {
                let given = match &arg {
                    Arg::Written(Expr { kind: ExprKind::Tuple(parts), .. }) => parts.len(),
                    _ => 1,
                };
                let exp = self.written(arg);
                let pair = types.len() > 1 && given == 1 && {
                    let ty = self.ty(exp);
                    let number = self.store.kind(ty).is_some_and(|kind| kind.number);
                    !number && matches!(self.store.shape(ty), Node::Tuple(_) | Node::Unbound(_) | Node::Error)
                };
                if !pair {
                    let error = TypeError::ConstructorArity { name, expected: types.len(), given, span };
                    return self.wrong(error, span);
                }
                // A tuple that is not written out is taken apart.
                let tuple = self.store.tuple(types.to_vec());
                let exp = self.flow(exp, tuple, &why);
                self.unpacked(id, tag, own, types, exp, span)
            }
        }
    }

    /// `match e with (a, b) -> C (a, b)`
    fn unpacked(&mut self, id: crate::store::TypeId, tag: usize, own: Ty, types: &[Ty], tuple: Exp, span: Span) -> Exp {
        let locals: Vec<_> = types.iter().map(|ty| self.tree.local("x".into(), *ty, span)).collect();
        let parts = locals.iter().zip(types).map(|(l, t)| self.tree.pat(PatKind::Bind(*l, None), *t, span)).collect();
        let tuple_ty = self.ty(tuple);
        let pattern = self.tree.pat(PatKind::Tuple(parts), tuple_ty, span);
        let args =
            locals.iter().zip(types).map(|(l, t)| self.tree.exp(ExpKind::Local(*l, [].into()), *t, span)).collect();
        let body = self.tree.exp(ExpKind::Construct(id, tag, args), own, span);
        let arms = vec![MatchArm { pattern, guard: None, body, span }];
        self.tree.exp(ExpKind::Match { scrutinee: tuple, arms, form: MatchForm::Let }, own, span)
    }

    /// `Node` alone: a function of its argument, a tuple if it has several.
    fn constructor_function(
        &mut self,
        id: crate::store::TypeId,
        tag: usize,
        own: Ty,
        types: Vec<Ty>,
        span: Span,
    ) -> Exp {
        let from = match types[..] {
            [one] => one,
            _ => self.store.tuple(types.clone()),
        };
        let local = self.tree.local("x".into(), from, span);
        let argument = self.tree.exp(ExpKind::Local(local, [].into()), from, span);
        let body = match types[..] {
            [_] => self.tree.exp(ExpKind::Construct(id, tag, vec![argument]), own, span),
            _ => self.unpacked(id, tag, own, &types, argument, span),
        };
        let pattern = self.tree.pat(PatKind::Bind(local, None), from, span);
        let param = Param { pattern, ty: from, checks: Vec::new(), binds: Vec::new(), span };
        let ty = self.store.fun(from, own);
        self.tree.exp(ExpKind::Function(vec![param], body), ty, span)
    }
}

fn with_args(kind: ExpKind, args: Vec<Exp>) -> ExpKind {
    match kind {
        ExpKind::Prim(prim, types, _) => ExpKind::Prim(prim, types, args),
        ExpKind::Derive(op, types, _) => ExpKind::Derive(op, types, args),
        other => other,
    }
}
