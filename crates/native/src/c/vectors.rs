//! Which loops run in vector lanes.

use super::cells::is_box;
use super::late::Late;
use crate::flow::*;
use crate::straight::{self, Guard};
use gradus_core::Prim;
use rustc_hash::FxHashSet;

/// Iterations between additions that had to wait.
pub(super) const STRIP: i64 = 256;

/// A loop whose iterations can run side by side in vector lanes.
pub(super) struct Vectors {
    /// The accumulators of one number that the loop adds to.
    pub(super) sums: Vec<Var>,
    /// The arrays that it adds to in places that may meet, in other iterations or by other statements: the additions wait in buffers.
    meeting: Vec<Var>,
}

/// What cannot run in vector lanes, such as divisions of integers, in a loop with elementary functions, which had better: it is computed before, for a strip of
/// iterations.
pub(super) struct Early {
    /// What it takes.
    pub(super) stmts: Vec<Stmt>,
    /// What is computed, and the arrays in which it waits for the others.
    pub(super) kept: Vec<(Var, Var)>,
    /// The iteration with which a strip begins.
    pub(super) start: Var,
    /// The loop without it.
    pub(super) rest: For,
}

/// More of them take more room than they save time.
const MOST_EARLY: usize = 8;

pub(super) fn early(l: &For) -> Option<Early> {
    let is_early = |stmt: &Stmt| matches!(&stmt.op, Op::Scalar { prim, args } if !lanes(*prim, args));
    let count = l.body.stmts.iter().filter(|stmt| is_early(stmt)).count();
    if !(1..=MOST_EARLY).contains(&count) || !has_functions(&l.body) {
        return None;
    }
    let (mut needed, mut stmts) = (FxHashSet::default(), Vec::new());
    for stmt in l.body.stmts.iter().rev() {
        if !is_early(stmt) && !stmt.binds.iter().any(|v| needed.contains(v)) {
            continue;
        }
        let is_plain = matches!(stmt.op, Op::Scalar { .. } | Op::Select { .. } | Op::Dim { .. } | Op::Get { .. });
        if !is_plain || has_function(stmt) || stmt.binds.iter().any(|v| v.ty.is_counted()) {
            return None;
        }
        stmt.op.for_each_operand(&mut |a| needed.extend(a.var()));
        stmts.push(stmt.clone());
    }
    stmts.reverse();
    let (start, place) = (Var::fresh("start", Type::INT), Var::fresh("place", Type::INT));
    let (mut kept, mut rest) = (Vec::new(), l.clone());
    for stmt in rest.body.stmts.iter_mut().filter(|stmt| is_early(stmt)) {
        let all = Var::fresh("early", stmt.binds[0].ty.in_array());
        kept.push((stmt.binds[0], all));
        stmt.op = Op::Get { array: all, index: vec![place.into()] };
    }
    let op = Op::Scalar { prim: Prim::SubInt, args: vec![l.index.into(), start.into()] };
    rest.body.stmts.insert(0, Stmt { binds: vec![place], op, span: Default::default() });
    vectors(&rest).map(|_| Early { stmts, kept, start, rest })
}

/// Whether the iterations can run in vector lanes, if need be with something computed before.
pub(super) fn in_lanes(l: &For) -> bool {
    vectors(l).is_some() || early(l).is_some()
}

/// Whether and how the iterations can run in vector lanes.
pub(super) fn vectors(l: &For) -> Option<Vectors> {
    if !l.carried.is_empty() {
        return None;
    }
    let mut found = Vectors { sums: Vec::new(), meeting: Vec::new() };
    let mut places: Vec<(Var, Vec<Place>)> = Vec::new();
    for stmt in &l.body.stmts {
        match &straight::guarded(stmt).map_or(stmt, |(_, only)| only).op {
            Op::Scalar { prim, args } if lanes(*prim, args) => {}
            Op::Select { .. } | Op::Dim { .. } => {}
            Op::Copy { value } | Op::Stop { value } if !value.ty().is_counted() => {}
            Op::Get { .. } if stmt.binds.iter().all(|v| !v.ty.is_counted()) => {}
            Op::Add { acc, index, .. } if index.len() == acc.ty.rank as usize && !is_box(acc.ty) => {
                if index.is_empty() {
                    if !found.sums.contains(acc) {
                        found.sums.push(*acc);
                    }
                } else {
                    let place: Vec<Place> = index.iter().map(|at| Place::of(l, *at)).collect();
                    let alone = places.iter().all(|(other, known)| other != acc || never_meet(known, &place));
                    if !goes_on(&place) || !alone {
                        found.meeting.push(*acc);
                    }
                    places.push((*acc, place));
                }
            }
            _ => return None,
        }
    }
    // A division finds places for which lanes would have to gather; elementary functions make up for that.
    let divides = |stmt: &Stmt| matches!(&stmt.op, Op::Scalar { prim: Prim::DivInt | Prim::ModInt, .. });
    if l.body.stmts.iter().any(divides) && !has_functions(&l.body) {
        return None;
    }
    let numbers = l.body.results.iter().all(|a| !a.ty().is_counted());
    let waiting = places.iter().filter(|(acc, _)| found.meeting.contains(acc));
    // Where each iteration has a place of its own, additions wait for nothing: they run in vector lanes, too.
    let wait = WAIT * waiting.filter(|(_, place)| !goes_on(place)).count();
    (numbers && (wait == 0 || work(&l.body) >= wait)).then_some(found)
}

