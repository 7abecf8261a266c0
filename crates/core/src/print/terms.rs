//! Terms as Gradus expressions.

use super::layout::{Doc, Layout};
use super::names::Names;
use super::types::TypePrinter;
use super::Options;
use crate::check::{type_of, Context};
use crate::definitions::Environment;
use crate::prim::Fixity;
use crate::traverse::{for_each_child, with_stack};
use crate::*;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// How tightly an expression holds together; what stands in a place that asks for more needs parentheses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// `let`, `fun`, `if`, `match`: reach as far to the right as they can.
    Open,
    Tuple,
    Or,
    And,
    Comparison,
    Cons,
    Sum,
    Product,
    Negation,
    Power,
    Application,
    Simple,
}

impl Level {
    fn tighter(self) -> Level {
        use Level::*;
        match self {
            Open => Tuple,
            Tuple => Or,
            Or => And,
            And => Comparison,
            Comparison => Cons,
            Cons => Sum,
            Sum => Product,
            Product => Negation,
            Negation => Power,
            Power => Application,
            Application | Simple => Simple,
        }
    }
}

/// The level of an infix operator, and whether it associates to the right.
fn infix(name: &str) -> (Level, bool) {
    match name {
        "=" | "<>" | "<" | "<=" | ">" | ">=" => (Level::Comparison, false),
        "+" | "-" | "<+>" | "<->" => (Level::Sum, false),
        "*" | "/" | "mod" | "*>" | "<.>" => (Level::Product, false),
        "^" | "**" => (Level::Power, true),
        other => gradus_source::bug!("operator {other} has no precedence"),
    }
}

pub(super) struct TermPrinter<'a> {
    pub context: Option<&'a dyn Context>,
    pub options: Options,
    pub names: Names,
    pub layout: Layout,
    pub(super) environment: Environment,
    uses: FxHashMap<Var, usize>,
}

impl<'a> TermPrinter<'a> {
    pub fn new(context: Option<&'a dyn Context>, options: Options, names: Names) -> Self {
        TermPrinter {
            context,
            options,
            names,
            layout: Layout::default(),
            environment: Environment::default(),
            uses: FxHashMap::default(),
        }
    }

    /// A term on its own.
    pub fn whole(&mut self, term: &Term) -> Doc {
        self.prepare(term);
        self.term(term, Level::Open)
    }

    /// Looks at a term before it is printed: counts uses, and gives its globals their names.
    pub fn prepare(&mut self, term: &Term) {
        with_stack(|| {
            match &*term.kind {
                TermKind::Var(var, _) => *self.uses.entry(var.clone()).or_default() += 1,
                TermKind::Global(global) => {
                    self.names.global(global);
                }
                _ => {}
            }
            for_each_child(term, &mut |child| self.prepare(child));
        })
    }

    pub fn text(&mut self, text: impl Into<Box<str>>) -> Doc {
        self.layout.text(text)
    }

    pub(super) fn uses(&self, var: &Var) -> usize {
        self.uses.get(var).copied().unwrap_or(0)
    }

    pub fn ty(&mut self, ty: &Type) -> String {
        let names = std::cell::RefCell::new(std::mem::take(&mut self.names));
        let text = TypePrinter::with_names(|name| names.borrow_mut().ty(name)).ty(ty);
        self.names = names.into_inner();
        text
    }

    pub(super) fn bind(&mut self, var: &Var, scheme: Scheme) -> String {
        self.environment.insert(var.clone(), scheme);
        if self.uses(var) == 0 {
            return "_".into();
        }
        self.names.bind(var)
    }

    pub(super) fn unbind(&mut self, vars: &[Var]) {
        vars.iter().for_each(|var| self.names.unbind(var));
    }

