//! Expressions as documents, with parentheses only where reading needs them.

use super::doc::{Doc, NIL};
use super::pattern::path_text;
use super::Printer;
use crate::ast::{Arm, BinaryOp, Binding, Expr, ExprKind, LetGroup, Path, UnaryOp};
use crate::operators::{of_op, Associativity, APPLICATION, NEGATION, SIMPLE, TUPLE};

/// What may follow an expression that reaches as far to the right as it can, such as `fun x -> e`.
#[derive(Clone, Copy, PartialEq)]
pub enum Right {
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
struct Context {
    /// How tightly the expression must bind to need no parentheses.
    least: u8,
    right: Right,
    /// Behind an operator, where a minus needs no parentheses.
    operand: bool,
    /// Where parentheses that are not needed may still help a reader: they stay if the user put them.
    clarify: bool,
}

const ANYWHERE: Context = Context { least: TUPLE, right: Right::Closed, operand: false, clarify: false };
const ARGUMENT: Context = Context { least: SIMPLE, ..ANYWHERE };
/// Above the level of a comma.
const ELEMENT: Context = Context { least: TUPLE + 1, ..ANYWHERE };

/// How an expression binds.
enum Level {
    Precedence(u8),
    /// Begins with a word and reaches to the right; `match` and `function` also over `|`.
    Open { over_bar: bool, is_if: bool },
}

impl Printer<'_> {
    pub fn whole_expr(&mut self, expr: &Expr) -> Doc {
        self.expr(expr, ANYWHERE)
    }

    fn expr(&mut self, expr: &Expr, context: Context) -> Doc {
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
            Level::Precedence(own) if own == context.least && context.clarify => self.is_wrapped(expr),
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

    fn bare_expr(&mut self, expr: &Expr, right: Right) -> Doc {
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
        let context = Context { least: least_first, right: Right::Operator, operand: false, clarify: true };
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
            let context = Context { least, right, operand: last, clarify: true };
            parts.push(self.expr(operand, context));
        }
        let doc = self.docs.concat(parts);
        let doc = self.docs.align(doc);
        self.docs.group(doc)
    }

