//! Loops in parts: those that ask whether their index is below a bound are cut there, so that no iteration asks, and those that find digits of their index
//! (`i / 30`, `i mod 15`) have the iterations of one period written out, in which the digits are known. So an array that is put together from others, or filled
//! from rows of a few numbers, costs little more than to write it.

use super::emit::Emitter;
use super::loops::Collected;
use crate::checks::BITS_OF_LENGTH;
use crate::flow::walk::Renaming;
use crate::flow::*;
use crate::simplify;
use crate::spread::width;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use gradus_source::Span;
use rustc_hash::FxHashMap;

/// Statements of a loop that may stand twice in the program.
const TWICE: usize = 64;
/// Iterations that are written out.
const LONGEST: i64 = 64;
/// Statements that are written out, before they are simplified.
const MOST: usize = 1024;

/// A loop cut at a bound.
pub(super) struct Cut {
    pub(super) below: For,
    pub(super) above: For,
    bound: Atom,
    /// Whether the bound itself is below.
    inclusive: bool,
}

/// Whether a loop computes and collects numbers, without loops inside, so that it may be written more than once.
fn is_plain(l: &For) -> bool {
    let mut plain = l.carried.is_empty() && l.body.results.iter().all(|result| !result.ty().is_counted());
    walk::for_each_stmt(&l.body, &mut |stmt| {
        let computes = matches!(stmt.op, Op::Scalar { .. } | Op::Select { .. } | Op::Dim { .. } | Op::Get { .. });
        plain &= computes || matches!(stmt.op, Op::If { .. } | Op::Check { .. } | Op::Add { .. });
        plain &= stmt.binds.iter().all(|v| !v.ty.is_counted());
    });
    plain
}

fn size(block: &Block) -> usize {
    let mut count = 0;
    walk::for_each_stmt(block, &mut |_| count += 1);
    count
}

/// Cuts a loop where it first asks whether its index is below a bound from outside.
pub(super) fn cut(l: &For, module: &Module) -> Option<Cut> {
    if !is_plain(l) || size(&l.body) > TWICE {
        return None;
    }
    let made = |v: Var| l.body.stmts.iter().find(|stmt| stmt.binds.contains(&v));
    let is_outside = |a: Atom| a != l.index.into() && a.var().is_none_or(|v| made(v).is_none());
    l.body.stmts.iter().find_map(|stmt| {
        let Op::If { cond: Atom::Var(cond), .. } = &stmt.op else { return None };
        let asked = made(*cond)?;
        let Op::Scalar { prim, args } = &asked.op else { return None };
        let (prim, bound) = match args[..] {
            [Atom::Var(i), bound] if i == l.index => (*prim, bound),
            [bound, Atom::Var(i)] if i == l.index => (scalar::mirrored(*prim)?, bound),
            _ => return None,
        };
        let (below, inclusive) = match prim {
            Prim::Less => (true, false),
            Prim::LessEqual => (true, true),
            Prim::GreaterEqual => (false, false),
            Prim::Greater => (false, true),
            _ => return None,
        };
        if !is_outside(bound) {
            return None;
        }
        let part = |answer| knowing(l, asked, answer, module);
        Some(Cut { below: part(below)?, above: part(!below)?, bound, inclusive })
    })
}

/// The loop for the iterations in which a comparison that it makes has this outcome.
fn knowing(l: &For, asked: &Stmt, outcome: bool, module: &Module) -> Option<For> {
    let mut renamed = Renaming::default();
    let mut part = For { index: renamed.renew(l.index), body: Block::default(), ..l.clone() };
    let asked = renamed.stmt(asked);
    let (mut cond, mut first) = (asked.binds[0], vec![asked.clone()]);
    if !outcome {
        let other = cond.refresh();
        first.push(Stmt { binds: vec![other], op: Op::Scalar { prim: Prim::Not, args: vec![cond.into()] }, ..asked });
        cond = other;
    }
    // What a check finds out is known behind it.
    let check = Op::Check { cond: cond.into(), failure: Failure::Index };
    first.push(Stmt { binds: Vec::new(), op: check, ..asked });
    let rest = renamed.block(&l.body);
    part.body = Block { stmts: [first, rest.stmts].concat(), results: rest.results };
    simplify::between(&mut part, 0, 0, false);
    part.body.stmts.retain(|stmt| !matches!(&stmt.op, Op::Check { cond: known, .. } if *known == cond.into()));
    simplify::dead_code(&mut part.body, module);
    // Who knows the answer for all iterations needs no parts.
    let is_decided = |stmt: &Stmt| matches!(stmt.op, Op::Check { cond: Atom::Bool(_), .. });
    (!part.body.stmts.iter().any(is_decided)).then_some(part)
}

