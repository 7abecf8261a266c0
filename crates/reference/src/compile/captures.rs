//! The variables that each function of a term captures, found in one walk.

use gradus_core::traverse::{for_each_binder, for_each_child, with_stack};
use gradus_core::{Lambda, Term, TermKind, Var};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// For each function, by address. A function inside a chain `fun x -> fun y -> ...` has its own, since `(fun x -> fun y -> e) a` leaves it.
pub type Captures = FxHashMap<*const Lambda, Vec<Var>>;

/// The captures of all functions in a term; the second part: the free variables of the term itself.
pub fn captures(term: &Term) -> (Captures, Vec<Var>) {
    let (mut table, mut free) = (Captures::default(), FxHashSet::default());
    walk(term, &mut table, &mut free);
    (table, sorted(&free))
}

/// The functions `fun x -> fun y -> ...` that follow each other directly, and what the last of them computes.
pub fn chain(lambda: &Arc<Lambda>) -> (Vec<Arc<Lambda>>, &Term) {
    let mut all = vec![lambda.clone()];
    let mut body = &lambda.body;
    while let TermKind::Lambda(inner) = &*body.kind {
        all.push(inner.clone());
        body = &inner.body;
    }
    (all, body)
}

/// Adds the free variables of a term. Because binders are unique, a variable can be taken out once its scope is done.
fn walk(term: &Term, table: &mut Captures, free: &mut FxHashSet<Var>) {
    with_stack(|| match &*term.kind {
        TermKind::Var(var, _) => {
            free.insert(var.clone());
        }
        TermKind::Lambda(lambda) => {
            let (chain, body) = chain(lambda);
            let mut inner = FxHashSet::default();
            walk(body, table, &mut inner);
            // Also for those inside a chain: an application may take away the first parameters.
            for lambda in chain.iter().rev() {
                inner.remove(&lambda.param);
                table.insert(Arc::as_ptr(lambda), sorted(&inner));
            }
            free.extend(inner);
        }
        TermKind::Global(_)
        | TermKind::Literal(_)
        | TermKind::App(..)
        | TermKind::Let { .. }
        | TermKind::LetRec { .. }
        | TermKind::Prim { .. }
        | TermKind::Tuple(_)
        | TermKind::Proj { .. }
        | TermKind::Construct { .. }
        | TermKind::Case { .. }
        | TermKind::If { .. }
        | TermKind::ArrayLiteral { .. }
        | TermKind::Derive { .. }
        | TermKind::Lift { .. } => {
            for_each_child(term, &mut |child| walk(child, table, free));
            for_each_binder(term, &mut |var| {
                free.remove(var);
            });
        }
    })
}

fn sorted(vars: &FxHashSet<Var>) -> Vec<Var> {
    let mut vars: Vec<Var> = vars.iter().cloned().collect();
    vars.sort_by_key(|v| v.id);
    vars
}
