//! Arrays that begin with all of another one, as `concat` makes them, are made from that: longer by what comes behind it. If nobody else holds the first array
//! and there is room, its elements stay where they are. When all derivatives have been taken.
//!
//! ```text
//! n = dim a 0; m = dim b 0; count = iadd n m
//! c = for i < count {                                  c = extend a b
//!   e = if i < n { get a i } else { get b (i - n) }    =>
//!   collect e
//! }
//! ```
//!
//! The first array may be one of rows, in the order of whose elements the loop reads: `a.(i / 30).(i / 15 mod 2).(i mod 15)`.

use crate::flow::walk::{self, free_vars, Renaming};
use crate::flow::*;
use crate::steady::{Length, Lengths};
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use rustc_hash::{FxHashMap, FxHashSet};

/// More than so many times a length may be too large for an integer.
const MOST: i64 = 1 << 15;

/// Says whether there was such an array.
pub fn run(function: &mut Block) -> bool {
    if !asks_where(function) {
        return false;
    }
    let lengths = Lengths::of(function);
    Extend { lengths, rows: FxHashMap::default(), made: FxHashMap::default() }.block(function)
}

/// Whether a loop collects what depends on where it is.
fn asks_where(block: &Block) -> bool {
    with_stack(|| {
        block.stmts.iter().any(|stmt| match &stmt.op {
            Op::For(l) => choice(l).is_some() || asks_where(&l.body),
            op => op.blocks().any(asks_where),
        })
    })
}

/// What is known of the function.
struct Extend {
    lengths: Lengths,
    /// For arrays of rows that loops collect how often these run, and the row.
    rows: FxHashMap<Var, (Atom, Atom)>,
    /// How products and sums of integers are computed.
    made: FxHashMap<Var, (Prim, [Atom; 2])>,
}

/// A branch that gives all that a loop collects.
struct Choice {
    /// Its number in the body.
    at: usize,
    /// It asks whether the index and so many more are less than a number.
    ahead: i64,
    than: Atom,
}

fn choice(l: &For) -> Option<Choice> {
    let at = l.body.stmts.iter().position(|stmt| matches!(stmt.op, Op::If { .. }))?;
    let (before, behind) = l.body.stmts.split_at(at);
    let [Stmt { op: Op::If { cond, .. }, binds, .. }] = behind else { return None };
    let gives_all = l.body.results.iter().copied().eq(binds.iter().map(|v| Atom::Var(*v)));
    let is_plain = |stmt: &Stmt| matches!(stmt.op, Op::Scalar { .. } | Op::Dim { .. } | Op::Get { .. });
    if !l.carried.is_empty() || binds.is_empty() || !gives_all || !before.iter().all(is_plain) {
        return None;
    }
    let made = |atom: Atom| before.iter().find(|stmt| stmt.binds.iter().any(|v| atom == (*v).into()));
    let Op::Scalar { prim: Prim::Less, args } = &made(*cond)?.op else { return None };
    let (place, than) = (args[0], args[1]);
    let ahead = match made(place).map(|stmt| &stmt.op) {
        None if place == l.index.into() => 0,
        // How simplification asks for one of the last iterations.
        Some(Op::Scalar { prim: Prim::AddInt, args }) => match args[..] {
            [from, Atom::Int(ahead)] if from == l.index.into() && than == l.count => ahead,
            _ => return None,
        },
        _ => return None,
    };
    made(than).is_none().then_some(Choice { at, ahead, than })
}

impl Extend {
    fn block(&mut self, block: &mut Block) -> bool {
        with_stack(|| {
            let mut changed = false;
            let mut out = Vec::with_capacity(block.stmts.len());
            for mut stmt in std::mem::take(&mut block.stmts) {
                for inner in stmt.op.blocks_mut() {
                    changed |= self.block(inner);
                }
                if let (Op::Scalar { prim, args }, [y]) = (&stmt.op, &stmt.binds[..]) {
                    if let (Prim::AddInt | Prim::MulInt, [a, b]) = (prim, &args[..]) {
                        self.made.insert(*y, (*prim, [*a, *b]));
                    }
                }
                if let Op::For(l) = &stmt.op {
                    let collected = stmt.binds.iter().zip(&l.body.results).skip(l.carried.len());
                    let of_rows = collected.filter(|(array, _)| array.ty.rank > 1);
                    self.rows.extend(of_rows.map(|(array, row)| (*array, (l.count, *row))));
                }
                match self.extended(&stmt) {
                    Some(stmts) => {
                        changed = true;
                        out.extend(stmts);
                    }
                    None => out.push(stmt),
                }
            }
            block.stmts = out;
            changed
        })
    }

