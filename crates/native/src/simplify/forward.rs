//! One walk from the top: constants, equal computations shared, reads seen through, checks that are known to hold left out.

use super::choices::Here;
use super::ranges::Linear;
use crate::flow::walk::Renaming;
use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use rustc_hash::FxHashMap;

pub fn run(block: &mut Block, lengths: &KnownLengths) {
    let mut forward = Forward::knowing(lengths);
    forward.known.reserve(block.stmts.len());
    forward.block(block);
}

/// The body of a loop without so many of its first iterations and so many of its last; `only`: for the last of the others.
pub fn between(l: &mut For, first: i64, last: i64, only: bool) {
    let mut walk = Forward::default();
    walk.below.insert(l.index, l.count);
    walk.loops.push((l.index, l.count));
    walk.learn_edges(l.index, l.count, first, last, only);
    walk.block(&mut l.body);
}

/// What two statements must have in common to compute the same.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Scalar(Prim, Vec<Atom>),
    Select(Atom, Atom, Atom),
    Dim(Var, u8),
    Get(Var, Vec<Atom>),
    Tag(Atom),
    Field(Atom, usize, usize),
    /// A cell without fields.
    Immediate(ShapeId, usize),
}

impl Key {
    /// Of a primitive that does not mind the order of what it takes, in one order.
    pub(super) fn scalar(prim: Prim, mut args: Vec<Atom>) -> Key {
        if matches!(prim, Prim::AddReal | Prim::MulReal | Prim::AddInt | Prim::MulInt | Prim::Equal) {
            args.sort_by_key(|a| a.var().map_or(u32::MAX, |v| v.id));
        }
        Key::Scalar(prim, args)
    }
}

/// How an array or number came about, as far as later reads can use it.
#[derive(Clone)]
pub(super) enum Made {
    Scalar(Prim, Vec<Atom>),
    Row(Var, Vec<Atom>),
    Fill(Vec<Atom>, Atom),
    Literal(Vec<Atom>),
    Cell(usize, Vec<Atom>),
    /// A boolean: the second if the first holds, else the third.
    Choice(Atom, Atom, Atom),
    /// Collected by a loop of so many iterations, if that is known; of a row, the lengths as far as they are known outside the loop.
    Collected(Option<Atom>, Vec<Option<Atom>>),
    /// In the shape of another one, or one with these lengths.
    Like(Atom),
    Measured(Vec<Atom>),
}

/// A side of a branch that has more statements is no choice.
const CHOICES: usize = 8;

/// The number of a block, in the order in which they are walked through.
type BlockNumber = usize;

#[derive(Default)]
pub(super) struct Forward {
    pub(super) replaced: Renaming,
    /// For each block whether its end is still to come; what is noted with the number of another one holds no more.
    is_open: Vec<bool>,
    /// The innermost block.
    here: BlockNumber,
    known: FxHashMap<Key, (Atom, BlockNumber)>,
    pub(super) made: FxHashMap<Var, Made>,
    /// Booleans that are true here.
    facts: FxHashMap<Var, BlockNumber>,
    /// Booleans that are false here.
    denied: FxHashMap<Var, BlockNumber>,
    /// Integers that are known to be equal to something else as long as a block is open, and what they were replaced by before.
    equal: Vec<Vec<(Var, Option<Atom>)>>,
    /// The indices of loops, with their counts.
    pub(super) below: FxHashMap<Var, Atom>,
    /// The loops around: their indices and counts.
    pub(super) loops: Vec<(Var, Atom)>,
    /// Forms that are not negative here.
    pub(super) inequalities: Vec<Linear>,
    /// Lengths of rows, with what they are if there are any rows.
    pub(super) row_lengths: FxHashMap<Var, Atom>,
    /// For each number of rows, the lengths of rows of matrices that have so many, again with what they are if there are any.
    pub(super) columns: FxHashMap<Atom, Vec<(Var, Atom)>>,
    /// Integers that are lengths of arrays, numbered as they come.
    pub(super) lengths: FxHashMap<Var, usize>,
}

impl Forward {
    fn block(&mut self, block: &mut Block) {
        self.block_knowing(block, |_| ());
    }

