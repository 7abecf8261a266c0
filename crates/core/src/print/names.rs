//! What things are called in printed source: readable, and different where they must be.

use crate::{DeriveOp, Global, Prim, Type, TypeDecl, TypeName, Var};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::{Arc, LazyLock};

/// Words that are no names in Gradus, or that a reader would take for something else.
const WORDS: &[&str] = &[
    "and",
    "as",
    "begin",
    "check",
    "data",
    "derivative",
    "elif",
    "else",
    "end",
    "false",
    "for",
    "fst",
    "fun",
    "function",
    "if",
    "import",
    "in",
    "let",
    "match",
    "mod",
    "mutable",
    "of",
    "open",
    "or",
    "plot",
    "rec",
    "return",
    "show",
    "snd",
    "tangent",
    "then",
    "true",
    "try",
    "type",
    "when",
    "while",
    "with",
];

static RESERVED: LazyLock<FxHashSet<&'static str>> = LazyLock::new(|| {
    let derivative_forms = [
        DeriveOp::Grad,
        DeriveOp::ValueAndGrad,
        DeriveOp::Vjp,
        DeriveOp::Jvp,
        DeriveOp::Pullback,
        DeriveOp::Linearize,
        DeriveOp::Jacobian,
        DeriveOp::Hessian,
        DeriveOp::Hvp,
        DeriveOp::Diff,
        DeriveOp::Taylor,
    ];
    let prims = Prim::ALL.iter().map(|p| p.info().name);
    WORDS.iter().copied().chain(prims).chain(derivative_forms.map(DeriveOp::name)).collect()
});

#[derive(Default)]
pub struct Names {
    /// A file of its own, with one flat set of names.
    flat: bool,
    /// Whether instances of a polymorphic definition are told apart.
    instances: bool,
    globals: FxHashMap<Global, String>,
    types: FxHashMap<TypeName, String>,
    constructors: FxHashMap<(TypeName, usize), String>,
    fields: FxHashMap<(TypeName, usize), String>,
    taken: FxHashSet<String>,
    locals: FxHashMap<Var, String>,
    /// How often a name is in scope.
    in_scope: FxHashMap<String, u32>,
    /// Where to go on looking for a free name.
    next: FxHashMap<String, usize>,
}

impl Names {
    /// Names for a file of its own.
    pub fn of_file(instances: bool) -> Self {
        Names { flat: true, instances, ..Names::default() }
    }

    /// A name for a variable whose scope begins. Names of globals that its scope may mention have been given before.
    pub fn bind(&mut self, var: &Var) -> String {
        let base = identifier(&var.name);
        let start = match self.in_scope.get(&base) {
            Some(count) if *count > 0 => self.next.get(&base).copied().unwrap_or(1),
            _ => 0,
        };
        let free = |names: &Names, name: &str| {
            names.in_scope.get(name).is_none_or(|n| *n == 0) && !RESERVED.contains(name) && !names.taken.contains(name)
        };
        let (index, name) = (start..)
            .map(|index| (index, numbered(&base, index)))
            .find(|(_, name)| free(self, name))
            .unwrap_or((start, base.clone()));
        self.next.insert(base, index + 1);
        *self.in_scope.entry(name.clone()).or_default() += 1;
        self.locals.insert(var.clone(), name.clone());
        name
    }

    /// The end of a variable's scope.
    pub fn unbind(&mut self, var: &Var) {
        let Some(name) = self.locals.get(var) else { return };
        if let Some(count) = self.in_scope.get_mut(name) {
            *count = count.saturating_sub(1);
        }
        self.next.remove(&identifier(&var.name));
    }

    pub fn local(&self, var: &Var) -> String {
        self.locals.get(var).cloned().unwrap_or_else(|| identifier(&var.name))
    }

    pub fn global(&mut self, global: &Global) -> String {
        let key = match global {
            Global::Source { name, .. } if !self.instances => {
                Global::Source { name: name.clone(), types: Arc::from([]) }
            }
            _ => global.clone(),
        };
        if let Some(name) = self.globals.get(&key) {
            return name.clone();
        }
        let wanted = global_name(&key);
        let name = if self.flat { self.unique(&wanted) } else { wanted };
        self.taken.insert(name.clone());
        self.globals.insert(key, name.clone());
        name
    }

    pub fn ty(&mut self, name: &TypeName) -> String {
        let wanted = super::types::type_name(name);
        if !self.flat {
            return wanted;
        }
        if let Some(known) = self.types.get(name) {
            return known.clone();
        }
        let unique = self.flattened(&wanted, |names, text| names.types.values().any(|t| t == text));
        self.types.insert(name.clone(), unique.clone());
        unique
    }