    /// The statements that make what a loop collects by making other arrays longer.
    fn extended(&self, stmt: &Stmt) -> Option<Vec<Stmt>> {
        let Op::For(l) = &stmt.op else { return None };
        let Choice { at, ahead, than } = choice(l)?;
        let size = match (ahead, than.var().and_then(|v| self.made.get(&v))) {
            (0, _) => than,
            (_, Some((Prim::AddInt, [size, Atom::Int(more)]))) if *more == ahead => *size,
            _ => return None,
        };
        let Op::If { then, otherwise, .. } = &l.body.stmts[at].op else { return None };
        let firsts =
            then.results.iter().map(|result| self.whole(then, *result, l.index, size)).collect::<Option<Vec<_>>>()?;
        let mut inside: FxHashSet<Var> = FxHashSet::default();
        walk::for_each_binder(&l.body, &mut |v| {
            inside.insert(v);
        });
        // Nothing else may be done there.
        let reads = then.stmts.iter().filter(|stmt| matches!(stmt.op, Op::Get { .. })).count();
        if reads != firsts.len() || firsts.iter().any(|array| inside.contains(array)) {
            return None;
        }
        let mut b = Builder::new();
        b.span = stmt.span;
        let rest = self.rest(&mut b, l.count, size, firsts[0], otherwise)?;
        let body = Block { stmts: l.body.stmts[..at].to_vec(), results: Vec::new() };
        let others = self.others(&mut b, stmt, l, (body, otherwise), size, rest);
        for ((array, by), y) in firsts.into_iter().zip(others).zip(&stmt.binds) {
            b.bind(vec![*y], Op::Extend { array, by });
        }
        Some(b.pop(Vec::new()).stmts)
    }

    /// The array of whose elements a result is the one at the index, in their order, if these are so many and what is checked holds of all of them.
    fn whole(&self, side: &Block, result: Atom, index: Var, size: Atom) -> Option<Var> {
        let read = side.stmts.iter().find(|stmt| stmt.binds.iter().any(|v| result == (*v).into()))?;
        let Op::Get { array, index: place } = &read.op else { return None };
        let is_number = place.len() == array.ty.rank as usize && array.ty.shape().is_none();
        if !is_number {
            return None;
        }
        let known = self.dims(*array);
        let (first, rows) = known.split_first()?;
        let number = |length: &Length| match length {
            Length::Number(Atom::Int(n @ 1..)) => Some(*n),
            _ => None,
        };
        let rows = rows.iter().map(number).collect::<Option<Vec<i64>>>()?;
        if !self.is_product(size, rows.iter().product(), *first) {
            return None;
        }
        // How far apart the elements of each axis are.
        let apart: Vec<i64> = (0..known.len()).map(|axis| rows[axis..].iter().product()).collect();
        let mut digits = Digits { of: FxHashMap::from_iter([(index, Digit { over: 1, within: None })]) };
        let mut held: FxHashMap<Var, bool> = FxHashMap::default();
        for stmt in &side.stmts {
            match (&stmt.op, &stmt.binds[..]) {
                (Op::Scalar { prim, args }, [y]) => {
                    digits.learn(*prim, args, *y);
                    held.insert(*y, self.holds(*prim, args, &digits, *array, (&apart, &known)));
                }
                (Op::Get { .. }, _) => {}
                (Op::Check { cond, .. }, _) if cond.var().is_some_and(|cond| held.get(&cond) == Some(&true)) => {}
                _ => return None,
            }
        }
        let is_digit = |(axis, at): (usize, &Atom)| digits.of(*at) == Some(digit(axis, &apart));
        place.iter().enumerate().all(is_digit).then_some(*array)
    }

