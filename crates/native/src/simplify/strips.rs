//! Recurrences side by side.
//!
//! A loop with state waits in each step for the one before. Where every iteration of a loop around it runs one, say from an initial value of its own, these
//! recurrences do not wait for each other. So the loop around goes by *strips* of its iterations, and a strip takes each step for all of them before the
//! next, in vector lanes:
//!
//! ```text
//! for i < n {                                      for strip < strips {
//!   e = get x i                                      e = for j < rows { get x (base + j) }
//!   y = for k < m with s = e { .. yield t }    =>    y = for k < m with s = e { t = for j < rows { .. get s j .. } yield t }
//!   ..                                               for j < rows { .. get y j .. }
//! }                                                }
//! ```
//!
//! What an iteration computes and wants later is an element of an array of its strip; what is alike in all iterations stays a number.

use super::segments::{lasts, take_all_inside};
use crate::cores::joins;
use crate::flow::walk::{count_uses, for_each_binder, free_vars, Renaming};
use crate::flow::*;
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use gradus_source::Span;
use rustc_hash::{FxHashMap, FxHashSet};

/// Fewer iterations are done one by one.
const FEW: i64 = 8;
/// A strip has at most so many iterations.
pub const WIDEST: i64 = 128;
/// A strip whose loops do not go by segments keeps at most so many numbers of its steps: 16 megabytes ..
const KEPT: i64 = 1 << 21;
/// .. and where that is less than so many iterations, they are done one by one, too.
const NARROWEST: i64 = 16;

/// So many numbers are a line of the caches.
const LINE: i64 = 8;

/// What the index of a loop over strips is called.
const STRIP: &str = "strip";

/// The loop as it was before, if a statement is the choice between doing its iterations one by one and by strips.
pub fn one_by_one(stmt: &Stmt) -> Option<&Block> {
    let Op::If { then, otherwise, .. } = &stmt.op else { return None };
    let over_strips = |stmt: &Stmt| matches!(&stmt.op, Op::For(l) if is_over_strips(l));
    otherwise.stmts.iter().any(over_strips).then_some(then)
}

pub fn is_over_strips(l: &For) -> bool {
    l.index.name == Name::new(STRIP)
}

pub fn run(block: &mut Block) {
    let lasts = lasts(block);
    run_inside(block, &lasts)
}

/// `lasts`: see [`super::segments`].
fn run_inside(block: &mut Block, lasts: &FxHashMap<Var, Atom>) {
    with_stack(|| {
        block.stmts.iter_mut().flat_map(|stmt| stmt.op.blocks_mut()).for_each(|inner| run_inside(inner, lasts));
        let mut out = Vec::with_capacity(block.stmts.len());
        for stmt in std::mem::take(&mut block.stmts) {
            match by_strips(&stmt, lasts) {
                Some(stmts) => out.extend(stmts),
                None => out.push(stmt),
            }
        }
        block.stmts = out;
    })
}

/// Statements that bind the same as a loop of recurrences.
fn by_strips(stmt: &Stmt, lasts: &FxHashMap<Var, Atom>) -> Option<Vec<Stmt>> {
    let Op::For(l) = &stmt.op else { return None };
    l.body.stmts.iter().find_map(recurrence)?;
    if !l.carried.is_empty() {
        let [first, second] = joined_later(stmt, l)?;
        return Some([by_strips(&first, lasts)?, vec![second]].concat());
    }
    let recurrences = Recurrences::of(l)?;
    let mut b = Builder::new();
    b.span = stmt.span;
    let renamed = || stmt.binds.iter().map(|v| v.refresh()).collect();
    let mut widest = Atom::Int(WIDEST);
    let mut cond = b.scalar(Prim::Less, &[l.count, Atom::Int(FEW)]);
    let mut otherwise = recurrences.by_strips(stmt, l, widest, renamed())?;
    if let Some(kept) = recurrences.kept.filter(|_| !take_all_inside(&otherwise, lasts)) {
        widest = width_to_keep(&mut b, kept);
        let is_narrow = b.scalar(Prim::Less, &[widest, Atom::Int(NARROWEST)]);
        cond = b.select(cond, Atom::Bool(true), is_narrow);
        otherwise = recurrences.by_strips(stmt, l, widest, renamed())?;
    }
    match cond {
        Atom::Bool(true) => return None,
        Atom::Bool(false) => b.stmts(recurrences.by_strips(stmt, l, widest, stmt.binds.clone())?.stmts),
        cond => {
            let results = stmt.binds.iter().map(|v| Atom::Var(*v)).collect();
            let then = Renaming::default().block(&Block { stmts: vec![stmt.clone()], results });
            b.bind(stmt.binds.clone(), Op::branch(cond, then, otherwise, l.replayed));
        }
    }
    Some(b.pop(Vec::new()).stmts)
}

