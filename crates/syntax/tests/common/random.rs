//! Random trees, each from a seed, of the kinds that the parser can make.

use gradus_source::Span;
use gradus_syntax::ast::*;
use gradus_syntax::operators::OPERATORS;
use std::sync::Arc;

/// A small generator of random numbers (xorshift), so that a failure can be repeated from its seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..4 {
            random.next();
        }
        random
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() >> 11) as usize % n.max(1)
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    fn many<T>(&mut self, least: usize, most: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = least + self.below(most - least + 1);
        (0..count).map(|_| make(self)).collect()
    }
}

const NOWHERE: Span = Span { file: gradus_source::FileId(0), start: 0, end: 0 };
const LOWER: &[&str] = &[
    "x",
    "y",
    "f",
    "data",
    "show",
    "to",
    "from",
    "plot",
    "check",
    "tangent",
    "import",
    "a_rather_long_name_for_a_value",
    "x'",
];
const UPPER: &[&str] = &["A", "Leaf", "Node", "Some", "ALongConstructor"];

fn name(random: &mut Random, names: &[&str]) -> Arc<str> {
    (*random.pick(names)).into()
}

fn ident(random: &mut Random) -> Ident {
    Ident { name: name(random, LOWER), span: NOWHERE }
}

/// Without a prime: `'x'` would be a character.
fn type_var(random: &mut Random) -> Ident {
    Ident { name: name(random, &["a", "b", "data"]), span: NOWHERE }
}

fn upper(random: &mut Random) -> Ident {
    Ident { name: name(random, UPPER), span: NOWHERE }
}

fn path(random: &mut Random, last: fn(&mut Random) -> Ident) -> Path {
    let modules = if random.chance(20) { random.many(1, 2, upper) } else { Vec::new() };
    Path { modules, name: last(random), span: NOWHERE }
}

pub fn module(random: &mut Random, size: usize) -> Module {
    let items = random.many(1, 4, |random| Item { kind: item(random, size), span: NOWHERE });
    Module { items }
}

fn text(random: &mut Random) -> Text {
    Text { value: string(random), span: NOWHERE }
}

fn string(random: &mut Random) -> Arc<str> {
    (*random.pick(&["", "points.csv", "a\n\t\"b\"\\", "(* no comment *)", "é\u{1}日"])).into()
}

fn item(random: &mut Random, size: usize) -> ItemKind {
    match random.below(12) {
        0 => ItemKind::Import(upper(random)),
        1 => ItemKind::Open(path(random, upper)),
        2 => ItemKind::Type(random.many(1, 2, type_decl)),
        3 => ItemKind::Data { name: ident(random), ty: ty(random, 3), file: text(random) },
        4 => ItemKind::Show(expr(random, size)),
        5 => ItemKind::Check(expr(random, size)),
        6 => {
            let file = if random.chance(50) { Some(text(random)) } else { None };
            ItemKind::Plot { value: expr(random, size), file }
        }
        7 => ItemKind::Rule {
            direction: *random.pick(&[Direction::Reverse, Direction::Forward]),
            function: ident(random),
            params: random.many(1, 3, |r| pattern(r, 2)),
            body: expr(random, size),
        },
        _ => ItemKind::Let(group(random, size)),
    }
}

fn type_decl(random: &mut Random) -> TypeDecl {
    let params = random.many(0, 2, type_var);
    let body = match random.below(3) {
        0 => TypeBody::Alias(ty(random, 3)),
        1 => TypeBody::Record(random.many(1, 4, |r| FieldDecl { name: ident(r), ty: ty(r, 2) })),
        _ => TypeBody::Variant(random.many(1, 5, |r| ConstructorDecl {
            name: upper(r),
            args: r.many(0, 3, |r| ty(r, 2)),
            span: NOWHERE,
        })),
    };
    TypeDecl { params, name: ident(random), body, span: NOWHERE }
}

pub fn ty(random: &mut Random, size: usize) -> TypeExpr {
    let kind = match random.below(if size == 0 { 3 } else { 7 }) {
        0 => TypeExprKind::Var(type_var(random)),
        1 => TypeExprKind::Wild,
        2 => TypeExprKind::Named(path(random, ident), Vec::new()),
        3 => TypeExprKind::Named(path(random, ident), random.many(1, 2, |r| ty(r, size - 1))),
        4 => TypeExprKind::Tuple(random.many(2, 3, |r| ty(r, size - 1))),
        5 => TypeExprKind::Fun(Box::new(ty(random, size - 1)), Box::new(ty(random, size - 1))),
        _ => {
            let length = match random.below(3) {
                0 => SizeExpr::Literal(random.below(10) as u64, NOWHERE),
                1 => SizeExpr::Var(ident(random)),
                _ => SizeExpr::Unknown,
            };
            TypeExprKind::Array(Box::new(ty(random, size - 1)), length)
        }
    };
    TypeExpr { kind, span: NOWHERE }
}

fn group(random: &mut Random, size: usize) -> LetGroup {
    LetGroup { recursive: random.chance(30), bindings: random.many(1, 2, |r| binding(r, size)) }
}

fn binding(random: &mut Random, size: usize) -> Binding {
    let pattern_size = random.below(3);
    let pattern = pattern(random, pattern_size);
    let is_name = matches!(pattern.kind, PatternKind::Var(_));
    let params = if is_name { random.many(0, 3, |r| self::pattern(r, 1)) } else { Vec::new() };
    let annotation = if random.chance(30) { Some(ty(random, 2)) } else { None };
    let quantified = if annotation.is_some() { random.many(0, 2, type_var) } else { Vec::new() };
    Binding { pattern, params, quantified, annotation, body: expr(random, size.saturating_sub(1)), span: NOWHERE }
}

