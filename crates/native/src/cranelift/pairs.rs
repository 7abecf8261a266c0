//! One pair of iterations of a loop in vector lanes.

use super::collected::Collected;
use super::emit::{plain, Array, Emitter, Held};
use super::lanes::Totals;
use super::math;
use super::plan::Plan;
use crate::flow::*;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F64, F64X2, I64, I64X2};
use cranelift_codegen::ir::{Endianness, InstBuilder, MemFlagsData, Value};
use gradus_core::Prim;
use rustc_hash::FxHashMap;

/// A value in two iterations.
#[derive(Clone, Copy)]
pub(super) enum Lane {
    /// The same in both.
    Same(Value),
    /// An integer plus a constant, and one more in the second. An address takes the constant along at no cost.
    Next(Value, i64),
    Each([Value; 2]),
    Reals(Value),
    /// Conditions: all bits of a lane are set, or none.
    Mask(Value),
}

/// Constants of [`Lane::Next`] are smaller than this, so that they fit into addresses.
const FAR: i64 = 1 << 20;

/// Where one pair of iterations is written.
pub(super) struct Pair<'p, 'a> {
    plan: &'p Plan<'a>,
    phase: usize,
    /// The loop's index at the start of the step, and how much more it is in the first of the two.
    index: Value,
    ahead: i64,
    /// Where the buffers would begin for iteration 0: those of all values, and those of second operands.
    buffers: &'p [FxHashMap<Var, Value>; 2],
    known: FxHashMap<Var, Lane>,
}

impl<'p, 'a> Pair<'p, 'a> {
    /// The pair of a step with this number, if the step begins with iteration `index`.
    pub(super) fn new(
        plan: &'p Plan<'a>,
        phase: usize,
        variable: Var,
        index: Value,
        number: usize,
        buffers: &'p [FxHashMap<Var, Value>; 2],
        fixed: &FxHashMap<Var, Lane>,
    ) -> Pair<'p, 'a> {
        let ahead = 2 * number as i64;
        let mut known = fixed.clone();
        known.insert(variable, Lane::Next(index, ahead));
        Pair { plan, phase, index, ahead, buffers, known }
    }
}

fn vector_flags() -> MemFlagsData {
    // Pairs need not be aligned to their own size.
    MemFlagsData::new().with_notrap()
}

pub(super) fn cast() -> MemFlagsData {
    MemFlagsData::new().with_endianness(Endianness::Little)
}