    /// Walks a block in which more is known.
    fn block_knowing(&mut self, block: &mut Block, learn: impl FnOnce(&mut Forward)) {
        with_stack(|| {
            let around = std::mem::replace(&mut self.here, self.is_open.len());
            self.is_open.push(true);
            self.equal.push(Vec::new());
            let inequalities = self.inequalities.len();
            learn(self);
            let mut out = Vec::with_capacity(block.stmts.len());
            for stmt in std::mem::take(&mut block.stmts) {
                self.stmt(stmt, &mut out);
            }
            for result in &mut block.results {
                *result = self.replaced.atom(*result);
            }
            block.stmts = out;
            self.is_open[self.here] = false;
            self.here = around;
            self.inequalities.truncate(inequalities);
            for (var, before) in self.equal.pop().unwrap_or_default().into_iter().rev() {
                match before {
                    Some(before) => self.replaced.map.insert(var, before),
                    None => self.replaced.map.remove(&var),
                };
            }
        })
    }

    /// In the body of a loop, its count is positive, and matrices with so many rows have some.
    fn learn_runs(&mut self, count: Atom) {
        self.learn_positive(count);
        if let Some((cond, outcome)) = self.decides(count) {
            self.learn(cond, outcome);
        }
        for (length, of_row) in self.columns.get(&count).cloned().unwrap_or_default() {
            self.learn_is(length, of_row);
        }
    }

    fn learn_atom(&mut self, fact: Atom, outcome: bool) {
        if let Atom::Var(fact) = fact {
            self.learn(fact, outcome);
        }
    }

    /// From here to the end of the block, a boolean is known, and with it what it is made of.
    fn learn(&mut self, fact: Var, outcome: bool) {
        let known = if outcome { &mut self.facts } else { &mut self.denied };
        if !known.get(&fact).is_some_and(|block| self.is_open[*block]) {
            known.insert(fact, self.here);
        }
        match self.made.get(&fact).cloned() {
            Some(Made::Scalar(Prim::Not, args)) => {
                if let [Atom::Var(x)] = args[..] {
                    self.learn(x, !outcome);
                }
            }
            Some(Made::Scalar(prim, args)) => {
                self.learn_inequality(prim, &args, outcome);
                if prim == Prim::Equal && outcome {
                    self.learn_equal(&args);
                }
            }
            // A conjunction that holds, a disjunction that does not.
            Some(Made::Choice(first, second, third)) => {
                let other = if outcome { (second, third) } else { (third, second) };
                if other.1 == Atom::Bool(!outcome) {
                    [first, other.0].into_iter().filter_map(Atom::var).for_each(|x| self.learn(x, outcome));
                }
            }
            _ => {}
        }
    }

    /// A length that is equal to something known is replaced by it.
    fn learn_equal(&mut self, args: &[Atom]) {
        let (from, to) = match *args {
            [Atom::Var(x), Atom::Int(k)] | [Atom::Int(k), Atom::Var(x)] => (x, Atom::Int(k)),
            // Lengths only: a boolean or a number may have been compared.
            [Atom::Var(x), Atom::Var(y)] => match (self.lengths.get(&x), self.lengths.get(&y)) {
                (Some(of_x), Some(of_y)) if of_x < of_y => (y, x.into()),
                (Some(_), Some(_)) => (x, y.into()),
                _ => return,
            },
            _ => return,
        };
        if from.ty != Type::INT {
            return;
        }
        self.learn_is(from, to);
    }

    /// From here to the end of the block, an integer is replaced by what it is.
    fn learn_is(&mut self, from: Var, to: Atom) {
        let before = self.replaced.map.insert(from, to);
        if let Some(scope) = self.equal.last_mut() {
            scope.push((from, before));
        }
    }

    pub(super) fn atom(&self, atom: &mut Atom) {
        *atom = self.replaced.atom(*atom);
    }

    pub(super) fn atoms(&self, atoms: &mut [Atom]) {
        atoms.iter_mut().for_each(|a| self.atom(a));
    }

    pub(super) fn var(&self, var: &mut Var) {
        if let Atom::Var(v) = self.replaced.atom((*var).into()) {
            *var = v;
        }
    }

    pub(super) fn find(&self, key: &Key) -> Option<Atom> {
        let (atom, _) = self.known.get(key).filter(|(_, block)| self.is_open[*block])?;
        // Which may have been found to be equal to something else.
        Some(self.replaced.atom(*atom))
    }

    /// Notes what a computation gives, as long as this block is open. It must not be known.
    fn note(&mut self, key: Key, atom: Atom) {
        self.known.insert(key, (atom, self.here));
    }

    pub(super) fn holds(&self, atom: Atom) -> bool {
        match atom {
            Atom::Bool(b) => b,
            Atom::Var(v) => self.facts.get(&v).is_some_and(|block| self.is_open[*block]),
            Atom::Real(_) | Atom::Int(_) | Atom::Nil(_) => false,
        }
    }