/// A loop in periods of its digits.
pub(super) struct Periods {
    /// How many iterations a period has.
    length: i64,
    /// A loop over periods that collects what all iterations of one do.
    whole: For,
    /// Of each array how much that is.
    rows: Vec<Option<Vec<usize>>>,
}

/// Writes one period out of a loop that finds digits of its index; `rows`: what it collects.
pub(super) fn periods(l: &For, rows: &[Option<Vec<usize>>], module: &Module) -> Option<Periods> {
    if l.body.results.is_empty() || !is_plain(l) || rows.iter().any(|row| row.is_none()) {
        return None;
    }
    let mut digits = Digits { units: [(l.index, 1)].into_iter().collect(), length: 1 };
    digits.find(&l.body)?;
    let length = digits.length;
    let is_over = matches!(l.count, Atom::Int(n) if n < length);
    if !(2..=LONGEST).contains(&length) || is_over || size(&l.body) * length as usize > MOST {
        return None;
    }
    let (number, count) = (Var::fresh(l.index.name, Type::INT), Var::fresh("periods", Type::INT));
    let mut b = Builder::new();
    let first = b.scalar(Prim::MulInt, &[number.into(), Atom::Int(length)]);
    let mut results = Vec::new();
    for k in 0..length {
        let index = b.scalar(Prim::AddInt, &[first, Atom::Int(k)]);
        let mut one = l.body.clone();
        digits.write(&mut one, number, k);
        let one = Renaming { map: [(l.index, index)].into_iter().collect() }.block(&one);
        b.stmts(one.stmts);
        results.push(one.results);
    }
    let mut of_arrays = Vec::new();
    let mut at = 0;
    for row in rows {
        let end = at + width(row);
        of_arrays.extend(results.iter().flat_map(|one| &one[at..end]).copied());
        at = end;
    }
    let body = b.pop(of_arrays);
    let mut whole = For { index: number, count: count.into(), carried: Vec::new(), body, replayed: l.replayed };
    simplify::between(&mut whole, 0, 0, false);
    simplify::dead_code(&mut whole.body, module);
    let rows = rows.iter().map(|row| Some(vec![length as usize * width(row)])).collect();
    Some(Periods { length, whole, rows })
}

/// The digits of an index that a loop finds.
struct Digits {
    /// The variables that are the index divided by a constant.
    units: FxHashMap<Var, i64>,
    /// After how many iterations all digits are as before.
    length: i64,
}

impl Digits {
    /// Of `x / by` or `x mod by`: the unit of x, and `by`.
    fn of(&self, stmt: &Stmt) -> Option<(i64, i64)> {
        match &stmt.op {
            Op::Scalar { prim: Prim::DivInt | Prim::ModInt, args } => match args[..] {
                [Atom::Var(x), Atom::Int(by)] if by > 0 => Some((*self.units.get(&x)?, by)),
                _ => None,
            },
            _ => None,
        }
    }

    fn find(&mut self, block: &Block) -> Option<()> {
        with_stack(|| {
            for stmt in &block.stmts {
                stmt.op.blocks().try_for_each(|inner| self.find(inner))?;
                let Some((unit, by)) = self.of(stmt) else { continue };
                let next = unit.checked_mul(by).filter(|next| *next <= LONGEST)?;
                self.length = common_multiple(self.length, next);
                if self.length > LONGEST {
                    return None;
                }
                if matches!(stmt.op, Op::Scalar { prim: Prim::DivInt, .. }) {
                    self.units.insert(stmt.binds[0], next);
                }
            }
            Some(())
        })
    }

