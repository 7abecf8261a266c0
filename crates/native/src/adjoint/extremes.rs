//! Loops that look for the largest or smallest of numbers. Only one of these has a slope: the last that is the extreme, or what the search began with. So the
//! way back finds it and runs one iteration again, instead of keeping for every iteration what was found so far.

use super::*;
use crate::cores::{joins, Join};
use crate::flow::scalar::is_cheap;

/// Whether a loop does nothing but look for extremes of numbers that each iteration computes by itself.
pub(super) fn are_all(l: &For) -> bool {
    let is_extreme = |join: &Join| matches!(join, Join::Maximum | Join::Minimum);
    !l.carried.is_empty()
        && l.body.results.len() == l.carried.len()
        && joins(l).is_some_and(|joins| joins.iter().all(is_extreme))
        && is_pure(&l.body, &mut Vec::new())
}

/// Whether a block can be run again as it is: it adds only to what it has opened itself.
pub(super) fn is_pure(block: &Block, opened: &mut Vec<Var>) -> bool {
    gradus_core::traverse::with_stack(|| {
        block.stmts.iter().all(|stmt| match &stmt.op {
            Op::Open { .. } => {
                opened.extend(&stmt.binds);
                true
            }
            Op::Add { acc, .. } | Op::Freeze { acc } => opened.contains(acc),
            Op::Call { .. } | Op::Plug { .. } | Op::Push { .. } | Op::Pop { .. } | Op::Product(_) => false,
            op => {
                let boxes = stmt.binds.iter().any(|v| v.ty.shape().is_some());
                let makes_boxes = boxes && !matches!(op, Op::Unpack { .. } | Op::If { .. });
                !makes_boxes && op.blocks().all(|inner| is_pure(inner, opened))
            }
        })
    })
}

/// Whether it is cheap to compute the numbers again.
fn are_cheap(l: &For) -> bool {
    l.body.stmts.iter().all(|stmt| match &stmt.op {
        Op::Scalar { prim, .. } => is_cheap(*prim),
        Op::Get { .. } => stmt.binds.iter().all(|v| !v.ty.is_counted()),
        op => matches!(op, Op::Select { .. } | Op::Copy { .. } | Op::Stop { .. } | Op::Dim { .. } | Op::Check { .. }),
    })
}

/// What maximum or minimum state number `at` is, and of what.
fn joined(l: &For, at: usize) -> (Prim, Atom) {
    let join = l.body.stmts.iter().find(|s| s.binds.iter().any(|v| l.body.results[at] == (*v).into()));
    match join.map(|s| &s.op) {
        Some(Op::Scalar { prim, args }) => (*prim, args[1]),
        _ => gradus_source::bug!("an extreme that no statement gives"),
    }
}

/// What a loop looked for.
#[derive(Clone, Copy)]
struct Extreme {
    /// The maximum or the minimum ..
    prim: Prim,
    /// .. of what each iteration computes ..
    value: Atom,
    /// .. which may all have been kept ..
    kept: Option<Var>,
    /// .. and what it found.
    found: Atom,
}

impl Sweep<'_> {
    /// Runs the loop, which keeps its numbers unless they are cheap: an array for each extreme.
    pub(super) fn forward_extremes(&mut self, stmt: &Stmt, l: &For) -> Record {
        let mut keeping = l.clone();
        let mut kept = Vec::new();
        if !are_cheap(l) {
            keeping.body.results.extend((0..l.carried.len()).map(|at| joined(l, at).1));
            kept.extend(l.carried.iter().map(|(state, _)| Var::fresh(state.name, state.ty.in_array())));
        }
        let binds = [&stmt.binds, &kept[..]].concat();
        self.b.stmt(Stmt { binds, op: Op::For(Box::new(keeping)), span: stmt.span });
        Record::Extremes(kept)
    }

    pub(super) fn backward_extremes(&mut self, stmt: &Stmt, l: &For, kept: &[Var]) {
        for (at, bind) in stmt.binds.iter().enumerate() {
            let Some(adj) = self.take(*bind) else { continue };
            let (prim, value) = joined(l, at);
            let kept = kept.get(at).copied();
            self.backward_extreme(l, at, Extreme { prim, value, kept, found: (*bind).into() }, adj);
        }
    }

    /// Hands the adjoint of an extreme on to the iteration that gave it.
    fn backward_extreme(&mut self, l: &For, at: usize, extreme: Extreme, adj: Atom) {
        let is_before = |stmt: &&Stmt| l.carried.iter().all(|(state, _)| !stmt.mentions(*state));
        let stmts: Vec<Stmt> = l.body.stmts.iter().filter(is_before).cloned().collect();
        let one = Block { stmts, results: vec![extreme.value] };
        let winner = self.last_that_is(l, &one, extreme);
        let found = self.b.scalar(Prim::GreaterEqual, &[winner, Atom::Int(0)]);
        let start = l.carried[at].1;
        let free: Vec<Var> = outer_vars(&one, &[l.index]).into_iter().chain(start.var()).collect();
        self.around(&free, |s| {
            s.b.push();
            let renaming = Renaming { map: [(l.index, winner)].into_iter().collect() };
            s.replay(&one, renaming, &[Some(adj)]);
            let then = s.b.pop(Vec::new());
            s.b.push();
            s.add(start, adj);
            let otherwise = s.b.pop(Vec::new());
            s.branch_unless_empty(found, then, otherwise);
        });
    }

    /// The number of the last iteration whose value is the extreme; -1 if there is none. If the extreme is not a number, the last iteration.
    fn last_that_is(&mut self, l: &For, one: &Block, extreme: Extreme) -> Atom {
        let (index, so_far) = (Var::fresh("i", Type::INT), Var::fresh("last", Type::REAL));
        self.b.push();
        let value = match extreme.kept {
            Some(all) => self.b.get(all.into(), vec![index.into()]),
            None => {
                let again = Renaming { map: [(l.index, index.into())].into_iter().collect() }.block(one);
                self.b.stmts(again.stmts);
                again.results[0]
            }
        };
        let is_less = match extreme.prim {
            Prim::Maximum => self.b.scalar(Prim::Less, &[value, extreme.found]),
            _ => self.b.scalar(Prim::Less, &[extreme.found, value]),
        };
        // As a real number, so that this search, too, is one for a maximum.
        let here = self.b.scalar(Prim::RealOfInt, &[index.into()]);
        let number = self.b.select(is_less, Atom::Real(-1.0), here);
        let last = self.b.scalar(Prim::Maximum, &[so_far.into(), number]);
        let body = self.b.pop(vec![last]);
        let last = self.b.for_loop(index, l.count, vec![(so_far, Atom::Real(-1.0))], body)[0];
        self.b.scalar(Prim::Truncate, &[last])
    }
}