/// What is known of a loop of recurrences that may go by strips.
struct Recurrences {
    /// All that an iteration binds.
    inside: FxHashSet<Var>,
    /// How many numbers are kept of so many steps.
    kept: Option<(Atom, usize)>,
    /// Whether nothing in the loop can fail.
    safe: bool,
}

impl Recurrences {
    fn of(l: &For) -> Option<Recurrences> {
        let mut inside = FxHashSet::from_iter([l.index]);
        for_each_binder(&l.body, &mut |v| {
            inside.insert(v);
        });
        let is_known = |atom: Atom| atom.var().is_none_or(|v| !inside.contains(&v));
        let all = l.body.stmts.iter().filter_map(recurrence).filter(|inner| is_known(inner.count));
        let kept = all.map(|inner| (inner.count, inner.body.results.len() - inner.carried.len()));
        let kept = kept.max_by_key(|(_, kept)| *kept)?;
        let mut sites = Vec::new();
        let is_plain = is_plain(&l.body, &mut sites) && l.body.results.iter().all(|a| a.ty() == Type::REAL);
        // Iterations fail in another order, which nobody can tell if all fail alike.
        let in_order = sites.windows(2).all(|two| two[0] == two[1]);
        let kept = Some(kept).filter(|(_, kept)| *kept > 0);
        (is_plain && in_order).then_some(Recurrences { inside, kept, safe: sites.is_empty() })
    }

    /// The loop over strips of at most so many iterations. What the loop collects it puts into arrays, which get these names.
    fn by_strips(&self, stmt: &Stmt, l: &For, widest: Atom, binds: Vec<Var>) -> Option<Block> {
        let mut b = Builder::new();
        b.span = stmt.span;
        // What is added to negative zero stays what it is.
        let starts: Vec<Atom> = binds.iter().map(|_| b.fill(vec![l.count], Atom::Real(-0.0))).collect();
        let sums: Vec<Var> = binds.iter().zip(starts).map(|(bind, start)| b.open(bind.name, start)).collect();
        let (size, strips) = cut(&mut b, l.count, widest);
        b.push();
        let strip = Var::fresh(STRIP, Type::INT);
        let base = b.scalar(Prim::MulInt, &[strip.into(), size]);
        let rest = b.scalar(Prim::SubInt, &[l.count, base]);
        let rows = lesser(&mut b, size, rest);
        let mut body = Block { stmts: l.body.stmts.clone(), results: Vec::new() };
        for (acc, value) in sums.iter().zip(&l.body.results) {
            let op = Op::Add { acc: *acc, index: vec![l.index.into()], value: *value };
            body.stmts.push(Stmt { binds: Vec::new(), op, span: stmt.span });
        }
        let Recurrences { inside, safe, .. } = self;
        let (inside, safe) = (inside.clone(), *safe);
        let homes = FxHashMap::from_iter([(l.index, Home::From(base))]);
        let mut writer = Strip { inside, alike: FxHashSet::default(), homes, rows, span: stmt.span, safe };
        b.stmts(writer.block(&body)?.stmts);
        let body = b.pop(Vec::new());
        b.for_loop(strip, strips, Vec::new(), body);
        sums.iter().zip(&binds).for_each(|(acc, bind)| b.bind(vec![*bind], Op::Freeze { acc: *acc }));
        Some(b.pop(binds.into_iter().map(Atom::Var).collect()))
    }
}

