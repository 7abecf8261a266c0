//! One walk from the top: constants, equal computations shared, reads seen through, checks that are known to hold left out.

use crate::flow::walk::Renaming;
use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use rustc_hash::{FxHashMap, FxHashSet};

pub fn run(block: &mut Block) {
    let mut walk = Forward::default();
    walk.block(block);
}

/// What two statements must have in common to compute the same.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    Scalar(Prim, Vec<Atom>),
    Select(Atom, Atom, Atom),
    Dim(Var, u8),
    Get(Var, Vec<Atom>),
    Tag(Atom),
    Field(Atom, usize, usize),
    /// A cell without fields.
    Immediate(ShapeId, usize),
}

/// How an array or number came about, as far as later reads can use it.
#[derive(Clone)]
enum Made {
    Scalar(Prim, Vec<Atom>),
    Row(Var, Vec<Atom>),
    Fill(Vec<Atom>, Atom),
    Literal(Vec<Atom>),
    Cell(usize, Vec<Atom>),
    /// Collected by a loop of so many iterations.
    Collected(Atom),
    /// In the shape of another one.
    Like(Atom),
}

#[derive(Default)]
struct Forward {
    replaced: Renaming,
    /// One table for each open block.
    known: Vec<FxHashMap<Key, Atom>>,
    made: FxHashMap<Var, Made>,
    /// Booleans that are true here, one set for each open block.
    facts: Vec<FxHashSet<Var>>,
    /// The indices of the loops around, with their counts.
    below: FxHashMap<Var, Atom>,
    /// Integers that are lengths of arrays.
    lengths: FxHashSet<Var>,
}

impl Forward {
    fn block(&mut self, block: &mut Block) {
        self.block_knowing(block, None);
    }

    /// Walks a block in which `fact` holds.
    fn block_knowing(&mut self, block: &mut Block, fact: Option<Var>) {
        with_stack(|| {
            self.known.push(FxHashMap::default());
            self.facts.push(fact.into_iter().collect());
            let mut out = Vec::with_capacity(block.stmts.len());
            for stmt in std::mem::take(&mut block.stmts) {
                self.stmt(stmt, &mut out);
            }
            for result in &mut block.results {
                *result = self.replaced.atom(*result);
            }
            block.stmts = out;
            self.known.pop();
            self.facts.pop();
        })
    }

    fn atom(&self, atom: &mut Atom) {
        *atom = self.replaced.atom(*atom);
    }

    fn atoms(&self, atoms: &mut [Atom]) {
        atoms.iter_mut().for_each(|a| self.atom(a));
    }

    fn var(&self, var: &mut Var) {
        if let Atom::Var(v) = self.replaced.atom((*var).into()) {
            *var = v;
        }
    }

    fn find(&self, key: &Key) -> Option<Atom> {
        self.known.iter().rev().find_map(|table| table.get(key).copied())
    }

    fn holds(&self, atom: Atom) -> bool {
        match atom {
            Atom::Bool(b) => b,
            Atom::Var(v) => self.facts.iter().any(|facts| facts.contains(&v)),
            Atom::Real(_) | Atom::Int(_) | Atom::Nil(_) => false,
        }
    }

    /// Binds a variable to what is already there.
    fn replace(&mut self, var: Var, atom: Atom) {
        self.replaced.map.insert(var, atom);
    }

    /// Keeps a statement that binds one variable, or shares an equal one.
    fn keep(&mut self, key: Key, stmt: Stmt, out: &mut Vec<Stmt>) {
        if let Some(known) = self.find(&key) {
            self.replace(stmt.binds[0], known);
            return;
        }
        if let Some(table) = self.known.last_mut() {
            table.insert(key, stmt.binds[0].into());
        }
        out.push(stmt);
    }

