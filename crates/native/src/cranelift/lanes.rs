//! Loops in vector lanes, after their [`Plan`].

use super::emit::{machine_type, plain, Array, Emitter, Held};
use super::math;
use super::plan::Plan;
use crate::flow::*;
use crate::steps::CHUNK;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F64, F64X2, I64, I64X2};
use cranelift_codegen::ir::{BlockArg, Endianness, InstBuilder, MemFlagsData, Value};
use cranelift_frontend::Variable;
use gradus_core::Prim;
use gradus_source::Span;
use rustc_hash::FxHashMap;

/// Iterations between phases: what a buffer has room for.
const STRIP: i64 = 128;

/// A value in two iterations.
#[derive(Clone, Copy)]
enum Lane {
    /// The same in both.
    Same(Value),
    /// An integer, and one more in the second.
    Next(Value),
    Each([Value; 2]),
    Reals(Value),
    /// Conditions: all bits of a lane are set, or none.
    Mask(Value),
}

/// Where one pair of iterations is written.
struct Pair<'p, 'a> {
    plan: &'p Plan<'a>,
    phase: usize,
    /// The loop's index, in the first of the two.
    index: Value,
    /// From the start of a buffer, in bytes.
    offset: Value,
    buffers: &'p FxHashMap<Var, Value>,
    second: &'p FxHashMap<Var, Value>,
    known: FxHashMap<Var, Lane>,
}

fn vector_flags() -> MemFlagsData {
    // Pairs need not be aligned to their own size.
    MemFlagsData::new().with_notrap()
}

fn cast() -> MemFlagsData {
    MemFlagsData::new().with_endianness(Endianness::Little)
}

