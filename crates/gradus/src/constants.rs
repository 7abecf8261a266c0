//! The values of the top level that are computed once, however many items and calls need them: for compiled code they are data, like what comes from
//! files.
//!
//! Values that take no work (`let rate = 0.1`, `let start = (0.0, 1.0)`) stay part of the code, which is better for knowing them.

use crate::schema::Schema;
use gradus_core::traverse::{for_each_child, with_stack};
use gradus_core::{Body, Def, Global, Prim, Program, Symbol, Term, TermKind, Type};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// A term with more parts than that takes work.
const SMALL: usize = 64;

/// The values of a program that are computed once.
pub struct Constants {
    /// The program in which they are data.
    core: Arc<Program>,
    known: FxHashMap<Symbol, Constant>,
}

#[derive(Clone)]
pub struct Constant {
    pub term: Term,
    pub ty: Type,
}

impl Constants {
    pub fn new(core: &Arc<Program>) -> Constants {
        let schema = Schema::new(&core.types);
        let mut known = FxHashMap::default();
        for def in core.defs.values() {
            if let Some(constant) = constant(def, &schema) {
                known.insert(def.name.clone(), constant);
            }
        }
        Constants { core: with_data(core, known.keys()), known }
    }

    pub fn core(&self) -> &Arc<Program> {
        &self.core
    }

    /// Elements of arrays in the program differ in shape.
    pub fn take_as_irregular(&mut self) {
        Arc::make_mut(&mut self.core).irregular = true;
    }

    pub fn get(&self, name: &Symbol) -> Option<&Constant> {
        self.known.get(name)
    }

    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The constants that a term needs, directly or not: each after those that it needs itself.
    pub fn needed_by(&self, term: &Term) -> Vec<Symbol> {
        if self.is_empty() {
            return Vec::new();
        }
        self.search(term).found
    }

    /// The definitions of all kinds that a term needs, directly or not.
    pub fn definitions_of(&self, term: &Term) -> FxHashSet<Symbol> {
        self.search(term).seen
    }

    fn search(&self, term: &Term) -> Search<'_> {
        let mut search = Search { constants: self, seen: FxHashSet::default(), found: Vec::new() };
        search.term(term);
        search
    }
}

/// A program in which these definitions are data.
pub fn with_data<'a>(core: &Arc<Program>, names: impl Iterator<Item = &'a Symbol>) -> Arc<Program> {
    let mut names = names.peekable();
    if names.peek().is_none() {
        return core.clone();
    }
    let mut changed = (**core).clone();
    for name in names {
        if let Some(def) = changed.defs.get_mut(name) {
            // No file is read: the value is given by name.
            def.body = Body::Data { file: name.clone(), span: def.span };
        }
    }
    Arc::new(changed)
}

fn constant(def: &Def, schema: &Schema) -> Option<Constant> {
    let Body::Term(term) = &def.body else { return None };
    let ty = &def.scheme.ty;
    let plain = def.scheme.vars.is_empty() && !matches!(ty, Type::Fun(_) | Type::Unit);
    let takes_work = plain && !is_small(term, &mut SMALL.clone());
    (takes_work && schema.is_data(ty)).then(|| Constant { term: term.clone(), ty: ty.clone() })
}

/// Whether a term is a small value that has been written down, perhaps with some arithmetic.
fn is_small(term: &Term, parts: &mut usize) -> bool {
    if *parts == 0 {
        return false;
    }
    *parts -= 1;
    match &*term.kind {
        TermKind::Literal(_) | TermKind::Global(_) => true,
        TermKind::Tuple(items) | TermKind::ArrayLiteral { items, .. } | TermKind::Construct { args: items, .. } => {
            items.iter().all(|item| is_small(item, parts))
        }
        TermKind::Proj { term, .. } => is_small(term, parts),
        TermKind::Prim { prim, args, .. } => is_quick(*prim) && args.iter().all(|arg| is_small(arg, parts)),
        TermKind::Var(..)
        | TermKind::Lambda(_)
        | TermKind::App(..)
        | TermKind::Let { .. }
        | TermKind::LetRec { .. }
        | TermKind::Case { .. }
        | TermKind::If { .. }
        | TermKind::Derive { .. }
        | TermKind::Lift { .. } => false,
    }
}

/// Whether a primitive is from numbers to a number.
fn is_quick(prim: Prim) -> bool {
    let is_number = |ty: &Type| matches!(ty, Type::Real | Type::Int | Type::Bool);
    let info = prim.info();
    prim == Prim::Length || (is_number(&info.result) && info.params.iter().all(is_number))
}

/// Looks for constants along the calls.
struct Search<'a> {
    constants: &'a Constants,
    seen: FxHashSet<Symbol>,
    found: Vec<Symbol>,
}

impl Search<'_> {
    fn term(&mut self, term: &Term) {
        with_stack(|| {
            if let TermKind::Global(Global::Source { name, .. }) = &*term.kind {
                self.definition(name);
            }
            for_each_child(term, &mut |child| self.term(child));
        })
    }

    fn definition(&mut self, name: &Symbol) {
        if !self.seen.insert(name.clone()) {
            return;
        }
        let constants = self.constants;
        if let Some(constant) = constants.get(name) {
            self.term(&constant.term);
            self.found.push(name.clone());
        } else if let Some(def) = constants.core.defs.get(name) {
            if let Body::Term(term) = &def.body {
                self.term(term);
            }
            for rule in [&def.rules.reverse, &def.rules.forward].into_iter().flatten() {
                self.term(rule);
            }
        }
    }
}