    /// The lengths of an array; those of its rows only matter if there are any.
    fn dims(&self, array: Var) -> Vec<Length> {
        match self.rows.get(&array) {
            Some((count, row)) => [vec![self.lengths.number(*count)], self.lengths.of_array(*row)].concat(),
            None => self.lengths.of_array(array.into()),
        }
    }

    /// Whether a comparison is true of each element: a digit of its number is not negative, and less than the length of its axis.
    fn holds(
        &self,
        prim: Prim,
        args: &[Atom],
        digits: &Digits,
        array: Var,
        (apart, known): (&[i64], &[Length]),
    ) -> bool {
        let [a, b] = args else { return false };
        let Some(found) = digits.of(*a) else { return false };
        match prim {
            Prim::GreaterEqual => matches!(b, Atom::Int(..=0)),
            Prim::Less => (0..apart.len()).any(|axis| {
                digit(axis, apart) == found
                    && [known[axis], Length::Of(array, axis as u8)].contains(&self.lengths.number(*b))
            }),
            _ => false,
        }
    }

    /// Whether a number is so many times a length.
    fn is_product(&self, number: Atom, times: i64, length: Length) -> bool {
        if times == 1 {
            return self.lengths.number(number) == length;
        }
        match (number, length) {
            (Atom::Int(n), Length::Number(Atom::Int(length))) => length.checked_mul(times) == Some(n),
            _ => self.factors(number).is_some_and(|(k, of)| k == times && self.lengths.number(of) == length),
        }
    }

    /// A number as so many times another.
    fn factors(&self, number: Atom) -> Option<(i64, Atom)> {
        match self.made.get(&number.var()?)? {
            (Prim::MulInt, [Atom::Int(k), of]) | (Prim::MulInt, [of, Atom::Int(k)]) => Some((*k, *of)),
            _ => None,
        }
    }

    /// How many elements come behind the first array, if that is known not to be negative.
    fn rest(&self, b: &mut Builder, count: Atom, size: Atom, first: Var, behind: &Block) -> Option<Atom> {
        if let (Atom::Int(count), Atom::Int(size)) = (count, size) {
            return (0..=count).contains(&size).then_some(Atom::Int(count - size));
        }
        // Of a length there may be several multiples.
        let multiple = |number: Atom| match self.factors(number) {
            Some((k, of)) => (k, of),
            None => (1, number),
        };
        let ((more, of), (less, same)) = (multiple(count), multiple(size));
        let is_length = |number: Atom| {
            let arrays = || free_vars(behind).into_iter().chain([first]).filter(|v| v.ty.is_array());
            let known = self.lengths.number(number);
            matches!(number, Atom::Int(0..))
                || matches!(known, Length::Of(..))
                || arrays().any(|array| self.dims(array).first() == Some(&known))
        };
        if of == same && (less..=MOST).contains(&more) && less >= 0 && is_length(of) {
            return Some(b.scalar(Prim::MulInt, &[Atom::Int(more - less), of]));
        }
        let (Prim::AddInt, sides) = self.made.get(&count.var()?)? else { return None };
        let others = [(sides[0], sides[1]), (sides[1], sides[0])];
        others.into_iter().find(|(one, other)| *one == size && is_length(*other)).map(|(_, other)| other)
    }

