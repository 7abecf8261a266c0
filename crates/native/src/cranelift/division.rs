//! Division of integers by a constant, as a product with its reciprocal (Warren, Hacker's Delight, section 10-1): the processor's division takes ten times
//! as long.

use super::emit::Emitter;
use cranelift_codegen::ir::{InstBuilder, Value};

/// The quotient is that of the upper half of a product with `factor`, shifted to the right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reciprocal {
    factor: i64,
    shift: u32,
}

impl Reciprocal {
    /// Of a divisor other than -1, 0 and 1. The factor is `2^(64 + shift) / divisor`, rounded up, for the least shift that makes all quotients right.
    fn of(divisor: i64) -> Reciprocal {
        const HALF: u64 = 1 << 63;
        let size = divisor.unsigned_abs();
        let most = HALF + u64::from(divisor < 0);
        let critical = most - 1 - most % size;
        let [mut q1, mut q2] = [HALF / critical, HALF / size];
        let [mut r1, mut r2] = [HALF % critical, HALF % size];
        for shift in 0.. {
            for (quotient, rest, by) in [(&mut q1, &mut r1, critical), (&mut q2, &mut r2, size)] {
                let carry = u64::from(*rest >= by - *rest);
                *quotient = quotient.wrapping_mul(2).wrapping_add(carry);
                *rest = rest.wrapping_mul(2).wrapping_sub(carry * by);
            }
            let lacking = size - r2;
            if q1 > lacking || q1 == lacking && r1 != 0 {
                let factor = q2.wrapping_add(1) as i64;
                return Reciprocal { factor: if divisor < 0 { factor.wrapping_neg() } else { factor }, shift };
            }
        }
        gradus_source::bug!("no reciprocal of {divisor}")
    }

    /// What is still to be added to the upper half: the dividend times this, since the factor has one bit too few.
    fn correction(self, divisor: i64) -> i64 {
        i64::from(divisor > 0 && self.factor < 0) - i64::from(divisor < 0 && self.factor > 0)
    }
}

impl Emitter<'_, '_, '_> {
    /// The quotient by a constant other than -1 and 0, towards zero.
    pub(super) fn divide_by(&mut self, x: Value, divisor: i64) -> Value {
        if divisor == 1 {
            return x;
        }
        if let (true, bits) = (divisor > 0 && divisor.count_ones() == 1, i64::from(divisor.trailing_zeros())) {
            // Shifted to the right, a negative number is rounded down unless as much as can be lost is added first.
            let sign = self.b.ins().sshr_imm_s(x, 63);
            let lost = self.b.ins().ushr_imm_s(sign, 64 - bits);
            let x = self.b.ins().iadd(x, lost);
            return self.b.ins().sshr_imm_s(x, bits);
        }
        let reciprocal = Reciprocal::of(divisor);
        let factor = self.b.ins().iconst(cranelift_codegen::ir::types::I64, reciprocal.factor);
        let upper = self.b.ins().smulhi(x, factor);
        let upper = match reciprocal.correction(divisor) {
            1 => self.b.ins().iadd(upper, x),
            -1 => self.b.ins().isub(upper, x),
            _ => upper,
        };
        let below = self.b.ins().sshr_imm_s(upper, i64::from(reciprocal.shift));
        let negative = self.b.ins().ushr_imm_s(below, 63);
        self.b.ins().iadd(below, negative)
    }
}

#[cfg(test)]
mod tests {
    use super::Reciprocal;

    fn quotient(x: i64, divisor: i64) -> i64 {
        let reciprocal = Reciprocal::of(divisor);
        let upper = ((i128::from(x) * i128::from(reciprocal.factor)) >> 64) as i64;
        let upper = upper.wrapping_add(x.wrapping_mul(reciprocal.correction(divisor)));
        let below = upper >> reciprocal.shift;
        below.wrapping_add((below as u64 >> 63) as i64)
    }

    #[test]
    fn quotients_are_those_of_division() {
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let mut numbers =
            vec![i64::MIN, i64::MIN + 1, -10, -7, -3, -2, -1, 0, 1, 2, 3, 5, 7, 9, 10, 11, 2048, i64::MAX];
        for _ in 0..500 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            numbers.push(random as i64 >> (random >> 58));
        }
        for divisor in numbers.iter().filter(|d| !(-1..=1).contains(*d)) {
            for x in &numbers {
                assert_eq!(quotient(*x, *divisor), x / divisor, "{x} / {divisor}");
            }
        }
    }

    #[test]
    fn of_seven_as_in_the_book() {
        // Hacker's Delight, table 10-1, for 64 bits.
        assert_eq!(Reciprocal::of(7), Reciprocal { factor: 0x4924_9249_2492_4925, shift: 1 });
        assert_eq!(Reciprocal::of(-5), Reciprocal { factor: 0x9999_9999_9999_9999_u64 as i64, shift: 1 });
    }
}
