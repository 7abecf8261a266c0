//! Looking names up, and saying what is near when they are not there.

use crate::error::{NamePlace, Namespace, TypeError};
use crate::infer::Infer;
use crate::names::{nearest, Names, TypeRef, Value};
use crate::store::TypeId;
use gradus_core::Symbol;
use gradus_source::Span;
use gradus_syntax::ast;

impl Infer {
    /// The names of the module that a path goes through; `Ok(None)` for a plain name.
    fn module_of(&mut self, modules: &[ast::Ident]) -> Result<Option<Symbol>, ()> {
        match modules {
            [] => Ok(None),
            [one] => {
                self.check_module(one)?;
                Ok(Some(one.name.clone()))
            }
            [_, second, ..] => {
                self.report(TypeError::NestedModule { span: second.span });
                Err(())
            }
        }
    }

    /// Whether a module may be named here.
    fn check_module(&mut self, module: &ast::Ident) -> Result<(), ()> {
        if self.imported.contains(&module.name) || &*module.name == "Prelude" && self.module != module.name {
            return if self.tables.modules.contains_key(&module.name) { Ok(()) } else { Err(()) };
        }
        // A module that exists, but was not imported, is the best suggestion.
        let near = if self.tables.modules.contains_key(&module.name) {
            None
        } else {
            nearest(
                &module.name,
                self.imported.iter().filter(|m| self.tables.modules.contains_key(*m)).map(|name| &**name),
            )
        };
        self.report(TypeError::UnknownModule { name: module.name.clone(), near, span: module.span });
        Err(())
    }

    pub fn opened(&mut self, path: &ast::Path) -> Option<Symbol> {
        let mut parts = path.modules.clone();
        parts.push(path.name.clone());
        self.module_of(&parts).ok().flatten()
    }

    fn unknown(&mut self, namespace: Namespace, path: &ast::Path, module: Option<Symbol>, near: Option<String>) {
        let name = path.name.name.clone();
        let place = if namespace != Namespace::Value {
            NamePlace::Nowhere
        } else if module.is_some() {
            match self.scope.values.contains_key(&name) {
                true => NamePlace::Outside,
                false => NamePlace::Nowhere,
            }
        } else if self.defining.contains(&name) {
            NamePlace::OwnDefinition
        } else if self.to_define.get(&name).is_some_and(|left| *left > 0) {
            NamePlace::Below
        } else {
            NamePlace::Nowhere
        };
        self.report(TypeError::Unknown { namespace, name, module, near, place, span: path.name.span });
    }

    /// Looks a path up in one namespace; reports it if it is not there.
    fn find<T: Clone>(
        &mut self,
        path: &ast::Path,
        namespace: Namespace,
        get: impl Fn(&Names, &str) -> Option<T>,
        keys: impl Fn(&Names) -> Vec<Symbol>,
    ) -> Option<T> {
        let module = self.module_of(&path.modules).ok()?;
        let (found, names) = {
            let names = match &module {
                None => &self.scope,
                Some(module) => self.tables.modules.get(module)?,
            };
            (get(names, &path.name.name), names)
        };
        if found.is_none() {
            let mut candidates = keys(names);
            if namespace == Namespace::Value && module.is_none() {
                candidates.extend(self.locals.keys().cloned());
            }
            candidates.sort();
            let has_it = |m: &&Symbol| self.tables.modules.get(*m).is_some_and(|n| get(n, &path.name.name).is_some());
            let near = match self.imported.iter().filter(|_| module.is_none()).filter(has_it).min() {
                Some(imported) => Some(format!("{imported}.{}", path.name.name)),
                None => nearest(&path.name.name, candidates.iter().map(|name| &**name)),
            };
            self.unknown(namespace, path, module, near);
        }
        found
    }

    pub fn value(&mut self, path: &ast::Path) -> Option<Value> {
        if path.modules.is_empty() {
            if let Some(value) = self.locals.get(&path.name.name).and_then(|stack| stack.last()) {
                return Some(*value);
            }
        }
        self.find(
            path,
            Namespace::Value,
            |names, name| names.values.get(name).copied(),
            |names| names.values.keys().cloned().collect(),
        )
    }

    pub fn constructor(&mut self, path: &ast::Path) -> Option<(TypeId, usize)> {
        self.find(
            path,
            Namespace::Constructor,
            |names, name| names.constructors.get(name).copied(),
            |names| names.constructors.keys().cloned().collect(),
        )
    }

    /// All records with such a field, the latest last.
    pub fn field(&mut self, path: &ast::Path) -> Option<Vec<(TypeId, usize)>> {
        self.find(
            path,
            Namespace::Field,
            |names, name| names.fields.get(name).cloned(),
            |names| names.fields.keys().cloned().collect(),
        )
    }

    pub fn type_named(&mut self, path: &ast::Path) -> Option<TypeRef> {
        self.find(
            path,
            Namespace::Type,
            |names, name| names.types.get(name).copied(),
            |names| names.types.keys().cloned().collect(),
        )
    }

    /// `let open M in e`: the names of M for the time of `work`.
    pub fn with_opened<R>(&mut self, path: &ast::Path, work: impl FnOnce(&mut Self) -> R) -> R {
        let Some(names) = self.opened(path).and_then(|module| self.tables.modules.get(&module).cloned()) else {
            return work(self);
        };
        let depth = self.enter();
        for (name, value) in &names.values {
            self.bind_value(name.clone(), *value);
        }
        // Values are scoped by the trail; the other namespaces have no local names but these.
        let before = Names {
            values: Default::default(),
            constructors: self.scope.constructors.clone(),
            fields: self.scope.fields.clone(),
            types: self.scope.types.clone(),
        };
        self.scope.open(&Names { values: Default::default(), ..names });
        let result = work(self);
        self.scope.constructors = before.constructors;
        self.scope.fields = before.fields;
        self.scope.types = before.types;
        self.leave(depth);
        result
    }

    pub fn near_value(&self, name: &str) -> Option<String> {
        let mut keys: Vec<Symbol> = self.exports.values.keys().cloned().collect();
        keys.sort();
        nearest(name, keys.iter().map(|key| &**key))
    }

    pub fn twice(&mut self, what: crate::error::Twice, names: impl IntoIterator<Item = (Symbol, Span)>) -> bool {
        let mut seen: rustc_hash::FxHashMap<Symbol, Span> = Default::default();
        let mut found = false;
        for (name, second) in names {
            if let Some(first) = seen.insert(name.clone(), second) {
                self.report(TypeError::Twice { what, name, first, second });
                found = true;
            }
        }
        found
    }
}
