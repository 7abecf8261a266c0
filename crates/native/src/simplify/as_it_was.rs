//! A loop that changes an array place by place, reads only places of it that it has not changed yet, and whose changes nobody wants: it reads the array as
//! it was. So does the way back through a loop that fills a table, where each place follows from earlier ones: it has nothing to undo.

use super::ranges::Linear;
use crate::flow::walk::count_uses;
use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use rustc_hash::{FxHashMap, FxHashSet};

pub fn run(block: &mut Block) {
    with_stack(|| {
        super::each_inside(block, run);
        let changes_arrays = |s: &Stmt| matches!(&s.op, Op::For(l) if l.carried.iter().any(|(v, _)| v.ty.is_array()));
        if !block.stmts.iter().any(changes_arrays) {
            return;
        }
        let uses = count_uses(block);
        for stmt in &mut block.stmts {
            let Op::For(l) = &mut stmt.op else { continue };
            for at in 0..l.carried.len() {
                let (state, before) = l.carried[at];
                let Atom::Var(before) = before else { continue };
                if state.ty.is_array() && !uses.contains_key(&stmt.binds[at]) {
                    if let Some(versions) = unchanged_where_read(l, at) {
                        read_from(&mut l.body, &versions, before);
                    }
                }
            }
        }
    })
}

/// What a loop and those inside do with an array that it carries.
#[derive(Default)]
struct Nest {
    /// The indices of the loops around, from the outermost.
    loops: Vec<Var>,
    /// The array, as it is handed from change to change.
    versions: FxHashSet<Var>,
    /// Integers as sums of indices and of what is known outside; none for others that come about inside.
    forms: FxHashMap<Var, Option<Linear>>,
    places: Vec<Access>,
    reads: Vec<Access>,
}

/// An element, or a row, that is read or changed.
struct Access {
    loops: Vec<Var>,
    index: Vec<Option<Linear>>,
}

/// The names of an array that a loop changes and reads only where it is as it was.
fn unchanged_where_read(l: &For, at: usize) -> Option<FxHashSet<Var>> {
    let mut nest = Nest::default();
    nest.versions.insert(l.carried[at].0);
    nest.body_of(l)?;
    let hands_on = l.body.results.iter().enumerate().all(|(to, result)| nest.is_version(*result) == (to == at));
    let changed = hands_on && !nest.places.is_empty();
    (changed && nest.reads.iter().all(|read| nest.places.iter().all(|place| read.misses(place))))
        .then_some(nest.versions)
}

impl Nest {
    /// None if the array is used in other ways.
    fn body_of(&mut self, l: &For) -> Option<()> {
        self.loops.push(l.index);
        self.forms.insert(l.index, Some(Linear::of(l.index)));
        self.forms.extend(l.carried.iter().map(|(state, _)| (*state, None)));
        self.block(&l.body)?;
        self.loops.pop();
        Some(())
    }

    fn block(&mut self, block: &Block) -> Option<()> {
        with_stack(|| block.stmts.iter().try_for_each(|stmt| self.stmt(stmt)))
    }

    fn stmt(&mut self, stmt: &Stmt) -> Option<()> {
        match &stmt.op {
            Op::Get { array, index } if self.versions.contains(array) => {
                let read = self.access(index);
                self.reads.push(read);
            }
            Op::Set { array, index, value } if self.versions.contains(array) && !self.is_version(*value) => {
                let place = self.access(index);
                self.places.push(place);
                self.versions.insert(stmt.binds[0]);
            }
            Op::Dim { .. } => {}
            Op::If { cond: _, then, otherwise, .. } => {
                self.block(then)?;
                self.block(otherwise)?;
                for (bind, (first, second)) in stmt.binds.iter().zip(then.results.iter().zip(&otherwise.results)) {
                    self.handed_on(*bind, [*first, *second])?;
                }
            }
            Op::For(l) => {
                for (state, init) in &l.carried {
                    if self.is_version(*init) {
                        self.versions.insert(*state);
                    }
                }
                self.body_of(l)?;
                for (at, result) in l.body.results.iter().enumerate() {
                    let init = l.carried.get(at).map_or(*result, |(_, init)| *init);
                    if l.carried.len() <= at && self.is_version(*result) {
                        return None;
                    }
                    self.handed_on(stmt.binds[at], [init, *result])?;
                }
            }
            op => {
                let mut other = false;
                op.for_each_operand(&mut |a| other |= self.is_version(a));
                for inner in op.blocks() {
                    walk::for_each_operand(inner, &mut |a| other |= self.is_version(a));
                }
                if other {
                    return None;
                }
            }
        }
        for bind in &stmt.binds {
            let form = self.result_of(&stmt.op);
            self.forms.insert(*bind, form);
        }
        Some(())
    }