/// A loop that looks for an extreme as two: the first collects what there is to choose from.
fn joined_later(stmt: &Stmt, l: &For) -> Option<[Stmt; 2]> {
    joins(l)?;
    let (mut first, mut second) = (l.body.clone(), Block::default());
    let index = l.index.refresh();
    let mut arrays = Vec::new();
    for i in 0..l.carried.len() {
        let next = first.results[i].var()?;
        let at = first.stmts.iter().position(|stmt| stmt.binds == [next])?;
        let mut join = first.stmts.remove(at);
        let Op::Scalar { args, .. } = &mut join.op else { return None };
        let (array, element) = (Var::fresh("a", args[1].ty().in_array()), Var::fresh("e", args[1].ty()));
        first.results[i] = std::mem::replace(&mut args[1], element.into());
        let op = Op::Get { array, index: vec![index.into()] };
        second.stmts.extend([Stmt { binds: vec![element], op, span: stmt.span }, join]);
        second.results.push(next.into());
        arrays.push(array);
    }
    let (states, collected) = stmt.binds.split_at(l.carried.len());
    let first = For { carried: Vec::new(), body: first, ..l.clone() };
    let second = For { index, body: second, ..l.clone() };
    let first = Stmt { binds: [&arrays, collected].concat(), op: Op::For(Box::new(first)), span: stmt.span };
    Some([first, Stmt { binds: states.to_vec(), op: Op::For(Box::new(second)), span: stmt.span }])
}

/// How many iterations a strip may have of which so many steps each keep so many numbers.
fn width_to_keep(b: &mut Builder, (steps, numbers): (Atom, usize)) -> Atom {
    let is_positive = b.scalar(Prim::Less, &[Atom::Int(0), steps]);
    let steps = b.select(is_positive, steps, Atom::Int(1));
    let room = b.scalar(Prim::DivInt, &[Atom::Int(KEPT / numbers as i64), steps]);
    lesser(b, room, Atom::Int(WIDEST))
}

/// The size of strips, but for the last, which may have less, and how many there are.
fn cut(b: &mut Builder, count: Atom, widest: Atom) -> (Atom, Atom) {
    let divided = |b: &mut Builder, by: Atom| {
        let less = b.scalar(Prim::SubInt, &[by, Atom::Int(1)]);
        let sum = b.scalar(Prim::AddInt, &[count, less]);
        b.scalar(Prim::DivInt, &[sum, by])
    };
    // As many strips as there must be, of sizes as equal as can be, but such that rows of their numbers begin where lines of the caches do.
    let least = divided(b, widest);
    let size = divided(b, least);
    let lines = b.scalar(Prim::AddInt, &[size, Atom::Int(LINE - 1)]);
    let lines = b.scalar(Prim::DivInt, &[lines, Atom::Int(LINE)]);
    let size = b.scalar(Prim::MulInt, &[lines, Atom::Int(LINE)]);
    (size, divided(b, size))
}

fn lesser(b: &mut Builder, one: Atom, other: Atom) -> Atom {
    let cond = b.scalar(Prim::Less, &[one, other]);
    b.select(cond, one, other)
}

/// A loop whose steps can be taken for many iterations of a loop around it at once, and wait for each other if they are not.
fn recurrence(stmt: &Stmt) -> Option<&For> {
    let Op::For(l) = &stmt.op else { return None };
    let only_joins = l.body.results.len() == l.carried.len() && joins(l).is_some();
    let waits = !l.carried.is_empty() && !only_joins;
    (waits && are_steps(l)).then_some(l)
}

/// Whether what a loop does can be done for many iterations of a loop around it at once.
fn are_steps(l: &For) -> bool {
    l.body.results.iter().all(|result| !result.ty().is_counted()) && l.body.stmts.iter().all(has_lanes)
}

