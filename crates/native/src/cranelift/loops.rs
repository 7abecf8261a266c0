//! Loops as Cranelift code. Steps are counted for many iterations at once, so that an inner loop has nothing else to do.

use super::collected::{rows_of_loops, Collected, Row};
use super::emit::{args, plain, width, Array, Emitter, Held};
use super::math;
use super::pairs::is_function;
use super::plan;
use super::waiting::{all_plain, Place};
use crate::checks::{are_alike, hold_between};
use crate::flow::*;
use crate::in_place;
use crate::ownership::Ownership;
use crate::peel;
use crate::spread;
use crate::steady;
use crate::steps::{is_bounded, CHUNK, FEW, LARGE, WINDOW};
use crate::straight;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, types, InstBuilder, Value};
use gradus_core::traverse::with_stack;
use gradus_core::Prim;
use gradus_runtime::memory::DATA;
use gradus_runtime::slot::Kind;
use gradus_source::Span;

/// Whether a loop runs in vector lanes, if need be with its branches straightened.
fn runs_in_lanes(l: &For) -> bool {
    plan::plan(straight::straightened(l).as_ref().unwrap_or(l)).is_some()
}

/// The same, or whether most of its iterations do, or all of them once an answer is known.
fn comes_to_lanes(l: &For) -> bool {
    let apart = || peel::peeled(l).is_some_and(|apart| runs_in_lanes(&apart.others));
    let answered =
        || peel::by_answer(l).is_some_and(|(_, sides)| sides.iter().any(|side| with_stack(|| comes_to_lanes(side))));
    runs_in_lanes(l) || apart() || answered()
}

/// Whether a block computes elementary functions, for which loops are cut into phases.
fn has_functions(block: &Block) -> bool {
    with_stack(|| {
        let inside = |stmt: &Stmt| stmt.op.blocks().any(has_functions);
        block.stmts.iter().any(|stmt| is_function(stmt) || inside(stmt))
    })
}

