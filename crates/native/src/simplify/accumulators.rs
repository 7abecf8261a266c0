//! Accumulators of a few numbers are taken apart, and sums that are added to in straight lines and branches become arithmetic.

use super::small::{numbers, Parts, Small};
use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;

impl Small {
    /// Accumulators of such arrays whose additions all go to known places, and sums that are added to in one line.
    pub(super) fn accumulators(&mut self, block: &mut Block) {
        let mut at = 0;
        while at < block.stmts.len() {
            let stmt = &block.stmts[at];
            at += 1;
            let Op::Open { init } = &stmt.op else { continue };
            let (acc, init) = (stmt.binds[0], *init);
            // Nobody uses it any more after it was frozen.
            let frozen = |s: &Stmt| matches!(&s.op, Op::Freeze { acc: frozen } if *frozen == acc);
            let Some(distance) = block.stmts[at..].iter().position(frozen) else { continue };
            let end = at + distance + 1;
            let mut uses = Uses::default();
            uses.find(acc, &block.stmts[at..end], 0, false);
            if uses.other {
                continue;
            }
            // Boxes, which only a function can add, as long as there is nothing to add.
            let line = match init {
                Atom::Nil(_) => one_addition(&block.stmts[at..end], acc),
                _ => acc.ty.is_real(),
            };
            if acc.ty.rank == 0 && line && !uses.in_loops {
                let mut end = end;
                if uses.nested {
                    let mut between: Vec<Stmt> = block.stmts.drain(at..end).collect();
                    out_of_branches(&mut between, acc);
                    end = at + between.len();
                    block.stmts.splice(at..at, between);
                }
                in_one_line(&mut block.stmts[at - 1..end], acc, init);
                self.changed = true;
            } else if let (1, true, Some(Parts::Items(items))) = (acc.ty.rank, acc.ty.is_real(), self.of(init).cloned())
            {
                if uses.fixed {
                    self.take_apart(block, at - 1, acc, items);
                }
            }
        }
    }

    fn take_apart(&mut self, block: &mut Block, at: usize, acc: Var, items: Vec<Atom>) {
        let span = block.stmts[at].span;
        let accs: Vec<Var> = items.iter().map(|_| Var::fresh(acc.name, acc.ty.at(1))).collect();
        redirect(block, acc, &accs, &mut |array| match self.parts.get(&array) {
            Some(Parts::Items(items)) => Some(items.clone()),
            Some(Parts::Dummy) | None => None,
        });
        let open = |(acc, init): (&Var, &Atom)| Stmt { binds: vec![*acc], op: Op::Open { init: *init }, span };
        let opens: Vec<Stmt> = accs.iter().zip(&items).map(open).collect();
        block.stmts.splice(at..at + 1, opens);
        self.changed = true;
        let frozen = |s: &Stmt| matches!(&s.op, Op::Freeze { acc: frozen } if *frozen == acc);
        if let Some(end) = block.stmts.iter().position(frozen) {
            let (array, span) = (block.stmts[end].binds[0], block.stmts[end].span);
            let totals = numbers(array, accs.len());
            let freeze = |(acc, total): (&Var, &Var)| Stmt { binds: vec![*total], op: Op::Freeze { acc: *acc }, span };
            let mut new: Vec<Stmt> = accs.iter().zip(&totals).map(freeze).collect();
            self.rejoin(array, &totals, span, &mut new);
            block.stmts.splice(end..end + 1, new);
        }
    }
}

/// How an accumulator is used after it was opened.
#[derive(Default)]
struct Uses {
    /// In a nested block.
    nested: bool,
    /// In the body of a loop.
    in_loops: bool,
    /// Every addition is to a place known now, or of the whole.
    fixed: bool,
    /// By something other than `add` and `freeze`.
    other: bool,
}

impl Uses {
    fn find(&mut self, acc: Var, stmts: &[Stmt], depth: usize, in_loop: bool) {
        if depth == 0 {
            self.fixed = true;
        }
        for stmt in stmts {
            match &stmt.op {
                Op::Add { acc: to, index, .. } if *to == acc => {
                    self.nested |= depth > 0;
                    self.in_loops |= in_loop;
                    self.fixed &= matches!(index[..], [] | [Atom::Int(_)]);
                }
                Op::Freeze { acc: frozen } if *frozen == acc => {}
                op => op.for_each_operand(&mut |a| self.other |= a == Atom::Var(acc)),
            }
            let in_loop = in_loop || matches!(stmt.op, Op::For(_) | Op::While(_));
            for (inner, _) in stmt.op.blocks() {
                with_stack(|| self.find(acc, &inner.stmts, depth + 1, in_loop));
            }
        }
    }
}

/// Whether at most one addition is made, whichever way the program goes.
fn one_addition(stmts: &[Stmt], acc: Var) -> bool {
    let mut found = 0;
    for stmt in stmts {
        let inner = stmt.op.blocks();
        match &stmt.op {
            Op::Add { acc: to, .. } if *to == acc => found += 1,
            _ if inner.iter().any(|(block, _)| walk::free_vars(block).contains(&acc)) => {
                found += 1;
                if !inner.iter().all(|(block, _)| with_stack(|| one_addition(&block.stmts, acc))) {
                    return false;
                }
            }
            _ => {}
        }
    }
    found <= 1
}

