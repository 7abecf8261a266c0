//! What the iterations of a loop check that could be checked before it.

use crate::flow::*;
use gradus_core::Prim;
use rustc_hash::FxHashMap;

/// No array has more elements than this many bits tell, and no loop comes to more iterations in a year.
pub const BITS_OF_LENGTH: u32 = 55;
/// By how many bits a place may be away from an index.
const BITS_OF_DISTANCE: u32 = 40;

/// The checks of a loop with what they are computed from, if that is arithmetic of the index and of outer values.
pub fn checks_of(l: &For) -> Option<Vec<Stmt>> {
    let mut needed: Vec<Var> = Vec::new();
    let mut found: Vec<Stmt> = Vec::new();
    for stmt in l.body.stmts.iter().rev() {
        let wanted = stmt.binds.iter().any(|v| needed.contains(v));
        match &stmt.op {
            Op::Check { .. } => {}
            Op::Scalar { .. } | Op::Select { .. } | Op::Dim { .. } if wanted => {}
            _ if wanted => return None,
            _ => continue,
        }
        stmt.op.for_each_operand(&mut |a| needed.extend(a.var()));
        found.push(stmt.clone());
    }
    found.reverse();
    Some(found)
}

/// Whether all iterations check the same.
pub fn are_alike(checks: &[Stmt], index: Var) -> bool {
    checks.iter().all(|stmt| !stmt.mentions(index))
}

/// What a number does from one iteration to the next.
#[derive(Clone, Copy, PartialEq)]
enum Course {
    /// It becomes larger by one, and has so many bits at most: if that is more than there are, it may begin anew at the least.
    Rises { bits: u32 },
    /// It is a condition that holds between any two iterations in which it holds.
    HoldsBetween,
}

/// If all that is checked holds in all iterations where it holds in the first and in the last: the places of which the last must not be less than the first for
/// that, since they begin at an unknown number and may go beyond the largest.
pub fn hold_between(checks: &[Stmt], index: Var) -> Option<Vec<Var>> {
    let mut courses: FxHashMap<Var, Course> = FxHashMap::default();
    courses.insert(index, Course::Rises { bits: BITS_OF_LENGTH });
    let mut unsure = Vec::new();
    for stmt in checks {
        let course = |a: &Atom| a.var().and_then(|v| courses.get(&v).copied());
        let mut same = true;
        stmt.op.for_each_operand(&mut |a| same &= course(&a).is_none());
        if same {
            continue;
        }
        let (found, var) = match (&stmt.op, &stmt.binds[..]) {
            (Op::Check { cond, .. }, _) if course(cond) == Some(Course::HoldsBetween) => continue,
            (Op::Scalar { prim, args }, [y]) => (scalar(*prim, args, course)?, *y),
            // Both hold, or one of two that is always the same one.
            (Op::Select { cond, then, otherwise }, [y]) => {
                let is_condition = |a: &Atom| a.ty() == Type::BOOL && !matches!(course(a), Some(Course::Rises { .. }));
                let both = course(cond) == Some(Course::HoldsBetween) && *otherwise == Atom::Bool(false);
                let either = course(cond).is_none() && is_condition(otherwise);
                (Some(Course::HoldsBetween).filter(|_| (both || either) && is_condition(then))?, *y)
            }
            _ => return None,
        };
        if matches!(found, Course::Rises { bits } if bits >= i64::BITS) {
            unsure.push(var);
        }
        courses.insert(var, found);
    }
    Some(unsure)
}

/// Of an operation that has an operand with a course.
fn scalar(prim: Prim, args: &[Atom], course: impl Fn(&Atom) -> Option<Course>) -> Option<Course> {
    let [a, b] = args else { return None };
    let rises = |x: &Atom| matches!(course(x), Some(Course::Rises { .. }));
    match prim {
        Prim::AddInt | Prim::SubInt => {
            let (moving, other) = if rises(a) || prim == Prim::SubInt { (a, b) } else { (b, a) };
            let (Some(Course::Rises { bits }), None) = (course(moving), course(other)) else { return None };
            let near = matches!(other, Atom::Int(k) if k.unsigned_abs() < 1 << BITS_OF_DISTANCE);
            let bits = if near { bits.max(BITS_OF_DISTANCE) + 1 } else { i64::BITS };
            Some(Course::Rises { bits: bits.min(i64::BITS) })
        }
        Prim::Less | Prim::LessEqual | Prim::Greater | Prim::GreaterEqual => {
            (rises(a) && course(b).is_none() || rises(b) && course(a).is_none()).then_some(Course::HoldsBetween)
        }
        _ => None,
    }
}