    pub fn constructor(&mut self, decl: &TypeDecl, tag: usize, label: &str) -> String {
        let key = (decl.name.clone(), tag);
        if let Some(known) = self.constructors.get(&key) {
            return known.clone();
        }
        let mut wanted = label.to_string();
        if !decl.name.modes.is_empty() {
            wanted = match label {
                "[]" => "Nil".into(),
                "::" => "Cons".into(),
                other => other.into(),
            };
            decl.name.modes.iter().for_each(|mode| wanted = format!("{wanted}_{mode}"));
        }
        if self.flat {
            wanted = self.unique_among(wanted, |names, text| names.constructors.values().any(|c| c == text));
        }
        self.constructors.insert(key, wanted.clone());
        wanted
    }

    pub fn field(&mut self, decl: &TypeDecl, index: usize, label: &str) -> String {
        let key = (decl.name.clone(), index);
        if let Some(known) = self.fields.get(&key) {
            return known.clone();
        }
        let mut wanted = label.to_string();
        decl.name.modes.iter().for_each(|mode| wanted = format!("{wanted}_{mode}"));
        if self.flat {
            wanted = self.unique_among(wanted, |names, text| names.fields.values().any(|f| f == text));
        }
        self.fields.insert(key, wanted.clone());
        wanted
    }

    fn unique(&self, wanted: &str) -> String {
        self.flattened(wanted, |names, text| names.taken.contains(text) || RESERVED.contains(text))
    }

    /// `Optim.descend` as `descend`, or as `optim_descend` if that is taken.
    fn flattened(&self, wanted: &str, taken: impl Fn(&Names, &str) -> bool) -> String {
        let short = identifier(wanted.rsplit('.').next().unwrap_or(wanted));
        if !taken(self, &short) {
            return short;
        }
        self.unique_among(identifier(wanted), taken)
    }

    fn unique_among(&self, wanted: String, taken: impl Fn(&Names, &str) -> bool) -> String {
        let mut index = 0;
        loop {
            let name = numbered(&wanted, index);
            if !taken(self, &name) {
                return name;
            }
            index += 1;
        }
    }
}

/// `x`, `x'`, `x''`, `x3`, `x4`, ...
fn numbered(base: &str, index: usize) -> String {
    match index {
        0 => base.to_string(),
        1 | 2 => format!("{base}{}", "'".repeat(index)),
        _ => format!("{base}{index}"),
    }
}

/// Any text as a lower-case identifier.
fn identifier(text: &str) -> String {
    let mut name: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '\'' { c } else { '_' }).collect();
    match name.chars().next() {
        Some(c) if c.is_ascii_lowercase() => {}
        Some('_') if name.len() > 1 => {}
        Some(c) if c.is_ascii_uppercase() => name.replace_range(..1, &c.to_ascii_lowercase().to_string()),
        _ => name.insert(0, 'x'),
    }
    name
}

/// What a global is called if nothing else has the name.
fn global_name(global: &Global) -> String {
    match global {
        Global::Source { name, .. } => name.replace('#', "_"),
        Global::Derived { mode, of } => format!("{}_{mode}", global_name(of)),
        Global::Wrapper { name, modes, types } => {
            let mut text = name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '_', "_");
            for part in types.iter().map(type_words).chain(modes.iter().map(|mode| mode.to_string())) {
                text = format!("{text}_{part}");
            }
            // A type can be long; whatever it is, the name stays readable, and clashes get numbers.
            text.chars().take(60).collect()
        }
    }
}

/// A type as part of a name: `real_list`.
fn type_words(ty: &Type) -> String {
    let all = |types: &[Type]| types.iter().map(type_words).collect::<Vec<_>>().join("_");
    crate::traverse::with_stack(|| match ty {
        Type::Var(v) => v.name.to_string(),
        Type::Real => "real".into(),
        Type::Int => "int".into(),
        Type::Bool => "bool".into(),
        Type::String => "string".into(),
        Type::Unit => "unit".into(),
        Type::Tuple(parts) => all(parts),
        Type::Array(element) => format!("{}_array", type_words(element)),
        Type::Fun(parts) => format!("{}_to_{}", type_words(&parts.0), type_words(&parts.1)),
        Type::Named(name, args) => {
            let name = super::types::type_name(name).replace('.', "_");
            if args.is_empty() {
                name
            } else {
                format!("{}_{name}", all(args))
            }
        }
    })
}
