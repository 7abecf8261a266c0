//! Arrays of a traced loop that its way back has again without their being kept: it undoes the changes, or has them from the way back through loops inside,
//! which have restored them.

use super::traced::keep_traces;
use super::undo::{before_loop, Change, Changed};
use super::*;
use gradus_core::traverse::with_stack;

impl Sweep<'_> {
    /// Lets a backward block that uses an array which its loop changes have it by undoing the changes, which it then hands on as its last result. Gives
    /// the state of the backward loop for it.
    pub(super) fn undo(&mut self, changed: &Changed, state: Var, backward: &mut Block) -> Option<Var> {
        keep_traces(&mut backward.stmts, &self.traces);
        crate::simplify::dead_code(backward, self.module);
        let last = last_undone(state);
        self.b.push();
        let versions = changed.undone(state, last, |after, change| change.undo(self.b, after, |_, known| known));
        let front = self.b.pop(Vec::new()).stmts;
        let wanted = free_vars(backward);
        if !versions.iter().any(|(version, _)| wanted.contains(version)) {
            return None;
        }
        let (_, first) = *versions.last()?;
        let map = versions.into_iter().map(|(version, now)| (version, now.into())).collect();
        let mut renamed = Renaming { map }.block(backward);
        backward.stmts = front;
        backward.stmts.append(&mut renamed.stmts);
        backward.results = renamed.results;
        backward.results.push(first.into());
        Some(last)
    }

    /// Lets a backward block that uses an array which loops inside its own loop change, one after another, have it from the way back through these, which
    /// restores it, and hand it on as its last result. What is changed between these loops is undone. Gives the state of the backward loop for it.
    pub(super) fn hand_back(
        &mut self,
        body: &Block,
        (state, next): (Var, Atom),
        between: &[Change],
        backward: &mut Block,
    ) -> Option<Var> {
        keep_traces(&mut backward.stmts, &self.traces);
        crate::simplify::dead_code(backward, self.module);
        let by_place = |after: Var| between.iter().find(|change| change.versions().1 == after);
        // From the last to the state itself.
        let mut versions = vec![next.var()?];
        while let Some(after) = versions.last().copied().filter(|v| *v != state) {
            let made = body.stmts.iter().find(|s| s.binds.contains(&after))?;
            let before = by_place(after).map(|change| change.versions().0);
            versions.push(before.or_else(|| before_loop(made, after))?);
        }
        let wanted = free_vars(backward);
        if versions.len() == 1 || !versions.iter().any(|version| wanted.contains(version)) {
            return None;
        }
        let last = last_undone(state);
        let mut names: FxHashMap<Var, Var> = FxHashMap::from_iter([(versions[0], last)]);
        // How many statements come before the latest version that is known, and what undoes changes after so many.
        let (mut known, mut undoing) = (0, Vec::new());
        for pair in versions.windows(2) {
            let before = match by_place(pair[0]) {
                Some(change) => {
                    self.b.push();
                    let undone = change.undo(self.b, names[&pair[0]], |_, known| known);
                    undoing.push((known, self.b.pop(Vec::new()).stmts));
                    undone
                }
                None => {
                    let restored = *self.restored.get(&pair[0])?;
                    let at = backward.stmts.iter().position(|s| s.binds.contains(&restored))?;
                    if at < known {
                        return None;
                    }
                    known = at + 1;
                    restored
                }
            };
            if backward.stmts[..known].iter().any(|s| looks_into(s, pair[1])) {
                return None;
            }
            names.insert(pair[1], before);
        }
        let first = names[&state];
        rename_versions(backward, &names, last);
        for (at, stmts) in undoing.into_iter().rev() {
            backward.stmts.splice(at..at, stmts);
        }
        backward.results.push(first.into());
        Some(last)
    }
}

/// Whether a statement uses an array for more than its lengths.
fn looks_into(stmt: &Stmt, array: Var) -> bool {
    with_stack(|| {
        let mut found = false;
        if !matches!(stmt.op, Op::Dim { .. }) {
            stmt.op.for_each_operand(&mut |a| found |= a == array.into());
        }
        found
            || stmt
                .op
                .blocks()
                .any(|inner| inner.results.contains(&array.into()) || inner.stmts.iter().any(|s| looks_into(s, array)))
    })
}

/// Calls arrays by other names; for their lengths, which are all the same, by that of one.
fn rename_versions(block: &mut Block, names: &FxHashMap<Var, Var>, any: Var) {
    with_stack(|| {
        let renamed = |a: &mut Atom| {
            if let Some(name) = a.var().and_then(|v| names.get(&v)) {
                *a = (*name).into();
            }
        };
        for stmt in &mut block.stmts {
            match &mut stmt.op {
                Op::Dim { array, .. } if names.contains_key(array) => *array = any,
                op => op.for_each_operand_mut(&mut { renamed }),
            }
            stmt.op.blocks_mut().for_each(|inner| rename_versions(inner, names, any));
        }
        block.results.iter_mut().for_each(renamed);
    })
}