    fn stmt(&mut self, mut stmt: Stmt, out: &mut Vec<Stmt>) {
        match &mut stmt.op {
            Op::Scalar { prim, args } => {
                self.atoms(args);
                let (prim, args) = (*prim, args.clone());
                let y = stmt.binds[0];
                if let Some(value) = fold::scalar(prim, &args).or_else(|| self.in_range(prim, &args)) {
                    return self.replace(y, value);
                }
                self.made.insert(y, Made::Scalar(prim, args.clone()));
                let mut ordered = args;
                if matches!(prim, Prim::AddReal | Prim::MulReal | Prim::AddInt | Prim::MulInt) {
                    ordered.sort_by_key(|a| a.var().map_or(u32::MAX, |v| v.id));
                }
                self.keep(Key::Scalar(prim, ordered), stmt, out);
            }
            Op::Copy { value } => {
                let value = self.replaced.atom(*value);
                self.replace(stmt.binds[0], value);
            }
            Op::Stop { value } => {
                self.atom(value);
                match *value {
                    // A constant, and what has no derivative, needs no stop.
                    constant if constant.var().is_none_or(|v| !v.ty.is_real()) => self.replace(stmt.binds[0], constant),
                    value => {
                        self.made.insert(stmt.binds[0], Made::Like(value));
                        out.push(stmt);
                    }
                }
            }
            Op::Select { cond, then, otherwise } => {
                self.atom(cond);
                self.atom(then);
                self.atom(otherwise);
                let (cond, then, otherwise) = (*cond, *then, *otherwise);
                let known = match cond {
                    Atom::Bool(true) => Some(then),
                    Atom::Bool(false) => Some(otherwise),
                    _ if then == otherwise => Some(then),
                    _ => None,
                };
                match known {
                    Some(known) => self.replace(stmt.binds[0], known),
                    None => self.keep(Key::Select(cond, then, otherwise), stmt, out),
                }
            }
            Op::Dim { array, axis } => {
                self.var(array);
                let (array, axis) = (*array, *axis);
                match self.dim(array, axis) {
                    Some(known) => self.replace(stmt.binds[0], known),
                    None => {
                        self.lengths.insert(stmt.binds[0]);
                        self.keep(Key::Dim(array, axis), stmt, out);
                    }
                }
            }
            Op::Get { array, index } => {
                self.var(array);
                self.atoms(index);
                if let Some(Made::Row(whole, first)) = self.made.get(array).cloned() {
                    *array = whole;
                    *index = [first, std::mem::take(index)].concat();
                }
                let (array, index) = (*array, index.clone());
                match self.element(array, &index) {
                    Some(known) => self.replace(stmt.binds[0], known),
                    None => {
                        if stmt.binds[0].ty.is_array() {
                            self.made.insert(stmt.binds[0], Made::Row(array, index.clone()));
                        }
                        self.keep(Key::Get(array, index), stmt, out);
                    }
                }
            }
            Op::Set { array, index, value } => {
                self.var(array);
                self.atoms(index);
                self.atom(value);
                self.made.insert(stmt.binds[0], Made::Like((*array).into()));
                out.push(stmt);
            }
            Op::Fill { dims, value } => {
                self.atoms(dims);
                self.atom(value);
                self.made.insert(stmt.binds[0], Made::Fill(dims.clone(), *value));
                out.push(stmt);
            }
            Op::Literal { items, .. } => {
                self.atoms(items);
                self.made.insert(stmt.binds[0], Made::Literal(items.clone()));
                out.push(stmt);
            }
            Op::Cell { shape, tag, fields } => {
                self.atoms(fields);
                if fields.is_empty() {
                    let key = Key::Immediate(*shape, *tag);
                    self.made.insert(stmt.binds[0], Made::Cell(*tag, Vec::new()));
                    return self.keep(key, stmt, out);
                }
                self.made.insert(stmt.binds[0], Made::Cell(*tag, fields.clone()));
                out.push(stmt);
            }
            Op::Tag { cell } => {
                self.atom(cell);
                let cell = *cell;
                match (cell, self.cell(cell)) {
                    (Atom::Nil(_), _) => self.replace(stmt.binds[0], Atom::Int(-1)),
                    (_, Some((tag, _))) => self.replace(stmt.binds[0], Atom::Int(tag as i64)),
                    (_, None) => self.keep(Key::Tag(cell), stmt, out),
                }
            }
            Op::Unpack { cell, tag } => {
                self.atom(cell);
                let (cell, tag) = (*cell, *tag);
                // A cell with another tag means that this place is never reached.
                if let Some((_, fields)) = self.cell(cell).filter(|(known, _)| *known == tag) {
                    for (bind, field) in stmt.binds.iter().zip(fields) {
                        self.replace(*bind, field);
                    }
                    return;
                }
                let before: Option<Vec<Atom>> =
                    (0..stmt.binds.len()).map(|i| self.find(&Key::Field(cell, tag, i))).collect();
                if let Some(before) = before {
                    for (bind, field) in stmt.binds.iter().zip(before) {
                        self.replace(*bind, field);
                    }
                    return;
                }
                if let Some(table) = self.known.last_mut() {
                    for (i, bind) in stmt.binds.iter().enumerate() {
                        table.insert(Key::Field(cell, tag, i), (*bind).into());
                    }
                }
                out.push(stmt);
            }
            Op::Digits { value } => {
                self.atom(value);
                out.push(stmt);
            }
            Op::Check { cond, .. } => {
                self.atom(cond);
                if self.holds(*cond) {
                    return;
                }
                if let (Atom::Var(v), Some(facts)) = (*cond, self.facts.last_mut()) {
                    facts.insert(v);
                }
                out.push(stmt);
            }
            Op::If { cond, .. } => {
                self.atom(cond);
                let cond = *cond;
                self.branch(cond, stmt, out);
            }
            Op::For(l) => {
                self.atom(&mut l.count);
                l.carried.iter_mut().for_each(|(_, init)| self.atom(init));
                self.below.insert(l.index, l.count);
                self.block(&mut l.body);
                let (state, count) = (l.carried.len(), l.count);
                for array in &stmt.binds[state..] {
                    self.made.insert(*array, Made::Collected(count));
                }
                out.push(stmt);
            }
            Op::While(l) => {
                l.carried.iter_mut().for_each(|(_, init)| self.atom(init));
                self.block(&mut l.body);
                out.push(stmt);
            }
            Op::Call { args, .. } => {
                self.atoms(args);
                out.push(stmt);
            }
            Op::Open { init } => {
                self.atom(init);
                self.made.insert(stmt.binds[0], Made::Like(*init));
                out.push(stmt);
            }
            Op::Add { acc, index, value } => {
                self.var(acc);
                self.atoms(index);
                self.atom(value);
                if !value.is_real(0.0) {
                    out.push(stmt);
                }
            }
            Op::Freeze { acc } => {
                self.var(acc);
                if let Some(made) = self.made.get(acc).cloned() {
                    self.made.insert(stmt.binds[0], made);
                }
                out.push(stmt);
            }
        }
    }

