//! Which parts of a term cannot carry a derivative, because they mention no variable from outside that has reals or functions inside.
//! Such a part is left as it stands: its image is its value with zero derivatives.

use crate::scope::Scope;
use crate::{Linker, Made};
use gradus_core::traverse::{for_each_child, with_stack};
use gradus_core::{Lambda, Term, TermKind, Type, Var};
use gradus_source::Diagnostic;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// The weight ([`Linker::weight`]) up to which a constant is given zero derivatives: `small` of `proofs/Activity.v`, so that the cost stays within
/// the bounds that are proved.
pub const SMALL: usize = 7;

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

    /// The type of a part that is left as it stands: one that computes something (`computes` of `proofs/Activity.v`) that has no reals inside, or is a small product
    /// of such things and reals.
    pub fn kept(&self, linker: &Linker, scope: &Scope, term: &Term) -> Made<Option<Type>> {
        let computes = match &*term.kind {
            TermKind::App(..) | TermKind::Prim { .. } | TermKind::If { .. } => true,
            TermKind::Proj { .. } | TermKind::LetRec { .. } => true,
            // A name for a variable without reals, or for a part of one, only stands around what computes.
            TermKind::Let { scheme, bound, .. } => !bound.is_path() || !linker.contents(&scheme.ty).is_leaf(),
            TermKind::Case { scrutinee, .. } => !scrutinee.is_path() || !linker.only_names(scope, scrutinee)?,
            TermKind::Var(..)
            | TermKind::Global(_)
            | TermKind::Literal(_)
            | TermKind::Lambda(_)
            | TermKind::Tuple(_)
            | TermKind::Construct { .. }
            | TermKind::ArrayLiteral { .. }
            | TermKind::Derive { .. }
            | TermKind::Lift { .. } => false,
        };
        if !computes || !self.is_constant(term) {
            return Ok(None);
        }
        let ty = linker.type_of(scope, term)?;
        let small = linker.weight(&ty).is_some_and(|weight| weight <= SMALL);
        Ok((linker.contents(&ty).is_leaf() || small).then_some(ty))
    }
}

impl Linker {
    /// Whether a `case` of this only gives names to what is inside: to the parts of a product without reals.
    fn only_names(&self, scope: &Scope, scrutinee: &Term) -> Made<bool> {
        let ty = self.type_of(scope, scrutinee)?;
        Ok(self.contents(&ty).is_leaf() && self.parts(&ty).is_some())
    }

    /// The parts of a function that its derivatives leave as they stand, by address; the function must outlive this.
    pub fn kept_parts(&self, lambda: &Arc<Lambda>) -> Result<FxHashSet<usize>, Box<Diagnostic>> {
        let scope = self.scope(lambda);
        let activity = Activity::of(self, &scope, &lambda.body);
        let mut parts = FxHashSet::default();
        self.add_kept(&activity, &scope, &lambda.body, &mut parts)?;
        Ok(parts)
    }

    fn add_kept(&self, activity: &Activity, scope: &Scope, term: &Term, parts: &mut FxHashSet<usize>) -> Made<()> {
        if activity.kept(self, scope, term)?.is_some() {
            parts.insert(address(term));
            return Ok(());
        }
        let mut result = Ok(());
        with_stack(|| {
            for_each_child(term, &mut |child| {
                if result.is_ok() {
                    result = self.add_kept(activity, scope, child, parts);
                }
            })
        });
        result
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
