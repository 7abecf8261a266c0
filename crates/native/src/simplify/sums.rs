//! Sums: state that is only ever added to becomes an accumulator, and additions to one place become one.

use crate::flow::walk::count_uses;
use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use rustc_hash::FxHashMap;

/// `for .. with c = init { .. next = add c e; yield next }` becomes `open init; for .. { .. add e }; freeze`, and the same for
/// an inner sum that starts from the state, for an array whose elements are only added to, and where branches add or do not.
pub fn from_state(block: &mut Block) {
    with_stack(|| {
        let mut out = Vec::with_capacity(block.stmts.len());
        for mut stmt in std::mem::take(&mut block.stmts) {
            stmt.op.blocks_mut().for_each(from_state);
            let (mut before, mut after) = (Vec::new(), Vec::new());
            if let Op::For(l) = &mut stmt.op {
                let mut i = 0;
                let mut known = None;
                while i < l.carried.len() {
                    let (var, init) = l.carried[i];
                    let acc = Var::fresh(var.name, var.ty.accumulator());
                    if var.ty.is_real() && rewrite(&mut l.body, var, i, acc, &mut known) {
                        let bind = stmt.binds.remove(i);
                        l.carried.remove(i);
                        l.body.results.remove(i);
                        before.push(Stmt { binds: vec![acc], op: Op::Open { init }, span: stmt.span });
                        after.push(Stmt { binds: vec![bind], op: Op::Freeze { acc }, span: stmt.span });
                    } else {
                        i += 1;
                    }
                }
            }
            out.extend(before);
            out.push(stmt);
            out.extend(after);
        }
        block.stmts = out;
    })
}

/// Rewrites a block whose result number `i` is `c` with something added; says whether it is.
/// `known`: of the block, if it was not changed since.
fn rewrite(body: &mut Block, c: Var, i: usize, acc: Var, known: &mut Option<Variables>) -> bool {
    let variables = known.get_or_insert_with(|| Variables::of(body));
    let next = body.results.get(i).and_then(|a| a.var());
    let rewritten = next.is_some_and(|next| {
        add_to(body, c, next, acc, variables) || add_to_several(body, (c, i), next, acc, variables)
    });
    if rewritten {
        *known = None;
    }
    rewritten
}

/// How often the variables of a block are used in it, and by which of its statements they are bound.
struct Variables {
    uses: FxHashMap<Var, usize>,
    bound: FxHashMap<Var, usize>,
}

impl Variables {
    fn of(block: &Block) -> Variables {
        let places = block.stmts.iter().enumerate();
        let bound = places.flat_map(|(at, stmt)| stmt.binds.iter().map(move |v| (*v, at))).collect();
        Variables { uses: count_uses(block), bound }
    }
}

