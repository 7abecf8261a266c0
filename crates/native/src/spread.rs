//! Rows that are lists of numbers, written out where a loop collects them: they go to their places number by number, and are never made.

use crate::flow::*;
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// How many results of a body a collected value is.
pub(crate) fn width(row: &Option<Vec<usize>>) -> usize {
    row.as_ref().map_or(1, |dims| dims.iter().product())
}

/// The loop with rows that are lists of numbers collected number by number, and for each collected value the lengths of such rows: none for
/// a number; `None` if the row has to be made first.
pub(crate) fn spread(l: &For) -> (Cow<'_, For>, Vec<Option<Vec<usize>>>) {
    let collected = &l.body.results[l.carried.len()..];
    if collected.iter().all(|result| !result.ty().is_array()) {
        return (Cow::Borrowed(l), vec![Some(Vec::new()); collected.len()]);
    }
    let uses = walk::count_uses(&l.body);
    let mut results = l.body.results[..l.carried.len()].to_vec();
    let (mut lists, mut rows) = (Vec::new(), Vec::new());
    for result in collected {
        let mut items = Vec::new();
        let lengths = lengths_of_list(&l.body, *result, &uses, &mut items, &mut lists);
        results.extend(if lengths.is_some() { items } else { vec![*result] });
        rows.push(lengths);
    }
    if lists.is_empty() {
        return (Cow::Borrowed(l), rows);
    }
    let mut spread = l.clone();
    spread.body.results = results;
    spread.body.stmts.retain(|s| !s.binds.iter().any(|v| lists.contains(v)));
    (Cow::Owned(spread), rows)
}

/// The lengths of a list of numbers, or of such lists, that is written out in a block and used nowhere else; its items are added to `items`
/// and the lists themselves to `lists`.
fn lengths_of_list(
    block: &Block,
    list: Atom,
    uses: &FxHashMap<Var, usize>,
    items: &mut Vec<Atom>,
    lists: &mut Vec<Var>,
) -> Option<Vec<usize>> {
    if !list.ty().is_array() {
        items.push(list);
        return Some(Vec::new());
    }
    let var = list.var().filter(|v| uses.get(v) == Some(&1) && v.ty.shape().is_none())?;
    let made = block.stmts.iter().find(|s| s.binds.contains(&var))?;
    let Op::Literal { items: parts, .. } = &made.op else { return None };
    let (kept_items, kept_lists) = (items.len(), lists.len());
    let mut lengths: Option<Vec<usize>> = None;
    for part in parts {
        let inner = lengths_of_list(block, *part, uses, items, lists);
        if inner.is_none() || lengths.as_ref().is_some_and(|known| Some(known) != inner.as_ref()) {
            items.truncate(kept_items);
            lists.truncate(kept_lists);
            return None;
        }
        lengths = inner;
    }
    let lengths = lengths?;
    lists.push(var);
    Some([vec![parts.len()], lengths].concat())
}
