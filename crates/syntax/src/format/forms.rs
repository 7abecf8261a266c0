//! Application, and the forms that begin with a word: `fun`, `let`, `if`, `match`.

use super::brackets::is_atom;
use super::doc::{Doc, NIL};
use super::expr::{Context, Right, ANYWHERE, ARGUMENT};
use super::pattern::path_text;
use super::Printer;
use crate::ast::{Arm, Binding, Expr, ExprKind, LetGroup, Path};

impl Printer<'_> {
    pub(super) fn application(&mut self, function: &Expr, args: &[Expr]) -> Doc {
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
                // Names and numbers stay beside the function, if something larger follows: `ifold 9 (fun ...) init`.
                let small = args.iter().take_while(|arg| is_atom(arg)).count();
                let small = if small < args.len() { small } else { 0 };
                let mut parts = vec![head];
                for arg in &args[..small] {
                    parts.push(self.text(" "));
                    parts.push(self.expr(arg, ARGUMENT));
                }
                parts.push(self.arguments(&args[small..]));
                let doc = self.docs.concat(parts);
                self.docs.group(doc)
            }
        }
    }

    pub(super) fn arguments(&mut self, args: &[Expr]) -> Doc {
        let mut parts = Vec::with_capacity(args.len() * 2);
        for arg in args {
            parts.push(self.docs.line());
            parts.push(self.expr(arg, ARGUMENT));
        }
        let doc = self.docs.concat(parts);
        self.docs.nest(2, doc)
    }

    /// `(fun x -> e)` whose value, on lines of its own, is indented like that of a definition.
    pub(super) fn hugged_fun(&mut self, expr: &Expr) -> Doc {
        let (lead, open) = (self.before(expr.span.start), self.text("("));
        let (fun, close) = (self.fun(expr, Right::Closed), self.text(")"));
        self.docs.concat([lead, open, fun, close])
    }

    pub(super) fn fun(&mut self, expr: &Expr, right: Right) -> Doc {
        let ExprKind::Fun(params, body) = &expr.kind else { return self.bare_expr(expr, right) };
        let (word, params, arrow) = (self.text("fun"), self.params(params), self.text(" ->"));
        let body = self.expr(body, Context { right, ..ANYWHERE });
        let body = self.hanging(body, 2);
        self.docs.concat([word, params, arrow, body])
    }

    // `let`, `if`, `match`.

    /// `let [rec] b and b`
    pub(super) fn let_group(&mut self, group: &LetGroup) -> Doc {
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

    pub(super) fn binding(&mut self, binding: &Binding) -> Doc {
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
    pub(super) fn defined(&mut self, body: &Expr) -> Doc {
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
            return self.docs.definition(doc);
        }
        self.hanging(doc, 2)
    }

    /// `head in body`, on several lines if the user had it so.
    pub(super) fn in_body(&mut self, expr: &Expr, head: Doc, body: &Expr, chain: bool, right: Right) -> Doc {
        let word = self.text(" in");
        let broken = chain || self.broken_between(expr.span.start, body.span.start);
        let line = if broken { self.line_before(body.span.start) } else { self.docs.line() };
        let body = self.expr(body, Context { right, ..ANYWHERE });
        let doc = self.docs.concat([head, word, line, body]);
        self.docs.group(doc)
    }

    pub(super) fn is_let_open(&self, expr: &Expr) -> bool {
        self.slice(expr.span).is_some_and(|text| text.starts_with("let"))
    }

    /// `M.(e)`
    pub(super) fn local_open(&mut self, path: &Path, body: &Expr) -> Doc {
        let head = self.docs.text(format!("{}.", path_text(path)));
        // These bring their own parentheses.
        let closed =
            matches!(body.kind, ExprKind::Tuple(_) | ExprKind::Unit | ExprKind::Operator(_) | ExprKind::Annotation(..));
        let body = self.whole_expr(body);
        let body = if closed { body } else { self.parens(body) };
        self.docs.concat([head, body])
    }

    /// `if a then b else if c then d else e`, without recursion along the chain.
    pub(super) fn if_expr(&mut self, expr: &Expr, right: Right) -> Doc {
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

    pub(super) fn branch(&mut self, expr: &Expr, right: Right, clarify: bool) -> Doc {
        let doc = self.expr(expr, Context { right, clarify, ..ANYWHERE });
        self.hanging(doc, 2)
    }

    /// A tuple before `with` needs no parentheses.
    pub(super) fn scrutinee(&mut self, expr: &Expr) -> Doc {
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
    pub(super) fn arms(&mut self, arms: &[Arm], start: u32, right: Right) -> Doc {
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

    pub(super) fn arm(&mut self, arm: &Arm, right: Right) -> Doc {
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
}

fn is_fun(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Fun(..))
}