    /// Whether a comparison that was made where less was known is true here.
    fn follows(&self, cond: Atom) -> bool {
        match cond.var().and_then(|v| self.made.get(&v)) {
            Some(Made::Scalar(prim, args)) => self.in_range(*prim, args) == Some(Atom::Bool(true)),
            _ => false,
        }
    }

    /// Whether a boolean is known to be false.
    pub(super) fn fails(&self, atom: Atom) -> bool {
        match atom {
            Atom::Bool(b) => !b,
            Atom::Var(v) => self.denied.get(&v).is_some_and(|block| self.is_open[*block]),
            Atom::Real(_) | Atom::Int(_) | Atom::Nil(_) => false,
        }
    }

    /// Binds a variable to what is already there.
    pub(super) fn replace(&mut self, var: Var, atom: Atom) {
        self.replaced.map.insert(var, atom);
    }

    /// Keeps a statement that binds one variable, or shares an equal one.
    pub(super) fn keep(&mut self, key: Key, stmt: Stmt, out: &mut Vec<Stmt>) {
        if let Some(known) = self.find(&key) {
            self.replace(stmt.binds[0], known);
            return;
        }
        self.note(key, stmt.binds[0].into());
        out.push(stmt);
    }

    pub(super) fn stmt(&mut self, mut stmt: Stmt, out: &mut Vec<Stmt>) {
        match &mut stmt.op {
            Op::Scalar { prim, args } => {
                self.atoms(args);
                if let Some(end) = self.asks_for_end(*prim, args) {
                    // Always in the same words, for whoever takes the last iterations apart.
                    let ahead = Var::fresh("ahead", Type::INT);
                    let op = Op::Scalar { prim: Prim::AddInt, args: vec![end.index.into(), Atom::Int(end.by)] };
                    self.stmt(Stmt { binds: vec![ahead], op, span: stmt.span }, out);
                    *args = vec![self.replaced.atom(ahead.into()), end.count];
                    *prim = end.prim;
                }
                let (prim, args) = (*prim, args.clone());
                let y = stmt.binds[0];
                if let Some(value) = fold::scalar(prim, &args).or_else(|| self.in_range(prim, &args)) {
                    return self.replace(y, value);
                }
                if let Some(value) = self.scalar_by_cases(prim, &args, &mut Here { span: stmt.span, out }) {
                    return self.replace(y, value);
                }
                // Nobody asks how a real came about.
                if !y.ty.is_real() {
                    self.note_made(y, prim, &args);
                }
                self.keep(Key::scalar(prim, args), stmt, out);
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
            Op::Select { .. } => self.choice(stmt, out),
            Op::Dim { .. } => self.length_stmt(stmt, out),
            Op::Get { .. } => self.read(stmt, out),
            Op::Set { .. } => self.change(stmt, out),
            Op::Extend { array, by } => {
                [array, by].into_iter().for_each(|v| self.var(v));
                out.push(stmt);
            }
            Op::Fill { dims, value } => {
                let dummy = dims[..] == [Atom::Int(0)];
                self.atoms(dims);
                self.atom(value);
                if dims[..] == [Atom::Int(0)] && !dummy {
                    let ty = stmt.binds[0].ty;
                    self.made.insert(stmt.binds[0], Made::Literal(Vec::new()));
                    out.push(Stmt { op: Op::Literal { items: Vec::new(), ty }, ..stmt });
                    return;
                }
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
                for (i, bind) in stmt.binds.iter().enumerate() {
                    let key = Key::Field(cell, tag, i);
                    if self.find(&key).is_none() {
                        self.note(key, (*bind).into());
                    }
                }
                out.push(stmt);
            }
            Op::Pop { .. } => out.push(stmt),
            op @ (Op::Push { .. } | Op::Hole { .. } | Op::Plug { .. } | Op::Digits { .. }) => {
                op.for_each_operand_mut(&mut |a| self.atom(a));
                out.push(stmt);
            }
            Op::Check { cond, .. } => {
                self.atom(cond);
                if self.holds(*cond) || self.follows(*cond) {
                    return;
                }
                let fact = cond.var();
                out.push(stmt);
                if let Some(fact) = fact {
                    self.learn(fact, true);
                }
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
                self.state_shapes(&l.carried, &l.body, 0, &stmt.binds);
                self.loops.push((l.index, l.count));
                let count = l.count;
                self.block_knowing(&mut l.body, |known| known.learn_runs(count));
                self.loops.pop();
                self.collect_once(l, &mut stmt.binds);
                let (state, count) = (l.carried.len(), l.count);
                for (array, row) in stmt.binds[state..].iter().zip(&l.body.results[state..]) {
                    if let Some(copied) = self.copied(*row, l) {
                        self.replaced.map.insert(*array, copied.into());
                    }
                    let lengths = self.outer_lengths(*row, &l.carried, Some(l.index), &l.body);
                    self.made.insert(*array, Made::Collected(Some(count), lengths));
                }
                out.push(stmt);
            }
            Op::While(l) => {
                l.carried.iter_mut().for_each(|(_, init)| self.atom(init));
                self.state_shapes(&l.carried, &l.body, 1, &stmt.binds);
                self.block(&mut l.body);
                let state = l.carried.len();
                for (array, row) in stmt.binds[state..].iter().zip(&l.body.results[1 + state..]) {
                    let lengths = self.outer_lengths(*row, &l.carried, None, &l.body);
                    self.made.insert(*array, Made::Collected(None, lengths));
                }
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
                if !value.is_real(0.0) && !value.is_real(-0.0) {
                    out.push(stmt);
                }
            }
            Op::Product(product) => {
                let Product { acc, left, right, rows, columns, inner } = &mut **product;
                [acc, &mut left.matrix, &mut right.matrix].into_iter().for_each(|v| self.var(v));
                [rows, columns, inner].into_iter().for_each(|n| self.atom(n));
                out.push(stmt);
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

    /// What a loop collects twice it collects once.
    fn collect_once(&mut self, l: &mut For, binds: &mut Vec<Var>) {
        let mut collected: FxHashMap<Atom, Var> = FxHashMap::default();
        let mut at = l.carried.len();
        while at < binds.len() {
            let array = *collected.entry(l.body.results[at]).or_insert(binds[at]);
            if array == binds[at] {
                at += 1;
            } else {
                self.replace(binds.remove(at), array.into());
                l.body.results.remove(at);
            }
        }
    }

    /// A branch whose outcome is known is no branch; one that computes nothing is a choice of numbers.
    fn branch(&mut self, cond: Atom, mut stmt: Stmt, out: &mut Vec<Stmt>) {
        let Op::If { then, otherwise, .. } = &mut stmt.op else { return };
        let taken = if self.holds(cond) {
            Some(&mut *then)
        } else if self.fails(cond) {
            Some(&mut *otherwise)
        } else {
            None
        };
        if let Some(taken) = taken {
            let block = std::mem::take(taken);
            for inner in block.stmts {
                self.stmt(inner, out);
            }
            for (bind, result) in stmt.binds.iter().zip(block.results) {
                let result = self.replaced.atom(result);
                self.replace(*bind, result);
            }
            return;
        }
        self.block_knowing(then, |known| known.learn_atom(cond, true));
        self.block_knowing(otherwise, |known| known.learn_atom(cond, false));
        self.branch_shapes(&stmt.binds, [then, otherwise]);
        let sides = [&*then, &*otherwise];
        if stmt.binds.iter().all(|v| !v.ty.is_counted()) && sides.iter().all(|side| only_chooses(side)) {
            sides
                .iter()
                .for_each(|side| out.extend(side.stmts.iter().filter(|s| !s.binds[0].ty.is_counted()).cloned()));
            let sides: Vec<(Atom, Atom)> =
                then.results.iter().copied().zip(otherwise.results.iter().copied()).collect();
            for (bind, (then, otherwise)) in stmt.binds.into_iter().zip(sides) {
                let op = Op::Select { cond, then, otherwise };
                self.stmt(Stmt { binds: vec![bind], op, span: stmt.span }, out);
            }
            return;
        }
        if let ([bind], [first], [second]) = (&stmt.binds[..], &then.results[..], &otherwise.results[..]) {
            if bind.ty == Type::BOOL {
                self.made.insert(*bind, Made::Choice(cond, *first, *second));
            }
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
}

/// Whether a side of a branch costs no more than the branch: it compares and chooses numbers. Lists are there that were taken apart, of which
/// nobody looks at the whole. Arithmetic is none of it, since the side that is not taken would take part in derivatives; nor are conditions,
/// which say where loops end.
fn only_chooses(side: &Block) -> bool {
    let compares = |stmt: &Stmt| match &stmt.op {
        Op::Literal { .. } => true,
        Op::Select { .. } => stmt.binds[0].ty != Type::BOOL,
        Op::Scalar { args, .. } => stmt.binds[0].ty == Type::BOOL && args.iter().all(|a| !a.ty().is_counted()),
        _ => false,
    };
    let is_number = |result: &Atom| result.ty() != Type::BOOL;
    side.stmts.is_empty()
        || side.stmts.len() <= CHOICES && side.stmts.iter().all(compares) && side.results.iter().all(is_number)
}