impl Emitter<'_, '_, '_> {
    /// The part of a loop, from `first` to before `end`, that fills whole steps of pairs; gives the index from which single iterations go on. `flat` are the
    /// arrays that are collected; `steps` says where steps are counted, if they are.
    pub(super) fn lanes(
        &mut self,
        l: &For,
        plan: &Plan<'_>,
        [first, end]: [Value; 2],
        flat: &[Array],
        steps: Option<Span>,
    ) -> Value {
        let step = 2 * plan.pairs as i64;
        let zero = self.b.ins().iconst(I64, 0);
        let count = self.b.ins().isub(end, first);
        let positive = self.b.ins().smax(count, zero);
        let whole = self.b.ins().band_imm_s(positive, -step);
        let main = self.b.ins().iadd(first, whole);
        // For each sum one pair for each pair of a step, so that additions need not wait for each other.
        let mut sums: Vec<Vec<Variable>> = Vec::new();
        let nothing = self.b.ins().f64const(0.0);
        let nothing = self.b.ins().splat(F64X2, nothing);
        for _ in &plan.sums {
            let pairs: Vec<Variable> = (0..plan.pairs).map(|_| self.b.declare_var(F64X2)).collect();
            pairs.iter().for_each(|v| self.b.def_var(*v, nothing));
            sums.push(pairs);
        }
        let (mut buffers, mut second) = (FxHashMap::default(), FxHashMap::default());
        for (_, stmt) in &plan.stmts {
            for var in stmt.binds.iter().filter(|v| plan.kept.contains_key(v)) {
                // A pair of conditions takes as much room as one of reals.
                let buffer = self.room(8 * STRIP as u32);
                buffers.insert(*var, buffer);
                if matches!(&stmt.op, Op::Scalar { args, .. } if args.len() == 2 && is_function(stmt)) {
                    let buffer = self.room(8 * STRIP as u32);
                    second.insert(*var, buffer);
                }
            }
        }
        let longest = if plan.phases > 1 { STRIP } else { CHUNK };
        let (strip, at) = self.block_with(&[I64]);
        let over = self.b.create_block();
        self.b.ins().brif(whole, strip, &[BlockArg::Value(first)], over, &[]);
        self.b.switch_to_block(strip);
        let start = at[0];
        let left = self.b.ins().isub(main, start);
        let most = self.b.ins().iconst(I64, longest);
        let length = self.b.ins().smin(left, most);
        if let Some(span) = steps {
            self.charge(length, span);
        }
        for phase in 0..plan.phases {
            let (body, offsets) = self.block_with(&[I64]);
            self.go_on(body, &[BlockArg::Value(zero)]);
            for number in 0..plan.pairs {
                let from = self.b.ins().iadd_imm_s(offsets[0], 2 * number as i64);
                let index = self.b.ins().iadd(start, from);
                let offset = self.b.ins().ishl_imm_s(from, 3);
                let known = FxHashMap::default();
                let mut pair = Pair { plan, phase, index, offset, buffers: &buffers, second: &second, known };
                pair.known.insert(l.index, Lane::Next(index));
                self.pair(&mut pair, l, flat, &sums, number);
            }
            let next = self.b.ins().iadd_imm_s(offsets[0], step);
            let more = self.b.ins().icmp(IntCC::SignedLessThan, next, length);
            let end = self.b.create_block();
            self.b.ins().brif(more, body, &[BlockArg::Value(next)], end, &[]);
            self.b.seal_block(body);
            self.b.switch_to_block(end);
            self.b.seal_block(end);
            self.functions(plan, phase, &buffers, &second, length);
        }
        let next = self.b.ins().iadd(start, length);
        let more = self.b.ins().icmp(IntCC::SignedLessThan, next, main);
        let end = self.b.create_block();
        self.b.ins().brif(more, strip, &[BlockArg::Value(next)], end, &[]);
        self.b.seal_block(strip);
        self.b.switch_to_block(end);
        self.b.seal_block(end);
        for ((acc, index), pairs) in plan.sums.iter().zip(sums) {
            self.add_sum(*acc, index, &pairs);
        }
        self.go_on(over, &[]);
        self.b.seal_block(over);
        main
    }

    /// Adds up the lanes of a sum.
    fn add_sum(&mut self, acc: Var, index: &[Atom], pairs: &[Variable]) {
        let mut total: Option<Value> = None;
        for variable in pairs {
            let pair = self.b.use_var(*variable);
            total = Some(match total {
                Some(before) => self.b.ins().fadd(before, pair),
                None => pair,
            });
        }
        let Some(total) = total else { return };
        let (low, high) = (self.b.ins().extractlane(total, 0), self.b.ins().extractlane(total, 1));
        let sum = self.b.ins().fadd(low, high);
        self.add_number(acc, index, sum);
    }

    /// The elementary functions at the end of a phase, on all its iterations.
    fn functions(
        &mut self,
        plan: &Plan<'_>,
        phase: usize,
        buffers: &FxHashMap<Var, Value>,
        second: &FxHashMap<Var, Value>,
        length: Value,
    ) {
        for (_, stmt) in plan.stmts.iter().filter(|(at, _)| *at == phase) {
            let (Op::Scalar { prim, .. }, [y]) = (&stmt.op, &stmt.binds[..]) else { continue };
            let Some(kernel) = math::kernel_of(*prim) else { continue };
            let kernel = self.b.ins().iconst(I64, kernel as i64);
            match second.get(y) {
                Some(other) => self.runtime_effect("gradus_map2", &[kernel, buffers[y], *other, length]),
                None => self.runtime_effect("gradus_map", &[kernel, buffers[y], length]),
            }
        }
    }

    /// One pair of iterations in one phase.
    fn pair(&mut self, pair: &mut Pair<'_, '_>, l: &For, flat: &[Array], sums: &[Vec<Variable>], number: usize) {
        let (plan, phase) = (pair.plan, pair.phase);
        for (_, stmt) in plan.stmts.iter().filter(|(at, _)| *at == phase) {
            match (&stmt.op, &stmt.binds[..]) {
                (Op::Add { acc, index, value }, []) => {
                    match plan.sums.iter().position(|(other, place)| other == acc && *place == &index[..]) {
                        Some(sum) => {
                            let value = self.lane_reals(pair, *value);
                            let variable = sums[sum][number];
                            let before = self.b.use_var(variable);
                            let after = self.b.ins().fadd(before, value);
                            self.b.def_var(variable, after);
                        }
                        None => self.add_lanes(pair, *acc, index, *value),
                    }
                }
                (Op::Scalar { args, .. }, [y]) if is_function(stmt) => {
                    for (arg, buffer) in args.iter().zip([pair.buffers.get(y), pair.second.get(y)]) {
                        let (value, buffer) = (self.lane_reals(pair, *arg), buffer.copied());
                        self.keep_in(pair, buffer, value);
                    }
                }
                (_, [y]) => {
                    let lane = self.lane_stmt(pair, stmt);
                    pair.known.insert(*y, lane);
                    if let Some(buffer) = pair.buffers.get(y).copied() {
                        let value = match lane {
                            Lane::Mask(mask) => mask,
                            _ if y.ty.scalar == Scalar::Bool => self.lane_mask(lane),
                            _ => self.lane_reals(pair, (*y).into()),
                        };
                        self.keep_in(pair, Some(buffer), value);
                    }
                }
                (op, _) => gradus_source::bug!("{op:?} in vector lanes"),
            }
        }
        for (result, array) in l.body.results.iter().zip(flat) {
            if self.result_phase(pair, *result) == pair.phase {
                self.store_lanes(pair, array, *result);
            }
        }
    }

    /// The phase in which a result is stored: that in which it is known.
    fn result_phase(&self, pair: &Pair<'_, '_>, result: Atom) -> usize {
        let Some(var) = result.var() else { return 0 };
        match pair.plan.stmts.iter().find(|(_, stmt)| stmt.binds.contains(&var)) {
            Some((at, stmt)) => at + usize::from(is_function(stmt)),
            None => 0,
        }
    }

    fn keep_in(&mut self, pair: &Pair<'_, '_>, buffer: Option<Value>, value: Value) {
        let Some(buffer) = buffer else { gradus_source::bug!("a value in lanes has no buffer") };
        let address = self.b.ins().iadd(buffer, pair.offset);
        self.b.ins().store(vector_flags(), value, address, 0);
    }

    fn store_lanes(&mut self, pair: &mut Pair<'_, '_>, array: &Array, result: Atom) {
        let address = self.address(array, &[pair.index]);
        if array.scalar == Scalar::Real {
            let value = self.lane_reals(pair, result);
            self.b.ins().store(vector_flags(), value, address, 0);
        } else {
            let each = self.lane_each(pair, result);
            for (i, value) in each.into_iter().enumerate() {
                self.b.ins().store(plain(), value, address, 8 * i as i32);
            }
        }
    }

    fn lane(&mut self, pair: &mut Pair<'_, '_>, atom: Atom) -> Lane {
        let Some(var) = atom.var() else { return Lane::Same(self.number(atom)) };
        if let Some(lane) = pair.known.get(&var) {
            return *lane;
        }
        let lane = if let Some(stmt) = pair.plan.cheap.get(&var) {
            self.lane_stmt(pair, stmt)
        } else if let Some(buffer) = pair.buffers.get(&var) {
            let address = self.b.ins().iadd(*buffer, pair.offset);
            match var.ty.scalar {
                Scalar::Bool => Lane::Mask(self.b.ins().load(I64X2, vector_flags(), address, 0)),
                Scalar::Real | Scalar::Int | Scalar::Box(_) => {
                    Lane::Reals(self.b.ins().load(F64X2, vector_flags(), address, 0))
                }
            }
        } else {
            return Lane::Same(self.number(atom));
        };
        pair.known.insert(var, lane);
        lane
    }

    fn lane_reals(&mut self, pair: &mut Pair<'_, '_>, atom: Atom) -> Value {
        match self.lane(pair, atom) {
            Lane::Reals(value) => value,
            Lane::Same(value) => self.b.ins().splat(F64X2, value),
            Lane::Each([low, high]) => self.join(low, high),
            Lane::Next(_) | Lane::Mask(_) => gradus_source::bug!("no reals in lanes"),
        }
    }

    fn join(&mut self, low: Value, high: Value) -> Value {
        let low = self.b.ins().scalar_to_vector(F64X2, low);
        self.b.ins().insertlane(low, high, 1)
    }

    fn lane_mask(&mut self, lane: Lane) -> Value {
        match lane {
            Lane::Mask(mask) => mask,
            Lane::Same(value) => {
                let wide = self.widen(value);
                self.b.ins().splat(I64X2, wide)
            }
            Lane::Each([low, high]) => {
                let (low, high) = (self.widen(low), self.widen(high));
                let low = self.b.ins().scalar_to_vector(I64X2, low);
                self.b.ins().insertlane(low, high, 1)
            }
            Lane::Next(_) | Lane::Reals(_) => gradus_source::bug!("no conditions in lanes"),
        }
    }

    /// All bits of a condition.
    fn widen(&mut self, condition: Value) -> Value {
        let wide = self.b.ins().uextend(I64, condition);
        self.b.ins().ineg(wide)
    }

    /// The values of the two iterations, one by one.
    fn lane_each(&mut self, pair: &mut Pair<'_, '_>, atom: Atom) -> [Value; 2] {
        match self.lane(pair, atom) {
            Lane::Same(value) => [value, value],
            Lane::Next(value) => [value, self.b.ins().iadd_imm_s(value, 1)],
            Lane::Each(values) => values,
            Lane::Reals(value) => [self.b.ins().extractlane(value, 0), self.b.ins().extractlane(value, 1)],
            Lane::Mask(mask) => {
                let (low, high) = (self.b.ins().extractlane(mask, 0), self.b.ins().extractlane(mask, 1));
                [self.b.ins().icmp_imm_s(IntCC::NotEqual, low, 0), self.b.ins().icmp_imm_s(IntCC::NotEqual, high, 0)]
            }
        }
    }

    /// A statement that gives one value.
    fn lane_stmt(&mut self, pair: &mut Pair<'_, '_>, stmt: &Stmt) -> Lane {
        match &stmt.op {
            Op::Scalar { prim, args } => self.lane_scalar(pair, *prim, args),
            Op::Copy { value } | Op::Stop { value } => self.lane(pair, *value),
            Op::Dim { array, axis } => Lane::Same(self.array(*array).dims[*axis as usize]),
            Op::Get { array, index } => {
                let array = self.array(*array);
                self.lane_get(pair, &array, index)
            }
            Op::Select { cond, then, otherwise } => match self.lane(pair, *cond) {
                Lane::Mask(mask) if then.ty().is_real() => {
                    let (then, otherwise) = (self.lane_reals(pair, *then), self.lane_reals(pair, *otherwise));
                    let mask = self.b.ins().bitcast(F64X2, cast(), mask);
                    Lane::Reals(self.b.ins().bitselect(mask, then, otherwise))
                }
                _ => {
                    let conditions = self.lane_each(pair, *cond);
                    let (then, otherwise) = (self.lane_each(pair, *then), self.lane_each(pair, *otherwise));
                    let side = |i: usize, e: &mut Self| e.b.ins().select(conditions[i], then[i], otherwise[i]);
                    Lane::Each([side(0, self), side(1, self)])
                }
            },
            op => gradus_source::bug!("{op:?} in vector lanes"),
        }
    }

    fn lane_get(&mut self, pair: &mut Pair<'_, '_>, array: &Array, index: &[Atom]) -> Lane {
        let lanes: Vec<Lane> = index.iter().map(|i| self.lane(pair, *i)).collect();
        if let Some(index) = all_same(&lanes) {
            return Lane::Same(self.load_element(array, &index));
        }
        match firsts(&lanes) {
            Some(first) if array.scalar == Scalar::Real => {
                let address = self.address(array, &first);
                Lane::Reals(self.b.ins().load(F64X2, vector_flags(), address, 0))
            }
            _ => {
                let each: Vec<[Value; 2]> = index.iter().map(|i| self.lane_each(pair, *i)).collect();
                let values = [0, 1].map(|lane| {
                    let index: Vec<Value> = each.iter().map(|i| i[lane]).collect();
                    let address = self.address(array, &index);
                    self.b.ins().load(machine_type(array.scalar), plain(), address, 0)
                });
                Lane::Each(values)
            }
        }
    }

    /// Adds to elements, one of each iteration.
    fn add_lanes(&mut self, pair: &mut Pair<'_, '_>, acc: Var, index: &[Atom], value: Atom) {
        let lanes: Vec<Lane> = index.iter().map(|i| self.lane(pair, *i)).collect();
        let Held::Array(array) = self.held(acc) else { gradus_source::bug!("{} has no elements", acc.name) };
        if let Some(first) = firsts(&lanes) {
            let value = self.lane_reals(pair, value);
            let address = self.address(&array, &first);
            let before = self.b.ins().load(F64X2, vector_flags(), address, 0);
            let sum = self.b.ins().fadd(before, value);
            self.b.ins().store(vector_flags(), sum, address, 0);
            return;
        }
        // The places may be the same.
        let each: Vec<[Value; 2]> = index.iter().map(|i| self.lane_each(pair, *i)).collect();
        let values = self.lane_each(pair, value);
        for (lane, value) in values.into_iter().enumerate() {
            let index: Vec<Value> = each.iter().map(|i| i[lane]).collect();
            let address = self.address(&array, &index);
            let before = self.b.ins().load(F64, plain(), address, 0);
            let sum = self.b.ins().fadd(before, value);
            self.b.ins().store(plain(), sum, address, 0);
        }
    }

    fn lane_scalar(&mut self, pair: &mut Pair<'_, '_>, prim: Prim, args: &[Atom]) -> Lane {
        let lanes: Vec<Lane> = args.iter().map(|a| self.lane(pair, *a)).collect();
        if let Some(values) = all_same(&lanes) {
            return Lane::Same(self.scalar(prim, &values, args));
        }
        match (prim, &lanes[..]) {
            (Prim::AddInt | Prim::SubInt, [Lane::Next(a), Lane::Same(b)]) => {
                return Lane::Next(self.scalar(prim, &[*a, *b], args))
            }
            (Prim::AddInt, [Lane::Same(a), Lane::Next(b)]) => return Lane::Next(self.scalar(prim, &[*a, *b], args)),
            (Prim::Not, [Lane::Mask(mask)]) => return Lane::Mask(self.b.ins().bnot(*mask)),
            _ => {}
        }
        let real = args.iter().all(|a| a.ty().is_real());
        let condition = match prim {
            Prim::Equal => Some(FloatCC::Equal),
            Prim::NotEqual => Some(FloatCC::NotEqual),
            Prim::Less => Some(FloatCC::LessThan),
            Prim::LessEqual => Some(FloatCC::LessThanOrEqual),
            Prim::Greater => Some(FloatCC::GreaterThan),
            Prim::GreaterEqual => Some(FloatCC::GreaterThanOrEqual),
            _ => None,
        };
        if let Some(condition) = condition.filter(|_| real) {
            let (a, b) = (self.lane_reals(pair, args[0]), self.lane_reals(pair, args[1]));
            return Lane::Mask(self.b.ins().fcmp(condition, a, b));
        }
        let in_pairs = matches!(
            prim,
            Prim::AddReal
                | Prim::SubReal
                | Prim::MulReal
                | Prim::DivReal
                | Prim::NegReal
                | Prim::Sqrt
                | Prim::Abs
                | Prim::Maximum
                | Prim::Minimum
        );
        if in_pairs {
            let values: Vec<Value> = args.iter().map(|a| self.lane_reals(pair, *a)).collect();
            return Lane::Reals(match prim {
                Prim::Maximum => self.extreme_lanes(FloatCC::GreaterThan, &values),
                Prim::Minimum => self.extreme_lanes(FloatCC::LessThan, &values),
                // Cranelift's arithmetic is the same on one real and on two.
                _ => self.scalar(prim, &values, args),
            });
        }
        if let (Prim::PowRealInt, [_, Atom::Int(k)]) = (prim, args) {
            let x = self.lane_reals(pair, args[0]);
            let one = self.b.ins().f64const(1.0);
            let one = self.b.ins().splat(F64X2, one);
            return Lane::Reals(self.small_power(x, *k, one));
        }
        let each: Vec<[Value; 2]> = args.iter().map(|a| self.lane_each(pair, *a)).collect();
        Lane::Each([0, 1].map(|lane| {
            let values: Vec<Value> = each.iter().map(|v| v[lane]).collect();
            self.scalar(prim, &values, args)
        }))
    }

    fn extreme_lanes(&mut self, condition: FloatCC, x: &[Value]) -> Value {
        let first = self.b.ins().fcmp(condition, x[0], x[1]);
        let nan = self.b.ins().fcmp(FloatCC::Unordered, x[0], x[0]);
        let first = self.b.ins().bor(first, nan);
        let first = self.b.ins().bitcast(F64X2, cast(), first);
        self.b.ins().bitselect(first, x[0], x[1])
    }
}

fn is_function(stmt: &Stmt) -> bool {
    matches!(&stmt.op, Op::Scalar { prim, .. } if math::kernel_of(*prim).is_some())
}

fn all_same(lanes: &[Lane]) -> Option<Vec<Value>> {
    lanes.iter().map(|l| if let Lane::Same(value) = l { Some(*value) } else { None }).collect()
}

/// The index in the first iteration, if the element of the second is the next one.
fn firsts(lanes: &[Lane]) -> Option<Vec<Value>> {
    let (last, others) = lanes.split_last()?;
    let mut index = all_same(others)?;
    match last {
        Lane::Next(value) => index.push(*value),
        Lane::Same(_) | Lane::Each(_) | Lane::Reals(_) | Lane::Mask(_) => return None,
    }
    Some(index)
}