/// Whether a statement of a recurrence can run in lanes.
fn has_lanes(stmt: &Stmt) -> bool {
    with_stack(|| match &stmt.op {
        Op::Scalar { .. } | Op::Select { .. } | Op::Copy { .. } | Op::Stop { .. } | Op::Dim { .. } => true,
        Op::Get { .. } | Op::Open { .. } | Op::Freeze { .. } => stmt.binds.iter().all(|v| !v.ty.is_counted()),
        Op::Add { value, .. } => !value.ty().is_counted(),
        Op::Check { .. } => true,
        Op::If { then, otherwise, .. } => {
            let is_simple = |stmt: &Stmt| !matches!(stmt.op, Op::For(_)) && has_lanes(stmt);
            [then, otherwise].into_iter().all(|side| side.stmts.iter().all(is_simple))
        }
        Op::For(_) => recurrence(stmt).is_some(),
        _ => false,
    })
}

/// Whether all of a block can be done for one iteration after the other and back; collects where it can fail.
fn is_plain(block: &Block, sites: &mut Vec<(Failure, Span)>) -> bool {
    with_stack(|| {
        block.stmts.iter().all(|stmt| {
            if let Op::Check { failure, .. } = stmt.op {
                sites.push((failure, stmt.span));
            }
            let apart = matches!(
                stmt.op,
                Op::Call { .. }
                    | Op::While(_)
                    | Op::Plug { .. }
                    | Op::Push { .. }
                    | Op::Pop { .. }
                    | Op::Digits { .. }
                    | Op::Product(_)
            );
            let boxes = stmt.binds.iter().any(|v| v.ty.shape().is_some());
            !apart && !boxes && stmt.op.blocks().all(|inner| is_plain(inner, sites))
        })
    })
}

/// Where the strip has what an iteration calls by a name.
#[derive(Clone, Copy)]
enum Home {
    /// The number of the iteration itself, counted from here.
    From(Atom),
    /// An element of an array.
    Array(Var),
    /// A column of a matrix.
    Column(Var),
    /// An element of an accumulator.
    Sum(Var),
}

/// Writes the iterations of a strip.
struct Strip {
    /// All that the iterations bind.
    inside: FxHashSet<Var>,
    /// What of that is the same in all of them.
    alike: FxHashSet<Var>,
    homes: FxHashMap<Var, Home>,
    /// How many iterations it has.
    rows: Atom,
    /// Of the loop that is being written.
    span: Span,
    /// Nothing can fail, so what is alike may be read before.
    safe: bool,
}

impl Strip {
    /// A block of the iterations, for all of them: its results are arrays.
    fn block(&mut self, block: &Block) -> Option<Block> {
        with_stack(|| {
            let mut b = Builder::new();
            b.span = self.span;
            let mut segment = Segment { stmts: Vec::new(), wanted: count_uses(block) };
            for (at, stmt) in block.stmts.iter().enumerate() {
                match &stmt.op {
                    Op::For(l) if self.has_steps(stmt) => {
                        self.flush(&mut segment, &mut b)?;
                        self.steps(l, stmt, &mut b)?;
                    }
                    Op::Open { init } if self.stays_open(stmt.binds[0], &block.stmts[at + 1..]) => {
                        if !self.is_alike(*init) {
                            self.flush(&mut segment, &mut b)?;
                        }
                        let start = match init.var().and_then(|v| self.homes.get(&v)) {
                            Some(Home::Column(matrix)) => (*matrix).into(),
                            _ => self.array(*init, &mut b)?,
                        };
                        let sum = b.open(stmt.binds[0].name, start);
                        self.homes.insert(stmt.binds[0], Home::Sum(sum));
                    }
                    Op::Freeze { acc } if self.homes.contains_key(acc) => {
                        if segment.stmts.iter().any(|stmt| stmt.mentions(*acc)) {
                            self.flush(&mut segment, &mut b)?;
                        }
                        let Home::Sum(sum) = self.homes[acc] else { return None };
                        let frozen = b.freeze(sum).var()?;
                        let is_column = frozen.ty.rank > 1;
                        self.homes
                            .insert(stmt.binds[0], if is_column { Home::Column(frozen) } else { Home::Array(frozen) });
                    }
                    Op::Fill { dims, value } if self.is_kept_open(stmt, &block.stmts[at + 1..]) => {
                        let matrix = b.fill([&dims[..], &[self.rows]].concat(), *value).var()?;
                        self.homes.insert(stmt.binds[0], Home::Column(matrix));
                    }
                    _ if self.is_same_for_all(stmt) => {
                        self.alike.extend(stmt.binds.iter().copied());
                        b.stmt(stmt.clone());
                    }
                    _ => segment.stmts.push(stmt.clone()),
                }
                stmt.for_each_use(&mut |v| *segment.wanted.entry(v).or_default() -= 1);
            }
            self.flush(&mut segment, &mut b)?;
            let results: Option<Vec<Atom>> = block.results.iter().map(|result| self.array(*result, &mut b)).collect();
            Some(b.pop(results?))
        })
    }