/// Operations that make up for the wait of an addition.
const WAIT: usize = 6;

/// Whether each iteration has a place of its own.
fn goes_on(place: &[Place]) -> bool {
    place.iter().any(|at| matches!(at, Place::Moving { .. }))
}

/// Whether additions to two places of an array never meet, unless in the same iteration.
fn never_meet(a: &[Place], b: &[Place]) -> bool {
    let apart = |(a, b): (&Place, &Place)| match (a, b) {
        (Place::Moving { form: a, .. }, Place::Moving { form: b, .. }) => a == b || a.passes_by(b),
        (Place::Still(Atom::Int(a)), Place::Still(Atom::Int(b))) => a != b,
        _ => false,
    };
    a.iter().zip(b).any(apart) || a.iter().zip(b).all(|(a, b)| a.is(b))
}

fn work(block: &Block) -> usize {
    let cost = |stmt: &Stmt| match &stmt.op {
        Op::Scalar { prim, .. } if is_function(*prim) => 10,
        Op::Scalar { .. } => usize::from(stmt.binds.iter().all(|v| v.ty == Type::REAL)),
        _ => 0,
    };
    block.stmts.iter().map(cost).sum()
}

impl Vectors {
    /// The loop with what has to wait among its results, and the additions for afterwards.
    pub(super) fn kept(&self, l: &For) -> (For, Vec<Late>) {
        let mut kept = l.clone();
        let mut late = Vec::new();
        kept.body.stmts.retain(|stmt| {
            let (guard, only) = straight::guarded(stmt).map_or((None, stmt), |(guard, only)| (Some(guard), only));
            match &only.op {
                Op::Add { acc, index, value } if self.meeting.contains(acc) => {
                    late.push((stmt.span, guard, *acc, index.clone(), *value));
                    false
                }
                _ => true,
            }
        });
        let mut buffers: Vec<(Atom, String)> = Vec::new();
        let late = late.into_iter().map(|(span, guard, acc, index, value)| {
            let mut found = Late { kept: Vec::new(), own: Vec::new(), stmts: Vec::new(), apart: false, distance: None };
            if guard.is_none() {
                found.distance = distance(l, &index);
            }
            let mut keep = |atom: Atom, found: &mut Late| {
                let var = Var::fresh("late", atom.ty());
                let buffer = match buffers.iter().find(|(known, _)| *known == atom) {
                    Some((_, buffer)) => buffer.clone(),
                    None => {
                        let buffer = format!("buffer{}", buffers.len() + 1);
                        buffers.push((atom, buffer.clone()));
                        found.own.push((atom.ty(), buffer.clone()));
                        kept.body.results.push(atom);
                        buffer
                    }
                };
                found.kept.push((var, buffer));
                Atom::Var(var)
            };
            let index = index
                .into_iter()
                .map(|at| match Place::of(l, at) {
                    Place::Still(_) => at,
                    Place::Moving { made, .. } => {
                        found.apart = true;
                        for stmt in made {
                            if found.stmts.iter().all(|known| known.binds != stmt.binds) {
                                found.stmts.push(stmt.clone());
                            }
                        }
                        at
                    }
                    Place::Any(_) => keep(at, &mut found),
                })
                .collect();
            let value = keep(value, &mut found);
            let guard = guard.map(|guard| Guard { cond: keep(guard.cond, &mut found), ..guard });
            let add = Stmt { binds: Vec::new(), op: Op::Add { acc, index, value }, span };
            found.stmts.push(match guard {
                Some(guard) => guard.around(add),
                None => add,
            });
            found
        });
        let late = late.collect();
        (kept, late)
    }
}

/// See [`Late::distance`].
fn distance(l: &For, index: &[Atom]) -> Option<i64> {
    let (last, others) = index.split_last()?;
    if !others.iter().all(|at| matches!(Place::of(l, *at), Place::Still(_))) {
        return None;
    }
    match Place::of(l, *last) {
        Place::Moving { form: Form { step: 1, plus, outside }, .. } if outside.is_empty() => Some(plus),
        _ => None,
    }
}

/// How an index of a loop's body goes on from one iteration to the next.
enum Place<'a> {
    /// It is from outside.
    Still(Atom),
    /// By the same step each time.
    Moving {
        form: Form,
        /// The statements that compute it.
        made: Vec<&'a Stmt>,
    },
    Any(Atom),
}

