//! What the linker keeps: definitions, declarations and types by their keys; and what is shared between all linkers.

use crate::scope::Scope;
use crate::types::Contents;
use crate::Linker;
use gradus_core::{Definition, Global, Lambda, Mode, Symbol, Type, TypeDecl, TypeName};
use rustc_hash::FxHashMap;
use std::sync::{Arc, LazyLock, Mutex};

#[derive(Default)]
pub struct Kept {
    pub definitions: FxHashMap<Global, Arc<Definition>>,
    /// Definitions that are no part of the program's text: functions under derivative forms, custom rules.
    pub hidden: FxHashMap<Global, Arc<Definition>>,
    pub declarations: FxHashMap<TypeName, Arc<TypeDecl>>,
    pub contents: FxHashMap<TypeName, Contents>,
    /// The types of globals whose definitions may not have been made.
    pub types: FxHashMap<Global, Type>,
    /// Under `combinator`, the types of cotangents of declared types: only recursive ones have their own.
    pub cotangents: FxHashMap<Type, Option<Type>>,
    /// By address. The function is kept too, so that no other can get its address.
    pub scopes: FxHashMap<usize, (Arc<Lambda>, Scope)>,
    pub images: FxHashMap<(usize, Mode), Arc<Lambda>>,
    pub expanded_terms: usize,
    /// What [`Linker::make_beforehand`] is making, the innermost last.
    pub beforehand: Vec<Symbol>,
}

impl Linker {
    pub(crate) fn known_declaration(&self, name: &TypeName) -> Option<Arc<TypeDecl>> {
        self.kept().declarations.get(name).cloned()
    }

    pub(crate) fn keep_declaration(&self, decl: Arc<TypeDecl>) {
        self.kept().declarations.insert(decl.name.clone(), decl);
    }

    pub(crate) fn known_contents(&self, name: &TypeName) -> Option<Contents> {
        self.kept().contents.get(name).copied()
    }

    pub(crate) fn keep_contents(&self, name: &TypeName, contents: Contents) {
        self.kept().contents.insert(name.clone(), contents);
    }

    pub(crate) fn known_type(&self, global: &Global) -> Option<Type> {
        self.kept().types.get(global).cloned()
    }

    pub(crate) fn keep_type(&self, global: &Global, ty: &Type) {
        self.kept().types.insert(global.clone(), ty.clone());
    }

    pub(crate) fn known_cotangents(&self, ty: &Type) -> Option<Option<Type>> {
        self.kept().cotangents.get(ty).cloned()
    }

    pub(crate) fn keep_cotangents(&self, ty: &Type, cotangents: Option<Type>) {
        self.kept().cotangents.insert(ty.clone(), cotangents);
    }

    pub(crate) fn forget_cotangents(&self, ty: &Type) {
        self.kept().cotangents.remove(ty);
    }

    /// A name for a type of cotangents that no other type has.
    pub(crate) fn new_cotangent_name(&self, of: &str) -> Symbol {
        let kept = self.kept();
        let taken = |name: &str| {
            let is = |ty: &Option<Type>| matches!(ty, Some(Type::Named(other, _)) if *other.base == *name);
            kept.cotangents.values().any(is) || kept.declarations.keys().any(|other| *other.base == *name)
        };
        let plain = format!("{of}_cotangent");
        let mut numbered = (2..).map(|n| format!("{plain}{n}"));
        std::iter::once(plain.clone()).chain(&mut numbered).find(|name| !taken(name)).unwrap_or_default().into()
    }
}

/// The functions of a mode's own that speak of no type of the program: the same for every program, so they are made and checked once.
static SHARED: LazyLock<Mutex<FxHashMap<Global, Arc<Definition>>>> = LazyLock::new(Mutex::default);

fn is_shared(global: &Global) -> bool {
    matches!(global, Global::Wrapper { modes, types, .. } if types.is_empty() && modes.len() == 1)
}

pub fn shared(global: &Global) -> Option<Arc<Definition>> {
    if !is_shared(global) {
        return None;
    }
    SHARED.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get(global).cloned()
}

/// Keeps a definition that has been checked.
pub fn share(definition: &Arc<Definition>) {
    if is_shared(&definition.global) {
        let mut all = SHARED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        all.insert(definition.global.clone(), definition.clone());
    }
}