/// Nothing, as what an accumulator adds up.
fn nothing(acc: Var) -> Atom {
    acc.ty.shape().map_or(Atom::Real(0.0), Atom::Nil)
}

/// `open x; += y; += z; freeze` is `x + y + z`.
fn in_one_line(stmts: &mut [Stmt], acc: Var, init: Atom) {
    let mut total = init;
    for stmt in stmts {
        match &stmt.op {
            Op::Open { .. } if stmt.binds == [acc] => {
                // Stays as the name of the start, which nobody uses.
                *stmt = Stmt {
                    binds: vec![Var::fresh(acc.name, acc.ty.frozen())],
                    op: Op::Copy { value: init },
                    span: stmt.span,
                };
            }
            Op::Add { acc: to, value, .. } if *to == acc => {
                let sum = Var::fresh(acc.name, acc.ty.frozen());
                let op = match total {
                    Atom::Nil(_) => Op::Copy { value: *value },
                    _ => Op::Scalar { prim: Prim::AddReal, args: vec![total, *value] },
                };
                *stmt = Stmt { binds: vec![sum], op, span: stmt.span };
                total = sum.into();
            }
            Op::Freeze { acc: frozen } if *frozen == acc => {
                *stmt = Stmt { binds: stmt.binds.clone(), op: Op::Copy { value: total }, span: stmt.span };
            }
            _ => {}
        }
    }
}

/// What branches add to an accumulator they give as a result, which is added after them.
fn out_of_branches(stmts: &mut Vec<Stmt>, acc: Var) {
    let mut out = Vec::with_capacity(stmts.len());
    for mut stmt in std::mem::take(stmts) {
        let adds = match &stmt.op {
            Op::If { then, otherwise, .. } => [then, otherwise].iter().any(|b| walk::free_vars(b).contains(&acc)),
            _ => false,
        };
        let span = stmt.span;
        let mut total = None;
        if let (true, Op::If { then, otherwise, .. }) = (adds, &mut stmt.op) {
            for side in [then, otherwise] {
                with_stack(|| out_of_branches(&mut side.stmts, acc));
                let sum = taken_sum(side, acc);
                side.results.push(sum);
            }
            let sum = Var::fresh(acc.name, acc.ty.frozen());
            stmt.binds.push(sum);
            total = Some(sum);
        }
        out.push(stmt);
        if let Some(total) = total {
            let op = Op::Add { acc, index: Vec::new(), value: total.into() };
            out.push(Stmt { binds: Vec::new(), op, span });
        }
    }
    *stmts = out;
}

/// Takes the additions to an accumulator out of a block; gives their sum.
fn taken_sum(block: &mut Block, acc: Var) -> Atom {
    let mut total: Option<Atom> = None;
    let mut out = Vec::with_capacity(block.stmts.len());
    for stmt in std::mem::take(&mut block.stmts) {
        match stmt.op {
            Op::Add { acc: to, value, .. } if to == acc => {
                total = Some(match total {
                    None => value,
                    Some(before) => {
                        let sum = Var::fresh(acc.name, Type::REAL);
                        let op = Op::Scalar { prim: Prim::AddReal, args: vec![before, value] };
                        out.push(Stmt { binds: vec![sum], op, span: stmt.span });
                        sum.into()
                    }
                });
            }
            op => out.push(Stmt { op, ..stmt }),
        }
    }
    block.stmts = out;
    total.unwrap_or(nothing(acc))
}

/// Sends additions to elements of an accumulator to accumulators of their own.
fn redirect(block: &mut Block, acc: Var, accs: &[Var], parts: &mut dyn FnMut(Var) -> Option<Vec<Atom>>) {
    let mut out = Vec::with_capacity(block.stmts.len());
    for mut stmt in std::mem::take(&mut block.stmts) {
        let span = stmt.span;
        match &mut stmt.op {
            Op::Add { acc: to, index, value } if *to == acc => match (&index[..], value.var()) {
                ([Atom::Int(k)], _) => {
                    // Out of bounds only where the program never comes.
                    if let Some(own) = usize::try_from(*k).ok().and_then(|k| accs.get(k)) {
                        let op = Op::Add { acc: *own, index: Vec::new(), value: *value };
                        out.push(Stmt { binds: Vec::new(), op, span });
                    }
                }
                (_, Some(array)) => {
                    let known = parts(array);
                    for (k, own) in accs.iter().enumerate() {
                        let item = match known.as_ref().and_then(|items| items.get(k)) {
                            Some(item) => *item,
                            None => {
                                let item = Var::fresh("e", array.ty.at(1));
                                let op = Op::Get { array, index: vec![Atom::Int(k as i64)] };
                                out.push(Stmt { binds: vec![item], op, span });
                                item.into()
                            }
                        };
                        let op = Op::Add { acc: *own, index: Vec::new(), value: item };
                        out.push(Stmt { binds: Vec::new(), op, span });
                    }
                }
                (_, None) => {}
            },
            _ => {
                for inner in stmt.op.blocks_mut() {
                    with_stack(|| redirect(inner, acc, accs, parts));
                }
                out.push(stmt);
            }
        }
    }
    block.stmts = out;
}