    fn is_version(&self, atom: Atom) -> bool {
        atom.var().is_some_and(|v| self.versions.contains(&v))
    }

    /// What is one or the other: a version of the array if both are.
    fn handed_on(&mut self, bind: Var, sides: [Atom; 2]) -> Option<()> {
        match sides.map(|side| self.is_version(side)) {
            [true, true] => {
                self.versions.insert(bind);
                Some(())
            }
            [false, false] => Some(()),
            _ => None,
        }
    }

    fn access(&self, index: &[Atom]) -> Access {
        Access { loops: self.loops.clone(), index: index.iter().map(|a| self.form(*a)).collect() }
    }

    fn form(&self, atom: Atom) -> Option<Linear> {
        match atom {
            Atom::Int(k) => Some(Linear::constant(k)),
            Atom::Var(v) => self.forms.get(&v).cloned().unwrap_or_else(|| Some(Linear::of(v))),
            _ => None,
        }
    }

    fn result_of(&self, op: &Op) -> Option<Linear> {
        let Op::Scalar { prim, args } = op else { return None };
        let form = |at: usize| self.form(args[at]);
        let sum = match prim {
            Prim::AddInt => form(0)?.plus(1, &form(1)?),
            Prim::SubInt => form(0)?.plus(-1, &form(1)?),
            Prim::NegInt => Linear::constant(0).plus(-1, &form(0)?),
            _ => return None,
        };
        sum.is_small().then_some(sum)
    }
}

impl Access {
    /// Whether this, which is read, is not what the same iteration or an earlier one changes at `place`.
    fn misses(&self, place: &Access) -> bool {
        let both = |at: usize| Some((self.index[at].as_ref()?, place.index[at].as_ref()?));
        let axes: Vec<_> = (0..self.index.len().min(place.index.len())).filter_map(both).collect();
        let common = self.loops.iter().zip(&place.loops).take_while(|(a, b)| a == b).count();
        let varies = |form: &Linear| self.loops.iter().chain(&place.loops).any(|i| form.mentions(*i));
        let apart = |read: &Linear, changed: &Linear| read.clone().plus(-1, changed).as_constant();
        // They differ in an index that is the same in all iterations.
        let elsewhere = |(read, changed): &(&Linear, &Linear)| {
            !varies(read) && !varies(changed) && apart(read, changed).is_some_and(|by| by != 0)
        };
        if axes.iter().any(elsewhere) {
            return true;
        }
        // Which iteration changes what is read, in the outermost loop first: a later one, the same, or perhaps another.
        for index in &self.loops[..common] {
            let later = axes.iter().find_map(|(read, changed)| {
                let (read, changed) = ((*read).clone().without(*index), (*changed).clone().without(*index));
                let alone = read.0 == changed.0 && read.0.abs() == 1 && !varies(&read.1) && !varies(&changed.1);
                alone.then(|| Some(read.0 * apart(&read.1, &changed.1)?))?
            });
            match later {
                Some(later) if later > 0 => return true,
                Some(0) => {}
                _ => return false,
            }
        }
        false
    }
}

/// Reads an array in place of others that are like it.
fn read_from(block: &mut Block, versions: &FxHashSet<Var>, before: Var) {
    with_stack(|| {
        for stmt in &mut block.stmts {
            if let Op::Get { array, .. } | Op::Dim { array, .. } = &mut stmt.op {
                if versions.contains(array) {
                    *array = before;
                }
            }
            stmt.op.blocks_mut().for_each(|inner| read_from(inner, versions, before));
        }
    })
}