    fn parenthesised(&mut self, doc: Doc, own: Level, asked: Level, is_function: bool) -> Doc {
        if own >= asked {
            return doc;
        }
        let (open, close) = (self.text("("), self.text(")"));
        // Later lines go below what follows the parenthesis; the body of a function has its own indentation.
        let inner = if is_function { doc } else { self.layout.nest_by(1, doc) };
        self.layout.group([open, inner, close])
    }

    pub(super) fn term(&mut self, term: &Term, asked: Level) -> Doc {
        with_stack(|| {
            let (doc, own) = self.open(term);
            self.parenthesised(doc, own, asked, matches!(&*term.kind, TermKind::Lambda(_)))
        })
    }

    /// The expression and its level.
    fn open(&mut self, term: &Term) -> (Doc, Level) {
        match &*term.kind {
            TermKind::Var(var, _) => (self.named(var), Level::Simple),
            TermKind::Global(global) => {
                let name = self.names.global(global);
                (self.text(name), Level::Simple)
            }
            TermKind::Literal(literal) => self.literal(literal),
            TermKind::Lambda(lambda) => (self.lambda(lambda), Level::Open),
            TermKind::App(..) => {
                let (mut head, mut args) = (term, Vec::new());
                while let TermKind::App(f, x) = &*head.kind {
                    args.push(x);
                    head = f;
                }
                args.reverse();
                let head = self.term(head, Level::Simple);
                (self.application(head, &args), Level::Application)
            }
            TermKind::Let { .. } | TermKind::LetRec { .. } => (self.lets(term), Level::Open),
            TermKind::Prim { prim, args, .. } => self.prim(*prim, args),
            TermKind::Tuple(items) => {
                let items: Vec<Doc> = items.iter().map(|t| self.term(t, Level::Or)).collect();
                (self.bracketed("(", items, ",", ")", false), Level::Simple)
            }
            TermKind::Proj { index, term } => self.projection(*index, term),
            TermKind::Construct { name, tag, args, .. } => self.construct(name, *tag, args),
            TermKind::Case { scrutinee, arms, default } => (self.case(scrutinee, arms, default.as_ref()), Level::Open),
            TermKind::If { condition, then, otherwise } => self.conditional(condition, then, otherwise),
            TermKind::ArrayLiteral { items, .. } => {
                let items: Vec<Doc> = items.iter().map(|t| self.term(t, Level::Or)).collect();
                (self.bracketed("[|", items, ";", "|]", true), Level::Simple)
            }
            TermKind::Derive { op, args, .. } => {
                let head = self.text(op.name());
                (self.application(head, &args.iter().collect::<Vec<_>>()), Level::Application)
            }
            TermKind::Lift { under, mode, term, .. } => {
                let mut name = format!("lift_{mode}");
                under.iter().rev().for_each(|outer| name = format!("{name}_{outer}"));
                let head = self.text(name);
                (self.application(head, &[term]), Level::Application)
            }
        }
    }

    pub(super) fn named(&mut self, var: &Var) -> Doc {
        let name = self.names.local(var);
        self.text(name)
    }

    fn literal(&mut self, literal: &Literal) -> (Doc, Level) {
        let (text, level) = match literal {
            Literal::Unit => ("()".into(), Level::Simple),
            Literal::Bool(b) => (b.to_string(), Level::Simple),
            Literal::String(s) => (quoted(s), Level::Simple),
            // The smallest integer has no literal of its own: its absolute value is no integer.
            Literal::Int(i64::MIN) => (format!("-{} - 1", i64::MAX), Level::Sum),
            Literal::Int(i) => (i.to_string(), if *i < 0 { Level::Negation } else { Level::Simple }),
            Literal::Real(x) if x.is_nan() => ("0.0 / 0.0".into(), Level::Product),
            Literal::Real(x) if x.is_infinite() => {
                (format!("{:?} / 0.0", x.signum()), if *x < 0.0 { Level::Open } else { Level::Product })
            }
            Literal::Real(x) => (format!("{x:?}"), if x.is_sign_negative() { Level::Negation } else { Level::Simple }),
        };
        (self.text(text), level)
    }