    /// Writes down what the digits are in iteration `k` of a period.
    fn write(&self, block: &mut Block, period: Var, k: i64) {
        with_stack(|| {
            let mut out = Vec::with_capacity(block.stmts.len());
            for mut stmt in std::mem::take(&mut block.stmts) {
                stmt.op.blocks_mut().for_each(|inner| self.write(inner, period, k));
                let Some((unit, by)) = self.of(&stmt) else {
                    out.push(stmt);
                    continue;
                };
                if matches!(stmt.op, Op::Scalar { prim: Prim::ModInt, .. }) {
                    stmt.op = Op::Copy { value: Atom::Int(k / unit % by) };
                } else {
                    let before = Var::fresh(stmt.binds[0].name, Type::INT);
                    let args = vec![period.into(), Atom::Int(self.length / (unit * by))];
                    out.push(Stmt {
                        binds: vec![before],
                        op: Op::Scalar { prim: Prim::MulInt, args },
                        span: stmt.span,
                    });
                    stmt.op = Op::Scalar { prim: Prim::AddInt, args: vec![before.into(), Atom::Int(k / (unit * by))] };
                }
                out.push(stmt);
            }
            block.stmts = out;
        })
    }
}

fn common_multiple(a: i64, b: i64) -> i64 {
    let (mut divisor, mut rest) = (a, b);
    while rest != 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    a / divisor * b
}

impl Emitter<'_> {
    /// A loop cut at a bound, which may lie on either side of its iterations.
    pub(super) fn cut_loop(
        &mut self,
        cut: &Cut,
        state: &[String],
        into: &Collected<'_>,
        [from, to]: [&str; 2],
        span: Span,
    ) {
        let (bound, end) = (self.atom(cut.bound), format!("{}_bound", self.name(cut.below.index)));
        let behind = if cut.inclusive { format!("{bound} + 1") } else { bound.clone() };
        self.line(&format!("int64_t {end} = {bound} < {from} ? {from} : {bound} < {to} ? {behind} : {to};"));
        self.iterations(&cut.below, state, into, [from, &end], span);
        self.iterations(&cut.above, state, into, [&end, to], span);
    }

    /// A loop in periods; what is before the first whole one and after the last is done one by one.
    pub(super) fn in_periods(
        &mut self,
        l: &For,
        periods: &Periods,
        into: &Collected<'_>,
        [from, to]: [&str; 2],
        span: Span,
    ) {
        let (index, length, place) = (self.name(l.index), periods.length, self.place(span));
        let names = ["first", "past", "edge", "edge_end"].map(|word| format!("{index}_{word}"));
        let [first, past, edge, end] = &names;
        self.line(&format!("int64_t {first} = ({from} + {}) / {length} * {length};", length - 1));
        self.line(&format!("{first} = {first} < {to} ? {first} : {to};"));
        self.line(&format!("int64_t {past} = {to} - {to} % {length};"));
        self.line(&format!("{past} = {past} > {first} ? {past} : {first};"));
        self.line(&format!("for (int64_t {edge} = {from}, {end} = {first};; {edge} = {past}, {end} = {to}) {{"));
        self.depth += 1;
        self.one_by_one(l, &[], into, [edge, end], span);
        self.line(&format!("if ({end} == {to}) break;"));
        self.line(&format!("GR_STEPS({past} - {first}, {place});"));
        let whole = &periods.whole;
        let number = self.name(whole.index);
        self.bits.insert(whole.index, BITS_OF_LENGTH);
        self.line(&format!("for (int64_t {number} = {first} / {length}; {number} < {past} / {length}; {number}++) {{"));
        let targets = self.rows(into.arrays, &periods.rows, &number);
        self.loops_around += 1;
        self.nested(&whole.body, &[], &targets);
        self.loops_around -= 1;
        self.line("}");
        self.depth -= 1;
        self.line("}");
    }
}
