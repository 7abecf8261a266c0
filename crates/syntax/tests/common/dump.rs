//! The tree as an s-expression, to show in a test how a text was read.

use gradus_syntax::ast::*;
use gradus_syntax::operators::of_op;

pub fn module(module: &Module) -> String {
    module.items.iter().map(|i| item(i) + "\n").collect()
}

fn list(head: &str, parts: impl IntoIterator<Item = String>) -> String {
    let mut text = format!("({head}");
    for part in parts {
        text.push(' ');
        text.push_str(&part);
    }
    text + ")"
}

fn path(path: &Path) -> String {
    path.modules.iter().map(|m| format!("{}.", m.name)).collect::<String>() + &path.name.name
}

pub fn item(item: &Item) -> String {
    match &item.kind {
        ItemKind::Import(name) => format!("(import {})", name.name),
        ItemKind::Open(p) => format!("(open {})", path(p)),
        ItemKind::Type(decls) => list("type", decls.iter().map(type_decl)),
        ItemKind::Let(g) => list("let", group(g)),
        ItemKind::Data { name, ty: t, file } => format!("(data {} {} {:?})", name.name, ty(t), file.value),
        ItemKind::Show(e) => format!("(show {})", expr(e)),
        ItemKind::Check(e) => format!("(check {})", expr(e)),
        ItemKind::Plot { value, file } => {
            list("plot", std::iter::once(expr(value)).chain(file.as_ref().map(|f| format!("{:?}", f.value))))
        }
        ItemKind::Rule { direction, function, params, body } => {
            let head = match direction {
                Direction::Reverse => "derivative",
                Direction::Forward => "tangent",
            };
            let parts = std::iter::once(function.name.to_string());
            list(head, parts.chain(params.iter().map(pattern)).chain([expr(body)]))
        }
        ItemKind::Error => "ERROR".into(),
    }
}

fn type_decl(decl: &TypeDecl) -> String {
    let head: String = decl.params.iter().map(|p| format!("'{} ", p.name)).collect::<String>() + &decl.name.name;
    match &decl.body {
        TypeBody::Alias(t) => list(&head, [ty(t)]),
        TypeBody::Record(fields) => {
            list(&head, [list("record", fields.iter().map(|f| format!("{}:{}", f.name.name, ty(&f.ty))))])
        }
        TypeBody::Variant(cases) => list(&head, cases.iter().map(|c| list(&c.name.name, c.args.iter().map(ty)))),
    }
}

fn group(group: &LetGroup) -> Vec<String> {
    let rec = group.recursive.then(|| "rec".to_string());
    rec.into_iter().chain(group.bindings.iter().map(binding)).collect()
}

fn binding(binding: &Binding) -> String {
    let mut parts: Vec<String> = binding.params.iter().map(pattern).collect();
    if let Some(t) = &binding.annotation {
        let quantified: String = binding.quantified.iter().map(|q| format!("'{} ", q.name)).collect();
        parts.push(format!(":{quantified}{}", ty(t)));
    }
    parts.push(expr(&binding.body));
    list(&pattern(&binding.pattern), parts)
}

pub fn ty(t: &TypeExpr) -> String {
    match &t.kind {
        TypeExprKind::Var(name) => format!("'{}", name.name),
        TypeExprKind::Named(p, args) if args.is_empty() => path(p),
        TypeExprKind::Named(p, args) => list(&path(p), args.iter().map(ty)),
        TypeExprKind::Tuple(parts) => list("*", parts.iter().map(ty)),
        TypeExprKind::Fun(a, b) => list("->", [ty(a), ty(b)]),
        TypeExprKind::Array(element, size) => {
            let size = match size {
                SizeExpr::Literal(n, _) => n.to_string(),
                SizeExpr::Var(name) => name.name.to_string(),
                SizeExpr::Unknown => "?".into(),
            };
            list("array", [size, ty(element)])
        }
        TypeExprKind::Wild => "_".into(),
        TypeExprKind::Error => "ERROR".into(),
    }
}

fn arm(arm: &Arm) -> String {
    let guard = arm.guard.as_ref().map(|g| format!("(when {})", expr(g)));
    list(&pattern(&arm.pattern), guard.into_iter().chain([expr(&arm.body)]))
}