/// Rewrites a block that makes `next` of `c` by adding to it, and does nothing else with either; says whether it does.
fn add_to(body: &mut Block, c: Var, next: Var, acc: Var, variables: &Variables) -> bool {
    let used = |v: Var| variables.uses.get(&v).copied().unwrap_or(0);
    let single = |v: Var| used(v) == 1;
    if !single(next) {
        return false;
    }
    let find = |v: Var| variables.bound.get(&v).copied();
    let Some(at) = find(next) else { return false };
    let span = body.stmts[at].span;
    let add = |value: Atom| Stmt { binds: Vec::new(), op: Op::Add { acc, index: Vec::new(), value }, span };
    match &body.stmts[at].op {
        // next = c + e, or the sum of e and what is made of c in the same way
        Op::Scalar { prim: Prim::AddReal, args } => {
            let [a, b] = args[..] else { return false };
            let is_made = |body: &mut Block, sum: Atom| match sum {
                Atom::Var(v) if v == c => single(c),
                Atom::Var(v) => with_stack(|| add_to(body, c, v, acc, variables)),
                _ => false,
            };
            let value = match (is_made(body, a), b) {
                (true, b) => b,
                (false, b) if is_made(body, b) => a,
                _ => return false,
            };
            body.stmts.iter_mut().filter(|s| s.binds.contains(&next)).for_each(|s| *s = add(value));
            true
        }
        // next = c - e
        Op::Scalar { prim: Prim::SubReal, args } if args[0] == c.into() && single(c) => {
            let less = Var::fresh("t", Type::REAL);
            let op = Op::Scalar { prim: Prim::NegReal, args: vec![args[1]] };
            body.stmts.splice(at..=at, [Stmt { binds: vec![less], op, span }, add(less.into())]);
            true
        }
        // next = if .. then c else c + e
        Op::If { then, otherwise, .. } => {
            let inside = |side: &Block| count_uses(side).get(&c).copied().unwrap_or(0);
            let Some(number) = body.stmts[at].binds.iter().position(|v| *v == next) else { return false };
            if used(c) != inside(then) + inside(otherwise) {
                return false;
            }
            let mut sides = [then.clone(), otherwise.clone()];
            let is_added_to = |side: &mut Block| match side.results[number] == c.into() {
                true => inside(side) == 1,
                false => with_stack(|| rewrite(side, c, number, acc, &mut None)),
            };
            if !sides.iter_mut().all(|side| is_added_to(side)) {
                return false;
            }
            sides.iter_mut().for_each(|side| {
                side.results.remove(number);
            });
            let stmt = &mut body.stmts[at];
            stmt.binds.remove(number);
            if let Op::If { then, otherwise, .. } = &mut stmt.op {
                [*then, *otherwise] = sides;
            }
            true
        }
        // The same of numbers: what is not added is a zero, of the sign that no sum notices.
        Op::Select { cond, then, otherwise } if next.ty == Type::REAL && used(c) == 2 => {
            let added = |side: Atom| {
                if side == c.into() {
                    return Some((None, Atom::Real(-0.0)));
                }
                let made = find(side.var().filter(|v| single(*v))?)?;
                let Op::Scalar { prim: Prim::AddReal, args } = &body.stmts[made].op else { return None };
                match args[..] {
                    [Atom::Var(v), e] | [e, Atom::Var(v)] if v == c => Some((Some(made), e)),
                    _ => None,
                }
            };
            let (Some((first, then)), Some((second, otherwise))) = (added(*then), added(*otherwise)) else {
                return false;
            };
            let chosen = Var::fresh("t", Type::REAL);
            let op = Op::Select { cond: *cond, then, otherwise };
            body.stmts.splice(at..=at, [Stmt { binds: vec![chosen], op, span }, add(chosen.into())]);
            let mut sums: Vec<usize> = first.into_iter().chain(second).collect();
            sums.sort_unstable();
            sums.into_iter().rev().for_each(|at| {
                body.stmts.remove(at);
            });
            true
        }
        // inner = open c; ...; next = freeze inner
        Op::Freeze { acc: inner } if single(c) => {
            let inner = *inner;
            let Some(opened) = find(inner) else { return false };
            if !matches!(&body.stmts[opened].op, Op::Open { init } if *init == Atom::Var(c)) {
                return false;
            }
            body.stmts.remove(at);
            body.stmts.remove(opened);
            rename_accumulator(body, inner, acc);
            true
        }
        // next = set c i (c.(i) + e), where this may be the sum of two rows
        Op::Set { array, index, value: Atom::Var(sum) } if *array == c && single(*sum) => {
            let (mut place, sum) = (index.clone(), *sum);
            // A row that was looked at by its elements is still there.
            let is_idle = |s: &Stmt| matches!(s.op, Op::Get { array, .. } if array == c) && used(s.binds[0]) == 0;
            let idle = body.stmts.iter().filter(|s| is_idle(s)).count();
            let is_sum = used(c) == 2 + idle && add_instead(body, sum, c, &mut place, acc, &single);
            if is_sum {
                body.stmts.retain(|s| !s.binds.contains(&next) && !is_idle(s));
            }
            is_sum
        }
        _ => false,
    }
}

/// The same where it adds to one place of an array after another: `next` is what comes of the last addition, which is put apart.
fn add_to_several(body: &mut Block, (c, i): (Var, usize), next: Var, acc: Var, variables: &Variables) -> bool {
    let single = |v: Var| variables.uses.get(&v) == Some(&1);
    let last = variables.bound.get(&next).map(|at| &body.stmts[*at].op);
    let Some(Op::Set { array, index, value: Atom::Var(sum) }) = last else { return false };
    let (array, mut place, sum) = (*array, index.clone(), *sum);
    let is_only_read_here = variables.uses.get(&array) == Some(&2);
    if array == c || !single(next) || !single(sum) || !is_only_read_here || !variables.bound.contains_key(&array) {
        return false;
    }
    let mut rest = body.clone();
    if !add_instead(&mut rest, sum, array, &mut place, acc, &single) {
        return false;
    }
    rest.stmts.retain(|stmt| !stmt.binds.contains(&next));
    rest.results[i] = array.into();
    let is_sum = with_stack(|| rewrite(&mut rest, c, i, acc, &mut None));
    if is_sum {
        *body = rest;
    }
    is_sum
}

