//! Mathematics of the primitives that neither Rust nor `libm` has.

use super::info::IntError;

/// `x ^ k` by repeated squaring; a negative exponent gives the reciprocal of the positive power.
pub fn powi(x: f64, k: i64) -> f64 {
    let (mut result, mut square, mut rest) = (1.0, x, k.unsigned_abs());
    while rest > 0 {
        if rest & 1 == 1 {
            result *= square;
        }
        rest >>= 1;
        if rest > 0 {
            square *= square;
        }
    }
    if k < 0 {
        1.0 / result
    } else {
        result
    }
}

pub fn power_of_int(x: i64, k: i64) -> Result<i64, IntError> {
    if k < 0 {
        return Err(IntError::NegativeExponent);
    }
    let (mut result, mut square, mut rest) = (1_i64, x, k);
    while rest > 0 {
        if rest & 1 == 1 {
            result = result.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        rest >>= 1;
    }
    Ok(result)
}

pub fn maximum(x: f64, y: f64) -> f64 {
    if x > y || x.is_nan() {
        x
    } else {
        y
    }
}

pub fn minimum(x: f64, y: f64) -> f64 {
    if x < y || x.is_nan() {
        x
    } else {
        y
    }
}

/// Whether rounding `x` gives a 64-bit integer.
pub fn fits_int(x: f64) -> bool {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    (-LIMIT..LIMIT).contains(&x)
}

/// 0, -1, -2, ...
pub fn is_pole_of_gamma(x: f64) -> bool {
    x <= 0.0 && x == x.trunc()
}

/// The k-th derivative of the digamma function.
pub fn polygamma(k: i64, x: f64) -> f64 {
    if k < 0 || x.is_nan() || is_pole_of_gamma(x) {
        f64::NAN
    } else if k == 0 {
        digamma(x)
    } else if x < 0.5 {
        reflected_polygamma(k, x)
    } else {
        sign_of_polygamma(k) * scaled_zeta(k, x)
    }
}

/// `(-1)^(k+1)`: the sign of the k-th polygamma on positive reals.
fn sign_of_polygamma(k: i64) -> f64 {
    if k % 2 == 0 {
        -1.0
    } else {
        1.0
    }
}

/// B_2, B_4, ...: the Bernoulli numbers of the asymptotic series.
const BERNOULLI: [f64; 12] = [
    1.0 / 6.0,
    -1.0 / 30.0,
    1.0 / 42.0,
    -1.0 / 30.0,
    5.0 / 66.0,
    -691.0 / 2730.0,
    7.0 / 6.0,
    -3617.0 / 510.0,
    43867.0 / 798.0,
    -174611.0 / 330.0,
    854513.0 / 138.0,
    -236364091.0 / 2730.0,
];

/// Digamma: reflection below zero, recurrence up to 12, then the asymptotic series.
pub fn digamma(x: f64) -> f64 {
    if x < 0.0 {
        // psi(x) = psi(1 - x) - pi cot(pi x); the distance to the nearest integer keeps the cotangent exact.
        let angle = std::f64::consts::PI * (x - x.round());
        return digamma(1.0 - x) - std::f64::consts::PI / libm::tan(angle);
    }
    let (mut z, mut below) = (x, 0.0);
    while z < 12.0 {
        below += 1.0 / z;
        z += 1.0;
    }
    let inverse_square = 1.0 / (z * z);
    let (mut power, mut series) = (inverse_square, 0.0);
    for (n, bernoulli) in (1_i32..).zip(BERNOULLI) {
        series += bernoulli / (2.0 * f64::from(n)) * power;
        power *= inverse_square;
    }
    libm::log(z) - 0.5 / z - series - below
}

/// `k! zeta(k + 1, x)` for `x > 0`: terms one by one up to a large argument, then Euler and Maclaurin's sum.
fn scaled_zeta(k: i64, x: f64) -> f64 {
    let k_real = k as f64;
    // k! / z^(k+1), in logarithms where the factorial alone would overflow.
    let term = |z: f64| {
        if k <= 150 {
            factorial(k) * powi(z, -k - 1)
        } else {
            libm::exp(libm::lgamma(k_real + 1.0) - (k_real + 1.0) * libm::log(z))
        }
    };
    let start = 15.0 + k_real.min(150.0);
    let (mut z, mut sum) = (x, 0.0);
    while z < start {
        let next = term(z);
        sum += next;
        z += 1.0;
        if next < sum * 1e-19 {
            return sum;
        }
    }
    // k! [ z^-k / k + z^-(k+1) / 2 + sum of B_2n (k+1)...(k+2n-1) / (2n)! z^-(k+2n) ]
    let first = term(z);
    let (mut rest, mut rising) = (z / k_real + 0.5, (k_real + 1.0) / (2.0 * z));
    for (n, bernoulli) in (1_i32..).zip(BERNOULLI) {
        let n2 = 2.0 * f64::from(n);
        rest += bernoulli * rising;
        rising *= (k_real + n2) * (k_real + n2 + 1.0) / ((n2 + 1.0) * (n2 + 2.0) * z * z);
    }
    sum + first * rest
}

fn factorial(k: i64) -> f64 {
    (2..=k).fold(1.0, |product, n| product * n as f64)
}

/// For small and negative `x`: steps up from the poles nearby, then reflection of what is far below zero.
fn reflected_polygamma(k: i64, x: f64) -> f64 {
    if x > -100.0 || k > 30 {
        // psi_k(x) = psi_k(x + n) + (-1)^(k+1) k! (sum of (x + i)^-(k+1)). High orders see only the nearest poles.
        let mut z = if x > -100.0 { x } else { x - x.floor() - 100.0 };
        let mut sum = 0.0;
        let size = if k <= 150 { factorial(k) } else { f64::INFINITY };
        while z < 0.5 {
            sum += powi(z, -k - 1) * size;
            z += 1.0;
        }
        return sign_of_polygamma(k) * (sum + scaled_zeta(k, z));
    }
    // psi_k(x) = (-1)^k psi_k(1 - x) - pi d^k/dx^k cot(pi x); derivatives of cot are polynomials in c = cot:
    // the derivative of p(c) is -pi (1 + c^2) p'(c).
    let pi = std::f64::consts::PI;
    let c = 1.0 / libm::tan(pi * (x - x.round()));
    let mut polynomial = vec![0.0, 1.0];
    for _ in 0..k {
        let mut next = vec![0.0; polynomial.len() + 1];
        for (power, coefficient) in polynomial.iter().enumerate().skip(1) {
            let slope = -pi * coefficient * power as f64;
            next[power - 1] += slope;
            next[power + 1] += slope;
        }
        polynomial = next;
    }
    let cotangent = polynomial.iter().rev().fold(0.0, |sum, coefficient| sum * c + coefficient);
    -sign_of_polygamma(k) * sign_of_polygamma(k) * pi * cotangent - sign_of_polygamma(k) * polygamma(k, 1.0 - x)
}
