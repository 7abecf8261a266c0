//! Combinators as text. What is used more than once is written once and named, in the order of use.

use super::language::{Comb, Op};
use gradus_core::print::print_type;
use gradus_core::traverse::with_stack;
use gradus_core::{Global, Literal, Term, TermKind};
use rustc_hash::FxHashMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// A combinator to be printed under a name.
pub struct Named<'a> {
    pub name: &'a str,
    pub comb: &'a Comb,
    /// Whether it is linear in the second half of its argument: `-o` instead of `->`.
    pub linear: bool,
}

/// One line for each shared part, and two for each of the named results: its type and its text.
pub fn print(results: &[Named]) -> String {
    let mut printer = Printer::default();
    for result in results {
        printer.count(result.comb);
    }
    let texts: Vec<String> = results.iter().map(|result| printer.text(result.comb, false)).collect();
    let mut out = String::new();
    for (name, text) in &printer.lines {
        let _ = writeln!(out, "{name} = {text}");
    }
    for (Named { name, comb, linear }, text) in results.iter().zip(texts) {
        let arrow = if *linear { "-o" } else { "->" };
        let _ = writeln!(out, "{name} : {} {arrow} {}", print_type(&comb.from), print_type(&comb.to));
        let _ = writeln!(out, "{name} = {text}");
    }
    out
}

#[derive(Default)]
struct Printer {
    uses: FxHashMap<usize, usize>,
    names: FxHashMap<usize, String>,
    lines: Vec<(String, String)>,
}

fn address(comb: &Comb) -> usize {
    Arc::as_ptr(comb) as usize
}

fn children(comb: &Comb) -> Vec<&Comb> {
    match &comb.op {
        Op::Seq(f, g) | Op::If(f, g) => vec![f, g],
        Op::Fork(parts) | Op::Case(parts) => parts.iter().collect(),
        Op::Curry(f) | Op::Build(f) | Op::Ifold(f) | Op::LinearCurry(f) | Op::Fold(f) => vec![f],
        Op::Id
        | Op::Proj(_)
        | Op::Ev
        | Op::Const(_)
        | Op::Prim { .. }
        | Op::Construct { .. }
        | Op::ArrayLiteral(_)
        | Op::Rule(_)
        | Op::LinearEv
        | Op::Zero
        | Op::Plus
        | Op::Single
        | Op::Adjoint(_)
        | Op::Collect
        | Op::PullBuild
        | Op::PullIfold
        | Op::Plain { .. }
        | Op::CheckpointEv
        | Op::Roll(_)
        | Op::Unroll(_)
        | Op::RuleAdjoint(_) => vec![],
    }
}

impl Printer {
    fn count(&mut self, comb: &Comb) {
        let uses = self.uses.entry(address(comb)).or_default();
        *uses += 1;
        if *uses == 1 {
            with_stack(|| children(comb).into_iter().for_each(|child| self.count(child)));
        }
    }

    /// In parentheses if it is a composition inside something else.
    fn text(&mut self, comb: &Comb, inside: bool) -> String {
        with_stack(|| {
            if let Some(name) = self.names.get(&address(comb)) {
                return name.clone();
            }
            let shared = self.uses.get(&address(comb)).is_some_and(|uses| *uses > 1) && !children(comb).is_empty();
            let text = self.own_text(comb);
            if shared {
                let name = format!("c{}", self.lines.len() + 1);
                self.lines.push((name.clone(), text));
                self.names.insert(address(comb), name.clone());
                return name;
            }
            match comb.op {
                Op::Seq(..) if inside => format!("({text})"),
                _ => text,
            }
        })
    }

    fn own_text(&mut self, comb: &Comb) -> String {
        match &comb.op {
            Op::Id => "id".into(),
            Op::Seq(f, g) => format!("{} ;; {}", self.text(f, false), self.text(g, false)),
            Op::Fork(parts) if parts.is_empty() => "neg".into(),
            Op::Fork(parts) => format!("<{}>", self.list(parts)),
            Op::Proj(index) => match (&comb.from, index) {
                (gradus_core::Type::Tuple(parts), 0) if parts.len() == 2 => "exl".into(),
                (gradus_core::Type::Tuple(parts), 1) if parts.len() == 2 => "exr".into(),
                _ => format!("ex{index}"),
            },
            Op::Ev => "ev".into(),
            Op::Curry(f) => format!("curry {}", self.parenthesised(f)),
            Op::Const(value) => format!("const {}", constant(value)),
            Op::Prim { prim, .. } => format!("[{}]", prim.info().name),
            Op::Construct { name, tag, .. } => format!("in{tag}:{}", name.base),
            Op::Case(arms) => format!("case <{}>", self.list(arms)),
            Op::If(then, otherwise) => format!("if <{}, {}>", self.text(then, false), self.text(otherwise, false)),
            Op::Build(f) => format!("build {}", self.parenthesised(f)),
            Op::Ifold(f) => format!("ifold {}", self.parenthesised(f)),
            Op::ArrayLiteral(count) => format!("array{count}"),
            Op::Rule(rule) => format!("rule {}", global(&rule.function)),
            Op::LinearEv => "ev_l".into(),
            Op::LinearCurry(f) => format!("curry_l {}", self.parenthesised(f)),
            Op::Zero => format!("0:{}", print_type(&comb.to)),
            Op::Plus => "plus".into(),
            Op::Single => "msingleton".into(),
            Op::Fold(f) => format!("mfold {}", self.parenthesised(f)),
            Op::Adjoint(prim) => format!("[{}]'", prim.info().name),
            Op::Collect => "collect".into(),
            Op::PullBuild => "build'".into(),
            Op::PullIfold => "ifold'".into(),
            Op::Plain { .. } => "plain ..".into(),
            Op::CheckpointEv => "checkpoint".into(),
            Op::Roll(tag) => format!("roll{tag}"),
            Op::Unroll(tag) => format!("unroll{tag}"),
            Op::RuleAdjoint(rule) => format!("rule' {}", global(&rule.function)),
        }
    }

    fn parenthesised(&mut self, comb: &Comb) -> String {
        self.text(comb, true)
    }

    fn list(&mut self, combs: &[Comb]) -> String {
        let texts: Vec<String> = combs.iter().map(|c| self.text(c, false)).collect();
        texts.join(", ")
    }
}

/// The literal or definition behind a constant.
fn constant(value: &Term) -> String {
    match &*value.kind {
        TermKind::Global(name) => global(name),
        TermKind::Literal(literal) => match literal {
            Literal::Real(x) => format!("{x:?}"),
            Literal::Int(i) => i.to_string(),
            Literal::Bool(b) => b.to_string(),
            Literal::String(text) => format!("{text:?}"),
            Literal::Unit => "()".into(),
        },
        _ => "..".into(),
    }
}

fn global(name: &Global) -> String {
    match name {
        Global::Source { name, .. } => name.to_string(),
        Global::Wrapper { name, .. } => name.to_string(),
        Global::Derived { mode, of } => format!("{mode}({})", global(of)),
    }
}