/// Adds to a place of an accumulator what a block adds to the same place of `c`, where `sum` is that, or an array of such sums; says whether it is.
fn add_instead(
    block: &mut Block,
    sum: Var,
    c: Var,
    place: &mut Vec<Atom>,
    acc: Var,
    single: &dyn Fn(Var) -> bool,
) -> bool {
    let find = |v: Var| block.stmts.iter().position(|s| s.binds.contains(&v));
    let Some(at) = find(sum) else { return false };
    let reads_it = |atom: Atom| {
        let read_at = find(atom.var().filter(|v| single(*v))?)?;
        matches!(&block.stmts[read_at].op, Op::Get { array, index } if *array == c && index == place).then_some(read_at)
    };
    if let Op::Scalar { prim: Prim::SubReal, args } = &block.stmts[at].op {
        let (Some(read_at), less) = (reads_it(args[0]), args[1]) else { return false };
        let span = block.stmts[at].span;
        let value = Var::fresh("t", Type::REAL);
        let negative = Stmt { binds: vec![value], op: Op::Scalar { prim: Prim::NegReal, args: vec![less] }, span };
        let op = Op::Add { acc, index: place.clone(), value: value.into() };
        block.stmts.splice(at..=at, [negative, Stmt { binds: Vec::new(), op, span }]);
        block.stmts.remove(read_at);
        return true;
    }
    if let Op::Scalar { prim: Prim::AddReal, args } = &block.stmts[at].op {
        let [a, b] = args[..] else { return false };
        let (read_at, value) = match (reads_it(a), reads_it(b)) {
            (Some(read_at), _) => (read_at, b),
            (None, Some(read_at)) => (read_at, a),
            (None, None) => return false,
        };
        let stmt = &mut block.stmts[at];
        *stmt = Stmt { binds: Vec::new(), op: Op::Add { acc, index: place.clone(), value }, span: stmt.span };
        block.stmts.remove(read_at);
        return true;
    }
    let Stmt { binds, op: Op::For(l), .. } = &mut block.stmts[at] else { return false };
    let Some(number) = binds.iter().position(|v| *v == sum).filter(|_| l.carried.is_empty()) else { return false };
    let Some(element) = l.body.results[number].var().filter(|v| single(*v)) else { return false };
    place.push(l.index.into());
    let is_sum = add_instead(&mut l.body, element, c, place, acc, single);
    if is_sum {
        l.body.results.remove(number);
        binds.remove(number);
    }
    is_sum
}

pub(super) fn rename_accumulator(block: &mut Block, from: Var, to: Var) {
    with_stack(|| {
        for stmt in &mut block.stmts {
            match &mut stmt.op {
                Op::Add { acc, .. } if *acc == from => *acc = to,
                Op::Product(product) if product.acc == from => product.acc = to,
                Op::Call { args, .. } => {
                    args.iter_mut().filter(|a| **a == Atom::Var(from)).for_each(|a| *a = to.into());
                }
                _ => {}
            }
            stmt.op.blocks_mut().for_each(|b| rename_accumulator(b, from, to));
        }
    })
}

/// Two additions to the same place in one block are one.
pub fn to_one_place(block: &mut Block) {
    with_stack(|| {
        let mut places: FxHashMap<(Var, Vec<Atom>), usize> = FxHashMap::default();
        let mut out: Vec<Stmt> = Vec::with_capacity(block.stmts.len());
        for mut stmt in std::mem::take(&mut block.stmts) {
            stmt.op.blocks_mut().for_each(to_one_place);
            if let Op::Add { acc, index, value } = &mut stmt.op {
                if value.ty() == Type::REAL {
                    if let Some(before) = places.get(&(*acc, index.clone())) {
                        if let Op::Add { value: first, .. } = out[*before].op {
                            let sum = Var::fresh(acc.name, Type::REAL);
                            let args = vec![first, *value];
                            out[*before].op = Op::Check { cond: Atom::Bool(true), failure: Failure::Index };
                            let op = Op::Scalar { prim: Prim::AddReal, args };
                            out.push(Stmt { binds: vec![sum], op, span: stmt.span });
                            *value = sum.into();
                        }
                    }
                    places.insert((*acc, index.clone()), out.len());
                }
            }
            out.push(stmt);
        }
        block.stmts = out;
    })
}