    /// A branch whose outcome is known is no branch; one that computes nothing is a choice of numbers.
    fn branch(&mut self, cond: Atom, mut stmt: Stmt, out: &mut Vec<Stmt>) {
        let Op::If { then, otherwise, .. } = &mut stmt.op else { return };
        let known = match cond {
            Atom::Bool(b) => Some(b),
            _ => self.holds(cond).then_some(true),
        };
        if let Some(known) = known {
            let block = std::mem::take(if known { then } else { otherwise });
            for inner in block.stmts {
                self.stmt(inner, out);
            }
            for (bind, result) in stmt.binds.iter().zip(block.results) {
                let result = self.replaced.atom(result);
                self.replace(*bind, result);
            }
            return;
        }
        self.block_knowing(then, cond.var());
        self.block(otherwise);
        if then.stmts.is_empty() && otherwise.stmts.is_empty() && stmt.binds.iter().all(|v| !v.ty.is_counted()) {
            let sides: Vec<(Atom, Atom)> =
                then.results.iter().copied().zip(otherwise.results.iter().copied()).collect();
            for (bind, (then, otherwise)) in stmt.binds.into_iter().zip(sides) {
                let op = Op::Select { cond, then, otherwise };
                self.stmt(Stmt { binds: vec![bind], op, span: stmt.span }, out);
            }
            return;
        }
        out.push(stmt);
    }

    /// The tag and fields of a box, if it was made here.
    fn cell(&self, cell: Atom) -> Option<(usize, Vec<Atom>)> {
        match self.made.get(&cell.var()?)? {
            Made::Cell(tag, fields) => Some((*tag, fields.clone())),
            _ => None,
        }
    }

