//! Constructors, records and lists, and taking them apart.

use super::layout::Doc;
use super::terms::{Level, TermPrinter};
use crate::*;

impl TermPrinter<'_> {
    pub(super) fn construct(&mut self, name: &TypeName, tag: usize, args: &[Term]) -> (Doc, Level) {
        if is_list(name) {
            return self.list(tag, args);
        }
        let Some(decl) = self.decl(name) else {
            let head = self.text(format!("{}.{tag}", super::types::type_name(name)));
            return (self.application(head, &args.iter().collect::<Vec<_>>()), Level::Application);
        };
        match &decl.body {
            TypeBody::Record(fields) => {
                let mut items = Vec::new();
                for (index, ((label, _), arg)) in fields.iter().zip(args).enumerate() {
                    let label = self.names.field(&decl, index, label);
                    let label = self.text(format!("{label} = "));
                    let value = self.term(arg, Level::Or);
                    items.push(self.layout.many([label, value]));
                }
                (self.bracketed("{", items, ";", "}", true), Level::Simple)
            }
            TypeBody::Variant(constructors) => {
                let label = constructors.get(tag).map_or("?", |(label, _)| label);
                let label = self.names.constructor(&decl, tag, label);
                let head = self.text(label);
                match args {
                    [] => (head, Level::Simple),
                    [one] => (self.application(head, &[one]), Level::Application),
                    several => {
                        let items: Vec<Doc> = several.iter().map(|t| self.term(t, Level::Or)).collect();
                        let blank = self.text(" ");
                        let args = self.bracketed("(", items, ",", ")", false);
                        (self.layout.many([head, blank, args]), Level::Application)
                    }
                }
            }
        }
    }

    /// `[a; b]` if the end of the list is in sight, `a :: b :: rest` otherwise.
    fn list(&mut self, tag: usize, args: &[Term]) -> (Doc, Level) {
        let mut items: Vec<&Term> = Vec::new();
        let (mut tag, mut args) = (tag, args);
        let rest = loop {
            let [head, tail] = args else { break None };
            if tag != 1 {
                break None;
            }
            items.push(head);
            match &*tail.kind {
                TermKind::Construct { name, tag: next, args: next_args, .. } if is_list(name) => {
                    (tag, args) = (*next, next_args);
                }
                _ => break Some(tail),
            }
        };
        match rest {
            None if items.is_empty() => (self.text("[]"), Level::Simple),
            None => {
                let items = items.into_iter().map(|t| self.term(t, Level::Or)).collect();
                (self.bracketed("[", items, ";", "]", false), Level::Simple)
            }
            Some(rest) => {
                let mut parts = Vec::new();
                for item in items {
                    parts.push(self.term(item, Level::Sum));
                    parts.push(self.text(" ::"));
                    parts.push(self.layout.line());
                }
                parts.push(self.term(rest, Level::Cons));
                (self.layout.group(parts), Level::Cons)
            }
        }
    }

    pub(super) fn case(&mut self, scrutinee: &Term, arms: &[Arm], default: Option<&Term>) -> Doc {
        let name = match self.type_of(scrutinee) {
            Some(Type::Named(name, _)) => Some(name),
            _ => None,
        };
        let decl = name.as_ref().and_then(|name| self.decl(name));
        let mut parts = vec![self.text("match ")];
        parts.push(self.term(scrutinee, Level::Tuple));
        parts.push(self.text(" with"));
        let last = arms.len() - usize::from(default.is_none() && !arms.is_empty());
        for (index, arm) in arms.iter().enumerate() {
            parts.push(self.layout.line());
            let vars: Vec<Var> = arm.vars.iter().map(|(v, _)| v.clone()).collect();
            let labels: Vec<String> = arm.vars.iter().map(|(v, t)| self.bind(v, Scheme::mono(t.clone()))).collect();
            let pattern = self.pattern(name.as_ref(), decl.as_deref(), arm.tag, &labels);
            parts.push(self.arm(&format!("| {pattern} ->"), &arm.body, index == last));
            self.unbind(&vars);
        }
        if let Some(default) = default {
            parts.push(self.layout.line());
            parts.push(self.arm("| _ ->", default, true));
        }
        self.layout.group(parts)
    }

    /// An arm; one that is not the last must not end in an open `match`.
    fn arm(&mut self, head: &str, body: &Term, last: bool) -> Doc {
        let head = self.text(head);
        let asked = if last || !ends_in_match(body) { Level::Open } else { Level::Or };
        let line = self.layout.line();
        let body = self.term(body, asked);
        let body = self.layout.many([line, body]);
        let body = self.layout.nest(body);
        let body = self.layout.nest(body);
        self.layout.group([head, body])
    }

    fn pattern(&mut self, name: Option<&TypeName>, decl: Option<&TypeDecl>, tag: usize, vars: &[String]) -> String {
        if name.is_some_and(is_list) {
            return if tag == 0 { "[]".into() } else { vars.join(" :: ") };
        }
        let Some(decl) = decl else { return format!("constructor {tag} ({})", vars.join(", ")) };
        match &decl.body {
            TypeBody::Record(fields) => {
                let mut items = Vec::new();
                for (index, ((label, _), var)) in fields.iter().zip(vars).enumerate() {
                    items.push(format!("{} = {var}", self.names.field(decl, index, label)));
                }
                format!("{{ {} }}", items.join("; "))
            }
            TypeBody::Variant(constructors) => {
                let label = constructors.get(tag).map_or("?", |(label, _)| label);
                let label = self.names.constructor(decl, tag, label);
                match vars {
                    [] => label,
                    [one] => format!("{label} {one}"),
                    several => format!("{label} ({})", several.join(", ")),
                }
            }
        }
    }
}

fn is_list(name: &TypeName) -> bool {
    &*name.base == "list" && name.modes.is_empty()
}

/// Whether the text of a term ends inside a `match`, which would take the arms that follow.
fn ends_in_match(term: &Term) -> bool {
    let mut term = term;
    loop {
        term = match &*term.kind {
            TermKind::Case { .. } => return true,
            TermKind::Let { body, .. } | TermKind::LetRec { body, .. } => body,
            TermKind::Lambda(lambda) => &lambda.body,
            // Branches of `if` are in parentheses if they are open.
            _ => return false,
        };
    }
}
