//! Counter-examples: a value that no arm of a match takes, written as a pattern, from what is known on the way to it.

use crate::declared::DeclaredBody;
use crate::matching::{Fact, Matcher, Part};
use crate::store::TypeId;
use gradus_core::{Literal, Type};

impl Matcher<'_, '_> {
    /// A value that no arm takes, as a pattern.
    pub fn example(&self, part: Part, argument: bool) -> String {
        gradus_core::traverse::with_stack(|| {
            let info = part.of(&self.parts);
            if let Some(components) = &info.components {
                return self.example_of_components(&info.ty, components);
            }
            match &info.fact {
                Fact::Anything => "_".to_string(),
                Fact::Constructor(id, tag, args) => {
                    let list = &*self.lower.declared.constructor_name(*id, *tag) == "::";
                    let args = args
                        .iter()
                        .enumerate()
                        .map(|(i, arg)| self.example(*arg, args.len() == 1 || list && i == 0))
                        .collect();
                    self.constructor_example(*id, *tag, args, argument)
                }
                Fact::NotConstructors(id, tags) => {
                    let arities = self.lower.declared.arities(*id);
                    let tag = (0..arities.len()).find(|tag| !tags.contains(tag)).unwrap_or(0);
                    self.constructor_example(*id, tag, vec!["_".to_string(); arities[tag]], argument)
                }
                Fact::Literal(literal) => show_literal(literal),
                Fact::NotLiterals(literals) => other_literal(literals),
                Fact::Length(items) => {
                    let items: Vec<String> = items.iter().map(|item| self.example(*item, false)).collect();
                    if items.is_empty() {
                        "[||]".to_string()
                    } else {
                        format!("[| {} |]", items.join("; "))
                    }
                }
                Fact::NotLengths(lengths) => {
                    let length = (0..).find(|length| !lengths.contains(length)).unwrap_or(0);
                    if length == 0 {
                        "[||]".to_string()
                    } else {
                        format!("[| {} |]", vec!["_"; length].join("; "))
                    }
                }
            }
        })
    }

    fn example_of_components(&self, ty: &Type, components: &[Part]) -> String {
        let examples: Vec<String> = components.iter().map(|part| self.example(*part, false)).collect();
        match ty {
            Type::Named(name, _) => {
                let id = self.lower.declared.find(&name.base);
                let names = match id.map(|id| &self.lower.declared.get(id).body) {
                    Some(DeclaredBody::Record(names, _)) => names.clone(),
                    _ => Vec::new(),
                };
                let said: Vec<String> = names
                    .iter()
                    .zip(&examples)
                    .filter(|(_, example)| *example != "_")
                    .map(|(name, example)| format!("{name} = {example}"))
                    .collect();
                if said.is_empty() {
                    "_".to_string()
                } else {
                    format!("{{ {}; _ }}", said.join("; "))
                }
            }
            _ => format!("({})", examples.join(", ")),
        }
    }

    fn constructor_example(&self, id: TypeId, tag: usize, args: Vec<String>, argument: bool) -> String {
        let name = self.lower.declared.constructor_name(id, tag);
        let text = match (&*name, &args[..]) {
            ("::", [head, tail]) => format!("{head} :: {tail}"),
            (_, []) => return name.to_string(),
            (_, [one]) => format!("{name} {one}"),
            (_, many) => format!("{name} ({})", many.join(", ")),
        };
        if argument && (args.len() == 1 || &*name == "::") {
            format!("({text})")
        } else {
            text
        }
    }
}

fn show_literal(literal: &Literal) -> String {
    match literal {
        Literal::Real(x) => format!("{x:?}"),
        Literal::Int(i) => i.to_string(),
        Literal::Bool(b) => b.to_string(),
        Literal::String(s) => format!("{s:?}"),
        Literal::Unit => "()".to_string(),
    }
}

/// A literal that is not among these.
fn other_literal(literals: &[Literal]) -> String {
    match literals.first() {
        Some(Literal::Bool(b)) => (!b).to_string(),
        Some(Literal::Int(_)) => {
            (0..).find(|i| !literals.contains(&Literal::Int(*i))).map_or("_".to_string(), |i| i.to_string())
        }
        // Patterns have no other reals than these to choose from: NaN and infinities have no numeral.
        Some(Literal::Real(_)) => (0..)
            .find(|i| !literals.contains(&Literal::Real(f64::from(*i))))
            .map_or("_".to_string(), |i: i32| format!("{i}.0")),
        Some(Literal::String(_)) if !literals.contains(&Literal::String("".into())) => "\"\"".to_string(),
        Some(Literal::String(_) | Literal::Unit) | None => "_".to_string(),
    }
}
