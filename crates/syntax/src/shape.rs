//! Trees compared without regard to where they stand in a text.

use crate::ast::*;
use crate::parser::DEPTH_LIMIT;
use gradus_source::Span;

/// Stack enough for the derived `clone` and `==`, which recurse over a tree as deep as the parser allows.
const STACK: usize = DEPTH_LIMIT * 4096;

/// Whether two modules differ in nothing but spans.
pub fn same_shape(one: &Module, other: &Module) -> bool {
    stacker::grow(STACK, || {
        let (mut one, mut other) = (one.clone(), other.clone());
        clear_spans(&mut one);
        clear_spans(&mut other);
        one == other
    })
}

/// Makes every span of a module the empty one.
pub fn clear_spans(module: &mut Module) {
    for item in &mut module.items {
        clear(&mut item.span);
        clear_item(&mut item.kind);
    }
}

fn clear(span: &mut Span) {
    *span = Span::default();
}

fn ident(ident: &mut Ident) {
    clear(&mut ident.span);
}

fn path(path: &mut Path) {
    clear(&mut path.span);
    path.modules.iter_mut().for_each(ident);
    ident(&mut path.name);
}

fn clear_item(kind: &mut ItemKind) {
    match kind {
        ItemKind::Import(name) => ident(name),
        ItemKind::Open(p) => path(p),
        ItemKind::Type(decls) => decls.iter_mut().for_each(type_decl),
        ItemKind::Let(group) => let_group(group),
        ItemKind::Data { name, ty: t, file } => {
            ident(name);
            ty(t);
            clear(&mut file.span);
        }
        ItemKind::Show(e) | ItemKind::Check(e) => expr(e),
        ItemKind::Plot { value, file } => {
            expr(value);
            file.iter_mut().for_each(|file| clear(&mut file.span));
        }
        ItemKind::Rule { direction: _, function, params, body } => {
            ident(function);
            params.iter_mut().for_each(pattern);
            expr(body);
        }
        ItemKind::Error => {}
    }
}

fn type_decl(decl: &mut TypeDecl) {
    clear(&mut decl.span);
    decl.params.iter_mut().for_each(ident);
    ident(&mut decl.name);
    match &mut decl.body {
        TypeBody::Alias(t) => ty(t),
        TypeBody::Record(fields) => fields.iter_mut().for_each(|field| {
            ident(&mut field.name);
            ty(&mut field.ty);
        }),
        TypeBody::Variant(cases) => cases.iter_mut().for_each(|case| {
            clear(&mut case.span);
            ident(&mut case.name);
            case.args.iter_mut().for_each(ty);
        }),
    }
}

fn ty(t: &mut TypeExpr) {
    clear(&mut t.span);
    match &mut t.kind {
        TypeExprKind::Var(name) => ident(name),
        TypeExprKind::Named(p, args) => {
            path(p);
            args.iter_mut().for_each(ty);
        }
        TypeExprKind::Tuple(parts) => parts.iter_mut().for_each(ty),
        TypeExprKind::Fun(from, to) => {
            ty(from);
            ty(to);
        }
        TypeExprKind::Array(element, size) => {
            ty(element);
            match size {
                SizeExpr::Literal(_, span) => clear(span),
                SizeExpr::Var(name) => ident(name),
                SizeExpr::Unknown => {}
            }
        }
        TypeExprKind::Wild | TypeExprKind::Error => {}
    }
}

fn let_group(group: &mut LetGroup) {
    for binding in &mut group.bindings {
        clear(&mut binding.span);
        pattern(&mut binding.pattern);
        binding.params.iter_mut().for_each(pattern);
        binding.quantified.iter_mut().for_each(ident);
        binding.annotation.iter_mut().for_each(ty);
        expr(&mut binding.body);
    }
}

fn arms(arms: &mut [Arm]) {
    for arm in arms {
        clear(&mut arm.span);
        pattern(&mut arm.pattern);
        arm.guard.iter_mut().for_each(expr);
        expr(&mut arm.body);
    }
}

fn fields(fields: &mut [(Path, Option<Expr>)]) {
    for (name, value) in fields {
        path(name);
        value.iter_mut().for_each(expr);
    }
}

fn expr(e: &mut Expr) {
    clear(&mut e.span);
    match &mut e.kind {
        ExprKind::Int(_)
        | ExprKind::Real(_)
        | ExprKind::String(_)
        | ExprKind::Bool(_)
        | ExprKind::Unit
        | ExprKind::Operator(_)
        | ExprKind::Error => {}
        ExprKind::Var(p) | ExprKind::Constructor(p) => path(p),
        ExprKind::App(function, args) => {
            expr(function);
            args.iter_mut().for_each(expr);
        }
        ExprKind::Fun(params, body) => {
            params.iter_mut().for_each(pattern);
            expr(body);
        }
        ExprKind::Function(cases) => arms(cases),
        ExprKind::Let(group, body) => {
            let_group(group);
            expr(body);
        }
        ExprKind::Open(p, body) => {
            path(p);
            expr(body);
        }
        ExprKind::If(a, b, c) => [a, b, c].into_iter().for_each(|e| expr(e)),
        ExprKind::Match(scrutinee, cases) => {
            expr(scrutinee);
            arms(cases);
        }
        ExprKind::Tuple(parts) | ExprKind::List(parts) | ExprKind::Array(parts) => parts.iter_mut().for_each(expr),
        ExprKind::Comprehension(ranges, body) => {
            for (name, bound) in ranges {
                ident(name);
                expr(bound);
            }
            expr(body);
        }
        ExprKind::Record(values) => fields(values),
        ExprKind::RecordWith(base, values) => {
            expr(base);
            fields(values);
        }
        ExprKind::Field(base, name) => {
            expr(base);
            path(name);
        }
        ExprKind::Index(base, indices) => {
            expr(base);
            indices.iter_mut().for_each(expr);
        }
        ExprKind::Unary(UnaryOp::Neg, operand) => expr(operand),
        ExprKind::Binary(_, span, left, right) => {
            clear(span);
            expr(left);
            expr(right);
        }
        ExprKind::Annotation(inner, t) => {
            expr(inner);
            ty(t);
        }
    }
}

fn pattern(p: &mut Pattern) {
    clear(&mut p.span);
    match &mut p.kind {
        PatternKind::Wild
        | PatternKind::Var(_)
        | PatternKind::Int(_)
        | PatternKind::Real(_)
        | PatternKind::String(_)
        | PatternKind::Bool(_)
        | PatternKind::Unit
        | PatternKind::Error => {}
        PatternKind::Tuple(parts) | PatternKind::List(parts) | PatternKind::Array(parts) | PatternKind::Or(parts) => {
            parts.iter_mut().for_each(pattern);
        }
        PatternKind::Cons(head, tail) => {
            pattern(head);
            pattern(tail);
        }
        PatternKind::Constructor(name, arg) => {
            path(name);
            arg.iter_mut().for_each(|arg| pattern(arg));
        }
        PatternKind::Record { fields, open: _ } => {
            for (name, inner) in fields {
                path(name);
                inner.iter_mut().for_each(pattern);
            }
        }
        PatternKind::As(inner, name) => {
            pattern(inner);
            ident(name);
        }
        PatternKind::Annotation(inner, t) => {
            pattern(inner);
            ty(t);
        }
    }
}