fn fields<'a>(fields: &'a [(Path, Option<Expr>)]) -> impl Iterator<Item = String> + 'a {
    fields.iter().map(|(p, e)| path(p) + &e.as_ref().map_or(String::new(), |e| format!("={}", expr(e))))
}

pub fn expr(e: &Expr) -> String {
    match &e.kind {
        ExprKind::Int(t) | ExprKind::Real(t) => t.to_string(),
        ExprKind::String(s) => format!("{s:?}"),
        ExprKind::Bool(b) => b.to_string(),
        ExprKind::Unit => "()".into(),
        ExprKind::Var(p) | ExprKind::Constructor(p) => path(p),
        ExprKind::App(f, args) => list(&expr(f), args.iter().map(expr)),
        ExprKind::Fun(params, body) => list("fun", params.iter().map(pattern).chain([expr(body)])),
        ExprKind::Function(arms) => list("function", arms.iter().map(arm)),
        ExprKind::Let(g, body) => list("let", group(g).into_iter().chain([expr(body)])),
        ExprKind::Open(p, body) => list("open", [path(p), expr(body)]),
        ExprKind::If(a, b, c) => list("if", [expr(a), expr(b), expr(c)]),
        ExprKind::Match(s, arms) => list("match", std::iter::once(expr(s)).chain(arms.iter().map(arm))),
        ExprKind::Tuple(parts) => list(",", parts.iter().map(expr)),
        ExprKind::List(parts) => list("list", parts.iter().map(expr)),
        ExprKind::Array(parts) => list("array", parts.iter().map(expr)),
        ExprKind::Comprehension(ranges, body) => {
            list("for", ranges.iter().map(|(i, n)| format!("{}<{}", i.name, expr(n))).chain([expr(body)]))
        }
        ExprKind::Record(fs) => list("record", fields(fs)),
        ExprKind::RecordWith(base, fs) => list("with", std::iter::once(expr(base)).chain(fields(fs))),
        ExprKind::Field(base, p) => format!("{}.{}", expr(base), path(p)),
        ExprKind::Index(base, at) => list("index", std::iter::once(expr(base)).chain(at.iter().map(expr))),
        ExprKind::Unary(UnaryOp::Neg, e) => list("-", [expr(e)]),
        ExprKind::Binary(op, _, l, r) => list(of_op(*op).text, [expr(l), expr(r)]),
        ExprKind::Operator(op) => format!("(op {})", of_op(*op).text),
        ExprKind::Annotation(e, t) => list(":", [expr(e), ty(t)]),
        ExprKind::Error => "ERROR".into(),
    }
}

pub fn pattern(p: &Pattern) -> String {
    match &p.kind {
        PatternKind::Wild => "_".into(),
        PatternKind::Var(name) => name.to_string(),
        PatternKind::Int(t) | PatternKind::Real(t) => t.to_string(),
        PatternKind::String(s) => format!("{s:?}"),
        PatternKind::Bool(b) => b.to_string(),
        PatternKind::Unit => "()".into(),
        PatternKind::Tuple(parts) => list(",", parts.iter().map(pattern)),
        PatternKind::List(parts) => list("list", parts.iter().map(pattern)),
        PatternKind::Cons(a, b) => list("::", [pattern(a), pattern(b)]),
        PatternKind::Constructor(p, None) => path(p),
        PatternKind::Constructor(p, Some(arg)) => list(&path(p), [pattern(arg)]),
        PatternKind::Record { fields, open } => {
            let open = open.then(|| "_".to_string());
            let fields =
                fields.iter().map(|(p, q)| path(p) + &q.as_ref().map_or(String::new(), |q| format!("={}", pattern(q))));
            list("record", fields.chain(open))
        }
        PatternKind::Array(parts) => list("array", parts.iter().map(pattern)),
        PatternKind::Or(cases) => list("|", cases.iter().map(pattern)),
        PatternKind::As(p, name) => list("as", [pattern(p), name.name.to_string()]),
        PatternKind::Annotation(p, t) => list(":", [pattern(p), ty(t)]),
        PatternKind::Error => "ERROR".into(),
    }
}