impl Emitter<'_, '_, '_> {
    /// The machine values of a loop's first state, taken over; what waits is left in its place.
    fn first_state(
        &mut self,
        carried: &[(Var, Atom)],
        places: &[Option<Place>],
        ownership: &mut Ownership,
        span: Span,
    ) -> Vec<Value> {
        let mut values = Vec::new();
        for ((state, init), place) in carried.iter().zip(places) {
            let parts = match self.linker.sole.contains(*state) {
                true => self.own(*init, ownership, span).parts(),
                false => self.take(*init, ownership),
            };
            match place {
                Some(place) => {
                    self.leave(&parts, *place);
                    self.waits(*state, *place);
                }
                None => values.extend(parts),
            }
        }
        values
    }

    fn zeros(&mut self, count: usize) -> Vec<Value> {
        (0..count).map(|_| self.b.ins().iconst(types::I64, 0)).collect()
    }

    pub(super) fn for_loop(&mut self, l: &For, binds: &[Var], ownership: &mut Ownership, span: Span) {
        let plan = self.linker.plan;
        match plan.of(l) {
            Some(chunked) => self.chunked_loop(l, chunked, binds, span),
            None => self.whole_loop(l, binds, ownership, span),
        }
    }

    /// A loop on this thread.
    pub(super) fn whole_loop(&mut self, l: &For, binds: &[Var], ownership: &mut Ownership, span: Span) {
        let (carried, arrays) = binds.split_at(l.carried.len());
        let count = self.number(l.count);
        // Arrays of numbers are there before the loop; those of other rows when the first row has decided their shape.
        let (spread, rows) = spread::spread(l);
        let mut into: Vec<Collected> = Vec::new();
        let places = self.places(carried);
        let mut state = self.first_state(&l.carried, &places, ownership, span);
        let own = state.len();
        // Phases read again what they need, when others have left what they collect.
        let replaced = match has_functions(&l.body) {
            true => vec![None; arrays.len()],
            false => in_place::of(l, arrays, ownership),
        };
        let mut row_lengths = match rows.iter().all(Option::is_some) {
            true => vec![None; rows.len()],
            false => steady::rows(l),
        }
        .into_iter();
        let placed = arrays.iter().any(|array| self.rows_at.contains_key(array));
        let mut made = match replaced.iter().all(Option::is_none) && all_plain(arrays) && !placed {
            true => self.new_arrays(arrays, count, span),
            false => Vec::new(),
        }
        .into_iter();
        for ((array, row), old) in arrays.iter().zip(&rows).zip(replaced) {
            let row_lengths = row_lengths.next().flatten().filter(|_| array.ty.shape().is_none());
            if let Some(data) = self.rows_at.remove(array) {
                let block = self.b.ins().iconst(types::I64, 0);
                into.push(Collected::there(Array { data, block, dims: vec![count], scalar: array.ty.scalar }, row));
                continue;
            }
            self.replaced.extend(old);
            if let Some(made) = made.next() {
                into.push(Collected::there(made, row));
            } else if let Some(old) = old.filter(|old| self.is_there(*old)) {
                let old = self.array(old);
                into.push(Collected::there(self.new_for(count, &old, span), row));
            } else if let Some(lengths) = row {
                let mut dims = vec![count];
                for length in lengths {
                    let length = self.b.ins().iconst(types::I64, *length as i64);
                    dims.push(self.if_some(count, length));
                }
                into.push(Collected::there(self.new_array(dims, array.ty.scalar, span), row));
            } else if let Some(lengths) = row_lengths {
                let lengths: Vec<Value> = lengths.into_iter().map(|length| self.length(length)).collect();
                let dims = [count].into_iter().chain(lengths.into_iter().map(|n| self.if_some(count, n))).collect();
                into.push(Collected::there(self.new_array(dims, array.ty.scalar, span), row));
            } else {
                into.push(Collected::FirstDecides(array.ty));
                state.extend(self.zeros(array.ty.rank as usize + 1));
            }
        }
        let zero = self.b.ins().iconst(types::I64, 0);
        let fetched = self.fetch_for(&l.body, &l.carried);
        let ends = self.iterations(&spread, &into, &state, [zero, count], span);
        self.forget(&fetched);
        self.bind_or_wait(carried, &places, &ends[..own]);
        let mut collected = &ends[own..];
        let places = self.places(arrays);
        for ((array, into), place) in arrays.iter().zip(into).zip(places) {
            let held = match into {
                Collected::Numbers(there, _) | Collected::Rows(there) => there,
                Collected::FirstDecides(ty) => {
                    let (own, others) = collected.split_at(ty.rank as usize + 1);
                    collected = others;
                    self.rows_or_empty(own, count, ty, span)
                }
            };
            match place {
                Some(place) => {
                    self.leave(&held.parts(), place);
                    self.waits(*array, place);
                }
                None => {
                    self.held.insert(*array, Held::Array(held));
                }
            }
        }
    }

    /// A loop from one iteration to before another, given its first state; the last state.
    pub(super) fn iterations(
        &mut self,
        l: &For,
        into: &[Collected],
        state: &[Value],
        [from, to]: [Value; 2],
        span: Span,
    ) -> Vec<Value> {
        if let Some(apart) =
            peel::peeled(l).filter(|apart| l.carried.is_empty() && state.is_empty() && runs_in_lanes(&apart.others))
        {
            let mut start = from;
            for (i, one) in apart.first.iter().enumerate() {
                let next = self.b.ins().iconst(types::I64, i as i64 + 1);
                let end = self.b.ins().smin(to, next);
                self.one_by_one(one, into, state, [start, end], true, span);
                start = self.b.ins().smax(start, next);
            }
            // The last iterations of the loop, as far as they are among these and are not the first.
            let mut end = to;
            if !apart.last.is_empty() {
                let count = self.number(l.count);
                let before = self.b.ins().iadd_imm_s(count, -(apart.last.len() as i64));
                let before = self.b.ins().smax(before, start);
                end = self.b.ins().smin(to, before);
            }
            self.iterations(&apart.others, into, state, [start, end], span);
            for (behind, one) in apart.last.iter().enumerate().rev() {
                let count = self.number(l.count);
                let after = self.b.ins().iadd_imm_s(count, -(behind as i64));
                let after = self.b.ins().smin(to, after);
                self.one_by_one(one, into, state, [end, after], true, span);
                end = self.b.ins().smax(end, after);
            }
            return Vec::new();
        }
        let but_one = || peel::but_one(l).filter(|(_, others)| state.is_empty() && runs_in_lanes(others));
        if let Some((one, others)) = (!runs_in_lanes(l)).then(but_one).flatten() {
            self.around_one(l, &others, one, into, [from, to], span);
            return Vec::new();
        }
        let answered = || peel::by_answer(l).filter(|(_, sides)| state.is_empty() && sides.iter().any(comes_to_lanes));
        if let Some((answer, sides)) = (!runs_in_lanes(l)).then(answered).flatten() {
            self.by_answer(answer, &sides, into, [from, to], span);
            return Vec::new();
        }
        let bounded = is_bounded(l);
        if bounded {
            let count = self.b.ins().isub(to, from);
            self.charge_large(count, span);
        }
        let few = bounded || matches!(l.count, Atom::Int(n) if n <= FEW);
        // In lanes, if need be with its branches straightened; what remains is done as it is.
        let straight = straight::straightened(l);
        let in_lanes = straight.as_ref().unwrap_or(l);
        let plan = plan::plan(in_lanes);
        let (start, state) = match &plan {
            None => (from, state.to_vec()),
            Some(plan) => {
                if !plan.checks.is_empty() {
                    let alike = are_alike(&plan.checks, l.index);
                    let second = self.b.ins().iadd_imm_s(from, 1);
                    let end = if alike { self.b.ins().smin(to, second) } else { to };
                    let unsure = hold_between(&plan.checks, l.index).filter(|_| !alike);
                    let past = unsure.map(|unsure| {
                        let past = self.b.create_block();
                        self.past_if_ends_hold(&plan.checks, l.index, [from, to], &unsure, past);
                        past
                    });
                    self.counted(from, end, few || alike, false, &[], span, |e, index, _| {
                        e.bind_number(l.index, index);
                        plan.checks.iter().for_each(|stmt| e.plain(stmt));
                        Vec::new()
                    });
                    if let Some(past) = past {
                        self.go_on(past, &[]);
                        self.b.seal_block(past);
                    }
                }
                self.lanes(in_lanes, plan, [from, to], into, state, (!bounded).then_some(span))
            }
        };
        // After lanes, few iterations are left, unless those of a loop with state must be done again.
        let few = few || plan.is_some() && l.carried.is_empty();
        self.one_by_one(l, into, &state, [start, to], few, span)
    }

    /// A loop for each answer, of which one runs.
    fn by_answer(&mut self, answer: Atom, sides: &[For; 2], into: &[Collected], part: [Value; 2], span: Span) {
        let answer = self.number(answer);
        let [yes, no, on] = [(); 3].map(|()| self.b.create_block());
        self.b.ins().brif(answer, yes, &[], no, &[]);
        for (block, side) in [yes, no].into_iter().zip(sides) {
            self.b.switch_to_block(block);
            self.b.seal_block(block);
            self.iterations(side, into, &[], part, span);
            self.b.ins().jump(on, &[]);
        }
        self.b.switch_to_block(on);
        self.b.seal_block(on);
    }

    /// The iterations before number `one`, if it is among these, and those after it, which are the same code; it by itself as it was written.
    fn around_one(&mut self, l: &For, others: &For, one: Atom, into: &[Collected], [from, to]: [Value; 2], span: Span) {
        let one = self.number(one);
        let one = self.b.ins().smax(one, from);
        let one = self.b.ins().smin(one, to);
        // No more than the number of iterations, which may be the largest integer.
        let past = self.b.ins().icmp(IntCC::SignedLessThan, one, to);
        let past = self.b.ins().uextend(types::I64, past);
        let after = self.b.ins().iadd(one, past);
        let [zero, two] = [0, 2].map(|n| self.b.ins().iconst(types::I64, n));
        self.counted(zero, two, true, false, &[], span, |e, part, _| {
            let start = e.b.ins().select(part, after, from);
            let end = e.b.ins().select(part, to, one);
            let next = e.b.ins().select(part, to, after);
            e.iterations(others, into, &[], [start, end], span);
            e.one_by_one(l, into, &[], [end, next], true, span)
        });
    }

    /// Goes on elsewhere if there are no iterations, or what they check holds for the first and the last one (see [`hold_between`]).
    fn past_if_ends_hold(
        &mut self,
        checks: &[Stmt],
        index: Var,
        [from, to]: [Value; 2],
        unsure: &[Var],
        past: ir::Block,
    ) {
        let (some, each) = (self.b.create_block(), self.b.create_block());
        let runs = self.b.ins().icmp(IntCC::SignedLessThan, from, to);
        self.b.ins().brif(runs, some, &[], past, &[]);
        self.b.switch_to_block(some);
        self.b.seal_block(some);
        let last = self.b.ins().iadd_imm_s(to, -1);
        let mut holds = self.b.ins().iconst(types::I8, 1);
        let mut first = Vec::new();
        for end in [from, last] {
            self.bind_number(index, end);
            for stmt in checks {
                if let Op::Check { cond, .. } = &stmt.op {
                    let cond = self.number(*cond);
                    holds = self.b.ins().band(holds, cond);
                } else {
                    self.plain(stmt);
                }
            }
            let places: Vec<Value> = unsure.iter().map(|place| self.number((*place).into())).collect();
            for (first, last) in first.iter().zip(&places) {
                let rises = self.b.ins().icmp(IntCC::SignedLessThanOrEqual, *first, *last);
                holds = self.b.ins().band(holds, rises);
            }
            first = places;
        }
        self.b.ins().brif(holds, past, &[], each, &[]);
        self.b.switch_to_block(each);
        self.b.set_cold_block(each);
        self.b.seal_block(each);
    }

    /// The same without lanes.
    fn one_by_one(
        &mut self,
        l: &For,
        into: &[Collected],
        state: &[Value],
        [from, to]: [Value; 2],
        few: bool,
        span: Span,
    ) -> Vec<Value> {
        let carried: Vec<Var> = l.carried.iter().map(|(v, _)| *v).collect();
        let places: Vec<Option<Place>> = carried.iter().map(|v| self.waiting.get(v).copied()).collect();
        let here: Vec<Var> = carried.iter().copied().filter(|v| !self.waiting.contains_key(v)).collect();
        let own = Self::types_of(&here).len();
        let tight = self.is_tight(l);
        let rows = rows_of_loops(l, into, self.linker.plan);
        self.counted(from, to, few, tight, state, span, |e, index, values| {
            e.bind_number(l.index, index);
            e.bind_all(&here, &values[..own]);
            for Row { array, loops, .. } in &rows {
                let address = e.address(array, &[index]);
                e.rows_at.extend(loops.iter().map(|row| (*row, address)));
            }
            let results = e.block(&l.body, &carried);
            // A loop that has found its place there has taken it.
            let is_there = |row: &&Row| row.loops.iter().filter(|l| e.rows_at.remove(l).is_some()).count() == 0;
            let there: Vec<Atom> = rows.iter().filter(is_there).map(|row| row.row.into()).collect();
            let mut next = e.leave_some(&results[..carried.len()], &places);
            let mut collected = &values[own..];
            let mut given = l.body.results.iter().zip(&results).skip(carried.len());
            for into in into {
                match into {
                    Collected::Numbers(array, count) => {
                        let address = e.address(array, &[index]);
                        let offsets = (0..).step_by(width(array.scalar) as usize);
                        for ((_, value), at) in given.by_ref().take(*count).zip(offsets) {
                            e.b.ins().store(plain(), value[0], address, at);
                        }
                    }
                    Collected::Rows(array) => {
                        let Some((_, row)) = given.next().filter(|(row, _)| !there.contains(row)) else { continue };
                        let address = e.address(array, &[index]);
                        e.copy_row(address, row[0], &array.dims[1..], array.scalar);
                        e.let_go(row[1]);
                    }
                    Collected::FirstDecides(ty) => {
                        let Some((_, row)) = given.next() else { continue };
                        let (own, others) = collected.split_at(ty.rank as usize + 1);
                        collected = others;
                        let Array { data, block, dims, .. } = e.collect_row(own, row, index, to, *ty, span);
                        next.extend([data, block]);
                        next.extend(&dims[1..]);
                    }
                }
            }
            next
        })
    }

    /// Counts the steps of a bounded loop before it runs, if they are many.
    pub(super) fn charge_large(&mut self, count: Value, span: Span) {
        let (many, on) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(many);
        let large = self.b.ins().icmp_imm_s(IntCC::SignedGreaterThan, count, LARGE);
        self.b.ins().brif(large, many, &[], on, &[]);
        self.b.switch_to_block(many);
        self.b.seal_block(many);
        let kind = self.runtime("gradus_count_steps", &[self.thread, count]);
        self.go_on_unless(kind, on, span);
    }

    /// Iterations from `start` to before `count`. `write` writes one, given its index and the state, and gives the next state; the
    /// result is the last. The steps of a loop that is known to have `few` are not counted. The state of a `tight` one is kept in registers.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn counted(
        &mut self,
        start: Value,
        count: Value,
        few: bool,
        tight: bool,
        state: &[Value],
        span: Span,
        write: impl FnOnce(&mut Self, Value, &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        let state_types: Vec<_> = state.iter().map(|v| self.b.func.dfg.value_type(*v)).collect();
        let with_index = [&[types::I64], &state_types[..]].concat();
        let (body, values) = self.block_with(&with_index);
        let (exit, ends) = self.block_with(&state_types);
        let some = self.b.ins().icmp(IntCC::SignedLessThan, start, count);
        let ready = if few { self.apart(tight, state) } else { state.to_vec() };
        let entering = args(&[&[start], &ready[..]].concat());
        // In chunks: `chunk` starts one, and `end` is where it ends.
        let (chunk, end) = if few {
            self.b.ins().brif(some, body, &entering, exit, &args(state));
            self.b.switch_to_block(body);
            (None, count)
        } else {
            let (chunk, at) = self.block_with(&with_index);
            self.b.ins().brif(some, chunk, &entering, exit, &args(state));
            self.b.switch_to_block(chunk);
            let left = self.b.ins().isub(count, at[0]);
            let most = self.b.ins().iconst(types::I64, CHUNK);
            let steps = self.b.ins().smin(left, most);
            self.charge(steps, span);
            let end = self.b.ins().iadd(at[0], steps);
            let ready = self.apart(tight, &at[1..]);
            self.go_on(body, &args(&[&at[..1], &ready[..]].concat()));
            (Some(chunk), end)
        };
        let next = write(self, values[0], &values[1..]);
        let following = self.b.ins().iadd_imm_s(values[0], 1);
        let more = self.b.ins().icmp(IntCC::SignedLessThan, following, end);
        let again = |next: &[Value]| args(&[&[following], next].concat());
        match chunk {
            None => {
                self.b.ins().brif(more, body, &again(&next), exit, &args(&next));
            }
            Some(chunk) => {
                let over = self.b.create_block();
                self.b.ins().brif(more, body, &again(&next), over, &[]);
                self.b.switch_to_block(over);
                self.b.seal_block(over);
                let next = self.apart(tight, &next);
                let more = self.b.ins().icmp(IntCC::SignedLessThan, following, count);
                self.b.ins().brif(more, chunk, &again(&next), exit, &args(&next));
                self.b.seal_block(chunk);
            }
        }
        self.b.seal_block(body);
        self.b.switch_to_block(exit);
        self.b.seal_block(exit);
        if few {
            self.apart(tight, &ends)
        } else {
            ends
        }
    }

    /// Whether a loop does nothing but a little arithmetic, many times.
    fn is_tight(&self, l: &For) -> bool {
        let simple = |stmt: &Stmt| match &stmt.op {
            Op::Scalar { prim, .. } => math::function_of(*prim).is_none() || *prim == Prim::PowRealInt,
            op => !op.has_blocks() && !matches!(op, Op::Call { .. }),
        };
        !matches!(l.count, Atom::Int(n) if n < 16) && l.body.stmts.iter().all(simple)
    }

    /// The same reals, by way of memory. The register allocator has one place for what goes from a loop's state to that before it and after it, which is
    /// on the stack if there is a call, so that each iteration would wait for memory.
    fn apart(&mut self, tight: bool, values: &[Value]) -> Vec<Value> {
        let mut moved = values.to_vec();
        for value in moved.iter_mut().filter(|_| tight) {
            if self.b.func.dfg.value_type(*value) == types::F64 {
                let room = self.room(8);
                self.b.ins().store(plain(), *value, room, 0);
                // As another type: or else this would be known to be the same.
                let bits = self.b.ins().load(types::I64, plain(), room, 0);
                *value = self.b.ins().bitcast(types::F64, plain(), bits);
            }
        }
        moved
    }

    pub(super) fn while_loop(&mut self, l: &While, binds: &[Var], ownership: &mut Ownership, span: Span) {
        let carried: Vec<Var> = l.carried.iter().map(|(v, _)| *v).collect();
        let arrays = &binds[carried.len()..];
        let places = self.places(&carried);
        let mut state = self.first_state(&l.carried, &places, ownership, span);
        let here: Vec<Var> = carried.iter().copied().filter(|v| !self.waiting.contains_key(v)).collect();
        let mut state_types = Self::types_of(&here);
        let own = state_types.len();
        // The number of iterations so far; then for each collected array its data, block, and the dimensions of a row.
        let parts = |array: &Var| array.ty.rank as usize + 1;
        let more: usize = 1 + arrays.iter().map(parts).sum::<usize>();
        state.extend(self.zeros(more));
        state_types.extend(vec![types::I64; more]);
        let (body, values) = self.block_with(&state_types);
        let (exit, ends) = self.block_with(&state_types);
        let fetched = self.fetch_for(&l.body, &l.carried);
        self.go_on(body, &args(&state));
        let done = values[own];
        self.charge_window(done, span);
        self.bind_all(&here, &values[..own]);
        self.ends.extend(l.body.results[0].var());
        let results = self.block(&l.body, &carried);
        let go = results[0][0];
        let mut next = self.leave_some(&results[1..1 + carried.len()], &places);
        next.push(self.b.ins().iadd_imm_s(done, 1));
        let mut collected = &values[own + 1..];
        for (array, row) in arrays.iter().zip(&results[1 + carried.len()..]) {
            let (own, others) = collected.split_at(parts(array));
            collected = others;
            next.extend(self.append(own, row, done, array.ty, span));
        }
        self.b.ins().brif(go, body, &args(&next), exit, &args(&next));
        self.b.seal_block(body);
        self.b.switch_to_block(exit);
        self.b.seal_block(exit);
        self.forget(&fetched);
        self.bind_or_wait(&binds[..carried.len()], &places, &ends[..own]);
        let count = ends[own];
        let rest = self.b.ins().band_imm_s(count, WINDOW - 1);
        self.charge(rest, span);
        let mut collected = &ends[own + 1..];
        for array in arrays {
            let (own, others) = collected.split_at(parts(array));
            collected = others;
            let dims = [&[count], &own[2..]].concat();
            let held = Array { data: own[0], block: own[1], dims, scalar: array.ty.scalar };
            self.held.insert(*array, Held::Array(held));
        }
    }

    /// Counts the steps of a loop that ends by a condition, at the last iteration of each window.
    fn charge_window(&mut self, done: Value, span: Span) {
        let (full, on) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(full);
        let within = self.b.ins().band_imm_s(done, WINDOW - 1);
        let last = self.b.ins().icmp_imm_s(IntCC::Equal, within, WINDOW - 1);
        self.b.ins().brif(last, full, &[], on, &[]);
        self.b.switch_to_block(full);
        self.b.seal_block(full);
        let window = self.b.ins().iconst(types::I64, WINDOW);
        self.charge(window, span);
        self.go_on(on, &[]);
        self.b.seal_block(on);
    }

    /// Adds a number or a row to the end of a growing array; gives its new data, block and row dimensions.
    fn append(&mut self, own: &[Value], row: &[Value], done: Value, ty: Type, span: Span) -> Vec<Value> {
        let row_ty = ty.at(1);
        let mut row_dims: Vec<Value> = Vec::new();
        let bytes = if row_ty.is_array() {
            // The first row decides the shape.
            for (before, now) in own[2..].iter().zip(&row[2..]) {
                row_dims.push(self.b.ins().select(done, *before, *now));
            }
            self.same_shape(&row[2..], &row_dims, span);
            self.bytes(&row_dims, ty.scalar)
        } else {
            self.b.ins().iconst(types::I64, width(ty.scalar))
        };
        let grow = if ty.shape().is_some() { "gradus_grow_boxes" } else { "gradus_grow" };
        let block = self.runtime(grow, &[self.thread, own[1], done, bytes]);
        self.require(block, None, span, Kind::Memory);
        let data = self.b.ins().iadd_imm_s(block, DATA);
        let offset = self.b.ins().imul(done, bytes);
        let to = self.b.ins().iadd(data, offset);
        if row_ty.is_array() {
            self.copy_row(to, row[0], &row_dims, ty.scalar);
            self.let_go(row[1]);
        } else {
            self.b.ins().store(plain(), row[0], to, 0);
        }
        [&[data, block], &row_dims[..]].concat()
    }
}
