//! Loops as C. A loop without state whose body is straight-line arithmetic is marked for vectorisation, with its sums as reductions.

use super::cells::is_box;
use super::checks::checks_apart;
use super::emit::{Emitter, RowOf};
use super::extremes::search;
use super::late::{neighbours, Late};
use super::parts;
use super::vectors::{early, has_booleans, has_functions, in_lanes, is_slow_alone, vectors, Early, STRIP};
use crate::checks::{checks_of, BITS_OF_LENGTH};
use crate::flow::*;
use crate::in_place;
use crate::ownership::Ownership;
use crate::peel;
use crate::spread::{spread, width};
use crate::steps::{is_bounded, CHUNK, FEW, LARGE};
use crate::straight;
use gradus_core::Prim;
use gradus_source::Span;

/// The arrays that a loop fills.
#[derive(Clone, Copy)]
pub(super) struct Collected<'a> {
    pub(super) arrays: &'a [Var],
    /// For each the lengths of rows that are lists of numbers, see [`spread`].
    pub(super) rows: &'a [Option<Vec<usize>>],
    /// Whether all of them are there before the first row is.
    pub(super) known: bool,
}

/// A loop with sums that runs fewer times than this is no faster in lanes.
const SHORT: i64 = 12;
/// Statements of a body that may stand twice in the program.
pub(super) const SIMPLE: usize = 16;

