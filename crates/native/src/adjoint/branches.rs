//! Branches in both sweeps.

use super::control::outer_accumulators;
use super::*;

/// What a branch of plain arithmetic gives besides its results: for each side, where its variables are found afterwards. The sides share the
/// places, since only one of them runs.
pub(super) struct Computed {
    then: FxHashMap<Var, Atom>,
    otherwise: FxHashMap<Var, Atom>,
}

/// Beyond this many values it is simpler to compute them again than to hold them.
const MOST_VALUES: usize = 24;

/// Whether both sides do nothing but compute a few numbers.
pub(super) fn is_arithmetic(then: &Block, otherwise: &Block) -> bool {
    let is_number = |stmt: &Stmt| match &stmt.op {
        Op::Scalar { .. } | Op::Copy { .. } | Op::Stop { .. } | Op::Select { .. } | Op::Dim { .. } | Op::Get { .. } => {
            stmt.binds.iter().all(|v| v.ty.rank == 0 && v.ty.shape().is_none())
        }
        Op::Check { .. } => true,
        Op::Set { .. }
        | Op::Extend { .. }
        | Op::Fill { .. }
        | Op::Literal { .. }
        | Op::Cell { .. }
        | Op::Tag { .. }
        | Op::Unpack { .. }
        | Op::Digits { .. }
        | Op::If { .. }
        | Op::For(_)
        | Op::While(_)
        | Op::Call { .. }
        | Op::Open { .. }
        | Op::Add { .. }
        | Op::Product(_)
        | Op::Freeze { .. }
        | Op::Hole { .. }
        | Op::Plug { .. }
        | Op::Push { .. }
        | Op::Pop { .. } => false,
    };
    [then, otherwise].iter().all(|side| side.stmts.len() <= MOST_VALUES && side.stmts.iter().all(is_number))
}

impl Sweep<'_> {
    /// Writes a branch so that it gives what it computes; what the backward sweep does not use will be found to be dead.
    pub(super) fn forward_arithmetic_if(
        &mut self,
        cond: Atom,
        then: &Block,
        otherwise: &Block,
        binds: &[Var],
    ) -> Record {
        let (mut then, mut otherwise, mut binds) = (then.clone(), otherwise.clone(), binds.to_vec());
        let mut computed = Computed { then: FxHashMap::default(), otherwise: FxHashMap::default() };
        for ty in [Type::REAL, Type::INT, Type::BOOL] {
            let numbers = |side: &Block| -> Vec<Var> {
                side.stmts.iter().flat_map(|s| s.binds.iter().copied()).filter(|v| v.ty == ty).collect()
            };
            let (ours, theirs) = (numbers(&then), numbers(&otherwise));
            for at in 0..ours.len().max(theirs.len()) {
                let name = ours.get(at).or(theirs.get(at)).map_or("t".into(), |v| v.name);
                let place = Var::fresh(name, ty);
                let sides =
                    [(&mut then, &ours, &mut computed.then), (&mut otherwise, &theirs, &mut computed.otherwise)];
                for (side, numbers, known) in sides {
                    side.results.push(numbers.get(at).map_or(Builder::zero(ty.scalar), |v| (*v).into()));
                    known.extend(numbers.get(at).map(|v| (*v, Atom::Var(place))));
                }
                binds.push(place);
            }
        }
        self.b.bind(binds, Op::branch(cond, then, otherwise, false));
        Record::Branch(computed)
    }

    pub(super) fn backward_arithmetic_if(&mut self, stmt: Stmt, computed: Computed) {
        let adjs: Vec<Option<Atom>> = stmt.binds.iter().map(|v| self.take(*v)).collect();
        let Op::If { cond, then, otherwise, .. } = stmt.op else { return };
        if adjs.iter().all(|a| a.is_none()) {
            return;
        }
        let free = [outer_vars(&then, &[]), outer_vars(&otherwise, &[])].concat();
        self.around(&free, |s| {
            let mut side = |block: Block, known: FxHashMap<Var, Atom>| {
                s.b.push();
                s.seed(&block.results, &adjs);
                s.backward(block.stmts.into_iter().map(|stmt| (stmt, Record::Plain)).collect());
                let backward = s.b.pop(Vec::new());
                Renaming { map: known }.block(&backward)
            };
            let (then, otherwise) = (side(*then, computed.then), side(*otherwise, computed.otherwise));
            s.branch_unless_empty(cond, then, otherwise);
        });
    }

    pub(super) fn backward_if(&mut self, stmt: Stmt) {
        let adjs: Vec<Option<Atom>> = stmt.binds.iter().map(|v| self.take(*v)).collect();
        if !self.is_wanted(&stmt, &adjs) {
            return;
        }
        self.settled.extend(outer_accumulators(&stmt.op));
        // A branch is known by the first variable that it binds.
        self.replayed.extend(stmt.binds.first());
        let Op::If { cond, then, otherwise, .. } = &stmt.op else { return };
        let free = [outer_vars(then, &[]), outer_vars(otherwise, &[])].concat();
        self.around(&free, |s| {
            let mut side = |block: &Block| {
                s.b.push();
                s.replay(block, Renaming::default(), &adjs);
                s.b.pop(Vec::new())
            };
            let (then, otherwise) = (side(then), side(otherwise));
            s.branch_unless_empty(*cond, then, otherwise);
        });
    }

    /// Whether this is a branch of which the forward sweep keeps nothing.
    pub(super) fn is_plain_branch(&self, op: &Op) -> bool {
        match op {
            Op::If { then, otherwise, .. } => !is_arithmetic(then, otherwise) && !self.has_traced_call(op),
            _ => false,
        }
    }

    /// The branch at the end of a block that is run again, in the names of the block: it was not run again itself. `own` are the variables of the block;
    /// what else the branch reads is read by the block, too, and has its accumulators.
    pub(super) fn backward_last_if(&mut self, stmt: &Stmt, own: &[Var], renaming: &mut Renaming) {
        let binds = stmt.binds.iter().filter_map(|v| renaming.atom((*v).into()).var());
        let adjs: Vec<Option<Atom>> = binds.map(|v| self.take(v)).collect();
        if !self.is_wanted(stmt, &adjs) {
            return;
        }
        let Op::If { cond, then, otherwise, .. } = &stmt.op else { return };
        let mut free = Vec::new();
        for var in own {
            let new = renaming.atom((*var).into()).var().filter(|new| self.active.contains(new));
            if [then, otherwise].iter().any(|side| new.is_some() && walk::mentions(side, *var)) {
                free.extend(new);
            }
        }
        let cond = renaming.atom(*cond);
        self.around(&free, |s| {
            let mut side = |block: &Block| {
                s.b.push();
                s.replay_as(block, &[], renaming, &adjs);
                s.b.pop(Vec::new())
            };
            let (then, otherwise) = (side(then), side(otherwise));
            s.branch_unless_empty(cond, then, otherwise);
        });
    }

    pub(super) fn branch_unless_empty(&mut self, cond: Atom, then: Block, otherwise: Block) {
        if !then.stmts.is_empty() || !otherwise.stmts.is_empty() {
            self.b.branch(cond, then, otherwise);
        }
    }
}
