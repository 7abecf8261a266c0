//! Expressions as documents: which need parentheses, and operators.

use super::doc::Doc;
use super::pattern::path_text;
use super::Printer;
use crate::ast::{BinaryOp, Expr, ExprKind, UnaryOp};
use crate::operators::{of_op, Associativity, APPLICATION, NEGATION, SIMPLE, TUPLE};

/// What may follow an expression that reaches as far to the right as it can, such as `fun x -> e`.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Right {
    /// Nothing that it could take for its own.
    Closed,
    /// `|`, which a `match` would take.
    Bar,
    /// `;`, which OCaml would give to all of them but `if`.
    Semicolon,
    /// An operator or a comma, which all of them would take.
    Operator,
}

/// The place an expression is printed at.
#[derive(Clone, Copy)]
pub(super) struct Context {
    /// How tightly the expression must bind to need no parentheses.
    pub least: u8,
    pub right: Right,
    /// Behind an operator, where a minus needs no parentheses.
    pub operand: bool,
    /// Where parentheses that are not needed may still help a reader: they stay if the user put them.
    pub clarify: bool,
    /// At the end of a chain of operators where another of their precedence needs no parentheses.
    pub chain: bool,
}

pub(super) const ANYWHERE: Context =
    Context { least: TUPLE, right: Right::Closed, operand: false, clarify: false, chain: false };
pub(super) const ARGUMENT: Context = Context { least: SIMPLE, ..ANYWHERE };
/// Above the level of a comma.
pub(super) const ELEMENT: Context = Context { least: TUPLE + 1, ..ANYWHERE };

/// How an expression binds.
enum Level {
    Precedence(u8),
    /// Begins with a word and reaches to the right; `match` and `function` also over `|`.
    Open {
        over_bar: bool,
        is_if: bool,
    },
}