    pub(super) fn application(&mut self, head: Doc, args: &[&Term]) -> Doc {
        let mut parts = Vec::new();
        for arg in args {
            parts.push(self.layout.line());
            parts.push(self.term(arg, Level::Simple));
        }
        let args = self.layout.many(parts);
        let args = self.layout.nest(args);
        self.layout.group([head, args])
    }

    /// Items between brackets, with the separator after each but the last.
    pub(super) fn bracketed(&mut self, open: &str, items: Vec<Doc>, separator: &str, close: &str, padded: bool) -> Doc {
        let (open, close) = (self.text(open), self.text(close));
        let mut parts = Vec::new();
        if padded {
            parts.push(self.layout.line());
        }
        for (i, item) in items.into_iter().enumerate() {
            if i > 0 {
                parts.push(self.text(separator));
                parts.push(self.layout.line());
            }
            parts.push(item);
        }
        let inner = self.layout.many(parts);
        let inner = self.layout.nest_by(if padded { 2 } else { 1 }, inner);
        let end = if padded { self.layout.line() } else { self.layout.many([]) };
        self.layout.group([open, inner, end, close])
    }

    fn prim(&mut self, prim: Prim, args: &[Term]) -> (Doc, Level) {
        let info = prim.info();
        match (info.fixity, args) {
            (Fixity::Infix, [left, right]) => {
                let (level, to_the_right) = infix(info.name);
                let comparison = level == Level::Comparison;
                let left = self.term(left, if to_the_right || comparison { level.tighter() } else { level });
                // A sign after an operator reads badly; put it into parentheses.
                let asked = if is_negative(right) {
                    Level::Application
                } else if to_the_right {
                    level
                } else {
                    level.tighter()
                };
                let right = self.term(right, asked);
                (self.infix(left, info.name, right), level)
            }
            (Fixity::Prefix, [operand]) => {
                let sign = self.text("-");
                let asked = if is_negative(operand) { Level::Simple } else { Level::Power };
                let operand = self.term(operand, asked);
                (self.layout.many([sign, operand]), Level::Negation)
            }
            (Fixity::Index, [array, index]) => {
                let array = self.term(array, Level::Simple);
                let open = self.text(".(");
                let index = self.term(index, Level::Open);
                let close = self.text(")");
                (self.layout.many([array, open, index, close]), Level::Simple)
            }
            _ => {
                let head = self.text(info.name);
                (self.application(head, &args.iter().collect::<Vec<_>>()), Level::Application)
            }
        }
    }

    fn infix(&mut self, left: Doc, operator: &str, right: Doc) -> Doc {
        let operator = self.text(format!("{operator} "));
        let line = self.layout.line();
        let rest = self.layout.many([line, operator, right]);
        let rest = self.layout.nest(rest);
        self.layout.group([left, rest])
    }

    /// The type of a term, if it can be known.
    pub(super) fn type_of(&self, term: &Term) -> Option<Type> {
        if let TermKind::Var(var, types) = &*term.kind {
            let scheme = self.environment.get(var)?;
            return (scheme.vars.len() == types.len()).then(|| scheme.instantiate(types));
        }
        type_of(self.context?, term, &self.environment).ok()
    }

    pub(super) fn decl(&self, name: &TypeName) -> Option<Arc<TypeDecl>> {
        self.context?.type_decl(name).ok()
    }