impl Emitter<'_, '_, '_> {
    /// Reads what all iterations read alike, where it is known that there are some.
    pub(super) fn fixed(&mut self, l: &For) -> FxHashMap<Var, Lane> {
        let inside = |v: Var| v == l.index || l.body.stmts.iter().any(|stmt| stmt.binds.contains(&v));
        let mut fixed = FxHashMap::default();
        for stmt in &l.body.stmts {
            let (Op::Get { array, index }, [y]) = (&stmt.op, &stmt.binds[..]) else { continue };
            if y.ty == Type::REAL && !inside(*array) && !index.iter().filter_map(|a| a.var()).any(inside) {
                let (array, index) = (self.array(*array), self.numbers(index));
                fixed.insert(*y, Lane::Same(self.load_element(&array, &index)));
            }
        }
        fixed
    }

    /// One pair of iterations in one phase.
    pub(super) fn pair(
        &mut self,
        pair: &mut Pair<'_, '_>,
        l: &For,
        into: &[Collected],
        totals: &Totals,
        number: usize,
    ) {
        let (plan, phase) = (pair.plan, pair.phase);
        for (_, stmt) in plan.stmts.iter().filter(|(at, _)| *at == phase) {
            match (&stmt.op, &stmt.binds[..]) {
                (Op::Add { acc, index, value }, []) => {
                    match plan.sums.iter().position(|(other, place)| other == acc && *place == &index[..]) {
                        Some(sum) => {
                            let value = self.lane_reals(pair, *value);
                            let variable = totals.sums[sum][number];
                            let before = self.b.use_var(variable);
                            let after = self.b.ins().fadd(before, value);
                            self.b.def_var(variable, after);
                        }
                        None => self.add_lanes(pair, *acc, index, *value),
                    }
                }
                (Op::Scalar { args, .. }, [y]) if plan.join_of(*y).is_some() => {
                    let Some((join, how)) = plan.join_of(*y) else { continue };
                    let value = self.lane_reals(pair, args[1]);
                    let [extreme, none] = totals.joins[join][number];
                    let so_far = self.b.use_var(extreme);
                    let so_far = self.extreme_number(how, value, so_far);
                    self.b.def_var(extreme, so_far);
                    let mask = self.b.use_var(none);
                    let no_number = self.b.ins().fcmp(FloatCC::Unordered, value, value);
                    let mask = self.b.ins().bor(mask, no_number);
                    self.b.def_var(none, mask);
                }
                (Op::Scalar { args, .. }, [y]) if is_function(stmt) => {
                    for (arg, buffers) in args.iter().zip(pair.buffers) {
                        let buffer = buffers.get(y);
                        let (value, buffer) = (self.lane_reals(pair, *arg), buffer.copied());
                        self.keep_in(pair, buffer, value);
                    }
                }
                (_, [y]) => {
                    let lane = self.lane_stmt(pair, stmt);
                    pair.known.insert(*y, lane);
                    if let Some(buffer) = pair.buffers[0].get(y).copied() {
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
        let mut results = l.body.results.iter();
        for into in into {
            let Collected::Numbers(array, width) = into else { gradus_source::bug!("rows in vector lanes") };
            for (at, result) in results.by_ref().take(*width).enumerate() {
                if self.result_phase(pair, *result) == pair.phase {
                    self.store_lanes(pair, array, [at, *width], *result);
                }
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
        let (address, offset) = self.in_buffer(pair, buffer);
        self.b.ins().store(vector_flags(), value, address, offset);
    }

    /// The place of a pair in a buffer: address and offset.
    fn in_buffer(&mut self, pair: &Pair<'_, '_>, buffer: Value) -> (Value, i32) {
        let index = self.b.ins().ishl_imm_s(pair.index, 3);
        (self.b.ins().iadd(buffer, index), 8 * pair.ahead as i32)
    }

    /// Puts numbers to their places: in each iteration the one `at` of so many.
    fn store_lanes(&mut self, pair: &mut Pair<'_, '_>, array: &Array, [at, width]: [usize; 2], result: Atom) {
        let address = self.address(array, &[pair.index]);
        let offset = |lane: usize| 8 * (width * (pair.ahead as usize + lane) + at) as i32;
        let offsets = [offset(0), offset(1)];
        if array.scalar == Scalar::Real && width == 1 {
            let value = self.lane_reals(pair, result);
            self.b.ins().store(vector_flags(), value, address, offsets[0]);
        } else {
            let each = self.lane_each(pair, result);
            for (value, offset) in each.into_iter().zip(offsets) {
                self.b.ins().store(plain(), value, address, offset);
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
        } else if let Some(buffer) = pair.buffers[0].get(&var) {
            let (address, offset) = self.in_buffer(pair, *buffer);
            match var.ty.scalar {
                Scalar::Bool => Lane::Mask(self.b.ins().load(I64X2, vector_flags(), address, offset)),
                Scalar::Real | Scalar::Int | Scalar::Box(_) => {
                    Lane::Reals(self.b.ins().load(F64X2, vector_flags(), address, offset))
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
            Lane::Next(..) | Lane::Mask(_) => gradus_source::bug!("no reals in lanes"),
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
            Lane::Next(..) | Lane::Reals(_) => gradus_source::bug!("no conditions in lanes"),
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
            Lane::Next(value, more) => [more, more + 1].map(|more| self.b.ins().iadd_imm_s(value, more)),
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
            Some((first, offset)) if array.scalar == Scalar::Real => {
                let (address, before) = self.place(array, &first);
                Lane::Reals(self.b.ins().load(F64X2, vector_flags(), address, before + offset))
            }
            _ => {
                let each: Vec<[Value; 2]> = index.iter().map(|i| self.lane_each(pair, *i)).collect();
                let values = [0, 1].map(|lane| {
                    let index: Vec<Value> = each.iter().map(|i| i[lane]).collect();
                    self.load_element(array, &index)
                });
                Lane::Each(values)
            }
        }
    }

    /// Adds to elements, one of each iteration.
    fn add_lanes(&mut self, pair: &mut Pair<'_, '_>, acc: Var, index: &[Atom], value: Atom) {
        let lanes: Vec<Lane> = index.iter().map(|i| self.lane(pair, *i)).collect();
        let Held::Array(array) = self.held(acc) else { gradus_source::bug!("{} has no elements", acc.name) };
        if let Some((first, offset)) = firsts(&lanes) {
            let value = self.lane_reals(pair, value);
            let (address, before) = self.place(&array, &first);
            let offset = before + offset;
            let before = self.b.ins().load(F64X2, vector_flags(), address, offset);
            let sum = self.b.ins().fadd(before, value);
            self.b.ins().store(vector_flags(), sum, address, offset);
            return;
        }
        // The places may be the same.
        let each: Vec<[Value; 2]> = index.iter().map(|i| self.lane_each(pair, *i)).collect();
        let values = self.lane_each(pair, value);
        for (lane, value) in values.into_iter().enumerate() {
            let index: Vec<Value> = each.iter().map(|i| i[lane]).collect();
            let (address, offset) = self.place(&array, &index);
            let before = self.b.ins().load(F64, plain(), address, offset);
            let sum = self.b.ins().fadd(before, value);
            self.b.ins().store(plain(), sum, address, offset);
        }
    }

    fn lane_scalar(&mut self, pair: &mut Pair<'_, '_>, prim: Prim, args: &[Atom]) -> Lane {
        let lanes: Vec<Lane> = args.iter().map(|a| self.lane(pair, *a)).collect();
        if let Some(values) = all_same(&lanes) {
            return Lane::Same(self.scalar(prim, &values, args));
        }
        let known = |i: usize| if let Atom::Int(k) = args[i] { Some(k) } else { None };
        match (prim, &lanes[..]) {
            (Prim::AddInt | Prim::SubInt, [Lane::Next(a, more), Lane::Same(b)]) => {
                let sign = if prim == Prim::AddInt { 1 } else { -1 };
                return match known(1).and_then(|k| near(*more, k.checked_mul(sign)?)) {
                    Some(more) => Lane::Next(*a, more),
                    None => Lane::Next(self.scalar(prim, &[*a, *b], args), *more),
                };
            }
            (Prim::AddInt, [Lane::Same(a), Lane::Next(b, more)]) => {
                return match known(0).and_then(|k| near(*more, k)) {
                    Some(more) => Lane::Next(*b, more),
                    None => Lane::Next(self.scalar(prim, &[*a, *b], args), *more),
                };
            }
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

pub(super) fn is_function(stmt: &Stmt) -> bool {
    matches!(&stmt.op, Op::Scalar { prim, .. } if math::kernel_of(*prim).is_some())
}

fn all_same(lanes: &[Lane]) -> Option<Vec<Value>> {
    lanes.iter().map(|l| if let Lane::Same(value) = l { Some(*value) } else { None }).collect()
}

/// The sum of two constants, if an address can take it.
fn near(a: i64, b: i64) -> Option<i64> {
    a.checked_add(b).filter(|sum| sum.abs() < FAR)
}

/// The index in the first iteration, if the element of the second is the next one; it is to be so many bytes further.
fn firsts(lanes: &[Lane]) -> Option<(Vec<Value>, i32)> {
    let (last, others) = lanes.split_last()?;
    let mut index = all_same(others)?;
    match last {
        Lane::Next(value, more) => {
            index.push(*value);
            Some((index, 8 * *more as i32))
        }
        Lane::Same(_) | Lane::Each(_) | Lane::Reals(_) | Lane::Mask(_) => None,
    }
}