    /// The arrays of what comes behind the first ones: such that are there, or those of a loop.
    fn others(
        &self,
        b: &mut Builder,
        stmt: &Stmt,
        l: &For,
        (mut body, side): (Block, &Block),
        size: Atom,
        count: Atom,
    ) -> Vec<Var> {
        let index = l.index.refresh();
        let behind = Var::fresh(l.index.name, Type::INT);
        let mut renaming = Renaming::default();
        renaming.map.insert(l.index, behind.into());
        let from_there = [l.index.into(), size];
        let is_index =
            |stmt: &&Stmt| matches!(&stmt.op, Op::Scalar { prim: Prim::SubInt, args } if args[..] == from_there);
        let again: Vec<Var> = side.stmts.iter().filter(is_index).flat_map(|stmt| stmt.binds.iter().copied()).collect();
        let stays = |stmt: &Stmt| !stmt.binds.iter().any(|v| again.contains(v));
        body.stmts.extend(side.stmts.iter().filter(|stmt| stays(stmt)).cloned());
        body.results.clone_from(&side.results);
        renaming.map.extend(again.into_iter().map(|v| (v, index.into())));
        let mut body = renaming.block(&body);
        self.drop_checks(&mut body, index, count);
        if let Some(there) = self.there(&body, index, count) {
            return there;
        }
        let place = Stmt {
            binds: vec![behind],
            op: Op::Scalar { prim: Prim::AddInt, args: vec![index.into(), size] },
            span: stmt.span,
        };
        body.stmts.insert(0, place);
        let arrays: Vec<Var> = stmt.binds.iter().map(|v| v.refresh()).collect();
        b.bind(arrays.clone(), Op::For(Box::new(For { index, count, body, ..l.clone() })));
        arrays
    }

    /// Takes out what is checked of an index that is less than the number of iterations.
    fn drop_checks(&self, body: &mut Block, index: Var, count: Atom) {
        let count = self.lengths.number(count);
        let holds = |stmt: &Stmt| match &stmt.op {
            Op::Scalar { prim: Prim::GreaterEqual, args } => {
                args[0] == index.into() && matches!(args[1], Atom::Int(..=0))
            }
            Op::Scalar { prim: Prim::Less, args } => args[0] == index.into() && self.lengths.number(args[1]) == count,
            _ => false,
        };
        let known: Vec<Var> =
            body.stmts.iter().filter(|stmt| holds(stmt)).flat_map(|stmt| stmt.binds.iter().copied()).collect();
        body.stmts.retain(|stmt| !matches!(stmt.op, Op::Check { cond: Atom::Var(cond), .. } if known.contains(&cond)));
    }

    /// The arrays whose elements a loop collects, if it does nothing else.
    fn there(&self, body: &Block, index: Var, count: Atom) -> Option<Vec<Var>> {
        if body.stmts.iter().any(|stmt| !matches!(stmt.op, Op::Scalar { .. } | Op::Dim { .. } | Op::Get { .. })) {
            return None;
        }
        let array = |result: &Atom| {
            let read = body.stmts.iter().find(|stmt| stmt.binds.iter().any(|v| *result == (*v).into()))?;
            let Op::Get { array, index: place } = &read.op else { return None };
            let is_inside = body.stmts.iter().any(|stmt| stmt.binds.contains(array));
            let is_all = !is_inside && self.lengths.of_array((*array).into())[..] == [self.lengths.number(count)];
            (place[..] == [index.into()] && is_all).then_some(*array)
        };
        body.results.iter().map(array).collect()
    }
}

/// A number as a digit of the index: `index / over mod within`.
#[derive(Clone, Copy, PartialEq)]
struct Digit {
    over: i64,
    within: Option<i64>,
}

/// The digit that is the place along an axis.
fn digit(axis: usize, apart: &[i64]) -> Digit {
    let within = axis.checked_sub(1).map(|before| apart[before] / apart[axis]);
    Digit { over: apart[axis], within }
}

/// The integers that are digits of the index.
struct Digits {
    of: FxHashMap<Var, Digit>,
}

impl Digits {
    fn of(&self, atom: Atom) -> Option<Digit> {
        self.of.get(&atom.var()?).copied()
    }

    fn learn(&mut self, prim: Prim, args: &[Atom], y: Var) {
        let [a, Atom::Int(k @ 1..)] = args else { return };
        let Some(Digit { over, within: None }) = self.of(*a) else { return };
        let found = match prim {
            Prim::DivInt => over.checked_mul(*k).map(|over| Digit { over, within: None }),
            Prim::ModInt => Some(Digit { over, within: Some(*k) }),
            _ => None,
        };
        self.of.extend(found.map(|found| (y, found)));
    }
}