impl<'a> Place<'a> {
    fn of(l: &'a For, at: Atom) -> Place<'a> {
        let mut made = Vec::new();
        match Form::of(l, at, &mut made) {
            Some(form) if form.step != 0 => Place::Moving { form, made },
            Some(_) if made.is_empty() => Place::Still(at),
            _ => Place::Any(at),
        }
    }

    /// Whether they are the same in each iteration.
    fn is(&self, other: &Place) -> bool {
        match (self, other) {
            (Place::Still(a) | Place::Any(a), Place::Still(b) | Place::Any(b)) => a == b,
            (Place::Moving { form: a, .. }, Place::Moving { form: b, .. }) => a == b,
            _ => false,
        }
    }
}

/// `step * index + plus + outside`
#[derive(PartialEq)]
struct Form {
    step: i64,
    plus: i64,
    /// How often each variable from outside.
    outside: Vec<(Var, i64)>,
}

/// Steps beyond this are taken for any number, so that places of an array differ as their forms do.
const FAR: i64 = 1 << 30;

/// Statements that may compute a place.
const COMPUTED: usize = 4;

impl Form {
    /// Of an integer, with the statements of the loop that it takes.
    fn of<'a>(l: &'a For, at: Atom, made: &mut Vec<&'a Stmt>) -> Option<Form> {
        let number = |plus: i64| Form { step: 0, plus, outside: Vec::new() };
        let var = match at {
            Atom::Int(n) => return Some(number(n)),
            Atom::Var(var) => var,
            _ => return None,
        };
        if var == l.index {
            return Some(Form { step: 1, ..number(0) });
        }
        let Some(stmt) = l.body.stmts.iter().find(|s| s.binds.contains(&var)) else {
            return Some(Form { outside: vec![(var, 1)], ..number(0) });
        };
        let Op::Scalar { prim, args } = &stmt.op else { return None };
        let [a, b] = args[..] else { return None };
        let mut operand = |x: Atom| Form::of(l, x, made);
        let form = match (prim, a, b) {
            (Prim::AddInt, _, _) => operand(a)?.plus(1, operand(b)?)?,
            (Prim::SubInt, _, _) => operand(a)?.plus(-1, operand(b)?)?,
            (Prim::MulInt, x, Atom::Int(times)) | (Prim::MulInt, Atom::Int(times), x) => {
                number(0).plus(times, operand(x)?)?
            }
            _ => return None,
        };
        made.push(stmt);
        // A few statements that use each other once: more would be as good as a buffer.
        let once = made.iter().enumerate().all(|(at, stmt)| made[..at].iter().all(|s| s.binds != stmt.binds));
        (once && made.len() <= COMPUTED).then_some(form)
    }

    fn plus(mut self, times: i64, other: Form) -> Option<Form> {
        self.step = self.step.checked_add(other.step.checked_mul(times)?)?;
        self.plus = self.plus.checked_add(other.plus.checked_mul(times)?)?;
        for (var, count) in other.outside {
            let count = count.checked_mul(times)?;
            match self.outside.iter_mut().find(|(known, _)| *known == var) {
                Some((_, known)) => *known = known.checked_add(count)?,
                None => self.outside.push((var, count)),
            }
        }
        self.outside.retain(|(_, count)| *count != 0);
        self.outside.sort_by_key(|(var, _)| var.id);
        (self.step.abs() < FAR && self.plus.abs() < FAR).then_some(self)
    }

    /// Whether the one is never where the other is, in whatever iterations.
    fn passes_by(&self, other: &Form) -> bool {
        self.step == other.step && self.outside == other.outside && (self.plus - other.plus) % self.step != 0
    }
}

/// Whether a loop reads or collects booleans.
pub(super) fn has_booleans(l: &For) -> bool {
    let reads = |stmt: &Stmt| matches!(stmt.op, Op::Get { array, .. } if array.ty.scalar == Scalar::Bool);
    l.body.results.iter().any(|result| result.ty() == Type::BOOL) || l.body.stmts.iter().any(reads)
}

/// Elementary functions.
fn is_function(prim: Prim) -> bool {
    matches!(prim, Prim::Exp | Prim::Log | Prim::Sin | Prim::Cos | Prim::PowReal) || is_slow(prim)
}

pub(super) fn has_functions(block: &Block) -> bool {
    block.stmts.iter().any(has_function)
}

fn has_function(stmt: &Stmt) -> bool {
    matches!(&stmt.op, Op::Scalar { prim, .. } if is_function(*prim))
}

/// Functions that take far longer for one number than for each of several.
fn is_slow(prim: Prim) -> bool {
    use Prim::*;
    matches!(prim, Tan | Asin | Acos | Atan | Atan2 | Sinh | Cosh | Tanh | Log1p | Expm1 | Erf)
}

pub(super) fn is_slow_alone(block: &Block) -> bool {
    block.stmts.iter().any(|stmt| matches!(&stmt.op, Op::Scalar { prim, .. } if is_slow(*prim)))
}

/// Whether a primitive has a vector form (C compilers know the rest).
fn lanes(prim: Prim, args: &[Atom]) -> bool {
    use gradus_core::Prim::*;
    if prim == PowRealInt {
        // Those that are written as products.
        return matches!(args, [_, Atom::Int(2 | 3)]);
    }
    if matches!(prim, DivInt | ModInt) {
        // A shift or a mask, and what it takes for negative numbers.
        return matches!(args, [_, Atom::Int(by)] if *by > 0 && by.count_ones() == 1);
    }
    !matches!(prim, Lgamma | Polygamma | PowInt | Floor | Round | Truncate)
}
