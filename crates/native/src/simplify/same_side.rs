//! Branches on one condition: what a side of the first has computed is there for the same side of a later one. So the way back through a branch does not compute
//! what the way there did, nor do several ways back compute it several times. When all derivatives have been taken.

use super::forward::Key;
use crate::flow::walk::Renaming;
use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use rustc_hash::{FxHashMap, FxHashSet};

/// Says whether there was anything to share.
pub fn run(block: &mut Block) -> bool {
    with_stack(|| {
        let mut changed = super::inside(block, run);
        let mut branches: FxHashMap<Var, Vec<usize>> = FxHashMap::default();
        for (at, stmt) in block.stmts.iter().enumerate() {
            if let Op::If { cond: Atom::Var(cond), .. } = &stmt.op {
                branches.entry(*cond).or_default().push(at);
            }
        }
        let mut groups: Vec<Vec<usize>> = branches.into_values().filter(|places| places.len() > 1).collect();
        groups.sort_unstable();
        let mut replaced = Renaming::default();
        for places in groups {
            changed |= share(block, &places, &mut replaced);
        }
        if !replaced.map.is_empty() {
            replace(block, &replaced);
        }
        changed
    })
}

/// One side of some branches on the same condition, as far as it was looked at.
#[derive(Default)]
struct Side {
    /// Where each computation was first made: the branch, and what it is called there.
    known: FxHashMap<Key, (usize, Var)>,
    /// What computations that were made before are called there.
    first: Renaming,
    /// In which branch each variable is bound, if in one of these.
    bound: FxHashMap<Var, usize>,
    /// Computations that need not be made again.
    again: FxHashSet<Var>,
    /// Whether one of them takes long.
    is_dear: bool,
}

impl Side {
    fn look(&mut self, at: usize, side: &Block) {
        for stmt in &side.stmts {
            let [bind] = stmt.binds[..] else { continue };
            let Some(key) = self.key(&stmt.op).filter(|_| !bind.ty.is_counted()) else { continue };
            match self.known.get(&key) {
                Some((branch, first)) if *branch < at => {
                    self.first.map.insert(bind, (*first).into());
                    self.again.insert(bind);
                    self.is_dear |= is_dear(&stmt.op);
                }
                Some((_, first)) => {
                    self.first.map.insert(bind, (*first).into());
                }
                None => {
                    self.known.insert(key, (at, bind));
                    self.bound.insert(bind, at);
                }
            }
        }
    }

    fn key(&self, op: &Op) -> Option<Key> {
        let atoms = |atoms: &[Atom]| atoms.iter().map(|a| self.first.atom(*a)).collect::<Vec<_>>();
        match op {
            Op::Scalar { prim, args } => Some(Key::scalar(*prim, atoms(args))),
            Op::Get { array, index } => Some(Key::Get(*array, atoms(index))),
            _ => None,
        }
    }
}

pub(super) fn is_dear(op: &Op) -> bool {
    use Prim::*;
    match op {
        Op::Scalar { prim, args } => {
            let cheap = matches!(prim, AddReal | SubReal | MulReal | NegReal | Abs | Maximum | Minimum);
            args.iter().all(|a| a.ty() == Type::REAL)
                && !cheap
                && !matches!(prim, Equal | NotEqual | Less | LessEqual | Greater | GreaterEqual)
        }
        _ => false,
    }
}

/// Shares what branches on the same condition have in common.
fn share(block: &mut Block, places: &[usize], replaced: &mut Renaming) -> bool {
    let mut sides = [Side::default(), Side::default()];
    let mut given: FxHashMap<[Atom; 2], Var> = FxHashMap::default();
    let mut same = Vec::new();
    for at in places {
        let Stmt { binds, op: Op::If { then, otherwise, .. }, .. } = &block.stmts[*at] else { return false };
        for (side, known) in [then, otherwise].into_iter().zip(&mut sides) {
            known.look(*at, side);
        }
        for (i, bind) in binds.iter().enumerate().filter(|(_, bind)| !bind.ty.is_counted()) {
            let results = [sides[0].first.atom(then.results[i]), sides[1].first.atom(otherwise.results[i])];
            match given.get(&results) {
                Some(before) => same.push((*bind, *before)),
                None => {
                    given.insert(results, *bind);
                }
            }
        }
    }
    if !sides.iter().any(|side| side.is_dear) {
        return false;
    }
    replaced.map.extend(same.into_iter().map(|(bind, before)| (bind, Atom::from(before))));
    // For each branch what it gives besides: of which side, and what that is called outside.
    let mut more: FxHashMap<usize, Vec<(usize, Var, Var)>> = FxHashMap::default();
    for (which, side) in sides.iter().enumerate() {
        let mut outside: FxHashMap<Var, Var> = FxHashMap::default();
        for at in &places[1..] {
            let Some(inner) = block.stmts[*at].op.blocks_mut().nth(which) else { continue };
            inner.stmts.retain(|stmt| !stmt.binds.iter().any(|v| side.again.contains(v)));
            let mut give = |atom: &mut Atom| {
                let Atom::Var(first) = side.first.atom(*atom) else { return };
                let Some(branch) = side.bound.get(&first) else { return };
                *atom = first.into();
                if branch < at {
                    let var = *outside.entry(first).or_insert_with(|| {
                        let var = first.refresh();
                        more.entry(*branch).or_default().push((which, first, var));
                        var
                    });
                    *atom = var.into();
                }
            };
            each_operand(inner, &mut give);
        }
    }
    for (at, values) in more {
        let Stmt { binds, op, .. } = &mut block.stmts[at];
        for (which, value, outside) in values {
            binds.push(outside);
            for (side, inner) in op.blocks_mut().enumerate() {
                inner.results.push(if side == which { value.into() } else { nothing(value.ty) });
            }
        }
    }
    true
}

/// What nobody looks at.
fn nothing(ty: Type) -> Atom {
    match ty.scalar {
        Scalar::Int => Atom::Int(0),
        Scalar::Bool => Atom::Bool(false),
        Scalar::Real => Atom::Real(0.0),
        Scalar::Box(shape) => Atom::Nil(shape),
    }
}

fn each_operand(block: &mut Block, f: &mut dyn FnMut(&mut Atom)) {
    with_stack(|| {
        for stmt in &mut block.stmts {
            stmt.op.for_each_operand_mut(f);
            stmt.op.blocks_mut().for_each(|inner| each_operand(inner, f));
        }
        block.results.iter_mut().for_each(f);
    })
}

fn replace(block: &mut Block, replaced: &Renaming) {
    each_operand(block, &mut |atom| *atom = replaced.atom(*atom));
}