    fn negation(&mut self, operand: &Expr, right: Right) -> Doc {
        let context = Context { least: NEGATION + 1, right, operand: false, clarify: false };
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

    // Application.

    fn application(&mut self, function: &Expr, args: &[Expr]) -> Doc {
        let head = self.expr(function, ARGUMENT);
        match args.split_last() {
            Some((last, others)) if is_fun(last) && !others.iter().any(is_fun) => {
                let others = self.arguments(others);
                let head = self.docs.concat([head, others]);
                let (head, space) = (self.docs.group(head), self.text(" "));
                let last = self.hugged_fun(last);
                self.docs.concat([head, space, last])
            }
            _ => {
                let args = self.arguments(args);
                let doc = self.docs.concat([head, args]);
                self.docs.group(doc)
            }
        }
    }

    fn arguments(&mut self, args: &[Expr]) -> Doc {
        let mut parts = Vec::with_capacity(args.len() * 2);
        for arg in args {
            parts.push(self.docs.line());
            parts.push(self.expr(arg, ARGUMENT));
        }
        let doc = self.docs.concat(parts);
        self.docs.nest(2, doc)
    }

    /// `(fun x -> e)` whose value, on lines of its own, is indented like that of a definition.
    fn hugged_fun(&mut self, expr: &Expr) -> Doc {
        let (lead, open) = (self.before(expr.span.start), self.text("("));
        let (fun, close) = (self.fun(expr, Right::Closed), self.text(")"));
        self.docs.concat([lead, open, fun, close])
    }

    fn fun(&mut self, expr: &Expr, right: Right) -> Doc {
        let ExprKind::Fun(params, body) = &expr.kind else { return self.bare_expr(expr, right) };
        let (word, params, arrow) = (self.text("fun"), self.params(params), self.text(" ->"));
        let body = self.expr(body, Context { right, ..ANYWHERE });
        let body = self.hanging(body, 2);
        self.docs.concat([word, params, arrow, body])
    }

    // `let`, `if`, `match`.

    /// `let [rec] b and b`
    pub fn let_group(&mut self, group: &LetGroup) -> Doc {
        let mut parts = vec![self.text(if group.recursive { "let rec " } else { "let " })];
        for (i, binding) in group.bindings.iter().enumerate() {
            if i > 0 {
                parts.push(self.line_before(binding.span.start));
                parts.push(self.text("and "));
            }
            parts.push(self.binding(binding));
        }
        self.docs.concat(parts)
    }

    fn binding(&mut self, binding: &Binding) -> Doc {
        let mut head = vec![self.any_pattern(&binding.pattern), self.params(&binding.params)];
        if let Some(ty) = &binding.annotation {
            head.push(self.text(" : "));
            if !binding.quantified.is_empty() {
                let names: Vec<String> = binding.quantified.iter().map(|name| format!("'{}", name.name)).collect();
                head.push(self.docs.text(format!("{}. ", names.join(" "))));
            }
            head.push(self.any_type(ty));
        }
        head.push(self.text(" ="));
        head.push(self.defined(&binding.body));
        head.push(self.behind(binding.span.end));
        self.docs.concat(head)
    }

    /// What follows the `=` of a definition, the space before it included.
    pub fn defined(&mut self, body: &Expr) -> Doc {
        let brackets = matches!(
            body.kind,
            ExprKind::Function(_)
                | ExprKind::List(_)
                | ExprKind::Array(_)
                | ExprKind::Record(_)
                | ExprKind::RecordWith(..)
        );
        let commented = self.has_comment_before(body.span.start);
        let doc = self.whole_expr(body);
        if brackets && !commented {
            let space = self.text(" ");
            return self.docs.concat([space, doc]);
        }
        self.hanging(doc, 2)
    }

    /// `head in body`, on several lines if the user had it so.
    fn in_body(&mut self, expr: &Expr, head: Doc, body: &Expr, chain: bool, right: Right) -> Doc {
        let word = self.text(" in");
        let broken = chain || self.broken_between(expr.span.start, body.span.start);
        let line = if broken { self.line_before(body.span.start) } else { self.docs.line() };
        let body = self.expr(body, Context { right, ..ANYWHERE });
        let doc = self.docs.concat([head, word, line, body]);
        self.docs.group(doc)
    }

    fn is_let_open(&self, expr: &Expr) -> bool {
        self.slice(expr.span).is_some_and(|text| text.starts_with("let"))
    }

    /// `M.(e)`
    fn local_open(&mut self, path: &Path, body: &Expr) -> Doc {
        let head = self.docs.text(format!("{}.", path_text(path)));
        // These bring their own parentheses.
        let closed = matches!(
            body.kind,
            ExprKind::Tuple(_) | ExprKind::Unit | ExprKind::Operator(_) | ExprKind::Annotation(..)
        );
        let body = self.whole_expr(body);
        let body = if closed { body } else { self.parens(body) };
        self.docs.concat([head, body])
    }

    /// `if a then b else if c then d else e`, without recursion along the chain.
    fn if_expr(&mut self, expr: &Expr, right: Right) -> Doc {
        let mut parts = Vec::new();
        let mut rest = expr;
        let mut word = "if ";
        while let ExprKind::If(condition, yes, no) = &rest.kind {
            parts.push(self.text(word));
            parts.push(self.whole_expr(condition));
            parts.push(self.text(" then"));
            parts.push(self.branch(yes, Right::Closed, true));
            parts.push(self.at_line_end(no.span.start));
            parts.push(self.docs.line());
            rest = no;
            word = "else if ";
        }
        parts.push(self.text("else"));
        parts.push(self.branch(rest, right, false));
        let doc = self.docs.concat(parts);
        self.docs.group(doc)
    }

    fn branch(&mut self, expr: &Expr, right: Right, clarify: bool) -> Doc {
        let doc = self.expr(expr, Context { right, clarify, ..ANYWHERE });
        self.hanging(doc, 2)
    }

    /// A tuple before `with` needs no parentheses.
    fn scrutinee(&mut self, expr: &Expr) -> Doc {
        match &expr.kind {
            ExprKind::Tuple(parts) => {
                let lead = self.before(expr.span.start);
                let doc = self.comma_separated(parts);
                self.docs.concat([lead, doc])
            }
            _ => self.whole_expr(expr),
        }
    }

    /// The arms of a form that starts at an offset, the space before them included.
    fn arms(&mut self, arms: &[Arm], start: u32, right: Right) -> Doc {
        let last_start = arms.last().map_or(start, |arm| arm.span.start);
        let broken = self.broken_between(start, last_start);
        let mut parts = Vec::new();
        for (i, arm) in arms.iter().enumerate() {
            if broken {
                parts.push(self.line_before(arm.span.start));
                parts.push(self.text("| "));
            } else {
                parts.push(self.docs.line());
                let bar = self.text("| ");
                let bar_on_one_line = if i == 0 { NIL } else { bar };
                parts.push(self.docs.if_break(bar, bar_on_one_line));
            }
            let right = if i + 1 == arms.len() { right } else { Right::Bar };
            parts.push(self.arm(arm, right));
        }
        self.docs.concat(parts)
    }

    fn arm(&mut self, arm: &Arm, right: Right) -> Doc {
        let mut parts = vec![self.arm_pattern(&arm.pattern)];
        if let Some(guard) = &arm.guard {
            parts.push(self.text(" when "));
            parts.push(self.whole_expr(guard));
        }
        parts.push(self.text(" ->"));
        let body = self.expr(&arm.body, Context { right, ..ANYWHERE });
        parts.push(self.hanging(body, 4));
        self.docs.concat(parts)
    }

    // Brackets.

    /// `a, b`: without parentheses.
    fn comma_separated(&mut self, parts: &[Expr]) -> Doc {
        let mut docs = Vec::with_capacity(parts.len() * 3);
        for (i, part) in parts.iter().enumerate() {
            if i > 0 {
                docs.push(self.text(","));
                docs.push(self.at_line_end(part.span.start));
                docs.push(self.docs.line());
            }
            let right = if i + 1 == parts.len() { Right::Closed } else { Right::Operator };
            docs.push(self.expr(part, Context { right, ..ELEMENT }));
        }
        let doc = self.docs.concat(docs);
        self.docs.group(doc)
    }

    /// `[a; b]`, `[| a; b |]`. Literals and names fill the lines; other elements have a line each if one does not fit.
    fn elements(&mut self, open: &'static str, parts: &[Expr], close: &'static str, end: u32) -> Doc {
        let fill = parts.iter().all(is_atom);
        let mut docs = Vec::with_capacity(parts.len() * 3);
        for (i, part) in parts.iter().enumerate() {
            let separator = if i == 0 { NIL } else { self.separator(part.span.start) };
            let right = if i + 1 == parts.len() { Right::Closed } else { Right::Semicolon };
            let element = self.expr(part, Context { right, clarify: true, ..ANYWHERE });
            let doc = self.docs.concat([separator, element]);
            docs.push(if fill { self.docs.group(doc) } else { doc });
        }
        docs.push(self.before_end(end));
        let spaced = open == "[|" && !parts.is_empty();
        let open = self.text(open);
        self.bracketed(open, docs, close, spaced)
    }

    /// `;` and what may stand between it and the next element.
    pub fn separator(&mut self, next: u32) -> Doc {
        let (sign, comments, line) = (self.text(";"), self.at_line_end(next), self.docs.line());
        self.docs.concat([sign, comments, line])
    }

    /// The parts between brackets, indented on lines of their own if they do not fit on one.
    pub fn bracketed(&mut self, open: Doc, parts: Vec<Doc>, close: &'static str, spaced: bool) -> Doc {
        let edge = if spaced { self.docs.line() } else { self.docs.soft_line() };
        let inner = self.docs.concat(parts);
        let inner = self.docs.concat([edge, inner]);
        let (inner, close) = (self.docs.nest(2, inner), self.text(close));
        let doc = self.docs.concat([open, inner, edge, close]);
        self.docs.group(doc)
    }

    fn comprehension(&mut self, ranges: &[(crate::ast::Ident, Expr)], body: &Expr, end: u32) -> Doc {
        let mut head = vec![self.text("[| for ")];
        for (i, (name, bound)) in ranges.iter().enumerate() {
            if i > 0 {
                head.push(self.text(", "));
            }
            head.push(self.docs.text(format!("{} < ", name.name)));
            head.push(self.expr(bound, Context { right: Right::Operator, ..ELEMENT }));
        }
        head.push(self.text(" ->"));
        let head = self.docs.concat(head);
        let (body, rest) = (self.whole_expr(body), self.before_end(end));
        self.bracketed(head, vec![body, rest], "|]", true)
    }

    fn record(&mut self, open: Doc, fields: &[(Path, Option<Expr>)], end: u32) -> Doc {
        let mut docs = Vec::with_capacity(fields.len() * 3);
        for (i, (path, value)) in fields.iter().enumerate() {
            if i > 0 {
                docs.push(self.separator(path.span.start));
            }
            docs.push(self.before(path.span.start));
            docs.push(self.path(path));
            if let Some(value) = value {
                let right = if i + 1 == fields.len() { Right::Closed } else { Right::Semicolon };
                let (sign, value) = (self.text(" ="), self.expr(value, Context { right, clarify: true, ..ELEMENT }));
                let value = self.hanging(value, 2);
                docs.push(self.docs.concat([sign, value]));
            } else {
                docs.push(self.behind(path.span.end));
            }
        }
        docs.push(self.before_end(end));
        self.bracketed(open, docs, "}", !fields.is_empty())
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

fn is_fun(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Fun(..))
}

fn is_atom(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Int(_) | ExprKind::Real(_) | ExprKind::Bool(_) | ExprKind::Unit | ExprKind::String(_) => true,
        ExprKind::Var(_) | ExprKind::Constructor(_) => true,
        ExprKind::Unary(UnaryOp::Neg, operand) => matches!(operand.kind, ExprKind::Int(_) | ExprKind::Real(_)),
        _ => false,
    }
}