    fn is_alike(&self, atom: Atom) -> bool {
        atom.var().is_none_or(|v| !self.inside.contains(&v) || self.alike.contains(&v))
    }

    /// Whether a statement is to be done step by step for all iterations: a recurrence, or a loop that reads what one has left, a row for each step.
    fn has_steps(&self, stmt: &Stmt) -> bool {
        let Op::For(l) = &stmt.op else { return false };
        let mut reads_column = false;
        stmt.for_each_use(&mut |v| reads_column |= matches!(self.homes.get(&v), Some(Home::Column(_))));
        let follows = l.carried.is_empty() && reads_column && are_steps(l);
        self.is_alike(l.count) && (recurrence(stmt).is_some() || follows)
    }

    /// Whether a statement does the same in all iterations, so that once is enough.
    fn is_same_for_all(&self, stmt: &Stmt) -> bool {
        let is_simple = match &stmt.op {
            // Its divisor has perhaps not been looked at.
            Op::Scalar { prim, .. } => !matches!(prim, Prim::DivInt | Prim::ModInt),
            Op::Select { .. } | Op::Check { .. } => true,
            Op::Get { .. } => self.safe && !stmt.binds[0].ty.is_counted(),
            _ => false,
        };
        let mut alike = true;
        stmt.op.for_each_operand(&mut |a| alike &= self.is_alike(a));
        is_simple && alike
    }

    /// Whether an accumulator is still open where a loop of steps begins.
    fn stays_open(&self, acc: Var, after: &[Stmt]) -> bool {
        let frozen = |stmt: &Stmt| matches!(stmt.op, Op::Freeze { acc: other } if other == acc);
        let next = after.iter().find(|stmt| frozen(stmt) || self.has_steps(stmt));
        next.is_some_and(|stmt| !frozen(stmt))
    }

    /// Whether a vector of numbers that are alike is what such an accumulator begins with.
    fn is_kept_open(&self, fill: &Stmt, after: &[Stmt]) -> bool {
        let mut alike = fill.binds[0].ty.rank == 1;
        fill.op.for_each_operand(&mut |a| alike &= self.is_alike(a));
        let opens = |stmt: &Stmt| matches!(stmt.op, Op::Open { init } if init == fill.binds[0].into());
        let opened = after.iter().position(opens);
        alike && opened.is_some_and(|at| self.stays_open(after[at].binds[0], &after[at + 1..]))
    }

    /// The array of a number, which each iteration has.
    fn array(&self, atom: Atom, b: &mut Builder) -> Option<Atom> {
        match atom {
            _ if self.is_alike(atom) => Some(b.fill(vec![self.rows], atom)),
            Atom::Var(v) => match self.homes.get(&v)? {
                Home::Array(array) => Some((*array).into()),
                Home::From(_) | Home::Column(_) | Home::Sum(_) => None,
            },
            _ => None,
        }
    }