    fn projection(&mut self, index: usize, term: &Term) -> (Doc, Level) {
        match self.type_of(term) {
            Some(Type::Named(name, args)) => {
                if let Some(decl) = self.decl(&name).filter(|decl| matches!(decl.body, TypeBody::Variant(_))) {
                    let types = decl.constructors(&args).into_iter().next().map(|(_, types)| types).unwrap_or_default();
                    let vars: Vec<_> = types.into_iter().map(|ty| (Var::fresh("part"), ty)).collect();
                    if let Some((part, _)) = vars.get(index) {
                        let body = build::At(term.span).var(part);
                        return (self.case(term, &[Arm { tag: 0, vars: vars.clone(), body }], None), Level::Open);
                    }
                }
                let field = match self.decl(&name) {
                    Some(decl) => match &decl.body {
                        TypeBody::Record(fields) => fields.get(index).map(|(f, _)| self.names.field(&decl, index, f)),
                        TypeBody::Variant(_) => None,
                    },
                    None => None,
                };
                let record = self.term(term, Level::Simple);
                let field = self.text(format!(".{}", field.unwrap_or_else(|| index.to_string())));
                (self.layout.many([record, field]), Level::Simple)
            }
            Some(Type::Tuple(parts)) if parts.len() == 2 => {
                let head = self.text(if index == 0 { "fst" } else { "snd" });
                (self.application(head, &[term]), Level::Application)
            }
            Some(Type::Tuple(parts)) => {
                let pattern: Vec<&str> = (0..parts.len()).map(|i| if i == index { "it" } else { "_" }).collect();
                let start = self.text(format!("let ({}) = ", pattern.join(", ")));
                let tuple = self.term(term, Level::Tuple);
                let end = self.text(" in it");
                (self.layout.many([start, tuple, end]), Level::Open)
            }
            // Without its type, a component cannot be written in Gradus; this is for display only.
            _ => {
                let tuple = self.term(term, Level::Simple);
                let component = self.text(format!(".{index}"));
                (self.layout.many([tuple, component]), Level::Simple)
            }
        }
    }

    fn conditional(&mut self, condition: &Term, then: &Term, otherwise: &Term) -> (Doc, Level) {
        let is = |term: &Term, b: bool| matches!(&*term.kind, TermKind::Literal(Literal::Bool(c)) if *c == b);
        if is(otherwise, false) {
            let (left, right) = (self.term(condition, Level::Comparison), self.term(then, Level::And));
            return (self.infix(left, "&&", right), Level::And);
        }
        if is(then, true) {
            let (left, right) = (self.term(condition, Level::And), self.term(otherwise, Level::Or));
            return (self.infix(left, "||", right), Level::Or);
        }
        let mut parts = Vec::new();
        let (mut condition, mut then, mut otherwise) = (condition, then, otherwise);
        // `else if` stays on one level.
        loop {
            parts.push(self.text("if "));
            parts.push(self.term(condition, Level::Or));
            parts.push(self.text(" then"));
            let line = self.layout.line();
            let branch = self.term(then, Level::Or);
            let branch = self.layout.many([line, branch]);
            parts.push(self.layout.nest(branch));
            parts.push(self.layout.line());
            match &*otherwise.kind {
                TermKind::If { condition: c, then: t, otherwise: o } if !is(o, false) && !is(t, true) => {
                    parts.push(self.text("else "));
                    (condition, then, otherwise) = (c, t, o);
                }
                _ => break,
            }
        }
        parts.push(self.text("else"));
        let line = self.layout.line();
        let last = self.term(otherwise, Level::Or);
        let last = self.layout.many([line, last]);
        parts.push(self.layout.nest(last));
        (self.layout.group(parts), Level::Open)
    }

    /// A term as the body of a definition.
    pub fn body(&mut self, term: &Term) -> Doc {
        self.term(term, Level::Open)
    }

    pub fn end_scope(&mut self, vars: &[Var]) {
        self.unbind(vars);
    }
}

/// Whether its text starts with a minus sign.
fn is_negative(term: &Term) -> bool {
    match &*term.kind {
        TermKind::Literal(Literal::Real(x)) => x.is_sign_negative(),
        TermKind::Literal(Literal::Int(i)) => *i < 0,
        TermKind::Prim { prim, .. } => prim.info().fixity == Fixity::Prefix,
        _ => false,
    }
}

/// A string as a literal.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