    /// The length of an array, if how it was made tells it.
    fn dim(&self, array: Var, axis: u8) -> Option<Atom> {
        match self.made.get(&array)? {
            Made::Fill(dims, _) => dims.get(axis as usize).copied(),
            Made::Literal(items) if axis == 0 => Some(Atom::Int(items.len() as i64)),
            Made::Collected(count) if axis == 0 => Some(*count),
            Made::Like(Atom::Var(other)) => self.dim(*other, axis).or_else(|| self.find(&Key::Dim(*other, axis))),
            Made::Row(whole, index) => {
                let axis = axis + index.len() as u8;
                self.dim(*whole, axis).or_else(|| self.find(&Key::Dim(*whole, axis)))
            }
            Made::Scalar(..) | Made::Literal(_) | Made::Cell(..) | Made::Collected(_) | Made::Like(_) => None,
        }
    }

    /// An element, if how the array was made tells it.
    fn element(&self, array: Var, index: &[Atom]) -> Option<Atom> {
        match (self.made.get(&array)?, index) {
            (Made::Fill(dims, value), _) if dims.len() == index.len() => Some(*value),
            (Made::Literal(items), [Atom::Int(i)]) => items.get(usize::try_from(*i).ok()?).copied(),
            _ => None,
        }
    }

    /// Comparisons that hold because one side counts up to the other.
    fn in_range(&self, prim: Prim, args: &[Atom]) -> Option<Atom> {
        match (prim, args) {
            (Prim::GreaterEqual, [x, Atom::Int(0)]) | (Prim::LessEqual, [Atom::Int(0), x]) if self.natural(*x) => {
                Some(Atom::Bool(true))
            }
            (Prim::Less, [x, n]) | (Prim::Greater, [n, x]) if self.is_below(*x, *n) => Some(Atom::Bool(true)),
            (Prim::Equal, [Atom::Var(x), y]) | (Prim::NotEqual, [Atom::Var(x), y]) if x.ty == Type::INT => {
                // n = m holds if it was checked.
                let equal = self.find(&Key::Scalar(Prim::Equal, vec![(*x).into(), *y]));
                let holds = equal.is_some_and(|e| self.holds(e));
                holds.then_some(Atom::Bool(prim == Prim::Equal))
            }
            _ => None,
        }
    }

    /// Whether an integer is certainly not negative.
    fn natural(&self, x: Atom) -> bool {
        match x {
            Atom::Int(k) => k >= 0,
            Atom::Var(v) if self.below.contains_key(&v) => true,
            Atom::Var(v) => match self.made.get(&v) {
                Some(Made::Scalar(Prim::SubInt, args)) => self.counts_down(args).is_some(),
                Some(_) => false,
                None => self.lengths.contains(&v),
            },
            Atom::Real(_) | Atom::Bool(_) | Atom::Nil(_) => false,
        }
    }

    fn is_below(&self, x: Atom, n: Atom) -> bool {
        match (x, n) {
            (Atom::Int(x), Atom::Int(n)) => x < n,
            (Atom::Var(v), _) => {
                let counted = self.below.get(&v).copied();
                let backwards = match self.made.get(&v) {
                    Some(Made::Scalar(Prim::SubInt, args)) => self.counts_down(args),
                    _ => None,
                };
                counted.or(backwards).is_some_and(|count| self.same_count(count, n))
            }
            _ => false,
        }
    }

    /// Two integers that are the same, or known to be equal because it was checked.
    fn same_count(&self, a: Atom, b: Atom) -> bool {
        let checked =
            |x: Atom, y: Atom| self.find(&Key::Scalar(Prim::Equal, vec![x, y])).is_some_and(|e| self.holds(e));
        match (a, b) {
            (Atom::Int(x), Atom::Int(y)) => x <= y,
            _ => a == b || checked(a, b) || checked(b, a),
        }
    }

    /// `(n - 1) - k` with k below n: the count n.
    fn counts_down(&self, args: &[Atom]) -> Option<Atom> {
        let [Atom::Var(last), Atom::Var(k)] = args else { return self.counts_down_from_constant(args) };
        let count = *self.below.get(k)?;
        match self.made.get(last)? {
            Made::Scalar(Prim::SubInt, inner) if inner[..] == [count, Atom::Int(1)] => Some(count),
            _ => None,
        }
    }

    fn counts_down_from_constant(&self, args: &[Atom]) -> Option<Atom> {
        match args {
            [Atom::Int(last), Atom::Var(k)] if self.below.get(k) == Some(&Atom::Int(last + 1)) => {
                Some(Atom::Int(last + 1))
            }
            _ => None,
        }
    }
}
