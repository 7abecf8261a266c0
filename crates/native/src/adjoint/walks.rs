//! Loops that walk through a list, or down one side of a tree, until they have found something: each step goes to a part of the cell. Where they stop is decided by
//! numbers, but what has a slope is only handed on. So the way back puts the adjoint of the place where the walk has ended into as many cells as there were steps; all
//! that it wants to know is their number.

use super::control::{count_iterations, outer_accumulators};
use super::*;
use crate::exits;

/// How a state comes to the next: as a part of its cell.
pub(super) struct Walk {
    /// Which state it is.
    pub(super) at: usize,
    tag: usize,
    /// The parts of the cell that have adjoints, one of which is the next state.
    parts: Vec<Var>,
    next: Var,
}

impl Walk {
    /// The walk of state number `at`, if it is one, in the body of a loop as it is when the loop goes on.
    pub(super) fn of(at: usize, state: Var, next: Atom, body: &Block) -> Option<Walk> {
        let next = next.var().filter(|next| next.ty == state.ty && !state.ty.is_array())?;
        let taken_apart = body.stmts.iter().find(|stmt| stmt.binds.contains(&next))?;
        let Op::Unpack { cell, tag } = taken_apart.op else { return None };
        let parts: Vec<Var> = taken_apart.binds.iter().copied().filter(|v| v.ty.may_be_active()).collect();
        // How long the adjoint of an array is, only the array can tell.
        let is_walk = cell == state.into() && !parts.iter().any(|part| part.ty.is_array());
        is_walk.then_some(Walk { at, tag, parts, next })
    }
}

/// The walks of a loop, and how many iterations it has.
pub(super) struct Walked {
    walks: Vec<Walk>,
    count: Var,
}

impl Sweep<'_> {
    /// The walks of a loop, if all of its state that has a slope walks.
    fn walks(&self, op: &Op) -> Option<Vec<Walk>> {
        let Op::While(l) = op else { return None };
        let active = || l.carried.iter().enumerate().filter(|(_, (state, _))| self.active.contains(state));
        if active().any(|(_, (state, _))| state.ty.shape().is_none()) || !outer_accumulators(op).is_empty() {
            return None;
        }
        let body = exits::going_on(l)?;
        active().map(|(at, (state, _))| Walk::of(at, *state, body.results[1 + at], &body)).collect()
    }

    pub(super) fn is_walk(&self, op: &Op) -> bool {
        self.walks(op).is_some()
    }

    /// Writes such a loop so that it counts its iterations.
    pub(super) fn forward_walks(&mut self, stmt: &Stmt) -> Record {
        let (Some(walks), Op::While(l)) = (self.walks(&stmt.op), &stmt.op) else {
            gradus_source::bug!("a loop that does not walk")
        };
        let (mut l, mut binds) = (l.clone(), stmt.binds.clone());
        let counter = Var::fresh("steps", Type::INT);
        let count = count_iterations(&mut binds, &mut l.carried, &mut l.body, counter, self.b);
        self.b.stmt(Stmt { binds, op: Op::While(l), span: stmt.span });
        Record::Walked(Walked { walks, count })
    }

    pub(super) fn backward_walks(&mut self, binds: &[Var], carried: &[(Var, Atom)], walked: Walked) {
        let adjs: Vec<Option<Atom>> = binds.iter().map(|v| self.take(*v)).collect();
        // The last iteration only stops.
        let steps = self.b.scalar(Prim::SubInt, &[walked.count.into(), Atom::Int(1)]);
        for walk in &walked.walks {
            if let Some(adj) = adjs[walk.at] {
                let first = self.walk_back(walk, steps, adj);
                self.add(carried[walk.at].1, first);
            }
        }
    }

    /// The adjoint of where a walk was so many steps before. If it is zero, it is so without any cell.
    pub(super) fn walk_back(&mut self, walk: &Walk, steps: Atom, adj: Atom) -> Atom {
        let (Atom::Var(_), Some(shape)) = (adj, adj.ty().shape()) else { return adj };
        let tag = self.b.tag(adj);
        let is_zero = self.b.scalar(Prim::Less, &[tag, Atom::Int(0)]);
        let steps = self.b.select(is_zero, Atom::Int(0), steps);
        let (k, next_adj) = (Var::fresh(BACKWARD_INDEX, Type::INT), Var::fresh("walk_adj", adj.ty()));
        let parts: Vec<Atom> = walk
            .parts
            .iter()
            .map(|part| match *part == walk.next {
                true => next_adj.into(),
                false => self.zeros_like((*part).into()),
            })
            .collect();
        self.b.push();
        let cell = self.b.cell(shape, walk.tag, parts);
        let body = self.b.pop(vec![cell]);
        self.b.for_loop(k, steps, vec![(next_adj, adj)], body)[0]
    }
}
