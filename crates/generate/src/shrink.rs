//! Making a failing program small: replace a term by a part of it, or by a literal, as long as the fault remains.

use crate::Generated;
use gradus_core::build::At;
use gradus_core::traverse::{for_each_child, map_children, with_stack};
use gradus_core::{Term, TermKind};

/// The smallest program found for which `fails` still holds. `fails` is asked only about candidates; it must answer
/// `false` for a program that is not well typed, since shrinking replaces terms without regard to types.
pub fn shrink(program: &Generated, fails: &mut dyn FnMut(&Generated) -> bool, attempts: usize) -> Generated {
    let mut best = program.clone();
    let mut left = attempts;
    let mut position = 0;
    while left > 0 && position < size(best.body()) {
        let mut improved = false;
        for candidate in candidates(best.body(), position) {
            if left == 0 {
                break;
            }
            left -= 1;
            let tried = best.with_body(candidate);
            if fails(&tried) {
                best = tried;
                improved = true;
                break;
            }
        }
        if !improved {
            position += 1;
        }
    }
    best
}

/// The number of nodes of a term.
pub fn size(term: &Term) -> usize {
    let mut total = 1;
    with_stack(|| for_each_child(term, &mut |child| total += size(child)));
    total
}

/// Smaller terms that differ from `term` at the node with the given number (counted in preorder).
fn candidates(term: &Term, position: usize) -> Vec<Term> {
    let Some(node) = node_at(term, &mut position.clone()) else { return Vec::new() };
    let at = At::default();
    let mut replacements = Vec::new();
    let is_literal = matches!(&*node.kind, TermKind::Literal(_));
    if !is_literal {
        replacements.push(at.real(0.5));
        replacements.push(at.int(1));
        replacements.push(at.bool(true));
    }
    for_each_child(&node, &mut |child| {
        replacements.push(child.clone());
        for_each_child(child, &mut |grandchild| replacements.push(grandchild.clone()));
    });
    replacements.into_iter().map(|new| replace_at(term, &mut position.clone(), &new)).collect()
}

fn node_at(term: &Term, position: &mut usize) -> Option<Term> {
    if *position == 0 {
        return Some(term.clone());
    }
    *position -= 1;
    let mut found = None;
    with_stack(|| {
        for_each_child(term, &mut |child| {
            if found.is_none() {
                let before = *position;
                found = node_at(child, position);
                if found.is_none() {
                    *position = before - size(child);
                }
            }
        })
    });
    found
}

/// `position` counts down the nodes before the one to replace; `usize::MAX` means that it has been replaced.
fn replace_at(term: &Term, position: &mut usize, new: &Term) -> Term {
    match *position {
        usize::MAX => return term.clone(),
        0 => {
            *position = usize::MAX;
            return new.clone();
        }
        _ => *position -= 1,
    }
    with_stack(|| map_children(term, &mut |child| replace_at(child, position, new)))
}
