//! Which loops run in vector lanes.

use super::cells::is_box;
use crate::flow::*;
use gradus_core::Prim;

/// Iterations between additions that had to wait.
pub(super) const STRIP: i64 = 256;

/// A loop whose iterations can run side by side in vector lanes.
pub(super) struct Vectors {
    /// The accumulators of one number that the loop adds to.
    pub(super) sums: Vec<Var>,
    /// The arrays that it adds to in places that may meet, in other iterations or by other statements: the additions wait in buffers.
    meeting: Vec<Var>,
}

/// An addition that waits until a strip of iterations has run.
pub(super) struct Late {
    /// What is kept for each iteration, with its buffer: the number, and what its place is computed from.
    kept: Vec<(Var, String)>,
    /// Those of the buffers that an earlier addition does not have.
    own: Vec<(Type, String)>,
    /// The addition, with its place computed.
    pub(super) stmts: Vec<Stmt>,
    /// Whether each iteration has a place of its own.
    pub(super) apart: bool,
}

impl Late {
    pub(super) fn buffers(&self) -> impl Iterator<Item = (Type, &str)> {
        self.own.iter().map(|(ty, buffer)| (*ty, &buffer[..]))
    }

    pub(super) fn values(&self) -> impl Iterator<Item = (Var, &str)> {
        self.kept.iter().map(|(var, buffer)| (*var, &buffer[..]))
    }
}

/// Whether and how the iterations can run in vector lanes.
pub(super) fn vectors(l: &For) -> Option<Vectors> {
    if !l.carried.is_empty() {
        return None;
    }
    let mut found = Vectors { sums: Vec::new(), meeting: Vec::new() };
    let mut places: Vec<(Var, &[Atom])> = Vec::new();
    for stmt in &l.body.stmts {
        match &stmt.op {
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
                    let alone = places.iter().all(|(other, place)| other != acc || *place == &index[..]);
                    if !goes_on(l, index) || !alone {
                        found.meeting.push(*acc);
                    }
                    places.push((*acc, index));
                }
            }
            _ => return None,
        }
    }
    let numbers = l.body.results.iter().all(|a| !a.ty().is_counted());
    let waiting = places.iter().filter(|(acc, _)| found.meeting.contains(acc));
    let wait: usize = waiting.map(|(_, index)| if goes_on(l, index) { WAIT_APART } else { WAIT }).sum();
    (numbers && (wait == 0 || work(&l.body) >= wait)).then_some(found)
}

/// Operations that make up for the wait of an addition: one by one, or in vector lanes, since each iteration has a place of its own.
const WAIT: usize = 6;
const WAIT_APART: usize = 1;

/// Whether each iteration has a place of its own.
fn goes_on(l: &For, index: &[Atom]) -> bool {
    index.iter().any(|at| matches!(place(l, *at), Place::Next(_)))
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
        kept.body.stmts.retain(|stmt| match &stmt.op {
            Op::Add { acc, index, value } if self.meeting.contains(acc) => {
                late.push((stmt.span, *acc, index.clone(), *value));
                false
            }
            _ => true,
        });
        let mut buffers: Vec<(Atom, String)> = Vec::new();
        let late = late.into_iter().map(|(span, acc, index, value)| {
            let mut found = Late { kept: Vec::new(), own: Vec::new(), stmts: Vec::new(), apart: false };
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
                .map(|at| match place(l, at) {
                    Place::Same => at,
                    Place::Next(None) => {
                        found.apart = true;
                        at
                    }
                    Place::Next(Some(stmt)) => {
                        found.apart = true;
                        let var = Var::fresh("place", Type::INT);
                        found.stmts.push(Stmt { binds: vec![var], ..stmt.clone() });
                        var.into()
                    }
                    Place::Any => keep(at, &mut found),
                })
                .collect();
            let value = keep(value, &mut found);
            found.stmts.push(Stmt { binds: Vec::new(), op: Op::Add { acc, index, value }, span });
            found
        });
        let late = late.collect();
        (kept, late)
    }
}

/// How an index of a loop's body goes on from one iteration to the next.
enum Place<'a> {
    Same,
    /// One more each time: the loop's own index, or a statement that adds something to it.
    Next(Option<&'a Stmt>),
    Any,
}

fn place(l: &For, at: Atom) -> Place<'_> {
    let Some(var) = at.var() else { return Place::Same };
    if var == l.index {
        return Place::Next(None);
    }
    let made = |v: Var| l.body.stmts.iter().find(|s| s.binds.contains(&v));
    let Some(stmt) = made(var) else { return Place::Same };
    let outer = |a: Atom| a.var().is_none_or(|v| v != l.index && made(v).is_none());
    let is_index = |a: Atom| a.var() == Some(l.index);
    match &stmt.op {
        Op::Scalar { prim, args } => match (prim, &args[..]) {
            (Prim::AddInt | Prim::SubInt, [a, b]) if is_index(*a) && outer(*b) => Place::Next(Some(stmt)),
            (Prim::AddInt, [a, b]) if is_index(*b) && outer(*a) => Place::Next(Some(stmt)),
            _ => Place::Any,
        },
        _ => Place::Any,
    }
}

/// Elementary functions.
fn is_function(prim: Prim) -> bool {
    matches!(prim, Prim::Exp | Prim::Log | Prim::Sin | Prim::Cos | Prim::PowReal) || is_slow(prim)
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
    !matches!(prim, Lgamma | Polygamma | PowInt | DivInt | ModInt | Floor | Round | Truncate)
}