impl Printer<'_> {
    pub fn whole_expr(&mut self, expr: &Expr) -> Doc {
        self.expr(expr, ANYWHERE)
    }

    pub(super) fn expr(&mut self, expr: &Expr, context: Context) -> Doc {
        stacker::maybe_grow(256 * 1024, 4 * 1024 * 1024, || {
            let lead = self.before(expr.span.start);
            let doc = if self.needs_parens(expr, context) {
                let doc = self.bare_expr(expr, Right::Closed);
                self.parens(doc)
            } else {
                self.bare_expr(expr, context.right)
            };
            let trail = self.behind(expr.span.end);
            self.docs.concat([lead, doc, trail])
        })
    }

    fn needs_parens(&self, expr: &Expr, context: Context) -> bool {
        match self.level(expr) {
            Level::Open { over_bar, is_if } => match context.right {
                _ if context.least >= APPLICATION && !context.operand => true,
                Right::Closed => context.clarify && self.is_wrapped(expr),
                Right::Bar => over_bar || (context.clarify && self.is_wrapped(expr)),
                Right::Semicolon => !is_if || self.is_wrapped(expr),
                Right::Operator => true,
            },
            Level::Precedence(NEGATION) if context.operand => false,
            Level::Precedence(own) if own == context.least && context.chain => self.is_wrapped(expr),
            Level::Precedence(own) => own < context.least,
        }
    }

    /// Whether the user put parentheses around the expression.
    fn is_wrapped(&self, expr: &Expr) -> bool {
        let (start, end) = (expr.span.start as usize, expr.span.end as usize);
        match (self.source.get(..start), self.source.get(end..)) {
            (Some(before), Some(after)) => before.trim_end().ends_with('(') && after.trim_start().starts_with(')'),
            _ => false,
        }
    }

    fn level(&self, expr: &Expr) -> Level {
        match &expr.kind {
            ExprKind::If(..) => Level::Open { over_bar: false, is_if: true },
            ExprKind::Let(..) | ExprKind::Fun(..) => Level::Open { over_bar: false, is_if: false },
            ExprKind::Match(..) | ExprKind::Function(_) => Level::Open { over_bar: true, is_if: false },
            ExprKind::Open(..) if self.is_let_open(expr) => Level::Open { over_bar: false, is_if: false },
            ExprKind::Binary(op, ..) => Level::Precedence(of_op(*op).precedence),
            ExprKind::Unary(UnaryOp::Neg, _) => Level::Precedence(NEGATION),
            ExprKind::Int(value) | ExprKind::Real(value) if value.starts_with('-') => Level::Precedence(NEGATION),
            ExprKind::App(..) => Level::Precedence(APPLICATION),
            ExprKind::Int(_)
            | ExprKind::Real(_)
            | ExprKind::String(_)
            | ExprKind::Bool(_)
            | ExprKind::Unit
            | ExprKind::Var(_)
            | ExprKind::Constructor(_)
            | ExprKind::Open(..)
            | ExprKind::Tuple(_)
            | ExprKind::List(_)
            | ExprKind::Array(_)
            | ExprKind::Comprehension(..)
            | ExprKind::Record(_)
            | ExprKind::RecordWith(..)
            | ExprKind::Field(..)
            | ExprKind::Index(..)
            | ExprKind::Operator(_)
            | ExprKind::Annotation(..)
            | ExprKind::Error => Level::Precedence(SIMPLE),
        }
    }

    pub(super) fn bare_expr(&mut self, expr: &Expr, right: Right) -> Doc {
        match &expr.kind {
            ExprKind::Int(value) | ExprKind::Real(value) => self.literal(expr.span, value),
            ExprKind::String(value) => self.string_literal(expr.span, value),
            ExprKind::Bool(value) => self.text(if *value { "true" } else { "false" }),
            ExprKind::Unit => self.text("()"),
            ExprKind::Var(path) | ExprKind::Constructor(path) => self.path(path),
            ExprKind::App(function, args) => self.application(function, args),
            ExprKind::Fun(..) => self.fun(expr, right),
            ExprKind::Function(arms) => {
                let (word, arms) = (self.text("function"), self.arms(arms, expr.span.start, right));
                let arms = self.docs.nest(2, arms);
                let doc = self.docs.concat([word, arms]);
                self.docs.group(doc)
            }
            ExprKind::Let(group, body) => {
                let head = self.let_group(group);
                let chain = self.source.is_empty() && matches!(body.kind, ExprKind::Let(..));
                self.in_body(expr, head, body, chain, right)
            }
            ExprKind::Open(path, body) if self.is_let_open(expr) => {
                let head = self.docs.text(format!("let open {}", path_text(path)));
                self.in_body(expr, head, body, false, right)
            }
            ExprKind::Open(path, body) => self.local_open(path, body),
            ExprKind::If(..) => self.if_expr(expr, right),
            ExprKind::Match(scrutinee, arms) => {
                let (word, scrutinee) = (self.text("match "), self.scrutinee(scrutinee));
                let (with, arms) = (self.text(" with"), self.arms(arms, expr.span.start, right));
                let doc = self.docs.concat([word, scrutinee, with, arms]);
                self.docs.group(doc)
            }
            ExprKind::Tuple(parts) => {
                let doc = self.comma_separated(parts);
                self.parens(doc)
            }
            ExprKind::List(parts) => self.elements("[", parts, "]", expr.span.end),
            ExprKind::Array(parts) => self.elements("[|", parts, "|]", expr.span.end),
            ExprKind::Comprehension(ranges, body) => self.comprehension(ranges, body, expr.span.end),
            ExprKind::Record(fields) => {
                let open = self.text("{");
                self.record(open, fields, expr.span.end)
            }
            ExprKind::RecordWith(base, fields) => {
                let (open, base, with) = (self.text("{ "), self.expr(base, ARGUMENT), self.text(" with"));
                let open = self.docs.concat([open, base, with]);
                self.record(open, fields, expr.span.end)
            }
            ExprKind::Field(base, path) => {
                let (base, dot, path) = (self.dotted(base), self.text("."), self.path(path));
                self.docs.concat([base, dot, path])
            }
            ExprKind::Index(base, indices) => {
                let (base, dot, indices) = (self.dotted(base), self.text("."), self.comma_separated(indices));
                let indices = self.parens(indices);
                self.docs.concat([base, dot, indices])
            }
            ExprKind::Unary(UnaryOp::Neg, operand) => self.negation(operand, right),
            ExprKind::Binary(..) => self.operator_chain(expr, right),
            ExprKind::Operator(op) => self.docs.text(format!("( {} )", of_op(*op).text)),
            ExprKind::Annotation(inner, ty) => {
                let (inner, sign, ty) = (self.whole_expr(inner), self.text(" : "), self.any_type(ty));
                let doc = self.docs.concat([inner, sign, ty]);
                self.parens(doc)
            }
            ExprKind::Error => self.text("_"),
        }
    }

    // Operators.

    /// `a + b - c`: operands of one precedence on one line, or each on its own with the operator before it.
    fn operator_chain(&mut self, expr: &Expr, right: Right) -> Doc {
        let ExprKind::Binary(op, ..) = &expr.kind else { return self.bare_expr(expr, right) };
        let row = of_op(*op);
        // `(a <.> b) / c` reads better with its parentheses, `(a * b) / c` does not.
        let same = |printer: &Self, e: &Expr| match &e.kind {
            ExprKind::Binary(op, ..) if of_op(*op).precedence == row.precedence => {
                std::ptr::eq(e, expr) || related(*op, row.op) || !printer.is_wrapped(e)
            }
            _ => false,
        };
        // The chain as its first operand and then operators with their operands.
        let mut rest = Vec::new();
        let mut first = expr;
        match row.associativity {
            Associativity::Left => {
                while let ExprKind::Binary(op, span, left, right) = &first.kind {
                    if !same(self, first) {
                        break;
                    }
                    rest.push((*op, *span, &**right));
                    first = left;
                }
                rest.reverse();
            }
            Associativity::Right => {
                let mut last = expr;
                while let ExprKind::Binary(op, span, left, right) = &last.kind {
                    if !same(self, last) {
                        break;
                    }
                    if rest.is_empty() {
                        first = left;
                    } else if let Some((_, _, operand)) = rest.last_mut() {
                        *operand = left;
                    }
                    rest.push((*op, *span, &**right));
                    last = right;
                }
            }
        }
        let (least_first, least_last) = match row.associativity {
            Associativity::Left => (row.precedence, row.precedence + 1),
            Associativity::Right => (row.precedence + 1, row.precedence),
        };
        let chain = least_first == row.precedence;
        let context = Context { least: least_first, right: Right::Operator, operand: false, clarify: true, chain };
        let mut parts = vec![self.expr(first, context)];
        let count = rest.len();
        for (i, (op, span, operand)) in rest.into_iter().enumerate() {
            let right = if i + 1 == count { right } else { Right::Operator };
            parts.push(self.at_line_end(span.start));
            parts.push(self.docs.line());
            parts.push(self.before(span.start));
            parts.push(self.docs.text(format!("{} ", of_op(op).text)));
            let last = i + 1 == count;
            let least = if last { least_last } else { row.precedence + 1 };
            // In `a ^ (-b) ^ c` the minus would take `b ^ c`.
            let context = Context { least, right, operand: last, clarify: true, chain: least == row.precedence };
            parts.push(self.expr(operand, context));
        }
        let doc = self.docs.concat(parts);
        let doc = self.docs.align(doc);
        self.docs.group(doc)
    }

    fn negation(&mut self, operand: &Expr, right: Right) -> Doc {
        let context = Context { least: NEGATION + 1, right, ..ANYWHERE };
        let (minus, operand) = (self.text("-"), self.expr(operand, context));
        self.docs.concat([minus, operand])
    }

    /// What stands before a dot: a constructor or a number there would be read as something else.
    fn dotted(&mut self, base: &Expr) -> Doc {
        let doc = self.expr(base, ARGUMENT);
        match base.kind {
            ExprKind::Constructor(_) | ExprKind::Int(_) | ExprKind::Real(_) => self.parens(doc),
            _ => doc,
        }
    }
}

/// Whether two operators of one precedence are so familiar together that parentheses would not help.
fn related(one: BinaryOp, other: BinaryOp) -> bool {
    let family = |op: BinaryOp| match op {
        BinaryOp::Add | BinaryOp::Sub => Some(BinaryOp::Add),
        BinaryOp::Mul | BinaryOp::Div => Some(BinaryOp::Mul),
        BinaryOp::VectorAdd | BinaryOp::VectorSub => Some(BinaryOp::VectorAdd),
        BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => None,
        BinaryOp::Pipe
        | BinaryOp::Or
        | BinaryOp::And
        | BinaryOp::Append
        | BinaryOp::Cons
        | BinaryOp::Mod
        | BinaryOp::Pow
        | BinaryOp::RealPow
        | BinaryOp::Scale
        | BinaryOp::Inner => Some(op),
    };
    family(one).is_some() && family(one) == family(other)
}