    /// A recurrence, taken by all iterations.
    fn steps(&mut self, l: &For, stmt: &Stmt, b: &mut Builder) -> Option<()> {
        let mut carried = Vec::new();
        for (var, init) in &l.carried {
            let state = Var::fresh(var.name, var.ty.in_array());
            carried.push((state, self.array(*init, b)?));
            self.homes.insert(*var, Home::Array(state));
        }
        self.alike.insert(l.index);
        let around = std::mem::replace(&mut self.span, stmt.span);
        let body = self.block(&l.body)?;
        self.span = around;
        let binds: Vec<Var> = stmt.binds.iter().map(|v| Var::fresh(v.name, v.ty.in_array())).collect();
        for (i, (var, array)) in stmt.binds.iter().zip(&binds).enumerate() {
            let home = if i < carried.len() { Home::Array(*array) } else { Home::Column(*array) };
            self.homes.insert(*var, home);
        }
        let op = Op::For(Box::new(For { index: l.index, count: l.count, carried, body, replayed: l.replayed }));
        b.stmt(Stmt { binds, op, span: stmt.span });
        Some(())
    }

    /// Writes a loop over the iterations that does what has been put together for it.
    fn flush(&mut self, segment: &mut Segment, b: &mut Builder) -> Option<()> {
        if segment.stmts.is_empty() {
            return Some(());
        }
        let j = Var::fresh("j", Type::INT);
        let mut body = Block { stmts: std::mem::take(&mut segment.stmts), results: Vec::new() };
        let wanted = body
            .stmts
            .iter()
            .flat_map(|stmt| &stmt.binds)
            .filter(|v| segment.wanted.get(v).is_some_and(|uses| *uses > 0));
        let wanted: Vec<Var> = wanted.copied().collect();
        if wanted.iter().any(|v| v.ty.is_counted() || v.ty.accumulator) {
            return None;
        }
        body.results = wanted.iter().map(|v| Atom::Var(*v)).collect();
        let mut reads = Vec::new();
        for var in free_vars(&body).into_iter().filter(|v| !self.is_alike((*v).into())) {
            let op = match self.homes.get(&var)? {
                Home::From(base) => Op::Scalar { prim: Prim::AddInt, args: vec![*base, j.into()] },
                Home::Array(array) => Op::Get { array: *array, index: vec![j.into()] },
                Home::Column(_) | Home::Sum(_) => continue,
            };
            reads.push(Stmt { binds: vec![var], op, span: self.span });
        }
        self.move_in(&mut body, j)?;
        body.stmts.splice(0..0, reads);
        let l = For { index: j, count: self.rows, carried: Vec::new(), body, replayed: false };
        let arrays: Vec<Var> = wanted.iter().map(|v| Var::fresh(v.name, v.ty.in_array())).collect();
        b.bind(arrays.clone(), Renaming::default().op(&Op::For(Box::new(l))));
        self.homes.extend(wanted.into_iter().zip(arrays.into_iter().map(Home::Array)));
        Some(())
    }

    /// Lets iteration `j` look where the strip has its columns and sums.
    fn move_in(&self, block: &mut Block, j: Var) -> Option<()> {
        with_stack(|| {
            for stmt in &mut block.stmts {
                match &mut stmt.op {
                    Op::Get { array, index } => {
                        if let Some(Home::Column(matrix)) = self.homes.get(array) {
                            *array = *matrix;
                            index.push(j.into());
                        }
                    }
                    Op::Dim { array, .. } => {
                        if let Some(Home::Column(matrix)) = self.homes.get(array) {
                            *array = *matrix;
                        }
                    }
                    Op::Add { acc, index, .. } => {
                        if let Some(Home::Sum(sum)) = self.homes.get(acc) {
                            *acc = *sum;
                            index.push(j.into());
                        }
                    }
                    _ => {}
                }
                let mut moved = true;
                stmt.op.for_each_operand(&mut |a| {
                    let home = a.var().and_then(|v| self.homes.get(&v));
                    moved &= !matches!(home, Some(Home::Column(_) | Home::Sum(_)));
                });
                if !moved {
                    return None;
                }
                for inner in stmt.op.blocks_mut() {
                    self.move_in(inner, j)?;
                }
            }
            Some(())
        })
    }
}

/// Statements of the iterations that are to be done in one loop.
struct Segment {
    stmts: Vec<Stmt>,
    /// How often each variable is used in the block by what is not yet in a segment.
    wanted: FxHashMap<Var, usize>,
}
