//! Making a monomorphic, closed-typed copy of a polymorphic definition (N treats polymorphism this way too: a
//! derivative is taken at an instance). Local polymorphic bindings are copied once for each instance that is used.

use crate::traverse::{map_children, with_stack, Copy};
use crate::*;
use rustc_hash::FxHashMap;

/// The body of a definition at type arguments, with no polymorphism left inside.
pub fn instance(scheme: &Scheme, term: &Term, types: &[Type]) -> Term {
    let mut copy = Copy { types: scheme.bindings(types), ..Copy::default() };
    monomorphise(&copy.term(term))
}

/// Replaces each local polymorphic `let` or `let rec` by one binding group for each set of type arguments at which it is used.
fn monomorphise(term: &Term) -> Term {
    with_stack(|| match &*term.kind {
        TermKind::Let { var, scheme, bound, body } if !scheme.vars.is_empty() => {
            let body = monomorphise(body);
            let group = [(var.clone(), scheme.clone(), bound.clone())];
            specialise(&group, false, body, term)
        }
        TermKind::LetRec { bindings, body } if bindings.iter().any(|(_, s, _)| !s.vars.is_empty()) => {
            let body = monomorphise(body);
            specialise(bindings, true, body, term)
        }
        _ => map_children(term, &mut monomorphise),
    })
}

/// The bindings of one group are generalised together, so they share their type variables.
fn specialise(group: &[(Var, Scheme, Term)], recursive: bool, body: Term, whole: &Term) -> Term {
    let at = build::At(whole.span);
    let mut wanted: Vec<Vec<Type>> = Vec::new();
    collect_uses(&body, group, &mut wanted);
    let mut result = body;
    for types in wanted {
        let mut copy = Copy { types: group[0].1.bindings(&types), ..Copy::default() };
        let renamed: FxHashMap<Var, Var> = group.iter().map(|(v, _, _)| (v.clone(), v.refresh())).collect();
        let mut bindings = Vec::new();
        for (var, scheme, bound) in group {
            // Inside the group, uses are monomorphic at the group's own variables, hence at `types` after copying.
            let bound = monomorphise(&replace_uses(&copy.term(bound), &renamed, &types));
            bindings.push((renamed[var].clone(), scheme.instantiate(&types), bound));
        }
        result = replace_uses(&result, &renamed, &types);
        result = if recursive {
            at.letrec(bindings, result)
        } else {
            bindings.into_iter().fold(result, |body, (v, t, e)| at.bind(&v, t, e, body))
        };
    }
    result
}

fn collect_uses(term: &Term, group: &[(Var, Scheme, Term)], wanted: &mut Vec<Vec<Type>>) {
    with_stack(|| {
        if let TermKind::Var(v, types) = &*term.kind {
            if group.iter().any(|(w, _, _)| w == v) && !wanted.iter().any(|w| w[..] == types[..]) {
                wanted.push(types.to_vec());
            }
        }
        traverse::for_each_child(term, &mut |child| collect_uses(child, group, wanted));
    })
}

fn replace_uses(term: &Term, renamed: &FxHashMap<Var, Var>, types: &[Type]) -> Term {
    with_stack(|| match &*term.kind {
        TermKind::Var(v, args) if args[..] == *types || args.is_empty() => match renamed.get(v) {
            Some(w) => build::At(term.span).var(w),
            None => term.clone(),
        },
        _ => map_children(term, &mut |child| replace_uses(child, renamed, types)),
    })
}