pub fn pattern(random: &mut Random, size: usize) -> Pattern {
    let kind = match random.below(if size == 0 { 8 } else { 16 }) {
        0 => PatternKind::Wild,
        1 | 2 => PatternKind::Var(name(random, LOWER)),
        3 => PatternKind::Int(name(random, &["0", "1", "-3", "255"])),
        4 => PatternKind::Real(name(random, &["0.", "1.5", "-1e-6"])),
        5 => PatternKind::String(string(random)),
        6 => PatternKind::Bool(random.chance(50)),
        7 => PatternKind::Unit,
        8 => PatternKind::Tuple(random.many(2, 3, |r| pattern(r, size - 1))),
        9 => PatternKind::List(random.many(0, 3, |r| pattern(r, size - 1))),
        10 => PatternKind::Cons(Box::new(pattern(random, size - 1)), Box::new(pattern(random, size - 1))),
        11 => {
            let arg = if random.chance(60) { Some(Box::new(pattern(random, size - 1))) } else { None };
            PatternKind::Constructor(path(random, upper), arg)
        }
        12 => {
            let field = |r: &mut Random| {
                let inner = if r.chance(50) { Some(pattern(r, size - 1)) } else { None };
                (path(r, ident), inner)
            };
            PatternKind::Record { fields: random.many(1, 3, field), open: random.chance(30) }
        }
        13 => PatternKind::Array(random.many(0, 3, |r| pattern(r, size - 1))),
        14 => PatternKind::Or(random.many(2, 3, |r| pattern(r, size - 1))),
        _ if random.chance(50) => PatternKind::As(Box::new(pattern(random, size - 1)), ident(random)),
        _ => PatternKind::Annotation(Box::new(pattern(random, size - 1)), ty(random, 2)),
    };
    Pattern { kind, span: NOWHERE }
}

fn arm(random: &mut Random, size: usize) -> Arm {
    let guard = if random.chance(25) { Some(expr(random, size)) } else { None };
    Arm { pattern: pattern(random, 2), guard, body: expr(random, size), span: NOWHERE }
}

fn fields(random: &mut Random, least: usize, size: usize) -> Vec<(Path, Option<Expr>)> {
    random.many(least, 3, |r| {
        let value = if r.chance(75) { Some(expr(r, size)) } else { None };
        (path(r, ident), value)
    })
}

pub fn expr(random: &mut Random, size: usize) -> Expr {
    let boxed = |random: &mut Random| Box::new(expr(random, size.saturating_sub(1)));
    let small = size.saturating_sub(1);
    let kind = match random.below(if size == 0 { 9 } else { 34 }) {
        0 => ExprKind::Int(name(random, &["0", "1", "42", "123456789012345678901234567890"])),
        1 => ExprKind::Real(name(random, &["0.", "1.5", "1e-6", "2.5E+3"])),
        2 => ExprKind::String(string(random)),
        3 => ExprKind::Bool(random.chance(50)),
        4 => ExprKind::Unit,
        5 | 6 => ExprKind::Var(path(random, ident)),
        7 => ExprKind::Constructor(path(random, upper)),
        8 => ExprKind::Operator(random.pick(OPERATORS).op),
        9..=12 => ExprKind::App(boxed(random), random.many(1, 3, |r| expr(r, small))),
        13 | 14 => ExprKind::Fun(random.many(1, 3, |r| pattern(r, 1)), boxed(random)),
        15 => ExprKind::Function(random.many(1, 3, |r| arm(r, small))),
        16 | 17 => ExprKind::Let(group(random, small), boxed(random)),
        18 => ExprKind::Open(path(random, upper), boxed(random)),
        19 | 20 => ExprKind::If(boxed(random), boxed(random), boxed(random)),
        21 | 22 => ExprKind::Match(boxed(random), random.many(1, 3, |r| arm(r, small))),
        23 => ExprKind::Tuple(random.many(2, 3, |r| expr(r, small))),
        24 => ExprKind::List(random.many(0, 3, |r| expr(r, small))),
        25 => ExprKind::Array(random.many(0, 3, |r| expr(r, small))),
        26 => ExprKind::Comprehension(random.many(1, 2, |r| (ident(r), expr(r, small))), boxed(random)),
        27 => ExprKind::Record(fields(random, 1, small)),
        28 => ExprKind::RecordWith(boxed(random), fields(random, 1, small)),
        29 => ExprKind::Field(boxed(random), path(random, ident)),
        30 => ExprKind::Index(boxed(random), random.many(1, 2, |r| expr(r, small))),
        31 => ExprKind::Unary(UnaryOp::Neg, boxed(random)),
        32 => ExprKind::Annotation(boxed(random), ty(random, 2)),
        _ => return operators(random, size),
    };
    Expr { kind, span: NOWHERE }
}

/// Operators often, and in one another: that is where parentheses go wrong.
fn operators(random: &mut Random, size: usize) -> Expr {
    if size == 0 || random.chance(20) {
        return expr(random, size.saturating_sub(1));
    }
    let kind = if random.chance(12) {
        ExprKind::Unary(UnaryOp::Neg, Box::new(operators(random, size - 1)))
    } else {
        let op = random.pick(OPERATORS).op;
        let (left, right) = (Box::new(operators(random, size - 1)), Box::new(operators(random, size - 1)));
        ExprKind::Binary(op, NOWHERE, left, right)
    };
    Expr { kind, span: NOWHERE }
}