impl Emitter<'_> {
    /// The state variables, initialised; the names of the variables that hold the state between iterations.
    fn state(&mut self, carried: &[(Var, Atom)], binds: &[Var], ownership: &mut Ownership, span: Span) -> Vec<String> {
        let mut names = Vec::new();
        for ((state, init), bind) in carried.iter().zip(binds) {
            let init = match self.sole.contains(*state) {
                true => self.own(*init, ownership, span),
                false => self.take(*init, ownership),
            };
            let (ty, name) = (self.ty(bind.ty), self.name(*bind));
            self.line(&format!("{ty} {name} = {init};"));
            names.push(name);
        }
        names
    }

    /// At the start of an iteration the state gets the names that the body uses.
    fn enter(&mut self, carried: &[(Var, Atom)], state: &[String], body: &Block) -> Vec<Var> {
        for stmt in &body.stmts {
            let extreme = match &stmt.op {
                Op::Scalar { prim: Prim::Maximum | Prim::Minimum, args } => args.first().and_then(|a| a.var()),
                _ => None,
            };
            if carried.iter().any(|(var, _)| Some(*var) == extreme) {
                self.so_far.extend(&stmt.binds);
            }
        }
        for ((var, _), outer) in carried.iter().zip(state) {
            let (ty, name) = (self.ty(var.ty), self.name(*var));
            self.line(&format!("{ty} {name} = {outer};"));
        }
        carried.iter().map(|(v, _)| *v).collect()
    }

    pub(super) fn for_loop(&mut self, l: &For, binds: &[Var], ownership: &mut Ownership, span: Span) {
        let (state_binds, arrays) = binds.split_at(l.carried.len());
        let count = self.atom(l.count);
        let state = self.state(&l.carried, state_binds, ownership, span);
        let (spread, rows) = spread(l);
        for (array, row) in arrays.iter().zip(&rows) {
            let (ty, name) = (self.ty(array.ty), self.name(*array));
            let dims: String = match row {
                Some(dims) => dims.iter().map(|n| format!(", {count} > 0 ? {n} : 0")).collect(),
                None => ", 0".repeat(array.ty.rank as usize - 1),
            };
            self.line(&format!("{ty} {name} = {{0, 0, {{{count}{dims}}}}};"));
        }
        let places = in_place::of(l, arrays, ownership);
        self.in_place.extend(arrays.iter().zip(places).filter_map(|(array, old)| Some((*array, old?))));
        let into = Collected { arrays, rows: &rows, known: false };
        let plan = self.plan;
        let chunked = plan.of(l);
        if let Some(chunked) = chunked {
            self.chunks(&spread, chunked, &state, &Collected { known: true, ..into }, &count, span);
            if chunked.once {
                return;
            }
            self.line("} else {");
            self.depth += 1;
        }
        for (array, row) in arrays.iter().zip(&rows) {
            if row.is_some() {
                self.make(*array, span);
            } else {
                self.line(&format!("if ({count} <= 0) {{"));
                self.depth += 1;
                self.make(*array, span);
                self.depth -= 1;
                self.line("}");
            }
        }
        self.iterations(&spread, &state, &into, ["0", &count], span);
        if chunked.is_some() {
            self.depth -= 1;
            self.line("}");
        }
    }

    /// An iteration at one end of a loop, if it is among those from one to before another.
    fn edge(&mut self, one: &For, into: &Collected<'_>, [from, to]: [&str; 2], number: &str) {
        let index = self.name(one.index);
        self.line(&format!("if ({from} <= {number} && {number} < {to}) {{"));
        self.depth += 1;
        self.line(&format!("int64_t {index} = {number};"));
        let targets = self.rows(into.arrays, into.rows, &index);
        self.nested(&one.body, &[], &targets);
        self.depth -= 1;
        self.line("}");
    }

    /// A loop from one iteration to before another.
    pub(super) fn iterations(
        &mut self,
        l: &For,
        state: &[String],
        into: &Collected<'_>,
        [from, to]: [&str; 2],
        span: Span,
    ) {
        let (index, rows) = (self.name(l.index), into.rows);
        if let Some(apart) = peel::peeled(l).filter(|apart| runs_in_lanes(&apart.others)) {
            for (i, one) in apart.first.iter().enumerate() {
                self.edge(one, into, [from, to], &i.to_string());
            }
            let (second, edge) = (format!("{index}_second"), apart.first.len());
            // Beyond the end, if there is nothing in the middle: a constant start is worth more to the C compiler.
            self.line(&format!("int64_t {second} = {from} > {edge} ? {from} : {edge};"));
            if apart.last.is_empty() {
                return self.iterations(&apart.others, state, into, [&second, to], span);
            }
            let (end, count) = (format!("{index}_last"), self.atom(l.count));
            self.line(&format!("int64_t {end} = {count} - {};", apart.last.len()));
            self.line(&format!("{end} = {end} < {to} ? {end} : {to};"));
            self.iterations(&apart.others, state, into, [&second, &end], span);
            for (behind, one) in apart.last.iter().enumerate().rev() {
                self.edge(one, into, [&second, to], &format!("{count} - {}", behind + 1));
            }
            return;
        }
        let answered = peel::by_answer(l).filter(|(_, sides)| sides.iter().any(runs_in_lanes));
        if let Some((answer, sides)) = answered {
            let answer = self.atom(answer);
            for (side, opening) in sides.iter().zip([format!("if ({answer}) {{"), "} else {".into()]) {
                self.line(&opening);
                self.depth += 1;
                self.iterations(side, state, into, [from, to], span);
                self.depth -= 1;
            }
            return self.line("}");
        }
        if !runs_in_lanes(l) {
            let is_better = |part: &For| runs_in_lanes(part) || parts::periods(part, rows, self.module).is_some();
            let cut = parts::cut(l, self.module).filter(|cut| is_better(&cut.below) || is_better(&cut.above));
            if let Some(cut) = cut {
                return self.cut_loop(&cut, state, into, [from, to], span);
            }
            if let Some(periods) = parts::periods(l, rows, self.module) {
                return self.in_periods(l, &periods, into, [from, to], span);
            }
        }
        self.one_by_one(l, state, into, [from, to], span);
    }

    /// A loop as it is, in vector lanes if it can.
    pub(super) fn one_by_one(
        &mut self,
        l: &For,
        state: &[String],
        into: &Collected<'_>,
        [from, to]: [&str; 2],
        span: Span,
    ) {
        let Collected { arrays, rows, known } = *into;
        let index = self.name(l.index);
        self.bits.insert(l.index, BITS_OF_LENGTH);
        let place = self.place(span);
        let straight = straightened(l);
        let l = straight.as_ref().unwrap_or(l);
        let split = checks_apart(l);
        if let Some((checks, _)) = &split {
            self.check_loop(checks, l.index, [from, to]);
        }
        let l = split.as_ref().map_or(l, |(_, rest)| rest);
        // Steps are counted for many iterations at once, so that an inner loop has nothing else to do.
        let bounded = is_bounded(l);
        if bounded {
            self.line(&format!("if (GR_RARE({to} - {from} > {LARGE})) {{"));
            self.line(&format!("  GR_STEPS({to} - {from}, {place});"));
            self.line("}");
        }
        let few = bounded || matches!(l.count, Atom::Int(n) if n <= FEW);
        let (start, end) =
            if few { (from.to_string(), to.to_string()) } else { (format!("{index}_from"), format!("{index}_to")) };
        if !few {
            self.line(&format!("for (int64_t {start} = {from}, {end}; {start} < {to}; {start} = {end}) {{"));
            self.depth += 1;
            self.line(&format!("{end} = {to} - {start} > {CHUNK} ? {start} + {CHUNK} : {to};"));
            self.line(&format!("GR_STEPS({end} - {start}, {place});"));
        }
        let early = if vectors(l).is_none() { early(l) } else { None };
        let l = early.as_ref().map_or(l, |early| &early.rest);
        // A parameter that accumulates one number is a pointer, which no lane has a copy of.
        let vectors = vectors(l).filter(|found| found.sums.iter().all(|acc| !self.pointers.contains(acc)));
        let (kept, late) = match &vectors {
            Some(vectors) => vectors.kept(l),
            None => (l.clone(), Vec::new()),
        };
        let by_strips = early.is_some() || !late.is_empty();
        let (start, end) = if by_strips { self.strips(&index, &start, &end, &late) } else { (start, end) };
        if let Some(early) = &early {
            self.compute_early(early, &index, &start, &end);
        }
        let (kept, saved) = states_saved_first(kept, arrays, rows);
        let run = |s: &mut Self, first: &str, last: &str| {
            s.line(&format!("for (int64_t {index} = {first}; {index} < {last}; {index}++) {{"));
            s.depth += 1;
            let params = s.enter(&l.carried, state, &l.body);
            for (array, state) in &saved {
                let state = s.name(*state);
                s.collect_row(*array, &state, &index, span);
            }
            // The pieces of a block do not know where its rows are to be.
            if !s.is_cut(&kept.body) {
                s.place_rows(&kept, into, &saved);
            }
            let (arrays, rows): (Vec<Var>, Vec<Option<Vec<usize>>>) = arrays
                .iter()
                .copied()
                .zip(rows.iter().cloned())
                .filter(|(a, _)| saved.iter().all(|s| s.0 != *a))
                .unzip();
            let mut targets = [state.to_vec(), s.rows(&arrays, &rows, &index)].concat();
            targets
                .extend(late.iter().flat_map(Late::buffers).map(|(_, buffer)| format!("{buffer}[{index} - {start}]")));
            s.loops_around += 1;
            s.block(&kept.body, &params, &targets);
            s.loops_around -= 1;
            for (array, _) in arrays.iter().zip(&rows).filter(|(_, row)| row.is_none()) {
                let row = format!("row_{}", s.name(*array));
                if known {
                    s.copy_row(*array, &row, &index);
                } else {
                    s.collect_row(*array, &row, &index, span);
                }
                s.line(&format!("gr_drop(self, {row}.b);"));
            }
            s.depth -= 1;
            s.line("}");
        };
        match &vectors {
            None => {
                let search = search(l);
                let rest = search.map(|search| self.search(&search, &index, state, [&start, &end]));
                run(self, rest.as_ref().unwrap_or(&start), &end);
            }
            Some(vectors) => {
                let sums: String =
                    vectors.sums.iter().map(|acc| format!(" reduction(+ : {})", self.name(*acc))).collect();
                // The C compiler adds the lanes up one after another, however few of them were used.
                let short = !sums.is_empty() && l.body.stmts.len() <= SIMPLE;
                if short {
                    self.line(&format!("if ({end} - {start} < {SHORT}) {{"));
                    self.depth += 1;
                    run(self, &start, &end);
                    self.depth -= 1;
                    self.line("} else {");
                    self.depth += 1;
                }
                let wide = is_slow_alone(&l.body).then(|| format!("{index}_wide"));
                if let Some(wide) = &wide {
                    // The C compiler would take iterations that do not fill four lanes one by one.
                    self.line(&format!("int64_t {wide} = {end} > {start} ? {end} - (({end} - {start}) & 3) : {end};"));
                }
                self.in_lanes = true;
                // For the sake of booleans, of which one vector has many, the C compiler would do everything else many times over.
                let few = if has_booleans(&kept) { " safelen(8)" } else { "" };
                // Elementary functions of eight numbers take little longer than of four, which C compilers prefer on some machines; short loops inside of others often
                // do not have eight.
                let many = if has_functions(&l.body) && self.loops_around == 0 { " simdlen(8)" } else { "" };
                self.line(&format!("#pragma omp simd{few}{many}{sums}"));
                run(self, &start, wide.as_ref().unwrap_or(&end));
                if let Some(wide) = wide {
                    self.line(&format!("#pragma omp simd safelen(2){sums}"));
                    run(self, &wide, &end);
                }
                self.in_lanes = false;
                if short {
                    self.depth -= 1;
                    self.line("}");
                }
            }
        }
        neighbours(&late).for_each(|near| self.add_near(near, l.index, [&start, &end]));
        if by_strips {
            self.depth -= 1;
            self.line("}");
        }
        if !few {
            self.depth -= 1;
            self.line("}");
        }
    }

    /// Opens a loop over strips of iterations, with buffers for what is added after each; gives the ends of a strip.
    fn strips(&mut self, index: &str, start: &str, end: &str, late: &[Late]) -> (String, String) {
        let (from, to) = (format!("{index}_strip"), format!("{index}_end"));
        self.line(&format!("for (int64_t {from} = {start}, {to}; {from} < {end}; {from} = {to}) {{"));
        self.depth += 1;
        self.line(&format!("{to} = {end} - {from} > {STRIP} ? {from} + {STRIP} : {end};"));
        for (ty, buffer) in late.iter().flat_map(Late::buffers) {
            let ty = self.ty(ty);
            self.line(&format!("{ty} {buffer}[{STRIP}];"));
        }
        (from, to)
    }

    /// Computes for a strip of iterations what does not run in lanes.
    fn compute_early(&mut self, early: &Early, index: &str, start: &str, end: &str) {
        let first = self.name(early.start);
        self.line(&format!("int64_t {first} = {start};"));
        for (var, all) in &early.kept {
            let (number, array, name) = (self.ty(var.ty), self.ty(all.ty), self.name(*all));
            self.line(&format!("{number} {name}_room[{STRIP}];"));
            self.line(&format!("{array} {name} = {{{name}_room, 0, {{{STRIP}}}}};"));
        }
        self.line(&format!("for (int64_t {index} = {start}; {index} < {end}; {index}++) {{"));
        self.depth += 1;
        early.stmts.iter().for_each(|stmt| self.plain(stmt));
        for (var, all) in &early.kept {
            let (name, value) = (self.name(*all), self.name(*var));
            self.line(&format!("{name}_room[{index} - {start}] = {value};"));
        }
        self.depth -= 1;
        self.line("}");
    }

    /// Where the body leaves what is collected: numbers go to their places, rows of unknown shape to a variable first.
    pub(super) fn rows(&mut self, arrays: &[Var], rows: &[Option<Vec<usize>>], index: &str) -> Vec<String> {
        let mut targets = Vec::new();
        for (array, row) in arrays.iter().zip(rows) {
            let name = self.name(*array);
            match row {
                Some(_) => {
                    let width = width(row);
                    targets.extend((0..width).map(|k| match (width, k) {
                        (1, _) => format!("{name}.p[{index}]"),
                        _ => format!("{name}.p[{index} * {width} + {k}]"),
                    }));
                }
                None => {
                    let row = self.ty(array.ty.at(1));
                    self.line(&format!("{row} row_{name};"));
                    targets.push(format!("row_{name}"));
                }
            }
        }
        targets
    }

    /// Says of the arrays that a body makes for a row, or for the state that is saved next, to be made there.
    fn place_rows(&mut self, l: &For, into: &Collected<'_>, saved: &[(Var, Var)]) {
        let index = self.name(l.index);
        let (states, collected) = l.body.results.split_at(l.carried.len());
        let mut place = |result: Atom, of: RowOf| {
            let made = result.var().filter(|v| l.body.stmts.iter().any(|s| s.binds.contains(v) && makes_array(&s.op)));
            if let Some(var) = made {
                self.rows.insert(var, of);
            }
        };
        let others = into.arrays.iter().zip(into.rows).filter(|(array, _)| saved.iter().all(|(s, _)| s != *array));
        let mut collected = collected.iter();
        for (array, row) in others {
            let results = collected.by_ref().take(width(row));
            if let (None, Some(result)) = (row, results.last()) {
                if !is_box(array.ty) {
                    place(*result, RowOf { array: *array, row: index.clone(), decides: !into.known });
                }
            }
        }
        for (array, state) in saved {
            let next = l.carried.iter().zip(states).find(|((var, _), _)| var == state);
            if let Some((_, next)) = next {
                place(*next, RowOf { array: *array, row: format!("{index} + 1"), decides: false });
            }
        }
    }

    fn collect_row(&mut self, array: Var, row: &str, index: &str, span: Span) {
        self.make_rows(array, row, span);
        let name = self.name(array);
        self.same_row(&name, array.ty, row, span);
        self.copy_row(array, row, index);
    }

    fn copy_row(&mut self, array: Var, row: &str, index: &str) {
        let name = self.name(array);
        let count = format!("gr_size({row}.d, {}, 1)", array.ty.rank - 1);
        if is_box(array.ty) {
            self.line(&format!("gr_put_all(self, {name}.p + {index} * {count}, {row}.p, {count});"));
        } else {
            // Unless it was made there.
            self.line(&format!("if ({row}.p != {name}.p + {index} * {count})"));
            self.line(&format!("  memcpy({name}.p + {index} * {count}, {row}.p, (size_t){count} * sizeof *{row}.p);"));
        }
    }

    pub(super) fn while_loop(&mut self, l: &While, binds: &[Var], ownership: &mut Ownership, span: Span) {
        let (state_binds, arrays) = binds.split_at(l.carried.len());
        let state = self.state(&l.carried, state_binds, ownership, span);
        for array in arrays {
            let (ty, name) = (self.ty(array.ty), self.name(*array));
            self.line(&format!("{ty} {name};"));
            self.line(&format!("memset(&{name}, 0, sizeof {name});"));
        }
        let place = self.place(span);
        self.line("for (;;) {");
        self.depth += 1;
        self.line(&format!("GR_STEPS(1, {place});"));
        self.line("uint8_t go;");
        let params = self.enter(&l.carried, &state, &l.body);
        let mut targets = vec!["go".to_string()];
        targets.extend(state);
        for array in arrays {
            let name = self.name(*array);
            let row = self.ty(array.ty.at(1));
            self.line(&format!("{row} row_{name};"));
            targets.push(format!("row_{name}"));
        }
        self.loops_around += 1;
        self.block(&l.body, &params, &targets);
        self.loops_around -= 1;
        for array in arrays {
            let name = self.name(*array);
            if array.ty.rank == 1 {
                if is_box(array.ty) {
                    self.line(&format!(
                        "{name}.p = gr_grow_boxes(self, {name}.p, &{name}.b, {name}.d[0], 1, {place});"
                    ));
                } else {
                    self.line(&format!(
                        "{name}.p = gr_grow(self, {name}.p, &{name}.b, {name}.d[0], sizeof *{name}.p, {place});"
                    ));
                }
                self.line(&format!("{name}.p[{name}.d[0]++] = row_{name};"));
            } else {
                self.line(&format!("if ({name}.d[0] == 0) memcpy({name}.d + 1, row_{name}.d, sizeof row_{name}.d);"));
                self.same_row(&name, array.ty, &format!("row_{name}"), span);
                let width = if is_box(array.ty) { "1".into() } else { format!("sizeof *row_{name}.p") };
                let size = format!("gr_size(row_{name}.d, {}, {width})", array.ty.rank - 1);
                let grow = if is_box(array.ty) { "gr_grow_boxes" } else { "gr_grow" };
                self.line(&format!("{name}.p = {grow}(self, {name}.p, &{name}.b, {name}.d[0], {size}, {place});"));
                self.copy_row(*array, &format!("row_{name}"), &format!("{name}.d[0]"));
                self.line(&format!("gr_drop(self, row_{name}.b);"));
                self.line(&format!("{name}.d[0]++;"));
            }
        }
        self.line("if (!go) break;");
        self.depth -= 1;
        self.line("}");
    }
}

