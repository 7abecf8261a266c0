//! Primitives on numbers as Cranelift code.

use super::emit::Emitter;
use crate::flow::{Atom, Scalar};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{types, InstBuilder, Value};
use gradus_core::Prim;

/// Powers up to this are written as multiplications.
pub(super) const SMALL_POWER: u64 = 64;

impl Emitter<'_, '_, '_> {
    /// A primitive; `atoms` are the operands whose values are given.
    pub(super) fn scalar(&mut self, prim: Prim, x: &[Value], atoms: &[Atom]) -> Value {
        if let Some(name) = super::math::function_of(prim) {
            if let (Prim::PowRealInt, [_, Atom::Int(k)]) = (prim, atoms) {
                if k.unsigned_abs() <= SMALL_POWER {
                    let one = self.b.ins().f64const(1.0);
                    return self.small_power(x[0], *k, one);
                }
            }
            return self.runtime(name, x);
        }
        let ins = self.b.ins();
        match prim {
            Prim::AddReal => ins.fadd(x[0], x[1]),
            Prim::SubReal => ins.fsub(x[0], x[1]),
            Prim::MulReal => ins.fmul(x[0], x[1]),
            Prim::DivReal => ins.fdiv(x[0], x[1]),
            Prim::NegReal => ins.fneg(x[0]),
            Prim::Sqrt => ins.sqrt(x[0]),
            Prim::Abs => ins.fabs(x[0]),
            Prim::Maximum => self.extreme(true, x),
            Prim::Minimum => self.extreme(false, x),
            Prim::RealOfInt => ins.fcvt_from_sint(types::F64, x[0]),
            // Conversion saturates, and no number becomes 0.
            Prim::Floor => {
                let whole = ins.floor(x[0]);
                self.b.ins().fcvt_to_sint_sat(types::I64, whole)
            }
            Prim::Truncate => ins.fcvt_to_sint_sat(types::I64, x[0]),
            Prim::Round => self.round(x[0]),
            Prim::AddInt => ins.iadd(x[0], x[1]),
            Prim::SubInt => ins.isub(x[0], x[1]),
            Prim::MulInt => ins.imul(x[0], x[1]),
            Prim::NegInt => ins.ineg(x[0]),
            Prim::DivInt | Prim::ModInt => self.divide(prim, x, atoms),
            Prim::Not => ins.icmp_imm_s(IntCC::Equal, x[0], 0),
            Prim::Equal => self.compare(FloatCC::Equal, IntCC::Equal, x, atoms),
            Prim::NotEqual => self.compare(FloatCC::NotEqual, IntCC::NotEqual, x, atoms),
            Prim::Less => self.compare(FloatCC::LessThan, IntCC::SignedLessThan, x, atoms),
            Prim::LessEqual => self.compare(FloatCC::LessThanOrEqual, IntCC::SignedLessThanOrEqual, x, atoms),
            Prim::Greater => self.compare(FloatCC::GreaterThan, IntCC::SignedGreaterThan, x, atoms),
            Prim::GreaterEqual => self.compare(FloatCC::GreaterThanOrEqual, IntCC::SignedGreaterThanOrEqual, x, atoms),
            Prim::PowRealInt
            | Prim::PowReal
            | Prim::Exp
            | Prim::Log
            | Prim::Sin
            | Prim::Cos
            | Prim::Tan
            | Prim::Asin
            | Prim::Acos
            | Prim::Atan
            | Prim::Atan2
            | Prim::Sinh
            | Prim::Cosh
            | Prim::Tanh
            | Prim::Log1p
            | Prim::Expm1
            | Prim::Erf
            | Prim::Lgamma
            | Prim::Polygamma
            | Prim::PowInt
            | Prim::Sign
            | Prim::StringAppend
            | Prim::StringLength
            | Prim::StringOfInt
            | Prim::StringOfReal
            | Prim::Build
            | Prim::Get
            | Prim::Length
            | Prim::Set
            | Prim::Ifold
            | Prim::Iterate
            | Prim::CheckSize
            | Prim::VectorAdd
            | Prim::VectorSub
            | Prim::Scale
            | Prim::Inner
            | Prim::ZeroLike
            | Prim::StopGradient
            | Prim::Checkpoint => gradus_source::bug!("{prim:?} is no operation on numbers"),
        }
    }

    /// By repeated squaring, in the order of the reference evaluator; also of a pair of reals, with the `one` of its kind.
    pub(super) fn small_power(&mut self, x: Value, k: i64, one: Value) -> Value {
        let (mut result, mut square, mut rest): (Option<Value>, Value, u64) = (None, x, k.unsigned_abs());
        while rest > 0 {
            if rest & 1 == 1 {
                result = Some(match result {
                    Some(result) => self.b.ins().fmul(result, square),
                    None => square,
                });
            }
            rest >>= 1;
            if rest > 0 {
                square = self.b.ins().fmul(square, square);
            }
        }
        let result = result.unwrap_or(one);
        if k < 0 {
            self.b.ins().fdiv(one, result)
        } else {
            result
        }
    }

    /// The first operand if it is further than the second or no number, otherwise the second. In this form the one is one instruction, and whether it is
    /// a number need not be waited for.
    fn extreme(&mut self, largest: bool, x: &[Value]) -> Value {
        let (less, more) = if largest { (x[1], x[0]) } else { (x[0], x[1]) };
        let first = self.b.ins().fcmp(FloatCC::LessThan, less, more);
        let further = self.b.ins().select(first, x[0], x[1]);
        let none = self.b.ins().fcmp(FloatCC::Unordered, x[0], x[0]);
        self.b.ins().select(none, x[0], further)
    }

    /// To the nearest integer, halves away from zero.
    fn round(&mut self, x: Value) -> Value {
        let whole = self.b.ins().trunc(x);
        let rest = self.b.ins().fsub(x, whole);
        let size = self.b.ins().fabs(rest);
        let half = self.b.ins().f64const(0.5);
        let up = self.b.ins().fcmp(FloatCC::GreaterThanOrEqual, size, half);
        let one = self.b.ins().f64const(1.0);
        let one = self.b.ins().fcopysign(one, x);
        let next = self.b.ins().fadd(whole, one);
        let rounded = self.b.ins().select(up, next, whole);
        self.b.ins().fcvt_to_sint_sat(types::I64, rounded)
    }

    /// Wrapping division; the processor's traps for divisors 0 and -1, of which 0 is checked before.
    fn divide(&mut self, prim: Prim, x: &[Value], atoms: &[Atom]) -> Value {
        let (x, y) = (x[0], x[1]);
        let division = |e: &mut Self, y: Value| match prim {
            Prim::DivInt => e.b.ins().sdiv(x, y),
            _ => e.b.ins().srem(x, y),
        };
        if let [_, Atom::Int(k)] = *atoms {
            if k != 0 && k != -1 {
                let quotient = self.divide_by(x, k);
                return match prim {
                    Prim::DivInt => quotient,
                    _ => {
                        let whole = self.b.ins().imul(quotient, y);
                        self.b.ins().isub(x, whole)
                    }
                };
            }
        }
        // y + 1 is 0 or 1, unsigned, for the two.
        let above = self.b.ins().iadd_imm_s(y, 1);
        let special = self.b.ins().icmp_imm_s(IntCC::UnsignedLessThanOrEqual, above, 1);
        let one = self.b.ins().iconst(types::I64, 1);
        let safe = self.b.ins().select(special, one, y);
        let result = division(self, safe);
        let zero = self.b.ins().iconst(types::I64, 0);
        let instead = match prim {
            // y is its own sign here: 0 or -1.
            Prim::DivInt => self.b.ins().imul(x, y),
            _ => zero,
        };
        self.b.ins().select(special, instead, result)
    }

    fn compare(&mut self, real: FloatCC, int: IntCC, x: &[Value], atoms: &[Atom]) -> Value {
        match atoms.first().map(|a| a.ty().scalar) {
            Some(Scalar::Real) => self.b.ins().fcmp(real, x[0], x[1]),
            Some(Scalar::Int | Scalar::Bool | Scalar::Box(_)) | None => self.b.ins().icmp(int, x[0], x[1]),
        }
    }
}
