//! Loops in vector lanes, after their [`Plan`]: the strips, phases and steps, and what is joined at the end.

use super::collected::Collected;
use super::emit::{args, Emitter};
use super::math;
use super::pairs::{cast, is_function, Pair};
use super::plan::Plan;
use crate::cores::Join;
use crate::flow::*;
use crate::steps::CHUNK;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F64, F64X2, I64, I64X2};
use cranelift_codegen::ir::{BlockArg, InstBuilder, Value};
use cranelift_frontend::Variable;
use gradus_source::Span;
use rustc_hash::FxHashMap;

/// What all iterations add to or are joined into: for each such place one pair for each pair of a step, so that operations need not wait for each other.
pub(super) struct Totals {
    pub(super) sums: Vec<Vec<Variable>>,
    /// The extreme of what are numbers, and whether something was none.
    pub(super) joins: Vec<Vec<[Variable; 2]>>,
}

impl Emitter<'_, '_, '_> {
    /// The part of a loop, from `first` to before `end`, that fills whole steps of pairs; gives the index from which single iterations go on, and the
    /// state there. `into` is where the numbers go that are collected; `steps` says where steps are counted, if they are.
    pub(super) fn lanes(
        &mut self,
        l: &For,
        plan: &Plan<'_>,
        [first, end]: [Value; 2],
        into: &[Collected],
        state: &[Value],
        steps: Option<Span>,
    ) -> (Value, Vec<Value>) {
        let zero = self.b.ins().iconst(I64, 0);
        let count = self.b.ins().isub(end, first);
        let positive = self.b.ins().smax(count, zero);
        let whole = self.b.ins().band_imm_s(positive, -plan.granule());
        let main = self.b.ins().iadd(first, whole);
        let totals = self.totals(plan);
        let (mut buffers, mut second) = (Vec::new(), Vec::new());
        for (_, stmt) in &plan.stmts {
            for var in stmt.binds.iter().filter(|v| plan.kept.contains_key(v)) {
                // A pair of conditions takes as much room as one of reals.
                let buffer = self.room(8 * plan.strip() as u32);
                buffers.push((*var, buffer));
                if matches!(&stmt.op, Op::Scalar { args, .. } if args.len() == 2 && is_function(stmt)) {
                    let buffer = self.room(8 * plan.strip() as u32);
                    second.push((*var, buffer));
                }
            }
        }
        let longest = if plan.phases > 1 { plan.strip() } else { CHUNK };
        let (strip, at) = self.block_with(&[I64]);
        let (over, ends) = self.block_with(&vec![F64; state.len()]);
        let from = self.b.declare_var(I64);
        self.b.def_var(from, main);
        let ready = self.b.create_block();
        self.b.ins().brif(whole, ready, &[], over, &args(state));
        self.b.switch_to_block(ready);
        self.b.seal_block(ready);
        let fixed = self.fixed(l);
        self.go_on(strip, &[BlockArg::Value(first)]);
        let start = at[0];
        let left = self.b.ins().isub(main, start);
        let most = self.b.ins().iconst(I64, longest);
        let length = self.b.ins().smin(left, most);
        if let Some(span) = steps {
            self.charge(length, span);
        }
        // Where the buffers would begin if they had room for the iterations before, too.
        let before = self.b.ins().ishl_imm_s(start, 3);
        let places: [FxHashMap<Var, Value>; 2] = [&buffers, &second].map(|rooms| {
            rooms.iter().map(|(var, room): &(Var, Value)| (*var, self.b.ins().isub(*room, before))).collect()
        });
        let next = self.b.ins().iadd(start, length);
        for phase in 0..plan.phases {
            let mut write = |e: &mut Self, index: Value, number: usize| {
                let mut pair = Pair::new(plan, phase, l.index, index, number, &places, &fixed);
                e.pair(&mut pair, l, into, &totals, number);
            };
            let step = 2 * plan.pairs as i64;
            if plan.granule() == step {
                self.steps(start, next, plan.pairs, false, &mut write);
            } else {
                let whole = self.b.ins().band_imm_s(length, -step);
                let rest = self.b.ins().iadd(start, whole);
                self.steps(start, rest, plan.pairs, true, &mut write);
                self.steps(rest, next, 1, true, &mut write);
            }
            self.functions(plan, phase, &buffers, &second, length);
        }
        let more = self.b.ins().icmp(IntCC::SignedLessThan, next, main);
        let end = self.b.create_block();
        self.b.ins().brif(more, strip, &[BlockArg::Value(next)], end, &[]);
        self.b.seal_block(strip);
        self.b.switch_to_block(end);
        self.b.seal_block(end);
        for ((acc, index), pairs) in plan.sums.iter().zip(&totals.sums) {
            self.add_sum(*acc, index, pairs);
        }
        let joined = self.join_all(plan, &totals, state, [first, main], from);
        self.go_on(over, &args(&joined));
        self.b.seal_block(over);
        (self.b.use_var(from), ends)
    }

    fn totals(&mut self, plan: &Plan<'_>) -> Totals {
        let mut totals = Totals { sums: Vec::new(), joins: Vec::new() };
        let pairs = |e: &mut Self, value: f64| -> Vec<Variable> {
            let value = e.b.ins().f64const(value);
            let value = e.b.ins().splat(F64X2, value);
            let pairs: Vec<Variable> = (0..plan.pairs).map(|_| e.b.declare_var(F64X2)).collect();
            pairs.iter().for_each(|v| e.b.def_var(*v, value));
            pairs
        };
        for _ in &plan.sums {
            totals.sums.push(pairs(self, 0.0));
        }
        for (_, join) in &plan.joins {
            let Atom::Real(neutral) = join.neutral() else { gradus_source::bug!("{join:?} is not of reals") };
            let extremes = pairs(self, neutral);
            let none = self.b.ins().iconst(I64, 0);
            let none = self.b.ins().splat(I64X2, none);
            let with_mask = |extreme: Variable| {
                let mask = self.b.declare_var(I64X2);
                self.b.def_var(mask, none);
                [extreme, mask]
            };
            totals.joins.push(extremes.into_iter().map(with_mask).collect());
        }
        totals
    }

    /// Steps of so many pairs, from one iteration to before another; `unsure`: there may be none.
    fn steps(
        &mut self,
        from: Value,
        to: Value,
        pairs: usize,
        unsure: bool,
        write: &mut impl FnMut(&mut Self, Value, usize),
    ) {
        let (body, index) = self.block_with(&[I64]);
        let end = self.b.create_block();
        if unsure {
            let some = self.b.ins().icmp(IntCC::SignedLessThan, from, to);
            self.b.ins().brif(some, body, &[BlockArg::Value(from)], end, &[]);
            self.b.switch_to_block(body);
        } else {
            self.go_on(body, &[BlockArg::Value(from)]);
        }
        for number in 0..pairs {
            write(self, index[0], number);
        }
        let next = self.b.ins().iadd_imm_s(index[0], 2 * pairs as i64);
        let more = self.b.ins().icmp(IntCC::SignedLessThan, next, to);
        self.b.ins().brif(more, body, &[BlockArg::Value(next)], end, &[]);
        self.b.seal_block(body);
        self.b.switch_to_block(end);
        self.b.seal_block(end);
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

    /// The state after iterations in lanes. Lanes do not know which of them came first, which matters between zeros of different signs and between
    /// several that are no numbers. Then all iterations are done again one by one, `from` the first.
    fn join_all(
        &mut self,
        plan: &Plan<'_>,
        totals: &Totals,
        state: &[Value],
        [first, main]: [Value; 2],
        from: Variable,
    ) -> Vec<Value> {
        let mut again: Option<Value> = None;
        let mut joined = Vec::new();
        for (((_, join), pairs), before) in plan.joins.iter().zip(&totals.joins).zip(state) {
            let mut total: Option<[Value; 2]> = None;
            for pair in pairs {
                let [extreme, mask] = pair.map(|v| self.b.use_var(v));
                total = Some(match total {
                    Some([other, others]) => {
                        [self.extreme_number(*join, extreme, other), self.b.ins().bor(mask, others)]
                    }
                    None => [extreme, mask],
                });
            }
            let Some([extreme, mask]) = total else { continue };
            let (low, high) = (self.b.ins().extractlane(extreme, 0), self.b.ins().extractlane(extreme, 1));
            let extreme = self.scalar(join.prim(), &[low, high], &[]);
            let zero = self.b.ins().f64const(0.0);
            let zero = self.b.ins().fcmp(FloatCC::Equal, extreme, zero);
            let none = self.b.ins().vany_true(mask);
            let unclear = self.b.ins().bor(zero, none);
            again = Some(match again {
                Some(before) => self.b.ins().bor(before, unclear),
                None => unclear,
            });
            joined.push(self.scalar(join.prim(), &[*before, extreme], &[]));
        }
        let Some(again) = again else { return joined };
        let start = self.b.ins().select(again, first, main);
        self.b.def_var(from, start);
        joined.iter().zip(state).map(|(after, before)| self.b.ins().select(again, *before, *after)).collect()
    }

    /// The extreme in each lane; `so_far` where `value` is no number.
    pub(super) fn extreme_number(&mut self, join: Join, value: Value, so_far: Value) -> Value {
        // In this form it is one instruction.
        let further = match join {
            Join::Maximum => self.b.ins().fcmp(FloatCC::LessThan, so_far, value),
            Join::Minimum => self.b.ins().fcmp(FloatCC::LessThan, value, so_far),
            Join::Sum | Join::Product => gradus_source::bug!("{join:?} has no extremes"),
        };
        let further = self.b.ins().bitcast(F64X2, cast(), further);
        self.b.ins().bitselect(further, value, so_far)
    }

    /// The elementary functions at the end of a phase, on all its iterations.
    fn functions(
        &mut self,
        plan: &Plan<'_>,
        phase: usize,
        buffers: &[(Var, Value)],
        second: &[(Var, Value)],
        length: Value,
    ) {
        for (_, stmt) in plan.stmts.iter().filter(|(at, _)| *at == phase) {
            let (Op::Scalar { prim, .. }, [y]) = (&stmt.op, &stmt.binds[..]) else { continue };
            let Some(kernel) = math::kernel_of(*prim) else { continue };
            let kernel = self.b.ins().iconst(I64, kernel as i64);
            let room = |rooms: &[(Var, Value)]| rooms.iter().find(|(var, _)| var == y).map(|(_, room)| *room);
            match (room(buffers), room(second)) {
                (Some(x), Some(y)) => self.runtime_effect("gradus_map2", &[kernel, x, y, length]),
                (Some(x), None) => self.runtime_effect("gradus_map", &[kernel, x, length]),
                (None, _) => gradus_source::bug!("a function in lanes has no buffer"),
            }
        }
    }
}