/// The loop without the rows that are its state at the start of each iteration, and these: the array that collects it, and the state. They are
/// copied before the body runs, which may then change the state in place.
fn states_saved_first(mut l: For, arrays: &[Var], rows: &[Option<Vec<usize>>]) -> (For, Vec<(Var, Var)>) {
    let mut saved = Vec::new();
    if rows.iter().all(|row| row.is_some()) {
        return (l, saved);
    }
    let mut collected = l.body.results.split_off(l.carried.len()).into_iter();
    for (array, row) in arrays.iter().zip(rows) {
        let results: Vec<Atom> = collected.by_ref().take(width(row)).collect();
        let state = match (row, &results[..]) {
            (None, [Atom::Var(v)]) => {
                Some(*v).filter(|v| !is_box(v.ty) && l.carried.iter().any(|(state, _)| state == v))
            }
            _ => None,
        };
        match state {
            Some(state) => saved.push((*array, state)),
            None => l.body.results.extend(results),
        }
    }
    l.body.results.extend(collected);
    (l, saved)
}

/// Whether an operation asks for the memory of its results by `Emitter::make`.
fn makes_array(op: &Op) -> bool {
    matches!(op, Op::For(_) | Op::Fill { .. } | Op::Literal { .. })
}

/// Whether a loop runs in vector lanes, if need be with its branches straightened and its checks made before it.
fn runs_in_lanes(l: &For) -> bool {
    let straight = straightened(l);
    let l = straight.as_ref().unwrap_or(l);
    checks_apart(l).is_some() || in_lanes(l)
}

/// A loop with its branches straightened, if that lets it run in vector lanes.
fn straightened(l: &For) -> Option<For> {
    let mut straight = straight::straightened(l)?;
    let all = std::mem::take(&mut straight.body.stmts);
    straight.body.stmts = all.iter().filter(|s| !matches!(s.op, Op::Check { .. })).cloned().collect();
    vectors(&straight)?;
    straight.body.stmts = all;
    checks_of(&straight)?;
    Some(straight)
}
