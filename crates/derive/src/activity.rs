//! Which parts of a term cannot carry a derivative, because they mention no variable from outside that has reals or functions inside.
//! Such a part is left as it stands: its image is its value with zero derivatives.

use crate::Linker;
use gradus_core::traverse::{for_each_child, with_stack};
use gradus_core::{Term, TermKind, Type, Var};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// The constant parts of one term, by address; the term must outlive this.
pub struct Activity {
    constant: FxHashSet<usize>,
}

fn address(term: &Term) -> usize {
    Arc::as_ptr(&term.kind) as usize
}

impl Activity {
    /// `types`: of all variables, free and bound.
    pub fn of(linker: &Linker, types: &FxHashMap<Var, Type>, term: &Term) -> Activity {
        let mut walk = Walk { linker, types, depths: FxHashMap::default(), constant: FxHashSet::default() };
        walk.term(term, 0);
        Activity { constant: walk.constant }
    }

    pub fn is_constant(&self, term: &Term) -> bool {
        self.constant.contains(&address(term))
    }
}

struct Walk<'a> {
    linker: &'a Linker,
    types: &'a FxHashMap<Var, Type>,
    /// At how many binders from the root a variable is bound; 0 for a free one.
    depths: FxHashMap<Var, usize>,
    constant: FxHashSet<usize>,
}

impl Walk<'_> {
    /// The depth of the outermost active variable that the term mentions. The term is constant if that lies inside itself.
    fn term(&mut self, term: &Term, depth: usize) -> usize {
        with_stack(|| {
            let mut outermost = usize::MAX;
            if let TermKind::Var(v, _) = &*term.kind {
                let active = self.types.get(v).is_none_or(|ty| !self.linker.contents(ty).is_leaf());
                if active {
                    outermost = self.depths.get(v).copied().unwrap_or(0);
                }
            }
            let mut inside = depth;
            gradus_core::traverse::for_each_binder(term, &mut |v| {
                inside = depth + 1;
                self.depths.insert(v.clone(), inside);
            });
            for_each_child(term, &mut |child| outermost = outermost.min(self.term(child, inside)));
            if outermost > depth {
                self.constant.insert(address(term));
            }
            outermost
        })
    }
}
