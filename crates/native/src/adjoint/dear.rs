//! Numbers in the loops that a loop with state runs in each of its steps, as those over the units of a network: what the way back needs of them and would take
//! long to compute again is kept, in an array with an axis for the steps and one for each of these loops.

use super::kept::Kept;
use super::*;
use crate::flow::scalar::is_cheap;
use crate::partials::is_from_value;
use gradus_core::traverse::with_stack;

/// What takes this many statements to compute again is kept; an elementary function counts as many.
const DEAR: usize = 32;

impl Sweep<'_> {
    /// Makes a loop with state keep such numbers; `binds` gets the arrays of them.
    pub(super) fn keep_inside(&mut self, l: &mut For, binds: &mut Vec<Var>) {
        let mut inside: FxHashSet<Var> = l.carried.iter().map(|(v, _)| *v).chain([l.index]).collect();
        walk::for_each_binder(&l.body, &mut |v| {
            inside.insert(v);
        });
        let mut rows = Vec::new();
        self.keep_rows(&mut l.body, &[l.index.into()], &inside, &mut rows);
        for (row, dear) in rows {
            l.body.results.push(row.into());
            let all = Var::fresh(row.name, row.ty.in_array());
            binds.push(all);
            if let Some(kept) = self.kept.get_mut(&dear) {
                kept.all = all.into();
            }
        }
    }

    /// Makes the loops of a block collect the dear numbers; `rows` gets the arrays, each with the number that it is of.
    fn keep_rows(&mut self, block: &mut Block, around: &[Atom], inside: &FxHashSet<Var>, rows: &mut Vec<(Var, Var)>) {
        for at in 0..block.stmts.len() {
            let wanted = self.may_have_adjoint(&block.stmts[at]);
            let Stmt { op: Op::For(l), binds, .. } = &mut block.stmts[at] else { continue };
            let is_steady = l.count.var().is_none_or(|v| !inside.contains(&v));
            if !wanted || !is_steady || !l.carried.is_empty() || around.len() >= Type::MAX_RANK as usize {
                continue;
            }
            let index = [around, &[l.index.into()]].concat();
            let mut found = Vec::new();
            with_stack(|| self.keep_rows(&mut l.body, &index, inside, &mut found));
            for dear in self.dear_numbers(&l.body) {
                self.kept.insert(dear, Kept { cond: Atom::Bool(true), all: Atom::Int(0), index: index.clone() });
                found.push((dear, dear));
            }
            if !found.is_empty() {
                l.count = self.as_length(l.count);
            }
            for (each, dear) in found {
                l.body.results.push(each.into());
                let name = if each == dear { each.name.with("_saved") } else { each.name };
                binds.push(Var::fresh(name, each.ty.in_array()));
                rows.push((binds[binds.len() - 1], dear));
            }
        }
    }

    /// The numbers of a block that are to be kept, given that those before them are.
    fn dear_numbers(&self, block: &Block) -> Vec<Var> {
        let needed = self.values_needed(block);
        let mut cost: FxHashMap<Var, usize> = FxHashMap::default();
        let mut dear = Vec::new();
        for stmt in &block.stmts {
            let (Op::Scalar { .. } | Op::Select { .. } | Op::If { .. } | Op::Get { .. }, [y]) =
                (&stmt.op, &stmt.binds[..])
            else {
                continue;
            };
            let mut total = match &stmt.op {
                _ if self.is_kept(stmt) => 0,
                Op::Scalar { prim, .. } if !is_cheap(*prim) => DEAR,
                _ => 1,
            };
            if total > 0 {
                let mut add = |v: Var| total += cost.get(&v).copied().unwrap_or(0);
                stmt.op.for_each_operand(&mut |a| a.var().into_iter().for_each(&mut add));
                stmt.op.blocks().flat_map(free_vars).for_each(&mut add);
            }
            if total >= DEAR && y.ty == Type::REAL && needed.contains(y) {
                dear.push(*y);
                total = 1;
            }
            cost.insert(*y, total.min(DEAR));
        }
        dear
    }

    /// The reals of a block that the way back through it uses: what active arithmetic that is not linear takes, or gives if its slope comes from that, and what
    /// decides where it goes.
    fn values_needed(&self, block: &Block) -> FxHashSet<Var> {
        let mut needed: FxHashSet<Var> = FxHashSet::default();
        for stmt in block.stmts.iter().rev() {
            let is_active = |a: &Atom| self.is_active(*a);
            match &stmt.op {
                Op::Scalar { prim: Prim::AddReal | Prim::SubReal | Prim::NegReal, .. } => {}
                Op::Scalar { prim: Prim::MulReal, args } => {
                    let others = [(args[0], args[1]), (args[1], args[0])];
                    needed.extend(others.iter().filter(|(_, other)| is_active(other)).filter_map(|(a, _)| a.var()));
                }
                Op::Scalar { prim, args } if !is_cheap(*prim) && is_from_value(*prim) && args.iter().any(is_active) => {
                    needed.extend(&stmt.binds);
                }
                // What comes of it is not a number.
                Op::Scalar { args, .. } if stmt.binds.iter().any(|v| v.ty != Type::REAL && needed.contains(v)) => {
                    needed.extend(args.iter().filter_map(|a| a.var()));
                }
                Op::Scalar { args, .. } if args.iter().any(is_active) && stmt.binds.iter().all(|v| v.ty == Type::REAL) => {
                    needed.extend(args.iter().filter_map(|a| a.var()).chain(stmt.binds.iter().copied()));
                }
                Op::Select { cond, .. } | Op::If { cond, .. } => needed.extend(cond.var()),
                _ => {}
            }
            stmt.op.blocks().for_each(|inner| needed.extend(free_vars(inner)));
        }
        needed
    }
}
